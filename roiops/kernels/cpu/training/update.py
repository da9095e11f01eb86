"""A step of an optimizer in one pass over the weight, on arrays of float32 or float64."""

import functools

import numpy as np
from numba.extending import register_jitable

from ... import update_rules
from ...jit import UNCOUNTED, inner, num_threads, parallel
from ...shares import taken

#: Numbers that a thread takes at a time.
_BLOCK = 16384

for _part in update_rules.PARTS:
    register_jitable(_part)


def one_pass(rule, arrays, settings):
    """``rule(i, weight, *arrays, *settings)`` for each ``i`` of contiguous arrays, the weight's the first."""
    arrays = tuple(each.reshape(-1) for each in arrays)
    _kernel(rule.__name__).by(num_threads(arrays[0].size))(arrays, settings)


@functools.cache
def _kernel(name):
    step = inner(getattr(update_rules, name), **UNCOUNTED)

    def one_pass(share, arrays, settings):
        size = arrays[0].size
        for block in taken(share, (size + _BLOCK - 1) // _BLOCK):
            start = np.int64(block) * _BLOCK
            # Without a sign: an index that may be below 0 keeps numba from using vectors.
            for i in range(np.uint64(start), np.uint64(min(start + _BLOCK, size))):
                step(i, arrays[0], *arrays, *settings)

    return parallel(one_pass, makes_arrays=False)
