"""Normalisation kernels on C-contiguous float32 or float64 arrays seen as (outer, channels, inner).

Statistics are summed in float64.

``tests/reference.py`` has the same in plain loops: ``batch_norm``.
"""

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import taken, within
from ..product.tiles import Prologue, scale_vector
from ..vector import MACHINE_LANES, flat_of

#: Pixels of which a thread normalises all channels at a time.
_PIXELS = 256
# Sums may be reassociated, so that they vectorise. NaN and infinity keep their meaning.
_SUMS = {"reassoc", "contract"}


@parallel(fastmath=_SUMS)
def batch_statistics(share, data, eps, mean, invstd):
    """Mean and ``1 / sqrt(variance + eps)`` of each channel."""
    outer, channels, inner = data.shape
    count = outer * inner
    for c in taken(share, channels):
        total = 0.0
        for n in range(outer):
            for i in range(inner):
                total += data[n, c, i]
        center = total / count
        squares = 0.0
        for n in range(outer):
            for i in range(inner):
                d = data[n, c, i] - center
                squares += d * d
        variance = squares / count
        mean[c] = center
        invstd[c] = 0.0 if variance + eps == 0 else 1.0 / np.sqrt(variance + eps)


def scale_by_deviation(gamma, var, eps, scale):
    """``scale = gamma / sqrt(var + eps)``, all of one dtype."""
    np.add(var, eps, out=scale)
    np.sqrt(scale, out=scale)
    np.divide(gamma, scale, out=scale)


@parallel(makes_arrays=False)
def fold(share, gamma, beta, mean, var, eps, bias, scale, shift):
    """The scale and shift of a convolution with ``bias`` and batch normalisation, all of them float32.

    It is for one thread. A loop over the numbers of a share would not become one over vectors.
    """
    for f in range(scale.shape[0]):
        scale[f] = gamma[f] / np.sqrt(var[f] + eps)
        shift[f] = beta[f] + (bias[f] - mean[f]) * scale[f]


_calls = Calls()


def scale_channels(data, mean, scale, shift, floor, out):
    """``max((data - mean) * scale + shift, floor)`` for each channel; ``out`` may be ``data``."""
    threads, arguments = num_threads(data.size / 4), (data, mean, scale, shift, data.dtype.type(floor), out)
    if data.dtype == np.float32:
        _calls(_scale_vectors, threads, *arguments)
    else:
        _scale_channels.by(threads)(*arguments)


@parallel
def _scale_channels(share, data, mean, scale, shift, floor, out):
    outer, channels, inner = data.shape
    for plane in within(share, outer * channels):
        n, c = divmod(plane, channels)
        m, a, b = mean[c], scale[c], shift[c]
        source, target = data[n, c], out[n, c]
        for i in range(inner):
            value = (source[i] - m) * a + b
            target[i] = floor if value < floor else value


@parallel
def _scale_vectors(share, data, mean, scale, shift, floor, out):
    """:func:`_scale_channels` of float32: in a loop of numba's, a small map is mostly remainder."""
    outer, channels, inner = data.shape
    source, target = flat_of(data), flat_of(out)
    whole = inner // MACHINE_LANES * MACHINE_LANES
    for plane in within(share, outer * channels):
        n, c = divmod(plane, channels)
        m, a, b, at = mean[c], scale[c], shift[c], (n * channels + c) * inner
        of_channel = Prologue(m, a, b, floor, 1)
        for i in range(at, at + whole, MACHINE_LANES):
            scale_vector(source, i, target, i, of_channel)
        for i in range(at + whole, at + inner):
            value = (source[i] - m) * a + b
            target[i] = floor if value < floor else value


@parallel(fastmath=_SUMS)
def batch_backward(
    share, grad_out, data, out, statistics, gamma, grad_data, want_data, grad_gamma, grad_beta
):
    """Gradients of ``scale_channels`` after ``batch_statistics``.

    ``statistics``: the mean, the inverse deviation, whether both were given and so have no gradient, and
    whether results ``out`` of 0 came of the floor and so pass no gradient on.
    """
    mean, invstd, given, floored = statistics
    one, zero = grad_out.dtype.type(1), grad_out.dtype.type(0)
    outer, channels, inner = data.shape
    count = outer * inner
    for c in taken(share, channels):
        m = mean[c]
        total, product = 0.0, 0.0
        for n in range(outer):
            for i in range(inner):
                g = grad_out[n, c, i] * (one if not floored or out[n, c, i] > 0 else zero)
                total += g
                product += g * (data[n, c, i] - m)
        grad_beta[c] = total
        grad_gamma[c] = product * invstd[c]
        if not want_data:
            continue
        scale = gamma[c] * invstd[c]
        shift = total / count
        slope = product * invstd[c] * invstd[c] / count
        if given:
            shift, slope = 0.0, 0.0
        a, b, k = mean.dtype.type(scale), mean.dtype.type(shift), mean.dtype.type(slope)
        for n in range(outer):
            for i in range(inner):
                g = grad_out[n, c, i] * (one if not floored or out[n, c, i] > 0 else zero)
                grad_data[n, c, i] = (g - b - (data[n, c, i] - m) * k) * a


@parallel(fastmath=_SUMS)
def row_forward(share, data, eps, mean, std, out):
    """Normalise over the middle axis: ``out = (data - mean) / std``, ``std = sqrt(variance + eps)``."""
    outer, length, inner = data.shape
    for row in within(share, outer * inner):
        n, i = divmod(row, inner)
        total = 0.0
        for k in range(length):
            total += data[n, k, i]
        center = total / max(length, 1)
        squares = 0.0
        for k in range(length):
            d = data[n, k, i] - center
            squares += d * d
        spread = np.sqrt(squares / max(length, 1) + eps)
        mean[n, i] = center
        std[n, i] = spread
        for k in range(length):
            out[n, k, i] = (data[n, k, i] - center) / spread


@parallel(fastmath=_SUMS)
def row_backward(share, grad_norm, norm, std, grad_data):
    """Gradient of :func:`row_forward`, from the gradient of its output and that output."""
    outer, length, inner = norm.shape
    for row in within(share, outer * inner):
        n, i = divmod(row, inner)
        total, product = 0.0, 0.0
        for k in range(length):
            total += grad_norm[n, k, i]
            product += grad_norm[n, k, i] * norm[n, k, i]
        total /= max(length, 1)
        product /= max(length, 1)
        for k in range(length):
            grad_data[n, k, i] = (grad_norm[n, k, i] - total - norm[n, k, i] * product) / std[n, i]


@inner
def _power(number, beta):
    """``number ** -beta``; that of 0.75, the beta of most networks, in vectors."""
    if beta == 0.75:
        root = np.sqrt(number)
        return type(number)(1) / (root * np.sqrt(root))
    return type(number)(number**-beta)


@inner
def _lrn_row(data, n, c, pixels, half, alpha, beta, knorm, norm, out):
    """Some pixels of a channel."""
    first, stop = np.uint64(pixels[0]), np.uint64(pixels[1])
    for i in range(first, stop):
        norm[n, c, i] = 0
    for other in range(max(c - half, 0), min(c + half + 1, data.shape[1])):
        for i in range(first, stop):
            norm[n, c, i] += data[n, other, i] * data[n, other, i]
    for i in range(first, stop):
        norm[n, c, i] = knorm + alpha * norm[n, c, i]
        out[n, c, i] = data[n, c, i] * _power(norm[n, c, i], beta)


@parallel
def lrn_forward(share, data, size, alpha, beta, knorm, norm, out):
    """``out = data * norm ** -beta``, ``norm = knorm + alpha / size * sum of size squares``."""
    batch, channels, pixels = data.shape
    kind, parts = data.dtype.type, (pixels + _PIXELS - 1) // _PIXELS
    for item in taken(share, batch * parts):
        n, part = divmod(item, parts)
        some = part * _PIXELS, min((part + 1) * _PIXELS, pixels)
        for c in range(channels):
            _lrn_row(data, n, c, some, size // 2, kind(alpha / size), beta, kind(knorm), norm, out)


@inner
def _lrn_row_backward(grad_out, data, norm, n, c, pixels, terms, half, alpha, beta, grad_data):
    """That of some pixels of a channel; ``terms`` are what each channel's output owes to the sums."""
    first, count = np.uint64(pixels[0]), np.uint64(pixels[1] - pixels[0])
    for i in range(count):
        grad_data[n, c, first + i] = 0
    for other in range(max(c - half, 0), min(c + half + 1, data.shape[1])):
        for i in range(count):
            grad_data[n, c, first + i] += terms[other, i]
    for i in range(first, first + count):
        direct = grad_out[n, c, i] * _power(norm[n, c, i], beta)
        grad_data[n, c, i] = direct - 2 * alpha * type(alpha)(beta) * data[n, c, i] * grad_data[n, c, i]


@parallel
def lrn_backward(share, grad_out, data, norm, size, alpha, beta, grad_data):
    batch, channels, pixels = data.shape
    alpha, parts = data.dtype.type(alpha / size), (pixels + _PIXELS - 1) // _PIXELS
    terms = np.empty((channels, _PIXELS), data.dtype)
    for item in taken(share, batch * parts):
        n, part = divmod(item, parts)
        first, stop = part * _PIXELS, min((part + 1) * _PIXELS, pixels)
        for c in range(channels):
            for i in range(np.uint64(first), np.uint64(stop)):
                term = grad_out[n, c, i] * data[n, c, i] * _power(norm[n, c, i], beta) / norm[n, c, i]
                terms[c, i - np.uint64(first)] = term
        for c in range(channels):
            some, half = (first, stop), size // 2
            _lrn_row_backward(grad_out, data, norm, n, c, some, terms, half, alpha, beta, grad_data)
