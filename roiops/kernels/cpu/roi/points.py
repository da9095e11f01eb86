"""Means of at most two pixels on either axis, computed along the rows of the map.

Each plane stays as it is: a row of it is averaged with the one below, and the two pixels that a bin reads are
picked out of the registers that hold them. Where there are few channels, or one register holds the pixels of
a row of bins, this is sooner done than turning the planes into rows of lanes and the bins back. The sums are
those of :mod:`average`, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels.cpu.vector import (
    FIXED_LANES,
    MACHINE_LANES,
    aligned,
    equal,
    load,
    load_some,
    multiply_add,
    pick,
    pointer_to,
    scaled,
    select,
    splat,
    store,
    store_some,
    stream,
)
from roiops.kernels.jit import inner

# Pixels that two registers hold, of which :func:`pick` takes those of a run of bins.
_REACH = 2 * FIXED_LANES


class Runs(NamedTuple):
    """The bins of a row, in runs of at most ``FIXED_LANES``, whose pixels lie within ``_REACH`` of the first.

    Run ``v`` has the bins from ``first[v]`` to the next run's, and reads ``wide[v]`` pixels from ``low[v]``
    on. The other arrays have ``FIXED_LANES`` entries a run, one for each bin: its two pixels, counted from
    ``low``, their weights, and how many of them it reads.
    """

    first: np.ndarray
    low: np.ndarray
    wide: np.ndarray
    left: np.ndarray
    right: np.ndarray
    left_weight: np.ndarray
    right_weight: np.ndarray
    count: np.ndarray


@inner
def room_for_runs(bins, like):
    """The arrays of :class:`Runs` for any row of ``bins`` bins, with weights of the type of ``like``."""
    first, low, wide = np.empty(bins + 1, np.int64), np.empty(bins, np.int64), np.empty(bins, np.int64)
    lanes = bins * FIXED_LANES
    left, right, count = np.zeros(lanes, np.int32), np.zeros(lanes, np.int32), np.zeros(lanes, np.int32)
    return first, low, wide, left, right, aligned(lanes, like), aligned(lanes, like), count


@inner
def runs_in(arrays):
    """:class:`Runs` in what :func:`room_for_runs` has made, which the caller keeps."""
    first, low, wide, left, right, left_weight, right_weight, count = arrays
    return Runs(
        pointer_to(first),
        pointer_to(low),
        pointer_to(wide),
        pointer_to(left),
        pointer_to(right),
        pointer_to(left_weight),
        pointer_to(right_weight),
        pointer_to(count),
    )


@inner
def _most_pixels(axis, row, bins):
    """How many pixels a bin reads, of ``bins`` bins from entry ``row`` of the table on."""
    most = np.int64(0)
    for i in range(row, row + bins):
        most = max(most, axis.at[i + 1] - axis.at[i])
    return most


@inner
def _divide(x, row, bins, runs):
    """Fill ``runs``; returns how many there are, or more than there are bins if a bin is wider than a run."""
    v, low, high = 0, np.int64(0), np.int64(0)
    runs.first[0] = 0
    for j in range(bins):
        a, b = x.at[row + j], x.at[row + j + 1]
        if j == 0 or j - runs.first[v] == FIXED_LANES:
            v += j > 0
            runs.first[v], low, high = j, 0, 0
        if a < b:
            least, most = x.pixel[a], x.pixel[b - 1] + 1
            if most - least > _REACH:
                return bins + 1
            if low < high and max(high, most) - min(low, least) > _REACH:
                v += 1
                runs.first[v], low, high = j, 0, 0
            low, high = (min(low, least), max(high, most)) if low < high else (least, most)
        runs.low[v], runs.wide[v] = low, high - low
    runs.first[v + 1] = bins
    for k in range(v + 1):
        for j in range(runs.first[k], runs.first[k + 1]):
            a, b = x.at[row + j], x.at[row + j + 1]
            lane = k * FIXED_LANES + j - runs.first[k]
            runs.count[lane] = b - a
            if a < b:
                runs.left[lane], runs.right[lane] = x.pixel[a] - runs.low[k], x.pixel[b - 1] - runs.low[k]
                runs.left_weight[lane], runs.right_weight[lane] = x.weight[a], x.weight[b - 1]
    return v + 1


@inner
def _averaged(values, above, below, near, far, rows, count):
    """Some pixels of one row of the map, or the average of two."""
    if rows == 1:
        return scaled(near, load_some(values, above, count))
    return multiply_add(far, load_some(values, below, count), scaled(near, load_some(values, above, count)))


@inner
def _fill_run(runs, v, planes, at, y, row, item, bins, to):
    """The bins of run ``v`` of the channel that begins at ``at``, from ``to`` on."""
    zero = splat(type(bins[0])(0))
    lanes = v * FIXED_LANES
    left, right, count = load(runs.left, lanes), load(runs.right, lanes), load(runs.count, lanes)
    left_weight, right_weight = load(runs.left_weight, lanes), load(runs.right_weight, lanes)
    one, two = equal(count, splat(np.int32(1))), equal(count, splat(np.int32(2)))
    first, stop, wide = runs.first[v], runs.first[v + 1], runs.wide[v]
    at += runs.low[v]
    for i in range(item.pooled_h):
        a, b = y.at[row + i], y.at[row + i + 1]
        total = zero
        if a < b and wide:
            above, below = at + y.pixel[a] * planes.width, at + y.pixel[b - 1] * planes.width
            near, far = y.weight[a], y.weight[b - 1]
            low = _averaged(planes.values, above, below, near, far, b - a, wide)
            high = low
            if wide > FIXED_LANES:
                above, below = above + FIXED_LANES, below + FIXED_LANES
                high = _averaged(planes.values, above, below, near, far, b - a, wide - FIXED_LANES)
            of_left = multiply_add(left_weight, pick(low, high, left), zero)
            of_both = multiply_add(right_weight, pick(low, high, right), of_left)
            total = select(two, of_both, select(one, of_left, zero))
        store_some(bins, to + i * item.pooled_w + first, total, stop - first)


@inner
def has_few_channels(item, itemsize):
    """Whether :func:`pool_points` may be the way.

    A run of bins of one channel takes as long as a bin of ``FIXED_LANES`` channels, turned there and back.
    """
    whole = item.stop_column - item.first_column == item.pooled_w
    whole = whole and item.stop_row - item.first_row == item.pooled_h
    runs = (item.pooled_w + FIXED_LANES - 1) // FIXED_LANES  # or more
    few = runs * item.channels <= item.pooled_w
    return MACHINE_LANES >= FIXED_LANES and itemsize == 4 and whole and few


@inner
def pool_points(r, item, planes, y, x, runs, bins):
    """Write the means of ROI ``r`` to ``bins``, channel by channel, if this is the way to compute them."""
    high, wide = item.pooled_h, item.pooled_w
    row, column = r * (high + 1), r * (wide + 1)
    if _most_pixels(y, row, high) > 2 or _most_pixels(x, column, wide) > 2:
        return False
    found = _divide(x, column, wide, runs)
    if found * item.channels > wide:
        return False
    for c in range(item.channels):
        at = planes.at + c * planes.step
        for v in range(found):
            _fill_run(runs, v, planes, at, y, row, item, bins, c * high * wide)
    return True


# One run of all bins of a row, which read as many pixels each. Any number of channels.


class Narrow(NamedTuple):
    """A ROI whose bins are one such run, and room for some of them.

    ``runs`` has the one. Row ``i`` of the bins reads the rows of the map that begin at ``above[i]`` and
    ``below[i]``, with the weights ``near[i]`` and ``far[i]``; ``above[i]`` is -1 if it reads nothing.
    """

    runs: Runs
    above: np.ndarray
    below: np.ndarray
    near: np.ndarray
    far: np.ndarray
    bins: np.ndarray


# Numbers of a page of memory. A store that crosses into the next page, while others are on their way past the
# caches, takes as long as fifty.
_PAGE = 4096 // 4


@inner
def room_for_narrow(high, wide, like):
    """The arrays of :class:`Narrow`, but for those of :class:`Runs`, for ``high`` rows of ``wide`` bins."""
    above, below = np.empty(high, np.int64), np.empty(high, np.int64)
    bins = aligned(max(_PAGE, high * wide + 2 * FIXED_LANES), like, 4096)
    return above, below, aligned(high, like), aligned(high, like), bins


@inner
def narrow_in(runs, arrays):
    """:class:`Narrow` in what :func:`room_for_narrow` has made, which the caller keeps."""
    above, below, near, far, bins = arrays
    return Narrow(
        runs, pointer_to(above), pointer_to(below), pointer_to(near), pointer_to(far), pointer_to(bins)
    )


@inner
def _fill_row(x, row, bins, runs):
    """Fill the one run, if each bin reads as many pixels, or none, and registers hold all of them.

    Returns how many each reads, one or two, or 0 if it is not so.
    """
    each, low, high = np.int64(0), np.int64(0), np.int64(-1)
    for j in range(row, row + bins):
        a, b = x.at[j], x.at[j + 1]
        if a < b:
            if b - a > 2 or (each and b - a != each):
                return np.int64(0)
            least, most = min(x.pixel[a], x.pixel[b - 1]), max(x.pixel[a], x.pixel[b - 1])
            low, high = (min(low, least), max(high, most)) if each else (least, most)
            each = b - a
    if high - low >= (_REACH if each == 1 else FIXED_LANES):
        return np.int64(0)
    for j in range(bins):
        a, b = x.at[row + j], x.at[row + j + 1]
        runs.count[j] = b - a
        if a < b:
            runs.left[j], runs.right[j] = x.pixel[a] - low, x.pixel[b - 1] - low
            runs.left_weight[j], runs.right_weight[j] = x.weight[a], x.weight[b - 1]
    runs.low[0], runs.wide[0] = low, high + 1 - low
    return each


@inner
def _fill_column(y, row, bins, each, width, narrow):
    """Fill the rows; says whether each reads ``each`` rows of the map, or none."""
    for i in range(bins):
        a, b = y.at[row + i], y.at[row + i + 1]
        narrow.above[i] = -1
        if a < b:
            if b - a != each:
                return False
            narrow.above[i], narrow.below[i] = y.pixel[a] * width, y.pixel[b - 1] * width
            narrow.near[i], narrow.far[i] = y.weight[a], y.weight[b - 1]
    return True


def _fill_by(each, registers):
    """A function that computes the bins of a channel, which read ``each`` pixels on either axis.

    The channel begins at ``at``, its bins at ``to``. ``registers`` hold the pixels of a row.
    """

    @inner
    def fill(narrow, values, at, high, wide, to):
        runs, bins = narrow.runs, narrow.bins
        zero = splat(type(bins[0])(0))
        left, right = load(runs.left, 0), load(runs.right, 0)
        left_weight, right_weight = load(runs.left_weight, 0), load(runs.right_weight, 0)
        none = equal(load(runs.count, 0), splat(np.int32(0)))
        at, count = at + runs.low[0], runs.wide[0]
        for i in range(high):
            total = zero
            if narrow.above[i] >= 0:
                above, near = at + narrow.above[i], narrow.near[i]
                if registers == 2:
                    beyond = load_some(values, above + FIXED_LANES, count - FIXED_LANES)
                    picked = scaled(near, pick(load(values, above), beyond, left))
                    total = multiply_add(left_weight, picked, zero)
                else:
                    line = scaled(near, load_some(values, above, count))
                    if each == 2:
                        under = load_some(values, at + narrow.below[i], count)
                        line = multiply_add(narrow.far[i], under, line)
                    total = multiply_add(left_weight, pick(line, line, left), zero)
                    if each == 2:
                        total = multiply_add(right_weight, pick(line, line, right), total)
                total = select(none, zero, total)
            # What is stored beyond the row is written again with the next one.
            store(bins, to, total)
            to += wide

    return fill


_fill_points, _fill_pixels, _fill_far_pixels = _fill_by(2, 1), _fill_by(1, 1), _fill_by(1, 2)


@inner
def may_be_narrow(item, itemsize):
    """Whether :func:`pool_narrow` may be the way for an item that is written past the caches.

    A row of such bins of one channel takes 0.8 of the time of a bin of ``FIXED_LANES`` channels.
    """
    fast = 4 * item.channels <= 5 * item.pooled_w and item.pooled_w <= FIXED_LANES
    return MACHINE_LANES >= FIXED_LANES and itemsize == 4 and fast


@inner
def _send(bins, begin, stop, out, base):
    """Write ``bins[begin:stop]`` past the caches to ``out`` from ``base + begin`` on.

    A last line that is not full is moved to the start of ``bins`` instead. Returns where it began.
    """
    first = min(stop, (begin + FIXED_LANES - 1) // FIXED_LANES * FIXED_LANES)
    for k in range(begin, first):
        out[base + k] = bins[k]
    last = first + (stop - first) // FIXED_LANES * FIXED_LANES
    for k in range(first, last, FIXED_LANES):
        stream(out, base + k, load(bins, k))
    if last < stop:
        store(bins, 0, load(bins, last))
    return last


@inner
def pool_narrow(r, item, planes, y, x, narrow, out, address, to):
    """Write the means of ROI ``r`` to ``out`` past the caches, if this is the way to compute them."""
    high, wide = item.pooled_h, item.pooled_w
    each = _fill_row(x, r * (wide + 1), wide, narrow.runs)
    if each == 0 or not _fill_column(y, r * (high + 1), high, each, planes.width, narrow):
        return False
    # Lines begin in ``bins`` where they do in ``out``.
    begin = (address + to) % FIXED_LANES
    stop, base = begin, to - begin
    for c in range(item.channels):
        if c > 0 and stop + high * wide + FIXED_LANES > _PAGE:
            sent = _send(narrow.bins, begin, stop, out, base)
            begin, stop, base = 0, stop - sent, base + sent
        at = planes.at + c * planes.step
        if each == 2:
            _fill_points(narrow, planes.values, at, high, wide, stop)
        elif narrow.runs.wide[0] > FIXED_LANES:
            _fill_far_pixels(narrow, planes.values, at, high, wide, stop)
        else:
            _fill_pixels(narrow, planes.values, at, high, wide, stop)
        stop += high * wide
    sent = _send(narrow.bins, begin, stop, out, base)
    for k in range(stop - sent):
        out[base + sent + k] = narrow.bins[k]
    return True
