"""Convolution of float32 images by kernels of one pixel: the product of two matrices.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...jit import inner, num_threads, parallel, within
from ..product.emitter import COLUMNS, ROWS
from ..product.panels import (
    MOST_SEGMENTS,
    SEGMENT,
    copy_run,
    first_items,
    panel_range,
    scale_run,
    segments,
)
from ..product.tiles import FEW, Epilogue, Rows, copy_vector, finished_product_tile_of, scale_vector
from ..scratch import Repeated, Scratch
from ..vector import MACHINE_LANES, prefetch_to_read
from .way import Way, ceil_div


@inner(makes_arrays=False)
def _fill_plain(pixels, channels, found, count, panel):
    """A panel of pixels that lie as they are wanted.

    ``pixels``: a flat array, where the first one is, and the steps from image to image and from channel to
    channel.
    """
    flat, start, image_step, step = pixels
    for s in range(count):
        segment = found[s]
        first, run = start + segment.image * image_step + segment.x, segment.run
        if run == COLUMNS:  # as most are: a known number of copies is faster
            for c in range(channels):
                for i in range(0, COLUMNS, MACHINE_LANES):
                    copy_vector(flat, first + c * step + i, panel, c * COLUMNS + i)
            continue
        for c in range(channels):
            copy_run(flat, first + c * step, panel, c * COLUMNS + segment.column, run)


@inner(makes_arrays=False)
def _fill_scaled(pixels, channels, found, count, panel, prologue, first_channel):
    """:func:`_fill_plain` of pixels as ``prologue`` makes them, of channels from ``first_channel`` on."""
    flat, start, image_step, step = pixels
    mean, scale, shift, floor, _ = prologue
    for s in range(count):
        segment = found[s]
        first, run, column = start + segment.image * image_step + segment.x, segment.run, segment.column
        for c in range(channels):
            k = first_channel + c
            m, a, b, source, target = mean[k], scale[k], shift[k], first + c * step, c * COLUMNS + column
            if run == COLUMNS:
                for i in range(0, COLUMNS, MACHINE_LANES):
                    scale_vector(flat, source + i, panel, target + i, m, a, b, floor)
            else:
                scale_run(flat, source, panel, target, run, m, a, b, floor)


@parallel(makes_arrays=False)
def _thin_out(share, data, stride, out):
    """The pixels that a kernel of one pixel sees with these strides."""
    batch, channels, height, width = out.shape
    for plane in within(share, batch * channels):
        n, c = divmod(plane, channels)
        for y in range(height):
            for x in range(width):
                out[n, c, y, x] = data[n, c, y * stride[0], x * stride[1]]


@inner(makes_arrays=False)
def _move_tile(tile, found, count, rows, filters, positions, first_row, out, fetch):
    """Copy a tile's rows, filters from ``first_row`` on, to where the panel's segments lie, or from there."""
    for s in range(count):
        segment = found[s]
        at = (segment.image * filters + first_row) * positions + segment.x
        for i in range(rows):
            column, place = i * COLUMNS + segment.column, at + i * positions
            if fetch:
                copy_run(out, place, tile, column, segment.run)
            else:
                copy_run(tile, column, out, place, segment.run)


@inner(makes_arrays=False, forceinline=True)
def _compute(left, right, found, count, vectors, place, epilogue, memory, out):
    """A tile of results: in its place, or where it hangs over the edge of an image aside.

    ``place``: its first filter, how many there are, and the results of the panel. ``found`` are the panel's
    ``count`` segments, ``memory`` the two tiles aside, ``out`` the flat results and their filters.
    """
    row, rows, results = place
    scale, shift, act, other, add_other = epilogue
    (tile, others), (flat, filters, positions) = memory, out
    whole = rows == ROWS and results == vectors * MACHINE_LANES and count == 1
    at, step = np.int64(0), np.int64(COLUMNS)
    if whole:
        at, step = (found[0].image * filters + row) * positions + found[0].x, positions
        if add_other:
            for i in range(rows):
                prefetch_to_read(other, at + i * positions, COLUMNS)
    elif add_other:
        _move_tile(others, found, count, rows, filters, positions, row, other, True)
    target, added = (flat, other) if whole else (tile, others)
    after, sums = Epilogue(scale, shift, act, added, add_other), Rows(target, at, step)
    finished_product_tile_of(vectors, left, right, left.step, sums, after, row)
    if not whole:
        _move_tile(tile, found, count, rows, filters, positions, row, flat, False)


@parallel(makes_arrays=False)
def _multiply(share, data, weight, groups, begins, prologue, epilogue, scratch, found, out):
    """``prologue`` and ``epilogue`` hold what :class:`Prologue` and :class:`Epilogue` do.

    ``begins``: the first tile of each worker, and the end. Tiles follow one another by group, panel and rows.
    """
    scale, shift, act, other, add_other = epilogue
    batch, filters, height, width = out.shape
    positions, filters = height * width, filters // groups
    row_tiles = (filters + ROWS - 1) // ROWS
    panels = (batch * positions + COLUMNS - 1) // COLUMNS
    flat_weight, flat_last, _ = weight
    terms = flat_weight.shape[0] // (groups * filters)
    flat_data, flat, flat_other = data.reshape(-1), out.reshape(-1), other.reshape(-1)
    for w in within(share, scratch.shape[0]):
        tile, others = scratch[w, : ROWS * COLUMNS], scratch[w, ROWS * COLUMNS : 2 * ROWS * COLUMNS]
        panel, parts = scratch[w, 2 * ROWS * COLUMNS :], found[w]
        filled = np.int64(-1)
        first = stop = vectors = count = g = start = ahead = np.int64(0)
        # Of each panel's tiles one after the other, so that workers share a panel they cannot divide.
        for item in range(begins[w], begins[w + 1]):
            index, r = divmod(item, row_tiles)
            if index != filled:
                filled = index
                g, p = divmod(index, panels)
                first, stop, vectors = panel_range(p, panels, batch * positions)
                vectors = max(vectors, FEW)
                count = segments(first, stop, 1, positions, parts)
                pixels = flat_data, g * terms * positions, groups * terms * positions, positions
                if prologue[4]:
                    _fill_scaled(pixels, terms, parts, count, panel, prologue, g * terms)
                else:
                    _fill_plain(pixels, terms, parts, count, panel)
                # Where the next panel's first segment of pixels is.
                n, x = divmod(stop, positions)
                ahead = min(positions - x, COLUMNS) if n < batch else 0
                start = (n * groups + g) * terms * positions + x
            f = r * ROWS
            row, rows = g * filters + f, min(ROWS, filters - f)
            if ahead > 0:  # they are fetched while this panel is multiplied
                for c in range(f * terms // filters, (f + rows) * terms // filters):
                    prefetch_to_read(flat_data, start + c * positions, ahead)
            array, at = (flat_weight, row * terms) if rows == ROWS else (flat_last, g * ROWS * terms)
            left, into = Rows(array, at, terms), (scale, shift, act, flat_other, add_other)
            place, results = (row, rows, stop - first), (flat, groups * filters, positions)
            _compute(left, panel, parts, count, vectors, place, into, (tile, others), results)


class Left(NamedTuple):
    """A weight as the driver's tiles of rows read it."""

    #: The flat weight, what follows the last whole tile of a group, and the places of vectors aside.
    arrays: tuple
    #: ``before(run)``: a call of ``run``, which finds the last rows with their tile filled up.
    before: Callable


def weights_and_last_rows(matrix, groups: int, whole=(0,)) -> Left:
    """A weight of ``(filters, terms)``; a rest of so many rows is a tile that is ``whole``."""
    in_group, terms = len(matrix) // groups, matrix.shape[1]
    last, rest = np.zeros((groups, ROWS, terms), np.float32), in_group % ROWS
    arrays = matrix.reshape(-1), last.reshape(-1), np.arange(0, COLUMNS, MACHINE_LANES)
    if rest in whole:
        return Left(arrays, lambda run: run)
    rows = matrix.reshape(groups, in_group, terms)[:, -rest:]

    def before(run):
        def copy_and_run():
            last[:, :rest] = rows
            run()

        return copy_and_run

    return Left(arrays, before)


class Pointwise(Way):
    """Convolution by kernels of one pixel: matrix products, pixels side by side in the vectors."""

    name = "pointwise"

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
        fetched = 0.2 * 4 * layer.terms * machine.columns / machine.second_cache
        rows = ceil_div(layer.in_group, machine.rows) * machine.rows
        products = (0.94 + fetched) * vectors * layer.groups * layer.terms * rows
        edges = 30 * layer.batch * layer.filters * (pixels % machine.lanes > 0)
        thinned = machine.single * layer.batch * layer.channels * pixels * (layer.stride != (1, 1))
        return products + vectors * (5 * layer.filters + 7 * layer.channels) + edges + thinned

    def bind(self, arrays):
        data, weight, out = arrays.data, arrays.weight, arrays.out
        prologue, epilogue = arrays.of_data, arrays.epilogue
        groups, stride, terms = self.layer.groups, self.layer.stride, self.layer.terms
        left = weights_and_last_rows(weight.reshape(len(weight), -1), groups)
        size = (2 * ROWS + terms + 1) * COLUMNS
        thin = stride != (1, 1)
        thinner = (*data.shape[:2], *out.shape[2:]) if thin else (0,)
        pixels, row_tiles = len(data) * math.prod(out.shape[2:]), ceil_div(self.layer.in_group, ROWS)
        vectors = ceil_div(pixels, MACHINE_LANES)

        def prepare(workers):
            scratch, thinned = Scratch((workers, size), thinner)()
            begins = first_items(workers, groups, ceil_div(pixels, COLUMNS), vectors, row_tiles)
            found = np.zeros((workers, MOST_SEGMENTS), SEGMENT)
            kernels = []
            if thin:
                kernels.append((_thin_out, min(workers, num_threads(thinned.size)), data, stride, thinned))
            sources = thinned if thin else data, left.arrays, groups, begins
            return [*kernels, (_multiply, workers, *sources, prologue, epilogue, scratch, found, out)]

        return left.before(Repeated(self.calls, out.size * terms / MACHINE_LANES, prepare))
