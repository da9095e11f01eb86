"""Counting what falls into which bin."""

import numpy as np

from ...errors import DataError, DTypeError, ParamError
from ...params import Field, Parameter, floats, optional
from ...registry import register
from ..base import GradientFree, OperatorProperty, assign


class HistogramParam(Parameter):
    bin_cnt = Field(optional(int), None, range=(1, None), doc="number of equal bins; else bins is an input")
    range = Field(optional(floats(2)), None, doc="ends of the first and last of the equal bins")

    def validate(self, operator):
        if (self.bin_cnt is None) != (self.range is None):
            raise ParamError(f"{operator}: bin_cnt and range must both be given, or bins as an input")
        if self.range is not None and not self.range[0] <= self.range[1]:
            raise ParamError(f"{operator}: range must begin with its lower end, got {self.range}")


class HistogramOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        p = self.params
        if p.bin_cnt is None:
            edges = in_data[1]
            if not (np.diff(edges) >= 0).all():
                raise DataError(f"{ctx.label}: bins must not decrease")
            counts = np.histogram(in_data[0], edges)[0]
        else:
            low, high = p.range
            counts = np.histogram(in_data[0], p.bin_cnt, p.range)[0]
            steps = np.arange(p.bin_cnt + 1)
            edges = (high * steps + low * (p.bin_cnt - steps)) / p.bin_cnt
        assign(out_data[0], req[0], counts)
        assign(out_data[1], req[1], edges)


@register("_histogram")
class HistogramProp(OperatorProperty):
    """How many entries fall into each bin, and the edges of the bins. The last bin holds its upper edge."""

    param, op = HistogramParam, HistogramOp
    arguments = {"data": "any array", "bins": "the edges of the bins, ascending; without bin_cnt"}
    present_if = {"bins": lambda p: p.bin_cnt is None}
    outputs = ("output0", "output1")
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        if self.params.bin_cnt is not None:
            return in_shapes, [(self.params.bin_cnt,), (self.params.bin_cnt + 1,)]
        bins = in_shapes[1]
        if bins is None:
            return in_shapes, [None, None]
        if len(bins) != 1 or bins[0] < 2:
            raise self.shape_error(f"bins must be a vector of 2 or more edges, got shape {bins}")
        return in_shapes, [(bins[0] - 1,), bins]

    def infer_type(self, in_types):
        if in_types[0] is not None and np.dtype(in_types[0]).kind not in "iuf":
            raise DTypeError(f"{self.label}: data must hold numbers, got {in_types[0]}")
        return [in_types[0] if t is None else t for t in in_types], [np.dtype(np.int64), in_types[0]]
