"""Recurrent cells of convolutions: a state is a map, and keeps its place."""

import functools

from ...errors import ParamError
from ...graph import functions as sym
from .cells import LSTMCell, RNNCell, _GatedCell
from .steps import gru_step

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

#: The activation unless one is given.
_LEAKY = functools.partial(sym.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(_GatedCell):
    """What cells of convolutions share.

    Parameters
    ----------
    input_shape : tuple of int
        The shape of one step's input, with the batch.
    num_hidden : int
        Channels of the state.
    h2h_kernel, h2h_dilate : (int, int)
        The convolution of the state, which keeps its size: the kernel's sizes are odd.
    i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : (int, int)
        The convolution of the input.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        What weights and biases are filled by; for weights, that of the whole network unless given.
    activation : str or function
        The activation's ``act_type``, or a function of a symbol.
    prefix : str, optional
        What the names of nodes and variables begin with; ``"ConvLSTM_"`` and the like unless given.
    params : RNNParams, optional
        Variables of another cell to share.
    conv_layout : str
        The layout of both convolutions.
    """

    _operator, _counts = "Convolution", "num_filter"
    #: How many states there are.
    _states = 1
    #: What names begin with, unless it is given.
    _usual_prefix = ""

    def __init__(
        self,
        input_shape,
        num_hidden,
        h2h_kernel=(3, 3),
        h2h_dilate=(1, 1),
        i2h_kernel=(3, 3),
        i2h_stride=(1, 1),
        i2h_pad=(1, 1),
        i2h_dilate=(1, 1),
        i2h_weight_initializer=None,
        h2h_weight_initializer=None,
        i2h_bias_initializer="zeros",
        h2h_bias_initializer="zeros",
        activation=_LEAKY,
        prefix=None,
        params=None,
        conv_layout="NCHW",
    ):
        fills = {"i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer}
        fills |= {"i2h_bias": i2h_bias_initializer, "h2h_bias": h2h_bias_initializer}
        super().__init__(num_hidden, self._usual_prefix if prefix is None else prefix, params, **fills)
        if any(size % 2 == 0 for size in h2h_kernel):
            raise ParamError(f"{type(self).__name__}: the sizes of h2h_kernel must be odd, got {h2h_kernel}")
        self._activation, self._conv_layout = activation, conv_layout
        self._cut = {"axis": conv_layout.find("C")}
        i2h = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        h2h = {"kernel": h2h_kernel, "stride": (1, 1), "dilate": h2h_dilate}
        h2h["pad"] = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._i2h.update(i2h, layout=conv_layout)
        self._h2h.update(h2h, layout=conv_layout)
        state = sym.Convolution(sym.Variable("data"), num_filter=num_hidden, **i2h, layout=conv_layout)
        self._state_shape = (0, *state.infer_shape(data=input_shape)[1][0][1:])

    @property
    def state_info(self):
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}] * self._states


class ConvRNNCell(BaseConvRNNCell):
    """``activation(W * x + U * h + b)``, with convolutions."""

    _gate_names = ("",)
    _usual_prefix = "ConvRNN_"

    __call__ = RNNCell.__call__


class ConvLSTMCell(BaseConvRNNCell):
    """Long short-term memory of convolutions (Shi et al., 2015)."""

    _gate_names = ("_i", "_f", "_c", "_o")
    _usual_prefix = "ConvLSTM_"
    _states = 2

    __call__ = LSTMCell.__call__


class ConvGRUCell(BaseConvRNNCell):
    """Gated recurrent unit of convolutions."""

    _gate_names = ("_r", "_z", "_o")
    _usual_prefix = "ConvGRU_"

    def __call__(self, inputs, states):
        name = self._step_name()
        i2h, h2h = self._products(inputs, states[0], name)
        names, state = (f"{name}_", f"{name}out"), states[0]
        return gru_step(sym, self._get_activation, i2h, h2h, state, *names, self._activation, **self._cut)
