"""Convolution of float32 images as a sum of shifted images, without unrolling them.

A tile of results is a sum, over channels and taps, of one weight times one run of the padded image
(``conv/padded.py``). Results that fall between the rows or between the images are computed and not stored.
"""

import functools
import math
from typing import ClassVar

import numpy as np

from ...jit import inner
from ..product.driver import Pieces, Terms, Tiles, driver, rows_of_filters, vectors_of_places
from ..product.machine import Machine
from ..product.tiles import ACROSS, Rows, sum_rows
from ..vector import LINE
from .addressed import Addressed, Plan, across
from .padded import Layout, channel_step, fill_own, padding_cost, shared_zeros, tap_places, window_reach
from .pointwise import Pointwise
from .way import Layer, ceil_div


def joins_rows(layer: Layer, machine: Machine) -> bool:
    """Whether a padded image holds the pixels of each column of taps apart, in rows like the results'.

    Rows then follow each other as the results do: nothing between them is computed, or moved. Rows of whole
    vectors do so anyway. It is not worth padded images that leave the nearer caches.
    """
    height, width = layer.out_size
    rows = height * layer.stride[0] + layer.kernel[0]
    floats = layer.batch * layer.channels * layer.kernel[1] * width * rows
    return width % machine.lanes > 0 and 4 * floats <= machine.block_cache // 2


#: Cycles, about, of storing a vector of results, alone and in a long run, of moving a row of them, and of
#: fetching a line of an image that no cache holds, whose columns are then parted.
VECTOR_STORED, VECTOR_IN_RUN, ROW_MOVED, LINE_PARTED = 10, 4, 58, 100


@inner(makes_arrays=False)
def _pack(sources, weight, tiles, g, block, image, panel):
    """Nothing is packed; what is fetched meanwhile is at hand."""
    return Rows(image, np.int64(0), np.int64(0))


def own_vectors(layer: Layer, machine: Machine) -> bool:
    """Whether each row of results has vectors of its own, the last of which may overlap with the one before.

    Otherwise vectors go on from row to row, and each row is moved to its place.
    """
    width = layer.out_size[1]
    surplus = -width % machine.lanes / machine.lanes * layer.terms / machine.units
    return width >= machine.lanes and surplus <= ROW_MOVED


def _results(layer, lanes: int, rows: int, length: int, joined: bool, own: bool):
    """Where the vectors of results begin in a padded image, and the :class:`Pieces` that they are.

    Where rows have no vectors of their own, vectors go on from row to row; what lies between is not stored.
    """
    height, width = layer.out_size
    image, y = np.ogrid[: layer.batch, :height]
    begins, ats = (image * rows + y) * length, (image * layer.filters * height + y) * width
    if not own:
        if joined:
            begins, ats, width = begins[:, :1], ats[:, :1], height * width
        begins, ats = begins.reshape(-1), ats.reshape(-1)
        count = int(begins[-1]) + width
        return np.arange(0, count, lanes), Pieces(begins, np.full(begins.size, width), ats, count)
    # A row's places are those of its vectors; of the last one, what is not the vector before's comes last.
    firsts = np.arange(0, width, lanes)
    x = np.minimum(firsts, width - lanes)
    starts, targets = ((each[:, :, None] + x).reshape(-1) for each in (begins, ats))
    counts = np.tile(np.minimum(lanes, width - firsts), begins.size)
    begins = (np.arange(starts.size) + 1) * lanes - counts
    return starts, Pieces(begins, counts, targets + lanes - counts, starts.size * lanes, targets)


class Shifted(Addressed):
    """Convolution with any kernel, stride, dilation and padding, on one or two axes."""

    name = "shifted"
    kernels: ClassVar = {count: driver(fill_own, _pack, sum_rows(count)) for count in (1, ACROSS)}

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
        by_row = own_vectors(layer, machine)
        if joined:
            vectors = ceil_div(((batch - 1) * rows + size[0]) * size[1], machine.lanes)
        elif by_row:
            vectors = batch * size[0] * ceil_div(size[1], machine.lanes)
        else:
            vectors = ceil_div(batch * rows * length, machine.lanes)
        vectors = max(machine.few, vectors)
        stored = vectors * (VECTOR_STORED if across(layer, machine) == 1 else VECTOR_IN_RUN)
        if not (joined or by_row):
            stored = ROW_MOVED * batch * size[0]
        low = machine.rows // 2 if layer.in_group <= machine.rows // 2 else machine.rows
        steps = 1.0 if max(stride) == 1 else 1.25
        sums = machine.rows * machine.vectors
        # Vectors begin anywhere: of 16 numbers each lies in two lines, of 8 every second one.
        loads = machine.rows + machine.vectors * (1 + machine.lanes / LINE) + 8
        steps *= machine.of_term(sums, loads) / sums
        products = steps * vectors * groups * layer.terms * ceil_div(layer.in_group, low) * low
        planes = stride[0] * (kernel[1] if joined else stride[1])
        copied = padding_cost(batch * (size[0] + 1), layer.channels * planes)
        pixels = batch * layer.channels * math.prod(layer.in_size)
        if planes > 1 and 2 * 4 * pixels >= machine.last_cache:  # with the copy
            copied += LINE_PARTED * pixels / LINE
        return products + copied + stored * layer.filters

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(layer, machine) -> Plan:
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
        own = not joined and own_vectors(layer, machine)
        starts, pieces = _results(layer, lanes, rows, length, joined, own)
        tiles = across(layer, machine)
        places, runs, targets = vectors_of_places(pieces, tiles)
        # What is read again for each tile of filters is the padded image; for each panel of places, the
        # weight. Then results also go to as many places of memory as there are filters, a few to each.
        panels, row_tiles = pieces.places / machine.columns, layer.in_group / machine.rows
        weights = layer.filters * layer.terms
        by_panel = panels * weights * (4 * weights > machine.block_cache // 2)
        results = batch * layer.filters * height * width
        by_filters = int(by_panel + results > row_tiles * channels * step)
        filters = rows_of_filters(layer.in_group)
        return Plan(
            layout=Layout(stride, pad, rows, length, step, *columns),
            # A tile may be wider than what there is.
            terms=Terms(
                np.pad(starts, (0, machine.vectors), "edge"),
                targets,
                layer.group_channels,
                step,
                layer.group_channels * step,
                np.array(taps, np.int64),
            ),
            tiles=Tiles(layer.groups, filters, places, runs, by_filters, machine.columns * tiles),
            last_channel=max(step, plane + max(taps) + machine.columns),
            reach=max(tap % plane for tap in taps) + lanes - 1,
            across=tiles,
            overlap=own and width % lanes > 0,
        )
