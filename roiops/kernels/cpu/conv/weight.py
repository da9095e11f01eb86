"""The gradient of a convolution's weight with steps of 1, without unrolled images.

For each tap it is a matrix product: the channels of the image, moved by the tap, times the gradient of the
results, summed over the pixels. With zeros between the rows of the latter, a tap is but a place to start at.
"""

from ...jit import inner, num_threads, parallel, within
from ..product.emitter import COLUMNS, ROWS
from ..product.panels import count_panels, first_item, load_line, panel_range
from ..product.tiles import Rows, add_product_tile
from ..vector import MACHINE_LANES, aligned_zeros

#: About how many pixels are summed at once: their panel stays in the second-level cache.
PIXELS = 1024


def steps_of_one(grad_out, data, kernel, dilate, pad, grad_weight):
    """Write the gradient of the weight ``(F, C, kh, kw)``; all are float32 and C-contiguous."""
    _, filters, height, width = grad_out.shape
    channels = data.shape[1]
    reach = [(k - 1) * d for k, d in zip(kernel, dilate, strict=True)]
    step = width + reach[1]
    rows = max(1, min(height, PIXELS // step))
    tiles = -(-channels // ROWS)
    items = tiles * count_panels(filters)
    workers = max(1, min(num_threads(), items))
    size = (rows + reach[0]) * step + reach[1] + MACHINE_LANES
    frames = aligned_zeros(workers * tiles * ROWS * size).reshape(workers, -1)
    panels = aligned_zeros(workers * rows * step * COLUMNS).reshape(workers, -1)
    sums = aligned_zeros(items * kernel[0] * kernel[1] * ROWS * COLUMNS)
    layout, scratch = (rows, step, size), (frames, panels, sums)
    _sum_up(grad_out, data, (kernel, dilate, pad), layout, scratch, grad_weight)


@inner
def _pack(grad_out, first, stop, columns, top, rows, step, panel):
    """Filters ``[first, stop)`` as the columns of a panel, ``rows`` rows of their planes from ``top`` on.

    Rows are ``step`` terms apart. What is left of them, and of the columns, is 0.
    """
    width = grad_out.shape[2]
    for y in range(rows):
        at = y * step * COLUMNS
        for block in range(0, width, MACHINE_LANES):  # a cache line of each plane at a time
            count = min(MACHINE_LANES, width - block)
            for f in range(first, stop):
                source = grad_out[f, top + y, block : block + count]
                column = at + block * COLUMNS + f - first
                for k in range(count):
                    panel[column + k * COLUMNS] = source[k]
        panel[at + width * COLUMNS : at + step * COLUMNS] = 0
        for x in range(width):
            for column in range(stop - first, columns):
                panel[at + x * COLUMNS + column] = 0


@inner
def _copy_rows(images, first, stop, top, pad, step, size, rows, frame):
    """What the taps of ``rows`` rows from ``top`` on see of some channels, with zeros around it."""
    for c in range(first, stop):
        for y in range(rows):
            load_line(images[c], top - pad[0] + y, -pad[1], step, frame, c * size + y * step)
        frame[c * size + rows * step : (c + 1) * size] = 0


@inner
def _put_sums(sums, at, filters, first, rows, taps, grad_weight):
    """A tile's sums of ``rows`` channels from ``first`` on, tap by tap, to the filters ``[first, stop)``."""
    for f in range(filters[0], filters[1]):
        for i in range(rows):
            target = grad_weight[f, first + i].reshape(-1)
            for tap in range(taps):
                target[tap] = sums[at + (tap * ROWS + i) * COLUMNS + f - filters[0]]


@parallel
def _sum_up(share, grad_out, data, window, layout, scratch, grad_weight):
    """``layout``: the rows summed at once, and a frame's steps from row to row and channel to channel."""
    kernel, dilate, pad = window
    at_once, step, size = layout
    frames, panels, sums = scratch
    batch, filters, height, _ = grad_out.shape
    channels = data.shape[1]
    tiles = (channels + ROWS - 1) // ROWS
    in_all, vectors_in_all = count_panels(filters), (filters + MACHINE_LANES - 1) // MACHINE_LANES
    taps, blocks = kernel[0] * kernel[1], (height + at_once - 1) // at_once
    workers = frames.shape[0]
    for w in within(share, workers):
        begin = first_item(w, workers, 1, in_all, vectors_in_all, tiles)
        end = first_item(w + 1, workers, 1, in_all, vectors_in_all, tiles)
        frame, panel = frames[w], panels[w]
        for block in range(batch * blocks):
            n, top = block // blocks, block % blocks * at_once
            rows = min(at_once, height - top)
            for item in range(begin, end):
                p, t = divmod(item, tiles)
                first, stop, vectors = panel_range(p, filters)
                if item == begin or t == 0:
                    _pack(grad_out[n], first, stop, vectors * MACHINE_LANES, top, rows, step, panel)
                if item - begin < tiles:  # the first time that these channels are needed
                    lines, stop_at = rows + (kernel[0] - 1) * dilate[0], min((t + 1) * ROWS, channels)
                    _copy_rows(data[n], t * ROWS, stop_at, top, pad, step, size, lines, frame)
                for tap in range(taps):
                    ky, kx = divmod(tap, kernel[1])
                    start = t * ROWS * size + ky * dilate[0] * step + kx * dilate[1]
                    left = Rows(frame, start, size)
                    total = Rows(sums, (item * taps + tap) * ROWS * COLUMNS, COLUMNS)
                    add_product_tile(vectors, left, 1, panel, 0, rows * step, total)
        for item in range(begin, end):
            p, t = divmod(item, tiles)
            first, stop, _ = panel_range(p, filters)
            at, rows = item * taps * ROWS * COLUMNS, min(ROWS, channels - t * ROWS)
            _put_sums(sums, at, (first, stop), t * ROWS, rows, taps, grad_weight)
