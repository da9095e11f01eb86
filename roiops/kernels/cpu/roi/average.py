"""Means over the bins of ROIs, with any samples and any border: ``Y = A_y X A_x'``, and its transpose.

``A_y`` and ``A_x`` are the axis tables of :mod:`roi_tables`. The work is divided in items: an image, a group
of bins and a block of ``LANES`` channels. An item of the forward pass reads its channels into a tile with the
channels last, only those pixels that some ROI touches and each once, and goes through the ROIs from top to
bottom. An item of the backward pass writes channels and rows that no other item writes, ROI after ROI in one
order: gradients are the same to the last bit with any number of threads.
"""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.lanes import LANES, aligned, bare, load, multiply_add, scaled, splat, store
from roiops.kernels.cpu.roi import tables as roi_tables
from roiops.kernels.cpu.roi.pieces import as_rois, launch, pieces
from roiops.kernels.cpu.roi.tiles import (
    Planes,
    Tile,
    add_row,
    channel_blocks,
    clear_ignored,
    empty_tile,
    item_of,
    prefetch_put,
    prefetch_take,
    put_bins,
    read_row,
    slot_of,
    take_bins,
    tile_bands,
    tile_slots,
    touch_nothing,
    write_rows,
)
from roiops.kernels.jit import inner, parallel, prange

__all__ = ["average_rows", "backward", "forward"]


@inner
def average_rows(planes, tile, y, a, b, low, high, line):
    """``line`` = the weighted sum of rows ``y.pixel[a:b]`` of the map, pixels ``low`` to ``high``."""
    size = (high - low) * LANES
    k = a
    while k < b:
        at = read_row(planes, y.pixel[k], low, high, tile) + low * LANES
        weight = y.weight[k]
        # Two rows at a time, unless the second would take the place of the first.
        if k + 1 < b and slot_of(tile, y.pixel[k + 1]) != slot_of(tile, y.pixel[k]):
            at2 = read_row(planes, y.pixel[k + 1], low, high, tile) + low * LANES
            weight2 = y.weight[k + 1]
            if k == a:
                for p in range(0, size, LANES):
                    total = scaled(weight, load(tile.values, at + p))
                    store(line, p, multiply_add(weight2, load(tile.values, at2 + p), total))
            else:
                for p in range(0, size, LANES):
                    total = multiply_add(weight, load(tile.values, at + p), load(line, p))
                    store(line, p, multiply_add(weight2, load(tile.values, at2 + p), total))
            k += 2
        else:
            if k == a:
                for p in range(0, size, LANES):
                    store(line, p, scaled(weight, load(tile.values, at + p)))
            else:
                for p in range(0, size, LANES):
                    store(line, p, multiply_add(weight, load(tile.values, at + p), load(line, p)))
            k += 1


@inner
def _forward_roi(r, item, planes, tile, y, x, pooled_h, pooled_w, line, bins):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    row, column = r * (pooled_h + 1), r * (pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = roi_tables.span(x, column, wide)
    to = 0
    for i in range(item.first_row, item.stop_row):
        a, b = y.at[row + i], y.at[row + i + 1]
        if a < b and low < high:
            average_rows(planes, tile, y, a, b, low, high, line)
        for j in range(wide):
            total = zero
            if a < b:
                for k in range(x.at[column + j], x.at[column + j + 1]):
                    total = multiply_add(x.weight[k], load(line, (x.pixel[k] - low) * LANES), total)
            store(bins, to, total)
            to += LANES


@inner
def _forward_part(part, parts, data, tables, groups, out):
    """The items of one of ``parts`` threads."""
    order, image_at = tables[:2]
    images, in_channels, height, width = data.shape
    _, out_channels, pooled_h, pooled_w = out.shape
    groups_h, groups_w = groups
    pixels, results = data.reshape(-1), out.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    slots = tile_slots(height, width, out.itemsize)
    room = aligned(slots * width * LANES, out)
    marks = np.empty(slots * (width // LANES + 1), np.int64)
    line = aligned(width * LANES, out)
    bins = aligned(area * LANES, out)
    items = images * channel_blocks(out_channels) * groups_h * groups_w
    for number in range(part * items // parts, (part + 1) * items // parts):
        item = item_of(number, out_channels, pooled_h, pooled_w, groups_h, groups_w)
        at = (item.image * in_channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, item.step * plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), slots, width)
        y, x = roi_tables.axis_of(tables[2:5]), roi_tables.axis_of(tables[5:])
        empty_tile(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            to = (r * out_channels + item.out_channel) * area
            prefetch_put(item, bare(results), to, pooled_h, pooled_w)
            _forward_roi(r, item, planes, tile, y, x, pooled_h, pooled_w, bare(line), bare(bins))
            put_bins(bare(bins), item, bare(results), to, pooled_h, pooled_w)


@parallel
def _forward(parts, data, tables, groups, out):
    for part in prange(parts):
        _forward_part(np.int64(part), parts, data, tables, groups, out)


@inner
def _backward_roi(r, item, tile, top, bottom, y, x, pooled_h, pooled_w, bins, line):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to rows ``top`` to ``bottom``."""
    zero = splat(type(bins[0])(0))
    row, column = r * (pooled_h + 1), r * (pooled_w + 1) + item.first_column
    wide = item.stop_column - item.first_column
    low, high = roi_tables.span(x, column, wide)
    size = (high - low) * LANES
    for i in range(item.first_row, item.stop_row):
        a, b = y.at[row + i], y.at[row + i + 1]
        while a < b and y.pixel[a] < top:
            a += 1
        while a < b and y.pixel[b - 1] >= bottom:
            b -= 1
        if a == b:
            continue
        for p in range(0, size, LANES):
            store(line, p, zero)
        for j in range(wide):
            gradient = load(bins, ((i - item.first_row) * wide + j) * LANES)
            for k in range(x.at[column + j], x.at[column + j + 1]):
                p = (x.pixel[k] - low) * LANES
                store(line, p, multiply_add(x.weight[k], gradient, load(line, p)))
        for k in range(a, b):
            add_row(tile, y.pixel[k] - top, low, high, y.weight[k], line)


@inner
def _backward_part(part, parts, grad_out, tables, groups, accumulate, grad_data):
    """The items of one of ``parts`` threads, each a band of rows of an item of the forward pass."""
    order, image_at = tables[:2]
    images, in_channels, height, width = grad_data.shape
    _, out_channels, pooled_h, pooled_w = grad_out.shape
    groups_h, groups_w = groups
    pixels, heads = grad_data.reshape(-1), grad_out.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    items = images * channel_blocks(out_channels) * groups_h * groups_w
    bands, rows = tile_bands(height, width, grad_data.itemsize, parts, items)
    room = aligned(rows * width * LANES, grad_data)
    marks = np.empty(rows * 2, np.int64)
    line = aligned(width * LANES, grad_data)
    bins = aligned(area * LANES, grad_data)
    for number in range(part * items * bands // parts, (part + 1) * items * bands // parts):
        item = item_of(number // bands, out_channels, pooled_h, pooled_w, groups_h, groups_w)
        top, bottom = number % bands * height // bands, (number % bands + 1) * height // bands
        at = (item.image * in_channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, item.step * plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), rows, width)
        y, x = roi_tables.axis_of(tables[2:5]), roi_tables.axis_of(tables[5:])
        touch_nothing(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            if place + 1 < image_at[item.image + 1]:
                at = (order[place + 1] * out_channels + item.out_channel) * area
                prefetch_take(item, bare(heads), at, pooled_h, pooled_w)
            first = r * (pooled_h + 1) + item.first_row
            low, high = roi_tables.span(y, first, item.stop_row - item.first_row)
            if low < bottom and high > top:
                at = (r * out_channels + item.out_channel) * area
                take_bins(bare(heads), at, item, pooled_h, pooled_w, bare(bins))
                _backward_roi(r, item, tile, top, bottom, y, x, pooled_h, pooled_w, bare(bins), bare(line))
        write_rows(tile, top, bottom - top, planes, accumulate, bare(line))


@parallel
def _backward(parts, grad_out, tables, groups, accumulate, grad_data):
    for part in prange(parts):
        _backward_part(np.int64(part), parts, grad_out, tables, groups, accumulate, grad_data)


def forward(data, rois, scale, ratio, groups, rules, out):
    """Write the means of all bins to ``out``."""
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    tables = _tables(rois, scale, ratio, rules, data, out)
    for some, means, _ in pieces([data], [out]):
        clear_ignored(tables, means, 0)
        launch(_forward, means.size, some, tables, groups, means)


def backward(grad_out, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    tables = _tables(rois, scale, ratio, rules, grad_data, grad_out)
    for heads, grad, add in pieces([grad_out], [grad_data], accumulate):
        launch(_backward, heads.size + grad.size, heads, tables, groups, add, grad)


def _tables(rois, scale, ratio, rules, data, out):
    rois = as_rois(rois, data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    images, _, height, width = data.shape
    order, image_at, y, x = roi_tables.build(rois, rules, scale, ratio, images, height, width, *out.shape[2:])
    return order, image_at, *y, *x
