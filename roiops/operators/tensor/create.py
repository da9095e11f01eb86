"""Arrays from nothing, arrays like others, and other dtypes."""

import functools
import math
from collections.abc import Callable

import numpy as np

from ...dtypes import as_scalar
from ...errors import ParamError
from ...params import MOST_ARRAYS, Field, Parameter, device, dtype, enum, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty, variant
from .common import ElementwiseProp, declare
from .views import ReshapeOp


class FillOp(GradientFree):
    """Fills the output with one number."""

    number = 0

    def forward(self, ctx, in_data, req, out_data, aux):
        if req[0] == "add":
            out_data[0] += as_scalar(self.number, out_data[0].dtype)
        else:
            out_data[0][...] = as_scalar(self.number, out_data[0].dtype)


_ONES = variant(FillOp, number=1)


class CreateProp(OperatorProperty):
    """Base of operators without inputs."""

    arguments = ()
    out_types = ("dtype",)


class FilledProp(CreateProp):
    """Base of arrays of one number."""

    shape = Field(ints(), (), range=(-1, None), doc="shape of the result")
    ctx = Field(device(), "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")

    def infer_shape(self, in_shapes):
        # In a graph 0 is for the reader of the array to decide: the batch of a recurrent layer's first state.
        return [], [tuple(d or -1 for d in self.params.shape)]


declare("_zeros", FilledProp, "An array of zeros.", op=FillOp)
declare("_ones", FilledProp, "An array of ones.", op=_ONES)
declare(
    "_full",
    FilledProp,
    "An array of one number.",
    op=variant(FillOp, number=property(lambda op: op.params.value)),
    value=Field(float, doc="what every entry is"),
)

_LIKE = {"arguments": {"data": "only its shape and dtype are used"}}
declare("zeros_like", ElementwiseProp, "Zeros of the shape and dtype of the data.", op=FillOp, **_LIKE)
declare("ones_like", ElementwiseProp, "Ones of the shape and dtype of the data.", op=_ONES, **_LIKE)


class NumbersOp(GradientFree):
    """An array that the parameters and the output fix, as ``numbers`` says; worked out once, when bound."""

    numbers: Callable

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        numbers = self.numbers(self.params, out_data[0])
        numbers = numbers.astype(out_data[0].dtype).reshape(out_data[0].shape)
        return functools.partial(arrays.evaluate, None, [numbers], out_data[0], req[0])


def _fixed(numbers):
    """The Op of ``numbers(parameters, out)``."""
    return variant(NumbersOp, numbers=staticmethod(numbers))


def _spaced(out, start, step, repeat):
    """Numbers for ``out`` at equal distances; among whole numbers, of a whole start and step, as in MXNet."""
    if out.dtype.kind != "f":
        start, step = int(start), int(step)
    return start + step * (np.arange(out.size) // repeat)


def _arange(p, out):
    return _spaced(out, 0.0 if p.stop is None and not p.infer_range else p.start, p.step, p.repeat)


@register("_arange")
class ArangeProp(CreateProp):
    """Numbers at equal distances: start, start + step, ... up to but without stop."""

    start = Field(float, doc="first number; the end, if stop is none")
    stop = Field(optional(float), None, doc="end, not reached")
    step = Field(float, 1.0, nonzero=True, doc="difference of neighbours")
    repeat = Field(int, 1, range=(1, None), doc="how often each number comes")
    infer_range = Field(bool, False, doc="whether the length follows from the use of the result")
    ctx = Field(device(), "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")

    op = _fixed(_arange)
    partial_shapes = True

    def infer_shape(self, in_shapes):
        p = self.params
        if p.infer_range:
            return [], [(-1,)]
        start, stop = (0.0, p.start) if p.stop is None else (p.start, p.stop)
        length = (stop - start) / p.step
        count = math.ceil(length) if math.isfinite(length) else -1
        if count < 0:
            raise ParamError(f"{self.label}: no numbers from {start} to {stop} in steps of {p.step}")
        return [], [(count * p.repeat,)]


@register("_eye")
class EyeProp(CreateProp):
    """Ones on a diagonal, zeros elsewhere."""

    N = Field(int, range=(0, None), doc="number of rows")
    M = Field(int, 0, range=(0, None), doc="number of columns; 0 for as many as rows")
    k = Field(int, 0, doc="which diagonal: 0 the main one, positive above it")
    ctx = Field(device(), "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")

    op = _fixed(lambda p, out: np.eye(*out.shape, k=p.k))

    def infer_shape(self, in_shapes):
        return [], [(self.params.N, self.params.M or self.params.N)]


@register("_contrib_arange_like")
class ArangeLikeProp(OperatorProperty):
    """Numbers at equal distances, as many as the data has entries, or as an axis of it is long."""

    start = Field(float, 0.0, doc="first number")
    step = Field(float, 1.0, doc="difference of neighbours")
    repeat = Field(int, 1, range=(1, None), doc="how often each number comes")
    ctx = Field(device(), "", doc="device, for imperative calls")
    axis = Field(optional(int), None, doc="axis whose length is taken; none means all entries")

    op = _fixed(lambda p, out: _spaced(out, p.start, p.step, p.repeat))
    arguments = {"data": "only its shape is used"}

    def out_shapes(self, shape):
        axis = self.params.axis
        if axis is None:
            return [shape]
        return [(shape[self.check_axis("axis", axis, len(shape))],)]


class CastOp(ReshapeOp):
    """Another dtype; where it is the same one, nothing but a copy."""

    def _move(self, source, target, req):
        arrays.evaluate(None, [source], target, req)

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        if in_data[0].dtype == out_data[0].dtype:
            return super().bind_forward(ctx, in_data, req, out_data, aux)
        return functools.partial(self._move, in_data[0], out_data[0], req[0])


@register("Cast", "cast")
class CastProp(ElementwiseProp):
    """The data in another dtype."""

    dtype = Field(dtype, doc="dtype of the result")

    moves_data = True
    op = CastOp
    out_types = ("dtype",)
    backward_needs = ("out_grad",)
    inplace = {}


#: What mixed precision changes. Other dtypes, float64 among them, stay as they are.
_MIXED = {np.dtype(np.float16), np.dtype(np.float32)}

declare(
    "amp_cast",
    CastProp,
    "float16 and float32 data in another floating-point dtype, as mixed-precision graphs have it; "
    "data of other dtypes as it is.",
    infer_type=lambda self, in_types: (
        in_types,
        [self.params.dtype if in_types[0] in {None, *_MIXED} else in_types[0]],
    ),
)


declare(
    "cast_storage",
    CastProp,
    "The data as it is: MXNet's change of storage. Graphs compute with dense arrays.",
    param=Parameter,
    stype=Field(
        enum("default", "row_sparse", "csr"), doc="storage of the result in MXNet; graphs have dense arrays"
    ),
    infer_type=lambda self, in_types: (in_types, in_types),
)


class MulticastOp(Operator):
    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.copy_each(in_data, out_data, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        arrays.copy_each(out_grad, in_grad, req)


@register("amp_multicast")
class MulticastProp(OperatorProperty):
    """The float16 and float32 inputs in the wider of their dtypes, or the narrower; the others as they are.

    MXNet casts float16 inputs to the dtype of a first input that is neither, where none is float32.
    """

    num_outputs = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs and outputs")
    cast_narrow = Field(bool, False, doc="whether the narrowest dtype is taken instead of the widest")

    op = MulticastOp
    variadic = "num_outputs"
    backward_needs = ("out_grad",)

    def list_outputs(self):
        return tuple(f"output{i}" for i in range(self.params.num_outputs))

    def infer_shape(self, in_shapes):
        return in_shapes, list(in_shapes)

    def infer_type(self, in_types):
        kinds = sorted({t for t in in_types if t in _MIXED}, key=lambda t: t.itemsize)
        common = kinds[0 if self.params.cast_narrow else -1] if kinds else None
        return in_types, [common if t in {None, *_MIXED} else t for t in in_types]


@register("_linspace")
class LinspaceProp(CreateProp):
    """So many numbers at equal distances between two."""

    start = Field(float, doc="first number")
    stop = Field(float, doc="last number, unless endpoint is false")
    num = Field(int, range=(0, None), doc="how many numbers")
    endpoint = Field(bool, True, doc="whether stop is among them")
    ctx = Field(device(), "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")

    op = _fixed(lambda p, out: np.linspace(p.start, p.stop, p.num, endpoint=p.endpoint))

    def infer_shape(self, in_shapes):
        return [], [(self.params.num,)]
