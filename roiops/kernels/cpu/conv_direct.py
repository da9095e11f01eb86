"""Convolution of float32 images as a matrix product whose right factor is unrolled one panel at a time."""

import numpy as np

from ..jit import njit, num_threads, parallel, prange
from .blas import aligned, copy_every_second, copy_vector, finished_product_tile_of, prefetch_to_read
from .blas_vector import COLUMNS, LANES, ROWS, VECTORS
from .panels import (
    STRETCH,
    STRETCHES,
    copy_run,
    count_panels,
    find_places,
    gather,
    load_line,
    panel_range,
    stretches,
)

__all__ = ["Direct"]


@njit
def _fill_plain(flat, start, image_step, step, channels, found, count, panel):
    """A panel of pixels that lie as they are wanted: from ``start`` on, channels ``step`` apart."""
    for s in range(count):
        stretch = found[s]
        first, run = start + stretch.image * image_step + stretch.x, stretch.run
        if run == COLUMNS:  # as most are: a known number of copies is faster
            for c in range(channels):
                for i in range(0, COLUMNS, LANES):
                    copy_vector(flat, first + c * step + i, panel, c * COLUMNS + i)
            continue
        for c in range(channels):
            copy_run(flat, first + c * step, panel, c * COLUMNS + stretch.column, run)


@njit
def _fill(data, first_channel, channels, kernel, stride, dilate, pad, found, count, lines, panel):
    """The pixels that the stretches of a panel see: one row for each tap.

    Vectors are stored whole, so a row of the panel spoils the start of the next, which is filled after it.
    """
    reach = (kernel[1] - 1) * dilate[1] + 1
    for c in range(channels):
        for ky in range(kernel[0]):
            at = 0
            for s in range(count):
                stretch = found[s]
                length = (stretch.run - 1) * stride[1] + reach
                top = stretch.y * stride[0] + ky * dilate[0] - pad[0]
                left = stretch.x * stride[1] - pad[1]
                load_line(data[stretch.image, first_channel + c], top, left, length, lines, at)
                at += length
            for kx in range(kernel[1]):
                row = ((c * kernel[0] + ky) * kernel[1] + kx) * COLUMNS
                at = 0
                for s in range(count):
                    run, column = found[s].run, row + found[s].column
                    source = at + kx * dilate[1]
                    if stride[1] == 1:
                        for i in range(0, run, LANES):
                            copy_vector(lines, source + i, panel, column + i)
                    elif stride[1] == 2:
                        for i in range(0, run, LANES):
                            copy_every_second(lines, source + 2 * i, panel, column + i)
                    else:
                        for i in range(run):
                            panel[column + i] = lines[source + i * stride[1]]
                    at += (run - 1) * stride[1] + reach


@njit
def _put_tile(tile, found, count, rows, filters, positions, first_row, out):
    """Copy a tile's rows, filters from ``first_row`` on, to where the panel's stretches lie in ``out``."""
    for s in range(count):
        stretch = found[s]
        at = (stretch.image * filters + first_row) * positions + stretch.x
        for i in range(rows):
            copy_run(tile, i * COLUMNS + stretch.column, out, at + i * positions, stretch.run)


@njit
def _fetch_tile(tile, found, count, rows, filters, positions, first_row, out):
    """The inverse of :func:`_put_tile`."""
    for s in range(count):
        stretch = found[s]
        at = (stretch.image * filters + first_row) * positions + stretch.x
        for i in range(rows):
            copy_run(out, at + i * positions, tile, i * COLUMNS + stretch.column, stretch.run)


@parallel
def _convolve(
    data, weight, last_rows, groups, kernel, stride, dilate, pad,
    scale, shift, act, other, add_other, scratch, found, places, out,
):  # fmt: skip
    batch, filters, height, width = out.shape
    positions = height * width
    panels = count_panels(batch * positions)
    filters //= groups
    row_tiles = (filters + ROWS - 1) // ROWS
    channels, terms = data.shape[1] // groups, weight.shape[1]
    flat_weight, flat_out, flat_other = weight.reshape(-1), out.reshape(-1), other.reshape(-1)
    flat_last = last_rows.reshape(-1)
    pointwise = kernel == (1, 1) and pad == (0, 0)
    plain = pointwise and stride == (1, 1)
    narrow = width < LANES
    flat_data, plane = data.reshape(-1), data.shape[2] * data.shape[3]
    taps = kernel[0] * kernel[1] * COLUMNS
    workers = scratch.shape[0]
    # Of each panel's tiles one after the other, so that workers share the last panel they cannot divide.
    items = groups * panels * row_tiles
    for worker in prange(workers):
        w = np.int64(worker)
        tile, beside = scratch[w, : ROWS * COLUMNS], scratch[w, ROWS * COLUMNS : 2 * ROWS * COLUMNS]
        panel = scratch[w, 2 * ROWS * COLUMNS : (2 * ROWS + terms + 1) * COLUMNS]
        lines = scratch[w, (2 * ROWS + terms + 1) * COLUMNS :]
        pixels, parts, mine = found[w, 0], found[w, 1], places[w]
        filled = np.int64(-1)
        first = stop = vectors = count_parts = g = start = ahead = np.int64(0)
        for item in range(w * items // workers, (w + 1) * items // workers):
            index, r = divmod(item, row_tiles)
            if index != filled:
                filled = index
                g, p = divmod(index, panels)
                first, stop, vectors = panel_range(p, batch * positions)
                count_parts = stretches(first, stop, 1, positions, parts)
                count_pixels = stretches(first, stop, height, width, pixels)
                if plain:
                    start = g * channels * plane
                    image_step = groups * channels * plane
                    _fill_plain(flat_data, start, image_step, plane, channels, parts, count_parts, panel)
                elif narrow:
                    find_places(data.shape, kernel, stride, dilate, pad, pixels, count_pixels, mine)
                    for c in range(channels):
                        gather(flat_data, (g * channels + c) * plane, mine, vectors * LANES, panel, c * taps)
                else:
                    _fill(
                        data, g * channels, channels, kernel, stride, dilate, pad, pixels, count_pixels,
                        lines, panel,
                    )  # fmt: skip
                # Where a 1x1 kernel finds the next panel's first stretch of pixels.
                n, position = divmod(stop, positions)
                y, x = divmod(position, width)
                ahead = min(width - x, COLUMNS) * stride[1] if pointwise and n < batch else 0
                start = (n * groups + g) * channels * plane + y * stride[0] * data.shape[3] + x * stride[1]
            f = r * ROWS
            row = g * filters + f
            rows = min(ROWS, filters - f)
            if ahead > 0:  # they are fetched while this panel is multiplied
                for c in range(f * channels // filters, (f + rows) * channels // filters):
                    prefetch_to_read(flat_data, start + c * plane, ahead)
            if rows == ROWS and stop - first == vectors * LANES and count_parts == 1:
                at = (parts[0].image * groups * filters + row) * positions + parts[0].x
                finished_product_tile_of(
                    vectors, flat_weight, row * terms, terms, 1, panel, 0, terms, flat_out, at, positions,
                    scale, shift, row, act, flat_other, add_other,
                )  # fmt: skip
                continue
            # A tile that hangs over the edge of an image is made aside.
            if add_other:
                _fetch_tile(beside, parts, count_parts, rows, groups * filters, positions, row, flat_other)
            left, left_at = (flat_weight, row * terms) if rows == ROWS else (flat_last, g * ROWS * terms)
            finished_product_tile_of(
                vectors, left, left_at, terms, 1, panel, 0, terms, tile, 0, COLUMNS,
                scale, shift, row, act, beside, add_other,
            )  # fmt: skip
            _put_tile(tile, parts, count_parts, rows, groups * filters, positions, row, flat_out)


class Direct:
    """Convolution by matrix products, with scratch that is kept from call to call."""

    def __init__(self, kernel, stride, dilate, pad, groups):
        self._window = kernel, stride, dilate, pad
        self._groups = groups
        self._key = None

    def __call__(self, data, weight, scale, shift, act, other, out):
        """``out = act(scale * convolution + shift + other)``; ``other`` may be None.

        ``scale`` and ``shift`` are longer than the filters by ``ROWS``.
        """
        matrix = weight.reshape(len(weight), -1)
        filters, terms = len(matrix) // self._groups, matrix.shape[1]
        key = matrix.shape, num_threads()
        if key != self._key:
            self._key = key
            kernel, stride, dilate, _ = self._window
            reach, workers = (kernel[1] - 1) * dilate[1] + 1, key[1]
            # Pixels that a panel's stretches see of one row each; a row is not narrower than a vector there.
            lines = COLUMNS * stride[1] + (VECTORS + 2) * reach + 4 * LANES
            size = -(-((terms + 2 * ROWS + 1) * COLUMNS + lines) // LANES) * LANES
            self._scratch = aligned(workers * size).reshape(workers, size)
            self._found = np.zeros((workers, 2, STRETCHES), STRETCH)
            self._places = np.empty((workers, kernel[0] * kernel[1] * COLUMNS), np.int64)
            self._last = np.zeros((self._groups, ROWS, terms), np.float32)
        rest = filters % ROWS
        if rest:
            self._last[:, :rest] = matrix.reshape(self._groups, filters, terms)[:, filters - rest :]
        _convolve(
            data, matrix, self._last, self._groups, *self._window,
            scale, shift, act, out if other is None else other, int(other is not None),
            self._scratch, self._found, self._places, out,
        )  # fmt: skip
