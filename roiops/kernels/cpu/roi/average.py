"""Means over the bins of ROIs, with any samples and any border: ``Y = A_y X A_x'``, and its transpose.

``A_y`` and ``A_x`` are the axis tables of :mod:`tables`; :mod:`items` goes through the work.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi import tables
from roiops.kernels.cpu.roi.chunks import as_rois, channel_chunks, launch
from roiops.kernels.cpu.roi.items import backward_items, forward_items
from roiops.kernels.cpu.roi.tiles import add_row, clear_ignored, read_row, slot_of
from roiops.kernels.cpu.vector import FIXED_LANES, load, multiply_add, scaled, splat, store
from roiops.kernels.jit import inner, parallel, prange

__all__ = ["average_rows", "backward", "forward"]


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
def _axes(table):
    at_y, pixel_y, weight_y, at_x, pixel_x, weight_x = table
    return tables.axis_of((at_y, pixel_y, weight_y)), tables.axis_of((at_x, pixel_x, weight_x))


@inner
def _pool(r, item, planes, tile, y, x, line, bins):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    row, column = r * (item.pooled_h + 1), r * (item.pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = tables.span(x, column, wide)
    to = 0
    for i in range(item.first_row, item.stop_row):
        a, b = y.at[row + i], y.at[row + i + 1]
        if a < b and low < high:
            average_rows(planes, tile, y, a, b, low, high, line)
        for j in range(wide):
            total = zero
            if a < b:
                for k in range(x.at[column + j], x.at[column + j + 1]):
                    total = multiply_add(x.weight[k], load(line, (x.pixel[k] - low) * FIXED_LANES), total)
            store(bins, to, total)
            to += FIXED_LANES


_forward_part = forward_items(_axes, _pool)


@parallel
def _forward(parts, data, plan, table, groups, out):
    for part in prange(parts):
        _forward_part(np.int64(part), parts, data, plan, table, groups, None, out, None)


@inner
def _rows_of(r, item, y, x):
    """The rows that an item's bins of ROI ``r`` touch."""
    return tables.span(y, r * (item.pooled_h + 1) + item.first_row, item.stop_row - item.first_row)


@inner
def _spread(r, item, tile, band, y, x, line, bins):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows."""
    top, bottom = band
    zero = splat(type(bins[0])(0))
    row, column = r * (item.pooled_h + 1), r * (item.pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = tables.span(x, column, wide)
    size = (high - low) * FIXED_LANES
    for i in range(item.first_row, item.stop_row):
        a, b = y.at[row + i], y.at[row + i + 1]
        while a < b and y.pixel[a] < top:
            a += 1
        while a < b and y.pixel[b - 1] >= bottom:
            b -= 1
        if a == b:
            continue
        for p in range(0, size, FIXED_LANES):
            store(line, p, zero)
        for j in range(wide):
            gradient = load(bins, ((i - item.first_row) * wide + j) * FIXED_LANES)
            for k in range(x.at[column + j], x.at[column + j + 1]):
                p = (x.pixel[k] - low) * FIXED_LANES
                store(line, p, multiply_add(x.weight[k], gradient, load(line, p)))
        for k in range(a, b):
            add_row(tile, y.pixel[k] - top, low, high, y.weight[k], line)


_backward_part = backward_items(_axes, _rows_of, _spread)


@parallel
def _backward(parts, grad_out, plan, table, groups, accumulate, grad_data):
    for part in prange(parts):
        _backward_part(np.int64(part), parts, grad_out, None, plan, table, groups, accumulate, grad_data)


def forward(data, rois, scale, ratio, groups, rules, out, clear=True):
    """Write the means of all bins to ``out``, and zeros for rows to be ignored unless ``clear`` is false."""
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    plan, table = _tables(rois, scale, ratio, rules, data, out)
    for chunk, means, _ in channel_chunks([data], [out], keep=not clear):
        if clear:
            clear_ignored(*plan, means, 0)
        launch(_forward, means.size, chunk, plan, table, groups, means)


def backward(grad_out, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    plan, table = _tables(rois, scale, ratio, rules, grad_data, grad_out)
    for heads, grad, add in channel_chunks([grad_out], [grad_data], accumulate):
        launch(_backward, heads.size + grad.size, heads, plan, table, groups, add, grad)


def _tables(rois, scale, ratio, rules, data, out):
    """``(order, image_at)`` and the tables of both axes."""
    rois = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, data.shape, out.shape)
    order, image_at, y, x = tables.build(rules, rois, setting)
    return (order, image_at), (*y, *x)
