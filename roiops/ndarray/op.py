"""``nd.op``, or ``nd._internal``: registered operators, without the functions that ``nd`` adds to them."""

from .functions import namespace

__getattr__, __dir__ = namespace(__name__)
