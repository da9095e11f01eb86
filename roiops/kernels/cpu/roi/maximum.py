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

from roiops.kernels import geometry
from roiops.kernels.cpu.roi import tables
from roiops.kernels.cpu.roi.addresses import array_at, arrays_at, prepared
from roiops.kernels.cpu.roi.average import average_rows
from roiops.kernels.cpu.roi.chunks import as_rois, channel_chunks, threads_for
from roiops.kernels.cpu.roi.images import first_stray
from roiops.kernels.cpu.roi.items import backward_items, forward_items
from roiops.kernels.cpu.roi.tiles import (
    add_row,
    channel_blocks,
    clear_all_ignored,
    clear_ignored,
    item_of,
    places_of,
    read_row,
)
from roiops.kernels.cpu.vector import (
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
from roiops.kernels.jit import Direct, inner, parallel, within
from roiops.kernels.rules import PIXELS

# Bytes of the planes that are scattered to at a time: what a core's cache holds, yet enough channels to
# read what they get in runs.
_SCATTER_BYTES = 1 << 19
_LEAST_BLOCK = 8

#: Pixels of a plane from which on 16 bits do not hold the index of each and a number for none.
FEW_PIXELS = (1 << 16) - 1


@inner
def _start_bins(values, value, where, first, count):
    """Set ``count`` bins to ``value``, found nowhere."""
    place = type(where[0])
    nowhere = splat(place(~place(0)))
    for at in range(first * FIXED_LANES, (first + count) * FIXED_LANES, FIXED_LANES):
        store(values, at, splat(value))
        store(where, at, nowhere)


@inner
def _spans(table):
    low_y, high_y, low_x, high_x = table
    return tables.spans_of((low_y, high_y)), tables.spans_of((low_x, high_x))


@inner
def _samples(table):
    return tables.samples_of(table[:10]), tables.samples_of(table[10:])


@inner
def _max_of_pixels(r, item, planes, tile, y, x, line, values, where, limits):
    """The maxima of ROI ``r`` over integer bins."""
    empty, lowest = limits
    pooled_h, pooled_w = item.pooled_h, item.pooled_w
    wide = item.stop_column - item.first_column
    column = r * pooled_w + item.first_column
    low, high = tile.width, 0
    for j in range(column, column + wide):
        if x.high[j] > x.low[j]:
            low, high = min(low, x.low[j]), max(high, x.high[j])
    for i in range(item.first_row, item.stop_row):
        top, bottom = y.low[r * pooled_h + i], y.high[r * pooled_h + i]
        first = (i - item.first_row) * wide
        for j in range(wide):
            holds_pixels = bottom > top and x.high[column + j] > x.low[column + j]
            _start_bins(values, lowest if holds_pixels else empty, where, first + j, 1)
        if low >= high:
            continue
        for row in range(top, bottom):
            at = read_row(planes, row, low, high, tile)
            for j in range(wide):
                to = (first + j) * FIXED_LANES
                best, place = load(values, to), load(where, to)
                for p in range(x.low[column + j], x.high[column + j]):
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


@inner
def _max_of_samples(r, item, planes, tile, y, x, line, values, where, limits):
    """The maxima of ROI ``r`` over interpolated samples."""
    empty, lowest = limits
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
            _start_bins(values, lowest if holds_samples else empty, where, first + j, 1)
        for sample_y in range(a, b):
            read = y.taps.at[sample_y + 1] > y.taps.at[sample_y] and high > low
            if read:
                average_rows(
                    planes, tile, y.taps, y.taps.at[sample_y], y.taps.at[sample_y + 1], low, high, line
                )
            number_y, at_y = y.number[sample_y], r * pooled_h + i
            for j in range(wide):
                at_x = r * pooled_w + item.first_column + j
                flat_row = _flat_row(number_y, y, at_y, x, at_x)
                to = (first + j) * FIXED_LANES
                best, place = load(values, to), load(where, to)
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    value = nothing
                    if read:
                        for k in range(x.taps.at[sample_x], x.taps.at[sample_x + 1]):
                            value = multiply_add(
                                x.taps.weight[k], load(line, (x.taps.pixel[k] - low) * FIXED_LANES), value
                            )
                    flat = flat_row + x.number[sample_x]
                    if number_y < 0 or x.number[sample_x] < 0 or flat >= 2**31:
                        flat = -1
                    better = greater(value, best)
                    best = select(better, value, best)
                    place = select(better, splat(np.int32(flat)), place)
                store(values, to, best)
                store(where, to, place)


_pixels_part = forward_items(_spans, _max_of_pixels, with_argmax=True)
_samples_part = forward_items(_samples, _max_of_samples, with_argmax=True)

#: How many arrays the table of integer bins has. The length of a table is a part of its type: where a kernel
#: compares it, numba compiles the branch that applies and leaves the other out.
_ARRAYS_OF_SPANS = 2 * len(tables.Spans._fields)


@inner
def _forward_part(part, parts, data, plan, table, groups, limits, out, argmax):
    if len(table) == _ARRAYS_OF_SPANS:
        _pixels_part(part, parts, data, plan, table, groups, limits, out, argmax)
    else:
        _samples_part(part, parts, data, plan, table, groups, limits, out, argmax)


@parallel
def _forward(share, parts, data, plan, table, groups, limits, out, argmax):
    for part in within(share, parts):
        _forward_part(part, parts, data, plan, table, groups, limits, out, argmax)


# All of a pass on one thread: what a small call costs is going in and out of Python. There is one for pixels
# and one for samples: here the rules say which it is, and their values are not known when numba compiles.
# One function would compile both before a first call.


@inner
def _clear(order, image_at, out, argmax):
    clear_all_ignored(order, image_at, out, 0)
    if argmax.size:
        clear_all_ignored(order, image_at, argmax, -1)


@inner
def _forward_pixels_alone(rules, rois, setting, data, groups, limits, out, argmax):
    order, image_at, y, x = tables.build_spans(rules, rois, setting)
    _clear(order, image_at, out, argmax)
    _forward_part(0, 1, data, (order, image_at), y + x, groups, limits, out, argmax)


@inner
def _forward_samples_alone(rules, rois, setting, data, groups, limits, out, argmax):
    order, image_at, y, x = tables.build_samples(rules, rois, setting)
    _clear(order, image_at, out, argmax)
    _forward_part(0, 1, data, (order, image_at), y + x, groups, limits, out, argmax)


@inner
def _forward_pixels_at(rules, limits, setting, groups, sizes, number, data, rois, out, argmax):
    data, rois, out = arrays_at(setting, sizes, number, data, rois, out)
    if first_stray(rois, setting.images) >= 0:
        return False
    argmax = array_at(argmax, out.shape if argmax else (0, 0, 0, 0), np.int32(0))
    _forward_pixels_alone(rules, rois, setting, data, groups, limits, out, argmax)
    return True


@inner
def _forward_samples_at(rules, limits, setting, groups, sizes, number, data, rois, out, argmax):
    data, rois, out = arrays_at(setting, sizes, number, data, rois, out)
    if first_stray(rois, setting.images) >= 0:
        return False
    argmax = array_at(argmax, out.shape if argmax else (0, 0, 0, 0), np.int32(0))
    _forward_samples_alone(rules, rois, setting, data, groups, limits, out, argmax)
    return True


@inner
def _scatter_run(heads, places, run, count, grad, to, band):
    first, stop = band
    for j in range(run, run + count):
        place = np.int64(places[j])
        if first <= place < stop:
            grad[to + place] += heads[j]


@inner
def _scatter_two_runs(heads, places, runs, count, ahead, grad, planes, band):
    """Two channels in turn: a sum often waits for the one before it, which neighbours make in one pixel.

    What is ``ahead`` will be needed next.
    """
    run, run2 = runs
    to, to2 = planes
    first, stop = band
    for line in range(run + ahead, run2 + ahead + count, FIXED_LANES):
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
def _scatter_pixels(item, heads, places, at, next_at, grad, planes, step, band):
    """Add what a ROI gives to a ``band`` of pixels, ``(first, stop)``, of the item's planes."""
    ahead = next_at - at
    pooled_h, pooled_w = item.pooled_h, item.pooled_w
    area = pooled_h * pooled_w
    wide = item.stop_column - item.first_column
    if wide == pooled_w:  # the bins of a channel are one run
        high, wide = 1, (item.stop_row - item.first_row) * pooled_w
    else:
        high = item.stop_row - item.first_row
    for i in range(high):
        run = at + (item.first_row + i) * pooled_w + item.first_column
        for c in range(0, item.channels - 1, 2):
            here, to = run + c * area, planes + c * step
            runs, two_planes = (here, here + area), (to, to + step)
            _scatter_two_runs(heads, places, runs, wide, ahead, grad, two_planes, band)
        if item.channels % 2:
            c = item.channels - 1
            _scatter_run(heads, places, run + c * area, wide, grad, planes + c * step, band)


@inner
def _backward_pixels_part(part, parts, grad_out, argmax, plan, groups, accumulate, grad_data):
    """The items of one of ``parts`` threads, each a band of rows of some planes, which are scattered to."""
    order, image_at = plan
    images, in_channels, height, width = grad_data.shape
    out_channels = grad_out.shape[1]
    heads, places, pixels = grad_out.reshape(-1), argmax.reshape(-1), grad_data.reshape(-1)
    plane, area = height * width, grad_out.shape[2] * grad_out.shape[3]
    block = max(_LEAST_BLOCK, min(_SCATTER_BYTES // (plane * grad_data.itemsize), out_channels // parts))
    items = images * channel_blocks(out_channels, block) * groups[0] * groups[1]
    bands = min(height, (parts + items - 1) // max(1, items))
    for number in range(part * items * bands // parts, (part + 1) * items * bands // parts):
        item = item_of(number // bands, grad_out.shape, groups, block)
        first = number % bands * height // bands * width
        stop = (number % bands + 1) * height // bands * width
        step = item.step * plane
        planes = (item.image * in_channels + item.in_channel) * plane
        if not accumulate:
            for c in range(item.channels):
                pixels[planes + c * step + first : planes + c * step + stop] = 0
        begin, end = places_of(item, image_at)
        for place in range(begin, end):
            at = (order[place] * out_channels + item.out_channel) * area
            last = place + 1 == end
            next_at = at if last else (order[place + 1] * out_channels + item.out_channel) * area
            band = first, stop
            _scatter_pixels(
                item,
                pointer_to(heads),
                pointer_to(places),
                at,
                next_at,
                pointer_to(pixels),
                planes,
                step,
                band,
            )


@inner
def _rows_of(r, item, y, x):
    """The rows that ROI ``r`` touches."""
    return y.low[r], (y.high[r] if x.low[r] < x.high[r] else y.low[r])


@inner
def _spread(r, item, tile, band, y, x, line, bins, where):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows.

    Every sample of a bin is visited, as in the forward pass, and takes the channels whose maximum it was.
    """
    top, bottom = band
    pooled_h, pooled_w = item.pooled_h, item.pooled_w
    nothing = splat(type(bins[0])(0))
    wide = item.stop_column - item.first_column
    low, high = x.low[r], x.high[r]
    size = (high - low) * FIXED_LANES
    row, column = r * (pooled_h + 1), r * (pooled_w + 1) + item.first_column
    for i in range(item.first_row, item.stop_row):
        first, at_y = (i - item.first_row) * wide, r * pooled_h + i
        for sample_y in range(y.bin_at[row + i], y.bin_at[row + i + 1]):
            a, b = y.taps.at[sample_y], y.taps.at[sample_y + 1]
            while a < b and y.taps.pixel[a] < top:
                a += 1
            while a < b and y.taps.pixel[b - 1] >= bottom:
                b -= 1
            if a == b or y.number[sample_y] < 0:
                continue
            for p in range(0, size, FIXED_LANES):
                store(line, p, nothing)
            for j in range(wide):
                at_x = r * pooled_w + item.first_column + j
                flat_row = _flat_row(y.number[sample_y], y, at_y, x, at_x)
                gradient, place = (
                    load(bins, (first + j) * FIXED_LANES),
                    load(where, (first + j) * FIXED_LANES),
                )
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    flat = flat_row + x.number[sample_x]
                    if x.number[sample_x] < 0 or flat >= 2**31:
                        continue
                    part = select(equal(place, splat(np.int32(flat))), gradient, nothing)
                    for k in range(x.taps.at[sample_x], x.taps.at[sample_x + 1]):
                        p = (x.taps.pixel[k] - low) * FIXED_LANES
                        store(line, p, multiply_add(x.taps.weight[k], part, load(line, p)))
            for k in range(a, b):
                add_row(tile, y.taps.pixel[k] - top, low, high, y.taps.weight[k], line)


_backward_samples_part = backward_items(_samples, _rows_of, _spread, with_argmax=True)


@inner
def _backward_part(part, parts, grad_out, argmax, plan, table, groups, accumulate, grad_data):
    if len(table) == _ARRAYS_OF_SPANS:
        _backward_pixels_part(part, parts, grad_out, argmax, plan, groups, accumulate, grad_data)
    else:
        _backward_samples_part(part, parts, grad_out, argmax, plan, table, groups, accumulate, grad_data)


@parallel
def _backward(share, parts, grad_out, argmax, plan, table, groups, accumulate, grad_data):
    for part in within(share, parts):
        _backward_part(part, parts, grad_out, argmax, plan, table, groups, accumulate, grad_data)


@inner
def _backward_pixels_alone(rules, rois, setting, grad_out, argmax, groups, accumulate, grad_data):
    order, image_at, y, x = tables.build_spans(rules, rois, setting)
    _backward_part(0, 1, grad_out, argmax, (order, image_at), y + x, groups, accumulate, grad_data)


@inner
def _backward_samples_alone(rules, rois, setting, grad_out, argmax, groups, accumulate, grad_data):
    order, image_at, y, x = tables.build_samples(rules, rois, setting)
    _backward_part(0, 1, grad_out, argmax, (order, image_at), y + x, groups, accumulate, grad_data)


@inner
def _backward_pixels_at(rules, setting, groups, sizes, number, grad_data, rois, grad_out, argmax):
    grad_data, rois, grad_out = arrays_at(setting, sizes, number, grad_data, rois, grad_out)
    argmax = array_at(argmax, grad_out.shape, np.int32(0))
    _backward_pixels_alone(rules, rois, setting, grad_out, argmax, groups, False, grad_data)
    return True


@inner
def _backward_samples_at(rules, setting, groups, sizes, number, grad_data, rois, grad_out, argmax):
    grad_data, rois, grad_out = arrays_at(setting, sizes, number, grad_data, rois, grad_out)
    argmax = array_at(argmax, grad_out.shape, np.int32(0))
    _backward_samples_alone(rules, rois, setting, grad_out, argmax, groups, False, grad_data)
    return True


_RUN_FORWARD = {True: Direct(_forward_pixels_alone), False: Direct(_forward_samples_alone)}
_RUN_BACKWARD = {True: Direct(_backward_pixels_alone), False: Direct(_backward_samples_alone)}
_RUN_FORWARD_AT = {True: Direct(_forward_pixels_at), False: Direct(_forward_samples_at)}
_RUN_BACKWARD_AT = {True: Direct(_backward_pixels_at), False: Direct(_backward_samples_at)}

_NOWHERE = np.empty((0, 0, 0, 0), np.int32)


def forward(data, rois, scale, ratio, groups, rules, lowest, out, argmax=None):
    """Write the maxima to ``out``, and where they are to ``argmax`` (int32 or uint16) if it is given.

    A bin that holds samples, but none greater than ``lowest``, gets ``lowest``.
    """
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    rois = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, data.shape, out.shape)
    pixels = rules.samples == PIXELS
    threads = threads_for(out.size)
    if threads > 1:
        plan, table = _tables(rules, rois, setting)
    keep = argmax is not None
    for chunk, maxima, *places, _ in channel_chunks([data], [out, argmax] if keep else [out]):
        where = places[0] if keep else _NOWHERE
        limits = maxima.dtype.type(rules.empty), maxima.dtype.type(lowest)
        if threads == 1:
            run = _RUN_FORWARD[pixels]
            types = rois.dtype, where.dtype
            run(types, rules, rois, setting, chunk, groups, limits, maxima, where)
            continue
        clear_ignored(*plan, maxima, 0)
        if keep:
            clear_ignored(*plan, where, ~where.dtype.type(0))
        _forward.by(threads)(threads, chunk, plan, table, groups, limits, maxima, where)


def argmax_dtype(rules, data_shape) -> np.dtype:
    """The dtype of the fewest bits for the argmax of a map of this shape."""
    few = rules.samples == PIXELS and data_shape[2] * data_shape[3] < FEW_PIXELS
    return np.dtype(np.uint16 if few else np.int32)


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    rois = as_rois(rois, grad_data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, grad_data.shape, grad_out.shape)
    pixels = rules.samples == PIXELS
    threads = threads_for(grad_out.size + grad_data.size)
    if threads > 1:
        plan, table = _tables(rules, rois, setting)
    for heads, where, grad, add in channel_chunks([grad_out, argmax], [grad_data], accumulate):
        if threads == 1:
            run = _RUN_BACKWARD[pixels]
            types = rois.dtype, where.dtype
            run(types, rules, rois, setting, heads, where, groups, add, grad)
        else:
            _backward.by(threads)(threads, heads, where, plan, table, groups, add, grad)


def _tables(rules, rois, setting):
    """The order of work, and the spans of integer bins or the samples of others."""
    build = tables.build_spans if rules.samples == PIXELS else tables.build_samples
    order, image_at, y, x = build(rules, rois, setting)
    return (order, image_at), (*y, *x)


def at_addresses(
    data_shape, rois_shape, out_shape, dtype, scale, ratio, groups, rules, backward_rules, lowest
):
    """See :func:`average.at_addresses`; these have an argmax."""
    pixels, number = rules.samples == PIXELS, np.dtype(dtype).type
    both, shapes = (_RUN_FORWARD_AT[pixels], _RUN_BACKWARD_AT[pixels]), (data_shape, rois_shape, out_shape)
    first = (rules, (number(rules.empty), number(lowest))), (backward_rules,)
    return prepared(both, shapes, dtype, scale, ratio, groups, first)
