"""Matrix products of float32 in register tiles.

A tile of ``ROWS`` by ``COLUMNS`` results is computed at once: its left factor is read in place, row by row,
its right factor from a *panel*, ``COLUMNS`` columns stored one after the other for each term of the sum.
"""

from typing import NamedTuple

import numpy as np

from ...jit import inner
from ..vector import LINE, MACHINE_LANES
from .emitter import BY_ELEMENT, COLUMNS, ROWS, VECTORS, emitted
from .machine import HERE


class Rows(NamedTuple):
    """Rows of a flat float32 array: they begin at ``at``, ``step`` floats apart."""

    array: np.ndarray
    at: int
    step: int


class Epilogue(NamedTuple):
    """What becomes of a sum: ``act(scale * sum + shift + other)``.

    ``scale`` and ``shift`` hold a number for each filter; ``act`` is an :func:`~.emitter.activation`.
    ``other`` is an array like the results; it is added where ``add_other`` is not 0.
    """

    scale: np.ndarray
    shift: np.ndarray
    act: tuple
    other: np.ndarray
    add_other: int


class Prologue(NamedTuple):
    """What data become on their way into a sum: ``max((data - mean) * scale + shift, floor)``.

    ``mean``, ``scale`` and ``shift`` hold a number for each channel. Where ``used`` is 0, data stay as they
    are.
    """

    mean: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    floor: float
    used: int


_NOTHING = np.zeros(1, np.float32)
#: One that is not used.
AS_THEY_ARE = Prologue(_NOTHING, _NOTHING, _NOTHING, np.float32(0), 0)


@inner(makes_arrays=False)
def prologue_of(prologue, c) -> Prologue:
    """That of one channel: numbers in place of the arrays."""
    mean, scale, shift, floor, used = prologue
    if used:
        return Prologue(mean[c], scale[c], shift[c], floor, used)
    return Prologue(floor, floor, floor, floor, used)


def _moved(load):
    """An intrinsic ``(source, source_at, target, target_at)``: one vector, as ``load`` reads it."""

    @emitted
    def move(emit, source, source_at, target, target_at):
        value = load(emit, emit.pointer(source, source_at, "source"))
        emit.store(value, emit.pointer(target, target_at, "target"))

    return move


#: Copy ``MACHINE_LANES`` neighbouring floats of a flat array to another, or every second one.
copy_vector = _moved(lambda emit, source: emit.load(source))
copy_every_second = _moved(lambda emit, source: emit.deinterleave(source, 2)[0])


@emitted
def scale_vector(emit, source, source_at, target, target_at, prologue):
    """Copy ``MACHINE_LANES`` floats as a :class:`Prologue` of one channel makes them; NaN stays NaN."""
    builder = emit.builder
    mean, scale, shift, floor = map(emit.splat, emit.members(prologue)[:4])
    value = emit.load(emit.pointer(source, source_at, "source"))
    value = builder.fadd(builder.fmul(builder.fsub(value, mean), scale), shift)
    value = builder.select(builder.fcmp_ordered("<", value, floor), floor, value)
    emit.store(value, emit.pointer(target, target_at, "target"))


@emitted
def clear_vector(emit, target, target_at):
    """Set ``MACHINE_LANES`` floats of a flat array to 0."""
    emit.store(emit.constant(0), emit.pointer(target, target_at, "target"))


def _add_terms(emit, count, places, steps, row_step, right_of, sums, *, height=ROWS, packed=False):
    """Add so many terms to the ``sums`` of a tile of ``height`` rows; the places after them, and the sums.

    ``places``: of the left factor, of the right one, and of what is fetched meanwhile, if anything is. They
    go ``steps`` further with each term. ``row_step`` is that from row to row of the left factor; ``packed``:
    the rows' numbers of one term are neighbours. ``right_of(place, k)``: the vectors of the k-th term from
    a place of the right factor on.
    """
    several, carried, rows = len(places), [*places, *sums], range(height)

    def add(length, numbers_of, loop):
        left, right, *soon = loop.values[:several]
        sums = loop.values[several:]
        for k, numbers in enumerate(numbers_of(left)):
            for line in soon:
                emit.prefetch(line, emit.times(steps[2], k))
            sums = emit.add_products(numbers, right_of(right, k), sums)
        moved = zip(loop.values[:several], steps, strict=False)
        loop.advance([*(emit.move(place, emit.times(step, length)) for place, step in moved), *sums])

    def numbers_of_four(left):
        loaded = [emit.load(left, emit.times(row_step, i)) for i in rows]
        return [[emit.splat_lane(each, k) for each in loaded] for k in range(4)]

    def numbers_of_one(left):
        if BY_ELEMENT and packed:
            quads = [emit.load(left, i) for i in range(0, ROWS, 4)]
            return [[emit.splat_lane(quads[i // 4], i % 4) for i in rows]]
        return [(emit.load_splat(left, emit.times(row_step, i)) for i in rows)]

    if BY_ELEMENT and not packed:
        side_by_side = emit.builder.icmp_signed("==", steps[0], emit.number(1))
        quads = emit.builder.sdiv(count, emit.number(4))
        quads = emit.builder.select(side_by_side, quads, emit.number(0))
        with emit.loop(quads, carried) as four:
            add(4, numbers_of_four, four)
        carried, count = four.results, emit.builder.sub(count, emit.times(quads, 4))
    with emit.loop(count, carried) as term:
        add(1, numbers_of_one, term)
    return term.results[:several], term.results[several:]


def _sum_tile(emit, left, term_step, panel, terms, out, vectors, *, packed=False):
    """The sums of a tile, a list of vectors for each row. The lines they will be stored to come meanwhile.

    ``left`` and ``out`` are what :meth:`Emitter.rows` gives. Of a ``packed`` left factor, the step is how far
    the next tile's numbers lie, which are fetched meanwhile.
    """
    left, step = left
    _bring_lines(emit, _rows_of(emit, out), vectors * MACHINE_LANES, write=True)
    places, row_step = [left, panel], step
    if packed:
        places, row_step = [left, panel, emit.move(left, step)], emit.number(1)

    def right_of(place, k):
        return [emit.load(place, k * COLUMNS + v * MACHINE_LANES) for v in range(vectors)]

    steps = term_step, emit.number(COLUMNS), emit.number(ROWS)
    zeros = [emit.constant(0)] * (ROWS * vectors)
    _, sums = _add_terms(emit, terms, places, steps, row_step, right_of, zeros, packed=packed)
    return by_rows(sums, vectors)


def _bring_lines(emit, rows, width, *, write):
    """Ask for the lines of ``width`` numbers from each of some places on: they come during the sums."""
    for row in rows:
        for i in range(0, width + LINE, LINE):
            emit.prefetch(row, min(i, width - 1), write=write)


def _bring_added(emit, epilogue, at, rows_from, width):
    """The same of what an epilogue adds, where it adds something; ``rows_from(other)``: the rows' places."""
    other, add_other = emit.other(epilogue, at)

    def bring():
        _bring_lines(emit, rows_from(other), width, write=False)
        return []

    emit.choose(add_other, bring, [])


def _rows_of(emit, out, count=ROWS):
    """Where the rows of results begin."""
    first, step = out
    return [emit.move(first, emit.times(step, i)) for i in range(count)]


def by_rows(sums, vectors):
    """The vectors of a tile, so many a row, as a list for each row."""
    return [sums[i : i + vectors] for i in range(0, len(sums), vectors)]


def _store_finished(emit, sums, out, epilogue, places):
    """Store the ``sums`` of some filters, a list of vectors each, as ``epilogue`` makes them.

    ``out`` is what :meth:`Emitter.rows` gives, ``epilogue`` what :meth:`Emitter.epilogue` does. ``places``:
    where in a row each vector goes.
    """
    values = []
    for i, row in enumerate(sums):
        a, b = emit.load_splat(epilogue.scale, i), emit.load_splat(epilogue.shift, i)
        values += [emit.fma(a, value, b) for value in row]
    rows = len(sums)

    def with_other():
        lines = _rows_of(emit, (epilogue.other, out[1]), rows)
        addends = [emit.load(line, place) for line in lines for place in places]
        return [emit.builder.fadd(value, each) for value, each in zip(values, addends, strict=True)]

    # All of what is added is read before anything is stored: it may be the same memory.
    def slopes():
        return [each for i in range(rows) for each in [emit.load_splat(epilogue.act.slope, i)] * len(places)]

    chosen = emit.activate(emit.choose(epilogue.add_other, with_other, values), epilogue.act, slopes)
    for row, line in zip(by_rows(chosen, len(places)), _rows_of(emit, out, rows), strict=True):
        for place, value in zip(places, row, strict=True):
            emit.store(value, line, place)


def _store_tile(emit, sums, out, add=False):
    """Store a tile of sums to the rows of ``out``, or add it to them."""
    for row, values in zip(_rows_of(emit, out), sums, strict=True):
        for v, value in enumerate(emit.plus(values, row) if add else values):
            emit.store(value, row, v * MACHINE_LANES)


def _product_tile(*, add=False, packed=False):
    """``(vectors, left, term_step, panel, panel_at, terms, out)``: ``left @ panel`` for ``ROWS`` rows and the
    first so many vectors of the columns, stored to ``out`` or added to it.

    ``left`` and ``out`` are :class:`Rows`; ``term_step`` is the distance from term to term in the left
    factor, ``panel_at`` a position in the flat array of the panel. Of a ``packed`` left factor the rows'
    numbers of a term are neighbours; its ``step`` is how far the next tile's lie, which are fetched
    meanwhile.
    """

    def of(vectors):
        @emitted
        def tile(emit, left, term_step, panel, panel_at, terms, out):
            left, out = emit.rows(left, "left"), emit.rows(out, "out")
            panel = emit.pointer(panel, panel_at, "panel")
            sums = _sum_tile(emit, left, term_step, panel, terms, out, vectors, packed=packed)
            _store_tile(emit, sums, out, add)

        tile.__qualname__ += f"[{vectors}, {add}, {packed}]"  # see jit.py on names
        return tile

    one, two, most = map(of, (1, 2, VECTORS))

    @inner(makes_arrays=False, forceinline=True)
    def product_tile(vectors, left, term_step, panel, panel_at, terms, out):
        if vectors == VECTORS:
            most(left, term_step, panel, panel_at, terms, out)
        elif vectors == 1:
            one(left, term_step, panel, panel_at, terms, out)
        else:
            two(left, term_step, panel, panel_at, terms, out)

    return product_tile


product_tile, packed_product_tile = _product_tile(), _product_tile(packed=True)
#: The terms are summed by themselves and added at the end: a hundred thousand small terms added to one large
#: sum, one after the other, lose a digit more.
add_product_tile = _product_tile(add=True)


#: Vectors of the narrower of the two tiles.
FEW = HERE.few


def _reduce_tile(height, vectors, panel_row):
    """A tile that reads an image, or a panel with rows of so many floats."""

    @emitted
    def tile(emit, weight, image, starts, repeats, offsets, soon, out, targets, epilogue, row):
        """``image`` has a row for each time that the ``offsets`` are gone through; a panel, for each one.

        ``starts``: where the vectors of results begin in the image, and which of them is the first;
        ``targets`` are their places in the rows of ``out`` in the same way. ``soon``: what is to be fetched
        meanwhile, a row for each term.
        """
        builder, at = emit.builder, emit.members(out)[1]
        factors, weight_step = emit.rows(weight, "weight")
        origin, image_step = emit.rows(image, "image")
        soon, soon_step = emit.rows(soon, "soon")

        def places_in(places):
            first = emit.pointer(*emit.members(places), "starts or targets")
            return [emit.load_number(first, v) for v in range(vectors)]

        out, goes_to = emit.rows(out, "out"), places_in(targets)

        def rows_from(first):
            return _rows_of(emit, (emit.move(first, goes_to[0]), out[1]), height)

        width = vectors * MACHINE_LANES
        _bring_lines(emit, rows_from(out[0]), width, write=True)
        _bring_added(emit, epilogue, at, rows_from, width)
        count, places = emit.elements(offsets, "offsets")
        start, apart = origin, [v * MACHINE_LANES for v in range(vectors)]
        if not panel_row:
            begin, *others = places_in(starts)
            start, apart = emit.move(origin, begin), [0, *(builder.sub(other, begin) for other in others)]

        def right_of(place, k):
            if panel_row:
                columns = emit.move(place, k * panel_row)
            else:
                columns = emit.move(image, emit.load_number(place, k))
            return [emit.load(columns, by) for by in apart]

        steps = emit.number(1), emit.number(panel_row or 1), soon_step
        zeros = [emit.constant(0)] * (height * vectors)
        with emit.loop(repeats, [start, factors, soon, *zeros]) as outer:
            image, factors, soon, *sums = outer.values
            given = [factors, image if panel_row else places, soon]
            after, sums = _add_terms(emit, count, given, steps, weight_step, right_of, sums, height=height)
            outer.advance([emit.move(image, image_step), after[0], after[2], *sums])
        sums = by_rows(outer.results[3:], vectors)
        _store_finished(emit, sums, out, emit.epilogue(epilogue, row, at), goes_to)

    return tile


#: Of a few filters, as the groups of a convolution have them, most rows of a full tile would be empty.
HALF = ROWS // 2
#: Register tiles that are side by side in a wide tile: results are stored in runs that are so many times as
#: long, and a processor that sees a long run fetches its lines by itself.
ACROSS = 3


class Filters(NamedTuple):
    """A weight as :func:`sum_rows` takes it."""

    #: All of it, and what follows the last whole tile of each group's rows; both are flat.
    matrix: np.ndarray
    last: np.ndarray
    #: Where a tile's vectors lie that are stored aside.
    side_by_side: np.ndarray


def sum_rows(across, panel_row=0):
    """A way's ``sum_tile`` for the driver: rows of :class:`Filters` by so many register tiles of places.

    They are read from an image, or from a panel with rows of so many floats.
    """
    full, narrow = _reduce_tile(ROWS, VECTORS, panel_row), _reduce_tile(ROWS, FEW, panel_row)
    low, low_narrow = _reduce_tile(HALF, VECTORS, panel_row), _reduce_tile(HALF, FEW, panel_row)

    @inner(makes_arrays=False, forceinline=True)
    def sum_part(weight, terms, tile, image, sums, whole, epilogue, v, wide):
        """The vectors of a tile from ``v`` on, as many as a register tile holds, or a few."""
        matrix, last, side_by_side = weight
        starts, targets, repeats, step, group_step, offsets = terms
        length, row, vector = repeats * offsets.shape[0], tile.row, tile.first // MACHINE_LANES + v
        left = Rows(matrix, row * length, length)
        if tile.rows < tile.room:
            left = Rows(last, tile.group * ROWS * length, length)
        following = Rows(matrix, (row + tile.rows) * length, ROWS)  # the next tile's weights
        source = Rows(image, v * MACHINE_LANES if panel_row else tile.group * group_step, step)
        begins, to = (starts, vector), (targets, vector) if whole else (side_by_side, v)
        given = left, source, begins, repeats, offsets, following, sums, to, epilogue, row
        if tile.room == HALF:
            if wide:
                low(*given)
            else:
                low_narrow(*given)
        elif wide:
            full(*given)
        else:
            narrow(*given)

    @inner(makes_arrays=False, forceinline=True)
    def sum_one(weight, terms, tile, image, panel, soon, sums, whole, epilogue):
        wide = tile.count == VECTORS * MACHINE_LANES
        sum_part(weight, terms, tile, image, sums, whole, epilogue, np.int64(0), wide)

    @inner(makes_arrays=False, forceinline=True)
    def sum_several(weight, terms, tile, image, panel, soon, sums, whole, epilogue):
        count, v = tile.count // MACHINE_LANES, np.int64(0)
        while v < count:
            # So that the last vector is not alone.
            wide = count - v == VECTORS or count - v >= VECTORS + FEW
            sum_part(weight, terms, tile, image, sums, whole, epilogue, v, wide)
            v += VECTORS if wide else FEW

    return sum_one if across == 1 else sum_several
