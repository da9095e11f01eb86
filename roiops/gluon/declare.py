"""Blocks whose arguments are a row: their names in order, with defaults."""

from ..training.factory import REQUIRED
from ..training.factory import Declared as _Declared
from .block import Block
from .hybrid import HybridBlock

__all__ = ["REQUIRED", "Declared", "Layer", "made"]


class Declared(_Declared):
    """Mixed into blocks, before :class:`Block`: ``class ELU(Declared, HybridBlock, takes={"alpha": 1.0})``.

    ``_set_up`` gets the arguments by name, those of :class:`Block` apart. It may be left out: each argument
    then becomes an attribute, ``alpha`` being ``_alpha``.
    """

    _begins = "_"

    def _learn(self, name, shape, init, **given):
        """Make a parameter of its own; what is 0 in its shape follows from the first batch."""
        given = {"shape": shape, "init": init, "allow_deferred_init": True, **given}
        setattr(self, name, self.params.get(name, **given))


def made(module: str, name: str, base: type, text: str, takes: dict, **members) -> type:
    """A class of a row: its module, name, base, docstring and arguments."""
    return type(name, (base,), {"__doc__": text, "__module__": module, **members}, takes=takes)


class Layer(Declared, HybridBlock):
    """A layer that is one operator: its name, its parameters, and what the graph calls its node."""

    _op_name, _kwargs, _node = "", {}, "fwd"
    #: The activation that follows.
    act = None

    def _as_operator(self, ctx):
        """Its operator, parameters and arrays, where a call is nothing but a call of that; else None."""
        kind = type(self)
        own = kind.__call__, kind.forward, kind.hybrid_forward
        if self._forward_pre_hooks or self._forward_hooks or self._active or self.act or own != _OWN:
            return None
        try:
            return self._op_name, self._kwargs, [each._data[ctx].data for each in self._reg_params.values()]
        except (TypeError, KeyError):  # not initialised, or not on this device
            return None

    def hybrid_forward(self, F, x, *learned, **by_name):
        out = getattr(F, self._op_name)(x, *learned, *by_name.values(), name=self._node, **self._kwargs)
        return out if self.act is None else self.act(out)


_OWN = Block.__call__, HybridBlock.forward, Layer.hybrid_forward
