"""Activations as layers."""

from ...training.initializer import Constant
from ..declare import REQUIRED, Declared
from ..hybrid import HybridBlock

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or ``softsign`` of each number."""

    def __init__(self, activation, **kwargs):
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self):
        return self._act_type

    def hybrid_forward(self, F, x):
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self):
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(Declared, HybridBlock, takes={"alpha": REQUIRED}):
    """Negative numbers times ``alpha``."""

    def _set_up(self, alpha):
        if alpha < 0:
            raise AssertionError("Slope coefficient for LeakyReLU must be no less than 0.")
        self._alpha = alpha

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self):
        return f"{type(self).__name__}({self._alpha})"


class PReLU(Declared, HybridBlock, takes={"alpha_initializer": "constant", "in_channels": 1}):
    """Negative numbers times a learned ``alpha``: one number, or one for each channel."""

    def _set_up(self, alpha_initializer, in_channels):
        init = Constant(0.25) if alpha_initializer == "constant" else alpha_initializer
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F, x, alpha):
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(Declared, HybridBlock, takes={"alpha": 1.0}):
    """``alpha * (exp(x) - 1)`` of negative numbers."""

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The scaled exponential linear unit."""

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """The Gaussian error linear unit."""

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(Declared, HybridBlock, takes={"beta": 1.0}):
    """``x * sigmoid(beta * x)``."""

    def hybrid_forward(self, F, x):
        return x * F.sigmoid(self._beta * x, name="fwd")
