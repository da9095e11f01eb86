"""Convolution by a window as large as the image: one pixel is the result, and the weight is read once.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import math

import numpy as np

from ...jit import Calls
from ..product.emitter import activate
from ..product.matmul import bind_few_rows
from .way import Way


class OnePixel(Way):
    """Sums of products along the window, for few images; more fill a tile."""

    name = "one_pixel"

    @staticmethod
    def suits(layer, machine):
        whole = layer.out_size == (1, 1) and layer.kernel == layer.in_size and layer.pad == (0, 0)
        return whole and layer.groups == 1 and layer.batch < machine.rows

    @staticmethod
    def cost(layer, machine):
        return -math.inf  # taken wherever it suits: the others leave tiles empty

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        filters = len(weight)
        other, results = (None if each is None else each.reshape(-1, filters) for each in (other, out))
        data, weight, zeros = data.reshape(len(data), -1), weight.reshape(filters, -1), np.zeros_like(shift)
        scale, shift = scale[:filters], shift[:filters]
        multiply = bind_few_rows(data, weight, zeros, results, Calls())

        def run():
            added = None if other is None else other.copy()  # it may be the memory of the results
            multiply()
            np.multiply(results, scale, results)
            np.add(results, shift, results)
            if added is not None:
                np.add(results, added, results)
            activate(results, act)

        return run
