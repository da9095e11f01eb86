"""Every registered operator on regions of interest as a function on tensors, made from its declaration."""

import functools

import torch

from .. import registry
from ..errors import MXNetError
from . import library
from .functions import one_node
from .operators import call

__all__ = ["namespace"]

_FRONT = registry.FrontEnd("torch.Tensor", "torch.Tensor", ())
_KIND = "a torch.Tensor"


def _is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


def _invoke(prop_class, args, kwargs):
    positional, named, params = registry.split_arguments(prop_class, args, kwargs, _is_tensor, _KIND)
    if prop_class.variadic:
        return call(prop_class, [*positional, *named.values()], params)
    names = prop_class.arguments
    tensors = registry.bind_inputs(prop_class.label, names, positional, named)
    if len(tensors) < 2:
        raise MXNetError(f"{prop_class.label}: the inputs are {', '.join(names)}, got {len(tensors)}")
    return call(prop_class, list(tensors.values()), params)


@functools.cache
def _function(name: str):
    return one_node(registry.make_function(name, _invoke, "roiops.torch.op", _FRONT))


def namespace(module: str, prefix: str = ""):
    """``__getattr__`` and ``__dir__`` of a module that holds the operators called ``prefix`` and more."""

    def names():
        library.register_all()  # those that have come since
        every = [name for name in registry.list_operators(aliases=True) if name.startswith(prefix)]
        return {n.removeprefix(prefix): n for n in every if registry.get(n).name in library.OPERATORS}

    def getattr_(name):
        found = names()
        if name not in found:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _function(found[name])

    def dir_():
        return sorted(name for name in names() if prefix or not name.startswith("_"))

    return getattr_, dir_
