"""Convolution of float32 images as a matrix product whose right factor is unrolled one panel at a time."""

import numpy as np

from ..jit import njit, num_threads, parallel, prange
from .blas import aligned, copy_every_second, copy_vector, finished_product_tile, prefetch_to_read
from .blas_vector import COLUMNS, LANES, ROWS

__all__ = ["Direct"]


@njit
def load_line(image, y, x, count, line, at):
    """``count`` pixels of row y from x on, 0 outside the image; what follows in ``line`` is spoiled."""
    height, width = image.shape
    if y < 0 or y >= height:
        line[at : at + count] = 0
        return
    flat = image.reshape(-1)
    start = y * width + x
    if x >= 0 and x + count <= width and start + count + LANES <= flat.shape[0]:
        for i in range(0, count, LANES):
            copy_vector(flat, start + i, line, at + i)
        return
    first, last = min(max(0, -x), count), min(max(0, width - x), count)
    line[at : at + first] = 0
    source, target = flat[start + first : start + last], line[at + first : at + last]
    for i in range(target.shape[0]):
        target[i] = source[i]
    line[at + last : at + count] = 0


@njit
def _fill_plain(flat, start, step, channels, count, panel):
    """A panel of pixels that lie as they are wanted: ``count`` from ``start`` on, channels ``step`` apart."""
    if start + (channels - 1) * step + COLUMNS <= flat.shape[0]:
        for c in range(channels):
            for i in range(0, COLUMNS, LANES):
                copy_vector(flat, start + c * step + i, panel, c * COLUMNS + i)
        return
    for c in range(channels):
        for i in range(count):
            panel[c * COLUMNS + i] = flat[start + c * step + i]


@njit
def _fill(image, kernel, stride, dilate, pad, width, first, count, lines, panel):
    """The pixels that ``count`` output positions from ``first`` on see, as a panel: one row for each tap.

    Vectors are stored whole, so a row of the panel spoils the start of the next, which is filled after it.
    """
    reach = (kernel[1] - 1) * dilate[1] + 1
    for c in range(image.shape[0]):
        for ky in range(kernel[0]):
            column = at = 0
            while column < count:  # the stretches of neighbouring positions in one row each
                y, x = divmod(first + column, width)
                run = min(width - x, count - column)
                length = (run - 1) * stride[1] + reach
                top = y * stride[0] + ky * dilate[0] - pad[0]
                load_line(image[c], top, x * stride[1] - pad[1], length, lines, at)
                at += length
                column += run
            for kx in range(kernel[1]):
                row = ((c * kernel[0] + ky) * kernel[1] + kx) * COLUMNS
                column = at = 0
                while column < count:
                    x = (first + column) % width
                    run = min(width - x, count - column)
                    source = at + kx * dilate[1]
                    if stride[1] == 1:
                        for i in range(0, run, LANES):
                            copy_vector(lines, source + i, panel, row + column + i)
                    elif stride[1] == 2:
                        for i in range(0, run, LANES):
                            copy_every_second(lines, source + 2 * i, panel, row + column + i)
                    else:
                        for i in range(run):
                            panel[row + column + i] = lines[source + i * stride[1]]
                    at += (run - 1) * stride[1] + reach
                    column += run


@parallel
def _convolve(
    data, weight, last_rows, groups, kernel, stride, dilate, pad,
    scale, shift, act, other, add_other, scratch, out,
):  # fmt: skip
    batch, filters, _, width = out.shape
    positions = out.shape[2] * width
    panels = (positions + COLUMNS - 1) // COLUMNS
    filters //= groups
    channels, terms = data.shape[1] // groups, weight.shape[1]
    flat_weight, flat_out, flat_other = weight.reshape(-1), out.reshape(-1), other.reshape(-1)
    flat_last = last_rows.reshape(-1)
    pointwise = kernel == (1, 1) and pad == (0, 0)
    plain = pointwise and stride == (1, 1)
    flat_data, plane = data.reshape(-1), data.shape[2] * data.shape[3]
    items = batch * groups * panels
    workers = scratch.shape[0]
    for worker in prange(workers):
        w = np.int64(worker)
        tile, beside = scratch[w, : ROWS * COLUMNS], scratch[w, ROWS * COLUMNS : 2 * ROWS * COLUMNS]
        panel = scratch[w, 2 * ROWS * COLUMNS : (2 * ROWS + terms + 1) * COLUMNS]
        lines = scratch[w, (2 * ROWS + terms + 1) * COLUMNS :]
        for item in range(w * items // workers, (w + 1) * items // workers):
            rest, p = divmod(item, panels)
            n, g = divmod(rest, groups)
            first = p * COLUMNS
            count = min(COLUMNS, positions - first)
            image = data[n, g * channels : (g + 1) * channels]
            if plain:
                start = (n * groups + g) * channels * plane + first
                _fill_plain(flat_data, start, plane, channels, count, panel)
            else:
                _fill(image, kernel, stride, dilate, pad, width, first, count, lines, panel)
            # Where a 1x1 kernel finds the next panel's first stretch of pixels.
            y, x = divmod(first + count, width)
            ahead = min(width - x, COLUMNS) * stride[1] if pointwise and first + count < positions else 0
            start = (n * groups + g) * channels * plane + y * stride[0] * data.shape[3] + x * stride[1]
            for f in range(0, filters, ROWS):
                row = g * filters + f
                rows = min(ROWS, filters - f)
                if ahead > 0:  # they are fetched while this panel is multiplied
                    for c in range(f * channels // filters, (f + rows) * channels // filters):
                        prefetch_to_read(flat_data, start + c * plane, ahead)
                at = (n * groups * filters + row) * positions + first
                if rows == ROWS and count == COLUMNS:
                    finished_product_tile(
                        flat_weight, row * terms, terms, 1, panel, 0, terms, flat_out, at, positions,
                        scale, shift, row, act, flat_other, add_other,
                    )  # fmt: skip
                    continue
                # A tile that hangs over the edge is made aside.
                if add_other:
                    for i in range(rows):
                        for j in range(count):
                            beside[i * COLUMNS + j] = flat_other[at + i * positions + j]
                left, left_at = (flat_weight, row * terms) if rows == ROWS else (flat_last, g * ROWS * terms)
                finished_product_tile(
                    left, left_at, terms, 1, panel, 0, terms, tile, 0, COLUMNS,
                    scale, shift, row, act, beside, add_other,
                )  # fmt: skip
                for i in range(rows):
                    for j in range(count):
                        flat_out[at + i * positions + j] = tile[i * COLUMNS + j]


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
            longest = COLUMNS * (stride[1] + (kernel[1] - 1) * dilate[1] + 1) + 2 * LANES
            size = -(-((terms + 2 * ROWS + 1) * COLUMNS + longest) // LANES) * LANES
            self._scratch = aligned(key[1] * size).reshape(key[1], size)
            self._last = np.zeros((self._groups, ROWS, terms), np.float32)
        rest = filters % ROWS
        if rest:
            self._last[:, :rest] = matrix.reshape(self._groups, filters, terms)[:, filters - rest :]
        _convolve(
            data, matrix, self._last, self._groups, *self._window,
            scale, shift, act, out if other is None else other, int(other is not None),
            self._scratch, out,
        )  # fmt: skip
