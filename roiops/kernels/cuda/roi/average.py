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
from roiops.kernels.cuda.lanes import THREAD_LANES, divided, lanes_for, layout_of, quads_of
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

# Pixels of a row whose loads a thread has under way at a time.
_COLUMNS = 4
_WARP = 32


class _Tables(NamedTuple):
    """The axis tables in shared memory: a bin averages ``count`` places from ``slot`` times its number on.

    Those of the y axis, from 0 on, come before those of the x axis.
    """

    at: object
    weight: object
    count: object


@functools.cache
def forward_kernel(rules, name, layout, sizes, clear=True):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, load, _, add_sample, store, _ = lanes_for(name, layout)
    table_size, tables_size, values_size = sizes.table, 2 * sizes.table, _COLUMNS * THREAD_LANES
    same_channel = rules.channels == SAME_CHANNEL

    @device
    def fill(rois, r, setting, strides, tables, wide):
        """Write this thread's part of the tables, a bin of either axis at a time."""
        y, x = axes(rules, rois, r, setting)
        for k in range(cuda.threadIdx.x, y.bins + x.bins, cuda.blockDim.x):
            axis, i, first, stride = y, k, 0, strides[2]
            if k >= y.bins:
                axis, i, first, stride = x, k - y.bins, table_size, strides[3]
            slot = table_size // axis.bins
            if geometry.taps_bound(rules, axis) > slot * axis.bins:
                low, high = bin_pixels(rules, axis, i)
                if high - low > slot:
                    wide[0] = 1
                    continue
            first += i * slot
            n = geometry.bin_taps(rules, axis, i, tables.at, tables.weight, first)
            for tap in range(first, first + n):
                tables.at[tap] *= stride
            tables.count[(k if k < y.bins else table_size + i)] = n

    @device
    def average_of_tables(data, base, tables, i, y_slot, j, x_slot, total):
        """All pixels of some columns are loaded before any is added, so that the memory is waited for once."""
        values = cuda.local.array(values_size, shared)
        start = np.int32(table_size + j * x_slot)
        last = np.int32(start + tables.count[np.uint32(table_size + j)])
        above = np.int32(i * y_slot)
        for a in range(above, np.int32(above + tables.count[np.uint32(i)])):
            for b in range(start, last, np.int32(_COLUMNS)):
                for k in range(_COLUMNS):
                    if b + k < last:
                        four = load(data, base, tables.at[np.uint32(a)] + tables.at[np.uint32(b + k)])
                        for lane in range(THREAD_LANES):
                            values[k * THREAD_LANES + lane] = four[lane]
                for k in range(_COLUMNS):
                    if b + k < last:
                        weight = tables.weight[np.uint32(a)] * tables.weight[np.uint32(b + k)]
                        for lane in range(THREAD_LANES):
                            total[lane] += weight * values[k * THREAD_LANES + lane]

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

    @kernel(real, 96)
    def average_forward(data, strides, rois, setting, groups, slabs, channels, out):
        at = cuda.shared.array(tables_size, numba.int64)
        weight = cuda.shared.array(tables_size, shared)
        count = cuda.shared.array(tables_size, numba.int32)
        wide = cuda.shared.array(1, numba.int32)
        base = cuda.local.array(THREAD_LANES, numba.int64)
        total = cuda.local.array(THREAD_LANES, shared)
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        tables, y_slot, x_slot = _Tables(at, weight, count), table_size // pooled_h, table_size // pooled_w
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
            if n >= 0 and fits:
                fill(rois, r, setting, strides, tables, wide)
            cuda.syncthreads()
            for unit in range(thread, area * own_quads, threads):
                spot, quad = spot_and_quad(unit, area, own_quads)
                quad += first
                i, j = divided(spot, pooled_w)
                group = 0, 0
                if not same_channel:
                    group = geometry.group_of(i, pooled_h, groups[0]), geometry.group_of(j, pooled_w, groups[1])
                begin(strides, n, 0, quad, quads, channels, group, groups, base, total)
                if n >= 0 and wide[0] == 0:
                    average_of_tables(data, base, tables, i, y_slot, j, x_slot, total)
                elif n >= 0:
                    # It seems to change: else what follows from it would be kept in registers all along.
                    y, x = axes(rules, rois, r + wide[0] - 1, setting)
                    average_of_samples(data, base, strides, y, i, x, j, total)
                store(total, out, r * channels, quad, quads, channels, area, spot)
            cuda.syncthreads()

    return average_forward


def slabs_for(items, quads, least, sizes):
    """Into how many slabs to cut ``quads`` so that there is enough to do for every multiprocessor."""
    wanted = -(-sizes.blocks // max(items, 1))
    return max(1, min(wanted, -(-quads // least)))


def threads_for(units, most):
    """How many threads of a block take as many turns at its units as ``most`` do: whole warps."""
    turns = -(-units // most)
    return min(most, -(-units // (turns * _WARP)) * _WARP)


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
    units = out.shape[2] * out.shape[3] * -(-quads_of(channels) // slabs)
    layout = layout_of(elements, strides, channels, groups[0] * groups[1])
    with flat_output(out) as target:
        pool = forward_kernel(rules, name, layout, sizes, clear)
        inputs = elements, strides, rois_of(rois, name), setting, groups
        launch(pool, count * slabs, threads_for(units, sizes.unit_threads), *inputs, slabs, channels, target)


def setting_of(rules, scale, ratio, name, data, out):
    """The :class:`geometry.Setting` that kernels for ``name`` are given."""
    return geometry.setting_of(rules, scale, ratio, computing(name).real, data.shape, out.shape)


def rois_of(rois, name):
    """``rois`` in the type that kernels for ``name`` compute with."""
    return contiguous(rois, computing(name).real)


# -- gradient --------------------------------------------------------------------------------------------

# ROIs whose bins a block looks for at a time.
_EDGES = 32
# Bytes of the tables that are held at a time; with more ROIs than fit, these come in turns.
_TABLE_BYTES = 64 << 20


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
    y_size, x_size, area = tile_h * bins, tile_w * bins, bins * bins
    # The channels of a bin are neighbours in shared memory, to be loaded in quads. Between those of two bins
    # lies a quad more, so that a warp, which writes one channel of many bins, meets more banks.
    step = quads_up_to(slab) + QUAD
    head_size, edges_size = step * area, QUAD * _EDGES
    lanes = threads // area  # channels that are loaded at a time
    y_turns, x_turns, turns = -(-y_size // threads), -(-x_size // threads), -(-slab // lanes)
    add_head = tiles.adding(slab)

    @device
    def find_bins(spans, found, begin, number, tile, setting, edges):
        """Write from where to where the bins of ``number`` ROIs touch the tile, four edges of each."""
        thread, pooled_h, bins_of_both = cuda.threadIdx.x, setting.pooled_h, setting.pooled_h + setting.pooled_w
        for k in range(thread, QUAD * number, threads):
            edges[k] = 0 if k % 2 else bins_of_both
        cuda.syncthreads()
        for k in range(thread, number * bins_of_both, threads):
            q, i = divided(k, bins_of_both)
            entry = np.uint64(found[begin + q] * bins_of_both + i)
            at, origin, size = QUAD * q, tile.top, tile_h
            if i >= pooled_h:
                i, at, origin, size = i - pooled_h, at + 2, tile.left, tile_w
            if (spans[entry, 0] < origin + size) & (spans[entry, 1] > origin):
                cuda.atomic.min(edges, at, np.int32(i))
                cuda.atomic.max(edges, at + 1, np.int32(i + 1))
        cuda.syncthreads()

    @device
    def weight_of(spans, entry, weights, at, extent, number, origin, size, k):
        """What the ``k``-th of the weights of ``number`` bins on the pixels of a tile is, bin by bin.

        So the threads of a warp, which have a row of the tile, read neighbours: each from a bank of its own.
        """
        i, pixel = k // size, np.int32(origin + k % size)
        inside = i < number and pixel < np.int32(extent)
        bin_ = np.uint64(entry + (i if inside else 0))
        low, high = spans[bin_, 0], spans[bin_, 1]
        # Loaded before it is known whether it was written: so the memory is waited for once.
        weight = weights[np.uint64(at + np.uint32(i * extent + pixel if inside else 0))]
        # No ``and``, which would wait for the one before it asks for the other.
        return weight if inside & (pixel >= low) & (pixel < high) else real(0)

    @device
    def take(inputs, r, bin_y, bin_x, tile, setting, channels, y_weight, x_weight, head):
        """The weights of some bins on a tile, and their head gradients for its channels.

        All loads come before the first store, so that the memory is waited for once.
        """
        heads, spans, weights = inputs
        i, high = bin_y
        j, wide = bin_x
        # It seems to depend on the bins: else what follows from it would be kept in registers all along.
        thread = np.uint32(cuda.threadIdx.x if high > 0 else threads)
        height, width, pooled_h, pooled_w = setting.height, setting.width, setting.pooled_h, setting.pooled_w
        of_y = cuda.local.array(y_turns, shared)
        of_x = cuda.local.array(x_turns, shared)
        due = cuda.local.array(turns, shared)
        spot, lane = thread % area, thread // area
        a, b = spot // bins, spot % bins
        # How many channels there are; of a bin that is not there, none.
        number = smaller(slab, channels - tile.first_channel) if a < high and b < wide else 0
        first = (r * channels + tile.first_channel) * (pooled_h * pooled_w) + i * pooled_w + j
        for turn in range(turns):
            c = lane + turn * lanes
            due[turn] = read(
                heads[
                    np.uint64(first + np.uint32((c * pooled_h + a) * pooled_w + b if c < number else 0))
                ]
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
                y_weight[np.uint32(k)] = of_y[turn]
        for turn in range(x_turns):
            k = thread + turn * threads
            if k < x_size:
                x_weight[np.uint32(k)] = of_x[turn]
        for turn in range(turns):
            c = lane + turn * lanes
            if lane < lanes and c < slab:
                head[np.uint32(spot * step + c)] = due[turn]

    @device
    def bins_of(weights, size, at):
        """The bins ``[start, stop)`` between which those lie that weigh pixel ``at`` of a row or a column."""
        start, stop = np.int32(0), np.int32(0)
        for b in range(bins):  # those that are not there weigh nothing
            if weights[np.uint32(b * size + at)] != 0:
                start, stop = (start if stop > 0 else np.int32(b)), np.int32(b + 1)
        return start, stop

    @device
    def add_bins(y_weight, x_weight, head, thread, total):
        """Add what some bins give to the pixel of this thread: only those that weigh its row and its column."""
        row, column = thread // tile_w, thread % tile_w
        a, high = bins_of(y_weight, tile_h, row)
        left, right = bins_of(x_weight, tile_w, column)
        while a < high:
            down_weight, b = y_weight[np.uint32(a * tile_h + row)], left
            while b < right:
                weight = down_weight * x_weight[np.uint32(b * tile_w + column)]
                if weight != 0:
                    add_head(weight, head, np.uint32((a * bins + b) * step), total)
                b = np.int32(b + 1)
            a = np.int32(a + 1)

    @device
    def add_rois(inputs, found, count, tile, setting, channels, total):
        edges = cuda.shared.array(edges_size, numba.int32)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        for begin in range(0, count, _EDGES):
            number = smaller(_EDGES, count - begin)
            find_bins(inputs[1], found, begin, number, tile, setting, edges)
            for q in range(number):
                r, top, bottom = found[begin + q], edges[QUAD * q], edges[QUAD * q + 1]
                left, right = edges[QUAD * q + 2], edges[QUAD * q + 3]
                for i in range(top, bottom, np.int32(bins)):
                    for j in range(left, right, np.int32(bins)):
                        bin_y = i, np.int32(smaller(bins, bottom - i))
                        bin_x = j, np.int32(smaller(bins, right - j))
                        take(inputs, r, bin_y, bin_x, tile, setting, channels, y_weight, x_weight, head)
                        cuda.syncthreads()
                        add_bins(y_weight, x_weight, head, cuda.threadIdx.x, total)
                        cuda.syncthreads()
            cuda.syncthreads()  # also where no bin was found: the edges are read until here

    gather = tiles.gathering(name, accumulate, sizes, slab, add_rois)

    @kernel(real)
    def average_backward(heads, spans, weights, lists, setting, items, channels, grad):
        gather((heads, spans, weights), lists, setting, (1, 1), items, channels, grad)

    return average_backward


class _Noted(NamedTuple):
    """Bins in shared memory: those on the y axis, and after them the same bins on the x axis."""

    low: object  # the pixels ``[low, high)`` of a bin
    high: object
    weights_at: object  # where the weight of pixel 0 would be
    head_at: object  # where the output's gradient of its first channel is


@functools.cache
def grouped_kernel(name, accumulate, sizes):
    """The gradient where groups of bins have channels of their own.

    Of an ROI, few bins are of the group of a block, and fewer touch its tile. So it lists bins, not ROIs, and
    takes those of several ROIs at a time.
    """
    real, shared, read, _ = computing(name)
    tile_h, tile_w, threads, slab = sizes.tile_h, sizes.tile_w, sizes.pixels, sizes.grouped_channels
    at_once, entries = sizes.bins * sizes.bins, 2 * sizes.bins * sizes.bins
    store, place_of = tiles.storing(name, accumulate, slab), tiles.placing(slab, sizes)
    add_head, found_size = tiles.adding(slab), sizes.pixels * sizes.each
    # A bin's channels in quads, and one quad between those of two bins: so the threads of a warp meet more banks.
    step = quads_up_to(slab) + QUAD
    head_size, y_size, x_size, places = step * at_once, tile_h * at_once, tile_w * at_once, slab * at_once
    y_turns, x_turns, turns = (-(-size // threads) for size in (y_size, x_size, places))

    @device
    def bin_at(bins, k):
        """The ROI, the row and the column of bin ``k`` of a group."""
        first_i, first_j, tall, wide = bins
        row, j = divided(k, wide)
        r, i = divided(row, tall)
        return r, first_i + i, first_j + j

    @device
    def touches(listed, k, top, left):
        rois, spans, setting, bins, n = listed
        r, i, j = bin_at(bins, k)
        of_y = r * (setting.pooled_h + setting.pooled_w)
        of_x = np.uint64(of_y + setting.pooled_h + j)
        of_y = np.uint64(of_y + i)
        # No ``and``, so that the memory is waited for once. A row to be ignored has no pixels.
        on_y = (spans[of_y, 0] < top + tile_h) & (spans[of_y, 1] > top)
        on_x = (spans[of_x, 0] < left + tile_w) & (spans[of_x, 1] > left)
        return on_y & on_x and np.int64(rois[r, 0]) == n

    @device
    def note(listed, channels, first_channel, found, begin, number, noted):
        """Note ``number`` bins; those that are missing to ``at_once`` have no pixels."""
        _, spans, setting, bins, _ = listed
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        for entry in range(cuda.threadIdx.x, entries, threads):
            b = entry % at_once
            low, high, at = 0, 0, 0
            if b < number:
                r, i, j = bin_at(bins, found[begin + b])
                of_y, at = r * (pooled_h + pooled_w), r * (pooled_h * setting.height + pooled_w * setting.width)
                if entry < at_once:
                    low, high = spans[of_y + i, 0], spans[of_y + i, 1]
                    at += i * setting.height
                    noted.head_at[b] = ((r * channels + first_channel) * pooled_h + i) * pooled_w + j
                else:
                    low, high = spans[of_y + pooled_h + j, 0], spans[of_y + pooled_h + j, 1]
                    at += pooled_h * setting.height + j * setting.width
            noted.low[entry], noted.high[entry], noted.weights_at[entry] = low, high, at

    @device
    def weight_of(weights, noted, entry, pixel):
        if pixel >= noted.low[np.uint32(entry)] and pixel < noted.high[np.uint32(entry)]:
            return weights[np.uint64(noted.weights_at[np.uint32(entry)] + pixel)]
        return real(0)

    @device
    def take(inputs, tile, setting, channels, number, noted, y_weight, x_weight, head):
        """The weights of the noted bins on the rows and columns of the tile, and their head gradients.

        All are loaded before any is stored, so that the memory is waited for once.
        """
        heads, weights = inputs
        of_y = cuda.local.array(y_turns, shared)
        of_x = cuda.local.array(x_turns, shared)
        due = cuda.local.array(turns, shared)
        # They seem to depend on the bins, as in ``backward_kernel``.
        thread = np.uint32(cuda.threadIdx.x if number > 0 else places)
        area, top, left = setting.pooled_h * setting.pooled_w, np.int32(tile.top), np.int32(tile.left)
        for turn in range(turns):
            b, c = (thread + turn * threads) // slab, (thread + turn * threads) % slab
            due[turn] = 0
            if b < number and tile.first_channel + c < channels:
                due[turn] = read(heads[np.uint64(noted.head_at[np.uint32(b)] + np.uint32(c * area))])
        for turn in range(y_turns):
            k = smaller(np.int32(thread + turn * threads), np.int32(y_size - 1))
            of_y[turn] = weight_of(weights, noted, k // tile_h, np.int32(top + k % tile_h))
        for turn in range(x_turns):
            k = smaller(np.int32(thread + turn * threads), np.int32(x_size - 1))
            of_x[turn] = weight_of(weights, noted, at_once + k // tile_w, np.int32(left + k % tile_w))
        for turn in range(y_turns):
            k = thread + turn * threads
            if k < y_size:
                y_weight[np.uint32(k)] = of_y[turn]
        for turn in range(x_turns):
            k = thread + turn * threads
            if k < x_size:
                x_weight[np.uint32(k)] = of_x[turn]
        for turn in range(turns):
            k = thread + turn * threads
            if k < places:
                head[np.uint32(k // slab * step + k % slab)] = due[turn]

    @device
    def add_bins(y_weight, x_weight, head, number, row, column, total):
        for b in range(number):
            down_weight = y_weight[np.uint32(b * tile_h + row)]
            if down_weight == 0:
                continue
            weight = down_weight * x_weight[np.uint32(b * tile_w + column)]
            if weight != 0:
                add_head(weight, head, np.uint32(b * step), total)

    select = tiles.selecting(sizes, touches)

    @kernel(real)
    def average_grouped(heads, rois, spans, weights, setting, groups, items, channels, grad):
        running = cuda.shared.array(threads, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        low = cuda.shared.array(entries, numba.int32)
        high = cuda.shared.array(entries, numba.int32)
        weights_at = cuda.shared.array(entries, numba.int64)
        head_at = cuda.shared.array(at_once, numba.int64)
        noted = _Noted(low, high, weights_at, head_at)
        total = cuda.local.array(slab, shared)
        row, column = cuda.threadIdx.x // tile_w, cuda.threadIdx.x % tile_w
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            tile = place_of(item, channels, groups, setting)
            for c in range(slab):
                total[c] = 0
            first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
            first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
            listed = rois, spans, setting, (first_i, first_j, stop_i - first_i, stop_j - first_j), tile.n
            end = rois.shape[0] * (stop_i - first_i) * (stop_j - first_j)
            for first in range(0, end, found_size):
                select(listed, first, smaller(first + found_size, end), tile.top, tile.left, running, found)
                for begin in range(0, running[threads - 1], at_once):
                    number = smaller(at_once, running[threads - 1] - begin)
                    note(listed, channels, tile.first_channel, found, begin, number, noted)
                    cuda.syncthreads()
                    take((heads, weights), tile, setting, channels, number, noted, y_weight, x_weight, head)
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
    grouped = rules.channels != SAME_CHANNEL
    slab = sizes.grouped_channels if grouped else sizes.channels
    items = tiles.items_of(setting, channels, groups, slab, sizes)
    bins, per_roi = pooled_h + pooled_w, pooled_h * height + pooled_w * width
    at_a_time = max(1, min(count, _TABLE_BYTES // (per_roi * computing(name).real().itemsize)))
    spans = empty((at_a_time * bins, 2), np.int32, device_id)
    weights = empty((at_a_time * per_roi,), computing(name).real, device_id)
    with flat_output(grad_data) as target:
        for first in range(0, max(count, 1), at_a_time):
            chunk = rois[first : first + at_a_time]
            blocks = -(-chunk.shape[0] * bins // sizes.threads)
            launch(tables_kernel(rules), blocks, sizes.threads, chunk, setting, spans, weights)
            part, add = heads[first * channels * pooled_h * pooled_w :], bool(accumulate or first)
            if grouped:
                gather = grouped_kernel(name, add, sizes)
                inputs = part, chunk, spans, weights, setting, groups
            else:
                gather = backward_kernel(name, add, sizes)
                inputs = part, spans, weights, tiles.lists_of_bins(chunk, setting, groups, spans, device_id, sizes), setting
            launch(gather, items, sizes.pixels, *inputs, items, channels, target)
