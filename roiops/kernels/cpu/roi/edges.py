"""The gradient of boxes, where an operator has one, and what lies outside the map.

The mean over a bin is the product of the means over its two axes; its derivative by an edge of the box has
the slopes of one axis (:func:`geometry.edge_slope`) in place of the weights. The work is divided in items as
in :mod:`items`; each adds up the derivatives of its own channels, which are summed in the order of channels.

``tests/reference.py`` has the operators in plain loops: ``precise`` and ``crop_and_resize``.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi import tables
from roiops.kernels.cpu.roi.chunks import as_rois, channel_chunks, launch
from roiops.kernels.cpu.roi.tiles import (
    Planes,
    Tile,
    channel_blocks,
    empty_tile,
    item_of,
    prefetch_take,
    read_row,
    take_bins,
    tile_slots,
)
from roiops.kernels.cpu.vector import (
    FIXED_LANES,
    aligned,
    load,
    multiply_add,
    pointer_to,
    scaled,
    splat,
    store,
)
from roiops.kernels.jit import inner, njit, parallel, within
from roiops.kernels.rules import CORNERS_YX_NORMALISED


class _Slopes(NamedTuple):
    """Bin ``i`` of ROI ``r`` reads, on one axis, the pixels from ``first`` of entry ``r * bins + i`` on.

    Their entries are ``at`` of it to the next: what they weigh in the mean, and the derivatives of that by
    the near and the far edge of the box.
    """

    first: np.ndarray
    at: np.ndarray
    mean: np.ndarray
    near: np.ndarray
    far: np.ndarray


@inner
def _slopes_of(table):
    first, at, mean, near, far = table
    return _Slopes(pointer_to(first), pointer_to(at), pointer_to(mean), pointer_to(near), pointer_to(far))


@inner
def _axis_table(rules, rois, image, setting, across):
    """The arrays of :class:`_Slopes`; a ROI to be ignored reads nothing."""
    bins = setting.pooled_w if across else setting.pooled_h
    first = np.zeros(image.size * bins, np.int64)
    at = np.zeros(image.size * bins + 1, np.int64)
    for r in range(image.size):
        if image[r] >= 0:
            axis = tables.box_on_axis(rules, rois, r, setting, across)
            for i in range(bins):
                low, high = geometry.edge_pixels(rules, axis, i)
                first[r * bins + i], at[r * bins + i + 1] = low, max(0, high - low)
    for k in range(image.size * bins):
        at[k + 1] += at[k]
    mean, near, far = np.empty(at[-1], rois.dtype), np.empty(at[-1], rois.dtype), np.empty(at[-1], rois.dtype)
    for r in range(image.size):
        if image[r] >= 0:
            axis = tables.box_on_axis(rules, rois, r, setting, across)
            for i in range(bins):
                here = at[r * bins + i]
                for k in range(at[r * bins + i + 1] - here):
                    pixel = first[r * bins + i] + k
                    mean[here + k] = geometry.edge_mean(rules, axis, i, pixel)
                    near[here + k] = geometry.edge_slope(rules, axis, i, False, pixel)
                    far[here + k] = geometry.edge_slope(rules, axis, i, True, pixel)
    return first, at, mean, near, far


@njit
def _tables(rules, rois, setting):
    """``(order, image_at, y, x)``: the order of work, and the table of each axis."""
    image = np.empty(rois.shape[0], np.int64)
    for r in range(image.size):
        image[r] = geometry.image_of(rois, r, setting.images)
    order, image_at = tables.by_image(image, setting.images)
    y = _axis_table(rules, rois, image, setting, False)
    x = _axis_table(rules, rois, image, setting, True)
    return order, image_at, y, x


@inner
def _lines_of(planes, tile, y, entry, low, high, lines):
    """The rows of a bin, pixels ``low`` to ``high``: the mean and its derivatives by the two edges."""
    size, step = (high - low) * FIXED_LANES, tile.width * FIXED_LANES
    nothing = splat(type(tile.values[0])(0))
    for p in range(0, size, FIXED_LANES):
        store(lines, p, nothing)
        store(lines, step + p, nothing)
        store(lines, 2 * step + p, nothing)
    for k in range(y.at[entry], y.at[entry + 1]):
        at = read_row(planes, y.first[entry] + k - y.at[entry], low, high, tile) + low * FIXED_LANES
        mean, near, far = y.mean[k], y.near[k], y.far[k]
        for p in range(0, size, FIXED_LANES):
            value = load(tile.values, at + p)
            store(lines, p, multiply_add(mean, value, load(lines, p)))
            store(lines, step + p, multiply_add(near, value, load(lines, step + p)))
            store(lines, 2 * step + p, multiply_add(far, value, load(lines, 2 * step + p)))


@inner
def _add_row_of_points(tile, rows, y, entry, x, column, wide, bins, at, sums):
    """What :func:`_add_roi` adds for a row of bins that read two pixels of two rows each: points."""
    upper, lower = rows
    e, k = y.at[entry], x.at[column]
    nothing = splat(type(sums[0])(0))
    above = below = nothing
    near_x, far_x = load(sums, 2 * FIXED_LANES), load(sums, 3 * FIXED_LANES)
    for j in range(column, column + wide):
        p, q = x.first[j] * FIXED_LANES, (x.first[j] + 1) * FIXED_LANES
        upper_left, upper_right = load(tile.values, upper + p), load(tile.values, upper + q)
        lower_left, lower_right = load(tile.values, lower + p), load(tile.values, lower + q)
        head = load(bins, at)
        at += FIXED_LANES
        mean = multiply_add(x.mean[k + 1], upper_right, scaled(x.mean[k], upper_left))
        above = multiply_add(head, mean, above)
        mean = multiply_add(x.mean[k + 1], lower_right, scaled(x.mean[k], lower_left))
        below = multiply_add(head, mean, below)
        left = multiply_add(y.mean[e + 1], lower_left, scaled(y.mean[e], upper_left))
        right = multiply_add(y.mean[e + 1], lower_right, scaled(y.mean[e], upper_right))
        near_x = multiply_add(head, multiply_add(x.near[k + 1], right, scaled(x.near[k], left)), near_x)
        far_x = multiply_add(head, multiply_add(x.far[k + 1], right, scaled(x.far[k], left)), far_x)
        k += 2
    near_y = multiply_add(y.near[e], above, load(sums, 0))
    far_y = multiply_add(y.far[e], above, load(sums, FIXED_LANES))
    store(sums, 0, multiply_add(y.near[e + 1], below, near_y))
    store(sums, FIXED_LANES, multiply_add(y.far[e + 1], below, far_y))
    store(sums, 2 * FIXED_LANES, near_x)
    store(sums, 3 * FIXED_LANES, far_x)


@inner
def _add_roi(r, item, planes, tile, y, x, lines, bins, sums):
    """Add the derivatives by the near and far y and x of ROI ``r``, whose head gradient is ``bins``."""
    pooled_h, pooled_w, step = item.pooled_h, item.pooled_w, tile.width * FIXED_LANES
    nothing = splat(type(sums[0])(0))
    low, high = tile.width, 0
    are_points = tile.slots > 1
    for column in range(r * pooled_w, (r + 1) * pooled_w):
        count = x.at[column + 1] - x.at[column]
        are_points = are_points and count == 2
        if count > 0:
            low, high = min(low, x.first[column]), max(high, x.first[column] + count)
    if low >= high:
        return
    for i in range(pooled_h):
        entry = r * pooled_h + i
        if y.at[entry] == y.at[entry + 1]:
            continue
        if are_points and y.at[entry + 1] - y.at[entry] == 2:
            first = y.first[entry]
            rows = read_row(planes, first, low, high, tile), read_row(planes, first + 1, low, high, tile)
            at = i * pooled_w * FIXED_LANES
            _add_row_of_points(tile, rows, y, entry, x, r * pooled_w, pooled_w, bins, at, sums)
            continue
        _lines_of(planes, tile, y, entry, low, high, lines)
        for j in range(pooled_w):
            column = r * pooled_w + j
            near_y = far_y = near_x = far_x = nothing
            p = (x.first[column] - low) * FIXED_LANES
            for k in range(x.at[column], x.at[column + 1]):
                mean = load(lines, p)
                near_y = multiply_add(x.mean[k], load(lines, step + p), near_y)
                far_y = multiply_add(x.mean[k], load(lines, 2 * step + p), far_y)
                near_x = multiply_add(x.near[k], mean, near_x)
                far_x = multiply_add(x.far[k], mean, far_x)
                p += FIXED_LANES
            head = load(bins, (i * pooled_w + j) * FIXED_LANES)
            store(sums, 0, multiply_add(head, near_y, load(sums, 0)))
            store(sums, FIXED_LANES, multiply_add(head, far_y, load(sums, FIXED_LANES)))
            store(sums, 2 * FIXED_LANES, multiply_add(head, near_x, load(sums, 2 * FIXED_LANES)))
            store(sums, 3 * FIXED_LANES, multiply_add(head, far_x, load(sums, 3 * FIXED_LANES)))


@inner
def _edges_part(part, parts, grad_out, data, plan, table_y, table_x, totals):
    """The items of one of ``parts`` threads; ``totals`` are (blocks of channels, ROIs, edges)."""
    order, image_at = plan
    images, channels, height, width = data.shape
    pixels, heads = data.reshape(-1), grad_out.reshape(-1)
    plane, area = height * width, grad_out.shape[2] * grad_out.shape[3]
    slots = tile_slots(height, width, data.itemsize)
    tile_memory = aligned(slots * width * FIXED_LANES, data)
    marks = np.empty(slots * (width // FIXED_LANES + 1), np.int64)
    lines = aligned(3 * width * FIXED_LANES, data)
    bins = aligned(area * FIXED_LANES, data)
    sums = aligned(4 * FIXED_LANES, data)
    blocks = channel_blocks(channels)
    items = images * blocks
    for number in range(part * items // parts, (part + 1) * items // parts):
        item = item_of(number, grad_out.shape, (1, 1))
        at = (item.image * channels + item.in_channel) * plane
        planes = Planes(pointer_to(pixels), at, item.step * plane, item.channels, height, width)
        tile = Tile(pointer_to(tile_memory), pointer_to(marks), slots, width)
        y, x = _slopes_of(table_y), _slopes_of(table_x)
        empty_tile(tile)
        for place in range(image_at[item.image], image_at[item.image + 1]):
            r = order[place]
            if place + 1 < image_at[item.image + 1]:
                ahead = (order[place + 1] * channels + item.out_channel) * area
                prefetch_take(item, pointer_to(heads), ahead)
            take_bins(pointer_to(heads), (r * channels + item.out_channel) * area, item, pointer_to(bins))
            for k in range(4 * FIXED_LANES):
                sums[k] = 0
            _add_roi(r, item, planes, tile, y, x, pointer_to(lines), pointer_to(bins), pointer_to(sums))
            for edge in range(4):
                for c in range(item.channels):
                    totals[number % blocks, r, edge] += sums[edge * FIXED_LANES + c]


@parallel
def _edges(share, parts, grad_out, data, plan, table_y, table_x, totals):
    for part in within(share, parts):
        _edges_part(np.int64(part), parts, grad_out, data, plan, table_y, table_x, totals)


def backward(grad_out, data, rois, scale, rules, accumulate, grad_rois):
    """Write, or add, the gradient of the boxes; the image index has none."""
    boxes = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, (0, 0), boxes.dtype, data.shape, grad_out.shape)
    order, image_at, y, x = _tables(rules, boxes, setting)
    near_y = 1 if rules.boxes == CORNERS_YX_NORMALISED else 2
    columns = [near_y, near_y + 2, 3 - near_y, 5 - near_y]
    scales = [geometry.edge_scale(rules, setting.scale, n) for n in (setting.height, setting.width)]
    total = np.zeros(boxes.shape, boxes.dtype)
    for head, chunk, _ in channel_chunks([grad_out, data], []):
        sums = np.zeros((channel_blocks(chunk.shape[1]), len(boxes), 4), boxes.dtype)
        if sums.size and chunk.size:
            launch(_edges, head.size + chunk.size, head, chunk, (order, image_at), y, x, sums)
        total[:, columns] += sums.sum(axis=0) * np.repeat(scales, 2).astype(boxes.dtype)
    if accumulate:
        grad_rois += total
    else:
        grad_rois[...] = total


@njit
def _outside(rules, rois, setting, mask):
    """Mark the bins whose point lies outside the map."""
    for r in range(rois.shape[0]):
        if geometry.image_of(rois, r, setting.images) < 0:
            continue
        y, x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
        for i in range(setting.pooled_h):
            valid_y = geometry.sample(rules, y, i, 0, 1)[0]
            for j in range(setting.pooled_w):
                mask[r, i, j] = not (valid_y and geometry.sample(rules, x, j, 0, 1)[0])


def fill_outside(value, shape, rois, rules, out):
    """Set the bins whose point lies outside the maps, of ``shape``, to ``value``."""
    boxes = as_rois(rois, out.dtype)
    setting = geometry.setting_of(rules, 1.0, (0, 0), boxes.dtype, shape, out.shape)
    mask = np.zeros((out.shape[0], *out.shape[2:]), np.bool_)
    _outside(rules, boxes, setting, mask)
    np.copyto(out, out.dtype.type(value), where=mask[:, None])
