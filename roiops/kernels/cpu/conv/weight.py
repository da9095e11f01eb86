"""The gradient of a convolution's weight with steps of 1, without unrolled images.

For each tap it is a matrix product: the channels of the image, moved by the tap, times the gradient of the
results, summed over the pixels. With zeros between the rows of the latter, a tap is but a place to start at.
"""

from ...jit import inner, num_threads, parallel, within
from ..product.emitter import COLUMNS, ROWS
from ..product.panels import count_panels, first_item, load_line, panel_range
from ..product.tiles import Rows, add_product_tile_of
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
    taps = kernel[0] * kernel[1]
    workers = frames.shape[0]
    for w in within(share, workers):
        begin = first_item(w, workers, 1, in_all, vectors_in_all, tiles)
        end = first_item(w + 1, workers, 1, in_all, vectors_in_all, tiles)
        frame, panel = frames[w], panels[w]
        for n in range(batch):
            for top in range(0, height, at_once):
                rows = min(at_once, height - top)
                for item in range(begin, end):
                    p, t = divmod(item, tiles)
                    first, stop, vectors = panel_range(p, filters)
                    if item == begin or t == 0:
                        _pack(grad_out[n], first, stop, vectors * MACHINE_LANES, top, rows, step, panel)
                    if item - begin < tiles:  # the first time that these channels are needed
                        for c in range(t * ROWS, min((t + 1) * ROWS, channels)):
                            lines = rows + (kernel[0] - 1) * dilate[0]
                            for y in range(lines):
                                at = c * size + y * step
                                load_line(data[n, c], top - pad[0] + y, -pad[1], step, frame, at)
                            frame[c * size + lines * step : (c + 1) * size] = 0
                    for tap in range(taps):
                        ky, kx = divmod(tap, kernel[1])
                        start = t * ROWS * size + ky * dilate[0] * step + kx * dilate[1]
                        left = Rows(frame, start, size)
                        total = Rows(sums, (item * taps + tap) * ROWS * COLUMNS, COLUMNS)
                        add_product_tile_of(vectors, left, 1, panel, 0, rows * step, total)
        for item in range(begin, end):
            p, t = divmod(item, tiles)
            first, stop, _ = panel_range(p, filters)
            for f in range(first, stop):
                for i in range(min(ROWS, channels - t * ROWS)):
                    target = grad_weight[f, t * ROWS + i].reshape(-1)
                    for tap in range(taps):
                        target[tap] = sums[((item * taps + tap) * ROWS + i) * COLUMNS + f - first]
