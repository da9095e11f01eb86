"""Cells of ``gluon.rnn``: one step of a recurrent network as a block, on arrays and on symbols.

What a step computes, and how sequences go through it, is in :mod:`roiops.mxnet.rnn.steps`.
"""

from ... import ndarray
from ...graph import functions as symbol
from ...mxnet.rnn import steps
from ...training.factory import REQUIRED, Declared
from ..block import Block, described
from ..hybrid import HybridBlock
from ..nn import LeakyReLU

__all__ = ["BidirectionalCell", "DropoutCell", "GRUCell", "HybridRecurrentCell", "HybridSequentialRNNCell"]
__all__ += ["LSTMCell", "ModifierCell", "RNNCell", "RecurrentCell", "ResidualCell", "SequentialRNNCell"]
__all__ += ["ZoneoutCell"]


def _reversed(F, inputs, valid_length):
    """The steps backwards, each sequence from its own end."""
    if valid_length is None:
        return list(reversed(inputs))
    data = F.stack(*inputs, axis=0)
    data = F.SequenceReverse(data, sequence_length=valid_length, use_sequence_length=True)
    return steps.as_steps(len(inputs), data, "TN", False)[0]


class RecurrentCell(steps.Cell, Block):
    """Base of cells: ``output, states = cell(inputs, states)`` is one step."""

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def __repr__(self):
        return f"{type(self).__name__}({self._shown()})"

    def _shown(self) -> str:
        return ""

    def _held(self):
        return list(self._children.values())

    def state_info(self, batch_size=0) -> list[dict]:
        """Shape and layout of each state."""
        raise NotImplementedError

    def _check_not_modified(self) -> None:
        if self._modified:
            raise AssertionError(
                "After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be called directly. "
                "Call the modifier cell instead."
            )

    def begin_state(self, batch_size=0, func=ndarray.zeros, **kwargs) -> list:
        """The states before the first step: ``func(name=..., shape=...)`` for each."""
        return self._first_states(func, batch_size, kwargs)

    def _get_activation(self, F, inputs, activation, **kwargs):
        """An activation given by its name, by a layer, or by a function; cells of users call it, too."""
        if isinstance(activation, str):
            if activation in ("tanh", "relu", "sigmoid", "softsign"):
                return getattr(F, activation)(inputs, **kwargs)
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def forward(self, inputs, states):
        """One step."""
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """Base of cells that can run as bound graphs."""


_SIZE, _MORE = {"hidden_size": REQUIRED}, {**steps.FILLED, "input_size": 0, "prefix": None, "params": None}


class _GatedCell(Declared, HybridRecurrentCell, takes={**_SIZE, **_MORE}):
    """Base of cells with one product of the input and one of the state."""

    def _set_up(self, **given):
        super()._set_up(**given)
        self._rows = len(self._gate_names) * self._hidden_size
        shapes = {"i2h_weight": (self._rows, self._input_size), "h2h_weight": (self._rows, self._hidden_size)}
        shapes |= {"i2h_bias": (self._rows,), "h2h_bias": (self._rows,)}
        for name, shape in shapes.items():
            self._learn(name, shape, given[f"{name}_initializer"])

    def _shown(self):
        shape = self.i2h_weight.shape
        return f"{shape[1] or None} -> {shape[0]}"

    def state_info(self, batch_size=0):
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def hybrid_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        name = f"t{self._counter}_"
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=self._rows, name=f"{name}i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=self._rows, name=f"{name}h2h")
        return self._step(F, i2h, h2h, states, name)

    def _activated(self, *args, **kwargs):
        return self._get_activation(*args, **kwargs)


class RNNCell(steps.Simple, _GatedCell, takes={**_SIZE, "activation": "tanh", **_MORE}):
    """``activation(W x + b + U h + c)``."""

    _hint = "rnn"

    def _shown(self):
        return f"{super()._shown()}, {self._activation}"


_KINDS = {"activation": "tanh", "recurrent_activation": "sigmoid"}


class LSTMCell(steps.LongShortTerm, _GatedCell, takes={**_SIZE, **_MORE, **_KINDS}):
    """Long short-term memory."""

    _hint = "lstm"


class GRUCell(steps.GatedUnit, _GatedCell):
    """Gated recurrent unit, in cuDNN's form."""

    _hint = "gru"


class _CellOfCells(steps.Holding, RecurrentCell):
    """What cells share that hold others."""

    def state_info(self, batch_size=0):
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]


class _Stack(steps.Stacking, _CellOfCells):
    """What both kinds of stacks share."""

    def __repr__(self):
        return described(self, self._children, margin="")

    def add(self, cell) -> None:
        """Put a cell on top."""
        self.register_child(cell)

    def __call__(self, inputs, states):
        if any(isinstance(cell, BidirectionalCell) for cell in self._children.values()):
            raise AssertionError(f"{type(self).__name__}: a BidirectionalCell cannot be stepped; use unroll")
        return super().__call__(inputs, states)

    def __getitem__(self, i):
        return self._children[str(i)]

    def __len__(self):
        return len(self._children)

    def hybrid_forward(self, F, inputs, states):
        return self(inputs, states)


class SequentialRNNCell(_Stack):
    """Cells one upon the other."""


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Hybrid cells one upon the other."""


class DropoutCell(steps.Dropping, HybridRecurrentCell):
    """Dropout of the inputs; it has no states."""

    _hint = "dropout"

    def __init__(self, rate, axes=(), prefix=None, params=None):
        super().__init__(prefix, params)
        if not isinstance(rate, int | float):
            raise AssertionError(f"DropoutCell: rate must be a number, got {rate!r}")
        self._rate, self._axes = rate, axes

    def _shown(self):
        return f"rate={self._rate}, axes={self._axes}"

    def state_info(self, batch_size=0):
        return []

    def _dropped(self, F, inputs):
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs


class ModifierCell(steps.Modifying, HybridRecurrentCell):
    """Base of cells that change what another cell does."""

    def __init__(self, base_cell):
        if base_cell._modified:
            raise AssertionError(
                f"Cell {base_cell.name} is already modified. One cell cannot be modified twice"
            )
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    def _shown(self):
        return repr(self.base_cell)

    @property
    def params(self):
        return self.base_cell.params

    def state_info(self, batch_size=0):
        return self.base_cell.state_info(batch_size)

    def begin_state(self, func=symbol.zeros, **kwargs):
        self._check_not_modified()
        return self._of_base("begin_state", func=func, **kwargs)


class ZoneoutCell(steps.Zoning, ModifierCell):
    """In training, outputs and states keep their former value with these probabilities."""

    _hint = "zoneout"

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, BidirectionalCell):
            raise AssertionError(
                "BidirectionalCell doesn't support zoneout since it doesn't support step. "
                "Please add ZoneoutCell to the cells underneath instead."
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def _shown(self):
        return f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {super()._shown()}"


class ResidualCell(steps.Residual, ModifierCell):
    """The output of a cell, and its input added to it."""

    @staticmethod
    def _sum(F, output, inputs, **named):
        return F.elemwise_add(output, inputs, **named)


class BidirectionalCell(_CellOfCells, HybridRecurrentCell):
    """One cell forward in time and one backward; their outputs are joined. Only :meth:`unroll` works."""

    def __init__(self, l_cell, r_cell, output_prefix="bi_"):
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs, states):
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def _shown(self):
        return f"forward={self._children['l_cell']}, backward={self._children['r_cell']}"

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        inputs, axis = steps.as_steps(length, inputs, layout, False)
        F = steps.namespace(inputs)
        states = self._begin_states(begin_state, inputs, layout)
        (left, left_states), (right, right_states) = self._with_own(states)
        ahead, left_states = left.unroll(length, inputs, left_states, layout, merge_outputs, valid_length)
        inputs = _reversed(F, inputs, valid_length)
        back, right_states = right.unroll(length, inputs, right_states, layout, False, valid_length)
        back = _reversed(F, back, valid_length)
        if merge_outputs is None:
            merge_outputs = not steps.listed(ahead)
        if merge_outputs:
            name = f"{self._output_prefix}out"
            outputs = F.concat(ahead, F.stack(*back, axis=axis), dim=2, name=name)
        else:
            pairs = enumerate(zip(ahead, back, strict=True))
            outputs = [F.concat(*pair, dim=1, name=f"{self._output_prefix}t{i}") for i, pair in pairs]
        if valid_length is not None:
            outputs = steps.masked(F, outputs, length, valid_length, axis, merge_outputs)
        return outputs, left_states + right_states
