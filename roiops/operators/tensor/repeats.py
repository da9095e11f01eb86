"""Repeating, padding and rearranging entries."""

import math

import numpy as np

from ...dtypes import as_scalar, wide
from ...params import Field, dtype, enum, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty, kernels, known
from ..dense import DenseOperator

# -- repeats along axes ----------------------------------------------------------------------------------


class RepeatOp(Operator):
    """Broadcasts the input seen as ``narrow`` to the output seen as ``wide``."""

    narrow: tuple
    wide: tuple

    def forward(self, ctx, in_data, req, out_data, aux):
        source = in_data[0].reshape(self.narrow)
        arrays.fill(out_data[0], req[0], lambda out: np.copyto(out.reshape(self.wide), source))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grad = out_grad[0].reshape(self.wide)
        arrays.fill(
            in_grad[0], req[0], lambda target: arrays.sum_to(grad, target.reshape(self.narrow), "write")
        )


class RepeatBase(OperatorProperty):
    """Base of operators on a :class:`RepeatOp`."""

    op = RepeatOp
    backward_needs = ("out_grad",)
    arguments = {"data": "the array"}

    def forms(self, shape, *others):
        """``(narrow, wide, out_shape)``: the input and output as they broadcast, and the output's shape."""
        raise NotImplementedError

    def infer_shape(self, in_shapes):
        return in_shapes, [None if None in in_shapes else self.forms(*in_shapes)[2]]

    def create_operator(self, ctx, in_shapes, in_types):
        narrow, wide, _ = self.forms(*in_shapes)
        return self.op(self.params, narrow=narrow, wide=wide)


class BroadcastBase(RepeatBase):
    """Base of operators that repeat axes of length 1 until ``target`` of the inputs' shapes is reached."""

    def forms(self, shape, *others):
        target = tuple(self.target(shape, *others))
        if len(shape) != len(target) or any(n not in (1, t) for n, t in zip(shape, target, strict=True)):
            raise self.shape_error(f"data of shape {tuple(shape)} cannot be broadcast to {target}")
        return shape, target, target


@register("broadcast_to")
class BroadcastToProp(BroadcastBase):
    """Repeat axes of length 1 until a shape is reached."""

    shape = Field(ints(), (), doc="shape to reach; 0 keeps an axis")

    def target(self, shape):
        wanted = self.params.shape
        if len(wanted) != len(shape):
            return wanted
        return [n if t == 0 else t for n, t in zip(shape, wanted, strict=True)]


@register("broadcast_axis", "broadcast_axes")
class BroadcastAxisProp(BroadcastBase):
    """Repeat some axes of length 1."""

    axis = Field(ints(), (), doc="axes of length 1 to repeat")
    size = Field(ints(), (), doc="length of each of them afterwards")

    def target(self, shape):
        p = self.params
        if len(p.axis) != len(p.size):
            raise self.shape_error(f"axis and size must be of one length, got {p.axis} and {p.size}")
        target = list(shape)
        for axis, size in zip(p.axis, p.size, strict=True):
            target[self.check_axis("axis", axis, len(shape))] = size
        return target


@register("broadcast_like")
class BroadcastLikeProp(BroadcastBase):
    """Repeat axes of length 1 of lhs until they are as long as those of rhs."""

    lhs_axes = Field(optional(ints()), None, doc="axes of lhs to repeat; none means all")
    rhs_axes = Field(optional(ints()), None, doc="axes of rhs whose lengths they take")

    zero_grad = ("rhs",)
    arguments = {"lhs": "the array", "rhs": "only its shape is used"}
    out_types = (0,)

    def target(self, lhs, rhs):
        p = self.params
        if p.lhs_axes is None and p.rhs_axes is None:
            return rhs
        if len(p.lhs_axes or ()) != len(p.rhs_axes or ()):
            raise self.shape_error(
                f"lhs_axes and rhs_axes must be of one length, got {p.lhs_axes} and {p.rhs_axes}"
            )
        if not p.lhs_axes:
            raise self.shape_error("lhs_axes and rhs_axes must name an axis, or be left out")
        target = list(lhs)
        for to, source in zip(p.lhs_axes, p.rhs_axes, strict=True):
            target[self.check_axis("lhs_axes", to, len(lhs))] = rhs[
                self.check_axis("rhs_axes", source, len(rhs))
            ]
        return target

    def infer_shape(self, in_shapes):
        return super().infer_shape(in_shapes) if known(in_shapes[1]) else (in_shapes, [None])


@register("tile")
class TileProp(RepeatBase):
    """The whole array several times along each axis."""

    reps = Field(ints(), range=(1, None), doc="how often the array comes along each axis, last axes last")

    monitored_as_data = True

    def forms(self, shape):
        ndim = max(len(shape), len(self.params.reps))
        reps = (1,) * (ndim - len(self.params.reps)) + self.params.reps
        shape = (1,) * (ndim - len(shape)) + tuple(shape)
        narrow = [n for s in shape for n in (1, s)]
        wide = [n for pair in zip(reps, shape, strict=True) for n in pair]
        return narrow, wide, tuple(r * s for r, s in zip(reps, shape, strict=True))


@register("repeat")
class RepeatProp(RepeatBase):
    """Each entry several times in a row."""

    repeats = Field(int, range=(0, None), doc="how often each entry comes")
    axis = Field(
        optional(int), None, doc="axis along which entries are repeated; none means the flattened array"
    )

    monitored_as_data = True

    def forms(self, shape):
        times = self.params.repeats
        if self.params.axis is None:
            size = math.prod(shape)
            return (size, 1), (size, times), (size * times,)
        axis = self.check_axis("axis", self.params.axis, len(shape))
        before, after = shape[: axis + 1], shape[axis + 1 :]
        out = (*shape[:axis], shape[axis] * times, *after)
        return (*before, 1, *after), (*before, times, *after), out


# -- padding ---------------------------------------------------------------------------------------------


class PadOp(Operator):
    """One axis after the other: the outer parts repeat or mirror what is inside already."""

    widths: list
    _scratch = None

    def _inside(self, out_shape):
        return tuple(slice(b, n - a) for n, (b, a) in zip(out_shape, self.widths, strict=True))

    def _borders(self, length, before, after):
        """Pairs (outer, inner): which index of the padded axis mirrors or repeats which."""
        last = length - after - 1
        reflect = self.params.mode == "reflect"
        for i in range(before):
            yield before - 1 - i, before + (i + 1 if reflect else 0)
        for i in range(after):
            yield last + 1 + i, last - (i + 1 if reflect else 0)

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.fill(out_data[0], req[0], lambda out: self._pad(in_data[0], out))

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        *outer, (top, _), (left, _) = self.widths
        planes = self.params.mode == "constant" and not any(map(any, outer))
        dense = planes and DenseOperator.as_they_are(in_data, req, out_data)
        if not dense or in_data[0].dtype != np.float32:
            return super().bind_forward(ctx, in_data, req, out_data, aux)
        bind = kernels("tensor.planes", ctx.device).bind
        return bind(in_data[0], top, left, self.params.constant_value, out_data[0])

    def _pad(self, data, out):
        if self.params.mode == "constant":
            out[...] = as_scalar(self.params.constant_value, out.dtype)
        out[self._inside(out.shape)] = data
        if self.params.mode == "constant":
            return
        for axis, (before, after) in enumerate(self.widths):
            along = np.moveaxis(out, axis, 0)
            for outer, inner in self._borders(out.shape[axis], before, after):
                along[outer] = along[inner]

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grad = out_grad[0]
        if self.params.mode != "constant":
            if self._scratch is None:
                self._scratch = np.empty(grad.shape, wide(grad.dtype))
            np.copyto(self._scratch, grad)
            grad = self._scratch
            for axis, (before, after) in reversed(list(enumerate(self.widths))):
                along = np.moveaxis(grad, axis, 0)
                for outer, inner in self._borders(grad.shape[axis], before, after):
                    along[inner] += along[outer]
        arrays.evaluate(None, [grad[self._inside(grad.shape)]], in_grad[0], req[0])


@register("Pad", "pad")
class PadProp(OperatorProperty):
    """Entries added around the data, along all axes but the first two."""

    mode = Field(
        enum("constant", "edge", "reflect"), doc="a number, the edge again, or a mirror at the edge entry"
    )
    pad_width = Field(ints(), range=(0, None), doc="entries before and after, for each axis")
    constant_value = Field(float, 0.0, doc="the number of mode constant")

    op = PadOp
    backward_needs = ("out_grad",)
    arguments = {"data": "the array, of four or five dimensions"}
    monitored_as_data = True

    def _widths(self, shape):
        flat = self.params.pad_width
        self.check_ndim("data", shape, 4, 5)
        if len(flat) != 2 * len(shape) or any(flat[:4]):
            raise self.shape_error(
                f"pad_width must hold two numbers for each of the {len(shape)} dimensions, "
                f"0 for the first two, got {flat}"
            )
        widths = list(zip(flat[::2], flat[1::2], strict=True))
        for axis, (n, width) in enumerate(zip(shape, widths, strict=True)):
            if (self.params.mode == "reflect" and max(width) >= max(n, 1)) or (
                self.params.mode == "edge" and n == 0 and max(width) > 0
            ):
                raise self.shape_error(
                    f"axis {axis} of data {tuple(shape)} is too short to {self.params.mode} by {width}"
                )
        return widths

    def out_shapes(self, shape):
        return [tuple(n + b + a for n, (b, a) in zip(shape, self._widths(shape), strict=True))]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, widths=self._widths(in_shapes[0]))


# -- blocks of pixels and channels -----------------------------------------------------------------------


class RearrangeOp(Operator):
    """The input seen as ``wide``, its axes permuted, is the output."""

    wide: tuple
    axes: tuple

    def forward(self, ctx, in_data, req, out_data, aux):
        source = in_data[0].reshape(self.wide).transpose(self.axes)
        arrays.fill(out_data[0], req[0], lambda out: np.copyto(out.reshape(source.shape), source))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        source = out_grad[0].reshape([self.wide[a] for a in self.axes]).transpose(np.argsort(self.axes))
        arrays.fill(in_grad[0], req[0], lambda out: np.copyto(out.reshape(self.wide), source))


class BlockProp(OperatorProperty):
    """Base of depth_to_space and space_to_depth."""

    block_size = Field(int, range=(1, None), doc="side of the square block of pixels that makes channels")

    op = RearrangeOp
    backward_needs = ("out_grad",)
    arguments = {"data": "pictures, of shape (batch, channels, height, width)"}
    monitored_as_data = True

    def forms(self, n, c, h, w, b) -> tuple:
        """``(wide, axes, out_shape)`` for pictures of this size and blocks of side ``b``."""
        raise NotImplementedError

    def _forms(self, shape):
        self.check_ndim("data", shape, 4)
        if 0 in shape[1:]:
            raise self.shape_error(f"data has no channels or pixels, its shape is {shape}")
        return self.forms(*shape, self.params.block_size)

    def out_shapes(self, shape):
        return [self._forms(shape)[2]]

    def create_operator(self, ctx, in_shapes, in_types):
        wide, axes, _ = self._forms(in_shapes[0])
        return self.op(self.params, wide=wide, axes=axes)


@register("depth_to_space")
class DepthToSpaceProp(BlockProp):
    """Channels to square blocks of pixels."""

    def forms(self, n, c, h, w, b):
        if c % (b * b):
            raise self.shape_error(
                f"channels of data must be a multiple of {b * b}, got shape {(n, c, h, w)}"
            )
        less = c // (b * b)
        return (n, b, b, less, h, w), (0, 3, 4, 1, 5, 2), (n, less, h * b, w * b)


@register("space_to_depth")
class SpaceToDepthProp(BlockProp):
    """Square blocks of pixels to channels."""

    def forms(self, n, c, h, w, b):
        if h % b or w % b:
            raise self.shape_error(
                f"height and width of data must be multiples of {b}, got shape {(n, c, h, w)}"
            )
        return (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4), (n, c * b * b, h // b, w // b)


# -- diagonals and running sums --------------------------------------------------------------------------


class DiagOp(Operator):
    def _diagonal(self, array, ndim):
        """A writable view of matrices' diagonals as a fancy index: (view, rows, columns)."""
        p = self.params
        view = np.moveaxis(array, (p.axis1 % ndim, p.axis2 % ndim), (-2, -1))
        rows = np.arange(max(min(view.shape[-2] + min(p.k, 0), view.shape[-1] - max(p.k, 0)), 0))
        return view, rows + max(-p.k, 0), rows + max(p.k, 0)

    def forward(self, ctx, in_data, req, out_data, aux):
        (data,), (out,) = in_data, out_data
        if data.ndim == 1:
            arrays.evaluate(None, [np.diag(data, self.params.k)], out, req[0])
        else:
            view, rows, columns = self._diagonal(data, data.ndim)
            arrays.evaluate(None, [view[..., rows, columns]], out, req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grad, target = out_grad[0], in_grad[0]
        if target.ndim == 1:
            arrays.evaluate(None, [np.diagonal(grad, self.params.k)], target, req[0])
            return
        if req[0] != "add":
            target[...] = 0
        view, rows, columns = self._diagonal(target, target.ndim)
        view[..., rows, columns] += grad


@register("diag")
class DiagProp(OperatorProperty):
    """The diagonal of a matrix, or a matrix of a diagonal."""

    k = Field(int, 0, doc="which diagonal: 0 the main one, positive above it")
    axis1 = Field(int, 0, doc="rows")
    axis2 = Field(int, 1, doc="columns")

    op = DiagOp
    backward_needs = ("out_grad",)
    arguments = {"data": "matrices, or one diagonal"}
    monitored_as_data = True

    def out_shapes(self, shape):
        p = self.params
        if len(shape) == 1:
            side = shape[0] + abs(p.k)
            return [(side, side)]
        one = self.check_axis("axis1", p.axis1, len(shape))
        other = self.check_axis("axis2", p.axis2, len(shape))
        if one == other:
            raise self.shape_error(f"axis1 and axis2 must differ, got {p.axis1} and {p.axis2}")
        count = min(shape[one] + min(p.k, 0), shape[other] - max(p.k, 0))
        if count < 0:
            raise self.shape_error(f"matrices of {shape[one]} x {shape[other]} have no diagonal {p.k}")
        return [(*(n for i, n in enumerate(shape) if i not in (one, other)), count)]


class CumsumOp(Operator):
    def forward(self, ctx, in_data, req, out_data, aux):
        out = out_data[0]
        total = np.cumsum(in_data[0], axis=self.params.axis, dtype=wide(out.dtype))
        arrays.evaluate(None, [total], out, req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        axis, grad = self.params.axis, out_grad[0]
        dtype = wide(grad.dtype)
        total = np.flip(np.cumsum(np.flip(grad, axis), axis=axis, dtype=dtype), axis)
        arrays.evaluate(None, [total.reshape(in_grad[0].shape)], in_grad[0], req[0])


@register("_np_cumsum", "cumsum")
class CumsumProp(OperatorProperty):
    """Running sums along an axis."""

    axis = Field(optional(int), None, doc="axis to sum along; none means the flattened array")
    dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")

    op = CumsumOp
    out_types = ("dtype",)
    backward_needs = ("out_grad",)
    arguments = {"a": "the array"}

    def out_shapes(self, shape):
        if self.params.axis is None:
            return [(math.prod(shape),)]
        self.check_axis("axis", self.params.axis, len(shape))
        return [shape]
