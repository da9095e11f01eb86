"""Activations as layers."""

from ...training.factory import REQUIRED, Declared
from ...training.initializer import Constant
from ..declare import Layer
from ..hybrid import HybridBlock

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(Layer):
    """``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or ``softsign`` of each number."""

    _op_name = "Activation"

    def __init__(self, activation, **kwargs):
        self._act_type = self._hint = activation
        self._kwargs = {"act_type": activation}
        super().__init__(**kwargs)

    def __repr__(self):
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(Layer, takes={"alpha": REQUIRED}):
    """Negative numbers times ``alpha``."""

    _op_name = "LeakyReLU"

    def _set_up(self, alpha):
        if alpha < 0:
            raise AssertionError("Slope coefficient for LeakyReLU must be no less than 0.")
        self._alpha, self._kwargs = alpha, {"act_type": "leaky", "slope": alpha}

    def __repr__(self):
        return f"{type(self).__name__}({self._alpha})"


class PReLU(Layer, takes={"alpha_initializer": "constant", "in_channels": 1}):
    """Negative numbers times a learned ``alpha``: one number, or one for each channel."""

    _op_name, _kwargs = "LeakyReLU", {"act_type": "prelu"}

    def _set_up(self, alpha_initializer, in_channels):
        init = Constant(0.25) if alpha_initializer == "constant" else alpha_initializer
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)


class ELU(Layer, takes={"alpha": 1.0}):
    """``alpha * (exp(x) - 1)`` of negative numbers."""

    _op_name, _node = "LeakyReLU", None

    def _set_up(self, alpha):
        self._alpha, self._kwargs = alpha, {"act_type": "elu", "slope": alpha}


class SELU(Layer):
    """The scaled exponential linear unit."""

    _op_name, _kwargs = "LeakyReLU", {"act_type": "selu"}


class GELU(Layer):
    """The Gaussian error linear unit."""

    _op_name, _kwargs = "LeakyReLU", {"act_type": "gelu"}


class Swish(Declared, HybridBlock, takes={"beta": 1.0}):
    """``x * sigmoid(beta * x)``."""

    def hybrid_forward(self, F, x):
        return x * F.sigmoid(self._beta * x, name="fwd")
