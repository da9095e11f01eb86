"""Convolution with dilation, as convolutions without: one for each remainder of the rows and columns.

With a dilation of 2 the even rows of the results see the even rows of the image only (with an even
padding), and the odd rows the odd ones; columns likewise. So the image is copied to four smaller ones, a
batch, to which Winograd's way can be applied. Zeros are copied along where the window hangs over the edge.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import numpy as np

from ...jit import Calls, inner, num_threads, parallel, within
from ..product.emitter import activated, activation
from .winograd import Winograd

_IDENTITY = activation()


def phase_sizes(out_size, dilate) -> tuple[int, int]:
    """Rows and columns of the results of one phase, the longest."""
    return tuple(-(-n // d) for n, d in zip(out_size, dilate, strict=True))


@inner
def _seen(first, step, size, count):
    """The indices i in ``[0, count)`` for which ``first + i * step`` is in ``[0, size)``, as a range."""
    start = 0 if first >= 0 else (-first + step - 1) // step
    stop = (size - first + step - 1) // step if size > first else 0
    start = min(start, count)
    return start, max(start, min(stop, count))


@parallel
def _gather(share, data, dilate, pad, phases):
    """``phases[n, ry, rx, c, i, j] = data[n, c, ry - pad + i * dilate, ...]``, and 0 outside the image."""
    batch, channels, height, width = data.shape
    tall, wide = phases.shape[4:]
    for plane in within(share, batch * channels):
        n, c = divmod(plane, channels)
        for ry in range(dilate[0]):
            for rx in range(dilate[1]):
                target = phases[n, ry, rx, c]
                left = rx - pad[1]
                start, stop = _seen(left, dilate[1], width, wide)
                for i in range(tall):
                    y = ry - pad[0] + i * dilate[0]
                    if y < 0 or y >= height:
                        target[i] = 0
                        continue
                    source = data[n, c, y]
                    target[i, :start] = 0
                    for j in range(start, stop):
                        target[i, j] = source[left + j * dilate[1]]
                    target[i, stop:] = 0


@parallel
def _spread(share, phases, dilate, act, other, add_other, out):
    """The inverse of :func:`_gather`, for results; with ``add_other``, ``act(phases + other)``."""
    batch, filters, height, width = out.shape
    for plane in within(share, batch * filters):
        n, f = divmod(plane, filters)
        for y in range(height):
            i, ry = y // dilate[0], y % dilate[0]
            target = out[n, f, y]
            for rx in range(dilate[1]):
                source = phases[n, ry, rx, f, i]
                for j in range((width - rx + dilate[1] - 1) // dilate[1]):
                    x = rx + j * dilate[1]
                    if add_other:
                        target[x] = activated(source[j] + other[n, f, y, x], act)
                    else:
                        target[x] = source[j]


class Dilated:
    """A convolution of 3x3 with steps of 1 and any dilation and padding, by :class:`Winograd`."""

    def __init__(self, dilate, pad, groups):
        self._dilate, self._pad = dilate, pad
        self._winograd = Winograd((0, 0), groups)
        self._call = Calls()

    def __call__(self, data, weight, scale, shift, act, other, out):
        """``out = act(scale * convolution + shift + other)``; ``other`` may be None."""
        dilate, (batch, channels) = self._dilate, data.shape[:2]
        tall, wide = phase_sizes(out.shape[2:], dilate)
        kernel = weight.shape[2:]
        images = np.empty((batch, *dilate, channels, tall + kernel[0] - 1, wide + kernel[1] - 1), np.float32)
        results = np.empty((batch, *dilate, len(weight), tall, wide), np.float32)
        self._call(_gather, num_threads(images.size), data, dilate, self._pad, images)
        first_act = act if other is None else _IDENTITY
        small_images, small_results = (a.reshape(-1, *a.shape[3:]) for a in (images, results))
        self._winograd(small_images, weight, scale, shift, first_act, None, small_results)
        other = (out, 0) if other is None else (other, 1)
        self._call(_spread, num_threads(out.size), results, dilate, act, *other, out)
