"""The gradient of boxes, where an operator has one, and what lies outside the map.

The mean over a bin is the product of the means over its two axes; its derivative by an edge of the box has
the slopes of one axis (:func:`geometry.edge_slope`) in place of the weights. The work is divided in items as
in :mod:`items`; each adds up the derivatives of its own channels, which are summed in the order of channels.

``tests/reference.py`` has the operators in plain loops: ``precise`` and ``crop_and_resize``.
"""

from typing import NamedTuple

import numpy as np

from ... import geometry
from ...geometry import larger, smaller
from ...jit import Whole, inner, njit, shared
from ...shares import within
from ..vector import (
    FIXED_LANES,
    load,
    load_some,
    multiply_add,
    pointer_to,
    pointers_to,
    prefetch_to_read,
    room,
    splat,
    store,
)
from . import tables
from .addresses import shapes_for
from .bins import Upcoming, prefetch_row, take_bins
from .chunks import boxes_and_setting, channel_chunks, threads_for
from .tiles import Tile, bins_at, channel_blocks, empty_tile, item_of, planes_of, read_row, tile_slots


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
def _axis_table(rules, rois, image, setting, across):
    """The arrays of :class:`_Slopes`; a ROI to be ignored reads nothing."""
    bins = setting.pooled_w if across else setting.pooled_h
    first, at = tables.zeros(image.size * bins), tables.zeros(image.size * bins + 1)
    for k in range(image.size * bins):
        r, count = k // bins, 0
        if image[r] >= 0:
            axis = geometry.box_axis(rules, rois, r, setting, across)
            low, high = geometry.edge_pixels(rules, axis, k - r * bins)
            first[k], count = low, larger(0, high - low)
        at[k + 1] = at[k] + count
    size, number = at[image.size * bins], rois.dtype.type(0)
    mean, near, far = room(size, number), room(size, number), room(size, number)
    for k in range(image.size * bins):
        r = k // bins
        if image[r] >= 0:
            axis = geometry.box_axis(rules, rois, r, setting, across)
            for j in range(at[k], at[k + 1]):
                pixel = first[k] + j - at[k]
                mean[j] = geometry.edge_mean(rules, axis, k - r * bins, pixel)
                near[j] = geometry.edge_slope(rules, axis, k - r * bins, False, pixel)
                far[j] = geometry.edge_slope(rules, axis, k - r * bins, True, pixel)
    return first, at, mean, near, far


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
def _add_roi(r, item, planes, tile, y, x, lines, bins, begin, upcoming, sums):
    """``sums``: the derivatives by the near and far y and x of ROI ``r``.

    Its head gradient is ``bins``, from ``begin`` on.
    """
    pooled_h, pooled_w, step = item.pooled_h, item.pooled_w, tile.width * FIXED_LANES
    nothing = splat(type(sums[0])(0))
    for k in range(0, 4 * FIXED_LANES, FIXED_LANES):
        store(sums, k, nothing)
    low, high = tile.width, 0
    are_points = tile.slots > 1 and _are_points(x, r * pooled_w, pooled_w)
    for column in range(r * pooled_w, (r + 1) * pooled_w):
        count = x.at[column + 1] - x.at[column]
        if count > 0:
            low, high = smaller(low, x.first[column]), larger(high, x.first[column] + count)
    if low >= high:
        return
    for i in range(pooled_h):
        prefetch_row(item, i, upcoming)
        entry = r * pooled_h + i
        if y.at[entry] == y.at[entry + 1]:
            continue
        if are_points and _are_points(y, entry, 1):
            first = y.first[entry]
            rows = read_row(planes, first, low, high, tile), read_row(planes, first + 1, low, high, tile)
            at = begin + i * pooled_w * FIXED_LANES
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
            head = load(bins, begin + (i * pooled_w + j) * FIXED_LANES)
            store(sums, 0, multiply_add(head, near_y, load(sums, 0)))
            store(sums, FIXED_LANES, multiply_add(head, far_y, load(sums, FIXED_LANES)))
            store(sums, 2 * FIXED_LANES, multiply_add(head, near_x, load(sums, 2 * FIXED_LANES)))
            store(sums, 3 * FIXED_LANES, multiply_add(head, far_x, load(sums, 3 * FIXED_LANES)))


@inner
def _add_sums(item, r, block, sums, totals):
    """Add what the channels of an item give to ``totals``: (blocks of channels, ROIs, edges)."""
    for edge in range(4):
        for c in range(item.channels):
            totals[block, r, edge] += sums[edge * FIXED_LANES + c]


# Blocks of channels that lie last which are read at once, and how many bins ahead they are fetched. Bins are
# often whole pages apart: line by line, reading them would take twice as long.
_TOGETHER, _BINS_AHEAD = 16, 2


@inner
def _take_blocks(heads, shapes, r, first, stop, bins):
    """Read the head gradient of a ROI, the blocks ``first`` to ``stop`` of its channels one after another."""
    area, channels = shapes.pooled_h * shapes.pooled_w, shapes.out_channels
    for b in range(area):
        at = (r * area + b) * channels
        prefetch_to_read(
            heads, at + _BINS_AHEAD * channels + first * FIXED_LANES, (stop - first) * FIXED_LANES
        )
        for block in range(first, stop):
            c, to = block * FIXED_LANES, ((block - first) * area + b) * FIXED_LANES
            store(bins, to, load_some(heads, at + c, smaller(FIXED_LANES, channels - c)))


@inner
def _tile_of(block, values, marks, rows, width):
    """The tile of one of some blocks."""
    size, count = rows * width * FIXED_LANES, rows * (width // FIXED_LANES + 2)
    of_block = values[block * size : (block + 1) * size], marks[block * count : (block + 1) * count]
    return Tile(pointer_to(of_block[0]), pointer_to(of_block[1]), rows, width)


@shared
def _edges_share(share, heads, data, shapes, plan, slopes, totals):
    """A thread has some blocks of channels of some ROIs; where these lie last, several at a time."""
    order, image_at = plan
    number, area, width = data.dtype.type(0), shapes.pooled_h * shapes.pooled_w, shapes.width
    together = _TOGETHER if shapes.bin_step > 1 else 1
    rows = tile_slots(shapes.height, width, data.itemsize)
    values = room(together * rows * width * FIXED_LANES, number)
    marks = room(together * rows * (width // FIXED_LANES + 2), np.int64(0))
    line_memory, sum_memory = room(3 * width * FIXED_LANES, number), room(4 * FIXED_LANES, number)
    bin_memory = room(together * area * FIXED_LANES, number)
    blocks, count = channel_blocks(shapes.out_channels), order.size - image_at[0]
    runs = (blocks + together - 1) // together
    run_held = image_held = np.int64(-1)
    for k in within(share, runs * count):
        run, place = k // count, image_at[0] + k % count
        image, first = tables.image_of_place(place, image_at), run * together
        stop, bins = smaller(first + together, blocks), pointer_to(bin_memory)
        upcoming = Upcoming(bins, 0)
        if together > 1:
            _take_blocks(pointer_to(heads), shapes, order[place], first, stop, bins)
        else:
            item = item_of(image * blocks + first, shapes)
            following = order[smaller(place + 1, image_at[image + 1] - 1)]
            at, next_at = bins_at(item, shapes, order[place]), bins_at(item, shapes, following)
            upcoming = take_bins(pointer_to(heads), at, next_at, item, bins, True)
        for block in range(first, stop):
            item = item_of(image * blocks + block, shapes)
            planes = planes_of(item, shapes, pointer_to(data))
            tile = _tile_of(block - first, values, marks, rows, width)
            if run != run_held or image != image_held:
                empty_tile(tile)
            y, x = _Slopes(*pointers_to(slopes[:5])), _Slopes(*pointers_to(slopes[5:]))
            lines, sums = pointer_to(line_memory), pointer_to(sum_memory)
            begin = (block - first) * area * FIXED_LANES
            _add_roi(order[place], item, planes, tile, y, x, lines, bins, begin, upcoming, sums)
            _add_sums(item, order[place], block, sums, totals)
        run_held, image_held = run, image


@inner
def _all_edges(launcher, parts, rules, setting, shapes, rois, heads, data, totals):
    image = tables.images_of(rois, setting.images)
    plan = tables.in_order(image, setting.images)
    slopes = _axis_table(rules, rois, image, setting, 0) + _axis_table(rules, rois, image, setting, 1)
    _edges_share(launcher, parts, heads, data, shapes, plan, slopes, totals)


_run = Whole(_all_edges)


def backward(grad_out, data, rois, how, accumulate, grad_rois):
    """Write, or add, the gradient of the boxes; the image index has none."""
    boxes, setting = boxes_and_setting(how, rois, data, grad_out)
    chunks = []
    for head, chunk, _ in channel_chunks([grad_out, data], []):
        sums = np.zeros((channel_blocks(chunk.shape[1]), len(boxes), 4), boxes.dtype)
        if sums.size and chunk.size:
            threads = threads_for(head.size + chunk.size)
            call = how.rules, setting, shapes_for(chunk, boxes, head)
            _run.by(threads, boxes.dtype, *call, boxes, head.ravel("K"), chunk.ravel("K"), sums)
        chunks.append(sums)
    columns = [geometry.edge_column(how.rules, across) + far for across in (0, 1) for far in (0, 2)]
    scales = [geometry.edge_scale(how.rules, setting.scale, n) for n in (setting.height, setting.width)]
    total = np.zeros(grad_rois.shape, boxes.dtype)
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
        y, x = geometry.box_axes(rules, rois, r, setting)
        for i in range(setting.pooled_h):
            valid_y = geometry.sample(rules, y, i, 0, 1)[0]
            for j in range(setting.pooled_w):
                mask[r, i, j] = not (valid_y and geometry.sample(rules, x, j, 0, 1)[0])


def fill_outside(value, data, rois, how, out):
    """Set the bins whose point lies outside the maps to ``value``."""
    boxes, setting = boxes_and_setting(how, rois, data, out)
    mask = np.zeros((out.shape[0], *out.shape[2:]), np.bool_)
    _outside(how.rules, boxes, setting, mask)
    np.copyto(out, out.dtype.type(value), where=mask[:, None])
