"""The transforms of Winograd's minimal filtering F(4x4, 3x3), on vectors of tiles, filters or channels.

The results of a filter g on a tile d of 6x6 pixels are ``A ((G g G') * (B d B')) A'`` (Lavin and Gray,
arXiv 1509.09308), with ``A = RESULTS``, ``G = FILTERS`` and ``B = TILES``. The gradient of g takes the same
matrices, transposed.

They interpolate at 0, +-5/8, +-3/2 and infinity. These points are exact in binary and spread the weights so
evenly that results are within about 2e-6 of the largest one (0, +-1, +-2, the usual choice: 6e-6).
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ..product.emitter import ROWS, emitted
from ..product.tiles import by_rows
from ..vector import BLOCK, MACHINE_LANES

#: Results, pixels and taps of a tile in each direction.
OUT, IN, TAPS = 4, 6, 3
#: The numbers of a transformed tile, and of a filter's channel: products are made for each of them.
PARTS = IN * IN
#: Pairs of neighbouring tiles in a vector, and the pixels of a pair, which are loaded at once.
PAIRS = MACHINE_LANES // 2
_PAIR = ir.VectorType(ir.FloatType(), 2 * OUT)
_POINTS = (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)


def _matrices():
    """``(A, G, B)``."""
    points = np.array(_POINTS)
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(p - rest) for p, rest in zip(points, others, strict=True)])
    powers = points[:, None] ** np.arange(OUT)
    results = np.vstack([powers, [0, 0, 0, 1]]).T
    filters = np.vstack([points[:, None] ** np.arange(TAPS) / scale[:, None], [0, 0, 1]])
    tiles = np.zeros((IN, IN))
    for i, rest in enumerate(others):
        tiles[i, : IN - 1] = np.poly(rest)[::-1]
    tiles[IN - 1] = np.poly(points)[::-1]
    return results, filters, tiles


RESULTS, FILTERS, TILES = _matrices()


def _two_sided(emit, matrix, lines, aside=None):
    """A square of vectors, transformed along each of its ``lines`` and then across them.

    What comes of number i of all lines is yielded before the next: nothing else need stay in registers.
    ``aside``: memory for what is between the two, where that is better than what the compiler would do.
    """
    matrix, along = matrix.tolist(), []
    for k, line in enumerate(lines):
        values = emit.transform(matrix, line)
        if aside is not None:
            for i, value in enumerate(values):
                emit.store(value, aside, (i * IN + k) * MACHINE_LANES)
        along.append(values)
    for i in range(len(matrix)):
        across = [line[i] for line in along]
        if aside is not None:
            across = [emit.load(aside, (i * IN + k) * MACHINE_LANES) for k in range(len(along))]
        yield emit.transform(matrix, across)


def _of_squares(matrix):
    """An intrinsic that takes a square of vectors to ``matrix @ square @ matrix.T``.

    ``(source, source_at, row_step, column_step, out, out_at, out_step)``: the results, row by row, are
    ``out_step`` apart.
    """
    count = matrix.shape[1]

    @emitted
    def transform(emit, source, source_at, row_step, column_step, out, out_at, out_step):
        first, target = emit.pointer(source, source_at, "source"), emit.pointer(out, out_at, "out")
        columns = [emit.move(first, emit.times(column_step, x)) for x in range(count)]
        squares = ([emit.load(each, emit.times(row_step, y)) for y in range(count)] for each in columns)
        for y, row in enumerate(_two_sided(emit, matrix, squares)):
            for x, value in enumerate(row):
                emit.store(value, target, emit.times(out_step, y * len(matrix) + x))

    return transform


#: Of tiles of pixels; of tiles of results' gradients, for the gradient of a filter; of the sums of that.
transform_pixels, transform_heads, transform_sums = map(_of_squares, (TILES, RESULTS.T, FILTERS.T))


@emitted
def transform_tiles(emit, lines, step, pairs, first, aside, out, out_at, out_step):
    """Transform a vector of tiles: 6 lines of pixels, ``step`` apart, become 36 vectors.

    ``pairs``: where in a line the pixels of each pair of neighbouring tiles begin, and which pair is the
    first. ``aside`` is memory for 36 vectors.
    """
    line, places = emit.pointer(lines, 0, "pixels"), emit.pointer(pairs, first, "pairs")
    begins = [emit.move(line, emit.load_number(places, k)) for k in range(PAIRS)]
    aside, target = emit.pointer(aside, 0, "aside"), emit.pointer(out, out_at, "out")

    def pixels(y):
        row = [emit.move(begin, emit.times(step, y)) for begin in begins]
        # The first four pixels of each tile, and the two that are also the next tile's.
        of_pairs = (emit.join([emit.load(each, x, vector=_PAIR) for each in row]) for x in (0, OUT))
        each = range(0, MACHINE_LANES * OUT, OUT)
        return [
            emit.shuffle(pixels, pixels, [lane + k for lane in each])
            for pixels, count in zip(of_pairs, (OUT, IN - OUT), strict=True)
            for k in range(count)
        ]

    for x, column in enumerate(_two_sided(emit, TILES, map(pixels, range(IN)), aside)):
        for y, value in enumerate(column):
            emit.store(value, target, emit.times(out_step, y * IN + x))


@emitted
def transform_taps(emit, taps, one, two, out, out_at, out_step):
    """Transform two neighbouring channels of ``ROWS`` filters: 9 rows of taps each become 36 rows of both.

    The taps begin at ``one`` and at ``two``, ``BLOCK`` apart.
    """
    single, both = emit.with_lanes(ROWS), emit.with_lanes(2 * ROWS)
    channels = [emit.pointer(taps, at, "taps") for at in (one, two)]
    target = emit.pointer(out, out_at, "out")

    def tap(y, x):
        return emit.join([single.load(channel, (y * TAPS + x) * BLOCK) for channel in channels])

    columns = ([tap(y, x) for y in range(TAPS)] for x in range(TAPS))
    for y, row in enumerate(_two_sided(both, FILTERS, columns)):
        for x, value in enumerate(row):
            both.store(value, target, both.times(out_step, y * IN + x))


class Lines(NamedTuple):
    """Where the results of a vector of tiles go, 4 lines for each pair of neighbours."""

    #: A flat array; where the results of one filter begin in it; and the step from line to line.
    array: np.ndarray
    at: int
    step: int
    #: How far beyond that the results of each pair begin, and which pair is the first.
    pairs: np.ndarray
    first: int
    #: Whether pairs do not follow one another; otherwise all are stored from where the first one begins.
    apart: int


@emitted
def transform_results(emit, products, lines, epilogue):
    """Transform the 36 products of ``MACHINE_LANES`` tiles to pixels.

    ``products`` are :class:`Rows`, ``lines`` are :class:`Lines`; ``epilogue`` is a :class:`Epilogue` of one
    filter, whose ``scale`` and ``shift`` are numbers, ``act`` what
    :func:`~..product.emitter.activation_of` gives, and ``other`` an array like that of the lines.
    """
    source, product_step = emit.rows(products, "products")
    out, at, step, pairs, first, apart = emit.members(lines)
    target, places = emit.pointer(out, at, "out"), emit.pointer(pairs, first, "pairs")
    scale, shift, act, *_ = emit.members(epilogue)
    other, add_other = emit.other(epilogue, at)
    scale, shift, act = emit.splat(scale), emit.splat(shift), emit.activation(act)
    columns = (
        [emit.load(source, emit.times(product_step, y * IN + x)) for y in range(IN)] for x in range(IN)
    )
    values = []
    for row in _two_sided(emit, RESULTS, columns):
        values += emit.interleave([emit.fma(scale, value, shift) for value in row])

    def lines_of(span, count):
        """Where the first pairs' results are, for each line."""
        begins = [emit.move(span, emit.load_number(places, k)) for k in range(count)]
        return [[emit.move(begin, emit.times(step, y)) for begin in begins] for y in range(OUT)]

    def with_other():
        lines = ([emit.load(each, vector=_PAIR) for each in line] for line in lines_of(other, PAIRS))
        added = [each for line in lines for each in emit.parted(line, MACHINE_LANES)]
        return [emit.builder.fadd(value, each) for value, each in zip(values, added, strict=True)]

    rows = by_rows(emit.activate(emit.choose(add_other, with_other, values), act), OUT)
    with emit.builder.if_else(emit.builder.icmp_signed("!=", apart, emit.number(0))) as (separate, whole):
        with separate:
            for row, line in zip(rows, lines_of(target, PAIRS), strict=True):
                for pair, place in zip(emit.parted(row, _PAIR.count), line, strict=True):
                    emit.store(pair, place)
        with whole:
            for row, (place,) in zip(rows, lines_of(target, 1), strict=True):
                for k, value in enumerate(row):
                    emit.store(value, place, k * MACHINE_LANES)
