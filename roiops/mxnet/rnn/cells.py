"""Cells that build recurrent graphs step by step."""

import warnings

import numpy as np

from ... import ndarray
from ...errors import GraphError, MXNetError
from ...graph import functions as sym
from ...graph.symbol import Symbol
from ...ndarray import concatenate, zeros
from ...training import initializer as init

__all__ = ["BaseRNNCell", "BidirectionalCell", "DropoutCell", "FusedRNN", "FusedRNNCell", "GRUCell"]
__all__ += ["LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell", "SequentialRNNCell"]
__all__ += ["ZoneoutCell"]


def as_steps(length, inputs, layout, merge):
    """Inputs as a list of steps, with ``merge`` as one array, with None as they are; and the time axis.

    Arrays and symbols alike.
    """
    axis = layout.find("T")
    if not isinstance(inputs, list | tuple):
        F = sym if isinstance(inputs, Symbol) else ndarray
        if merge is not False:
            return inputs, axis
        if F is sym and len(inputs) != 1:
            raise GraphError("unroll: the inputs are a symbol of several outputs; give a list of symbols")
        if F is ndarray and length != inputs.shape[axis]:
            raise GraphError(f"unroll: {inputs.shape[axis]} inputs for {length} steps")
        steps = F.SliceChannel(inputs, axis=axis, num_outputs=length, squeeze_axis=1)
        return (list(steps) if F is sym or length > 1 else [steps]), axis
    if length is not None and len(inputs) != length:
        raise GraphError(f"unroll: {len(inputs)} inputs for {length} steps")
    if merge is True:
        F = sym if isinstance(inputs[0], Symbol) else ndarray
        inputs = [F.expand_dims(each, axis=axis) for each in inputs]
        return F.Concat(*inputs, dim=axis), axis
    return inputs, axis


# -- one step, of arrays and of symbols ---------------------------------------------------------------------
# F is nd or sym, activate(x, kind, name=...) an activation. Names of sums and products begin with `inner`;
# without it they are those of their operators, as in mx.rnn.


def _inner(name, part):
    return None if name is None else name + part


def rnn_step(F, activate, i2h, h2h, name, activation, inner=None):
    """The output and the states of a simple cell."""
    total = F._internal._plus(i2h, h2h, name=_inner(inner, "plus0"))
    output = activate(total, activation, name=f"{name}out")
    return output, [output]


def lstm_step(F, activate, i2h, h2h, before, name, activation="tanh", recurrent="sigmoid", inner=None):
    """The output and the states of a long short-term memory, of which ``before`` is the second one."""
    plus, times = F._internal._plus, F._internal._mul
    gates = plus(i2h, h2h, name=_inner(inner, "plus0"))
    gates = F.SliceChannel(gates, num_outputs=4, name=f"{name}slice")
    kinds = (recurrent, recurrent, activation, recurrent)
    write, forget, change, read = (
        activate(gates[k], kind, name=f"{name}{'ifco'[k]}") for k, kind in enumerate(kinds)
    )
    kept = times(forget, before, name=_inner(inner, "mul0"))
    added = times(write, change, name=_inner(inner, "mul1"))
    state = plus(kept, added, name=f"{name}state")
    shown = F.Activation(state, act_type=activation, name=_inner(inner, "activation0"))
    output = times(read, shown, name=f"{name}out")
    return output, [output, state]


def gru_step(F, activate, i2h, h2h, before, name, output_name, inner=None):
    """The output and the states of a gated recurrent unit, in cuDNN's form."""
    plus, times = F._internal._plus, F._internal._mul
    i2h_r, i2h_z, i2h = F.SliceChannel(i2h, num_outputs=3, name=f"{name}i2h_slice")
    h2h_r, h2h_z, h2h = F.SliceChannel(h2h, num_outputs=3, name=f"{name}h2h_slice")
    reset = activate(plus(i2h_r, h2h_r, name=_inner(inner, "plus0")), "sigmoid", name=f"{name}r_act")
    update = activate(plus(i2h_z, h2h_z, name=_inner(inner, "plus1")), "sigmoid", name=f"{name}z_act")
    fresh = plus(i2h, times(reset, h2h, name=_inner(inner, "mul0")), name=_inner(inner, "plus2"))
    fresh = activate(fresh, "tanh", name=f"{name}h_act")
    taken = times(1.0 - update, fresh, name=_inner(inner, "mul1"))
    kept = times(update, before, name=_inner(inner, "mul20"))
    output = plus(taken, kept, name=output_name)
    return output, [output]


class RNNParams:
    """Variables that cells share, made when they are first asked for."""

    def __init__(self, prefix=""):
        self._prefix = prefix
        self._params = {}

    def get(self, name, **kwargs) -> Symbol:
        """The variable ``<prefix><name>``; ``kwargs`` are those of ``Variable``."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = sym.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell:
    """What all cells share.

    Parameters
    ----------
    prefix : str
        What the names of nodes and variables begin with.
    params : RNNParams, optional
        Variables of another cell to share.
    """

    #: The ends of the gates' names, in the order in which the weights hold them.
    _gate_names: tuple = ()
    state_info: list = []

    def __init__(self, prefix="", params=None):
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Count steps and states from the start; done before the graph is built again."""
        self._init_counter = self._counter = -1
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    def __call__(self, inputs, states):
        """One step: ``(output, new states)``."""
        raise NotImplementedError(f"{type(self).__name__} cannot be stepped; use unroll")

    @property
    def params(self) -> RNNParams:
        """The variables, which from now on others may share."""
        self._own_params = False
        return self._params

    @property
    def state_shape(self) -> list:
        """The shape of each state."""
        return [each["shape"] for each in self.state_info]

    def _check_not_modified(self) -> None:
        if self._modified:
            raise GraphError(f"{type(self).__name__}: a modifier cell holds this cell; call that instead")

    def begin_state(self, func=sym.zeros, **kwargs) -> list:
        """The states before the first step: ``func(name=..., shape=...)`` for each."""
        self._check_not_modified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(
                func(name=f"{self._prefix}begin_state_{self._init_counter}", **kwargs, **(info or {}))
            )
        return states

    def unpack_weights(self, args: dict) -> dict:
        """Parameters with those of this cell cut into gates."""
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                whole = args.pop(f"{self._prefix}{group}_{kind}")
                size = self._num_hidden
                for j, gate in enumerate(self._gate_names):
                    args[f"{self._prefix}{group}{gate}_{kind}"] = whole[j * size : (j + 1) * size].copy()
        return args

    def pack_weights(self, args: dict) -> dict:
        """The reverse of :meth:`unpack_weights`."""
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [args.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = concatenate(parts)
        return args

    def _step_name(self) -> str:
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def _get_activation(self, inputs, activation, **kwargs):
        """An activation given by its name, or by a function; cells of users call it, too."""
        if isinstance(activation, str):
            return sym.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """``length`` steps: ``(outputs, states)``.

        Parameters
        ----------
        inputs : Symbol or list of Symbol
            One symbol of all steps, in the layout given, or one a step.
        begin_state : list of Symbol, optional
            What :meth:`begin_state` gives, unless given.
        merge_outputs : bool, optional
            Whether outputs are one symbol of all steps, or a list; whichever is at hand unless given.
        """
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, False)
        states, outputs = self.begin_state() if begin_state is None else begin_state, []
        for step in range(length):
            output, states = self(inputs[step], states)
            outputs.append(output)
        return as_steps(length, outputs, layout, merge_outputs)[0], states


class _GatedCell(BaseRNNCell):
    """Base of cells with one product of the input and one of the state."""

    def __init__(self, num_hidden, prefix, params, bias=None):
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
        self._i2h = {"weight": self.params.get("i2h_weight")}
        self._h2h = {"weight": self.params.get("h2h_weight")}
        self._i2h["bias"] = self.params.get("i2h_bias", **({} if bias is None else {"init": bias}))
        self._h2h["bias"] = self.params.get("h2h_bias")

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _products(self, inputs, state, name):
        count = self._num_hidden * len(self._gate_names)
        return (
            sym.FullyConnected(data=inputs, **self._i2h, num_hidden=count, name=f"{name}i2h"),
            sym.FullyConnected(data=state, **self._h2h, num_hidden=count, name=f"{name}h2h"),
        )


class RNNCell(_GatedCell):
    """``activation(W x + U h + b)``."""

    _gate_names = ("",)

    def __init__(self, num_hidden, activation="tanh", prefix="rnn_", params=None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs, states):
        name = self._step_name()
        i2h, h2h = self._products(inputs, states[0], name)
        return rnn_step(sym, self._get_activation, i2h, h2h, name, self._activation)


class LSTMCell(_GatedCell):
    """Long short-term memory; ``forget_bias`` is the first value of the forget gate's bias."""

    _gate_names = ("_i", "_f", "_c", "_o")

    def __init__(self, num_hidden, prefix="lstm_", params=None, forget_bias=1.0):
        super().__init__(num_hidden, prefix, params, init.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self):
        return super().state_info * 2

    def __call__(self, inputs, states):
        name = self._step_name()
        i2h, h2h = self._products(inputs, states[0], name)
        return lstm_step(sym, self._get_activation, i2h, h2h, states[1], name)


class GRUCell(_GatedCell):
    """Gated recurrent unit, in cuDNN's form."""

    _gate_names = ("_r", "_z", "_o")

    def __init__(self, num_hidden, prefix="gru_", params=None):
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs, states):
        name = self._step_name()
        i2h, h2h = self._products(inputs, states[0], f"{name}_")
        return gru_step(sym, self._get_activation, i2h, h2h, states[0], f"{name}_", f"{name}out")


@init.register
class FusedRNN(init.Initializer):
    """Fills the one array of parameters of a :class:`FusedRNNCell` as those of its cells would be filled.

    Parameters
    ----------
    initializer : Initializer or str, optional
        Fills the weights; that of the whole network unless given.
    """

    def __init__(self, initializer, num_hidden, num_layers, mode, bidirectional=False, forget_bias=1.0):
        text = initializer.dumps() if isinstance(initializer, init.Initializer) else initializer
        super().__init__(
            initializer=text,
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._fill = None if text is None else init.create(text)

    def _init_weight(self, desc, arr):
        own = dict(self._kwargs)
        own.pop("initializer")
        cell = FusedRNNCell(**own, prefix="")
        parts = cell.unpack_weights({"parameters": arr})
        fill = self._fill or getattr(desc, "global_init", None) or init.Uniform()
        for name, part in parts.items():
            if own["mode"] == "lstm" and name.endswith("_f_bias"):
                part[:] = own["forget_bias"]
            else:
                fill(init.InitDesc(name, global_init=fill), part)
        arr[:] = cell.pack_weights(parts)["parameters"]


class FusedRNNCell(BaseRNNCell):
    """Layers of one kind as the single operator ``RNN``; only :meth:`unroll` works.

    Parameters
    ----------
    mode : str
        ``"lstm"``, ``"gru"``, ``"rnn_tanh"`` or ``"rnn_relu"``.
    get_next_state : bool
        Whether :meth:`unroll` gives the states, too.
    """

    _GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": LSTMCell._gate_names, "gru": GRUCell._gate_names}

    def __init__(
        self,
        num_hidden,
        num_layers=1,
        mode="lstm",
        bidirectional=False,
        dropout=0.0,
        get_next_state=False,
        forget_bias=1.0,
        prefix=None,
        params=None,
    ):
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._gate_names = self._GATES[mode]
        self._directions = ("l", "r") if bidirectional else ("l",)
        fill = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=fill)

    @property
    def state_info(self):
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"}] * (2 if self._mode == "lstm" else 1)

    def _slice_weights(self, whole, num_input) -> dict:
        """The parts of the one array of parameters, by the names of the cells' weights."""
        hidden, directions = self._num_hidden, len(self._directions)
        layers = [(n, d) for n in range(self._num_layers) for d in self._directions]
        parts, start = {}, 0

        def take(name, shape):
            nonlocal start
            size = int(np.prod(shape))
            parts[name] = whole[start : start + size].reshape(shape)
            start += size

        for layer, direction in layers:
            width = directions * hidden if layer else num_input
            for group, columns in (("i2h", width), ("h2h", hidden)):
                for gate in self._gate_names:
                    take(f"{self._prefix}{direction}{layer}_{group}{gate}_weight", (hidden, columns))
        for layer, direction in layers:
            for group in ("i2h", "h2h"):
                for gate in self._gate_names:
                    take(f"{self._prefix}{direction}{layer}_{group}{gate}_bias", (hidden,))
        if start != whole.size:
            raise MXNetError(f"FusedRNNCell: the parameters have {whole.size} numbers, {start} are needed")
        return parts

    def unpack_weights(self, args):
        args = dict(args)
        whole = args.pop(self._parameter.name)
        hidden, count, gates = self._num_hidden, len(self._directions), len(self._gate_names)
        further = (self._num_layers - 1) * (hidden + count * hidden + 2)
        num_input = whole.size // count // hidden // gates - further - hidden - 2
        args.update((name, part.copy()) for name, part in self._slice_weights(whole, num_input).items())
        return args

    def pack_weights(self, args):
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        hidden, count, gates = self._num_hidden, len(self._directions), len(self._gate_names)
        further = (self._num_layers - 1) * (hidden + count * hidden + 2)
        total = (first.shape[1] + hidden + 2 + further) * hidden * gates * count
        whole = zeros((total,), first.context, first.dtype)
        for name, part in self._slice_weights(whole, first.shape[1]).items():
            part[:] = args.pop(name)
        args[self._parameter.name] = whole
        return args

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, True)
        if axis == 1:
            warnings.warn("FusedRNNCell: the layout TNC spares it two transpositions", stacklevel=2)
            inputs = sym.swapaxes(inputs, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        rnn = sym.RNN(
            data=inputs,
            parameters=self._parameter,
            **dict(zip(("state", "state_cell"), states, strict=False)),
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
        )
        outputs, states = rnn[0], [rnn[i] for i in range(1, len(rnn))]
        if axis == 1:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return as_steps(length, outputs, layout, merge_outputs)[0], states

    def unfuse(self) -> "SequentialRNNCell":
        """The same layers as a stack of cells, with the same weights once they are unpacked."""
        makers = {
            "rnn_relu": lambda prefix: RNNCell(self._num_hidden, "relu", prefix),
            "rnn_tanh": lambda prefix: RNNCell(self._num_hidden, "tanh", prefix),
            "lstm": lambda prefix: LSTMCell(self._num_hidden, prefix),
            "gru": lambda prefix: GRUCell(self._num_hidden, prefix),
        }
        stack, make = SequentialRNNCell(), makers[self._mode]
        for layer in range(self._num_layers):
            cells = [make(f"{self._prefix}{direction}{layer}_") for direction in self._directions]
            pair = len(cells) == 2
            stack.add(
                BidirectionalCell(*cells, output_prefix=f"{self._prefix}bi_l{layer}_") if pair else cells[0]
            )
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, f"{self._prefix}_dropout{layer}_"))
        return stack


class _CellOfCells(BaseRNNCell):
    """Base of cells that hold others."""

    def _share_params(self, cell) -> None:
        if self._shares:
            if not cell._own_params:
                raise GraphError(f"{type(self).__name__}: give params to it or to its cells, not to both")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)

    @property
    def state_info(self):
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs):
        self._check_not_modified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args):
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args):
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args


class SequentialRNNCell(_CellOfCells):
    """Cells one upon the other."""

    def __init__(self, params=None):
        super().__init__("", params)
        self._shares = params is not None
        self._cells = []

    def add(self, cell) -> None:
        """Put a cell on top."""
        self._share_params(cell)
        self._cells.append(cell)

    def __call__(self, inputs, states):
        self._counter += 1
        after, at = [], 0
        for cell in self._cells:
            count = len(cell.state_info)
            inputs, new = cell(inputs, states[at : at + count])
            after += new
            at += count
        return inputs, after

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        after, at = [], 0
        for i, cell in enumerate(self._cells):
            count = len(cell.state_info)
            merge = merge_outputs if i == len(self._cells) - 1 else None
            inputs, new = cell.unroll(length, inputs, states[at : at + count], layout, merge)
            after += new
            at += count
        return inputs, after


class BidirectionalCell(_CellOfCells):
    """One cell forward in time and one backward; their outputs are joined. Only :meth:`unroll` works."""

    def __init__(self, l_cell, r_cell, params=None, output_prefix="bi_"):
        super().__init__("", params)
        self._shares, self._output_prefix = params is not None, output_prefix
        self._cells = [l_cell, r_cell]
        for cell in self._cells:
            self._share_params(cell)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        forward, backward = self._cells
        count = len(forward.state_info)
        left, left_states = forward.unroll(length, inputs, states[:count], layout, merge_outputs)
        right, right_states = backward.unroll(
            length, list(reversed(inputs)), states[count:], layout, merge_outputs
        )
        if merge_outputs is None:
            merge_outputs = isinstance(left, Symbol) and isinstance(right, Symbol)
            if not merge_outputs:
                left, right = (as_steps(length, each, layout, False)[0] for each in (left, right))
        states = [left_states, right_states]
        if merge_outputs:
            right = sym.reverse(right, axis=axis)
            return sym.Concat(left, right, dim=2, name=f"{self._output_prefix}out"), states
        pairs = zip(left, reversed(right), strict=True)
        return [
            sym.Concat(*pair, dim=1, name=f"{self._output_prefix}t{i}") for i, pair in enumerate(pairs)
        ], states


class DropoutCell(BaseRNNCell):
    """Dropout of the inputs; it has no states."""

    def __init__(self, dropout, prefix="dropout_", params=None):
        super().__init__(prefix, params)
        self.dropout = dropout

    def __call__(self, inputs, states):
        return (sym.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state or [], layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """Base of cells that change what another cell does."""

    def __init__(self, base_cell):
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self):
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self):
        return self.base_cell.state_info

    def begin_state(self, init_sym=sym.zeros, **kwargs):
        self._check_not_modified()
        self.base_cell._modified = False
        begin = self.base_cell.begin_state(func=kwargs.pop("func", init_sym), **kwargs)
        self.base_cell._modified = True
        return begin

    def unpack_weights(self, args):
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args):
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """In training, outputs and states keep their former value with these probabilities."""

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, FusedRNNCell | BidirectionalCell):
            raise GraphError(
                f"ZoneoutCell: a {type(base_cell).__name__} cannot be stepped; put it on the cells beneath"
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def reset(self):
        super().reset()
        self.prev_output = None
        if hasattr(self, "base_cell"):
            self.base_cell.reset()

    def __call__(self, inputs, states):
        output, after = self.base_cell(inputs, states)

        def kept(probability, new, old):
            mask = sym.Dropout(sym.ones_like(new), p=probability)
            return sym.where(mask, new, old)

        if self.zoneout_outputs:
            before = sym.zeros_like(output) if self.prev_output is None else self.prev_output
            output = kept(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            after = [kept(self.zoneout_states, *pair) for pair in zip(after, states, strict=True)]
        self.prev_output = output
        return output, after


class ResidualCell(ModifierCell):
    """The output of a cell, and its input added to it."""

    @staticmethod
    def _add(output, inputs):
        return sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")

    def __call__(self, inputs, states):
        output, states = self.base_cell(inputs, states)
        return self._add(output, inputs), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        self.base_cell._modified = False
        outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        self.base_cell._modified = True
        merge = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        inputs, _ = as_steps(length, inputs, layout, merge)
        if merge:
            return self._add(outputs, inputs), states
        return [self._add(*pair) for pair in zip(outputs, inputs, strict=True)], states
