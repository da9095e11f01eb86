"""Between images and what Winograd's way multiplies: panels of transformed tiles, filters, and results.

A panel holds the transformed tiles of some vectors of neighbouring tiles: for each of the 36 parts and each
channel a row of ``COLUMNS`` numbers. How tiles are dealt out to panels is a *grid*: the panels, the tiles of
a column and of a row of an image, and all tiles.
"""

import numpy as np

from ...jit import inner
from ..product.emitter import COLUMNS, ROWS, UNCHANGED, activation_of
from ..product.panels import add_run, copy_run, gather, load_line, panel_range, segments
from ..product.tiles import Epilogue, Rows, copy_vector
from ..vector import BLOCK, MACHINE_LANES, flat_of, prefetch_to_read, prefetch_to_write, transpose_block
from .transforms import (
    IN,
    OUT,
    PARTS,
    TAPS,
    transform_pixels,
    transform_results,
    transform_taps,
    transform_tiles,
)

#: Rows that a panel's parts are set apart, so that they do not compete for the same places in a cache.
APART = 1
#: Rows of so few tiles are gathered pixel by pixel: of vectors across one row, most lanes would be empty.
NARROW = MACHINE_LANES // 2
#: Floats from row to row of the pixels of a panel's tiles, with what vectors read beyond them.
_LINE_STEP = (COLUMNS + 2 * MACHINE_LANES) * OUT
#: The same from part to part of a channel's transformed tiles.
_MADE_STEP = COLUMNS + MACHINE_LANES
#: Where the parts of a worker's scratch end: lines of results, the inside of a transform, a channel's
#: transformed tiles, and pixels.
_LINES = OUT * OUT * MACHINE_LANES
_ASIDE = _LINES + PARTS * MACHINE_LANES
_MADE = _ASIDE + PARTS * _MADE_STEP
SCRATCH = _MADE + max(IN * _LINE_STEP, PARTS * COLUMNS) + MACHINE_LANES
#: Numbers of a filter's channel before the transform.
_NUMBERS = TAPS * TAPS


def find_places(layer, panels: int) -> np.ndarray:
    """For each panel, where its tiles' pixels lie in channel 0 of the first image, negative where outside.

    One row of ``COLUMNS`` for each of the 36 pixels; nothing, where a row of an image has many tiles.
    """
    tall, wide = (-(-n // OUT) for n in layer.out_size)
    if wide > NARROW:
        return np.zeros((panels, 0), np.int64)
    (height, width), tiles = layer.in_size, layer.batch * tall * wide
    firsts = np.arange(panels + 1) * -(-tiles // MACHINE_LANES) // panels * MACHINE_LANES
    tile = firsts[:-1, None, None] + np.arange(COLUMNS)
    image, rest = np.divmod(tile, tall * wide)
    pixel = np.arange(PARTS)[:, None]
    y = rest // wide * OUT + pixel // IN - layer.pad[0]
    x = rest % wide * OUT + pixel % IN - layer.pad[1]
    seen = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    seen &= tile < np.minimum(firsts[1:], tiles)[:, None, None]
    return np.where(seen, (image * layer.channels * height + y) * width + x, -1).reshape(panels, -1)


@inner(makes_arrays=False)
def find_tiles(p, grid, found):
    """Write the segments of a panel's tiles to ``found``: how many they are, and the vectors they fill."""
    panels, tall, wide, tiles = grid
    first, stop, vectors = panel_range(p, panels, tiles)
    return segments(first, stop, tall, wide, found), vectors


@inner(makes_arrays=False)
def _transform_row(data, channel, pad, tiles, ahead, scratch):
    """Transform a channel of a panel's tiles, in ``scratch``; ``ahead``: the channel that comes next.

    What follows each of the 36 rows is spoiled: the last vector of a run of tiles goes on beyond it.
    """
    found, count, _ = tiles
    width, aside, lines = data.shape[3], scratch[_LINES:_ASIDE], scratch[_MADE:]
    for s in range(count):
        some = found[s]
        image = data[some.image, channel]
        flat = flat_of(image)
        y, x, pixels = some.y * OUT - pad[0], some.x * OUT - pad[1], some.run * OUT + IN - OUT
        following = flat_of(data[some.image, ahead])
        for row in range(max(y, 0), min(y + IN, data.shape[2])):
            prefetch_to_read(following, row * width + max(x, 0), pixels)
        end = (y + IN - 1) * width + x + (some.run + 2 * MACHINE_LANES) * OUT
        source, start, step = flat, y * width + x, width
        if not (y >= 0 and x >= 0 and x + pixels <= width and end <= flat.shape[0]):
            source, start, step = lines, 0, _LINE_STEP
            for i in range(IN):
                load_line(image, y + i, x, pixels, lines, i * step)
        for block in range(0, some.run, MACHINE_LANES):
            at = start + block * OUT
            transform_tiles(Rows(source, at, step), aside, scratch, _ASIDE + some.column + block, _MADE_STEP)


@inner(makes_arrays=False)
def transform_panel(data, begin, channels, mine, pad, tiles, scratch, places, panel):
    """Transform some of ``channels`` channels from ``begin`` on for a panel's tiles: ``mine``, the first and
    the end of them.

    ``scratch`` is a worker's memory, ``places`` a panel's of :func:`find_places`.
    """
    _, _, vectors = tiles
    height, width = data.shape[2:]
    pixels, part = scratch[_MADE:], (channels + APART) * COLUMNS
    if places.shape[0] > 0:
        flat = flat_of(data)
        for c in range(mine[0], mine[1]):
            gather(flat, (begin + c) * height * width, places, vectors * MACHINE_LANES, pixels, 0)
            for column in range(0, vectors * MACHINE_LANES, MACHINE_LANES):
                transform_pixels(pixels, column, IN * COLUMNS, COLUMNS, panel, c * COLUMNS + column, part)
        return
    for c in range(mine[0], mine[1]):
        for k in range(PARTS):
            prefetch_to_write(panel, k * part + c * COLUMNS, COLUMNS)
        _transform_row(data, begin + c, pad, tiles, begin + min(c + 1, channels - 1), scratch)
        for k in range(PARTS):
            for i in range(0, COLUMNS, MACHINE_LANES):
                copy_vector(scratch, _ASIDE + k * _MADE_STEP + i, panel, k * part + c * COLUMNS + i)


@inner(makes_arrays=False)
def transform_filters(weight, first, count, part_of, turned, out, tile):
    """Transform the filters from ``first`` on, ``count`` of them and at most ``BLOCK``, to ``out``.

    Of their channels, those that ``part_of`` says: the first and the end.

    Number (t, c, i) of each of the 36 parts of ``out`` is of filter ``first + (t - tile) * ROWS + i`` and
    channel c. ``turned`` is a worker's memory.
    """
    flat, numbers = flat_of(weight), weight.shape[1] * _NUMBERS
    skipped, channels = part_of[0] * _NUMBERS, part_of[1] - part_of[0]
    part = out.shape[0] // PARTS
    for start in range(0, channels, BLOCK):
        stop = min(start + BLOCK, channels)
        begin, end = start * _NUMBERS, stop * _NUMBERS
        for tap in range(begin, end, BLOCK):
            to = (tap - begin) * BLOCK
            for i in range(count):
                prefetch_to_read(flat, (first + i) * numbers + skipped + tap + BLOCK * _NUMBERS, BLOCK)
            if skipped + tap + BLOCK <= numbers:
                transpose_block(flat, first * numbers + skipped + tap, numbers, count, turned, to, BLOCK)
                continue
            for i in range(count):
                for j in range(end - tap):
                    turned[to + j * BLOCK + i] = flat[(first + i) * numbers + skipped + tap + j]
        for t in range((count + ROWS - 1) // ROWS):
            for c in range(start, stop, 2):
                # A last channel that is left over goes with the one before, once more; a part of one goes
                # twice: what is written beyond it the same worker overwrites, or it lies between two parts.
                c = max(0, min(c, channels - 2))
                one = ((c - start) % BLOCK) * _NUMBERS * BLOCK + t * ROWS
                two = (min(c + 1, channels - 1) - start) * _NUMBERS * BLOCK + t * ROWS
                transform_taps(turned, one, two, out, ((tile + t) * channels + c) * ROWS, part)


@inner(makes_arrays=False)
def _prefetch_results(tiles, f, out):
    """Ask for the pixels that a filter's results will be stored to."""
    found, count, _ = tiles
    height, width = out.shape[2:]
    flat = flat_of(out)
    for s in range(count):
        some = found[s]
        plane = (some.image * out.shape[1] + f) * height * width
        first, rows = some.y * OUT, min(OUT, height - some.y * OUT)
        if some.run * OUT >= width:
            prefetch_to_write(flat, plane + first * width, rows * width)
        else:
            for y in range(first, first + rows):
                prefetch_to_write(flat, plane + y * width + some.x * OUT, some.run * OUT)


@inner(makes_arrays=False, forceinline=True)
def _store_filter(products, tiles, lines, epilogue, f, out):
    """Transform the products of filter ``f`` with a panel's tiles, 36 :class:`Rows`, to pixels of ``out``."""
    found, count, vectors = tiles
    scale, shift, act, other, add_other = epilogue
    filters, height, width = out.shape[1:]
    plane, act = height * width, activation_of(act, f)
    flat, flat_other = flat_of(out), flat_of(other)
    s = 0
    for v in range(vectors):
        begin = v * MACHINE_LANES
        of_tiles = Rows(products.array, products.at + begin, products.step)
        while s + 1 < count and found[s + 1].column <= begin:
            s += 1
        some = found[s]
        x, rows = (some.x + begin - some.column) * OUT, min(OUT, height - some.y * OUT)
        inside = begin + MACHINE_LANES <= some.column + some.run and x + MACHINE_LANES * OUT <= width
        whole = inside and rows == OUT
        # Tiles that hang over the edge, or lie apart: their pixels are made aside, without what is added.
        into, place, step, added = lines, np.int64(0), np.int64(OUT * MACHINE_LANES), np.int64(0)
        if whole:
            place = (some.image * filters + f) * plane + some.y * OUT * width + x
            into, step, added = flat, width, add_other
        then = act if whole or not add_other else UNCHANGED
        of_filter = Epilogue(scale[f], shift[f], then, flat_other if whole else lines, added)
        transform_results(of_tiles, Rows(into, place, step), of_filter)
        if whole:
            continue
        k = s
        while k < count and found[k].column < begin + MACHINE_LANES:
            some = found[k]
            first = max(begin, some.column)
            last = min(begin + MACHINE_LANES, some.column + some.run)
            x = (some.x + first - some.column) * OUT
            length = min((last - first) * OUT, width - x)
            to = (some.image * filters + f) * plane + some.y * OUT * width + x
            for y in range(min(OUT, height - some.y * OUT)):
                source = (y * MACHINE_LANES + first - begin) * OUT
                if add_other:
                    add_run(lines, source, flat_other, act, flat, to + y * width, length)
                else:
                    copy_run(lines, source, flat, to + y * width, length)
            k += 1


@inner(makes_arrays=False)
def store_results(products, begin, end, tiles, scratch, epilogue, out):
    """Transform the products of the filters from ``begin`` to ``end`` with a panel's tiles to results.

    ``products`` are :class:`Rows` of a part each; those of a filter are ``COLUMNS`` after the filter before.
    """
    for f in range(begin, end):
        _prefetch_results(tiles, min(f + 1, out.shape[1] - 1), out)
        of_filter = Rows(products.array, products.at + (f - begin) * COLUMNS, products.step)
        _store_filter(of_filter, tiles, scratch[:_LINES], epilogue, f, out)
