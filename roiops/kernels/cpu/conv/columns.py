"""Images unrolled into columns, by which a convolution is a product of matrices (im2col), and back (col2im).

The columns of a whole image are never held: output rows are taken in blocks of about ``AT_ONCE`` bytes.
"""

import numpy as np

from ...jit import inner, parallel, within

#: Bytes of unrolled columns held at once.
AT_ONCE = 4 << 20


def blocks(image, window, out_size, load=True):
    """The columns of an image block by block: ``(first position, last, columns)``."""
    kernel, stride, dilate, pad = window
    if kernel == stride == (1, 1, 1) and pad == (0, 0, 0):
        yield 0, image[0].size, image.reshape(len(image), -1)
        return
    depth, height, width = out_size
    taps = len(image) * int(np.prod(kernel))
    rows = depth * height
    step = max(1, min(rows, AT_ONCE // max(1, taps * width * image.itemsize)))
    buffer = np.empty((taps, step * width), image.dtype)
    for first in range(0, rows, step):
        last = min(first + step, rows)
        columns = buffer[:, : (last - first) * width]
        if load:
            unroll(image, kernel, stride, dilate, pad, height, width, first, columns)
        yield first * width, last * width, columns


@inner
def span(offset, stride, size, length):
    """The output positions ``[start, stop)`` for which ``offset + stride * position`` is in ``[0, size)``."""
    start = 0 if offset >= 0 else (-offset + stride - 1) // stride
    stop = (size - offset + stride - 1) // stride if size > offset else 0
    start = min(start, length)
    return start, max(start, min(stop, length))


@parallel
def unroll(share, image, kernel, stride, dilate, pad, height, width, first, columns):
    """Columns of the output rows from ``first`` on, as many as ``columns`` holds (im2col)."""
    _, in_depth, in_height, in_width = image.shape
    area = kernel[1] * kernel[2]
    count = columns.shape[1] // max(width, 1)
    for tap in within(share, columns.shape[0]):
        c, rest = divmod(tap, kernel[0] * area)
        kd, rest = divmod(rest, area)
        kh, kw = divmod(rest, kernel[2])
        left = kw * dilate[2] - pad[2]
        start, stop = span(left, stride[2], in_width, width)
        for row in range(count):
            od, oh = divmod(first + row, height)
            z = od * stride[0] + kd * dilate[0] - pad[0]
            y = oh * stride[1] + kh * dilate[1] - pad[1]
            target = columns[tap, row * width : (row + 1) * width]
            if z < 0 or z >= in_depth or y < 0 or y >= in_height:
                target[:] = 0
                continue
            source = image[c, z, y]
            target[:start] = 0
            target[stop:] = 0
            if stride[2] == 1:
                target[start:stop] = source[left + start : left + stop]
            else:
                for x in range(start, stop):
                    target[x] = source[left + x * stride[2]]


@inner
def _add_row(source, start, stop, target, left, step):
    """``target[left + x * step] += source[x]``"""
    if step == 1:
        for x in range(start, stop):
            target[left + x] += source[x]
    else:
        for x in range(start, stop):
            target[left + x * step] += source[x]


@parallel
def roll(share, columns, kernel, stride, dilate, pad, height, width, first, image):
    """Add columns back to the pixels that :func:`unroll` takes them from (col2im)."""
    channels, in_depth, in_height, in_width = image.shape
    taps = kernel[0] * kernel[1] * kernel[2]
    area = kernel[1] * kernel[2]
    count = columns.shape[1] // max(width, 1)
    for channel in within(share, channels):
        c = np.int64(channel)
        for tap in range(taps):
            kd, rest = divmod(tap, area)
            kh, kw = divmod(rest, kernel[2])
            left = kw * dilate[2] - pad[2]
            start, stop = span(left, stride[2], in_width, width)
            for row in range(count):
                od, oh = divmod(first + row, height)
                z = od * stride[0] + kd * dilate[0] - pad[0]
                y = oh * stride[1] + kh * dilate[1] - pad[1]
                if z < 0 or z >= in_depth or y < 0 or y >= in_height:
                    continue
                source = columns[c * taps + tap, row * width : (row + 1) * width]
                _add_row(source, start, stop, image[c, z, y], left, stride[2])
