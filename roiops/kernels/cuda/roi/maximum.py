"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and their gradient.

Forward, a thread takes a bin and four channels (see :mod:`lanes`). ``argmax`` is, for pixels, the index in
the channel's plane; for samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient.
Backward, a block takes a tile of the map and some channels (see :mod:`tiles`): its threads note where each
bin's maximum is, then every pixel takes what is due to it.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.lanes import THREAD_LANES, lanes_for, layout_of, quads_of
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.cuda.roi.average import rois_of, setting_of
from roiops.kernels.cuda.roi.tiles import axes, bin_pixels, quads_up_to, smaller
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
    quad_at,
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
        where = cuda.local.array(THREAD_LANES, numba.int64)
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


class _Spans(NamedTuple):
    """The pixels of some bins on either axis."""

    y_low: object
    y_high: object
    x_low: object
    x_high: object


class _Noted(NamedTuple):
    """Where maxima are: the first of two by two pixels, and the weights of both on either axis."""

    head: object  # what is due to them
    y_at: object
    x_at: object
    y_near: object
    y_far: object
    x_near: object
    x_far: object


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    of_pixels = rules.samples == PIXELS
    tile_h, tile_w, slab, bins = sizes.tile_h, sizes.tile_w, sizes.max_channels, sizes.bins
    threads = sizes.pixels
    places = slab * bins * bins
    step = quads_up_to(slab)  # from the channels of a bin to those of the next: they are loaded in quads
    entries = step * bins * bins

    @device
    def corner_and_weights(axis, i, k, count):
        """The first of two neighbouring pixels that a sample reads, and the weights of both."""
        _, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
        # Where the near pixel has no weight it may be any; the far one is the one after it.
        return (pixel1 - 1 if weight0 == 0 else pixel0), weight0, weight1

    @device
    def note(flat, y, i, x, j, entry, noted):
        """Note the pixels, two by two from a corner on, and the weights of one maximum."""
        if of_pixels:
            noted.y_at[entry], noted.x_at[entry] = flat // x.extent, flat % x.extent
            noted.y_near[entry], noted.y_far[entry] = 1, 0
            noted.x_near[entry], noted.x_far[entry] = 1, 0
            return
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        ky, kx = geometry.unflat_sample(flat, grid_y, grid_x)
        noted.y_at[entry], noted.y_near[entry], noted.y_far[entry] = corner_and_weights(
            y, i, ky, grid_y.count
        )
        noted.x_at[entry], noted.x_near[entry], noted.x_far[entry] = corner_and_weights(
            x, j, kx, grid_x.count
        )

    @device
    def spans(axis, first, number, low, high):
        """The pixels that each of some bins of an axis may have its maximum in."""
        for k in range(cuda.threadIdx.x, number, threads):
            low[k], high[k] = bin_pixels(rules, axis, first + k)

    @device
    def touch(span, a, b, tile):
        """Whether a bin may have its maximum in the tile."""
        return (
            span.y_low[a] < tile.top + tile_h
            and span.y_high[a] > tile.top
            and span.x_low[b] < tile.left + tile_w
            and span.x_high[b] > tile.left
        )

    @device
    def note_bins(heads, argmax, r, tile, setting, channels, bin_y, bin_x, span, noted):
        """Note the maxima of some bins of a ROI that may be in the tile."""
        y, i, tall = bin_y
        x, j, wide = bin_x
        # All places that there may be, so that the divisions are by constants.
        for k in range(cuda.threadIdx.x, places, threads):
            c, a, b = k // (bins * bins), k // bins % bins, k % bins
            if a >= tall or b >= wide:
                continue
            entry = (a * bins + b) * step + c
            noted.head[entry] = 0
            if tile.first_channel + c < channels and touch(span, a, b, tile):
                at = (r * channels + tile.first_channel + c) * (setting.pooled_h * setting.pooled_w)
                at = np.uint64(at + (i + a) * setting.pooled_w + j + b)
                if argmax[at] >= 0:
                    noted.head[entry] = read(heads[at])
                    note(argmax[at], y, i + a, x, j + b, entry, noted)

    @device
    def add_bin(noted, entry, row, column, total):
        """Add what the maxima of a bin in all channels give to a pixel."""
        for first in range(0, slab, QUAD):
            due = quad_at(noted.head, entry + first)
            rows, columns = quad_at(noted.y_at, entry + first), quad_at(noted.x_at, entry + first)
            for c in range(smaller(QUAD, slab - first)):
                dy, dx, at = row - rows[c], column - columns[c], entry + first + c
                if due[c] != 0 and dy >= 0 and dy <= 1 and dx >= 0 and dx <= 1:
                    weight = noted.y_far[at] if dy else noted.y_near[at]
                    weight *= noted.x_far[at] if dx else noted.x_near[at]
                    if weight != 0:
                        total[first + c] += weight * due[c]

    @device
    def add_bins(noted, span, tall, wide, row, column, total):
        for a in range(tall):
            if row < span.y_low[a] or row >= span.y_high[a]:
                continue
            for b in range(wide):
                if column >= span.x_low[b] and column < span.x_high[b]:
                    add_bin(noted, (a * bins + b) * step, row, column, total)

    @device
    def add_roi(inputs, r, tile, setting, groups, channels, total):
        heads, argmax, rois = inputs
        y_low = cuda.shared.array(bins, numba.int32)
        y_high = cuda.shared.array(bins, numba.int32)
        x_low = cuda.shared.array(bins, numba.int32)
        x_high = cuda.shared.array(bins, numba.int32)
        head = cuda.shared.array(entries, shared, alignment=16)  # see ``quad_at``
        y_at = cuda.shared.array(entries, numba.int32, alignment=16)
        x_at = cuda.shared.array(entries, numba.int32, alignment=16)
        y_near = cuda.shared.array(entries, shared)
        y_far = cuda.shared.array(entries, shared)
        x_near = cuda.shared.array(entries, shared)
        x_far = cuda.shared.array(entries, shared)
        span = _Spans(y_low, y_high, x_low, x_high)
        noted = _Noted(head, y_at, x_at, y_near, y_far, x_near, x_far)
        thread = cuda.threadIdx.x
        row, column = tile.top + thread // tile_w, tile.left + thread % tile_w
        first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
        first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
        y, x = axes(rules, rois, r, setting)
        for i in range(first_i, stop_i, bins):
            for j in range(first_j, stop_j, bins):
                tall, wide = smaller(bins, stop_i - i), smaller(bins, stop_j - j)
                spans(y, i, tall, y_low, y_high)
                spans(x, j, wide, x_low, x_high)
                cuda.syncthreads()
                note_bins(heads, argmax, r, tile, setting, channels, (y, i, tall), (x, j, wide), span, noted)
                cuda.syncthreads()
                add_bins(noted, span, tall, wide, row, column, total)
                cuda.syncthreads()

    gather = tiles.gathering(name, accumulate, sizes, slab, add_roi)

    @kernel(real)
    def max_backward(heads, argmax, rois, lists, setting, groups, items, channels, grad):
        gather((heads, argmax, rois), lists, setting, groups, items, channels, grad)

    return max_backward


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    channels = grad_out.shape[1]
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    rois, setting = rois_of(rois, name), setting_of(rules, scale, ratio, name, grad_data, grad_out)
    lists = tiles.build_lists(rules, rois, setting, device_of(grad_data), sizes)
    items = tiles.items_of(setting, channels, groups, sizes.max_channels, sizes)
    with flat_output(grad_data) as target:
        gather = backward_kernel(rules, name, bool(accumulate), sizes)
        inputs = contiguous(grad_out).reshape(-1), contiguous(argmax).reshape(-1), rois, lists
        launch(gather, items, sizes.pixels, *inputs, setting, groups, items, channels, target)
