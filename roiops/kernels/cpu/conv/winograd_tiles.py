"""Between images and what Winograd's way multiplies: panels of transformed tiles, filters, and results.

A panel holds the transformed tiles of some vectors of neighbouring tiles: for each of the 36 parts and each
channel a row of ``COLUMNS`` numbers. Its tiles (:class:`PanelTiles`) are runs of neighbours in a row of an
image, whole *pairs* each. Pixels are copied to lines in a worker's memory, one run after the other, with
zeros where a tile hangs over the edge, and loaded from there pair by pair. Results go straight to the image,
pair by pair or a whole vector of tiles at once; those of a vector with a pair that hangs over the edge are
made aside, in lines too, and copied run by run.
"""

from typing import NamedTuple

import numpy as np

from ...jit import inner
from ..product.emitter import COLUMNS, ROWS, UNCHANGED, activation_of
from ..product.panels import MOST_SEGMENTS, SEGMENT, add_run, copy_run, panel_range, segments
from ..product.tiles import Epilogue, Rows, clear_vector, copy_vector
from ..vector import BLOCK, MACHINE_LANES, flat_of, prefetch_to_read, prefetch_to_write, transpose_block
from .transforms import (
    IN,
    OUT,
    PAIRS,
    PARTS,
    TAPS,
    Lines,
    transform_results,
    transform_taps,
    transform_tiles,
)

#: Rows that a panel's parts are set apart, so that they do not compete for the same places in a cache.
APART = 1
#: Floats from line to line of the pixels of a panel's tiles. A run has ``OUT`` pixels for each tile and two
#: more, for which one tile's room is left after it; a run has a pair of tiles at least. Copies may spoil what
#: less than two vectors take beyond the last one.
_LINE = (COLUMNS + COLUMNS // 2) * OUT + 2 * MACHINE_LANES
#: Where the parts of a worker's scratch end: lines of results, the inside of a transform, lines of pixels.
_APART = OUT * OUT * MACHINE_LANES
_ASIDE = _APART + PARTS * MACHINE_LANES
SCRATCH = _ASIDE + IN * _LINE
#: How the results of a vector of tiles are stored: aside first, pair by pair, or as one run.
_STORED_ASIDE, _IN_PAIRS, _IN_ONE = range(3)
#: Numbers of a filter's channel before the transform.
_NUMBERS = TAPS * TAPS


def tiles_of_image(out_size) -> tuple[int, int]:
    """The tiles of a column and of a row of an image: whole pairs, of which the last tile may be outside."""
    height, width = out_size
    return -(-height // OUT), -(-width // (2 * OUT)) * 2


class Grid(NamedTuple):
    """How tiles are dealt out to panels."""

    groups: int
    #: Of each group.
    panels: int
    #: Tiles of a column and of a row of an image, and of all images.
    tall: int
    wide: int
    tiles: int
    #: Zeros above the images and on their left.
    pad: tuple[int, int]


class PanelTiles(NamedTuple):
    """Where the pixels and the results of a panel's tiles lie.

    Functions that take it for each channel or filter are inlined: numba hands over a tuple number by number,
    of which this one has some fifty.
    """

    #: The runs, of :data:`~..product.panels.SEGMENT`, and how many there are.
    runs: np.ndarray
    count: int
    #: Vectors that the tiles fill.
    vectors: int
    #: For each pair: where in a line its pixels begin, and where in the results of filter 0 its results do.
    pixels: np.ndarray
    results: np.ndarray
    #: For each vector: how its results are stored, and the run of its first tile.
    stored: np.ndarray
    first_run: np.ndarray
    #: Zeros: where in lines of their own results begin that are made aside.
    aside: np.ndarray


def memory_for_tiles(workers: int) -> tuple[np.ndarray, np.ndarray]:
    """What :func:`find_tiles` writes, for each worker."""
    return np.zeros((workers, MOST_SEGMENTS), SEGMENT), np.zeros((workers, 5, COLUMNS // 2), np.int64)


@inner(makes_arrays=False, forceinline=True)
def find_tiles(p, grid, out, runs, places) -> PanelTiles:
    """The tiles of a panel. ``runs`` and ``places`` are a worker's memory."""
    filters, height, width = out.shape[1:]
    first, stop, vectors = panel_range(p, grid.panels, grid.tiles)
    count = segments(first, stop, grid.tall, grid.wide, runs)
    tiles = PanelTiles(runs, count, vectors, places[0], places[1], places[2], places[3], places[4])
    tiles.stored[:] = _IN_ONE
    if (stop - first) % MACHINE_LANES > 0:  # the last vector is not full
        tiles.stored[vectors - 1] = _STORED_ASIDE
    for r in range(tiles.count):
        run = runs[r]
        y, end = run.y * OUT, run.column + run.run
        for column in range(run.column, end, 2):
            pair, vector, x = column // 2, column // MACHINE_LANES, (run.x + column - run.column) * OUT
            tiles.pixels[pair] = (column + r) * OUT
            tiles.results[pair] = (run.image * filters * height + y) * width + x
            if column % MACHINE_LANES == 0:
                tiles.first_run[vector] = r
            inside = x + 2 * OUT <= width and y + OUT <= height
            in_one = end >= (vector + 1) * MACHINE_LANES
            how = (_IN_ONE if in_one else _IN_PAIRS) if inside else _STORED_ASIDE
            tiles.stored[vector] = min(tiles.stored[vector], how)
    return tiles


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


@inner(makes_arrays=False, forceinline=True)
def _load_pixels(data, channel, pad, tiles, ahead, lines):
    """The 6 lines of pixels of each run of a panel's tiles; ``ahead``: the channel that comes next."""
    channels, height, width = data.shape[1:]
    flat, further = flat_of(data), (ahead - channel) * height * width
    for r in range(tiles.count):
        run = tiles.runs[r]
        y, x, count = run.y * OUT - pad[0], run.x * OUT - pad[1], run.run * OUT + IN - OUT
        at = ((run.image * channels + channel) * height + y) * width + x
        to = (run.column + r) * OUT
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


@inner(makes_arrays=False, forceinline=True)
def transform_panel(data, begin, channels, mine, pad, tiles, scratch, panel):
    """Transform some of ``channels`` channels from ``begin`` on for a panel's tiles: ``mine``, the first and
    the end of them. ``scratch`` is a worker's memory.
    """
    aside, lines, part = scratch[_APART:_ASIDE], scratch[_ASIDE:], (channels + APART) * COLUMNS
    for c in range(mine[0], mine[1]):
        for k in range(PARTS):
            prefetch_to_write(panel, k * part + c * COLUMNS, COLUMNS)
        _load_pixels(data, begin + c, pad, tiles, begin + min(c + 1, channels - 1), lines)
        for v in range(tiles.vectors):
            to = c * COLUMNS + v * MACHINE_LANES
            transform_tiles(lines, _LINE, tiles.pixels, v * PAIRS, aside, panel, to, part)


@inner(makes_arrays=False)
def transform_filters(weight, first, count, of_channels, turned, out, tile):
    """Transform the filters from ``first`` on, ``count`` of them and at most ``BLOCK``, to ``out``.

    Of their channels, those that ``of_channels`` says: the first and the end.

    Number (t, c, i) of each of the 36 parts of ``out`` is of filter ``first + (t - tile) * ROWS + i`` and
    channel c. ``turned`` is a worker's memory.
    """
    flat, numbers = flat_of(weight), weight.shape[1] * _NUMBERS
    skipped, channels = of_channels[0] * _NUMBERS, of_channels[1] - of_channels[0]
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


@inner(makes_arrays=False, forceinline=True)
def _prefetch_results(tiles, f, out):
    """Ask for the pixels that a filter's results will be stored to."""
    height, width = out.shape[2:]
    flat = flat_of(out)
    for r in range(tiles.count):
        run = tiles.runs[r]
        plane = (run.image * out.shape[1] + f) * height * width
        first, rows = run.y * OUT, min(OUT, height - run.y * OUT)
        if run.run * OUT >= width:
            prefetch_to_write(flat, plane + first * width, rows * width)
        else:
            for y in range(first, first + rows):
                prefetch_to_write(flat, plane + y * width + run.x * OUT, run.run * OUT)


@inner(makes_arrays=False)
def _put_aside(lines, v, tiles, epilogue, act, f, out):
    """Copy the results of vector ``v`` that were made aside to their places; then what is added comes in."""
    filters, height, width = out.shape[1:]
    flat, flat_other, begin, r = flat_of(out), flat_of(epilogue.other), v * MACHINE_LANES, tiles.first_run[v]
    while r < tiles.count and tiles.runs[r].column < begin + MACHINE_LANES:
        run = tiles.runs[r]
        first, last = max(begin, run.column), min(begin + MACHINE_LANES, run.column + run.run)
        x = (run.x + first - run.column) * OUT
        length = min((last - first) * OUT, width - x)
        to = ((run.image * filters + f) * height + run.y * OUT) * width + x
        for y in range(min(OUT, height - run.y * OUT)):
            source = (y * MACHINE_LANES + first - begin) * OUT
            if epilogue.add_other:
                add_run(lines, source, flat_other, act, flat, to + y * width, length)
            else:
                copy_run(lines, source, flat, to + y * width, length)
        r += 1


@inner(makes_arrays=False, forceinline=True)
def _store_filter(products, tiles, lines, epilogue, f, out):
    """Transform the products of filter ``f`` with a panel's tiles, 36 :class:`Rows`, to pixels of ``out``.

    ``lines``: memory for the results of a vector of tiles.
    """
    plane, width = f * out.shape[2] * out.shape[3], out.shape[3]
    flat, flat_other, act = flat_of(out), flat_of(epilogue.other), activation_of(epilogue.act, f)
    scale, shift, zero = epilogue.scale[f], epilogue.shift[f], np.int64(0)
    act_aside = UNCHANGED if epilogue.add_other else act
    aside = Lines(lines, zero, np.int64(OUT * MACHINE_LANES), tiles.aside, zero, zero)
    for v in range(tiles.vectors):
        of_tiles = Rows(products.array, products.at + v * MACHINE_LANES, products.step)
        how = tiles.stored[v]
        if how == _STORED_ASIDE:
            to, of_filter = aside, Epilogue(scale, shift, act_aside, flat_other, zero)
        else:
            to = Lines(flat, plane, width, tiles.results, v * PAIRS, np.int64(how == _IN_PAIRS))
            of_filter = Epilogue(scale, shift, act, flat_other, epilogue.add_other)
        transform_results(of_tiles, to, of_filter)
        if how == _STORED_ASIDE:
            _put_aside(lines, v, tiles, epilogue, act, f, out)


@inner(makes_arrays=False, forceinline=True)
def store_results(products, begin, end, tiles, scratch, epilogue, out):
    """Transform the products of the filters from ``begin`` to ``end`` with a panel's tiles to results.

    ``products`` are :class:`Rows` of a part each; those of a filter are ``COLUMNS`` after the filter before.
    """
    for f in range(begin, end):
        _prefetch_results(tiles, min(f + 1, out.shape[1] - 1), out)
        of_filter = Rows(products.array, products.at + (f - begin) * COLUMNS, products.step)
        _store_filter(of_filter, tiles, scratch[:_APART], epilogue, f, out)
