"""Recurrent layers over the operator ``RNN``."""

import re

from ... import ndarray
from ...graph import functions as symbol
from ...graph.symbol import Symbol
from ...ndarray import NDArray
from ..declare import REQUIRED, Declared
from ..hybrid import HybridBlock
from .cells import (
    BidirectionalCell,
    DropoutCell,
    GRUCell,
    HybridSequentialRNNCell,
    LSTMCell,
    RNNCell,
    make_state,
)

__all__ = ["GRU", "LSTM", "RNN"]


class _RNNLayer(Declared, HybridBlock):
    """Base of the recurrent layers.

    Parameters
    ----------
    layout : str
        ``"TNC"`` or ``"NTC"``.
    """

    _gates = 1
    _mode = ""

    def _set_up(
        self,
        hidden_size,
        num_layers,
        layout,
        dropout,
        bidirectional,
        input_size,
        dtype,
        i2h_weight_initializer,
        h2h_weight_initializer,
        i2h_bias_initializer,
        h2h_bias_initializer,
        activation=None,
        projection_size=None,
        h2r_weight_initializer=None,
        state_clip_min=None,
        state_clip_max=None,
        state_clip_nan=False,
        use_sequence_length=False,
    ):
        if layout not in ("TNC", "NTC"):
            raise AssertionError(f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']")
        if activation is not None:
            self._mode = f"rnn_{activation}"
        self._hidden_size, self._num_layers, self._layout = hidden_size, num_layers, layout
        self._dropout, self._dtype, self._input_size = dropout, dtype, input_size
        self._directions = ("l", "r") if bidirectional else ("l",)
        self._projection_size, self._options = projection_size or None, {}
        if state_clip_min is not None:
            self._options = {"lstm_state_clip_min": state_clip_min, "lstm_state_clip_max": state_clip_max}
            self._options["lstm_state_clip_nan"] = state_clip_nan
        self._use_sequence_length, self._skip_states = use_sequence_length, False
        rows, out = self._gates * hidden_size, projection_size or hidden_size
        for i in range(num_layers):
            width = input_size if i == 0 else out * len(self._directions)
            parts = [
                ("i2h_weight", (rows, width), i2h_weight_initializer),
                ("h2h_weight", (rows, out), h2h_weight_initializer),
                ("i2h_bias", (rows,), i2h_bias_initializer),
                ("h2h_bias", (rows,), h2h_bias_initializer),
            ]
            if projection_size:
                parts.append(("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer))
            for direction in self._directions:
                for end, shape, init in parts:
                    name = f"{direction}{i}_{end}"
                    given = {"shape": shape, "init": init, "dtype": dtype, "allow_deferred_init": True}
                    setattr(self, name, self.params.get(name, **given))

    def __repr__(self):
        shape = self.l0_i2h_weight.shape
        text = f"{type(self).__name__}({shape[1] or None} -> {shape[0] // self._gates}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout else ""
        return text + (", bidirectional)" if len(self._directions) == 2 else ")")

    def _collect_params_with_prefix(self, prefix=""):
        """Files have the names of the stack of cells that this layer stands for."""
        start, found = f"{prefix}." if prefix else "", {}
        for key, value in self._reg_params.items():
            direction, layer, rest = re.match(r"([lr])(\d+)_(.*)", key).groups()
            cell = f"{direction}_cell." if len(self._directions) == 2 else ""
            found[f"{start}_unfused.{layer}.{cell}{rest}"] = value
        return found

    def state_info(self, batch_size=0) -> list[dict]:
        """Shape and layout of each state."""
        count, sizes = self._num_layers * len(self._directions), [self._projection_size or self._hidden_size]
        if self._mode == "lstm":
            sizes.append(self._hidden_size)
        return [{"shape": (count, batch_size, n), "__layout__": "LNC", "dtype": self._dtype} for n in sizes]

    def begin_state(self, batch_size=0, func=ndarray.zeros, **kwargs) -> list:
        """The states before the first step: ``func(name=..., shape=...)`` for each."""
        infos = [{**info, **kwargs} for info in self.state_info(batch_size)]
        return [make_state(func, f"{self.prefix}h0_{i}", info) for i, info in enumerate(infos)]

    def cast(self, dtype):
        super().cast(dtype)
        self._dtype = dtype

    def infer_shape(self, inputs, *args):
        width, out = inputs.shape[2], self._projection_size or self._hidden_size
        for i in range(self._num_layers):
            for direction in self._directions:
                weight = getattr(self, f"{direction}{i}_i2h_weight")
                weight.shape = (self._gates * self._hidden_size, width)
            width = out * len(self._directions)

    def _unfuse(self) -> HybridSequentialRNNCell:
        """The same layers as a stack of cells, which have these parameters."""
        if self._projection_size or self._options:
            raise AssertionError(
                f"{type(self).__name__}: layers with a projection or clipped states are no stack of cells"
            )
        make = {"rnn_relu": RNNCell, "rnn_tanh": RNNCell, "lstm": LSTMCell, "gru": GRUCell}[self._mode]
        kind = {"activation": self._mode[4:]} if make is RNNCell else {}
        stack, width = HybridSequentialRNNCell(prefix=self.prefix, params=self.params), self._input_size
        with stack.name_scope():
            for i in range(self._num_layers):
                names = [f"{direction}{i}_" for direction in self._directions]
                cells = [make(self._hidden_size, input_size=width, prefix=name, **kind) for name in names]
                stack.add(BidirectionalCell(*cells) if len(cells) == 2 else cells[0])
                if self._dropout > 0 and i != self._num_layers - 1:
                    stack.add(DropoutCell(self._dropout))
                width = self._hidden_size * len(self._directions)
        return stack

    def __call__(self, inputs, states=None, sequence_length=None, **kwargs):
        self._skip_states = states is None
        if states is None:
            if isinstance(inputs, NDArray):
                size = inputs.shape[self._layout.find("N")]
                states = self.begin_state(size, ctx=inputs.context, dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=symbol.zeros)
        if isinstance(states, NDArray | Symbol):
            states = [states]
        lengths = [sequence_length] if self._use_sequence_length else []
        return super().__call__(inputs, states, *lengths, **kwargs)

    def hybrid_forward(self, F, inputs, states, sequence_length=None, **kwargs):
        if F is ndarray:
            for state, info in zip(
                states, self.state_info(inputs.shape[self._layout.find("N")]), strict=True
            ):
                if state.shape != info["shape"]:
                    raise ValueError(
                        f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}."
                    )
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        groups = ("i2h", "h2h", "h2r") if self._projection_size else ("i2h", "h2h")
        names = [
            f"{direction}{i}_{group}_{kind}"
            for kind in ("weight", "bias")
            for i in range(self._num_layers)
            for direction in self._directions
            for group in groups
        ]
        flat = [kwargs[name].reshape((-1,)) for name in names if name in kwargs]
        parameters = F._internal._rnn_param_concat(*flat, dim=0)
        lengths = [sequence_length] if self._use_sequence_length else []
        results = F.RNN(
            *(inputs, parameters, *states, *lengths),
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=len(self._directions) == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            **self._options,
        )
        outputs, states = (
            results[0],
            list(results[1:])
            if isinstance(results, list)
            else [results[i] for i in range(1, len(states) + 1)],
        )
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs if self._skip_states else (outputs, states)


_WEIGHTS = {"i2h_weight_initializer": None, "h2h_weight_initializer": None}
_BIASES = {"i2h_bias_initializer": "zeros", "h2h_bias_initializer": "zeros"}
_SHAPE = {"layout": "TNC", "dropout": 0, "bidirectional": False}
_DEEP = {"hidden_size": REQUIRED, "num_layers": 1}
_RNN = {**_DEEP, "activation": "relu", **_SHAPE, **_WEIGHTS, **_BIASES, "input_size": 0, "dtype": "float32"}
_GATED = {**_DEEP, **_SHAPE, "input_size": 0, **_WEIGHTS, **_BIASES}
_PROJECTED = {"projection_size": None, "h2r_weight_initializer": None}
_CLIPPED = {"state_clip_min": None, "state_clip_max": None, "state_clip_nan": False}
_LAST = {"dtype": "float32", "use_sequence_length": False}


class RNN(_RNNLayer, takes=_RNN):
    """Layers of ``activation(W x + b + U h + c)``; ``activation`` is ``relu`` or ``tanh``."""

    _mode = "rnn"


class LSTM(_RNNLayer, takes={**_GATED, **_PROJECTED, **_CLIPPED, **_LAST}):
    """Layers of long short-term memory, with a projection of the output if ``projection_size`` is given."""

    _gates, _mode = 4, "lstm"


class GRU(_RNNLayer, takes={**_GATED, **_LAST}):
    """Layers of gated recurrent units."""

    _gates, _mode = 3, "gru"
