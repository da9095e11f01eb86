"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and the scatter back to where they were.

:mod:`items` goes through the work. A sampled maximum interpolates by rows first: a line for each row of
samples, which all its bins then read. ``argmax`` is, for pixels, the index in the channel's plane; for
samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient. It is int32, or, for pixels
of planes that have fewer than :data:`FEW_PIXELS`, uint16, whose largest number stands for -1. The backward
pass gives each channel, or part of its rows, to one thread, which adds ROI after ROI: pixels straight to
where they are, samples as :mod:`average` does.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import numpy as np

from ....dtypes import wide
from ... import geometry
from ...geometry import larger, smaller
from ...jit import inner, shared
from ...rules import PIXELS
from ..vector import (
    FIXED_LANES,
    equal,
    greater,
    load,
    multiply_add,
    pointer_to,
    prefetch_to_read,
    select,
    splat,
    store,
)
from . import tables
from .addresses import backward_kernel, forward_kernel, prepared, run_backward, run_forward
from .bins import runs_of
from .chunks import threads_for
from .items import backward_items, first_unit, forward_items
from .lanes import average_rows
from .tiles import (
    add_row,
    bins_at,
    clear_pixels,
    item_of,
    items_of,
    places_of,
    planes_of,
    read_row,
    rows_in_band,
)

# Bytes of the planes that are scattered to at a time: what a core's cache holds, yet enough channels to
# read what they get in runs.
_SCATTER_BYTES = 1 << 19
_LEAST_BLOCK = 8

#: Pixels of a plane from which on 16 bits do not hold the index of each and a number for none.
FEW_PIXELS = (1 << 16) - 1


@inner
def _start_bin(values, value, where, at):
    """Set a bin to ``value``, found nowhere."""
    place = type(where[0])
    store(values, at, splat(value))
    store(where, at, splat(place(~place(0))))


@inner
def _max_of_pixels(r, item, planes, tile, y, x, line, values, told):
    """The maxima of ROI ``r`` over integer bins."""
    where, (empty, lowest), _ = told
    wide = item.stop_column - item.first_column
    entry, column = r * (item.pooled_h + 1), r * (item.pooled_w + 1) + item.first_column
    low, high = tables.span(x, column, wide)
    for i in range(item.first_row, item.stop_row):
        a, b = y.at[entry + i], y.at[entry + i + 1]
        first = (i - item.first_row) * wide
        for j in range(wide):
            holds_pixels = b > a and x.at[column + j + 1] > x.at[column + j]
            _start_bin(values, lowest if holds_pixels else empty, where, (first + j) * FIXED_LANES)
        if low >= high:
            continue
        for k in range(a, b):
            row = y.pixel[k]
            at = read_row(planes, row, low, high, tile)
            for j in range(wide):
                to = (first + j) * FIXED_LANES
                best, place = load(values, to), load(where, to)
                for m in range(x.at[column + j], x.at[column + j + 1]):
                    p = x.pixel[m]
                    value = load(tile.values, at + p * FIXED_LANES)
                    better = greater(value, best)
                    best = select(better, value, best)
                    place = select(better, splat(type(where[0])(row * tile.width + p)), place)
                store(values, to, best)
                store(where, to, place)


@inner
def _flat_row(number_y, y, at_y, x, at_x):
    """What the place in its grid of a sample in row ``number_y`` of a bin begins with."""
    return geometry.flat_row(
        number_y,
        geometry.Grid(y.first[at_y], y.stop[at_y], y.count[at_y]),
        geometry.Grid(x.first[at_x], x.stop[at_x], x.count[at_x]),
    )


@inner(forceinline=True)
def _value_of_line(line, low, taps, sample, nothing):
    """A sample of a line that begins with pixel ``low``."""
    value = nothing
    for k in range(taps.at[sample], taps.at[sample + 1]):
        value = multiply_add(taps.weight[k], load(line, (taps.pixel[k] - low) * FIXED_LANES), value)
    return value


@inner
def _max_of_samples(r, item, planes, tile, y, x, line, values, told):
    """The maxima of ROI ``r`` over interpolated samples."""
    where, (empty, lowest), _ = told
    pooled_h, pooled_w = item.pooled_h, item.pooled_w
    wide = item.stop_column - item.first_column
    low, high = x.low[r], x.high[r]
    nothing = splat(type(lowest)(0))
    row, column = r * (pooled_h + 1), r * (pooled_w + 1) + item.first_column
    for i in range(item.first_row, item.stop_row):
        first = (i - item.first_row) * wide
        a, b = y.bin_at[row + i], y.bin_at[row + i + 1]
        for j in range(wide):
            holds_samples = b > a and x.bin_at[column + j + 1] > x.bin_at[column + j]
            _start_bin(values, lowest if holds_samples else empty, where, (first + j) * FIXED_LANES)
        for sample_y in range(a, b):
            begin, end = y.taps.at[sample_y], y.taps.at[sample_y + 1]
            read = end > begin and high > low
            if read:
                average_rows(planes, tile, y.taps, begin, end, low, high, line)
            number_y, at_y = y.number[sample_y], r * pooled_h + i
            for j in range(wide):
                at_x = r * pooled_w + item.first_column + j
                flat_row = _flat_row(number_y, y, at_y, x, at_x)
                to = (first + j) * FIXED_LANES
                best, place = load(values, to), load(where, to)
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    value = _value_of_line(line, low, x.taps, sample_x, nothing) if read else nothing
                    flat = flat_row + x.number[sample_x]
                    numbered = number_y >= 0 and x.number[sample_x] >= 0 and flat < 2**31
                    better = greater(value, best)
                    best = select(better, value, best)
                    place = select(better, splat(np.int32(flat if numbered else -1)), place)
                store(values, to, best)
                store(where, to, place)


@inner
def _scatter_run(heads, places, run, count, grad, to, band):
    first, stop = band
    for j in range(run, run + count):
        place = np.int64(places[j])
        if first <= place < stop:
            grad[to + place] += heads[j]


@inner
def _scatter_two_runs(heads, places, runs, count, distance, grad, planes, band):
    """Two channels in turn: a sum often waits for the one before it, which neighbours make in one pixel.

    What is needed next is at this distance.
    """
    run, run2 = runs
    to, to2 = planes
    first, stop = band
    for line in range(run + distance, run2 + distance + count, FIXED_LANES):
        prefetch_to_read(heads, line, 1)
        prefetch_to_read(places, line, 1)
    for j in range(count):
        place, place2 = np.int64(places[run + j]), np.int64(places[run2 + j])
        head, head2 = heads[run + j], heads[run2 + j]
        if first <= place < stop:
            grad[to + place] += head
        if first <= place2 < stop:
            grad[to2 + place2] += head2


@inner
def _scatter_pixels(item, heads, places, at, next_at, planes, band):
    """Add what a ROI gives to a ``band`` of pixels, ``(first, stop)``, of the item's planes."""
    grad, step, area = planes.values, planes.step, item.pooled_h * item.pooled_w
    runs, count, begin, run_step = runs_of(item)
    for i in range(runs):
        run = at + begin + i * run_step
        for c in range(0, item.channels - 1, 2):
            first, to = run + c * area, planes.at + c * step
            pair, two_planes = (first, first + area), (to, to + step)
            _scatter_two_runs(heads, places, pair, count, next_at - at, grad, two_planes, band)
        if item.channels % 2:
            c = item.channels - 1
            _scatter_run(heads, places, run + c * area, count, grad, planes.at + c * step, band)


@shared(makes_arrays=False)
def _scatter_bands(share, heads, shapes, plan, table, accumulate, grad_data, argmax):
    """The items of one thread, each a band of rows of some planes, which are scattered to."""
    part, parts, _ = share
    order, image_at = plan
    plane = shapes.height * shapes.width
    block = smaller(_SCATTER_BYTES // (plane * grad_data.itemsize), shapes.out_channels // parts)
    block = larger(_LEAST_BLOCK, block)
    items = items_of(shapes, block)
    bands = smaller(shapes.height, (parts + items - 1) // larger(1, items))
    units = items // larger(1, shapes.images) * bands
    last = first_unit(part + 1, parts, units, shapes, image_at)
    for number in range(first_unit(part, parts, units, shapes, image_at), last):
        item = item_of(number // bands, shapes, block)
        first = number % bands * shapes.height // bands * shapes.width
        band = first, (number % bands + 1) * shapes.height // bands * shapes.width
        planes = planes_of(item, shapes, pointer_to(grad_data))
        if not accumulate:
            clear_pixels(planes, planes.at + band[0] * planes.pixel_step, band[1] - band[0])
        begin, end = places_of(item, image_at)
        for place in range(begin, end):
            at = bins_at(item, shapes, order[place])
            next_at = bins_at(item, shapes, order[smaller(place + 1, end - 1)])
            values, found = pointer_to(heads), pointer_to(argmax)
            _scatter_pixels(item, values, found, at, next_at, planes, band)


@inner
def _rows_of(r, item, y, x):
    """The rows that ROI ``r`` touches."""
    return y.low[r], (y.high[r] if x.low[r] < x.high[r] else y.low[r])


@inner(forceinline=True)
def _add_to_line(line, low, x, sample, flat_row, gradient, place):
    """Add what a sample gives to a line that begins with pixel ``low``."""
    flat = flat_row + x.number[sample]
    if x.number[sample] >= 0 and flat < 2**31:
        part = select(equal(place, splat(np.int32(flat))), gradient, splat(type(line[0])(0)))
        for k in range(x.taps.at[sample], x.taps.at[sample + 1]):
            p = (x.taps.pixel[k] - low) * FIXED_LANES
            store(line, p, multiply_add(x.taps.weight[k], part, load(line, p)))


@inner
def _spread(r, item, tile, band, y, x, line, bins, told):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows.

    Every sample of a bin is visited, as in the forward pass, and takes the channels whose maximum it was.
    """
    _, where = told
    pooled_h, pooled_w = item.pooled_h, item.pooled_w
    nothing = splat(type(bins[0])(0))
    wide = item.stop_column - item.first_column
    low, high = x.low[r], x.high[r]
    size = (high - low) * FIXED_LANES
    row, column = r * (pooled_h + 1), r * (pooled_w + 1) + item.first_column
    for i in range(item.first_row, item.stop_row):
        first, at_y = (i - item.first_row) * wide, r * pooled_h + i
        for sample_y in range(y.bin_at[row + i], y.bin_at[row + i + 1]):
            a, b = rows_in_band(y.taps.pixel, y.taps.at[sample_y], y.taps.at[sample_y + 1], band)
            if a == b or y.number[sample_y] < 0:
                continue
            for p in range(0, size, FIXED_LANES):
                store(line, p, nothing)
            for j in range(wide):
                at_x = r * pooled_w + item.first_column + j
                flat_row = _flat_row(y.number[sample_y], y, at_y, x, at_x)
                gradient = load(bins, (first + j) * FIXED_LANES)
                place = load(where, (first + j) * FIXED_LANES)
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    _add_to_line(line, low, x, sample_x, flat_row, gradient, place)
            for k in range(a, b):
                add_row(tile, y.taps.pixel[k] - band[0], low, high, y.taps.weight[k], line)


def _forward_kernel(build, view, pool):
    return forward_kernel(__name__, build, forward_items(view, pool, are_maxima=True), are_maxima=True)


# By whether the maxima are of pixels.
_FORWARD = {
    True: _forward_kernel(tables.build, tables.axes_of, _max_of_pixels),
    False: _forward_kernel(tables.build_samples, tables.samples_of, _max_of_samples),
}
_BACKWARD = {
    True: backward_kernel(__name__, tables.build, _scatter_bands),
    False: backward_kernel(
        __name__,
        tables.build_samples,
        backward_items(tables.samples_of, _rows_of, _spread, are_maxima=True),
    ),
}


def _limits(rules, lowest, dtype):
    """What a bin that holds nothing gives, and one that holds nothing greater than ``lowest``."""
    return wide(dtype).type(rules.empty), wide(dtype).type(lowest)


def forward(data, rois, how, lowest, out, argmax=None):
    """Write the maxima to ``out``, and where they are to ``argmax`` (int32 or uint16) if it is given.

    See :func:`addresses.run_forward`.
    """
    outputs = [out] if argmax is None else [out, argmax]
    limits = _limits(how.rules, lowest, data.dtype)
    return run_forward(_FORWARD[how.rules.samples == PIXELS], data, rois, how, outputs, limits=limits)


def argmax_dtype(rules, data_shape) -> np.dtype:
    """The dtype of the fewest bits for the argmax of a map of this shape."""
    few = rules.samples == PIXELS and data_shape[2] * data_shape[3] < FEW_PIXELS
    return np.dtype(np.uint16 if few else np.int32)


def backward(grad_out, argmax, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    pixels, threads = how.rules.samples == PIXELS, threads_for(grad_out.size + grad_data.size)
    # Pixels that are scattered to, a page apart, would find few places in a cache.
    run_backward(_BACKWARD[pixels], threads, [grad_out, argmax], rois, how, accumulate, grad_data, pixels)


def at_addresses(data_shape, rois_shape, out_shape, dtype, how, backward_how, lowest):
    """See :func:`addresses.prepared`."""
    pixels, shapes = how.rules.samples == PIXELS, (data_shape, rois_shape, out_shape)
    kernels, limits = (_FORWARD[pixels], _BACKWARD[pixels]), _limits(how.rules, lowest, np.dtype(dtype))
    return prepared(kernels, shapes, dtype, (how, backward_how), limits)
