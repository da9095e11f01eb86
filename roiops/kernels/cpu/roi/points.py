"""Means of at most two pixels on either axis, computed along the rows of the map.

Each plane stays as it is: a row of it is averaged with the one below, and the two pixels that a bin reads are
picked out of the registers that hold them. Where there are few channels, this is sooner done than turning the
planes into rows of lanes and the bins back. The sums are those of :mod:`average`, to the last bit.
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
    store_some,
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
