"""Small windows on float32 planes, step 1 or 2: depthwise convolution, maxima and sums.

Where windows hang over the image's side, masked loads read nothing there, so that no plane is copied to a
frame; elsewhere, loads are plain. ``depthwise`` and ``pool`` have every other case, and say the same in
plainer words.

``tests/reference.py`` has the same in plain loops: ``convolution`` and ``pooling``.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ...jit import inner, parallel
from ...shares import taken
from ..product.emitter import IDENTITY, activation_of, emitted
from ..product.tiles import Rows
from ..vector import LINE, MACHINE_LANES, flat_of, repeat

#: Numbers of a row that are fetched while those before them are computed.
_AHEAD = 2 * LINE
#: Windows of depthwise convolutions.
_SIZES = (3, 5, 7)


def _takes(data, sizes, kernel, stride, pad):
    # Masked loads want a machine that has them.
    small = kernel in sizes and stride in ((1, 1, 1), (1, 2, 2)) and pad[0] == 0
    return MACHINE_LANES >= 8 and small and data.dtype == np.float32 and data.shape[-3] == 1


def convolves(data, window) -> bool:
    """Whether :func:`convolution` computes this."""
    kernel, stride, dilate, pad = window
    return dilate == (1, 1, 1) and _takes(data, [(1, n, n) for n in _SIZES], kernel, stride, pad)


def pools(data, kernel, stride, pad) -> bool:
    """Whether :func:`pool` computes this."""
    return _takes(data, ((1, 1, 1), (1, 2, 2), (1, 3, 3)), kernel, stride, pad)


class Plane(NamedTuple):
    """The pixels of one channel of an image, in a flat array."""

    array: np.ndarray
    at: int
    height: int
    width: int


_WORD = ir.IntType(32)
_LANES = ir.Constant(ir.VectorType(_WORD, MACHINE_LANES), list(range(MACHINE_LANES)))


def _inside(builder, start, limit):
    """Which of the lanes from position ``start`` on are in ``[0, limit)``."""
    start, limit = (repeat(builder, builder.trunc(each, _WORD), MACHINE_LANES) for each in (start, limit))
    # As unsigned numbers, negative ones are beyond any limit.
    return builder.icmp_unsigned("<", builder.add(_LANES, start), limit)


def _store_row(emit, result, row, rows, left, out):
    """Store one row of results: ``left`` numbers of it, or a vector.

    Where a row is shorter than a vector, the rest goes to where the next one will be written; only at the end
    of all rows it is held back. AMD's processors with AVX2 take a dozen cycles for a masked store.
    """
    builder, (first, width) = emit.builder, out
    to, room = emit.move(first, builder.mul(row, width)), builder.mul(builder.sub(rows, row), width)
    enough = builder.icmp_signed(">=", room, emit.number(MACHINE_LANES))
    with builder.if_else(enough) as (whole, part):
        with whole:
            emit.store(result, to)
        with part:
            emit.check(to, left, "store")
            emit.store_masked(result, to, _inside(builder, emit.number(0), left))


class _Pixels:
    """In a body: the pixels that the taps of a row of windows see, ``MACHINE_LANES`` windows side by side."""

    def __init__(self, emit, plane, x, size, step, empty):
        array, at, self.height, self.width = emit.members(plane)
        self.emit, self.x, self.size, self.nothing = emit, x, size, emit.constant(empty)
        self.first = emit.pointer(array, at, "plane")
        # With steps of 2, a pair of loads serves the taps kx and kx + 1.
        self.taps = [[kx + part * MACHINE_LANES for part in range(step)] for kx in range(0, size, step)]
        self.reach = self.taps[-1][-1] + MACHINE_LANES
        self.outside = emit.fixed([empty] * self.reach, "outside")

    def are_inside(self):
        """Whether all pixels of a row are there, where the row is."""
        builder = self.emit.builder
        beyond = builder.icmp_signed(">", builder.add(self.x, self.emit.number(self.reach)), self.width)
        return builder.not_(builder.or_(beyond, builder.icmp_signed("<", self.x, self.emit.number(0))))

    def masks(self) -> list:
        """Of each load, which lanes are pixels."""
        emit = self.emit
        return [
            [
                _inside(emit.builder, emit.builder.add(self.x, emit.number(place)), self.width)
                for place in each
            ]
            for each in self.taps
        ]

    def of_row(self, line, masks) -> list:
        """A vector for each tap; ``masks`` is None where all pixels of the row are inside."""
        emit, builder = self.emit, self.emit.builder
        valid = builder.icmp_unsigned("<", line, self.height)
        row = builder.select(valid, line, emit.number(0))
        begin = emit.move(self.first, builder.mul(row, self.width))
        emit.check(begin, self.width, "load")  # what the masks let through is within the row
        begin = emit.move(begin, self.x)
        # The rows of a large plane are not in a near cache, and lie too far apart to be foreseen.
        emit.prefetch(begin, _AHEAD * len(self.taps[0]))
        begin = emit.either(valid, begin, self.outside)
        values = []
        for k, places in enumerate(self.taps):
            if masks is None:
                parts = [emit.load(begin, place) for place in places]
            else:
                parts = [
                    emit.load_masked(emit.move(begin, place), lanes, self.nothing)
                    for place, lanes in zip(places, masks[k], strict=True)
                ]
            values += parts if len(parts) == 1 else emit.split(parts)
        return values[: self.size]


def _columns(size, step, empty, begin):
    """An intrinsic: ``MACHINE_LANES`` columns of results, row after row.

    Its arguments begin with a :class:`Plane` of pixels and the first window's y and x. Those of a convolution
    follow: the weight, the filter, and ``last``, its scale and shift and what :func:`activation_of` gives.
    They end with where the results go (:class:`~..product.tiles.Rows`), their rows, and how many columns
    there are: fewer than a vector holds only where a row of results is that short. Each row of pixels is
    loaded once and taken into the results of all windows that it belongs to.
    ``empty`` is what nothing makes. ``begin(emit, weight, f, last)`` stands before the loop and returns two
    functions: ``combine(ky, pixels, total)`` takes in what row ky of a window sees, ``epilogue(total)`` is
    last.
    """
    #: Windows that a row belongs to, at most; those that lack rows when a row comes.
    windows = -(-size // step)
    begun = windows - 1

    @emitted
    def columns(emit, plane, y, x, weight, f, last, out, rows, left):
        builder = emit.builder
        pixels = _Pixels(emit, plane, x, size, step, empty)
        nothing, out = pixels.nothing, emit.rows(out, "out")
        combine, epilogue = begin(emit, weight, f, last)

        def all_rows(masks):
            # Totals of the windows that lack rows, the one that began first in front.
            start = [y, builder.neg(emit.number(begun)), *[nothing] * begun]
            with emit.loop(builder.add(rows, emit.number(begun)), start) as loop:
                line, row, *totals = loop.values
                totals.append(nothing)
                for i in range(step):
                    seen = pixels.of_row(builder.add(line, emit.number(i)), masks)
                    for k in range(windows):
                        ky = (begun - k) * step + i
                        if ky < size:
                            totals[k] = combine(ky, seen, totals[k])
                with builder.if_then(builder.icmp_signed(">=", row, emit.number(0))):
                    _store_row(emit, epilogue(totals[0]), row, rows, left, out)
                line, row = builder.add(line, emit.number(step)), builder.add(row, emit.number(1))
                loop.advance([line, row, *totals[1:]])

        with builder.if_else(pixels.are_inside()) as (inside, edge):
            with inside:
                all_rows(None)
            with edge:
                all_rows(pixels.masks())

    # By which the kernels that have it as a part are told apart.
    columns.__qualname__ += f"[{begin.__qualname__}, {size}, {step}, {empty}]"
    return columns


def _convolution(size, step):
    def begin(emit, weight, f, last):
        first = emit.pointer(weight, emit.times(f, size * size), "weight")
        # Registers hold the weights of 3x3. Those of more lie in memory: repeated as vectors, or, where a
        # multiply-add can repeat a number itself (AVX-512), as they are.
        again = MACHINE_LANES == 16 and size > 3
        weights = [None if again else emit.load_splat(first, tap) for tap in range(size * size)]
        scale, shift, act = emit.members(last)
        scale, shift, act = emit.splat(scale), emit.splat(shift), emit.activation(act)

        def combine(ky, pixels, total):
            for kx, value in enumerate(pixels):
                tap = ky * size + kx
                factor = emit.load_splat(first, tap) if again else weights[tap]
                total = emit.fma(factor, value, total)
            return total

        return combine, lambda total: emit.activate([emit.fma(scale, total, shift)], act)[0]

    return _columns(size, step, 0.0, begin)


def _pooling(size, step, maximum):
    def begin(emit, weight, f, last):
        builder = emit.builder

        def combine(ky, pixels, total):
            for value in pixels:
                if maximum:  # a NaN is passed over
                    total = builder.select(builder.fcmp_ordered(">", value, total), value, total)
                else:
                    total = builder.fadd(total, value)
            return total

        return combine, lambda total: total

    return _columns(size, step, float(np.finfo(np.float32).min) if maximum else 0.0, begin)


#: Rows of results that are enough for a worker: what lies between two workers' rows, both read.
_ROWS = 16


@inner
def _first_column(strip, width):
    """Where a vector of results begins. The last one of a row overlaps with the one before it."""
    return max(0, min(strip * MACHINE_LANES, width - MACHINE_LANES))


def _kernel(columns, step):
    """The kernel that has ``columns`` compute all results."""

    @parallel(makes_arrays=False)
    def all_columns(share, data, weight, pad, epilogue, out):
        scale, shift, act = epilogue
        batch, filters, height, width = out.shape
        channels, in_height, in_width = data.shape[1:]
        multiplier, planes = filters // channels, batch * filters
        flat, flat_weight, flat_out = flat_of(data), flat_of(weight), flat_of(out)
        workers = share[1]
        # Rows of each plane, as 1x1 layers are divided, where there are enough.
        of_each = batch < workers and height >= _ROWS * workers
        cuts = workers if of_each else min(height, 1 + 8 * (workers - 1) // max(1, planes))
        for item in taken(share, planes * cuts):
            cut, plane = divmod(item, planes) if of_each else (item % cuts, item // cuts)
            begin, end = cut * height // cuts, (cut + 1) * height // cuts
            n, f = divmod(plane, filters)
            at = (n * channels + f // multiplier) * in_height * in_width
            pixels, last = Plane(flat, at, in_height, in_width), (scale[f], shift[f], activation_of(act, f))
            top = begin * step - pad[0]
            for strip in range((width + MACHINE_LANES - 1) // MACHINE_LANES):
                ow = _first_column(strip, width)
                x, left = ow * step - pad[1], width - ow
                into = Rows(flat_out, (plane * height + begin) * width + ow, width)
                columns(pixels, top, x, flat_weight, f, last, into, end - begin, left)

    return all_columns


_CONVOLVERS = {(size, step): _kernel(_convolution(size, step), step) for size in _SIZES for step in (1, 2)}


def convolution(data, weight, window, epilogue, out):
    """The kernel of a depthwise convolution where :func:`convolves` says so, its arguments, and its results.

    ``epilogue`` is ``(scale, shift, act)``.
    """
    kernel, stride, _, pad = window
    kernel = _CONVOLVERS[kernel[1], stride[1]]
    return kernel, (data[:, :, 0], weight, pad[1:], epilogue), out[:, :, 0]


#: Stands for the epilogue of a pooling, which has none.
_UNUSED = np.ones(1, np.float32), np.ones(1, np.float32), IDENTITY
_POOLERS = {
    (size, step, maximum): _kernel(_pooling(size, step, maximum), step)
    for size in (1, 2, 3)
    for step in (1, 2)
    for maximum in (False, True)
}


def pooling(data, kernel, stride, pad, maximum, out):
    """Where :func:`pools` says so, the work, the kernel with its arguments, and its results.

    It computes the maximum or the sum of each window; of none, the least number or 0.
    """
    work = out.size * (kernel[1] * kernel[2] + 4) / MACHINE_LANES
    arguments = data, data, pad[1:], _UNUSED  # no weight is read, either
    return work, (_POOLERS[kernel[1], stride[1], maximum], *arguments), out
