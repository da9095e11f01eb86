"""Sums, products, extremes and norms over axes, and where the extremes are."""

import math

import numpy as np

from ...errors import ShapeError
from ...params import Field, Parameter, dtype, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty
from .common import declare


def _axes(prop, axis, ndim, exclude=False) -> tuple:
    axes = range(ndim) if not axis else {prop.check_axis("axis", a, ndim) for a in axis}
    if exclude and axis:
        return tuple(a for a in range(ndim) if a not in axes)
    return tuple(sorted(axes))


def _reduced(shape, axes, keepdims) -> tuple:
    """The shape after a reduction; where all axes go, MXNet leaves one of length 1."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes) or (1,)


class ReduceOp(Operator):
    """Base: reduces over ``axes``, which the property has worked out."""

    shareable = True

    def __init__(self, params, axes):
        super().__init__(params)
        self.axes = axes

    def kept(self, array, data):
        """An array of the result's shape, with the reduced axes back as length 1."""
        return array.reshape(_reduced(data.shape, self.axes, True))

    def count(self, data):
        return math.prod(data.shape[a] for a in self.axes)

    def reduce(self, data, out):
        raise NotImplementedError

    def forward(self, ctx, in_data, req, out_data, aux):
        if req[0] == "add":
            result = np.empty_like(out_data[0])
            self.reduce(in_data[0], result)
            out_data[0] += result
        else:
            self.reduce(in_data[0], out_data[0])


class SumOp(ReduceOp):
    def reduce(self, data, out):
        arrays.reduce(np.add, data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        arrays.evaluate(None, [self.kept(out_grad[0], in_grad[0])], in_grad[0], req[0])


class MeanOp(ReduceOp):
    def reduce(self, data, out):
        arrays.mean(data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        count = np.array(self.count(in_grad[0]), in_grad[0].dtype)
        arrays.evaluate(np.true_divide, [self.kept(out_grad[0], in_grad[0]), count], in_grad[0], req[0])


class NanSumOp(ReduceOp):
    def reduce(self, data, out):
        arrays.skip_nan(np.add, data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        inputs = [self.kept(out_grad[0], in_data[0]), in_data[0]]
        arrays.evaluate(lambda g, x: g * (x == x), inputs, in_grad[0], req[0])


class ProdOp(ReduceOp):
    def reduce(self, data, out):
        arrays.reduce(np.multiply, data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        g, y = (self.kept(a, in_data[0]) for a in (out_grad[0], out_data[0]))
        arrays.evaluate(lambda g, x, y: g * (y / x), [g, in_data[0], y], in_grad[0], req[0])


class NanProdOp(ReduceOp):
    def reduce(self, data, out):
        arrays.skip_nan(np.multiply, data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        g, y = (self.kept(a, in_data[0]) for a in (out_grad[0], out_data[0]))
        arrays.evaluate(
            lambda g, x, y: np.where(x == x, g * (y / x), 0), [g, in_data[0], y], in_grad[0], req[0]
        )


class ExtremeOp(ReduceOp):
    """Largest or smallest; every entry that equals it gets the whole gradient."""

    ufunc = np.maximum

    def reduce(self, data, out):
        arrays.reduce(self.ufunc, data, self.axes, self.params.keepdims, out)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        g, y = (self.kept(a, in_data[0]) for a in (out_grad[0], out_data[0]))
        arrays.evaluate(lambda g, x, y: g * (x == y), [g, in_data[0], y], in_grad[0], req[0])


class MinOp(ExtremeOp):
    ufunc = np.minimum


class NormParam(Parameter):
    ord = Field(int, 2, range=(1, 2), doc="1 for the sum of absolute values, 2 for the Euclidean norm")
    axis = Field(optional(ints()), None, doc="axes to reduce; none means all")
    out_dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")


class NormOp(ReduceOp):
    shareable = False  # it keeps scratch

    def __init__(self, params, axes):
        super().__init__(params, axes)
        self._scratch = None

    def reduce(self, data, out):
        if self._scratch is None:
            exact = data.dtype if data.dtype.kind == "f" else np.dtype(np.float64)
            self._scratch = np.empty(data.shape, arrays.sum_dtype(exact))
        arrays.norm(data, self.params.ord, self.axes, self.params.keepdims, out, self._scratch)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        g, y = (self.kept(a, in_data[0]) for a in (out_grad[0], out_data[0]))
        if self.params.ord == 1:
            arrays.evaluate(lambda g, x: g * np.sign(x), [g, in_data[0]], in_grad[0], req[0])
        else:  # the norm of zeros has no gradient: 0
            arrays.evaluate(
                lambda g, x, y: g * np.where(y == 0, 0, x / y), [g, in_data[0], y], in_grad[0], req[0]
            )


class ReduceParam(Parameter):
    axis = Field(optional(ints()), None, doc="axes to reduce; none or an empty tuple means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")
    exclude = Field(bool, False, doc="whether to reduce all axes but those in axis")


class ReduceProp(OperatorProperty):
    """Base of the reductions."""

    param = ReduceParam
    partial_shapes = repeatable = True
    argument_docs = {"data": "what is reduced"}

    def axes(self, ndim):
        return _axes(self, self.params.axis, ndim, self.params.exclude)

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        out = _reduced(shape, self.axes(len(shape)), self.params.keepdims)
        return in_shapes, [out]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, self.axes(len(in_shapes[0])))


for _names, _op, _words, _needs in (
    ("sum sum_axis", SumOp, "Sum over axes.", ()),
    ("mean", MeanOp, "Mean over axes.", ()),
    ("nansum", NanSumOp, "Sum over axes, NaN counting as 0.", ("in_data",)),
    ("prod", ProdOp, "Product over axes.", ("in_data", "out_data")),
    ("nanprod", NanProdOp, "Product over axes, NaN counting as 1.", ("in_data", "out_data")),
):
    declare(_names, ReduceProp, _words, op=_op, backward_needs=("out_grad", *_needs))


class ExtremeProp(ReduceProp):
    """Base of max and min, of which nothing has none."""

    backward_needs = ("out_grad", "in_data", "out_data")

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        if 0 in shape:
            raise ShapeError(f"{self.label}: data has no entries, its shape is {shape}")
        return super().infer_shape(in_shapes)


declare("max max_axis", ExtremeProp, "Largest entry over axes.", op=ExtremeOp)
declare("min min_axis", ExtremeProp, "Smallest entry over axes.", op=MinOp)


@register("norm")
class NormProp(ReduceProp):
    """Sum of absolute values (``ord=1``) or Euclidean norm (``ord=2``) over axes."""

    param, op = NormParam, NormOp

    def axes(self, ndim):
        return _axes(self, self.params.axis, ndim)

    def infer_type(self, in_types):
        return in_types, [self.params.out_dtype or in_types[0]]


class MomentsParam(Parameter):
    axes = Field(optional(ints()), None, doc="axes to reduce; none means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")


class MomentsOp(Operator):
    """Mean and variance."""

    def __init__(self, params, axes):
        super().__init__(params)
        self.axes = axes

    def forward(self, ctx, in_data, req, out_data, aux):
        (data,) = in_data
        mean = np.mean(data, axis=self.axes, keepdims=True, dtype=arrays.sum_dtype(data.dtype))
        for target, how, value in zip(
            out_data, req, (mean, np.square(data - mean).mean(axis=self.axes, keepdims=True)), strict=True
        ):
            arrays.evaluate(None, [value.reshape(target.shape)], target, how)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        (data,) = in_data
        kept = _reduced(data.shape, self.axes, True)
        mean, of_mean, of_variance = (a.reshape(kept) for a in (out_data[0], *out_grad))
        scale = 1 / max(math.prod(data.shape[a] for a in self.axes), 1)
        arrays.evaluate(
            lambda x, m, gm, gv: scale * (gm + 2 * gv * (x - m)),
            [data, mean, of_mean, of_variance],
            in_grad[0],
            req[0],
        )


@register("moments")
class MomentsProp(OperatorProperty):
    """Mean and variance over axes."""

    param, op = MomentsParam, MomentsOp
    argument_docs = {"data": "the array"}
    outputs = ("output0", "output1")
    partial_shapes = True

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        out = _reduced(shape, _axes(self, self.params.axes, len(shape)), self.params.keepdims)
        return in_shapes, [out, out]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, _axes(self, self.params.axes, len(in_shapes[0])))


# -- where the extreme is --------------------------------------------------------------------------------


class ArgReduceOp(GradientFree):
    """Index of the first extreme entry, in the dtype of the data, as MXNet gives it."""

    search = staticmethod(np.argmax)

    def axis(self, data):
        return self.params.axis

    def forward(self, ctx, in_data, req, out_data, aux):
        (data,), (out,) = in_data, out_data
        found = self.search(data, axis=self.axis(data))
        arrays.evaluate(None, [np.reshape(found, out.shape)], out, req[0])


class ArgMinOp(ArgReduceOp):
    search = staticmethod(np.argmin)


class ArgReduceParam(Parameter):
    axis = Field(optional(int), None, doc="axis to search; none means the flattened array")
    keepdims = Field(bool, False, doc="whether the axis stays, with length 1")


class ArgReduceProp(OperatorProperty):
    """Base of argmax and argmin."""

    param = ArgReduceParam
    partial_shapes = True
    argument_docs = {"data": "what is searched"}

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        axis = self.params.axis
        axes = _axes(self, None if axis is None else (axis,), len(shape))
        return in_shapes, [_reduced(shape, axes, self.params.keepdims)]


declare("argmax", ArgReduceProp, "Index of the first largest entry along an axis.", op=ArgReduceOp)
declare("argmin", ArgReduceProp, "Index of the first smallest entry along an axis.", op=ArgMinOp)


class ArgMaxChannelOp(ArgReduceOp):
    def axis(self, data):
        return min(1, data.ndim - 1)


@register("argmax_channel")
class ArgMaxChannelProp(OperatorProperty):
    """Index of the largest entry along axis 1."""

    op = ArgMaxChannelOp
    partial_shapes = True
    argument_docs = {"data": "what is searched, of shape (batch, channels, ...)"}

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        return in_shapes, [_reduced(shape, (min(1, len(shape) - 1),), False)]
