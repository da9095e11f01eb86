"""Indices from arrays of any dtype, and sums scattered to indexed rows."""

import math

import numpy as np

from ...jit import njit, num_threads, parallel
from ...shares import rows_within
from ..vector import flat_of

#: Columns that are worth a thread of their own.
_COLUMNS = 64


def whole_numbers(indices):
    """Indices cut off to int64. Infinity becomes a very large index, NaN 0, as no cast can go wrong."""
    if indices.dtype.kind != "f":
        return np.asarray(indices, np.int64)
    whole = np.empty(indices.shape, np.int64)
    values = indices.astype(np.float32) if indices.dtype == np.float16 else np.ascontiguousarray(indices)
    _whole_numbers(values.reshape(-1), whole.reshape(-1))
    return whole


@njit
def _whole_numbers(values, whole):
    limit = 2.0**62
    for i in range(values.size):
        value = np.float64(values[i])
        whole[i] = np.int64(min(max(value, -limit), limit)) if value == value else 0


def bounded(indices, length, mode):
    """``whole_numbers`` brought into ``[0, length)``: moved to the edge, or wrapped around."""
    whole = whole_numbers(indices)
    return np.minimum(np.maximum(whole, 0), length - 1) if mode == "clip" else np.mod(whole, length)


def pick(data, index, axis):
    """``data[o, index[o, i], i]`` where ``axis`` parts the array into ``(o, :, i)``; of index's shape."""
    outer, inner = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    # Entries are only moved, so their bits will do for every type.
    bits = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}").reshape(outer, data.shape[axis], inner)
    picked = np.empty(index.shape, bits.dtype)
    _pick(bits, index.reshape(outer, inner), picked.reshape(outer, inner))
    return picked.view(data.dtype)


@njit
def _pick(data, index, out):
    for o in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[o, i] = data[o, index[o, i], i]


def outside(indices, lengths, negative=True):
    """The first position at which an index is outside its axis, as ``(axis, position)``; None if none is.

    ``indices`` holds one row for each of ``lengths``; ``negative`` allows counting from the end.
    """
    for axis, (row, length) in enumerate(zip(indices, lengths, strict=True)):
        wrong = (row < (-length if negative else 0)) | (row >= length)
        if wrong.any():
            return axis, tuple(int(i) for i in np.argwhere(wrong)[0])
    return None


def flat_index(indices, lengths):
    """Row numbers for indices of several axes, one row of ``indices`` for each; negative ones wrap."""
    flat = np.zeros(indices.shape[1:], np.int64)
    for row, length in zip(indices, lengths, strict=True):
        flat = flat * length + np.where(row < 0, row + length, row)
    return flat.reshape(-1)


@parallel
def _add_rows(share, values, index, out):
    """Threads have other columns, so that each row is summed in the order of ``index``."""
    outer, rows, width = out.shape
    first, stop = rows_within(share, 1, width)
    given, sums = flat_of(values), flat_of(out)
    for o in range(outer):
        for j in range(index.size):
            at, to = np.uint64((o * index.size + j) * width), np.uint64((o * rows + index[j]) * width)
            for i in range(np.uint64(first), np.uint64(stop)):
                sums[to + i] += given[at + i]


def add_rows(values, index, out):
    """``out[:, index[j], :] += values[:, j, :]`` for every j in order; float16 is summed in float32."""
    total = out.astype(np.float32) if out.dtype == np.float16 else out
    threads = max(1, min(num_threads(values.size / 8), out.shape[2] // _COLUMNS))
    _add_rows.by(threads)(np.ascontiguousarray(values, total.dtype), index, total)
    if total is not out:
        out[...] = total


def _bits(condition, like):
    """All bits set where the condition is not 0, as integers of the size of ``like``'s entries."""
    return np.negative((condition != 0).view(np.int8), dtype=f"i{like.itemsize}")


def choose(condition, x, y):
    """``x`` where the condition is not 0, ``y`` elsewhere.

    By bits, because a branch on a condition without a pattern costs ten times as much.
    """
    bits = _bits(condition, x)
    return ((x.view(bits.dtype) & bits) | (y.view(bits.dtype) & ~bits)).view(x.dtype)


def keep(condition, x):
    """``x`` where the condition is not 0, 0 elsewhere."""
    bits = _bits(condition, x)
    return (x.view(bits.dtype) & bits).view(x.dtype)


def drop(condition, x):
    """``x`` where the condition is 0, 0 elsewhere."""
    bits = _bits(condition, x)
    return (x.view(bits.dtype) & ~bits).view(x.dtype)
