"""The transpose of a convolution of few pixels by many filters, as one matrix product.

What each pixel adds to the results around it is the product of the filters, one row for each channel of the
results and each tap, and the pixels. A worker takes some channels at a time, whose products stay in its
cache, and sums up what the taps add to each result. The filters, most of what there is to read, are read
once, where they lie; nothing that is made of them is kept.

``tests/reference.py`` has the convolution in plain loops: ``convolution``.
"""

import math

import numpy as np

from ...jit import Calls, inner, num_threads, parallel, within
from ..network.norm import fold
from ..product.emitter import COLUMNS, ROWS, activated, activation
from ..product.panels import copy_run, count_panels, panel_range
from ..product.tiles import PANELS, Rows, add_product_tile_of
from ..scratch import Scratch
from ..vector import LINE, MACHINE_LANES


@inner
def _pack(data, start, stop, first, last, panel):
    """The pixels ``[first, last)`` of the batch as columns of a panel, of the filters ``[start, stop)``."""
    _, filters, height, width = data.shape
    flat, in_image = data.reshape(-1), height * width
    position = first
    while position < last:
        n, place = divmod(position, in_image)
        count = min(in_image - place, last - position)
        for k in range(stop - start):
            at = (n * filters + start + k) * in_image + place
            copy_run(flat, at, panel, k * COLUMNS + position - first, count)
        position += count


@inner
def _sum_row(products, at, step, image, y, window, count, line):
    """Row ``y`` of the results of one channel and image, sorted by the columns' remainders to the stride.

    The products of its first tap and row of pixels begin at ``at``; taps are ``step`` apart. ``image``: its
    height and width; ``count``: how many results there are in a row.
    """
    kernel, stride, dilate, pad = window
    height, width = image
    room = line.shape[0] // stride[1]
    line[:] = 0
    for ky in range(kernel[0]):
        row, between = divmod(y + pad[0] - ky * dilate[0], stride[0])
        if between != 0 or row < 0 or row >= height:
            continue
        for kx in range(kernel[1]):
            ahead, remainder = divmod(kx * dilate[1] - pad[1], stride[1])
            first = max(0, -ahead)
            last = min(width, (count - remainder + stride[1] - 1) // stride[1] - ahead)
            source = at + (ky * kernel[1] + kx) * step + row * width
            to = remainder * room + ahead
            for x in range(first, last):
                line[to + x] += products[source + x]


@parallel
def _transpose(share, data, weight, window, begins, at_once, epilogue, scratch, out):
    """``begins``: where each block of channels begins, and the end; blocks have whole tiles of taps.

    ``epilogue``: scale, shift and activation. ``scratch``: products, a panel and a row for each worker.
    """
    kernel, stride, dilate, pad = window
    scale, shift, act = epilogue
    products, panels, lines = scratch
    batch, filters, height, width = data.shape
    _, channels, out_height, out_width = out.shape
    taps, pixels = kernel[0] * kernel[1], batch * height * width
    term_step, step = channels * taps, (pixels + LINE - 1) // LINE * LINE
    flat = weight.reshape(-1)
    workers, blocks = products.shape[0], begins.shape[0] - 1
    for w in within(share, workers):
        sums, panel, line = products[w], panels[w], lines[w]
        room = line.shape[0] // stride[1]
        for block in range(w * blocks // workers, (w + 1) * blocks // workers):
            begin, end = begins[block], begins[block + 1]
            tiles = (end - begin) * taps // ROWS
            sums[: tiles * ROWS * step] = 0
            for start in range(0, filters, at_once):
                stop = min(start + at_once, filters)
                for p in range(count_panels(pixels)):
                    first, last, vectors = panel_range(p, pixels)
                    _pack(data, start, stop, first, last, panel)
                    for tile in range(tiles):
                        factor = Rows(flat, start * term_step + begin * taps + tile * ROWS, 1)
                        into = Rows(sums, tile * ROWS * step + first, step)
                        add_product_tile_of(vectors, factor, term_step, panel, 0, stop - start, into)
            for c in range(begin, end):
                for n in range(batch):
                    at = (c - begin) * taps * step + n * height * width
                    for y in range(out_height):
                        taken = kernel, stride, dilate, pad
                        _sum_row(sums, at, step, (height, width), y, taken, out_width, line)
                        for i in range(line.shape[0]):
                            line[i] = activated(line[i] * scale[c] + shift[c], act)
                        target = out[n, c, y]
                        if stride[1] == 2:  # pairs, which become vectors
                            for x in range(out_width // 2):
                                target[2 * x] = line[x]
                                target[2 * x + 1] = line[room + x]
                            if out_width % 2:
                                target[out_width - 1] = line[out_width // 2]
                        else:
                            for x in range(out_width):
                                target[x] = line[x % stride[1] * room + x // stride[1]]


#: Numbers of filters whose reading, sorting by phases included, takes as long as to sum a row of products.
ROW_SUMMED = 60


class Transposed:
    """The transposed convolution of images of one depth, without groups."""

    def __init__(self, window):
        self._window = tuple(values[1:] for values in window)
        self._key = None
        self._call = Calls()

    @staticmethod
    def suits(data_shape, weight_shape) -> bool:
        """Whether filters are most of what is read, and some channels' products stay in a cache."""
        pixels, filters, channels, taps = _counts(data_shape, weight_shape)
        unit, rows = _unit(taps), data_shape[0] * data_shape[3]
        held = 8 * unit * taps * _columns(pixels) <= PANELS
        return held and ROW_SUMMED * rows <= filters and channels % unit == 0

    def __call__(self, data, weight, bias, out, *, batch_norm=None, act=None):
        """As a convolution's ``Forward``; ``weight`` is that of the convolution whose transpose this is."""
        pixels, filters, channels, taps = _counts(data.shape, weight.shape)
        workers = num_threads(pixels * weight.size / MACHINE_LANES)
        key = data.shape, weight.shape, out.shape, workers
        if key != self._key:
            self._key = key
            self._plan(pixels, filters, channels, taps, out.shape[4], workers)
        scale, shift = self._epilogue
        if batch_norm is not None:
            self._call(fold, 1, *batch_norm, bias, scale, shift)
        else:
            np.copyto(shift, 0 if bias is None else bias)
        arrays = data[:, :, 0], weight[:, :, 0], self._window, self._begins, self._at_once
        epilogue = scale, shift, activation() if act is None else act
        self._call(_transpose, workers, *arrays, epilogue, tuple(self._scratch()), out[:, :, 0])

    def _plan(self, pixels, filters, channels, taps, width, workers):
        columns, unit = _columns(pixels), _unit(taps)
        units = channels // unit
        most = max(1, PANELS // (8 * unit * taps * columns))  # units whose products fill half of the cache
        blocks = min(units, -(-units // (most * workers)) * workers)
        self._begins = np.arange(blocks + 1) * units // blocks * unit
        rows = np.diff(self._begins).max() * taps
        parts = -(-filters // max(1, PANELS // (8 * COLUMNS)))
        self._at_once = -(-filters // parts)
        stride = self._window[1][1]
        line = stride * (-(-width // (stride * LINE)) * LINE)
        shapes = (int(rows) * columns,), (self._at_once * COLUMNS,), (line,)
        self._scratch = Scratch(*((workers, *shape) for shape in shapes))
        self._epilogue = np.ones((2, channels), np.float32)


def _counts(data_shape, weight_shape):
    """Pixels of the whole batch, filters, channels of the results and taps."""
    return data_shape[0] * math.prod(data_shape[2:]), *weight_shape[:2], math.prod(weight_shape[2:])


def _columns(pixels: int) -> int:
    return -(-pixels // LINE) * LINE


def _unit(taps: int) -> int:
    """The fewest channels whose taps are whole tiles."""
    return ROWS // math.gcd(ROWS, taps)
