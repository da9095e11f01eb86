"""Upsampling, bilinear resizing and sampling of C-contiguous float32 or float64 images.

``tests/reference.py`` has the same in plain loops: ``resize``; ``surface`` is one sample.
"""

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import taken


@inner(forceinline=True)
def _widen(source, count, wide, target):
    """Repeat each of ``count`` pixels."""
    if wide == 2:  # pairs, which become vectors
        for x in range(np.uint64(count)):
            target[2 * x] = source[x]
            target[2 * x + 1] = source[x]
        return
    for x in range(count):
        for i in range(x * wide, (x + 1) * wide):
            target[i] = source[x]


def upsample(data, first, out):
    """Each pixel of ``data`` becomes a block of pixels of ``out``, in its channels from ``first`` on."""
    _upsample.by(num_threads(out.size / 4))(data, first, out)


@parallel
def _upsample(share, data, first, out):
    batch, channels, height, width = data.shape
    tall, wide = out.shape[2] // max(1, height), out.shape[3] // max(1, width)
    for plane in taken(share, batch * channels):
        n, c = divmod(plane, channels)
        for y in range(height):
            top = out[n, first + c, y * tall]
            _widen(data[n, c, y], width, wide, top)
            for i in range(1, tall):
                out[n, first + c, y * tall + i] = top


def resize_table(size, out_size, align_corners, dtype):
    """For each output pixel of an axis: its two input pixels and the weight of the second."""
    # As MXNet has it: factors and positions in float32 whatever the data are, half pixels in float64, and a
    # single output pixel is the first input pixel.
    position = np.arange(out_size)
    if out_size == 1:
        position = position.astype(np.float32)
    elif align_corners:
        position = np.float32(size - 1) / np.float32(out_size - 1) * position.astype(np.float32)
    else:
        scale = np.float64(np.float32(size) / np.float32(out_size))
        position = np.maximum(scale * (position + 0.5) - 0.5, 0).astype(np.float32)
    low = np.minimum(position.astype(np.int64), size - 1)
    return low, np.minimum(low + 1, size - 1), (position - low).astype(dtype)


@inner
def _between(one, other, weight, target, count):
    """``target = (1 - weight) * one + weight * other``."""
    rest = target.dtype.type(1) - weight
    for x in range(count):
        target[x] = rest * one[x] + weight * other[x]


@parallel
def resize_forward(share, data, y_low, y_high, y_weight, x_low, x_high, x_weight, out):
    """Interpolate planes (planes, height, width) at the positions of two axis tables."""
    planes, height, width = out.shape
    one = data.dtype.type(1)
    # Two rows of the data, as wide as the output, and which ones: that of an even number, and the other.
    wide, held = np.empty((2, width), data.dtype), np.empty(2, np.int64)
    for plane in taken(share, planes):
        held[:] = -1
        for y in range(height):
            for row in (y_low[y], y_high[y]):
                if held[row % 2] == row:
                    continue
                held[row % 2] = row
                source, target = data[plane, row], wide[row % 2]
                for x in range(width):
                    i, j, a = x_low[x], x_high[x], x_weight[x]
                    target[x] = (one - a) * source[i] + a * source[j]
            _between(wide[y_low[y] % 2], wide[y_high[y] % 2], y_weight[y], out[plane, y], width)


@parallel
def resize_backward(share, grad_out, y_low, y_high, y_weight, x_low, x_high, x_weight, grad_data):
    planes, height, width = grad_out.shape
    one = grad_out.dtype.type(1)
    for plane in taken(share, planes):
        target = grad_data[plane]
        target[:] = 0
        for y in range(height):
            upper, lower, b = target[y_low[y]], target[y_high[y]], y_weight[y]
            for x in range(width):
                i, j, a = x_low[x], x_high[x], x_weight[x]
                g = grad_out[plane, y, x]
                upper[i] += (one - b) * (one - a) * g
                upper[j] += (one - b) * a * g
                lower[i] += b * (one - a) * g
                lower[j] += b * a * g


@inner
def _locate(coordinate, size):
    """A coordinate in [-1, 1] as pixel and fraction; far outside where it is not near the image.

    The fraction of NaN and infinity is NaN, as in MXNet.
    """
    position = (coordinate + 1) * (size - 1) / 2
    if not (position > -2 and position < size + 1):
        return -2, position * 0
    low = int(np.floor(position))
    return low, position - low


@inner(forceinline=True)
def _read(image, j, i, b, a):
    """The image at pixel ``(j, i)`` and the fractions ``(b, a)`` beyond it."""
    total = (a + b) * 0  # NaN where a fraction is
    for dy in range(2):
        for dx in range(2):
            if 0 <= j + dy < image.shape[0] and 0 <= i + dx < image.shape[1]:
                weight = (b if dy else 1 - b) * (a if dx else 1 - a)
                total += weight * image[j + dy, i + dx]
    return total


@parallel
def sample_forward(share, data, grid, out):
    """Sample images at the positions of ``grid`` (batch, 2, height, width): x and y in [-1, 1], 0 outside."""
    batch, channels, height, width = out.shape
    _, _, in_height, in_width = data.shape
    for row in taken(share, batch * height):
        n, y = divmod(row, height)
        for x in range(width):
            i, a = _locate(grid[n, 0, y, x], in_width)
            j, b = _locate(grid[n, 1, y, x], in_height)
            for c in range(channels):
                out[n, c, y, x] = _read(data[n, c], j, i, b, a)


@inner(forceinline=True)
def _spread(image, target, place, g, slopes):
    """Add the gradient of what :func:`_read` gives to ``target``, and that of its place to the slopes."""
    j, i, b, a = place
    slope_x, slope_y = slopes
    for dy in range(2):
        for dx in range(2):
            if 0 <= j + dy < image.shape[0] and 0 <= i + dx < image.shape[1]:
                wy, wx = b if dy else 1 - b, a if dx else 1 - a
                target[j + dy, i + dx] += g * wy * wx
                pixel = image[j + dy, i + dx]
                slope_x += g * pixel * (wy if dx else -wy)
                slope_y += g * pixel * (wx if dy else -wx)
    return slope_x, slope_y


@parallel
def sample_backward(share, grad_out, data, grid, grad_data, grad_grid):
    """Gradients of :func:`sample_forward`, of the images and of the positions."""
    batch, channels, height, width = grad_out.shape
    _, _, in_height, in_width = data.shape
    for n in taken(share, batch):
        grad_data[n] = 0
        for y in range(height):
            for x in range(width):
                i, a = _locate(grid[n, 0, y, x], in_width)
                j, b = _locate(grid[n, 1, y, x], in_height)
                slopes = b * 0, a * 0
                for c in range(channels):
                    g = grad_out[n, c, y, x]
                    slopes = _spread(data[n, c], grad_data[n, c], (j, i, b, a), g, slopes)
                grad_grid[n, 0, y, x] = slopes[0] * (in_width - 1) / 2
                grad_grid[n, 1, y, x] = slopes[1] * (in_height - 1) / 2
