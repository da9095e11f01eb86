"""Where a region of interest falls on the feature map: the only place that says so.

Every ROI operator of every framework is one choice in each of five rules, and a :class:`Rules` row holds
the five choices:

1. **frame**: a box's edges on one axis -> start and length in feature pixels (:func:`frame`);
2. **bins and samples**: -> the positions a bin reads (:func:`bin_span`, :func:`bin_grid`, :func:`position`);
3. **border**: a position -> at most two pixels and their weights (:func:`taps`);
4. **reduction**: the mean (with its denominator) or the maximum of the samples;
5. **channel map**: output channel and group of bins -> input channel (:func:`channel_of`).

All but rotation work on one axis at a time. The functions are scalar, allocate nothing and raise nothing,
so that CPU and CUDA kernels compile the same source. They compute in the type of their floating arguments
and never widen: with float32 the edge of an integer bin depends on the last bit, and peers agree on it.
Literals are therefore converted with ``type(x)(...)``, and ``a if a < b else b`` stands for ``min(a, b)``,
which some CUDA backends refuse.
"""

import math
from typing import NamedTuple

import numpy as np

from roiops.kernels.jit import inner

__all__ = [
    "DIALECTS",
    "Rules",
    "bin_grid",
    "bin_slopes",
    "bin_span",
    "bin_taps",
    "bins_of",
    "channel_groups",
    "channel_of",
    "flat_row",
    "flat_sample",
    "frame",
    "group_of",
    "image_of",
    "moved_by",
    "position",
    "rotated_frame",
    "rotated_grid",
    "rotated_position",
    "rotated_reach",
    "scale_of",
    "taps",
    "taps_bound",
    "turn",
    "unflat_sample",
]

# frame: when the box edges are rounded (half away from zero) ...
NOT_ROUNDED, ROUNDED_BEFORE_SCALING, ROUNDED_AFTER_SCALING = range(3)
# ... and where one is added to the far edge, for boxes that include their last pixel
OPEN_END, PLUS_IMAGE_PIXEL, PLUS_FEATURE_PIXEL = range(3)

# bins
INTEGER_OFFSET = 0  # start + [floor(i b), ceil((i + 1) b)), clipped; start is an integer
INTEGER_EDGES = 1  # [floor(i b + start), ceil((i + 1) b + start)), clipped
REAL = 2  # [start + i b, start + (i + 1) b), never clipped
REAL_CLIPPED = 3  # the same, clipped

# samples
PIXELS = 0  # every pixel of an integer bin
CENTRES = 1  # the centres of g equal parts of the bin
LEFT_EDGES = 2  # the left edges of g equal parts
INNER = 3  # the g points that divide the unclipped bin in g + 1, from the clipped start
UNIT_STEPS = 4  # the clipped start, then steps of one pixel

# border
EXACT_PIXEL = 0
CLAMPED_ONE_PIXEL = 1  # valid within one pixel of the outermost pixel centres, both ends included
CLAMPED_HALF_PIXEL = 2  # valid within half a pixel of them
ZERO_PADDED = 3  # always valid; pixels outside the map count as zero

# reduction: the denominator of a mean on one axis, or a maximum
MEAN_OF_ALL = 0  # over every sample of the grid, the invalid ones as zero
MEAN_OF_VALID = 1
MAX_INVALID_IS_ZERO = 2  # an invalid sample competes as zero
MAX_OF_VALID = 3

# channel map
SAME_CHANNEL = 0
GROUPED = 1  # (c G + group(ph)) G + group(pw): bins share G x G score maps
ONE_PER_BIN = 2  # (c Ph + ph) Pw + pw


class Rules(NamedTuple):
    """One dialect of one operator. Plain numbers only: kernels receive the row as it is."""

    rounding: int
    end: int
    shift: float  # feature pixels taken off both edges
    least: float  # least length of a box, in feature pixels
    bins: int
    clip: int  # clipped bins end at the extent of the map less this
    samples: int
    border: int
    reduction: int
    channels: int
    empty: float  # a maximum of nothing
    single_scale: bool  # the scale is stored as float32, whatever the data


_INF = math.inf

# fmt: off
_CAFFE_POOL = Rules(ROUNDED_AFTER_SCALING, PLUS_FEATURE_PIXEL, 0.0, 1.0, INTEGER_OFFSET, 0, PIXELS,
                    EXACT_PIXEL, MAX_OF_VALID, SAME_CHANNEL, 0.0, True)
_CHAINER_POOL = _CAFFE_POOL._replace(end=OPEN_END, empty=-_INF, single_scale=False)
_ALIGN = Rules(NOT_ROUNDED, OPEN_END, 0.0, 1.0, REAL, 0, CENTRES,
               CLAMPED_ONE_PIXEL, MEAN_OF_ALL, SAME_CHANNEL, 0.0, False)
_HALF_PIXEL = {"shift": 0.5, "least": -_INF}
_MXNET_PS = Rules(ROUNDED_BEFORE_SCALING, PLUS_IMAGE_PIXEL, 0.0, 0.1, INTEGER_EDGES, 0, PIXELS,
                  EXACT_PIXEL, MEAN_OF_ALL, GROUPED, 0.0, True)
_TORCHVISION_PS = _CAFFE_POOL._replace(end=OPEN_END, reduction=MEAN_OF_ALL, channels=ONE_PER_BIN,
                                       single_scale=False)

DIALECTS = {
    # max or mean over integer bins
    "ROIPooling/mxnet": _CAFFE_POOL,  # Caffe and ONNX too
    "ROIPooling/torchvision": _CAFFE_POOL._replace(single_scale=False),
    "ROIPooling/mmcv": _CAFFE_POOL._replace(rounding=NOT_ROUNDED, end=PLUS_IMAGE_PIXEL, least=-_INF,
                                            bins=INTEGER_EDGES, single_scale=False),
    "ROIPooling/chainer": _CHAINER_POOL,
    "ROIPooling/chainer/avg": _CHAINER_POOL._replace(reduction=MEAN_OF_ALL, empty=0.0),
    # bilinear samples
    "ROIAlign/mmcv": _ALIGN,  # torchvision, Detectron and ONNX too
    "ROIAlign/mmcv/aligned": _ALIGN._replace(**_HALF_PIXEL),
    "ROIAlign/mmcv/max": _ALIGN._replace(reduction=MAX_INVALID_IS_ZERO),
    "ROIAlign/mmcv/max/aligned": _ALIGN._replace(reduction=MAX_INVALID_IS_ZERO, **_HALF_PIXEL),
    "ROIAlign/chainer": _ALIGN,
    "ROIAlign/chainer/max": _ALIGN._replace(reduction=MAX_OF_VALID, empty=-_INF),
    "ROIAlign/mxnet/max": Rules(NOT_ROUNDED, PLUS_FEATURE_PIXEL, 0.0, -_INF, REAL_CLIPPED, 0, UNIT_STEPS,
                                ZERO_PADDED, MAX_OF_VALID, SAME_CHANNEL, 0.0, True),
    "contrib.ROIAlign": _ALIGN._replace(single_scale=True),
    "contrib.ROIAlign/aligned": _ALIGN._replace(single_scale=True, **_HALF_PIXEL),
    "contrib.ROIAlign/position_sensitive": _ALIGN._replace(single_scale=True, channels=ONE_PER_BIN),
    "contrib.ROIAlign/position_sensitive/aligned": _ALIGN._replace(single_scale=True, channels=ONE_PER_BIN,
                                                                   **_HALF_PIXEL),
    # position-sensitive pooling
    "PSROIPooling/mxnet": _MXNET_PS,  # R-FCN too
    "PSROIPooling/torchvision": _TORCHVISION_PS,
    "PSROIPooling/torchvision/as_released": _TORCHVISION_PS._replace(clip=1),
    "PSROIPooling/chainer": _MXNET_PS._replace(rounding=NOT_ROUNDED, end=OPEN_END, single_scale=False),
    "PSROIPooling/chainer/max": _MXNET_PS._replace(rounding=NOT_ROUNDED, end=OPEN_END, single_scale=False,
                                                   reduction=MAX_OF_VALID, empty=-_INF),
    # position-sensitive bilinear samples
    "PSROIAlign/rfcn": Rules(NOT_ROUNDED, PLUS_IMAGE_PIXEL, 0.0, 0.1, REAL_CLIPPED, 1, INNER,
                             CLAMPED_ONE_PIXEL, MEAN_OF_ALL, GROUPED, 0.0, False),
    "PSROIAlign/torchvision": _ALIGN._replace(channels=ONE_PER_BIN, **_HALF_PIXEL),
    "PSROIAlign/chainer": _ALIGN._replace(channels=GROUPED, least=0.1),
    "PSROIAlign/chainer/max": _ALIGN._replace(channels=GROUPED, least=0.1, reduction=MAX_OF_VALID,
                                              empty=-_INF),
    # bins that move, boxes that turn
    "contrib.DeformablePSROIPooling": Rules(ROUNDED_BEFORE_SCALING, PLUS_IMAGE_PIXEL, 0.5, 0.1, REAL, 0,
                                            LEFT_EDGES, CLAMPED_HALF_PIXEL, MEAN_OF_VALID, GROUPED, 0.0,
                                            True),
    "contrib.RROIAlign": _ALIGN._replace(single_scale=True),
}
# fmt: on

# Coordinates beyond this are read as this. Far outside any map, yet every sum and product of two or three of
# them still fits a float32 and an int64.
_FAR = 1e18


@inner
def _limited(x):
    far = type(x)(_FAR)
    return far if x > far else (-far if x < -far else x)


@inner
def _floor(x):
    """The floor of a limited ``x`` in the type of ``x``."""
    return type(x)(math.floor(x))


@inner
def _round(x):
    """C's ``round``: halves go away from zero. (Adding a half first would round 0.49999997 to 1.)"""
    size = -x if x < 0 else x
    whole = _floor(size)
    if size - whole >= type(x)(0.5):
        whole += type(x)(1)
    return -whole if x < 0 else whole


# 1. Frame


def scale_of(rules, scale, dtype):
    """``spatial_scale`` as a number of the computing type ``dtype``."""
    return np.dtype(dtype).type(np.float32(scale) if rules.single_scale else scale)


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
    image = int(named)
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


# 2. Bins and samples


@inner
def _edges(rules, start, length, bins, i, extent):
    """Both ends of bin ``i`` of ``bins``, clipped to the map if the rule clips."""
    size = length / type(start)(bins)
    near, far = type(start)(i) * size, type(start)(i + 1) * size
    zero, end = type(start)(0), type(start)(extent - rules.clip)
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
def bin_span(rules, start, length, bins, i, extent):
    """The pixels ``[low, high)`` of integer bin ``i``; ``(0, 0)`` if it is empty."""
    if not length > 0:
        return 0, 0
    low, high = _edges(rules, start, length, bins, i, extent)
    if not high > low:
        return 0, 0
    return int(low), int(high)


@inner
def grid_of(length, bins, ratio):
    """Samples a bin has on one axis when ``ratio`` are asked for; 0 or less asks for one a feature pixel."""
    if ratio > 0:
        return ratio
    if not length > 0:
        return 0
    return int(-_floor(-(length / type(length)(bins))))


@inner
def bin_grid(rules, start, length, bins, i, ratio, extent, moved):
    """The samples of bin ``i``: ``(first, stop, grid)``.

    ``grid`` is how many the rule counts. Those outside ``[first, stop)`` are certainly invalid, so a kernel
    need not visit them: a box of any size costs no more than a few samples a pixel of the map.
    ``moved`` is what a deformed bin is moved by, else zero.
    """
    if rules.samples == PIXELS:
        low, high = bin_span(rules, start, length, bins, i, extent)
        return 0, high - low, high - low
    if rules.samples == INNER:
        low, high = _edges(rules, start, length, bins, i, extent)
        return 0, (ratio if high > low else 0), ratio
    if rules.samples == UNIT_STEPS:
        low, high = _edges(rules, start, length, bins, i, extent)
        count = int(-_floor(-(high - low))) if high > low else 0
        # the last step may round up to the end itself
        if count > 0 and not low + type(start)(count - 1) < high:
            count -= 1
        return 0, count, count
    grid = grid_of(length, bins, ratio)
    if grid == 0:
        return 0, 0, 0
    origin = position(rules, start, length, bins, i, 0, grid, extent, moved)
    step = length / type(start)(bins) / type(start)(grid)
    first, stop = _visited(origin, step, grid, type(start)(-1), type(start)(extent))
    return first, stop, grid


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
    first = int(_floor(_limited((lowest - origin) / step))) - 4
    first = 0 if first < 0 else (grid if first > grid else first)
    stop = int(_floor(_limited((highest - origin) / step))) + 6
    most = first + int(_floor(_limited((highest - lowest) / step))) + 12
    stop = most if stop > most else stop
    return first, (first if stop < first else (grid if stop > grid else stop))


@inner
def position(rules, start, length, bins, i, k, grid, extent, moved):
    """Where sample ``k`` of bin ``i`` lies, in pixels. Dropped samples give NaN."""
    size = length / type(start)(bins)
    if rules.samples == PIXELS:
        low, high = bin_span(rules, start, length, bins, i, extent)
        return type(start)(low + k)
    if rules.samples == CENTRES:
        origin = (start + type(start)(i) * size) + moved
        return origin + ((type(start)(k) + type(start)(0.5)) * size) / type(start)(grid)
    if rules.samples == LEFT_EDGES:
        origin = (start + type(start)(i) * size) + moved
        return origin + type(start)(k) * (size / type(start)(grid))
    low, high = _edges(rules, start, length, bins, i, extent)
    if rules.samples == INNER:
        p = low + type(start)(k + 1) * (size / type(start)(grid + 1))
    else:
        p = low + type(start)(k)
    return p if p < high else type(start)(math.nan)


@inner
def _fits(grid_y, grid_x):
    """Whether the samples of a bin can be numbered in an int32."""
    return grid_y < 2**31 and grid_x < 2**31 and grid_y * grid_x < 2**31


@inner
def flat_sample(y, x, first_y, first_x, grid_y, grid_x, visited_x):
    """One int32 for sample ``(y, x)`` of a bin: its place in the grid.

    A grid too large for that (a hostile box) is numbered by the samples that are visited; -1 if even those
    are too many.
    """
    flat = flat_row(y, first_y, first_x, grid_y, grid_x, visited_x) + x
    return flat if flat < 2**31 else -1


@inner
def flat_row(y, first_y, first_x, grid_y, grid_x, visited_x):
    """What :func:`flat_sample` adds to ``x``."""
    if _fits(grid_y, grid_x):
        return y * grid_x
    return (y - first_y) * visited_x - first_x


@inner
def unflat_sample(flat, first_y, first_x, grid_y, grid_x, visited_x):
    """The ``(y, x)`` that :func:`flat_sample` numbered."""
    if _fits(grid_y, grid_x):
        return flat // grid_x, flat % grid_x
    return first_y + flat // visited_x, first_x + flat % visited_x


# 3. Border


@inner
def taps(rules, p, extent):
    """What a position reads on one axis: ``(valid, pixel0, weight0, pixel1, weight1)``.

    A pixel with weight zero must not be read: it may be outside the map, or hold NaN.
    """
    zero, one = type(p)(0), type(p)(1)
    last = type(p)(extent - 1)
    if rules.border == EXACT_PIXEL:
        return True, int(p), one, 0, zero
    if rules.border == ZERO_PADDED:
        if not (p > -one and p < last + one):
            return p == p, 0, zero, 0, zero
        low = int(_floor(p))
        upper = p - type(p)(low)
        lower = one - upper if low >= 0 else zero
        return True, (low if low >= 0 else 0), lower, low + 1, (upper if low + 1 < extent else zero)
    reach = one if rules.border == CLAMPED_ONE_PIXEL else type(p)(0.5)
    if not (p >= -reach and p <= last + reach) or extent == 0:
        return False, 0, zero, 0, zero
    if p <= zero:
        return True, 0, one, 0, zero
    if p >= last:
        return True, extent - 1, one, 0, zero
    low = int(_floor(p))
    upper = p - type(p)(low)
    return True, low, one - upper, low + 1, upper


# 4. Reduction


@inner
def taps_bound(rules, length, bins, ratio, extent):
    """How many (pixel, weight) pairs :func:`bin_taps` may write for all the bins of an axis."""
    if rules.samples == PIXELS:
        most = grid_of(length, bins, 0) + 3
    else:
        most = 2 * grid_of(length, bins, ratio)
    return bins * (most if most < extent else extent)


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
def bin_taps(rules, start, length, bins, i, ratio, extent, moved, pixel, weight, at):
    """The mean over bin ``i`` on one axis, as pixels and weights; returns how many.

    They are written to ``pixel[at:]`` and ``weight[at:]`` with equal pixels merged and weights of zero left
    out, in ascending order. A mean over a box is the product of the means over its two axes.
    """
    return _bin_taps(rules, start, length, bins, i, ratio, extent, moved, False, pixel, weight, at)


@inner
def bin_slopes(rules, start, length, bins, i, ratio, extent, moved, pixel, weight, at):
    """The derivative of the mean that :func:`bin_taps` gives by the position of the bin, in the same form.

    It is zero at whole pixels, where the two sides differ, and where a position is clamped.
    """
    return _bin_taps(rules, start, length, bins, i, ratio, extent, moved, True, pixel, weight, at)


@inner
def _bin_taps(rules, start, length, bins, i, ratio, extent, moved, slopes, pixel, weight, at):
    one = type(start)(1)
    first, stop, grid = bin_grid(rules, start, length, bins, i, ratio, extent, moved)
    mirrored = length < 0  # such a box is sampled from its far end to its near one
    n = 0
    valid_samples = 0
    for step in range(stop - first):
        k = stop - 1 - step if mirrored else first + step
        p = position(rules, start, length, bins, i, k, grid, extent, moved)
        valid, pixel0, weight0, pixel1, weight1 = taps(rules, p, extent)
        if not valid:
            continue
        valid_samples += 1
        if not slopes:
            n = _add_tap(pixel, weight, at, n, pixel0, weight0)
            n = _add_tap(pixel, weight, at, n, pixel1, weight1)
        elif weight1 != 0:
            n = _add_tap(pixel, weight, at, n, pixel0, -one)
            n = _add_tap(pixel, weight, at, n, pixel1, one)
    counted = valid_samples if rules.reduction == MEAN_OF_VALID else grid
    for j in range(n):
        weight[at + j] /= type(start)(counted)
    return n


# 5. Channel map


def channel_groups(rules, groups, pooled_h, pooled_w):
    """In how many groups ``(rows, columns)`` the bins are divided, each with input channels of its own."""
    if rules.channels == SAME_CHANNEL:
        return 1, 1
    return (groups, groups) if rules.channels == GROUPED else (pooled_h, pooled_w)


@inner
def channel_of(c, group_y, group_x, groups_h, groups_w):
    """The input channel that output channel ``c`` reads in the bins of a group."""
    return (c * groups_h + group_y) * groups_w + group_x


@inner
def group_of(i, bins, groups):
    """Which of ``groups`` score maps, or displacements, bin ``i`` takes on one axis."""
    return i * groups // bins if groups > 1 else 0


@inner
def bins_of(group, bins, groups):
    """The bins ``[first, stop)`` of a group on one axis."""
    return (group * bins + groups - 1) // groups, ((group + 1) * bins + groups - 1) // groups


# Bins that move


@inner
def moved_by(displacement, deviation, length):
    """By how many feature pixels a bin of a box of this length moves."""
    return (displacement * deviation) * length


# Boxes that turn: the local frame is centred on the box, so it starts at minus half its length.


@inner
def turn(degrees):
    """Cosine and sine of an angle."""
    # As MXNet does: in double precision, each result rounded to the type of the angle.
    radians = float(type(degrees)(float(degrees) * math.pi / 180))
    return type(degrees)(math.cos(radians)), type(degrees)(math.sin(radians))


@inner
def rotated_frame(centre, size, scale):
    """Centre and side on one of a box's own axes, finite -> centre, start and length in feature pixels."""
    one, two = type(centre)(1), type(centre)(2)
    length = _limited(_limited(size) * scale)
    length = length if length > one else one
    return _limited(_limited(centre) * scale), -length / two, length


@inner
def rotated_position(u, v, cosine, sine, centre_x, centre_y):
    """A point of a box's own frame -> ``(y, x)`` on the map; the angle turns counter-clockwise."""
    return (v * cosine - u * sine) + centre_y, (u * cosine + v * sine) + centre_x


@inner
def rotated_grid(start, length, bins, i, ratio, lowest, highest):
    """:func:`bin_grid` on one of the box's own axes, of which the map covers ``lowest`` to ``highest``."""
    grid = grid_of(length, bins, ratio)
    size = length / type(start)(bins)
    first, stop = _visited(start + type(start)(i) * size, size / type(start)(grid), grid, lowest, highest)
    return first, stop, grid


@inner
def rotated_reach(cosine, sine, centre_x, centre_y, height, width):
    """The part of each of the box's own axes that the map covers: ``(low_v, high_v, low_u, high_u)``."""
    one, half = type(cosine)(1), type(cosine)(0.5)
    # Half the map, with the pixel beyond its border that counts, around its middle.
    half_x, half_y = type(cosine)(width + 1) * half, type(cosine)(height + 1) * half
    x, y = half_x - one - centre_x, half_y - one - centre_y
    u, v = x * cosine - y * sine, x * sine + y * cosine
    cosine, sine = abs(cosine), abs(sine)
    half_u, half_v = half_x * cosine + half_y * sine, half_x * sine + half_y * cosine
    return v - half_v, v + half_v, u - half_u, u + half_u
