"""The means of :mod:`average` along the rows of the map: the way for crops of narrow boxes, where registers
are long.

Where a bin is a point, and 16 pixels of a row hold all that a row of bins reads (32 where each bin is one
pixel), a row of the map stays as it is: it is averaged with the next one, and the two pixels of each bin are
picked out of the registers. That is sooner done than turning planes into rows of lanes and bins back. Boxes
that are wider go the way of :mod:`lanes`. The sums are the same, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels.cpu.roi import lanes, tables
from roiops.kernels.cpu.roi.addresses import forward_kernel
from roiops.kernels.cpu.roi.bins import nothing_pending, prefetch_bins, target_of, write_bins
from roiops.kernels.cpu.roi.items import forward_share
from roiops.kernels.cpu.roi.tiles import bins_at, places_of, prefetch_part
from roiops.kernels.cpu.vector import (
    FIXED_LANES,
    equal,
    load,
    load_some,
    multiply_add,
    pick,
    pointer_to,
    pointers_to,
    room,
    scaled,
    select,
    splat,
    store,
    stream,
)
from roiops.kernels.geometry import larger, smaller
from roiops.kernels.jit import inner

#: Numbers of a page of memory. A store that crosses into the next page, while others are on their way past
#: the caches, takes as long as fifty.
_PAGE = 4096 // 4


class Pattern(NamedTuple):
    """What the bins of one ROI read.

    Column ``j`` of the bins reads ``count[j]`` pixels of a row, ``left[j]`` and ``right[j]`` counted from the
    first that any reads, with the weights of the same names. Row ``i`` reads the rows of the map that begin
    at ``above[i]`` and ``below[i]``, with the weights ``near[i]`` and ``far[i]``; ``above[i]`` is -1 if it
    reads none.
    """

    count: np.ndarray
    left: np.ndarray
    right: np.ndarray
    left_weight: np.ndarray
    right_weight: np.ndarray
    above: np.ndarray
    below: np.ndarray
    near: np.ndarray
    far: np.ndarray


@inner
def _room_for_pattern(bins_high, number):
    lanes_ = room(FIXED_LANES, np.int32(0)), room(FIXED_LANES, np.int32(0)), room(FIXED_LANES, np.int32(0))
    for each in lanes_:
        for j in range(FIXED_LANES):
            each[j] = 0
    weights = room(FIXED_LANES, number), room(FIXED_LANES, number)
    places = room(bins_high, np.int64(0)), room(bins_high, np.int64(0))
    return lanes_ + weights + places + (room(bins_high, number), room(bins_high, number))


@inner
def _fill_columns(x, row, bins, pattern):
    """Fill the columns: ``(each, low, wide)``, how many pixels each reads, of ``wide`` from ``low`` on.

    ``each`` is 0 if they differ in number, or registers do not hold them.
    """
    each, low, high = np.int64(0), np.int64(0), np.int64(-1)
    for j in range(row, row + bins):
        a, b = x.at[j], x.at[j + 1]
        if a < b:
            if b - a > 2 or (each > 0 and b - a != each):
                return np.int64(0), low, high
            one, other = np.int64(x.pixel[a]), np.int64(x.pixel[b - 1])
            low = smaller(smaller(one, other), low) if each else smaller(one, other)
            high = larger(larger(one, other), high) if each else larger(one, other)
            each = b - a
    if high - low >= (2 * FIXED_LANES if each == 1 else FIXED_LANES):
        return np.int64(0), low, high
    for j in range(bins):
        a, b = x.at[row + j], x.at[row + j + 1]
        pattern.count[j] = b - a
        if a < b:
            pattern.left[j], pattern.right[j] = x.pixel[a] - low, x.pixel[b - 1] - low
            pattern.left_weight[j], pattern.right_weight[j] = x.weight[a], x.weight[b - 1]
    return each, low, high + 1 - low


@inner
def _fill_rows(y, row, bins, each, width, pattern):
    """Fill the rows; says whether each reads ``each`` rows of the map, or none."""
    for i in range(bins):
        a, b = y.at[row + i], y.at[row + i + 1]
        pattern.above[i] = -1
        if a < b:
            if b - a != each:
                return False
            pattern.above[i], pattern.below[i] = y.pixel[a] * width, y.pixel[b - 1] * width
            pattern.near[i], pattern.far[i] = y.weight[a], y.weight[b - 1]
    return True


@inner
def _bins_of_channel(pattern, each, values, at, count, rows, wide, bins, to):
    """The bins of a channel, which read ``each`` pixels on either axis, from ``to`` on.

    ``at`` is the first pixel that any of them reads, of ``count``.
    """
    zero = splat(type(bins[0])(0))
    left, right = load(pattern.left, 0), load(pattern.right, 0)
    left_weight, right_weight = load(pattern.left_weight, 0), load(pattern.right_weight, 0)
    none = equal(load(pattern.count, 0), splat(np.int32(0)))
    for i in range(rows):
        total = zero
        if pattern.above[i] >= 0:
            above, near = at + pattern.above[i], pattern.near[i]
            line = rest = scaled(near, load_some(values, above, count))
            if each == 2:
                line = multiply_add(pattern.far[i], load_some(values, at + pattern.below[i], count), line)
            elif count > FIXED_LANES:
                rest = scaled(near, load_some(values, above + FIXED_LANES, count - FIXED_LANES))
            total = multiply_add(left_weight, pick(line, rest, left), zero)
            if each == 2:
                total = multiply_add(right_weight, pick(line, line, right), total)
            total = select(none, zero, total)
        # What is stored beyond the row is written again with the next one.
        store(bins, to, total)
        to += wide


@inner
def _send(bins, begin, stop, target, base):
    """Write ``bins[begin:stop]`` past the caches to the output from ``base + begin`` on.

    A last line that is not full is moved to the start of ``bins`` instead. Returns where it began.
    """
    first = smaller(stop, (begin + FIXED_LANES - 1) // FIXED_LANES * FIXED_LANES)
    for k in range(begin, first):
        target.out[base + k] = bins[k]
    last = first + (stop - first) // FIXED_LANES * FIXED_LANES
    for k in range(first, last, FIXED_LANES):
        stream(target.out, base + k, load(bins, k))
    if last < stop:
        store(bins, 0, load(bins, last))
    return last


@inner
def _pool(r, item, planes, y, x, pattern, page, target, to):
    """Write the means of ROI ``r`` past the caches, if it is narrow; says whether it was."""
    high, wide = item.pooled_h, item.pooled_w
    each, low, count = _fill_columns(x, r * (wide + 1), wide, pattern)
    if each == 0 or not _fill_rows(y, r * (high + 1), high, each, planes.width, pattern):
        return False
    # Lines begin in ``page`` where they do in the output.
    begin = (target.address + to) % FIXED_LANES
    stop, base = begin, to - begin
    for c in range(item.channels):
        if c > 0 and stop + high * wide + FIXED_LANES > _PAGE:
            sent = _send(page, begin, stop, target, base)
            begin, stop, base = 0, stop - sent, base + sent
        at = planes.at + c * planes.step + low
        _bins_of_channel(pattern, each, planes.values, at, count, high, wide, page, stop)
        stop += high * wide
    sent = _send(page, begin, stop, target, base)
    for k in range(stop - sent):
        target.out[base + sent + k] = page[k]
    return True


@inner(makes_arrays=False)
def _pool_rois(item, planes, next_planes, shapes, plan, table, memory, tile, out, arrays, page_memory):
    order, image_at = plan
    first, stop = places_of(item, image_at)
    y, x = tables.axes_of(table)
    target, pattern = target_of(item, out, memory.scratch), Pattern(*pointers_to(arrays))
    page, line, bins = pointer_to(page_memory), pointer_to(memory.line), pointer_to(memory.bins)
    for place in range(first, stop):
        to = bins_at(item, shapes, order[place])
        prefetch_part(item, next_planes, place - first, stop - first)
        prefetch_bins(item, target, to)
        # An output that begins between two numbers has no whole cache lines to write past the caches.
        if target.past_caches and _pool(order[place], item, planes, y, x, pattern, page, target, to):
            continue
        told = nothing_pending(target), pointer_to(memory.found), ()
        lanes.pool(order[place], item, planes, tile, y, x, line, bins, told)
        write_bins(bins, item, target, to)


@inner
def _pool_item(item, planes, next_planes, shapes, plan, table, memory, tile, out, more):
    # Arrays that are made here, and read through pointers within a loop of another function: looked up for
    # each ROI, they took a sixth of the time.
    number = out.dtype.type(0)
    arrays = _room_for_pattern(item.pooled_h, number)
    size = larger(_PAGE, item.pooled_h * item.pooled_w + 2 * FIXED_LANES)
    page_memory = room(size + _PAGE, number)
    start = -(page_memory.ctypes.data // out.itemsize) % _PAGE
    page_memory = page_memory[start : start + size]
    _pool_rois(item, planes, next_planes, shapes, plan, table, memory, tile, out, arrays, page_memory)


FORWARD = forward_kernel(__name__, tables.build, forward_share(_pool_item))
