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

from ... import geometry
from ...geometry import smaller
from ...jit import njit
from ...rules import CORNERS_YX_NORMALISED, SAME_CHANNEL
from ..lanes import THREAD_LANES, divided, lanes_for, layout_of, quads_of
from ..number import computing, kind_of
from ..runtime import (
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
from . import tiles
from .tiles import bin_pixels, quads_up_to

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
    spot_and_quad, begin, load, add, _, store, _ = lanes_for(name, layout)
    table_size, tables_size, values_size = sizes.table, 2 * sizes.table, _COLUMNS * THREAD_LANES
    same_channel = rules.channels == SAME_CHANNEL

    @device
    def fill(rois, r, setting, strides, tables, slots, wide):
        """Write this thread's part of the tables, a bin of either axis at a time."""
        y, x = geometry.box_axes(rules, rois, r, setting)
        k, bins = np.int32(cuda.threadIdx.x), np.int32(setting.pooled_h + setting.pooled_w)
        while k < bins:  # not over a range, which would work out its length by a division
            axis, i, first, slot, stride = y, k, 0, slots[0], strides[2]
            if k >= y.bins:
                axis, i, first, slot, stride = x, k - y.bins, table_size, slots[1], strides[3]
            low, high = 0, 0
            if geometry.taps_bound(rules, axis) > slot * axis.bins:
                low, high = bin_pixels(rules, axis, i)
            if high - low > slot:
                wide[0] = 1
            else:
                at = first + i * slot
                n = geometry.bin_taps(rules, axis, i, tables.at, tables.weight, at)
                for tap in range(at, at + n):
                    tables.at[tap] *= stride
                tables.count[first + i] = n
            k = np.int32(k + cuda.blockDim.x)

    @device
    def add_values(weight, values, k, total):
        for lane in range(THREAD_LANES):
            total[lane] += weight * values[k * THREAD_LANES + lane]

    @device
    def average_of_tables(data, base, tables, i, y_slot, j, x_slot, total):
        """Some pixels of a row are loaded before any is added, so that the memory is waited for once."""
        values = cuda.local.array(values_size, shared)
        start = np.int32(table_size + j * x_slot)
        last = np.int32(start + tables.count[np.uint32(table_size + j)])
        above = np.int32(i * y_slot)
        for a in range(above, np.int32(above + tables.count[np.uint32(i)])):
            for b in range(start, last, np.int32(_COLUMNS)):
                for k in range(_COLUMNS):
                    if b + k < last:
                        four = load(data, base, tables.at[np.uint32(a)] + tables.at[np.uint32(b + k)])
                        values[4 * k], values[4 * k + 1], values[4 * k + 2], values[4 * k + 3] = four
                for k in range(_COLUMNS):
                    if b + k < last:
                        add_values(
                            tables.weight[np.uint32(a)] * tables.weight[np.uint32(b + k)], values, k, total
                        )

    @device
    def tap(axis, i, k, end, count):
        """The pixel at either end of a sample, and its weight: zero if it is not to be read."""
        valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
        weight = weight1 if end else weight0
        return np.int32(pixel1 if end else pixel0), (weight if valid else real(0))

    @device
    def average_of_samples(data, base, strides, y, i, x, j, total):
        grid_y, grid_x = geometry.bin_grid(rules, y, i), geometry.bin_grid(rules, x, j)
        for ky in range(2 * grid_y.first, 2 * grid_y.stop):
            row, down_weight = tap(y, i, ky // 2, ky % 2, grid_y.count)
            if down_weight == 0:
                continue
            for kx in range(2 * grid_x.first, 2 * grid_x.stop):
                column, weight = tap(x, j, kx // 2, kx % 2, grid_x.count)
                if weight != 0:
                    add(data, base, row * strides[2] + column * strides[3], down_weight * weight, total)
        for lane in range(THREAD_LANES):
            if grid_y.count > 0 and grid_x.count > 0:
                total[lane] /= real(grid_y.count) * real(grid_x.count)

    @kernel(real, 80 if rules.boxes == CORNERS_YX_NORMALISED else 72)  # those take doubles
    def average_forward(data, strides, rois, setting, groups, slabs, channels, out):
        at = cuda.shared.array(tables_size, numba.int64)
        weight = cuda.shared.array(tables_size, shared)
        count = cuda.shared.array(tables_size, numba.int32)
        wide = cuda.shared.array(1, numba.int32)
        base = cuda.local.array(THREAD_LANES, numba.int64)
        total = cuda.local.array(THREAD_LANES, shared)
        thread, threads = np.int32(cuda.threadIdx.x), np.int32(cuda.blockDim.x)
        pooled_h, pooled_w = setting.pooled_h, setting.pooled_w
        tables = _Tables(at, weight, count)
        y_slot, x_slot = divided(table_size, pooled_h)[0], divided(table_size, pooled_w)[0]
        area, quads = np.int32(pooled_h * pooled_w), np.int32((channels + THREAD_LANES - 1) // THREAD_LANES)
        item = np.int32(cuda.blockIdx.x)
        while item < rois.shape[0] * slabs:
            r, slab = divided(item, slabs)
            first = divided(slab * quads, slabs)[0]
            own_quads = np.int32(divided((slab + 1) * quads, slabs)[0] - first)
            n = np.int32(geometry.image_of(rois, r, setting.images))
            if n >= 0 or clear:  # all threads of the block alike
                fits = y_slot > 0 and x_slot > 0  # as many bins as the tables have room for
                if thread == 0:
                    wide[0] = 0 if fits else 1
                cuda.syncthreads()
                if n >= 0 and fits:
                    fill(rois, r, setting, strides, tables, (y_slot, x_slot), wide)
                cuda.syncthreads()
                unit = thread
                while unit < area * own_quads:
                    spot, quad = spot_and_quad(unit, area, own_quads)
                    quad += first
                    i, j = divided(spot, pooled_w)
                    group = 0, 0
                    if not same_channel:
                        group = (
                            geometry.group_of(i, pooled_h, groups[0]),
                            geometry.group_of(j, pooled_w, groups[1]),
                        )
                    begin(strides, n, 0, quad, quads, channels, group, groups, base, total)
                    if n >= 0 and wide[0] == 0:
                        average_of_tables(data, base, tables, i, y_slot, j, x_slot, total)
                    elif n >= 0:
                        # It seems to change: else what follows from it would be kept in registers all along.
                        y, x = geometry.box_axes(rules, rois, r + wide[0] - 1, setting)
                        average_of_samples(data, base, strides, y, i, x, j, total)
                    store(total, out, r * channels, quad, quads, channels, area, spot)
                    unit = np.int32(unit + threads)
                cuda.syncthreads()
            item = np.int32(item + cuda.gridDim.x)

    return average_forward


def _cut(count, area, quads, sizes):
    """Into how many slabs to cut the channels of ``count`` ROIs, and the threads of a block.

    A block takes ``turns`` turns of all its threads, unless that makes too few blocks for the device. It has
    no more threads, in whole warps, than its turns need.
    """
    slabs = max(area * quads // (sizes.turns * sizes.unit_threads), -(-sizes.blocks // max(count, 1)))
    slabs = max(1, min(slabs, quads // 2))
    units = area * -(-quads // slabs)
    turns = -(-units // sizes.unit_threads)
    return slabs, min(sizes.unit_threads, -(-units // (turns * _WARP)) * _WARP)


def forward(data, rois, how, out, clear=True):
    """Write the means of all bins to ``out``, and zeros for rows to be ignored unless ``clear`` is false."""
    if out.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    groups = geometry.channel_groups(how, *out.shape[2:])
    count, channels = out.shape[:2]
    elements, strides = flat_view(data)
    slabs, threads = _cut(count, out.shape[2] * out.shape[3], quads_of(channels), sizes)
    layout = layout_of(elements, strides, channels, groups[0] * groups[1])
    with flat_output(out) as target:
        pool = forward_kernel(how.rules, name, layout, sizes, clear)
        inputs = elements, strides, *boxes_and_setting(how, rois, name, data, out), groups
        launch(pool, count * slabs, threads, *inputs, slabs, channels, target)


def rois_of(rois, name):
    """``rois`` in the type that kernels for ``name`` compute with."""
    return contiguous(rois, computing(name).real)


def boxes_and_setting(how, rois, name, data, out):
    """``rois`` as :func:`rois_of` gives them, and the :class:`geometry.Setting` of the call."""
    return rois_of(rois, name), geometry.setting_of(how, computing(name).real, data.shape, out.shape)


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
                y, x = geometry.box_axes(rules, rois, r, setting)
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
        thread, pooled_h, bins_of_both = (
            cuda.threadIdx.x,
            setting.pooled_h,
            setting.pooled_h + setting.pooled_w,
        )
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
        thread = np.uint32(cuda.threadIdx.x if (high > 0) & (wide > 0) else threads)
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
                heads[np.uint64(first + np.uint32((c * pooled_h + a) * pooled_w + b if c < number else 0))]
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
    def bins_at(weights, size, at):
        """The bins ``[start, stop)`` between which those lie that weigh pixel ``at`` of a row or a column."""
        start, stop = np.int32(0), np.int32(0)
        for b in range(bins):  # those that are not there weigh nothing
            if weights[np.uint32(b * size + at)] != 0:
                start, stop = (start if stop > 0 else np.int32(b)), np.int32(b + 1)
        return start, stop

    @device
    def add_bins(y_weight, x_weight, head, thread, total):
        """Add to the pixel of this thread what bins give to it, of those that weigh its row and column."""
        row, column = thread // tile_w, thread % tile_w
        a, high = bins_at(y_weight, tile_h, row)
        left, right = bins_at(x_weight, tile_w, column)
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
        edges = cuda.shared.array(edges_size, numba.int32, alignment=16)  # see ``quad_at``
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        head = cuda.shared.array(head_size, shared, alignment=16)
        for begin in range(0, count, _EDGES):
            number = smaller(_EDGES, count - begin)
            find_bins(inputs[1], found, begin, number, tile, setting, edges)
            for q in range(number):
                top, bottom, left, right = quad_at(edges, QUAD * q)
                for i in range(top, bottom, np.int32(bins)):
                    for j in range(left, right, np.int32(bins)):
                        bin_y = i, np.int32(smaller(bins, bottom - i))
                        bin_x = j, np.int32(smaller(bins, right - j))
                        # Read here: else what follows from it would be kept in registers from bin to bin.
                        r = found[begin + q]
                        take(inputs, r, bin_y, bin_x, tile, setting, channels, y_weight, x_weight, head)
                        cuda.syncthreads()
                        add_bins(y_weight, x_weight, head, cuda.threadIdx.x, total)
                        cuda.syncthreads()
            cuda.syncthreads()  # also where no bin was found: the edges are read until here

    gather = tiles.gathering(name, accumulate, sizes, slab, add_rois)

    @kernel(real, 80)
    def average_backward(heads, spans, weights, lists, setting, items, channels, grad):
        gather((heads, spans, weights), lists, setting, (1, 1), items, channels, grad)

    return average_backward


@functools.cache
def grouped_kernel(name, accumulate, sizes):
    """The gradient where groups of bins have channels of their own.

    Of an ROI, few bins are of the group of a block, and fewer touch its tile. So it lists bins, not ROIs, and
    takes those of several ROIs at a time. Each row and each column of the tile has a mask of those that
    weigh it.
    """
    real, shared, read, _ = computing(name)
    tile_h, tile_w, threads, slab = sizes.tile_h, sizes.tile_w, sizes.pixels, sizes.grouped_channels
    at_once, found_size = sizes.bins * sizes.bins, sizes.pixels * sizes.each
    words, lanes = -(-at_once // 32), threads // at_once
    store, place_of = tiles.storing(name, accumulate, slab), tiles.placing(slab, sizes)
    add_head, turns = tiles.adding(slab), -(-slab // lanes)
    # A bin's channels in quads, and one quad between those of two bins: so a warp's threads meet more banks.
    step = quads_up_to(slab) + QUAD
    head_size, y_size, x_size = step * at_once, tile_h * at_once, tile_w * at_once
    rows_size, columns_size = words * tile_h, words * tile_w

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
    def put_weights(spans, entry, weights, at, origin, size, b, of_bins, masks):
        """Write what bin ``b`` weighs on one axis, on the pixels of the tile, and its bit to their masks."""
        low, high = spans[np.uint64(entry), 0], spans[np.uint64(entry), 1]
        low, high = geometry.larger(low, np.int32(origin)), smaller(high, np.int32(origin + size))
        four = cuda.local.array(QUAD, shared)
        for first in range(low, high, np.int32(QUAD)):
            for k in range(QUAD):
                if first + k < high:
                    four[k] = weights[np.uint64(at + first + k)]
            for k in range(QUAD):
                if first + k < high:
                    pixel = first + k - origin
                    of_bins[np.uint32(b * size + pixel)] = four[k]
                    bit = np.uint32(np.uint32(1) << np.uint32(b % 32))
                    cuda.atomic.or_(masks, np.uint32(b // 32 * size + pixel), bit)

    @device
    def take(inputs, listed, channels, tile, found, begin, number, tables, head):
        """Write the weights of some bins on the tile, their masks, and their head gradients."""
        heads, weights = inputs
        _, spans, setting, bins, _ = listed
        y_weight, x_weight, rows, columns = tables
        due = cuda.local.array(turns, shared)
        # They seem to depend on the bins, as in ``backward_kernel``.
        thread = np.uint32(cuda.threadIdx.x if number > 0 else threads)
        pooled_h, pooled_w = setting.pooled_h if number > 0 else 1, setting.pooled_w if number > 0 else 1
        area = pooled_h * pooled_w
        b, lane = thread % at_once, thread // at_once
        is_there = b < number and lane < lanes
        r, i, j = bin_at(bins, found[begin + (b if is_there else 0)])
        own = smaller(slab, channels - tile.first_channel) if is_there else 0
        at = ((r * channels + tile.first_channel) * pooled_h + i) * pooled_w + j
        for turn in range(turns):
            c = lane + turn * lanes
            due[turn] = read(heads[np.uint64(at + np.uint32(c * area if c < own else 0))])
        entry, at = r * (pooled_h + pooled_w), r * (pooled_h * setting.height + pooled_w * setting.width)
        if is_there and lane == 0:
            put_weights(
                spans, entry + i, weights, at + i * setting.height, tile.top, tile_h, b, y_weight, rows
            )
        if is_there and lane == lanes - 1:
            entry, at = entry + pooled_h + j, at + pooled_h * setting.height + j * setting.width
            put_weights(spans, entry, weights, at, tile.left, tile_w, b, x_weight, columns)
        for turn in range(turns):
            c = lane + turn * lanes
            if lane < lanes and c < slab:
                head[np.uint32(b * step + c)] = due[turn]

    @device
    def add_bins(tables, head, row, column, total):
        """Add what the bins that weigh the pixel of this thread give to it."""
        y_weight, x_weight, rows, columns = tables
        for word in range(words):
            bits = rows[np.uint32(word * tile_h + row)] & columns[np.uint32(word * tile_w + column)]
            while bits != 0:
                b = np.uint32(word * 32 + cuda.ffs(bits) - 1)
                bits = np.uint32(bits & (bits - np.uint32(1)))
                weight = y_weight[np.uint32(b * tile_h + row)] * x_weight[np.uint32(b * tile_w + column)]
                if weight != 0:
                    add_head(weight, head, np.uint32(b * step), total)

    select = tiles.selecting(sizes, touches)

    @kernel(real)
    def average_grouped(heads, rois, spans, weights, setting, groups, items, channels, grad):
        running = cuda.shared.array(threads, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        y_weight = cuda.shared.array(y_size, shared)
        x_weight = cuda.shared.array(x_size, shared)
        rows = cuda.shared.array(rows_size, numba.uint32)
        columns = cuda.shared.array(columns_size, numba.uint32)
        head = cuda.shared.array(head_size, shared, alignment=16)  # see ``quad_at``
        total = cuda.local.array(slab, shared)
        thread, tables = cuda.threadIdx.x, (y_weight, x_weight, rows, columns)
        row, column = thread // tile_w, thread % tile_w
        item = np.int32(cuda.blockIdx.x)
        while item < items:
            tile = place_of(item, channels, groups, setting)
            for c in range(slab):
                total[c] = 0
            first_i, stop_i = geometry.bins_of(tile.group_y, setting.pooled_h, groups[0])
            first_j, stop_j = geometry.bins_of(tile.group_x, setting.pooled_w, groups[1])
            bins = (
                np.int32(first_i),
                np.int32(first_j),
                np.int32(stop_i - first_i),
                np.int32(stop_j - first_j),
            )
            listed, end = (rois, spans, setting, bins, tile.n), np.int32(rois.shape[0] * (bins[2] * bins[3]))
            for first in range(np.int32(0), end, np.int32(found_size)):
                last = smaller(end, np.int32(first + found_size))
                select(listed, first, last, tile.top, tile.left, running, found)
                for begin in range(np.int32(0), running[threads - 1], np.int32(at_once)):
                    for k in range(thread, rows_size, threads):
                        rows[k] = 0
                    for k in range(thread, columns_size, threads):
                        columns[k] = 0
                    cuda.syncthreads()
                    number = np.int32(smaller(at_once, running[threads - 1] - begin))
                    take((heads, weights), listed, channels, tile, found, begin, number, tables, head)
                    cuda.syncthreads()
                    add_bins(tables, head, row, column, total)
                    cuda.syncthreads()
                cuda.syncthreads()
            store(total, tile, tile.top + row, tile.left + column, channels, groups, setting, grad)
            item = np.int32(item + cuda.gridDim.x)

    return average_grouped


def backward(grad_out, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name, device_id = tiles.SIZES, kind_of(grad_data.dtype), device_of(grad_data)
    count, channels, pooled_h, pooled_w = grad_out.shape
    _, _, height, width = grad_data.shape
    groups = geometry.channel_groups(how, pooled_h, pooled_w)
    rois, setting = boxes_and_setting(how, rois, name, grad_data, grad_out)
    heads = contiguous(grad_out).reshape(-1)
    grouped = how.rules.channels != SAME_CHANNEL
    if not grouped:
        sizes = sizes._replace(tile_h=sizes.side, tile_w=sizes.side)
    slab = sizes.grouped_channels if grouped else sizes.channels
    items = tiles.items_of(setting, channels, groups, slab, sizes)
    bins, per_roi = pooled_h + pooled_w, pooled_h * height + pooled_w * width
    at_a_time = max(1, min(count, _TABLE_BYTES // (per_roi * computing(name).real().itemsize)))
    spans = empty((at_a_time * bins, 2), np.int32, device_id)
    weights = empty((at_a_time * per_roi,), computing(name).real, device_id)
    with flat_output(grad_data) as target:
        for first in range(0, max(count, 1), at_a_time):
            chunk = rois[first : first + at_a_time]
            tiles.launch_each(tables_kernel(how.rules), chunk.shape[0] * bins, chunk, setting, spans, weights)
            part, add = heads[first * channels * pooled_h * pooled_w :], bool(accumulate or first)
            if grouped:
                gather = grouped_kernel(name, add, sizes)
                inputs = part, chunk, spans, weights, setting, groups
            else:
                gather = backward_kernel(name, add, sizes)
                lists = tiles.lists_of_bins(chunk, setting, groups, spans)
                inputs = part, spans, weights, lists, setting
            launch(gather, items, sizes.pixels, *inputs, items, channels, target)
