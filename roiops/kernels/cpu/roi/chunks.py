"""Arrays as the ROI kernels want them: float32 or float64 in one run, and boxes of the computing type.

Others are copied, some channels at a time.
"""

import numpy as np

from ....dtypes import wide
from ...jit import inner, num_threads, parallel
from ...shares import within
from ..vector import BLOCK, FIXED_LANES, flat_of, pointer_to, prefetch_far_ahead, transpose_block

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

        results = [_copy_of(a, part(a)) if keep else _room_for(a[:, part(a)]) for a in outputs]
        yield (*(_copy_of(array, part(array)) for array in inputs), *results, False)
        for array, result in zip(outputs, results, strict=True):
            if accumulate:
                array[:, part(array)] += result
            else:
                _store(result, array, part(array))


def _room_for(part):
    """An array that kernels can write to, for some channels of another."""
    return np.empty(part.shape, wide(part.dtype))


def _copy_of(array, chosen):
    """The ``chosen`` channels of an array as kernels can read them."""
    part, last = array[:, chosen], with_channels_last(array)
    if last is None or is_dense(part):
        return np.ascontiguousarray(part, wide(array.dtype))
    copy = _room_for(part)
    images, channels, height, width = copy.shape
    pixels = height * width
    here, there = (chosen.start, array.shape[1]), (0, pixels)
    _turn_images.by(threads_for(copy.size))((images, pixels, channels), last, here, copy, there)
    return copy


def _store(planes, array, chosen):
    """Set the ``chosen`` channels of an array to ``planes``."""
    last = with_channels_last(array)
    if last is None:
        array[:, chosen] = planes
        return
    images, channels, height, width = planes.shape
    pixels = height * width
    here, there = (0, pixels), (chosen.start, array.shape[1])
    _turn_images.by(threads_for(planes.size))((images, channels, pixels), planes, here, last, there)


@inner
def _turn(source, at, rows, step, columns, target, to, target_step):
    """``target[to + j * target_step + i] = source[at + i * step + j]``: ``rows`` i, ``columns`` j."""
    if rows < BLOCK or columns < BLOCK:
        for i in range(rows):
            for j in range(columns):
                target[to + j * target_step + i] = source[at + i * step + j]
        return
    for i in range(0, rows, BLOCK):
        row = min(i, rows - BLOCK)  # the last block may do some numbers again
        for k in range(BLOCK, min(2 * BLOCK, rows - row)):
            prefetch_far_ahead(source, at + (row + k) * step, columns)
        for j in range(0, columns, BLOCK):
            column = min(j, columns - BLOCK)
            here, there = at + row * step + column, to + column * target_step + row
            transpose_block(source, here, step, BLOCK, target, there, target_step)


# Rows that a thread turns at once.
_ROWS = 4 * BLOCK


@parallel(makes_arrays=False)
def _turn_images(share, sizes, source, here, target, there):
    """Turn the matrix of each image. ``sizes`` are the images, and the rows and columns of the source.

    ``here`` and ``there`` say of either array where the matrix of an image begins, and how far it is from a
    row to the next.
    """
    images, rows, columns = sizes
    (at, step), (to, target_step) = here, there
    image_size, target_image_size = source.size // images, target.size // images
    runs = (rows + _ROWS - 1) // _ROWS
    for number in within(share, images * runs):
        image, run = divmod(np.int64(number), runs)
        row = run * rows // runs
        _turn(
            pointer_to(flat_of(source)),
            at + image * image_size + row * step,
            (run + 1) * rows // runs - row,
            step,
            columns,
            pointer_to(flat_of(target)),
            to + image * target_image_size + row,
            target_step,
        )
