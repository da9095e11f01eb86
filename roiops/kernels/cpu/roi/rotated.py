"""Means over the bins of turned ROIs.

Such a mean is not separable: each bin is a list of pixels and their weights, which :func:`_build` makes for
some ROIs at a time and all channels share. :mod:`items` goes through the work.

``tests/reference.py`` has the same in plain loops: ``rotated``.
"""

from typing import NamedTuple

import numpy as np

from ... import geometry
from ...jit import Whole, inner, njit, parallel
from ...shares import within
from ..vector import FIXED_LANES, load, multiply_add, pointer_to, splat, store
from . import tables
from .addresses import NOWHERE, shapes_for
from .chunks import boxes_and_setting, channel_chunks, threads_for
from .items import backward_items, forward_items
from .tiles import read_row, touch_row

# Pairs of a pixel and a weight that are kept at a time, unless a single ROI has more.
_MOST_TAPS = 1 << 20


class _Bins(NamedTuple):
    """Bin ``b`` of ROI ``r`` is the mean of ``pixel[at[r, b] : at[r, b + 1]]``, indices in a plane.

    ``box`` are the rows and the columns that a ROI touches.
    """

    box: np.ndarray
    at: np.ndarray
    pixel: np.ndarray
    weight: np.ndarray


@njit
def _bound(rules, rois, setting):
    """The image of each ROI, -1 for one to be ignored, and how many pixels its bins may read."""
    image, most = tables.images_of(rois, setting.images), tables.zeros(rois.shape[0])
    for r in range(rois.shape[0]):
        if image[r] >= 0:
            box = geometry.turned(rules, rois, r, setting)
            tall = wide = 0
            for i in range(setting.pooled_h):
                grid = geometry.turned_grid(box.v, i, box.low_v, box.high_v)
                tall += grid.stop - grid.first
            for j in range(setting.pooled_w):
                grid = geometry.turned_grid(box.u, j, box.low_u, box.high_u)
                wide += grid.stop - grid.first
            most[r] = 4 * tall * wide
    return image, most


@inner(forceinline=True)
def _add_sample(rules, place, size, share, pixel, weight, count, reach):
    """Write the pixels and weights of a sample from ``count`` on; returns their end, and what is touched."""
    y, x = place
    height, width = size
    top, bottom, left, right = reach
    valid_y, y0, wy0, y1, wy1 = geometry.taps(rules, y, height)
    valid_x, x0, wx0, x1, wx1 = geometry.taps(rules, x, width)
    if valid_y and valid_x:
        for side in range(4):
            row, wy = (y1, wy1) if side > 1 else (y0, wy0)
            column, wx = (x1, wx1) if side % 2 else (x0, wx0)
            if wy != 0 and wx != 0:
                pixel[count], weight[count] = row * width + column, wy * wx * share
                count += 1
                top, bottom = min(top, row), max(bottom, row + 1)
                left, right = min(left, column), max(right, column + 1)
    return count, (top, bottom, left, right)


@inner
def _build_roi(rules, rois, r, setting, reach, at, pixel, weight):
    """Write the pixels and weights of ROI ``r`` from ``at[0]`` on, and what it touches to ``reach``."""
    box = geometry.turned(rules, rois, r, setting)
    size, number = (setting.height, setting.width), type(setting.scale)
    touched = setting.height, np.int64(0), setting.width, np.int64(0)
    count = at[0]
    for i in range(setting.pooled_h):
        grid_v = geometry.turned_grid(box.v, i, box.low_v, box.high_v)
        for j in range(setting.pooled_w):
            grid_u = geometry.turned_grid(box.u, j, box.low_u, box.high_u)
            # As numbers: the product of a huge box's grid is no int64.
            share = number(1) / (number(grid_v.count) * number(grid_u.count))
            for ky in range(grid_v.first, grid_v.stop):
                v = geometry.position(rules, box.v, i, ky, grid_v.count)
                for kx in range(grid_u.first, grid_u.stop):
                    u = geometry.position(rules, box.u, j, kx, grid_u.count)
                    place = geometry.turned_position(box, v, u)
                    count, touched = _add_sample(rules, place, size, share, pixel, weight, count, touched)
            at[i * setting.pooled_w + j + 1] = count
    for side in range(4):
        reach[side] = touched[side]


@parallel
def _build(share, rules, rois, setting, start, image, table):
    """Fill ``table``, the arrays of :class:`_Bins`; the entries of ROI ``r`` begin at ``start[r]``."""
    box, at, pixel, weight = table
    for r in within(share, image.size):
        at[r, 0] = start[r]
        if image[r] >= 0:
            _build_roi(rules, rois, r, setting, box[r], at[r], pixel, weight)


@inner
def _bins_of(table):
    box, at, pixel, weight = table
    bins = _Bins(box, at, pointer_to(pixel), pointer_to(weight))
    return bins, bins  # of both axes at once


@inner
def _pool(r, item, planes, tile, taps, _, line, bins, told):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    kept = tile.slots >= planes.height  # all that is read stays in the tile
    if kept and taps.box[r, 2] < taps.box[r, 3]:
        for y in range(taps.box[r, 0], taps.box[r, 1]):
            read_row(planes, y, taps.box[r, 2], taps.box[r, 3], tile)
    for b in range(taps.at.shape[1] - 1):
        total = zero
        for k in range(taps.at[r, b], taps.at[r, b + 1]):
            at = taps.pixel[k]
            if not kept:
                y, x = divmod(at, tile.width)
                at = read_row(planes, y, x, x + 1, tile) // FIXED_LANES + x
            total = multiply_add(taps.weight[k], load(tile.values, at * FIXED_LANES), total)
        store(bins, b * FIXED_LANES, total)


_forward_items = forward_items(_bins_of, _pool, in_any_order=True)


@inner
def _forward(launcher, parts, shapes, data, plan, table, out, argmax):
    _forward_items(launcher, parts, data, shapes, plan, table, out, ((), argmax))


@inner
def _rows_of(r, item, taps, _):
    """The rows that ROI ``r`` touches."""
    return taps.box[r, 0], taps.box[r, 1]


@inner
def _spread(r, item, tile, band, taps, _, line, bins, told):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to a band of rows."""
    top, bottom = band
    for y in range(max(top, taps.box[r, 0]), min(bottom, taps.box[r, 1])):
        touch_row(tile, y - top, taps.box[r, 2], taps.box[r, 3])
    first, pixels = top * tile.width, np.uint64((bottom - top) * tile.width)
    for b in range(taps.at.shape[1] - 1):
        gradient = load(bins, b * FIXED_LANES)
        for k in range(taps.at[r, b], taps.at[r, b + 1]):
            place = taps.pixel[k] - first
            if np.uint64(place) < pixels:  # one comparison: as an unsigned number, a negative one is large
                at = place * FIXED_LANES
                store(tile.values, at, multiply_add(taps.weight[k], gradient, load(tile.values, at)))


_backward_items = backward_items(_bins_of, _rows_of, _spread)


@inner
def _backward(launcher, parts, shapes, grad_out, plan, table, accumulate, grad_data, argmax):
    _backward_items(launcher, parts, grad_out, shapes, plan, table, accumulate, grad_data, argmax)


_run_forward, _run_backward = Whole(_forward), Whole(_backward)


def _tables(rules, rois, setting):
    """``(part, image, plan, table)`` for some ROIs after another, ``part`` a slice; at least once."""
    image, most = _bound(rules, rois, setting)
    area = setting.pooled_h * setting.pooled_w
    first = 0
    while first < len(rois) or first == 0:
        ends = np.cumsum(most[first:])
        part = slice(first, first + max(1, int(np.searchsorted(ends, _MOST_TAPS, "right"))))
        boxes, images = rois[part], image[part]
        start = ends[: len(boxes)] - most[part]
        taps = int(most[part].sum())
        box, at = np.zeros((len(boxes), 4), np.int64), np.zeros((len(boxes), area + 1), np.int64)
        table = box, at, np.empty(taps, np.int64), np.empty(taps, rois.dtype)
        _build.by(threads_for(taps))(rules, boxes, setting, start, images, table)
        yield part, images, tables.in_order(images, setting.images), table
        first = part.stop


def forward(data, rois, how, out):
    """Write the means of all bins to ``out``."""
    rois, setting = boxes_and_setting(how, rois, data, out)
    for chunk, means, _ in channel_chunks([data], [out]):
        for part, image, plan, table in _tables(how.rules, rois, setting):
            if image.size and image.min() < 0:
                means[part][image < 0] = 0
            shapes = shapes_for(chunk, rois, means)
            arrays = chunk.ravel("K"), plan, table, means[part].ravel("K"), NOWHERE
            _run_forward.by(threads_for(means.size), rois.dtype, shapes, *arrays)


def backward(grad_out, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    rois, setting = boxes_and_setting(how, rois, grad_data, grad_out)
    for heads, grad, add in channel_chunks([grad_out], [grad_data], accumulate):
        for part, _, plan, table in _tables(how.rules, rois, setting):
            threads = threads_for(heads.size + grad.size)
            shapes = shapes_for(grad, rois, heads)
            arrays = heads[part].ravel("K"), plan, table, add or part.start > 0, grad.ravel("K"), NOWHERE
            _run_backward.by(threads, rois.dtype, shapes, *arrays)
