"""Convolution by products of matrices, one for each tap of the kernel: for dilations as large as the image.

The outer taps of such a kernel see a pixel in a part of the image only, and their products are made for that
part. The others would be products by the zeros around the image.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import numpy as np

from ...jit import num_threads, parallel, within
from ..product.matmul import multiply


def seen_by_tap(kernel, dilate, pad, in_size, out_size):
    """For each tap its place in the kernel, and the slices of the results and of the pixels that it joins."""
    axes = []
    for k, d, p, size, count in zip(kernel, dilate, pad, in_size, out_size, strict=True):
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


class ByTaps:
    """Convolution with steps of 1 and any kernel, dilation and padding, without groups."""

    def __init__(self, kernel, dilate, pad):
        self._kernel, self._dilate, self._pad = kernel, dilate, pad

    def __call__(self, data, weight, scale, shift, act, other, out):
        """``out = act(scale * convolution + shift + other)``; ``other`` may be None."""
        filters, channels = weight.shape[:2]
        parts = np.empty((*self._kernel, filters, channels), np.float32)
        _take_apart.by(num_threads(weight.size))(
            weight.reshape(filters, channels, -1), parts.reshape(-1, filters, channels)
        )
        seen = seen_by_tap(self._kernel, self._dilate, self._pad, data.shape[2:], out.shape[2:])
        floor, ceiling, slope = act
        for n, image in enumerate(data):
            sums = np.zeros(out.shape[1:], np.float32)
            for tap, (rows, columns), (ys, xs) in seen:
                target, crop = sums[:, rows, columns], np.ascontiguousarray(image[:, ys, xs])
                product = np.empty((filters, target[0].size), np.float32)
                multiply(parts[tap], crop.reshape(channels, -1), product)
                target += product.reshape(target.shape)
            sums *= scale[:filters, None, None]
            sums += shift[:filters, None, None]
            if other is not None:
                sums += other[n]
            np.multiply(sums, slope, out=sums, where=sums < 0)
            np.minimum(np.maximum(sums, floor, out=sums), ceiling, out=out[n])
