"""Means over the bins of ROIs, with any samples and any border: ``Y = A_y X A_x'``, and its transpose.

``A_y`` and ``A_x`` are the axis tables of :mod:`tables`; :mod:`items` goes through the work.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi import channels_last, tables
from roiops.kernels.cpu.roi.addresses import arrays_at, prepared
from roiops.kernels.cpu.roi.chunks import as_rois, channel_chunks, is_dense, threads_for, with_channels_last
from roiops.kernels.cpu.roi.images import first_stray
from roiops.kernels.cpu.roi.items import backward_items, forward_items
from roiops.kernels.cpu.roi.tiles import (
    add_row,
    clear_all_ignored,
    clear_ignored,
    prefetch_row,
    read_row,
    slot_of,
    stream_row,
)
from roiops.kernels.cpu.vector import FIXED_LANES, load, multiply_add, pointer_to, scaled, splat, store
from roiops.kernels.jit import Direct, inner, parallel, within


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
def _pixels_of_each(axis, first, bins):
    """How many pixels each of ``bins`` bins reads, from entry ``first`` of the table on; 0 if they differ."""
    count = axis.at[first + 1] - axis.at[first]
    for j in range(first + 1, first + bins):
        if axis.at[j + 1] - axis.at[j] != count:
            return np.int64(0)
    return count


@inner
def _bins_of_line(source, start, x, column, wide, each, bins, to):
    """A row of bins, which are sums of what ``source`` has: pixel p is at ``start + p * FIXED_LANES``.

    ``each`` is what :func:`_pixels_of_each` says.
    """
    zero = splat(type(bins[0])(0))
    if each == 1 or each == 2:
        k = x.at[column]
        for _ in range(wide):
            total = multiply_add(x.weight[k], load(source, start + x.pixel[k] * FIXED_LANES), zero)
            if each == 2:
                right = load(source, start + x.pixel[k + 1] * FIXED_LANES)
                total = multiply_add(x.weight[k + 1], right, total)
            store(bins, to, total)
            to += FIXED_LANES
            k += each
        return
    for j in range(column, column + wide):
        total = zero
        for k in range(x.at[j], x.at[j + 1]):
            total = multiply_add(x.weight[k], load(source, start + x.pixel[k] * FIXED_LANES), total)
        store(bins, to, total)
        to += FIXED_LANES


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
def _pool(r, item, planes, tile, y, x, line, bins, behind):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    row, column = r * (item.pooled_h + 1), r * (item.pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = tables.span(x, column, wide)
    each = _pixels_of_each(x, column, wide)
    to = 0
    for i in range(item.first_row, item.stop_row):
        stream_row(item, i, behind)
        a, b = y.at[row + i], y.at[row + i + 1]
        if a == b or low == high:
            for p in range(to, to + wide * FIXED_LANES, FIXED_LANES):
                store(bins, p, zero)
        elif each == 2 and b == a + 2 and slot_of(tile, y.pixel[a]) != slot_of(tile, y.pixel[a + 1]):
            upper = read_row(planes, y.pixel[a], low, high, tile)
            lower = read_row(planes, y.pixel[a + 1], low, high, tile)
            _bins_between(upper, lower, tile, y, a, x, x.at[column], wide, bins, to)
        elif b == a + 1 and y.weight[a] == 1:  # a row as it is
            start = read_row(planes, y.pixel[a], low, high, tile)
            _bins_of_line(tile.values, start, x, column, wide, each, bins, to)
        else:
            average_rows(planes, tile, y, a, b, low, high, line)
            _bins_of_line(line, -low * FIXED_LANES, x, column, wide, each, bins, to)
        to += wide * FIXED_LANES


_forward_part = forward_items(_axes, _pool, with_points=True, by_rows=True)


@parallel
def _forward(share, parts, data, plan, table, groups, out):
    for part in within(share, parts):
        _forward_part(part, parts, data, plan, table, groups, None, out, None)


# A few channels of a few ROIs, straight from the map: turned into rows of lanes they would take longer.
# Sums are formed in the same order, so that a box's means are the same bits beside few boxes and many.

_FEW_CHANNELS, _FEW_ROIS = 4, 16


def is_few(shape):
    """Whether an output of this shape is."""
    return shape[0] <= _FEW_ROIS and shape[1] <= _FEW_CHANNELS


_is_few = inner(is_few)


@inner
def _planes_of_bins(setting, groups):
    """Where in an image the plane begins that each bin of the first output channel reads, and how far it is
    to that of the next channel.

    Divisions take longer than the few pixels of a bin, so they are done once.
    """
    plane = setting.height * setting.width
    starts = np.empty(setting.pooled_h * setting.pooled_w, np.int64)
    for i in range(setting.pooled_h):
        group_y = geometry.group_of(i, setting.pooled_h, groups[0])
        for j in range(setting.pooled_w):
            group_x = geometry.group_of(j, setting.pooled_w, groups[1])
            channel = geometry.channel_of(0, group_y, group_x, *groups)
            starts[i * setting.pooled_w + j] = channel * plane
    return starts, groups[0] * groups[1] * plane


@inner
def _forward_few(rules, rois, setting, data, groups, clear, out):
    pixels, bins = pointer_to(data.reshape(-1)), pointer_to(out.reshape(-1))
    image_size = data.shape[1] * setting.height * setting.width
    channels, area = out.shape[1], setting.pooled_h * setting.pooled_w
    starts, step = _planes_of_bins(setting, groups)
    table_y, table_x = tables.room_for_one(rois, setting)
    y, x = _axes(table_y + table_x)
    for r in range(out.shape[0]):
        image = geometry.image_of(rois, r, setting.images)
        to = r * channels * area
        if image < 0:
            if clear:
                for p in range(to, to + channels * area):
                    bins[p] = 0
            continue
        tables.fill_for_one(rules, rois, r, setting, table_y, table_x)
        for i in range(setting.pooled_h):
            top, bottom = y.at[i], y.at[i + 1]
            for j in range(setting.pooled_w):
                left, right = x.at[j], x.at[j + 1]
                bin_at = i * setting.pooled_w + j
                first = starts[bin_at] + image * image_size
                for c in range(channels):
                    at = first + c * step
                    total = data.dtype.type(0)
                    for m in range(left, right):
                        column = at + x.pixel[m]
                        mean = data.dtype.type(0)
                        for k in range(top, bottom):
                            value = pixels[column + y.pixel[k] * setting.width]
                            mean = multiply_add(y.weight[k], value, mean)
                        total = multiply_add(x.weight[m], mean, total)
                    bins[to + c * area + bin_at] = total


@inner
def _backward_few(rules, rois, setting, grad_out, groups, accumulate, grad_data):
    pixels, bins = pointer_to(grad_data.reshape(-1)), pointer_to(grad_out.reshape(-1))
    image_size = grad_data.shape[1] * setting.height * setting.width
    channels, area = grad_out.shape[1], setting.pooled_h * setting.pooled_w
    starts, step = _planes_of_bins(setting, groups)
    table_y, table_x = tables.room_for_one(rois, setting)
    y, x = _axes(table_y + table_x)
    if not accumulate:
        for p in range(grad_data.size):
            pixels[p] = 0
    for r in range(grad_out.shape[0]):
        image = geometry.image_of(rois, r, setting.images)
        if image < 0:
            continue
        tables.fill_for_one(rules, rois, r, setting, table_y, table_x)
        for i in range(setting.pooled_h):
            top, bottom = y.at[i], y.at[i + 1]
            for j in range(setting.pooled_w):
                left, right = x.at[j], x.at[j + 1]
                bin_at = i * setting.pooled_w + j
                first = starts[bin_at] + image * image_size
                for c in range(channels):
                    at = first + c * step
                    head = bins[(r * channels + c) * area + bin_at]
                    for k in range(top, bottom):
                        row = at + y.pixel[k] * setting.width
                        of_row = y.weight[k] * head
                        for m in range(left, right):
                            pixels[row + x.pixel[m]] += x.weight[m] * of_row


# All of a pass on one thread: what a small call costs is going in and out of Python.


@inner
def _forward_alone(rules, rois, setting, data, groups, clear, out):
    if _is_few(out.shape):
        _forward_few(rules, rois, setting, data, groups, clear, out)
        return
    order, image_at, y, x = tables.build_alone(rules, rois, setting)
    if clear:
        clear_all_ignored(order, image_at, out, 0)
    _forward_part(0, 1, data, (order, image_at), y + x, groups, None, out, None)


@inner
def _forward_at(rules, setting, groups, sizes, number, data, rois, out):
    data, rois, out = arrays_at(setting, sizes, number, data, rois, out)
    if first_stray(rois, setting.images) >= 0:
        return False
    _forward_alone(rules, rois, setting, data, groups, True, out)
    return True


@inner
def _rows_of(r, item, y, x):
    """The rows that an item's bins of ROI ``r`` touch."""
    return tables.span(y, r * (item.pooled_h + 1) + item.first_row, item.stop_row - item.first_row)


@inner
def rows_and_columns(table):
    return tables.axis_of(table[:3]), tables.columns_of(table[3:])


@inner
def spread(r, item, tile, band, y, x, line, bins, ahead):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows."""
    top, bottom = band
    zero = splat(type(bins[0])(0))
    row, columns = r * (item.pooled_h + 1), r * item.pooled_w + item.first_column
    wide = item.stop_column - item.first_column
    low, high, first = x.low[columns], x.high[columns], x.pixel_at[columns]
    for i in range(item.first_row, item.stop_row):
        prefetch_row(item, i, ahead)
        a, b = y.at[row + i], y.at[row + i + 1]
        while a < b and y.pixel[a] < top:
            a += 1
        while a < b and y.pixel[b - 1] >= bottom:
            b -= 1
        if a == b or low == high:
            continue
        bins_of_row = (i - item.first_row) * wide
        for p in range(high - low):
            total = zero
            for k in range(x.at[first + p], x.at[first + p + 1]):
                total = multiply_add(x.weight[k], load(bins, (bins_of_row + x.bin[k]) * FIXED_LANES), total)
            store(line, p * FIXED_LANES, total)
        for k in range(a, b):
            add_row(tile, y.pixel[k] - top, low, high, y.weight[k], line)


_backward_part = backward_items(rows_and_columns, _rows_of, spread, by_rows=True)


@parallel
def _backward(share, parts, grad_out, plan, table, groups, accumulate, grad_data):
    for part in within(share, parts):
        _backward_part(part, parts, grad_out, None, plan, table, groups, accumulate, grad_data)


@inner
def _backward_alone(rules, rois, setting, grad_out, groups, accumulate, grad_data):
    if _is_few(grad_out.shape):
        _backward_few(rules, rois, setting, grad_out, groups, accumulate, grad_data)
        return
    order, image_at, y, x = tables.build_alone(rules, rois, setting)
    x = tables.turned(x, rois.shape[0], setting.pooled_w, groups[1])
    _backward_part(0, 1, grad_out, None, (order, image_at), y + x, groups, accumulate, grad_data)


@inner
def _backward_at(rules, setting, groups, sizes, number, grad_data, rois, grad_out):
    grad_data, rois, grad_out = arrays_at(setting, sizes, number, grad_data, rois, grad_out)
    _backward_alone(rules, rois, setting, grad_out, groups, False, grad_data)
    return True


_run_forward, _run_backward = Direct(_forward_alone), Direct(_backward_alone)
_run_forward_at, _run_backward_at = Direct(_forward_at), Direct(_backward_at)


def forward(data, rois, scale, ratio, groups, rules, out, clear=True):
    """Write the means of all bins to ``out``, and zeros for rows to be ignored unless ``clear`` is false."""
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    rois = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, data.shape, out.shape)
    if groups == (1, 1) and not is_dense(out):
        data_last, out_last = with_channels_last(data), with_channels_last(out)
        if data_last is not None and out_last is not None:
            channels_last.forward(data_last, rois, setting, rules, out_last, clear)
            return
    threads = 1 if is_few(out.shape) else threads_for(out.size)
    if threads > 1:
        plan, table = _tables(rules, rois, setting)
    for chunk, means, _ in channel_chunks([data], [out], keep=not clear):
        if threads == 1:
            _run_forward(rois.dtype, rules, rois, setting, chunk, groups, clear, means)
            continue
        if clear:
            clear_ignored(*plan, means, 0)
        _forward.by(threads)(threads, chunk, plan, table, groups, means)


def backward(grad_out, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    rois = as_rois(rois, grad_data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, grad_data.shape, grad_out.shape)
    threads = 1 if is_few(grad_out.shape) else threads_for(grad_out.size + grad_data.size)
    if threads > 1:
        plan, table = backward_tables(rules, rois, setting, groups)
    for heads, grad, add in channel_chunks([grad_out], [grad_data], accumulate):
        if threads == 1:
            _run_backward(rois.dtype, rules, rois, setting, heads, groups, add, grad)
        else:
            _backward.by(threads)(threads, heads, plan, table, groups, add, grad)


def _tables(rules, rois, setting):
    """``(order, image_at)`` and the tables of both axes."""
    order, image_at, y, x = tables.build(rules, rois, setting)
    return (order, image_at), (*y, *x)


def backward_tables(rules, rois, setting, groups):
    """``(order, image_at)`` and the tables that :func:`spread` reads."""
    plan, table = _tables(rules, rois, setting)
    return plan, (*table[:3], *tables.turned(table[3:], len(rois), setting.pooled_w, groups[1]))


def at_addresses(data_shape, rois_shape, out_shape, dtype, scale, ratio, groups, rules, backward_rules):
    """``(forward, backward)`` for a small call on contiguous arrays of one dtype, or None for a larger one.

    Both take the addresses of the map, the boxes and the output, and of argmax (0 if it is not wanted) where
    there is one, or of the gradients in the place of what they are the gradients of. They do all of a pass on
    one thread. ``forward`` gives False, and has done nothing, where a box names no image.
    """
    both, shapes = (_run_forward_at, _run_backward_at), (data_shape, rois_shape, out_shape)
    return prepared(both, shapes, dtype, scale, ratio, groups, ((rules,), (backward_rules,)))
