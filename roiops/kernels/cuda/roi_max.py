"""Maxima over the bins of ROIs, of pixels or of bilinear samples, and their gradient.

Forward, a thread takes a bin and four channels, so that the places it looks at are worked out once for the
four. ``argmax`` is, for pixels, the index in the channel's plane; for samples, the place in the bin's grid,
row-major; -1 where nothing gets a gradient. Backward, a block takes a tile of the map and some channels (see
:mod:`tiles`): its threads note where each bin's maximum is, then every pixel takes what is due to it.
"""

import functools

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda import tiles
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi_average import pair, rois_of, scale_of
from roiops.kernels.cuda.runtime import (
    adopt,
    contiguous,
    cuda,
    device,
    device_of,
    empty,
    kernel,
    launch,
    written,
)
from roiops.kernels.cuda.tiles import bin_pixels, smaller

__all__ = ["backward", "forward"]

# Channels that a thread looks at together.
_LANES = 4


@functools.cache
def forward_kernel(rules, name, channels_last, keep_argmax):
    real, shared, read, write = computing(name)
    of_pixels = rules.samples == geometry.PIXELS
    invalid_competes = rules.reduction == geometry.MAX_INVALID_IS_ZERO

    @device
    def max_of_pixels(data, base, sy, sx, start_y, length_y, start_x, length_x, height, width, pooled_h,
                      pooled_w, i, j, lowest, best, where):  # fmt: skip
        top, bottom = geometry.bin_span(rules, start_y, length_y, pooled_h, i, height)
        left, right = geometry.bin_span(rules, start_x, length_x, pooled_w, j, width)
        if bottom > top and right > left:
            for k in range(_LANES):
                best[k] = lowest
        for y in range(top, bottom):
            for x in range(left, right):
                for k in range(_LANES):
                    value = read(data[np.uint64(base[k] + y * sy + x * sx)])
                    if value > best[k]:
                        best[k], where[k] = value, y * width + x

    @device
    def max_of_samples(data, base, sy, sx, start_y, length_y, start_x, length_x, ratio, height, width,
                       pooled_h, pooled_w, i, j, lowest, best, where):  # fmt: skip
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
                for k in range(_LANES):
                    value = real(0)
                    if valid and wy0 != 0 and wx0 != 0:
                        value += wy0 * wx0 * read(data[np.uint64(base[k] + y0 * sy + x0 * sx)])
                    if valid and wy0 != 0 and wx1 != 0:
                        value += wy0 * wx1 * read(data[np.uint64(base[k] + y0 * sy + x1 * sx)])
                    if valid and wy1 != 0 and wx0 != 0:
                        value += wy1 * wx0 * read(data[np.uint64(base[k] + y1 * sy + x0 * sx)])
                    if valid and wy1 != 0 and wx1 != 0:
                        value += wy1 * wx1 * read(data[np.uint64(base[k] + y1 * sy + x1 * sx)])
                    if where[k] == -2:  # the first sample: there is something to pool
                        best[k], where[k] = lowest, -1
                    if value > best[k]:
                        best[k], where[k] = value, flat

    @kernel(real)
    def max_forward(data, strides, images, height, width, rois, scale, ratio, groups_h, groups_w, channels,
                    pooled_h, pooled_w, lowest, out, argmax):  # fmt: skip
        base = cuda.local.array(_LANES, numba.int64)
        best = cuda.local.array(_LANES, shared)
        where = cuda.local.array(_LANES, numba.int64)
        area, quads = pooled_h * pooled_w, (channels + _LANES - 1) // _LANES
        for unit in range(cuda.grid(1), rois.shape[0] * area * quads, cuda.gridsize(1)):
            # Neighbouring threads read neighbouring elements: bins of one channel, or channels of a bin.
            r, rest = unit // (area * quads), unit % (area * quads)
            spot = rest // quads if channels_last else rest % area
            quad = rest % quads if channels_last else rest // area
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, images)
            group_y = geometry.group_of(i, pooled_h, groups_h)
            group_x = geometry.group_of(j, pooled_w, groups_w)
            for k in range(_LANES):
                c = quad + k * quads
                c = c if c < channels else quad  # what is left over is read but not written
                channel = geometry.channel_of(c, group_y, group_x, groups_h, groups_w)
                base[k] = n * strides[0] + channel * strides[1]
                best[k], where[k] = real(rules.empty), (-1 if of_pixels else -2)
            if n >= 0:
                start_y, length_y = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
                start_x, length_x = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
                if of_pixels:
                    max_of_pixels(data, base, strides[2], strides[3], start_y, length_y, start_x, length_x,
                                  height, width, pooled_h, pooled_w, i, j, lowest, best, where)  # fmt: skip
                else:
                    max_of_samples(data, base, strides[2], strides[3], start_y, length_y, start_x, length_x,
                                   ratio, height, width, pooled_h, pooled_w, i, j, lowest, best,
                                   where)  # fmt: skip
            for k in range(_LANES):
                c = quad + k * quads
                if c < channels:
                    at = np.uint64((r * channels + c) * area + spot)
                    out[at] = write(best[k] if n >= 0 else real(0))
                    if keep_argmax:
                        argmax[at] = where[k] if n >= 0 and where[k] >= 0 else -1

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
    units = count * pooled_h * pooled_w * -(-channels // _LANES)
    keep = argmax is not None
    argmax = argmax if keep else empty((0,), np.int32, device_of(data))
    with written(out) as target, written(argmax) as places:
        launch(
            forward_kernel(rules, name, strides[1] < strides[3], keep),
            -(-units // sizes.threads), sizes.threads,
            elements, strides, images, height, width, rois_of(rois, name), scale_of(rules, scale, name),
            pair(ratio), groups_h, groups_w, channels, pooled_h, pooled_w, computing(name).real(lowest),
            target, places,
        )  # fmt: skip


# -- gradient --------------------------------------------------------------------------------------------


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    real, shared, read, write = computing(name)
    of_pixels = rules.samples == geometry.PIXELS
    tile_h, tile_w, slab, bins, each = sizes.tile_h, sizes.tile_w, sizes.max_channels, sizes.bins, sizes.each
    threads = sizes.pixels
    running_size, found_size, entries = threads, threads * each, slab * bins * bins

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
    def max_backward(heads, argmax, rois, order, image_at, boxes, scale, ratio, groups_h, groups_w, images,
                     height, width, channels, pooled_h, pooled_w, grad):  # fmt: skip
        running = cuda.shared.array(running_size, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        y_low = cuda.shared.array(bins, numba.int32)
        y_high = cuda.shared.array(bins, numba.int32)
        x_low = cuda.shared.array(bins, numba.int32)
        x_high = cuda.shared.array(bins, numba.int32)
        head = cuda.shared.array(entries, shared)
        y_at = cuda.shared.array(entries, numba.int32)
        x_at = cuda.shared.array(entries, numba.int32)
        y_near = cuda.shared.array(entries, shared)
        y_far = cuda.shared.array(entries, shared)
        x_near = cuda.shared.array(entries, shared)
        x_far = cuda.shared.array(entries, shared)
        total = cuda.local.array(slab, shared)
        thread = cuda.threadIdx.x
        area = pooled_h * pooled_w
        down, across = (height + tile_h - 1) // tile_h, (width + tile_w - 1) // tile_w
        slabs = (channels + slab - 1) // slab
        for item in range(
            cuda.blockIdx.x, images * down * across * groups_h * groups_w * slabs, cuda.gridDim.x
        ):
            first_channel, rest = (item % slabs) * slab, item // slabs
            group_x, rest = rest % groups_w, rest // groups_w
            group_y, rest = rest % groups_h, rest // groups_h
            left, rest = (rest % across) * tile_w, rest // across
            top, n = (rest % down) * tile_h, rest // down
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
                    start_y, length_y = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
                    start_x, length_x = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
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
                            for k in range(thread, entries, threads):
                                c, a, b = k // (bins * bins), k // bins % bins, k % bins
                                if a >= tall or b >= wide:
                                    continue
                                entry = (a * bins + b) * slab + c
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
                                    for c in range(slab):
                                        entry = (a * bins + b) * slab + c
                                        if head[entry] == 0:
                                            continue
                                        dy, dx = y - y_at[entry], x - x_at[entry]
                                        if dy >= 0 and dy <= 1 and dx >= 0 and dx <= 1:
                                            weight = (y_far[entry] if dy else y_near[entry]) * (
                                                x_far[entry] if dx else x_near[entry]
                                            )
                                            if weight != 0:
                                                total[c] += weight * head[entry]
                            cuda.syncthreads()
                cuda.syncthreads()
            if y < height and x < width:
                for c in range(slab):
                    if first_channel + c < channels:
                        channel = geometry.channel_of(first_channel + c, group_y, group_x, groups_h, groups_w)
                        at = np.uint64(
                            ((n * channels * groups_h * groups_w + channel) * height + y) * width + x
                        )
                        value = total[c]
                        if accumulate:
                            value += read(grad[at])
                        grad[at] = write(value)

    return max_backward


def backward(grad_out, argmax, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    _, channels, pooled_h, pooled_w = grad_out.shape
    images, _, height, width = grad_data.shape
    groups_h, groups_w = geometry.channel_groups(rules, groups, pooled_h, pooled_w)
    rois, scale, ratio = rois_of(rois, name), scale_of(rules, scale, name), pair(ratio)
    lists = tiles.build_lists(
        rules, rois, scale, ratio, grad_data.shape, (pooled_h, pooled_w), device_of(grad_data), sizes
    )
    slabs = -(-channels // sizes.max_channels)
    items = images * tiles.tiles_of(height, width, sizes) * groups_h * groups_w * slabs
    with written(grad_data) as target:
        launch(
            backward_kernel(rules, name, bool(accumulate), sizes), items, sizes.pixels,
            contiguous(grad_out).reshape(-1), contiguous(argmax).reshape(-1), rois,
            lists.order, lists.image_at, lists.boxes, scale, ratio,
            groups_h, groups_w, images, height, width, channels, pooled_h, pooled_w, target,
        )  # fmt: skip
