"""Softmax along one axis and the gradients of the losses on it.

Arrays come as ``(outer, classes, inner)``. Rows of float32 that lie in one piece are compiled, with an
``exp`` that runs in vector registers; everything else is NumPy on cache-sized blocks.

``tests/reference.py`` has the same in plain loops: ``softmax``.
"""

import math

import numpy as np

from ....dtypes import wide
from ...jit import inner, njit, num_threads, parallel
from ...shares import within
from ..vector import FIXED_LANES, greater, load, pointer_to, room, scaled, select, splat, store
from .chain import copy
from .exponential import exp_below_zero

BLOCK = 32768
#: Entries of a row that are worked on at once.
_CHUNK = 512
#: Entries that are worth a thread.
_WORTHWHILE = 16384


def _blocks(outer, classes, inner):
    """Index pairs that cut ``(outer, classes, inner)`` into blocks of about ``BLOCK`` entries."""
    wide = max(min(inner, BLOCK // max(classes, 1)), 1)
    high = max(BLOCK // max(classes * wide, 1), 1) if wide == inner else 1
    for o in range(0, outer, high):
        for i in range(0, inner, wide):
            yield slice(o, o + high), slice(None), slice(i, i + wide)


def _run_on_rows(kernel, inputs, told, out):
    """Run a kernel of contiguous rows of float32 on arrays ``(outer, classes, 1)``, copied if not such."""
    rows, target = [np.ascontiguousarray(each[:, :, 0], np.float32) for each in inputs], out[:, :, 0]
    fits = target.dtype == np.float32 and target.flags.c_contiguous
    work = target if fits else np.empty(target.shape, np.float32)
    threads = max(1, min(num_threads(), work.size // _WORTHWHILE, len(work)))
    kernel.by(threads)(*rows, *told, work)
    if work is not target:
        np.copyto(target, work, casting="unsafe")


def softmax(x, scale, log, out):
    """``out = softmax(scale * x)`` along the middle axis, or its logarithm; ``out`` may be ``x``."""
    if x.size == 0:
        return
    dtype = np.result_type(wide(x.dtype), wide(out.dtype))
    if x.shape[2] == 1 and dtype == np.float32:
        _run_on_rows(_softmax_rows, [x], (np.float32(scale), log), out)
        return
    for block in _blocks(*x.shape):
        source, target = x[block], out[block]
        work = target if target.dtype == dtype else np.empty(target.shape, dtype)
        if scale != 1:
            source = np.multiply(source, np.array(scale, dtype), dtype=dtype)
        np.subtract(source, np.max(source, axis=1, keepdims=True), out=work, dtype=dtype)
        if log:
            work -= np.log(np.exp(work).sum(axis=1, keepdims=True))
        else:
            np.exp(work, out=work)
            work /= work.sum(axis=1, keepdims=True)
        if work is not target:
            np.copyto(target, work, casting="unsafe")


@inner
def _largest(row, scale, buffer):
    """The largest entry of ``scale * row``; entries that are NaN do not count. ``buffer`` is spoiled."""
    top = np.float32(-np.inf)
    whole = row.size // (2 * FIXED_LANES) * (2 * FIXED_LANES)
    if whole:
        tops, others = splat(top), splat(top)
        for i in range(0, whole, 2 * FIXED_LANES):
            values = scaled(scale, load(pointer_to(row), i))
            beside = scaled(scale, load(pointer_to(row), i + FIXED_LANES))
            tops = select(greater(values, tops), values, tops)
            others = select(greater(beside, others), beside, others)
        tops = select(greater(others, tops), others, tops)
        store(pointer_to(buffer), 0, tops)
        for i in range(FIXED_LANES):
            top = max(top, buffer[i])
    for i in range(whole, row.size):
        value = row[i] * scale
        top = value if value > top else top
    return top


@inner(fastmath={"reassoc"})
def _sum(values):
    total = np.float32(0)
    for i in range(values.size):
        total += values[i]
    return total


@inner(fastmath={"reassoc", "contract"})
def _product(one, other):
    total = np.float32(0)
    for i in range(one.size):
        total += one[i] * other[i]
    return total


# The loops below write to a small array of their own, because their result may go where their operands are;
# a loop that might overwrite what it has yet to read is not vectorised.


@inner
def _powers(values, scale, top, out):
    for i in range(values.size):
        out[i] = exp_below_zero(values[i] * scale - top)


@inner
def _shifted(values, scale, top, rest, out):
    for i in range(values.size):
        out[i] = values[i] * scale - top - rest


@parallel
def _softmax_rows(share, x, scale, log, out):
    rows, classes = x.shape
    buffer = room(_CHUNK, np.float32(0))
    for r in within(share, rows):
        source, target = x[r], out[r]
        top = _largest(source, scale, buffer)
        total = 0.0
        for start in range(0, classes, _CHUNK):
            values = source[start : start + _CHUNK]
            chunk = buffer[: values.size]
            _powers(values, scale, top, chunk)
            total += _sum(chunk)
            if not log:
                copy(chunk, 0, target, start, chunk.size)
        if not log:
            target *= np.float32(1 / total)
            continue
        rest = np.float32(math.log(total))
        for start in range(0, classes, _CHUNK):
            values = source[start : start + _CHUNK]
            chunk = buffer[: values.size]
            _shifted(values, scale, top, rest, chunk)
            copy(chunk, 0, target, start, chunk.size)


def softmax_gradient(grad, y, scale, log, out):
    """The gradient of ``softmax`` from its output ``y``; ``out`` may be ``grad``."""
    if y.size == 0:
        return
    dtype = np.result_type(wide(grad.dtype), wide(y.dtype))
    if y.shape[2] == 1 and dtype == np.float32:
        _run_on_rows(_gradient_rows, [grad, y], (np.float32(scale), log), out)
        return
    for block in _blocks(*y.shape):
        g, p, target = np.asarray(grad[block], dtype), y[block], out[block]
        if log:
            work = np.exp(p, dtype=dtype)
            work *= -g.sum(axis=1, keepdims=True)
            work += g
        else:
            total = np.multiply(g, p, dtype=dtype).sum(axis=1, keepdims=True)
            work = np.subtract(g, total)
            work *= p
        if scale != 1:
            work *= np.array(scale, dtype)
        np.copyto(target, work, casting="unsafe")


@inner
def _gradient(grad, y, total, scale, out):
    for i in range(y.size):
        out[i] = (grad[i] - total) * y[i] * scale


@inner
def _log_gradient(grad, y, total, scale, out):
    for i in range(y.size):
        out[i] = (grad[i] - exp_below_zero(y[i]) * total) * scale


@parallel
def _gradient_rows(share, grad, y, scale, log, out):
    rows, classes = y.shape
    buffer = room(_CHUNK, np.float32(0))
    for r in within(share, rows):
        total = 0.0
        for start in range(0, classes, _CHUNK):
            g, p = grad[r, start : start + _CHUNK], y[r, start : start + _CHUNK]
            total += _sum(g) if log else _product(g, p)
        for start in range(0, classes, _CHUNK):
            g, p = grad[r, start : start + _CHUNK], y[r, start : start + _CHUNK]
            chunk, target = buffer[: g.size], out[r, start : start + _CHUNK]
            if log:
                _log_gradient(g, p, np.float32(total), scale, chunk)
            else:
                _gradient(g, p, np.float32(total), scale, chunk)
            copy(chunk, 0, target, 0, chunk.size)


def class_index(label):
    """Labels truncated to int64; what is no number of a class becomes one that no class has."""
    if label.dtype.kind != "f":
        return np.asarray(label, np.int64)
    wild = ~(np.abs(label) < 2**31)
    return np.where(wild, -(2**40), np.where(wild, 0, label)).astype(np.int64)


@njit
def cross_entropy_gradient(p, label, use_ignore, ignore, alpha, factor, out):
    """``factor * (p - target)``: the target is 1 - alpha at the label, alpha / (classes - 1) elsewhere.

    Ignored positions get 0, labels that are no class the plain ``p``.
    """
    outer, classes, inner = p.shape
    spread = alpha / max(classes - 1, 1)
    for o in range(outer):
        for k in range(classes):
            for i in range(inner):
                which = label[o, i]
                value = p[o, k, i]
                if use_ignore and which == ignore:
                    value = p.dtype.type(0)
                else:
                    value -= p.dtype.type(1 - alpha if which == k else spread)
                out[o, k, i] = value * p.dtype.type(factor)


@njit
def svm_gradient(x, label, margin, factor, linear, out):
    """The gradient of the one-against-all hinge loss, linear or squared."""
    rows, classes = x.shape
    for r in range(rows):
        for k in range(classes):
            sign = 1.0 if label[r] == k else -1.0
            short = margin - sign * x[r, k]
            if short > 0:
                out[r, k] = -sign * factor * (1.0 if linear else 2.0 * short)
            else:
                out[r, k] = 0.0
