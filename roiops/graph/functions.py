"""Symbols: build a graph from operators, look at it, bind it.

Every registered operator is a function here (``sym.Convolution``, ``sym.contrib.ROIAlign``), made from its
declaration when it is first asked for, so operators of your own module are here as well.
"""

import functools as _functools
from types import ModuleType as _ModuleType

from .. import registry as _registry
from . import random
from . import symbol as _symbol
from .naming import AttrScope, NameManager, Prefix
from .symbol import *  # noqa: F403

__all__ = ["AttrScope", "NameManager", "Prefix", "contrib", "image", "linalg", "random", "sparse"]
__all__ += _symbol.__all__


_PUBLIC_NAME = "roiops.symbol"

_FRONT = _registry.FrontEnd(
    "Symbol",
    "Symbol",
    (
        ("name", "str, optional", "name of the node; the operator's name and a number unless given"),
        ("attr", "dict of str, optional", "further attributes of the node"),
    ),
)


@_functools.cache
def _function(prop, name: str, module: str):
    return _registry.make_function(name, _functools.partial(_symbol.invoke, hint=name), module, _FRONT)


def _namespace(module: str, prefix: str = ""):
    return _registry.namespace(module, prefix, lambda name: _function(_registry.get(name), name, module))


def _module(name: str, prefix: str = "") -> _ModuleType:
    """A module of the operators whose registered names start with ``prefix``: ``sym.contrib``."""
    module = _ModuleType(name)
    module.__getattr__, module.__dir__ = _namespace(name, prefix)
    return module


contrib = _module(f"{_PUBLIC_NAME}.contrib", "_contrib_")
#: MXNet's operators for sparse arrays, by the same names as those for dense ones, which they are here.
sparse = _module(f"{_PUBLIC_NAME}.sparse")
image = _module(f"{_PUBLIC_NAME}.image", "_image_")
linalg = _module(f"{_PUBLIC_NAME}.linalg", "_linalg_")
contrib.rand_zipfian = random.rand_zipfian
_internal = op = _module(_PUBLIC_NAME)

__getattr__, _operators = _namespace(_PUBLIC_NAME)


def __dir__():
    return sorted({*__all__, *_operators()})
