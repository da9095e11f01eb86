"""The gradient of boxes, where an operator has one, and what lies outside the map.

The mean over a bin is the product of the means over its two axes; its derivative by an edge of the box has
the slopes of one axis (:func:`geometry.edge_slope`) in place of the weights. The work is divided in items as
in :mod:`items`; each adds up the derivatives of its own channels, which are summed in the order of channels.

``tests/reference.py`` has the operators in plain loops: ``precise`` and ``crop_and_resize``.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi import average, tables
from roiops.kernels.cpu.roi.chunks import as_rois, channel_chunks, launch, threads_for
from roiops.kernels.cpu.roi.items import planes_of
from roiops.kernels.cpu.roi.tiles import (
    Ahead,
    Tile,
    channel_blocks,
    comes_by_rows,
    empty_tile,
    item_of,
    prefetch_row,
    prefetch_take,
    read_row,
    take_bins,
    tile_bands,
    tile_slots,
    touch_nothing,
    write_rows,
)
from roiops.kernels.cpu.vector import (
    FIXED_LANES,
    aligned,
    load,
    multiply_add,
    pointer_to,
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
    """``(order, image_at)``, the order of work, and the arrays of the tables of y and x."""
    image = np.empty(rois.shape[0], np.int64)
    for r in range(image.size):
        image[r] = geometry.image_of(rois, r, setting.images)
    order, image_at = tables.by_image(image, setting.images)
    y = _axis_table(rules, rois, image, setting, False)
    x = _axis_table(rules, rois, image, setting, True)
    return (order, image_at), y + x


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
def _are_points(axis, first, bins):
    """Whether each of ``bins`` bins, from entry ``first`` of the table on, is a point between two pixels.

    Where an edge moves it, one pixel then loses the weight that the other gets.
    """
    found = 0
    for j in range(first, first + bins):
        k = axis.at[j]
        if axis.at[j + 1] == k + 2:
            found += axis.near[k] == -axis.near[k + 1] and axis.far[k] == -axis.far[k + 1]
    return found == bins


@inner
def _add_row_of_points(tile, rows, y, entry, x, column, wide, bins, at, sums):
    """What :func:`_add_roi` adds for a row of bins that are points (:func:`_are_points`) on both axes.

    The surface between four pixels, at ``v`` below and ``u`` right of the first, has there the slopes
    ``down + u * twist`` and ``right + v * twist``; neighbours often lie between the same four.
    """
    upper, lower = rows
    below, right_of, cell = y.at[entry] + 1, x.at[column] + 1, np.int64(-1)
    v, nothing = y.mean[below], splat(type(sums[0])(0))
    sum_y = down = right = twist = nothing
    near_x, far_x = load(sums, 2 * FIXED_LANES), load(sums, 3 * FIXED_LANES)
    minus = type(sums[0])(-1)
    for j in range(column, column + wide):
        if x.first[j] != cell:
            cell = x.first[j]
            p, q = cell * FIXED_LANES, (cell + 1) * FIXED_LANES
            upper_left, lower_left = load(tile.values, upper + p), load(tile.values, lower + p)
            right = multiply_add(minus, upper_left, load(tile.values, upper + q))
            down = multiply_add(minus, upper_left, lower_left)
            twist = multiply_add(minus, lower_left, load(tile.values, lower + q))
            twist = multiply_add(minus, right, twist)
        head = load(bins, at)
        at += FIXED_LANES
        sum_y = multiply_add(head, multiply_add(x.mean[right_of], twist, down), sum_y)
        slope_x = multiply_add(head, multiply_add(v, twist, right), nothing)
        near_x = multiply_add(x.near[right_of], slope_x, near_x)
        far_x = multiply_add(x.far[right_of], slope_x, far_x)
        right_of += 2
    store(sums, 0, multiply_add(y.near[below], sum_y, load(sums, 0)))
    store(sums, FIXED_LANES, multiply_add(y.far[below], sum_y, load(sums, FIXED_LANES)))
    store(sums, 2 * FIXED_LANES, near_x)
    store(sums, 3 * FIXED_LANES, far_x)


@inner
def _add_roi(r, item, planes, tile, y, x, lines, bins, ahead, sums):
    """Add the derivatives by the near and far y and x of ROI ``r``, whose head gradient is ``bins``."""
    pooled_h, pooled_w, step = item.pooled_h, item.pooled_w, tile.width * FIXED_LANES
    nothing = splat(type(sums[0])(0))
    low, high = tile.width, 0
    are_points = tile.slots > 1 and _are_points(x, r * pooled_w, pooled_w)
    for column in range(r * pooled_w, (r + 1) * pooled_w):
        count = x.at[column + 1] - x.at[column]
        if count > 0:
            low, high = min(low, x.first[column]), max(high, x.first[column] + count)
    if low >= high:
        return
    for i in range(pooled_h):
        prefetch_row(item, i, ahead)
        entry = r * pooled_h + i
        if y.at[entry] == y.at[entry + 1]:
            continue
        if are_points and _are_points(y, entry, 1):
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


def _items(with_data):
    """The items of one thread; ``with_data`` says whether they also give the gradient of the data.

    Reading the head gradients and turning them into rows of lanes takes as long as either of the two.
    """

    @inner
    def items_of_a_thread(part, parts, grad_out, data, plan, slopes, totals, table, accumulate, grad_data):
        """``slopes`` are the tables of both axes, ``totals`` are (blocks of channels, ROIs, edges)."""
        order, image_at = plan
        images, channels, height, width = data.shape
        pixels, heads = data.reshape(-1), grad_out.reshape(-1)
        area = grad_out.shape[2] * grad_out.shape[3]
        slots = tile_slots(height, width, data.itemsize)
        tile_memory = aligned(slots * width * FIXED_LANES, data)
        marks = np.empty(slots * (width // FIXED_LANES + 1), np.int64)
        lines = aligned(3 * width * FIXED_LANES, data)
        bins = aligned(area * FIXED_LANES, data)
        sums = aligned(4 * FIXED_LANES, data)
        if with_data:
            targets = grad_data.reshape(-1)
            grad_memory = aligned(height * width * FIXED_LANES, data)
            grad_marks = np.empty(height * 2, np.int64)
        blocks = channel_blocks(channels)
        items = images * blocks
        for number in range(part * items // parts, (part + 1) * items // parts):
            item = item_of(number, grad_out.shape, (1, 1))
            planes = planes_of(item, data, pixels)
            tile = Tile(pointer_to(tile_memory), pointer_to(marks), slots, width)
            slopes_y, slopes_x = _slopes_of(slopes[:5]), _slopes_of(slopes[5:])
            empty_tile(tile)
            if with_data:
                grad_tile = Tile(pointer_to(grad_memory), pointer_to(grad_marks), height, width)
                y, x = average.rows_and_columns(table)
                touch_nothing(grad_tile)
            for place in range(image_at[item.image], image_at[item.image + 1]):
                r = order[place]
                following = order[min(place + 1, image_at[item.image + 1] - 1)]
                ahead = (following * channels + item.out_channel) * area
                if not comes_by_rows(item):
                    prefetch_take(item, pointer_to(heads), ahead)
                take_bins(pointer_to(heads), (r * channels + item.out_channel) * area, item, pointer_to(bins))
                if with_data:
                    average.spread(
                        r,
                        item,
                        grad_tile,
                        (0, height),
                        y,
                        x,
                        pointer_to(lines),
                        pointer_to(bins),
                        Ahead(pointer_to(heads), ahead),
                    )
                for k in range(4 * FIXED_LANES):
                    sums[k] = 0
                _add_roi(
                    r,
                    item,
                    planes,
                    tile,
                    slopes_y,
                    slopes_x,
                    pointer_to(lines),
                    pointer_to(bins),
                    Ahead(pointer_to(heads), ahead),
                    pointer_to(sums),
                )
                for edge in range(4):
                    for c in range(item.channels):
                        totals[number % blocks, r, edge] += sums[edge * FIXED_LANES + c]
            if with_data:
                grad_planes = planes_of(item, grad_data, targets)
                write_rows(grad_tile, 0, height, grad_planes, accumulate, pointer_to(lines))

    return items_of_a_thread


_edges_part, _edges_and_data_part = _items(with_data=False), _items(with_data=True)


@parallel
def _edges(share, parts, grad_out, data, plan, slopes, totals):
    for part in within(share, parts):
        _edges_part(part, parts, grad_out, data, plan, slopes, totals, None, None, None)


@parallel
def _edges_and_data(share, parts, grad_out, data, plan, slopes, totals, table, accumulate, grad_data):
    for part in within(share, parts):
        _edges_and_data_part(part, parts, grad_out, data, plan, slopes, totals, table, accumulate, grad_data)


def backward(grad_out, data, rois, scale, rules, accumulate, grad_rois):
    """Write, or add, the gradient of the boxes; the image index has none."""
    boxes = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, (0, 0), boxes.dtype, data.shape, grad_out.shape)
    plan, slopes = _tables(rules, boxes, setting)
    chunks = []
    for head, chunk, _ in channel_chunks([grad_out, data], []):
        sums = _room_for_sums(chunk, boxes)
        if sums.size and chunk.size:
            launch(_edges, head.size + chunk.size, head, chunk, plan, slopes, sums)
        chunks.append(sums)
    _put_gradient(rules, setting, chunks, accumulate, grad_rois)


def backward_with_data(grad_out, data, rois, scale, rules, accumulate, grad_data, grad_rois):
    """Write, or add (a pair of truths), the gradients of the map and of the boxes in one pass.

    They are those of :func:`average.backward` and :func:`backward`. False, and nothing is done, where the
    sums of a map would not stay in a cache or there is little to do.
    """
    items = data.shape[0] * channel_blocks(data.shape[1])
    threads = threads_for(grad_out.size + grad_data.size)
    bands, _ = tile_bands(*data.shape[2:], data.itemsize, threads, items)
    if bands != 1 or not grad_data.size or average.is_few(grad_out.shape):
        return False
    boxes = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, (0, 0), boxes.dtype, data.shape, grad_out.shape)
    _, slopes = _tables(rules, boxes, setting)
    plan, table = average.backward_tables(rules, boxes, setting, (1, 1))
    add_data, add_rois = accumulate
    chunks = []
    for head, chunk, grad, add in channel_chunks([grad_out, data], [grad_data], add_data):
        sums = _room_for_sums(chunk, boxes)
        launch(_edges_and_data, head.size + grad.size, head, chunk, plan, slopes, sums, table, add, grad)
        chunks.append(sums)
    _put_gradient(rules, setting, chunks, add_rois, grad_rois)
    return True


def _room_for_sums(data, rois):
    return np.zeros((channel_blocks(data.shape[1]), len(rois), 4), rois.dtype)


def _put_gradient(rules, setting, chunks, accumulate, grad_rois):
    """Write, or add, what the blocks of channels of each chunk have added up."""
    near_y = 1 if rules.boxes == CORNERS_YX_NORMALISED else 2
    columns = [near_y, near_y + 2, 3 - near_y, 5 - near_y]
    scales = [geometry.edge_scale(rules, setting.scale, n) for n in (setting.height, setting.width)]
    total = np.zeros(grad_rois.shape, setting.scale.dtype)
    for sums in chunks:
        total[:, columns] += sums.sum(axis=0) * np.repeat(scales, 2).astype(total.dtype)
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
