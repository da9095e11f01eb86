"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and the scatter back to where they were.

The forward pass works like that of :mod:`roi_average`. A sampled maximum interpolates by rows first: a line
for each row of samples, which all its bins then read. ``argmax`` is, for pixels, the index in the channel's
plane; for samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient. The backward
pass gives each channel, or part of its rows, to one thread, which adds ROI after ROI: pixels straight to
where they are, samples as :mod:`roi_average` does.
"""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.lanes import (
    LANES,
    aligned,
    bare,
    equal,
    greater,
    load,
    multiply_add,
    prefetch,
    select,
    splat,
    store,
)
from roiops.kernels.cpu.roi import tables as roi_tables
from roiops.kernels.cpu.roi.average import average_rows
from roiops.kernels.cpu.roi.pieces import as_rois, launch, pieces
from roiops.kernels.cpu.roi.tiles import (
    Planes,
    Tile,
    add_row,
    channel_blocks,
    clear_ignored,
    empty_tile,
    item_of,
    prefetch_put,
    prefetch_take,
    put_bins,
    read_row,
    take_bins,
    tile_bands,
    tile_slots,
    touch_nothing,
    write_rows,
)
from roiops.kernels.jit import inner, parallel, prange

__all__ = ["backward", "forward"]

# Bytes of the planes that are scattered to at a time: what a core's cache holds, yet enough channels to
# read what they get in runs.
_SCATTER_BYTES = 1 << 19
_LEAST_BLOCK = 8


@inner
def _start_bins(values, value, where, first, count):
    """Set ``count`` bins to ``value``, found nowhere."""
    for at in range(first * LANES, (first + count) * LANES, LANES):
        store(values, at, splat(value))
        store(where, at, splat(np.int32(-1)))


@inner
def _max_of_pixels(r, item, planes, tile, y, x, pooled_h, pooled_w, empty, lowest, values, where):
    """The maxima of ROI ``r`` over integer bins."""
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
                to = (first + j) * LANES
                best, place = load(values, to), load(where, to)
                for p in range(x.low[column + j], x.high[column + j]):
                    value = load(tile.values, at + p * LANES)
                    better = greater(value, best)
                    best = select(better, value, best)
                    place = select(better, splat(np.int32(row * tile.width + p)), place)
                store(values, to, best)
                store(where, to, place)


@inner
def _max_of_samples(r, item, planes, tile, y, x, pooled_h, pooled_w, empty, lowest, line, values, where):
    """The maxima of ROI ``r`` over interpolated samples."""
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
                flat_row = geometry.flat_row(
                    number_y, y.first[at_y], x.first[at_x], y.grid[at_y], x.grid[at_x], x.visited[at_x]
                )
                to = (first + j) * LANES
                best, place = load(values, to), load(where, to)
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    value = nothing
                    if read:
                        for k in range(x.taps.at[sample_x], x.taps.at[sample_x + 1]):
                            value = multiply_add(
                                x.taps.weight[k], load(line, (x.taps.pixel[k] - low) * LANES), value
                            )
                    flat = flat_row + x.number[sample_x]
                    if number_y < 0 or x.number[sample_x] < 0 or flat >= 2**31:
                        flat = -1
                    better = greater(value, best)
                    best = select(better, value, best)
                    place = select(better, splat(np.int32(flat)), place)
                store(values, to, best)
                store(where, to, place)


@inner
def _forward_pixels_part(part, parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax):
    """The items of one of ``parts`` threads."""
    order, image_at = tables[:2]
    y, x = roi_tables.spans_of(tables[2:4]), roi_tables.spans_of(tables[4:])
    images, in_channels, height, width = data.shape
    _, out_channels, pooled_h, pooled_w = out.shape
    groups_h, groups_w = groups
    pixels, results, places = data.reshape(-1), out.reshape(-1), argmax.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    slots = tile_slots(height, width, out.itemsize)
    room = aligned(slots * width * LANES, out)
    marks = np.empty(slots * (width // LANES + 1), np.int64)
    values = aligned(area * LANES, out)
    where = aligned(area * LANES, argmax)
    items = images * channel_blocks(out_channels) * groups_h * groups_w
    for number in range(part * items // parts, (part + 1) * items // parts):
        item = item_of(number, out_channels, pooled_h, pooled_w, groups_h, groups_w)
        at = (item.image * in_channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, item.step * plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), slots, width)
        empty_tile(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            to = (r * out_channels + item.out_channel) * area
            prefetch_put(item, bare(results), to, pooled_h, pooled_w)
            if keep_argmax:
                prefetch_put(item, bare(places), to, pooled_h, pooled_w)
            _max_of_pixels(
                r, item, planes, tile, y, x, pooled_h, pooled_w, empty, lowest, bare(values), bare(where)
            )
            put_bins(bare(values), item, bare(results), to, pooled_h, pooled_w)
            if keep_argmax:
                put_bins(bare(where), item, bare(places), to, pooled_h, pooled_w)


@inner
def _forward_samples_part(part, parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax):
    """The same for samples. Together the two would compile for twice as long before a first call."""
    order, image_at = tables[:2]
    y, x = roi_tables.samples_of(tables[2:12]), roi_tables.samples_of(tables[12:])
    images, in_channels, height, width = data.shape
    _, out_channels, pooled_h, pooled_w = out.shape
    groups_h, groups_w = groups
    pixels, results, places = data.reshape(-1), out.reshape(-1), argmax.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    slots = tile_slots(height, width, out.itemsize)
    room = aligned(slots * width * LANES, out)
    marks = np.empty(slots * (width // LANES + 1), np.int64)
    line = aligned(width * LANES, out)
    values = aligned(area * LANES, out)
    where = aligned(area * LANES, argmax)
    items = images * channel_blocks(out_channels) * groups_h * groups_w
    for number in range(part * items // parts, (part + 1) * items // parts):
        item = item_of(number, out_channels, pooled_h, pooled_w, groups_h, groups_w)
        at = (item.image * in_channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, item.step * plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), slots, width)
        empty_tile(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            to = (r * out_channels + item.out_channel) * area
            prefetch_put(item, bare(results), to, pooled_h, pooled_w)
            if keep_argmax:
                prefetch_put(item, bare(places), to, pooled_h, pooled_w)
            _max_of_samples(
                r, item, planes, tile, y, x, pooled_h, pooled_w, empty, lowest, bare(line), bare(values),
                bare(where),
            )  # fmt: skip
            put_bins(bare(values), item, bare(results), to, pooled_h, pooled_w)
            if keep_argmax:
                put_bins(bare(where), item, bare(places), to, pooled_h, pooled_w)


@parallel
def _forward_pixels(parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax):
    for part in prange(parts):
        _forward_pixels_part(
            np.int64(part), parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax
        )


@parallel
def _forward_samples(parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax):
    for part in prange(parts):
        _forward_samples_part(
            np.int64(part), parts, data, tables, groups, empty, lowest, keep_argmax, out, argmax
        )


@inner
def _scatter_run(heads, places, run, count, grad, to, first, stop):
    for j in range(run, run + count):
        place = np.int64(places[j])
        if first <= place < stop:
            grad[to + place] += heads[j]


@inner
def _scatter_two_runs(heads, places, run, run2, count, ahead, grad, to, to2, first, stop):
    """Two channels in turn: a sum often waits for the one before it, which neighbours make in one pixel.

    What is ``ahead`` will be needed next.
    """
    for line in range(run + ahead, run2 + ahead + count, LANES):
        prefetch(heads, line)
        prefetch(places, line)
    for j in range(count):
        place, place2 = np.int64(places[run + j]), np.int64(places[run2 + j])
        head, head2 = heads[run + j], heads[run2 + j]
        if first <= place < stop:
            grad[to + place] += head
        if first <= place2 < stop:
            grad[to2 + place2] += head2


@inner
def _scatter_pixels(item, pooled_h, pooled_w, heads, places, at, next_at, grad, planes, step, first, stop):
    """Add what a ROI gives to the pixels ``[first, stop)`` of the item's planes."""
    ahead = next_at - at
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
            _scatter_two_runs(heads, places, here, here + area, wide, ahead, grad, to, to + step, first, stop)
        if item.channels % 2:
            c = item.channels - 1
            _scatter_run(heads, places, run + c * area, wide, grad, planes + c * step, first, stop)


@inner
def _backward_pixels_part(part, parts, grad_out, argmax, tables, groups, accumulate, grad_data):
    """The items of one of ``parts`` threads, each a band of rows of some planes, which are scattered to."""
    order, image_at = tables[:2]
    images, in_channels, height, width = grad_data.shape
    _, out_channels, pooled_h, pooled_w = grad_out.shape
    groups_h, groups_w = groups
    heads, places, pixels = grad_out.reshape(-1), argmax.reshape(-1), grad_data.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    block = max(_LEAST_BLOCK, min(_SCATTER_BYTES // (plane * grad_data.itemsize), out_channels // parts))
    items = images * channel_blocks(out_channels, block) * groups_h * groups_w
    bands = min(height, (parts + items - 1) // max(1, items))
    for number in range(part * items * bands // parts, (part + 1) * items * bands // parts):
        item = item_of(number // bands, out_channels, pooled_h, pooled_w, groups_h, groups_w, block)
        first = number % bands * height // bands * width
        stop = (number % bands + 1) * height // bands * width
        step = item.step * plane
        planes = (item.image * in_channels + item.in_channel) * plane
        if not accumulate:
            for c in range(item.channels):
                pixels[planes + c * step + first : planes + c * step + stop] = 0
        for place in range(image_at[item.image], image_at[item.image + 1]):
            at = (order[place] * out_channels + item.out_channel) * area
            last = place + 1 == image_at[item.image + 1]
            next_at = at if last else (order[place + 1] * out_channels + item.out_channel) * area
            _scatter_pixels(
                item, pooled_h, pooled_w, bare(heads), bare(places), at, next_at, bare(pixels), planes, step,
                first, stop,
            )  # fmt: skip


@parallel
def _backward_pixels(parts, grad_out, argmax, tables, groups, accumulate, grad_data):
    for part in prange(parts):
        _backward_pixels_part(np.int64(part), parts, grad_out, argmax, tables, groups, accumulate, grad_data)


@inner
def _backward_samples_roi(r, item, tile, top, bottom, y, x, pooled_h, pooled_w, bins, where, line):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to rows ``top`` to ``bottom``.

    Every sample of a bin is visited, as in the forward pass, and takes the channels whose maximum it was.
    """
    nothing = splat(type(bins[0])(0))
    wide = item.stop_column - item.first_column
    low, high = x.low[r], x.high[r]
    size = (high - low) * LANES
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
            for p in range(0, size, LANES):
                store(line, p, nothing)
            for j in range(wide):
                at_x = r * pooled_w + item.first_column + j
                flat_row = geometry.flat_row(
                    y.number[sample_y], y.first[at_y], x.first[at_x], y.grid[at_y], x.grid[at_x],
                    x.visited[at_x],
                )  # fmt: skip
                gradient, place = load(bins, (first + j) * LANES), load(where, (first + j) * LANES)
                for sample_x in range(x.bin_at[column + j], x.bin_at[column + j + 1]):
                    flat = flat_row + x.number[sample_x]
                    if x.number[sample_x] < 0 or flat >= 2**31:
                        continue
                    part = select(equal(place, splat(np.int32(flat))), gradient, nothing)
                    for k in range(x.taps.at[sample_x], x.taps.at[sample_x + 1]):
                        p = (x.taps.pixel[k] - low) * LANES
                        store(line, p, multiply_add(x.taps.weight[k], part, load(line, p)))
            for k in range(a, b):
                add_row(tile, y.taps.pixel[k] - top, low, high, y.taps.weight[k], line)


@inner
def _backward_samples_part(part, parts, grad_out, argmax, tables, groups, accumulate, grad_data):
    """The items of one of ``parts`` threads, as in :mod:`roi_average`."""
    order, image_at = tables[:2]
    images, in_channels, height, width = grad_data.shape
    _, out_channels, pooled_h, pooled_w = grad_out.shape
    groups_h, groups_w = groups
    heads, places, pixels = grad_out.reshape(-1), argmax.reshape(-1), grad_data.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    items = images * channel_blocks(out_channels) * groups_h * groups_w
    bands, rows = tile_bands(height, width, grad_data.itemsize, parts, items)
    room = aligned(rows * width * LANES, grad_data)
    marks = np.empty(rows * 2, np.int64)
    line = aligned(width * LANES, grad_data)
    bins = aligned(area * LANES, grad_data)
    where = aligned(area * LANES, argmax)
    for number in range(part * items * bands // parts, (part + 1) * items * bands // parts):
        item = item_of(number // bands, out_channels, pooled_h, pooled_w, groups_h, groups_w)
        top, bottom = number % bands * height // bands, (number % bands + 1) * height // bands
        at = (item.image * in_channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, item.step * plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), rows, width)
        y, x = roi_tables.samples_of(tables[2:12]), roi_tables.samples_of(tables[12:])
        touch_nothing(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            if place + 1 < image_at[item.image + 1]:
                at = (order[place + 1] * out_channels + item.out_channel) * area
                prefetch_take(item, bare(heads), at, pooled_h, pooled_w)
                prefetch_take(item, bare(places), at, pooled_h, pooled_w)
            if y.low[r] < bottom and y.high[r] > top and x.low[r] < x.high[r]:
                at = (r * out_channels + item.out_channel) * area
                take_bins(bare(heads), at, item, pooled_h, pooled_w, bare(bins))
                take_bins(bare(places), at, item, pooled_h, pooled_w, bare(where))
                _backward_samples_roi(
                    r, item, tile, top, bottom, y, x, pooled_h, pooled_w, bare(bins), bare(where), bare(line)
                )
        write_rows(tile, top, bottom - top, planes, accumulate, bare(line))


@parallel
def _backward_samples(parts, grad_out, argmax, tables, groups, accumulate, grad_data):
    for part in prange(parts):
        _backward_samples_part(np.int64(part), parts, grad_out, argmax, tables, groups, accumulate, grad_data)


def forward(data, rois, scale, ratio, groups, rules, lowest, out, argmax=None):
    """Write the maxima to ``out``, and where they are to ``argmax`` (int32) if it is given.

    A bin that holds samples, but none greater than ``lowest``, gets ``lowest``.
    """
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    tables = _tables(rois, scale, ratio, rules, data, out)
    kernel = _forward_pixels if rules.samples == geometry.PIXELS else _forward_samples
    keep = argmax is not None
    for some, maxima, *places, _ in pieces([data], [out, argmax] if keep else [out]):
        where = places[0] if keep else np.empty((0, 0, 0, 0), np.int32)
        clear_ignored(tables, maxima, 0)
        if keep:
            clear_ignored(tables, where, -1)
        empty, least = maxima.dtype.type(rules.empty), maxima.dtype.type(lowest)
        launch(kernel, maxima.size, some, tables, groups, empty, least, keep, maxima, where)


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    tables = _tables(rois, scale, ratio, rules, grad_data, grad_out)
    kernel = _backward_pixels if rules.samples == geometry.PIXELS else _backward_samples
    for heads, where, grad, add in pieces([grad_out, argmax], [grad_data], accumulate):
        launch(kernel, heads.size + grad.size, heads, where, tables, groups, add, grad)


def _tables(rois, scale, ratio, rules, data, out):
    """The order of work, and the spans of integer bins or the samples of others."""
    rois = as_rois(rois, data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    images, _, height, width = data.shape
    if rules.samples == geometry.PIXELS:
        built = roi_tables.build_spans(rois, rules, scale, images, height, width, *out.shape[2:])
    else:
        built = roi_tables.build_samples(rois, rules, scale, ratio, images, height, width, *out.shape[2:])
    order, image_at, y, x = built
    return order, image_at, *y, *x
