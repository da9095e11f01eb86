"""Blocks whose arguments are a row: their names in order, with defaults."""

import inspect

__all__ = ["REQUIRED", "Declared"]

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
