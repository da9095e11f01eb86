"""Fully connected layers: matrix products."""

import functools

import numpy as np

from ...jit import Calls
from .emitter import COLUMNS
from .matmul import bind_few_rows, matmul, times_transposed

_calls = Calls()


def forward(data, weight, bias, out):
    """``out = data @ weight.T + bias`` for matrices; ``bias`` may be None."""
    bind(data, weight, bias, out)()


def bind(data, weight, bias, out):
    """A call of :func:`forward`, again and again."""
    if data.dtype != np.float32 or not out.size:
        return functools.partial(_by_numpy, data, weight, bias, out)
    if bias is None:
        bias = np.zeros(len(weight), np.float32)
    # Few rows leave tiles half empty, and are bound by reading the weight anyhow.
    if len(data) < COLUMNS // 2:
        return bind_few_rows(data, weight, bias, out, _calls)
    return functools.partial(times_transposed, data, weight, bias, out)


def _by_numpy(data, weight, bias, out):
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
        grad_bias[...] = grad_out.sum(axis=0, dtype=np.float64)  # NumPy adds rows one after the other
