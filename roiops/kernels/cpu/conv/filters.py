"""Convolution of float32 images with the filters side by side in the vectors: for maps of few pixels.

A tile of results is ``PIXELS`` neighbouring pixels of the output by a few vectors of filters. Its pixels are
read in place, one number at a time; the weights are packed, filter after filter for each term of the sum. So
a map of 7 by 7 pixels leaves nothing empty, where vectors of pixels would be a quarter empty.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit import Calls, inner, parallel, within
from ..product.emitter import Emitter
from ..product.machine import HERE
from ..product.panels import first_item
from ..product.tiles import Epilogue, Prologue, Rows
from ..scratch import Repeated, Scratch
from ..vector import BLOCK, LINE, MACHINE_LANES, prefetch_to_read, prefetch_to_write, transpose_block
from .shifted import (
    channel_step,
    fill_channels,
    fill_padded,
    fills_itself,
    padding_cost,
    shared_zeros,
    tap_places,
    window_reach,
)
from .way import Way, ceil_div

#: Pixels and vectors of a tile: its sums, a row of weights and a pixel, all in registers.
PIXELS, VECTORS = HERE.filter_tile
#: Filters of a panel, at most.
WIDTH = VECTORS * MACHINE_LANES
#: Results of four neighbouring pixels are stored at once.
_QUARTET = 4
_FOUR = ir.VectorType(ir.FloatType(), _QUARTET)
#: Floats of the largest tile.
_TILE = WIDTH * PIXELS


def _shuffle(builder, one, other, indices):
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), indices)
    return builder.shuffle_vector(one, other, order)


def _transpose_quartets(builder, pixels):
    """Four vectors of filters, one a pixel, as four vectors; filter 4k + j is quartet k of vector j."""
    blocks = range(0, MACHINE_LANES, 4)

    def mix(one, other, order):
        return _shuffle(
            builder,
            one,
            other,
            [base + (k if k < 4 else MACHINE_LANES + k - 4) for base in blocks for k in order],
        )

    a, b, c, d = pixels
    low, high = ((0, 4, 1, 5), (2, 6, 3, 7))
    ab, cd = (mix(a, b, low), mix(a, b, high)), (mix(c, d, low), mix(c, d, high))
    return [mix(ab[half], cd[half], order) for half in (0, 1) for order in ((0, 1, 4, 5), (2, 3, 6, 7))]


def _load_quartets(emit, rows, j):
    """The inverse of storing vector j: quartets of the rows 4k + j side by side."""
    parts = []
    for k in range(MACHINE_LANES // 4):
        parts.append(emit.load(rows[4 * k + j], vector=_FOUR))
    while len(parts) > 1:
        length = 2 * parts[0].type.count
        parts = [
            _shuffle(emit.builder, a, b, list(range(length)))
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _tile(vectors, count):
    """A tile of so many vectors of filters by so many pixels."""
    #: The first pixels of the quartets that are stored; the last two may overlap.
    quartets = (*range(0, count - _QUARTET, _QUARTET), count - _QUARTET)

    @intrinsic
    def tile(typing, padded, starts, channels, offsets, panel, ahead, out, epilogue, row):
        """``padded`` has a row for each channel; ``starts`` are the pixels' places, and which is the first.

        ``offsets``: how far the taps lie from a pixel's place. ``ahead``: weights to fetch, a row for a tap.
        """
        i = types.int64
        signature = types.void(padded, starts, i, offsets, panel, ahead, out, epilogue, i)

        def generate(context, builder, signature, args, loc=None):
            emit, kinds = Emitter(context, builder, loc), signature.args
            origin, channel_step = emit.rows(kinds[0], args[0], "padded")
            first = emit.pointer(kinds[1][0], *emit.members(args[1]), "starts")
            pixels = [emit.move(origin, emit.load_number(first, p)) for p in range(count)]
            taps, places = emit.elements(kinds[3], args[3], "offsets")
            weights = emit.pointer(kinds[4], args[4], emit.number(0), "panel")
            soon, ahead_step = emit.rows(kinds[5], args[5])
            zeros = [emit.constant(0)] * (count * vectors)
            with emit.loop(args[2], [emit.number(0), weights, soon, *zeros]) as channel:
                base, factors, soon, *sums = channel.values
                with emit.loop(taps, [factors, soon, places, *sums]) as tap:
                    factors, soon, place, *sums = tap.values
                    emit.prefetch(soon)
                    at = builder.add(base, emit.load_number(place))
                    emit.prefetch(emit.move(pixels[-1], at), count)  # the next tile's last pixel
                    right = [emit.load(factors, v * MACHINE_LANES) for v in range(vectors)]
                    for p in range(count):
                        number = emit.load_splat(pixels[p], at)
                        for v in range(vectors):
                            sums[p * vectors + v] = emit.fma(number, right[v], sums[p * vectors + v])
                    tap.advance(
                        [
                            emit.move(factors, vectors * MACHINE_LANES),
                            emit.move(soon, ahead_step),
                            emit.move(place, 1),
                            *sums,
                        ]
                    )
                channel.advance([builder.add(base, channel_step), *tap.results[:2], *tap.results[3:]])
            sums = channel.results[3:]
            target, out_step = emit.rows(kinds[6], args[6], "out")
            epilogue = emit.epilogue(kinds[7], args[7], args[8], emit.members(args[6])[1])
            for v in range(vectors):
                at = v * MACHINE_LANES
                a, b = emit.load(epilogue.scale, at), emit.load(epilogue.shift, at)
                values = [emit.fma(sums[p * vectors + v], a, b) for p in range(count)]
                turned = []
                for start in quartets:
                    turned += _transpose_quartets(builder, values[start : start + _QUARTET])

                def rows(array, start, v=v):
                    return [
                        emit.move(emit.move(array, emit.times(out_step, v * MACHINE_LANES + f)), start)
                        for f in range(MACHINE_LANES)
                    ]

                def with_other(turned=turned, rows=rows):
                    near = [
                        _load_quartets(emit, rows(epilogue.other, start), j)
                        for start in quartets
                        for j in range(4)
                    ]
                    return [builder.fadd(value, each) for value, each in zip(turned, near, strict=True)]

                # All of what is added is read before anything is stored: it may be the same memory.
                turned = emit.choose(epilogue.add_other, with_other, turned)
                for i, value in enumerate(emit.activate(turned, epilogue.act)):
                    far, j = rows(target, quartets[i // 4]), i % 4
                    for k in range(MACHINE_LANES // 4):
                        part = _shuffle(builder, value, value, list(range(4 * k, 4 * k + 4)))
                        emit.store(part, far[4 * k + j])
            return context.get_dummy_value()

        return signature, generate

    return tile


#: A panel of one vector is multiplied by twice the pixels.
_tile_3, _tile_2, _tile_1 = _tile(VECTORS, PIXELS), _tile(2, PIXELS), _tile(1, 2 * PIXELS)


@inner
def _pack(weight, first, rows, terms, width, panel):
    """``rows`` filters from ``first`` on, ``width`` side by side for each term; what is too much repeats."""
    if width % BLOCK or terms < BLOCK:
        for k in range(terms):
            for column in range(width):
                panel[k * width + column] = weight[(first + min(column, rows - 1)) * terms + k]
        return
    # Blocks begin at cache lines, where rows do: of two halves of a line, the second would find it evicted
    # where rows lie a power of two apart. The first block and the last overlap with their neighbours.
    lead = (-(weight.ctypes.data // 4 + first * terms)) % LINE
    for column in range(0, width, BLOCK):
        count = max(1, min(BLOCK, rows - column))
        row = (first + min(column, rows - 1)) * terms
        for block in range(lead - LINE, terms, BLOCK):
            term = max(0, min(block, terms - BLOCK))
            transpose_block(weight, row + term, terms, count, panel, term * width + column, width)


@parallel
def _multiply(share, images, steps, taps, groups, weight, epilogue, scratch, out):
    """``images``: the data, its padded images, their layout, and what becomes of the data on the way.

    There is a padded image for each worker, which it fills with a group's channels, or one for all that is
    filled. The layout is that of :func:`fill_channels`, without rows where the images themselves are the
    padded; the way is an :class:`Prologue`. ``steps``: from channel to channel of the padded image, and from
    group to group; ``epilogue``: :class:`Epilogue`.

    ``taps``: where the first tap of each result lies, how many channels are gone through one by one, and
    how far the other taps lie from the first.
    """
    data, padded_images, layout, prologue = images
    channel_step, group_step = steps
    stride, pad, sizes, columns = layout
    mean, in_scale, in_shift, floor, normalises = prologue
    starts, channels, offsets = taps
    scale, shift, act, other, add_other = epilogue
    batch, filters, height, width = out.shape
    positions, in_group = height * width, filters // groups
    terms = weight.shape[1]
    flat_weight, flat_out, flat_other = weight.reshape(-1), out.reshape(-1), other.reshape(-1)
    vectors = (in_group + MACHINE_LANES - 1) // MACHINE_LANES
    panels = (vectors + VECTORS - 1) // VECTORS
    in_image = (positions + PIXELS - 1) // PIXELS
    tiles = batch * in_image
    workers = scratch.shape[0]
    for w in within(share, workers):
        aside, beside, panel = scratch[w, :_TILE], scratch[w, _TILE : 2 * _TILE], scratch[w, 2 * _TILE :]
        packed = np.int64(-1)
        wide = row = rows = ahead = np.int64(0)
        item = first_item(w, workers, groups, panels, vectors, tiles)
        end = first_item(w + 1, workers, groups, panels, vectors, tiles)
        padded = padded_images[w if padded_images.shape[0] > 1 else 0]
        own, filled = padded_images.shape[0] == workers and sizes[0] > 0, np.int64(-1)
        per_group, lines = data.shape[1] // groups, (np.int64(0), batch * sizes[0])
        while item < end:
            gp, tile = divmod(item, tiles)
            g, p = divmod(gp, panels)
            if own and g != filled:
                filled, held = g, (g * per_group, (g + 1) * per_group)
                planes, before = (
                    (stride, pad, sizes, columns),
                    Prologue(mean, in_scale, in_shift, floor, normalises),
                )
                fill_channels(data, planes, before, held, held[0], held[1], lines, padded)
            if gp != packed:
                packed = gp
                start, stop = p * vectors // panels, (p + 1) * vectors // panels
                wide = (stop - start) * MACHINE_LANES
                row, rows = (
                    g * in_group + start * MACHINE_LANES,
                    min(stop * MACHINE_LANES, in_group) - start * MACHINE_LANES,
                )
                _pack(flat_weight, row, rows, terms, wide, panel)
                # The next panel's weights are fetched while this one is multiplied.
                ahead = (min(WIDTH, filters - row - rows) + tiles - 1) // tiles
            n, t = divmod(tile, in_image)
            # A tile of one vector takes the place of two, where the second is there.
            pixels = 2 * PIXELS if wide == MACHINE_LANES else PIXELS
            taken = min(pixels // PIXELS, in_image - t, end - item)
            first = t * PIXELS
            count = min(taken * PIXELS, positions - first)
            whole = count == pixels and rows == wide
            at = (n * filters + row) * positions + first
            target, around = flat_out if whole else aside, flat_other if whole else beside
            to, step = at if whole else np.int64(0), positions if whole else pixels
            for f in range(rows):  # the lines of this and the next tile's results come during the sums
                prefetch_to_write(flat_out, at + f * positions + pixels, PIXELS)
                if add_other:
                    prefetch_to_read(flat_other, at + f * positions + pixels, PIXELS)
            if add_other and not whole:
                for f in range(rows):
                    for i in range(count):
                        beside[f * pixels + i] = flat_other[at + f * positions + i]
            seen, here = Rows(padded, 0 if own else g * group_step, channel_step), (starts, tile * PIXELS)
            soon = Rows(flat_weight, (row + rows + tile * ahead) * terms, ahead)
            sums, into = Rows(target, to, step), Epilogue(scale, shift, act, around, add_other)
            if wide == 3 * MACHINE_LANES:
                _tile_3(seen, here, channels, offsets, panel, soon, sums, into, row)
            elif wide == 2 * MACHINE_LANES:
                _tile_2(seen, here, channels, offsets, panel, soon, sums, into, row)
            else:
                _tile_1(seen, here, channels, offsets, panel, soon, sums, into, row)
            if not whole:
                for f in range(rows):
                    for i in range(count):
                        flat_out[at + f * positions + i] = aside[f * pixels + i]
            item += taken


class Plan(NamedTuple):
    """Where the pixels and taps lie."""

    #: As that of :func:`fill_channels`; without rows where the images are read as they are.
    layout: tuple
    #: Floats of a padded image of all channels, and of one of a group's; 0 where there is none.
    padded: int
    group_padded: int
    #: What filling it costs.
    copying: int
    #: From channel to channel, and from group to group. Taps of several channels are one loop.
    steps: tuple[int, int]
    #: Where the first tap of each result lies, how many channels are gone through, the taps' distances.
    taps: tuple


class ByFilters(Way):
    """Convolution with any kernel, stride, dilation and padding, on one or two axes."""

    name = "by_filters"

    @staticmethod
    def suits(layer, machine):
        """Not for maps that are too large: pixels and results would come from memory one by one."""
        return 4 * (
            layer.channels * _seen(layer) + layer.batch * layer.filters * math.prod(layer.out_size)
        ) <= (machine.last_cache)

    @staticmethod
    def takes_prologue(layer):
        return layer.pad != (0, 0)  # images without zeros around them are read as they are

    @staticmethod
    def cost(layer, machine):
        """Filters side by side in the vectors."""
        tile_pixels, tile_vectors = machine.filter_tile
        batch, channels, stride, pixels = layer.batch, layer.channels, layer.stride, math.prod(layer.out_size)
        vectors = ceil_div(layer.in_group, machine.lanes)
        tiles = batch * ceil_div(pixels, tile_pixels)
        copied = 0
        if max(layer.pad) > 0:
            copied = padding_cost(batch * (layer.out_size[0] * stride[0] + 1), channels)
        # Planes a whole number of pages apart compete for the same few places of a cache.
        stored = 480 if 4 * pixels % 4096 == 0 else 80
        # With steps, a tile's pixels lie in several lines, which each panel of filters reads again.
        again, large = 0, 4 * channels // layer.groups * _seen(layer) > machine.second_cache // 2
        if max(stride) > 1 and math.prod(layer.kernel) > 1 and large:
            again = 20 * channels * _seen(layer) / LINE * ceil_div(vectors, tile_vectors)
        products = layer.groups * tiles * vectors * (tile_pixels * layer.terms + stored)
        return products + 0.5 * layer.filters * layer.terms + copied + again

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, prologue = arrays
        prologue = (shift, shift, shift, np.float32(0), 0) if prologue is None else prologue
        matrix, groups = weight.reshape(len(weight), -1), self.layer.groups
        plan = self.plan(self.layer, self.machine)
        epilogue = scale, shift, act, out if other is None else other, int(other is not None)
        size = ceil_div(2 * _TILE + WIDTH * matrix.shape[1], MACHINE_LANES) * MACHINE_LANES

        def prepare(workers):
            own = fills_itself(workers, groups, plan.copying)
            shape = (workers, plan.group_padded) if own else (1, plan.padded)
            padded_images, scratch = Scratch(shape, (workers, size))()
            if not plan.padded:
                padded_images = data.reshape(1, -1)
            images = data, padded_images, plan.layout, prologue
            filling = fill_padded, workers, data, plan.layout, prologue, workers, padded_images[0]
            multiply = (
                _multiply,
                workers,
                images,
                plan.steps,
                plan.taps,
                groups,
                matrix,
                epilogue,
                scratch,
                out,
            )
            return [*([] if own else [filling]), multiply]

        return Repeated(Calls(), out.size * matrix.shape[1] / MACHINE_LANES, prepare)

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(layer, machine) -> Plan:
        kernel, stride, dilate, pad = layer.kernel, layer.stride, layer.dilate, layer.pad
        batch, channels, (in_height, in_width) = layer.batch, layer.channels, layer.in_size
        (height, width), tile_pixels = layer.out_size, machine.filter_tile[0]
        reach = window_reach(layer.out_size, kernel, stride, dilate)
        padded = group_padded = 0
        in_group = channels // layer.groups
        if pad != (0, 0) or reach[0] > in_height or reach[1] > in_width:
            shared = shared_zeros(reach[1], in_width, pad[1])
            rows, length = reach[0], reach[1] - shared
            image_step = rows * length
            step = channel_step(batch * image_step, machine.lanes)
            padded, group_padded = (
                ceil_div(count * step + shared, LINE) * LINE for count in (channels, in_group)
            )
        else:
            rows, length, step, image_step = (
                0,
                in_width,
                in_height * in_width,
                channels * in_height * in_width,
            )
        taps = tap_places(kernel, (1, 1), dilate, length, 0)
        # The taps of several channels are one loop: a short loop within a loop is slow.
        several = max(n for n in range(1, max(1, 64 // len(taps)) + 1) if in_group % n == 0)
        offsets = np.array([k * step + tap for k in range(several) for tap in taps], np.int64)
        image, y, x = np.ogrid[:batch, :height, :width]
        starts = image * image_step + y * stride[0] * length + x * stride[1]
        starts = starts.reshape(batch, -1)
        surplus = -starts.shape[1] % tile_pixels  # the last tile of an image computes its last pixel again
        starts = np.pad(starts, ((0, 0), (0, surplus)), "edge").reshape(-1)
        starts = np.pad(starts, (0, tile_pixels), "edge")  # as does one of twice the pixels
        return Plan(
            layout=((1, 1), pad, (rows, length, step), (1, 1)),
            padded=padded,
            group_padded=group_padded,
            copying=padding_cost(batch * rows, channels),
            steps=(step * several, in_group * step),
            taps=(starts, in_group // several, offsets),
        )


def _seen(layer) -> int:
    """The pixels of a channel, about."""
    return layer.batch * math.prod(layer.out_size) * math.prod(layer.stride)
