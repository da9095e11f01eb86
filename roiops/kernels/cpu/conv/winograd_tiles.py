"""Between images and what Winograd's way multiplies: panels of transformed tiles, filters, and results.

A panel holds the transformed tiles of some vectors of neighbouring tiles: for each of the 36 parts and each
channel a row of ``COLUMNS`` numbers. How tiles are dealt out to panels is a *grid*: the panels, the tiles of
a column and of a row of an image, and all tiles. What is said of a panel's tiles are its segments, where its
pairs' pixels lie, the number of segments, and that of vectors.
"""

import numpy as np

from ...jit import inner
from ..product.emitter import COLUMNS, ROWS, UNCHANGED, activation_of
from ..product.panels import add_run, copy_run, panel_range, segments
from ..product.tiles import Epilogue, Rows, clear_vector, copy_vector
from ..vector import BLOCK, MACHINE_LANES, flat_of, prefetch_to_read, prefetch_to_write, transpose_block
from .transforms import (
    IN,
    OUT,
    PARTS,
    TAPS,
    transform_results,
    transform_taps,
    transform_tiles,
)

#: Rows that a panel's parts are set apart, so that they do not compete for the same places in a cache.
APART = 1
#: Floats from line to line of the pixels of a panel's tiles: runs of them lie side by side, with room for a
#: vector beyond the last one.
_LINE = (COLUMNS + COLUMNS // 2) * OUT + 2 * MACHINE_LANES
#: Where the parts of a worker's scratch end: lines of results, the inside of a transform, lines of pixels.
_APART = OUT * OUT * MACHINE_LANES
_ASIDE = _APART + PARTS * MACHINE_LANES
SCRATCH = _ASIDE + IN * _LINE
#: What is said of each pair of a panel's tiles: where in a line its pixels begin, and where in an image its
#: results do; how many pairs of each vector lie inside; and nothing, for results that are made aside.
_PIXELS, _RESULTS, _INSIDE, _ALONE = range(4)
#: Numbers of a filter's channel before the transform.
_NUMBERS = TAPS * TAPS


def tiles_of_image(out_size) -> tuple[int, int]:
    """The tiles of a column and of a row of an image: whole pairs, of which the last tile may be outside."""
    height, width = out_size
    return -(-height // OUT), -(-width // (2 * OUT)) * 2


def memory_for_pairs(workers: int) -> np.ndarray:
    """What :func:`find_tiles` writes, for each worker."""
    return np.zeros((workers, 4, COLUMNS // 2), np.int64)


@inner(makes_arrays=False)
def find_tiles(p, grid, out, found, pairs):
    """Write the segments of a panel's tiles to ``found``, and what is said of each pair; how many segments
    there are, and the vectors that the tiles fill.
    """
    panels, tall, wide, tiles = grid
    filters, height, width = out.shape[1:]
    first, stop, vectors = panel_range(p, panels, tiles)
    count = segments(first, stop, tall, wide, found)
    pairs[_INSIDE, :] = 0
    for s in range(count):
        some = found[s]
        y = some.y * OUT
        for column in range(some.column, some.column + some.run, 2):
            x = (some.x + column - some.column) * OUT
            pairs[_PIXELS, column // 2] = (column + s) * OUT
            pairs[_RESULTS, column // 2] = (some.image * filters * height + y) * width + x
            if x + 2 * OUT <= width and y + OUT <= height:
                pairs[_INSIDE, column // MACHINE_LANES] += 1
    return count, vectors


@inner(makes_arrays=False, forceinline=True)
def _load_line(flat, at, first, last, count, lines, to):
    """A line of ``count`` pixels: those from ``first`` to ``last`` are there, the others are 0.

    What follows in ``lines``, less than two vectors, is spoiled.
    """
    if first < last and at + last + MACHINE_LANES <= flat.shape[0]:
        for i in range(first, last, MACHINE_LANES):
            copy_vector(flat, at + i, lines, to + i)
    else:
        for i in range(first, last):
            lines[to + i] = flat[at + i]
    for i in range(last, count, MACHINE_LANES):
        clear_vector(lines, to + i)
    for i in range(first):
        lines[to + i] = 0


@inner(makes_arrays=False)
def _load_pixels(data, channel, pad, tiles, ahead, lines):
    """The 6 lines of pixels of each of a panel's segments; ``ahead``: the channel that comes next."""
    found, _, number, _ = tiles
    channels, height, width = data.shape[1:]
    flat, further = flat_of(data), (ahead - channel) * height * width
    for s in range(number):
        some = found[s]
        y, x, count = some.y * OUT - pad[0], some.x * OUT - pad[1], some.run * OUT + IN - OUT
        at, to = ((some.image * channels + channel) * height + y) * width + x, (some.column + s) * OUT
        first, last = min(max(0, -x), count), max(0, min(width - x, count))
        whole = last - first == width
        if whole:  # rows that follow one another
            prefetch_to_read(flat, at + further + width, OUT * width)
        for i in range(IN):
            inside = 0 <= y + i < height
            _load_line(flat, at, first * inside, last * inside, count, lines, to + i * _LINE)
            if not whole and inside:
                prefetch_to_read(flat, at + further + first, last - first)
            at += width


@inner(makes_arrays=False)
def transform_panel(data, begin, channels, mine, pad, tiles, scratch, panel):
    """Transform some of ``channels`` channels from ``begin`` on for a panel's tiles: ``mine``, the first and
    the end of them. ``scratch`` is a worker's memory.
    """
    _, pairs, _, vectors = tiles
    aside, lines, part = scratch[_APART:_ASIDE], scratch[_ASIDE:], (channels + APART) * COLUMNS
    for c in range(mine[0], mine[1]):
        for k in range(PARTS):
            prefetch_to_write(panel, k * part + c * COLUMNS, COLUMNS)
        _load_pixels(data, begin + c, pad, tiles, begin + min(c + 1, channels - 1), lines)
        for v in range(vectors):
            column = v * MACHINE_LANES
            to = c * COLUMNS + column
            transform_tiles(lines, _LINE, pairs[_PIXELS], column // 2, aside, panel, to, part)


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
    found, _, count, _ = tiles
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
    found, pairs, count, vectors = tiles
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
        whole = pairs[_INSIDE, v] == MACHINE_LANES // 2
        apart = np.int64(begin + MACHINE_LANES > found[s].column + found[s].run)
        # Where a pair hangs over the edge: the pixels are made aside, without what is added.
        into, place, step, added = lines, np.int64(0), np.int64(OUT * MACHINE_LANES), np.int64(0)
        places, first_pair = pairs[_ALONE], np.int64(0)
        if whole:
            into, place, step, added = flat, f * plane, width, add_other
            places, first_pair = pairs[_RESULTS], begin // 2
        then = act if whole or not add_other else UNCHANGED
        of_filter = Epilogue(scale[f], shift[f], then, flat_other if whole else lines, added)
        transform_results(of_tiles, into, place, step, places, first_pair, apart * whole, of_filter)
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
        _store_filter(of_filter, tiles, scratch[:_APART], epilogue, f, out)
