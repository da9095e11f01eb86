"""``gluon.contrib.nn``: branches side by side, and what else GluonCV asks for."""

import math
import sys

from .... import ndarray
from ....errors import ParamError
from ...hybrid import HybridBlock
from ...nn import BatchNorm, HybridSequential, Sequential
from ...nn.basic_layers import _BATCH_NORM
from ...nn.conv_layers import _tuple

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "PixelShuffle1D", "PixelShuffle2D"]
__all__ += ["PixelShuffle3D", "SparseEmbedding", "SyncBatchNorm"]

basic_layers = sys.modules[__name__]  # MXNet's name of the module


class _SideBySide:
    """The outputs of all children on one input, joined along ``axis``."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis


class Concurrent(_SideBySide, Sequential):
    """The outputs of all children on one input, joined along ``axis``."""

    def forward(self, x):
        return ndarray.concat(*[block(x) for block in self], dim=self.axis)


class HybridConcurrent(_SideBySide, HybridSequential):
    """The outputs of all children on one input, joined along ``axis``."""

    def hybrid_forward(self, F, x):
        return F.concat(*[block(x) for block in self], dim=self.axis)


class Identity(HybridBlock):
    """What comes in."""

    def hybrid_forward(self, F, x):
        return x


class SparseEmbedding:
    """Not offered: gradients are dense here."""

    def __init__(self, *args, **kwargs):
        raise ParamError(
            "contrib.nn.SparseEmbedding is not offered, since gradients are dense here; use nn.Embedding"
        )


_OF_DEVICES = {"in_channels": 0, "num_devices": None, **_BATCH_NORM}


class SyncBatchNorm(BatchNorm, takes=_OF_DEVICES):
    """BatchNorm by the name of its many-device form: statistics are those of one device."""

    def _set_up(self, num_devices, **given):
        super()._set_up(axis=1, **given)
        del self._kwargs["axis"]
        self._kwargs.update(ndev=num_devices or 1, key=self.prefix)

    def hybrid_forward(self, F, x, gamma, beta, running_mean, running_var):
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Base of layers that make channels into pixels: ``factor`` times as many along each axis."""

    _count = 2

    def __init__(self, factor):
        super().__init__()
        self._factors = _tuple(factor, self._count)
        if len(self._factors) != self._count:
            raise AssertionError(f"wrong length {len(self._factors)}")

    def hybrid_forward(self, F, x):
        count = self._count
        # (N, C f..., s...) -> (N, C, f, ..., s, ...) -> (N, C, s, f, ...) -> (N, C, s f, ...)
        head = (0, -4, -1)
        x = F.reshape(x, (*head, math.prod(self._factors), *(0,) * count))
        for i, factor in enumerate(self._factors[:-1]):
            rest = math.prod(self._factors[i + 1 :])
            x = F.reshape(x, (*(0,) * (2 + i), -4, factor, rest, *(0,) * count))
        pairs = [axis for i in range(count) for axis in (2 + count + i, 2 + i)]
        return F.reshape(F.transpose(x, (0, 1, *pairs)), (0, 0, *(-3,) * count))

    def __repr__(self):
        return f"{type(self).__name__}({self._factors if self._count > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """``(N, f C, W)`` as ``(N, C, f W)``."""

    _count = 1


class PixelShuffle2D(_PixelShuffle):
    """``(N, f1 f2 C, H, W)`` as ``(N, C, f1 H, f2 W)``."""


class PixelShuffle3D(_PixelShuffle):
    """``(N, f1 f2 f3 C, D, H, W)`` as ``(N, C, f1 D, f2 H, f3 W)``."""

    _count = 3
