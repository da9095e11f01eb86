"""What the ways to compute a convolution of float32 images cost, to choose among them.

In units of one product of vectors. The counts of products, of results and of packed numbers follow from the
shapes and the machine's registers; what a result or a packed number costs was fitted to measured shapes
(``benchmarks/convolution.py`` prints how often the choice is the fastest). No timing of this process takes
part, so that results are the same from run to run.
"""

import math

from ..product.caches import LAST_CACHE, SECOND_CACHE
from ..product.emitter import COLUMNS, ROWS
from ..vector import LINE, MACHINE_LANES
from .dilated import phase_sizes
from .filters import PIXELS, VECTORS
from .shifted import ROW_MOVED, VECTOR_STORED, ends_with_rows, frame_cost, joins_rows
from .taps import seen_by_tap
from .winograd import NARROW, OUT


def _up(count: int, step: int) -> int:
    """How many times ``step`` covers ``count``."""
    return -(-count // step)


def pointwise(batch, channels, filters, groups, size):
    """Kernels of one pixel, pixels side by side in the vectors."""
    height, width = size
    vectors = _up(batch * height * width, MACHINE_LANES)
    terms, in_group = channels // groups, filters // groups
    # The more of the second cache a panel takes, the longer its pixels are on their way.
    fetched = 0.2 * 4 * terms * COLUMNS / SECOND_CACHE
    products = (0.94 + fetched) * vectors * groups * terms * _up(in_group, ROWS) * ROWS
    edges = 30 * batch * filters * (height * width % MACHINE_LANES > 0)
    return products + vectors * (5 * filters + 7 * channels) + edges


def shifted(batch, channels, filters, groups, size, kernel, stride, dilate, pad):
    """Sums of shifted images, pixels side by side in the vectors."""
    reach = [(k - 1) * d for k, d in zip(kernel, dilate, strict=True)]
    rows, length = (
        n + max(0, r - (p if s == 1 else 0)) // s for n, r, p, s in zip(size, reach, pad, stride, strict=True)
    )
    terms, in_group = channels // groups * math.prod(kernel), filters // groups
    # Of joined rows, nothing between them is computed, or moved.
    joined = joins_rows(batch, channels, size, kernel, stride)
    by_row = not joined and ends_with_rows(size[1], length, terms, False)
    if joined:
        vectors = _up(((batch - 1) * rows + size[0]) * size[1], MACHINE_LANES)
    elif by_row:
        vectors = batch * size[0] * _up(size[1], MACHINE_LANES)
    else:
        vectors = _up(batch * rows * length, MACHINE_LANES)
    stored = VECTOR_STORED * vectors * filters if joined or by_row else ROW_MOVED * batch * size[0] * filters
    low = ROWS // 2 if in_group <= ROWS // 2 else ROWS
    products = (1.0 if max(stride) == 1 else 1.1) * vectors * groups * terms * _up(in_group, low) * low
    planes = stride[0] * (kernel[1] if joined else stride[1])
    return products + frame_cost(batch * (size[0] + 1), channels * planes) + stored


def by_filters(batch, channels, filters, groups, size, kernel, stride, pad):
    """Filters side by side in the vectors; infinite for maps that are too large."""
    pixels, in_image = math.prod(size), batch * math.prod(size) * math.prod(stride)
    if 4 * (channels * in_image + batch * filters * pixels) > LAST_CACHE:
        return math.inf  # pixels and results would come from memory one by one
    terms, vectors = channels // groups * math.prod(kernel), _up(filters // groups, MACHINE_LANES)
    tiles = batch * _up(pixels, PIXELS)
    copied = frame_cost(batch * (size[0] * stride[0] + 1), channels) if max(pad) > 0 else 0
    # Planes a whole number of pages apart compete for the same few places of a cache.
    stored = 480 if 4 * pixels % 4096 == 0 else 80
    # With steps, a tile's pixels lie in several lines, which each panel of filters reads again.
    again = 0
    if max(stride) > 1 and math.prod(kernel) > 1 and 4 * channels // groups * in_image > SECOND_CACHE // 2:
        again = 20 * channels * in_image / LINE * _up(vectors, VECTORS)
    return groups * tiles * vectors * (PIXELS * terms + stored) + 0.5 * filters * terms + copied + again


def winograd(batch, channels, filters, groups, size):
    """A quarter of the products, and the transforms."""
    height, width = size
    wide = _up(width, OUT)
    vectors = _up(batch * _up(height, OUT) * wide, MACHINE_LANES)
    terms, in_group = channels // groups, filters // groups
    products = 1.2 * 36 * groups * terms * _up(in_group, ROWS) * ROWS
    transforms = (1300 if wide <= NARROW else 1800) * channels + 850 * filters
    # The weight comes from memory: in a network, other layers have used the caches since.
    weight = (14 + 20 * 9 / LINE) * terms * filters
    return vectors * (products + transforms) + weight + 20_000


def dilated(batch, channels, filters, groups, size, dilate):
    """:func:`winograd` for a batch of smaller images, which are copied."""
    tall, wide = phase_sizes(size, dilate)
    images = batch * math.prod(dilate)
    copied = channels * (tall + 2) * (wide + 2) + filters * tall * wide
    return winograd(images, channels, filters, groups, (tall, wide)) + 2 * images * copied


def normalised(batch, channels, size):
    """Batch norm of the data in a pass of its own; from a cache that is not the nearest, and back to it."""
    return 20 * _up(batch * math.prod(size), MACHINE_LANES) * channels


def by_taps(batch, channels, filters, size, kernel, dilate, pad, in_size):
    """The products of each tap where it sees a pixel, whose pixels are copied, and the weight."""
    areas = [
        (rows.stop - rows.start) * (columns.stop - columns.start)
        for _, (rows, columns), _ in seen_by_tap(kernel, dilate, pad, in_size, size)
    ]
    products = 1.1 * sum(_up(area, MACHINE_LANES) for area in areas) * channels * _up(filters, ROWS) * ROWS
    copied = sum(areas) * (channels + 2 * filters)
    return batch * (products + copied) + 2 * channels * filters * math.prod(kernel)
