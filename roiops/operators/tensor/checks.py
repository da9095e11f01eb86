"""Questions about whole arrays: whether two agree within tolerances, whether all numbers are finite."""

import numpy as np

from ...params import MOST_ARRAYS, Field
from ...registry import register
from .. import arrays
from ..base import GradientFree, OperatorProperty
from .common import merge_all


class AllCloseOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        p, (a, b) = self.params, in_data
        close = (a == b) | (np.abs(a - b) <= p.atol + p.rtol * np.abs(b)) & np.isfinite(b)
        if p.equal_nan:
            close |= np.isnan(a) & np.isnan(b)
        arrays.evaluate(None, [close.all()], out_data[0], req[0])


@register("_contrib_allclose")
class AllCloseProp(OperatorProperty):
    """1 where every entry of a and b agrees within ``atol + rtol * |b|``, else 0.

    An infinity agrees with itself alone; in MXNet 1.9.1 everything agrees with an infinite entry of b.
    """

    rtol = Field(float, 1e-5, doc="tolerance relative to b")
    atol = Field(float, 1e-8, doc="absolute tolerance")
    equal_nan = Field(bool, True, doc="whether NaN agrees with NaN")

    op = AllCloseOp
    arguments = {"a": "one array", "b": "another of the same shape and dtype"}

    def infer_shape(self, in_shapes):
        return [merge_all(self, in_shapes)] * 2, [()]

    def infer_type(self, in_types):
        dtype = self.common_type(in_types)
        return [dtype] * 2, [np.dtype(np.uint8)]


class AllFiniteOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        finite = all(np.isfinite(array).all() for array in in_data)
        if self.params.init_output:
            arrays.evaluate(None, [np.array([finite])], out_data[0], req[0])
        elif not finite:
            out_data[0][...] = 0


class AllFiniteProp(OperatorProperty):
    """1 where every number is finite, else 0."""

    init_output = Field(bool, True, doc="whether the output starts at 1; if not, a 0 that it holds stays")

    op = AllFiniteOp
    out_types = (np.dtype(np.float32),)
    arguments = {"data": "the numbers"}
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        return in_shapes, [(1,)]


register("all_finite")(AllFiniteProp)


@register("multi_all_finite")
class MultiAllFiniteProp(AllFiniteProp):
    """1 where every number of all arrays is finite, else 0."""

    num_arrays = Field(int, 1, range=(1, MOST_ARRAYS), doc="number of inputs")

    variadic = "num_arrays"
