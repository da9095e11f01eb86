"""Images unrolled into columns, by which a convolution is a product of matrices (im2col), and back (col2im).

The columns of a whole image are never held: output rows are taken in blocks of about ``AT_ONCE`` bytes.
"""

import numpy as np

from ...jit import inner, parallel
from ...shares import within
from ..vector import by_known_step

#: Bytes of unrolled columns held at once.
AT_ONCE = 4 << 20


def blocks(image, window, out_size, load=True):
    """The columns of an image block by block: ``(first position, last, columns)``."""
    kernel, stride, _, pad = window
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
            move(image, tuple(window), (height, width), first, columns, False)
        yield first * width, last * width, columns


@inner
def span(offset, stride, size, length):
    """The output positions ``[start, stop)`` for which ``offset + stride * position`` is in ``[0, size)``."""
    start = 0 if offset >= 0 else (-offset + stride - 1) // stride
    stop = (size - offset + stride - 1) // stride if size > offset else 0
    start = min(start, length)
    return start, max(start, min(stop, length))


@inner
def copy_row(step, source, left, start, stop, target):
    """``target[x] = source[left + x * step]`` from ``start`` to before ``stop``, and 0 elsewhere."""
    target[:start] = 0
    target[stop:] = 0
    if step == 1:
        target[start:stop] = source[left + start : left + stop]
    else:
        for x in range(start, stop):
            target[x] = source[left + x * step]


@by_known_step
def _add_row(step, source, start, stop, target, left):
    """``target[left + x * step] += source[x]``"""
    for x in range(start, stop):
        target[left + x * step] += source[x]


@inner
def _move_tap(volume, tap, window, shape, first, line, back):
    """:func:`move` of one tap of a channel."""
    (_, stride, dilate, pad), (height, width) = window, shape
    left = tap[2] * dilate[2] - pad[2]
    start, stop = span(left, stride[2], volume.shape[2], width)
    for row in range(line.shape[0] // max(width, 1)):
        od, oh = divmod(first + row, height)
        z = od * stride[0] + tap[0] * dilate[0] - pad[0]
        y = oh * stride[1] + tap[1] * dilate[1] - pad[1]
        part = line[row * width : (row + 1) * width]
        if z >= 0 and z < volume.shape[0] and y >= 0 and y < volume.shape[1]:
            if back:
                _add_row(stride[2], part, start, stop, volume[z, y], left)
            else:
                copy_row(stride[2], volume[z, y], left, start, stop, part)
        elif not back:
            part[:] = 0


@parallel
def move(share, image, window, shape, first, columns, back):
    """Columns of the output rows from ``first`` on, as many as ``columns`` holds (im2col).

    With ``back`` they are added to the pixels that they were taken from (col2im), by one thread for all taps
    of a channel. ``shape``: height and width of the output.
    """
    kernel = window[0]
    area = kernel[1] * kernel[2]
    taps = kernel[0] * area
    together = taps if back else 1
    for item in within(share, columns.shape[0] // together):
        begin = np.int64(item) * together
        for row in range(begin, begin + together):
            c, rest = divmod(row, taps)
            kd, rest = divmod(rest, area)
            kh, kw = divmod(rest, kernel[2])
            _move_tap(image[c], (kd, kh, kw), window, shape, first, columns[row], back)
