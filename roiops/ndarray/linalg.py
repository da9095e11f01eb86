"""``nd.linalg``: the operators of linear algebra, whose names start with ``_linalg_``."""

from .functions import namespace

__getattr__, __dir__ = namespace(__name__, "_linalg_")
