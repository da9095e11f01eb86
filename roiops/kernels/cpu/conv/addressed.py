"""Ways that ``product/driver.py`` computes: each is lists of addresses, and how its factors are packed.

What is here is the same for all: the padded image (``conv/padded.py``), which a worker fills for itself or
all fill together; the tiles of each worker; memory; and the call of the driver's kernel.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from ...jit import num_threads, parallel
from ...shares import within
from ..product.driver import Terms, Tiles, deal_tiles
from ..product.emitter import COLUMNS, ROWS
from ..product.machine import HERE
from ..product.tiles import ACROSS, Filters, Prologue
from ..scratch import Repeated, Scratch
from ..vector import LINE, MACHINE_LANES
from .padded import fill_padded, fills_itself, padding_cost, thin_out
from .way import Arrays, Layer, Way, ceil_div, epilogue_of_part

#: Tiles that a worker takes at once, at least: to take them costs less than they do.
_LEAST = 4
#: Floats of the largest tile.
_TILE = max(ROWS * COLUMNS * ACROSS, MACHINE_LANES * HERE.filter_tile[0] * HERE.filter_tile[1])


def across(layer, machine) -> int:
    """How many register tiles are side by side in a tile: several where more is stored than summed up.

    Results that stay in second-level caches do not gain by it, and threads lose: what a processor fetches
    ahead at the end of a long run is another thread's.
    """
    size = 4 * layer.batch * layer.filters * math.prod(layer.out_size)
    return ACROSS if layer.in_group > layer.terms and size > 2 * machine.second_cache else 1


class Plan(NamedTuple):
    """What is computed, and where it lies."""

    terms: Terms
    tiles: Tiles
    #: Where pixels lie: the :class:`~.padded.Layout` of a padded image, or what the way's ``pack`` wants.
    layout: tuple
    #: Floats of the last channel of a padded image, with those beyond its planes that its taps see; 0 where
    #: images are read as they are.
    last_channel: int = 0
    #: How far beyond the place of its first vector a tile reads in a plane.
    reach: int = 0
    #: Floats of a worker's panel.
    panel: int = 0
    #: Register tiles that are side by side in a tile: :func:`across`.
    across: int = 1
    #: Whether vectors of results overlap: then what is added to them may not lie where they go.
    overlap: bool = False
    #: Whether only the pixels that a kernel of one pixel sees are read, which are copied first.
    thinned: bool = False

    def padded(self, channels: int) -> int:
        """Floats of a padded image of so many channels, or 0."""
        if not self.last_channel:
            return 0
        return ceil_div((channels - 1) * self.layout.channel_step + self.last_channel, LINE) * LINE


class Sources(NamedTuple):
    """What a way's ``fill`` and ``pack`` read."""

    data: np.ndarray
    layout: tuple
    prologue: Prologue
    #: The first and the end of the rows of a padded image that each worker wants.
    lines: np.ndarray
    #: The channels of a group, where each worker has a padded image of its own; otherwise 0.
    own_channels: int


@parallel(makes_arrays=False)
def _copy_last(share, rows, last):
    """The ``rows`` of each group to a tile of its own."""
    for g in within(share, rows.shape[0]):
        for i in range(rows.shape[1]):
            for k in range(rows.shape[2]):
                last[g, i, k] = rows[g, i, k]


def rows_of_weight(weight, groups: int, filters) -> tuple[Filters, list]:
    """A weight for :func:`~..product.tiles.sum_rows`, and the kernels that come before.

    They copy what is left for the last of a group's tiles, the ``filters``, to where it is filled up.
    """
    matrix, final = weight.reshape(groups, len(weight) // groups, -1), filters[-1]
    last = np.zeros((groups, ROWS, matrix.shape[2]), np.float32)
    found = Filters(matrix.reshape(-1), last.reshape(-1), np.arange(0, COLUMNS * ACROSS, MACHINE_LANES))
    whole = final["rows"] == final["room"]
    return found, [] if whole else [(_copy_last, 1, matrix[:, final["first"] :], last)]


def _apart(places):
    """The places of tiles, none of which is stored where it belongs."""
    found = places.copy()
    found["direct"] = 0
    return found


def _part(layer, arrays, part, parts) -> tuple[Layer, Arrays, tuple]:
    """A layer of some of the channels, or of all; its arrays, and the epilogue."""
    first, end = part
    prologue = arrays.prologue and (*(each[first:end] for each in arrays.prologue[:3]), *arrays.prologue[3:])
    data, weight = (array[:, first:end] for array in (arrays.data, arrays.weight))
    some = arrays._replace(data=data, weight=weight, prologue=prologue)
    epilogue = epilogue_of_part(part, parts, arrays.epilogue, arrays.out)
    return layer._replace(channels=end - first), some, epilogue


class Addressed(Way):
    """A way that says where things lie, and leaves the work to the driver."""

    #: What ``product/driver.py`` makes of the way's own fill, pack and tile, for each number of
    #: register tiles side by side.
    kernels: ClassVar[dict[int, Callable]]

    @staticmethod
    @abstractmethod
    def plan(layer, machine) -> Plan:
        """The lists of addresses."""

    @staticmethod
    def parts(layer, machine) -> list[tuple[int, int]]:
        """The channels that are summed at once, the first and the end of each part.

        Several only of one image without groups: then those of a part lie side by side.
        """
        return [(0, layer.channels)]

    @staticmethod
    def left(layer, weight, plan: Plan) -> tuple[tuple, list]:
        """The weight for the way's tiles, and kernels that come before."""
        return rows_of_weight(weight, layer.groups, plan.tiles.filters)

    def bind(self, arrays):
        layer, parts = self.layer, self.parts(self.layer, self.machine)
        kernels_of = [self._bind(*_part(layer, arrays, part, parts)) for part in parts]

        def prepare(workers):
            return [kernel for kernels in kernels_of for kernel in kernels(workers)]

        return Repeated(self.calls, arrays.out.size * layer.terms / MACHINE_LANES, prepare)

    def _bind(self, layer, arrays, epilogue):
        """A function of the number of workers, which gives a layer's kernels."""
        data, out, machine, prologue = arrays.data, arrays.out, self.machine, arrays.of_data
        groups, plan = layer.groups, self.plan(layer, machine)
        weight, copies = self.left(layer, arrays.weight, plan)
        tiles, layout, channels = plan.tiles, plan.layout, layer.group_channels
        padded, copying = plan.padded(layer.channels), 0
        if padded:
            planes = layer.channels * layout.stride[0] * layout.planes
            copying = padding_cost(layer.batch * layout.rows, planes)
        if plan.overlap and arrays.other is not None and np.may_share_memory(arrays.other, out):
            tiles = tiles._replace(places=_apart(tiles.places))
        thinner = (*data.shape[:2], *layer.out_size) if plan.thinned else (0,)

        def kernels_for(workers):
            own = padded > 0 and fills_itself(workers, groups, copying)
            if padded and groups == 1 and not tiles.by_filters:  # each fills what it needs alone
                own = own or 4 * workers * padded <= machine.last_cache
            shape = (workers, plan.padded(channels)) if own else (1, padded)
            *memory, thinned = Scratch(shape, (workers, 2, _TILE), (workers, plan.panel), thinner)()
            images, spares, panels = memory
            kernels = [*copies]
            if plan.thinned:
                kernels.append(
                    (thin_out, min(workers, num_threads(thinned.size)), data, layer.stride, thinned)
                )
            if not padded:
                images = (thinned if plan.thinned else data).reshape(1, -1)
            elif not own:
                kernels.append((fill_padded, workers, data, layout, prologue, workers, images[0]))
            begins, lines = self.division(layer, machine, workers)
            sources = Sources(data, layout, prologue, lines, channels * own)
            terms = plan.terms._replace(group_step=plan.terms.group_step * (not own))
            # Who has padded some of an image for itself computes no other part of it.
            least = 0 if own and groups == 1 and not tiles.by_filters else _LEAST
            sums, memory = (sources, weight, terms, tiles, begins, epilogue), (spares, images, panels)
            return [*kernels, (self.kernels[plan.across], workers, *sums, memory, out, least)]

        return kernels_for

    @classmethod
    @functools.lru_cache(maxsize=192)
    def division(cls, layer, machine, workers) -> tuple[np.ndarray, np.ndarray]:
        """The first tile of each worker, and the rows of a padded image that its tiles see."""
        plan = cls.plan(layer, machine)
        begins, lines = deal_tiles(plan.tiles, workers), np.zeros((workers, 2), np.int64)
        if not plan.last_channel:
            return begins, lines
        length, row_tiles = plan.layout.length, len(plan.tiles.filters)
        lines[:, 1] = layer.batch * plan.layout.rows
        if layer.groups > 1 or plan.tiles.by_filters:
            return begins, lines
        vectors = plan.tiles.places["first"] // machine.lanes
        for seen, begin, end in zip(lines, begins, begins[1:], strict=False):
            if begin < end:
                first, last = vectors[begin // row_tiles], vectors[(end - 1) // row_tiles + 1] - 1
                seen[0] = plan.terms.starts[first] // length
                seen[1] = min(seen[1], (plan.terms.starts[last] + plan.reach) // length + 1)
        return begins, lines
