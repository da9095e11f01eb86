"""``nd.image``: the operators of pictures, whose names start with ``_image_``, and what reads no graph.

:mod:`roiops.training.image.by_chance` puts ``resize`` and the ``random_`` functions here.
"""

from types import FunctionType

from .functions import namespace

__getattr__, _operators = namespace(__name__, "_image_")


def __dir__():
    own = (n for n, each in globals().items() if isinstance(each, FunctionType) and n[0] != "_")
    return sorted({*_operators(), *own} - {"namespace"})
