"""Nodes that compute the same become one before a graph is bound, as MXNet's executor has it."""

import os
from collections import Counter

from .nodes import Node, topological_order

__all__ = ["without_repeats"]

#: 0 turns this off; MXNet's name for it.
_SWITCH = "MXNET_ELIMINATE_COMMON_EXPR"


def without_repeats(heads) -> list:
    """The heads of a graph that computes each expression once.

    Two nodes are one where operator, attributes and inputs are equal and the operator is ``repeatable``. The
    nodes of the graph given stay as they are. Outputs that would become one array get copies of it.
    """
    heads = list(heads)
    if os.environ.get(_SWITCH, "1") == "0":
        return heads
    moved, known = {}, {}
    for node in topological_order(heads):
        inputs = [(moved.get(id(child), child), index) for child, index in node.inputs]
        kept = node
        if any(new is not old for (new, _), (old, _) in zip(inputs, node.inputs, strict=True)):
            kept = node.copy(inputs)
        if inputs and node.prop is not None and node.prop.repeatable and not node.prop.is_loss:
            entries = tuple((id(child), index) for child, index in inputs)
            kept = known.setdefault((type(node.prop), frozenset(node.attrs.items()), entries), kept)
        if kept is not node:
            moved[id(node)] = kept
    if not moved:
        return heads
    return _with_outputs_of_their_own(heads, [(moved.get(id(node), node), index) for node, index in heads])


def _with_outputs_of_their_own(before, heads) -> list:
    """``heads``, with copies where two that differed before have become the same."""
    first, copies, result = {}, Counter(), []
    for old, (node, index) in zip(before, heads, strict=True):
        value = (id(node), index)
        if first.setdefault(value, old) == old:
            result.append((node, index))
            continue
        result.append((Node("_copy", f"{node.name}_{copies[value]}_copy", {}, [(node, index)]), 0))
        result[-1][0].require_prop()
        copies[value] += 1
    return result
