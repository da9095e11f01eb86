"""Upright boxes in image pixels, and what the lowerings of all boxes share.

``MaxRoiPool`` and ``RoiAlign`` are what they stand on. Where a dialect has bins of its own, or score maps for
each bin, every bin becomes a box that is pooled to one number, and every group of score maps an image. The
five rules of a dialect are read from its row, as the kernels read them.
"""

from typing import NamedTuple

import numpy as np

from ....kernels import rules as r
from ...lowering import lowers
from ..dialects import find

#: Operators that never give a row that is to be ignored.
_SOUND = {"_contrib_Proposal", "_contrib_MultiProposal"}
_INF = np.float32(np.inf)


def the_geometry():
    """The module of the kernels' geometry, which loads numba and so is imported when it is needed."""
    from ....kernels import geometry

    return geometry


# -- rows, frames and bins -------------------------------------------------------------------------------


def on_sound_rows(g, node, rois, shape, pool, which=1):
    """``pool(rows, places)`` for the rows that name an image and are finite, zeros for the others.

    ``places`` is None where all rows are sound, else their numbers, (count, 1); input ``which`` is boxes.
    """
    if node.sources[which] in _SOUND:
        return pool(rois, None)
    # A sum of magnitudes is finite where all of them are, short of overflow.
    extent = g.reduce("Sum", g.Abs(g.slice(rois, 1, 1)), [1])
    sound = (g.column(rois, 0, axis=1) > -1) & (extent < np.array(np.inf, rois.dtype))
    places = g.Transpose(g.NonZero(sound), perm=[1, 0])
    found = pool(g.GatherND(rois, places), places)
    count = g.slice(g.Shape(rois), 0, 0, 1)
    zeros = g.ConstantOfShape(g.Concat(count, g.ints(*shape), axis=0), value=np.zeros(1, found.dtype))
    return g.ScatterND(zeros, places, found)


class BoxAxis(NamedTuple):
    """One axis of the boxes: values of shape (rois, 1)."""

    start: object
    length: object
    #: Pixels of the map, a number or a value of shape ().
    extent: object
    bins: int
    ratio: int


def rounded(g, x):
    """Halves go away from zero."""
    size = g.Abs(x)
    whole = g.Floor(size)
    return g.Sign(x) * g.Where((size - whole) >= 0.5, whole + 1, whole)


def axis_of_boxes(g, rules, rows, number, data, bins, ratio, scale):
    """Axis 0 (y) or 1 (x) of the boxes, in feature pixels."""
    column = 2 - number
    low, high = (g.cast(g.slice(rows, 1, a, a + 1), np.float32) for a in (column, column + 2))
    if rules.rounding == r.ROUNDED_BEFORE_SCALING:
        low, high = rounded(g, low), rounded(g, high)
    if rules.end == r.PLUS_IMAGE_PIXEL:
        high = high + 1
    scale = np.float32(scale)
    start, stop = low * scale, high * scale
    if rules.rounding == r.ROUNDED_AFTER_SCALING:
        start, stop = rounded(g, start), rounded(g, stop)
    if rules.shift:
        start, stop = start - rules.shift, stop - rules.shift
    length = stop - start
    if rules.end == r.PLUS_FEATURE_PIXEL:
        length = length + 1
    if np.isfinite(rules.least):
        length = g.Max(length, np.float32(rules.least))
    extent = g.dim(data, 2 + number)
    extent = np.float32(extent) if isinstance(extent, int) else g.cast(extent, np.float32)
    return BoxAxis(start, length, extent, bins, ratio)


def divided(g, x, count):
    """``x`` by a small whole number, in float32, to the last bit in every engine.

    OpenVINO multiplies by the reciprocal, which is rounded otherwise, and an edge on a whole pixel moves by
    one. So what the quotient leaves is computed without rounding, from its upper and lower half (Veltkamp's
    splitting), and divided too.
    """
    quotient = x / np.float32(count)
    large = quotient * np.float32(4097)
    upper = large - (large - quotient)
    lower = quotient - upper
    left = (x - upper * np.float32(count)) - lower * np.float32(count)
    return quotient + left / np.float32(count)


def _edges(g, rules, axis):
    """Both ends of the bins, (rois, bins), clipped to the map if the rule clips."""
    size = axis.length / float(axis.bins) if rules.bins == r.REAL else divided(g, axis.length, axis.bins)
    number = np.arange(axis.bins, dtype=np.float32)[None]
    near, far = size * number, size * (number + 1)
    if rules.bins == r.INTEGER_OFFSET:
        low, high = axis.start + g.Floor(near), axis.start + g.Ceil(far)
    elif rules.bins == r.INTEGER_EDGES:
        low, high = g.Floor(near + axis.start), g.Ceil(far + axis.start)
    else:
        low, high = near + axis.start, far + axis.start
    if rules.bins != r.REAL:
        end = axis.extent - np.float32(rules.clip)
        low, high = (g.Max(g.Min(x, end), np.float32(0)) for x in (low, high))
    return low, high, size


def _images(g, node, data, rows, groups):
    """The score maps as images, and for each bin (rois, rows, columns) the number of the one it reads.

    Channels are (out, group of rows, group of columns); an image holds one group's.
    """
    image = g.unsqueeze(g.cast(g.slice(rows, 1, 0, 1), np.int64), 2)
    (group_rows, row_of), (group_columns, column_of) = groups
    if group_rows * group_columns == 1:
        return data, image
    count = group_rows * group_columns
    (channels,) = node.fixed(data, 1)
    size = g.dim(data, 2), g.dim(data, 3)
    maps = g.reshape(data, -1, channels // count, count, *size)
    maps = g.reshape(g.Transpose(maps, perm=[0, 2, 1, 3, 4]), -1, channels // count, *size)
    which = row_of[:, None] * group_columns + column_of[None]
    return maps, image * np.int64(count) + which.astype(np.int64)[None]


def _groups(rules, op, pooled):
    """For rows and columns of bins: how many groups, and the group of each bin."""
    geometry = the_geometry()
    counts = geometry.channel_groups(rules, op.groups, *pooled)
    return [
        (count, np.array([i * count // bins for i in range(bins)], np.int64))
        for count, bins in zip(counts, pooled, strict=True)
    ]


def _boxes(g, y, x, image):
    """Boxes of all bins, and their images: ends (rois, rows, 1 or columns) and (rois, 1 or rows, columns)."""
    (y1, y2), (x1, x2) = y, x
    grid = g.Shape(x1 + y1)
    boxes = g.Concat(*(g.unsqueeze(g.Expand(e, grid), 3) for e in (x1, y1, x2, y2)), axis=3)
    return g.reshape(boxes, -1, 4), g.reshape(g.Expand(image, grid), -1)


def _pooled(g, y, pooled):
    """What one-number boxes gave, (boxes, channels, 1, 1), as (rois, channels, rows, columns)."""
    channels = g.slice(g.Shape(y), 0, 1, 2)
    return g.Transpose(g.Reshape(y, g.shape_of(-1, *pooled, channels)), perm=[0, 3, 1, 2])


def mean_of_boxes(g, maps, boxes, image, ratio):
    """``RoiAlign`` to one number of boxes whose edges are feature pixels' edges."""
    return g.RoiAlign(
        maps,
        g.cast(boxes, maps.dtype),
        image,
        output_height=1,
        output_width=1,
        sampling_ratio=max(ratio, 0),
        spatial_scale=1.0,
        mode="avg",
        coordinate_transformation_mode="half_pixel",
    )


# -- reductions of bins ----------------------------------------------------------------------------------


def _pool(g, node, rules, data, rows, pooled, scale):
    """All bins of all rows, (rois, channels, rows, columns), by the rules of a dialect."""
    op = node.prop.op(node.params)
    axes = [
        axis_of_boxes(g, rules, rows, number, data, pooled[number], op.ratio[number], scale)
        for number in range(2)
    ]
    maps, image = _images(g, node, data, rows, _groups(rules, op, pooled))
    maximum = rules.reduction in (r.MAX_INVALID_IS_ZERO, r.MAX_OF_VALID)
    if rules.samples == r.PIXELS:
        return _integer_bins(g, rules, maps, image, axes, pooled, maximum)
    if maximum or rules.samples != r.CENTRES:
        return _sample_by_sample(g, rules, maps, image, axes, maximum)
    ends = []
    for axis in axes:
        low, _, size = _edges(g, rules, axis)
        low = low + 0.5  # RoiAlign takes half a pixel off
        ends.append((low, low + size))
    boxes, image = _boxes(g, *_crossed(g, ends), image)
    return _pooled(g, mean_of_boxes(g, maps, boxes, image, op.ratio[0]), pooled)


def _crossed(g, ends):
    """Ends (rois, bins) of rows and columns so that they broadcast to (rois, rows, columns)."""
    return [tuple(g.unsqueeze(e, axis) for e in pair) for pair, axis in zip(ends, (2, 1), strict=True)]


def _integer_bins(g, rules, maps, image, axes, pooled, maximum):
    ends, holds = [], []
    for axis in axes:
        low, high, _ = _edges(g, rules, axis)
        ends.append((low, high))
        holds.append((high > low) & (axis.length > 0))
    filled = g.unsqueeze(holds[0], 2) & g.unsqueeze(holds[1], 1)
    if not maximum:
        # Samples at the middle of every pixel are the pixels. An empty bin has no samples, and gives 0.
        (y1, y2), (x1, x2) = ends
        ends = [(y1, g.Max(y1, y2)), (x1, g.Max(x1, x2))]
        boxes, image = _boxes(g, *_crossed(g, ends), image)
        pooled_maps = _pooled(g, mean_of_boxes(g, maps, boxes, image, 0), pooled)
        return g.Where(g.unsqueeze(filled, 1), pooled_maps, np.array(0, maps.dtype))
    ends = [(low, g.Max(high - 1, low)) for low, high in ends]
    boxes, image = _boxes(g, *_crossed(g, ends), image)
    rows = g.Concat(g.unsqueeze(g.cast(image, np.float32), 1), boxes, axis=1)
    found = g.MaxRoiPool(maps, g.cast(rows, maps.dtype), pooled_shape=(1, 1), spatial_scale=1.0)
    return g.Where(g.unsqueeze(filled, 1), _pooled(g, found, pooled), np.array(rules.empty, maps.dtype))


def positions_of_samples(g, rules, axis):
    """Where the samples lie, (rois, bins, samples), and which of them there are."""
    low, high, size = _edges(g, rules, axis)
    low, high, size = (g.unsqueeze(x, 2) for x in (low, high, size))
    if rules.samples == r.UNIT_STEPS:
        counts = g.Ceil(high - low)
    elif axis.ratio > 0:
        counts = None
    else:
        counts = g.Ceil(size)
    if counts is None:
        number = np.arange(axis.ratio, dtype=np.float32)
        grid = np.float32(axis.ratio)
    else:
        most = g.cast(g.Max(g.reduce("Max", counts, (0, 1, 2)), np.float32(1)), np.int64)
        number = g.unsqueeze(g.cast(g.Range(np.int64(0), most, np.int64(1)), np.float32), 0, 1)
        grid = g.Max(counts, np.float32(1))
    if rules.samples == r.CENTRES:
        places = low + (size * (number + np.float32(0.5)) if counts is None else (number + 0.5) * size) / grid
        return places, (None if counts is None else number < counts)
    if rules.samples == r.INNER:
        places = low + size / float(axis.ratio + 1) * (number + np.float32(1))
    else:
        places = low + number
    return places, (places < high) & (high > low)


def _sample_by_sample(g, rules, maps, image, axes, maximum):
    """Every sample a box of its own; for what ``RoiAlign`` has no rule for."""
    if rules.border == r.ZERO_PADDED:
        maps = g.Pad(maps, g.ints(0, 0, 0, 0, 0, 0, 1, 1))
    (y, in_y), (x, in_x) = (positions_of_samples(g, rules, axis) for axis in axes)
    y, x = g.unsqueeze(y, 2, 4), g.unsqueeze(x, 1, 3)  # (rois, rows, columns, samples, samples)
    grid = g.Shape(x + y)
    everywhere = g.unsqueeze(image, 3, 4)
    boxes = g.Concat(*(g.unsqueeze(g.Expand(e, grid), 5) for e in (x, y, x + 1, y + 1)), axis=5)
    found = mean_of_boxes(g, maps, g.reshape(boxes, -1, 4), g.reshape(g.Expand(everywhere, grid), -1), 1)
    samples = g.Concat(g.slice(grid, 0, 0, 3), g.ints(-1), g.slice(g.Shape(found), 0, 1, 2), axis=0)
    found = g.Reshape(found, samples)  # (rois, rows, columns, samples, channels)

    valid = None
    for places, inside, axis, number in ((y, in_y, axes[0], 0), (x, in_x, axes[1], 1)):
        new = ((2, 4), (1, 3))[number]
        each = None if inside is None else g.unsqueeze(inside, *new)
        if rules.reduction == r.MAX_OF_VALID and rules.border == r.CLAMPED_ONE_PIXEL:
            near = (places >= -1) & (places <= axis.extent)
            each = near if each is None else each & near
        if each is not None:
            valid = each if valid is None else valid & each
    zero = np.array(0, maps.dtype)
    if valid is None:
        reduced = g.reduce("Max" if maximum else "Mean", found, [3])
    else:
        shape = g.Concat(g.slice(grid, 0, 0, 3), g.ints(-1, 1), axis=0)
        valid = g.Reshape(g.Expand(valid, grid), shape)
        if maximum:
            reduced = g.reduce("Max", g.Where(valid, found, np.array(-np.inf, maps.dtype)), [3])
            least = np.array(rules.empty, maps.dtype)
            reduced = g.Where(g.reduce("Max", g.cast(valid, np.float32), [3]) > 0, reduced, least)
        else:
            reduced = g.reduce("Mean", g.Where(valid, found, zero), [3])
    return g.Transpose(reduced, perm=[0, 3, 1, 2])


def plain_align(g, rules, data, rows, pooled, ratio, scale):
    """ONNX's own ``RoiAlign``."""
    return g.RoiAlign(
        data,
        g.cast(g.slice(rows, 1, 1, 5), data.dtype),
        g.cast(g.column(rows, 0, axis=1), np.int64),
        output_height=pooled[0],
        output_width=pooled[1],
        sampling_ratio=max(ratio, 0),
        spatial_scale=scale,
        mode="avg" if rules.reduction == r.MEAN_OF_ALL else "max",
        coordinate_transformation_mode="half_pixel" if rules.shift else "output_half_pixel",
    )


def _separable(g, node, data, rois, pooled):
    p = node.params
    geometry = the_geometry()
    op, row = node.prop.op(p), p.row
    rules, ratio = row.rules, op.ratio
    scale = geometry.scale_of(rules, p.spatial_scale, np.float32)
    channels = node.shapes[0][1]
    # Bins whose number of samples follows from the box cannot be averaged sample by sample: boxes differ.
    plain = rules.channels == r.SAME_CHANNEL and rules.rounding != r.ROUNDED_BEFORE_SCALING
    mean = rules.samples == r.CENTRES and rules.reduction == r.MEAN_OF_ALL
    align = plain and (mean or rules.samples == r.CORNERS)  # the latter is ONNX's own maximum
    if (mean or align) and ratio[0] != ratio[1]:
        node.cannot(f"ONNX's RoiAlign has one sampling ratio for both axes, got {ratio}")

    def pool(rows, places):
        if align and (rules.shift, rules.least) in ((0.5, -np.inf), (0.0, 1.0)):
            return plain_align(g, rules, data, rows, pooled, ratio[0], float(scale))
        if row.name in ("ROIPooling/mxnet", "ROIPooling/torchvision"):
            return g.MaxRoiPool(
                data, g.cast(rows, data.dtype), pooled_shape=pooled, spatial_scale=float(scale)
            )
        return _pool(g, node, rules, data, rows, pooled, scale)

    return on_sound_rows(g, node, rois, (channels, *pooled), pool)


@lowers(
    "_contrib_ROIAlign", "ROIAlign", "ROIPooling", "_contrib_PSROIPooling", "PSROIAlign", as_function=True
)
def separable(g, node, data, rois):
    return _separable(g, node, data, rois, node.prop.pooled_size)


# -- bins that move --------------------------------------------------------------------------------------


@lowers("_contrib_DeformablePSROIPooling", as_function=True)
def deformable_psroi_pooling(g, node, data, rois, trans=None):
    shape = (node.params.output_dim, *node.prop.pooled_size)
    classes = 1 if trans is None else node.fixed(trans, 1)[0] // 2

    def pool(rows, places):
        moves = trans if trans is None or places is None else g.GatherND(trans, places)
        return moved_bins(g, node.params, data, rows, moves, classes)

    return on_sound_rows(g, node, rois, shape, pool)


def moved_bins(g, p, data, rows, trans, classes):
    """``RoiAlign`` of each bin, whose samples are but shifted; bins that leave the map sample by sample."""
    geometry = the_geometry()
    rules = find("contrib.DeformablePSROIPooling", "", "avg").rules
    bins, samples = p.pooled_size, p.sample_per_part
    scale = geometry.scale_of(rules, p.spatial_scale, np.float32)
    axes = [axis_of_boxes(g, rules, rows, number, data, bins, samples, scale) for number in range(2)]
    groups = [(p.group_size, np.array([i * p.group_size // bins for i in range(bins)], np.int64))] * 2
    # Score maps are (class, channel of the class, row group, column group).
    count, of_class = p.group_size**2, p.output_dim // classes
    size = g.dim(data, 2), g.dim(data, 3)
    maps = g.reshape(data, -1, classes, of_class, count, *size)
    maps = g.reshape(g.Transpose(maps, perm=[0, 1, 3, 2, 4, 5]), -1, of_class, *size)
    which = groups[0][1][:, None] * p.group_size + groups[1][1][None]
    which = (np.arange(classes)[:, None, None] * count + which).astype(np.int64)
    image = (
        g.reshape(g.cast(g.slice(rows, 1, 0, 1), np.int64), -1, 1, 1, 1) * np.int64(classes * count)
        + which[None]
    )

    part = np.array([i * p.parts // bins for i in range(bins)], np.int64)
    starts, steps, inside, counted = [], [], [], []
    for number, axis in enumerate(axes):
        size = axis.length / float(bins)
        origin = axis.start + size * np.arange(bins, dtype=np.float32)[None]
        origin = g.unsqueeze(
            origin, 1, 3 if number == 0 else 2
        )  # (rois, 1, rows, 1) or (rois, 1, 1, columns)
        if trans is not None:
            moves = g.Gather(g.Gather(g.cast(trans, np.float32), part, axis=2), part, axis=3)
            moves = g.reshape(moves, -1, classes, 2, bins, bins)
            moves = g.column(moves, 1 - number, axis=2)  # x before y
            origin = origin + moves * np.float32(p.trans_std) * g.unsqueeze(axis.length, 2, 3)
        step = g.unsqueeze(size / float(samples), 2, 3)
        last = axis.extent - np.float32(0.5)
        places = g.unsqueeze(origin, 4) + g.unsqueeze(step, 4) * np.arange(samples, dtype=np.float32)
        within = (places >= -0.5) & (places <= last)
        starts.append(origin)
        steps.append(step)
        inside.append((places, within))
        counted.append(g.reduce("Sum", g.cast(within, np.float32), [4]))
    grid = g.Shape(g.Add(starts[0], starts[1]))
    grid = g.Concat(g.slice(grid, 0, 0, 1), g.ints(classes), g.slice(grid, 0, 2, 4), axis=0)
    ends = []
    for origin, step in zip(starts, steps, strict=True):
        low = origin - step * 0.5 + 0.5  # samples at left edges; and RoiAlign takes half a pixel off
        ends.append((low, low + step * float(samples)))
    (y1, y2), (x1, x2) = ends
    boxes = g.Concat(*(g.unsqueeze(g.Expand(e, grid), 4) for e in (x1, y1, x2, y2)), axis=4)
    image = g.reshape(g.Expand(image, grid), -1)
    found = mean_of_boxes(g, maps, g.reshape(boxes, -1, 4), image, samples)
    found = g.reshape(found, -1, of_class)

    # RoiAlign counts samples up to a pixel outside; here those beyond half a pixel take no part.
    valid = g.reshape(g.Expand(counted[0] * counted[1], grid), -1)
    leaving = g.Transpose(g.NonZero(valid < float(samples * samples)), perm=[1, 0])
    each = []
    for number, (places, within) in enumerate(inside):
        wide = g.Concat(grid, g.ints(samples), axis=0)
        places, within = (
            g.GatherND(g.reshape(g.Expand(v, wide), -1, samples), leaving) for v in (places, within)
        )
        each.append([g.unsqueeze(v, 2 if number == 0 else 1) for v in (places, within)])
    (y, in_y), (x, in_x) = each
    square = g.Shape(x + y)
    points = g.Concat(*(g.unsqueeze(g.Expand(e, square), 3) for e in (x, y, x + 1, y + 1)), axis=3)
    images = g.reshape(g.Expand(g.unsqueeze(g.GatherND(image, leaving), 1, 2), square), -1)
    read = g.reshape(
        mean_of_boxes(g, maps, g.reshape(points, -1, 4), images, 1), -1, samples * samples, of_class
    )
    weight = g.reshape(g.cast(in_y & in_x, maps.dtype), -1, samples * samples, 1)
    least = g.Max(g.unsqueeze(g.GatherND(valid, leaving), 1), np.float32(1))
    found = g.ScatterND(found, leaving, g.reduce("Sum", read * weight, [1]) / g.cast(least, maps.dtype))

    found = g.reshape(found, -1, classes, bins, bins, of_class)
    return g.reshape(g.Transpose(found, perm=[0, 1, 4, 2, 3]), -1, p.output_dim, bins, bins)
