"""Convolution of float32 images with the filters side by side in the vectors: for maps of few pixels.

A tile of results is ``PIXELS`` neighbouring pixels of the output by a few vectors of filters. Its pixels are
read in place, one number at a time; the weights are packed, filter after filter for each term of the sum. So
a map of 7 by 7 pixels leaves nothing empty, where vectors of pixels would be a quarter empty. Of many
channels some are summed at a time, so that packed weights stay in the second-level cache from tile to tile.
"""

import functools
import math
from typing import ClassVar, NamedTuple

import numpy as np
from llvmlite import ir

from ...jit import inner
from ..product.driver import PLACES, RUN, Terms, Tiles, driver, filters_of_tiles
from ..product.emitter import emitted
from ..product.machine import HERE
from ..product.matmul import flat_memory
from ..product.tiles import Rows
from ..vector import BLOCK, LINE, MACHINE_LANES, transpose_block
from .addressed import Addressed, Plan
from .padded import Layout, channel_step, fill_own, padding_cost, shared_zeros, tap_places, window_reach
from .way import ceil_div

#: Pixels and vectors of a tile: its sums, a row of weights and a pixel, all in registers.
PIXELS, VECTORS = HERE.filter_tile
#: Filters of a panel, at most.
WIDTH = VECTORS * MACHINE_LANES
#: Results of four neighbouring pixels are stored at once.
_QUARTET = 4
_FOUR = ir.VectorType(ir.FloatType(), _QUARTET)
#: The loads that a line of pixels takes which is in no near cache.
LINE_FETCHED = 14
#: So many rows of pixels, read side by side, a processor fetches ahead.
ROWS_AHEAD = 12
#: Terms that are summed at once, at least: for fewer, results would be read and stored too often.
LEAST_TERMS = 512
#: What it takes to read a line of pixels again, from the last cache and from memory.
LINE_FROM_CACHE, LINE_FROM_MEMORY = 10, 60


def _transpose_quartets(emit, pixels):
    """Four vectors of filters, one a pixel, as four vectors; filter 4k + j is quartet k of vector j."""
    blocks = range(0, MACHINE_LANES, 4)

    def mix(one, other, order):
        places = [base + (k if k < 4 else MACHINE_LANES + k - 4) for base in blocks for k in order]
        return emit.shuffle(one, other, places)

    a, b, c, d = pixels
    low, high = ((0, 4, 1, 5), (2, 6, 3, 7))
    ab, cd = (mix(a, b, low), mix(a, b, high)), (mix(c, d, low), mix(c, d, high))
    return [mix(ab[half], cd[half], order) for half in (0, 1) for order in ((0, 1, 4, 5), (2, 3, 6, 7))]


def _load_quartets(emit, rows, j):
    """The inverse of storing vector j: quartets of the rows 4k + j side by side."""
    return emit.join([emit.load(rows[4 * k + j], vector=_FOUR) for k in range(MACHINE_LANES // 4)])


def _store_pixels(emit, sums, target, epilogue):
    """Store one vector of filters, a sum for each pixel, as ``epilogue`` makes them; four pixels at a time.

    ``target``: the row of each filter in the results. What is added lies in the rows ``epilogue.other``.
    """
    #: The first pixels of the quartets that are stored; the last two may overlap.
    quartets = (*range(0, len(sums) - _QUARTET, _QUARTET), len(sums) - _QUARTET)
    scale, shift = emit.load(epilogue.scale), emit.load(epilogue.shift)
    values = [emit.fma(each, scale, shift) for each in sums]
    turned = []
    for start in quartets:
        turned += _transpose_quartets(emit, values[start : start + _QUARTET])

    def at(rows, start):
        return [emit.move(row, start) for row in rows]

    def with_other():
        addends = [_load_quartets(emit, at(epilogue.other, start), j) for start in quartets for j in range(4)]
        return [emit.builder.fadd(value, each) for value, each in zip(turned, addends, strict=True)]

    # All of what is added is read before anything is stored: it may be the same memory.
    def slopes():
        slope, quads = emit.load(epilogue.act.slope), range(MACHINE_LANES // 4)
        of_four = [emit.shuffle(slope, slope, [4 * k + j for k in quads for _ in range(4)]) for j in range(4)]
        return of_four * len(quartets)

    turned = emit.choose(epilogue.add_other, with_other, turned)
    for i, value in enumerate(emit.activate(turned, epilogue.act, slopes)):
        far, j = at(target, quartets[i // 4]), i % 4
        for k in range(MACHINE_LANES // 4):
            quartet = emit.shuffle(value, value, range(4 * k, 4 * k + 4))
            emit.store(quartet, far[4 * k + j])


def _tile(vectors, count):
    """A tile of so many vectors of filters by so many pixels."""

    @emitted
    def tile(emit, padded, starts, channels, offsets, panel, ahead, fetched, out, epilogue, row):
        """``padded`` has a row for each channel; ``starts`` are the pixels' places, and which is the first.

        ``offsets``: how far the taps lie from a pixel's place. ``ahead``: rows of weights, of which so many
        are ``fetched`` meanwhile.
        """
        builder = emit.builder
        origin, channel_step = emit.rows(padded, "padded")
        first = emit.pointer(*emit.members(starts), "starts")
        pixels = [emit.move(origin, emit.load_number(first, p)) for p in range(count)]
        taps, places = emit.elements(offsets, "offsets")
        weights = emit.pointer(panel, 0, "panel")
        ahead, ahead_step = emit.rows(ahead)
        target, out_step = emit.rows(out, "out")
        with emit.loop(emit.number(vectors * MACHINE_LANES), [target]) as lines:  # they come meanwhile
            (line,) = lines.values
            emit.prefetch(line, write=True)
            emit.prefetch(line, count - 1, write=True)
            lines.advance([emit.move(line, out_step)])
        terms = builder.mul(channels, taps)
        zeros = [emit.constant(0)] * (count * vectors)
        with emit.loop(channels, [emit.number(0), weights, *zeros]) as channel:
            base, factors, *sums = channel.values
            passed = builder.mul(channel.index, builder.mul(fetched, taps))
            in_row, which = builder.srem(passed, terms), builder.sdiv(passed, terms)
            soon = emit.move(ahead, builder.add(builder.mul(which, ahead_step), in_row))
            with emit.loop(taps, [factors, soon, places, *sums]) as tap:
                factors, soon, place, *sums = tap.values
                emit.prefetch(soon)
                at = builder.add(base, emit.load_number(place))
                emit.prefetch(emit.move(pixels[-1], at), count)  # the next tile's last pixel
                right = [emit.load(factors, v * MACHINE_LANES) for v in range(vectors)]
                sums = emit.add_products((emit.load_splat(pixel, at) for pixel in pixels), right, sums)
                moved = zip((factors, soon, place), (vectors * MACHINE_LANES, fetched, 1), strict=True)
                tap.advance([*(emit.move(each, by) for each, by in moved), *sums])
            factors, _, _, *sums = tap.results
            channel.advance([builder.add(base, channel_step), factors, *sums])
        sums = channel.results[2:]
        epilogue = emit.epilogue(epilogue, row, emit.members(out)[1])
        for v in range(vectors):
            at = v * MACHINE_LANES
            rows, other = (
                [emit.move(first, emit.times(out_step, at + f)) for f in range(MACHINE_LANES)]
                for first in (target, epilogue.other)
            )
            scale, shift = emit.move(epilogue.scale, at), emit.move(epilogue.shift, at)
            act = epilogue.act._replace(slope=emit.move(epilogue.act.slope, at))
            of_vector = epilogue._replace(scale=scale, shift=shift, act=act, other=other)
            _store_pixels(emit, sums[v::vectors], rows, of_vector)

    return tile


_tile_3, _tile_2, _tile_1 = _tile(VECTORS, PIXELS), _tile(2, PIXELS), _tile(1, PIXELS)


class _Weight(NamedTuple):
    """A weight as kernels take it: a row of terms for each filter."""

    flat: np.ndarray
    #: From row to row.
    step: int
    terms: int
    in_group: int
    #: Rows of the next panel's weights that a tile fetches.
    fetched: int


@inner(makes_arrays=False)
def _pack(weight, at, step, rows, terms, width, panel):
    """``rows`` filters from ``at`` on, ``step`` apart, ``width`` side by side for each term.

    What is too much repeats.
    """
    if width % BLOCK or terms < BLOCK:
        for k in range(terms):
            for column in range(width):
                panel[k * width + column] = weight[at + min(column, rows - 1) * step + k]
        return
    # Blocks begin at cache lines, where rows do: of two halves of a line, the second would find it evicted
    # where rows lie a power of two apart. The first block and the last overlap with their neighbours.
    lead = (-(weight.ctypes.data // 4 + at)) % LINE
    for column in range(0, width, BLOCK):
        count = max(1, min(BLOCK, rows - column))
        row = at + min(column, rows - 1) * step
        for block in range(lead - LINE, terms, BLOCK):
            term = max(0, min(block, terms - BLOCK))
            transpose_block(weight, row + term, step, count, panel, term * width + column, width)


@inner(makes_arrays=False)
def _pack_block(sources, weight, tiles, g, block, image, panel):
    """A panel's weights. What comes next are those of the next panel."""
    flat, step, terms, in_group, _ = weight
    some = tiles.filters[block]
    at, rows = (g * in_group + some.first) * step, min(some.room, in_group - some.first)
    _pack(flat, at, step, rows, terms, some.room, panel)
    return Rows(flat, at + rows * step, step)


@inner(makes_arrays=False, forceinline=True)
def _sum_pixels(weight, terms, tile, image, panel, soon, sums, whole, epilogue):
    """Vectors of filters by pixels; each tile fetches a part of the next panel's weights."""
    starts, targets, repeats, step, group_step, offsets = terms
    source, begins, fetched = Rows(image, tile.group * group_step, step), (starts, tile.first), weight.fetched
    following = Rows(soon.array, soon.at + tile.inside * fetched * soon.step, soon.step)
    to, row = Rows(sums.array, sums.at + targets[tile.places] if whole else sums.at, sums.step), tile.row
    if tile.room == 3 * MACHINE_LANES:
        _tile_3(source, begins, repeats, offsets, panel, following, fetched, to, epilogue, row)
    elif tile.room == 2 * MACHINE_LANES:
        _tile_2(source, begins, repeats, offsets, panel, following, fetched, to, epilogue, row)
    else:
        _tile_1(source, begins, repeats, offsets, panel, following, fetched, to, epilogue, row)


_multiply = driver(fill_own, _pack_block, _sum_pixels)


def _panels(filters, machine) -> list[int]:
    """The vectors of each panel of a group's filters."""
    most = machine.filter_tile[1]
    whole, rest = divmod(ceil_div(filters, machine.lanes), most)
    return [most] * whole + [rest] * (rest > 0)


def _term_cost(layer, pixels, vectors, machine):
    """What a tile takes for one term.

    Beside pixels and weights, it loads what is fetched for later, and what a channel begins with.
    """
    loads = pixels + vectors + 6 + 3 / math.prod(layer.kernel)
    # Each term of a 1x1 layer lies in another line. Where two units multiply, lines come too slowly for them
    # from maps that are larger than the second cache.
    if layer.kernel == (1, 1) and machine.units > 1 and _image_bytes(layer) > machine.block_cache:
        loads += LINE_FETCHED * (1 + (pixels - 1) * layer.stride[1] / LINE)
    return machine.of_term(pixels * vectors, loads)


class ByFilters(Addressed):
    """Convolution with any kernel, stride, dilation and padding, on one or two axes."""

    name = "by_filters"
    kernels: ClassVar = {1: _multiply}

    @staticmethod
    def suits(layer, machine):
        """Not for maps that are too large: pixels and results would come from memory one by one."""
        return 4 * (
            layer.channels * _pixels_read(layer) + layer.batch * layer.filters * math.prod(layer.out_size)
        ) <= (machine.last_cache)

    @staticmethod
    def takes_prologue(layer):
        return layer.pad != (0, 0)  # images without zeros around them are read as they are

    @staticmethod
    def cost(layer, machine):
        """Filters side by side in the vectors."""
        batch, channels, stride, pixels = layer.batch, layer.channels, layer.stride, math.prod(layer.out_size)
        panels, tile_pixels = _panels(layer.in_group, machine), machine.filter_tile[0]
        of_terms = sum(_term_cost(layer, tile_pixels, vectors, machine) for vectors in panels)
        tiled = ceil_div(pixels, tile_pixels) * layer.terms * of_terms
        # Planes a whole number of pages apart compete for the same few places of a cache.
        stored = 480 if 4 * pixels % 4096 == 0 else 80
        vectors = ceil_div(layer.in_group, machine.lanes)
        tiled += ceil_div(pixels, tile_pixels) * vectors * stored
        # Of a panel that filters do not fill, results are copied one by one.
        if layer.in_group % machine.lanes:
            tiled += machine.single * pixels * (layer.in_group % (machine.lanes * machine.filter_tile[1]))
        copied = 0
        if max(layer.pad) > 0:
            copied = padding_cost(batch * (layer.out_size[0] * stride[0] + 1), channels)
        # With steps, a tile's pixels lie in several lines, which all panels of filters but the first read
        # again. The processor itself fetches a few rows ahead.
        again, size = 0, _image_bytes(layer)
        few_rows, large = channels * layer.kernel[0] <= ROWS_AHEAD, size > machine.block_cache // 2
        if max(stride) > 1 and math.prod(layer.kernel) > 1 and large and not few_rows:
            line = LINE_FROM_MEMORY if size > machine.last_cache // 2 else LINE_FROM_CACHE
            again = line * channels * _pixels_read(layer) / LINE * (len(panels) - 1)
        return batch * layer.groups * tiled + 0.5 * layer.filters * layer.terms + copied + again

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def parts(layer, machine):
        taps, count = math.prod(layer.kernel), 1
        if layer.batch == layer.groups == 1:
            panel, image, cache = 4 * WIDTH * layer.terms, _image_bytes(layer), machine.block_cache
            # Of an image that leaves the cache, so much is summed that it stays there with the panel.
            count = ceil_div(panel + image * (image > cache), cache)
            count = max(1, min(count, layer.terms // LEAST_TERMS))
        together = _together(taps)
        size = ceil_div(ceil_div(layer.channels, count), together) * together
        return [(c, min(c + size, layer.channels)) for c in range(0, layer.channels, size)]

    @staticmethod
    def left(layer, weight, plan):
        flat, step, _ = flat_memory(weight.reshape(layer.filters, -1))
        fetched = ceil_div(WIDTH, len(plan.tiles.places) - 1)
        return _Weight(flat, step, layer.terms, layer.in_group, fetched), []

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(layer, machine) -> Plan:
        kernel, stride, dilate, pad = layer.kernel, layer.stride, layer.dilate, layer.pad
        batch, channels, (in_height, in_width) = layer.batch, layer.channels, layer.in_size
        (height, width), tile_pixels = layer.out_size, machine.filter_tile[0]
        reach = window_reach(layer.out_size, kernel, stride, dilate)
        last_channel, group_channels = 0, layer.group_channels
        if pad != (0, 0) or reach[0] > in_height or reach[1] > in_width:
            shared = shared_zeros(reach[1], in_width, pad[1])
            rows, length = reach[0], reach[1] - shared
            image_step = rows * length
            step = channel_step(batch * image_step, machine.lanes)
            last_channel = step + shared
        else:
            rows, length, step = 0, in_width, in_height * in_width
            image_step = channels * step
        taps = tap_places(kernel, (1, 1), dilate, length, 0)
        # The taps of several channels are one loop: a short loop within a loop is slow.
        several = max(n for n in range(1, _together(len(taps)) + 1) if group_channels % n == 0)
        offsets = np.array([k * step + tap for k in range(several) for tap in taps], np.int64)
        image, y, x = np.ogrid[:batch, :height, :width]
        starts = image * image_step + y * stride[0] * length + x * stride[1]
        starts = starts.reshape(batch, -1)
        surplus = -starts.shape[1] % tile_pixels  # the last tile of an image computes its last pixel again
        starts = np.pad(starts, ((0, 0), (0, surplus)), "edge").reshape(-1)
        tiles = _tiles(layer, tile_pixels)
        return Plan(
            layout=Layout((1, 1), pad, rows, length, step),
            last_channel=last_channel,
            terms=Terms(
                starts,
                tiles.runs["at"].copy(),
                group_channels // several,
                step * several,
                group_channels * step,
                offsets,
            ),
            tiles=tiles,
            panel=ceil_div(WIDTH * layer.terms, MACHINE_LANES) * MACHINE_LANES,
        )


def _together(taps: int) -> int:
    """Of how many channels the taps are one loop, at most."""
    return max(1, 64 // taps)


def _tiles(layer, pixels: int) -> Tiles:
    """Some vectors of filters by so many neighbouring pixels, which are of one image."""
    vectors = ceil_div(layer.in_group, MACHINE_LANES)
    panels, size = ceil_div(vectors, VECTORS), math.prod(layer.out_size)
    ends = np.arange(panels + 1) * vectors // panels * MACHINE_LANES
    filters = filters_of_tiles(layer.in_group, ends[:-1], np.diff(ends))
    in_image = ceil_div(size, pixels)
    image, x = np.ogrid[: layer.batch, 0:size:pixels]
    runs, places = np.zeros(layer.batch * in_image, RUN), np.zeros(layer.batch * in_image + 1, PLACES)
    runs["at"] = (image * layer.filters * size + x).reshape(-1)
    runs["count"] = np.minimum(pixels, size - x + 0 * image).reshape(-1)
    places["run"] = np.arange(len(places))
    places["first"] = places["run"] * pixels
    runs["place"], places["direct"][:-1] = places["first"][:-1], runs["count"] == pixels
    return Tiles(layer.groups, filters, places, runs, 1, pixels)


def _image_bytes(layer) -> int:
    """What a group's channels take."""
    return 4 * layer.group_channels * _pixels_read(layer)


def _pixels_read(layer) -> int:
    """The pixels of a channel, about."""
    return layer.batch * math.prod(layer.out_size) * math.prod(layer.stride)
