"""The five choices that make an ROI operator what it is, as plain numbers: no numba here.

``operators/roi/dialects.py`` holds one :class:`Rules` for each dialect; :mod:`geometry` says what each choice
means.
"""

import math
from typing import NamedTuple

# boxes: what the columns after the image index are
CORNERS_XY = 0  # x1, y1, x2, y2 in image pixels
CORNERS_YX_NORMALISED = 1  # y1, x1, y2, x2, where 0 and 1 are the centres of the first and the last pixel
TURNED_DEGREES = 2  # centre x, centre y, width, height in image pixels, and an angle counter-clockwise
TURNED_RADIANS = 3  # the same with the angle in radians
TURNED_RADIANS_CLOCKWISE = 4

# rounding: when the box edges are rounded (half away from zero)
NOT_ROUNDED, ROUNDED_BEFORE_SCALING, ROUNDED_AFTER_SCALING = range(3)

# end: where one is added to the far edge, for boxes that include their last pixel
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
CORNERS = 5  # the pixels about each of the centres of g equal parts, one by one
INTEGRAL = 6  # every point of the bin
END_TO_END = 7  # one point a bin: the first lies on the start of the box, the last on its end

# border
EXACT_PIXEL = 0
CLAMPED_ONE_PIXEL = 1  # valid within one pixel of the outermost pixel centres, both ends included
CLAMPED_HALF_PIXEL = 2  # valid within half a pixel of them
ZERO_PADDED = 3  # always valid; pixels outside the map count as zero
INSIDE = 4  # valid between the outermost pixel centres, both included
INSIDE_NEAREST = 5  # the same, but the nearest pixel instead of the two neighbours

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

    rounding: int = NOT_ROUNDED
    end: int = OPEN_END
    shift: float = 0.0  # feature pixels taken off both edges
    least: float = -math.inf  # least length of a box, in feature pixels
    bins: int = REAL
    clip: int = 0  # clipped bins end at the extent of the map less this
    samples: int = CENTRES
    border: int = CLAMPED_ONE_PIXEL
    reduction: int = MEAN_OF_ALL
    channels: int = SAME_CHANNEL
    empty: float = 0.0  # a maximum of nothing
    single_scale: bool = False  # the scale is stored as float32, whatever the data
    boxes: int = CORNERS_XY
    displaced: bool = False  # whether each bin may be moved


class Pooling(NamedTuple):
    """How to pool boxes, whatever the arrays: what an operator tells the kernels of either device."""

    rules: Rules
    scale: float
    ratio: tuple = (0, 0)  # samples of a bin on each axis
    groups: int = 1  # of bins on each axis
    deviation: float = 0.0  # factor of displacements


def is_maximum(rules: Rules) -> bool:
    """Whether a bin gives its maximum."""
    return rules.reduction in (MAX_INVALID_IS_ZERO, MAX_OF_VALID)
