"""``nd._internal``: the operators whose names start with an underscore, under those names."""

from .functions import namespace

__getattr__, __dir__ = namespace(__name__)
