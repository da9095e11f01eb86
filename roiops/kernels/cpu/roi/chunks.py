"""Arrays as the ROI kernels want them: float32 or float64 in one run, and boxes of the computing type.

Others are copied, some channels at a time.
"""

import numpy as np

from ....dtypes import wide
from ... import geometry
from ...jit import num_threads
from ..tensor.copies import copy
from ..vector import FIXED_LANES

# Elements that one thread is done with before others have woken up.
_SMALL = 1 << 15

# Bytes of the copies that are made of strided and float16 arrays at a time.
_CHUNK_BYTES = 1 << 24


def as_rois(rois, dtype):
    """``rois`` in the type that data of ``dtype`` is computed in, C-contiguous."""
    computed = wide(dtype)
    if rois.dtype == computed and rois.flags.c_contiguous:
        return rois
    most = np.finfo(computed).max
    # Finite coordinates stay finite: only those that came as infinity mean that the row is ignored.
    return np.ascontiguousarray(np.where(np.isfinite(rois), np.clip(rois, -most, most), rois), computed)


def boxes_and_setting(how, rois, data, out):
    """``rois`` as :func:`as_rois` gives them, and the :class:`geometry.Setting` of the call."""
    rois = as_rois(rois, data.dtype)
    return rois, geometry.setting_of(how, rois.dtype, data.shape, out.shape)


def is_small(size) -> bool:
    """Whether one thread is to work on ``size`` elements alone."""
    return size < _SMALL


def threads_for(size) -> int:
    """How many threads are to work on ``size`` elements."""
    return 1 if is_small(size) else num_threads()


def is_dense(array) -> bool:
    return array.flags.c_contiguous and array.dtype != np.float16


def with_channels_last(array):
    """The array (N, C, H, W) as (N, H, W, C) where that is how it lies in memory, else None."""
    last = np.moveaxis(array, 1, -1)
    return last if array.ndim == 4 and is_dense(last) else None


def _has_one_layout(arrays) -> bool:
    """Whether the channels lie before the pixels or last in each array, alike in arrays of one shape."""
    layouts = {(array.shape, is_dense(array)) for array in arrays}
    one_of_each = len(layouts) == len({array.shape for array in arrays})
    return one_of_each and all(is_dense(array) or with_channels_last(array) is not None for array in arrays)


def channel_chunks(inputs, outputs, accumulate=False, keep=False, planes_only=False):
    """``(*inputs, *outputs, accumulate)`` whole if kernels can take them, else copies of some channels
    after another.

    What is written to the copies is taken over, or added, when the next is asked for. All arrays have a
    multiple of the channels of the one with fewest. With ``keep`` the copies of outputs hold what is there.
    A kernel of ``planes_only`` reads no channels that lie last, as none does whose bins read every so many.
    """
    arrays = *inputs, *outputs
    if all(map(is_dense, arrays)) or (not planes_only and _has_one_layout(arrays)):
        return ((*arrays, accumulate),)
    return _copies(inputs, outputs, accumulate, keep)


def _copies(inputs, outputs, accumulate, keep):
    channels = min(array.shape[1] for array in (*inputs, *outputs))
    size = 4 * sum(array.size for array in (*inputs, *outputs)) // max(1, channels)
    step = max(1, _CHUNK_BYTES // max(1, size))
    step = step // FIXED_LANES * FIXED_LANES if step > FIXED_LANES else step
    for first in range(0, channels, step):

        def part(array, first=first):
            each = array.shape[1] // channels
            return slice(first * each, min((first + step) * each, array.shape[1]))

        results = [(_copy_of if keep else _room_for)(a[:, part(a)]) for a in outputs]
        yield (*(_copy_of(array[:, part(array)]) for array in inputs), *results, False)
        for array, result in zip(outputs, results, strict=True):
            if accumulate:
                array[:, part(array)] += result
            else:
                copy(result, array[:, part(array)])


def _room_for(part):
    """An array that kernels can write to, for some channels of another."""
    return np.empty(part.shape, wide(part.dtype))


def _copy_of(part):
    """Some channels of an array as kernels can read them."""
    if is_dense(part):
        return part
    copied = _room_for(part)
    copy(part, copied)
    return copied
