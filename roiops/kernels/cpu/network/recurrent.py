"""Recurrent layers, one on another, forward and backward.

Arrays over time are ``(steps, batch, features)``. What the input gives to all steps is one matrix product,
what the state gives is a small one for each step (``recurrent_steps.py``). A layer that runs backwards in
time gets views that are turned around.

``tests/reference.py`` has the same in plain loops: ``recurrent``.
"""

import functools
import math
from typing import NamedTuple

import numpy as np


class Weights(NamedTuple):
    """Matrices and biases for input and state, or their gradients; the rows are gate by gate."""

    from_input: np.ndarray
    from_state: np.ndarray
    input_bias: np.ndarray
    state_bias: np.ndarray


class _Layer:
    """One direction of a layer. A forward pass leaves in the object what :meth:`backward` needs."""

    def __init__(self, mode, weights: Weights):
        self.mode, self.weights = mode, weights
        #: Whether the products of a step are made by themselves, by all threads.
        self.large = weights.from_state.size > _LARGE

    def forward(self, data, state, cell, out):
        """Write the states of all steps to ``out``; the last state, and the last cell where there is one."""
        from . import recurrent_steps  # brings numba: not before it is needed

        w, (steps, batch, features) = self.weights, data.shape
        given = _connected(data.reshape(steps * batch, features), w.from_input, w.input_bias)
        values = given.reshape(steps, batch, _GATES[self.mode], state.shape[1])
        states, cells = (np.empty((steps + 1, *state.shape), out.dtype) for _ in range(2))
        states[0], cells[0] = state, 0 if cell is None else cell
        self.data = data
        self.kept = recurrent_steps.Sequences(values, states, cells, np.empty_like(states[1:]))
        product = functools.partial(_connected, weight=w.from_state, bias=w.state_bias)
        product = product if self.large else None
        recurrent_steps.forward(self.mode, w.from_state.T, w.state_bias, product, self.kept)
        np.copyto(out, states[1:])
        return states[steps], None if cell is None else cells[steps]

    def backward(self, head, grad_state, grad_cell, grads: Weights):
        """Add to ``grads``; the gradients of the data, the first state and the first cell."""
        from . import recurrent_steps  # brings numba: not before it is needed

        w, (steps, batch, features) = self.weights, self.data.shape
        values, states, *_ = self.kept
        # Gradients of what the state and the input give to gates; one array unless a gate tells them apart.
        to_state = np.zeros((steps + 1, *values.shape[1:]), values.dtype)
        to_input = np.empty_like(values) if self.mode == "gru" else to_state[:steps]
        carry = np.array(grad_state), np.array(grad_cell)
        gradients = recurrent_steps.Gradients(np.ascontiguousarray(head), to_state, to_input, *carry)
        product = functools.partial(_product, b=w.from_state) if self.large else None
        recurrent_steps.backward(self.mode, w.from_state, product, self.kept, gradients)
        rows = to_input.reshape(steps * batch, len(w.input_bias))
        grads.from_input[...] += _product(rows.T, self.data.reshape(steps * batch, features))
        grads.input_bias[...] += rows.sum(0, dtype=np.float64)
        grad_data = _product(rows, w.from_input).reshape(self.data.shape)
        rows = to_state[:steps].reshape(rows.shape)
        before = states[:steps].reshape(steps * batch, states.shape[2])
        grads.from_state[...] += _product(rows.T, before)
        grads.state_bias[...] += rows.sum(0, dtype=np.float64)
        return (
            grad_data,
            carry[0] + _product(to_state[0].reshape(batch, len(w.state_bias)), w.from_state),
            carry[1],
        )


def _connected(data, weight, bias):
    """``data @ weight.T + bias``"""
    from ..product.fc import forward  # brings numba: not before it is needed

    if len(data) > len(weight):  # few terms for so many results: turning these would take longest
        out = _product(data, weight.T)
        out += bias
        return out
    out = np.empty((len(data), len(weight)), data.dtype)
    forward(np.ascontiguousarray(data), np.ascontiguousarray(weight), bias, out)
    return out


def _product(a, b):
    """``a @ b``"""
    from ..product.matmul import matmul  # brings numba: not before it is needed

    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    matmul(a, b, out)
    return out


def sigmoid(data, out):
    """``1 / (1 + exp(-data))``: (tanh(data / 2) + 1) / 2 has no digits left far below 0."""
    # Not np.negative: NumPy 2.3 and 2.4 get every fourth float32 wrong in place, as a state of one number is.
    np.multiply(data, -1, out=out)
    np.exp(out, out=out)
    out += 1
    np.reciprocal(out, out=out)


#: How many gates a cell has, rows of the matrices for each entry of the state, by MXNet's ``mode``.
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
#: Entries of a matrix that stays in a processor's second cache from step to step, at most.
_LARGE = 1 << 18


def num_parameters(mode: str, features: int, state_size: int, layers: int, directions: int) -> int:
    """How many numbers the weights of a network are."""
    return sum(map(math.prod, _weight_shapes(mode, features, state_size, layers, directions)))


def split(flat, mode: str, *sizes: int) -> list[Weights]:
    """The weights in a flat array, as views, direction by direction of layer by layer.

    ``sizes`` are those of :func:`num_parameters`.
    """
    shapes = _weight_shapes(mode, *sizes)
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    views = [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]
    matrices, biases = views[: len(views) // 2], views[len(views) // 2 :]
    return [Weights(*matrices[i : i + 2], *biases[i : i + 2]) for i in range(0, len(matrices), 2)]


def _weight_shapes(mode, features, state_size, layers, directions) -> list[tuple]:
    """The shapes that lie one after another in the flat array: first all matrices, then all biases."""
    rows, matrices = _GATES[mode] * state_size, []
    for layer in range(layers):
        width = directions * state_size if layer else features
        matrices += [(rows, width), (rows, state_size)] * directions
    return matrices + [(rows,)] * (2 * layers * directions)


class Network:
    """Layers one on another, each in one direction or in both.

    Parameters
    ----------
    mode : str
        The kind of layer.
    data : numpy.ndarray
        The sequence.
    parameters : numpy.ndarray
        All weights, flat; see :func:`num_parameters`.
    states, cells : numpy.ndarray
        The first states, (layers * directions, batch, state_size), and the first cells, where there are any.
    directions : int
        1, or 2 where each layer goes through the sequence backwards, too.
    """

    def __init__(self, mode, data, parameters, states, cells=None, *, directions):
        self.data, self.states, self.cells = data, states, cells
        self.directions, self.state_size = directions, states.shape[2]
        self.sizes = mode, data.shape[2], self.state_size, len(states) // directions, directions
        self.layers = [_Layer(mode, weights) for weights in split(parameters, *self.sizes)]

    def forward(self, out, masks) -> tuple[list, list]:
        """Write the last layer's states of all steps to ``out``; the last states and cells of every layer.

        ``masks`` are factors on what goes from each layer to the next, or None.
        """
        data, results, last_states, last_cells = self.data, out, [], []
        for i, layer in enumerate(self.layers):
            above, direction = divmod(i, self.directions)
            if not direction:
                if above:
                    data = results if masks is None else results * masks[above - 1]
                results = out if i + self.directions == len(self.layers) else np.empty_like(out)
            cell = None if self.cells is None else self.cells[i]
            state, cell = layer.forward(
                _in_order(data, direction), self.states[i], cell, self._part(results, direction)
            )
            last_states.append(state)
            last_cells.append(cell)
        return last_states, last_cells

    def backward(self, head, grad_states, grad_cells, masks):
        """The gradients of the data, of the parameters, of the first states and of the first cells."""
        count = len(self.layers)
        parameters = np.zeros(num_parameters(*self.sizes), head.dtype)
        grads, to_data = split(parameters, *self.sizes), 0
        to_states, to_cells = [None] * count, [None] * count
        for i in reversed(range(count)):
            above, direction = divmod(i, self.directions)
            to_part, to_states[i], to_cells[i] = self.layers[i].backward(
                self._part(head, direction), grad_states[i], grad_cells[i], grads[i]
            )
            to_data = to_data + _in_order(to_part, direction)
            if above and not direction:
                head, to_data = to_data if masks is None else to_data * masks[above - 1], 0
        return to_data, parameters, to_states, to_cells

    def _part(self, results, direction):
        """One direction's part of a layer's results, in the order in which it goes through them."""
        size = self.state_size
        return _in_order(results[:, :, direction * size : (direction + 1) * size], direction)


def _in_order(array, direction):
    """An array over time, turned around for the direction that goes backwards."""
    return array[::-1] if direction else array
