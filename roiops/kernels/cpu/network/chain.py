"""Element-wise operators one after the other, in one pass.

A block of numbers goes through all of them before the next one comes: they read it in a near cache, and one
call of a kernel does what would be as many. Each number is rounded as it is by the operators alone, but for
the sigmoid's, whose ``exp`` is not NumPy's.
"""

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import taken
from ..scratch import Repeated
from .exponential import sigmoid

ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, DIVIDE, DIVIDE_INTO = range(6)
RECTIFY, MAXIMUM, MINIMUM, LEAK, SIGMOID = range(6, 11)
#: The first is that of data and operand, the second that of operand and data.
CODES = {
    np.add: (ADD, ADD),
    np.subtract: (SUBTRACT, SUBTRACT_FROM),
    np.multiply: (MULTIPLY, MULTIPLY),
    np.true_divide: (DIVIDE, DIVIDE_INTO),
}
#: Arrays beside the data, at most.
MOST_ARRAYS = 4
#: Fewer numbers are left to NumPy.
_SOME = 4096
#: Numbers of a block.
_BLOCK = 1024
#: What kind of operand a step has: a number, one for each entry, or one for each row of entries.
_NUMBER, _ENTRIES, _ROWS = range(3)


def activation(floor=-np.inf, ceiling=np.inf, slopes=1.0) -> list:
    """The steps of an activation: negative numbers times ``slopes``, then all within bounds."""
    least = RECTIFY if ceiling == np.inf else MAXIMUM
    steps = (LEAK, slopes, 1), (least, floor, -np.inf), (MINIMUM, ceiling, np.inf)
    return [(code, number) for code, number, nothing in steps if number != nothing]


def is_faster(kind, size, by_rows=False) -> bool:
    """Whether a chain of one step, with an operand for each row or not, takes less time than NumPy."""
    return size >= _SOME and (by_rows or kind == "sigmoid" or num_threads(_work(size, 1)) > 1)


def _work(size, steps):
    return size * (1 + steps) / 8


def bind(data, steps, out):
    """A call that takes ``data`` through all :func:`steps <kernel>` into ``out``, again and again."""
    work = _work(data.size, len(steps))
    return Repeated(Calls(), work, lambda threads: [kernel(data, threads, steps, out)])


def kernel(data, threads, steps, out):
    """The kernel that takes ``data`` through all steps into ``out``, its threads, and its arguments.

    A step is a code and its operand: a number, or an array of the shape of the data, or of the shape of
    their first axes, and maybe axes of length 1 after these. All are C-contiguous float32; each may be
    ``out``.
    """
    sizes = [operand.size for _, operand in steps if isinstance(operand, np.ndarray)]
    # Rows are those of the operand that has most; a number of another one is for several of them.
    rows = max((size for size in sizes if size < data.size), default=1)
    others, numbers = [], np.zeros(len(steps), np.float32)
    table = np.zeros((len(steps), 4), np.int64)
    for i, (code, operand) in enumerate(steps):
        table[i] = code, _NUMBER, 0, 1
        if not isinstance(operand, np.ndarray):
            numbers[i] = operand
            continue
        kind = _ENTRIES if operand.size == data.size else _ROWS
        table[i, 1:] = kind, len(others), rows // max(1, operand.size)
        others.append(operand.reshape(-1))
    target = out.reshape(-1)
    others += [target] * (MOST_ARRAYS - len(others))
    return _chain, threads, data.reshape(-1), table, numbers, tuple(others), data.size // rows, target


def _steps(of_operand):
    """One step of a block, where ``of_operand(operand, i)`` is that of entry i."""

    @inner
    def step(code, values, first, stop, operand):
        numbers = range(np.uint64(first), np.uint64(stop))  # negative ones would be no vectors
        if code == ADD:
            for i in numbers:
                values[i] += of_operand(operand, i)
        elif code == SUBTRACT:
            for i in numbers:
                values[i] -= of_operand(operand, i)
        elif code == SUBTRACT_FROM:
            for i in numbers:
                values[i] = of_operand(operand, i) - values[i]
        elif code == MULTIPLY:
            for i in numbers:
                values[i] *= of_operand(operand, i)
        elif code == DIVIDE:
            for i in numbers:
                values[i] /= of_operand(operand, i)
        elif code == DIVIDE_INTO:
            for i in numbers:
                values[i] = of_operand(operand, i) / values[i]
        elif code == RECTIFY:  # here and below, NaN stays NaN; -0 becomes 0 as in a relu, but not in a clip
            for i in numbers:
                values[i] = of_operand(operand, i) if values[i] <= of_operand(operand, i) else values[i]
        elif code == MAXIMUM:
            for i in numbers:
                values[i] = of_operand(operand, i) if values[i] < of_operand(operand, i) else values[i]
        elif code == MINIMUM:
            for i in numbers:
                values[i] = of_operand(operand, i) if values[i] > of_operand(operand, i) else values[i]
        else:
            for i in numbers:
                values[i] = values[i] if values[i] > 0 else values[i] * of_operand(operand, i)

    return step


@inner
def _entry(operand, i):
    array, start = operand
    return array[np.uint64(start) + i]


@inner
def _number(operand, i):
    return operand


_by_entries, _by_number = _steps(_entry), _steps(_number)


@inner
def _sigmoid(values, count):
    for i in range(np.uint64(count)):
        values[i] = sigmoid(values[i])


@inner(makes_arrays=False)
def copy(source, at, target, to, count):
    for i in range(np.uint64(count)):
        target[np.uint64(to) + i] = source[np.uint64(at) + i]


@parallel
def _chain(share, data, table, numbers, others, columns, out):
    """On flat arrays; ``table`` has each step's code, kind of operand, array, and rows for a number of it."""
    # A block is some rows, or a part of one.
    parts, height = (columns + _BLOCK - 1) // _BLOCK, max(1, _BLOCK // max(1, columns))
    rows = data.size // max(1, columns)
    values = np.empty(_BLOCK, np.float32)
    for block in taken(share, (rows + height - 1) // height * parts):
        group, part = divmod(block, parts)
        row, start = group * height, group * height * columns + part * _BLOCK
        count = min(min(rows, row + height) * columns - start, _BLOCK)
        copy(data, start, values, 0, count)
        for i in range(table.shape[0]):
            code, kind, which, each = table[i]
            if code == SIGMOID:
                _sigmoid(values, count)
            elif kind == _ENTRIES:
                _by_entries(code, values, 0, count, (others[which], start))
            elif kind == _NUMBER:
                _by_number(code, values, 0, count, numbers[i])
            else:
                for first in range(0, count, columns):
                    place = (row + first // columns) // each
                    _by_number(code, values, first, min(first + columns, count), others[which][place])
        copy(values, 0, out, start, count)
