"""Slices, and cutting an array into pieces."""

import functools
import itertools

from ...dtypes import as_scalar
from ...params import MOST_ARRAYS, Field, Parameter, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty, merge_shapes
from .views import SectionsOp, ViewOp


class SliceOp(ViewOp):
    """The output is ``data[key]``."""

    whole = False
    key: tuple

    def view(self, array):
        return array[(*self.key, ...)]  # an array, even of no dimensions


def as_key(ranges) -> tuple:
    """Slices of numbers as an index: a stop before the first entry is written None, and nothing as 0:0."""
    return tuple(
        slice(s.start, None if s.stop < 0 else s.stop, s.step)
        if len(range(s.start, s.stop, s.step))
        else slice(0, 0)
        for s in ranges
    )


class SliceProp(OperatorProperty):
    """Base of operators whose output is a basic slice of their first input."""

    op = SliceOp
    repeatable = moves_data = True
    backward_needs = ("out_grad",)
    arguments = {"data": "the array"}

    def key(self, shape, *others) -> tuple:
        """A slice with numbers for every axis of the first input, from the shapes of all."""
        raise NotImplementedError

    def infer_shape(self, in_shapes):
        return in_shapes, [tuple(len(range(s.start, s.stop, s.step)) for s in self.key(*in_shapes))]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, key=as_key(self.key(*in_shapes)))


class PartialSliceProp(SliceProp):
    """Base of slices that say what they can of a shape that is known in part."""

    partial_shapes = True
    #: A length that an axis may have.
    any_length = 1 << 30

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        # An axis of unknown length stays one; any length serves to work out the others.
        _, (lengths,) = super().infer_shape([tuple(self.any_length if n == -1 else n for n in shape)])
        return in_shapes, [tuple(-1 if n == -1 else length for n, length in zip(shape, lengths, strict=True))]


@register("slice_axis")
class SliceAxisProp(PartialSliceProp):
    """A range of indices along one axis."""

    axis = Field(int, doc="axis to cut")
    begin = Field(int, doc="first index; negative counts from the end")
    end = Field(optional(int), doc="index after the last; none means the end")

    @property
    def any_length(self):
        begin, end = self.params.begin, self.params.end or 0
        return max(-begin, end) if begin < 0 < end else PartialSliceProp.any_length

    def key(self, shape):
        p = self.params
        axis = self.check_axis("axis", p.axis, len(shape))
        length = shape[axis]
        begin = p.begin + length * (p.begin < 0)
        end = length if p.end is None else p.end + length * (p.end < 0)
        if not 0 <= begin <= end <= length:
            raise self.shape_error(
                f"begin and end must be a range within axis {axis} of {tuple(shape)}, "
                f"got {p.begin} to {p.end}"
            )
        return tuple(slice(begin, end, 1) if i == axis else slice(0, n, 1) for i, n in enumerate(shape))


class SplitOp(SectionsOp):
    """The outputs are sections of the data."""

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        return arrays.bind_copies(self.sections(in_data[0], out_data), out_data, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        (target,), (how,) = in_grad, req
        if how != "add" and sum(head.size for head in out_grad) < target.size:
            target[...] = 0  # what is before the first piece
        arrays.copy_each(out_grad, self.sections(target, out_grad), [how] * len(out_grad))


@register("SliceChannel", "split")
class SliceChannelProp(OperatorProperty):
    """Cut into equal pieces along an axis."""

    num_outputs = Field(int, range=(1, MOST_ARRAYS), doc="number of equal pieces")
    axis = Field(int, 1, doc="axis to cut")
    squeeze_axis = Field(bool, False, doc="whether pieces of length 1 lose the axis")

    moves_data = True
    op = SplitOp
    backward_needs = ("out_grad",)
    partial_shapes = True
    arguments = {"data": "the array"}
    monitored_as_data = True

    def list_outputs(self):
        return tuple(f"output{i}" for i in range(self.params.num_outputs))

    def out_shapes(self, shape):
        p = self.params
        axis = self.check_axis("axis", p.axis, len(shape))
        length = shape[axis]
        if length != -1 and (length % p.num_outputs or (p.squeeze_axis and length != p.num_outputs)):
            raise self.shape_error(
                f"axis {axis} of {tuple(shape)} cannot be cut into {p.num_outputs} equal pieces"
                + (" of length 1" if p.squeeze_axis else "")
            )
        piece = () if p.squeeze_axis else (-1 if length == -1 else length // p.num_outputs,)
        return [(*shape[:axis], *piece, *shape[axis + 1 :])] * p.num_outputs

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        p = self.params
        piece = functools.reduce(lambda a, b: merge_shapes(a, b) or a, out_shapes)
        axis = self.check_axis("axis", p.axis, len(piece) + p.squeeze_axis)
        if p.squeeze_axis:
            shape = (*piece[:axis], p.num_outputs, *piece[axis:])
        else:
            length = -1 if piece[axis] == -1 else piece[axis] * p.num_outputs
            shape = (*piece[:axis], length, *piece[axis + 1 :])
        return [merge_shapes(in_shapes[0], shape) or in_shapes[0]]


class SliceParam(Parameter):
    begin = Field(ints(none_items=True), doc="first index for each leading axis; none means from the start")
    end = Field(ints(none_items=True), doc="index after the last for each axis; none means to the end")
    step = Field(ints(none_items=True), (), doc="step for each axis; negative goes backwards, none means 1")


@register("slice", "crop")
class SlicePartProp(PartialSliceProp):
    """Ranges of indices along the leading axes, with steps, counted as Python counts them."""

    param = SliceParam

    def key(self, shape):
        return slice_ranges(self, self.params, shape)


def slice_ranges(prop, params, shape):
    """What ``begin``, ``end`` and ``step`` select of a shape, as slices of numbers."""
    begin, end = params.begin, params.end
    step = params.step or (None,) * len(begin)
    if not len(begin) == len(end) == len(step) <= len(shape):
        raise prop.shape_error(
            f"begin, end and step must be of one length, at most {len(shape)} "
            f"for data of shape {tuple(shape)}, got {begin}, {end} and {params.step}"
        )
    if 0 in step:
        raise prop.shape_error(f"step must not be 0, got {params.step}")
    ranges = [slice(*slice(*bounds).indices(n)) for n, *bounds in zip(shape, begin, end, step, strict=False)]
    return (*ranges, *(slice(0, n, 1) for n in shape[len(ranges) :]))


@register("slice_like")
class SliceLikeProp(SliceProp):
    """The leading part of the data, as long along each axis as another array."""

    axes = Field(ints(), (), doc="axes to cut; all if empty")

    zero_grad = ("shape_like",)
    arguments = {"data": "the array", "shape_like": "only its shape is used"}
    out_types = (0,)

    def _lengths(self, shape, like):
        axes = self.params.axes
        if not axes and len(shape) != len(like):
            raise self.shape_error(
                f"shape_like must have {len(shape)} dimensions unless axes are given, got shape {tuple(like)}"
            )
        lengths = list(shape)
        for a in axes or range(len(shape)):
            axis = self.check_axis("axes", a, len(shape))
            length = like[self.check_axis("axes", a, len(like))]
            if length > shape[axis]:
                raise self.shape_error(
                    f"shape_like must not be longer than data along axis {axis}, "
                    f"got {tuple(like)} for {tuple(shape)}"
                )
            lengths[axis] = length
        return tuple(lengths)

    def key(self, shape, like):
        return tuple(slice(0, n, 1) for n in self._lengths(shape, like))

    def infer_shape(self, in_shapes):
        return in_shapes, [None if in_shapes[1] is None else self._lengths(*in_shapes)]


@register("Crop")
class CropProp(SliceProp):
    """A part of a picture: of a given size, or of the size of a second input."""

    num_args = Field(int, range=(1, 2), doc="1, or 2 where a second input tells the size")
    offset = Field(ints(2), (0, 0), doc="first row and column to keep")
    h_w = Field(ints(2), (0, 0), doc="height and width to keep, with one input")
    center_crop = Field(bool, False, doc="whether the middle is kept instead of what is at offset")

    variadic = "num_args"

    @property
    def zero_grad(self):
        return self.list_arguments()[1:]

    def key(self, shape, like=None):
        p = self.params
        self.check_ndim("arg0", shape, 4)
        self.check_ndim("arg1", like, 4)
        size = p.h_w if like is None else tuple(like[2:])
        offset = p.offset
        if p.center_crop:
            offset = tuple((n - s) // 2 for n, s in zip(shape[2:], size, strict=True))
        ends = tuple(o + s for o, s in zip(offset, size, strict=True))
        if min(offset) < 0 or any(e > n for e, n in zip(ends, shape[2:], strict=True)):
            raise self.shape_error(f"cannot cut {size} at {offset} out of data of shape {tuple(shape)}")
        parts = [slice(o, e, 1) for o, e in zip(offset, ends, strict=True)]
        return (slice(0, shape[0], 1), slice(0, shape[1], 1), *parts)


@register("reverse", "flip")
class ReverseProp(SliceProp):
    """The entries along some axes in reverse order."""

    axis = Field(ints(), doc="axes to reverse")

    monitored_as_data = True

    def key(self, shape):
        axes = {self.check_axis("axis", a, len(shape)) for a in self.params.axis}
        return tuple(slice(n - 1, -1, -1) if i in axes else slice(0, n, 1) for i, n in enumerate(shape))


@register("_split_v2")
class SplitV2Prop(OperatorProperty):
    """Cut along an axis, into equal pieces or at given indices."""

    indices = Field(ints(), (), doc="where each piece begins")
    axis = Field(int, 1, doc="axis to cut")
    squeeze_axis = Field(bool, False, doc="whether pieces of length 1 lose the axis")
    sections = Field(int, 0, range=(0, None), doc="number of equal pieces; 0 where indices are given")

    op = SplitOp
    backward_needs = ("out_grad",)
    arguments = {"data": "the array"}
    monitored_as_data = True

    def list_outputs(self):
        count = self.params.sections or len(self.params.indices)
        return ("output",) if count == 1 else tuple(f"output{i}" for i in range(count))

    def bounds(self, shape) -> tuple:
        """The axis, and where each piece begins and ends along it."""
        p = self.params
        axis = self.check_axis("axis", p.axis, len(shape))
        length = shape[axis]
        if p.sections:
            if length % p.sections:
                raise self.shape_error(
                    f"axis {axis} of {tuple(shape)} cannot be cut into {p.sections} equal pieces"
                )
            starts = [i * (length // p.sections) for i in range(p.sections)]
        else:
            starts = [i + length * (i < 0) for i in p.indices]
        bounds = list(itertools.pairwise([*starts, length]))
        if not bounds or any(not 0 <= b <= e <= length for b, e in bounds):
            raise self.shape_error(f"indices must rise within axis {axis} of {tuple(shape)}, got {p.indices}")
        if p.squeeze_axis and any(e - b != 1 for b, e in bounds):
            raise self.shape_error(
                f"pieces of axis {axis} of {tuple(shape)} must have length 1 to lose the axis"
            )
        return axis, bounds

    def out_shapes(self, shape):
        axis, bounds = self.bounds(shape)
        parts = [() if self.params.squeeze_axis else (e - b,) for b, e in bounds]
        return [(*shape[:axis], *part, *shape[axis + 1 :]) for part in parts]


# -- assignment to a slice -------------------------------------------------------------------------------


class AssignOp(Operator):
    """The first input with the entries at some places replaced: by the last input, or by a number."""

    def places(self, ctx, in_data):
        """The index of the entries."""
        raise NotImplementedError

    def value(self, in_data):
        return in_data[-1]

    def forward(self, ctx, in_data, req, out_data, aux):
        places = self.places(ctx, in_data)

        def compute(out):
            arrays.evaluate(None, [in_data[0]], out)
            out[places] = self.value(in_data)

        arrays.fill(out_data[0], req[0], compute)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        places = self.places(ctx, in_data)
        if req[0] != "null":
            kept = in_grad[0][places].copy() if req[0] == "add" else 0
            arrays.evaluate(None, [out_grad[0]], in_grad[0], req[0])
            in_grad[0][places] = kept
        if len(in_grad) > 1:
            arrays.evaluate(None, [out_grad[0][places]], in_grad[-1], req[-1])


class SliceAssignOp(AssignOp):
    key: tuple

    def places(self, ctx, in_data):
        return self.key


class SliceAssignScalarOp(SliceAssignOp):
    def value(self, in_data):
        return as_scalar(self.params.scalar, in_data[0].dtype)


class SliceAssignBase(OperatorProperty):
    param = SliceParam
    backward_needs = ("out_grad",)
    inplace = {0: 0}

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, key=as_key(slice_ranges(self, self.params, in_shapes[0])))


@register("_slice_assign", "_crop_assign")
class SliceAssignProp(SliceAssignBase):
    """lhs with a slice of it replaced by rhs."""

    op = SliceAssignOp
    arguments = {"lhs": "the array", "rhs": "what the slice becomes"}

    def infer_shape(self, in_shapes):
        lhs, rhs = in_shapes
        need = tuple(len(range(s.start, s.stop, s.step)) for s in slice_ranges(self, self.params, lhs))
        return [lhs, self.check_shape("rhs", rhs, need)], [lhs]


@register("_slice_assign_scalar", "_crop_assign_scalar")
class SliceAssignScalarProp(SliceAssignBase):
    """The data with a slice of it set to a number."""

    scalar = Field(float, 0.0, doc="what the slice is set to")

    op = SliceAssignScalarOp
    arguments = {"data": "the array"}

    def infer_shape(self, in_shapes):
        slice_ranges(self, self.params, in_shapes[0])
        return in_shapes, [in_shapes[0]]
