"""Fully connected layers: matrix products."""

import numpy as np

from .blas import TimesTransposed
from .blas_vector import COLUMNS

__all__ = ["Forward", "backward"]


class Forward:
    """``out = data @ weight.T + bias`` for matrices, with scratch that is kept from call to call."""

    def __init__(self):
        self._tiled = TimesTransposed()

    def __call__(self, data, weight, bias, out):
        """Compute into ``out``; ``bias`` may be None."""
        # Few rows leave tiles half empty, and are bound by reading the weight anyhow.
        if data.dtype == np.float32 and len(data) >= COLUMNS // 2 and out.size:
            self._tiled(data, weight, bias, out)
            return
        np.matmul(data, weight.T, out=out)
        if bias is not None:
            out += bias


def backward(grad_out, data, weight, grad_data, grad_weight, grad_bias):
    """Write the gradients that are not None."""
    if grad_data is not None:
        np.matmul(grad_out, weight, out=grad_data)
    if grad_weight is not None:
        np.matmul(grad_out.T, data, out=grad_weight)
    if grad_bias is not None:
        np.sum(grad_out, axis=0, out=grad_bias)
