"""Means over the bins of rotated ROIs, and their gradient.

Nothing is separable here. Forward, a thread takes a bin and four channels (see :mod:`lanes`). Backward, a
block takes a tile of the map (see :mod:`tiles`), works out the samples of an ROI some at a time, and every
pixel looks for those that read it.
"""

import functools

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.lanes import LANES, lanes_for, layout_of, quads_of
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.cuda.roi.average import pair, rois_of, scale_of
from roiops.kernels.cuda.roi.tiles import place_of, smaller
from roiops.kernels.cuda.runtime import adopt, contiguous, cuda, device_of, launch, written
from roiops.kernels.jit import njit

__all__ = ["backward", "forward"]


@functools.cache
def forward_kernel(rules, name, layout):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, _, _, add_sample, store, _ = lanes_for(name, layout)

    @cuda.jit
    def rotated_forward(data, strides, images, height, width, rois, scale, ratio, channels, pooled_h,
                        pooled_w, out):  # fmt: skip
        base = cuda.local.array(LANES, numba.int64)
        total = cuda.local.array(LANES, shared)
        area, quads = pooled_h * pooled_w, (channels + LANES - 1) // LANES
        still = real(0)
        for unit in range(cuda.grid(1), rois.shape[0] * area * quads, cuda.gridsize(1)):
            r = unit // (area * quads)
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, images)
            begin(strides, n, 0, quad, quads, channels, 0, 0, 1, 1, base, total)
            if n >= 0:
                cosine, sine = geometry.turn(rois[r, 5])
                centre_x, start_x, length_x = geometry.rotated_frame(rois[r, 1], rois[r, 3], scale)
                centre_y, start_y, length_y = geometry.rotated_frame(rois[r, 2], rois[r, 4], scale)
                low_v, high_v, low_u, high_u = geometry.rotated_reach(
                    cosine, sine, centre_x, centre_y, height, width
                )
                first_v, stop_v, grid_v = geometry.rotated_grid(
                    start_y, length_y, pooled_h, i, ratio[0], low_v, high_v
                )
                first_u, stop_u, grid_u = geometry.rotated_grid(
                    start_x, length_x, pooled_w, j, ratio[1], low_u, high_u
                )
                for ky in range(first_v, stop_v):
                    v = geometry.position(rules, start_y, length_y, pooled_h, i, ky, grid_v, height, still)
                    for kx in range(first_u, stop_u):
                        u = geometry.position(rules, start_x, length_x, pooled_w, j, kx, grid_u, width, still)
                        y, x = geometry.rotated_position(u, v, cosine, sine, centre_x, centre_y)
                        valid_y, y0, wy0, y1, wy1 = geometry.taps(rules, y, height)
                        valid_x, x0, wx0, x1, wx1 = geometry.taps(rules, x, width)
                        if valid_y and valid_x:
                            add_sample(data, base, strides[2], strides[3], y0, wy0, y1, wy1, x0, wx0, x1, wx1,
                                       total)  # fmt: skip
                for lane in range(LANES):
                    total[lane] /= real(grid_v) * real(grid_u)
            store(total, out, r * channels, quad, quads, channels, area, spot)

    return rotated_forward


def forward(data, rois, scale, ratio, rules, out):
    """Write the means of all bins to ``out``."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    count, channels, pooled_h, pooled_w = out.shape
    images, _, height, width = data.shape
    elements, strides = adopt(data)
    units = count * pooled_h * pooled_w * quads_of(channels)
    layout = layout_of(elements, strides, channels)
    with written(out) as target:
        launch(
            forward_kernel(rules, name, layout), -(-units // sizes.threads), sizes.threads,
            elements, strides, images, height, width, rois_of(rois, name), scale_of(rules, scale, name),
            pair(ratio), channels, pooled_h, pooled_w, target,
        )  # fmt: skip


@njit
def _pixels(low, high, extent):
    """The pixels that positions from ``low`` to ``high`` may read, with one to spare for rounding."""
    limit = type(low)(extent + 2)
    low = -limit if low < -limit else (limit if low > limit else low)
    high = -limit if high < -limit else (limit if high > limit else high)
    first, stop = int(low) - 2, int(high) + 3
    return (first if first > 0 else 0), (stop if stop < extent else extent)


@functools.cache
def _boxes_kernel(name):
    real = computing(name).real

    @cuda.jit
    def rotated_boxes(rois, scale, images, height, width, image_of, pixels):
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            n = geometry.image_of(rois, r, images)
            y0 = y1 = x0 = x1 = 0
            if n >= 0:
                cosine, sine = geometry.turn(rois[r, 5])
                centre_x, start_x, length_x = geometry.rotated_frame(rois[r, 1], rois[r, 3], scale)
                centre_y, start_y, length_y = geometry.rotated_frame(rois[r, 2], rois[r, 4], scale)
                low_y = low_x = real(np.inf)
                high_y = high_x = real(-np.inf)
                for corner in range(4):
                    v = start_y + (length_y if corner >= 2 else real(0))
                    u = start_x + (length_x if corner % 2 else real(0))
                    y, x = geometry.rotated_position(u, v, cosine, sine, centre_x, centre_y)
                    low_y, high_y = (y if y < low_y else low_y), (y if y > high_y else high_y)
                    low_x, high_x = (x if x < low_x else low_x), (x if x > high_x else high_x)
                y0, y1 = _pixels(low_y, high_y, height)
                x0, x1 = _pixels(low_x, high_x, width)
            tiles.put_box(image_of, pixels, r, n, y0, y1, x0, x1)

    return rotated_boxes


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    store = tiles.storing(name, accumulate, sizes.channels)
    tile_h, tile_w, slab, each = sizes.tile_h, sizes.tile_w, sizes.channels, sizes.each
    threads = sizes.pixels
    running_size, found_size, entries = threads, threads * each, threads

    @cuda.jit
    def rotated_backward(heads, rois, order, image_at, boxes, scale, ratio, items, height, width, channels,
                         pooled_h, pooled_w, grad):  # fmt: skip
        running = cuda.shared.array(running_size, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        most = cuda.shared.array(2, numba.int32)
        spot_of = cuda.shared.array(entries, numba.int32)
        y_at = cuda.shared.array(entries, numba.int32)
        x_at = cuda.shared.array(entries, numba.int32)
        y_near = cuda.shared.array(entries, shared)
        y_far = cuda.shared.array(entries, shared)
        x_near = cuda.shared.array(entries, shared)
        x_far = cuda.shared.array(entries, shared)
        total = cuda.local.array(slab, shared)
        thread = cuda.threadIdx.x
        area = pooled_h * pooled_w
        still = real(0)
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            n, top, left, _, _, first_channel = place_of(
                item, channels, slab, 1, 1, height, width, tile_h, tile_w
            )
            row, column = top + thread // tile_w, left + thread % tile_w
            for c in range(slab):
                total[c] = 0
            for some in range(image_at[n], image_at[n + 1], found_size):
                some_stop = smaller(some + found_size, image_at[n + 1])
                tiles.select(boxes, order, some, some_stop, top, left, tile_h, tile_w, each,
                             running, found, thread, threads)  # fmt: skip
                for place in range(running[threads - 1]):
                    r = found[place]
                    cosine, sine = geometry.turn(rois[r, 5])
                    centre_x, start_x, length_x = geometry.rotated_frame(rois[r, 1], rois[r, 3], scale)
                    centre_y, start_y, length_y = geometry.rotated_frame(rois[r, 2], rois[r, 4], scale)
                    low_v, high_v, low_u, high_u = geometry.rotated_reach(
                        cosine, sine, centre_x, centre_y, height, width
                    )
                    # Bins visit different numbers of samples; a lattice of the most of them holds all.
                    if thread == 0:
                        most[0] = most[1] = 0
                    cuda.syncthreads()
                    for k in range(thread, pooled_h + pooled_w, threads):
                        if k < pooled_h:
                            first, stop, _ = geometry.rotated_grid(
                                start_y, length_y, pooled_h, k, ratio[0], low_v, high_v
                            )
                        else:
                            first, stop, _ = geometry.rotated_grid(
                                start_x, length_x, pooled_w, k - pooled_h, ratio[1], low_u, high_u
                            )
                        cuda.atomic.max(most, 0 if k < pooled_h else 1, np.int32(stop - first))
                    cuda.syncthreads()
                    most_v, most_u = most[0], most[1]
                    lattice = area * most_v * most_u
                    for begin in range(0, lattice, entries):
                        y_at[thread] = -9  # no pixel
                        if begin + thread < lattice:
                            spot, rest = (
                                (begin + thread) // (most_v * most_u),
                                (begin + thread) % (most_v * most_u),
                            )
                            i, j = spot // pooled_w, spot % pooled_w
                            first_v, stop_v, grid_v = geometry.rotated_grid(
                                start_y, length_y, pooled_h, i, ratio[0], low_v, high_v
                            )
                            first_u, stop_u, grid_u = geometry.rotated_grid(
                                start_x, length_x, pooled_w, j, ratio[1], low_u, high_u
                            )
                            ky, kx = first_v + rest // most_u, first_u + rest % most_u
                            if ky < stop_v and kx < stop_u:
                                v = geometry.position(
                                    rules, start_y, length_y, pooled_h, i, ky, grid_v, height, still
                                )
                                u = geometry.position(
                                    rules, start_x, length_x, pooled_w, j, kx, grid_u, width, still
                                )
                                y, x = geometry.rotated_position(u, v, cosine, sine, centre_x, centre_y)
                                valid_y, y0, wy0, _, wy1 = geometry.taps(rules, y, height)
                                valid_x, x0, wx0, _, wx1 = geometry.taps(rules, x, width)
                                if valid_y and valid_x:
                                    # A far pixel is the one after the near, or has no weight.
                                    share = real(grid_v) * real(grid_u)
                                    spot_of[thread], y_at[thread], x_at[thread] = spot, y0, x0
                                    y_near[thread], y_far[thread] = wy0 / share, wy1 / share
                                    x_near[thread], x_far[thread] = wx0, wx1
                        cuda.syncthreads()
                        for k in range(smaller(entries, lattice - begin)):
                            dy, dx = row - y_at[k], column - x_at[k]
                            if dy >= 0 and dy <= 1 and y_at[k] >= 0 and dx >= 0 and dx <= 1:
                                weight = (y_far[k] if dy else y_near[k]) * (x_far[k] if dx else x_near[k])
                                if weight != 0:
                                    for c in range(slab):
                                        if first_channel + c < channels:
                                            at = (r * channels + first_channel + c) * area + spot_of[k]
                                            total[c] += weight * read(heads[np.uint64(at)])
                        cuda.syncthreads()
                    cuda.syncthreads()  # also where the lattice is empty: ``most`` is read until here
                cuda.syncthreads()
            store(total, n, row, column, 0, 0, first_channel, channels, 1, 1, height, width, grad)

    return rotated_backward


def backward(grad_out, rois, scale, ratio, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    count, channels, pooled_h, pooled_w = grad_out.shape
    images, _, height, width = grad_data.shape
    rois, scale = rois_of(rois, name), scale_of(rules, scale, name)
    boxes = tiles.empty_boxes(count, device_of(grad_data))
    launch(
        _boxes_kernel(name), -(-count // sizes.threads), sizes.threads,
        rois, scale, images, height, width, *boxes,
    )  # fmt: skip
    lists = tiles.list_by_image(boxes, images, device_of(grad_data), sizes)
    items = tiles.items_of(grad_data.shape, channels, (1, 1), sizes.channels, sizes)
    with written(grad_data) as target:
        launch(
            backward_kernel(rules, name, bool(accumulate), sizes), items, sizes.pixels,
            contiguous(grad_out).reshape(-1), rois, lists.order, lists.image_at, lists.pixels, scale,
            pair(ratio), items, height, width, channels, pooled_h, pooled_w, target,
        )  # fmt: skip
