"""Layers that are a row: an operator with its parameters, and classes made from tables."""

from ..training.factory import Declared
from .block import Block
from .hybrid import HybridBlock

__all__ = ["Layer", "block_class"]


def block_class(module: str, name: str, base: type, text: str, takes: dict, **members) -> type:
    """The class of a row: its module, name, base, docstring and arguments."""
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
            return self._op_name, self._kwargs, [each.data(ctx).data for each in self._reg_params.values()]
        except RuntimeError:  # not initialised, or not on this device
            return None

    def hybrid_forward(self, F, x, *learned, **by_name):
        out = getattr(F, self._op_name)(x, *learned, *by_name.values(), name=self._node, **self._kwargs)
        return out if self.act is None else self.act(out)


_OWN = Block.__call__, HybridBlock.forward, Layer.hybrid_forward
