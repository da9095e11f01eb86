"""Windows of pictures laid out as columns, and their sum back into pictures."""

import itertools
import math

import numpy as np

from ...params import Field, shape
from ...registry import register
from ..base import OperatorProperty
from ..dense import FormulaOperator
from ..fields import Window, axes_field


class WindowsParam(Window):
    kernel = Field(shape((1, 2, 3)), range=(1, None), doc="size of the window")
    stride = axes_field(1, "step of the window; 1 unless given")
    dilate = axes_field(1, "distance of its pixels; 1 unless given")
    pad = axes_field(0, "zeros around the picture; none unless given")

    layout = None


class SumOfWindowsParam(Window):
    output_size = Field(shape((1, 2, 3)), range=(1, None), doc="size of the picture that results")
    kernel, stride, dilate, pad = WindowsParam.fields.values()

    per_axis = ("output_size", "stride", "dilate", "pad")
    layout = None


class Windows:
    """Where the windows of one parameter struct lie in pictures of one size."""

    def __init__(self, params, size):
        self.kernel, self.size, self.pad = params.kernel, size, params.pads
        self.stride, self.dilate = params.strides, params.dilations
        self.count = tuple(
            (n + 2 * pad - span) // stride + 1
            for n, pad, span, stride in zip(size, self.pad, params.spans, self.stride, strict=True)
        )

    def __iter__(self):
        """For each pixel of the window its places in the padded picture, in all windows."""
        for place in itertools.product(*map(range, self.kernel)):
            yield (
                ...,
                *(
                    slice(at * dilate, at * dilate + stride * (count - 1) + 1, stride)
                    for at, dilate, stride, count in zip(
                        place, self.dilate, self.stride, self.count, strict=True
                    )
                ),
            )

    def spread(self, data):
        """The columns of pictures."""
        around = [(0, 0)] * (data.ndim - len(self.size)) + [(pad, pad) for pad in self.pad]
        padded = np.pad(data, around)
        columns = np.stack([padded[places] for places in self], 2)
        return columns.reshape(len(data), data.shape[1] * columns.shape[2], math.prod(self.count))

    def gather(self, columns, channels):
        """The sum of the columns in pictures, which is also the gradient of :meth:`spread`."""
        padded = np.zeros(
            (len(columns), channels, *(n + 2 * pad for n, pad in zip(self.size, self.pad, strict=True))),
            columns.dtype,
        )
        columns = columns.reshape(len(columns), channels, math.prod(self.kernel), *self.count)
        for i, places in enumerate(self):
            padded[places] += columns[:, :, i]
        inner = tuple(slice(pad, pad + n) for n, pad in zip(self.size, self.pad, strict=True))
        return padded[(..., *inner)]


class Im2ColOp(FormulaOperator):
    def values(self, data):
        return (Windows(self.params, data.shape[2:]).spread(data),)

    def slopes(self, heads, inputs, outputs):
        shape = inputs[0].shape
        return (Windows(self.params, shape[2:]).gather(heads[0], shape[1]),)


class Col2ImOp(FormulaOperator):
    def values(self, columns):
        channels = columns.shape[1] // math.prod(self.params.kernel)
        return (Windows(self.params, self.params.output_size).gather(columns, channels),)

    def slopes(self, heads, inputs, outputs):
        return (Windows(self.params, self.params.output_size).spread(heads[0]),)


class WindowsProp(OperatorProperty):
    """Base of the two."""

    backward_needs = ("out_grad", "in_data")

    def windows(self, size) -> Windows:
        found = Windows(self.params, size)
        if min(found.count) < 1:
            raise self.shape_error(f"kernel {self.params.kernel} is larger than a picture of {size}")
        return found


@register("im2col")
class Im2ColProp(WindowsProp):
    """The windows of a convolution as columns: (batch, channels * window, number of windows)."""

    param, op = WindowsParam, Im2ColOp
    arguments = {"data": "pictures, (batch, channels, *size)"}
    monitored_as_data = True

    def out_shapes(self, shape):
        kernel = self.params.kernel
        self.check_ndim("data", shape, len(kernel) + 2, why=f" for kernel {kernel}")
        count = math.prod(self.windows(shape[2:]).count)
        return [(shape[0], shape[1] * math.prod(kernel), count)]


@register("col2im")
class Col2ImProp(WindowsProp):
    """Columns, as ``im2col`` gives them, added up in pictures of ``output_size``."""

    param, op = SumOfWindowsParam, Col2ImOp
    arguments = {"data": "columns, (batch, channels * window, number of windows)"}
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        p = self.params
        count = math.prod(self.windows(p.output_size).count)
        batch, columns, _ = self.check_shape("data", in_shapes[0], ("batch", "channels", count))
        if columns % math.prod(p.kernel):
            raise self.shape_error(
                f"data must have a multiple of {math.prod(p.kernel)} rows "
                f"for kernel {p.kernel}, got {columns}"
            )
        return in_shapes, [(batch, columns // math.prod(p.kernel), *p.output_size)]
