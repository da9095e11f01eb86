"""Cells of ``gluon.rnn``: one step of a recurrent network as a block, on arrays and on symbols.

What a step computes, and how sequences are cut into steps, is that of :mod:`roiops.mxnet.rnn`.
"""

from ... import ndarray
from ...graph import functions as symbol
from ...graph.symbol import Symbol
from ...mxnet.rnn.cells import as_steps, gru_step, lstm_step, rnn_step
from ..block import Block, _indented
from ..hybrid import HybridBlock
from ..nn import LeakyReLU

__all__ = ["BidirectionalCell", "DropoutCell", "GRUCell", "HybridRecurrentCell", "HybridSequentialRNNCell"]
__all__ += ["LSTMCell", "ModifierCell", "RNNCell", "RecurrentCell", "ResidualCell", "SequentialRNNCell"]
__all__ += ["ZoneoutCell"]


def _namespace(inputs):
    first = inputs[0] if isinstance(inputs, list | tuple) else inputs
    return symbol if isinstance(first, Symbol) else ndarray


def make_state(func, name, info):
    """A state before the first step; functions of arrays take neither a name nor a layout."""
    if func.__module__.startswith(ndarray.__name__):
        return func(**{key: value for key, value in info.items() if key != "__layout__"})
    return func(name=name, **info)


def _masked(F, data, length, valid_length, axis, merge):
    """Outputs with zeros after the end of each sequence."""
    if isinstance(data, list | tuple):
        data = F.stack(*data, axis=axis)
    data = F.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return data if merge else as_steps(length, data, "TN" if axis == 0 else "NT", False)[0]


def _reversed(F, steps, valid_length):
    """The steps backwards, each sequence from its own end."""
    if valid_length is None:
        return list(reversed(steps))
    data = F.stack(*steps, axis=0)
    data = F.SequenceReverse(data, sequence_length=valid_length, use_sequence_length=True)
    return as_steps(len(steps), data, "TN", False)[0]


class RecurrentCell(Block):
    """Base of cells: ``output, states = cell(inputs, states)`` is one step."""

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def __repr__(self):
        return f"{type(self).__name__}({self._shown()})"

    def _shown(self) -> str:
        return ""

    def reset(self) -> None:
        """Count steps and states from the start; done before a sequence is gone through again."""
        self._init_counter = self._counter = -1
        for cell in self._children.values():
            cell.reset()

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
        self._check_not_modified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(make_state(func, name, {**(info or {}), **kwargs}))
        return states

    def _begin_states(self, F, begin_state, inputs, layout) -> list:
        if begin_state is not None:
            return begin_state
        if F is symbol:
            return self.begin_state(func=symbol.zeros)
        whole = not isinstance(inputs, list | tuple)
        first, axis = (inputs, layout.find("N")) if whole else (inputs[0], 0)
        with first.context:
            return self.begin_state(batch_size=first.shape[axis], func=ndarray.zeros)

    def unroll(
        self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None
    ) -> tuple:
        """``length`` steps: ``(outputs, states)``.

        Parameters
        ----------
        inputs : NDArray, Symbol or list of them
            One array of all steps, in the layout given, or one a step.
        begin_state : list, optional
            What :meth:`begin_state` gives, unless given.
        merge_outputs : bool, optional
            Whether outputs are one array of all steps, or a list; whichever is at hand unless given.
        valid_length : NDArray or Symbol, optional
            How many steps each sequence has; outputs after them are 0, and states are those of its end.
        """
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, False)
        F = _namespace(inputs)
        states = self._begin_states(F, begin_state, inputs, layout)
        outputs, every = [], []
        for step in range(length):
            output, states = self(inputs[step], states)
            outputs.append(output)
            every.append(states)
        if valid_length is not None:
            ends = {"sequence_length": valid_length, "use_sequence_length": True, "axis": 0}
            states = [F.SequenceLast(F.stack(*each, axis=0), **ends) for each in zip(*every, strict=True)]
            outputs = _masked(F, outputs, length, valid_length, axis, True)
        return as_steps(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, F, inputs, activation, **kwargs):
        """An activation given by its name, by a layer, or by a function; cells of users call it, too."""
        if isinstance(activation, str):
            named = activation in ("tanh", "relu", "sigmoid", "softsign")
            if named:
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


class _GatedCell(HybridRecurrentCell):
    """Base of cells with one product of the input and one of the state."""

    _gates = _states = 1

    def __init__(
        self,
        hidden_size,
        i2h_weight_initializer=None,
        h2h_weight_initializer=None,
        i2h_bias_initializer="zeros",
        h2h_bias_initializer="zeros",
        input_size=0,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        for name, shape, init in (
            ("i2h_weight", (rows, input_size), i2h_weight_initializer),
            ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
            ("i2h_bias", (rows,), i2h_bias_initializer),
            ("h2h_bias", (rows,), h2h_bias_initializer),
        ):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def _shown(self):
        shape = self.i2h_weight.shape
        return f"{shape[1] or None} -> {shape[0]}"

    def state_info(self, batch_size=0):
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def hybrid_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        name, rows = f"t{self._counter}_", self._gates * self._hidden_size
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=rows, name=f"{name}i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=rows, name=f"{name}h2h")

        def activate(x, activation, **kwargs):
            return self._get_activation(F, x, activation, **kwargs)

        return self._step(F, activate, i2h, h2h, states, name)


class RNNCell(_GatedCell):
    """``activation(W x + b + U h + c)``."""

    def __init__(self, hidden_size, activation="tanh", *args, **kwargs):
        super().__init__(hidden_size, *args, **kwargs)
        self._activation = activation

    def _alias(self):
        return "rnn"

    def _shown(self):
        return f"{super()._shown()}, {self._activation}"

    def _step(self, F, activate, i2h, h2h, states, name):
        return rnn_step(F, activate, i2h, h2h, name, self._activation, inner=name)


class LSTMCell(_GatedCell):
    """Long short-term memory."""

    _gates, _states = 4, 2

    def __init__(self, *args, activation="tanh", recurrent_activation="sigmoid", **kwargs):
        super().__init__(*args, **kwargs)
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def _alias(self):
        return "lstm"

    def _step(self, F, activate, i2h, h2h, states, name):
        kinds = self._activation, self._recurrent_activation
        return lstm_step(F, activate, i2h, h2h, states[1], name, *kinds, inner=name)


class GRUCell(_GatedCell):
    """Gated recurrent unit, in cuDNN's form."""

    _gates = 3

    def _alias(self):
        return "gru"

    def _step(self, F, activate, i2h, h2h, states, name):
        return gru_step(F, activate, i2h, h2h, states[0], name, f"{name}out", inner=name)


class _CellOfCells(RecurrentCell):
    """What cells share that hold others."""

    def state_info(self, batch_size=0):
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]

    def begin_state(self, **kwargs):
        self._check_not_modified()
        return [state for cell in self._children.values() for state in cell.begin_state(**kwargs)]

    def _shares(self, states):
        """Each cell and its part of the states."""
        at = 0
        for cell in self._children.values():
            count = len(cell.state_info())
            yield cell, states[at : at + count]
            at += count


class _Stack(_CellOfCells):
    """What both kinds of stacks share."""

    def __repr__(self):
        lines = [f"({key}): {_indented(repr(cell))}" for key, cell in self._children.items()]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])

    def add(self, cell) -> None:
        """Put a cell on top."""
        self.register_child(cell)

    def __call__(self, inputs, states):
        self._counter += 1
        if any(isinstance(cell, BidirectionalCell) for cell in self._children.values()):
            raise AssertionError(f"{type(self).__name__}: a BidirectionalCell cannot be stepped; use unroll")
        after = []
        for cell, own in self._shares(states):
            inputs, new = cell(inputs, own)
            after += new
        return inputs, after

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, None)
        states, after = self._begin_states(_namespace(inputs), begin_state, inputs, layout), []
        for i, (cell, own) in enumerate(self._shares(states), 1):
            merge = merge_outputs if i == len(self) else None
            inputs, new = cell.unroll(length, inputs, own, layout, merge, valid_length)
            after += new
        return inputs, after

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


class DropoutCell(HybridRecurrentCell):
    """Dropout of the inputs; it has no states."""

    def __init__(self, rate, axes=(), prefix=None, params=None):
        super().__init__(prefix, params)
        if not isinstance(rate, int | float):
            raise AssertionError(f"DropoutCell: rate must be a number, got {rate!r}")
        self._rate, self._axes = rate, axes

    def _shown(self):
        return f"rate={self._rate}, axes={self._axes}"

    def state_info(self, batch_size=0):
        return []

    def _alias(self):
        return "dropout"

    def hybrid_forward(self, F, inputs, states):
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, merge_outputs)
        if not isinstance(inputs, list | tuple):
            return self.hybrid_forward(_namespace(inputs), inputs, begin_state or [])
        return super().unroll(length, inputs, begin_state or [], layout, merge_outputs)


class ModifierCell(HybridRecurrentCell):
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

    def _of_base(self, method, *args, **kwargs):
        """What a method of the base cell gives, which only this cell may call."""
        self.base_cell._modified = False
        try:
            return getattr(self.base_cell, method)(*args, **kwargs)
        finally:
            self.base_cell._modified = True

    def begin_state(self, func=symbol.zeros, **kwargs):
        self._check_not_modified()
        return self._of_base("begin_state", func=func, **kwargs)


class ZoneoutCell(ModifierCell):
    """In training, outputs and states keep their former value with these probabilities."""

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, BidirectionalCell):
            raise AssertionError(
                "BidirectionalCell doesn't support zoneout since it doesn't support step. "
                "Please add ZoneoutCell to the cells underneath instead."
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states, self._prev_output = zoneout_outputs, zoneout_states, None

    def _shown(self):
        return f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {super()._shown()}"

    def _alias(self):
        return "zoneout"

    def reset(self):
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F, inputs, states):
        output, after = self.base_cell(inputs, states)

        def kept(probability, new, old):
            mask = F.Dropout(F.ones_like(new), p=probability)
            return F.where(mask, new, old)

        if self.zoneout_outputs:
            before = F.zeros_like(output) if self._prev_output is None else self._prev_output
            output = kept(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            after = [kept(self.zoneout_states, *pair) for pair in zip(after, states, strict=True)]
        self._prev_output = output
        return output, after


class ResidualCell(ModifierCell):
    """The output of a cell, and its input added to it."""

    def hybrid_forward(self, F, inputs, states):
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        given = (length, inputs, begin_state, layout, merge_outputs, valid_length)
        outputs, states = self._of_base("unroll", *given)
        merge = not isinstance(outputs, list | tuple) if merge_outputs is None else merge_outputs
        inputs, axis = as_steps(length, inputs, layout, merge)
        F = _namespace(inputs)
        if valid_length is not None:
            inputs = _masked(F, inputs, length, valid_length, axis, merge)
        if merge:
            return F.elemwise_add(outputs, inputs), states
        return [F.elemwise_add(*pair) for pair in zip(outputs, inputs, strict=True)], states


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
        inputs, axis = as_steps(length, inputs, layout, False)
        F = _namespace(inputs)
        states = self._begin_states(F, begin_state, inputs, layout)
        (left, left_states), (right, right_states) = self._shares(states)
        ahead, left_states = left.unroll(length, inputs, left_states, layout, merge_outputs, valid_length)
        inputs = _reversed(F, inputs, valid_length)
        back, right_states = right.unroll(length, inputs, right_states, layout, False, valid_length)
        back = _reversed(F, back, valid_length)
        if merge_outputs is None:
            merge_outputs = not isinstance(ahead, list | tuple)
        if merge_outputs:
            name = f"{self._output_prefix}out"
            outputs = F.concat(ahead, F.stack(*back, axis=axis), dim=2, name=name)
        else:
            pairs = enumerate(zip(ahead, back, strict=True))
            outputs = [F.concat(*pair, dim=1, name=f"{self._output_prefix}t{i}") for i, pair in pairs]
        if valid_length is not None:
            outputs = _masked(F, outputs, length, valid_length, axis, merge_outputs)
        return outputs, left_states + right_states
