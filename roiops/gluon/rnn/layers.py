"""Recurrent layers over the operator ``RNN``."""

import re

from ... import ndarray
from ...errors import MXNetError
from ...graph import functions as symbol
from ...graph.symbol import Symbol
from ...mxnet.rnn.steps import FILLED, make_state
from ...ndarray import NDArray
from ...training.factory import REQUIRED, Declared
from ..hybrid import HybridBlock
from . import cells

__all__ = ["GRU", "LSTM", "RNN"]


class _RNNLayer(Declared, HybridBlock):
    """Base of the recurrent layers; ``layout`` is ``"TNC"`` or ``"NTC"``."""

    #: The cells that the layers are of.
    _cell = cells.RNNCell
    #: Of :class:`RNN` alone.
    _activation = None
    _skip_states = False

    def _set_up(self, **given):
        super()._set_up(**given)
        if self._layout not in ("TNC", "NTC"):
            raise AssertionError(f"Invalid layout {self._layout}; must be one of ['TNC' or 'NTC']")
        for name, instead in _NOT_ON_CPU.items():
            if given.get(name):
                raise MXNetError(
                    f"{type(self).__name__}: {name} is not offered, and not by MXNet on a CPU; {instead}"
                )
        if self._activation is not None:
            self._mode = f"rnn_{self._activation}"
        self._gates = len(self._cell._gate_names)
        self._directions = ("l", "r") if self._bidirectional else ("l",)
        rows = self._gates * self._hidden_size
        for _, names, width in self._each_layer(self._input_size):
            shapes = {"i2h_weight": (rows, width), "h2h_weight": (rows, self._hidden_size)}
            shapes |= {"i2h_bias": (rows,), "h2h_bias": (rows,)}
            for name in names:
                for end, shape in shapes.items():
                    self._learn(f"{name}{end}", shape, given[f"{end}_initializer"], dtype=self._dtype)

    def _each_layer(self, width):
        """The number of each layer, what names of its parameters begin with, and the width of its input."""
        for i in range(self._num_layers):
            yield i, [f"{direction}{i}_" for direction in self._directions], width
            width = self._hidden_size * len(self._directions)

    def __repr__(self):
        shape = self.l0_i2h_weight.shape
        text = f"{type(self).__name__}({shape[1] or None} -> {shape[0] // self._gates}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout else ""
        return text + (", bidirectional)" if self._bidirectional else ")")

    def _collect_params_with_prefix(self, prefix=""):
        """Files have the names of the stack of cells that this layer stands for."""
        start, found = f"{prefix}." if prefix else "", {}
        for key, value in self._reg_params.items():
            direction, layer, rest = re.match(r"([lr])(\d+)_(.*)", key).groups()
            cell = f"{direction}_cell." if self._bidirectional else ""
            found[f"{start}_unfused.{layer}.{cell}{rest}"] = value
        return found

    def state_info(self, batch_size=0) -> list[dict]:
        """Shape and layout of each state."""
        shape = (self._num_layers * len(self._directions), batch_size, self._hidden_size)
        info = {"shape": shape, "__layout__": "LNC", "dtype": self._dtype}
        return [dict(info) for _ in range(self._cell._states)]

    def begin_state(self, batch_size=0, func=ndarray.zeros, **kwargs) -> list:
        """The states before the first step: ``func(name=..., shape=...)`` for each."""
        infos = [{**info, **kwargs} for info in self.state_info(batch_size)]
        return [make_state(func, f"{self.prefix}h0_{i}", info) for i, info in enumerate(infos)]

    def cast(self, dtype):
        super().cast(dtype)
        self._dtype = dtype

    def infer_shape(self, inputs, *args):
        for _, names, width in self._each_layer(inputs.shape[2]):
            for name in names:
                getattr(self, f"{name}i2h_weight").shape = (self._gates * self._hidden_size, width)

    def _unfuse(self) -> cells.HybridSequentialRNNCell:
        """The same layers as a stack of cells, which have these parameters."""
        make, kind = self._cell, {name: getattr(self, f"_{name}") for name in FILLED}
        if self._activation is not None:
            kind["activation"] = self._activation
        stack = cells.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            for i, names, width in self._each_layer(self._input_size):
                layer = [make(self._hidden_size, input_size=width, prefix=name, **kind) for name in names]
                stack.add(cells.BidirectionalCell(*layer) if len(layer) == 2 else layer[0])
                if self._dropout > 0 and i != self._num_layers - 1:
                    stack.add(cells.DropoutCell(self._dropout))
        return stack

    def __call__(self, inputs, states=None, **kwargs):
        self._skip_states = states is None
        if states is None:
            if isinstance(inputs, NDArray):
                size = inputs.shape[self._layout.find("N")]
                states = self.begin_state(size, ctx=inputs.context, dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=symbol.zeros)
        if isinstance(states, NDArray | Symbol):
            states = [states]
        return super().__call__(inputs, states, **kwargs)

    def hybrid_forward(self, F, inputs, states, **kwargs):
        if F is ndarray:
            infos = self.state_info(inputs.shape[self._layout.find("N")])
            if len(states) != len(infos):
                raise ValueError(
                    f"{type(self).__name__} takes {len(infos)} states, as begin_state() gives them, "
                    f"got {len(states)}"
                )
            for state, info in zip(states, infos, strict=True):
                if state.shape != info["shape"]:
                    raise ValueError(
                        f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}."
                    )
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        names = sorted(kwargs, key=lambda name: name.endswith("bias"))  # all weights, then all biases
        parameters = F._internal._rnn_param_concat(*(kwargs[name].reshape((-1,)) for name in names), dim=0)
        results = F.RNN(
            *(inputs, parameters, *states),
            state_size=self._hidden_size,
            projection_size=None,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
        )
        outputs, *states = [results[i] for i in range(1 + len(states))]
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs if self._skip_states else (outputs, states)


_LAST = {"dtype": "float32", "use_sequence_length": False}
_SHAPE = {"layout": "TNC", "dropout": 0, "bidirectional": False}
_DEEP = {"hidden_size": REQUIRED, "num_layers": 1}
_RNN = {**_DEEP, "activation": "relu", **_SHAPE, **FILLED, "input_size": 0, **_LAST}
_GATED = {**_DEEP, **_SHAPE, "input_size": 0, **FILLED}
_PROJECTED = {"projection_size": None, "h2r_weight_initializer": None}
_CLIPPED = {"state_clip_min": None, "state_clip_max": None, "state_clip_nan": False}
#: What is refused, and what to do instead.
_NOT_ON_CPU = {
    "use_sequence_length": "unroll cells with valid_length, or mask with SequenceMask",
    "projection_size": "unroll a cell of your own that projects its output",
    **dict.fromkeys(_CLIPPED, "unroll a cell of your own that clips its states"),
}


class RNN(_RNNLayer, takes=_RNN):
    """Layers of ``activation(W x + b + U h + c)``; ``activation`` is ``relu`` or ``tanh``."""


class LSTM(_RNNLayer, takes={**_GATED, **_PROJECTED, **_CLIPPED, **_LAST}):
    """Layers of long short-term memory; projections of the output and clipped states are refused."""

    _cell, _mode = cells.LSTMCell, "lstm"


class GRU(_RNNLayer, takes={**_GATED, **_LAST}):
    """Layers of gated recurrent units."""

    _cell, _mode = cells.GRUCell, "gru"
