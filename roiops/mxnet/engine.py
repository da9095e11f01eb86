"""``mxnet.engine``: how many operations MXNet's engine takes at once. Here each runs when it is called."""

import contextlib

__all__ = ["bulk", "set_bulk_size"]

_size = 0


def set_bulk_size(size: int) -> int:
    """Keep a number that changes nothing; gives the one before it."""
    global _size
    before, _size = _size, size
    return before


@contextlib.contextmanager
def bulk(size: int):
    """A block of operations, which run as they would without it."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)
