"""The means of :mod:`average` with the channels in lanes: the way for most calls.

``FIXED_LANES`` channels are turned into rows of lanes, and their bins turned back; :mod:`items` goes through
the work. All channels of a pixel have one weight, so that rows are multiplied and added as they are.
"""

import numpy as np

from ...jit import inner
from ..vector import FIXED_LANES, load, multiply_add, scaled, splat, store
from . import tables
from .addresses import backward_kernel, forward_kernel
from .bins import prefetch_row, stream_row
from .items import backward_items, forward_items
from .tiles import add_row, read_row, rows_in_band, slot_of


@inner
def average_rows(planes, tile, y, a, b, low, high, line):
    """``line`` = the weighted sum of rows ``y.pixel[a:b]`` of the map, pixels ``low`` to ``high``."""
    size = (high - low) * FIXED_LANES
    k = a
    while k < b:
        at = read_row(planes, y.pixel[k], low, high, tile) + low * FIXED_LANES
        weight = y.weight[k]
        # Two rows at a time, unless the second would take the place of the first.
        if k + 1 < b and slot_of(tile, y.pixel[k + 1]) != slot_of(tile, y.pixel[k]):
            at2 = read_row(planes, y.pixel[k + 1], low, high, tile) + low * FIXED_LANES
            weight2 = y.weight[k + 1]
            if k == a:
                for p in range(0, size, FIXED_LANES):
                    total = scaled(weight, load(tile.values, at + p))
                    store(line, p, multiply_add(weight2, load(tile.values, at2 + p), total))
            else:
                for p in range(0, size, FIXED_LANES):
                    total = multiply_add(weight, load(tile.values, at + p), load(line, p))
                    store(line, p, multiply_add(weight2, load(tile.values, at2 + p), total))
            k += 2
        else:
            if k == a:
                for p in range(0, size, FIXED_LANES):
                    store(line, p, scaled(weight, load(tile.values, at + p)))
            else:
                for p in range(0, size, FIXED_LANES):
                    store(line, p, multiply_add(weight, load(tile.values, at + p), load(line, p)))
            k += 1


@inner
def _pixels_of_each(axis, first, bins):
    """How many pixels each of ``bins`` bins reads, from entry ``first`` of the table on; 0 if they differ."""
    count = axis.at[first + 1] - axis.at[first]
    for j in range(first + 1, first + bins):
        if axis.at[j + 1] - axis.at[j] != count:
            return np.int64(0)
    return count


@inner
def _bins_of_line(line, low, x, column, wide, each, bins, to):
    """A row of bins, which are sums of the pixels of a line that begins with pixel ``low``.

    ``each`` is what :func:`_pixels_of_each` says.
    """
    zero = splat(type(bins[0])(0))
    if each == 2:
        k = x.at[column]
        for _ in range(wide):
            total = multiply_add(x.weight[k], load(line, (x.pixel[k] - low) * FIXED_LANES), zero)
            right = load(line, (x.pixel[k + 1] - low) * FIXED_LANES)
            store(bins, to, multiply_add(x.weight[k + 1], right, total))
            to += FIXED_LANES
            k += 2
        return
    for j in range(column, column + wide):
        total = zero
        for k in range(x.at[j], x.at[j + 1]):
            total = multiply_add(x.weight[k], load(line, (x.pixel[k] - low) * FIXED_LANES), total)
        store(bins, to, total)
        to += FIXED_LANES


@inner
def _bins_on(row, tile, weight, x, k, wide, bins, to):
    """A row of bins on one row of the map, where each bin reads one pixel, from ``k`` on."""
    zero = splat(type(bins[0])(0))
    for _ in range(wide):
        value = scaled(weight, load(tile.values, row + x.pixel[k] * FIXED_LANES))
        store(bins, to, multiply_add(x.weight[k], value, zero))
        to += FIXED_LANES
        k += 1


@inner
def _bins_between(upper, lower, tile, y, a, x, k, wide, bins, to):
    """A row of bins between two rows of the map, where each bin reads two pixels of either, from ``k`` on.

    What :func:`average_rows` would average beside these pixels is left alone; the sums are the same.
    """
    near, far = y.weight[a], y.weight[a + 1]
    zero = splat(type(bins[0])(0))
    for _ in range(wide):
        p, q = x.pixel[k] * FIXED_LANES, x.pixel[k + 1] * FIXED_LANES
        left = multiply_add(far, load(tile.values, lower + p), scaled(near, load(tile.values, upper + p)))
        right = multiply_add(far, load(tile.values, lower + q), scaled(near, load(tile.values, upper + q)))
        total = multiply_add(x.weight[k], left, zero)
        store(bins, to, multiply_add(x.weight[k + 1], right, total))
        to += FIXED_LANES
        k += 2


@inner
def pool(r, item, planes, tile, y, x, line, bins, told):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    row, column = r * (item.pooled_h + 1), r * (item.pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = tables.span(x, column, wide)
    each = _pixels_of_each(x, column, wide)
    to = 0
    for i in range(item.first_row, item.stop_row):
        stream_row(told[2], i, item.pooled_h)
        a, b = y.at[row + i], y.at[row + i + 1]
        if a == b or low == high:
            for p in range(to, to + wide * FIXED_LANES, FIXED_LANES):
                store(bins, p, zero)
        elif each == 1 and b == a + 1:
            on = read_row(planes, y.pixel[a], low, high, tile)
            _bins_on(on, tile, y.weight[a], x, x.at[column], wide, bins, to)
        elif each == 2 and b == a + 2 and slot_of(tile, y.pixel[a]) != slot_of(tile, y.pixel[a + 1]):
            upper = read_row(planes, y.pixel[a], low, high, tile)
            lower = read_row(planes, y.pixel[a + 1], low, high, tile)
            _bins_between(upper, lower, tile, y, a, x, x.at[column], wide, bins, to)
        else:
            average_rows(planes, tile, y, a, b, low, high, line)
            _bins_of_line(line, low, x, column, wide, each, bins, to)
        to += wide * FIXED_LANES


FORWARD = forward_kernel(__name__, tables.build, forward_items(tables.axes_of, pool, by_rows=True))


@inner
def _rows_of(r, item, y, x):
    """The rows that an item's bins of ROI ``r`` touch."""
    return tables.span(y, r * (item.pooled_h + 1) + item.first_row, item.stop_row - item.first_row)


@inner
def _spread(r, item, tile, band, y, x, line, bins, told):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows."""
    zero = splat(type(bins[0])(0))
    row, columns = r * (item.pooled_h + 1), r * item.pooled_w + item.first_column
    wide = item.stop_column - item.first_column
    low, high, first = x.low[columns], x.high[columns], x.pixel_at[columns]
    for i in range(item.first_row, item.stop_row):
        prefetch_row(item, i, told[0])
        a, b = rows_in_band(y.pixel, y.at[row + i], y.at[row + i + 1], band)
        if a == b or low == high:
            continue
        bins_of_row = (i - item.first_row) * wide
        for p in range(high - low):
            total = zero
            for k in range(x.at[first + p], x.at[first + p + 1]):
                total = multiply_add(x.weight[k], load(bins, (bins_of_row + x.bin[k]) * FIXED_LANES), total)
            store(line, p * FIXED_LANES, total)
        for k in range(a, b):
            add_row(tile, y.pixel[k] - band[0], low, high, y.weight[k], line)


BACKWARD = backward_kernel(
    __name__,
    tables.build_turned,
    backward_items(tables.rows_and_columns, _rows_of, _spread, by_rows=True),
)
