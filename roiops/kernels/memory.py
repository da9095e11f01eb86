"""Memory for results on the CPU."""

import heapq
import math
import types

import numpy as np

# Bytes from which on an array begins at a cache line, in memory that the next one of its size may have.
_LARGE = 1 << 14
_LINE = 64


class _Free:
    """Memory that no array lies over any more, by its size: a loop finds its results where they were."""

    most = 64 << 20  # bytes that are kept

    def __init__(self):
        self._heaps, self._size = {}, 0

    def take(self, size) -> tuple:
        """Memory of so many bytes, the lowest that is free: its address and an array that holds it."""
        try:
            memory = heapq.heappop(self._heaps[size])
        except (KeyError, IndexError):
            memory = np.empty(size, np.uint8)
            return memory.ctypes.data, memory
        self._size -= size
        return memory

    def give(self, memory, push=heapq.heappush) -> None:
        """Have what :meth:`take` gave back."""
        size = memory[1].size
        if self._size + size > self.most:
            self._heaps, self._size = {}, 0
        if size <= self.most:
            self._size += size
            push(self._heaps.setdefault(size, []), memory)


class _Taken:
    """What arrays lie over; its memory is free again with the last of them."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory, shape, dtype):
        self._memory = address, _ = memory
        data = address + -address % _LINE, False
        self.__array_interface__ = {"version": 3, "data": data, "shape": shape, "typestr": dtype.str}

    def __del__(self):
        self.give(self._memory)


_free = _Free()
_Taken.give = _free.give  # not looked up when the interpreter ends


def empty(shape, dtype):
    """Uninitialised memory; a large array begins at a cache line.

    NumPy's begin at 16 bytes. Kernels write large results past the caches, line by line, and those that begin
    within a line would have to read it first.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    return np.asarray(_Taken(_free.take(size + _LINE), tuple(shape), dtype))


def address(array) -> int:
    """Where an array begins."""
    return array.__array_interface__["data"][0]


def unheld(array):
    """The same elements as an array that does not hold their memory: the caller knows it to be there."""
    return np.asarray(types.SimpleNamespace(__array_interface__=array.__array_interface__))
