"""The gradient of the weight of a 3x3 convolution with steps of 1, with a quarter of the products.

It is the gradient of ``conv/winograd.py`` by its filters. Tiles of 6x6 pixels of the data, and the 4x4
pixels of the output's gradient that belong to them, are transformed to 36 numbers each. For each of the 36, a
matrix product over the tiles follows. The 36 sums of a filter and a channel are transformed to 9 taps.

The number of threads has no part in how the sums are divided.
"""

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import within
from ..product.caches import SECOND_CACHE
from ..product.emitter import COLUMNS, ROWS
from ..product.panels import SEGMENT, copy_run, panel_range, segments
from ..product.tiles import Rows, add_product_tile, product_tile
from ..scratch import Scratch
from ..vector import BLOCK, MACHINE_LANES, flat_of, transpose_block
from .transforms import IN, OUT, PARTS, TAPS, transform_heads, transform_pixels, transform_sums
from .winograd_tiles import APART

#: Most tiles that are summed at once: a panel of them stays in the second-level cache.
AT_ONCE = max(1, SECOND_CACHE // 2 // (4 * PARTS * COLUMNS))
#: Most terms that are added one after the other. Longer sums are those of such sums, which loses less.
TERMS = 16
#: Most bytes of sums held at once.
SUMS = 16 << 20
#: Tiles of a row that are taken together, and the pixels that hold them: whole blocks of ``BLOCK``.
RUN, LINE_PIXELS = 7, 2 * BLOCK


def count_tiles(shape) -> int:
    """How many tiles results of this shape are cut into."""
    return shape[0] * -(-shape[-2] // OUT) * -(-shape[-1] // OUT)


def three_by_three(grad_out, data, pad, grad_weight):
    """Write the gradient of the weight ``(F, C, 3, 3)``; all are float32 and C-contiguous."""
    filters, channels = grad_weight.shape[:2]
    tiles = count_tiles(grad_out.shape)
    rounds = -(-tiles // AT_ONCE)
    at_once = -(-tiles // rounds)
    panels, row_tiles = -(-channels // COLUMNS), -(-filters // ROWS)
    work = tiles * PARTS * filters * channels / MACHINE_LANES
    together, workers = panels, num_threads(work)
    if rounds > 1:
        together = max(1, min(panels, SUMS // (4 * PARTS * row_tiles * ROWS * COLUMNS)))
    step = at_once + APART
    memory = Scratch(
        (-(-filters // BLOCK), PARTS * step * BLOCK),
        (together, PARTS * step * COLUMNS),
        (together * row_tiles if rounds > 1 else workers, PARTS * ROWS * COLUMNS),
        (workers, (IN + 1) * LINE_PIXELS * BLOCK),
    )
    heads, planes, sums, pixels = memory()
    found = np.zeros((workers, at_once), SEGMENT)
    for begin in range(0, panels, together):
        some = begin, min(begin + together, panels)
        for first in range(0, tiles, at_once):
            stop = min(first + at_once, tiles)
            _transform.by(workers)(grad_out, data, pad, some, (first, stop), pixels, found, heads, planes)
            steps = first == 0, stop == tiles
            _sum_up.by(workers)(heads, planes, some, stop - first, steps, sums, pixels, grad_weight)


@inner(makes_arrays=False)
def _load_pixels(images, n, first, count, y, x, rows, columns, pixels):
    """``rows`` rows of ``columns`` pixels from (y, x) on, 0 outside the image, of channels from ``first`` on.

    The ``count`` channels of a pixel lie side by side, pixels ``BLOCK`` apart, rows ``LINE_PIXELS`` pixels.
    What follows is spoiled.
    """
    _, channels, height, width = images.shape
    flat, plane = flat_of(images), height * width
    left, right = min(max(0, -x), columns), max(0, min(columns, width - x))
    for row in range(rows):
        to = row * LINE_PIXELS * BLOCK
        if y + row < 0 or y + row >= height or left >= right:
            pixels[to : to + columns * BLOCK] = 0
            continue
        start = ((n * channels + first) * height + y + row) * width + x
        for k in range(left, right, BLOCK):
            if start + (count - 1) * plane + k + BLOCK <= flat.shape[0]:
                transpose_block(flat, start + k, plane, count, pixels, to + k * BLOCK, BLOCK)
                continue
            for i in range(min(BLOCK, right - k)):
                for c in range(count):
                    pixels[to + (k + i) * BLOCK + c] = flat[start + c * plane + k + i]
        pixels[to : to + left * BLOCK] = 0
        pixels[to + right * BLOCK : to + columns * BLOCK] = 0


@inner(makes_arrays=False)
def _transform_run(pixels, run, count, of_data, out, at, step, part):
    """Transform ``run`` neighbouring tiles of ``count`` channels to ``out``, ``step`` from tile to tile."""
    for t in range(run):
        for lane in range(0, count, MACHINE_LANES):
            start, to = t * OUT * BLOCK + lane, at + t * step + lane
            if of_data:
                transform_pixels(pixels, start, LINE_PIXELS * BLOCK, BLOCK, out, to, part)
            else:
                transform_heads(pixels, start, LINE_PIXELS * BLOCK, BLOCK, out, to, part)


@inner(makes_arrays=False)
def _transform_segment(images, place, pad, rows, run, channels, square, out, at, step):
    """``run`` neighbouring tiles of ``rows`` rows, of some channels, to ``out``; a tile is a ``step``.

    ``place``: the image, and where the first tile begins without ``pad``; ``channels``: first and end.
    """
    n, y, x = place
    columns, part, of_data = run * OUT + rows - OUT, out.shape[0] // PARTS, rows == IN
    for c in range(channels[0], channels[1], BLOCK):
        count = min(BLOCK, channels[1] - c)
        _load_pixels(images, n, c, count, y - pad[0], x - pad[1], rows, columns, square)
        _transform_run(square, run, count, of_data, out, at + c - channels[0], step, part)


@parallel(makes_arrays=False)
def _transform(share, grad_out, data, pad, panels, tiles, pixels, found, heads, planes):
    """Transform the tiles ``[first, stop)``: all filters to ``heads``, the panels' channels to ``planes``."""
    filters, height, width = grad_out.shape[1:]
    channels = data.shape[1]
    all_panels = (channels + COLUMNS - 1) // COLUMNS
    tall, wide = (height + OUT - 1) // OUT, (width + OUT - 1) // OUT
    first, stop = tiles
    workers = pixels.shape[0]
    for w in within(share, workers):
        begin = first + w * (stop - first) // workers
        end = first + (w + 1) * (stop - first) // workers
        square = pixels[w]
        for s in range(segments(begin, end, tall, wide, found[w])):
            segment = found[w, s]
            for start in range(0, segment.run, RUN):
                run, tile = min(RUN, segment.run - start), begin - first + segment.column + start
                place = segment.image, segment.y * OUT, (segment.x + start) * OUT
                for f in range(0, filters, BLOCK):
                    some, head = (f, min(f + BLOCK, filters)), heads[f // BLOCK]
                    _transform_segment(
                        grad_out, place, (0, 0), OUT, run, some, square, head, tile * BLOCK, BLOCK
                    )
                for p in range(panels[0], panels[1]):
                    from_channel, to_channel, _ = panel_range(p, all_panels, channels)
                    some, plane = (from_channel, to_channel), planes[p - panels[0]]
                    _transform_segment(
                        data, place, pad, IN, run, some, square, plane, tile * COLUMNS, COLUMNS
                    )


@parallel(makes_arrays=False)
def _sum_up(share, heads, planes, panels, tiles, steps, sums, pixels, grad_weight):
    """Multiply the parts of filters and channels over so many tiles, and add them to the sums of before.

    ``steps``: whether these are the first tiles, and the last, after which the sums become taps. Where they
    are both, a worker needs memory for the sums of one product only.
    """
    filters, channels = grad_weight.shape[:2]
    row_tiles, all_panels = (filters + ROWS - 1) // ROWS, (channels + COLUMNS - 1) // COLUMNS
    head_part, part = heads.shape[1] // PARTS, planes.shape[1] // PARTS
    begins, ends = steps
    mine = pixels[share[0]]
    for item in within(share, (panels[1] - panels[0]) * row_tiles):
        i = np.int64(item)
        p, r = divmod(i, row_tiles)
        first, stop, vectors = panel_range(panels[0] + p, all_panels, channels)
        total = sums[share[0] if begins and ends else i]
        block, row = divmod(r * ROWS, BLOCK)
        for k in range(PARTS):
            at = k * ROWS * COLUMNS
            to = Rows(total, at, COLUMNS) if begins else Rows(mine, 0, COLUMNS)
            for start in range(0, tiles, TERMS):
                terms, from_tile = min(TERMS, tiles - start), k * part + start * COLUMNS
                left = Rows(heads[block], k * head_part + start * BLOCK + row, 1)
                if start == 0:
                    product_tile(vectors, left, BLOCK, planes[p], from_tile, terms, to)
                else:
                    add_product_tile(vectors, left, BLOCK, planes[p], from_tile, terms, to)
            if not begins:
                for n in range(ROWS * COLUMNS):
                    total[at + n] += mine[n]
        if ends:
            for f in range(r * ROWS, min((r + 1) * ROWS, filters)):
                _put_taps(total, (f - r * ROWS) * COLUMNS, first, stop, mine, grad_weight[f])


@inner(makes_arrays=False)
def _put_taps(sums, at, first, stop, taps, grad_weight):
    """Transform the sums of one filter and the channels ``[first, stop)``."""
    part, target = ROWS * COLUMNS, flat_of(grad_weight)
    for c in range(first, stop, MACHINE_LANES):
        transform_sums(sums, at + c - first, IN * part, part, taps, 0, BLOCK)
        # A channel's taps side by side; what comes after them is overwritten by the next.
        transpose_block(taps, 0, BLOCK, TAPS * TAPS, taps, BLOCK * BLOCK, TAPS * TAPS)
        to, count = c * TAPS * TAPS, min(MACHINE_LANES, stop - c) * TAPS * TAPS
        copy_run(taps, BLOCK * BLOCK, target, to, count)
