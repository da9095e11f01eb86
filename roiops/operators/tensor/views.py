"""Operators that move entries without computing: reshapes, permutations, slices, repeats along axes.

A :class:`ViewOp` knows one thing, the strided view of its input that is its output. Forward copies that
view; backward copies the head gradient into the same view of the input's gradient.
"""

import functools
import itertools
import math

import numpy as np

from ...errors import ShapeError
from ...params import Field, Parameter, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty, known, merge_shapes, variant
from .common import ElementwiseProp, declare, same_memory

# -- the same entries in the same order ------------------------------------------------------------------


class ReshapeOp(Operator):
    """Output and input hold the same entries in the same order, in one memory where the plan allows."""

    shareable = True

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        source, target = in_data[0], out_data[0]
        if same_memory(source, target):
            return arrays.nothing
        if req[0] == "add" or not source.flags.c_contiguous:
            return functools.partial(self._move, source, target, req[0])
        return functools.partial(np.copyto, target, source.reshape(target.shape))

    def _move(self, source, target, req):
        arrays.evaluate(None, [source.reshape(target.shape)], target, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] == "add" or not same_memory(out_grad[0], in_grad[0]):
            self._move(out_grad[0], in_grad[0], req[0])


class ReshapeBase(OperatorProperty):
    """Base of operators on a :class:`ReshapeOp`."""

    op = ReshapeOp
    partial_shapes = repeatable = moves_data = True
    backward_needs = ("out_grad",)
    inplace, inplace_grad = {0: 0}, {0: 0}
    arguments = {"data": "the array"}

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        shape, out = in_shapes[0], out_shapes[0]
        if shape is not None and known(out) and list(shape).count(-1) == 1:
            rest = math.prod(n for n in shape if n != -1)
            if rest and math.prod(out) % rest == 0:
                filled = tuple(math.prod(out) // rest if n == -1 else n for n in shape)
                return [filled, *in_shapes[1:]]
        return in_shapes


def reshaped(label: str, shape, codes, reverse: bool = False) -> tuple:
    """The shape that MXNet's reshape codes make of ``shape``, whose entries may be -1 for unknown."""
    step = -1 if reverse else 1  # in reverse a -4 stands after its two numbers
    left, dims, out, infer = list(codes)[::step], list(shape)[::step], [], None

    def fail(why):
        raise ShapeError(f"{label}: shape {tuple(codes)} does not fit data of shape {tuple(shape)}: {why}")

    def take():
        if not dims:
            fail("it uses more axes than there are")
        return dims.pop(0)

    while left:
        code = left.pop(0)
        if code == 0:
            out.append(take())
        elif code == -1:
            if infer is not None:
                fail("-1 may come only once")
            infer = len(out)
            out.append(-1)
            del dims[:1]
        elif code == -2:
            out += dims
            dims = []
        elif code == -3:
            one, other = take(), take()
            out.append(-1 if -1 in (one, other) else one * other)
        elif code == -4:
            if len(left) < 2:
                fail("-4 needs the two numbers to split into")
            out += _split(take(), (left.pop(0), left.pop(0)), fail)
        elif code < -4:
            fail(f"there is no code {code}")
        else:
            out.append(code)
            del dims[:1]
    unknown = -1 in shape
    if infer is not None and not unknown:
        rest = math.prod(n for k, n in enumerate(out) if k != infer)
        if rest == 0 or math.prod(shape) % rest:
            fail("-1 cannot be inferred")
        out[infer] = math.prod(shape) // rest
    if not unknown and math.prod(out) != math.prod(shape):
        fail(f"{math.prod(shape)} entries cannot become {math.prod(out)}")
    return tuple(out[::step])


def _split(whole, parts, fail) -> tuple:
    """What the code -4 makes of an axis of length ``whole``, which may be unknown: two axes."""
    if parts == (-1, -1):
        fail("-4 cannot infer both parts")
    if min(parts) < -1:
        fail(f"-4 cannot split into {min(parts)}")
    if whole == -1:
        return parts
    one, other = parts
    if -1 in parts:
        given = max(parts)  # the other one is the -1
        if given == 0 or whole % given:
            fail(f"{whole} cannot be split by {given}")
        return (whole // given, other) if one == -1 else (one, whole // given)
    if one * other != whole:
        fail(f"{whole} is not {one} * {other}")
    return parts


def _from_target_shape(label, shape, target, keep_highest):
    """The rule before reshape codes: 0 infers, and ``keep_highest`` keeps the first axis."""
    codes = tuple(-1 if n == 0 else n for n in target)
    return reshaped(label, shape, (0, *codes[1:]) if keep_highest else codes)


@register("Reshape", "reshape")
class ReshapeProp(ReshapeBase):
    """The same entries under another shape, which may be given in codes.

    ========== =====================================================================
    0          keep this axis
    -1         infer this axis from the number of entries
    -2         keep all axes that are left
    -3         join this axis and the next
    -4, a, b   split this axis into a and b, one of which may be -1
    ========== =====================================================================
    """

    shape = Field(
        ints(),
        (),
        doc="new shape; 0 keeps the axis, -1 infers it, -2 keeps all further axes, -3 joins two, "
        "-4 splits one into the two numbers that follow",
    )
    reverse = Field(bool, False, doc="whether the codes are read from the last axis")
    target_shape = Field(ints(), (), doc="old name of shape, in which 0 infers the axis")
    keep_highest = Field(bool, False, doc="whether target_shape keeps the first axis")

    def out_shapes(self, shape):
        p = self.params
        if not p.shape and p.target_shape:
            return [_from_target_shape(self.label, shape, p.target_shape, p.keep_highest)]
        return [reshaped(self.label, shape, p.shape, p.reverse) if p.shape else tuple(shape)]


@register("Flatten", "flatten")
class FlattenProp(ReshapeBase):
    """All axes but the first made one."""

    def out_shapes(self, shape):
        rest = shape[1:]
        return [(shape[0], -1 if -1 in rest else math.prod(rest)) if shape else (1, 1)]


@register("expand_dims")
class ExpandDimsProp(ReshapeBase):
    """A new axis of length 1."""

    axis = Field(int, doc="where the new axis of length 1 goes")

    def out_shapes(self, shape):
        axis = self.check_axis("axis", self.params.axis, len(shape) + 1)
        return [(*shape[:axis], 1, *shape[axis:])]

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        out = out_shapes[0]
        axis = self.check_axis("axis", self.params.axis, len(out))
        return [merge_shapes(in_shapes[0], (*out[:axis], *out[axis + 1 :])) or in_shapes[0]]


@register("squeeze")
class SqueezeProp(ReshapeBase):
    """Without the axes of length 1, or without those given."""

    axis = Field(optional(ints()), None, doc="axes to drop; none means all of length 1")

    monitored_as_data = True

    def out_shapes(self, shape):
        if self.params.axis is None:
            if -1 in shape:  # an unknown axis may turn out to be of length 1
                return [None]
            axes = [i for i, n in enumerate(shape) if n == 1]
        else:
            axes = [self.check_axis("axis", a, len(shape)) for a in self.params.axis]
        for axis in axes:
            if shape[axis] not in (1, -1):
                raise self.shape_error(f"axis {axis} must have length 1, got shape {tuple(shape)}")
        return [tuple(n for i, n in enumerate(shape) if i not in axes) or (1,)]


@register("reshape_like")
class ReshapeLikeProp(ReshapeBase):
    """lhs under the shape of rhs; or some of its axes under the shape of some axes of rhs."""

    lhs_begin = Field(optional(int), None, doc="first axis of lhs to replace; none means 0")
    lhs_end = Field(optional(int), None, doc="axis of lhs after the last to replace; none means all")
    rhs_begin = Field(optional(int), None, doc="first axis of rhs to take; none means 0")
    rhs_end = Field(optional(int), None, doc="axis of rhs after the last to take; none means all")

    zero_grad = ("rhs",)
    arguments = {"lhs": "the array", "rhs": "only its shape is used"}
    needed_shapes = 2
    out_types = (0,)

    def infer_shape(self, in_shapes):
        lhs, rhs = in_shapes
        p = self.params
        lhs_part = self.axes_between("lhs", lhs, p.lhs_begin, p.lhs_end)
        rhs_part = self.axes_between("rhs", rhs, p.rhs_begin, p.rhs_end)
        out = (*lhs[: lhs_part.start], *rhs[rhs_part], *lhs[lhs_part.stop :])
        if known(lhs) and known(out) and math.prod(out) != math.prod(lhs):
            raise self.shape_error(f"{tuple(lhs)} cannot take the shape {out}")
        return in_shapes, [out]

    def axes_between(self, name, shape, begin, end) -> slice:
        """The axes that are replaced, or taken."""
        ndim = len(shape)
        begin = 0 if begin is None else begin + ndim * (begin < 0)
        end = ndim if end is None else end + ndim * (end < 0)
        if not 0 <= begin <= end <= ndim:
            raise self.shape_error(f"{name} has no axes {begin} to {end}, its shape is {tuple(shape)}")
        return slice(begin, end)


declare(
    "_copy identity",
    ElementwiseProp,
    "The data as it is.",
    op=ReshapeOp,
    backward_needs=("out_grad",),
    inplace_grad={0: 0},
    moves_data=True,
)


declare(
    "BlockGrad stop_gradient",
    ElementwiseProp,
    "The data as it is; no gradient passes.",
    op=variant(GradientFree, ReshapeOp),
    moves_data=True,
)


@register("_identity_with_attr_like_rhs")
class IdentityLikeProp(ElementwiseProp):
    """lhs as it is; rhs only tells its shape."""

    op = ReshapeOp
    zero_grad = ("rhs",)
    backward_needs = ("out_grad",)
    inplace_grad = {0: 0}
    arguments = {"lhs": "the array", "rhs": "only its shape is used"}


# -- permutations ----------------------------------------------------------------------------------------


class ViewOp(Operator):
    """``view`` says which strided view of the input is the output.

    ``whole`` tells that every entry of the input is in the view, so that backward has nothing to zero.
    """

    shareable = True

    whole = True

    def view(self, array):
        """The entries of ``array``, of the input's shape, that are the output."""
        raise NotImplementedError

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        return arrays.bind_copies([self.view(in_data[0])], out_data[:1], req[:1])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        target = in_grad[0]
        if not self.whole and req[0] != "add":
            target[...] = 0
        arrays.evaluate(None, [out_grad[0]], self.view(target), req[0])


class SectionsOp(Operator):
    """Base: several arrays that follow each other in one, along an axis up to its end.

    Those that do not have that axis are of length 1 there.
    """

    shareable = True

    @property
    def axis(self) -> int:
        """The axis, which may be counted from the end."""
        return self.params.axis

    def sections(self, whole, parts) -> list:
        """The views of an array that these parts of it are."""
        axis = self.axis % whole.ndim
        has_axis = parts[0].ndim == whole.ndim
        lengths = [part.shape[axis] if has_axis else 1 for part in parts]
        stops = list(itertools.accumulate(lengths, initial=whole.shape[axis] - sum(lengths)))
        lead = (slice(None),) * axis
        pieces = [whole[(*lead, slice(*bounds))] for bounds in itertools.pairwise(stops)]
        return pieces if has_axis else [piece.squeeze(axis) for piece in pieces]


class PermuteOp(ViewOp):
    axes: tuple

    def view(self, array):
        return array.transpose(self.axes)


class PermuteProp(OperatorProperty):
    """Base of operators that reorder axes, as ``axes(ndim)`` says."""

    op = PermuteOp
    partial_shapes = repeatable = moves_data = True
    backward_needs = ("out_grad",)
    arguments = {"data": "the array"}

    def out_shapes(self, shape):
        return [tuple(shape[a] for a in self.axes(len(shape)))]

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        (out,) = out_shapes
        axes = self.axes(len(out))
        shape = tuple(out[axes.index(i)] for i in range(len(out)))
        return [merge_shapes(in_shapes[0], shape) or in_shapes[0]]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, axes=self.axes(len(in_shapes[0])))


class TransposeParam(Parameter):
    axes = Field(ints(), (), doc="the new order of the axes; reversed if empty")


@register("transpose")
class TransposeProp(PermuteProp):
    """The axes in another order."""

    param = TransposeParam

    def axes(self, ndim):
        axes = self.params.axes or tuple(range(ndim))[::-1]
        if sorted(a + ndim * (a < 0) for a in axes) != list(range(ndim)):
            raise self.shape_error(f"axes must order all {ndim} dimensions, got {axes}")
        return tuple(a % ndim for a in axes)


@register("SwapAxis", "swapaxes")
class SwapAxisProp(PermuteProp):
    """Two axes exchanged."""

    dim1 = Field(int, 0, doc="one axis")
    dim2 = Field(int, 0, doc="the other axis")

    monitored_as_data = True

    def axes(self, ndim):
        axes = list(range(ndim))
        one = self.check_axis("dim1", self.params.dim1, ndim)
        other = self.check_axis("dim2", self.params.dim2, ndim)
        axes[one], axes[other] = other, one
        return tuple(axes)


class ShapeArrayOp(GradientFree):
    numbers = staticmethod(np.shape)

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.evaluate(None, [np.array(self.numbers(in_data[0]), np.int64)], out_data[0], req[0])


@register("shape_array")
class ShapeArrayProp(OperatorProperty):
    """The shape of the data, as a one-dimensional int64 array."""

    moves_data = True
    op = ShapeArrayOp
    out_types = (np.dtype(np.int64),)
    arguments = {"data": "only its shape is used"}

    def infer_shape(self, in_shapes):
        return in_shapes, [(len(in_shapes[0]),)]


@register("size_array")
class SizeArrayProp(ShapeArrayProp):
    """The number of entries of the data, as an int64 array of shape (1,)."""

    op = variant(ShapeArrayOp, numbers=staticmethod(np.size))

    def infer_shape(self, in_shapes):
        return in_shapes, [(1,)]
