"""Numbers in eight bits and back."""

import numpy as np

from ...errors import DTypeError
from ...params import Field, enum
from ...registry import register
from .. import arrays
from ..base import GradientFree, OperatorProperty

_RANGE_DOCS = {
    "min_range": "the least number that is told apart, shape (1,)",
    "max_range": "the largest number that is told apart, shape (1,)",
}


def _largest(low, high):
    """The size of the larger end of a range."""
    return max(abs(low), abs(high))


class QuantizeOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        data, (low,), (high,) = in_data
        limits = np.iinfo(self.params.out_type)
        scale = np.float32(limits.max) / _largest(low, high)
        steps = lambda x: np.clip(np.rint(x * scale), limits.min, limits.max)  # noqa: E731
        arrays.evaluate(steps, [data], out_data[0], req[0], exact=True)
        if self.params.out_type == "int8":
            high = _largest(low, high)
            low = -high
        arrays.copy_each((low, high), out_data[1:], req[1:])


@register("_contrib_quantize")
class QuantizeProp(OperatorProperty):
    """Numbers in eight bits, and the range that those stand for, as MXNet's library for CPUs has it.

    The larger of the two ends in size becomes 127, or 255 for uint8; zero stays zero, and what has no place
    in the eight bits becomes the least or the largest that they hold.
    """

    out_type = Field(enum("int8", "uint8"), "uint8", doc="what the numbers become")

    op = QuantizeOp
    outputs = ("output", "min_output", "max_output")
    arguments = {"data": "the numbers", **_RANGE_DOCS}

    def infer_shape(self, in_shapes):
        return [in_shapes[0], (1,), (1,)], [in_shapes[0], (1,), (1,)]

    def infer_type(self, in_types):
        dtype = np.dtype(np.float32)
        return [dtype] * 3, [np.dtype(self.params.out_type), dtype, dtype]


class DequantizeOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        data, (low,), (high,) = in_data
        # MXNet divides by half a step more than quantizing multiplies by.
        scale = _largest(low, high) / np.float32(np.iinfo(data.dtype).max + 0.5)
        arrays.evaluate(lambda x: x * scale, [data.astype(np.float32)], out_data[0], req[0])


@register("_contrib_dequantize")
class DequantizeProp(OperatorProperty):
    """The numbers that int8 or uint8 stand for, with the range that quantizing gave."""

    out_type = Field(enum("float32"), "float32", doc="what the numbers become")

    op = DequantizeOp
    arguments = {"data": "int8 or uint8", **_RANGE_DOCS}

    def infer_shape(self, in_shapes):
        return [in_shapes[0], (1,), (1,)], [in_shapes[0]]

    def infer_type(self, in_types):
        if in_types[0] is not None and in_types[0] not in (np.int8, np.uint8):
            raise DTypeError(f"{self.label}: data must be int8 or uint8, got {in_types[0]}")
        dtype = np.dtype(np.float32)
        return [in_types[0], dtype, dtype], [dtype]
