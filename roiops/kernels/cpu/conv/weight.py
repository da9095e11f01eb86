"""The gradient of a convolution's weight with steps of 1, without unrolled images.

For each tap it is a matrix product: the channels of the image, moved by the tap, times the gradient of the
results, summed over the pixels. With zeros between the rows of the latter, a tap is but a place to start at.
"""

import numpy as np

from ...jit import Calls, num_threads, parallel
from ...shares import within
from ..product.emitter import ROWS
from ..product.matmul import multiply_at, scratch_shape
from ..product.tiles import AS_THEY_ARE
from ..scratch import Scratch
from ..vector import MACHINE_LANES
from .padded import Layout, channel_step, fill_padded, tap_places
from .way import ceil_div

#: About how many pixels are summed at once: their panel stays in the second-level cache.
PIXELS = 1024


def steps_of_one(grad_out, data, kernel, dilate, pad, grad_weight):
    """Write the gradient of the weight ``(F, C, kh, kw)``; all are float32 and C-contiguous."""
    batch, filters, height, width = grad_out.shape
    channels, (tall, wide) = data.shape[1], (n + 2 * p for n, p in zip(data.shape[2:], pad, strict=True))
    # The last taps of the last row reach beyond it, into zeros.
    step = channel_step(tall * wide + wide - width, MACHINE_LANES)
    tiles = ceil_div(channels, ROWS)
    taps = tap_places(kernel, (1, 1), dilate, wide, 0)
    starts = np.add.outer(np.arange(tiles) * ROWS * step, taps).reshape(-1)
    at_once, terms = max(1, min(height, PIXELS // wide)) * wide, height * wide
    workers = num_threads(starts.size * ROWS * filters * batch * terms / MACHINE_LANES)
    shapes = (tiles * ROWS, step), (filters, terms), (starts.size * ROWS, filters)
    image, head, sums, scratch = Scratch(*shapes, scratch_shape(workers, at_once))()
    sums[:] = 0
    for n in range(batch):
        _fill(data[n : n + 1], Layout((1, 1), pad, tall, wide, step), workers, image)
        _fill(grad_out[n : n + 1], Layout((1, 1), (0, 0), height, wide, terms), workers, head)
        multiply_at(image, starts, head.T, sums, at_once, scratch)
    sums = sums.reshape(tiles, len(taps), ROWS, filters)
    _put_sums.by(workers)(sums, grad_weight.reshape(filters, channels, len(taps)))


_calls = Calls()


def _fill(images, layout, workers, padded):
    _calls(fill_padded, workers, images, layout, AS_THEY_ARE, workers, padded.reshape(-1))


@parallel
def _put_sums(share, sums, grad_weight):
    """``grad_weight[f, c, tap] = sums[tile, tap, row, f]``"""
    filters, channels, taps = grad_weight.shape
    for channel in within(share, channels):
        t, row = divmod(np.int64(channel), ROWS)
        for f in range(filters):
            for tap in range(taps):
                grad_weight[f, channel, tap] = sums[t, tap, row, f]
