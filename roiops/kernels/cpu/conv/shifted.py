"""Convolution of float32 images as a sum of shifted images, without unrolling them.

An image is copied once into a *padded image*: zeros around it, and its pixels sorted by their remainders to
the strides, each remainder a plane of its own. There the pixels that one tap of the kernel wants for
neighbouring results lie side by side, at a distance from the results' own place that is the same everywhere.
So a tile of results is a sum, over channels and taps, of one weight times one run of the padded image.
Results that fall between the rows or between the images are computed and not stored.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from ...jit import Calls, inner, parallel, within
from ..product.emitter import COLUMNS, ROWS, VECTORS, Emitter
from ..product.machine import Machine
from ..product.panels import copy_run, first_item, scale_run
from ..product.tiles import (
    FEW,
    Epilogue,
    Prologue,
    Rows,
    by_rows,
    clear_vector,
    copy_every_second,
    copy_vector,
    scale_vector,
    store_finished,
)
from ..scratch import Repeated, Scratch
from ..vector import LINE, MACHINE_LANES, prefetch_to_write
from .pointwise import Pointwise, with_last_rows
from .way import Layer, Way, ceil_div


def window_reach(out_size, kernel, stride, dilate) -> list[int]:
    """How many rows and columns the taps reach over."""
    sides = zip(out_size, stride, kernel, dilate, strict=True)
    return [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in sides]


def shared_zeros(reach: int, size: int, pad: int) -> int:
    """The zeros at the end of a row that serve as those in front of the next one, too."""
    return min(pad, max(0, reach - pad - size))


def channel_step(places: int, lanes: int) -> int:
    """The floats from a channel of a padded image to the next, each of so many places.

    A channel starts at a cache line, an odd number of lines after the one before: an even number, a power of
    two above all, would bring all channels to the same few places of a cache.
    """
    return (ceil_div(places, lanes) | 1) * lanes


def tap_places(kernel, stride, dilate, length: int, plane: int, joined=False) -> list[int]:
    """How far each tap's pixels lie from the first tap's, in a padded image of rows of ``length``.

    With strides, each remainder of the rows and of the columns is a ``plane`` of its own; where rows are
    ``joined``, each column of taps is.
    """
    columns = range(0, kernel[1] * dilate[1], dilate[1])
    if joined:
        planes, in_rows = kernel[1], [k * plane for k in range(kernel[1])]
    else:
        planes, in_rows = stride[1], [x % stride[1] * plane + x // stride[1] for x in columns]
    return [
        y % stride[0] * planes * plane + y // stride[0] * length + place
        for y in range(0, kernel[0] * dilate[0], dilate[0])
        for place in in_rows
    ]


def joins_rows(layer: Layer, machine: Machine) -> bool:
    """Whether a padded image holds the pixels of each column of taps apart, in rows like the results'.

    Rows then follow each other as the results do: nothing between them is computed, or moved. Rows of whole
    vectors do so anyway. It is not worth padded images that leave the nearer caches.
    """
    height, width = layer.out_size
    rows = height * layer.stride[0] + layer.kernel[0]
    floats = layer.batch * layer.channels * layer.kernel[1] * width * rows
    return width % machine.lanes > 0 and 4 * floats <= machine.second_cache // 2


def ends_with_rows(width: int, length: int, terms: int, added: bool, lanes: int) -> bool:
    """Whether each vector of results lies in one row of the output, of ``length`` places in the padded image.

    Otherwise vectors go on from row to row: then less is computed, and results are moved afterwards. Vectors
    that overlap would add twice what is added to the results.
    """
    if width % lanes == 0:
        return True
    if width < lanes or added:
        return False
    vectors = ceil_div(width, lanes)
    return vectors * (terms + VECTOR_STORED) < length / lanes * terms + ROW_MOVED


#: Cycles, about, of storing a vector of results, and of moving a row of them.
VECTOR_STORED, ROW_MOVED = 10, 58
#: A padded image that takes no more cycles than this to fill, each worker fills for itself, while it
#: computes: one that another has filled comes from the other's cache.
OWN_COPY = 60_000


def fills_itself(workers: int, groups: int, copying: int) -> bool:
    """Whether each worker fills a padded image of its own; ``copying`` is what a whole one takes."""
    return workers == 1 or copying <= OWN_COPY or 1 < workers <= groups


def padding_cost(rows: int, planes: int) -> int:
    """Cycles, about, of filling a padded image of so many rows a plane."""
    return 25 * rows * planes


def _tile(height, vectors):
    @intrinsic
    def tile(typing, weight, padded, starts, channels, offsets, out, targets, epilogue, row):
        """``padded`` has a row for each channel, and ``offsets`` the places of the taps in it.

        ``starts``: where the vectors of results begin in the padded image, and which of them is the first;
        ``targets`` are their places in the rows of ``out`` in the same way.
        """
        i = types.int64
        signature = types.void(weight, padded, starts, i, offsets, out, targets, epilogue, i)

        def generate(context, builder, signature, args, loc=None):
            emit, kinds = Emitter(context, builder, loc), signature.args
            factors, weight_step = emit.rows(kinds[0], args[0], "weight")
            origin, channel_step = emit.rows(kinds[1], args[1], "padded")

            def numbers(k):
                first = emit.pointer(kinds[k][0], *emit.members(args[k]), "starts or targets")
                return [emit.load_number(first, v) for v in range(vectors)]

            begin, *others = numbers(2)
            start, beside = emit.move(origin, begin), [builder.sub(other, begin) for other in others]
            taps, places = emit.elements(kinds[4], args[4], "offsets")
            zeros = [emit.constant(0)] * (height * vectors)
            with emit.loop(args[3], [start, factors, *zeros]) as channel:
                image, first, *sums = channel.values
                with emit.loop(taps, [first, places, *sums]) as tap:
                    factor, place, *sums = tap.values
                    columns = emit.move(image, emit.load_number(place))
                    right = [emit.load(columns, by) for by in (0, *beside)]
                    for r in range(height):
                        number = emit.load_splat(factor, emit.times(weight_step, r))
                        for v in range(vectors):
                            sums[r * vectors + v] = emit.fma(number, right[v], sums[r * vectors + v])
                    tap.advance([emit.move(factor, 1), emit.move(place, 1), *sums])
                channel.advance([emit.move(image, channel_step), tap.results[0], *tap.results[2:]])
            sums = channel.results[2:]
            epilogue = emit.epilogue(kinds[7], args[7], args[8], emit.members(args[5])[1])
            store_finished(
                emit, by_rows(sums, vectors), emit.rows(kinds[5], args[5], "out"), epilogue, numbers(6)
            )
            return context.get_dummy_value()

        return signature, generate

    return tile


#: Of a few filters, as the groups of a convolution have them, most rows of a full tile would be empty.
HALF = ROWS // 2
_full_tile, _narrow_tile, _low_tile = _tile(ROWS, VECTORS), _tile(ROWS, FEW), _tile(HALF, VECTORS)


@inner
def _clear(padded, first, stop):
    """Zeros from ``first`` to before ``stop``, and nothing beyond them."""
    if stop - first < MACHINE_LANES:
        for i in range(first, stop):
            padded[i] = 0
        return
    for i in range(first, stop - MACHINE_LANES, MACHINE_LANES):
        clear_vector(padded, i)
    clear_vector(padded, stop - MACHINE_LANES)


class _Source(NamedTuple):
    """Where rows are read: the first pixel, and the steps to the next row and to the next pixel."""

    at: int
    at_step: int
    step: int


@inner
def _fill_rows(flat, source, count, prologue, padded, to, length, rows, end):
    """Rows of ``count`` pixels, each with zeros up to where the next one begins.

    ``source`` is a :class:`_Source`, ``prologue`` an :class:`Prologue` of one channel; where that is used,
    the step from pixel to pixel is 1. Nothing from ``end`` on is written. What follows the zeros is spoiled,
    where there is room: the next row is written after it.
    """
    at, at_step, step = source
    mean, scale, shift, floor, normalises = prologue
    vectors = (count + MACHINE_LANES - 1) // MACHINE_LANES * MACHINE_LANES
    reach = vectors * step if step <= 2 else flat.shape[0] + 1
    room = max(vectors, length + MACHINE_LANES - 1)
    done = 0
    if step == 1 and at_step == length and rows > 0:  # of joined rows: as far apart as in the image
        run = (rows - 1) * length + count
        if normalises:
            scale_run(flat, at, padded, to, run, mean, scale, shift, floor)
        else:
            copy_run(flat, at, padded, to, run)
        for row in range(rows - 1):
            for i in range(to + row * length + count, to + (row + 1) * length):
                padded[i] = 0
        done, to = rows, to + rows * length
        _clear(padded, to - length + count, min(to, end))
    while done < rows and at + reach <= flat.shape[0] and to + room <= end:
        for i in range(0, count, MACHINE_LANES):
            if normalises:
                scale_vector(flat, at + i, padded, to + i, mean, scale, shift, floor)
            elif step == 1:
                copy_vector(flat, at + i, padded, to + i)
            else:
                copy_every_second(flat, at + 2 * i, padded, to + i)
        for i in range(to + count, to + length, MACHINE_LANES):
            clear_vector(padded, i)
        done, at, to = done + 1, at + at_step, to + length
    for _ in range(done, rows):  # the last ones, with nothing beyond them
        if normalises:
            scale_run(flat, at, padded, to, count, mean, scale, shift, floor)
        else:
            for i in range(count):
                padded[to + i] = flat[at + i * step]
        _clear(padded, to + count, min(to + length, end))
        at, to = at + at_step, to + length


@inner
def fill_channels(data, layout, prologue, held, first, last, lines, padded):
    """Copy channels ``[first, last)`` of the images, as the :class:`Prologue` makes them, to a padded image.

    The padded image is for the channels ``held[0]`` to ``held[1]``.

    It is ``[channel][remainder of y][plane of columns][image][row][column]``. ``layout``: stride and pad; the
    rows of a plane, their length and the step from channel to channel; how many planes of columns there are,
    and how many pixels further each begins than the one before. ``lines``: the first and the end of what is
    wanted of each plane's rows, counted from image to image.
    """
    stride, pad, (rows, length, channel_step), (planes, apart) = layout
    batch, channels, height, width = data.shape
    mean, scale, shift, floor, normalises = prologue
    flat = data.reshape(-1)
    plane = batch * rows * length
    step = stride[1]
    for number in range(stride[0] * planes):
        ry, q = divmod(number, planes)
        # The first pixel of a row that is in this plane, its column there, and how many there are.
        skip = min(length, -(-max(0, pad[1] - q * apart) // step))
        x = skip * step + q * apart - pad[1]
        count = max(0, min(length - skip, (width - x + step - 1) // step))
        # The rows that are in the image.
        top = -(-max(0, pad[0] - ry) // stride[0])
        bottom = (height + pad[0] - ry + stride[0] - 1) // stride[0] if count > 0 else 0
        if lines[0] > 0:  # the zeros in front of a plane, which also end the one before it
            for c in range(first, last):
                begin = (c - held[0]) * channel_step + number * plane
                _clear(padded, begin, min(begin + top * length + skip, padded.shape[0]))
        for n in range(lines[0] // rows, (lines[1] + rows - 1) // rows):
            begin, stop = max(0, lines[0] - n * rows), min(rows, lines[1] - n * rows)
            seen = min(max(begin, top), stop)
            unseen = max(seen, min(stop, bottom))
            y = seen * stride[0] + ry - pad[0]
            for c in range(first, last):
                begun = (c - held[0]) * channel_step
                end = begun + channel_step if c + 1 < held[1] else padded.shape[0]
                to = begun + number * plane + n * rows * length
                into = to + seen * length + skip
                _clear(padded, to + begin * length, min(into, end))
                at = ((n * channels + c) * height + y) * width + x
                source = _Source(at, stride[0] * width, step)
                of_channel = flat[0], flat[0], flat[0], floor, normalises
                if normalises:
                    of_channel = mean[c], scale[c], shift[c], floor, normalises
                _fill_rows(flat, source, count, of_channel, padded, into, length, unseen - seen, end)
                _clear(padded, to + unseen * length, to + stop * length)
    for c in range(first, last):
        # The last row's window may reach beyond the planes, into the next channel's first rows: the zeros
        # above an image serve as those below the one before.
        begun = (c - held[0]) * channel_step
        after = begun + stride[0] * planes * plane
        end = begun + channel_step if c + 1 < held[1] else padded.shape[0]
        end = max(end, min(after + pad[0] * length + pad[1], end + lines[0] * length, padded.shape[0]))
        _clear(padded, after, end)
    # The channel that comes next may be another worker's; there are zeros in front of it in any case.
    zeros = -(-pad[0] // stride[0]) * length + min(length, -(-pad[1] // step))
    stop = (last - held[0]) * channel_step
    _clear(padded, stop, min(stop + zeros, padded.shape[0]))


@parallel
def fill_padded(share, data, layout, prologue, workers, padded):
    """:func:`fill_channels` of all channels, for a padded image that all workers read."""
    stride, pad, sizes, columns = layout
    mean, scale, shift, floor, normalises = prologue
    channels = data.shape[1]
    for w in within(share, workers):
        first, last = w * channels // workers, (w + 1) * channels // workers
        lines = np.int64(0), data.shape[0] * sizes[0]
        before = Prologue(mean, scale, shift, floor, normalises)
        held = np.int64(0), channels
        fill_channels(data, (stride, pad, sizes, columns), before, held, first, last, lines, padded)


@inner
def _move(tile, first, stop, rows, block, length, results, row, fetch):
    """Copy the results at the places ``[first, stop)`` from a tile to ``results``, or fetch them.

    They are of filters from ``row`` on. ``results`` are a flat array of images, and the shape of one; there
    are ``block`` places to an image, and ``length`` to a row.
    """
    out, (filters, height, width) = results
    position = first
    while position < stop:
        n, place = divmod(position, block)
        y, x = divmod(place, length)
        if y >= height:
            position += block - place
            continue
        if x >= width:
            position += length - x
            continue
        count = min(width - x, stop - position)
        at = ((n * filters + row) * height + y) * width + x
        for r in range(rows):
            beside = r * COLUMNS + position - first
            if fetch:
                copy_run(out, at + r * height * width, tile, beside, count)
            else:
                copy_run(tile, beside, out, at + r * height * width, count)
        position += count


@inner
def _move_vectors(tile, vectors, rows, targets, first, flat, at, step, fetch):
    """:func:`_move` for vectors that lie in one row each, from ``targets[first]`` on."""
    for v in range(vectors):
        for r in range(rows):
            beside, place = r * COLUMNS + v * MACHINE_LANES, at + r * step + targets[first + v]
            if fetch:
                copy_vector(flat, place, tile, beside)
            else:
                copy_vector(tile, beside, flat, place)


@parallel
def _sum_shifted(share, images, computed, offsets, groups, by_filters, weights, epilogue, tiles, out):
    """``images``: the data, its padded images, their layout, and what becomes of the data on the way.

    There is a padded image for each worker, which it fills with a group's channels, or one for all that is
    filled. The layout is that of :func:`fill_channels`. ``computed`` says what is: where each vector of
    results starts in the padded image; where in ``out`` it goes, if each lies in one row; where in a tile
    its vectors lie; and how many places for results there are in all, in an image and in a row. ``weights``
    are the whole weight and what follows its last whole tile; the way and ``epilogue`` hold what
    :class:`Prologue` and :class:`Epilogue` do.
    """
    data, padded_images, layout, prologue = images
    stride, pad, sizes, columns = layout
    mean, in_scale, in_shift, floor, normalises = prologue
    channel_step = sizes[2]
    starts, targets, side_by_side, places, block, length = computed
    by_row = targets.shape[0] > 0
    weight, last_rows = weights
    scale, shift, act, other, add_other = epilogue
    _, filters, height, width = out.shape
    channels, terms = weight.shape[1] // offsets.shape[0], weight.shape[1]
    in_group = filters // groups
    row_tiles = (in_group + ROWS - 1) // ROWS
    total = (places + MACHINE_LANES - 1) // MACHINE_LANES
    panels = (total + VECTORS - 1) // VECTORS
    flat_weight, flat_last = weight.reshape(-1), last_rows.reshape(-1)
    flat_out, flat_other = out.reshape(-1), other.reshape(-1)
    image_shape, plane = (filters, height, width), height * width
    workers = tiles.shape[0]
    # Tiles that follow one another: of all panels, or of all rows of filters.
    blocks, in_block = (groups * row_tiles, np.int64(1)) if by_filters else (groups, row_tiles)
    for w in within(share, workers):
        aside, beside = tiles[w, 0], tiles[w, 1]
        begin = first_item(w, workers, blocks, panels, total, in_block)
        finished = first_item(w + 1, workers, blocks, panels, total, in_block)
        padded = padded_images[w if padded_images.shape[0] > 1 else 0]
        own, filled = padded_images.shape[0] == workers, np.int64(-1)
        lines = np.int64(0), data.shape[0] * sizes[0]
        if groups == 1 and not by_filters and begin < finished:  # only the rows that this worker's panels see
            begun = begin // row_tiles * total // panels
            # A low tile takes all vectors of a full panel, also the first of another worker's panel.
            ended = (finished - 1) // row_tiles * total // panels + VECTORS
            reach = np.int64(MACHINE_LANES - 1)
            for tap in range(offsets.shape[0]):
                reach = max(reach, offsets[tap] % (lines[1] * sizes[1]) + MACHINE_LANES - 1)
            last = (starts[ended - 1] + reach) // sizes[1]
            lines = starts[begun] // sizes[1], min(lines[1], last + 1)
        for item in range(begin, finished):
            if by_filters:
                gr, p = divmod(item, panels)
                g, r = divmod(gr, row_tiles)
            else:
                gp, r = divmod(item, row_tiles)
                g, p = divmod(gp, panels)
            if own and g != filled:
                filled, held = g, (g * channels, (g + 1) * channels)
                planes, before = (
                    (stride, pad, sizes, columns),
                    Prologue(mean, in_scale, in_shift, floor, normalises),
                )
                fill_channels(data, planes, before, held, held[0], held[1], lines, padded)
            first = p * total // panels
            vectors = (p + 1) * total // panels - first
            start, end = first * MACHINE_LANES, (first + vectors) * MACHINE_LANES
            stop = min(end, places)
            row = g * in_group + r * ROWS
            rows = min(ROWS, in_group - r * ROWS)
            left, left_at = flat_weight, row * terms
            if rows not in (ROWS, HALF):
                left, left_at = flat_last, g * ROWS * terms
            image, place = divmod(start, block)
            y, x = divmod(place, length)
            if by_row:
                # A low tile takes a vector of the next panel along, which must not be added to twice.
                whole = rows == ROWS or (rows == HALF and not add_other)
                at = row * plane
            else:
                fits = total >= FEW and stop == end and y < height and x + end - start <= width
                whole = rows == ROWS and fits
                at = ((image * filters + row) * height + y) * width + x
            for i in range(rows):  # the lines that the results go to come during the sums
                ahead = at + targets[first] if by_row else at
                prefetch_to_write(flat_out, ahead + i * plane, stop - start)
            target, around = flat_out if whole else aside, flat_other if whole else beside
            step = plane if whole else COLUMNS
            if add_other and not whole:
                if by_row:
                    _move_vectors(beside, vectors, rows, targets, first, flat_other, at, plane, True)
                else:
                    _move(beside, start, stop, rows, block, length, (flat_other, image_shape), row, True)
            factors, sums = Rows(left, left_at, terms), Rows(target, at if whole else 0, step)
            seen, here = (
                Rows(padded, 0 if own else g * channels * channel_step, channel_step),
                (starts, first),
            )
            onto = (targets, first) if by_row and whole else (side_by_side, 0)
            into = Epilogue(scale, shift, act, around, add_other)
            if rows <= HALF:
                _low_tile(factors, seen, here, channels, offsets, sums, onto, into, row)
            elif vectors == VECTORS:
                _full_tile(factors, seen, here, channels, offsets, sums, onto, into, row)
            else:
                _narrow_tile(factors, seen, here, channels, offsets, sums, onto, into, row)
            if not whole:
                if by_row:
                    _move_vectors(aside, vectors, rows, targets, first, flat_out, at, plane, False)
                else:
                    _move(aside, start, stop, rows, block, length, (flat_out, image_shape), row, False)


class Plan(NamedTuple):
    """What is computed, and where it lies."""

    #: Stride and pad; rows of a plane, their length, the step from channel to channel; planes of columns, and
    #: how many pixels further each begins than the one before. See :func:`fill_channels`.
    layout: tuple
    #: How far the pixels of each tap lie from those of the first.
    offsets: np.ndarray
    #: See :func:`_sum_shifted`.
    computed: tuple
    by_filters: int
    #: Floats of a padded image of all channels, and of one of a group's.
    padded: int
    group_padded: int
    #: What filling it costs.
    copying: int
    #: The results of an image as rows that follow one another.
    result_shape: tuple[int, int]


class Shifted(Way):
    """Convolution with any kernel, stride, dilation and padding, on one or two axes."""

    name = "shifted"

    @staticmethod
    def suits(layer, machine):
        """Not for kernels of one pixel without zeros around the images, which :class:`Pointwise` is for."""
        return max(layer.kernel) > 1 or layer.pad != (0, 0) or not Pointwise.suits(layer, machine)

    @staticmethod
    def takes_prologue(layer):
        return layer.stride[1] == 1

    @staticmethod
    def cost(layer, machine):
        """Sums of shifted images, pixels side by side in the vectors."""
        batch, size, groups, kernel, stride = (
            layer.batch,
            layer.out_size,
            layer.groups,
            layer.kernel,
            layer.stride,
        )
        reach = [(k - 1) * d for k, d in zip(kernel, layer.dilate, strict=True)]
        rows, length = (
            n + max(0, r - (p if s == 1 else 0)) // s
            for n, r, p, s in zip(size, reach, layer.pad, stride, strict=True)
        )
        # Of joined rows, nothing between them is computed, or moved.
        joined = joins_rows(layer, machine)
        by_row = not joined and ends_with_rows(size[1], length, layer.terms, False, machine.lanes)
        if joined:
            vectors = ceil_div(((batch - 1) * rows + size[0]) * size[1], machine.lanes)
        elif by_row:
            vectors = batch * size[0] * ceil_div(size[1], machine.lanes)
        else:
            vectors = ceil_div(batch * rows * length, machine.lanes)
        stored = vectors * VECTOR_STORED if joined or by_row else ROW_MOVED * batch * size[0]
        low = machine.rows // 2 if layer.in_group <= machine.rows // 2 else machine.rows
        steps = 1.0 if max(stride) == 1 else 1.1
        products = steps * vectors * groups * layer.terms * ceil_div(layer.in_group, low) * low
        planes = stride[0] * (kernel[1] if joined else stride[1])
        copied = padding_cost(batch * (size[0] + 1), layer.channels * planes)
        return products + copied + stored * layer.filters

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, prologue = arrays
        prologue = (shift, shift, shift, np.float32(0), 0) if prologue is None else prologue
        matrix, groups = weight.reshape(len(weight), -1), self.layer.groups
        plan = self.plan(self.layer, self.machine, other is not None)
        rest = len(matrix) // groups % ROWS
        if rest == HALF:  # a low tile, which is whole
            rest = 0
        last = np.zeros((groups, ROWS, matrix.shape[1]), np.float32)
        results = out.reshape(*out.shape[:2], *plan.result_shape)
        added = results if other is None else other.reshape(results.shape)
        epilogue = scale, shift, act, added, int(other is not None)

        def prepare(workers):
            own = fills_itself(workers, groups, plan.copying)
            if groups == 1 and not plan.by_filters:  # each fills what it needs alone
                own = own or 4 * workers * plan.padded <= self.machine.last_cache
            shape = (workers, plan.group_padded) if own else (1, plan.padded)
            padded_images, tiles = Scratch(shape, (workers, 2, ROWS * COLUMNS))()
            images, weights = (data, padded_images, plan.layout, prologue), (matrix, last)
            places = plan.computed, plan.offsets, groups, plan.by_filters
            filling = fill_padded, workers, data, plan.layout, prologue, workers, padded_images[0]
            sums = _sum_shifted, workers, images, *places, weights, epilogue, tiles, results
            return [*([] if own else [filling]), sums]

        run = Repeated(Calls(), out.size * matrix.shape[1] / MACHINE_LANES, prepare)
        return with_last_rows(run, matrix, last, rest)

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(layer, machine, added) -> Plan:
        """The plan; ``added``: whether something is added to the results."""
        kernel, stride, dilate, pad = layer.kernel, layer.stride, layer.dilate, layer.pad
        batch, channels, lanes = layer.batch, layer.channels, machine.lanes
        height, width = layer.out_size
        joined = joins_rows(layer, machine)
        sides = []
        reach = window_reach((height, width), kernel, stride, dilate)
        for need, size, s, p in zip(reach, layer.in_size, stride, pad, strict=True):
            shared = shared_zeros(need, size, p) if s == 1 and not joined else 0
            sides.append(ceil_div(need - shared, s))
        rows, length = max(sides[0], height), width if joined else max(sides[1], width)
        plane = batch * rows * length
        columns = (kernel[1], dilate[1]) if joined else (stride[1], 1)
        planes = stride[0] * columns[0]
        step = channel_step(plane * planes, lanes)
        taps = tap_places(kernel, stride, dilate, length, plane, joined)
        # The last channel's taps see so far; a tile may be wider than what there is.
        last = max(step, plane + max(taps) + machine.columns)
        padded, group_padded = (
            ceil_div((count - 1) * step + last, LINE) * LINE for count in (channels, channels // layer.groups)
        )
        image, y, _ = np.ogrid[:batch, :height, :1]
        if not joined and ends_with_rows(width, length, layer.terms, added, lanes):
            # The last vector of a row overlaps with the one before, where rows are not whole vectors.
            x = np.minimum(np.arange(0, width, lanes), width - lanes)
            starts = ((image * rows + y) * length + x).reshape(-1)
            targets = ((image * layer.filters * height + y) * width + x).reshape(-1)
            places = starts.size * lanes
        else:
            places, targets = ((batch - 1) * rows + height - 1) * length + width, np.empty(0, np.int64)
            starts = np.arange(0, places, lanes)
        # A tile may be wider than what there is.
        starts, targets = (np.pad(a, (0, machine.vectors * (a.size > 0)), "edge") for a in (starts, targets))
        side_by_side = np.arange(0, machine.columns, lanes)
        block = rows * length
        # What is read again for each tile of filters is the padded image; for each panel of places, the
        # weight.
        panels, tiles = places / machine.columns, layer.in_group / machine.rows
        weights = layer.filters * layer.terms
        by_panel = panels * weights * (4 * weights > machine.second_cache // 2)
        return Plan(
            layout=(stride, pad, (rows, length, step), columns),
            offsets=np.array(taps, np.int64),
            computed=(starts, targets, side_by_side, places, block, block if joined else length),
            by_filters=int(by_panel > tiles * channels * step),
            padded=padded,
            group_padded=group_padded,
            copying=padding_cost(batch * rows, channels * planes),
            result_shape=(1, height * width) if joined else (height, width),
        )
