"""Symbols: build a graph from operators, look at it, bind it.

Every registered operator is a function here (``sym.Convolution``, ``sym.contrib.ROIAlign``), made from its
declaration when it is first asked for, so operators of your own module are here as well.
"""

import functools as _functools

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


def _function(name: str, module: str):
    return _registry.make_function(name, _functools.partial(_symbol.invoke, hint=name), module, _FRONT)


class _Namespace:
    """Operators whose registered name starts with a prefix, without it: ``sym.contrib``."""

    def __init__(self, prefix: str, module: str):
        self._prefix = prefix
        self.__name__ = module

    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        if name.startswith("__") or _registry.find(self._prefix + name) is None:
            _registry.get(self._prefix + name)  # raises, with near names
        function = _function(self._prefix + name, self.__name__)
        setattr(self, name, function)
        return function

    def __dir__(self):
        every = _registry.list_operators(aliases=True)
        return sorted(n[len(self._prefix) :] for n in every if n.startswith(self._prefix))


contrib = _Namespace("_contrib_", _PUBLIC_NAME + ".contrib")
#: MXNet's operators for sparse arrays, by the same names as those for dense ones, which they are here.
sparse = _Namespace("", _PUBLIC_NAME + ".sparse")
image = _Namespace("_image_", _PUBLIC_NAME + ".image")
linalg = _Namespace("_linalg_", _PUBLIC_NAME + ".linalg")
contrib.rand_zipfian = random.rand_zipfian
_internal = op = _Namespace("", _PUBLIC_NAME)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    function = _function(name, _PUBLIC_NAME)
    globals()[name] = function
    return function


def __dir__():
    return sorted({*__all__, *(n for n in _registry.list_operators(aliases=True) if not n.startswith("_"))})
