"""Blocks whose arguments are a row: their names in order, with defaults."""

import inspect

__all__ = ["Declared", "block"]

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_OTHERS = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


class Declared:
    """Mixed into a base of blocks: ``_set_up`` gets the arguments by name, those of :class:`Block` apart."""

    _row: inspect.Signature

    def __init__(self, *args, **kwargs):
        bound = self._row.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        super().__init__(**given.pop("kwargs"))
        self._set_up(**given)


def block(name: str, base: type, text: str, module: str, *, required=(), members=None, **defaults) -> type:
    """A block of these arguments, without and with defaults, which ``base`` knows what to do with."""
    first = [inspect.Parameter(each, _POSITIONAL) for each in required]
    more = [inspect.Parameter(each, _POSITIONAL, default=value) for each, value in defaults.items()]
    signature = inspect.Signature([*first, *more, _OTHERS])
    members = {"__doc__": text, "__module__": module, "_row": signature, **(members or {})}
    members["__signature__"] = signature
    return type(name, (base,), members)
