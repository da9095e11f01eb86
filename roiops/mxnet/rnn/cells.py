"""Cells that build recurrent graphs step by step."""

import math
import warnings

from ...errors import GraphError, MXNetError
from ...graph import functions as sym
from ...graph.symbol import Symbol
from ...ndarray import concatenate, zeros
from ...training import initializer as init
from ...training.factory import REQUIRED, Declared
from . import steps

__all__ = ["BaseRNNCell", "BidirectionalCell", "DropoutCell", "FusedRNN", "FusedRNNCell", "GRUCell"]
__all__ += ["LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell", "SequentialRNNCell"]
__all__ += ["ZoneoutCell"]


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


class BaseRNNCell(steps.Cell):
    """What all cells share.

    Parameters
    ----------
    prefix : str
        What the names of nodes and variables begin with.
    params : RNNParams, optional
        Variables of another cell to share.
    """

    #: As those of :class:`steps.Gated`; most cells have none.
    _gate_names: tuple = ()
    state_info: list = []

    def __init__(self, prefix="", params=None):
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def __call__(self, inputs, states):
        """One step: ``(output, new states)``."""
        self._counter += 1
        return self.hybrid_forward(sym, inputs, states)

    def hybrid_forward(self, F, inputs, states):
        """What a step does."""
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
        return self._first_states(func, 0, kwargs)

    def _wholes(self):
        """The names of the arrays that hold gates, each with those of its parts."""
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [f"{self._prefix}{group}{gate}_{kind}" for gate in self._gate_names]
                yield f"{self._prefix}{group}_{kind}", parts

    def unpack_weights(self, args: dict) -> dict:
        """Parameters with those of this cell cut into gates."""
        args = dict(args)
        for name, parts in self._wholes():
            whole, size = args.pop(name), self._num_hidden
            args.update((part, whole[j * size : (j + 1) * size].copy()) for j, part in enumerate(parts))
        for cell in self._held():
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args: dict) -> dict:
        """The reverse of :meth:`unpack_weights`."""
        args = dict(args)
        for name, parts in self._wholes():
            args[name] = concatenate([args.pop(part) for part in parts])
        for cell in self._held():
            args = cell.pack_weights(args)
        return args

    def _get_activation(self, inputs, activation, **kwargs):
        """An activation given by its name, or by a function; cells of users call it, too."""
        if isinstance(activation, str):
            return sym.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)


class _GatedCell(Declared, steps.Gated, BaseRNNCell):
    """Base of cells with one product of the input and one of the state."""

    #: The product's operator, and which of its parameters says how many numbers come out.
    _operator, _counts = "FullyConnected", "num_hidden"
    #: What stands before the names of products.
    _before_products = ""
    _names_all, _begins = False, "_"
    _conv_layout = "NC"

    def _set_up(self, num_hidden, **given):
        super()._set_up(num_hidden=num_hidden, **given)
        self._i2h, self._h2h, self._state_shape = {}, {}, (0, num_hidden)
        for part in ("weight", "bias"):
            for group, own in (("i2h", self._i2h), ("h2h", self._h2h)):
                fill = given.get(f"{group}_{part}_initializer")
                own[part] = self.params.get(f"{group}_{part}", init=fill)

    @property
    def state_info(self):
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}] * self._states

    def _activated(self, F, *args, **kwargs):
        return self._get_activation(*args, **kwargs)

    def hybrid_forward(self, F, inputs, states):
        name = f"{self._prefix}t{self._counter}_"
        make, count = getattr(F, self._operator), self._num_hidden * len(self._gate_names)
        i2h, h2h = (
            make(data=data, **own, **{self._counts: count}, name=f"{name}{self._before_products}{group}")
            for group, data, own in (("i2h", inputs, self._i2h), ("h2h", states[0], self._h2h))
        )
        return self._step(F, i2h, h2h, states, name)


_SIZE = {"num_hidden": REQUIRED}


class RNNCell(
    steps.Simple, _GatedCell, takes={**_SIZE, "activation": "tanh", "prefix": "rnn_", "params": None}
):
    """``activation(W x + U h + b)``."""


class LSTMCell(
    steps.LongShortTerm, _GatedCell, takes={**_SIZE, "prefix": "lstm_", "params": None, "forget_bias": 1.0}
):
    """Long short-term memory; ``forget_bias`` is the first value of the forget gate's bias."""

    def _set_up(self, num_hidden, forget_bias):
        super()._set_up(num_hidden, i2h_bias_initializer=init.LSTMBias(forget_bias))


class GRUCell(steps.GatedUnit, _GatedCell, takes={**_SIZE, "prefix": "gru_", "params": None}):
    """Gated recurrent unit, in cuDNN's form."""

    _before_gates = _before_products = "_"


_FILLED = {"init": REQUIRED, "num_hidden": REQUIRED, "num_layers": REQUIRED, "mode": REQUIRED}
_FILLED |= {"bidirectional": False, "forget_bias": 1.0}


@init.register
class FusedRNN(Declared, init.Initializer, takes=_FILLED):
    """Fills the one array of parameters of a :class:`FusedRNNCell` as those of its cells would be filled.

    Parameters
    ----------
    init : Initializer or str, optional
        Fills the weights; that of the whole network unless given.
    """

    def _set_up(self, init, **given):
        self._kwargs["init"] = init.dumps() if hasattr(init, "dumps") else init

    def _init_weight(self, desc, arr):
        own = dict(self._kwargs)
        given = own.pop("init")
        cell = FusedRNNCell(**own, prefix="")
        parts = cell.unpack_weights({"parameters": arr})
        fill = init.create(given) if given else getattr(desc, "global_init", None) or init.Uniform()
        for name, part in parts.items():
            if name.endswith("_f_bias"):  # of an LSTM: no other has such a gate
                part[:] = own["forget_bias"]
            else:
                fill(init.InitDesc(name, global_init=fill), part)
        arr[:] = cell.pack_weights(parts)["parameters"]


init.FusedRNN = FusedRNN  # MXNet has it among the initializers


def _size(shapes) -> int:
    return sum(map(math.prod, shapes.values()))


def _parts(whole, shapes):
    """The parts of one array by their names, one after the other."""
    start = 0
    for name, shape in shapes.items():
        end = start + math.prod(shape)
        yield name, whole[start:end].reshape(shape)
        start = end


class FusedRNNCell(BaseRNNCell):
    """Layers of one kind as the single operator ``RNN``; only :meth:`unroll` works.

    Parameters
    ----------
    mode : str
        ``"lstm"``, ``"gru"``, ``"rnn_tanh"`` or ``"rnn_relu"``.
    get_next_state : bool
        Whether :meth:`unroll` gives the states, too.
    """

    #: The cells of each mode.
    _CELLS = {"rnn_relu": RNNCell, "rnn_tanh": RNNCell, "lstm": LSTMCell, "gru": GRUCell}

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
        self._cell = self._CELLS[mode]
        self._gate_names = self._cell._gate_names
        self._directions = ("l", "r") if bidirectional else ("l",)
        fill = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=fill)

    @property
    def state_info(self):
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"}] * self._cell._states

    def _shapes(self, num_input) -> dict:
        """The shapes of the parts of the one array, in order, by the names of the cells' weights."""
        hidden, directions, shapes = self._num_hidden, self._directions, {}
        cells = [
            (layer, f"{self._prefix}{d}{layer}") for layer in range(self._num_layers) for d in directions
        ]
        for layer, cell in cells:
            width = len(directions) * hidden if layer else num_input
            for group, columns in (("i2h", width), ("h2h", hidden)):
                shapes |= {f"{cell}_{group}{gate}_weight": (hidden, columns) for gate in self._gate_names}
        for _, cell in cells:
            for group in ("i2h", "h2h"):
                shapes |= {f"{cell}_{group}{gate}_bias": (hidden,) for gate in self._gate_names}
        return shapes

    def unpack_weights(self, args):
        args = dict(args)
        whole = args.pop(self._parameter.name)
        columns = self._num_hidden * len(self._gate_names) * len(self._directions)
        shapes = self._shapes((whole.size - _size(self._shapes(0))) // columns)
        if _size(shapes) != whole.size:
            raise MXNetError(
                f"FusedRNNCell: the parameters have {whole.size} numbers, {_size(shapes)} are needed"
            )
        args.update((name, part.copy()) for name, part in _parts(whole, shapes))
        return args

    def pack_weights(self, args):
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        shapes = self._shapes(first.shape[1])
        whole = zeros((_size(shapes),), first.context, first.dtype)
        for name, part in _parts(whole, shapes):
            part[:] = args.pop(name)
        args[self._parameter.name] = whole
        return args

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        inputs, axis = steps.as_steps(length, inputs, layout, True)
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
        return steps.as_steps(length, outputs, layout, merge_outputs)[0], states

    def unfuse(self) -> "SequentialRNNCell":
        """The same layers as a stack of cells, with the same weights once they are unpacked."""
        stack, kind = SequentialRNNCell(), {}
        if self._cell is RNNCell:
            kind["activation"] = self._mode.removeprefix("rnn_")
        for layer in range(self._num_layers):
            prefixes = [f"{self._prefix}{direction}{layer}_" for direction in self._directions]
            cells = [self._cell(self._num_hidden, prefix=prefix, **kind) for prefix in prefixes]
            pair = len(cells) == 2
            stack.add(
                BidirectionalCell(*cells, output_prefix=f"{self._prefix}bi_l{layer}_") if pair else cells[0]
            )
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, f"{self._prefix}_dropout{layer}_"))
        return stack


class _CellOfCells(steps.Holding, BaseRNNCell):
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


class SequentialRNNCell(steps.Stacking, _CellOfCells):
    """Cells one upon the other."""

    def __init__(self, params=None):
        super().__init__("", params)
        self._shares = params is not None
        self._cells = []

    def add(self, cell) -> None:
        """Put a cell on top."""
        self._share_params(cell)
        self._cells.append(cell)


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
        inputs, axis = steps.as_steps(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        (forward, left), (backward, right) = self._with_own(states)
        left, left_states = forward.unroll(length, inputs, left, layout, merge_outputs)
        inputs = list(reversed(inputs))
        right, right_states = backward.unroll(length, inputs, right, layout, merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(left, Symbol) and isinstance(right, Symbol)
            if not merge_outputs:
                left, right = (steps.as_steps(length, each, layout, False)[0] for each in (left, right))
        states = [left_states, right_states]
        if merge_outputs:
            right = sym.reverse(right, axis=axis)
            return sym.Concat(left, right, dim=2, name=f"{self._output_prefix}out"), states
        pairs = zip(left, reversed(right), strict=True)
        return [
            sym.Concat(*pair, dim=1, name=f"{self._output_prefix}t{i}") for i, pair in enumerate(pairs)
        ], states


class DropoutCell(steps.Dropping, BaseRNNCell):
    """Dropout of the inputs; it has no states."""

    def __init__(self, dropout, prefix="dropout_", params=None):
        super().__init__(prefix, params)
        self.dropout = dropout

    def _dropped(self, F, inputs):
        return F.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs


class ModifierCell(steps.Modifying, BaseRNNCell):
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
        return self._of_base("begin_state", **{"func": init_sym, **kwargs})

    def unpack_weights(self, args):
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args):
        return self.base_cell.pack_weights(args)


class ZoneoutCell(steps.Zoning, ModifierCell):
    """In training, outputs and states keep their former value with these probabilities."""

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, FusedRNNCell | BidirectionalCell):
            raise GraphError(
                f"ZoneoutCell: a {type(base_cell).__name__} cannot be stepped; put it on the cells beneath"
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states, self._cells = zoneout_outputs, zoneout_states, [base_cell]


class ResidualCell(steps.Residual, ModifierCell):
    """The output of a cell, and its input added to it."""

    @staticmethod
    def _sum(F, output, inputs, **named):
        return F.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
