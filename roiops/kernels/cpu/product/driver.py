"""The driver of products that are convolutions: one loop over tiles of results, for each way the same.

    sum[f, i] = sum over k of weight[f, k] * pixel[start[i] + offset[k]]
    out[f, i] = act(scale[f] * sum[f, i] + shift[f] + other[f, i])

This is a batch-reduce product (Georganas et al., arXiv 1906.06440) with lists of addresses, as the indirect
convolution has them (Dukhan, arXiv 1907.02129). Results are numbered by *places*, those of all images in a
row; a tile is some filters by some neighbouring places. A way of convolution says

- where the pixels of each place begin, how far the terms of its sum lie from there (:class:`Terms`), and
  where its result goes (:class:`Tiles`);
- ``fill(sources, g, w, image)``: what a worker ``w`` does before the first tile of a group of filters: it
  makes a padded image of its own, or nothing;
- ``pack(sources, weight, tiles, g, block, image, panel)``: what it does before the first tile of a block, and
  which rows (:class:`~.tiles.Rows`) tiles fetch for the next one meanwhile;
- ``sum_tile(weight, terms, tile, image, panel, soon, sums, whole, epilogue)``: how a :class:`Tile` is made
  (``product/tiles.py``, ``conv/filters.py``); ``soon`` are the rows of ``pack``, ``sums`` where results go.

The driver deals tiles out to workers, so that all multiply as many vectors, and who is done goes on with
those of others; has filled and packed what a tile reads; lets a whole tile store its results where they
belong, and one that hangs over an edge aside, from where they are moved; and brings the lines that results
go to.
"""

from typing import NamedTuple

import numpy as np

from ...jit import inner, parallel
from ...shares import pieces, within
from ..vector import MACHINE_LANES, flat_of
from .emitter import ROWS, VECTORS
from .panels import copy_run, deal
from .tiles import FEW, HALF, Epilogue, Rows


def _record(*names):
    return np.dtype([(name, np.int64) for name in names])


#: Filters of a tile: the first of the group, how many, and for how many the tile has room.
FILTERS = _record("first", "rows", "room")
#: Places of a tile: the first, its first run, and whether all that is computed may be stored in its place.
PLACES = _record("first", "run", "direct")
#: Neighbouring results: the first place, how many, and where they lie in the results of filter 0.
RUN = _record("place", "count", "at")


class Tiles(NamedTuple):
    """What the results are cut into. Items, a tile each, follow one another by group, block and tile."""

    groups: int
    #: Of :data:`FILTERS`, of one group; of :data:`PLACES`, with an end; of :data:`RUN`.
    filters: np.ndarray
    places: np.ndarray
    runs: np.ndarray
    #: Whether a block is some filters with all places, one after the other; otherwise the other way round.
    by_filters: int
    #: Places of a tile.
    width: int


class Terms(NamedTuple):
    """Where the factors of the sums lie, in a padded image, in a panel, or in the images themselves."""

    #: Of each vector, or each place: where the first term's pixels begin. With places for a tile that is
    #: wider than what there is.
    starts: np.ndarray
    #: The same for the results of filter 0; -1 where a vector does not lie in one piece.
    targets: np.ndarray
    #: How often the offsets are gone through, a step further each time; and the step of a group.
    repeats: int
    step: int
    group_step: int
    offsets: np.ndarray


def _cut_runs(begins, counts, ats, firsts):
    """Runs of results, cut where a tile begins, and the first run of each tile; ``firsts`` has an end."""
    cuts = np.unique(np.concatenate([begins, begins + counts, firsts]))
    of = np.searchsorted(begins, cuts, "right") - 1
    inside = (of >= 0) & (cuts < begins[of] + counts[of]) & (cuts < firsts[-1])
    cuts, of = cuts[inside], of[inside]
    runs = np.empty(len(cuts), RUN)
    runs["place"], runs["at"] = cuts, ats[of] + cuts - begins[of]
    ends = firsts[np.searchsorted(firsts, cuts, "right")]
    runs["count"] = np.minimum(begins[of] + counts[of], ends) - cuts
    return runs, np.searchsorted(cuts, firsts)


def filters_of_tiles(in_group: int, firsts, room) -> np.ndarray:
    """The :data:`FILTERS` of a group's tiles."""
    found = np.zeros(len(firsts), FILTERS)
    found["first"], found["room"] = firsts, room
    found["rows"] = np.minimum(room, in_group - firsts)
    return found


def rows_of_filters(in_group: int) -> np.ndarray:
    """The :data:`FILTERS` of tiles of ``ROWS`` filters, the last one of half as many where that is enough."""
    firsts = np.arange(0, in_group, ROWS)
    return filters_of_tiles(in_group, firsts, np.where(in_group - firsts <= HALF, HALF, ROWS))


class Pieces(NamedTuple):
    """Results that lie side by side, a list of pieces of them."""

    #: Of each piece: its first place, how many, and where they lie in the results of filter 0.
    begins: np.ndarray
    counts: np.ndarray
    ats: np.ndarray
    #: All places, with those between the pieces.
    places: int
    #: Where the results of each vector of places go, if not where its pieces do.
    targets: np.ndarray | None = None


def vectors_of_places(pieces: Pieces, across: int):
    """The :data:`PLACES` of tiles of vectors, the runs, and where each vector's results go, or -1.

    A vector's results go where its piece does, if it lies in one. All tiles have nearly as many vectors,
    ``across`` times those of a register tile at most: a last one of few would take as long as a full one.
    """
    begins, counts, ats, places, targets = pieces
    total = -(-places // MACHINE_LANES)
    tiles = -(-total // (across * VECTORS))
    firsts = np.arange(tiles + 1) * total // tiles
    runs, first_runs = _cut_runs(begins, counts, ats, firsts * MACHINE_LANES)
    if targets is None:
        vectors = np.arange(0, total * MACHINE_LANES, MACHINE_LANES)
        of = np.searchsorted(begins, vectors, "right") - 1
        whole = vectors + MACHINE_LANES <= begins[of] + counts[of]
        targets = np.where(whole, ats[of] + vectors - begins[of], -1)
    found = np.zeros(tiles + 1, PLACES)
    found["first"], found["run"] = firsts * MACHINE_LANES, first_runs
    # A tile of one vector is computed as ``FEW``.
    found["direct"][:-1] = np.logical_and.reduceat(targets >= 0, firsts[:-1]) & (np.diff(firsts) >= FEW)
    return found, runs, np.pad(targets, (0, VECTORS), constant_values=-1)


def deal_tiles(tiles: Tiles, workers: int) -> np.ndarray:
    """The first item of each worker, and the end."""
    costs = tiles.filters["room"], np.diff(tiles.places["first"])
    return deal(*(costs if tiles.by_filters else costs[::-1]), tiles.groups, workers)


@inner(makes_arrays=False)
def _move(spare, first, width, rows, runs, flat, at, plane, fetch):
    """Copy the results of ``rows`` filters from a tile to where their runs lie, or fetch what lies there."""
    for k in range(runs.shape[0]):
        column, place = runs[k].place - first, at + runs[k].at
        for i in range(rows):
            if fetch:
                copy_run(flat, place + i * plane, spare, i * width + column, runs[k].count)
            else:
                copy_run(spare, i * width + column, flat, place + i * plane, runs[k].count)


class Tile(NamedTuple):
    """What ``sum_tile`` computes."""

    group: int
    #: The first filter, how many there are, and for how many the tile has room.
    row: int
    rows: int
    room: int
    #: The first place, its tile, and how many places are wanted.
    first: int
    places: int
    count: int
    #: Which tile of its block it is.
    inside: int


def driver(fill, pack, sum_tile):
    """The kernel of a way.

    Its arguments are ``(sources, weight, terms, tiles, begins, epilogue, memory, out, least)``.

    ``sources`` are for ``fill`` and ``pack``, ``weight`` for ``pack`` and ``sum_tile``; ``terms`` are a
    :class:`Terms`, ``tiles`` a :class:`Tiles`, ``begins`` what :func:`deal_tiles` gives. ``memory``: two
    tiles for each worker; an image for each or one for all; a panel for each. ``least`` is for
    ``shares.pieces``.
    """

    @parallel(makes_arrays=False)
    def multiply(share, sources, weight, terms, tiles, begins, epilogue, memory, out, least):
        scale, shift, act, other, add_other = epilogue
        spares, images, panels = memory
        flat, flat_other, columns = flat_of(out), flat_of(other), tiles.width
        in_group, plane = out.shape[1] // tiles.groups, out.shape[2] * out.shape[3]
        outer, length = tiles.filters.shape[0], tiles.places.shape[0] - 1
        if not tiles.by_filters:
            outer, length = length, outer
        for w in within(share, spares.shape[0]):
            spare, others = spares[w, 0], spares[w, 1]
            image, panel = images[w if images.shape[0] > 1 else 0], panels[w]
            group, packed = np.int64(-1), np.int64(-1)
            soon = Rows(image, np.int64(0), np.int64(0))
            for first_item, stop in pieces(share, begins, w, least):
                for item in range(first_item, stop):
                    block, inside = divmod(item, length)
                    g, o = divmod(block, outer)
                    if g != group:
                        fill(sources, g, w, image)
                        group = g
                    if block != packed:
                        soon = pack(sources, weight, tiles, g, o, image, panel)
                        packed = block
                    f, t = (o, inside) if tiles.by_filters else (inside, o)
                    some, here, after = tiles.filters[f], tiles.places[t], tiles.places[t + 1]
                    row, rows = g * in_group + some.first, some.rows
                    at, whole = row * plane, here.direct != 0 and rows == some.room
                    runs = tiles.runs[here.run : after.run]
                    if add_other and not whole:
                        _move(others, here.first, columns, rows, runs, flat_other, at, plane, True)
                    to, added = (flat, flat_other) if whole else (spare, others)
                    sums = Rows(to, at if whole else np.int64(0), plane if whole else columns)
                    into = Epilogue(scale, shift, act, added, add_other)
                    tile = Tile(g, row, rows, some.room, here.first, t, after.first - here.first, inside)
                    sum_tile(weight, terms, tile, image, panel, soon, sums, whole, into)
                    if not whole:
                        _move(spare, here.first, columns, rows, runs, flat, at, plane, False)

    return multiply
