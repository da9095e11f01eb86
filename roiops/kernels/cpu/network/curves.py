"""Functions of float32 that are made of exponentials, in vectors and by threads."""

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import taken
from .chain import copy
from .exponential import erf_and_rest, exp_below_zero, expm1_below_zero, softplus

ERF, GELU, ELU, SOFTRELU = range(4)
#: Slopes; that of the softrelu is a function of its value.
GELU_SLOPE, ELU_SLOPE, SOFTRELU_SLOPE = range(4, 7)
#: Numbers of a block.
_BLOCK = 1024
_HALF, _ROOT_OF_HALF = np.float32(0.5), np.float32(np.sqrt(0.5))
_HEIGHT = np.float32(1 / np.sqrt(2 * np.pi))
_NOTHING = np.empty(0, np.float32)

_calls = Calls()


def evaluate(code, data, out, alpha=1.0, scale=1.0, factors=_NOTHING):
    """``out = function(data)``, times ``factors`` where those are given.

    All are C-contiguous float32 of one size; each may be ``out``.
    """
    flat = data.reshape(-1), factors.reshape(-1), out.reshape(-1)
    _calls(_curve, num_threads(data.size * 2), code, np.float32(alpha), np.float32(scale), *flat)


@inner
def _normal(x):
    """The normal distribution's cumulative function."""
    below, rest = erf_and_rest(abs(x) * _ROOT_OF_HALF)
    return _HALF * rest if x < 0 else _HALF + _HALF * below


@inner
def _apply(code, values, count, alpha, scale):
    numbers = range(np.uint64(count))  # negative ones would be no vectors
    if code == ERF:
        for i in numbers:
            below, _ = erf_and_rest(abs(values[i]))
            values[i] = -below if values[i] < 0 else below
    elif code == GELU:
        for i in numbers:
            values[i] *= _normal(values[i])
    elif code == ELU:
        for i in numbers:
            below = alpha * expm1_below_zero(min(values[i], np.float32(0)))
            values[i] = scale * (values[i] if values[i] > 0 else below)
    elif code == SOFTRELU:
        for i in numbers:
            values[i] = softplus(values[i])
    elif code == GELU_SLOPE:
        for i in numbers:
            height = _HEIGHT * exp_below_zero(-_HALF * values[i] * values[i])
            values[i] = _normal(values[i]) + values[i] * height
    elif code == ELU_SLOPE:
        for i in numbers:
            below = alpha * exp_below_zero(min(values[i], np.float32(0)))
            values[i] = scale * (np.float32(1) if values[i] > 0 else below)
    else:
        for i in numbers:
            values[i] = -expm1_below_zero(-values[i])


@parallel
def _curve(share, code, alpha, scale, data, factors, out):
    """On flat arrays."""
    values = np.empty(_BLOCK, np.float32)
    for block in taken(share, (data.size + _BLOCK - 1) // _BLOCK):
        start = np.int64(block) * _BLOCK
        count = min(data.size - start, _BLOCK)
        copy(data, start, values, 0, count)
        _apply(code, values, count, alpha, scale)
        if factors.size > 0:
            for i in range(np.uint64(count)):
                values[i] *= factors[np.uint64(start) + i]
        copy(values, 0, out, start, count)
