"""Convolutions of 3x3 with steps of 1 by Winograd's minimal filtering: a quarter of the products.

The image is cut into tiles of 6x6 pixels that overlap by 2. Tiles and filters are transformed to 36 numbers
each (``conv/transforms.py``, ``conv/winograd_tiles.py``); those are multiplied, for each of the 36 as a
matrix product over the channels; and the 36 products of a tile are transformed to its 4x4 results.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import within
from ..product.emitter import COLUMNS, ROWS
from ..product.fingerprint import fingerprint
from ..product.machine import HERE, Machine
from ..product.panels import is_even
from ..product.tiles import Rows, packed_product_tile
from ..scratch import Repeated, Scratch
from ..vector import BLOCK, LINE, MACHINE_LANES, aligned_zeros
from .transforms import PARTS, TAPS
from .way import Way, ceil_div, epilogue_of_part
from .winograd_tiles import (
    APART,
    SCRATCH,
    Grid,
    find_tiles,
    memory_for_tiles,
    store_results,
    tiles_of_image,
    transform_filters,
    transform_panel,
)

#: Floats in which a worker sorts some taps of some filters.
_TURNED = TAPS * TAPS * BLOCK * BLOCK
#: Most bytes of transformed tiles that workers share at once, and of panels of these. So many panels are
#: enough for the filters that are transformed for them.
SHARED, TOGETHER = 24 << 20, 6
#: Most blocks of filters that a worker transforms at a time, and of kept filters that it takes through all
#: steps.
MOST_BLOCKS, MOST_KEPT = 4, 16
#: Most bytes of kept filters, but where one panel is all: to make them for it would take long.
MOST_KEPT_BYTES = 1 << 27


def most_channels(machine: Machine) -> int:
    """Most channels of filters that are made anew: a block of them is read back from the second-level cache.

    More channels are summed up part by part.
    """
    return machine.block_cache // (4 * PARTS * BLOCK)


@parallel(makes_arrays=False)
def _transform_all(share, weight, groups, turned, out):
    """Transform all filters, each group's to row tiles of its own. ``turned`` is memory for each worker."""
    in_group = weight.shape[0] // groups
    row_tiles, blocks = (in_group + ROWS - 1) // ROWS, (in_group + BLOCK - 1) // BLOCK
    mine = turned[share[0]]
    for item in within(share, groups * blocks):
        group, block = divmod(item, blocks)
        first, count = group * in_group + block * BLOCK, min(BLOCK, in_group - block * BLOCK)
        tile = group * row_tiles + block * BLOCK // ROWS
        transform_filters(weight, first, count, (np.int64(0), weight.shape[1]), mine, out, tile)


@inner(makes_arrays=False)
def _multiply(filters, rows, channels, panel, vectors, products, step):
    """The products of some tiles of filters with a panel: ``rows`` are the first of them, how many there are,
    and how many tiles further those lie that come next.
    """
    first, count, ahead = rows
    part, size = filters.shape[0] // PARTS, ROWS * channels
    for item in range(PARTS * count):
        k, r = divmod(item, count)
        left = Rows(filters, k * part + (first + r) * size, ahead * size)
        results, at = Rows(products, k * step + r * ROWS * COLUMNS, COLUMNS), k * (channels + APART) * COLUMNS
        packed_product_tile(vectors, left, ROWS, panel, at, channels, results)


class Memory(NamedTuple):
    """What kernels write besides the results."""

    #: Panels of transformed tiles that are in use at once, of one worker each or of all.
    panels: np.ndarray
    #: For each worker: products, scratch for transforms, filters that it transforms, and their turned taps.
    products: np.ndarray
    scratch: np.ndarray
    made: np.ndarray
    turned: np.ndarray
    #: For each worker what :func:`find_tiles` writes.
    runs: np.ndarray
    places: np.ndarray


class Turn(NamedTuple):
    """What workers make together before they go on to what comes next."""

    group: int
    #: The first of the group's channels, and the end; the first panel, and the end.
    from_channel: int
    to_channel: int
    begin: int
    end: int
    #: Whether workers still have the filters of the panels before, and need not transform them again.
    there: int


@parallel(makes_arrays=False)
def _by_panel(share, data, filters, grid, epilogue, memory, out):
    """Each worker takes whole panels of tiles through all steps.

    A panel stays in a worker's own cache; the filters are read once for each panel.
    """
    groups = grid.groups
    channels, in_group = data.shape[1] // groups, out.shape[1] // groups
    row_tiles = (in_group + ROWS - 1) // ROWS
    workers, items = memory.panels.shape[0], groups * grid.panels
    step = memory.products.shape[1] // PARTS
    for w in within(share, workers):
        panel, products, scratch = memory.panels[w], memory.products[w], memory.scratch[w]
        for item in range(w * items // workers, (w + 1) * items // workers):
            g, p = divmod(item, grid.panels)
            tiles = find_tiles(p, grid, out, memory.runs[w], memory.places[w])
            mine = np.int64(0), channels
            transform_panel(data, g * channels, channels, mine, grid.pad, tiles, scratch, panel)
            for r in range(row_tiles):
                begin, end = g * in_group + r * ROWS, g * in_group + min((r + 1) * ROWS, in_group)
                rows = g * row_tiles + r, np.int64(1), groups * row_tiles
                _multiply(filters, rows, channels, panel, tiles.vectors, products, step)
                store_results(Rows(products, 0, step), begin, end, tiles, scratch, epilogue, out)


@parallel(makes_arrays=False)
def _transform_panels(share, data, turn, ends, grid, memory, out):
    """Workers make a :class:`Turn`'s panels together: each transforms some of the channels.

    ``ends``: for each panel the first channel of each worker, and the end.
    """
    channels = turn.to_channel - turn.from_channel
    first = turn.group * (data.shape[1] // grid.groups) + turn.from_channel
    for w in within(share, memory.scratch.shape[0]):
        for k in range(turn.end - turn.begin):
            mine = ends[k, w], ends[k, w + 1]
            tiles = find_tiles(turn.begin + k, grid, out, memory.runs[w], memory.places[w])
            scratch, panel = memory.scratch[w], memory.panels[k]
            transform_panel(data, first, channels, mine, grid.pad, tiles, scratch, panel)


@parallel(makes_arrays=False)
def _multiply_panels(share, kept, weight, turn, begins, grid, epilogue, memory, out):
    """Each worker multiplies some row tiles of filters by the panels of a :class:`Turn`.

    ``begins``: the first item of each worker, and the end; of each row tile there is one for each panel.
    ``kept``: filters that were transformed before, or an empty array: then a worker transforms some of the
    ``weight`` at a time, unless they are still there.
    """
    of_channels, in_group = (turn.from_channel, turn.to_channel), out.shape[1] // grid.groups
    channels, count = turn.to_channel - turn.from_channel, turn.end - turn.begin
    row_tiles, step = (in_group + ROWS - 1) // ROWS, memory.products.shape[1] // PARTS
    for w in within(share, memory.scratch.shape[0]):
        products, scratch, made, item = memory.products[w], memory.scratch[w], memory.made[w], begins[w]
        while item < begins[w + 1]:
            tile, p = divmod(item, count)
            # Several row tiles are taken at once if all panels are multiplied by them.
            whole = min((begins[w + 1] - item) // count, step // (ROWS * COLUMNS)) if p == 0 else 0
            some, stop = (whole, count) if whole > 0 else (np.int64(1), min(count, p + begins[w + 1] - item))
            item += some * (stop - p)
            from_filter = turn.group * in_group + tile * ROWS
            to_filter = turn.group * in_group + min((tile + some) * ROWS, in_group)
            left, left_tile = kept, turn.group * row_tiles + tile
            if kept.size == 0:
                left, left_tile = made, np.int64(0)
                for f in range(to_filter if turn.there else from_filter, to_filter, BLOCK):
                    height, to = min(BLOCK, to_filter - f), (f - from_filter) // ROWS
                    transform_filters(weight, f, height, of_channels, memory.turned[w], made, to)
            for k in range(p, stop):
                tiles = find_tiles(turn.begin + k, grid, out, memory.runs[w], memory.places[w])
                rows, panel = (left_tile, some, 1), memory.panels[k]
                _multiply(left, rows, channels, panel, tiles.vectors, products, step)
                results = Rows(products, 0, step)
                store_results(results, from_filter, to_filter, tiles, scratch, epilogue, out)


def _deal_channels(channels: int, panels: int, workers: int) -> np.ndarray:
    """The ``ends`` of :func:`_transform_panels`: the same channels of all panels, if that is even."""
    ends, first = np.arange(workers + 1), np.arange(panels)[:, None] * channels
    if is_even(channels, workers):
        return ends * channels // workers + 0 * first
    return np.clip(ends * channels * panels // workers - first, 0, channels)


def _deal_row_tiles(row_tiles: int, panels: int, workers: int) -> np.ndarray:
    """The ``begins`` of :func:`_multiply_panels`: whole row tiles, if that is even.

    Otherwise as many items each, which :func:`_panels_shared` has made nearly alike; dealt out by their
    vectors, as :func:`~..product.panels.deal` does, longest shares were longer.
    """
    if is_even(row_tiles, workers):
        return np.arange(workers + 1) * row_tiles // workers * panels
    return np.arange(workers + 1) * row_tiles * panels // workers


def _panels_shared(layer, machine) -> tuple[int, int]:
    """How many panels workers make together, and of how many at once they have equal shares."""
    vectors, row_tiles = ceil_div(count_tiles(layer), machine.lanes), ceil_div(layer.in_group, machine.rows)
    panels, workers = ceil_div(vectors, machine.vectors), machine.workers
    if is_even(row_tiles, workers):
        return panels, 1
    step = min(vectors, workers // math.gcd(workers, row_tiles))
    return min(vectors, ceil_div(panels, step) * step), step


def _vectors_alone(layer, machine, cache: int) -> int:
    """How many vectors a worker's own panel may have in a cache; 0 where one of them does not fit."""
    vector = 4 * PARTS * (layer.group_channels + APART) * machine.lanes
    return min(machine.vectors, cache * 7 // 8 // vector)  # beside filters


def _panels_alone(layer, machine, keeps) -> int:
    """How many panels workers take by themselves, each through all steps; 0 where they share each step.

    ``keeps``: whether filters are kept in any case.

    Shared panels and products pass through the last cache, which is 3 times their size: they are fetched,
    written and read. With panels of their own, workers read the filters once for each.
    """
    channels, filters, groups = layer.group_channels, layer.in_group, layer.groups
    vectors, workers = ceil_div(count_tiles(layer), machine.lanes), machine.workers
    # In a second-level cache of 2 MiB, panels that need more than half took up to 1.9 times as long.
    at_once = _vectors_alone(layer, machine, min(machine.second_cache, 1 << 20))
    if at_once < min(vectors, machine.vectors):
        return 0
    panels = ceil_div(vectors, at_once)
    if groups < workers:  # all take nearly as many
        panels = min(vectors, ceil_div(panels, workers) * workers)
    ends = [worker * groups * panels // workers for worker in range(workers + 1)]
    # The vectors before each worker's first panel.
    begins = [end // panels * vectors + end % panels * vectors // panels for end in ends]
    most = max(stop - start for start, stop in itertools.pairwise(begins))
    shared = channels * filters + 3 * machine.lanes * vectors * (channels + filters)
    if most * workers > 1.15 * vectors * groups or panels * channels * filters > shared:
        return 0
    return panels if groups * panels >= workers + keeps else 0


def count_tiles(layer) -> int:
    """The tiles that the results of all images are cut into."""
    return layer.batch * math.prod(tiles_of_image(layer.out_size))


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
    same, where workers take whole panels, unless they are so few that they stay in a cache, and where there
    are many channels: up to a size, or for few tiles.
    """

    name = "winograd"

    @staticmethod
    def suits(layer, machine):
        window = layer.kernel, layer.stride, layer.dilate
        # Channels are transformed two at a time: of one, a worker would write into another's filters.
        several = layer.group_channels > 1
        return several and window == ((3, 3), (1, 1), (1, 1)) and min(layer.pad) >= 0 and max(layer.pad) <= 3

    @staticmethod
    def cost(layer, machine):
        """A quarter of the products, and the transforms."""
        vectors, terms = ceil_div(count_tiles(layer), machine.lanes), layer.group_channels
        whole, rest = divmod(vectors, machine.vectors)
        panels = [machine.vectors] * whole + [rest] * (rest > 0)
        of_terms = sum(machine.of_term(machine.rows * n, machine.rows + n + 4) for n in panels)
        products = 1.1 * 36 * layer.groups * terms * ceil_div(layer.in_group, machine.rows) * of_terms
        transforms = 800 * layer.channels + 550 * layer.filters
        if machine.registers < 32:  # the numbers of a tile are stored and loaded again
            transforms *= 1.5
        # The weight comes from memory: in a network, other layers have used the caches since.
        weight = (14 + 20 * 9 / LINE) * terms * layer.filters
        return products + vectors * transforms + weight + 60_000

    @staticmethod
    def plan(layer, machine) -> Plan:
        """The plan. The number of workers has no part in ``parts``, so that results do not depend on it."""
        channels, row_tiles = layer.group_channels, ceil_div(layer.in_group, machine.rows)
        panels, step = _panels_shared(layer, machine)
        parts, count = [(0, channels)], ceil_div(channels, most_channels(machine))
        # Channels of which a panel may be a worker's own are one sum in any case, or several.
        small = 4 * PARTS * channels * layer.filters <= MOST_KEPT_BYTES
        one_panel = count_tiles(layer) <= machine.columns
        several = count > 2 or (count > 1 and _vectors_alone(layer, machine, machine.block_cache) > 0)
        keeps = several and (small or one_panel)
        alone = _panels_alone(layer, machine, keeps) if keeps or count == 1 else 0
        # Filters that stay in the second-level cache are made by the time that they would come from memory.
        come_from_memory = 4 * PARTS * channels * layer.filters > machine.block_cache
        # Several workers would each make the same ones, where filters are few.
        few = count == 1 and small and panels > 1 and machine.workers > row_tiles
        keeps = keeps or (come_from_memory if alone else few)
        if not keeps:
            ends = [part * channels // count for part in range(count + 1)]
            parts = list(itertools.pairwise(ends))
        if alone:
            together, blocks = machine.workers, 1
        else:
            shared = min(SHARED, machine.last_cache * 3 // 4)
            fit = max(1, shared // (4 * PARTS * (max(b - a for a, b in parts) + APART) * machine.columns))
            together = min(panels, fit, max(TOGETHER, step))
            together -= together % step if together > step else 0
            blocks = MOST_KEPT if keeps else min(together, MOST_BLOCKS)
        # The more panels filters are multiplied with, the more panels come from the last cache for each of
        # them.
        row_tiles = min(BLOCK * blocks // machine.rows, row_tiles)
        return Plan(alone > 0, alone or panels, together, parts, keeps, row_tiles)

    def __init__(self, layer, machine=HERE):
        super().__init__(layer, machine)
        self._kept = self._print = None
        self._of_workers = {}

    def bind(self, arrays):
        data, weight, out, epilogue = arrays.data, arrays.weight, arrays.out, arrays.epilogue
        work = out.size / MACHINE_LANES * 4 * weight.shape[1]

        def prepare(workers):
            layer, (plan, scratch, places) = self.layer, self._for(workers)
            memory, kept = Memory(*scratch(), *places), self._kept if plan.keeps else aligned_zeros(0)
            tiles = *tiles_of_image(layer.out_size), count_tiles(layer)
            grid = Grid(layer.groups, plan.panels, *tiles, layer.pad)
            if plan.alone:
                filters = kept if plan.keeps else memory.made[0]
                kernels = [(_by_panel, workers, data, filters, grid, epilogue, memory, out)]
                if not plan.keeps:
                    make = _transform_all, workers, weight, layer.groups, memory.turned, filters
                    kernels.insert(0, make)
                return kernels
            kernels, starts = [], range(0, plan.panels, plan.together)
            parts = [(part, epilogue_of_part(part, plan.parts, epilogue, out)) for part in plan.parts]
            row_tiles = ceil_div(layer.in_group, ROWS)
            # A worker that transforms all of its filters at once has them for the panels that follow.
            all_made = is_even(row_tiles, workers) and ceil_div(row_tiles, workers) <= plan.row_tiles
            for g, (part, into), begin in itertools.product(range(layer.groups), parts, starts):
                count = min(plan.together, plan.panels - begin)
                turn = Turn(g, *part, begin, begin + count, int(begin > 0 and all_made))
                ends = _deal_channels(part[1] - part[0], count, workers)
                kernels.append((_transform_panels, workers, data, turn, ends, grid, memory, out))
                begins, more = _deal_row_tiles(row_tiles, count, workers), (grid, into, memory, out)
                kernels.append((_multiply_panels, workers, kept, weight, turn, begins, *more))
            return kernels

        run = Repeated(self.calls, work, prepare)

        def call():
            workers = num_threads(work)
            if self._for(workers)[0].keeps:
                self._pack(weight, workers)
            run()

        return call

    def _pack(self, weight, workers):
        """Transform all filters, if they are not those of before."""
        bits = fingerprint(weight)
        if bits != self._print:
            self._print = bits
            turned = np.empty((workers, _TURNED), np.float32)
            _transform_all.by(workers)(weight, self.layer.groups, turned, self._kept)

    def _for(self, workers):
        """The plan for so many workers, and the memory that they need."""
        if workers not in self._of_workers:
            layer, plan = self.layer, self.plan(self.layer, self.machine._replace(workers=workers))
            channels = max(stop - start for start, stop in plan.parts)
            all_rows = layer.groups * ceil_div(layer.in_group, ROWS) * ROWS
            rows = all_rows if plan.alone or plan.keeps else plan.row_tiles * ROWS
            # A line sets the 36 parts of filters apart, as ``APART`` does those of panels.
            filters = PARTS * (rows * channels + LINE)
            made = (1 if plan.alone else workers), 0 if plan.keeps else filters
            product = PARTS * (plan.row_tiles * ROWS + APART) * COLUMNS
            panels = plan.together, PARTS * (channels + APART) * COLUMNS
            scratch = Scratch(panels, (workers, product), (workers, SCRATCH), made, (workers, _TURNED))
            self._of_workers[workers] = plan, scratch, memory_for_tiles(workers)
            if plan.keeps and self._kept is None:
                self._kept = aligned_zeros(filters)
        return self._of_workers[workers]
