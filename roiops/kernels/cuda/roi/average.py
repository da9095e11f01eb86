"""Means over the bins of ROIs, with any samples and any border: ``Y = A_y X A_x'``, and its transpose.

Forward, a block takes an ROI and a slab of channels. Its threads first write the axis tables, the pixels
and weights that each bin averages, to shared memory; then each takes bins, four channels at a time (see
:mod:`lanes`). A bin of more pixels than the tables hold is averaged sample by sample.

Backward, such tables are first written to memory, a bin a thread. Then a block takes a tile of the map and a
slab of channels, a pixel a thread (see :mod:`tiles`): many blocks share an ROI's tables.

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
)
from roiops.kernels.jit import njit
from roiops.kernels.rules import SAME_CHANNEL


class _Table(NamedTuple):
    """An axis table in shared memory: bin ``i`` averages ``count[i]`` places from ``i * slot`` on."""

    at: object
    weight: object
    count: object
    slot: int


@device
def _fill(rules, axis, stride, table, wide):
    """Write this thread's part of an axis table."""
    for i in range(cuda.threadIdx.x, axis.bins, cuda.blockDim.x):
        low, high = bin_pixels(rules, axis, i)
        if high - low > table.slot:
            wide[0] = 1
            continue
        first = i * table.slot
        n = geometry.bin_taps(rules, axis, i, table.at, table.weight, first)
        for k in range(first, first + n):
            table.at[k] *= stride
        table.count[i] = n


@functools.cache
def forward_kernel(rules, name, layout, sizes, clear=True):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, _, add, add_sample, store, _ = lanes_for(name, layout)
    table_size = sizes.table

    @device
    def average_of_tables(data, base, y, i, x, j, total):
        for a in range(i * y.slot, i * y.slot + y.count[i]):
            for b in range(j * x.slot, j * x.slot + x.count[j]):
                add(data, base, y.at[a] + x.at[b], y.weight[a] * x.weight[b], total)

    @device
    def average_of_samples(data, base, strides, y, i, x, j, total):
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        for ky in range(grid_y.first, grid_y.stop):
            on_y = geometry.sample(rules, y, i, ky, grid_y.count)
            if not on_y[0]:
                continue
            for kx in range(grid_x.first, grid_x.stop):
                on_x = geometry.sample(rules, x, j, kx, grid_x.count)
                if on_x[0]:
                    add_sample(data, base, strides, on_y, on_x, total)
        for lane in range(THREAD_LANES):
            if grid_y.count > 0 and grid_x.count > 0:
                total[lane] /= real(grid_y.count) * real(grid_x.count)

    @kernel(real)
    def average_forward(data, strides, rois, setting, groups, slabs, channels, out):
        y_at = cuda.shared.array(table_size, numba.int64)
        x_at = cuda.shared.array(table_size, numba.int64)
        y_weight = cuda.shared.array(table_size, shared)
        x_weight = cuda.shared.array(table_size, shared)
        y_count = cuda.shared.array(table_size, numba.int32)
        x_count = cuda.shared.array(table_size, numba.int32)
        wide = cuda.shared.array(1, numba.int32)
        base = cuda.local.array(THREAD_LANES, numba.int64)
        total = cuda.local.array(THREAD_LANES, shared)
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        nowhere = geometry.Axis(real(0), real(0), pooled_h, pooled_h, pooled_h, real(0))  # of an ignored row
        y_table = _Table(y_at, y_weight, y_count, table_size // pooled_h)
        x_table = _Table(x_at, x_weight, x_count, table_size // pooled_w)
        area, quads = pooled_h * pooled_w, (channels + THREAD_LANES - 1) // THREAD_LANES
        for item in range(cuda.blockIdx.x, rois.shape[0] * slabs, cuda.gridDim.x):
            r, slab = item // slabs, item % slabs
            first = slab * quads // slabs
            own_quads = (slab + 1) * quads // slabs - first
            n = geometry.image_of(rois, r, setting.images)
            if n < 0 and not clear:  # all threads of the block alike
                continue
            fits = pooled_h <= table_size and pooled_w <= table_size
            if thread == 0:
                wide[0] = 0 if fits else 1
            cuda.syncthreads()
            y, x = nowhere, nowhere
            if n >= 0:
                y, x = axes(rules, rois, r, setting)
                if fits:
                    _fill(rules, y, strides[2], y_table, wide)
                    _fill(rules, x, strides[3], x_table, wide)
            cuda.syncthreads()
            for unit in range(thread, area * own_quads, threads):
                spot, quad = spot_and_quad(unit, area, own_quads)
                quad += first
                i, j = spot // pooled_w, spot % pooled_w
                group = geometry.group_of(i, pooled_h, groups[0]), geometry.group_of(j, pooled_w, groups[1])
                begin(strides, n, 0, quad, quads, channels, group, groups, base, total)
                if n >= 0 and wide[0] == 0:
                    average_of_tables(data, base, y_table, i, x_table, j, total)
                elif n >= 0:
                    average_of_samples(data, base, strides, y, i, x, j, total)
                store(total, out, r * channels, quad, quads, channels, area, spot)
            cuda.syncthreads()

    return average_forward


def slabs_for(items, quads, least, sizes):
    """Into how many slabs to cut ``quads`` so that there is enough to do for every multiprocessor."""
    wanted = -(-sizes.blocks // max(items, 1))
    return max(1, min(wanted, -(-quads // least)))


def forward(data, rois, scale, ratio, groups, rules, out, clear=True):
    """Write the means of all bins to ``out``, and zeros for rows to be ignored unless ``clear`` is false."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    count, channels = out.shape[:2]
    setting = setting_of(rules, scale, ratio, name, data, out)
    elements, strides = flat_view(data)
    slabs = slabs_for(count, quads_of(channels), 4, sizes)
    layout = layout_of(elements, strides, channels, groups[0] * groups[1])
    with flat_output(out) as target:
        pool = forward_kernel(rules, name, layout, sizes, clear)
        inputs = elements, strides, rois_of(rois, name), setting, groups
        launch(pool, count * slabs, sizes.threads, *inputs, slabs, channels, target)


def setting_of(rules, scale, ratio, name, data, out):
    """The :class:`geometry.Setting` that kernels for ``name`` are given."""
    return geometry.setting_of(rules, scale, ratio, computing(name).real, data.shape, out.shape)


def rois_of(rois, name):
    """``rois`` in the type that kernels for ``name`` compute with."""
    return contiguous(rois, computing(name).real)


# -- gradient --------------------------------------------------------------------------------------------

# Bytes of the tables that are held at a time; with more ROIs than fit, these come in turns.
_TABLE_BYTES = 32 << 20


@njit
def _weigh(rules, axis, i, low, high, weights, at):
    """Write the weights of the pixels ``[low, high)`` in bin ``i`` to ``weights[at + low : at + high]``."""
    for pixel in range(low, high):
        weights[at + pixel] = 0
    first, stop, count = geometry.bin_grid(rules, axis, i)
    share = type(axis.start)(count)
    for k in range(first, stop):
        valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
        if valid and weight0 != 0 and pixel0 >= low and pixel0 < high:
            weights[at + pixel0] += weight0 / share
        if valid and weight1 != 0 and pixel1 >= low and pixel1 < high:
            weights[at + pixel1] += weight1 / share


@functools.cache
def tables_kernel(rules):
    @kernel()
    def average_tables(rois, setting, spans, weights):
        """For each bin on either axis of each ROI, the pixels it averages and their weights."""
        height, width, pooled_h = setting.height, setting.width, setting.pooled_h
        bins, per_roi = pooled_h + setting.pooled_w, pooled_h * height + setting.pooled_w * width
        for unit in range(cuda.grid(1), rois.shape[0] * bins, cuda.gridsize(1)):
            r, i = unit // bins, unit % bins
            low, high = 0, 0
            if geometry.image_of(rois, r, setting.images) >= 0:
                y, x = axes(rules, rois, r, setting)
                if i < pooled_h:
                    low, high = bin_pixels(rules, y, i)
                    _weigh(rules, y, i, low, high, weights, r * per_roi + i * height)
                else:
                    j = i - pooled_h
                    low, high = bin_pixels(rules, x, j)
                    _weigh(rules, x, j, low, high, weights, r * per_roi + pooled_h * height + j * width)
            spans[unit, 0], spans[unit, 1] = low, high

    return average_tables


@functools.cache
def backward_kernel(name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    tile_h, tile_w, slab, bins = sizes.tile_h, sizes.tile_w, sizes.channels, sizes.bins
    threads = sizes.pixels
    y_size, x_size, places = tile_h * bins, tile_w * bins, slab * bins * bins
    # The channels of a bin are neighbours in shared memory, to be loaded in quads. Between those of two bins
    # lies a quad more, so that a warp, which writes one channel of many bins, meets more banks.
    step = quads_up_to(slab) + QUAD
    head_size = step * bins * bins
    y_turns, x_turns, turns = (-(-size // threads) for size in (y_size, x_size, places))
    add_head = tiles.adding(slab)

    @device
    def find_bins(spans, entry, number, origin, size, thread, edges, at):
        """See that ``edges[at]`` and ``edges[at + 1]`` enclose the bins that touch the tile."""
        for i in range(thread, number, threads):
            if spans[entry + i, 0] < origin + size and spans[entry + i, 1] > origin:
                cuda.atomic.min(edges, at, np.int32(i))
                cuda.atomic.max(edges, at + 1, np.int32(i + 1))

    @device
    def weight_of(spans, entry, weights, at, extent, number, origin, size, k):
        """What the ``k``-th of the weights of ``number`` bins on the pixels of a tile is, bin by bin.

        So the threads of a warp, which have a row of the tile, read neighbours: each from a bank of its own.
        """
        i, pixel = k // size, origin + k % size
        inside = i < number and pixel < extent
        low, high = spans[entry + (i if inside else 0), 0], spans[entry + (i if inside else 0), 1]
        # Loaded before it is known whether it was written: so the memory is waited for once.
        weight = weights[np.uint64(at + (i * extent + pixel if inside else 0))]
        return weight if inside and pixel >= low and pixel < high else real(0)

    @device
    def take(inputs, r, bin_y, bin_x, tile, setting, channels, y_weight, x_weight, head):
        """The weights of some bins on a tile, and their head gradients for its channels.

        All loads come before the first store, so that the memory is waited for once.
        """
        heads, spans, weights = inputs
        i, high = bin_y
        j, wide = bin_x
        # It seems to depend on the bins: else what follows from it would be kept in registers all along.
        thread = cuda.threadIdx.x if high > 0 else places
        height, width, pooled_h, pooled_w = setting.height, setting.width, setting.pooled_h, setting.pooled_w
        of_y = cuda.local.array(y_turns, shared)
        of_x = cuda.local.array(x_turns, shared)
        due = cuda.local.array(turns, shared)
        # All places that there may be, so that the divisions are by constants.
        first = (r * channels + tile.first_channel) * (pooled_h * pooled_w) + i * pooled_w + j
        for turn in range(turns):
            k = thread + turn * threads
            c, a, b = k // (bins * bins), k // bins % bins, k % bins
            is_there = a < high and b < wide and tile.first_channel + c < channels and k < places
            due[turn] = read(
                heads[np.uint64(first + (c * pooled_h * pooled_w + a * pooled_w + b if is_there else 0))]
            )
        entry, at = r * (pooled_h + pooled_w), r * (pooled_h * height + pooled_w * width)
        for turn in range(y_turns):
            k = thread + turn * threads
            of_y[turn] = weight_of(
                spans, entry + i, weights, at + i * height, height, high, tile.top, tile_h, k
            )
        entry, at = entry + pooled_h, at + pooled_h * height
        for turn in range(x_turns):
            k = thread + turn * threads
            of_x[turn] = weight_of(
                spans, entry + j, weights, at + j * width, width, wide, tile.left, tile_w, k
            )
        for turn in range(y_turns):
            k = thread + turn * threads
            if k < y_size:
                y_weight[k] = of_y[turn]
        for turn in range(x_turns):
            k = thread + turn * threads
            if k < x_size:
                x_weight[k] = of_x[turn]
        for turn in range(turns):
            k = thread + turn * threads
            if k < places:
                head[k % (bins * bins) * step + k // (bins * bins)] = due[turn]

    @device
    def add_bins(y_weight, x_weight, head, high, wide, thread, total):
        """Add what some bins give to the pixel of this thread."""
        row, column = thread // tile_w, thread % tile_w
        for a in range(high):
            down_weight = y_weight[a * tile_h + row]
            if down_weight == 0:
                continue
            for b in range(wide):
                weight = down_weight * x_weight[b * tile_w + column]
                if weight != 0:
                    add_head(weight, head, (a * bins + b) * step, total)

    @device
    def add_roi(inputs, r, tile, setting, groups, channels, total):
        _, spans, _ = inputs
        edges = cuda.shared.array(4, numba.int32)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        thread = cuda.threadIdx.x
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        of_y = r * (pooled_h + pooled_w)
        of_x = of_y + pooled_h
        if thread == 0:
            edges[0] = edges[2] = pooled_h + pooled_w
            edges[1] = edges[3] = 0
        cuda.syncthreads()
        find_bins(spans, of_y, pooled_h, tile.top, tile_h, thread, edges, 0)
        find_bins(spans, of_x, pooled_w, tile.left, tile_w, thread, edges, 2)
        cuda.syncthreads()
        for i in range(edges[0], edges[1], bins):
            for j in range(edges[2], edges[3], bins):
                high = smaller(bins, edges[1] - i)
                wide = smaller(bins, edges[3] - j)
                take(inputs, r, (i, high), (j, wide), tile, setting, channels, y_weight, x_weight, head)
                cuda.syncthreads()
                add_bins(y_weight, x_weight, head, high, wide, thread, total)
                cuda.syncthreads()
        cuda.syncthreads()  # also where no bin was found: the edges are read until here

    gather = tiles.gathering(name, accumulate, sizes, slab, add_roi)

    @kernel(real)
    def average_backward(heads, spans, weights, lists, setting, items, channels, grad):
        gather((heads, spans, weights), lists, setting, (1, 1), items, channels, grad)

    return average_backward


@functools.cache
def grouped_kernel(rules, name, accumulate, sizes):
    """The gradient where groups of bins have channels of their own.

    Of an ROI, few bins are of the group of a block, and fewer touch its tile. So it lists bins, not ROIs, and
    takes those of several ROIs at a time.
    """
    real, shared, read, _ = computing(name)
    tile_h, tile_w, threads, slab = sizes.tile_h, sizes.tile_w, sizes.pixels, sizes.grouped_channels
    at_once = sizes.bins * sizes.bins
    store, place_of = tiles.storing(name, accumulate, slab), tiles.placing(slab, sizes)
    add_head, found_size = tiles.adding(slab), sizes.pixels * sizes.each
    # A bin's channels in quads, and one quad between those of two bins; of weights, whose bins a thread each
    # writes, one more than a tile has: so the threads of a warp meet more banks.
    step, y_step, x_step = quads_up_to(slab) + QUAD, tile_h + 1, tile_w + 1
    head_size, y_size, x_size = step * at_once, y_step * at_once, x_step * at_once
    places = slab * at_once
    turns = -(-places // threads)

    @device
    def bin_at(bins, k):
        """The ROI, the row and the column of bin ``k`` of a group."""
        first_i, first_j, tall, wide = bins
        return k // (tall * wide), first_i + k // wide % tall, first_j + k % wide

    @device
    def touches(listed, k, top, left):
        rois, setting, bins, n = listed
        r, i, j = bin_at(bins, k)
        if geometry.image_of(rois, r, setting.images) != n:
            return False
        y, x = axes(rules, rois, r, setting)
        low, high = bin_pixels(rules, y, i)
        if low >= top + tile_h or high <= top:
            return False
        low, high = bin_pixels(rules, x, j)
        return low < left + tile_w and high > left

    @device
    def take(heads, listed, tile, channels, found, begin, number, y_weight, x_weight, head):
        """Write the weights that bins give to the rows and columns of the tile, and their head gradients."""
        rois, setting, bins, _ = listed
        for entry in range(cuda.threadIdx.x, 2 * at_once, threads):
            b = entry % at_once
            if b < number:
                r, i, j = bin_at(bins, found[begin + b])
                y, x = axes(rules, rois, r, setting)
                if entry < at_once:
                    _weigh(rules, y, i, tile.top, tile.top + tile_h, y_weight, b * y_step - tile.top)
                else:
                    _weigh(rules, x, j, tile.left, tile.left + tile_w, x_weight, b * x_step - tile.left)
        # All are loaded before any is stored, so that the memory is waited for once. They seem to depend on
        # the bins, as in ``backward_kernel``.
        due = cuda.local.array(turns, shared)
        thread = cuda.threadIdx.x if number > 0 else places
        for turn in range(turns):
            b, c = (thread + turn * threads) // slab, (thread + turn * threads) % slab
            is_there = b < number and tile.first_channel + c < channels
            r, i, j = bin_at(bins, found[begin + (b if is_there else 0)])
            at = (r * channels + tile.first_channel + (c if is_there else 0)) * setting.pooled_h + i
            due[turn] = read(heads[np.uint64(at * setting.pooled_w + j)])
        for turn in range(turns):
            entry = thread + turn * threads
            if entry < places:
                head[entry // slab * step + entry % slab] = due[turn]

    @device
    def add_bins(y_weight, x_weight, head, number, row, column, total):
        for b in range(number):
            weight = y_weight[b * y_step + row] * x_weight[b * x_step + column]
            if weight != 0:
                add_head(weight, head, b * step, total)

    select = tiles.selecting(sizes, touches)

    @kernel(real)
    def average_grouped(heads, rois, setting, groups, items, channels, grad):
        running = cuda.shared.array(threads, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        total = cuda.local.array(slab, shared)
        row, column = cuda.threadIdx.x // tile_w, cuda.threadIdx.x % tile_w
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            tile = place_of(item, channels, groups, setting)
            for c in range(slab):
                total[c] = 0
            first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
            first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
            listed = rois, setting, (first_i, first_j, stop_i - first_i, stop_j - first_j), tile.n
            end = rois.shape[0] * (stop_i - first_i) * (stop_j - first_j)
            for first in range(0, end, found_size):
                select(listed, first, smaller(first + found_size, end), tile.top, tile.left, running, found)
                for begin in range(0, running[threads - 1], at_once):
                    number = smaller(at_once, running[threads - 1] - begin)
                    take(heads, listed, tile, channels, found, begin, number, y_weight, x_weight, head)
                    cuda.syncthreads()
                    add_bins(y_weight, x_weight, head, number, row, column, total)
                    cuda.syncthreads()
                cuda.syncthreads()
            store(total, tile, tile.top + row, tile.left + column, channels, groups, setting, grad)

    return average_grouped


def backward(grad_out, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name, device_id = tiles.SIZES, kind_of(grad_data.dtype), device_of(grad_data)
    count, channels, pooled_h, pooled_w = grad_out.shape
    _, _, height, width = grad_data.shape
    groups = geometry.channel_groups(rules, groups, pooled_h, pooled_w)
    rois, setting = rois_of(rois, name), setting_of(rules, scale, ratio, name, grad_data, grad_out)
    heads = contiguous(grad_out).reshape(-1)
    if rules.channels != SAME_CHANNEL:
        items = tiles.items_of(setting, channels, groups, sizes.grouped_channels, sizes)
        with flat_output(grad_data) as target:
            gather = grouped_kernel(rules, name, bool(accumulate), sizes)
            launch(gather, items, sizes.pixels, heads, rois, setting, groups, items, channels, target)
        return
    items = tiles.items_of(setting, channels, groups, sizes.channels, sizes)
    bins, per_roi = pooled_h + pooled_w, pooled_h * height + pooled_w * width
    at_a_time = max(1, min(count, _TABLE_BYTES // (per_roi * computing(name).real().itemsize)))
    spans = empty((at_a_time * bins, 2), np.int32, device_id)
    weights = empty((at_a_time * per_roi,), computing(name).real, device_id)
    with flat_output(grad_data) as target:
        for first in range(0, max(count, 1), at_a_time):
            chunk = rois[first : first + at_a_time]
            blocks = -(-chunk.shape[0] * bins // sizes.threads)
            launch(tables_kernel(rules), blocks, sizes.threads, chunk, setting, spans, weights)
            lists = tiles.lists_of_bins(chunk, setting, groups, spans, device_id, sizes)
            gather = backward_kernel(name, bool(accumulate or first), sizes)
            inputs = heads[first * channels * pooled_h * pooled_w :], spans, weights, lists
            launch(gather, items, sizes.pixels, *inputs, setting, items, channels, target)
