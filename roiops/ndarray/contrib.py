"""``nd.contrib``: the operators whose names start with ``_contrib_``."""

from .functions import namespace

__getattr__, __dir__ = namespace(__name__, "_contrib_")
