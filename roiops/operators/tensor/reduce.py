"""Sums, products, extremes and norms over axes, and where the extremes are."""

import functools
import math

import numpy as np

from ...dtypes import wide
from ...params import Field, Parameter, dtype, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty, kernels, variant
from ..dense import DenseOperator
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
    """Reduces over ``axes``, which the property has worked out, by ``reduce(data, axes, keepdims, out)``.

    ``gradient`` is a function and the letters of its arguments: ``g`` the head gradient, ``x`` the data,
    ``y`` the result, all but the data with the reduced axes as length 1. None hands the argument on.
    """

    shareable = True

    axes: tuple
    gradient: tuple = (None, "g")

    def kept(self, array, data):
        """An array of the result's shape, with the reduced axes back as length 1."""
        return array.reshape(_reduced(data.shape, self.axes, True))

    def forward(self, ctx, in_data, req, out_data, aux):
        out = np.empty_like(out_data[0]) if req[0] == "add" else out_data[0]
        self.reduce(in_data[0], self.axes, self.params.keepdims, out)
        if out is not out_data[0]:
            out_data[0] += out

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        function, letters = self.gradient
        results = {"g": out_grad[0], "y": out_data[0]}
        inputs = [in_data[0] if each == "x" else self.kept(results[each], in_grad[0]) for each in letters]
        arrays.evaluate(function, inputs, in_grad[0], req[0])


class SumOp(ReduceOp):
    def bind_forward(self, ctx, in_data, req, out_data, aux):
        data, out = in_data[0], out_data[0]
        alone = len(self.axes) == 1 and math.prod(data.shape[: self.axes[0]]) == 1
        few = alone and out.size >= arrays.BLOCK and 2 <= data.shape[self.axes[0]] <= 4
        if few and data.dtype == np.float32 and DenseOperator.as_they_are(in_data, req, out_data):
            # A few large arrays, one after the other in memory: threads share their sum.
            first, *others = data.reshape(data.shape[self.axes[0]], out.size)
            chain = kernels("network.chain", ctx.device)
            # From 0 on, as in MXNet: the sum of -0 and -0 is 0.
            steps = [(chain.ADD, other) for other in (0, *others)]
            return chain.bind(first, steps, out.reshape(-1))
        return super().bind_forward(ctx, in_data, req, out_data, aux)


class MeanOp(ReduceOp):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        (target,) = in_grad
        dtype = wide(target.dtype)  # float16 has no place for a count of 100,000
        count = np.array(math.prod(target.shape[a] for a in self.axes), dtype)
        head = self.kept(out_grad[0], target).astype(dtype, copy=False)
        arrays.evaluate(None, [head / count], target, req[0])


class NormOp(ReduceOp):
    shareable = False  # it keeps scratch

    _scratch = None

    @property
    def gradient(self):
        if self.params.ord == 1:
            return lambda g, x: g * np.sign(x), "gx"
        return lambda g, x, y: g * np.where(y == 0, 0, x / y), "gxy"  # the norm of zeros has no gradient: 0

    def reduce(self, data, axes, keepdims, out):
        if self._scratch is None:
            exact = data.dtype if data.dtype.kind == "f" else np.dtype(np.float64)
            self._scratch = np.empty(data.shape, wide(exact))
        arrays.norm(data, self.params.ord, axes, keepdims, out, self._scratch)


class ReduceBase(OperatorProperty):
    """Base of the reductions."""

    partial_shapes = repeatable = True
    arguments = {"data": "what is reduced"}

    def axes(self, ndim):
        """The axes to reduce."""
        return _axes(self, self.params.axis, ndim)

    def out_shapes(self, shape):
        out = _reduced(shape, self.axes(len(shape)), getattr(self.params, "keepdims", False))
        return [out] * len(self.outputs)

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, axes=self.axes(len(in_shapes[0])))


class ReduceProp(ReduceBase):
    """Base of those that may name the axes that stay.

    ``onnx`` is the kind of reduction in ONNX, and what takes the place of NaN there, if anything.
    """

    axis = Field(optional(ints()), None, doc="axes to reduce; none or an empty tuple means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")
    exclude = Field(bool, False, doc="whether to reduce all axes but those in axis")

    def axes(self, ndim):
        return _axes(self, self.params.axis, ndim, self.params.exclude)


class ExtremeProp(ReduceProp):
    """Base of max and min, of which nothing has none. Every entry that equals one gets the whole gradient."""

    def out_shapes(self, shape):
        if 0 in shape:
            raise self.shape_error(f"data has no entries, its shape is {shape}")
        return super().out_shapes(shape)


def _declare(names, words, reduce, onnx, gradient=(None, "g"), base=ReduceProp, op=ReduceOp):
    op = variant(op, reduce=staticmethod(reduce), gradient=gradient)
    sources = {"g": "out_grad", "x": "in_data", "y": "out_data"}
    needs = tuple(sources[letter] for letter in gradient[1])
    declare(names, base, words, op=op, backward_needs=needs, onnx=onnx)


_sum, _product, _most, _least = (
    functools.partial(arrays.reduce, ufunc) for ufunc in (np.add, np.multiply, np.maximum, np.minimum)
)
_sum_of_some, _product_of_some = (
    functools.partial(arrays.skip_nan, ufunc) for ufunc in (np.add, np.multiply)
)
_where_equal = lambda g, x, y: g * (x == y), "gxy"
_others = lambda g, x, y: g * (y / x), "gxy"
_some = lambda g, x: g * (x == x), "gx"
_some_others = lambda g, x, y: np.where(x == x, g * (y / x), 0), "gxy"

_declare("sum sum_axis", "Sum over axes.", _sum, ("Sum",), op=SumOp)
_declare("mean", "Mean over axes.", arrays.mean, ("Mean",), op=MeanOp)
_declare("nansum", "Sum over axes, NaN counting as 0.", _sum_of_some, ("Sum", 0), _some)
_declare("prod", "Product over axes.", _product, ("Prod",), _others)
_declare("nanprod", "Product over axes, NaN counting as 1.", _product_of_some, ("Prod", 1), _some_others)
_declare("max max_axis", "Largest entry over axes.", _most, ("Max",), _where_equal, ExtremeProp)
_declare("min min_axis", "Smallest entry over axes.", _least, ("Min",), _where_equal, ExtremeProp)


@register("norm")
class NormProp(ReduceBase):
    """Sum of absolute values (``ord=1``) or Euclidean norm (``ord=2``) over axes."""

    ord = Field(int, 2, range=(1, 2), doc="1 for the sum of absolute values, 2 for the Euclidean norm")
    axis = Field(optional(ints()), None, doc="axes to reduce; none means all")
    out_dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")

    op = NormOp
    out_types = ("out_dtype",)


class MomentsOp(Operator):
    """Mean and variance over ``axes``."""

    axes: tuple

    def forward(self, ctx, in_data, req, out_data, aux):
        (data,) = in_data
        mean = arrays.average(data, self.axes, True, wide(data.dtype))
        squares = np.square(data - mean)
        variance = arrays.average(squares, self.axes, True, squares.dtype)
        for target, how, value in zip(out_data, req, (mean, variance), strict=True):
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


class MomentsParam(Parameter):
    axes = Field(optional(ints()), None, doc="axes to reduce; none means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")


@register("moments")
class MomentsProp(ReduceBase):
    """Mean and variance over axes."""

    param, op = MomentsParam, MomentsOp
    arguments = {"data": "the array"}
    outputs = ("output0", "output1")
    monitored_as_data = True

    def axes(self, ndim):
        return _axes(self, self.params.axes, ndim)


# -- where the extreme is --------------------------------------------------------------------------------


class ArgReduceOp(GradientFree):
    """Index of the first extreme entry, in the dtype of the data, as MXNet gives it."""

    axes: tuple
    search = staticmethod(np.argmax)

    def forward(self, ctx, in_data, req, out_data, aux):
        (data,), (out,) = in_data, out_data
        found = self.search(data, axis=self.axes[0] if len(self.axes) == 1 else None)
        arrays.evaluate(None, [np.reshape(found, out.shape)], out, req[0])


class ArgReduceBase(ReduceBase):
    """Base: one axis, or all of them, is searched."""

    op = ArgReduceOp

    def out_shapes(self, shape):
        axes = self.axes(len(shape))
        some_are_empty = any(shape[a] == 0 for a in axes)
        if some_are_empty and (len(axes) == len(shape) or math.prod(_reduced(shape, axes, False))):
            raise self.shape_error(f"data has no entries to search, its shape is {tuple(shape)}")
        return super().out_shapes(shape)


class ArgReduceProp(ArgReduceBase):
    """Base of argmax and argmin."""

    axis = Field(optional(int), None, doc="axis to search; none means the flattened array")
    keepdims = Field(bool, False, doc="whether the axis stays, with length 1")

    arguments = {"data": "what is searched"}

    def axes(self, ndim):
        axis = self.params.axis
        return _axes(self, None if axis is None else (axis,), ndim)


declare("argmax", ArgReduceProp, "Index of the first largest entry along an axis.")
_FIRST_MINIMUM = variant(ArgReduceOp, search=staticmethod(np.argmin))
declare("argmin", ArgReduceProp, "Index of the first smallest entry along an axis.", op=_FIRST_MINIMUM)


@register("argmax_channel")
class ArgMaxChannelProp(ArgReduceBase):
    """Index of the largest entry along axis 1."""

    arguments = {"data": "what is searched, of shape (batch, channels, ...)"}

    def axes(self, ndim):
        return (min(1, ndim - 1),)

    def out_shapes(self, shape):
        self.check_ndim("data", shape, least=1)
        return super().out_shapes(shape)
