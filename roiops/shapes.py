"""Shapes that may be known in part: tuples with -1 for an unknown entry, or None for an unknown shape."""

__all__ = ["format_shape", "known", "merge_shapes"]


def known(shape) -> bool:
    """Whether a shape is known entirely."""
    return shape is not None and -1 not in shape


def merge_shapes(one, other):
    """What two partly known shapes say together; None where they contradict each other.

    Both unknown gives None too: ask :func:`known` first where that matters.
    """
    if one is None or other is None:
        return one if other is None else other
    if len(one) != len(other):
        return None
    merged = []
    for a, b in zip(one, other, strict=True):
        if a != b and a != -1 and b != -1:
            return None
        merged.append(b if a == -1 else a)
    return tuple(merged)


def format_shape(shape) -> str:
    """A shape for messages: ``(2, ?, 7)``, or ``unknown``."""
    if shape is None:
        return "unknown"
    text = ", ".join("?" if d == -1 else str(d) for d in shape)
    return f"({text},)" if len(shape) == 1 else f"({text})"
