"""Sorting and the largest entries."""

import math

import numpy as np

from ...params import Field, dtype, enum, optional
from ...registry import register
from .. import arrays
from ..base import GradientFree, Operator, OperatorProperty

#: Rows so long, of so many entries in all, take longer to sort than the first entries of each to find.
_LONG, _MANY = 64, 4096


def _along(array, axis):
    """``(array, axis)``, flattened where the axis is None."""
    return (array.reshape(-1), 0) if axis is None else (array, axis % array.ndim)


def _order(data, axis, ascending):
    """The stable order of the entries along an axis: of equal ones the first comes first."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    last = data.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(data, axis), axis=axis, kind="stable"), axis)


def _first(data, axis, count, ascending):
    """The first entries of :func:`_order`, mostly without sorting the others."""
    rows = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis])
    place = count - 1 if ascending else rows.shape[1] - count
    limit = np.partition(rows, place, axis=1)[:, place, None]
    chosen = ~(rows > limit) if ascending else ~(rows < limit)
    clear = np.count_nonzero(chosen, axis=1) == count
    found = np.empty((len(rows), count), np.int64)
    columns = np.flatnonzero(chosen[clear]).reshape(-1, count) % rows.shape[1]
    order = _order(np.take_along_axis(rows[clear], columns, 1), 1, ascending)
    found[clear] = np.take_along_axis(columns, order, 1)
    found[~clear] = _order(rows[~clear], 1, ascending)[:, :count]  # of equal ones some are wanted
    shape = *(length for i, length in enumerate(data.shape) if i != axis), count
    return np.moveaxis(found.reshape(shape), -1, axis)


class OrderOp(Operator):
    """The first ``count`` entries in order along an axis; their indices are the second output, if any."""

    count: int

    def order(self, data, axis):
        """The indices of the entries."""
        ascending = self.params.is_ascend
        if data.size >= _MANY and data.shape[axis] >= max(_LONG, 2 * self.count):
            return _first(data, axis, self.count, ascending)
        return _order(data, axis, ascending)[(slice(None),) * axis + (slice(self.count),)]

    def forward(self, ctx, in_data, req, out_data, aux):
        data, axis = _along(in_data[0], self.params.axis)
        order = self.order(data, axis)
        if len(out_data) > 1:
            arrays.evaluate(None, [order], out_data[1], req[1])
        arrays.evaluate(None, [np.take_along_axis(data, order, axis)], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        target = in_grad[0]
        whole, axis = _along(target, self.params.axis)
        arrays.put_along_axis(whole, out_data[1].astype(np.int64), out_grad[0], axis, req[0])
        if not np.shares_memory(whole, target):  # a strided array has no flat view
            target[...] = whole.reshape(target.shape)


class IndexOp(GradientFree, OrderOp):
    """Only the indices, or with ``mask`` 1 at their places: without gradient."""

    mask = False

    def forward(self, ctx, in_data, req, out_data, aux):
        data, axis = _along(in_data[0], self.params.axis)
        found = self.order(data, axis)
        if self.mask:
            mask = np.zeros(data.shape, out_data[0].dtype)
            np.put_along_axis(mask, found, 1, axis)
            found = mask.reshape(out_data[0].shape)
        arrays.evaluate(None, [found], out_data[0], req[0])


class OrderProp(OperatorProperty):
    """Base: some entries along ``axis`` in order, or where they are."""

    arguments = {"data": "the array"}

    def length(self, shape) -> int:
        """How many entries there are along the axis."""
        axis = self.params.axis
        return math.prod(shape) if axis is None else shape[self.check_axis("axis", axis, len(shape))]

    def count(self, shape) -> int:
        """How many of them are wanted: all, unless a subclass knows better."""
        return self.length(shape)

    def out_shapes(self, shape):
        count, axis = self.count(shape), self.params.axis
        axes = range(len(shape))
        out = (count,) if axis is None else tuple(count if i == axis % len(shape) else shape[i] for i in axes)
        return [out] * len(self.list_outputs())

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, count=self.count(in_shapes[0]))


class SortBase(OrderProp):
    """Base of the two that sort all entries."""

    axis = Field(optional(int), -1, doc="axis to sort along; none means the flattened array")
    is_ascend = Field(bool, True, doc="whether the smallest comes first")


@register("sort")
class SortProp(SortBase):
    """The entries along an axis in order."""

    op = OrderOp
    out_types = (0, np.dtype(np.int64))
    outputs, visible_outputs = ("output0", "output1"), 1
    backward_needs = ("out_grad", "out_data")


@register("argsort")
class ArgsortProp(SortBase):
    """The indices that would put the entries along an axis in order.

    Of equal entries the first comes first. MXNet 1.9.1 leaves their order open beyond 16 entries.
    """

    dtype = Field(dtype, "float32", doc="dtype of the indices")

    op = IndexOp
    out_types = ("dtype",)


@register("topk")
class TopkProp(OrderProp):
    """The largest (or smallest) entries along an axis, in order, or where they are.

    Of equal entries the first comes first. MXNet 1.9.1 leaves their order open beyond 16 entries.
    """

    axis = Field(optional(int), -1, doc="axis to search; none means the flattened array")
    k = Field(int, 1, doc="how many; 0 or less means all")
    ret_typ = Field(
        enum("indices", "value", "both", "mask"),
        "indices",
        doc="where they are, what they are, both, or 1 at them and 0 elsewhere",
    )
    is_ascend = Field(bool, False, doc="whether the smallest are wanted")
    dtype = Field(dtype, "float32", doc="dtype of the indices")

    backward_needs = ("out_grad", "out_data")

    @property
    def op(self):
        return OrderOp if self._values else IndexOp

    @property
    def _values(self):
        return self.params.ret_typ in ("value", "both")

    @property
    def num_visible_outputs(self):
        return 2 if self.params.ret_typ == "both" else 1

    def list_outputs(self):
        return ("output0", "output1") if self._values else ("output",)

    def count(self, shape):
        k, length = self.params.k, self.length(shape)
        if k > length:
            raise self.shape_error(f"k must be at most {length} for data of shape {shape}, got {k}")
        return k if k > 0 else length

    def out_shapes(self, shape):
        shapes = super().out_shapes(shape)
        return [shape] if self.params.ret_typ == "mask" else shapes

    @property
    def out_types(self):
        kinds = {"value": (0, np.dtype(np.int64)), "both": (0, "dtype"), "indices": ("dtype",), "mask": (0,)}
        return kinds[self.params.ret_typ]

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, count=self.count(in_shapes[0]), mask=self.params.ret_typ == "mask")
