"""Convolution of float32 images as a sum of shifted images, without unrolling them.

An image is copied once into a *frame*: zeros around it, and its pixels sorted by their remainders to the
strides, each remainder a plane of its own. There the pixels that one tap of the kernel wants for neighbouring
results lie side by side, at a distance from the results' own place that is the same everywhere. So a tile of
results is a sum, over channels and taps, of one weight times one run of the frame. Results that fall between
the rows or between the images are computed and not stored.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from ...jit import Calls, inner, parallel, within
from ..product.caches import LAST_CACHE, SECOND_CACHE
from ..product.emitter import COLUMNS, ROWS, VECTORS, Emitter
from ..product.panels import copy_run, first_item, scale_run
from ..product.tiles import (
    FEW,
    Entry,
    Finish,
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


def frame_reach(out_size, kernel, stride, dilate) -> list[int]:
    """How many rows and columns the taps reach over."""
    sides = zip(out_size, stride, kernel, dilate, strict=True)
    return [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in sides]


def shared_zeros(reach: int, size: int, pad: int) -> int:
    """The zeros at the end of a row that serve as those in front of the next one, too."""
    return min(pad, max(0, reach - pad - size))


def channel_step(places: int) -> int:
    """The floats from a channel of a frame to the next, each of so many places.

    A channel starts at a cache line, an odd number of lines after the one before: an even number, a power of
    two above all, would bring all channels to the same few places of a cache.
    """
    return (-(-places // MACHINE_LANES) | 1) * MACHINE_LANES


def tap_places(kernel, stride, dilate, length: int, plane: int, joined=False) -> list[int]:
    """How far each tap's pixels lie from the first tap's, in a frame of rows of ``length``.

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


def joins_rows(batch, channels, size, kernel, stride) -> bool:
    """Whether a frame holds the pixels of each column of taps by themselves, in rows like the results'.

    Rows then follow each other as the results do: nothing between them is computed, or moved. Rows of whole
    vectors do so anyway. It is not worth frames that leave the nearer caches.
    """
    floats = batch * channels * kernel[1] * size[1] * (size[0] * stride[0] + kernel[0])
    return size[1] % MACHINE_LANES > 0 and 4 * floats <= SECOND_CACHE // 2


def ends_with_rows(width: int, length: int, terms: int, added: bool) -> bool:
    """Whether each vector of results lies in one row of the output, of ``length`` places in the frame.

    Otherwise vectors go on from row to row: then less is computed, and results are moved afterwards. Vectors
    that overlap would add twice what is added to the results.
    """
    if width % MACHINE_LANES == 0:
        return True
    if width < MACHINE_LANES or added:
        return False
    vectors = -(-width // MACHINE_LANES)
    return vectors * (terms + VECTOR_STORED) < length / MACHINE_LANES * terms + ROW_MOVED


#: Cycles, about, of storing a vector of results, and of moving a row of them.
VECTOR_STORED, ROW_MOVED = 10, 58
#: A frame that takes no more cycles than this to fill, each worker fills for itself, while it computes: one
#: that another has filled comes from the other's cache.
OWN_FRAME = 60_000


def fills_itself(workers: int, groups: int, copying: int) -> bool:
    """Whether each worker fills a frame of its own; ``copying`` is what the whole frame takes."""
    return workers == 1 or copying <= OWN_FRAME or 1 < workers <= groups


def frame_cost(rows: int, planes: int) -> int:
    """Cycles, about, of filling a frame of so many rows a plane."""
    return 25 * rows * planes


def _tile(height, vectors):
    @intrinsic
    def tile(typing, weight, frame, starts, channels, offsets, out, targets, finish, row):
        """``frame`` has a row for each channel, and ``offsets`` the places of the taps in it.

        ``starts``: where the vectors of results begin in the frame, and which of them is the first;
        ``targets`` are their places in the rows of ``out`` in the same way.
        """
        i = types.int64
        signature = types.void(weight, frame, starts, i, offsets, out, targets, finish, i)

        def generate(context, builder, signature, args):
            emit, kinds = Emitter(context, builder), signature.args
            factors, weight_step = emit.rows(kinds[0], args[0])
            origin, channel_step = emit.rows(kinds[1], args[1])

            def numbers(k):
                first = emit.pointer(kinds[k][0], *emit.members(args[k]))
                return [builder.load(emit.move(first, v)) for v in range(vectors)]

            begin, *others = numbers(2)
            start, beside = emit.move(origin, begin), [builder.sub(other, begin) for other in others]
            places = context.make_array(kinds[4])(context, builder, args[4])
            taps = builder.extract_value(places.shape, 0)
            zeros = [emit.constant(0)] * (height * vectors)
            with emit.loop(args[3], [start, factors, *zeros]) as channel:
                image, first, *sums = channel.values
                with emit.loop(taps, [first, places.data, *sums]) as tap:
                    factor, place, *sums = tap.values
                    columns = builder.gep(image, [builder.load(place)])
                    right = [emit.load(columns, by) for by in (0, *beside)]
                    for r in range(height):
                        number = emit.load_splat(factor, emit.times(weight_step, r))
                        for v in range(vectors):
                            sums[r * vectors + v] = emit.fma(number, right[v], sums[r * vectors + v])
                    tap.advance([emit.move(factor, 1), emit.move(place, 1), *sums])
                channel.advance([emit.move(image, channel_step), tap.results[0], *tap.results[2:]])
            sums = channel.results[2:]
            finish = emit.finish(kinds[7], args[7], args[8], emit.members(args[5])[1])
            store_finished(emit, by_rows(sums, vectors), emit.rows(kinds[5], args[5]), finish, numbers(6))
            return context.get_dummy_value()

        return signature, generate

    return tile


#: Of a few filters, as the groups of a convolution have them, most rows of a full tile would be empty.
HALF = ROWS // 2
_full_tile, _narrow_tile, _low_tile = _tile(ROWS, VECTORS), _tile(ROWS, FEW), _tile(HALF, VECTORS)


@inner
def _clear(frame, first, stop):
    """Zeros from ``first`` to before ``stop``, and nothing beyond them."""
    if stop - first < MACHINE_LANES:
        for i in range(first, stop):
            frame[i] = 0
        return
    for i in range(first, stop - MACHINE_LANES, MACHINE_LANES):
        clear_vector(frame, i)
    clear_vector(frame, stop - MACHINE_LANES)


class _Source(NamedTuple):
    """Where rows are read: the first pixel, and the steps to the next row and to the next pixel."""

    at: int
    at_step: int
    step: int


@inner
def _fill_rows(flat, source, count, entry, frame, to, length, rows, end):
    """Rows of ``count`` pixels, each with zeros up to where the next one begins.

    ``source`` is a :class:`_Source`, ``entry`` an :class:`Entry` of one channel; where that is used, the step
    from pixel to pixel is 1. Nothing from ``end`` on is written. What follows the zeros is spoiled, where
    there is room: the next row is written after it.
    """
    at, at_step, step = source
    mean, scale, shift, floor, enters = entry
    vectors = (count + MACHINE_LANES - 1) // MACHINE_LANES * MACHINE_LANES
    reach = vectors * step if step <= 2 else flat.shape[0] + 1
    room = max(vectors, length + MACHINE_LANES - 1)
    done = 0
    if step == 1 and at_step == length and rows > 0:  # of joined rows: as far apart as in the image
        run = (rows - 1) * length + count
        if enters:
            scale_run(flat, at, frame, to, run, mean, scale, shift, floor)
        else:
            copy_run(flat, at, frame, to, run)
        for row in range(rows - 1):
            for i in range(to + row * length + count, to + (row + 1) * length):
                frame[i] = 0
        done, to = rows, to + rows * length
        _clear(frame, to - length + count, min(to, end))
    while done < rows and at + reach <= flat.shape[0] and to + room <= end:
        for i in range(0, count, MACHINE_LANES):
            if enters:
                scale_vector(flat, at + i, frame, to + i, mean, scale, shift, floor)
            elif step == 1:
                copy_vector(flat, at + i, frame, to + i)
            else:
                copy_every_second(flat, at + 2 * i, frame, to + i)
        for i in range(to + count, to + length, MACHINE_LANES):
            clear_vector(frame, i)
        done, at, to = done + 1, at + at_step, to + length
    for _ in range(done, rows):  # the last ones, with nothing beyond them
        if enters:
            scale_run(flat, at, frame, to, count, mean, scale, shift, floor)
        else:
            for i in range(count):
                frame[to + i] = flat[at + i * step]
        _clear(frame, to + count, min(to + length, end))
        at, to = at + at_step, to + length


@inner
def fill_channels(data, layout, entry, held, first, last, lines, frame):
    """Copy channels ``[first, last)`` of the images, as the :class:`Entry` makes them, to a frame.

    The frame is for the channels ``held[0]`` to ``held[1]``.

    It is ``[channel][remainder of y][plane of columns][image][row][column]``. ``layout``: stride and pad; the
    rows of a plane, their length and the step from channel to channel; how many planes of columns there are,
    and how many pixels further each begins than the one before. ``lines``: the first and the end of what is
    wanted of each plane's rows, counted from image to image.
    """
    stride, pad, (rows, length, channel_step), (planes, apart) = layout
    batch, channels, height, width = data.shape
    mean, scale, shift, floor, enters = entry
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
                _clear(frame, begin, min(begin + top * length + skip, frame.shape[0]))
        for n in range(lines[0] // rows, (lines[1] + rows - 1) // rows):
            begin, stop = max(0, lines[0] - n * rows), min(rows, lines[1] - n * rows)
            seen = min(max(begin, top), stop)
            unseen = max(seen, min(stop, bottom))
            y = seen * stride[0] + ry - pad[0]
            for c in range(first, last):
                begun = (c - held[0]) * channel_step
                end = begun + channel_step if c + 1 < held[1] else frame.shape[0]
                to = begun + number * plane + n * rows * length
                into = to + seen * length + skip
                _clear(frame, to + begin * length, min(into, end))
                at = ((n * channels + c) * height + y) * width + x
                source = _Source(at, stride[0] * width, step)
                of_channel = flat[0], flat[0], flat[0], floor, enters
                if enters:
                    of_channel = mean[c], scale[c], shift[c], floor, enters
                _fill_rows(flat, source, count, of_channel, frame, into, length, unseen - seen, end)
                _clear(frame, to + unseen * length, to + stop * length)
    for c in range(first, last):
        # The last row's window may reach beyond the planes, into the next channel's first rows: the zeros
        # above an image serve as those below the one before.
        begun = (c - held[0]) * channel_step
        after = begun + stride[0] * planes * plane
        end = begun + channel_step if c + 1 < held[1] else frame.shape[0]
        end = max(end, min(after + pad[0] * length + pad[1], end + lines[0] * length, frame.shape[0]))
        _clear(frame, after, end)
    # The channel that comes next may be another worker's; there are zeros in front of it in any case.
    zeros = -(-pad[0] // stride[0]) * length + min(length, -(-pad[1] // step))
    stop = (last - held[0]) * channel_step
    _clear(frame, stop, min(stop + zeros, frame.shape[0]))


@parallel
def fill_frame(share, data, layout, entry, workers, frame):
    """:func:`fill_channels` of all channels, for a frame that all workers read."""
    stride, pad, sizes, columns = layout
    mean, scale, shift, floor, enters = entry
    channels = data.shape[1]
    for w in within(share, workers):
        first, last = w * channels // workers, (w + 1) * channels // workers
        lines = np.int64(0), data.shape[0] * sizes[0]
        before = Entry(mean, scale, shift, floor, enters)
        held = np.int64(0), channels
        fill_channels(data, (stride, pad, sizes, columns), before, held, first, last, lines, frame)


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
def _sum_shifted(share, images, computed, offsets, groups, by_filters, weights, finish, tiles, out):
    """``images``: the data, its frames, their layout, and what becomes of the data on the way.

    There is a frame for each worker, which it fills with a group's channels, or one for all that is filled.
    The layout is that of :func:`fill_channels`. ``computed`` says what is: where each vector of results
    starts in the frame; where in ``out`` it goes, if each lies in one row; where in a tile its vectors lie;
    and how many places for results there are in all, in an image and in a row. ``weights`` are the whole
    weight and what follows its last whole tile; the way and ``finish`` hold what :class:`Entry` and
    :class:`Finish` do.
    """
    data, frames, layout, entry = images
    stride, pad, sizes, columns = layout
    mean, in_scale, in_shift, floor, enters = entry
    channel_step = sizes[2]
    starts, targets, side_by_side, places, block, length = computed
    by_row = targets.shape[0] > 0
    weight, last_rows = weights
    scale, shift, act, other, add_other = finish
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
        frame = frames[w if frames.shape[0] > 1 else 0]
        own, filled = frames.shape[0] == workers, np.int64(-1)
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
                planes, before = (stride, pad, sizes, columns), Entry(mean, in_scale, in_shift, floor, enters)
                fill_channels(data, planes, before, held, held[0], held[1], lines, frame)
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
            seen, here = Rows(frame, 0 if own else g * channels * channel_step, channel_step), (starts, first)
            onto = (targets, first) if by_row and whole else (side_by_side, 0)
            into = Finish(scale, shift, act, around, add_other)
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


def with_last_rows(run, matrix, last, rest):
    """``run``, which finds the last ``rest`` filters of each group in ``last``, with their tile filled up."""
    if not rest:
        return run
    rows = matrix.reshape(len(last), -1, matrix.shape[1])[:, -rest:]

    def copy_and_run():
        last[:, :rest] = rows
        run()

    return copy_and_run


class Shifted:
    """Convolution with any kernel, stride, dilation and padding, on one or two axes."""

    def __init__(self, kernel, stride, dilate, pad, groups):
        self._window = kernel, stride, dilate, pad
        self._groups = groups
        self._key = None
        self._call = Calls()
        #: Whether :meth:`bind` takes an ``entry``.
        self.enters = stride[1] == 1

    def __call__(self, *arrays):
        """Compute once what :meth:`bind` describes."""
        self.bind(*arrays)()

    def bind(self, data, weight, scale, shift, act, other, out, entry=None):
        """A call of ``out = act(scale * convolution + shift + other)``; ``other`` may be None.

        ``scale`` and ``shift`` are longer than the filters by ``ROWS``. ``entry`` is what an :class:`Entry`
        does to the data on the way.
        """
        entry = (shift, shift, shift, np.float32(0), 0) if entry is None else entry
        matrix = weight.reshape(len(weight), -1)
        key = data.shape, matrix.shape, other is not None
        if key != self._key:
            self._key = key
            self._plan(data.shape, matrix.shape, out.shape, other is not None)
        rest = len(matrix) // self._groups % ROWS
        if rest == HALF:  # a low tile, which is whole
            rest = 0
        last = np.zeros((self._groups, ROWS, matrix.shape[1]), np.float32)
        results = out.reshape(*out.shape[:2], *self._result_shape)
        added = results if other is None else other.reshape(results.shape)
        finish = scale, shift, act, added, int(other is not None)

        def prepare(workers):
            own = fills_itself(workers, self._groups, self._copying)
            if self._groups == 1 and not self._by_filters:  # each fills what it needs alone
                own = own or 4 * workers * self._frame <= LAST_CACHE
            shape = (workers, self._group_frame) if own else (1, self._frame)
            frames, tiles = Scratch(shape, (workers, 2, ROWS * COLUMNS))()
            images, weights = (data, frames, self._layout, entry), (matrix, last)
            places = self._computed, self._offsets, self._groups, self._by_filters
            filling = fill_frame, workers, data, self._layout, entry, workers, frames[0]
            sums = _sum_shifted, workers, images, *places, weights, finish, tiles, results
            return [*([] if own else [filling]), sums]

        run = Repeated(self._call, out.size * matrix.shape[1] / MACHINE_LANES, prepare)
        return with_last_rows(run, matrix, last, rest)

    def _plan(self, data_shape, matrix_shape, out_shape, added):
        kernel, stride, dilate, pad = self._window
        batch, channels, in_height, in_width = data_shape
        height, width = out_shape[2:]
        joined = joins_rows(batch, channels, (height, width), kernel, stride)
        sides = []
        reach = frame_reach((height, width), kernel, stride, dilate)
        for need, size, s, p in zip(reach, (in_height, in_width), stride, pad, strict=True):
            shared = shared_zeros(need, size, p) if s == 1 and not joined else 0
            sides.append(-(-(need - shared) // s))
        rows, length = max(sides[0], height), width if joined else max(sides[1], width)
        plane = batch * rows * length
        columns = (kernel[1], dilate[1]) if joined else (stride[1], 1)
        planes = stride[0] * columns[0]
        self._copying = frame_cost(batch * rows, channels * planes)
        step = channel_step(plane * planes)
        self._layout = stride, pad, (rows, length, step), columns
        taps = tap_places(kernel, stride, dilate, length, plane, joined)
        self._offsets = np.array(taps, np.int64)
        # The last channel's taps see so far; a tile may be wider than what there is.
        last = max(step, plane + max(taps) + COLUMNS)
        self._frame, self._group_frame = (
            -(-((count - 1) * step + last) // LINE) * LINE for count in (channels, channels // self._groups)
        )
        self._result_shape = (1, height * width) if joined else (height, width)
        image, y, _ = np.ogrid[:batch, :height, :1]
        if not joined and ends_with_rows(width, length, matrix_shape[1], added):
            # The last vector of a row overlaps with the one before, where rows are not whole vectors.
            x = np.minimum(np.arange(0, width, MACHINE_LANES), width - MACHINE_LANES)
            starts = ((image * rows + y) * length + x).reshape(-1)
            targets = ((image * out_shape[1] * height + y) * width + x).reshape(-1)
            places = starts.size * MACHINE_LANES
        else:
            places, targets = ((batch - 1) * rows + height - 1) * length + width, np.empty(0, np.int64)
            starts = np.arange(0, places, MACHINE_LANES)
        # A tile may be wider than what there is.
        starts, targets = (np.pad(a, (0, VECTORS * (a.size > 0)), "edge") for a in (starts, targets))
        side_by_side = np.arange(0, COLUMNS, MACHINE_LANES)
        block = rows * length
        self._computed = starts, targets, side_by_side, places, block, block if joined else length
        # What is read again for each tile of filters is the frame; for each panel of places, the weight.
        panels, tiles = places / COLUMNS, matrix_shape[0] / self._groups / ROWS
        weights = matrix_shape[0] * matrix_shape[1]
        by_panel = panels * weights * (4 * weights > SECOND_CACHE // 2)
        self._by_filters = int(by_panel > tiles * channels * step)
