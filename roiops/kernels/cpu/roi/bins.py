"""The bins of one ROI: between an output, channel by channel, and rows of ``FIXED_LANES`` channels.

Bins are row-major within the item's group. Everything is flat, as in :mod:`tiles`.
"""

from typing import NamedTuple

import numpy as np

from ...geometry import smaller
from ...jit import inner
from ..vector import FIXED_LANES, load, pointer_to, prefetch_far_ahead, prefetch_to_write, stream
from .tiles import from_lanes, is_one_run, to_lanes

# Bytes of an output of which caches still hold most when it is read next, beside the map and other outputs.
# Storing what is larger past them saves reading each line before it is written.
CACHED_BYTES = 1 << 24


# Numbers that are asked for at once. Asked for more lines than it can wait for, a processor stops its work.
_AT_ONCE = 1 << 10


@inner
def _lines(item):
    """Where the lines of an item's bins are, ``(first, stop, step)``: all of them, one a channel if there are
    groups, or one a bin if the channels come last."""
    area = item.pooled_h * item.pooled_w
    if is_one_run(item):
        return 0, item.channels * area, FIXED_LANES
    first = (item.first_row * item.pooled_w + item.first_column) * item.bin_step
    if item.bin_step == 1:
        return first, item.channels * area, area
    return first, area * item.bin_step, item.bin_step


@inner
def _has_whole_rows(item):
    """Whether the bins of an item are whole rows of a ROI's."""
    return item.stop_column - item.first_column == item.pooled_w


@inner
def runs_of(item):
    """The runs that the bins of a channel of an item are: how many, of how many bins, where the first begins
    in the channel, and how far it is to the next."""
    high, wide = item.stop_row - item.first_row, item.stop_column - item.first_column
    first = (item.first_row * item.pooled_w + item.first_column) * item.bin_step
    if _has_whole_rows(item):
        return 1, high * wide, first, 0
    return high, wide, first, item.pooled_w * item.bin_step


# Forward


class Target(NamedTuple):
    """Where the bins of an item go."""

    out: np.ndarray
    address: int  # of ``out``, counted in its elements
    past_caches: bool  # whether they are written past the caches: one run of an array that no cache holds
    scratch: np.ndarray  # for the bins of one ROI, and a line


class Pending(NamedTuple):
    """Bins of one ROI, in whole cache lines, which are still to be written past the caches.

    While they are on their way to memory, the processor computes: it waits only if many are written at once.
    """

    values: np.ndarray
    at: int  # of the first line, in ``values``
    out: np.ndarray
    to: int  # and in ``out``
    lines: int


@inner(makes_arrays=False)
def target_of(item, out, scratch):
    """``out`` and ``scratch`` are arrays that the caller keeps."""
    address, large = out.ctypes.data, out.size * out.itemsize > CACHED_BYTES
    past_caches = is_one_run(item) and large and address % out.itemsize == 0
    return Target(pointer_to(out), address // out.itemsize, past_caches, pointer_to(scratch))


@inner
def nothing_pending(target):
    return Pending(target.scratch, 0, target.out, 0, 0)


@inner
def prefetch_bins(item, target, to):
    """Have the lines come that :func:`put_bins` will write to, or :func:`stage_bins` fills in part."""
    first, stop, step = _lines(item)
    if target.past_caches:
        prefetch_to_write(target.out, to, 1)
        prefetch_to_write(target.out, to + stop - 1, 1)
        return
    for at in range(to + first, to + stop, step):
        prefetch_to_write(target.out, at, 1)


@inner
def put_bins(bins, item, out, to):
    """Copy bins with the channels last to ``out``, where those of one ROI's first channel begin at ``to``."""
    runs, count, first, run_step = runs_of(item)
    step, bins_step = item.bin_step, item.bins_step
    if _has_whole_rows(item):
        from_lanes(bins, 0, count, out, to + first, (step, bins_step), item.channels)
        return
    for i in range(runs):
        for j in range(count):
            at = (i * count + j) * FIXED_LANES
            there = to + first + i * run_step + j * step
            for c in range(item.channels):
                out[there + c * bins_step] = bins[at + c]


@inner
def stage_bins(bins, item, target, to):
    """Put bins in the scratch, as far from the start of a cache line as they will be in the output.

    What does not fill a line is written to the output here; the whole lines are :class:`Pending`.
    """
    scratch, out = target.scratch, target.out
    count = item.channels * item.pooled_h * item.pooled_w
    start = (target.address + to) % FIXED_LANES
    put_bins(bins, item, scratch, start)
    head = smaller(count, -start % FIXED_LANES)
    for k in range(head):
        out[to + k] = scratch[start + k]
    lines = (count - head) // FIXED_LANES
    for k in range(head + lines * FIXED_LANES, count):
        out[to + k] = scratch[start + k]
    return Pending(scratch, start + head, out, to + head, lines)


@inner
def stream_lines(pending, first, stop):
    """Write the lines ``first`` to ``stop`` of what is pending past the caches."""
    for k in range(first * FIXED_LANES, stop * FIXED_LANES, FIXED_LANES):
        stream(pending.out, pending.to + k, load(pending.values, pending.at + k))


@inner
def stream_row(pending, i, rows):
    """Write one of ``rows`` parts of what is pending."""
    each = (pending.lines + rows - 1) // rows
    stream_lines(pending, i * each, smaller((i + 1) * each, pending.lines))


@inner
def write_bins(bins, item, target, to):
    """Write a ROI's bins to the output, by the caches or past them."""
    if target.past_caches:
        pending = stage_bins(bins, item, target, to)
        stream_lines(pending, 0, pending.lines)
    else:
        put_bins(bins, item, target.out, to)


# Backward


class Upcoming(NamedTuple):
    """Where the bins of the next ROI are."""

    values: np.ndarray
    at: int


@inner
def take_bins(source, at, next_at, item, bins, by_rows):
    """The inverse of :func:`put_bins`; lanes without a channel hold any of the item's numbers.

    Those of the next ROI, from ``next_at`` on, come meanwhile: at once, or ``by_rows`` where that is better,
    as the caller has :func:`prefetch_row` ask for them with what is returned.
    """
    upcoming = Upcoming(source, next_at)
    if not (by_rows and _comes_by_rows(item)):
        _prefetch_all(item, upcoming)
    _copy_bins(source, at, item, bins)
    return upcoming


@inner
def _copy_bins(source, at, item, bins):
    runs, count, first, run_step = runs_of(item)
    step, bins_step = item.bin_step, item.bins_step
    if _has_whole_rows(item):
        to_lanes(source, at + first, (step, bins_step), item.channels, count, bins, 0)
        return
    for i in range(runs):
        for j in range(count):
            to = (i * count + j) * FIXED_LANES
            here = at + first + i * run_step + j * step
            for c in range(FIXED_LANES):
                bins[to + c] = source[here + smaller(c, item.channels - 1) * bins_step]


@inner
def _prefetch_all(item, upcoming):
    first, stop, step = _lines(item)
    for line in range(upcoming.at + first, upcoming.at + stop, step):
        prefetch_far_ahead(upcoming.values, line, 1)


@inner
def _comes_by_rows(item):
    """Whether :func:`prefetch_row` is better than all at once: for many numbers of whole rows."""
    return is_one_run(item) and item.channels * item.pooled_h * item.pooled_w > _AT_ONCE


@inner
def prefetch_row(item, i, upcoming):
    """Have a part of what is upcoming come while row ``i`` of the bins is worked on."""
    if _comes_by_rows(item):
        count = item.channels * item.pooled_w
        prefetch_far_ahead(upcoming.values, upcoming.at + i * count, count)
