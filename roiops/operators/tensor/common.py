"""What the tensor operators share: axes, shapes known in part, and how families are declared."""

from ...registry import register
from ..base import OperatorProperty, merge_shapes


def declare(names, base, doc, **attributes):
    """Register a property made from ``base``: ``names`` is its name, then its aliases.

    ``attributes`` are those of the property, its fields among them.
    """
    name, *aliases = names.split() if isinstance(names, str) else names
    attributes.update(__doc__=doc, __module__=base.__module__)
    return register(name, *aliases)(type(f"{name.lstrip('_')}Prop", (base,), attributes))


def merge_all(prop: OperatorProperty, shapes):
    """What shapes that must be equal say together; an error names the first two that disagree."""
    merged, first = None, None
    for name, shape in zip(prop.list_arguments(), shapes, strict=True):
        if shape is None:
            continue
        together = merge_shapes(merged, shape)
        if together is None:
            raise prop.shape_error(
                f"{name} must have the shape of {first}, {tuple(merged)}, got {tuple(shape)}"
            )
        merged, first = together, first or name
    return merged


def same_memory(one, other) -> bool:
    """Whether two C-contiguous arrays of the same dtype lie at the same address."""
    return (
        one.dtype == other.dtype
        and one.size == other.size
        and one.flags.c_contiguous
        and other.flags.c_contiguous
        and one.ctypes.data == other.ctypes.data
    )


class ElementwiseProp(OperatorProperty):
    """Inputs and output have one shape and one dtype."""

    arguments = {"data": "the array"}
    partial_shapes = repeatable = True
    inplace = {0: 0}

    def infer_shape(self, in_shapes):
        shape = merge_all(self, in_shapes)
        return [shape] * len(in_shapes), [shape] * len(self.list_outputs())

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        shape = merge_shapes(merge_all(self, in_shapes), out_shapes[0])
        return [shape] * len(in_shapes)
