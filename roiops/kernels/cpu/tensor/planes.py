"""Planes of float32 numbers, copied to planes of another size."""

import math

import numpy as np

from ...jit import Calls, inner, parallel
from ...shares import taken
from ..product.panels import copy_run
from ..scratch import Repeated
from ..vector import flat_of

#: Cycles, about, that a row takes beside its numbers.
_ROW = 20


@inner(makes_arrays=False)
def _fill(target, first, stop, value):
    for i in range(first, stop):
        target[i] = value


@parallel(makes_arrays=False)
def _place(share, data, top, left, value, out):
    planes, height, width = out.shape
    source, target = flat_of(data), flat_of(out)
    start = min(width, max(0, left))
    stop = max(start, min(width, left + data.shape[2]))
    for plane in taken(share, planes):
        for y in range(height):
            at, row = (plane * height + y) * width, y - top
            if row < 0 or row >= data.shape[1]:
                _fill(target, at, at + width, value)
                continue
            pixels = (plane * data.shape[1] + row) * data.shape[2] - left
            _fill(target, at, at + start, value)
            copy_run(source, pixels + start, target, at + start, stop - start)
            _fill(target, at + stop, at + width, value)


def bind(data, top, left, value, out):
    """A call of ``out[..., y, x] = data[..., y - top, x - left]``, again and again; all else is ``value``."""
    rows = math.prod(out.shape[:-1])
    data, out = (a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:]) for a in (data, out))
    arguments = data, top, left, np.float32(value), out
    return Repeated(Calls(), rows * _ROW + out.size / 4, lambda threads: [(_place, threads, *arguments)])
