"""The taps of a deformable convolution: gather before the matrix product, scatter after it.

A *tile* is a run of output positions of one image. For each of them, each tap of the window and each group
of channels that shares displacements, a table holds the four pixels the tap reads and their weights; it is
made once and then used for every channel of the group.

``tests/operators/detection/test_deform_conv.py`` has the same in plain loops: ``reference``.
"""

import math

from ...jit import inner, parallel
from ...shares import within


@inner
def _taps(p, extent, padded):
    """What a tap at ``p`` reads on one axis: ``(valid, low, weight0, weight1, slope0, slope1)``.

    Pixels are ``low`` and ``low + 1``; the slopes are the derivatives of the weights. ``padded``: the map
    goes on with zeros, so that positions up to one pixel outside fade out. Otherwise nothing outside
    ``[0, extent)`` is read, and beyond the last pixel its value holds.
    """
    zero, one = type(p)(0), type(p)(1)
    if padded:
        if not (p > -one and p < type(p)(extent)):
            return False, 0, zero, zero, zero, zero
        low = math.floor(p)
        upper = p - type(p)(low)
        has_low, has_high = low >= 0, low + 1 < extent
        return (
            True,
            low,
            one - upper if has_low else zero,
            upper if has_high else zero,
            -one if has_low else zero,
            one if has_high else zero,
        )
    if not (p >= zero and p < type(p)(extent)):
        return False, 0, zero, zero, zero, zero
    low = math.floor(p)
    if low >= extent - 1:
        return True, low, one, zero, zero, zero
    upper = p - type(p)(low)
    return True, low, one - upper, upper, -one, one


@parallel
def table(share, offset, first, count, sizes, window, padded, pixels, tables):
    """Tables of positions ``first : first + count``. A first pixel of -1 says that nothing is read.

    ``sizes`` is ``(height, width, width of the output)``, ``window`` ``(kernel, stride, dilate, pad)``, and
    ``tables`` are those of the weights and of their derivatives by y and by x.
    """
    height, width, out_width = sizes
    (kernel_h, kernel_w), stride, dilate, pad = window
    weights, slopes_y, slopes_x = tables
    taps = kernel_h * kernel_w
    for q in within(share, offset.shape[0] // 2):
        tap = q % taps
        for k in range(count):
            oy, ox = (first + k) // out_width, (first + k) % out_width
            kind = type(offset[0, 0])
            y = kind(oy * stride[0] - pad[0] + (tap // kernel_w) * dilate[0]) + offset[2 * q, first + k]
            x = kind(ox * stride[1] - pad[1] + (tap % kernel_w) * dilate[1]) + offset[2 * q + 1, first + k]
            valid_y, low_y, y0, y1, dy0, dy1 = _taps(y, height, padded)
            valid_x, low_x, x0, x1, dx0, dx1 = _taps(x, width, padded)
            if not (valid_y and valid_x):
                pixels[q, k, 0] = -1
                continue
            # A pixel outside the map has weight and slope zero; any pixel inside stands for it.
            row0, row1 = max(low_y, 0), min(low_y + 1, height - 1)
            column0, column1 = max(low_x, 0), min(low_x + 1, width - 1)
            pixels[q, k, 0], pixels[q, k, 1] = row0 * width + column0, row0 * width + column1
            pixels[q, k, 2], pixels[q, k, 3] = row1 * width + column0, row1 * width + column1
            weights[q, k, 0], weights[q, k, 1] = y0 * x0, y0 * x1
            weights[q, k, 2], weights[q, k, 3] = y1 * x0, y1 * x1
            slopes_y[q, k, 0], slopes_y[q, k, 1] = dy0 * x0, dy0 * x1
            slopes_y[q, k, 2], slopes_y[q, k, 3] = dy1 * x0, dy1 * x1
            slopes_x[q, k, 0], slopes_x[q, k, 1] = y0 * dx0, y0 * dx1
            slopes_x[q, k, 2], slopes_x[q, k, 3] = y1 * dx0, y1 * dx1


@inner
def _read(plane, pixels, weights):
    """One sample: the weighted sum of its four pixels."""
    value = weights[0] * plane[pixels[0]] + weights[1] * plane[pixels[1]]
    return value + weights[2] * plane[pixels[2]] + weights[3] * plane[pixels[3]]


@parallel
def gather(share, data, mask, first, count, groups, pixels, weights, columns):
    """``columns[c * taps + tap]``: what the taps read of each channel. ``mask`` has no rows, or scales it."""
    taps = pixels.shape[0] // groups
    per_group = data.shape[0] // groups
    for c in within(share, data.shape[0]):
        for tap in range(taps):
            q = c // per_group * taps + tap
            row = c * taps + tap
            for k in range(count):
                if pixels[q, k, 0] < 0:
                    columns[row, k] = 0
                    continue
                value = _read(data[c], pixels[q, k], weights[q, k])
                if mask.shape[0] > 0:
                    value *= mask[q, first + k]
                columns[row, k] = value


@parallel
def scatter_data(share, column_grad, mask, first, count, groups, pixels, weights, data_grad):
    """Add the gradient of the columns to the pixels they were read from."""
    taps = pixels.shape[0] // groups
    per_group = data_grad.shape[0] // groups
    # A thread has whole channels to itself: nothing is added to twice at once, and always in one order.
    for c in within(share, data_grad.shape[0]):
        for tap in range(taps):
            q = c // per_group * taps + tap
            for k in range(count):
                if pixels[q, k, 0] < 0:
                    continue
                grad = column_grad[c * taps + tap, k]
                if mask.shape[0] > 0:
                    grad *= mask[q, first + k]
                for corner in range(4):
                    data_grad[c, pixels[q, k, corner]] += grad * weights[q, k, corner]


@parallel
def scatter_offset(share, column_grad, data, mask, first, count, groups, pixels, tables, grads):
    """Add to ``grads``: the gradients of the displacements, and of the mask where there is one."""
    weights, slopes_y, slopes_x = tables
    offset_grad, mask_grad = grads
    taps = pixels.shape[0] // groups
    per_group = data.shape[0] // groups
    for q in within(share, pixels.shape[0]):
        for k in range(count):
            if pixels[q, k, 0] < 0:
                continue
            along_y = along_x = along_mask = type(column_grad[0, 0])(0)
            for c in range(q // taps * per_group, (q // taps + 1) * per_group):
                grad = column_grad[c * taps + q % taps, k]
                along_y += grad * _read(data[c], pixels[q, k], slopes_y[q, k])
                along_x += grad * _read(data[c], pixels[q, k], slopes_x[q, k])
                if mask.shape[0] > 0:
                    along_mask += grad * _read(data[c], pixels[q, k], weights[q, k])
            if mask.shape[0] > 0:
                along_y *= mask[q, first + k]
                along_x *= mask[q, first + k]
                mask_grad[q, first + k] += along_mask
            offset_grad[2 * q, first + k] += along_y
            offset_grad[2 * q + 1, first + k] += along_x
