"""Convolution by products of matrices, one for each tap of the kernel: for dilations as large as the image.

The outer taps of such a kernel see a pixel in a part of the image only, and their products are made for that
part. The others would be products by the zeros around the image.
"""

import functools

import numpy as np

from ...jit import num_threads, parallel
from ...shares import within
from ..product.emitter import activate
from ..product.matmul import multiply
from .way import Layer, Way, ceil_div


def seen_by_tap(layer: Layer):
    """For each tap its place in the kernel, and the slices of the results and of the pixels that it joins."""
    axes = []
    sides = zip(layer.kernel, layer.dilate, layer.pad, layer.in_size, layer.out_size, strict=True)
    for k, d, p, size, count in sides:
        shifts = [tap * d - p for tap in range(k)]
        spans = [(max(0, -shift), min(count, size - shift)) for shift in shifts]
        axes.append(
            [
                (tap, slice(start, stop), slice(start + shift, stop + shift))
                for tap, (shift, (start, stop)) in enumerate(zip(shifts, spans, strict=True))
                if start < stop
            ]
        )
    return [((ky, kx), (rows, columns), (ys, xs)) for ky, rows, ys in axes[0] for kx, columns, xs in axes[1]]


@parallel
def _take_apart(share, weight, parts):
    """``parts[tap, f, c] = weight[f, c, tap]``, for a weight whose taps are one axis."""
    filters, channels, taps = weight.shape
    for f in within(share, filters):
        for c in range(channels):
            for tap in range(taps):
                parts[tap, f, c] = weight[f, c, tap]


class ByTaps(Way):
    """Convolution with steps of 1 and any kernel, dilation and padding, without groups."""

    name = "by_taps"

    @staticmethod
    def suits(layer, machine):
        return layer.stride == (1, 1) and layer.dilate != (1, 1) and layer.groups == 1

    @staticmethod
    def cost(layer, machine):
        """The products of each tap where it sees a pixel, whose pixels are copied, and the weight."""
        areas = [
            (rows.stop - rows.start) * (columns.stop - columns.start)
            for _, (rows, columns), _ in seen_by_tap(layer)
        ]
        vectors = sum(ceil_div(area, machine.lanes) for area in areas)
        rows = ceil_div(layer.filters, machine.rows) * machine.rows
        copied = sum(areas) * (layer.channels + 2 * layer.filters)
        parts = 2 * layer.filters * layer.terms
        return layer.batch * (1.1 * vectors * layer.channels * rows + copied) + parts

    def bind(self, arrays):
        return functools.partial(self._compute, arrays)

    def _compute(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        filters, channels = weight.shape[:2]
        parts = np.empty((*self.layer.kernel, filters, channels), np.float32)
        _take_apart.by(num_threads(weight.size))(
            weight.reshape(filters, channels, -1), parts.reshape(-1, filters, channels)
        )
        for n, image in enumerate(data):
            sums = np.zeros(out.shape[1:], np.float32)
            for tap, (rows, columns), (ys, xs) in seen_by_tap(self.layer):
                target, crop = sums[:, rows, columns], np.ascontiguousarray(image[:, ys, xs])
                product = np.empty((filters, target[0].size), np.float32)
                multiply(parts[tap], crop.reshape(channels, -1), product)
                target += product.reshape(target.shape)
            sums *= scale[:filters, None, None]
            sums += shift[:filters, None, None]
            if other is not None:
                sums += other[n]
            activate(sums, act)
            out[n] = sums
