"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and their gradient.

Forward, a thread takes a bin and four channels (see :mod:`lanes`). ``argmax`` is, for pixels, the index in
the channel's plane; for samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient.
Backward, a block owns a tile of the map for as many channels as it has threads, one each. For every ROI that
touches the tile it reads the maxima of the bins there, in order, and adds what is due to their pixels in
shared memory. So each sum is always the same to the last bit, without atomic additions.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import functools

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.lanes import THREAD_LANES, lanes_for, layout_of, quads_of
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.cuda.roi.average import rois_of, setting_of
from roiops.kernels.cuda.roi.tiles import axes, bin_pixels, smaller
from roiops.kernels.cuda.runtime import (
    QUAD,
    contiguous,
    cuda,
    device,
    device_of,
    empty,
    flat_output,
    flat_view,
    kernel,
    launch,
)
from roiops.kernels.rules import MAX_INVALID_IS_ZERO, PIXELS


@functools.cache
def forward_kernel(rules, name, layout, keep_argmax):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, load, _, add_sample, store, channel_of = lanes_for(name, layout)
    of_pixels = rules.samples == PIXELS
    invalid_competes = rules.reduction == MAX_INVALID_IS_ZERO

    @device
    def max_of_pixels(data, base, strides, bin_y, bin_x, lowest, best, where):
        y, i = bin_y
        x, j = bin_x
        top, bottom = geometry.bin_span(rules, y, i)
        left, right = geometry.bin_span(rules, x, j)
        if bottom > top and right > left:
            for lane in range(THREAD_LANES):
                best[lane] = lowest
        for row in range(top, bottom):
            for column in range(left, right):
                values = load(data, base, row * strides[2] + column * strides[3])
                for lane in range(THREAD_LANES):
                    if values[lane] > best[lane]:
                        best[lane], where[lane] = values[lane], row * x.extent + column

    @device
    def max_of_samples(data, base, strides, bin_y, bin_x, lowest, value, best, where):
        y, i = bin_y
        x, j = bin_x
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
                for lane in range(THREAD_LANES):
                    if where[lane] == -2:  # the first sample: there is something to pool
                        best[lane], where[lane] = lowest, -1
                    if value[lane] > best[lane]:
                        best[lane], where[lane] = value[lane], flat

    @kernel(real)
    def max_forward(data, strides, rois, setting, groups, channels, lowest, out, argmax):
        base = cuda.local.array(THREAD_LANES, numba.int64)
        value = cuda.local.array(THREAD_LANES, shared)
        best = cuda.local.array(THREAD_LANES, shared)
        where = cuda.local.array(THREAD_LANES, numba.int32)
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        area, quads = pooled_h * pooled_w, (channels + THREAD_LANES - 1) // THREAD_LANES
        for unit in range(cuda.grid(1), rois.shape[0] * area * quads, cuda.gridsize(1)):
            r = unit // (area * quads)
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, setting.images)
            group = geometry.group_of(i, pooled_h, groups[0]), geometry.group_of(j, pooled_w, groups[1])
            begin(strides, n, 0, quad, quads, channels, group, groups, base, best)
            for lane in range(THREAD_LANES):
                best[lane] = real(rules.empty) if n >= 0 else real(0)
                where[lane] = -1 if of_pixels or n < 0 else -2
            if n >= 0:
                y, x = axes(rules, rois, r, setting)
                if of_pixels:
                    max_of_pixels(data, base, strides, (y, i), (x, j), lowest, best, where)
                else:
                    max_of_samples(data, base, strides, (y, i), (x, j), lowest, value, best, where)
            store(best, out, r * channels, quad, quads, channels, area, spot)
            if keep_argmax:
                for lane in range(THREAD_LANES):
                    c = channel_of(quad, lane, quads)
                    if c < channels:
                        at = np.uint64((r * channels + c) * area + spot)
                        argmax[at] = where[lane] if where[lane] >= 0 else -1

    return max_forward


def forward(data, rois, scale, ratio, groups, rules, lowest, out, argmax=None):
    """Write the maxima to ``out``, and where they are to ``argmax`` (int32) if it is given."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    count, channels, pooled_h, pooled_w = out.shape
    elements, strides = flat_view(data)
    units = count * pooled_h * pooled_w * quads_of(channels)
    layout = layout_of(elements, strides, channels, groups[0] * groups[1])
    keep = argmax is not None
    argmax = argmax if keep else empty((0,), np.int32, device_of(data))
    with flat_output(out) as target, flat_output(argmax) as places:
        pool, blocks = forward_kernel(rules, name, layout, keep), -(-units // sizes.threads)
        setting, lowest = setting_of(rules, scale, ratio, name, data, out), computing(name).real(lowest)
        inputs = elements, strides, rois_of(rois, name), setting, groups
        launch(pool, blocks, sizes.threads, *inputs, channels, lowest, target, places)


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
                y, x = axes(rules, rois, r, setting)
                if i < setting.pooled_h:
                    low, high = bin_pixels(rules, y, i)
                else:
                    low, high = bin_pixels(rules, x, i - setting.pooled_h)
            spans[unit, 0], spans[unit, 1] = low, high

    return max_spans


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    _, shared, read, write = computing(name)
    of_pixels = rules.samples == PIXELS
    side, slab, words = sizes.max_tile, sizes.max_channels, sizes.words
    rows, bins = sizes.max_rows, sizes.max_bins
    threads, pixels = slab, side * side
    place_of = tiles.placing(slab, sizes._replace(tile_h=side, tile_w=side))
    # From the channels of a bin to those of the next: so a warp, which writes four channels of eight bins,
    # meets all banks of shared memory.
    step = slab + QUAD
    entries, places, taken = step * rows * bins, pixels * slab, rows * bins

    @device
    def select(lists, first, stop, tile, groups, masks):
        """Set the bits of the ROIs that touch the tile, of those of a list from ``first`` on."""
        thread = cuda.threadIdx.x
        group, every = tile.group_y * groups[1] + tile.group_x, groups[0] * groups[1]
        cuda.syncthreads()
        for word in range(thread, words, threads):
            masks[word] = 0
        cuda.syncthreads()
        for k in range(thread, smaller(stop - first, 32 * words), threads):
            box = lists.order[first + k] * every + group
            if tiles.touches(lists.pixels, box, tile.top, tile.left, side, side):
                cuda.atomic.or_(masks, k // 32, np.uint32(np.uint32(1) << np.uint32(k % 32)))
        cuda.syncthreads()

    @device
    def place_in(tile, row, column):
        """Where a pixel is in the tile, or -1."""
        row, column = row - tile.top, column - tile.left
        inside = row >= 0 and row < side and column >= 0 and column < side
        return row * side + column if inside else -1

    @device
    def take(inputs, r, i, tall, j, wide, tile, setting, channels, where, due):
        """Where the maxima of ``tall`` by ``wide`` bins from ``(i, j)`` on are in the tile, and what is due.

        All loads come before the first store, so that the memory is waited for once.
        """
        heads, argmax, _, _ = inputs
        spots = cuda.local.array(taken, numba.int32)
        values = cuda.local.array(taken, shared)
        area, width = setting.pooled_h * setting.pooled_w, np.uint32(setting.width)
        b, first_c = cuda.threadIdx.x % bins, cuda.threadIdx.x // bins
        own = smaller(slab, channels - tile.first_channel)
        start = (r * channels + tile.first_channel) * area + i * setting.pooled_w + j
        for turn in range(taken):
            c, a = first_c + turn % bins * (slab // bins), turn // bins
            is_there = c < own and a < tall and b < wide
            at = np.uint64(start + (c * area + a * setting.pooled_w + b if is_there else 0))
            spots[turn] = argmax[at] if is_there else -1
            values[turn] = read(heads[at])
        for turn in range(taken):
            c, a = first_c + turn % bins * (slab // bins), turn // bins
            spot = spots[turn]
            if of_pixels and spot >= 0:
                row = np.int64(np.uint32(spot) // width)
                spot = place_in(tile, row, spot - row * setting.width)
            entry = (a * bins + b) * step + c
            where[entry], due[entry] = spot, values[turn]

    @device
    def add_sample(flat, y, i, x, j, tile, due, sums):
        """Add what a sample is due to the pixels of the tile that it read."""
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        ky, kx = geometry.unflat_sample(flat, grid_y, grid_x)
        _, y0, wy0, y1, wy1 = geometry.sample(rules, y, i, ky, grid_y.count)
        _, x0, wx0, x1, wx1 = geometry.sample(rules, x, j, kx, grid_x.count)
        for corner in range(4):
            weight = (wy1 if corner >= 2 else wy0) * (wx1 if corner % 2 else wx0)
            if weight != 0:
                spot = place_in(tile, y1 if corner >= 2 else y0, x1 if corner % 2 else x0)
                if spot >= 0:
                    sums[spot * slab + cuda.threadIdx.x] += weight * due

    @device
    def add_bins(where, due, y, i, tall, x, j, wide, tile, sums):
        """Add bins, one after the other; a thread has a channel."""
        channel = cuda.threadIdx.x
        for k in range(tall * bins):
            a, b = k // bins, k % bins
            spot = where[k * step + channel] if b < wide else -1
            if spot >= 0 and of_pixels:
                sums[spot * slab + channel] += due[k * step + channel]
            elif spot >= 0:
                add_sample(spot, y, i + a, x, j + b, tile, due[k * step + channel], sums)

    @device
    def find_bins(spans, entry, first, stop, origin, edges, at):
        """See that ``edges[at]`` and ``edges[at + 1]`` enclose the bins that touch the tile on an axis."""
        for i in range(first + cuda.threadIdx.x, stop, threads):
            if spans[entry + i, 0] < origin + side and spans[entry + i, 1] > origin:
                cuda.atomic.min(edges, at, np.int32(i))
                cuda.atomic.max(edges, at + 1, np.int32(i + 1))

    @device
    def add_roi(inputs, r, tile, setting, groups, channels, sums):
        _, _, rois, spans = inputs
        edges = cuda.shared.array(4, numba.int32)
        where = cuda.shared.array(entries, numba.int32)
        due = cuda.shared.array(entries, shared)
        of_y = r * (setting.pooled_h + setting.pooled_w)
        first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
        first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            edges[0] = edges[2] = setting.pooled_h + setting.pooled_w
            edges[1] = edges[3] = 0
        cuda.syncthreads()
        find_bins(spans, of_y, first_i, stop_i, tile.top, edges, 0)
        find_bins(spans, of_y + setting.pooled_h, first_j, stop_j, tile.left, edges, 2)
        cuda.syncthreads()
        y, x = axes(rules, rois, r, setting)
        for i in range(edges[0], edges[1], rows):
            for j in range(edges[2], edges[3], bins):
                tall, wide = smaller(rows, edges[1] - i), smaller(bins, edges[3] - j)
                take(inputs, r, i, tall, j, wide, tile, setting, channels, where, due)
                cuda.syncthreads()
                add_bins(where, due, y, i, tall, x, j, wide, tile, sums)
                cuda.syncthreads()

    @device
    def add_some(inputs, order, at, mask, tile, setting, groups, channels, sums):
        for bit in range(32 if mask else 0):
            if (mask >> bit) & 1:
                add_roi(inputs, order[at + bit], tile, setting, groups, channels, sums)

    @device
    def store(sums, tile, setting, groups, channels, grad):
        """Write the tile: neighbouring threads have neighbouring pixels."""
        own = smaller(slab, channels - tile.first_channel)
        for row in range(smaller(side, setting.height - tile.top)):
            for k in range(cuda.threadIdx.x, own * side, threads):
                c, column = k // side, k % side
                if tile.left + column < setting.width:
                    channel = tile.first_channel + c
                    channel = geometry.channel_of(channel, tile.group_y, tile.group_x, groups[0], groups[1])
                    channel += tile.n * channels * groups[0] * groups[1]
                    at = (channel * setting.height + tile.top + row) * setting.width + tile.left + column
                    value = sums[(row * side + column) * slab + c]
                    if accumulate:
                        value += read(grad[np.uint64(at)])
                    grad[np.uint64(at)] = write(value)

    @kernel()  # a block is one warp: shared memory, not registers, says how many there are
    def max_backward(heads, argmax, rois, spans, lists, setting, groups, items, channels, grad):
        masks = cuda.shared.array(words, numba.uint32)
        sums = cuda.shared.array(places, shared)
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            tile = place_of(item, channels, groups, setting)
            for k in range(cuda.threadIdx.x, places, threads):
                sums[k] = 0
            stop = lists.image_at[tile.n + 1]
            for first in range(lists.image_at[tile.n], stop, 32 * words):
                select(lists, first, stop, tile, groups, masks)
                for word in range(words):
                    inputs, at = (heads, argmax, rois, spans), first + 32 * word
                    add_some(inputs, lists.order, at, masks[word], tile, setting, groups, channels, sums)
            cuda.syncthreads()
            store(sums, tile, setting, groups, channels, grad)
            cuda.syncthreads()

    return max_backward


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name, device_id = tiles.SIZES, kind_of(grad_data.dtype), device_of(grad_data)
    count, channels, pooled_h, pooled_w = grad_out.shape
    groups = geometry.channel_groups(rules, groups, pooled_h, pooled_w)
    rois, setting = rois_of(rois, name), setting_of(rules, scale, ratio, name, grad_data, grad_out)
    bins, threads = count * (pooled_h + pooled_w), sizes.max_channels
    spans = empty((bins, 2), np.int32, device_id)
    launch(spans_kernel(rules), -(-bins // sizes.threads), sizes.threads, rois, setting, spans)
    lists = tiles.lists_of_bins(rois, setting, groups, spans, device_id, sizes)
    items = tiles.items_of(
        setting, channels, groups, threads, sizes._replace(tile_h=sizes.max_tile, tile_w=sizes.max_tile)
    )
    with flat_output(grad_data) as target:
        gather = backward_kernel(rules, name, bool(accumulate), sizes)
        inputs = contiguous(grad_out).reshape(-1), contiguous(argmax).reshape(-1), rois, spans, lists
        launch(gather, items, threads, *inputs, setting, groups, items, channels, target)
