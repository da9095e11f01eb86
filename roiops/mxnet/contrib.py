"""``mx.contrib``: the operators of ``sym.contrib`` and ``nd.contrib`` under MXNet's older names."""

import types

from .. import autograd  # MXNet's autograd before 1.0 had these functions already
from ..graph.functions import contrib as symbol
from ..ndarray import contrib as ndarray

nd = ndarray
sym = symbol

__all__ = ["amp", "autograd", "nd", "ndarray", "quantization", "sym", "symbol"]


class _Absent(types.ModuleType):
    """A part of MXNet that scripts import whether or not they use it; it has nothing but an error."""

    def __init__(self, name, advice):
        super().__init__(f"{__name__}.{name}")
        self._advice = advice

    def __getattr__(self, name):
        raise AttributeError(f"mx.{self.__name__.partition('.mxnet.')[2]}.{name}: {self._advice}")


amp = _Absent(
    "amp",
    "automatic mixed precision is not offered; train in float32, or cast the whole network: "
    "net.cast('float16')",
)
vars(amp)["amp"] = amp  # scripts import it from either
quantization = _Absent(
    "quantization", "quantisation is not offered; run the network in float32 or in float16"
)
