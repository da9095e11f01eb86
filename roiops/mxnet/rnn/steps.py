"""What cells of ``mx.rnn`` and of Gluon share: a step and sequences of steps, of arrays and of symbols.

Classes here are mixed into those of both. A step is ``cell(inputs, states)``; what makes it differs in names.
"""

from ... import ndarray
from ...errors import GraphError
from ...graph import functions as symbol
from ...graph.symbol import Symbol


def listed(data) -> bool:
    """Whether these are steps rather than one array of all."""
    return isinstance(data, list | tuple)


def namespace(inputs):
    """``nd`` or ``sym``, as the inputs are."""
    return symbol if isinstance(inputs[0] if listed(inputs) else inputs, Symbol) else ndarray


def as_steps(length, inputs, layout, merge):
    """Inputs as a list of steps, with ``merge`` as one array, with None as they are; and the time axis.

    Arrays and symbols alike.
    """
    axis = layout.find("T")
    if not listed(inputs):
        F = namespace(inputs)
        if merge is not False:
            return inputs, axis
        if F is symbol and len(inputs) != 1:
            raise GraphError("unroll: the inputs are a symbol of several outputs; give a list of symbols")
        if F is ndarray and length != inputs.shape[axis]:
            raise GraphError(f"unroll: {inputs.shape[axis]} inputs for {length} steps")
        steps = F.split(inputs, axis=axis, num_outputs=length, squeeze_axis=1)
        return (list(steps) if F is symbol or length > 1 else [steps]), axis
    if length is not None and len(inputs) != length:
        raise GraphError(f"unroll: {len(inputs)} inputs for {length} steps")
    if merge is True:
        F = namespace(inputs)
        inputs = [F.expand_dims(each, axis=axis) for each in inputs]
        return F.Concat(*inputs, dim=axis), axis
    return inputs, axis


#: What fills the weights and biases of a cell, unless that is given.
FILLED = {"i2h_weight_initializer": None, "h2h_weight_initializer": None}
FILLED |= {"i2h_bias_initializer": "zeros", "h2h_bias_initializer": "zeros"}


# -- one step, of arrays and of symbols ---------------------------------------------------------------------
# `_step(F, i2h, h2h, states, name)` gives the output and the states, of the products of the input and of the
# state. F is nd or sym, `_activated(F, x, kind, name=...)` an activation.


class Gated:
    """A cell with gates."""

    #: The ends of the gates' names, in the order in which the weights hold them.
    _gate_names: tuple = ("",)
    #: How many states there are, and what they go through.
    _states, _activation, _recurrent_activation = 1, "tanh", "sigmoid"
    #: How gates are cut, unless along axis 1.
    _cut: dict = {}
    #: Whether sums and products have names of the cell's own, or those of their operators.
    _names_all = True

    def _inner(self, name, part):
        return name + part if self._names_all else None


class Simple(Gated):
    """``activation(W x + b + U h + c)``."""

    def _step(self, F, i2h, h2h, states, name):
        total = F._internal._plus(i2h, h2h, name=self._inner(name, "plus0"))
        output = self._activated(F, total, self._activation, name=f"{name}out")
        return output, [output]


class LongShortTerm(Gated):
    """Long short-term memory."""

    _gate_names, _states = ("_i", "_f", "_c", "_o"), 2

    def _step(self, F, i2h, h2h, states, name):
        plus, times, activation = F._internal._plus, F._internal._mul, self._activation
        gates = plus(i2h, h2h, name=self._inner(name, "plus0"))
        gates = F.SliceChannel(gates, num_outputs=4, name=f"{name}slice", **self._cut)
        recurrent = self._recurrent_activation
        kinds = (recurrent, recurrent, activation, recurrent)
        write, forget, change, read = (
            self._activated(F, gates[k], kind, name=f"{name}{'ifco'[k]}") for k, kind in enumerate(kinds)
        )
        kept = times(forget, states[1], name=self._inner(name, "mul0"))
        added = times(write, change, name=self._inner(name, "mul1"))
        state = plus(kept, added, name=f"{name}state")
        if callable(activation):
            shown = self._activated(F, state, activation)
        else:
            shown = F.Activation(state, act_type=activation, name=self._inner(name, "activation0"))
        output = times(read, shown, name=f"{name}out")
        return output, [output, state]


class GatedUnit(Gated):
    """Gated recurrent unit, in cuDNN's form."""

    _gate_names = ("_r", "_z", "_o")
    #: What stands before the names of all but the output.
    _before_gates = ""

    def _step(self, F, i2h, h2h, states, name):
        plus, times, output_name = F._internal._plus, F._internal._mul, f"{name}out"
        name += self._before_gates
        i2h_r, i2h_z, i2h = F.SliceChannel(i2h, num_outputs=3, name=f"{name}i2h_slice", **self._cut)
        h2h_r, h2h_z, h2h = F.SliceChannel(h2h, num_outputs=3, name=f"{name}h2h_slice", **self._cut)
        reset = plus(i2h_r, h2h_r, name=self._inner(name, "plus0"))
        reset = self._activated(F, reset, "sigmoid", name=f"{name}r_act")
        update = plus(i2h_z, h2h_z, name=self._inner(name, "plus1"))
        update = self._activated(F, update, "sigmoid", name=f"{name}z_act")
        fresh = times(reset, h2h, name=self._inner(name, "mul0"))
        fresh = plus(i2h, fresh, name=self._inner(name, "plus2"))
        fresh = self._activated(F, fresh, self._activation, name=f"{name}h_act")
        taken = times(1.0 - update, fresh, name=self._inner(name, "mul1"))
        kept = times(update, states[0], name=self._inner(name, "mul20"))
        output = plus(taken, kept, name=output_name)
        return output, [output]


# -- sequences of steps, of arrays and of symbols -----------------------------------------------------------


def make_state(func, name, info):
    """A state before the first step; functions of arrays take neither a name nor a layout."""
    if func.__module__.startswith(ndarray.__name__):
        return func(**{key: value for key, value in info.items() if key != "__layout__"})
    return func(name=name, **info)


def masked(F, data, length, valid_length, axis, merge):
    """Outputs with zeros after the end of each sequence."""
    if listed(data):
        data = F.stack(*data, axis=axis)
    data = F.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return data if merge else as_steps(length, data, "TN" if axis == 0 else "NT", False)[0]


def _infos(cell, batch_size=0) -> list:
    """Shape and layout of each state: a list in ``mx.rnn``, a method in Gluon."""
    info = cell.state_info
    return info(batch_size) if callable(info) else info


def _if_given(valid_length) -> dict:
    return {} if valid_length is None else {"valid_length": valid_length}


class Cell:
    """Base of cells."""

    def _held(self):
        """The cells that this one holds."""
        return getattr(self, "_cells", ())

    def reset(self) -> None:
        """Count steps and states from the start; done before a sequence is gone through again."""
        self._init_counter = self._counter = -1
        for cell in self._held():
            cell.reset()

    def _first_states(self, func, batch_size, kwargs) -> list:
        self._check_not_modified()
        states = []
        for info in _infos(self, batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(make_state(func, name, {**(info or {}), **kwargs}))
        return states

    def _begin_states(self, begin_state, inputs, layout) -> list:
        if begin_state is not None:
            return begin_state
        if namespace(inputs) is symbol:
            return self.begin_state(func=symbol.zeros)
        first, axis = (inputs[0], 0) if listed(inputs) else (inputs, layout.find("N"))
        with first.context:
            return self.begin_state(batch_size=first.shape[axis], func=ndarray.zeros)

    def unroll(
        self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None
    ) -> tuple:
        """``length`` steps: ``(outputs, states)``.

        Parameters
        ----------
        inputs : NDArray, Symbol or list of them
            One array or symbol of all steps, in the layout given, or one a step.
        begin_state : list, optional
            What :meth:`begin_state` gives, unless given.
        merge_outputs : bool, optional
            Whether outputs are one array of all steps, or a list; whichever is at hand unless given.
        valid_length : NDArray or Symbol, optional
            How many steps each sequence has; outputs after them are 0, and states are those of its end.
        """
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, False)
        F, states = namespace(inputs), self._begin_states(begin_state, inputs, layout)
        outputs, every = [], []
        for step in range(length):
            output, states = self(inputs[step], states)
            outputs.append(output)
            every.append(states)
        if valid_length is not None:
            ends = {"sequence_length": valid_length, "use_sequence_length": True, "axis": 0}
            states = [F.SequenceLast(F.stack(*each, axis=0), **ends) for each in zip(*every, strict=True)]
            outputs = masked(F, outputs, length, valid_length, axis, True)
        return as_steps(length, outputs, layout, merge_outputs)[0], states


class Holding(Cell):
    """A cell that holds others."""

    def begin_state(self, **kwargs):
        """The states of all of them before the first step."""
        self._check_not_modified()
        return [state for cell in self._held() for state in cell.begin_state(**kwargs)]

    def _with_own(self, states):
        """Each cell and its part of the states."""
        at = 0
        for cell in self._held():
            count = len(_infos(cell))
            yield cell, states[at : at + count]
            at += count


class Stacking(Holding):
    """Cells one upon the other."""

    def __call__(self, inputs, states):
        self._counter += 1
        after = []
        for cell, own in self._with_own(states):
            inputs, new = cell(inputs, own)
            after += new
        return inputs, after

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, None)
        states, after = self._begin_states(begin_state, inputs, layout), []
        for i, (cell, own) in enumerate(self._with_own(states), 1):
            merge = merge_outputs if i == len(self._held()) else None
            inputs, new = cell.unroll(length, inputs, own, layout, merge, **_if_given(valid_length))
            after += new
        return inputs, after


class Dropping(Cell):
    """A cell without states that drops inputs: ``_dropped(F, inputs)``."""

    def hybrid_forward(self, F, inputs, states):
        """One step."""
        return self._dropped(F, inputs), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, merge_outputs)
        if listed(inputs):
            return super().unroll(length, inputs, begin_state or [], layout, merge_outputs)
        return self._dropped(namespace(inputs), inputs), begin_state or []


class Modifying(Cell):
    """A cell that changes what another one does, ``base_cell``."""

    def _of_base(self, method, *args, **kwargs):
        """What a method of the base cell gives, which only this cell may call."""
        self.base_cell._modified = False
        try:
            return getattr(self.base_cell, method)(*args, **kwargs)
        finally:
            self.base_cell._modified = True


class Zoning(Modifying):
    """In training, outputs and states keep their former value with these probabilities."""

    def reset(self):
        super().reset()
        self.prev_output = None

    def hybrid_forward(self, F, inputs, states):
        """One step."""
        output, after = self.base_cell(inputs, states)

        def kept(probability, new, old):
            mask = F.Dropout(F.ones_like(new), p=probability)
            return F.where(mask, new, old)

        if self.zoneout_outputs:
            before = F.zeros_like(output) if self.prev_output is None else self.prev_output
            output = kept(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            after = [kept(self.zoneout_states, *pair) for pair in zip(after, states, strict=True)]
        self.prev_output = output
        return output, after


class Residual(Modifying):
    """The output of a cell, and its input added to it: ``_sum(F, output, inputs)``."""

    def hybrid_forward(self, F, inputs, states):
        """One step."""
        output, states = self.base_cell(inputs, states)
        return self._sum(F, output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        self.reset()
        given = (length, inputs, begin_state, layout, merge_outputs)
        outputs, states = self._of_base("unroll", *given, **_if_given(valid_length))
        merge = not listed(outputs) if merge_outputs is None else merge_outputs
        inputs, axis = as_steps(length, inputs, layout, merge)
        F = namespace(inputs)
        if valid_length is not None:
            inputs = masked(F, inputs, length, valid_length, axis, merge)
        if merge:
            return self._sum(F, outputs, inputs), states
        return [self._sum(F, *pair) for pair in zip(outputs, inputs, strict=True)], states
