"""``mx.contrib``: the operators of ``sym.contrib`` and ``nd.contrib`` under MXNet's older names."""

from ..graph.functions import contrib as symbol
from ..ndarray import contrib as ndarray

nd = ndarray
sym = symbol

__all__ = ["nd", "ndarray", "sym", "symbol"]
