"""Convolution of float32 images by kernels of one pixel: the product of two matrices.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import math

import numpy as np

from ...jit import Calls, inner, num_threads, parallel, within
from ..product.emitter import COLUMNS, ROWS
from ..product.panels import (
    MOST_SEGMENTS,
    SEGMENT,
    copy_run,
    count_panels,
    first_item,
    panel_range,
    scale_run,
    segments,
)
from ..product.tiles import FEW, Epilogue, Prologue, Rows, copy_vector, finished_product_tile_of, scale_vector
from ..scratch import Repeated, Scratch
from ..vector import MACHINE_LANES, prefetch_to_read
from .way import Way, ceil_div


@inner
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


@inner
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


@parallel
def _thin_out(share, data, stride, out):
    """The pixels that a kernel of one pixel sees with these strides."""
    batch, channels, height, width = out.shape
    for plane in within(share, batch * channels):
        n, c = divmod(plane, channels)
        for y in range(height):
            for x in range(width):
                out[n, c, y, x] = data[n, c, y * stride[0], x * stride[1]]


@inner
def _put_tile(tile, found, count, rows, filters, positions, first_row, out):
    """Copy a tile's rows, filters from ``first_row`` on, to where the panel's segments lie in ``out``."""
    for s in range(count):
        segment = found[s]
        at = (segment.image * filters + first_row) * positions + segment.x
        for i in range(rows):
            copy_run(tile, i * COLUMNS + segment.column, out, at + i * positions, segment.run)


@inner
def _fetch_tile(tile, found, count, rows, filters, positions, first_row, out):
    """The inverse of :func:`_put_tile`."""
    for s in range(count):
        segment = found[s]
        at = (segment.image * filters + first_row) * positions + segment.x
        for i in range(rows):
            copy_run(out, at + i * positions, tile, i * COLUMNS + segment.column, segment.run)


@parallel(makes_arrays=False)
def _multiply(share, data, weight, last_rows, groups, prologue, epilogue, scratch, found, out):
    """``prologue`` and ``epilogue`` hold what :class:`Prologue` and :class:`Epilogue` do."""
    mean, in_scale, in_shift, floor, normalises = prologue
    scale, shift, act, other, add_other = epilogue
    batch, filters, height, width = out.shape
    positions = height * width
    panels = count_panels(batch * positions)
    filters //= groups
    row_tiles = (filters + ROWS - 1) // ROWS
    terms = weight.shape[1]
    flat_weight, flat_out, flat_other = weight.reshape(-1), out.reshape(-1), other.reshape(-1)
    flat_last, flat_data = last_rows.reshape(-1), data.reshape(-1)
    workers = scratch.shape[0]
    vectors_in_all = (batch * positions + MACHINE_LANES - 1) // MACHINE_LANES
    for w in within(share, workers):
        tile, beside = scratch[w, : ROWS * COLUMNS], scratch[w, ROWS * COLUMNS : 2 * ROWS * COLUMNS]
        panel, parts = scratch[w, 2 * ROWS * COLUMNS :], found[w]
        filled = np.int64(-1)
        first = stop = vectors = count = g = start = ahead = np.int64(0)
        # Of each panel's tiles one after the other, so that workers share a panel they cannot divide.
        begin = first_item(w, workers, groups, panels, vectors_in_all, row_tiles)
        end = first_item(w + 1, workers, groups, panels, vectors_in_all, row_tiles)
        for item in range(begin, end):
            index, r = divmod(item, row_tiles)
            if index != filled:
                filled = index
                g, p = divmod(index, panels)
                first, stop, vectors = panel_range(p, batch * positions)
                vectors = max(vectors, FEW)
                count = segments(first, stop, 1, positions, parts)
                start = g * terms * positions
                image_step = groups * terms * positions
                pixels = flat_data, start, image_step, positions
                if normalises:
                    before = Prologue(mean, in_scale, in_shift, floor, normalises)
                    _fill_scaled(pixels, terms, parts, count, panel, before, g * terms)
                else:
                    _fill_plain(pixels, terms, parts, count, panel)
                # Where the next panel's first segment of pixels is.
                n, x = divmod(stop, positions)
                ahead = min(positions - x, COLUMNS) if n < batch else 0
                start = (n * groups + g) * terms * positions + x
            f = r * ROWS
            row = g * filters + f
            rows = min(ROWS, filters - f)
            if ahead > 0:  # they are fetched while this panel is multiplied
                for c in range(f * terms // filters, (f + rows) * terms // filters):
                    prefetch_to_read(flat_data, start + c * positions, ahead)
            # A tile that hangs over the edge of an image is made aside.
            whole = rows == ROWS and stop - first == vectors * MACHINE_LANES and count == 1
            left, left_at = (flat_weight, row * terms) if rows == ROWS else (flat_last, g * ROWS * terms)
            target, around = (flat_out, flat_other) if whole else (tile, beside)
            at, step = np.int64(0), np.int64(COLUMNS)
            if whole and add_other:
                for i in range(rows):
                    beside_row = (parts[0].image * groups * filters + row + i) * positions + parts[0].x
                    prefetch_to_read(flat_other, beside_row, COLUMNS)
            if whole:
                at, step = (parts[0].image * groups * filters + row) * positions + parts[0].x, positions
            elif add_other:
                _fetch_tile(beside, parts, count, rows, groups * filters, positions, row, flat_other)
            factors, results = Rows(left, left_at, terms), Rows(target, at, step)
            after = Epilogue(scale, shift, act, around, add_other)
            finished_product_tile_of(vectors, factors, panel, terms, results, after, row)
            if not whole:
                _put_tile(tile, parts, count, rows, groups * filters, positions, row, flat_out)


def with_last_rows(run, matrix, last, rest):
    """``run``, which finds the last ``rest`` filters of each group in ``last``, with their tile filled up."""
    if not rest:
        return run
    rows = matrix.reshape(len(last), -1, matrix.shape[1])[:, -rest:]

    def copy_and_run():
        last[:, :rest] = rows
        run()

    return copy_and_run


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
        vectors = ceil_div(layer.batch * pixels, machine.lanes)
        # The more of the second cache a panel takes, the longer its pixels are on their way.
        fetched = 0.2 * 4 * layer.terms * machine.columns / machine.second_cache
        rows = ceil_div(layer.in_group, machine.rows) * machine.rows
        products = (0.94 + fetched) * vectors * layer.groups * layer.terms * rows
        edges = 30 * layer.batch * layer.filters * (pixels % machine.lanes > 0)
        return products + vectors * (5 * layer.filters + 7 * layer.channels) + edges

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, prologue = arrays
        prologue = (shift, shift, shift, np.float32(0), 0) if prologue is None else prologue
        matrix, (groups, stride) = weight.reshape(len(weight), -1), (self.layer.groups, self.layer.stride)
        terms, rest = self.layer.terms, self.layer.in_group % ROWS
        epilogue = scale, shift, act, out if other is None else other, int(other is not None)
        last = np.zeros((groups, ROWS, terms), np.float32)
        size = (2 * ROWS + terms + 1) * COLUMNS
        thin = stride != (1, 1)
        seen = (*data.shape[:2], *out.shape[2:]) if thin else (0,)

        def prepare(workers):
            scratch, thinned = Scratch((workers, size), seen)()
            found = np.zeros((workers, MOST_SEGMENTS), SEGMENT)
            kernels = []
            if thin:
                kernels.append((_thin_out, min(workers, num_threads(thinned.size)), data, stride, thinned))
            pixels = thinned if thin else data
            multiply = pixels, matrix, last, groups, prologue, epilogue, scratch, found, out
            return [*kernels, (_multiply, workers, *multiply)]

        run = Repeated(Calls(), out.size * terms / MACHINE_LANES, prepare)
        return with_last_rows(run, matrix, last, rest)
