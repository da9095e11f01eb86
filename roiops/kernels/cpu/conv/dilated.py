"""Convolution with dilation, as convolutions without: one for each remainder of the rows and columns.

With a dilation of 2 the even rows of the results see the even rows of the image only (with an even
padding), and the odd rows the odd ones; columns likewise. So the image is copied to four smaller ones, a
batch, to which Winograd's way can be applied. Zeros are copied along where the window hangs over the edge.
"""

import functools
import math

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import taken
from ..product.emitter import IDENTITY
from ..product.machine import HERE
from .columns import copy_row, span
from .phases import spread
from .way import Arrays, Layer, Way, ceil_div
from .winograd import Winograd


def one_phase(layer: Layer) -> Layer:
    """The convolution without dilation that the phases of a layer are: a batch of the longest of them."""
    sizes = tuple(ceil_div(n, d) for n, d in zip(layer.out_size, layer.dilate, strict=True))
    return layer._replace(
        batch=layer.batch * math.prod(layer.dilate),
        in_size=tuple(n + k - 1 for n, k in zip(sizes, layer.kernel, strict=True)),
        out_size=sizes,
        dilate=(1, 1),
        pad=(0, 0),
    )


@inner
def _gather_phase(plane, ry, left, dilate, top, target):
    """The rows and columns of a plane that one phase sees, and zeros outside the image."""
    height, width = plane.shape
    start, stop = span(left, dilate[1], width, target.shape[1])
    for i in range(target.shape[0]):
        y = ry - top + i * dilate[0]
        if y < 0 or y >= height:
            target[i] = 0
        else:
            copy_row(dilate[1], plane[y], left, start, stop, target[i])


@parallel
def _gather(share, data, dilate, pad, phases):
    """``phases[ry, rx, n, c, i, j] = data[n, c, ry - pad + i * dilate, ...]``, and 0 outside the image."""
    batch, channels = data.shape[:2]
    for plane in taken(share, batch * channels):
        n, c = divmod(plane, channels)
        for ry in range(dilate[0]):
            for rx in range(dilate[1]):
                _gather_phase(data[n, c], ry, rx - pad[1], dilate, pad[0], phases[ry, rx, n, c])


class Dilated(Way):
    """A convolution of 3x3 with steps of 1 and any dilation and padding, by :class:`Winograd`."""

    name = "dilated"

    @staticmethod
    def suits(layer, machine):
        of_this_kind = (layer.kernel, layer.stride) == ((3, 3), (1, 1)) and not Winograd.suits(layer, machine)
        return of_this_kind and Winograd.suits(one_phase(layer), machine)

    @staticmethod
    def cost(layer, machine):
        """That of :class:`Winograd` for a batch of smaller images, which are copied."""
        apart = one_phase(layer)
        tall, wide = apart.out_size
        copied = layer.channels * (tall + 2) * (wide + 2) + layer.filters * tall * wide
        return Winograd.cost(apart, machine) + 2 * apart.batch * copied

    def __init__(self, layer, machine=HERE):
        super().__init__(layer, machine)
        self._winograd = Winograd(one_phase(layer), machine)

    def bind(self, arrays):
        return functools.partial(self._compute, arrays)

    def _compute(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        dilate, apart = self.layer.dilate, self._winograd.layer
        images = np.empty((*dilate, *data.shape[:2], *apart.in_size), np.float32)
        results = np.empty((*dilate, *out.shape[:2], *apart.out_size), np.float32)
        self.calls(_gather, num_threads(images.size), data, dilate, self.layer.pad, images)
        first_act = act if other is None else IDENTITY
        small_images, small_results = (a.reshape(-1, *a.shape[3:]) for a in (images, results))
        self._winograd.bind(Arrays(small_images, weight, scale, shift, first_act, None, small_results))()
        other = (out, 0) if other is None else (other, 1)
        planes = (out.shape[1], len(out) * out.shape[1]), dilate
        flat = results.reshape(-1, *apart.out_size)
        self.calls(spread, num_threads(out.size), flat, *planes, act, *other, out)
