"""Boxes that turn, are normalised, or choose among several maps; bins without samples, and bins that move.

Whatever ``RoiAlign`` has no box for becomes a box of one pixel about each point that is read: pooled with a
single sample, it gives the bilinear value there.
"""

import math

import numpy as np

from ....kernels import rules as r
from .pooling import (
    BoxAxis,
    axis_of_boxes,
    channels_first,
    lowers_sound_boxes,
    mean_in_boxes,
    one_ratio,
    plain_align,
    positions_of_samples,
    roi_align,
    rounded,
    the_geometry,
    values_at,
    zeros_for_rows,
)


def _image(g, rows):
    """The image of each row."""
    return g.cast(g.column(rows, 0, axis=1), np.int64)


def _sum_of_points(g, maps, image, y, x, weight):
    """``(rois, channels, rows, columns)``: the points of each bin, weighted and added up.

    ``y``, ``x`` and ``weight`` broadcast to (rois, rows, columns, points down, points across).
    """
    found = values_at(g, maps, g.unsqueeze(image, 1, 2, 3, 4), y, x, 5)
    return channels_first(g, g.reduce("Sum", found * g.cast(g.unsqueeze(weight, 5), found.dtype), (3, 4)))


def _last(g, data, axis):
    """The last pixel of an axis of the map, as a number or a value of shape (1,)."""
    return g.length(g.dim(data, axis), np.float32) - np.float32(1)


def _crossed(g, y, x):
    """What is (rois, bins, points) on each axis, so that it broadcasts to all five."""
    return g.unsqueeze(y, 2, 4), g.unsqueeze(x, 1, 3)


# -- boxes that turn -------------------------------------------------------------------------------------


@lowers_sound_boxes("_contrib_RROIAlign", "ROIAlignRotated")
def turned_align(g, node, data, rows):
    """The means over the bins of turned boxes."""
    p, rules = node.params, node.params.row.rules
    scale = np.float32(the_geometry().scale_of(rules, p.spatial_scale, np.float32))
    rows = g.cast(rows, np.float32)
    centre_x, centre_y, width, height, angle = (g.slice(rows, 1, k, k + 1) for k in range(1, 6))
    if rules.boxes == r.TURNED_DEGREES:
        angle = angle * np.float32(math.pi / 180)
    cosine, sine = (g.unsqueeze(f(angle), 2, 3, 4) for f in (g.Cos, g.Sin))
    if rules.boxes == r.TURNED_RADIANS_CLOCKWISE:
        sine = -sine
    places, counted = [], []
    for number, size in enumerate((height, width)):
        length = size * scale
        if np.isfinite(rules.least):
            length = g.Max(length, np.float32(rules.least))
        ratio = p.sampling_ratio[number]
        axis = BoxAxis(length * np.float32(-0.5), length, None, node.prop.pooled_size[number], ratio)
        points, inside = positions_of_samples(g, rules, axis)
        places.append(points)
        if inside is None:
            counted.append(np.full((1, 1, 1), 1 / ratio, np.float32))
        else:
            inside = g.cast(inside, np.float32)
            counted.append(inside / g.Max(g.reduce("Sum", inside, [2], keepdims=True), np.float32(1)))
    v, u = _crossed(g, *places)
    share_v, share_u = _crossed(g, *(w if hasattr(w, "graph") else g.constant(w) for w in counted))
    centre_y, centre_x = (g.unsqueeze(c * scale - rules.shift, 2, 3, 4) for c in (centre_y, centre_x))
    y = (v * cosine - u * sine) + centre_y
    x = (u * cosine + v * sine) + centre_x
    return _sum_of_points(g, data, _image(g, rows), y, x, share_v * share_u)


@lowers_sound_boxes("RiROIAlign")
def turned_align_with_orientations(g, node, data, rows):
    """Each orientation of a turned box lies between two: a product with a small matrix for each box."""
    (channels,) = node.fixed(data, 1)
    pooled, count = node.prop.pooled_size, node.params.num_orientations
    bins = turned_align(g, node, data, rows)
    angle = g.cast(g.slice(rows, 1, 5, 6), np.float64)
    turns = g.cast(angle * float(count) / (2 * math.pi), np.float32)
    whole = g.Floor(turns)
    far = g.unsqueeze(turns - whole, 2)
    each = np.arange(count, dtype=np.int64)
    one = g.Mod(each[None] - g.cast(whole, np.int64), np.int64(count))
    two = g.Mod(one + np.int64(1), np.int64(count))
    near_of, far_of = (
        g.cast(g.unsqueeze(which, 2).equals(each[None, None]), np.float32) for which in (one, two)
    )
    matrix = g.cast(near_of * (np.float32(1) - far) + far_of * far, data.dtype)
    bins = g.reshape(bins, -1, channels // count, count, pooled[0] * pooled[1])
    return g.reshape(g.MatMul(g.unsqueeze(matrix, 1), bins), -1, channels, *pooled)


# -- normalised boxes ------------------------------------------------------------------------------------


@lowers_sound_boxes("CropAndResize")
def crop_and_resize(g, node, data, rows):
    if not node.params.channels_last:
        return _crop_planes(g, node, data, rows)
    planes = g.Transpose(data, perm=[0, 3, 1, 2])
    planes.shape = tuple(data.shape[axis] for axis in (0, 3, 1, 2))
    return g.Transpose(_crop_planes(g, node, planes, rows), perm=[0, 2, 3, 1])


def _crop_planes(g, node, data, rows):
    pooled, rules = node.prop.pooled_size, node.params.row.rules

    def axis(number):
        """The points on an axis, (rois, bins), their distance, and which lie on the map."""
        low, high = (g.cast(g.slice(rows, 1, k, k + 1), np.float32) for k in (number + 1, number + 3))
        last, bins = _last(g, data, 2 + number), pooled[number]
        if bins == 1:
            points, step = (low + high) * last * np.float32(0.5), low * np.float32(0) + np.float32(1)
        else:
            step = (high - low) * last / np.float32(bins - 1)
            points = low * last + step * np.arange(bins, dtype=np.float32)[None]
        return points, step, (points >= np.float32(0)) & (points <= last)

    (y, step_y, in_y), (x, step_x, in_x) = axis(0), axis(1)
    if rules.border == r.INSIDE_NEAREST:
        found = _nearest(g, data, _image(g, rows), y, x)
    else:
        ends = []
        for points, step, bins in ((y, step_y, pooled[0]), (x, step_x, pooled[1])):
            near = g.slice(points, 1, 0, 1) - step * np.float32(0.5) + np.float32(0.5)
            ends.append((near, near + step * np.float32(bins)))
        (y1, y2), (x1, x2) = ends
        boxes = g.Concat(x1, y1, x2, y2, axis=1)
        found = roi_align(g, data, boxes, _image(g, rows), pooled)
    inside = g.unsqueeze(in_y, 1, 3) & g.unsqueeze(in_x, 1, 2)
    return g.Where(inside, found, np.array(node.params.extrapolation_value, data.dtype))


def _nearest(g, data, image, y, x):
    """The pixels nearest to the points (rois, rows) and (rois, columns); outside the map, border pixels."""
    at = []
    for points, number in ((y, 0), (x, 1)):
        on_map = g.Max(g.Min(rounded(g, points), _last(g, data, 2 + number)), np.float32(0))
        at.append(g.cast(on_map, np.int64))
    row, column = g.unsqueeze(at[0], 2), g.unsqueeze(at[1], 1)
    grid = g.Shape(row + column)
    indices = (g.unsqueeze(g.Expand(i, grid), 3) for i in (g.unsqueeze(image, 1, 2), row, column))
    return channels_first(g, g.GatherND(g.Transpose(data, perm=[0, 2, 3, 1]), g.Concat(*indices, axis=3)))


# -- bins without samples --------------------------------------------------------------------------------


@lowers_sound_boxes("PrROIPooling")
def precise_pooling(g, node, data, rows):
    """Between two whole pixels the surface is flat along each axis: its mean there is its value half way."""
    p, rules, pooled = node.params, node.params.row.rules, node.prop.pooled_size
    padded = g.Pad(data, g.ints(0, 0, 1, 1, 0, 0, 1, 1))

    def segments(number):
        """Where the middles of the segments of the bins are, and their shares, (rois, bins, segments)."""
        axis = axis_of_boxes(g, rules, rows, number, data, pooled[number], 0, p.spatial_scale)
        size = axis.length / np.float32(axis.bins)
        i = np.arange(axis.bins, dtype=np.float32)[None]
        low, high = (g.unsqueeze(axis.start + size * (i + np.float32(k)), 2) for k in (0, 1))
        start, stop = (g.Max(g.Min(e, axis.extent), np.float32(-1)) for e in (low, high))
        first = g.Floor(start)
        most = g.Max(g.reduce("Max", g.Ceil(stop) - first, (0, 1, 2)), np.float32(1))
        number = g.Range(np.int64(0), g.cast(most, np.int64), np.int64(1))
        near = first + g.unsqueeze(g.cast(number, np.float32), 0, 1)
        near, far = g.Max(near, start), g.Min(near + np.float32(1), stop)
        whole = high - low
        whole = g.Where(whole > np.float32(0), whole, np.float32(1))
        return (near + far) * np.float32(0.5), g.Max(far - near, np.float32(0)) / whole

    (y, share_y), (x, share_x) = segments(0), segments(1)
    (y, x), (share_y, share_x) = _crossed(g, y, x), _crossed(g, share_y, share_x)
    one = np.float32(1)
    return _sum_of_points(g, padded, _image(g, rows), y + one, x + one, share_y * share_x)


# -- bins that move --------------------------------------------------------------------------------------


@lowers_sound_boxes("DeformROIPooling")
def deform_roi_pooling(g, node, data, rows, offset):
    """``RoiAlign`` of each bin."""
    p, rules, pooled = node.params, node.params.row.rules, node.prop.pooled_size
    ratio = one_ratio(node, p.sampling_ratio)
    moves, ends = g.cast(offset, np.float32), []
    for number in range(2):
        axis = axis_of_boxes(g, rules, rows, number, data, pooled[number], 0, p.spatial_scale)
        size = axis.length / np.float32(axis.bins)
        origin = axis.start + size * np.arange(axis.bins, dtype=np.float32)[None]
        new = 2 - number
        moved = g.column(moves, 1 - number, axis=1) * np.float32(p.gamma) * g.unsqueeze(axis.length, 2)
        low = g.unsqueeze(origin, new) + moved + np.float32(0.5)  # RoiAlign takes half a pixel off
        size = g.unsqueeze(size, 2)
        if ratio <= 0:  # as many samples as from the size itself, however the end of the bin is rounded
            count, margin = g.Ceil(size), (g.Abs(low) + g.Abs(size)) * np.float32(2**-22)
            size = g.Min(g.Max(size, count - np.float32(1) + margin), count - margin)
        ends.append((low, low + size))
    image = g.unsqueeze(_image(g, rows), 1, 2)
    return channels_first(g, mean_in_boxes(g, data, image, *ends, 3, ratio))


# -- several maps ----------------------------------------------------------------------------------------


@lowers_sound_boxes("MultiScaleROIAlign", boxes=-1)
def multi_scale_align(g, node, *maps_and_rows):
    """``RoiAlign`` of the boxes of each level."""
    *maps, rows = maps_and_rows
    (channels,) = node.fixed(maps[0], 1)
    p, pooled, rules = node.params, node.prop.pooled_size, node.params.row.rules
    ratio = one_ratio(node, p.sampling_ratio)
    first, size, inside, added, count = node.prop.op(p).levels
    x1, y1, x2, y2 = (g.cast(g.column(rows, k, axis=1), np.float32) for k in range(1, 5))
    area = (x2 - x1) * (y2 - y1)
    side = g.Sqrt(g.Max(area, np.float32(0))) / np.float32(size) + np.float32(inside)
    # In float64, so that sizes on the border between two levels fall to the same side.
    level = g.cast(g.Log(g.cast(side, np.float64)) / math.log(2), np.float32) + np.float32(first)
    level = g.Floor(level + np.float32(added))
    level = g.Where(
        side > np.float32(0), g.Max(g.Min(level, np.float32(count - 1)), np.float32(0)), np.float32(0)
    )
    out = zeros_for_rows(g, rows, (channels, *pooled), maps[0].dtype)
    for k, (data, scale) in enumerate(zip(maps, p.spatial_scales, strict=True)):
        here = g.places(level.equals(np.float32(k)) & (area >= np.float32(0)))
        found = plain_align(g, rules, data, g.GatherND(rows, here), pooled, ratio, float(scale))
        out = g.ScatterND(out, here, found)
    return out
