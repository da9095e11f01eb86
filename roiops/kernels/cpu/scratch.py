"""Memory that kernels need while they run: one block for all that a Python thread calls.

A network of a hundred layers would otherwise keep a hundred pieces of memory of which one is in use, and each
layer would find its own piece out of the cache.
"""

import math
import threading

from ..jit import Calls, num_threads
from .vector import LINE, aligned_zeros

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


class Repeated:
    """Kernels that are called with the same arguments again and again; calling this calls them.

    ``prepare(threads)`` says which kernels these are: each with its number of threads and its arguments. It
    is asked anew where the threads or the memory of :class:`Scratch` are others than before. A layer of a
    small network takes as long as some hundred lines of Python: from the second call on there are none. An
    operator called by itself makes but one, which would not make up for what that takes.
    """

    __slots__ = ("_block", "_entries", "_kernels", "_prepare", "_run", "_threads", "_work", "first")

    def __init__(self, calls: Calls, work: float, prepare):
        self._entries, self._work, self._prepare = calls, work, prepare
        self._threads = self._block = self._kernels = self._run = None
        #: Kernels that come before those, each with the number of its threads and its arguments.
        self.first = []

    def __call__(self):
        threads = num_threads(self._work)
        if threads != self._threads or _held.block is not self._block:
            self._kernels, self._run = [*self.first, *self._prepare(threads)], None
            self._threads, self._block = threads, _held.block
            for kernel in self._kernels:
                self._entries(*kernel)
            return
        if self._run is None:
            self._run, self._kernels = self._entries.repeated(self._kernels), None
        self._run()
