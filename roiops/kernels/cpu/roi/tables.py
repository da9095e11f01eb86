"""What every bin of every ROI reads on each axis: the tables that the kernels combine."""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.vector import pointer_to
from roiops.kernels.jit import inner, njit, num_threads, parallel, within
from roiops.kernels.rules import MAX_INVALID_IS_ZERO, PIXELS


class Axis(NamedTuple):
    """Bin ``i`` of ROI ``r`` averages ``pixel[a:b]`` with the weights beside them.

    ``a`` and ``b`` are entries ``i`` and ``i + 1`` of ROI ``r``'s row of ``at``; a row has one entry more
    than there are bins.
    """

    at: np.ndarray
    pixel: np.ndarray
    weight: np.ndarray


class Columns(NamedTuple):
    """The table of the x axis turned around: what every pixel gets from a row of bins of a ROI.

    Of the bins of ROI ``r`` from ``first`` to the end of their group, entry ``r * bins + first`` of ``low``
    and ``high`` has the pixels that they read, and that of ``pixel_at`` says where these begin in ``at``. A
    pixel gets ``bin[a:b]``, counted from ``first``, times the weights beside them: ``a`` and ``b`` are its
    entry of ``at`` and the next.
    """

    low: np.ndarray
    high: np.ndarray
    pixel_at: np.ndarray
    at: np.ndarray
    bin: np.ndarray
    weight: np.ndarray


class Spans(NamedTuple):
    """Bin ``i`` of ROI ``r`` holds the pixels ``[low, high)`` of entry ``r * bins + i``."""

    low: np.ndarray
    high: np.ndarray


class Samples(NamedTuple):
    """The samples of bin ``i`` of ROI ``r``, in order, are entries ``bin_at[row + i]`` to the next.

    ``number`` is a sample's place in the bin's grid, -1 if it is invalid and counts as zero; ``taps`` has a
    row for each sample. ``first``, ``stop`` and ``count`` are the grid of each bin (:func:`bin_grid`),
    ``low`` and ``high`` the pixels that the ROI touches.
    """

    bin_at: np.ndarray
    number: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    count: np.ndarray
    low: np.ndarray
    high: np.ndarray
    taps: Axis


# Tables are built as plain tuples of arrays, in the order of these fields, because numba's threads take no
# others. Inner loops read them through the classes, which hold pointers to them.


@inner
def axis_of(table):
    at, pixel, weight = table
    return Axis(pointer_to(at), pointer_to(pixel), pointer_to(weight))


@inner
def columns_of(table):
    low, high, pixel_at, at, bins, weight = table
    return Columns(
        pointer_to(low),
        pointer_to(high),
        pointer_to(pixel_at),
        pointer_to(at),
        pointer_to(bins),
        pointer_to(weight),
    )


@inner
def spans_of(table):
    low, high = table
    return Spans(pointer_to(low), pointer_to(high))


@inner
def samples_of(table):
    bin_at, number, first, stop, count, low, high, taps_at, pixel, weight = table
    return Samples(
        pointer_to(bin_at),
        pointer_to(number),
        pointer_to(first),
        pointer_to(stop),
        pointer_to(count),
        pointer_to(low),
        pointer_to(high),
        Axis(pointer_to(taps_at), pointer_to(pixel), pointer_to(weight)),
    )


@njit
def by_image(image, images):
    """``(order, image_at)`` of ROIs of these images, in the order of their numbers."""
    return _sorted(image, np.zeros(image.size, np.int64), images, 0)


@inner
def box_on_axis(rules, rois, r, setting, across):
    """ROI ``r`` on the x axis if ``across``, else on the y axis."""
    if across:
        return geometry.x_axis(rules, rois, r, setting)
    return geometry.y_axis(rules, rois, r, setting)


@inner
def _starts(rules, rois, image, setting, across):
    """Where the pixels of each ROI begin, far enough apart for all of them; the last entry is the end."""
    start = np.zeros(image.size + 1, np.int64)
    for r in range(image.size):
        most = 0
        if image[r] >= 0:
            most = geometry.taps_bound(rules, box_on_axis(rules, rois, r, setting, across))
        start[r + 1] = start[r] + most
    return start


@inner(forceinline=True)
def _fill_axis(rules, axis, row, here, table):
    """The row of the table of one axis that begins with entry ``row``; its pixels begin at ``here``."""
    at, pixel, weight = table
    at[row] = here
    if rules.samples == PIXELS:  # as `bin_taps` has it; by way of that, a table takes five times as long
        for i in range(axis.bins):
            low, high = geometry.bin_span(rules, axis, i)
            share = type(axis.start)(1) / type(axis.start)(high - low)
            for p in range(low, high):
                pixel[here], weight[here] = p, share
                here += 1
            at[row + i + 1] = here
        return
    for i in range(axis.bins):
        here += geometry.bin_taps(rules, axis, i, pixel, weight, here)
        at[row + i + 1] = here


@inner
def _leave_empty(bins, row, here, at):
    """:func:`_fill_axis` for a ROI that is to be ignored."""
    for i in range(row, row + bins + 1):
        at[i] = here


@inner
def span(axis, row, bins):
    """The pixels ``[low, high)`` that ``bins`` bins touch, from entry ``row`` of the table on."""
    low, high = np.int64(2**62), np.int64(0)
    for j in range(row, row + bins):
        a, b = axis.at[j], axis.at[j + 1]
        if b > a:
            low, high = min(low, axis.pixel[a]), max(high, axis.pixel[b - 1] + 1)
    return min(low, high), high


@njit
def turned(table, rois, bins, groups):
    """The arrays of :class:`Columns` for the table of an axis of ``rois`` ROIs."""
    bin_at, pixel, weight = table
    low, high = np.zeros(rois * bins, np.int32), np.zeros(rois * bins, np.int32)
    pixel_at = np.zeros(rois * bins, np.int64)
    size = 0
    for r in range(rois):
        for group in range(groups):
            first, stop = geometry.bins_of(group, bins, groups)
            if first == stop:  # there are more groups than bins
                continue
            here = r * bins + first
            low[here], high[here] = span(axis_of(table), r * (bins + 1) + first, stop - first)
            pixel_at[here] = size
            size += high[here] - low[here] + 1
    at, bin_of, weight_of = np.zeros(size, np.int64), np.empty_like(pixel), np.empty_like(weight)
    for r in range(rois):
        for group in range(groups):
            first, stop = geometry.bins_of(group, bins, groups)
            if first == stop:
                continue
            row, here = r * (bins + 1), pixel_at[r * bins + first]
            lowest, count = low[r * bins + first], high[r * bins + first] - low[r * bins + first]
            # A counting sort by pixel, in which bins stay in order.
            for k in range(bin_at[row + first], bin_at[row + stop]):
                at[here + pixel[k] - lowest + 1] += 1
            at[here] = bin_at[row + first]
            for p in range(here, here + count):
                at[p + 1] += at[p]
            for j in range(first, stop):
                for k in range(bin_at[row + j], bin_at[row + j + 1]):
                    place = at[here + pixel[k] - lowest]
                    bin_of[place], weight_of[place] = j - first, weight[k]
                    at[here + pixel[k] - lowest] += 1
            # Each pixel's entry is where it ends now.
            for p in range(here + count, here, -1):
                at[p] = at[p - 1]
            at[here] = bin_at[row + first]
    return low, high, pixel_at, at, bin_of, weight_of


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
def _empty_tables(rules, rois, setting):
    """Empty tables of both axes, and where the rows of each begin."""
    image = _images(rois, setting.images)
    start_y = _starts(rules, rois, image, setting, False)
    start_x = _starts(rules, rois, image, setting, True)
    at_y = np.empty(image.size * (setting.pooled_h + 1), np.int64)
    at_x = np.empty(image.size * (setting.pooled_w + 1), np.int64)
    y = at_y, np.empty(start_y[-1], np.int32), np.empty(start_y[-1], rois.dtype)
    x = at_x, np.empty(start_x[-1], np.int32), np.empty(start_x[-1], rois.dtype)
    return image, start_y, start_x, y, x


@inner
def _fill_part(part, parts, rules, rois, setting, image, start_y, start_x, y, x):
    pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
    for r in range(part * image.size // parts, (part + 1) * image.size // parts):
        row_y, row_x = r * (pooled_h + 1), r * (pooled_w + 1)
        if image[r] >= 0:
            _fill_axis(rules, geometry.y_axis(rules, rois, r, setting), row_y, start_y[r], y)
            _fill_axis(rules, geometry.x_axis(rules, rois, r, setting), row_x, start_x[r], x)
        else:
            _leave_empty(pooled_h, row_y, start_y[r], y[0])
            _leave_empty(pooled_w, row_x, start_x[r], x[0])


@parallel
def _fill(share, parts, rules, rois, setting, image, start_y, start_x, y, x):
    for part in within(share, parts):
        _fill_part(part, parts, rules, rois, setting, image, start_y, start_x, y, x)


@inner
def _order(image, images, height, bins, y):
    """:func:`_sorted` by the table of the y axis."""
    top = np.empty(image.size, np.int64)
    for r in range(image.size):
        top[r] = span(axis_of(y), r * (bins + 1), bins)[0]
    return _sorted(image, top, images, height)


@inner
def build_alone(rules, rois, setting):
    """``(order, image_at, y, x)`` for averages. ``rois`` have the computing type, as ``setting`` has."""
    image, start_y, start_x, y, x = _empty_tables(rules, rois, setting)
    _fill_part(0, 1, rules, rois, setting, image, start_y, start_x, y, x)
    order, image_at = _order(image, setting.images, setting.height, setting.pooled_h, y)
    return order, image_at, y, x


@inner
def room_for_one(rois, setting):
    """Tables of both axes for any one ROI."""
    most_y, most_x = setting.pooled_h * setting.height, setting.pooled_w * setting.width
    y = np.empty(setting.pooled_h + 1, np.int64), np.empty(most_y, np.int32), np.empty(most_y, rois.dtype)
    x = np.empty(setting.pooled_w + 1, np.int64), np.empty(most_x, np.int32), np.empty(most_x, rois.dtype)
    return y, x


@inner
def fill_for_one(rules, rois, r, setting, y, x):
    """Fill the tables of :func:`room_for_one` for ROI ``r``, which is not one to be ignored."""
    _fill_axis(rules, geometry.y_axis(rules, rois, r, setting), 0, 0, y)
    _fill_axis(rules, geometry.x_axis(rules, rois, r, setting), 0, 0, x)


def build(rules, rois, setting):
    """:func:`build_alone` on all threads, for kernels that run on them."""
    threads = num_threads()
    image, start_y, start_x, y, x = _empty_tables(rules, rois, setting)
    _fill(threads, rules, rois, setting, image, start_y, start_x, y, x)
    order, image_at = _order(image, setting.images, setting.height, setting.pooled_h, y)
    return order, image_at, y, x


@inner
def _spans(rules, rois, image, setting, across):
    bins = setting.pooled_w if across else setting.pooled_h
    low = np.zeros(image.size * bins, np.int64)
    high = np.zeros(image.size * bins, np.int64)
    for r in range(image.size):
        if image[r] >= 0:
            axis = box_on_axis(rules, rois, r, setting, across)
            for i in range(bins):
                low[r * bins + i], high[r * bins + i] = geometry.bin_span(rules, axis, i)
    return low, high


@inner
def build_spans(rules, rois, setting):
    """``(order, image_at, y, x)`` for integer bins."""
    image = _images(rois, setting.images)
    y = _spans(rules, rois, image, setting, False)
    x = _spans(rules, rois, image, setting, True)
    low, high = y
    top = np.zeros(image.size, np.int64)
    pooled_h = setting.pooled_h
    for r in range(image.size):
        for i in range(pooled_h - 1, -1, -1):
            if high[r * pooled_h + i] > 0:
                top[r] = low[r * pooled_h + i]
    order, image_at = _sorted(image, top, setting.images, setting.height)
    return order, image_at, y, x


@inner
def _samples(rules, rois, image, setting, across):
    bins, extent = setting.pooled_h, setting.height
    if across:
        bins, extent = setting.pooled_w, setting.width
    count = image.size
    bin_at = np.empty(count * (bins + 1), np.int64)
    first = np.zeros(count * bins, np.int64)
    stop = np.zeros(count * bins, np.int64)
    grid = np.zeros(count * bins, np.int64)
    low = np.zeros(count, np.int64)
    high = np.zeros(count, np.int64)
    most = 0
    for r in range(count):
        if image[r] >= 0:
            axis = box_on_axis(rules, rois, r, setting, across)
            for i in range(bins):
                at = r * bins + i
                first[at], stop[at], grid[at] = geometry.bin_grid(rules, axis, i)
                most += stop[at] - first[at] + 2
    number = np.empty(most, np.int64)
    taps_at = np.zeros(most + 1, np.int64)
    pixel = np.empty(2 * most, np.int64)
    weight = np.empty(2 * most, rois.dtype)
    place = 0
    tap = 0
    invalid_competes = rules.reduction == MAX_INVALID_IS_ZERO
    for r in range(count):
        bin_at[r * (bins + 1)] = place
        low[r] = extent
        if image[r] < 0:
            for i in range(bins):
                bin_at[r * (bins + 1) + i + 1] = place
            continue
        axis = box_on_axis(rules, rois, r, setting, across)
        for i in range(bins):
            at = r * bins + i
            # One stands for all the samples that are not visited before the first, and one for those after
            # the last: they are invalid and alike.
            for k in range(first[at] - 1, stop[at] + 1):
                if k < 0 or k >= grid[at]:
                    continue
                valid = False
                taps_at[place] = tap
                if first[at] <= k < stop[at]:
                    valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, grid[at])
                    if valid and weight0 != 0:
                        pixel[tap], weight[tap] = pixel0, weight0
                        low[r], high[r] = min(low[r], pixel0), max(high[r], pixel0 + 1)
                        tap += 1
                    if valid and weight1 != 0:
                        pixel[tap], weight[tap] = pixel1, weight1
                        low[r], high[r] = min(low[r], pixel1), max(high[r], pixel1 + 1)
                        tap += 1
                if valid or invalid_competes:
                    number[place] = k if valid else -1
                    place += 1
            bin_at[r * (bins + 1) + i + 1] = place
    taps_at[place] = tap
    return bin_at, number, first, stop, grid, low, high, taps_at, pixel, weight


@inner
def build_samples(rules, rois, setting):
    """``(order, image_at, y, x)`` for maxima of samples."""
    image = _images(rois, setting.images)
    y = _samples(rules, rois, image, setting, False)
    x = _samples(rules, rois, image, setting, True)
    order, image_at = _sorted(image, y[5], setting.images, setting.height)
    return order, image_at, y, x
