"""Softmax along one axis and the gradients of the losses on it.

Arrays come as ``(outer, classes, inner)``. The softmax itself is NumPy on cache-sized blocks, because
NumPy's ``exp`` is vectorised; what needs no ``exp`` is compiled.
"""

import numpy as np

from ..jit import njit

BLOCK = 32768


def split_axis(array, axis):
    """``array`` as ``(outer, axis, inner)``."""
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    inner = int(np.prod(array.shape[axis + 1 :], dtype=np.int64))
    return array.reshape(outer, array.shape[axis], inner)


def _blocks(outer, classes, inner):
    """Index pairs that cut ``(outer, classes, inner)`` into blocks of about ``BLOCK`` entries."""
    wide = max(min(inner, BLOCK // max(classes, 1)), 1)
    high = max(BLOCK // max(classes * wide, 1), 1) if wide == inner else 1
    for o in range(0, outer, high):
        for i in range(0, inner, wide):
            yield slice(o, o + high), slice(None), slice(i, i + wide)


def _narrow(array):
    """Whether rows are so short that NumPy is faster across them: then the axes are exchanged."""
    return array.shape[2] == 1 and array.shape[1] <= 32


def _working(array):
    return np.float32 if array.dtype == np.float16 else array.dtype


def softmax(x, scale, log, out):
    """``out = softmax(scale * x)`` along the middle axis, or its logarithm; ``out`` may be ``x``."""
    if x.shape[1] == 0:
        return
    dtype = np.result_type(_working(x), _working(out))
    narrow = _narrow(x)
    if narrow:
        x, out = x.transpose(2, 1, 0), out.transpose(2, 1, 0)
    for block in _blocks(*x.shape):
        source, target = x[block], out[block]
        work = np.empty(target.shape, dtype) if narrow or target.dtype != dtype else target
        if scale != 1:
            source = np.multiply(source, np.array(scale, dtype), dtype=dtype, order="C")
        elif narrow:
            source = np.ascontiguousarray(source)
        np.subtract(source, np.max(source, axis=1, keepdims=True), out=work, dtype=dtype)
        if log:
            work -= np.log(np.exp(work).sum(axis=1, keepdims=True))
        else:
            np.exp(work, out=work)
            work /= work.sum(axis=1, keepdims=True)
        if work is not target:
            np.copyto(target, work, casting="unsafe")


def softmax_gradient(grad, y, scale, log, add, out):
    """The gradient of ``softmax`` from its output ``y``; ``out`` may be ``grad``."""
    if y.shape[1] == 0:
        return
    dtype = np.result_type(_working(grad), _working(y))
    narrow = _narrow(y)
    if narrow:
        grad, y, out = (a.transpose(2, 1, 0) for a in (grad, y, out))
    for block in _blocks(*y.shape):
        g, p, target = np.asarray(grad[block], dtype), y[block], out[block]
        if narrow:
            g, p = np.ascontiguousarray(g), np.ascontiguousarray(p)
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
        if add:
            np.add(target, work, out=target, casting="unsafe")
        else:
            np.copyto(target, work, casting="unsafe")


def class_index(label):
    """Labels truncated to int64; what is no number of a class becomes one that no class has."""
    if label.dtype.kind != "f":
        return np.asarray(label, np.int64)
    wild = ~(np.abs(label) < 2**31)
    return np.where(wild, -(2**40), np.where(wild, 0, label)).astype(np.int64)


@njit
def cross_entropy_gradient(p, label, use_ignore, ignore, alpha, factor, add, out):
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
                elif which == k:
                    value -= p.dtype.type(1 - alpha)
                else:
                    value -= p.dtype.type(spread)
                value *= p.dtype.type(factor)
                out[o, k, i] = out[o, k, i] + value if add else value


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
