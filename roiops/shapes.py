"""Shapes that may be known in part: tuples with -1 for an unknown entry, or None for an unknown shape.

That is how shapes are written inside. Users write them in one of MXNet's two conventions: in the older one,
the default, 0 is an unknown entry and ``()`` an unknown shape; under :class:`np_shape`, -1 and None are, 0 is
the length of an empty axis and ``()`` the shape of a number. ``from_user`` and ``to_user`` translate.
"""

import functools
import inspect
import threading

__all__ = [
    "format_shape",
    "from_user",
    "is_np_shape",
    "known",
    "merge_shapes",
    "np_shape",
    "set_np_shape",
    "to_user",
    "use_np_shape",
]


class _Convention(threading.local):
    """The convention of a thread."""

    numpy = False


_convention = _Convention()


def is_np_shape() -> bool:
    """Whether users' shapes are in NumPy's convention in this thread."""
    return _convention.numpy


def set_np_shape(active: bool) -> bool:
    """Turn NumPy's convention on or off in this thread; gives what it was before."""
    before, _convention.numpy = _convention.numpy, bool(active)
    return before


class np_shape:
    """NumPy's convention (or with ``active=False`` the older one) within a ``with`` block."""

    def __init__(self, active: bool = True):
        self._active = active
        self._before: list[bool] = []

    def __enter__(self):
        self._before.append(set_np_shape(self._active))
        return self

    def __exit__(self, *error):
        set_np_shape(self._before.pop())


def use_np_shape(wrapped):
    """Decorator: a function, or every method of a class, in NumPy's convention."""
    if inspect.isclass(wrapped):
        for name, method in inspect.getmembers(wrapped, inspect.isfunction):
            setattr(wrapped, name, use_np_shape(method))
        return wrapped

    @functools.wraps(wrapped)
    def in_numpy_convention(*args, **kwargs):
        with np_shape():
            return wrapped(*args, **kwargs)

    return in_numpy_convention


def from_user(shape: tuple | None) -> tuple | None:
    """A shape as a user wrote it, with -1 for unknown entries and None for an unknown shape."""
    if shape is None:
        return None
    if _convention.numpy:
        return tuple(-1 if d < 0 else d for d in shape)
    return tuple(-1 if d <= 0 else d for d in shape) or None


def to_user(shape: tuple | None) -> tuple | None:
    """The shape as users read it."""
    if _convention.numpy:
        return shape
    return () if shape is None else tuple(0 if d == -1 else d for d in shape)


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
