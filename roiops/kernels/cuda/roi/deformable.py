"""Position-sensitive means over bins that are each moved by a learned displacement, and both gradients.

The gradient of the data is gathered by tiles (see :mod:`tiles`). The threads of a block first work out, for
some bins at a time, the weights that these give to the tile's rows and columns: a displacement is a matter of
the bin. The gradient of a displacement is summed up by a block of its own.
"""

import functools

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.lanes import LANES, lanes_for, layout_of, quads_of
from roiops.kernels.cuda.number import computing, kind_of
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.cuda.roi.average import rois_of, scale_of
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
from roiops.kernels.jit import njit

__all__ = ["backward_data", "backward_trans", "forward"]


@njit
def _moved(trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x):
    """How far bin ``(i, j)`` of ROI ``r`` moves for class ``k``: ``(y, x)``; x comes first in ``trans``."""
    if trans.shape[1] == 0:
        return type(length_y)(0), type(length_x)(0)
    y = geometry.group_of(i, pooled_h, trans.shape[2])
    x = geometry.group_of(j, pooled_w, trans.shape[3])
    return (
        geometry.moved_by(trans[r, 2 * k + 1, y, x], deviation, length_y),
        geometry.moved_by(trans[r, 2 * k, y, x], deviation, length_x),
    )


@njit
def _classes(trans):
    """How many classes have displacements of their own."""
    return trans.shape[1] // 2 if trans.shape[1] > 0 else 1


@njit
def _valid_samples(rules, start, length, bins, i, samples, extent, moved):
    """How many samples of a bin count."""
    first, stop, grid = geometry.bin_grid(rules, start, length, bins, i, samples, extent, moved)
    count = 0
    for k in range(first, stop):
        p = geometry.position(rules, start, length, bins, i, k, grid, extent, moved)
        if geometry.taps(rules, p, extent)[0]:
            count += 1
    return count


@functools.cache
def forward_kernel(rules, name, layout):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, _, _, add_sample, store, _ = lanes_for(name, layout)

    @cuda.jit
    def deformable_forward(data, strides, images, height, width, rois, trans, scale, deviation, samples,
                           groups, channels, pooled_h, pooled_w, out):  # fmt: skip
        base = cuda.local.array(LANES, numba.int64)
        total = cuda.local.array(LANES, shared)
        area = pooled_h * pooled_w
        classes = _classes(trans)
        of_class = channels // classes
        quads = (of_class + LANES - 1) // LANES
        for unit in range(cuda.grid(1), rois.shape[0] * classes * area * quads, cuda.gridsize(1)):
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            k, r = unit // (area * quads) % classes, unit // (area * quads) // classes
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, images)
            group_y, group_x = geometry.group_of(i, pooled_h, groups), geometry.group_of(j, pooled_w, groups)
            begin(
                strides, n, k * of_class, quad, quads, of_class, group_y, group_x, groups, groups, base, total
            )
            count_y, count_x = 0, 0
            if n >= 0:
                start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
                moved_y, moved_x = _moved(
                    trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                )
                first_y, stop_y, grid_y = geometry.bin_grid(
                    rules, start_y, length_y, pooled_h, i, samples, height, moved_y
                )
                first_x, stop_x, grid_x = geometry.bin_grid(
                    rules, start_x, length_x, pooled_w, j, samples, width, moved_x
                )
                count_x = _valid_samples(rules, start_x, length_x, pooled_w, j, samples, width, moved_x)
                for ky in range(first_y, stop_y):
                    p = geometry.position(rules, start_y, length_y, pooled_h, i, ky, grid_y, height, moved_y)
                    valid, y0, wy0, y1, wy1 = geometry.taps(rules, p, height)
                    if not valid:
                        continue
                    count_y += 1
                    for kx in range(first_x, stop_x):
                        p = geometry.position(
                            rules, start_x, length_x, pooled_w, j, kx, grid_x, width, moved_x
                        )
                        valid, x0, wx0, x1, wx1 = geometry.taps(rules, p, width)
                        if valid:
                            add_sample(data, base, strides[2], strides[3], y0, wy0, y1, wy1, x0, wx0, x1, wx1,
                                       total)  # fmt: skip
            if count_y > 0 and count_x > 0:
                for lane in range(LANES):
                    total[lane] /= real(count_y) * real(count_x)
            store(total, out, r * channels + k * of_class, quad, quads, of_class, area, spot)

    return deformable_forward


@functools.cache
def _boxes_kernel(rules):
    @cuda.jit
    def deformable_boxes(rois, trans, scale, deviation, samples, images, height, width, pooled_h, pooled_w,
                         image_of, pixels):  # fmt: skip
        classes = _classes(trans)
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            n = geometry.image_of(rois, r, images)
            top, bottom, left, right = height, 0, width, 0
            if n >= 0:
                start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
                for bin_of_class in range(classes * pooled_h * pooled_w):
                    j, rest = bin_of_class % pooled_w, bin_of_class // pooled_w
                    i, k = rest % pooled_h, rest // pooled_h
                    moved_y, moved_x = _moved(
                        trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                    )
                    y0, y1 = bin_pixels(rules, start_y, length_y, pooled_h, i, samples, height, moved_y)
                    x0, x1 = bin_pixels(rules, start_x, length_x, pooled_w, j, samples, width, moved_x)
                    if y1 > y0 and x1 > x0:
                        top, bottom = (y0 if y0 < top else top), (y1 if y1 > bottom else bottom)
                        left, right = (x0 if x0 < left else left), (x1 if x1 > right else right)
            tiles.put_box(image_of, pixels, r, n, top, bottom, left, right)

    return deformable_boxes


@functools.cache
def data_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    store = tiles.storing(name, accumulate, sizes.channels)
    tile_h, tile_w, slab, each = sizes.tile_h, sizes.tile_w, sizes.channels, sizes.each
    threads = sizes.pixels
    running_size, found_size = threads, threads * each
    at_once = sizes.bins * sizes.bins
    y_size, x_size, places = at_once * tile_h, at_once * tile_w, at_once * slab
    # As in ``roi_average``: a bin's channels in quads, and one quad between those of two bins.
    step = quads_up_to(slab) + QUAD
    head_size = step * at_once

    @device
    def weight_of(start, length, bins, i, samples, extent, moved, pixel):
        """What the mean of bin ``i`` on an axis gives to one pixel."""
        first, stop, grid = geometry.bin_grid(rules, start, length, bins, i, samples, extent, moved)
        weight = real(0)
        count = 0
        for k in range(first, stop):
            p = geometry.position(rules, start, length, bins, i, k, grid, extent, moved)
            valid, pixel0, weight0, pixel1, weight1 = geometry.taps(rules, p, extent)
            if valid:
                count += 1
                if pixel0 == pixel:
                    weight += weight0
                if pixel1 == pixel:
                    weight += weight1
        return weight / real(count) if count > 0 else weight

    @kernel(real)
    def deformable_data(heads, rois, trans, order, image_at, boxes, scale, deviation, samples, items, groups,
                        height, width, channels, pooled_h, pooled_w, grad):  # fmt: skip
        running = cuda.shared.array(running_size, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        class_of = cuda.shared.array(at_once, numba.int32)
        i_of = cuda.shared.array(at_once, numba.int32)
        j_of = cuda.shared.array(at_once, numba.int32)
        moved_y = cuda.shared.array(at_once, shared)
        moved_x = cuda.shared.array(at_once, shared)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        total = cuda.local.array(slab, shared)
        thread = cuda.threadIdx.x
        row, column = thread // tile_w, thread % tile_w
        area = pooled_h * pooled_w
        classes = _classes(trans)
        of_class = channels // classes
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            n, top, left, group_y, group_x, first_channel = place_of(
                item, channels, slab, groups, groups, height, width, tile_h, tile_w
            )
            stop_channel = smaller(first_channel + slab, channels)
            first_i, stop_i = geometry.bins_of(group_y, pooled_h, groups)
            first_j, stop_j = geometry.bins_of(group_x, pooled_w, groups)
            tall, wide = stop_i - first_i, stop_j - first_j
            first_class = first_channel // of_class
            number_of_bins = ((stop_channel - 1) // of_class + 1 - first_class) * tall * wide
            for c in range(slab):
                total[c] = 0
            for some in range(image_at[n], image_at[n + 1], found_size):
                some_stop = smaller(some + found_size, image_at[n + 1])
                tiles.select(boxes, order, some, some_stop, top, left, tile_h, tile_w, each,
                             running, found, thread, threads)  # fmt: skip
                for place in range(running[threads - 1]):
                    r = found[place]
                    start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
                    for begin in range(0, number_of_bins, at_once):
                        number = smaller(at_once, number_of_bins - begin)
                        for b in range(thread, number, threads):
                            i, j = first_i + (begin + b) // wide % tall, first_j + (begin + b) % wide
                            k = first_class + (begin + b) // (tall * wide)
                            class_of[b], i_of[b], j_of[b] = k, i, j
                            moved_y[b], moved_x[b] = _moved(
                                trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                            )
                        cuda.syncthreads()
                        for entry in range(thread, number * tile_h, threads):
                            b = entry // tile_h
                            y_weight[entry] = weight_of(start_y, length_y, pooled_h, i_of[b], samples, height,
                                                        moved_y[b], top + entry % tile_h)  # fmt: skip
                        for entry in range(thread, number * tile_w, threads):
                            b = entry // tile_w
                            x_weight[entry] = weight_of(start_x, length_x, pooled_w, j_of[b], samples, width,
                                                        moved_x[b], left + entry % tile_w)  # fmt: skip
                        # A constant number of rounds, and as if the first depended on the bins: as there.
                        for turn in range((places + threads - 1) // threads):
                            entry = (thread if number > 0 else places) + turn * threads
                            c, b = entry // at_once, entry % at_once
                            if entry < places and b < number:
                                low = class_of[b] * of_class - first_channel
                                high = smaller(low + of_class, stop_channel - first_channel)
                                at = (r * channels + first_channel + c) * area + i_of[b] * pooled_w + j_of[b]
                                head[b * step + c] = (
                                    read(heads[np.uint64(at)]) if c >= low and c < high else real(0)
                                )
                        cuda.syncthreads()
                        for b in range(number):
                            weight = y_weight[b * tile_h + row] * x_weight[b * tile_w + column]
                            if weight != 0:
                                for first in range(0, slab, QUAD):
                                    four = quad_at(head, b * step + first)
                                    for c in range(smaller(QUAD, slab - first)):
                                        total[first + c] += weight * four[c]
                        cuda.syncthreads()
                cuda.syncthreads()
            store(total, n, top + row, left + column, group_y, group_x, first_channel, channels,
                  groups, groups, height, width, grad)  # fmt: skip

    return deformable_data


@functools.cache
def trans_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    threads = sizes.threads

    @device
    def derivatives(data, base, sy, sx, start_y, length_y, start_x, length_x, samples, height, width,
                    pooled_h, pooled_w, i, j, moved_y, moved_x):  # fmt: skip
        """The derivatives of one mean by the position of its bin, in y and in x."""
        first_y, stop_y, grid_y = geometry.bin_grid(
            rules, start_y, length_y, pooled_h, i, samples, height, moved_y
        )
        first_x, stop_x, grid_x = geometry.bin_grid(
            rules, start_x, length_x, pooled_w, j, samples, width, moved_x
        )
        along_y, along_x = real(0), real(0)
        count_y = 0
        for ky in range(first_y, stop_y):
            p = geometry.position(rules, start_y, length_y, pooled_h, i, ky, grid_y, height, moved_y)
            valid, y0, wy0, y1, wy1 = geometry.taps(rules, p, height)
            if not valid:
                continue
            count_y += 1
            for kx in range(first_x, stop_x):
                p = geometry.position(rules, start_x, length_x, pooled_w, j, kx, grid_x, width, moved_x)
                valid, x0, wx0, x1, wx1 = geometry.taps(rules, p, width)
                if not valid:
                    continue
                for corner in range(4):
                    # A far weight of zero says that the position is a whole pixel, or clamped: no slope.
                    if (wy1 == 0 and corner >= 2) or (wx1 == 0 and corner % 2):
                        continue
                    wy = wy1 if corner >= 2 else wy0
                    wx = wx1 if corner % 2 else wx0
                    place = (y1 if corner >= 2 else y0) * sy + (x1 if corner % 2 else x0) * sx
                    value = read(data[np.uint64(base + place)])
                    if wy1 != 0:
                        along_y += (wx if corner >= 2 else -wx) * value
                    if wx1 != 0:
                        along_x += (wy if corner % 2 else -wy) * value
        count_x = _valid_samples(rules, start_x, length_x, pooled_w, j, samples, width, moved_x)
        if count_y > 0 and count_x > 0:
            share = real(count_y) * real(count_x)
            along_y, along_x = along_y / share, along_x / share
        return along_y, along_x

    @cuda.jit
    def deformable_trans(heads, data, strides, images, height, width, rois, trans, scale, deviation, samples,
                         groups, channels, pooled_h, pooled_w, grad):  # fmt: skip
        sum_y = cuda.shared.array(threads, shared)
        sum_x = cuda.shared.array(threads, shared)
        thread = cuda.threadIdx.x
        area = pooled_h * pooled_w
        classes, parts_y, parts_x = trans.shape[1] // 2, trans.shape[2], trans.shape[3]
        of_class = channels // classes
        for item in range(cuda.blockIdx.x, rois.shape[0] * classes * parts_y * parts_x, cuda.gridDim.x):
            part_x, rest = item % parts_x, item // parts_x
            part_y, rest = rest % parts_y, rest // parts_y
            k, r = rest % classes, rest // classes
            n = geometry.image_of(rois, r, images)
            start_y = length_y = start_x = length_x = real(0)
            if n >= 0:
                start_y, length_y, start_x, length_x = frames(rules, rois, r, scale)
            first_i, stop_i = geometry.bins_of(part_y, pooled_h, parts_y)
            first_j, stop_j = geometry.bins_of(part_x, pooled_w, parts_x)
            bins = (stop_i - first_i) * (stop_j - first_j)
            mine_y, mine_x = real(0), real(0)
            if n >= 0:
                for unit in range(thread, bins * of_class, threads):
                    c, spot = k * of_class + unit // bins, unit % bins
                    i = first_i + spot // (stop_j - first_j)
                    j = first_j + spot % (stop_j - first_j)
                    moved_y, moved_x = _moved(
                        trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                    )
                    group_y = geometry.group_of(i, pooled_h, groups)
                    group_x = geometry.group_of(j, pooled_w, groups)
                    channel = geometry.channel_of(c, group_y, group_x, groups, groups)
                    along_y, along_x = derivatives(
                        data, n * strides[0] + channel * strides[1], strides[2], strides[3],
                        start_y, length_y, start_x, length_x, samples, height, width, pooled_h, pooled_w,
                        i, j, moved_y, moved_x,
                    )  # fmt: skip
                    head = read(heads[np.uint64((r * channels + c) * area + i * pooled_w + j)])
                    mine_y += head * along_y
                    mine_x += head * along_x
            sum_y[thread], sum_x[thread] = mine_y, mine_x
            cuda.syncthreads()
            # Halves onto halves: one order, whatever runs first.
            step = 1
            while step < threads:
                if thread % (2 * step) == 0 and thread + step < threads:
                    sum_y[thread] += sum_y[thread + step]
                    sum_x[thread] += sum_x[thread + step]
                cuda.syncthreads()
                step *= 2
            if thread < 2:
                length = length_y if thread else length_x
                value = (sum_y[0] if thread else sum_x[0]) * geometry.moved_by(real(1), deviation, length)
                value = value if n >= 0 else real(0)
                at = np.uint64(((r * 2 * classes + 2 * k + thread) * parts_y + part_y) * parts_x + part_x)
                if accumulate:
                    value += real(grad[at])
                grad[at] = value  # which need not be of the data's dtype
            cuda.syncthreads()

    return deformable_trans


def _numbers(rules, scale, deviation, trans, rois, name):
    """``rois``, ``trans``, ``scale`` and ``deviation`` in the type that kernels for ``name`` compute with."""
    real = computing(name).real
    if trans.size == 0:
        trans = empty(trans.shape, real, device_of(rois))  # it may be on the host: there is nothing in it
    return (
        rois_of(rois, name), contiguous(trans, real), scale_of(rules, scale, name),
        scale_of(rules, deviation, name),
    )  # fmt: skip


def forward(data, rois, trans, scale, deviation, samples, groups, rules, out):
    """Write the means of all bins to ``out``; ``trans`` has no channels where nothing moves."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    count, channels, pooled_h, pooled_w = out.shape
    images, _, height, width = data.shape
    elements, strides = adopt(data)
    classes = max(trans.shape[1] // 2, 1)
    units = count * pooled_h * pooled_w * classes * quads_of(channels // classes)
    layout = layout_of(elements, strides, channels // classes, groups * groups)
    with written(out) as target:
        launch(
            forward_kernel(rules, name, layout), -(-units // sizes.threads), sizes.threads,
            elements, strides, images, height, width, *_numbers(rules, scale, deviation, trans, rois, name),
            samples, groups, channels, pooled_h, pooled_w, target,
        )  # fmt: skip


def backward_data(grad_out, rois, trans, scale, deviation, samples, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of the data."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    count, channels, pooled_h, pooled_w = grad_out.shape
    images, _, height, width = grad_data.shape
    numbers = rois, trans, scale, deviation = _numbers(rules, scale, deviation, trans, rois, name)
    boxes = tiles.empty_boxes(count, device_of(grad_data))
    launch(
        _boxes_kernel(rules), -(-count // sizes.threads), sizes.threads,
        *numbers, samples, images, height, width, pooled_h, pooled_w, *boxes,
    )  # fmt: skip
    lists = tiles.list_by_image(boxes, images, device_of(grad_data), sizes)
    items = tiles.items_of(grad_data.shape, channels, (groups, groups), sizes.channels, sizes)
    with written(grad_data) as target:
        launch(
            data_kernel(rules, name, bool(accumulate), sizes), items, sizes.pixels,
            contiguous(grad_out).reshape(-1), rois, trans, lists.order, lists.image_at, lists.pixels,
            scale, deviation, samples, items, groups, height, width, channels, pooled_h, pooled_w, target,
        )  # fmt: skip


def backward_trans(grad_out, data, rois, trans, scale, deviation, samples, groups, rules, accumulate,
                   grad_trans):  # fmt: skip
    """Write, or add, the gradient of the displacements."""
    if grad_trans.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    _, channels, pooled_h, pooled_w = grad_out.shape
    images, _, height, width = data.shape
    elements, strides = adopt(data)
    with written(grad_trans) as target:
        launch(
            trans_kernel(rules, name, bool(accumulate), sizes), grad_trans.size // 2, sizes.threads,
            contiguous(grad_out).reshape(-1), elements, strides, images, height, width,
            *_numbers(rules, scale, deviation, trans, rois, name),
            samples, groups, channels, pooled_h, pooled_w, target,
        )  # fmt: skip
