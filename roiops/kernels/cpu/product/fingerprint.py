"""A hash of all bits of a weight, by which kernels tell whether what they made of it is still right.

Whoever holds a weight may write to it at any time, so that nothing less than a look at all of it will do.
"""

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import within
from ..vector import room

#: Parts that are hashed side by side, and numbers of a stretch that one thread hashes at a time.
_PARTS, _STRETCH = 64, 1 << 14
_SEED, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@inner
def _mixed(total, value):
    """Different for any two values, given the total."""
    h = (total ^ value) * _ODD
    return h ^ (h >> np.uint64(32))


@parallel
def _hash_stretches(share, values, sums):
    """A hash of each stretch. Any single change alters it, any others with a chance of 1 - 2 ** -64."""
    for stretch in within(share, sums.shape[0]):
        begin = np.int64(stretch) * _STRETCH
        end = min(begin + _STRETCH, values.shape[0])
        lanes = room(_PARTS, _SEED)
        for i in range(_PARTS):
            lanes[i] = _SEED * np.uint64(2 * i + 1)
        whole = begin + (end - begin) // _PARTS * _PARTS
        for start in range(begin, whole, _PARTS):
            part = values[start : start + _PARTS]
            for i in range(_PARTS):
                lanes[i] = _mixed(lanes[i], part[i])
        total = np.uint64(end - begin)
        for i in range(whole, end):
            total = _mixed(total, values[i])
        for i in range(_PARTS):
            total = _mixed(total, lanes[i])
        sums[stretch] = total


def fingerprint(weight) -> bytes:
    """A hash of a C-contiguous float32 array; the same with any number of threads."""
    flat = weight.reshape(-1)
    values = flat.view(np.uint64) if flat.size % 2 == 0 else flat.view(np.uint32).astype(np.uint64)
    sums = np.empty(-(-values.size // _STRETCH), np.uint64)
    _hash_stretches.by(num_threads(values.size / 2) if sums.size > 1 else 1)(values, sums)
    return sums.tobytes()
