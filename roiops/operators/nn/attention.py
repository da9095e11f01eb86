"""The products of multi-head attention. In a projection the heads follow each other, each with its parts."""

import math

import numpy as np

from ...params import Field
from ...registry import register
from ..base import variant
from ..dense import FloatProperty, FormulaOperator


class AttentionOp(FormulaOperator):
    """Base. Projections are (length, batch, heads * parts * depth), attention is (batch * heads, ...)."""

    def _parts(self, projection, count):
        """The parts of a projection, each (batch * heads, length, depth)."""
        length, batch, width = projection.shape
        heads = self.params.heads
        split = projection.reshape(length, batch * heads, count, width // (heads * count))
        return [np.swapaxes(split[:, :, i], 0, 1) for i in range(count)]

    def _projection(self, parts, like):
        """The parts laid out as a projection; one of None is zero."""
        known = next(part for part in parts if part is not None)
        parts = [np.zeros(known.shape, known.dtype) if part is None else part for part in parts]
        return np.stack([np.swapaxes(part, 0, 1) for part in parts], 2).reshape(like.shape)


def _t(matrix):
    return np.swapaxes(matrix, -1, -2)


class ScoresOp(AttentionOp):
    """Queries times keys, over the root of the depth."""

    def _queries_and_keys(self, inputs):
        if len(inputs) == 1:
            return self._parts(inputs[0], 3)[:2]
        return self._parts(inputs[0], 1)[0], self._parts(inputs[1], 2)[0]

    def values(self, *inputs):
        queries, keys = self._queries_and_keys(inputs)
        return (queries / queries.dtype.type(math.sqrt(queries.shape[-1])) @ _t(keys),)

    def slopes(self, heads, inputs, outputs):
        queries, keys = self._queries_and_keys(inputs)
        head = heads[0] / queries.dtype.type(math.sqrt(queries.shape[-1]))
        slopes = head @ keys, _t(head) @ queries
        if len(inputs) == 1:
            return (self._projection([*slopes, None], inputs[0]),)
        return self._projection(slopes[:1], inputs[0]), self._projection([slopes[1], None], inputs[1])


class WeightedOp(AttentionOp):
    """Attention times values, side by side for all heads. ``parts`` are those of the projection."""

    parts = 2

    def values(self, projection, attention):
        mixed = attention @ self._parts(projection, self.parts)[-1]
        length, batch = mixed.shape[1], projection.shape[1]
        return (np.swapaxes(mixed, 0, 1).reshape(length, batch, self.params.heads * mixed.shape[2]),)

    def slopes(self, heads, inputs, outputs):
        projection, attention = inputs
        head = self._parts(heads[0], 1)[0]
        content = self._parts(projection, self.parts)[-1]
        slope = self._projection([None] * (self.parts - 1) + [_t(attention) @ head], projection)
        return slope, head @ _t(content)


class AttentionProp(FloatProperty):
    """Base of the four."""

    heads = Field(int, range=(1, None), doc="number of heads")

    partial_shapes = False
    backward_needs = ("out_grad", "in_data")

    def depth(self, name, shape, parts):
        """The depth of one head in a projection; raise where that is no whole number."""
        self.check_ndim(name, shape, 3)
        unit = self.params.heads * parts
        if shape[2] % unit:
            raise self.shape_error(
                f"the last axis of {name} must be a multiple of {unit} "
                f"with {self.params.heads} heads, got {tuple(shape)}"
            )
        return shape[2] // unit


@register("_contrib_interleaved_matmul_selfatt_qk")
class SelfAttentionScoresProp(AttentionProp):
    """The scores of self-attention: queries times keys over the root of the depth, (batch * heads, L, L)."""

    op = ScoresOp
    arguments = {"queries_keys_values": "(length, batch, heads * 3 * depth)"}

    def out_shapes(self, shape):
        self.depth("queries_keys_values", shape, 3)
        return [(shape[1] * self.params.heads, shape[0], shape[0])]


@register("_contrib_interleaved_matmul_encdec_qk")
class AttentionScoresProp(AttentionProp):
    """The scores of attention to another sequence: (batch * heads, length of queries, length of keys)."""

    op = ScoresOp
    arguments = {
        "queries": "(length, batch, heads * depth)",
        "keys_values": "(other length, batch, heads * 2 * depth)",
    }

    def infer_shape(self, in_shapes):
        queries, keys = in_shapes
        self.depth("queries", queries, 1)
        if keys is None:
            return in_shapes, [None]
        keys = self.check_shape("keys_values", keys, ("length", queries[1], 2 * queries[2]))
        return [queries, keys], [(queries[1] * self.params.heads, queries[0], keys[0])]


@register("_contrib_interleaved_matmul_encdec_valatt")
class AttentionValuesProp(AttentionProp):
    """The values of another sequence, weighted: (length of queries, batch, heads * depth)."""

    op = WeightedOp
    arguments = {
        "keys_values": "(other length, batch, heads * 2 * depth)",
        "attention": "weights, (batch * heads, length, other length)",
    }

    def queries(self, shape):
        """The length of the queries, which the projection may not tell."""
        return "length"

    def infer_shape(self, in_shapes):
        shape, attention = in_shapes
        depth = self.depth(self.arguments[0], shape, self.op.parts)
        heads = self.params.heads
        need = (shape[1] * heads, self.queries(shape), shape[0])
        if attention is None and "length" in need:
            return in_shapes, [None]
        attention = self.check_shape("attention", attention, need)
        return [shape, attention], [(attention[1], shape[1], heads * depth)]


@register("_contrib_interleaved_matmul_selfatt_valatt")
class SelfAttentionValuesProp(AttentionValuesProp):
    """The values of self-attention, weighted: (length, batch, heads * depth)."""

    op = variant(WeightedOp, parts=3)
    arguments = {
        "queries_keys_values": "(length, batch, heads * 3 * depth)",
        "attention": "weights, (batch * heads, length, length)",
    }

    def queries(self, shape):
        return shape[0]
