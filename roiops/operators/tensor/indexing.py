"""Operators that choose entries by index."""

import math

import numpy as np

from ...dtypes import as_scalar
from ...errors import DataError, OutOfBoundsError, ParamError
from ...params import Field, dtype, enum, optional
from ...params import shape as ints
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty, kernels, known, merge_shapes, variant
from .slices import AssignOp


def _check_inside(ctx, name, indices, lengths, negative=True):
    """Raise where a row of ``indices`` leaves its axis."""
    wrong = kernels("tensor.index", ctx.device).outside(indices, lengths, negative)
    if wrong is not None:
        axis, position = wrong
        length = lengths[axis]
        low = -length if negative else 0
        raise OutOfBoundsError(
            f"{ctx.label}: {name} must be in [{low}, {length - 1}] for an axis of length {length}, "
            f"got {indices[(axis, *position)]} at {position}"
        )


def _add_rows(ctx, grad, rows, target, req, shape) -> None:
    """The gradient of an array from that of some of its rows; ``shape`` is it as (outer, rows, inner)."""
    if req != "add":
        target[...] = 0
    whole = target if target.flags.c_contiguous else target.copy()
    grad = grad.reshape(shape[0], len(rows), shape[2])
    kernels("tensor.index", ctx.device).add_rows(grad, rows, whole.reshape(shape))
    if whole is not target:
        target[...] = whole


# -- slices along one axis -------------------------------------------------------------------------------


class TakeOp(Operator):
    """The slices of an array along an axis that another array tells."""

    shareable = True

    source, chooser = 0, 1
    mode = "clip"

    def axis(self, array):
        return 0

    def _index(self, ctx, indices, length):
        index = kernels("tensor.index", ctx.device)
        if length == 0 and indices.size:
            raise DataError(f"{ctx.label}: cannot take from an axis of length 0")
        if self.mode == "raise":
            whole = index.whole_numbers(indices)
            _check_inside(ctx, "indices", whole[None], (length,), negative=False)
            return whole
        return index.bounded(indices, length, self.mode)

    def forward(self, ctx, in_data, req, out_data, aux):
        array, indices = in_data[self.source], in_data[self.chooser]
        axis = self.axis(array)
        index = self._index(ctx, indices, array.shape[axis])
        # The indices are within bounds: mode clip only saves numpy from checking them again.
        arrays.fill(out_data[0], req[0], lambda out: np.take(array, index, axis, out=out, mode="clip"))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        target, how = in_grad[self.source], req[self.source]
        axis = self.axis(target)
        index = self._index(ctx, in_data[self.chooser], target.shape[axis]).reshape(-1)
        shape = math.prod(target.shape[:axis]), target.shape[axis], math.prod(target.shape[axis + 1 :])
        _add_rows(ctx, out_grad[0], index, target, how, shape)


class TakeAxisOp(TakeOp):
    @property
    def mode(self):
        return self.params.mode

    def axis(self, array):
        return self.params.axis % array.ndim


@register("take")
class TakeProp(OperatorProperty):
    """The slices along an axis that the indices tell."""

    axis = Field(int, 0, doc="axis the indices count along")
    mode = Field(
        enum("clip", "wrap", "raise"),
        "clip",
        doc="indices outside are moved to the edge, wrapped around, or an error",
    )

    op = TakeAxisOp
    repeatable = True
    zero_grad = own_types = ("indices",)
    backward_needs = ("out_grad", "in_data")
    arguments = {"a": "the array", "indices": "which slices; fractions are cut off"}

    def infer_shape(self, in_shapes):
        shape, indices = in_shapes
        axis = self.check_axis("axis", self.params.axis, len(shape))
        out = None if indices is None else (*shape[:axis], *indices, *shape[axis + 1 :])
        return in_shapes, [out]


@register("Embedding")
class EmbeddingProp(OperatorProperty):
    """The rows of a table that the data tells; an index outside takes the first or last row."""

    input_dim = Field(int, range=(1, None), doc="number of rows of weight")
    output_dim = Field(int, range=(1, None), doc="length of each row")
    dtype = Field(dtype, "float32", doc="dtype of weight")
    sparse_grad = Field(bool, False, doc="accepted, without effect: gradients are dense")

    op = variant(TakeOp, source=1, chooser=0)
    zero_grad = own_types = ("data",)
    backward_needs = ("out_grad", "in_data")
    partial_shapes = True
    arguments = {"data": "indices; fractions are cut off", "weight": "table of (input_dim, output_dim)"}

    def infer_shape(self, in_shapes):
        shape, weight = in_shapes
        p = self.params
        weight = self.check_shape("weight", weight, (p.input_dim, p.output_dim))
        return [shape, weight], [None if shape is None else (*shape, p.output_dim)]

    def infer_type(self, in_types):
        data, weight = in_types
        weight = weight or self.params.dtype
        return [data or weight, weight], [weight]


# -- one entry along an axis -----------------------------------------------------------------------------


class PickOp(Operator):
    """One entry of each row along an axis."""

    def _index(self, ctx, data, index):
        axis = self.params.axis % data.ndim
        if data.shape[axis] == 0 and index.size:
            raise DataError(f"{ctx.label}: cannot pick from an axis of length 0")
        whole = kernels("tensor.index", ctx.device).bounded(index, data.shape[axis], self.params.mode)
        kept = (*data.shape[:axis], 1, *data.shape[axis + 1 :])
        return whole.reshape(kept), axis

    def forward(self, ctx, in_data, req, out_data, aux):
        index, axis = self._index(ctx, *in_data)
        picked = kernels("tensor.index", ctx.device).pick(in_data[0], index, axis)
        arrays.evaluate(None, [picked.reshape(out_data[0].shape)], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        index, axis = self._index(ctx, *in_data)
        arrays.put_along_axis(in_grad[0], index, out_grad[0].reshape(index.shape), axis, req[0])


@register("pick", "choose_element_0index")
class PickProp(OperatorProperty):
    """One entry of each row along an axis, the one that the index tells."""

    axis = Field(int, -1, doc="axis the indices count along")
    keepdims = Field(bool, False, doc="whether the axis stays, with length 1")
    mode = Field(enum("clip", "wrap"), "clip", doc="indices outside are moved to the edge, or wrapped around")

    op = PickOp
    zero_grad = own_types = ("index",)
    backward_needs = ("out_grad", "in_data")
    partial_shapes = repeatable = True
    needed_shapes = 1
    arguments = {"data": "the array", "index": "which entry; of the shape of data without the axis"}

    def infer_shape(self, in_shapes):
        shape, index = in_shapes
        axis = self.check_axis("axis", self.params.axis, len(shape))
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        without = (*shape[:axis], *shape[axis + 1 :])
        if index is None:
            index = without or kept
        index = self.check_one_of("index", index, [without, kept])
        return [shape, index], [kept if self.params.keepdims else without or (1,)]


@register("batch_take")
class BatchTakeProp(PickProp):
    """One entry of each row of a matrix. As in MXNet it has no gradient; pick has one."""

    own_types, zero_grad = ("indices",), ()
    usual_types = {"indices": np.dtype(np.int32)}
    partial_shapes, differentiable = False, False
    arguments = {"a": "the matrix", "indices": "which entry of each row"}

    def infer_shape(self, in_shapes):
        self.check_ndim("a", in_shapes[0], 2)
        return super().infer_shape(in_shapes)


class FillElementOp(GradientFree, AssignOp):
    def places(self, ctx, in_data):
        lhs, _, index = in_data
        columns = kernels("tensor.index", ctx.device).whole_numbers(index)
        _check_inside(ctx, "rhs", columns[None], (lhs.shape[1],), negative=False)
        return np.arange(lhs.shape[0]), columns

    def value(self, in_data):
        return in_data[1]


@register("fill_element_0index")
class FillElementProp(OperatorProperty):
    """lhs with one entry of each row replaced: that of column rhs by mhs."""

    op = FillElementOp
    own_types = ("mhs", "rhs")
    arguments = {"lhs": "the matrix", "mhs": "new entries, one a row", "rhs": "their columns"}

    def infer_shape(self, in_shapes):
        lhs, values, index = in_shapes
        self.check_ndim("lhs", lhs, 2)
        values = self.check_shape("mhs", values, lhs[:1])
        return [lhs, values, self.check_shape("rhs", index, lhs[:1])], [lhs]


class OneHotOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        p = self.params
        index = kernels("tensor.index", ctx.device).whole_numbers(in_data[0]).reshape(-1)
        inside = (index >= 0) & (index < p.depth) & ~np.isnan(in_data[0].reshape(-1))
        rows = np.flatnonzero(inside)

        def compute(out):
            out[...] = as_scalar(p.off_value, out.dtype)
            out.reshape(index.size, p.depth)[rows, index[rows]] = as_scalar(p.on_value, out.dtype)

        arrays.fill(out_data[0], req[0], compute)


@register("one_hot")
class OneHotProp(OperatorProperty):
    """A new last axis, with one number at the index and another elsewhere."""

    depth = Field(int, range=(0, None), doc="length of the new last axis")
    on_value = Field(float, 1.0, doc="entry at the index")
    off_value = Field(float, 0.0, doc="entry elsewhere")
    dtype = Field(dtype, "float32", doc="dtype of the result")

    op = OneHotOp
    own_types, out_types = ("indices",), ("dtype",)
    arguments = {"indices": "indices; one outside gives a row without the on_value"}

    def out_shapes(self, shape):
        return [(*shape, self.params.depth)]


# -- several axes at once --------------------------------------------------------------------------------


class IndexedOp(Operator):
    """Base of gather_nd and scatter_nd: rows of an array, told by an index for each leading axis."""

    def rows(self, ctx, indices, shape):
        """Row numbers for an array of ``shape`` seen as ``(rows, inner)``."""
        index = kernels("tensor.index", ctx.device)
        whole = index.whole_numbers(indices)
        lengths = shape[: len(whole)]
        _check_inside(ctx, "indices", whole, lengths)
        return index.flat_index(whole, lengths)

    @staticmethod
    def seen(array, count):
        """``array`` as (rows, inner), where its first ``count`` axes make the rows."""
        return array.reshape(math.prod(array.shape[:count]), math.prod(array.shape[count:]))


class GatherOp(IndexedOp):
    def forward(self, ctx, in_data, req, out_data, aux):
        data, indices = in_data
        rows = self.rows(ctx, indices, data.shape)
        source = self.seen(data, len(indices))
        shape = (len(rows), source.shape[1])
        arrays.fill(out_data[0], req[0], lambda out: np.take(source, rows, 0, out=out.reshape(shape)))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        shape, count = in_grad[0].shape, len(in_data[1])
        rows = self.rows(ctx, in_data[1], shape)
        seen = 1, math.prod(shape[:count]), math.prod(shape[count:])
        _add_rows(ctx, out_grad[0], rows, in_grad[0], req[0], seen)


def _knows_rows(prop, indices, shape) -> bool:
    """Whether it is known how many axes the indices count, an array of ``shape`` having enough of them."""
    prop.check_ndim("indices", indices, least=1)
    if indices is None or indices[0] == -1:
        return False
    if indices[0] > len(shape):
        raise prop.shape_error(
            f"indices must have at most {len(shape)} rows for shape {tuple(shape)}, "
            f"got shape {tuple(indices)}"
        )
    return True


@register("gather_nd")
class GatherProp(OperatorProperty):
    """The slices of data at the places whose coordinates are the columns of indices."""

    op = GatherOp
    zero_grad = own_types = ("indices",)
    backward_needs = ("out_grad", "in_data")
    arguments = {
        "data": "the array",
        "indices": "coordinates, of shape (axes, ...); negative from the end",
    }

    def infer_shape(self, in_shapes):
        shape, indices = in_shapes
        if not _knows_rows(self, indices, shape):
            return in_shapes, [None]
        return in_shapes, [(*indices[1:], *shape[indices[0] :]) or (1,)]


class ScatterOp(IndexedOp):
    def forward(self, ctx, in_data, req, out_data, aux):
        data, indices = in_data
        rows = self.rows(ctx, indices, self.params.shape)

        def compute(out):
            seen = self.seen(out, len(indices))
            seen[...] = 0
            seen[rows] = data.reshape(len(rows), seen.shape[1])

        arrays.fill(out_data[0], req[0], compute)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        rows = self.rows(ctx, in_data[1], self.params.shape)
        chosen = self.seen(out_grad[0], len(in_data[1]))[rows]
        arrays.evaluate(None, [chosen.reshape(in_grad[0].shape)], in_grad[0], req[0])


@register("scatter_nd")
class ScatterProp(OperatorProperty):
    """Zeros, with data at the places whose coordinates are the columns of indices; the last one stays."""

    shape = Field(ints(), doc="shape of the result")

    op = ScatterOp
    zero_grad = own_types = ("indices",)
    backward_needs = ("out_grad", "in_data")
    arguments = {"data": "what is stored", "indices": "coordinates, of shape (axes, ...)"}

    def infer_shape(self, in_shapes):
        shape, indices = in_shapes
        if not _knows_rows(self, indices, self.params.shape):
            return in_shapes, [self.params.shape]
        need = (*indices[1:], *self.params.shape[indices[0] :])
        if merge_shapes(shape, need) is None:
            raise self.shape_error(
                f"data must have shape {need} for indices of shape {tuple(indices)} "
                f"and shape {self.params.shape}, got {tuple(shape)}"
            )
        return in_shapes, [self.params.shape]


class IndexCopyOp(AssignOp):
    def places(self, ctx, in_data):
        rows = kernels("tensor.index", ctx.device).whole_numbers(in_data[1])
        _check_inside(ctx, "index_vector", rows[None], in_data[0].shape[:1], negative=False)
        return rows


@register("_contrib_index_copy")
class IndexCopyProp(OperatorProperty):
    """old_tensor with the rows at index_vector replaced by those of new_tensor."""

    op = IndexCopyOp
    zero_grad = own_types = ("index_vector",)
    backward_needs = ("out_grad", "in_data")
    arguments = {
        "old_tensor": "the array",
        "index_vector": "rows to replace",
        "new_tensor": "what they become",
    }

    def infer_shape(self, in_shapes):
        old, index, new = in_shapes
        if not known(index):
            return in_shapes, [old]
        self.check_ndim("index_vector", index, 1)
        new = self.check_shape("new_tensor", new, (index[0], *old[1:]))
        return [old, index, new], [old]


class IndexArrayOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        ndim = in_data[0].ndim
        axes = range(ndim) if self.params.axes is None else [a % ndim for a in self.params.axes]
        grid = np.indices(in_data[0].shape, np.int64, sparse=True)
        for i, axis in enumerate(axes):
            arrays.evaluate(None, [grid[axis]], out_data[0][..., i], req[0])


@register("_contrib_index_array")
class IndexArrayProp(OperatorProperty):
    """For each entry its own index: int64, with a new last axis that holds the coordinates."""

    axes = Field(optional(ints()), None, doc="axes whose index is given; none means all")

    op = IndexArrayOp
    out_types = (np.dtype(np.int64),)
    arguments = {"data": "only its shape is used"}
    monitored_as_data = True

    def out_shapes(self, shape):
        for axis in self.params.axes or ():
            self.check_axis("axes", axis, len(shape))
        return [(*shape, len(shape) if self.params.axes is None else len(self.params.axes))]


class BooleanMaskOp(Operator):
    """The rows whose entry of another array is not 0."""

    def forward(self, ctx, in_data, req, out_data, aux):
        data, index = in_data
        rows = np.flatnonzero(index)
        # Not with NumPy's mode "raise", which takes to a buffer first.
        arrays.fill(out_data[0], req[0], lambda out: np.take(data, rows, axis=0, out=out, mode="clip"))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        kept = in_data[1] != 0
        if req[0] == "add":
            in_grad[0][kept] += out_grad[0]
        else:
            in_grad[0][~kept] = 0
            in_grad[0][kept] = out_grad[0]


@register("_contrib_boolean_mask")
class BooleanMaskProp(OperatorProperty):
    """The rows of data whose entry of index is not 0. Not for graphs: its shape depends on numbers."""

    axis = Field(int, 0, range=(0, 0), doc="axis that index chooses from; only the first")

    op = BooleanMaskOp
    zero_grad = own_types = ("index",)
    backward_needs = ("out_grad", "in_data")
    reusable = False
    arguments = {"data": "the rows", "index": "one number for each row"}

    def infer_shape(self, in_shapes):
        data, index = in_shapes
        self.check_ndim("data", data, least=1)
        index = self.check_shape("index", index, (data[0],))
        return [data, index], [(-1, *data[1:])]

    def output_shapes(self, in_data):
        data, index = in_data
        return [(np.count_nonzero(index), *data.shape[1:])]


class UnravelOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        shape = self.params.shape
        flat = kernels("tensor.index", ctx.device).whole_numbers(in_data[0])
        if shape[0] == -1:  # as long as the largest number needs
            rest = math.prod(shape[1:])
            shape = (max(int(flat.max(initial=0)) // rest, 0) + 1, *shape[1:])
        _check_inside(ctx, "data", flat[None], (math.prod(shape),), negative=False)
        arrays.copy_each(np.unravel_index(flat, shape), out_data[0], req * len(shape))


class RavelOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        index = kernels("tensor.index", ctx.device)
        whole = index.whole_numbers(in_data[0])
        flat = np.zeros(whole.shape[1:], np.int64)
        for row, length in zip(whole, self.params.shape, strict=True):
            flat = flat * length + row
        arrays.evaluate(None, [flat], out_data[0], req[0])


class RavelBase(OperatorProperty):
    shape = Field(ints(), (), doc="shape of the array that is indexed")

    monitored_as_data = True

    def __init__(self, params, label=None):
        super().__init__(params, label)
        shape = params.shape
        if not shape or min(shape[1:], default=1) < 1 or (shape[0] < 1 and shape[0] != -1):
            raise ParamError(
                f"{self.label}: shape must be of lengths of 1 or more, or -1 for the first, got {shape}"
            )


@register("_unravel_index", "unravel_index")
class UnravelProp(RavelBase):
    """Coordinates in an array of a shape, one row for each axis, from numbers of its entries."""

    op = UnravelOp
    arguments = {"data": "numbers of entries"}

    def infer_shape(self, in_shapes):
        return in_shapes, [(len(self.params.shape), *in_shapes[0])]


@register("_ravel_multi_index", "ravel_multi_index")
class RavelProp(RavelBase):
    """Numbers of entries in an array of a shape, from coordinates."""

    op = RavelOp
    arguments = {"data": "coordinates, one row for each axis"}

    def out_shapes(self, shape):
        if shape[0] != len(self.params.shape):
            raise self.shape_error(
                f"data must have {len(self.params.shape)} rows for shape {self.params.shape}, "
                f"got shape {tuple(shape)}"
            )
        return [tuple(shape[1:]) or (1,)]


# -- choice by condition ---------------------------------------------------------------------------------


class WhereOp(Operator):
    """x where the condition is not 0, y elsewhere. A one-dimensional condition chooses whole rows."""

    @staticmethod
    def _condition(condition, ndim):
        return condition.reshape(-1, *(1,) * (ndim - 1)) if condition.ndim == 1 else condition

    def forward(self, ctx, in_data, req, out_data, aux):
        condition, x, y = in_data
        inputs = [self._condition(condition, x.ndim), x, y]
        choose = kernels("tensor.index", ctx.device).choose
        arrays.evaluate(choose, inputs, out_data[0], req[0], exact=True)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grad = out_grad[0]
        inputs = [self._condition(in_data[0], grad.ndim), grad]
        index = kernels("tensor.index", ctx.device)
        arrays.evaluate(index.keep, inputs, in_grad[1], req[1], exact=True)
        arrays.evaluate(index.drop, inputs, in_grad[2], req[2], exact=True)


@register("where")
class WhereProp(OperatorProperty):
    """x where the condition is not 0, y elsewhere."""

    op = WhereOp
    zero_grad = own_types = ("condition",)
    backward_needs = ("out_grad", "in_data")
    arguments = {
        "condition": "of the shape of x, or one number for each of its rows",
        "x": "taken where the condition is not 0",
        "y": "taken where it is 0",
    }
    partial_shapes = True

    def infer_shape(self, in_shapes):
        condition, x, y = in_shapes
        shape = y if x is None else x if y is None else self.check_shape("y", y, x)
        if shape is None:
            # A condition of one axis may stand for whole rows, so only more axes tell the shape.
            shape = condition if condition is not None and len(condition) > 1 else None
            return [condition, shape, shape], [shape]
        if condition is None:
            return [None if len(shape) > 1 else shape, shape, shape], [shape]
        merged = self.check_one_of("condition", condition, [tuple(shape), tuple(shape[:1])])
        if -1 in condition:  # MXNet says nothing of the result then
            return [condition, shape, shape], [None]
        shape = (*merged, *shape[len(merged) :])
        return [merged, shape, shape], [shape]
