"""Filters turned round, by which a convolution becomes its transpose."""

import numpy as np

from ...jit import num_threads, parallel
from ...shares import within
from ..vector import BLOCK, flat_of, transpose_block


def turn(weight, turned=None):
    """Filters and channels change places, and the taps of a filter their order.

    ``turned`` is a flat array for the result; it is made if not given.
    """
    filters, channels = weight.shape[:2]
    shape = (channels, filters, *weight.shape[2:])
    turned = np.empty(shape, weight.dtype) if turned is None else turned.reshape(shape)
    if weight.size != filters * channels or filters % BLOCK or channels % BLOCK:
        turned[...] = weight.swapaxes(0, 1)[:, :, ::-1, ::-1, ::-1]
    else:
        _transpose.by(num_threads(weight.size / 4))(weight.reshape(filters, channels), turned.reshape(-1))
    return turned


@parallel
def _transpose(share, matrix, out):
    rows, columns = matrix.shape
    flat = flat_of(matrix)
    for block in within(share, columns // BLOCK):
        column = np.int64(block) * BLOCK
        for row in range(0, rows, BLOCK):
            transpose_block(flat, row * columns + column, columns, BLOCK, out, column * rows + row, rows)
