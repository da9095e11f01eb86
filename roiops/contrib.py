"""``mx.contrib``: the operators of ``sym.contrib`` and ``nd.contrib`` under MXNet's older names."""

from .ndarray import contrib as ndarray
from .symbol import contrib as symbol

nd = ndarray
sym = symbol

__all__ = ["nd", "ndarray", "sym", "symbol"]
