"""Position-sensitive means over bins that are each moved by a learned displacement, and both gradients.

The gradient of the data is gathered by tiles (see :mod:`tiles`). The threads of a block first work out, for
some bins at a time, the weights that these give to the tile's rows and columns: a displacement is a matter of
the bin. The gradient of a displacement is summed up by a block of its own.

``tests/reference.py`` has the same in plain loops: ``separable`` with ``trans``.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ... import geometry
from ...geometry import smaller
from ...jit import njit
from ...rules import MEAN_OF_VALID
from ..lanes import THREAD_LANES, lanes_for, layout_of, quads_of
from ..number import computing, kind_of
from ..runtime import QUAD, contiguous, cuda, device, device_of, empty, flat_output, flat_view, kernel, launch
from . import tiles
from .average import boxes_and_setting
from .tiles import add_up, bin_pixels, quads_up_to


@njit
def _counted(rules, axis, i):
    """What the sum over a bin's samples on one axis is divided by; 0 if there is nothing to divide."""
    first, stop, count = geometry.bin_grid(rules, axis, i)
    if rules.reduction != MEAN_OF_VALID:
        return count
    valid = 0
    for k in range(first, stop):
        if geometry.sample(rules, axis, i, k, count)[0]:
            valid += 1
    return valid


@functools.cache
def forward_kernel(rules, name, layout):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, _, _, add_sample, store, _ = lanes_for(name, layout)

    @device
    def mean_of_bin(data, base, strides, y, i, x, j, total):
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        for ky in range(grid_y.first, grid_y.stop):
            on_y = geometry.sample(rules, y, i, ky, grid_y.count)
            if not on_y[0]:
                continue
            for kx in range(grid_x.first, grid_x.stop):
                on_x = geometry.sample(rules, x, j, kx, grid_x.count)
                if on_x[0]:
                    add_sample(data, base, strides, on_y, on_x, total)
        count_y, count_x = _counted(rules, y, i), _counted(rules, x, j)
        if count_y > 0 and count_x > 0:
            for lane in range(THREAD_LANES):
                total[lane] /= real(count_y) * real(count_x)

    @kernel()
    def deformable_forward(data, strides, rois, trans, setting, deviation, groups, channels, out):
        base = cuda.local.array(THREAD_LANES, numba.int64)
        total = cuda.local.array(THREAD_LANES, shared)
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        area = pooled_h * pooled_w
        classes = geometry.classes_of(trans)
        of_class = channels // classes
        quads = (of_class + THREAD_LANES - 1) // THREAD_LANES
        for unit in range(cuda.grid(1), rois.shape[0] * classes * area * quads, cuda.gridsize(1)):
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            k, r = unit // (area * quads) % classes, unit // (area * quads) // classes
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, setting.images)
            group = geometry.group_of(i, pooled_h, groups), geometry.group_of(j, pooled_w, groups)
            begin(strides, n, k * of_class, quad, quads, of_class, group, (groups, groups), base, total)
            if n >= 0:
                y, x = geometry.box_axes(rules, rois, r, setting)
                y, x = geometry.moved_axes(trans, r, k, i, j, deviation, y, x)
                mean_of_bin(data, base, strides, y, i, x, j, total)
            store(total, out, r * channels + k * of_class, quad, quads, of_class, area, spot)

    return deformable_forward


@functools.cache
def _boxes_kernel(rules):
    @kernel()
    def deformable_boxes(rois, trans, setting, deviation, image_of, pixels):
        classes, pooled_h, pooled_w = geometry.classes_of(trans), setting.pooled_h, setting.pooled_w
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            n = geometry.image_of(rois, r, setting.images)
            top, bottom, left, right = setting.height, 0, setting.width, 0
            if n >= 0:
                box_y, box_x = geometry.box_axes(rules, rois, r, setting)
                for bin_of_class in range(classes * pooled_h * pooled_w):
                    j, rest = bin_of_class % pooled_w, bin_of_class // pooled_w
                    i, k = rest % pooled_h, rest // pooled_h
                    y, x = geometry.moved_axes(trans, r, k, i, j, deviation, box_y, box_x)
                    y0, y1 = bin_pixels(rules, y, i)
                    x0, x1 = bin_pixels(rules, x, j)
                    if y1 > y0 and x1 > x0:
                        top, bottom = (y0 if y0 < top else top), (y1 if y1 > bottom else bottom)
                        left, right = (x0 if x0 < left else left), (x1 if x1 > right else right)
            tiles.put_box(image_of, pixels, r, n, top, bottom, left, right)

    return deformable_boxes


class _Bins(NamedTuple):
    """Some bins of a ROI: the class and the place of each, and by how much it is moved."""

    k: object
    i: object
    j: object
    moved_y: object
    moved_x: object


@functools.cache
def data_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    store = tiles.storing(name, accumulate, sizes.channels)
    place_of, select = tiles.placing(sizes.channels, sizes), tiles.selecting(sizes)
    tile_h, tile_w, slab = sizes.tile_h, sizes.tile_w, sizes.channels
    threads = sizes.pixels
    running_size, found_size = threads, threads * sizes.each
    at_once = sizes.bins * sizes.bins
    y_size, x_size, places = at_once * tile_h, at_once * tile_w, at_once * slab
    # As in ``roi_average``: a bin's channels in quads, and one quad between those of two bins.
    step = quads_up_to(slab) + QUAD
    head_size = step * at_once
    add_head = tiles.adding(slab)

    @device
    def weight_of(axis, i, pixel):
        """What the mean of bin ``i`` on an axis gives to one pixel."""
        first, stop, count = geometry.bin_grid(rules, axis, i)
        weight = real(0)
        for k in range(first, stop):
            valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
            if valid:
                if pixel0 == pixel:
                    weight += weight0
                if pixel1 == pixel:
                    weight += weight1
        counted = _counted(rules, axis, i)
        return weight / real(counted) if counted > 0 else weight

    @device
    def take_weights(box_y, box_x, some, number, tile, thread, y_weight, x_weight):
        """The weights that some bins give to the rows and the columns of the tile."""
        for entry in range(thread, number * tile_h, threads):
            b = entry // tile_h
            y = geometry.moved_axis(box_y, some.moved_y[b])
            y_weight[entry] = weight_of(y, some.i[b], tile.top + entry % tile_h)
        for entry in range(thread, number * tile_w, threads):
            b = entry // tile_w
            x = geometry.moved_axis(box_x, some.moved_x[b])
            x_weight[entry] = weight_of(x, some.j[b], tile.left + entry % tile_w)

    @device
    def take_heads(heads, r, some, number, tile, setting, channels, of_class, thread, head):
        """The head gradients of some bins, 0 for channels of another class."""
        stop_channel = smaller(tile.first_channel + slab, channels)
        area = setting.pooled_h * setting.pooled_w
        # A constant number of rounds, and as if the first depended on the bins: as in ``average``.
        for turn in range((places + threads - 1) // threads):
            entry = (thread if number > 0 else places) + turn * threads
            c, b = entry // at_once, entry % at_once
            if entry < places and b < number:
                low = some.k[b] * of_class - tile.first_channel
                high = smaller(low + of_class, stop_channel - tile.first_channel)
                at = (r * channels + tile.first_channel + c) * area + some.i[b] * setting.pooled_w + some.j[b]
                head[b * step + c] = read(heads[np.uint64(at)]) if c >= low and c < high else real(0)

    @device
    def bins_of_tile(tile, setting, groups, channels, of_class):
        """The bins whose channels a tile holds: first row and column, rows, columns, first class, number."""
        first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups)
        first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups)
        tall, wide = stop_i - first_i, stop_j - first_j
        stop_channel = smaller(tile.first_channel + slab, channels)
        first_class = tile.first_channel // of_class
        classes = (stop_channel - 1) // of_class + 1 - first_class
        return first_i, first_j, tall, wide, first_class, classes * tall * wide

    @device
    def add_roi(inputs, r, tile, of_tile, setting, thread, memory, total):
        """Add what a ROI gives to the pixel of this thread, some bins at a time."""
        heads, trans, (box_y, box_x), deviation, channels, of_class = inputs
        first_i, first_j, tall, wide, first_class, number_of_bins = of_tile
        some, y_weight, x_weight, head = memory
        row, column = thread // tile_w, thread % tile_w
        for begin in range(0, number_of_bins, at_once):
            number = smaller(at_once, number_of_bins - begin)
            for b in range(thread, number, threads):
                i, j = first_i + (begin + b) // wide % tall, first_j + (begin + b) % wide
                k = first_class + (begin + b) // (tall * wide)
                some.k[b], some.i[b], some.j[b] = k, i, j
                y, x = geometry.moved_axes(trans, r, k, i, j, deviation, box_y, box_x)
                some.moved_y[b], some.moved_x[b] = y.moved, x.moved
            cuda.syncthreads()
            take_weights(box_y, box_x, some, number, tile, thread, y_weight, x_weight)
            take_heads(heads, r, some, number, tile, setting, channels, of_class, thread, head)
            cuda.syncthreads()
            for b in range(number):
                weight = y_weight[b * tile_h + row] * x_weight[b * tile_w + column]
                if weight != 0:
                    add_head(weight, head, b * step, total)
            cuda.syncthreads()

    @kernel()  # held to 128 registers it spills some of the 138 it needs
    def deformable_data(heads, rois, trans, lists, setting, deviation, groups, items, channels, grad):
        # Its own loop over tiles, not ``tiles.gathering``: with that one it spills registers in float32.
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
        memory = _Bins(class_of, i_of, j_of, moved_y, moved_x), y_weight, x_weight, head
        thread = cuda.threadIdx.x
        of_class = channels // geometry.classes_of(trans)
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            tile = place_of(item, channels, (groups, groups), setting)
            of_tile = bins_of_tile(tile, setting, groups, channels, of_class)
            for c in range(slab):
                total[c] = 0
            end = lists.image_at[tile.n + 1]
            for first_place in range(lists.image_at[tile.n], end, found_size):
                stop = smaller(first_place + found_size, end)
                select(lists, first_place, stop, tile.top, tile.left, running, found)
                for place in range(running[threads - 1]):
                    r = lists.order[found[place]]
                    boxes = geometry.box_axes(rules, rois, r, setting)
                    inputs = heads, trans, boxes, deviation, channels, of_class
                    add_roi(inputs, r, tile, of_tile, setting, thread, memory, total)
                cuda.syncthreads()
            y, x = tile.top + thread // tile_w, tile.left + thread % tile_w
            store(total, tile, y, x, channels, (groups, groups), setting, grad)

    return deformable_data


@functools.cache
def _derivatives(rules, name):
    real, _, read, _ = computing(name)

    @device
    def derivatives(data, base, strides, y, i, x, j):
        """The derivatives of one mean by the position of its bin, in y and in x."""
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        along_y, along_x = real(0), real(0)
        for ky in range(grid_y.first, grid_y.stop):
            valid, y0, wy0, y1, wy1 = geometry.sample(rules, y, i, ky, grid_y.count)
            if not valid:
                continue
            for kx in range(grid_x.first, grid_x.stop):
                valid, x0, wx0, x1, wx1 = geometry.sample(rules, x, j, kx, grid_x.count)
                if not valid:
                    continue
                for corner in range(4):
                    # A far weight of zero says that the position is a whole pixel, or clamped: no slope.
                    if (wy1 == 0 and corner >= 2) or (wx1 == 0 and corner % 2):
                        continue
                    wy = wy1 if corner >= 2 else wy0
                    wx = wx1 if corner % 2 else wx0
                    place = (y1 if corner >= 2 else y0) * strides[2]
                    place += (x1 if corner % 2 else x0) * strides[3]
                    value = read(data[np.uint64(base + place)])
                    if wy1 != 0:
                        along_y += (wx if corner >= 2 else -wx) * value
                    if wx1 != 0:
                        along_x += (wy if corner % 2 else -wy) * value
        count_y, count_x = _counted(rules, y, i), _counted(rules, x, j)
        if count_y > 0 and count_x > 0:
            share = real(count_y) * real(count_x)
            along_y, along_x = along_y / share, along_x / share
        return along_y, along_x

    return derivatives


@functools.cache
def trans_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    derivatives, threads = _derivatives(rules, name), sizes.threads

    @device
    def put(grad, at, value):
        if accumulate:
            value += real(grad[at])
        grad[at] = value  # which need not be of the data's dtype

    @device
    def sum_of_part(inputs, r, k, n, part, lane, lanes, boxes, setting):
        """What every ``lanes``-th mean of bins that are moved alike adds to the gradient, in y and in x."""
        heads, data, strides, trans, deviation, groups, channels = inputs
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        first_i, stop_i = geometry.bins_of(part // trans.shape[3], pooled_h, trans.shape[2])
        first_j, stop_j = geometry.bins_of(part % trans.shape[3], pooled_w, trans.shape[3])
        wide, of_class = stop_j - first_j, channels // geometry.classes_of(trans)
        bins = (stop_i - first_i) * wide
        sum_y, sum_x = real(0), real(0)
        for unit in range(lane, bins * of_class, lanes):
            c, spot = k * of_class + unit // bins, unit % bins
            i, j = first_i + spot // wide, first_j + spot % wide
            y, x = geometry.moved_axes(trans, r, k, i, j, deviation, boxes[0], boxes[1])
            group_y = geometry.group_of(i, pooled_h, groups)
            group_x = geometry.group_of(j, pooled_w, groups)
            channel = geometry.channel_of(c, group_y, group_x, groups, groups)
            base = n * strides[0] + channel * strides[1]
            along_y, along_x = derivatives(data, base, strides, y, i, x, j)
            head = read(heads[np.uint64(((r * channels + c) * pooled_h + i) * pooled_w + j)])
            sum_y += head * along_y
            sum_x += head * along_x
        return sum_y, sum_x

    @kernel()
    def deformable_trans(heads, data, strides, rois, trans, setting, deviation, groups, channels, grad):
        # A block has all displacements of a class: bins side by side have sectors in common.
        sum_y = cuda.shared.array(threads, shared)
        sum_x = cuda.shared.array(threads, shared)
        inputs = heads, data, strides, trans, deviation, groups, channels
        classes, parts = geometry.classes_of(trans), trans.shape[2] * trans.shape[3]
        at_once = smaller(parts, threads)
        lane, lanes = cuda.threadIdx.x // at_once, threads // at_once
        thread, turns = cuda.threadIdx.x, (parts + at_once - 1) // at_once
        for item in range(cuda.blockIdx.x, rois.shape[0] * classes * turns, cuda.gridDim.x):
            part = item % turns * at_once + thread % at_once
            r, k = item // turns // classes, item // turns % classes
            n = geometry.image_of(rois, r, setting.images)
            sum_y[thread] = sum_x[thread] = length_y = length_x = real(0)
            if n >= 0:
                boxes = geometry.box_axes(rules, rois, r, setting)
                length_y, length_x = boxes[0].length, boxes[1].length
                if lane < lanes and part < parts:
                    own = sum_of_part(inputs, r, k, n, part, lane, lanes, boxes, setting)
                    sum_y[thread], sum_x[thread] = own
            cuda.syncthreads()
            add_up(sum_y, thread, lanes, at_once)
            add_up(sum_x, thread, lanes, at_once)
            if lane == 0 and part < parts:
                by_x = sum_x[thread] * geometry.moved_by(real(1), deviation, length_x)
                by_y = sum_y[thread] * geometry.moved_by(real(1), deviation, length_y)
                at = np.uint64((r * 2 * classes + 2 * k) * parts + part)
                put(grad, at, by_x if n >= 0 else real(0))
                put(grad, at + np.uint64(parts), by_y if n >= 0 else real(0))
            cuda.syncthreads()

    return deformable_trans


def _call(rois, trans, how, name, data, out):
    """``(rois, trans, setting, deviation)`` in the type that kernels for ``name`` compute with."""
    real = computing(name).real
    if trans.size == 0:
        trans = empty(trans.shape, real, device_of(rois))  # it may be on the host: there is nothing in it
    rois, setting = boxes_and_setting(how, rois, name, data, out)
    return rois, contiguous(trans, real), setting, geometry.scale_of(how.rules, how.deviation, real)


def forward(data, rois, trans, how, out):
    """Write the means of all bins to ``out``; ``trans`` has no channels where nothing moves."""
    if out.size == 0:
        return
    groups, rules = how.groups, how.rules
    name = kind_of(data.dtype)
    count, channels, pooled_h, pooled_w = out.shape
    elements, strides = flat_view(data)
    classes = geometry.classes_of(trans)
    units = count * pooled_h * pooled_w * classes * quads_of(channels // classes)
    layout = layout_of(elements, strides, channels // classes, groups * groups)
    call = _call(rois, trans, how, name, data, out)
    with flat_output(out) as target:
        pool = forward_kernel(rules, name, layout)
        tiles.launch_each(pool, units, elements, strides, *call, groups, channels, target)


def backward_data(grad_out, rois, trans, how, accumulate, grad_data):
    """Write, or add, the gradient of the data."""
    if grad_data.size == 0:
        return
    groups, rules = how.groups, how.rules
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    channels = grad_out.shape[1]
    call = _call(rois, trans, how, name, grad_data, grad_out)
    rois, trans, setting, deviation = call
    lists = tiles.lists_by(_boxes_kernel(rules), setting.images, *call)
    items = tiles.items_of(setting, channels, (groups, groups), sizes.channels, sizes)
    with flat_output(grad_data) as target:
        gather = data_kernel(rules, name, bool(accumulate), sizes)
        inputs = contiguous(grad_out).reshape(-1), rois, trans, lists, setting, deviation, groups
        launch(gather, items, sizes.pixels, *inputs, items, channels, target)


def backward_trans(grad_out, data, rois, trans, how, accumulate, grad_trans):
    """Write, or add, the gradient of the displacements."""
    if grad_trans.size == 0:
        return
    groups, rules = how.groups, how.rules
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    channels = grad_out.shape[1]
    elements, strides = flat_view(data)
    call = _call(rois, trans, how, name, data, grad_out)
    with flat_output(grad_trans) as target:
        displace = trans_kernel(rules, name, bool(accumulate), sizes)
        inputs = contiguous(grad_out).reshape(-1), elements, strides, *call
        parts = grad_trans.shape[2] * grad_trans.shape[3]
        blocks = grad_trans.size // (2 * parts) * -(-parts // sizes.threads)
        launch(displace, blocks, sizes.threads, *inputs, groups, channels, target)
