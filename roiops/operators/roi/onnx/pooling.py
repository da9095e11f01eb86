"""Upright boxes in image pixels, and what the lowerings of all boxes share.

``MaxRoiPool`` and ``RoiAlign`` are what they stand on. Where a dialect has bins of its own, or score maps for
each bin, every bin becomes a box that is pooled to one number, and every group of score maps an image. The
five rules of a dialect are read from its row, as the kernels read them.
"""

from typing import NamedTuple

import numpy as np

from ....kernels import rules as r
from ...lowering import lowers

#: Operators that never give a row that is to be ignored.
_SOUND = {"_contrib_Proposal", "_contrib_MultiProposal"}
_INF = np.float32(np.inf)


def the_geometry():
    """The module of the kernels' geometry, which loads numba and so is imported when it is needed."""
    from ....kernels import geometry

    return geometry


# -- rows, frames and bins -------------------------------------------------------------------------------


def lowers_sound_boxes(*names: str, boxes: int = 1):
    """Decorator: the function lowers these operators, for boxes that name an image and are finite.

    It gets the inputs of the operator: the maps, then from number ``boxes`` on what has a row for each box,
    of which it sees the sound ones. The outputs of the others are zeros.
    """

    def decorate(pool):
        @lowers(*names, as_function=True)
        def pool_sound_boxes(g, node, *inputs):
            if node.sources[boxes] in _SOUND:
                return pool(g, node, *inputs)
            maps, (rois, *others) = inputs[:boxes], inputs[boxes:]
            if rois.dtype.kind in "iu":
                rois = g.cast(rois, np.float32)
            # A sum of magnitudes is finite where all of them are, short of overflow.
            extent = g.reduce("Sum", g.Abs(g.slice(rois, 1, 1)), [1])
            sound = (g.column(rois, 0, axis=1) > -1) & (extent < np.array(np.inf, rois.dtype))
            places = g.places(sound)
            sound_boxes = [g.GatherND(each, places) for each in (rois, *others)]
            for each, whole in zip(sound_boxes, inputs[boxes:], strict=True):
                each.shape = (-1, *whole.shape[1:])
            found = pool(g, node, *maps, *sound_boxes)
            shape = node.shapes[0][1:]
            if -1 in shape:
                node.fixed(maps[0])
            return g.ScatterND(zeros_for_rows(g, rois, shape, found.dtype), places, found)

        return pool

    return decorate


def zeros_for_rows(g, rows, shape, dtype):
    """An array of ``shape`` for each of the rows."""
    return g.full([g.slice(g.Shape(rows), 0, 0, 1), *shape], 0, dtype)


def one_ratio(node, ratio) -> int:
    """The sampling ratio of both axes, which must be one for ``RoiAlign``."""
    if ratio[0] != ratio[1]:
        node.cannot(f"ONNX's RoiAlign has one sampling ratio for both axes, got {ratio}")
    return ratio[0]


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
    return BoxAxis(start, length, g.length(g.dim(data, 2 + number), np.float32), bins, ratio)


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


def _groups(rules, groups, pooled):
    """For rows and columns of bins: how many groups, and the group of each bin."""
    geometry = the_geometry()
    counts = geometry.channel_groups(r.Pooling(rules, 1.0, groups=groups), *pooled)
    return [
        (count, np.array([i * count // bins for i in range(bins)], np.int64))
        for count, bins in zip(counts, pooled, strict=True)
    ]


def roi_align(g, maps, boxes, image, pooled=(1, 1), ratio=1, scale=1.0, mode="avg", half_pixel=True):
    """ONNX's ``RoiAlign``; as it is, of boxes whose edges are feature pixels' edges, to one number each."""
    if ratio <= 0 and half_pixel:  # a box of less than no length has no samples; onnxruntime ends at it
        near, far = g.slice(boxes, 1, 0, 2), g.slice(boxes, 1, 2, 4)
        boxes = g.Concat(near, g.Max(near, far), axis=1)
    return g.RoiAlign(
        maps,
        g.cast(boxes, maps.dtype),
        image,
        output_height=pooled[0],
        output_width=pooled[1],
        sampling_ratio=max(ratio, 0),
        spatial_scale=scale,
        mode=mode,
        coordinate_transformation_mode="half_pixel" if half_pixel else "output_half_pixel",
    )


def each_box(g, pool, image, y, x, axes):
    """What ``pool(boxes, images)`` makes of the boxes of a grid, a number a channel each: (*grid, channels).

    Their ends ``y`` and ``x`` broadcast to the grid of so many axes, and so do the numbers of their images.
    """
    (y1, y2), (x1, x2) = y, x
    grid = g.Shape(y1 + x1)
    boxes = g.Concat(*(g.unsqueeze(g.Expand(e, grid), axes) for e in (x1, y1, x2, y2)), axis=axes)
    found = pool(g.reshape(boxes, -1, 4), g.reshape(g.Expand(image, grid), -1))
    return g.Reshape(found, g.Concat(grid, g.slice(g.Shape(found), 0, 1, 2), axis=0))


def mean_in_boxes(g, maps, image, y, x, axes, ratio):
    """The means over ``ratio`` x ``ratio`` samples of each box: see :func:`each_box`."""
    return each_box(
        g, lambda boxes, images: roi_align(g, maps, boxes, images, ratio=ratio), image, y, x, axes
    )


def values_at(g, maps, image, y, x, axes):
    """The values at points: a box of one pixel about each, with a single sample."""
    return mean_in_boxes(g, maps, image, (y, y + 1), (x, x + 1), axes, 1)


def channels_first(g, y):
    """(rois, rows, columns, channels) as the operators give it."""
    return g.Transpose(y, perm=[0, 3, 1, 2])


# -- reductions of bins ----------------------------------------------------------------------------------


def _pool(g, node, rules, data, rows, pooled, scale):
    """All bins of all rows, (rois, channels, rows, columns), by the rules of a dialect."""
    p = node.params
    axes = [
        axis_of_boxes(g, rules, rows, number, data, pooled[number], p.ratio[number], scale)
        for number in range(2)
    ]
    maps, image = _images(g, node, data, rows, _groups(rules, p.groups, pooled))
    maximum = rules.reduction in (r.MAX_INVALID_IS_ZERO, r.MAX_OF_VALID)
    if rules.samples == r.PIXELS:
        return _integer_bins(g, rules, maps, image, axes, maximum)
    if maximum or rules.samples != r.CENTRES:
        return _sample_by_sample(g, rules, maps, image, axes, maximum)
    ends = []
    for axis in axes:
        low, _, size = _edges(g, rules, axis)
        low = low + 0.5  # RoiAlign takes half a pixel off
        ends.append((low, low + size))
    return channels_first(g, mean_in_boxes(g, maps, image, *_crossed(g, ends), 3, p.ratio[0]))


def _crossed(g, ends):
    """Ends (rois, bins) of rows and columns so that they broadcast to (rois, rows, columns)."""
    return [tuple(g.unsqueeze(e, axis) for e in pair) for pair, axis in zip(ends, (2, 1), strict=True)]


def _integer_bins(g, rules, maps, image, axes, maximum):
    ends, holds = [], []
    for axis in axes:
        low, high, _ = _edges(g, rules, axis)
        ends.append((low, high))
        holds.append((high > low) & (axis.length > 0))
    filled = g.unsqueeze(holds[0], 2, 3) & g.unsqueeze(holds[1], 1, 3)

    def largest(boxes, images):
        rows = g.Concat(g.unsqueeze(g.cast(images, np.float32), 1), boxes, axis=1)
        return g.MaxRoiPool(maps, g.cast(rows, maps.dtype), pooled_shape=(1, 1), spatial_scale=1.0)

    if maximum:
        ends = [(low, g.Max(high - 1, low)) for low, high in ends]
        found, empty = each_box(g, largest, image, *_crossed(g, ends), 3), rules.empty
    else:
        # Samples at the middle of every pixel are the pixels. An empty bin has no samples, and gives 0.
        found, empty = mean_in_boxes(g, maps, image, *_crossed(g, ends), 3, 0), 0
    return channels_first(g, g.Where(filled, found, np.array(empty, maps.dtype)))


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
    places, valid = [], None
    for axis, new in zip(axes, ((2, 4), (1, 3)), strict=True):  # (rois, rows, columns, samples, samples)
        each, inside = positions_of_samples(g, rules, axis)
        if rules.reduction == r.MAX_OF_VALID and rules.border == r.CLAMPED_ONE_PIXEL:
            near = (each >= -1) & (each <= axis.extent)
            inside = near if inside is None else near & inside
        places.append(g.unsqueeze(each, *new))
        if inside is not None:
            inside = g.unsqueeze(inside, *new)
            valid = inside if valid is None else valid & inside
    found = values_at(g, maps, g.unsqueeze(image, 3, 4), *places, 5)
    kind, nothing = ("Max", -np.inf) if maximum else ("Mean", 0)
    if valid is not None:
        found = g.Where(g.unsqueeze(valid, 5), found, np.array(nothing, maps.dtype))
    reduced = g.reduce(kind, found, (3, 4))
    if maximum and valid is not None:
        any_valid = g.unsqueeze(g.reduce("Max", g.cast(valid, np.float32), (3, 4)) > 0, 3)
        reduced = g.Where(any_valid, reduced, np.array(rules.empty, maps.dtype))
    return channels_first(g, reduced)


def plain_align(g, rules, data, rows, pooled, ratio, scale):
    """``RoiAlign`` by the rules of a dialect that it has."""
    boxes, image = g.slice(rows, 1, 1, 5), g.cast(g.column(rows, 0, axis=1), np.int64)
    mode = "avg" if rules.reduction == r.MEAN_OF_ALL else "max"
    return roi_align(g, data, boxes, image, pooled, ratio, scale, mode, half_pixel=bool(rules.shift))


@lowers_sound_boxes("_contrib_ROIAlign", "ROIAlign", "ROIPooling", "_contrib_PSROIPooling", "PSROIAlign")
def separable(g, node, data, rows):
    p, pooled = node.params, node.prop.pooled_size
    row, ratio = p.row, p.ratio
    rules = row.rules
    scale = the_geometry().scale_of(rules, p.spatial_scale, np.float32)
    # Bins whose number of samples follows from the box cannot be averaged sample by sample: boxes differ.
    plain = rules.channels == r.SAME_CHANNEL and rules.rounding != r.ROUNDED_BEFORE_SCALING
    mean = rules.samples == r.CENTRES and rules.reduction == r.MEAN_OF_ALL
    align = plain and (mean or rules.samples == r.CORNERS)  # the latter is ONNX's own maximum
    if mean or align:
        one_ratio(node, ratio)
    if align and (rules.shift, rules.least) in ((0.5, -np.inf), (0.0, 1.0)):
        return plain_align(g, rules, data, rows, pooled, ratio[0], float(scale))
    if row.name in ("ROIPooling/mxnet", "ROIPooling/torchvision"):
        return g.MaxRoiPool(data, g.cast(rows, data.dtype), pooled_shape=pooled, spatial_scale=float(scale))
    return _pool(g, node, rules, data, rows, pooled, scale)


# -- bins that move --------------------------------------------------------------------------------------


@lowers_sound_boxes("_contrib_DeformablePSROIPooling")
def deformable_psroi_pooling(g, node, data, rows, trans=None):
    """``RoiAlign`` of each bin, whose samples are but shifted; bins that leave the map sample by sample."""
    p, rules = node.params, node.params.row.rules
    classes = 1 if trans is None else node.fixed(trans, 1)[0] // 2
    bins, samples = p.pooled_size, p.sample_per_part
    scale = the_geometry().scale_of(rules, p.spatial_scale, np.float32)
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
    ends, inside, counted = [], [], []
    for number, axis in enumerate(axes):
        size = axis.length / float(bins)
        origin = axis.start + size * np.arange(bins, dtype=np.float32)[None]
        origin = g.unsqueeze(origin, 1, 3 - number)  # (rois, 1, rows, 1) or (rois, 1, 1, columns)
        if trans is not None:
            moves = g.Gather(g.Gather(g.cast(trans, np.float32), part, axis=2), part, axis=3)
            moves = g.reshape(moves, -1, classes, 2, bins, bins)
            moves = g.column(moves, 1 - number, axis=2)  # x before y
            origin = origin + moves * np.float32(p.trans_std) * g.unsqueeze(axis.length, 2, 3)
        step = g.unsqueeze(size / float(samples), 2, 3)
        low = origin - step * 0.5 + 0.5  # samples at left edges; and RoiAlign takes half a pixel off
        ends.append((low, low + step * float(samples)))
        places = g.unsqueeze(origin, 4) + g.unsqueeze(step, 4) * np.arange(samples, dtype=np.float32)
        within = (places >= -0.5) & (places <= axis.extent - np.float32(0.5))
        inside.append((places, within))
        counted.append(g.reduce("Sum", g.cast(within, np.float32), [4]))
    found = g.reshape(mean_in_boxes(g, maps, image, *ends, 4, samples), -1, of_class)

    # RoiAlign counts samples up to a pixel outside; here those beyond half a pixel take no part.
    valid = counted[0] * counted[1]
    wide = g.Concat(g.Shape(valid), g.ints(samples), axis=0)
    leaving = g.places(g.reshape(valid, -1) < float(samples * samples))

    def of_leaving(value, *lengths):
        return g.GatherND(g.reshape(value, -1, *lengths), leaving)

    (y, in_y), (x, in_x) = (
        [g.unsqueeze(of_leaving(g.Expand(each, wide), samples), 2 - number) for each in pair]
        for number, pair in enumerate(inside)
    )
    images = g.unsqueeze(of_leaving(g.Expand(image, g.Shape(valid))), 1, 2)
    read = values_at(g, maps, images, y, x, 3) * g.cast(g.unsqueeze(in_y & in_x, 3), maps.dtype)
    least = g.cast(g.Max(g.unsqueeze(of_leaving(valid), 1), np.float32(1)), maps.dtype)
    found = g.ScatterND(found, leaving, g.reduce("Sum", read, (1, 2)) / least)

    found = g.reshape(found, -1, classes, bins, bins, of_class)
    return g.reshape(g.Transpose(found, perm=[0, 1, 4, 2, 3]), -1, p.output_dim, bins, bins)
