"""Operators of any number of inputs: joining along an axis, stacking, adding up."""

import itertools
import math

from ...params import MOST_ARRAYS, Field
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty, merge_shapes
from .common import ElementwiseProp, merge_all, same_memory
from .views import SectionsOp


def _places(in_shapes, axis) -> list[int]:
    """Where each input begins in the output, if nothing of another lies between its own."""
    if math.prod(in_shapes[0][:axis]) != 1:
        return []
    return list(itertools.accumulate(map(math.prod, in_shapes[:-1]), initial=0))


class StackOp(SectionsOp):
    """The inputs are sections of the output."""

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        pairs = zip(in_data, self.sections(out_data[0], in_data), strict=True)
        # Those that were computed in their place are there already.
        pairs = [(value, target) for value, target in pairs if not same_memory(value, target)]
        if not pairs:
            return arrays.nothing
        return arrays.bind_copies(*zip(*pairs, strict=True), [req[0]] * len(pairs))

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.copy_each(in_data, self.sections(out_data[0], in_data), [req[0]] * len(in_data))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        arrays.copy_each(self.sections(out_grad[0], in_data), in_grad, req)


class ConcatOp(StackOp):
    @property
    def axis(self):
        return self.params.dim


@register("Concat", "concat")
class ConcatProp(OperatorProperty):
    """The inputs one after another along an axis."""

    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")
    dim = Field(int, 1, doc="axis along which they are joined")

    moves_data = True
    op = ConcatOp
    variadic = "num_args"
    backward_needs = ("out_grad",)
    partial_shapes = repeatable = True

    def infer_shape(self, in_shapes):
        known = next((s for s in in_shapes if s is not None), None)
        if known is None:
            return in_shapes, [None]
        axis = self.check_axis("dim", self.params.dim, len(known))
        others = self._others(in_shapes, axis)
        filled = [(*others[:axis], -1 if s is None else s[axis], *others[axis + 1 :]) for s in in_shapes]
        lengths = [s[axis] for s in filled]
        total = -1 if -1 in lengths else sum(lengths)
        return filled, [(*others[:axis], total, *others[axis + 1 :])]

    def _others(self, in_shapes, axis):
        """What the inputs' shapes say together, the joined axis left out."""
        merged, first = None, None
        for name, shape in zip(self.list_arguments(), in_shapes, strict=True):
            if shape is None:
                continue
            first = first or (name, shape)
            together = merge_shapes(merged, self._without(shape, axis))
            if together is None or len(shape) != len(first[1]):
                raise self.shape_error(
                    f"{name} must have the shape of {first[0]}, {tuple(first[1])}, "
                    f"but for axis {axis}, got {tuple(shape)}"
                )
            merged = together
        return merged

    @staticmethod
    def _without(shape, axis):
        """The shape with the joined axis unknown: what all inputs must agree on."""
        return None if shape is None else (*shape[:axis], -1, *shape[axis + 1 :])

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        (out,) = out_shapes
        if any(s is not None and len(s) != len(out) for s in in_shapes):
            return in_shapes
        axis = self.check_axis("dim", self.params.dim, len(out))
        filled = [merge_shapes(s, self._without(out, axis)) or s for s in in_shapes]
        unknown = [i for i, s in enumerate(filled) if s[axis] == -1]
        if len(unknown) == 1 and out[axis] != -1:
            rest = sum(s[axis] for s in filled if s[axis] != -1)
            i = unknown[0]
            filled[i] = (*filled[i][:axis], out[axis] - rest, *filled[i][axis + 1 :])
        return filled

    def input_places(self, in_shapes):
        return _places(in_shapes, self.params.dim % len(in_shapes[0]))


@register("_rnn_param_concat")
class RNNParamConcatProp(ConcatProp):
    """The parameters of recurrent layers one after another, for the operator ``RNN``."""

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        """Parts of unknown length are the weights of a first layer's directions, which are equal."""
        (out,), unknown = out_shapes, [i for i, s in enumerate(in_shapes) if s is None or -1 in s]
        if -1 in out or not unknown:
            return in_shapes
        rest = out[0] - sum(s[0] for i, s in enumerate(in_shapes) if i not in unknown)
        if rest % len(unknown):
            return in_shapes
        part = (rest // len(unknown),)
        return [part if i in unknown else s for i, s in enumerate(in_shapes)]


@register("stack")
class StackProp(OperatorProperty):
    """The inputs, all of one shape, along a new axis."""

    axis = Field(int, 0, doc="where the new axis goes")
    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")

    moves_data = True
    op = StackOp
    variadic = "num_args"
    backward_needs = ("out_grad",)
    partial_shapes = True

    def infer_shape(self, in_shapes):
        shape = merge_all(self, in_shapes)
        if shape is None:
            return in_shapes, [None]
        axis = self.check_axis("axis", self.params.axis, len(shape) + 1)
        return [shape] * len(in_shapes), [(*shape[:axis], len(in_shapes), *shape[axis:])]

    def input_places(self, in_shapes):
        return _places(in_shapes, self.params.axis % (len(in_shapes[0]) + 1))


class AddNOp(Operator):
    def forward(self, ctx, in_data, req, out_data, aux):
        for i, value in enumerate(in_data):
            arrays.evaluate(None, [value], out_data[0], "add" if i else req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        arrays.copy_each(out_grad * len(in_grad), in_grad, req)


@register("add_n", "ElementWiseSum", "_sum")
class AddNProp(ElementwiseProp):
    """The sum of all inputs, which are of one shape."""

    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")

    op = AddNOp
    variadic = "num_args"
    backward_needs = ("out_grad",)
