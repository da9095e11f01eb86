"""Fully connected layers: matrix products.

``tests/reference.py`` has the same in plain loops: ``product``.
"""

import numpy as np

from ...jit import Calls
from .blas import TimesTransposed
from .emitter import COLUMNS
from .product import few_rows, matmul


class Forward:
    """``out = data @ weight.T + bias`` for matrices, with scratch that is kept from call to call."""

    def __init__(self):
        self._tiled, self._call = TimesTransposed(), Calls()

    def __call__(self, data, weight, bias, out):
        """Compute into ``out``; ``bias`` may be None."""
        if data.dtype == np.float32 and out.size:
            if bias is None:
                bias = np.zeros(len(weight), np.float32)
            # Few rows leave tiles half empty, and are bound by reading the weight anyhow.
            if len(data) < COLUMNS // 2:
                few_rows(data, weight, bias, out, self._call)
            else:
                self._tiled(data, weight, bias, out)
            return
        np.matmul(data, weight.T, out=out)
        if bias is not None:
            out += bias


def backward(grad_out, data, weight, grad_data, grad_weight, grad_bias):
    """Write the gradients that are not None."""
    if grad_data is not None:
        matmul(grad_out, weight, grad_data)
    if grad_weight is not None:
        matmul(grad_out.T, data, grad_weight)
    if grad_bias is not None:
        np.sum(grad_out, axis=0, out=grad_bias)
