"""Memory for results on the CPU."""

import math

import numpy as np

# Bytes from which on an array begins at a cache line.
_LARGE = 1 << 20
_LINE = 64


def empty(shape, dtype):
    """Uninitialised memory; a large array begins at a cache line.

    NumPy's begin at 16 bytes. Kernels write large results past the caches, line by line, and those that begin
    within a line would have to read it first.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)
