"""Recurrent layers, one on another, forward and backward, on NumPy.

Arrays over time are ``(steps, batch, features)``. What the input gives to all steps is one matrix product,
what the state gives is a small one for each step. A layer that runs backwards in time gets views that are
turned around.

``tests/reference.py`` has the same in plain loops: ``recurrent``.
"""

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
    """What all kinds share. A forward pass leaves in the object what :meth:`backward` needs."""

    #: How many gates a cell has: rows of the matrices for each entry of the state.
    gates = 1
    #: Whether a gate acts on what comes from the state alone.
    gate_on_state = False

    def __init__(self, weights: Weights):
        self.weights = weights

    def forward(self, data, state, cell, out):
        """Write the states of all steps to ``out``; the last state, and the last cell where there is one."""
        w, (steps, batch, features) = self.weights, data.shape
        self.data, self.first_state, self.out = data, state, out
        given = _connected(data.reshape(steps * batch, features), w.from_input, w.input_bias)
        #: First what the input gives to each gate, then, step by step, the gates' values.
        self.values = given.reshape(steps, batch, len(w.input_bias))
        self.start(out.shape, out.dtype, cell)
        for t in range(steps):
            given = _connected(state, w.from_state, w.state_bias)
            self.step(t, given, state, out[t])
            state = out[t]
        return state, self.cell_after(steps - 1)

    def backward(self, head, grad_state, grad_cell, grads: Weights):
        """Add to ``grads``; the gradients of the data, the first state and the first cell."""
        w, (steps, batch, features) = self.weights, self.data.shape
        #: Gradients of what came from the input and from the state; one array unless a gate tells them apart.
        to_input = np.empty_like(self.values)
        to_state = np.empty_like(self.values) if self.gate_on_state else to_input
        grad_state = np.array(grad_state)
        for t in reversed(range(steps)):
            grad_state += head[t]
            grad_cell = self.step_back(t, grad_state, grad_cell, to_input[t], to_state[t])
            grad_state += _product(to_state[t], w.from_state)
        before = np.concatenate([self.first_state[None], self.out])[:steps]
        rows = to_input.reshape(steps * batch, to_input.shape[2])
        grads.from_input[...] += _product(rows.T, self.data.reshape(steps * batch, features))
        grads.input_bias[...] += rows.sum(0, dtype=np.float64)
        grad_data = _product(rows, w.from_input).reshape(self.data.shape)
        rows = to_state.reshape(steps * batch, to_state.shape[2])
        grads.from_state[...] += _product(rows.T, before.reshape(steps * batch, before.shape[2]))
        grads.state_bias[...] += rows.sum(0, dtype=np.float64)
        return grad_data, grad_state, grad_cell

    def start(self, shape, dtype, cell) -> None:
        """Make room for what a forward pass keeps."""

    def step(self, t, given, state, out) -> None:
        """From what the state gives to the gates, write the next state to ``out``."""
        raise NotImplementedError

    def step_back(self, t, grad_state, grad_cell, to_input, to_state):
        """Turn the gradient of the state after ``t`` into those of the gates, and give that of the cell.

        ``grad_state`` is left with the part that reaches the state before other than through the gates.
        """
        raise NotImplementedError

    def cell_after(self, t):
        """The cell after a step, before the first for -1; None where there are none."""
        return

    def state_before(self, t):
        return self.out[t - 1] if t else self.first_state

    def gate(self, t, index):
        """The values of one gate at a step."""
        size = self.out.shape[-1]
        return self.values[t, :, index * size : (index + 1) * size]


class _Tanh(_Layer):
    def step(self, t, given, state, out):
        given += self.values[t]
        np.tanh(given, out=out)

    def step_back(self, t, grad_state, grad_cell, to_input, to_state):
        np.multiply(grad_state, 1 - self.out[t] ** 2, out=to_input)
        grad_state[...] = 0


class _Relu(_Layer):
    def step(self, t, given, state, out):
        given += self.values[t]
        np.maximum(given, 0, out=out)

    def step_back(self, t, grad_state, grad_cell, to_input, to_state):
        np.multiply(grad_state, self.out[t] > 0, out=to_input)
        grad_state[...] = 0


class _Lstm(_Layer):
    """Gates in MXNet's order: input, forget, candidate, output."""

    gates = 4

    def start(self, shape, dtype, cell):
        self.first_cell = cell
        self.cells, self.tanh_of_cells = np.empty(shape, dtype), np.empty(shape, dtype)

    def cell_after(self, t):
        return self.cells[t] if t >= 0 else self.first_cell

    def step(self, t, given, state, out):
        self.values[t] += given
        enter, forget, candidate, leave = (self.gate(t, i) for i in range(4))
        for values in (enter, forget, leave):
            sigmoid(values, values)
        np.tanh(candidate, out=candidate)
        np.multiply(forget, self.cell_after(t - 1), out=self.cells[t])
        self.cells[t] += enter * candidate
        np.tanh(self.cells[t], out=self.tanh_of_cells[t])
        np.multiply(leave, self.tanh_of_cells[t], out=out)

    def step_back(self, t, grad_state, grad_cell, to_input, to_state):
        enter, forget, candidate, leave = (self.gate(t, i) for i in range(4))
        squashed = self.tanh_of_cells[t]
        grad_cell = grad_cell + grad_state * leave * (1 - squashed**2)
        to_enter, to_forget, to_candidate, to_leave = np.split(to_input, 4, axis=1)
        to_enter[...] = grad_cell * candidate * enter * (1 - enter)
        to_forget[...] = grad_cell * self.cell_after(t - 1) * forget * (1 - forget)
        to_candidate[...] = grad_cell * enter * (1 - candidate**2)
        to_leave[...] = grad_state * squashed * leave * (1 - leave)
        grad_state[...] = 0
        return grad_cell * forget


class _Gru(_Layer):
    """Gates in MXNet's order: reset, update, candidate. Reset acts on what the state gives, bias included."""

    gates = 3
    gate_on_state = True

    def start(self, shape, dtype, cell):
        self.state_to_candidate = np.empty(shape, dtype)

    def step(self, t, given, state, out):
        size = out.shape[-1]
        reset, update, candidate = (self.gate(t, i) for i in range(3))
        for index, values in enumerate((reset, update)):
            values += given[:, index * size : (index + 1) * size]
            sigmoid(values, values)
        self.state_to_candidate[t] = given[:, 2 * size :]
        candidate += reset * self.state_to_candidate[t]
        np.tanh(candidate, out=candidate)
        np.subtract(state, candidate, out=out)
        out *= update
        out += candidate

    def step_back(self, t, grad_state, grad_cell, to_input, to_state):
        reset, update, candidate = (self.gate(t, i) for i in range(3))
        to_reset, to_update, to_candidate = np.split(to_input, 3, axis=1)
        to_candidate[...] = grad_state * (1 - update) * (1 - candidate**2)
        to_update[...] = grad_state * (self.state_before(t) - candidate) * update * (1 - update)
        to_reset[...] = to_candidate * self.state_to_candidate[t] * reset * (1 - reset)
        to_state[...] = to_input
        np.split(to_state, 3, axis=1)[2][...] *= reset
        grad_state *= update


def _connected(data, weight, bias):
    """``data @ weight.T + bias``"""
    from ..product.fc import forward  # brings numba: not before it is needed

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


#: The kinds of layer, by MXNet's ``mode``.
_KINDS: dict[str, type[_Layer]] = {"rnn_relu": _Relu, "rnn_tanh": _Tanh, "lstm": _Lstm, "gru": _Gru}


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
    rows, matrices = _KINDS[mode].gates * state_size, []
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
        self.layers = [_KINDS[mode](weights) for weights in split(parameters, *self.sizes)]

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
