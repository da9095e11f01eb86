"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and their gradient.

Forward, a block takes an ROI and a slab of channels. Its threads first write, for each bin of either axis,
where its pixels begin and end, or the pixels and weights of its samples, to shared memory; then each takes
bins, four channels at a time (see :mod:`lanes`). ``argmax`` is, for pixels, the index in the channel's plane;
for samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient.

Backward, a block owns a tile of the map for some channels, with the sums in shared memory. It lists the bins
that touch the tile, of all ROIs in order. Of some of them at a time its threads read where the maxima are and
what is due; then each adds what falls to its channel in its part of the tile, bin by bin. So each sum is
always the same to the last bit, without atomic additions.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ....errors import DeviceError
from ... import geometry
from ...geometry import smaller
from ...rules import MAX_INVALID_IS_ZERO, PIXELS, SAME_CHANNEL
from ..lanes import THREAD_LANES, divided, lanes_for, layout_of, quads_of
from ..number import computing, kind_of
from ..runtime import QUAD, contiguous, cuda, device, device_of, empty, flat_output, flat_view, kernel, launch
from . import tiles
from .average import boxes_and_setting
from .tiles import bin_pixels

# What a sample is on an axis: not valid, valid but clear of all pixels, or a mean of pixels.
INVALID, CLEAR, READ = range(3)


class _Table(NamedTuple):
    """The samples of an axis in shared memory: ``count[first + i]`` of bin i, from ``first + i * slot`` on.

    Each has two places and weights; where a weight is zero, both places are that of the other. For pixels,
    there is only where those of a bin begin and end: ``count[first + i]`` and ``kind[first + i]``.
    """

    place: object
    weight: object
    kind: object
    count: object
    first: int
    slot: int


@functools.cache
def filling(rules):
    """The device function with which the threads of a block write a :class:`_Table`."""

    @device
    def fill_with_pixels(axis, stride, table, wide):
        for i in range(cuda.threadIdx.x, axis.bins, cuda.blockDim.x):
            table.count[table.first + i], table.kind[table.first + i] = geometry.bin_span(rules, axis, i)

    @device
    def fill_with_samples(axis, stride, table, wide):
        for i in range(cuda.threadIdx.x, axis.bins, cuda.blockDim.x):
            first, stop, count = geometry.bin_grid(rules, axis, i)
            if count > table.slot:
                cuda.atomic.max(wide, 0, 1)
                continue
            table.count[table.first + i] = count
            for k in range(count):
                valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
                at = table.first + i * table.slot + k
                kind = READ if weight0 != 0 or weight1 != 0 else CLEAR
                table.kind[at] = kind if valid and k >= first and k < stop else INVALID
                table.place[2 * at] = (pixel0 if weight0 != 0 else pixel1) * stride
                table.place[2 * at + 1] = (pixel1 if weight1 != 0 else pixel0) * stride
                table.weight[2 * at], table.weight[2 * at + 1] = weight0, weight1

    return fill_with_pixels if rules.samples == PIXELS else fill_with_samples


@functools.cache
def forward_kernel(rules, name, layout, sizes, tabled, keep_argmax):
    real, shared, _, write = computing(name)
    spot_and_quad, begin, load, _, add_sample, _, channel_of = lanes_for(name, layout)
    of_pixels = rules.samples == PIXELS
    invalid_competes = rules.reduction == MAX_INVALID_IS_ZERO
    one_group = rules.channels == SAME_CHANNEL
    fill, table_size = filling(rules), sizes.table
    entries = 2 * table_size  # of both axes
    pairs = 2 if of_pixels else 2 * entries

    @device
    def keep_greater(values, spot, best, where):
        for lane in range(THREAD_LANES):
            if values[lane] > best[lane]:
                best[lane], where[lane] = values[lane], spot

    @device
    def max_of_pixels(data, base, strides, spans, width, lowest, best, where):
        top, bottom, left, right = spans
        if bottom > top and right > left:
            for lane in range(THREAD_LANES):
                best[lane] = lowest
        for row in range(top, bottom):
            place, spot = row * strides[2] + left * strides[3], np.int32(row * width + left)
            for column in range(left, right, np.int32(2)):
                # Two are loaded before one is used. Past the last is the last again, which is not greater.
                one = load(data, base, place)
                two = load(data, base, place + (strides[3] if column + 1 < right else 0))
                keep_greater(one, spot, best, where)
                keep_greater(two, np.int32(spot + 1), best, where)
                place, spot = place + 2 * strides[3], np.int32(spot + 2)

    @device
    def compete(value, flat, begun, lowest, best, where):
        for lane in range(THREAD_LANES):
            if not begun:  # the first sample: there is something to pool
                best[lane] = lowest
        keep_greater(value, flat, best, where)

    @device
    def add_corner(values, weight_y, weight_x, value):
        if weight_y != 0 and weight_x != 0:
            for lane in range(THREAD_LANES):
                value[lane] += weight_y * weight_x * values[lane]

    @device
    def max_of_table(data, base, y, i, x, j, lowest, value, best, where):
        begun, count_x = False, x.count[x.first + j]
        for ky in range(y.count[y.first + i]):
            a = y.first + i * y.slot + ky
            for kx in range(count_x):
                b = x.first + j * x.slot + kx
                valid = y.kind[a] != INVALID and x.kind[b] != INVALID
                if not valid and not invalid_competes:
                    continue
                for lane in range(THREAD_LANES):
                    value[lane] = 0
                if y.kind[a] == READ and x.kind[b] == READ:
                    # All are loaded before any is used, so that the memory is waited for once.
                    values00 = load(data, base, y.place[2 * a] + x.place[2 * b])
                    values01 = load(data, base, y.place[2 * a] + x.place[2 * b + 1])
                    values10 = load(data, base, y.place[2 * a + 1] + x.place[2 * b])
                    values11 = load(data, base, y.place[2 * a + 1] + x.place[2 * b + 1])
                    add_corner(values00, y.weight[2 * a], x.weight[2 * b], value)
                    add_corner(values01, y.weight[2 * a], x.weight[2 * b + 1], value)
                    add_corner(values10, y.weight[2 * a + 1], x.weight[2 * b], value)
                    add_corner(values11, y.weight[2 * a + 1], x.weight[2 * b + 1], value)
                compete(value, ky * count_x + kx if valid else -1, begun, lowest, best, where)
                begun = True

    @device
    def max_of_samples(data, base, strides, bin_y, bin_x, lowest, value, best, where):
        y, i = bin_y
        x, j = bin_x
        begun = False
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        # One more at either end stands for the samples there that are not visited: invalid, and all alike.
        for ky in range(grid_y.first - 1, grid_y.stop + 1):
            if ky < 0 or ky >= grid_y.count:
                continue
            on_y = geometry.sample(rules, y, i, ky, grid_y.count)
            valid_y = on_y[0] and ky >= grid_y.first and ky < grid_y.stop
            for kx in range(grid_x.first - 1, grid_x.stop + 1):
                if kx < 0 or kx >= grid_x.count:
                    continue
                on_x = geometry.sample(rules, x, j, kx, grid_x.count)
                valid = valid_y and on_x[0] and kx >= grid_x.first and kx < grid_x.stop
                if not valid and not invalid_competes:
                    continue
                flat = geometry.flat_sample(ky, kx, grid_y, grid_x) if valid else -1
                for lane in range(THREAD_LANES):
                    value[lane] = 0
                if valid:
                    add_sample(data, base, strides, on_y, on_x, value)
                compete(value, flat, begun, lowest, best, where)
                begun = True

    @device
    def spans_of(box, i, j, of_y, of_x):
        if tabled:
            at_y, at_x = of_y.first + i, of_x.first + j
            return of_y.count[at_y], of_y.kind[at_y], of_x.count[at_x], of_x.kind[at_x]
        y, x = geometry.box_axes(rules, *box)
        top, bottom = geometry.bin_span(rules, y, i)
        left, right = geometry.bin_span(rules, x, j)
        return np.int32(top), np.int32(bottom), np.int32(left), np.int32(right)

    @device
    def max_of_bin(data, base, strides, box, i, j, of_y, of_x, wide, lowest, value, best, where):
        if of_pixels:
            spans, width = spans_of(box, i, j, of_y, of_x), box[2].width
            max_of_pixels(data, base, strides, spans, width, lowest, best, where)
        elif not wide:
            max_of_table(data, base, of_y, i, of_x, j, lowest, value, best, where)
        else:
            # The axes are worked out here, where they are needed, and not kept in registers all along.
            y, x = geometry.box_axes(rules, *box)
            max_of_samples(data, base, strides, (y, i), (x, j), lowest, value, best, where)

    @device
    def store(best, where, out, argmax, start, quad, quads, channels, area, spot):
        """Write the maxima of a bin, and where they are, for the channels from ``start`` on."""
        c, hop = channel_of(quad, 0, quads), channel_of(quad, 1, quads) - channel_of(quad, 0, quads)
        at = np.uint64((start + c) * area + spot)
        for lane in range(THREAD_LANES):
            if c < channels:
                out[at] = write(best[lane])
                if keep_argmax:
                    argmax[at] = where[lane]
            c, at = c + hop, at + np.uint64(hop * area)

    @kernel(real)
    def max_forward(data, strides, rois, setting, groups, slabs, channels, lowest, out, argmax):
        place = cuda.shared.array(pairs, numba.int64)
        weight = cuda.shared.array(pairs, shared)
        kind = cuda.shared.array(entries, numba.int32)
        count = cuda.shared.array(entries, numba.int32)
        wide = cuda.shared.array(1, numba.int32)
        base = cuda.local.array(THREAD_LANES, numba.int64)
        value = cuda.local.array(THREAD_LANES, shared)
        best = cuda.local.array(THREAD_LANES, shared)
        where = cuda.local.array(THREAD_LANES, numba.int32)
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        of_y = _Table(place, weight, kind, count, 0, table_size // pooled_h)
        of_x = _Table(place, weight, kind, count, table_size, table_size // pooled_w)
        area, quads = pooled_h * pooled_w, (channels + THREAD_LANES - 1) // THREAD_LANES
        for item in range(cuda.blockIdx.x, rois.shape[0] * slabs, cuda.gridDim.x):
            r, slab = item // slabs, item % slabs
            first = slab * quads // slabs
            own_quads = (slab + 1) * quads // slabs - first
            n = geometry.image_of(rois, r, setting.images)
            if thread == 0:
                wide[0] = 0 if tabled else 1
            cuda.syncthreads()
            if n >= 0 and tabled:
                y, x = geometry.box_axes(rules, rois, r, setting)
                fill(y, strides[2], of_y, wide)
                fill(x, strides[3], of_x, wide)
            cuda.syncthreads()
            for unit in range(np.int32(thread), np.int32(area * own_quads), np.int32(threads)):
                spot, quad = spot_and_quad(unit, area, own_quads)
                quad += first
                i, j = divided(spot, pooled_w)
                group = 0, 0
                if not one_group:
                    of_i = geometry.group_of(i, pooled_h, groups[0])
                    group = of_i, geometry.group_of(j, pooled_w, groups[1])
                begin(strides, n, 0, quad, quads, channels, group, groups, base, best)
                for lane in range(THREAD_LANES):
                    best[lane] = real(rules.empty) if n >= 0 else real(0)
                    where[lane] = -1
                if n >= 0:
                    bins = (rois, r, setting), i, j, of_y, of_x, wide[0]
                    max_of_bin(data, base, strides, *bins, lowest, value, best, where)
                store(best, where, out, argmax, r * channels, quad, quads, channels, area, spot)
            cuda.syncthreads()

    return max_forward


def forward(data, rois, how, lowest, out, argmax=None):
    """Write the maxima to ``out``, and where they are to ``argmax`` (int32) if it is given."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    groups = geometry.channel_groups(how, *out.shape[2:])
    count, channels = out.shape[:2]
    elements, strides = flat_view(data)
    slabs = max(1, min(-(-sizes.blocks // count), -(-quads_of(channels) // 4)))
    layout = layout_of(elements, strides, channels, groups[0] * groups[1])
    keep, tabled = argmax is not None, max(out.shape[2:]) <= sizes.table
    argmax = argmax if keep else empty((0,), np.int32, device_of(data))
    with flat_output(out) as target, flat_output(argmax) as places:
        pool = forward_kernel(how.rules, name, layout, sizes, tabled, keep)
        lowest = computing(name).real(lowest)
        inputs = elements, strides, *boxes_and_setting(how, rois, name, data, out), groups
        launch(pool, count * slabs, sizes.threads, *inputs, slabs, channels, lowest, target, places)


# -- gradient --------------------------------------------------------------------------------------------


@functools.cache
def spans_kernel(rules):
    @kernel()
    def max_spans(rois, setting, spans):
        """The pixels that each bin of each ROI reads, on either axis."""
        bins = setting.pooled_h + setting.pooled_w
        for unit in range(cuda.grid(1), rois.shape[0] * bins, cuda.gridsize(1)):
            r, i = unit // bins, unit % bins
            low, high = 0, 0
            if geometry.image_of(rois, r, setting.images) >= 0:
                y, x = geometry.box_axes(rules, rois, r, setting)
                if i < setting.pooled_h:
                    low, high = bin_pixels(rules, y, i)
                else:
                    low, high = bin_pixels(rules, x, i - setting.pooled_h)
            spans[unit, 0], spans[unit, 1] = low, high

    return max_spans


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    _, shared, read, write = computing(name)
    of_pixels, one_group = rules.samples == PIXELS, rules.channels == SAME_CHANNEL
    side, slab, parts, entries = sizes.max_tile, sizes.max_channels, sizes.max_parts, sizes.max_entries
    threads, pixels = parts * slab, side * side
    found_size = 2 * sizes.each * threads
    place_of = tiles.placing(slab, sizes._replace(tile_h=side, tile_w=side))
    # A maximum goes to one pixel, that of samples to four corners. A thread takes a bin for some channels.
    corners = 1 if of_pixels else 4
    entries = entries if of_pixels else 2 * entries
    bins = entries // corners
    lanes = threads // bins
    turns = slab // lanes
    # From the channels of a pixel, or of an entry, to those of the next: so a warp meets all banks.
    step = slab + 1
    part = -(-pixels // parts) * step
    sums_size, entries_size, boxes_size = step * pixels, step * entries, QUAD * threads

    @device
    def touches_tile(listed, k, top, left):
        lists, group, every = listed
        return tiles.touches(lists.pixels, lists.order[np.uint64(k)] * every + group, top, left, side, side)

    select = tiles.selecting(sizes._replace(tile_h=1, tile_w=threads), touches_tile)

    @device
    def bins_about(spans, entry, bins, origin):
        """The bins that enclose those that touch the tile on an axis."""
        first, stop = np.int32(bins[0]), np.int32(bins[1])
        origin, end = np.int32(origin), np.int32(origin + side)
        low, high = stop, first
        for i in range(first, stop):
            at = np.uint64(entry + i)
            if (spans[at, 0] < end) & (spans[at, 1] > origin):
                low, high = (i if i < low else low), np.int32(i + 1)
        return low, high

    @device
    def list_bins(spans, r, is_there, tile, setting, groups, boxes, running):
        """List the bins of an ROI that touch the tile: how many there are up to it, and where they begin."""
        thread, count = (cuda.threadIdx.x if r >= 0 else 0), 0
        if is_there:
            of_y = r * (setting.pooled_h + setting.pooled_w)
            rows = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
            columns = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
            i, end = bins_about(spans, of_y, rows, tile.top)
            j, stop = bins_about(spans, of_y + setting.pooled_h, columns, tile.left)
            count = (end - i) * (stop - j) if end > i and stop > j else 0
            tiles.put_pixels(boxes, np.uint64(thread), r, i, j, stop - j)
        tiles.rank(count, running, thread, threads)

    @device
    def bin_at(boxes, running, box, k):
        """Where the ``k``-th of the listed bins is: the number of its box, from ``box`` on, and the bin."""
        while running[np.uint64(box)] <= k:
            box = np.int32(box + 1)
        rest = np.int32(k - (running[np.uint64(box - 1)] if box > 0 else np.int32(0)))
        at = QUAD * box
        i, j, wide = boxes[np.uint64(at + 1)], boxes[np.uint64(at + 2)], boxes[np.uint64(at + 3)]
        row = np.int32(np.uint32(rest) // np.uint32(wide))
        return box, np.int32(i + row), np.int32(j + rest - row * wide)

    @device
    def place_in(row, column):
        """Where a pixel of the tile has its sums, or -1 for one that is not in it."""
        inside = row >= 0 and row < side and column >= 0 and column < side
        return np.int32((column * side + row) * step) if inside else np.int32(-1)

    @device
    def place_of_pixel(spot, tile, across):
        """The same of an index in the plane, or of -1."""
        width, inverse, shift = across  # see ``backward``
        # What is before the tile is so far ahead, in 32 bits without a sign, that its row is not in the tile.
        ahead = np.uint32(np.int64(spot) - np.int64(tile.top * width + tile.left))
        row = np.uint32((np.uint64(ahead) * np.uint64(np.uint32(inverse))) >> np.uint64(np.uint32(shift)))
        return place_in(row, np.uint32(np.int64(ahead) - np.int64(row) * np.int64(width)))

    @device
    def put_sample(on_y, on_x, value, tile, at, where, due):
        """Write what each corner of a sample is due."""
        _, y0, wy0, y1, wy1 = on_y
        _, x0, wx0, x1, wx1 = on_x
        for corner in range(4):
            weight = (wy1 if corner >= 2 else wy0) * (wx1 if corner % 2 else wx0)
            row, column = (y1 if corner >= 2 else y0) - tile.top, (x1 if corner % 2 else x0) - tile.left
            place = place_in(np.int32(row), np.int32(column))
            where[at + np.uint64(corner * step)] = place if weight != 0 else np.int32(-1)
            due[at + np.uint64(corner * step)] = weight * value

    @device
    def put_samples(rois, r, i, j, tile, setting, at, where, due):
        """Put the corners of each sample that a thread has written in place of it."""
        y, x = geometry.box_axes(rules, rois, r, setting)
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        for _ in range(turns):
            flat, value = where[at], due[at]
            if flat >= 0:
                ky, kx = geometry.unflat_sample(flat, grid_y, grid_x)
                on_y = geometry.sample(rules, y, i, ky, grid_y.count)
                on_x = geometry.sample(rules, x, j, kx, grid_x.count)
                put_sample(on_y, on_x, value, tile, at, where, due)
            else:
                for corner in range(1, 4):
                    where[at + np.uint64(corner * step)] = -1
            at += np.uint64(lanes)

    @device
    def take(inputs, r, i, j, is_there, tile, setting, channels, across, where, due):
        """Write where the maxima of a bin are in the tile, if it is there, and what is due.

        All loads come before the first store, so that the memory is waited for once.
        """
        heads, argmax, rois, _ = inputs
        spots = cuda.local.array(turns, numba.int32)
        values = cuda.local.array(turns, shared)
        b, lane = np.uint32(cuda.threadIdx.x) % bins, np.uint32(cuda.threadIdx.x) // bins
        area, last = setting.pooled_h * setting.pooled_w, smaller(slab, channels - tile.first_channel) - 1
        nearest = smaller(lane, last)  # channels that there are not are read from others, and not stored
        start = (r * channels + tile.first_channel + nearest) * area + i * setting.pooled_w + j
        most = np.uint32((last - nearest) * area)
        for turn in range(turns):
            ahead = np.uint32(turn * lanes * area)
            at = np.uint64(start) + np.uint64(ahead if ahead < most else most)
            spots[turn], values[turn] = argmax[at], read(heads[at])
        first = at = np.uint64(b * (corners * step) + lane)
        for turn in range(turns):
            spot = spots[turn] if is_there else np.int32(-1)
            where[at] = place_of_pixel(spot, tile, across) if of_pixels else spot
            due[at] = values[turn]
            at += np.uint64(lanes)
        if not of_pixels:
            put_samples(rois, r, i, j, tile, setting, first, where, due)

    @device
    def add_entries(where, due, number, sums):
        """Add entries, one after the other; a thread has a channel and a part of the tile."""
        places = cuda.local.array(QUAD, numba.int32)
        values = cuda.local.array(QUAD, shared)
        thread = np.uint32(cuda.threadIdx.x)
        channel, first = thread % slab, np.int32(thread // slab * part)
        at = np.uint64(channel)
        for _ in range(np.int32(0), np.int32(number), np.int32(QUAD)):
            for k in range(QUAD):
                places[k], values[k] = where[at + np.uint64(k * step)], due[at + np.uint64(k * step)]
            for k in range(QUAD):
                if places[k] >= first and places[k] < first + part:
                    sums[np.uint64(places[k] + channel)] += values[k]
            at += np.uint64(QUAD * step)

    @device
    def add_rois(inputs, lists, found, number, tile, setting, groups, channels, across, sums):
        where = cuda.shared.array(entries_size, numba.int32)
        due = cuda.shared.array(entries_size, shared)
        boxes = cuda.shared.array(boxes_size, numba.int32)
        running = cuda.shared.array(threads, numba.int32)
        thread = cuda.threadIdx.x
        for begin in range(0, number, threads):
            is_there = begin + thread < number
            r = lists.order[np.uint64(found[np.uint64(begin + thread if is_there else 0)])]
            list_bins(inputs[3], r, is_there, tile, setting, groups, boxes, running)
            total, box = running[threads - 1], np.int32(0)
            for first in range(np.int32(0), total, np.int32(bins)):
                k = np.int32(first + np.uint32(thread) % bins)
                box, i, j = bin_at(boxes, running, box, k if k < total else np.int32(total - 1))
                r = boxes[np.uint64(QUAD * box)]
                take(inputs, r, i, j, k < total, tile, setting, channels, across, where, due)
                cuda.syncthreads()
                add_entries(where, due, smaller(bins, total - first) * corners, sums)
                cuda.syncthreads()
            cuda.syncthreads()

    @device
    def store(sums, tile, setting, groups, channels, grad):
        """Write the tile: neighbouring threads have neighbouring pixels."""
        own, every = np.int32(smaller(slab, channels - tile.first_channel)), groups[0] * groups[1]
        channel = geometry.channel_of(tile.first_channel, tile.group_y, tile.group_x, groups[0], groups[1])
        channel += tile.n * channels * every
        for k in range(cuda.threadIdx.x, pixels, threads):
            row, column = np.uint32(k) // side, np.uint32(k) % side
            y, x = tile.top + row, tile.left + column
            if y < setting.height and x < setting.width:
                at = np.uint64((channel * setting.height + y) * setting.width + x)
                place = np.uint64((column * side + row) * step)
                for c in range(np.int32(0), own):
                    value = sums[place + np.uint64(c)]
                    if accumulate:
                        value += read(grad[at])
                    grad[at] = write(value)
                    at += np.uint64(every * setting.height * setting.width)

    @kernel()
    def max_backward(heads, argmax, rois, spans, lists, setting, across, groups, items, channels, grad):
        running = cuda.shared.array(threads, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        sums = cuda.shared.array(sums_size, shared)
        groups = (1, 1) if one_group else groups
        inputs = heads, argmax, rois, spans
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            tile = place_of(item, channels, groups, setting)
            for k in range(cuda.threadIdx.x, sums_size, threads):
                sums[np.uint64(k)] = 0
            listed = lists, tile.group_y * groups[1] + tile.group_x, groups[0] * groups[1]
            stop = lists.image_at[tile.n + 1]
            for first in range(lists.image_at[tile.n], stop, found_size):
                last = smaller(first + found_size, stop)
                select(listed, first, last, tile.top, tile.left, running, found)
                number = running[threads - 1]
                add_rois(inputs, lists, found, number, tile, setting, groups, channels, across, sums)
                cuda.syncthreads()
            cuda.syncthreads()
            store(sums, tile, setting, groups, channels, grad)
            cuda.syncthreads()

    return max_backward


def backward(grad_out, argmax, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    count, channels, pooled_h, pooled_w = grad_out.shape
    width, slab, threads = grad_data.shape[3], sizes.max_channels, sizes.max_channels * sizes.max_parts
    if width >= 1 << 26 or threads * pooled_h * pooled_w >= 1 << 31:  # the kernel counts in 32 bits
        raise DeviceError(
            f"gpu: the gradient of maxima of {pooled_h} x {pooled_w} bins, of a map {width} wide"
        )
    groups = geometry.channel_groups(how, pooled_h, pooled_w)
    rois, setting = boxes_and_setting(how, rois, name, grad_data, grad_out)
    bins = count * (pooled_h + pooled_w)
    spans = empty((bins, 2), np.int32, device_of(grad_data))
    tiles.launch_each(spans_kernel(how.rules), bins, rois, setting, spans)
    lists = tiles.lists_of_bins(rois, setting, groups, spans)
    square = sizes._replace(tile_h=sizes.max_tile, tile_w=sizes.max_tile)
    items = tiles.items_of(setting, channels, groups, slab, square)
    # ``n // width`` is ``n * inverse >> shift`` for the pixels of eight rows.
    shift = 29 + width.bit_length()
    across = np.int32(width), np.int32(-(-(1 << shift) // width)), np.int32(shift)
    with flat_output(grad_data) as target:
        gather = backward_kernel(how.rules, name, bool(accumulate), sizes)
        inputs = contiguous(grad_out).reshape(-1), contiguous(argmax).reshape(-1), rois, spans, lists
        inputs += setting, across, groups, items, channels
        launch(gather, items, threads, *inputs, target)
