"""The steps of a recurrent layer in one direction, on C-contiguous float32 or float64 arrays.

Four sequences go through all steps side by side, so that the state's weight is read once for them; threads
have other sequences.

``tests/reference.py`` has the same in plain loops: ``recurrent``.
"""

import math
from typing import NamedTuple

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import within
from ..vector import FIXED_LANES, flat_of, load, multiply_add, pointer_to, store
from .chain import copy
from .exponential import expm1_below_zero, sigmoid

#: Sequences that go side by side, and the results of each that are summed at once.
ROWS, COLUMNS = 4, 2 * FIXED_LANES
#: What becomes of a product with the state takes as long as so many vectors of the product.
_GATES = 20


class Sequences(NamedTuple):
    """What all steps of all sequences are made of, and what the way back needs of them."""

    #: (step, sequence, gate, entry): what the input gives to the gates, then the gates.
    values: np.ndarray
    #: (step, sequence, entry), the first ones before the steps.
    states: np.ndarray
    cells: np.ndarray
    #: What the way back needs besides, of the shape of the results.
    aside: np.ndarray


class Gradients(NamedTuple):
    #: Of the results; of what the state, with a last step of zeros, and the input give to the gates.
    head: np.ndarray
    to_state: np.ndarray
    to_input: np.ndarray
    #: Of a state and a cell on their way back, (sequence, entry).
    carry: np.ndarray
    carry_cell: np.ndarray


class Product(NamedTuple):
    """``start + state @ matrix``."""

    #: A row for each sequence, or one for all.
    start: np.ndarray
    #: The matrix; see :func:`_panels_of`.
    panels: np.ndarray
    #: Memory, a row for each ``ROWS`` sequences.
    sums: np.ndarray


def forward(mode, matrix, bias, product, sequences):
    """All steps, or one after the other with ``product`` of a state and the matrix, where that is large."""
    _run(_FORWARD[mode], matrix, bias, product, sequences, sequences.states, ())


def backward(mode, matrix, product, sequences, gradients):
    """The same on the way back."""
    _run(_BACKWARD[mode], matrix, 0, product, sequences, gradients.to_state, (gradients,))


#: By dtype: arguments of a kernel are then of the same types in all calls.
_calls: dict = {}


def _run(kernel, matrix, bias, product, sequences, factors, gradients):
    (terms, columns), (steps, batch), back = matrix.shape, sequences.values.shape[:2], len(gradients)
    panels = _panels_of(matrix[: 0 if product else terms])
    groups, width = -(-batch // ROWS), panels.shape[0] * COLUMNS
    start = np.zeros((batch if product else 1, width), matrix.dtype)
    start[:, :columns] = bias
    given = Product(start, panels, np.empty((groups, ROWS * width), matrix.dtype))
    work = (1 if product else steps) * groups * ROWS * (panels.size + _GATES * width) / FIXED_LANES
    call, threads = _calls.setdefault(matrix.dtype, Calls()), max(1, min(num_threads(work), groups))
    if not product:
        call(kernel, threads, given, sequences, *gradients)
        return
    for t in reversed(range(steps)) if back else range(steps):
        start[:, :columns] = product(factors[t + back].reshape(batch, terms))
        call(kernel, threads, given, *(_step(each, t, steps) for each in (sequences, *gradients)))


def _step(arrays, t, steps):
    """One step of :class:`Sequences` or of :class:`Gradients`, of which the last two are not over time."""
    count = 3 if isinstance(arrays, Gradients) else 4
    return arrays._make([each[t : t + 1 + len(each) - steps] for each in arrays[:count]] + [*arrays[count:]])


def _panels_of(matrix):
    """A matrix (terms, columns) cut into panels (panel, terms, ``COLUMNS``), filled up with 0."""
    terms, columns = matrix.shape
    panels = np.zeros((-(-columns // COLUMNS), terms, COLUMNS), matrix.dtype)
    for i, panel in enumerate(panels):
        part = matrix[:, i * COLUMNS : (i + 1) * COLUMNS]
        panel[:, : part.shape[1]] = part
    return panels


@inner(makes_arrays=False)
def _load_rows(flat, places, at):
    a, b, c, d = places
    return (
        load(pointer_to(flat), a + at),
        load(pointer_to(flat), b + at),
        load(pointer_to(flat), c + at),
        load(pointer_to(flat), d + at),
    )


@inner(makes_arrays=False)
def _store_rows(rows, flat, at, apart):
    for i, row in enumerate(rows):
        store(pointer_to(flat), at + i * apart, row)


@inner(makes_arrays=False)
def _add_products(flat, places, k, values, rows):
    (one, two, three, four), (a, b, c, d) = places, rows
    return (
        multiply_add(flat[one + k], values, a),
        multiply_add(flat[two + k], values, b),
        multiply_add(flat[three + k], values, c),
        multiply_add(flat[four + k], values, d),
    )


@inner(makes_arrays=False)
def _multiply(factors, first, product, sums):
    """The :class:`Product` of ``ROWS`` rows of factors; after the last one, that is taken again."""
    start, panels, _ = product
    count, terms, _ = panels.shape
    flat, right, begin, last = flat_of(factors), flat_of(panels), flat_of(start), factors.shape[0] - 1
    width, apart = start.shape[1], start.shape[1] if start.shape[0] > 1 else 0
    two, three, four = min(first + 1, last), min(first + 2, last), min(first + 3, last)
    begins = first * apart, two * apart, three * apart, four * apart
    places = first * terms, two * terms, three * terms, four * terms
    for panel in range(count):
        left = panel * COLUMNS
        low, high = _load_rows(begin, begins, left), _load_rows(begin, begins, left + FIXED_LANES)
        for k in range(terms):
            at = (panel * terms + k) * COLUMNS
            low = _add_products(flat, places, k, load(pointer_to(right), at), low)
            high = _add_products(flat, places, k, load(pointer_to(right), at + FIXED_LANES), high)
        _store_rows(low, sums, left, width)
        _store_rows(high, sums, left + FIXED_LANES, width)


@inner(makes_arrays=False)
def _in_turn(share, factors, back, product):
    """Each step of each sequence, after the product with what came out of the step before it or, on the way
    ``back``, after it: ``step, sequence, product``.
    """
    batch, steps = factors.shape[1], factors.shape[0] - 1
    width, sums = product.start.shape[1], product.sums
    for group in within(share, sums.shape[0]):
        first = group * ROWS
        for i in range(steps):
            t = steps - 1 - i if back else i
            _multiply(factors[t + back], first, product, sums[group])
            for row in range(min(ROWS, batch - first)):
                yield t, first + row, sums[group, row * width : (row + 1) * width]


@inner(makes_arrays=False)
def _add(values, target):
    for i in range(np.uint64(target.size)):
        target[i] += values[i]


@inner(makes_arrays=False)
def _multiply_rows(values, others, target):
    for i in range(np.uint64(target.size)):
        target[i] = values[i] * others[i]


@inner(makes_arrays=False)
def _sigmoid(values):
    if values.itemsize == 4:
        for i in range(np.uint64(values.size)):
            values[i] = sigmoid(np.float32(values[i]))
    else:
        for i in range(values.size):
            values[i] = 1 / (1 + math.exp(-values[i]))


@inner(makes_arrays=False)
def _tanh(values):
    if values.itemsize == 4:
        for i in range(np.uint64(values.size)):
            e = expm1_below_zero(np.float32(-2) * abs(np.float32(values[i])))
            tanh = e / (np.float32(2) + e)
            values[i] = tanh if values[i] < 0 else -tanh
    else:
        for i in range(values.size):
            values[i] = math.tanh(values[i])


@parallel(makes_arrays=False)
def _tanh_forward(share, product, sequences):
    values, states, _, _ = sequences
    for t, n, given in _in_turn(share, states, False, product):
        _add(given, values[t, n, 0])
        _tanh(values[t, n, 0])
        copy(values[t, n, 0], 0, states[t + 1, n], 0, states.shape[2])


@parallel(makes_arrays=False)
def _relu_forward(share, product, sequences):
    values, states, _, _ = sequences
    for t, n, given in _in_turn(share, states, False, product):
        gate, state = values[t, n, 0], states[t + 1, n]
        _add(given, gate)
        for i in range(np.uint64(state.size)):
            state[i] = 0 if gate[i] < 0 else gate[i]


@parallel(makes_arrays=False)
def _lstm_forward(share, product, sequences):
    values, states, cells, aside = sequences
    size = states.shape[2]
    for t, n, given in _in_turn(share, states, False, product):
        gates, before, cell, tanh = values[t, n], cells[t, n], cells[t + 1, n], aside[t, n]
        enter, forget, candidate, leave = gates[0], gates[1], gates[2], gates[3]
        _add(given, flat_of(gates))
        _sigmoid(enter)
        _sigmoid(forget)
        _tanh(candidate)
        _sigmoid(leave)
        for i in range(np.uint64(size)):
            cell[i] = forget[i] * before[i] + enter[i] * candidate[i]
        copy(cell, 0, tanh, 0, size)
        _tanh(tanh)
        _multiply_rows(leave, tanh, states[t + 1, n])


@parallel(makes_arrays=False)
def _gru_forward(share, product, sequences):
    values, states, _, aside = sequences
    size = states.shape[2]
    for t, n, given in _in_turn(share, states, False, product):
        gates, from_state, before, state = values[t, n], aside[t, n], states[t, n], states[t + 1, n]
        reset, update, candidate = gates[0], gates[1], gates[2]
        _add(given, flat_of(gates)[: 2 * size])
        _sigmoid(reset)
        _sigmoid(update)
        copy(given, 2 * size, from_state, 0, size)
        for i in range(np.uint64(size)):
            candidate[i] += reset[i] * from_state[i]
        _tanh(candidate)
        for i in range(np.uint64(size)):
            state[i] = (before[i] - candidate[i]) * update[i] + candidate[i]


@inner(makes_arrays=False)
def _gradient(head, carry, grad):
    """The gradient of a state, from what it gives to gates and all else; nothing is on its way any longer."""
    for i in range(np.uint64(carry.size)):
        grad[i] += carry[i] + head[i]
    for i in range(np.uint64(carry.size)):
        carry[i] = 0


@parallel(makes_arrays=False)
def _tanh_backward(share, product, sequences, gradients):
    head, to_state, _, carry, _ = gradients
    for t, n, grad in _in_turn(share, to_state, True, product):
        state, to = sequences.states[t + 1, n], to_state[t, n, 0]
        _gradient(head[t, n], carry[n], grad)
        for i in range(np.uint64(to.size)):
            to[i] = grad[i] * (1 - state[i] * state[i])


@parallel(makes_arrays=False)
def _relu_backward(share, product, sequences, gradients):
    head, to_state, _, carry, _ = gradients
    for t, n, grad in _in_turn(share, to_state, True, product):
        state, to = sequences.states[t + 1, n], to_state[t, n, 0]
        _gradient(head[t, n], carry[n], grad)
        for i in range(np.uint64(to.size)):
            to[i] = grad[i] * (state[i] > 0)


@inner(makes_arrays=False)
def _through_sigmoid(grad, other, gate, to):
    for i in range(np.uint64(to.size)):
        to[i] = grad[i] * other[i] * gate[i] * (1 - gate[i])


@inner(makes_arrays=False)
def _through_tanh(grad, other, tanh, to):
    for i in range(np.uint64(to.size)):
        to[i] = grad[i] * other[i] * (1 - tanh[i] * tanh[i])


@parallel(makes_arrays=False)
def _lstm_backward(share, product, sequences, gradients):
    values, _, cells, aside = sequences
    head, to_state, _, carry, carry_cell = gradients
    for t, n, grad in _in_turn(share, to_state, True, product):
        gates, to, grad_cell, tanh = values[t, n], to_state[t, n], carry_cell[n], aside[t, n]
        enter, forget, candidate, leave = gates[0], gates[1], gates[2], gates[3]
        to_leave = to[3]
        _gradient(head[t, n], carry[n], grad)
        _through_tanh(grad, leave, tanh, to_leave)
        _add(to_leave, grad_cell)
        _through_sigmoid(grad, tanh, leave, to_leave)
        _through_sigmoid(grad_cell, candidate, enter, to[0])
        _through_sigmoid(grad_cell, cells[t, n], forget, to[1])
        _through_tanh(grad_cell, enter, candidate, to[2])
        _multiply_rows(forget, grad_cell, grad_cell)


@parallel(makes_arrays=False)
def _gru_backward(share, product, sequences, gradients):
    values, states, _, aside = sequences
    head, to_state, to_input, carry, _ = gradients
    size = states.shape[2]
    for t, n, grad in _in_turn(share, to_state, True, product):
        gates, to, before = values[t, n], to_input[t, n], states[t, n]
        reset, update, candidate = gates[0], gates[1], gates[2]
        to_reset, to_update, to_candidate = to[0], to[1], to[2]
        _gradient(head[t, n], carry[n], grad)
        for i in range(np.uint64(size)):
            to_candidate[i] = grad[i] * (1 - update[i]) * (1 - candidate[i] * candidate[i])
        for i in range(np.uint64(size)):
            to_update[i] = grad[i] * (before[i] - candidate[i]) * update[i] * (1 - update[i])
        _through_sigmoid(to_candidate, aside[t, n], reset, to_reset)
        copy(flat_of(to), 0, flat_of(to_state[t, n]), 0, 3 * size)
        _multiply_rows(to_candidate, reset, to_state[t, n, 2])
        _multiply_rows(grad, update, carry[n])


_FORWARD = {"rnn_tanh": _tanh_forward, "rnn_relu": _relu_forward, "lstm": _lstm_forward, "gru": _gru_forward}
_BACKWARD = {
    "rnn_tanh": _tanh_backward,
    "rnn_relu": _relu_backward,
    "lstm": _lstm_backward,
    "gru": _gru_backward,
}
