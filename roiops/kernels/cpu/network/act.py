"""Activation functions that NumPy has no single pass for."""

import functools
import math

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import taken, within
from ..scratch import Repeated
from ..vector import FIXED_LANES, greater, load, multiply_add, pointer_to, scaled, select, splat, store
from . import chain, curves
from .recurrent import sigmoid

#: Gradients of fewer numbers stay in a cache from one pass of NumPy to the next.
_LARGE = 1 << 17
#: What makes a slope of an output: it is taken from 1, or multiplied by the output.
_SLOPES = {
    "tanh": (chain.MULTIPLY, chain.SUBTRACT_FROM),
    "sigmoid": (chain.SUBTRACT_FROM, chain.MULTIPLY),
}
#: Numbers that a thread takes at a time.
_BLOCK = 1 << 14


def forward(kind, data, out):
    """``out = kind(data)``; ``out`` may be ``data``."""
    if kind == "relu":
        _relu(data, out)
    elif kind == "tanh":
        np.tanh(data, out=out)
    elif kind == "sigmoid":
        bind(kind, data, out)()
    elif kind == "softrelu" and data.dtype == np.float32:
        curves.evaluate(curves.SOFTRELU, data, out)
    elif kind == "softrelu":
        np.logaddexp(data, data.dtype.type(0), out=out)
    else:
        np.divide(data, 1 + np.abs(data), out=out)


def _relu(data, out):
    if data.size < _BLOCK or data.dtype != out.dtype:
        np.maximum(data, 0, out=out)
    else:  # NumPy takes three times as long for a maximum of an array and a number
        _relu_forward.by(num_threads(data.size / 4))(data.reshape(-1), out.reshape(-1))


def bind(kind, data, out):
    """A call of :func:`forward` for ``relu`` or ``sigmoid``, again and again."""
    if kind == "sigmoid":
        if data.dtype != np.float32 or not chain.is_faster(kind, data.size):
            return functools.partial(sigmoid, data, out)
        return chain.bind(data, [(chain.SIGMOID, 0)], out)
    flat = data.reshape(-1), out.reshape(-1)
    return Repeated(Calls(), data.size / 4, lambda threads: [(_relu_forward, threads, *flat)])


def backward(kind, grad_out, out, grad_data):
    """Write the gradient, which follows from the output, and that of softsign from the data, given instead.

    ``grad_data`` may be ``grad_out``.
    """
    if kind == "relu":
        if out.size < _LARGE or grad_out.dtype != out.dtype or grad_data.dtype != out.dtype:
            np.multiply(grad_out, out > 0, out=grad_data)
        else:
            bent_backward(grad_out, out, 0, grad_data)
        return
    if kind == "softrelu" and out.dtype == np.float32:
        curves.evaluate(curves.SOFTRELU_SLOPE, out, grad_data, factors=grad_out)
        return
    if kind in _SLOPES and out.size >= _LARGE and all(each.dtype == np.float32 for each in (out, grad_out)):
        steps = [(code, 1.0 if code == chain.SUBTRACT_FROM else out) for code in _SLOPES[kind]]
        chain.bind(out, [*steps, (chain.MULTIPLY, grad_out)], grad_data)()
        return
    if kind == "tanh":
        slope = 1 - np.square(out)
    elif kind == "sigmoid":
        slope = out * (1 - out)
    elif kind == "softrelu":
        slope = -np.expm1(-out)
    else:
        slope = np.abs(out)  # 1 - |output| would lose the digits of large numbers
        slope += 1
        np.reciprocal(slope, out=slope)
        np.square(slope, out=slope)
    np.multiply(grad_out, slope, out=grad_data)


@inner
def _ends(block, size):
    """Where a block of ``size`` numbers begins, where its last whole vector ends, and where it ends."""
    start = np.int64(block) * _BLOCK
    stop = min(start + _BLOCK, size)
    return start, stop - (stop - start) % FIXED_LANES, stop


@parallel
def _relu_forward(share, data, out):
    """On flat arrays. NaN stays NaN, and -0 becomes 0."""
    size, one, zero = data.size, data.dtype.type(1), data.dtype.type(0)
    for block in taken(share, (size + _BLOCK - 1) // _BLOCK):
        start, whole, stop = _ends(block, size)
        for i in range(start, whole, FIXED_LANES):
            value = load(pointer_to(data), i)
            value = select(greater(splat(zero), value), splat(zero), value)
            store(pointer_to(out), i, multiply_add(one, value, splat(zero)))
        for i in range(whole, stop):
            out[i] = zero if data[i] < zero else data[i] + zero


def bent(data, slope, out):
    """The data where they are above 0, elsewhere times ``slope``; all of one dtype."""
    bent_backward(data, data, slope, out)


def bent_backward(grad_out, known, slope, grad_data):
    """``grad_out`` where ``known`` is above 0, elsewhere times ``slope``; all of one dtype."""
    flat = (array.reshape(-1) for array in (grad_out, known, grad_data))
    _bent_backward.by(num_threads(known.size / 4))(known.dtype.type(slope), *flat)


@parallel
def _bent_backward(share, below, grad_out, known, grad_data):
    """On flat arrays, in vectors: the compiler makes none where one array may be the other."""
    size = known.size
    zero = splat(known.dtype.type(0))
    for block in taken(share, (size + _BLOCK - 1) // _BLOCK):
        start, whole, stop = _ends(block, size)
        for i in range(start, whole, FIXED_LANES):
            slope = load(pointer_to(grad_out), i)
            passed = greater(load(pointer_to(known), i), zero)
            store(pointer_to(grad_data), i, select(passed, slope, scaled(below, slope)))
        for i in range(whole, stop):
            grad_data[i] = grad_out[i] * (known.dtype.type(1) if known[i] > 0 else below)


@parallel
def leaky(share, data, slope, out):
    """``slope * x`` below 0; ``slope`` is an array with one entry for each row of ``data`` (rows, items)."""
    for row in within(share, data.shape[0]):
        s = slope[row]
        for i in range(data.shape[1]):
            x = data[row, i]
            out[row, i] = x if x > 0 else x * s


@parallel
def leaky_backward(share, grad_out, data, slope, grad_data, grad_slope):
    """Gradients of :func:`leaky`, that of the slope one sum a row."""
    for row in within(share, data.shape[0]):
        s = slope[row]
        total = 0.0
        for i in range(data.shape[1]):
            x, g = data[row, i], grad_out[row, i]
            grad_data[row, i] = g if x > 0 else g * s
            total += 0.0 if x > 0 else g * x
        grad_slope[row] = total


def gelu(data, out):
    """``x * Phi(x)``."""
    if data.dtype == np.float32:
        curves.evaluate(curves.GELU, data, out)
    else:
        _gelu(data.reshape(-1), out.reshape(-1))


def gelu_backward(grad_out, data, grad_data):
    if data.dtype == np.float32:
        curves.evaluate(curves.GELU_SLOPE, data, grad_data, factors=grad_out)
    else:
        _gelu_backward(grad_out.reshape(-1), data.reshape(-1), grad_data.reshape(-1))


@parallel
def _gelu(share, data, out):
    for i in within(share, data.size):
        x = data[i]
        out[i] = 0.5 * x * (1 + math.erf(x * math.sqrt(0.5)))


@parallel
def _gelu_backward(share, grad_out, data, grad_data):
    for i in within(share, data.size):
        x = data[i]
        slope = 0.5 * (1 + math.erf(x * math.sqrt(0.5))) + x * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        grad_data[i] = grad_out[i] * slope


def elu(data, alpha, scale, out):
    """``scale * x`` above 0, else ``scale * alpha * (exp(x) - 1)``."""
    if data.dtype == np.float32:
        curves.evaluate(curves.ELU, data, out, alpha, scale)
        return
    negative = np.expm1(np.minimum(data, 0))
    negative *= alpha
    np.copyto(negative, data, where=data > 0)
    np.multiply(negative, scale, out=out)


def elu_backward(grad_out, data, alpha, scale, grad_data):
    if data.dtype == np.float32:
        curves.evaluate(curves.ELU_SLOPE, data, grad_data, alpha, scale, grad_out)
        return
    slope = np.exp(np.minimum(data, 0))
    slope *= alpha
    slope[data > 0] = 1
    slope *= scale
    np.multiply(grad_out, slope, out=grad_data)
