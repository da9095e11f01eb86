"""What every bin of every ROI reads on each axis: the tables that the kernels combine."""

from typing import NamedTuple

import numpy as np
from numba import types

from ... import geometry
from ...jit import inner, separate, shared
from ...rules import MAX_INVALID_IS_ZERO, PIXELS
from ...shares import within
from ..vector import pointers_to, room


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


class Samples(NamedTuple):
    """The samples of bin ``i`` of ROI ``r``, in order, are entries ``bin_at[row + i]`` to the next.

    ``number`` is a sample's place in the bin's grid, -1 if it is invalid and counts as zero; ``taps`` has a
    row for each sample. ``first``, ``stop`` and ``count`` are the grid of each bin (:func:`bin_grid`),
    ``low`` and ``high`` the pixels that the ROI touches.
    """

    low: np.ndarray
    high: np.ndarray
    bin_at: np.ndarray
    number: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    count: np.ndarray
    taps: Axis


# Tables are built as plain tuples of arrays, in the order of these fields, because numba's threads take no
# others. Inner loops read them through the classes, which hold pointers to them.


@inner(makes_arrays=False)
def axis_of(table):
    return Axis(*pointers_to(table))


@inner(makes_arrays=False)
def axes_of(table):
    """The tables of both axes, readable; they share the arrays of pixels and weights."""
    at_y, at_x, pixel, weight = pointers_to(table)
    return Axis(at_y, pixel, weight), Axis(at_x, pixel, weight)


@inner(makes_arrays=False)
def rows_and_columns(table):
    """A table of rows and a turned one of columns, readable."""
    return axis_of(table[:3]), Columns(*pointers_to(table[3:]))


@inner(makes_arrays=False)
def _samples_of_axis(table):
    return Samples(*pointers_to(table[:7]), axis_of(table[7:]))


@inner(makes_arrays=False)
def samples_of(table):
    """The samples of both axes, readable."""
    return _samples_of_axis(table[:10]), _samples_of_axis(table[10:])


@inner(makes_arrays=False, forceinline=True)
def _fill_axis(rules, axis, row, start, table):
    """The row of the table of one axis that begins with entry ``row``; its pixels begin at ``start``."""
    at, pixel, weight = table.at, table.pixel, table.weight
    at[row] = start
    if rules.samples == PIXELS:  # as `bin_taps` has it; by way of that, a table takes five times as long
        for i in range(axis.bins):
            low, high = geometry.bin_span(rules, axis, i)
            share = type(axis.start)(1) / type(axis.start)(high - low)
            for p in range(low, high):
                pixel[start], weight[start] = p, share
                start += 1
            at[row + i + 1] = start
        return
    for i in range(axis.bins):
        start += geometry.bin_taps(rules, axis, i, pixel, weight, start)
        at[row + i + 1] = start


@inner
def span(axis, row, bins):
    """The pixels ``[low, high)`` that ``bins`` bins touch, from entry ``row`` of the table on."""
    low, high = np.int64(2**62), np.int64(0)
    for j in range(row, row + bins):
        a, b = axis.at[j], axis.at[j + 1]
        if b > a:
            low = geometry.smaller(low, np.int64(axis.pixel[a]))
            high = geometry.larger(high, axis.pixel[b - 1] + 1)
    return geometry.smaller(low, high), high


@inner
def zeros(count):
    """So many int64 zeros."""
    made = room(count, np.int64(0))
    for k in range(count):
        made[k] = 0
    return made


@inner
def turned(table, rois, bins, groups):
    """The arrays of :class:`Columns` for the table of an axis of ``rois`` ROIs."""
    low, high, pixel_at = zeros(rois * bins), zeros(rois * bins), zeros(rois * bins)
    size = 0
    for r in range(rois):
        for group in range(groups):
            first, stop = geometry.bins_of(group, bins, groups)
            if first == stop:  # there are more groups than bins
                continue
            k = r * bins + first
            low[k], high[k] = span(axis_of(table), r * (bins + 1) + first, stop - first)
            pixel_at[k] = size
            size += high[k] - low[k] + 1
    at, bin_of = zeros(size), room(table[1].size, np.int32(0))
    weight_of = room(table[2].size, table[2].dtype.type(0))
    for r in range(rois):
        for group in range(groups):
            first, stop = geometry.bins_of(group, bins, groups)
            if first < stop:
                k = r * bins + first
                columns = low[k], high[k] - low[k], pixel_at[k]
                _turn_group(table, r * (bins + 1), first, stop, columns, at, bin_of, weight_of)
    return low, high, pixel_at, at, bin_of, weight_of


@inner(makes_arrays=False)
def _turn_group(table, row, first, stop, columns, at, bin_of, weight_of):
    """What the pixels get of the bins ``first`` to ``stop`` of a ROI: a counting sort by pixel.

    ``columns`` are the first pixel, how many there are, and where their entries of ``at`` begin.
    """
    bin_at, pixel, weight = table
    lowest, count, start = columns
    for k in range(bin_at[row + first], bin_at[row + stop]):
        at[start + pixel[k] - lowest + 1] += 1
    at[start] = bin_at[row + first]
    for p in range(start, start + count):
        at[p + 1] += at[p]
    for j in range(first, stop):
        for k in range(bin_at[row + j], bin_at[row + j + 1]):
            place = at[start + pixel[k] - lowest]
            bin_of[place], weight_of[place] = j - first, weight[k]
            at[start + pixel[k] - lowest] += 1
    # Each pixel's entry is where it ends now.
    for p in range(start + count, start, -1):
        at[p] = at[p - 1]
    at[start] = bin_at[row + first]


@inner
def images_of(rois, images):
    """The image of each ROI, -1 for one that is to be ignored."""
    image = room(rois.shape[0], np.int64(0))
    for r in range(rois.shape[0]):
        image[r] = geometry.image_of(rois, r, images)
    return image


@inner
def sorted_by(image, top, images, height):
    """``(order, image_at)``, from the first row that each ROI touches.

    ``order`` sorts the ROIs by image, then from top to bottom: neighbours in it share pixels. Those of image
    ``n`` are ``order[image_at[n] : image_at[n + 1]]``; those before ``image_at[0]`` are to be ignored.
    """
    # A counting sort, because NumPy's takes seconds to compile, and no slices. Where nothing is touched, top
    # may be height.
    rows = height + 1
    at = zeros((images + 1) * rows + 1)
    for r in range(image.size):
        at[(image[r] + 1) * rows + top[r] + 1] += 1
    for k in range(1, at.size):
        at[k] += at[k - 1]
    image_at = room(images + 1, np.int64(0))
    for n in range(images + 1):
        image_at[n] = at[(n + 1) * rows]
    order = room(image.size, np.int64(0))
    for r in range(image.size):
        place = (image[r] + 1) * rows + top[r]
        order[at[place]] = r
        at[place] += 1
    return order, image_at


@inner
def image_of_place(place, image_at):
    """The image of the ROI at a place of the order."""
    image = 0
    while place >= image_at[image + 1]:
        image += 1
    return image


@inner
def in_order(image, images):
    """``(order, image_at)`` of ROIs of these images, in the order of their numbers."""
    return sorted_by(image, zeros(image.size), images, 0)


@inner
def _most_taps(rules, rois, image, setting, across, first):
    """Where the entries of each ROI begin on an axis, from ``first`` on, with room for all; then the end."""
    start = room(image.size + 1, np.int64(0))
    start[0] = first
    for r in range(image.size):
        most = 0
        if image[r] >= 0:
            most = geometry.taps_bound(rules, geometry.box_axis(rules, rois, r, setting, across))
        start[r + 1] = start[r] + most
    return start


@shared(makes_arrays=False)
def _fill(share, rules, rois, setting, image, start_y, start_x, table, top):
    y, x = axes_of(table)
    for across in range(2):
        filled, start, bins = (x, start_x, setting.pooled_w) if across else (y, start_y, setting.pooled_h)
        for r in within(share, image.size):
            row = r * (bins + 1)
            if image[r] >= 0:
                axis = geometry.box_axis(rules, rois, r, setting, across)
                _fill_axis(rules, axis, row, start[r], filled)
            else:
                for i in range(row, row + bins + 1):
                    filled.at[i] = start[r]
            if not across:
                top[r] = span(y, row, bins)[0]


# What makes the tables of a call is given its rules, setting and shapes: see :class:`addresses.Kernel`.
# ``rois`` have the computing type, as the setting has.


def _returns(*dtypes_of_table):
    """The numba type of ``(order, image_at)`` and tables, of which None stands for an array of weights."""

    def of(launcher, parts, call, rois):
        table = [types.Array(dtype or rois.dtype, 1, "C") for dtype in dtypes_of_table]
        return types.Tuple((types.UniTuple(types.int64[::1], 2), types.Tuple(table)))

    return of


@separate(_returns(types.int64, types.int64, types.int32, None))
def build(launcher, parts, call, rois):
    """``(order, image_at)`` and the tables of both axes (:func:`axes_of`), for means and maxima of pixels."""
    rules, setting, _ = call
    image, whole, number = images_of(rois, setting.images), np.int64(0), rois.dtype.type(0)
    start_y = _most_taps(rules, rois, image, setting, 0, whole)
    start_x = _most_taps(rules, rois, image, setting, 1, start_y[image.size])
    most = geometry.larger(1, start_x[image.size])  # loops ask the first weight for its type
    table = (
        room(image.size * (setting.pooled_h + 1), whole),
        room(image.size * (setting.pooled_w + 1), whole),
        room(most, np.int32(0)),
        room(most, number),
    )
    top = room(image.size, whole)
    _fill(launcher, parts, rules, rois, setting, image, start_y, start_x, table, top)
    return sorted_by(image, top, setting.images, setting.height), table


@inner
def build_turned(launcher, parts, call, rois):
    """``(order, image_at)`` and the tables that gradients of means read: that of x is turned."""
    _, setting, shapes = call
    plan, (at_y, at_x, pixel, weight) = build(launcher, parts, call, rois)
    columns = turned((at_x, pixel, weight), rois.shape[0], setting.pooled_w, shapes.groups_w)
    return plan, (at_y, pixel, weight, *columns)


@separate(_returns(*[*[types.int64] * 9, None] * 2))
def build_samples(launcher, parts, call, rois):
    """``(order, image_at)`` and the samples of both axes (:func:`samples_of`)."""
    rules, setting, _ = call
    image = images_of(rois, setting.images)
    y, x = _samples(rules, rois, image, setting, 0), _samples(rules, rois, image, setting, 1)
    return sorted_by(image, y[0], setting.images, setting.height), y + x


@inner
def _samples(rules, rois, image, setting, across):
    bins = setting.pooled_w if across else setting.pooled_h
    extent = setting.width if across else setting.height
    count = image.size
    bin_at, first, stop = zeros(count * (bins + 1)), zeros(count * bins), zeros(count * bins)
    grid, low, high = zeros(count * bins), zeros(count), zeros(count)
    most = 0
    for r in range(count):
        if image[r] >= 0:
            axis = geometry.box_axis(rules, rois, r, setting, across)
            for i in range(bins):
                at = r * bins + i
                first[at], stop[at], grid[at] = geometry.bin_grid(rules, axis, i)
                most += stop[at] - first[at] + 2
    number, taps_at = zeros(most), zeros(most + 1)
    pixel, weight = room(2 * most, np.int64(0)), room(2 * most, rois.dtype.type(0))
    found = (low, high, bin_at, number, first, stop, grid, taps_at, pixel, weight)
    place = tap = np.int64(0)
    for r in range(count):
        bin_at[r * (bins + 1)] = place
        low[r] = extent
        for i in range(bins):
            if image[r] >= 0:
                axis = geometry.box_axis(rules, rois, r, setting, across)
                place, tap = _add_samples(rules, axis, r, i, _samples_of_axis(found), place, tap)
            bin_at[r * (bins + 1) + i + 1] = place
    taps_at[place] = tap
    return found


@inner
def _add_samples(rules, axis, r, i, samples, place, tap):
    """Write the samples of bin ``i`` of ROI ``r`` from ``place`` and ``tap`` on; returns where they end."""
    at = r * axis.bins + i
    first, stop = samples.first[at], samples.stop[at]
    pixel, weight = samples.taps.pixel, samples.taps.weight
    # One stands for all the samples that are not visited before the first, and one for those after the last:
    # they are invalid and alike.
    for k in range(geometry.larger(first - 1, 0), geometry.smaller(stop + 1, samples.count[at])):
        samples.taps.at[place] = tap
        valid = False
        if first <= k < stop:
            valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, samples.count[at])
            for pixel_k, weight_k in ((pixel0, weight0), (pixel1, weight1)):
                if valid and weight_k != 0:
                    pixel[tap], weight[tap] = pixel_k, weight_k
                    samples.low[r] = geometry.smaller(samples.low[r], pixel_k)
                    samples.high[r] = geometry.larger(samples.high[r], pixel_k + 1)
                    tap += 1
        if valid or rules.reduction == MAX_INVALID_IS_ZERO:
            samples.number[place] = k if valid else -1
            place += 1
    return place, tap
