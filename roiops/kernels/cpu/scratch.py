"""Memory that kernels need while they run: one block for all that a Python thread calls.

A network of a hundred layers would otherwise keep a hundred pieces of memory of which one is in use, and each
layer would find its own piece out of the cache.
"""

import math
import threading

from .vector import LINE, aligned_zeros

__all__ = ["Scratch"]

#: Floats of the first block. What nobody has written to takes no memory.
_FIRST = 4 << 20


class _Held(threading.local):
    block = None


_held = _Held()


class Scratch:
    """Float32 arrays of these shapes, for the duration of one call of a kernel.

    All objects of this class give out the same memory, so that a kernel must write what it will read, and
    must not run another kernel with scratch before it is done. Each array starts at a cache line.
    """

    def __init__(self, *shapes: tuple[int, ...]):
        self._places, stop = [], 0
        for shape in shapes:
            size = math.prod(shape)
            self._places.append((stop, stop + size, shape))
            stop += -(-size // LINE) * LINE
        self._size, self._block, self._arrays = stop, None, None

    def __call__(self) -> list:
        block = _held.block
        if block is None or block.size < self._size:
            block = _held.block = None  # the old one goes before the new one comes
            block = _held.block = aligned_zeros(max(_FIRST, 2 * self._size))
        if block is not self._block:
            self._block = block
            self._arrays = [block[start:stop].reshape(shape) for start, stop, shape in self._places]
        return self._arrays
