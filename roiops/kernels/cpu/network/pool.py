"""Pooling on C-contiguous float32 or float64 planes (planes, depth, height, width).

Fewer spatial axes than three are of length 1. ``pad`` may let windows hang over the image; what lies outside
takes no part, except in the divisor of a mean that counts padding.
"""

import numpy as np

from ...jit import njit, parallel, prange
from ...pooling_modes import INSIDE, MAXIMUM, MEAN, NORM, PADDED, SUM

__all__ = ["adaptive_backward", "adaptive_forward", "backward", "forward"]


@njit
def _clip(position, stride, pad, kernel, size):
    """The pixels ``[start, stop)`` of a window, and how long it is with its padding."""
    start = position * stride - pad
    stop = min(start + kernel, size + pad)
    padded = stop - start
    return max(start, 0), min(stop, size), padded


@njit
def _count(divisor, inside, padded, kernel):
    return (
        inside if divisor == INSIDE else (padded if divisor == PADDED else kernel[0] * kernel[1] * kernel[2])
    )


@njit
def _power(x, p):
    return x * x if p == 2 else (x * x * x if p == 3 else x)


@njit
def _root(x, p):
    return np.sqrt(x) if p == 2 else (np.cbrt(x) if p == 3 else x)


@njit
def _combine(line, start, stride, take_maximum, target):
    """Take ``line[start + i * stride]`` into ``target[i]``, by maximum or sum, for each i inside the line."""
    first = 0 if start >= 0 else (-start + stride - 1) // stride
    last = min(target.shape[0], (line.shape[0] - start + stride - 1) // stride)
    if first >= last:
        return
    source, results = line[start + first * stride :], target[first:last]
    if stride == 1:  # a known step becomes vector loads
        for i in range(results.shape[0]):
            v, r = source[i], results[i]
            results[i] = (v if v > r else r) if take_maximum else r + v
    elif stride == 2:
        for i in range(results.shape[0]):
            v, r = source[2 * i], results[i]
            results[i] = (v if v > r else r) if take_maximum else r + v
    else:
        for i in range(results.shape[0]):
            v, r = source[i * stride], results[i]
            results[i] = (v if v > r else r) if take_maximum else r + v


@parallel
def forward(data, kernel, stride, pad, mode, p, divisor, pad_with_zero, out):
    """Maximum, mean, sum or p-norm of each window.

    Rows are combined first, pixel by pixel, then the pixels of that one row. ``pad_with_zero``: padding
    competes in a maximum as 0.
    """
    planes, in_depth, in_height, in_width = data.shape
    _, depth, height, width = out.shape
    lowest, zero = np.finfo(data.dtype).min, data.dtype.type(0)
    for plane in prange(planes):
        line = np.empty(in_width, data.dtype)
        for od in range(depth):
            z0, z1, pad_z = _clip(od, stride[0], pad[0], kernel[0], in_depth)
            for oh in range(height):
                y0, y1, pad_y = _clip(oh, stride[1], pad[1], kernel[1], in_height)
                line[:] = lowest if mode == MAXIMUM else zero
                for z in range(z0, z1):
                    for y in range(y0, y1):
                        source = data[plane, z, y]
                        if mode == MAXIMUM:
                            for x in range(in_width):
                                line[x] = source[x] if source[x] > line[x] else line[x]
                        elif mode == NORM:
                            for x in range(in_width):
                                line[x] += _power(source[x], p)
                        else:
                            for x in range(in_width):
                                line[x] += source[x]
                target = out[plane, od, oh]
                target[:] = lowest if mode == MAXIMUM else zero
                for tap in range(kernel[2]):
                    _combine(line, tap - pad[2], stride[2], mode == MAXIMUM, target)
                if mode == SUM or (mode == MAXIMUM and not pad_with_zero):
                    continue
                for ow in range(width):
                    x0, x1, pad_x = _clip(ow, stride[2], pad[2], kernel[2], in_width)
                    inside = max(z1 - z0, 0) * max(y1 - y0, 0) * max(x1 - x0, 0)
                    padded = pad_z * pad_y * pad_x
                    if mode == MEAN:
                        if inside > 0:  # the last window of the 'full' convention may be past the image: 0
                            target[ow] /= data.dtype.type(_count(divisor, inside, padded, kernel))
                    elif mode == NORM:
                        target[ow] = _root(target[ow], p)
                    elif inside < padded and target[ow] < 0:
                        target[ow] = zero


@parallel
def backward(grad_out, data, out, kernel, stride, pad, mode, p, divisor, all_maxima, grad_data):
    """Write the gradient of the data.

    A maximum's goes to the first pixel that has it, or with ``all_maxima`` to each one.
    """
    planes, in_depth, in_height, in_width = data.shape
    _, depth, height, width = out.shape
    lowest = np.finfo(data.dtype).min
    for plane in prange(planes):
        pixels, target = data[plane], grad_data[plane]
        target[:] = 0
        for od in range(depth):
            z0, z1, pad_z = _clip(od, stride[0], pad[0], kernel[0], in_depth)
            for oh in range(height):
                y0, y1, pad_y = _clip(oh, stride[1], pad[1], kernel[1], in_height)
                for ow in range(width):
                    x0, x1, pad_x = _clip(ow, stride[2], pad[2], kernel[2], in_width)
                    g, result = grad_out[plane, od, oh, ow], out[plane, od, oh, ow]
                    if mode == MAXIMUM and not all_maxima:
                        best = lowest
                        bz, by, bx = -1, -1, -1
                        for z in range(z0, z1):
                            for y in range(y0, y1):
                                for x in range(x0, x1):
                                    if pixels[z, y, x] > best:
                                        best = pixels[z, y, x]
                                        bz, by, bx = z, y, x
                        if bz >= 0:
                            target[bz, by, bx] += g
                        continue
                    if mode == MEAN:
                        inside = max(z1 - z0, 0) * max(y1 - y0, 0) * max(x1 - x0, 0)
                        g /= grad_out.dtype.type(_count(divisor, inside, pad_z * pad_y * pad_x, kernel))
                    for z in range(z0, z1):
                        for y in range(y0, y1):
                            for x in range(x0, x1):
                                if mode == MAXIMUM:
                                    if pixels[z, y, x] == result:
                                        target[z, y, x] += g
                                elif mode == NORM and p > 1:
                                    if result != 0:
                                        target[z, y, x] += g * _power(pixels[z, y, x] / result, p - 1)
                                else:
                                    target[z, y, x] += g


@parallel
def adaptive_forward(data, out):
    """Mean over a grid of windows: cell i of n covers ``[floor(i * size / n), ceil((i + 1) * size / n))``."""
    planes, in_height, in_width = data.shape
    _, height, width = out.shape
    for plane in prange(planes):
        for oh in range(height):
            y0, y1 = oh * in_height // height, -((oh + 1) * in_height // -height)
            for ow in range(width):
                x0, x1 = ow * in_width // width, -((ow + 1) * in_width // -width)
                total = 0.0
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        total += data[plane, y, x]
                out[plane, oh, ow] = total / ((y1 - y0) * (x1 - x0))


@parallel
def adaptive_backward(grad_out, grad_data):
    planes, in_height, in_width = grad_data.shape
    _, height, width = grad_out.shape
    for plane in prange(planes):
        target = grad_data[plane]
        target[:] = 0
        for oh in range(height):
            y0, y1 = oh * in_height // height, -((oh + 1) * in_height // -height)
            for ow in range(width):
                x0, x1 = ow * in_width // width, -((ow + 1) * in_width // -width)
                share = grad_out[plane, oh, ow] / grad_out.dtype.type((y1 - y0) * (x1 - x0))
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        target[y, x] += share
