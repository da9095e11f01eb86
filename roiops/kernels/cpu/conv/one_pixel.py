"""Convolution by a window as large as the image: one pixel is the result, and the weight is read once."""

import functools

import numpy as np

from ...jit import Calls, in_turn
from ..network import chain
from ..product.matmul import FETCH, bind_few_rows
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
        """Each vector of the weight is fetched; the lanes of a sum are added one after the other."""
        products = (layer.batch + FETCH) * layer.filters * layer.terms / machine.lanes
        return products + 4 * machine.lanes * layer.batch * layer.filters

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        filters = len(weight)
        # What is added may be in the memory of the results.
        held = other.copy() if other is not None and np.shares_memory(other, out) else other
        results, after = out.reshape(-1, filters), []
        for i, image in enumerate(results):
            steps = [(chain.MULTIPLY, scale[:filters]), (chain.ADD, shift[:filters])]
            if other is not None:
                steps.append((chain.ADD, held[i]))
            if act[2].size:
                steps.append((chain.LEAK, act[2][:filters]))
            after.append(chain.kernel(image, 1, [*steps, *chain.activation(*act[:2])], image))
        weight = weight.reshape(filters, -1)
        data = data.reshape(len(data), weight.shape[1])
        run = bind_few_rows(data, weight, np.zeros_like(shift), results, Calls(), after)
        return run if held is other else in_turn(functools.partial(np.copyto, held, other), run)
