"""Winograd's minimal filtering F(4x4, 3x3): a 3x3 convolution of stride 1 with a quarter of the products.

The image is cut into tiles of 6x6 pixels that overlap by 2. Tiles and filters are transformed to 36 numbers
each; those are multiplied, for each of the 36 as a matrix product over the channels; and the 36 products of
a tile are transformed to its 4x4 results.

The transforms interpolate at 0, +-5/8, +-3/2 and infinity. These points are exact in binary and spread the
weights so evenly that results are within about 2e-6 of the largest one (0, +-1, +-2, the usual choice: 6e-6).

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit import Calls, inner, num_threads, parallel, within
from ..product.emitter import COLUMNS, ROWS, Emitter, activation
from ..product.fingerprint import fingerprint
from ..product.machine import HERE, Machine
from ..product.panels import (
    MOST_SEGMENTS,
    SEGMENT,
    add_run,
    copy_run,
    find_places,
    gather,
    load_line,
    panel_of_many,
    panel_range,
    segments,
)
from ..product.tiles import Epilogue, Rows, by_rows, copy_vector, packed_product_tile
from ..scratch import Repeated, Scratch
from ..vector import (
    BLOCK,
    LINE,
    MACHINE_LANES,
    aligned_zeros,
    prefetch_to_read,
    prefetch_to_write,
    transpose_block,
)
from .way import Way, ceil_div

#: Results, and pixels, of a tile in each direction.
OUT, IN = 4, 6
_POINTS = (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)


def _matrices():
    """``(A, G, B)``: the results of filter g on tile d are A ((G g G^T) * (B d B^T)) A^T."""
    points = np.array(_POINTS)
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(p - rest) for p, rest in zip(points, others, strict=True)])
    powers = points[:, None] ** np.arange(OUT)
    results = np.vstack([powers, [0, 0, 0, 1]]).T
    filters = np.vstack([points[:, None] ** np.arange(3) / scale[:, None], [0, 0, 1]])
    tiles = np.zeros((IN, IN))
    for i, rest in enumerate(others):
        tiles[i, : IN - 1] = np.poly(rest)[::-1]
    tiles[IN - 1] = np.poly(points)[::-1]
    return results, filters, tiles


#: The three matrices.
RESULTS, FILTERS, TILES = _matrices()
#: Rows that a panel's 36 parts are set apart, so that they do not compete for the same places in a cache.
APART = 1
_IDENTITY = activation()
#: Numbers of a filter's channel before the transform.
_TAPS = 9
#: Most bytes of transformed tiles that workers share at once, and of panels of these. So many panels are
#: enough for the filters that are transformed for them.
SHARED, TOGETHER = 24 << 20, 6
#: Most blocks of filters that a worker transforms at a time, and of kept filters that it takes through all
#: steps.
MOST_BLOCKS, MOST_KEPT = 4, 16
#: Most bytes of kept filters, but where one panel is all: to make them for it would take long.
MOST_KEPT_BYTES = 1 << 27
#: Rows of so few tiles are gathered pixel by pixel: of vectors across one row, most lanes would be empty.
NARROW = MACHINE_LANES // 2


def most_channels(machine: Machine) -> int:
    """Most channels of filters that are made anew: a block of them is read back from the second-level cache.

    More channels are summed up part by part.
    """
    return machine.second_cache // (4 * IN * IN * BLOCK)


@intrinsic
def _transform_tiles(typing, lines, lines_at, lines_step, buffer, out, out_at, out_step):
    """Transform a vector of neighbouring tiles: 6 lines of pixels from ``lines_at`` on become 36 vectors."""
    integer = types.int64
    signature = types.void(lines, integer, integer, buffer, out, integer, integer)

    def generate(context, builder, signature, args, loc=None):
        emit = Emitter(context, builder, loc)
        line = emit.pointer(signature.args[0], args[0], args[1], "pixels")
        buffer = emit.pointer(signature.args[3], args[3], emit.number(0), "buffer")
        target = emit.pointer(signature.args[4], args[4], args[5], "out")
        for y in range(IN):
            row = emit.move(line, emit.times(args[2], y))
            pixels = emit.deinterleave(row, OUT)
            pixels += emit.deinterleave(emit.move(row, OUT), OUT)[: IN - OUT]
            for x, value in enumerate(emit.transform(TILES.tolist(), pixels)):
                emit.store(value, buffer, (x * IN + y) * MACHINE_LANES)
        for x in range(IN):
            column = [emit.load(buffer, (x * IN + y) * MACHINE_LANES) for y in range(IN)]
            for y, value in enumerate(emit.transform(TILES.tolist(), column)):
                emit.store(value, target, emit.times(args[6], y * IN + x))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _transform_pixels(typing, pixels, pixels_at, out, out_at, out_step):
    """Transform ``MACHINE_LANES`` tiles: 36 rows of pixels, ``COLUMNS`` apart, become 36 vectors."""
    signature = types.void(pixels, types.int64, out, types.int64, types.int64)

    def generate(context, builder, signature, args, loc=None):
        emit = Emitter(context, builder, loc)
        source = emit.pointer(signature.args[0], args[0], args[1], "pixels")
        target = emit.pointer(signature.args[2], args[2], args[3], "out")
        for x in range(IN):  # in place of the pixels, which nobody needs again
            column = [emit.load(source, (y * IN + x) * COLUMNS) for y in range(IN)]
            for y, value in enumerate(emit.transform(TILES.tolist(), column)):
                emit.store(value, source, (y * IN + x) * COLUMNS)
        for y in range(IN):
            row = [emit.load(source, (y * IN + x) * COLUMNS) for x in range(IN)]
            for x, value in enumerate(emit.transform(TILES.tolist(), row)):
                emit.store(value, target, emit.times(args[4], y * IN + x))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _transform_results(typing, products, out, epilogue):
    """Transform the 36 products of ``MACHINE_LANES`` tiles to 4 lines of pixels.

    ``products`` and ``out`` are :class:`Rows`; ``epilogue`` is a :class:`Epilogue` of one filter, whose
    ``scale`` and ``shift`` are numbers.
    """
    signature = types.void(products, out, epilogue)

    def generate(context, builder, signature, args, loc=None):
        emit, kinds = Emitter(context, builder, loc), signature.args
        source, step = emit.rows(kinds[0], args[0], "products")
        target, out_step = emit.rows(kinds[1], args[1], "out")
        scale, shift, act, other, add_other = emit.members(args[2])
        other = emit.pointer(kinds[2][3], other, emit.members(args[1])[1], "other")
        scale, shift, act = emit.splat(scale), emit.splat(shift), emit.activation(act)
        columns = []
        for x in range(IN):
            column = [emit.load(source, emit.times(step, y * IN + x)) for y in range(IN)]
            columns.append(emit.transform(RESULTS.tolist(), column))
        lines = [emit.times(out_step, y) for y in range(OUT)]
        values = []
        for y in range(OUT):
            row = emit.transform(RESULTS.tolist(), [column[y] for column in columns])
            values += emit.interleave([emit.fma(scale, value, shift) for value in row])

        def with_other():
            pairs = zip(by_rows(values, OUT), lines, strict=True)
            return [value for row, line in pairs for value in emit.plus(row, emit.move(other, line))]

        values = emit.activate(emit.choose(add_other, with_other, values), act)
        for row, line in zip(by_rows(values, OUT), lines, strict=True):
            for k, value in enumerate(row):
                emit.store(value, emit.move(target, line), k * MACHINE_LANES)
        return context.get_dummy_value()

    return signature, generate


@inner
def _transform_run(source, start, step, run, buffer, made, column):
    """Transform ``run`` neighbouring tiles of one channel to 36 rows of ``made``, from ``column`` on.

    Their pixels lie in the flat ``source`` from ``start`` on, rows ``step`` apart. What follows in a row of
    ``made`` is spoiled.
    """
    for block in range(0, run, MACHINE_LANES):
        _transform_tiles(
            source, start + block * OUT, step, buffer, made, column + block, COLUMNS + MACHINE_LANES
        )


@inner
def _put_row(made, panel, part, row):
    """Move the 36 rows of ``made`` to ``row`` of each of the panel's parts."""
    for k in range(IN * IN):
        for i in range(0, COLUMNS, MACHINE_LANES):
            copy_vector(made, k * (COLUMNS + MACHINE_LANES) + i, panel, k * part + row + i)


@inner
def _pad_lines(image, y, x, rows, count, lines_read, step):
    """``rows`` rows of ``count`` pixels from (y, x) on, with zeros around the image, ``step`` apart."""
    for i in range(rows):
        load_line(image, y + i, x, count, lines_read, i * step)


@inner
def _transform_row(data, channel, pad, found, count, ahead, scratch, panel, c, part):
    """Transform a channel of a panel's tiles to row ``c`` of each of the panel's parts.

    ``ahead``: the channel that comes next. ``scratch`` is a worker's.
    """
    _, buffer, made, lines_read = _divide(scratch)
    width = data.shape[3]
    for k in range(IN * IN):
        prefetch_to_write(panel, k * part + c * COLUMNS, COLUMNS)
    for s in range(count):
        tiles = found[s]
        image = data[tiles.image, channel]
        flat = image.reshape(-1)
        y, x, pixels = tiles.y * OUT - pad[0], tiles.x * OUT - pad[1], tiles.run * OUT + IN - OUT
        _prefetch_rows(data[tiles.image, ahead], y, x, pixels)
        end = (y + IN - 1) * width + x + (tiles.run + 2 * MACHINE_LANES) * OUT
        if y >= 0 and x >= 0 and x + pixels <= width and end <= flat.shape[0]:
            source, start, step = flat, y * width + x, width
        else:
            source, start, step = lines_read, 0, _LINE_STEP
            _pad_lines(image, y, x, IN, pixels, source, step)
        _transform_run(source, start, step, tiles.run, buffer, made, tiles.column)
    _put_row(made, panel, part, c * COLUMNS)


@inner
def _gather_row(flat, start, c, places, vectors, pixels, panel, part):
    """:func:`_transform_row` for tiles whose pixels lie at ``places``, ``start`` further."""
    gather(flat, start, places, vectors * MACHINE_LANES, pixels, 0)
    for v in range(vectors):
        _transform_pixels(pixels, v * MACHINE_LANES, panel, c * COLUMNS + v * MACHINE_LANES, part)


@inner(forceinline=True)
def _store_results(products, found, count, vectors, lines, epilogue, f, out):
    """Transform the products of filter ``f`` with a panel's tiles, 36 :class:`Rows`, to pixels of ``out``."""
    scale, shift, act, other, add_other = epilogue
    filters, height, width = out.shape[1:]
    plane = height * width
    flat, flat_other = out.reshape(-1), other.reshape(-1)
    s = 0
    for v in range(vectors):
        begin = v * MACHINE_LANES
        of_tiles = Rows(products.array, products.at + begin, products.step)
        while s + 1 < count and found[s + 1].column <= begin:
            s += 1
        tiles = found[s]
        x, rows = (tiles.x + begin - tiles.column) * OUT, min(OUT, height - tiles.y * OUT)
        inside = begin + MACHINE_LANES <= tiles.column + tiles.run and x + MACHINE_LANES * OUT <= width
        if inside and rows == OUT:
            to = (tiles.image * filters + f) * plane + tiles.y * OUT * width + x
            into = Epilogue(scale[f], shift[f], act, flat_other, add_other)
            _transform_results(of_tiles, Rows(flat, to, width), into)
            continue
        # These tiles hang over the edge, or lie apart: their pixels are made aside.
        into = Epilogue(scale[f], shift[f], _IDENTITY if add_other else act, lines, np.int64(0))
        _transform_results(of_tiles, Rows(lines, np.int64(0), np.int64(OUT * MACHINE_LANES)), into)
        k = s
        while k < count and found[k].column < begin + MACHINE_LANES:
            tiles = found[k]
            first = max(begin, tiles.column)
            last = min(begin + MACHINE_LANES, tiles.column + tiles.run)
            x = (tiles.x + first - tiles.column) * OUT
            length = min((last - first) * OUT, width - x)
            to = (tiles.image * filters + f) * plane + tiles.y * OUT * width + x
            for y in range(min(OUT, height - tiles.y * OUT)):
                source = (y * MACHINE_LANES + first - begin) * OUT
                if add_other:
                    add_run(lines, source, flat_other, act, flat, to + y * width, length)
                else:
                    copy_run(lines, source, flat, to + y * width, length)
            k += 1


#: Floats from row to row of a lines_read: the tiles of a panel, and what vectors read beyond them.
_LINE_STEP = (COLUMNS + 2 * MACHINE_LANES) * OUT


@inner
def _divide(scratch):
    """A worker's scratch: lines of results, the inside of a transform, its outcome, pixels."""
    a = OUT * OUT * MACHINE_LANES
    b = a + IN * IN * MACHINE_LANES
    c = b + IN * IN * (COLUMNS + MACHINE_LANES)
    return scratch[:a], scratch[a:b], scratch[b:c], scratch[c:]


@inner
def _prefetch_rows(image, y, x, count):
    """Ask for the pixels of a row of tiles."""
    flat = image.reshape(-1)
    for row in range(max(y, 0), min(y + IN, image.shape[0])):
        prefetch_to_read(flat, row * image.shape[1] + max(x, 0), count)


@inner
def _prefetch_results(found, count, f, out):
    """Ask for the pixels that a filter's results will be stored to."""
    height, width = out.shape[2:]
    flat = out.reshape(-1)
    for s in range(count):
        tiles = found[s]
        plane = (tiles.image * out.shape[1] + f) * height * width
        first, rows = tiles.y * OUT, min(OUT, height - tiles.y * OUT)
        if tiles.run * OUT >= width:
            prefetch_to_write(flat, plane + first * width, rows * width)
        else:
            for y in range(first, first + rows):
                prefetch_to_write(flat, plane + y * width + tiles.x * OUT, tiles.run * OUT)


@inner(forceinline=True)
def _multiply(filters, k, r, step, channels, panel, vectors, results):
    """``ROWS`` filters times the tiles of a panel, for one of the 36 numbers.

    ``step``: how many row tiles further the filters lie that come next.
    """
    begin, first = k * (filters.shape[0] // (IN * IN)) + r * ROWS * channels, k * (channels + APART) * COLUMNS
    left = Rows(filters, begin, step * ROWS * channels)
    packed_product_tile(vectors, left, ROWS, panel, first, channels, results)


@inner
def _transform_panel(data, begin, channels, mine, pad, tiles, scratch, places, panel):
    """Transform some of ``channels`` channels from ``begin`` on for a panel's tiles: ``mine``, the first and
    the end of them.

    ``tiles``: their segments, how many these are, how many vectors they fill, and how many a row has.
    """
    first, last = mine
    found, count, vectors, wide = tiles
    height, width = data.shape[2:]
    rows_read = _divide(scratch)[3]
    part = (channels + APART) * COLUMNS
    if wide <= NARROW:
        find_places(data.shape, (IN, IN), (OUT, OUT), (1, 1), pad, found, count, places)
        flat = data.reshape(-1)
        for c in range(first, last):
            _gather_row(flat, (begin + c) * height * width, c, places, vectors, rows_read, panel, part)
    else:
        for c in range(first, last):
            ahead = begin + min(c + 1, channels - 1)
            _transform_row(data, begin + c, pad, found, count, ahead, scratch, panel, c, part)


@intrinsic
def _transform_taps(typing, taps, one, two, out, out_at, out_step):
    """Transform two neighbouring channels of ``ROWS`` filters: 9 rows of taps each become 36 rows of both.

    The taps begin at ``one`` and at ``two``, ``BLOCK`` apart.
    """
    integer = types.int64
    signature = types.void(taps, integer, integer, out, integer, integer)

    def generate(context, builder, signature, args, loc=None):
        emit, both = Emitter(context, builder, loc, ROWS), Emitter(context, builder, loc, 2 * ROWS)
        channels = [emit.pointer(signature.args[0], args[0], at, "taps") for at in args[1:3]]
        target = emit.pointer(signature.args[3], args[3], args[4], "out")
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 2 * ROWS), list(range(2 * ROWS)))
        columns = []
        for x in range(3):
            column = []
            for y in range(3):
                pair = [emit.load(channel, (y * 3 + x) * BLOCK) for channel in channels]
                column.append(builder.shuffle_vector(*pair, lanes))
            columns.append(both.transform(FILTERS.tolist(), column))
        for y in range(IN):
            row = [column[y] for column in columns]
            for x, value in enumerate(both.transform(FILTERS.tolist(), row)):
                place = both.move(target, both.times(args[5], y * IN + x))
                both.store(value, place)
        return context.get_dummy_value()

    return signature, generate


@inner
def _transform_filters(weight, first, count, part_of, turned, out, tile):
    """Transform the filters from ``first`` on, ``count`` of them and at most ``BLOCK``, to ``out``.

    Of their channels, those that ``part_of`` says: the first and the end.

    Number (t, c, i) of each of the 36 parts of ``out`` is of filter ``first + (t - tile) * ROWS + i`` and
    channel c. ``turned`` is a worker's memory.
    """
    flat, numbers = weight.reshape(-1), weight.shape[1] * _TAPS
    skipped, channels = part_of[0] * _TAPS, part_of[1] - part_of[0]
    part = out.shape[0] // (IN * IN)
    for start in range(0, channels, BLOCK):
        stop = min(start + BLOCK, channels)
        begin, end = start * _TAPS, stop * _TAPS
        for tap in range(begin, end, BLOCK):
            to = (tap - begin) * BLOCK
            for i in range(count):
                prefetch_to_read(flat, (first + i) * numbers + skipped + tap + BLOCK * _TAPS, BLOCK)
            if skipped + tap + BLOCK <= numbers:
                transpose_block(flat, first * numbers + skipped + tap, numbers, count, turned, to, BLOCK)
                continue
            for i in range(count):
                for j in range(end - tap):
                    turned[to + j * BLOCK + i] = flat[(first + i) * numbers + skipped + tap + j]
        for t in range((count + ROWS - 1) // ROWS):
            for c in range(start, stop, 2):
                # A last channel that is left over goes with the one before, once more; a single one twice:
                # what is written beyond it is overwritten, or lies between two parts.
                c = max(0, min(c, channels - 2))
                one = ((c - start) % BLOCK) * _TAPS * BLOCK + t * ROWS
                two = (min(c + 1, channels - 1) - start) * _TAPS * BLOCK + t * ROWS
                _transform_taps(turned, one, two, out, ((tile + t) * channels + c) * ROWS, part)


@parallel
def _transform_all(share, weight, groups, turned, out):
    """Transform all filters, each group's to row tiles of its own. ``turned`` is memory for each worker."""
    in_group = weight.shape[0] // groups
    row_tiles, blocks = (in_group + ROWS - 1) // ROWS, (in_group + BLOCK - 1) // BLOCK
    mine = turned[share[0]]
    for item in within(share, groups * blocks):
        group, block = divmod(item, blocks)
        first, count = group * in_group + block * BLOCK, min(BLOCK, in_group - block * BLOCK)
        tile = group * row_tiles + block * BLOCK // ROWS
        _transform_filters(weight, first, count, (np.int64(0), weight.shape[1]), mine, out, tile)


@parallel
def _by_panel(share, data, filters, groups, in_image, pad, epilogue, memory, out):
    """Each worker takes whole panels of tiles, of which there are ``in_image``, through all steps.

    A panel stays in a worker's own cache; the filters are read once for each panel.
    """
    scale, shift, act, other, add_other = epilogue
    panels, products, scratch, _, _, segment, places = memory
    kept, _ = filters
    batch, count_filters, height, width = out.shape
    channels, in_group = data.shape[1] // groups, count_filters // groups
    row_tiles = (in_group + ROWS - 1) // ROWS
    wide, tall = (width + OUT - 1) // OUT, (height + OUT - 1) // OUT
    tiles = batch * wide * tall
    workers, step = panels.shape[0], products.shape[1] // (IN * IN)
    items = groups * in_image
    for w in within(share, workers):
        lines = _divide(scratch[w])[0]
        for item in range(w * items // workers, (w + 1) * items // workers):
            g, p = divmod(item, in_image)
            first, stop, vectors = panel_of_many(p, in_image, tiles)
            count = segments(first, stop, tall, wide, segment[w])
            tiles_of_panel = segment[w], count, vectors, wide
            all_channels = np.int64(0), channels
            _transform_panel(
                data,
                g * channels,
                channels,
                all_channels,
                pad,
                tiles_of_panel,
                scratch[w],
                places[w],
                panels[w],
            )
            for r in range(row_tiles):
                begin, end = g * in_group + r * ROWS, g * in_group + min((r + 1) * ROWS, in_group)
                for f in range(begin, end):
                    _prefetch_results(segment[w], count, f, out)
                for k in range(IN * IN):
                    results = Rows(products[w], k * step, COLUMNS)
                    _multiply(
                        kept, k, g * row_tiles + r, groups * row_tiles, channels, panels[w], vectors, results
                    )
                for f in range(begin, end):
                    of_filter = Rows(products[w], (f - begin) * COLUMNS, step)
                    into = Epilogue(scale, shift, act, other, add_other)
                    _store_results(of_filter, segment[w], count, vectors, lines, into, f, out)


@parallel
def _transform_panels(share, data, turn, groups, pad, memory, out):
    """Workers make panels of a group together: each transforms some of the channels.

    ``turn``: the group, the first of its channels and the end, the first panel and the end.
    """
    g, from_channel, to_channel, begin, end = turn
    panels, _, scratch, _, _, segment, places = memory
    batch, _, height, width = out.shape
    channels, first_channel = to_channel - from_channel, g * (data.shape[1] // groups) + from_channel
    wide, tall = (width + OUT - 1) // OUT, (height + OUT - 1) // OUT
    tiles = batch * wide * tall
    workers = scratch.shape[0]
    for w in within(share, workers):
        for p in range(begin, end):
            first, stop, vectors = panel_range(p, tiles)
            count = segments(first, stop, tall, wide, segment[w])
            mine = w * channels // workers, (w + 1) * channels // workers
            tiles_of_panel, panel = (segment[w], count, vectors, wide), panels[p - begin]
            _transform_panel(
                data, first_channel, channels, mine, pad, tiles_of_panel, scratch[w], places[w], panel
            )


@parallel
def _multiply_panels(share, filters, turn, groups, epilogue, memory, out):
    """Each worker multiplies the panels of a :func:`_transform_panels` with filters of its own.

    ``filters``: those that were transformed before, or an empty array, and the weight. In the latter case
    a worker transforms some at a time, for all the panels that are there.
    """
    g, from_channel, to_channel, begin, end = turn
    kept, weight = filters
    scale, shift, act, other, add_other = epilogue
    panels, products, scratch, made, turned, segment, _ = memory
    batch, count_filters, height, width = out.shape
    channels, in_group = to_channel - from_channel, count_filters // groups
    row_tiles = (in_group + ROWS - 1) // ROWS
    wide, tall = (width + OUT - 1) // OUT, (height + OUT - 1) // OUT
    tiles = batch * wide * tall
    workers, step = scratch.shape[0], products.shape[1] // (IN * IN)
    at_once = step // (ROWS * COLUMNS)
    for w in within(share, workers):
        lines = _divide(scratch[w])[0]
        last_tile = (w + 1) * row_tiles // workers
        for tile in range(w * row_tiles // workers, last_tile, at_once):
            some = min(at_once, last_tile - tile)
            from_filter, to_filter = tile * ROWS, min((tile + some) * ROWS, in_group)
            left, left_tile = kept, g * row_tiles + tile
            if kept.size == 0:
                left, left_tile = made[w], np.int64(0)
                # Those of the panels before are still there where a worker has all of its own at once.
                there = begin > 0 and last_tile - w * row_tiles // workers <= at_once
                for i in range(to_filter if there else from_filter, to_filter, BLOCK):
                    count, to = min(BLOCK, to_filter - i), (i - from_filter) // ROWS
                    first = g * in_group + i
                    _transform_filters(weight, first, count, (from_channel, to_channel), turned[w], left, to)
            for p in range(begin, end):
                first, stop, vectors = panel_range(p, tiles)
                count = segments(first, stop, tall, wide, segment[w])
                for item in range(IN * IN * some):
                    k, r = divmod(item, some)
                    results = Rows(products[w], k * step + r * ROWS * COLUMNS, COLUMNS)
                    _multiply(left, k, left_tile + r, 1, channels, panels[p - begin], vectors, results)
                for i in range(from_filter, to_filter):
                    f = g * in_group + i
                    _prefetch_results(segment[w], count, min(f + 1, count_filters - 1), out)
                    of_filter = Rows(products[w], (i - from_filter) * COLUMNS, step)
                    into = Epilogue(scale, shift, act, other, add_other)
                    _store_results(of_filter, segment[w], count, vectors, lines, into, f, out)


def _vectors_alone(layer, machine) -> int:
    """How many vectors a worker's own panel may have; 0 where one of them does not fit its cache."""
    # A panel that a worker keeps for itself is in its second-level cache, beside filters.
    alone, channels = machine.second_cache * 7 // 8, layer.channels // layer.groups
    return min(machine.vectors, alone // (4 * IN * IN * (channels + APART) * machine.lanes))


def _panels_alone(layer, machine) -> int:
    """How many panels workers take by themselves, each through all steps; 0 where they share each step.

    Shared panels and products pass through the last cache, which is 3 times their size: they are fetched,
    written and read. With panels of their own, workers read the filters once for each.
    """
    channels, filters, groups = layer.channels // layer.groups, layer.in_group, layer.groups
    vectors, workers = ceil_div(count_tiles(layer), machine.lanes), machine.workers
    at_once = _vectors_alone(layer, machine)
    if at_once == 0:
        return 0
    panels = ceil_div(vectors, at_once)
    if groups < workers:  # all take as many
        panels = min(vectors, ceil_div(panels, workers) * workers)
    ends = [worker * groups * panels // workers for worker in range(workers + 1)]
    # The vectors before each worker's first panel.
    begins = [end // panels * vectors + end % panels * vectors // panels for end in ends]
    most = max(stop - start for start, stop in itertools.pairwise(begins))
    shared = channels * filters + 3 * machine.lanes * vectors * (channels + filters)
    if most * workers > 1.04 * vectors * groups or panels * channels * filters > shared:
        return 0
    return panels if groups * panels > workers else 0


def count_tiles(layer) -> int:
    """The tiles that the results of all images are cut into."""
    return layer.batch * math.prod(ceil_div(n, OUT) for n in layer.out_size)


class Plan(NamedTuple):
    """How tiles, channels and filters are divided."""

    #: Whether each worker takes whole panels through all steps.
    alone: bool
    panels: int
    #: Panels that are in memory at once.
    together: int
    #: The channels that are summed at once, the first and the end of each part.
    parts: list
    #: Whether transformed filters are kept from call to call.
    keeps: bool
    #: Row tiles of filters that a worker transforms at a time.
    row_tiles: int


class Winograd(Way):
    """A 3x3 convolution of stride 1.

    Transformed filters are four times as large as the weight, and cheap to make for many tiles, so that each
    call makes them anew, of many channels part by part. Layers keep them, while the weight's bits stay the
    same, where workers take whole panels, and where there are many channels: up to a size, or for few tiles.
    """

    name = "winograd"

    @staticmethod
    def suits(layer, machine):
        window = layer.kernel, layer.stride, layer.dilate
        return window == ((3, 3), (1, 1), (1, 1)) and min(layer.pad) >= 0 and max(layer.pad) <= 3

    @staticmethod
    def cost(layer, machine):
        """A quarter of the products, and the transforms."""
        vectors, terms = ceil_div(count_tiles(layer), machine.lanes), layer.channels // layer.groups
        whole, rest = divmod(vectors, machine.vectors)
        panels = [machine.vectors] * whole + [rest] * (rest > 0)
        of_terms = sum(machine.of_term(machine.rows * n, machine.rows + n + 4) for n in panels)
        products = 1.1 * 36 * layer.groups * terms * ceil_div(layer.in_group, machine.rows) * of_terms
        narrow = ceil_div(layer.out_size[1], OUT) <= machine.lanes // 2
        transforms = (1300 if narrow else 1800) * layer.channels + 850 * layer.filters
        # The weight comes from memory: in a network, other layers have used the caches since.
        weight = (14 + 20 * 9 / LINE) * terms * layer.filters
        return products + vectors * transforms + weight + 20_000

    @staticmethod
    def plan(layer, machine) -> Plan:
        """The plan. The number of workers has no part in ``parts``, so that results do not depend on it."""
        channels = layer.channels // layer.groups
        panels = ceil_div(count_tiles(layer), machine.columns)
        parts, count = [(0, channels)], ceil_div(channels, most_channels(machine))
        # Channels of which a panel may be a worker's own are one sum in any case, or several.
        small = 4 * IN * IN * channels * layer.filters <= MOST_KEPT_BYTES
        keeps = (count > 2 or (count > 1 and _vectors_alone(layer, machine) > 0)) and (small or panels == 1)
        alone = _panels_alone(layer, machine) if keeps or count == 1 else 0
        keeps = keeps or alone > 0
        if not keeps:
            ends = [part * channels // count for part in range(count + 1)]
            parts = list(itertools.pairwise(ends))
        if alone:
            together, blocks = machine.workers, 1
        else:
            shared = min(SHARED, machine.last_cache * 3 // 4)
            fit = max(1, shared // (4 * IN * IN * (max(b - a for a, b in parts) + APART) * machine.columns))
            together = min(panels, fit, TOGETHER)
            blocks = MOST_KEPT if keeps else min(together, MOST_BLOCKS)
        # The more panels filters are multiplied with, the more panels come from the last cache for each of
        # them.
        row_tiles = min(BLOCK * blocks // machine.rows, ceil_div(layer.in_group, machine.rows))
        return Plan(alone > 0, alone or panels, together, parts, keeps, row_tiles)

    def __init__(self, layer, machine=HERE):
        super().__init__(layer, machine)
        self._workers = self._print = None
        self._kept = aligned_zeros(0)

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        work = out.size / MACHINE_LANES * 4 * weight.shape[1]
        epilogue = scale, shift, act, out if other is None else other, int(other is not None)
        calls, planned, run = Calls(), None, None

        def prepare(workers):
            memory, groups, plan = (
                (*self._scratch(), self._segments, self._places),
                self.layer.groups,
                self._plan,
            )
            filters, pad = (self._kept, weight), self.layer.pad
            if plan.alone:
                return [(_by_panel, workers, data, filters, groups, plan.panels, pad, epilogue, memory, out)]
            kernels, starts = [], range(0, plan.panels, plan.together)
            parts = [(part, _epilogue_of(part, plan.parts, epilogue, out)) for part in plan.parts]
            for g, (part, into), begin in itertools.product(range(groups), parts, starts):
                turn = g, *part, begin, min(begin + plan.together, plan.panels)
                kernels.append((_transform_panels, workers, data, turn, groups, pad, memory, out))
                kernels.append((_multiply_panels, workers, filters, turn, groups, into, memory, out))
            return kernels

        def call():
            nonlocal planned, run
            workers = num_threads(work)
            if workers != self._workers:
                self._allocate(workers)
            if planned is not self._plan:
                planned, run = self._plan, Repeated(calls, work, prepare)
            if self._plan.keeps:
                self._pack(weight, workers)
            run()

        return call

    def _pack(self, weight, workers):
        """Transform all filters, if they are not those of before."""
        bits = fingerprint(weight)
        if bits != self._print:
            self._print = bits
            turned = np.empty((workers, _TAPS * BLOCK * BLOCK), np.float32)
            _transform_all.by(workers)(weight, self.layer.groups, turned, self._kept)

    def _allocate(self, workers):
        layer = self.layer
        self._workers = workers
        plan = self._plan = self.plan(layer, self.machine._replace(workers=workers))
        channels = max(stop - start for start, stop in plan.parts)
        panel = IN * IN * (channels + APART) * COLUMNS
        # A line sets the 36 parts apart, as ``APART`` does those of panels.
        made = 0 if plan.keeps else IN * IN * (plan.row_tiles * ROWS * channels + LINE)
        rows = layer.groups * ceil_div(layer.in_group, ROWS) * ROWS
        self._kept = aligned_zeros(IN * IN * (rows * channels + LINE) if plan.keeps else 0)
        self._print = None
        product = IN * IN * (plan.row_tiles * ROWS + APART) * COLUMNS
        rows_read = max(IN * _LINE_STEP, IN * IN * COLUMNS) + MACHINE_LANES
        size = IN * IN * (COLUMNS + 2 * MACHINE_LANES) + OUT * OUT * MACHINE_LANES + rows_read
        for_each = product, size, made, _TAPS * BLOCK * BLOCK
        self._scratch = Scratch((plan.together, panel), *((workers, count) for count in for_each))
        self._segments = np.zeros((workers, MOST_SEGMENTS), SEGMENT)
        self._places = np.empty((workers, IN * IN * COLUMNS), np.int64)


def _epilogue_of(part, parts, epilogue, out):
    """What becomes of the sums of a part of the channels: the output has those of the parts before."""
    scale, shift, act, other, add_other = epilogue
    act = act if part == parts[-1] else _IDENTITY
    if part == parts[0]:
        return scale, shift, act, other, add_other
    return scale, np.zeros_like(shift), act, out, 1
