"""Convolution of float32 images by kernels of one pixel: the product of two matrices.

The pixels of a tile are packed: then all terms of a sum lie in a few pages, however large the image.
"""

import functools
import math
from typing import ClassVar, NamedTuple

import numpy as np

from ...jit import inner
from ..product.driver import Pieces, Terms, Tiles, driver, rows_of_filters, vectors_of_places
from ..product.emitter import COLUMNS
from ..product.panels import take_run
from ..product.tiles import ACROSS, Filters, Rows, prologue_of, sum_rows
from ..vector import prefetch_to_read
from .addressed import Addressed, Plan, across
from .way import ceil_div


class _Weight(NamedTuple):
    """A weight as kernels take it, and what they fetch meanwhile: channels, of so many pixels each."""

    filters: Filters
    channels: int
    in_group: int
    plane: int


@inner(makes_arrays=False)
def _fill_nothing(sources, g, w, image):
    """Pixels are packed from the images themselves."""


@inner(makes_arrays=False, forceinline=True)
def _take_pixels(flat, at, plane, panel, column, step, count, prologue, channels):
    """``count`` neighbouring pixels of some channels, the first and the end, to a panel from ``column`` on.

    They become what ``prologue`` makes of them. A panel's rows are ``step`` apart.
    """
    first, end = channels
    for c in range(end - first):
        of_channel = prologue_of(prologue, first + c)
        take_run(flat, at + c * plane, panel, c * step + column, count, of_channel)


def _kernel(across):
    """The kernel of tiles that are so many register tiles wide: a panel's rows are, too."""
    width = across * COLUMNS
    sum_panel = sum_rows(across, width)

    @inner(makes_arrays=False)
    def pack_pixels(sources, weight, tiles, g, block, image, panel):
        """A panel's pixels. What comes next are those of the next panel, as many as its first run has."""
        (ats, plane), prologue, runs, terms = sources.layout, sources.prologue, tiles.runs, weight.channels
        here, following = tiles.places[block], tiles.places[block + 1].run
        channels, group = (g * terms, (g + 1) * terms), g * terms * plane
        for r in range(here.run, following):
            at, column, count = ats[r] + group, runs[r].place - here.first, runs[r].count
            if count == width:  # as most are: a known number of copies is faster
                _take_pixels(image, at, plane, panel, 0, width, width, prologue, channels)
            else:
                _take_pixels(image, at, plane, panel, column, width, count, prologue, channels)
        if following == runs.shape[0]:
            return Rows(image, np.int64(0), np.int64(0))
        return Rows(image, ats[following] + group, runs[following].count)

    @inner(makes_arrays=False, forceinline=True)
    def sum_pixels(weight, terms, tile, image, panel, soon, sums, whole, epilogue):
        """Rows of filters by a panel; each tile fetches some channels of the next one."""
        filters, channels, in_group, plane = weight
        if soon.step > 0:
            first = tile.row - tile.group * in_group
            for c in range(first * channels // in_group, (first + tile.rows) * channels // in_group):
                prefetch_to_read(soon.array, soon.at + c * plane, soon.step)
        sum_panel(filters, terms, tile, panel, panel, soon, sums, whole, epilogue)

    return driver(_fill_nothing, pack_pixels, sum_pixels)


class Pointwise(Addressed):
    """Convolution by kernels of one pixel: matrix products, pixels side by side in the vectors."""

    name = "pointwise"
    kernels: ClassVar = {across: _kernel(across) for across in (1, ACROSS)}

    @staticmethod
    def suits(layer, machine):
        # Of a window without the taps that see nothing, results may lie beyond the image, where all is zero.
        sides = zip(layer.out_size, layer.stride, layer.in_size, strict=True)
        inside = all((n - 1) * s < size for n, s, size in sides)
        whole = layer.stride != (1, 1) or layer.out_size == layer.in_size
        return (layer.kernel, layer.pad) == ((1, 1), (0, 0)) and inside and whole

    @staticmethod
    def takes_prologue(layer):
        return True

    @staticmethod
    def cost(layer, machine):
        pixels = math.prod(layer.out_size)
        vectors = max(machine.few, ceil_div(layer.batch * pixels, machine.lanes))
        # The more of the second cache a panel takes, the longer its pixels are on their way.
        fetched = 0.2 * 4 * layer.terms * machine.columns / machine.block_cache
        rows = ceil_div(layer.in_group, machine.rows) * machine.rows
        products = (0.94 + fetched) * vectors * layer.groups * layer.terms * rows
        edges = 30 * layer.batch * layer.filters * (pixels % machine.lanes > 0)
        thinned = machine.single * layer.batch * layer.channels * pixels * (layer.stride != (1, 1))
        return products + vectors * (5 * layer.filters + 7 * layer.channels) + edges + thinned

    @staticmethod
    def left(layer, weight, plan):
        filters, copies = Addressed.left(layer, weight, plan)
        return _Weight(filters, layer.terms, layer.in_group, math.prod(layer.out_size)), copies

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(layer, machine) -> Plan:
        pixels, image = math.prod(layer.out_size), np.arange(layer.batch)
        ats = image * layer.filters * pixels
        pieces = Pieces(image * pixels, np.full(layer.batch, pixels), ats, layer.batch * pixels)
        tiles = across(layer, machine)
        places, runs, targets = vectors_of_places(pieces, tiles)
        width = machine.columns * tiles
        image, pixel = np.divmod(runs["at"], layer.filters * pixels)
        ats = image * layer.channels * pixels + pixel
        # In a panel, vectors lie side by side, and terms a row further each.
        starts, offsets = np.zeros(0, np.int64), np.zeros(layer.terms, np.int64)
        filters = rows_of_filters(layer.in_group)
        return Plan(
            layout=(ats, pixels),
            terms=Terms(starts, targets, 1, 0, 0, offsets),
            tiles=Tiles(layer.groups, filters, places, runs, 0, width),
            panel=(layer.terms + 1) * width,
            across=tiles,
            thinned=layer.stride != (1, 1),
        )
