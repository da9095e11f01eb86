"""Where a region of interest falls on the feature map: the only place that says so.

Every ROI operator of every framework is one choice in each of five rules, and a :class:`Rules` row holds
the choices:

1. **frame**: a box's edges on one axis -> start and length in feature pixels (:func:`frame`);
2. **bins and samples**: -> the positions a bin reads (:func:`bin_span`, :func:`bin_grid`, :func:`position`);
3. **border**: a position -> at most two pixels and their weights (:func:`taps`);
4. **reduction**: the mean (with its denominator) or the maximum of the samples;
5. **channel map**: output channel and group of bins -> input channel (:func:`channel_of`).

All but rotation work on one axis at a time: an :class:`Axis` is a box on one axis, and :func:`sample` is what
kernels ask of it. The functions are scalar, allocate nothing and raise nothing, so that CPU and CUDA kernels
compile the same source. They compute in the type of their floating arguments and never widen: with float32
the edge of an integer bin depends on the last bit, and peers agree on it. Literals are therefore converted
with ``type(x)(...)``, and ``a if a < b else b`` stands for ``min(a, b)``, which some CUDA backends refuse.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from .jit import inner
from .rules import (
    CENTRES,
    CLAMPED_HALF_PIXEL,
    CLAMPED_ONE_PIXEL,
    CORNERS,
    CORNERS_YX_NORMALISED,
    END_TO_END,
    EXACT_PIXEL,
    GROUPED,
    INNER,
    INSIDE_NEAREST,
    INTEGER_EDGES,
    INTEGER_OFFSET,
    INTEGRAL,
    LEFT_EDGES,
    MEAN_OF_VALID,
    PIXELS,
    PLUS_FEATURE_PIXEL,
    PLUS_IMAGE_PIXEL,
    REAL,
    ROUNDED_AFTER_SCALING,
    ROUNDED_BEFORE_SCALING,
    SAME_CHANNEL,
    TURNED_DEGREES,
    TURNED_RADIANS_CLOCKWISE,
    UNIT_STEPS,
    ZERO_PADDED,
)


class Setting(NamedTuple):
    """What all boxes of a call have in common."""

    scale: float  # ``spatial_scale``, in the computing type
    images: int
    height: int  # of the map
    width: int
    pooled_h: int
    pooled_w: int
    ratio_y: int  # samples of a bin that are asked for; 0 or less: one a feature pixel
    ratio_x: int


class Axis(NamedTuple):
    """A box on one axis of the feature map."""

    start: float  # in feature pixels, and of the computing type
    length: float
    bins: int
    ratio: int
    extent: int  # pixels of the map
    moved: float  # what a displaced bin is moved by, else zero


class Grid(NamedTuple):
    """The samples of a bin on one axis.

    ``count`` is how many the rule counts. Those outside ``[first, stop)`` are certainly invalid, so a kernel
    need not visit them: a box of any size costs no more than a few samples a pixel of the map.
    """

    first: int
    stop: int
    count: int


# Coordinates beyond this are read as this. Far outside any map, yet every sum and product of two or three of
# them still fits a float32 and an int64.
_FAR = 1e18


@inner
def _limited(x):
    far = type(x)(_FAR)
    return far if x > far else (-far if x < -far else x)


@inner
def _floor(x):
    """The floor of a limited ``x`` in the type of ``x``; ``math.floor`` would call the C library."""
    whole = type(x)(np.int64(x))
    return whole - type(x)(1) if whole > x else whole


@inner
def _whole(x):
    """:func:`_floor` as an int."""
    whole = np.int64(x)
    return whole - 1 if type(x)(whole) > x else whole


@inner
def _round(x):
    """C's ``round``: halves go away from zero. (Adding a half first would round 0.49999997 to 1.)"""
    size = -x if x < 0 else x
    whole = _floor(size)
    if size - whole >= type(x)(0.5):
        whole += type(x)(1)
    return -whole if x < 0 else whole


# numba compiles the built-in `min` and `max` as functions of their own, for each kind of arguments.


@inner
def smaller(a, b):
    """The smaller of two whole numbers."""
    return a if a < b else b


@inner
def larger(a, b):
    """The larger of two whole numbers."""
    return a if a > b else b


# 1. Frame


def scale_of(rules, scale, dtype):
    """``spatial_scale`` as a number of the computing type ``dtype``."""
    return np.dtype(dtype).type(np.float32(scale) if rules.single_scale else scale)


@functools.lru_cache(maxsize=1024)
def setting_of(how, dtype, shape, pooled):
    """The :class:`Setting` of a call for data of ``shape`` and output of shape ``pooled``, in ``dtype``.

    ``how`` is a :class:`rules.Pooling`.
    """
    images, _, height, width = shape
    scale, ratio_y, ratio_x = scale_of(how.rules, how.scale, dtype), *map(int, how.ratio)
    return Setting(scale, images, height, width, *pooled[-2:], ratio_y, ratio_x)


@inner
def image_of(rois, r, images):
    """The image that row ``r`` reads; -1 if the row is to be ignored.

    The first column truncates toward zero, and a negative one is how MXNet marks a row to be ignored. So is
    a row with a coordinate that is not finite, and one that names no image.
    """
    for column in range(1, rois.shape[1]):
        if not math.isfinite(rois[r, column]):
            return -1
    named = rois[r, 0]
    if not (named > type(named)(-1) and named <= type(named)(images)):  # NaN fails both
        return -1
    image = np.int64(named)
    return image if image < images else -1  # -0.5 is image 0, which there may not be


@inner
def frame(rules, low, high, scale):
    """A box's edges on one axis, finite and in image pixels -> start and length in feature pixels."""
    one, shift, least = type(low)(1), type(low)(rules.shift), type(low)(rules.least)
    low, high = _limited(low), _limited(high)
    if rules.rounding == ROUNDED_BEFORE_SCALING:
        low, high = _round(low), _round(high)
    if rules.end == PLUS_IMAGE_PIXEL:
        high += one
    start, stop = _limited(low * scale), _limited(high * scale)
    if rules.rounding == ROUNDED_AFTER_SCALING:
        start, stop = _round(start), _round(stop)
    start -= shift
    length = (stop - shift) - start
    if rules.end == PLUS_FEATURE_PIXEL:
        length += one
    return start, (length if length > least else least)


@inner
def axis_of(rules, low, high, scale, bins, ratio, extent):
    """The :class:`Axis` of a box with these edges."""
    if rules.boxes == CORNERS_YX_NORMALISED:
        last = edge_scale(rules, scale, extent)
        low, high = _limited(low), _limited(high)
        start, length = _limited(low * last), _limited((high - low) * last)
        if bins == 1:  # the middle of the box, computed as TensorFlow does
            start = _limited(type(low)(0.5 * float(low + high) * float(last)))
    else:
        start, length = frame(rules, low, high, scale)
    return Axis(start, length, bins, ratio, extent, type(low)(0))


@inner
def edge_scale(rules, scale, extent):
    """Feature pixels per unit of a box's coordinates."""
    return type(scale)(extent - 1) if rules.boxes == CORNERS_YX_NORMALISED else scale


@inner
def edge_column(rules, across):
    """The column of a box's near edge on the x axis if ``across`` is 1, on the y axis if it is 0.

    That of the far edge is the next but one.
    """
    return 1 + across if rules.boxes == CORNERS_YX_NORMALISED else 2 - across


@inner
def box_axis(rules, rois, r, setting, across):
    """Row ``r`` of ``rois`` on the x axis if ``across`` is 1, on the y axis if it is 0."""
    near = edge_column(rules, across)
    bins = setting.pooled_w if across else setting.pooled_h
    ratio = setting.ratio_x if across else setting.ratio_y
    extent = setting.width if across else setting.height
    return axis_of(rules, rois[r, near], rois[r, near + 2], setting.scale, bins, ratio, extent)


@inner
def box_axes(rules, rois, r, setting):
    """Row ``r`` of ``rois`` on the y and on the x axis."""
    return box_axis(rules, rois, r, setting, 0), box_axis(rules, rois, r, setting, 1)


# 2. Bins and samples


@inner
def _bin_size(axis):
    return axis.length / type(axis.start)(axis.bins)


@inner
def _edges(rules, axis, i):
    """Both ends of bin ``i``, clipped to the map if the rule clips."""
    start = axis.start
    size = _bin_size(axis)
    near, far = type(start)(i) * size, type(start)(i + 1) * size
    zero, end = type(start)(0), type(start)(axis.extent - rules.clip)
    if rules.bins == INTEGER_OFFSET:
        low, high = start + _floor(near), start - _floor(-far)
    elif rules.bins == INTEGER_EDGES:
        low, high = _floor(near + start), -_floor(-(far + start))
    else:
        low, high = near + start, far + start
    if rules.bins != REAL:
        low = zero if low < zero else (end if low > end else low)
        high = zero if high < zero else (end if high > end else high)
    return low, high


@inner
def bin_span(rules, axis, i):
    """The pixels ``[low, high)`` of integer bin ``i``; ``(0, 0)`` if it is empty."""
    if not axis.length > 0:
        return 0, 0
    low, high = _edges(rules, axis, i)
    if not high > low:
        return 0, 0
    return np.int64(low), np.int64(high)


@inner
def grid_of(length, bins, ratio):
    """Samples a bin has on one axis when ``ratio`` are asked for; 0 or less asks for one a feature pixel."""
    if ratio > 0:
        return ratio
    if not length > 0:
        return 0
    return np.int64(-_floor(-(length / type(length)(bins))))


@inner
def bin_grid(rules, axis, i):
    """The :class:`Grid` of bin ``i``."""
    start, extent = axis.start, axis.extent
    if rules.samples == PIXELS:
        low, high = bin_span(rules, axis, i)
        return Grid(0, high - low, high - low)
    if rules.samples == END_TO_END:
        return Grid(0, 1, 1)
    if rules.samples == INTEGRAL:
        # A sample for each pixel whose surface the bin covers a part of; its weight is that part.
        low, high = _edges(rules, axis, i)
        zero, end = type(start)(-1), type(start)(extent)
        if not high > low or high <= zero or low >= end:
            return Grid(0, 0, 1)
        first = _whole(low if low > zero else zero)
        stop = np.int64(-_floor(-(high if high < end else end))) + 1
        return Grid(first if first > 0 else 0, stop if stop < extent else extent, 1)
    if rules.samples == INNER:
        low, high = _edges(rules, axis, i)
        return Grid(0, (axis.ratio if high > low else 0), axis.ratio)
    if rules.samples == UNIT_STEPS:
        low, high = _edges(rules, axis, i)
        count = np.int64(-_floor(-(high - low))) if high > low else 0
        # the last step may round up to the end itself
        if count > 0 and not low + type(start)(count - 1) < high:
            count -= 1
        return Grid(0, count, count)
    count = grid_of(axis.length, axis.bins, axis.ratio)
    if count == 0:
        return Grid(0, 0, 0)
    each = 2 if rules.samples == CORNERS else 1  # two neighbours on either axis make four corners
    origin = position(rules, axis, i, 0, each * count)
    step = _bin_size(axis) / type(start)(count)
    first, stop = _visited(origin, step, count, type(start)(-1), type(start)(extent))
    return Grid(each * first, each * stop, each * count)


@inner
def _visited(origin, step, grid, lowest, highest):
    """The ``[first, stop)`` of the samples ``origin + k * step``, k < ``grid``, that may be in a range.

    Found by solving for k, with a slack of four samples: far more than the rounding of any box that is not
    itself absurd. For those, where positions cannot even be told apart, a bound on the work is kept.
    """
    if not math.isfinite(origin):  # displaced by a number that is not one
        return 0, 0
    if grid <= 8 or not step > 0:  # few, or mirrored and so few: not worth a search
        return 0, grid
    first = _whole(_limited((lowest - origin) / step)) - 4
    first = 0 if first < 0 else (grid if first > grid else first)
    stop = _whole(_limited((highest - origin) / step)) + 6
    most = first + _whole(_limited((highest - lowest) / step)) + 12
    stop = most if stop > most else stop
    return first, (first if stop < first else (grid if stop > grid else stop))


@inner(forceinline=True)
def position(rules, axis, i, k, count):
    """Where sample ``k`` of the ``count`` of bin ``i`` lies, in pixels. Dropped samples give NaN.

    The corners about a sample all have its position; the parts of an integral are at their pixels.
    """
    if rules.samples == CORNERS:
        k, count = k // 2, count // 2
    start = axis.start
    size = _bin_size(axis)
    if rules.samples == PIXELS:
        low, high = bin_span(rules, axis, i)
        return type(start)(low + k)
    if rules.samples == CENTRES or rules.samples == CORNERS:
        origin = (start + type(start)(i) * size) + axis.moved
        return origin + ((type(start)(k) + type(start)(0.5)) * size) / type(start)(count)
    if rules.samples == LEFT_EDGES:
        origin = (start + type(start)(i) * size) + axis.moved
        return origin + type(start)(k) * (size / type(start)(count))
    if rules.samples == INTEGRAL:
        return type(start)(k)
    if rules.samples == END_TO_END:
        if axis.bins == 1:
            return start
        return start + type(start)(i) * (axis.length / type(start)(axis.bins - 1))
    low, high = _edges(rules, axis, i)
    if rules.samples == INNER:
        p = low + type(start)(k + 1) * (size / type(start)(count + 1))
    else:
        p = low + type(start)(k)
    return p if p < high else type(start)(math.nan)


@inner(forceinline=True)
def sample(rules, axis, i, k, count):
    """What sample ``k`` of the ``count`` of bin ``i`` reads: ``(valid, pixel0, weight0, pixel1, weight1)``.

    A pixel with weight zero must not be read: it may be outside the map, or hold NaN.
    """
    if rules.samples == INTEGRAL:
        zero = type(axis.start)(0)
        return True, k, _share(rules, axis, i, k), 0, zero
    valid, pixel0, weight0, pixel1, weight1 = taps(rules, position(rules, axis, i, k, count), axis.extent)
    if rules.samples == CORNERS:
        if k % 2:
            pixel0, weight0 = pixel1, weight1
        weight1 = type(axis.start)(0)
    return valid, pixel0, weight0, pixel1, weight1


@inner
def _share(rules, axis, i, pixel):
    """The mean over bin ``i`` of a surface that is 1 at ``pixel`` and falls to 0 at its neighbours."""
    one, two, zero = type(axis.start)(1), type(axis.start)(2), type(axis.start)(0)
    low, high = _edges(rules, axis, i)
    size = high - low
    low, high = low - type(axis.start)(pixel), high - type(axis.start)(pixel)
    # On either side of the pixel the surface is a line, whose mean is its value half way.
    a, b = (low if low > -one else -one), (high if high < zero else zero)
    total = (b - a) * (one + (a + b) / two) if b > a else zero
    a, b = (low if low > zero else zero), (high if high < one else one)
    if b > a:
        total += (b - a) * (one - (a + b) / two)
    return total / size


@inner
def _fits(grid_y, grid_x):
    """Whether the samples of a bin can be numbered in an int32."""
    return grid_y.count < 2**31 and grid_x.count < 2**31 and grid_y.count * grid_x.count < 2**31


@inner
def flat_sample(y, x, grid_y, grid_x):
    """One int32 for sample ``(y, x)`` of a bin: its place in the grid.

    A grid too large for that (a hostile box) is numbered by the samples that are visited; -1 if even those
    are too many.
    """
    flat = flat_row(y, grid_y, grid_x) + x
    return flat if flat < 2**31 else -1


@inner
def flat_row(y, grid_y, grid_x):
    """What :func:`flat_sample` adds to ``x``."""
    if _fits(grid_y, grid_x):
        return y * grid_x.count
    return (y - grid_y.first) * (grid_x.stop - grid_x.first) - grid_x.first


@inner
def unflat_sample(flat, grid_y, grid_x):
    """The ``(y, x)`` that :func:`flat_sample` numbered."""
    if _fits(grid_y, grid_x):
        row = np.int64(np.uint32(flat) // np.uint32(grid_x.count))
        return row, flat - row * grid_x.count
    visited = grid_x.stop - grid_x.first
    return grid_y.first + flat // visited, grid_x.first + flat % visited


# 3. Border


# Inlined: as a function, its five results go through memory, and by where the stack of a process happened to
# lie, tables of turned boxes took two and a half times as long. What is inlined above it: a bin's functions
# divide the same numbers, and are given all the rules, so that a table took up to 1.7 times as long.
@inner(forceinline=True)
def taps(rules, p, extent):
    """What a position reads on one axis: ``(valid, pixel0, weight0, pixel1, weight1)``."""
    zero, one = type(p)(0), type(p)(1)
    last = type(p)(extent - 1)
    if rules.border == EXACT_PIXEL:
        return True, np.int64(p), one, 0, zero
    if rules.border == ZERO_PADDED:
        if not (p > -one and p < last + one):
            return p == p, 0, zero, 0, zero
        low = _whole(p)
        upper = p - type(p)(low)
        lower = one - upper if low >= 0 else zero
        return True, (low if low >= 0 else 0), lower, low + 1, (upper if low + 1 < extent else zero)
    reach = zero
    if rules.border == CLAMPED_ONE_PIXEL:
        reach = one
    elif rules.border == CLAMPED_HALF_PIXEL:
        reach = type(p)(0.5)
    if not (p >= -reach and p <= last + reach) or extent == 0:
        return False, 0, zero, 0, zero
    if p <= zero:
        return True, 0, one, 0, zero
    if p >= last:
        return True, extent - 1, one, 0, zero
    if rules.border == INSIDE_NEAREST:
        return True, np.int64(_round(p)), one, 0, zero
    low = np.int64(p)  # p is above 0
    upper = p - type(p)(low)
    return True, low, one - upper, low + 1, upper


# 4. Reduction


@inner
def taps_bound(rules, axis):
    """How many (pixel, weight) pairs :func:`bin_taps` may write for all the bins of an axis."""
    if rules.samples == PIXELS or rules.samples == INTEGRAL:
        most = grid_of(axis.length, axis.bins, 0) + 3
    elif rules.samples == END_TO_END:
        most = 2
    else:
        most = 2 * grid_of(axis.length, axis.bins, axis.ratio)
    return axis.bins * (most if most < axis.extent else axis.extent)


@inner
def _add_tap(pixel, weight, at, n, here, amount):
    """Add to the weight of pixel ``here`` of a list of ``n`` pairs; returns how many there are then."""
    if amount == 0:
        return n
    if n > 0 and pixel[at + n - 1] == here:
        weight[at + n - 1] += amount
    elif n > 1 and pixel[at + n - 2] == here:
        weight[at + n - 2] += amount
    else:
        pixel[at + n] = here
        weight[at + n] = amount
        n += 1
    return n


@inner
def bin_taps(rules, axis, i, pixel, weight, at):
    """The mean over bin ``i`` on one axis, as pixels and weights; returns how many.

    They are written to ``pixel[at:]`` and ``weight[at:]`` with equal pixels merged and weights of zero left
    out, in ascending order. A mean over a box is the product of the means over its two axes.
    """
    return _bin_taps(rules, axis, i, False, pixel, weight, at)


@inner
def bin_slopes(rules, axis, i, pixel, weight, at):
    """The derivative of the mean that :func:`bin_taps` gives by the position of the bin, in the same form.

    It is zero at whole pixels, where the two sides differ, and where a position is clamped.
    """
    return _bin_taps(rules, axis, i, True, pixel, weight, at)


@inner(forceinline=True)
def _bin_taps(rules, axis, i, slopes, pixel, weight, at):
    one = type(axis.start)(1)
    if rules.samples == PIXELS:  # each once, all with one weight, and none changes as the bin moves a little
        low, high = bin_span(rules, axis, i)
        count = 0 if slopes else high - low
        for k in range(count):
            pixel[at + k] = low + k
            weight[at + k] = one / type(axis.start)(count)
        return count
    grid = bin_grid(rules, axis, i)
    mirrored = axis.length < 0  # such a box is sampled from its far end to its near one
    n = 0
    valid_samples = 0
    for step in range(grid.stop - grid.first):
        k = grid.stop - 1 - step if mirrored else grid.first + step
        valid, pixel0, weight0, pixel1, weight1 = sample(rules, axis, i, k, grid.count)
        if not valid:
            continue
        valid_samples += 1
        if not slopes:
            n = _add_tap(pixel, weight, at, n, pixel0, weight0)
            n = _add_tap(pixel, weight, at, n, pixel1, weight1)
        elif weight1 != 0:
            n = _add_tap(pixel, weight, at, n, pixel0, -one)
            n = _add_tap(pixel, weight, at, n, pixel1, one)
    counted = valid_samples if rules.reduction == MEAN_OF_VALID else grid.count
    for j in range(n):
        weight[at + j] /= type(axis.start)(counted)
    return n


# Boxes that have a gradient: those pooled by integrals, or by single points


@inner
def edge_pixels(rules, axis, i):
    """The pixels ``[first, stop)`` that the mean over bin ``i`` and its derivatives read."""
    if rules.samples == INTEGRAL:
        grid = bin_grid(rules, axis, i)
        return grid.first, grid.stop
    p = position(rules, axis, i, 0, 1)
    if not (p >= type(p)(0) and p <= type(p)(axis.extent - 1)):
        return 0, 0
    below = np.int64(p)
    return below, (below + 2 if below + 2 < axis.extent else axis.extent)


@inner
def edge_mean(rules, axis, i, pixel):
    """The weight of a pixel in the mean; a point has those of its neighbours, wherever the value is from."""
    if rules.samples == INTEGRAL:
        return _share(rules, axis, i, pixel)
    return _surface(position(rules, axis, i, 0, 1), pixel)


@inner
def _surface(p, pixel):
    """At ``p``, a surface that is 1 at ``pixel`` and falls to 0 at its neighbours."""
    away = abs(p - type(p)(pixel))
    return type(p)(1) - away if away < type(p)(1) else type(p)(0)


@inner
def edge_slope(rules, axis, i, far, pixel):
    """The derivative of a pixel's weight by the near or the far edge of the box, in feature pixels."""
    number = type(axis.start)
    one = number(1)
    if rules.samples == INTEGRAL:
        # What enters or leaves at either end is weighed by the surface there, and by how the end moves.
        low, high = _edges(rules, axis, i)
        moves_low, moves_high = number(i) / number(axis.bins), number(i + 1) / number(axis.bins)
        if not far:
            moves_low, moves_high = one - moves_low, one - moves_high
        mean = _share(rules, axis, i, pixel)
        at_low, at_high = _surface(low, pixel) - mean, _surface(high, pixel) - mean
        return (at_high * moves_high - at_low * moves_low) / (high - low)
    p = position(rules, axis, i, 0, 1)
    below = _floor(p)
    if p == below:  # the two sides of a whole pixel differ
        return number(0)
    moves = number(i) / number(axis.bins - 1) if axis.bins > 1 else number(0.5)
    moves = moves if far else one - moves
    return moves if number(pixel) > p else -moves


# 5. Channel map


def channel_groups(how, pooled_h, pooled_w):
    """In how many groups ``(rows, columns)`` the bins are divided, each with input channels of its own."""
    if how.rules.channels == SAME_CHANNEL:
        return 1, 1
    return (how.groups, how.groups) if how.rules.channels == GROUPED else (pooled_h, pooled_w)


@inner
def channel_of(c, group_y, group_x, groups_h, groups_w):
    """The input channel that output channel ``c`` reads in the bins of a group."""
    return (c * groups_h + group_y) * groups_w + group_x


@inner
def group_of(i, bins, groups):
    """Which of ``groups`` score maps, or displacements, bin ``i`` takes on one axis."""
    if groups == bins:  # as a rule, and then without a division
        return i
    return i * groups // bins if groups > 1 else 0


@inner
def bins_of(group, bins, groups):
    """The bins ``[first, stop)`` of a group on one axis."""
    if groups == bins:
        return group, group + 1
    return (group * bins + groups - 1) // groups, ((group + 1) * bins + groups - 1) // groups


# Pyramids


class Levels(NamedTuple):
    """Which map of a pyramid a box reads: that of ``floor(first + log2(side / size + inside) + added)``."""

    first: float  # the level, counted from the first map, of a box of this size
    size: float  # side of a square box, in image pixels
    inside: float
    added: float
    count: int  # maps


@inner
def level_of(levels, rois, r):
    """The map that row ``r`` reads, from the first to the last; of several, -1 for a box of negative area."""
    if levels.count == 1:
        return 0
    area = (rois[r, 3] - rois[r, 1]) * (rois[r, 4] - rois[r, 2])
    if not area >= 0:
        return -1
    number = type(area)
    ratio = number(math.sqrt(area)) / number(levels.size) + number(levels.inside)
    if not ratio > 0:
        return 0
    level = number(levels.first) + number(math.log2(ratio))
    level = _floor(_limited(level + number(levels.added)))
    last = levels.count - 1
    return 0 if level < 0 else (last if level > number(last) else np.int64(level))


# Bins that move


@inner
def classes_of(trans):
    """How many classes have displacements of their own."""
    return trans.shape[1] // 2 if trans.shape[1] > 0 else 1


@inner
def moved_by(displacement, deviation, length):
    """By how many feature pixels a bin of a box of this length moves."""
    return (displacement * deviation) * length


@inner
def moved_axis(axis, moved):
    """The axis for a bin that is moved."""
    return Axis(axis.start, axis.length, axis.bins, axis.ratio, axis.extent, moved)


@inner
def moved_axes(trans, r, k, i, j, deviation, y, x):
    """The axes for bin ``(i, j)`` of ROI ``r`` as class ``k`` moves it; x comes first in ``trans``."""
    if trans.shape[1] == 0:
        return y, x
    row, column = group_of(i, y.bins, trans.shape[2]), group_of(j, x.bins, trans.shape[3])
    return (
        moved_axis(y, moved_by(trans[r, 2 * k + 1, row, column], deviation, y.length)),
        moved_axis(x, moved_by(trans[r, 2 * k, row, column], deviation, x.length)),
    )


# Boxes that turn: the local frame is centred on the box, so it starts at minus half its length.


class Turned(NamedTuple):
    """A turned box: its own two axes, and how they lie on the map."""

    v: Axis  # down the box
    u: Axis  # across it
    cosine: float
    sine: float
    centre_y: float
    centre_x: float
    low_v: float  # the part of each of its axes that the map covers
    high_v: float
    low_u: float
    high_u: float


@inner
def turn(rules, angle):
    """Cosine and sine of a counter-clockwise angle."""
    if rules.boxes == TURNED_DEGREES:
        # As MXNet does: in double precision, each result rounded to the type of the angle.
        radians = float(type(angle)(float(angle) * math.pi / 180))
    else:
        radians = float(angle)
    sine = type(angle)(math.sin(radians))
    return type(angle)(math.cos(radians)), (-sine if rules.boxes == TURNED_RADIANS_CLOCKWISE else sine)


@inner
def turned_frame(rules, centre, size, scale):
    """Centre and side on one of a box's own axes, finite -> centre, start and length in feature pixels."""
    least, two = type(centre)(rules.least), type(centre)(2)
    length = _limited(_limited(size) * scale)
    length = length if length > least else least
    return _limited(_limited(centre) * scale) - type(centre)(rules.shift), -length / two, length


@inner
def turned(rules, rois, r, setting):
    """Row ``r`` of ``rois`` as a :class:`Turned` box."""
    cosine, sine = turn(rules, rois[r, 5])
    centre_x, start_x, length_x = turned_frame(rules, rois[r, 1], rois[r, 3], setting.scale)
    centre_y, start_y, length_y = turned_frame(rules, rois[r, 2], rois[r, 4], setting.scale)
    reach = turned_reach(cosine, sine, centre_x, centre_y, setting.height, setting.width)
    unmoved = type(cosine)(0)
    v = Axis(start_y, length_y, setting.pooled_h, setting.ratio_y, setting.height, unmoved)
    u = Axis(start_x, length_x, setting.pooled_w, setting.ratio_x, setting.width, unmoved)
    return Turned(v, u, cosine, sine, centre_y, centre_x, *reach)


@inner
def turned_position(box, v, u):
    """A point of a box's own frame -> ``(y, x)`` on the map; the angle turns counter-clockwise."""
    return (v * box.cosine - u * box.sine) + box.centre_y, (u * box.cosine + v * box.sine) + box.centre_x


@inner
def turned_grid(axis, i, lowest, highest):
    """:func:`bin_grid` on one of the box's own axes, of which the map covers ``lowest`` to ``highest``."""
    count = grid_of(axis.length, axis.bins, axis.ratio)
    if count == 0:
        return Grid(0, 0, 0)
    size = _bin_size(axis)
    first, stop = _visited(
        axis.start + type(size)(i) * size, size / type(size)(count), count, lowest, highest
    )
    return Grid(first, stop, count)


@inner
def turned_reach(cosine, sine, centre_x, centre_y, height, width):
    """The part of each of the box's own axes that the map covers: ``(low_v, high_v, low_u, high_u)``."""
    one, half = type(cosine)(1), type(cosine)(0.5)
    # Half the map, with the pixel beyond its border that counts, around its middle.
    half_x, half_y = type(cosine)(width + 1) * half, type(cosine)(height + 1) * half
    x, y = half_x - one - centre_x, half_y - one - centre_y
    u, v = x * cosine - y * sine, x * sine + y * cosine
    cosine, sine = abs(cosine), abs(sine)
    half_u, half_v = half_x * cosine + half_y * sine, half_x * sine + half_y * cosine
    return v - half_v, v + half_v, u - half_u, u + half_u


@inner
def orientation(angle, count):
    """By how many of ``count`` orientations an angle in radians turns: whole ones, and a rest below 1."""
    turns = _limited(type(angle)(float(angle) * count / (2 * math.pi)))
    whole = _floor(turns)
    return np.int64(whole) % count, turns - whole


@inner
def turned_channel(o, whole, count, back):
    """The two orientations between which orientation ``o`` of a turned box lies, or that it gives to."""
    if back:
        return (o + whole) % count, (o + whole - 1) % count
    return (o - whole) % count, (o - whole + 1) % count
