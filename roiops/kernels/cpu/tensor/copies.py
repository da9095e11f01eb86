"""Arrays with any strides, copied by threads: float32 run by run, floats square by square where they turn."""

import numpy as np

from ...jit import Calls, parallel
from ...shares import within
from ..product.panels import copy_run
from ..scratch import Repeated
from ..vector import BLOCK, transpose_block

#: Numbers of an array, and of a run of them that lie side by side, from which on this is faster than NumPy.
_LARGE, _LONG = 1 << 15, 16
#: Cycles, about, that a run takes beside its numbers.
_RUN = 20


@parallel(makes_arrays=False)
def _copy_runs(share, source, target, counts, source_steps, target_steps, length):
    for line in within(share, counts[0] * counts[1]):
        i, j = divmod(np.int64(line), counts[1])
        at = i * source_steps[0] + j * source_steps[1]
        to = i * target_steps[0] + j * target_steps[1]
        for k in range(counts[2]):
            copy_run(source, at + k * source_steps[2], target, to + k * target_steps[2], length)


@parallel(makes_arrays=False)
def _turn(share, source, target, counts, source_steps, target_steps):
    """The last axis but one lies in one piece in the source, the last one in the target.

    The last squares overlap with those before.
    """
    width, height = counts[1], counts[2]
    columns = (width + BLOCK - 1) // BLOCK
    for line in within(share, counts[0] * columns):
        i, column = divmod(np.int64(line), columns)
        x = min(column * BLOCK, width - BLOCK)
        at, to = i * source_steps[0] + x, i * target_steps[0] + x * target_steps[1]
        for band in range(0, height, BLOCK):
            y = min(band, height - BLOCK)
            row = at + y * source_steps[2]
            transpose_block(source, row, source_steps[2], BLOCK, target, to + y, target_steps[1])


def _axes(source, target) -> list:
    """The axes of both arrays, the last one first: how long it is, and how many bytes each array steps.

    Neighbours that are one axis in memory are one, and the first has steps of one number.
    """
    found = [(1, source.itemsize, source.itemsize)]
    for axis in reversed(range(source.ndim)):
        length, steps = source.shape[axis], [source.strides[axis], target.strides[axis]]
        count, *before = found[-1]
        if length == 1:
            continue
        if steps == [count * step for step in before]:
            found[-1] = (count * length, *before)
        else:
            found.append((length, *steps))
    return found


def bind(source, target):
    """A call of ``target[...] = source``, again and again; None where NumPy does as well."""
    size = source.itemsize
    if target.size < _LARGE or source.dtype != target.dtype or source.dtype not in (np.float32, np.float64):
        return None
    if source.shape != target.shape or min(*source.strides, *target.strides) < 0:
        return None
    (length, *_), *axes = _axes(source, target)
    turns = length == 1
    if turns:  # the axis that lies in one piece in the source, and that in the target, are the last
        axes.sort(key=lambda axis: 2 * (axis[2] == size) + (axis[1] == size), reverse=True)
        if len(axes) < 2 or len(axes) > 3 or axes[0][2] != size or axes[1][1] != size:
            return None
        if min(axes[0][0], axes[1][0]) < BLOCK:
            return None
    elif source.dtype != np.float32 or length < _LONG or len(axes) > 3:
        return None
    axes = [(1, 0, 0)] * (3 - len(axes)) + axes[::-1]
    counts, *steps = (tuple(int(n) for n in each) for each in zip(*axes, strict=True))
    flat = []
    for array, each in zip((source, target), steps, strict=True):
        extent = length + sum((n - 1) * step for n, step in zip(counts, each, strict=True)) // size
        flat.append(np.lib.stride_tricks.as_strided(array, (extent,), (size,)))
    steps = [tuple(step // size for step in each) for each in steps]
    if turns:
        return Repeated(Calls(), target.size / 4, lambda threads: [(_turn, threads, *flat, counts, *steps)])
    work = target.size / 4 + target.size // length * _RUN
    return Repeated(Calls(), work, lambda threads: [(_copy_runs, threads, *flat, counts, *steps, length)])


def copy(source, target):
    """``target[...] = source``, also where they overlap."""
    call = None if np.may_share_memory(source, target) else bind(source, target)
    if call is None:
        np.copyto(target, source, casting="unsafe")
    else:
        call()
