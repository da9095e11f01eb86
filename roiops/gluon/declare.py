"""Blocks whose arguments are a row: their names in order, with defaults."""

import inspect

from .hybrid import HybridBlock

__all__ = ["REQUIRED", "Declared", "Layer"]

#: The default of an argument that must be given.
REQUIRED = inspect.Parameter.empty
_OTHERS = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


class Declared:
    """Mixed into blocks, before :class:`Block`: ``class ELU(Declared, HybridBlock, takes={"alpha": 1.0})``.

    ``_set_up`` gets the arguments by name, those of :class:`Block` apart. It may be left out: each argument
    then becomes an attribute, ``alpha`` being ``_alpha``.
    """

    _row = inspect.Signature([_OTHERS])

    def __init_subclass__(cls, takes=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if takes is not None:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            given = [inspect.Parameter(name, kind, default=value) for name, value in takes.items()]
            cls._row = cls.__signature__ = inspect.Signature([*given, _OTHERS])

    def __init__(self, *args, **kwargs):
        bound = self._row.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        super().__init__(**given.pop("kwargs"))
        self._set_up(**given)

    def _set_up(self, **given):
        for name, value in given.items():
            setattr(self, f"_{name}", value)


class Layer(Declared, HybridBlock):
    """A layer that is one operator: its name, its parameters, and what the graph calls its node."""

    _op_name, _kwargs, _node = "", {}, "fwd"
    #: The activation that follows.
    act = None

    def _learn(self, name, shape, init, **given):
        """Make a parameter of its own; what is 0 in its shape follows from the first batch."""
        given = {"shape": shape, "init": init, "allow_deferred_init": True, **given}
        setattr(self, name, self.params.get(name, **given))

    def hybrid_forward(self, F, x, *learned, **by_name):
        out = getattr(F, self._op_name)(x, *learned, *by_name.values(), name=self._node, **self._kwargs)
        return out if self.act is None else self.act(out)
