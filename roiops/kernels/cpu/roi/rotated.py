"""Means over the bins of rotated ROIs.

A rotated mean is not separable: each bin is a list of pixels and their weights, which :func:`_build` makes
for some ROIs at a time and all channels share. The rest works as in :mod:`roi_average`.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.lanes import LANES, aligned, bare, load, multiply_add, splat, store
from roiops.kernels.cpu.roi.pieces import as_rois, launch, pieces
from roiops.kernels.cpu.roi.tiles import (
    Planes,
    Tile,
    channel_blocks,
    empty_tile,
    item_of,
    prefetch_put,
    put_bins,
    read_row,
    take_bins,
    tile_bands,
    tile_slots,
    touch_nothing,
    touch_row,
    write_rows,
)
from roiops.kernels.jit import inner, njit, parallel, prange

__all__ = ["backward", "forward"]

# Pairs of a pixel and a weight that are kept at a time, unless a single ROI has more.
_MOST_TAPS = 1 << 20


class _Bins(NamedTuple):
    """Bin ``b`` of ROI ``r`` is the mean of ``pixel[at[r, b] : at[r, b + 1]]``, indices in a plane.

    ``box`` are the rows and the columns that a ROI touches, ``image`` is -1 for one to be ignored.
    """

    image: np.ndarray
    box: np.ndarray
    at: np.ndarray
    pixel: np.ndarray
    weight: np.ndarray


@inner
def _windows(rois, r, scale, ratio, height, width, pooled_h, pooled_w):
    """The frame of ROI ``r`` and, for each bin on each of its axes, the samples to visit."""
    cosine, sine = geometry.turn(rois[r, 5])
    centre_x, start_x, length_x = geometry.rotated_frame(rois[r, 1], rois[r, 3], scale)
    centre_y, start_y, length_y = geometry.rotated_frame(rois[r, 2], rois[r, 4], scale)
    low_v, high_v, low_u, high_u = geometry.rotated_reach(cosine, sine, centre_x, centre_y, height, width)
    window_v = np.empty((pooled_h, 3), np.int64)
    window_u = np.empty((pooled_w, 3), np.int64)
    for i in range(pooled_h):
        window_v[i, 0], window_v[i, 1], window_v[i, 2] = geometry.rotated_grid(
            start_y, length_y, pooled_h, i, ratio[0], low_v, high_v
        )
    for j in range(pooled_w):
        window_u[j, 0], window_u[j, 1], window_u[j, 2] = geometry.rotated_grid(
            start_x, length_x, pooled_w, j, ratio[1], low_u, high_u
        )
    return cosine, sine, centre_y, centre_x, start_y, length_y, start_x, length_x, window_v, window_u


@njit
def _bound(rois, scale, ratio, images, height, width, pooled_h, pooled_w):
    """How many pixels the bins of each ROI may read."""
    most = np.zeros(rois.shape[0], np.int64)
    for r in range(rois.shape[0]):
        if geometry.image_of(rois, r, images) >= 0:
            frame = _windows(rois, r, scale, ratio, height, width, pooled_h, pooled_w)
            v, u = frame[8], frame[9]
            most[r] = 4 * (v[:, 1] - v[:, 0]).sum() * (u[:, 1] - u[:, 0]).sum()
    return most


@inner
def _build_roi(rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w, box, at, pixel, weight):
    """Write the pixels and weights of ROI ``r`` from ``at[0]`` on."""
    cosine, sine, centre_y, centre_x, start_y, length_y, start_x, length_x, window_v, window_u = _windows(
        rois, r, scale, ratio, height, width, pooled_h, pooled_w
    )
    still = type(scale)(0)
    top, bottom, left, right = height, 0, width, 0
    count = at[0]
    for i in range(pooled_h):
        for j in range(pooled_w):
            # As numbers: the product of a huge box's grid is no int64.
            share = type(scale)(1) / (type(scale)(window_v[i, 2]) * type(scale)(window_u[j, 2]))
            for ky in range(window_v[i, 0], window_v[i, 1]):
                v = geometry.position(
                    rules, start_y, length_y, pooled_h, i, ky, window_v[i, 2], height, still
                )
                for kx in range(window_u[j, 0], window_u[j, 1]):
                    u = geometry.position(
                        rules, start_x, length_x, pooled_w, j, kx, window_u[j, 2], width, still
                    )
                    y, x = geometry.rotated_position(u, v, cosine, sine, centre_x, centre_y)
                    valid_y, y0, wy0, y1, wy1 = geometry.taps(rules, y, height)
                    valid_x, x0, wx0, x1, wx1 = geometry.taps(rules, x, width)
                    if not (valid_y and valid_x):
                        continue
                    for side in range(4):
                        row, wy = (y1, wy1) if side > 1 else (y0, wy0)
                        column, wx = (x1, wx1) if side % 2 else (x0, wx0)
                        if wy != 0 and wx != 0:
                            pixel[count], weight[count] = row * width + column, wy * wx * share
                            count += 1
                            top, bottom = min(top, row), max(bottom, row + 1)
                            left, right = min(left, column), max(right, column + 1)
            at[i * pooled_w + j + 1] = count
    box[0], box[1], box[2], box[3] = top, bottom, left, right


@parallel
def _build(parts, rois, start, scale, ratio, rules, size, image, box, at, pixel, weight):
    """Fill the arrays of :class:`_Bins`; the entries of ROI ``r`` begin at ``start[r]``."""
    for part in prange(parts):
        images, height, width, pooled_h, pooled_w = size
        count = image.size
        for r in range(np.int64(part) * count // parts, (np.int64(part) + 1) * count // parts):
            image[r] = geometry.image_of(rois, r, images)
            at[r, 0] = start[r]
            if image[r] >= 0:
                _build_roi(
                    rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w, box[r], at[r], pixel,
                    weight,
                )  # fmt: skip


@inner
def _bins_of(table):
    image, box, at, pixel, weight = table
    return _Bins(image, box, at, bare(pixel), bare(weight))


@inner
def _forward_roi(r, planes, tile, taps, height, bins):
    """The means of ROI ``r``, in ``bins``."""
    zero = splat(type(bins[0])(0))
    kept = tile.slots >= height  # all that is read stays in the tile
    if kept and taps.box[r, 2] < taps.box[r, 3]:
        for y in range(taps.box[r, 0], taps.box[r, 1]):
            read_row(planes, y, taps.box[r, 2], taps.box[r, 3], tile)
    for b in range(taps.at.shape[1] - 1):
        total = zero
        for k in range(taps.at[r, b], taps.at[r, b + 1]):
            at = taps.pixel[k]
            if not kept:
                y, x = divmod(at, tile.width)
                at = read_row(planes, y, x, x + 1, tile) // LANES + x
            total = multiply_add(taps.weight[k], load(tile.values, at * LANES), total)
        store(bins, b * LANES, total)


@inner
def _forward_part(part, parts, data, table, first, out):
    """The items of one of ``parts`` threads; the table's ROIs are those of ``out`` from ``first`` on."""
    images, channels, height, width = data.shape
    pooled_h, pooled_w = out.shape[2:]
    pixels, results = data.reshape(-1), out.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    slots = tile_slots(height, width, out.itemsize)
    room = aligned(slots * width * LANES, out)
    marks = np.empty(slots * (width // LANES + 1), np.int64)
    bins = aligned(area * LANES, out)
    items = images * channel_blocks(channels)
    for number in range(part * items // parts, (part + 1) * items // parts):
        item = item_of(number, channels, pooled_h, pooled_w, 1, 1)
        at = (item.image * channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), slots, width)
        taps = _bins_of(table)
        empty_tile(tile)
        for r in range(taps.image.size):
            if taps.image[r] == item.image:
                to = ((first + r) * channels + item.out_channel) * area
                prefetch_put(item, bare(results), to, pooled_h, pooled_w)
                _forward_roi(r, planes, tile, taps, height, bare(bins))
                put_bins(bare(bins), item, bare(results), to, pooled_h, pooled_w)


@parallel
def _forward(parts, data, table, first, out):
    for part in prange(parts):
        _forward_part(np.int64(part), parts, data, table, first, out)


@inner
def _backward_roi(r, tile, top, bottom, taps, bins):
    """Add the gradient of ROI ``r``, whose head gradient is ``bins``, to rows ``top`` to ``bottom``."""
    for y in range(max(top, taps.box[r, 0]), min(bottom, taps.box[r, 1])):
        touch_row(tile, y - top, taps.box[r, 2], taps.box[r, 3])
    first, stop = top * tile.width, bottom * tile.width
    for b in range(taps.at.shape[1] - 1):
        gradient = load(bins, b * LANES)
        for k in range(taps.at[r, b], taps.at[r, b + 1]):
            if first <= taps.pixel[k] < stop:
                at = (taps.pixel[k] - first) * LANES
                store(tile.values, at, multiply_add(taps.weight[k], gradient, load(tile.values, at)))


@inner
def _backward_part(part, parts, grad_out, table, begin, accumulate, grad_data):
    """The items of one of ``parts`` threads, each a band of rows of an item of the forward pass."""
    images, channels, height, width = grad_data.shape
    pooled_h, pooled_w = grad_out.shape[2:]
    pixels, heads = grad_data.reshape(-1), grad_out.reshape(-1)
    plane, area = height * width, pooled_h * pooled_w
    items = images * channel_blocks(channels)
    bands, rows = tile_bands(height, width, grad_data.itemsize, parts, items)
    room = aligned(rows * width * LANES, grad_data)
    marks = np.empty(rows * 2, np.int64)
    scratch = aligned(width * LANES, grad_data)
    bins = aligned(area * LANES, grad_data)
    for number in range(part * items * bands // parts, (part + 1) * items * bands // parts):
        item = item_of(number // bands, channels, pooled_h, pooled_w, 1, 1)
        top, bottom = number % bands * height // bands, (number % bands + 1) * height // bands
        at = (item.image * channels + item.in_channel) * plane
        planes = Planes(bare(pixels), at, plane, item.channels, width)
        tile = Tile(bare(room), bare(marks), rows, width)
        taps = _bins_of(table)
        touch_nothing(tile)
        for r in range(taps.image.size):
            if taps.image[r] == item.image and taps.box[r, 0] < bottom and taps.box[r, 1] > top:
                at = ((begin + r) * channels + item.out_channel) * area
                take_bins(bare(heads), at, item, pooled_h, pooled_w, bare(bins))
                _backward_roi(r, tile, top, bottom, taps, bare(bins))
        write_rows(tile, top, bottom - top, planes, accumulate, bare(scratch))


@parallel
def _backward(parts, grad_out, table, first, accumulate, grad_data):
    for part in prange(parts):
        _backward_part(np.int64(part), parts, grad_out, table, first, accumulate, grad_data)


def _tables(rois, scale, ratio, rules, images, height, width, pooled_h, pooled_w):
    """``(first, table)``: tables of the bins of some ROIs from ``first`` on; at least one table."""
    most = _bound(rois, scale, ratio, images, height, width, pooled_h, pooled_w)
    first = 0
    while first < len(rois) or first == 0:
        ends = np.cumsum(most[first:])
        stop = first + max(1, int(np.searchsorted(ends, _MOST_TAPS, "right")))
        some = rois[first:stop]
        start = ends[: len(some)] - most[first:stop]
        room = int(most[first:stop].sum())
        table = (
            np.empty(len(some), np.int64),
            np.zeros((len(some), 4), np.int64),
            np.zeros((len(some), pooled_h * pooled_w + 1), np.int64),
            np.empty(room, np.int64),
            np.empty(room, rois.dtype),
        )
        size = images, height, width, pooled_h, pooled_w
        launch(_build, room, some, start, scale, ratio, rules, size, *table)
        yield first, table
        first = stop


def forward(data, rois, scale, ratio, rules, out):
    """Write the means of all bins to ``out``."""
    rois = as_rois(rois, data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    images, _, height, width = data.shape
    for some, means, _ in pieces([data], [out]):
        for first, table in _tables(rois, scale, ratio, rules, images, height, width, *out.shape[2:]):
            image = table[0]
            if image.size and image.min() < 0:
                means[first : first + image.size][image < 0] = 0
            launch(_forward, means.size, some, table, first, means)


def backward(grad_out, rois, scale, ratio, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    rois = as_rois(rois, grad_data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    images, _, height, width = grad_data.shape
    for heads, grad, add in pieces([grad_out], [grad_data], accumulate):
        for first, table in _tables(rois, scale, ratio, rules, images, height, width, *grad_out.shape[2:]):
            launch(_backward, heads.size + grad.size, heads, table, first, add or first > 0, grad)
