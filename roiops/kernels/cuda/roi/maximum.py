"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and their gradient.

Forward, a thread takes a bin and four channels (see :mod:`lanes`). ``argmax`` is, for pixels, the index in
the channel's plane; for samples, the place in the bin's grid, row-major; -1 where nothing gets a gradient.
Backward, a block takes a tile of the map and some channels (see :mod:`tiles`): its threads note where each
bin's maximum is, then every pixel takes what is due to it.
"""

import functools

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.lanes import LANES, lanes_for, layout_of, quads_of
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.cuda.roi.average import pair, rois_of, scale_of
from roiops.kernels.cuda.roi.tiles import bin_pixels, frames, place_of, quads_up_to, smaller
from roiops.kernels.cuda.runtime import (
    QUAD,
    adopt,
    contiguous,
    cuda,
    device,
    device_of,
    empty,
    kernel,
    launch,
    quad_at,
    written,
)

__all__ = ["backward", "forward"]


@functools.cache
def forward_kernel(rules, name, layout, keep_argmax):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, load, _, add_sample, store, channel_of = lanes_for(name, layout)
    of_pixels = rules.samples == geometry.PIXELS
    invalid_competes = rules.reduction == geometry.MAX_INVALID_IS_ZERO

    @device
    def max_of_pixels(data, base, sy, sx, start_y, length_y, start_x, length_x, height, width, pooled_h,
                      pooled_w, i, j, lowest, best, where):  # fmt: skip
        top, bottom = geometry.bin_span(rules, start_y, length_y, pooled_h, i, height)
        left, right = geometry.bin_span(rules, start_x, length_x, pooled_w, j, width)
        if bottom > top and right > left:
            for lane in range(LANES):
                best[lane] = lowest
        for y in range(top, bottom):
            for x in range(left, right):
                values = load(data, base, y * sy + x * sx)
                for lane in range(LANES):
                    if values[lane] > best[lane]:
                        best[lane], where[lane] = values[lane], y * width + x

    @device
    def max_of_samples(data, base, sy, sx, start_y, length_y, start_x, length_x, ratio, height, width,
                       pooled_h, pooled_w, i, j, lowest, value, best, where):  # fmt: skip
        still = real(0)
        first_y, stop_y, grid_y = geometry.bin_grid(
            rules, start_y, length_y, pooled_h, i, ratio[0], height, still
        )
        first_x, stop_x, grid_x = geometry.bin_grid(
            rules, start_x, length_x, pooled_w, j, ratio[1], width, still
        )
        # One more at either end stands for the samples there that are not visited: invalid, and all alike.
        for ky in range(first_y - 1, stop_y + 1):
            if ky < 0 or ky >= grid_y:
                continue
            p = geometry.position(rules, start_y, length_y, pooled_h, i, ky, grid_y, height, still)
            valid_y, y0, wy0, y1, wy1 = geometry.taps(rules, p, height)
            valid_y = valid_y and ky >= first_y and ky < stop_y
            for kx in range(first_x - 1, stop_x + 1):
                if kx < 0 or kx >= grid_x:
                    continue
                p = geometry.position(rules, start_x, length_x, pooled_w, j, kx, grid_x, width, still)
                valid, x0, wx0, x1, wx1 = geometry.taps(rules, p, width)
                valid = valid_y and valid and kx >= first_x and kx < stop_x
                if not valid and not invalid_competes:
                    continue
                flat = -1
                if valid:
                    flat = geometry.flat_sample(ky, kx, first_y, first_x, grid_y, grid_x, stop_x - first_x)
                for lane in range(LANES):
                    value[lane] = 0
                if valid:
                    add_sample(data, base, sy, sx, y0, wy0, y1, wy1, x0, wx0, x1, wx1, value)
                for lane in range(LANES):
                    if where[lane] == -2:  # the first sample: there is something to pool
                        best[lane], where[lane] = lowest, -1
                    if value[lane] > best[lane]:
                        best[lane], where[lane] = value[lane], flat

    @kernel(real)
    def max_forward(data, strides, images, height, width, rois, scale, ratio, groups_h, groups_w, channels,
                    pooled_h, pooled_w, lowest, out, argmax):  # fmt: skip
        base = cuda.local.array(LANES, numba.int64)
        value = cuda.local.array(LANES, shared)
        best = cuda.local.array(LANES, shared)
        where = cuda.local.array(LANES, numba.int64)
        area, quads = pooled_h * pooled_w, (channels + LANES - 1) // LANES
        for unit in range(cuda.grid(1), rois.shape[0] * area * quads, cuda.gridsize(1)):
            r = unit // (area * quads)
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, images)
            group_y = geometry.group_of(i, pooled_h, groups_h)
            group_x = geometry.group_of(j, pooled_w, groups_w)
            begin(strides, n, 0, quad, quads, channels, group_y, group_x, groups_h, groups_w, base, best)
            for lane in range(LANES):
                best[lane] = real(rules.empty) if n >= 0 else real(0)
                where[lane] = -1 if of_pixels or n < 0 else -2
            if n >= 0:
                start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
                if of_pixels:
                    max_of_pixels(data, base, strides[2], strides[3], start_y, length_y, start_x, length_x,
                                  height, width, pooled_h, pooled_w, i, j, lowest, best, where)  # fmt: skip
                else:
                    max_of_samples(data, base, strides[2], strides[3], start_y, length_y, start_x, length_x,
                                   ratio, height, width, pooled_h, pooled_w, i, j, lowest, value, best,
                                   where)  # fmt: skip
            store(best, out, r * channels, quad, quads, channels, area, spot)
            if keep_argmax:
                for lane in range(LANES):
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
    groups_h, groups_w = geometry.channel_groups(rules, groups, *out.shape[2:])
    count, channels, pooled_h, pooled_w = out.shape
    images, _, height, width = data.shape
    elements, strides = adopt(data)
    units = count * pooled_h * pooled_w * quads_of(channels)
    layout = layout_of(elements, strides, channels, groups_h * groups_w)
    keep = argmax is not None
    argmax = argmax if keep else empty((0,), np.int32, device_of(data))
    with written(out) as target, written(argmax) as places:
        launch(
            forward_kernel(rules, name, layout, keep),
            -(-units // sizes.threads), sizes.threads,
            elements, strides, images, height, width, rois_of(rois, name), scale_of(rules, scale, name),
            pair(ratio), groups_h, groups_w, channels, pooled_h, pooled_w, computing(name).real(lowest),
            target, places,
        )  # fmt: skip


# -- gradient --------------------------------------------------------------------------------------------


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    store = tiles.storing(name, accumulate, sizes.max_channels)
    of_pixels = rules.samples == geometry.PIXELS
    tile_h, tile_w, slab, bins, each = sizes.tile_h, sizes.tile_w, sizes.max_channels, sizes.bins, sizes.each
    threads = sizes.pixels
    running_size, found_size, places = threads, threads * each, slab * bins * bins
    step = quads_up_to(slab)  # from the channels of a bin to those of the next: they are loaded in quads
    entries = step * bins * bins

    @device
    def note(flat, start_y, length_y, start_x, length_x, ratio, height, width, pooled_h, pooled_w, i, j, k,
             y_at, x_at, y_near, y_far, x_near, x_far):  # fmt: skip
        """Note the pixels, two by two from ``(y_at[k], x_at[k])`` on, and the weights of one maximum."""
        if of_pixels:
            y_at[k], x_at[k] = flat // width, flat % width
            y_near[k], y_far[k], x_near[k], x_far[k] = 1, 0, 1, 0
            return
        still = real(0)
        first_y, _stop, grid_y = geometry.bin_grid(
            rules, start_y, length_y, pooled_h, i, ratio[0], height, still
        )
        first_x, stop_x, grid_x = geometry.bin_grid(
            rules, start_x, length_x, pooled_w, j, ratio[1], width, still
        )
        ky, kx = geometry.unflat_sample(flat, first_y, first_x, grid_y, grid_x, stop_x - first_x)
        p = geometry.position(rules, start_y, length_y, pooled_h, i, ky, grid_y, height, still)
        _valid, y0, wy0, y1, wy1 = geometry.taps(rules, p, height)
        p = geometry.position(rules, start_x, length_x, pooled_w, j, kx, grid_x, width, still)
        _valid, x0, wx0, x1, wx1 = geometry.taps(rules, p, width)
        # Where the near pixel has no weight it may be any; the far one is the one after it.
        y_at[k], x_at[k] = (y1 - 1 if wy0 == 0 else y0), (x1 - 1 if wx0 == 0 else x0)
        y_near[k], y_far[k], x_near[k], x_far[k] = wy0, wy1, wx0, wx1

    @device
    def spans(start, length, count, ratio, extent, first, number, thread, low, high):
        """The pixels that each of some bins of an axis may have its maximum in."""
        still = real(0)
        for k in range(thread, number, threads):
            low[k], high[k] = bin_pixels(rules, start, length, count, first + k, ratio, extent, still)

    @kernel(real)
    def max_backward(heads, argmax, rois, order, image_at, boxes, scale, ratio, items, groups_h, groups_w,
                     height, width, channels, pooled_h, pooled_w, grad):  # fmt: skip
        running = cuda.shared.array(running_size, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
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
        total = cuda.local.array(slab, shared)
        thread = cuda.threadIdx.x
        area = pooled_h * pooled_w
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            n, top, left, group_y, group_x, first_channel = place_of(
                item, channels, slab, groups_h, groups_w, height, width, tile_h, tile_w
            )
            y, x = top + thread // tile_w, left + thread % tile_w
            first_i, stop_i = geometry.bins_of(group_y, pooled_h, groups_h)
            first_j, stop_j = geometry.bins_of(group_x, pooled_w, groups_w)
            for c in range(slab):
                total[c] = 0
            for some in range(image_at[n], image_at[n + 1], found_size):
                some_stop = smaller(some + found_size, image_at[n + 1])
                tiles.select(boxes, order, some, some_stop, top, left, tile_h, tile_w, each,
                             running, found, thread, threads)  # fmt: skip
                for place in range(running[threads - 1]):
                    r = found[place]
                    start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
                    for i in range(first_i, stop_i, bins):
                        for j in range(first_j, stop_j, bins):
                            tall, wide = smaller(bins, stop_i - i), smaller(bins, stop_j - j)
                            spans(
                                start_y, length_y, pooled_h, ratio[0], height, i, tall, thread, y_low, y_high
                            )
                            spans(
                                start_x, length_x, pooled_w, ratio[1], width, j, wide, thread, x_low, x_high
                            )
                            cuda.syncthreads()
                            # All places that there may be, so that the divisions are by constants.
                            for k in range(thread, places, threads):
                                c, a, b = k // (bins * bins), k // bins % bins, k % bins
                                if a >= tall or b >= wide:
                                    continue
                                entry = (a * bins + b) * step + c
                                head[entry] = 0
                                if (
                                    first_channel + c < channels
                                    and y_low[a] < top + tile_h
                                    and y_high[a] > top
                                    and x_low[b] < left + tile_w
                                    and x_high[b] > left
                                ):
                                    at = (r * channels + first_channel + c) * area
                                    at = np.uint64(at + (i + a) * pooled_w + j + b)
                                    if argmax[at] >= 0:
                                        head[entry] = read(heads[at])
                                        note(argmax[at], start_y, length_y, start_x, length_x, ratio, height,
                                             width, pooled_h, pooled_w, i + a, j + b, entry,
                                             y_at, x_at, y_near, y_far, x_near, x_far)  # fmt: skip
                            cuda.syncthreads()
                            for a in range(tall):
                                if y < y_low[a] or y >= y_high[a]:
                                    continue
                                for b in range(wide):
                                    if x < x_low[b] or x >= x_high[b]:
                                        continue
                                    for first in range(0, slab, QUAD):
                                        entry = (a * bins + b) * step + first
                                        due = quad_at(head, entry)
                                        rows, columns = quad_at(y_at, entry), quad_at(x_at, entry)
                                        for c in range(smaller(QUAD, slab - first)):
                                            dy, dx = y - rows[c], x - columns[c]
                                            if due[c] != 0 and dy >= 0 and dy <= 1 and dx >= 0 and dx <= 1:
                                                weight = y_far[entry + c] if dy else y_near[entry + c]
                                                weight *= x_far[entry + c] if dx else x_near[entry + c]
                                                if weight != 0:
                                                    total[first + c] += weight * due[c]
                            cuda.syncthreads()
                cuda.syncthreads()
            store(total, n, y, x, group_y, group_x, first_channel, channels,
                  groups_h, groups_w, height, width, grad)  # fmt: skip

    return max_backward


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    _, channels, pooled_h, pooled_w = grad_out.shape
    _, _, height, width = grad_data.shape
    groups_h, groups_w = geometry.channel_groups(rules, groups, pooled_h, pooled_w)
    rois, scale, ratio = rois_of(rois, name), scale_of(rules, scale, name), pair(ratio)
    lists = tiles.build_lists(
        rules, rois, scale, ratio, grad_data.shape, (pooled_h, pooled_w), device_of(grad_data), sizes
    )
    items = tiles.items_of(grad_data.shape, channels, (groups_h, groups_w), sizes.max_channels, sizes)
    with written(grad_data) as target:
        launch(
            backward_kernel(rules, name, bool(accumulate), sizes), items, sizes.pixels,
            contiguous(grad_out).reshape(-1), contiguous(argmax).reshape(-1), rois,
            lists.order, lists.image_at, lists.pixels, scale, ratio, items,
            groups_h, groups_w, height, width, channels, pooled_h, pooled_w, target,
        )  # fmt: skip
