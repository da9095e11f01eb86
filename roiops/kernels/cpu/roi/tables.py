"""What every bin of every ROI reads on each axis: the tables that the kernels combine."""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.lanes import bare
from roiops.kernels.jit import inner, njit, num_threads, parallel, prange

__all__ = [
    "Axis",
    "Samples",
    "Spans",
    "axis_of",
    "build",
    "build_samples",
    "build_spans",
    "first_valid",
    "samples_of",
    "span",
    "spans_of",
]

# Bins, of both axes, whose tables one thread has built before others have woken up.
_MANY_BINS = 1 << 10


class Axis(NamedTuple):
    """Bin ``i`` of ROI ``r`` averages ``pixel[a:b]`` with the weights beside them.

    ``a`` and ``b`` are entries ``i`` and ``i + 1`` of ROI ``r``'s row of ``at``; a row has one entry more
    than there are bins.
    """

    at: np.ndarray
    pixel: np.ndarray
    weight: np.ndarray


class Spans(NamedTuple):
    """Bin ``i`` of ROI ``r`` holds the pixels ``[low, high)`` of entry ``r * bins + i``."""

    low: np.ndarray
    high: np.ndarray


class Samples(NamedTuple):
    """The samples of bin ``i`` of ROI ``r``, in order, are entries ``bin_at[row + i]`` to the next.

    ``number`` is a sample's place in the bin's grid, -1 if it is invalid and counts as zero; ``taps`` has a
    row for each sample. ``first``, ``visited`` and ``grid`` describe the grid of each bin (:func:`bin_grid`),
    ``low`` and ``high`` the pixels that the ROI touches.
    """

    bin_at: np.ndarray
    number: np.ndarray
    first: np.ndarray
    visited: np.ndarray
    grid: np.ndarray
    low: np.ndarray
    high: np.ndarray
    taps: Axis


# Tables are built as plain tuples of arrays, in the order of these fields, because numba's threads take no
# others. Inner loops read them through the classes, which hold bare arrays.


@inner
def axis_of(table):
    at, pixel, weight = table
    return Axis(bare(at), bare(pixel), bare(weight))


@inner
def spans_of(table):
    low, high = table
    return Spans(bare(low), bare(high))


@inner
def samples_of(table):
    bin_at, number, first, visited, grid, low, high, taps_at, pixel, weight = table
    return Samples(
        bare(bin_at),
        bare(number),
        bare(first),
        bare(visited),
        bare(grid),
        bare(low),
        bare(high),
        Axis(bare(taps_at), bare(pixel), bare(weight)),
    )


@inner
def _starts(rois, image, near, rules, scale, bins, ratio, extent):
    """Where the pixels of each ROI begin, at a distance that has room for all; the last entry is the end."""
    start = np.zeros(image.size + 1, np.int64)
    for r in range(image.size):
        most = 0
        if image[r] >= 0:
            length = geometry.frame(rules, rois[r, near], rois[r, near + 2], scale)[1]
            most = geometry.taps_bound(rules, length, bins, ratio, extent)
        start[r + 1] = start[r] + most
    return start


@inner
def _fill_axis(r, rois, near, rules, scale, bins, ratio, extent, valid, start, table):
    """Row ``r`` of the table of one axis; ``near`` is the column of its first coordinate."""
    at, pixel, weight = table
    still = type(scale)(0)
    row = r * (bins + 1)
    here, at[row] = start[r], start[r]
    low, length = still, still
    if valid:
        low, length = geometry.frame(rules, rois[r, near], rois[r, near + 2], scale)
    for i in range(bins):
        if valid:
            here += geometry.bin_taps(rules, low, length, bins, i, ratio, extent, still, pixel, weight, here)
        at[row + i + 1] = here


@inner
def span(axis, row, bins):
    """The pixels ``[low, high)`` that ``bins`` bins touch, from entry ``row`` of the table on."""
    low, high = np.int64(2**62), np.int64(0)
    for j in range(row, row + bins):
        a, b = axis.at[j], axis.at[j + 1]
        if b > a:
            low, high = min(low, axis.pixel[a]), max(high, axis.pixel[b - 1] + 1)
    return min(low, high), high


@inner
def _images(rois, images):
    image = np.empty(rois.shape[0], np.int64)
    for r in range(rois.shape[0]):
        image[r] = geometry.image_of(rois, r, images)
    return image


@inner
def _sorted(image, top, images, height):
    """``(order, image_at)``, from the first row that each ROI touches.

    ``order`` sorts the ROIs by image, then from top to bottom: neighbours in it share pixels. Those of image
    ``n`` are ``order[image_at[n] : image_at[n + 1]]``; those before ``image_at[0]`` are to be ignored.
    """
    # A counting sort, because NumPy's takes seconds to compile, and no slices. Where nothing is touched, top
    # may be height.
    rows = height + 1
    at = np.zeros((images + 1) * rows + 1, np.int64)
    for r in range(image.size):
        at[(image[r] + 1) * rows + top[r] + 1] += 1
    for k in range(1, at.size):
        at[k] += at[k - 1]
    image_at = np.empty(images + 1, np.int64)
    for n in range(images + 1):
        image_at[n] = at[(n + 1) * rows]
    order = np.empty(image.size, np.int64)
    for r in range(image.size):
        place = (image[r] + 1) * rows + top[r]
        order[at[place]] = r
        at[place] += 1
    return order, image_at


@inner
def _room(rois, rules, scale, ratio, images, size, pooled):
    """Empty tables of both axes, and where the rows of each begin."""
    image = _images(rois, images)
    start_y = _starts(rois, image, 2, rules, scale, pooled[0], ratio[0], size[0])
    start_x = _starts(rois, image, 1, rules, scale, pooled[1], ratio[1], size[1])
    at_y = np.empty(image.size * (pooled[0] + 1), np.int64)
    at_x = np.empty(image.size * (pooled[1] + 1), np.int64)
    y = at_y, np.empty(start_y[-1], np.int64), np.empty(start_y[-1], rois.dtype)
    x = at_x, np.empty(start_x[-1], np.int64), np.empty(start_x[-1], rois.dtype)
    return image, start_y, start_x, y, x


@inner
def _fill_part(part, parts, rois, rules, scale, ratio, size, pooled, image, start_y, start_x, y, x):
    for r in range(part * image.size // parts, (part + 1) * image.size // parts):
        valid = image[r] >= 0
        _fill_axis(r, rois, 2, rules, scale, pooled[0], ratio[0], size[0], valid, start_y, y)
        _fill_axis(r, rois, 1, rules, scale, pooled[1], ratio[1], size[1], valid, start_x, x)


@parallel
def _fill(parts, rois, rules, scale, ratio, size, pooled, image, start_y, start_x, y, x):
    for part in prange(parts):
        _fill_part(
            np.int64(part), parts, rois, rules, scale, ratio, size, pooled, image, start_y, start_x, y, x
        )


@inner
def _order(image, images, height, bins, y):
    """:func:`_sorted` by the table of the y axis."""
    top = np.empty(image.size, np.int64)
    for r in range(image.size):
        top[r] = span(axis_of(y), r * (bins + 1), bins)[0]
    return _sorted(image, top, images, height)


@njit
def _build_alone(rois, rules, scale, ratio, images, size, pooled):
    image, start_y, start_x, y, x = _room(rois, rules, scale, ratio, images, size, pooled)
    _fill_part(0, 1, rois, rules, scale, ratio, size, pooled, image, start_y, start_x, y, x)
    order, image_at = _order(image, images, size[0], pooled[0], y)
    return order, image_at, y, x


def build(rois, rules, scale, ratio, images, height, width, pooled_h, pooled_w):
    """``(order, image_at, y, x)`` for averages. ``rois`` and ``scale`` have the computing type."""
    size, pooled = (height, width), (pooled_h, pooled_w)
    threads = num_threads() if len(rois) * (pooled_h + pooled_w) > _MANY_BINS else 1
    if threads == 1:
        return _build_alone(rois, rules, scale, ratio, images, size, pooled)
    image, start_y, start_x, y, x = _room(rois, rules, scale, ratio, images, size, pooled)
    _fill(threads, rois, rules, scale, ratio, size, pooled, image, start_y, start_x, y, x)
    order, image_at = _order(image, images, height, pooled_h, y)
    return order, image_at, y, x


@inner
def _spans(rois, image, near, rules, scale, bins, extent):
    low = np.zeros(image.size * bins, np.int64)
    high = np.zeros(image.size * bins, np.int64)
    for r in range(image.size):
        if image[r] >= 0:
            start, length = geometry.frame(rules, rois[r, near], rois[r, near + 2], scale)
            for i in range(bins):
                low[r * bins + i], high[r * bins + i] = geometry.bin_span(
                    rules, start, length, bins, i, extent
                )
    return low, high


@njit
def build_spans(rois, rules, scale, images, height, width, pooled_h, pooled_w):
    """``(order, image_at, y, x)`` for integer bins."""
    image = _images(rois, images)
    y = _spans(rois, image, 2, rules, scale, pooled_h, height)
    x = _spans(rois, image, 1, rules, scale, pooled_w, width)
    low, high = y
    top = np.zeros(image.size, np.int64)
    for r in range(image.size):
        for i in range(pooled_h - 1, -1, -1):
            if high[r * pooled_h + i] > 0:
                top[r] = low[r * pooled_h + i]
    order, image_at = _sorted(image, top, images, height)
    return order, image_at, y, x


@inner
def _samples(rois, image, near, rules, scale, bins, ratio, extent):
    count = image.size
    bin_at = np.empty(count * (bins + 1), np.int64)
    first = np.zeros(count * bins, np.int64)
    visited = np.zeros(count * bins, np.int64)
    grid = np.zeros(count * bins, np.int64)
    low = np.zeros(count, np.int64)
    high = np.zeros(count, np.int64)
    still = type(scale)(0)
    room = 0
    for r in range(count):
        if image[r] >= 0:
            start, length = geometry.frame(rules, rois[r, near], rois[r, near + 2], scale)
            for i in range(bins):
                at = r * bins + i
                first[at], stop, grid[at] = geometry.bin_grid(
                    rules, start, length, bins, i, ratio, extent, still
                )
                visited[at] = stop - first[at]
                room += visited[at] + 2
    number = np.empty(room, np.int64)
    taps_at = np.zeros(room + 1, np.int64)
    pixel = np.empty(2 * room, np.int64)
    weight = np.empty(2 * room, rois.dtype)
    sample = 0
    tap = 0
    invalid_competes = rules.reduction == geometry.MAX_INVALID_IS_ZERO
    for r in range(count):
        bin_at[r * (bins + 1)] = sample
        start = length = still
        if image[r] >= 0:
            start, length = geometry.frame(rules, rois[r, near], rois[r, near + 2], scale)
        low[r] = extent
        for i in range(bins):
            at = r * bins + i
            # One stands for all the samples that are not visited before the first, and one for those after
            # the last: they are invalid and alike.
            for k in range(first[at] - 1, first[at] + visited[at] + 1):
                if k < 0 or k >= grid[at]:
                    continue
                valid = False
                taps_at[sample] = tap
                if first[at] <= k < first[at] + visited[at]:
                    p = geometry.position(rules, start, length, bins, i, k, grid[at], extent, still)
                    valid, pixel0, weight0, pixel1, weight1 = geometry.taps(rules, p, extent)
                    if valid and weight0 != 0:
                        pixel[tap], weight[tap] = pixel0, weight0
                        low[r], high[r] = min(low[r], pixel0), max(high[r], pixel0 + 1)
                        tap += 1
                    if valid and weight1 != 0:
                        pixel[tap], weight[tap] = pixel1, weight1
                        low[r], high[r] = min(low[r], pixel1), max(high[r], pixel1 + 1)
                        tap += 1
                if valid or invalid_competes:
                    number[sample] = k if valid else -1
                    sample += 1
            bin_at[r * (bins + 1) + i + 1] = sample
    taps_at[sample] = tap
    return bin_at, number, first, visited, grid, low, high, taps_at, pixel, weight


@njit
def build_samples(rois, rules, scale, ratio, images, height, width, pooled_h, pooled_w):
    """``(order, image_at, y, x)`` for maxima of samples."""
    image = _images(rois, images)
    y = _samples(rois, image, 2, rules, scale, pooled_h, ratio[0], height)
    x = _samples(rois, image, 1, rules, scale, pooled_w, ratio[1], width)
    order, image_at = _sorted(image, y[5], images, height)
    return order, image_at, y, x


@inner
def first_valid(axis, row):
    """The first valid sample of a bin, and the end of its samples.

    The valid ones are neighbours; an invalid one may stand before them.
    """
    entry, stop = axis.bin_at[row], axis.bin_at[row + 1]
    while entry < stop and axis.number[entry] < 0:
        entry += 1
    return entry, stop
