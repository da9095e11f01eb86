"""Recurrent cells of convolutions: a state is a map, and keeps its place."""

import functools

from ...errors import ParamError
from ...graph import functions as sym
from ...training.factory import REQUIRED
from . import steps
from .cells import _GatedCell

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

#: The activation unless one is given.
_LEAKY = functools.partial(sym.LeakyReLU, act_type="leaky", slope=0.2)


_TAKES = {"input_shape": REQUIRED, "num_hidden": REQUIRED, "h2h_kernel": (3, 3), "h2h_dilate": (1, 1)}
_TAKES |= {"i2h_kernel": (3, 3), "i2h_stride": (1, 1), "i2h_pad": (1, 1), "i2h_dilate": (1, 1)}
_TAKES |= {**steps.FILLED, "activation": _LEAKY, "prefix": "", "params": None, "conv_layout": "NCHW"}


class BaseConvRNNCell(_GatedCell, takes=_TAKES):
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

    def _set_up(self, input_shape, h2h_kernel, h2h_dilate, **given):
        super()._set_up(**given)
        if any(size % 2 == 0 for size in h2h_kernel):
            raise ParamError(f"{type(self).__name__}: the sizes of h2h_kernel must be odd, got {h2h_kernel}")
        layout = {"layout": self._conv_layout}
        self._cut = {"axis": self._conv_layout.find("C")}
        i2h = {key: given[f"i2h_{key}"] for key in ("kernel", "stride", "pad", "dilate")}
        h2h = {"kernel": h2h_kernel, "stride": (1, 1), "dilate": h2h_dilate}
        h2h["pad"] = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._i2h.update(i2h, **layout)
        self._h2h.update(h2h, **layout)
        state = sym.Convolution(sym.Variable("data"), num_filter=self._num_hidden, **i2h, **layout)
        self._state_shape = (0, *state.infer_shape(data=input_shape)[1][0][1:])


class ConvRNNCell(steps.Simple, BaseConvRNNCell, takes={**_TAKES, "prefix": "ConvRNN_"}):
    """``activation(W * x + U * h + b)``, with convolutions."""


class ConvLSTMCell(steps.LongShortTerm, BaseConvRNNCell, takes={**_TAKES, "prefix": "ConvLSTM_"}):
    """Long short-term memory of convolutions (Shi et al., 2015)."""


class ConvGRUCell(steps.GatedUnit, BaseConvRNNCell, takes={**_TAKES, "prefix": "ConvGRU_"}):
    """Gated recurrent unit of convolutions."""

    _before_gates = "_"
