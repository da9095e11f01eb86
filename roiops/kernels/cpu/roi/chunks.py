"""Arrays as the ROI kernels want them: C-contiguous, float32 or float64, and boxes of the computing type."""

import numpy as np

from roiops.kernels.cpu.vector import FIXED_LANES
from roiops.kernels.jit import num_threads

# Elements that one thread is done with before others have woken up.
_SMALL = 1 << 15

# Bytes of the copies that are made of strided and float16 arrays at a time.
_CHUNK_BYTES = 1 << 24


def as_rois(rois, dtype):
    """``rois`` in the type that data of ``dtype`` is computed in, C-contiguous."""
    wide = _wide(dtype)
    if rois.dtype == wide and rois.flags.c_contiguous:
        return rois
    most = np.finfo(wide).max
    # Finite coordinates stay finite: only those that came as infinity mean that the row is ignored.
    return np.ascontiguousarray(np.where(np.isfinite(rois), np.clip(rois, -most, most), rois), wide)


def is_small(size) -> bool:
    """Whether one thread is to work on ``size`` elements alone."""
    return size < _SMALL


def threads_for(size) -> int:
    """How many threads are to work on ``size`` elements."""
    return 1 if is_small(size) else num_threads()


def launch(kernel, size, *args):
    """Run a parallel kernel, whose first argument is the number of threads, on ``size`` elements."""
    threads = threads_for(size)
    kernel.by(threads)(threads, *args)


def _wide(dtype):
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(dtype)


def is_dense(array) -> bool:
    return array.flags.c_contiguous and array.dtype != np.float16


def channel_chunks(inputs, outputs, accumulate=False, keep=False):
    """``(*inputs, *outputs, accumulate)`` whole if all are dense, else copies of some channels after another.

    What is written to the copies is taken over, or added, when the next is asked for. All arrays have a
    multiple of the channels of the one with fewest. With ``keep`` the copies of outputs hold what is there.
    """
    if all(map(is_dense, inputs)) and all(map(is_dense, outputs)):
        return ((*inputs, *outputs, accumulate),)
    return _copies(inputs, outputs, accumulate, keep)


def _copies(inputs, outputs, accumulate, keep):
    channels = min(array.shape[1] for array in (*inputs, *outputs))
    size = 4 * sum(array.size for array in (*inputs, *outputs)) // max(1, channels)
    step = max(1, _CHUNK_BYTES // max(1, size))
    step = step // FIXED_LANES * FIXED_LANES if step > FIXED_LANES else step
    for first in range(0, channels, step):

        def part(array, first=first):
            each = array.shape[1] // channels
            return array[:, first * each : (first + step) * each]

        results = [
            np.array(part(array), _wide(array.dtype), order="C")
            if keep
            else np.empty_like(part(array), _wide(array.dtype), order="C")
            for array in outputs
        ]
        yield (*(np.ascontiguousarray(part(array), _wide(array.dtype)) for array in inputs), *results, False)
        for array, result in zip(outputs, results, strict=True):
            if accumulate:
                part(array)[...] += result
            else:
                part(array)[...] = result
