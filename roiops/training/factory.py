"""Classes that are made by name: how metrics, initializers and optimizers register and are created."""

import inspect
import json

from ..errors import ParamError, RegistryError, nearest

__all__ = ["Factory"]


class Factory:
    """The known subclasses of ``base``, by lower-case name.

    Parameters
    ----------
    base : type
        What every registered class derives from.
    kind : str
        What errors call such a class, and the key of its name in a configuration dict: ``"metric"``.
    """

    def __init__(self, base: type, kind: str):
        self._base, self._kind = base, kind
        self._classes: dict[str, type] = {}

    def register(self, klass: type, name: str | None = None) -> type:
        """Make ``klass`` known under its own name, or ``name``; a later one of that name replaces it."""
        if not (isinstance(klass, type) and issubclass(klass, self._base)):
            raise RegistryError(f"register: {klass!r} is not a subclass of {self._base.__name__}")
        self._classes[(name or klass.__name__).lower()] = klass
        return klass

    def alias(self, *names: str):
        """A class decorator that adds further names."""

        def decorate(klass):
            for name in names:
                self.register(klass, name)
            return klass

        return decorate

    def create(self, what, *args, **kwargs):
        """An instance of what is named: an instance (returned as it is), a name, JSON or a dict.

        JSON is ``["name", {"parameter": value}]``; a dict holds the name under the kind's own key.
        """
        if isinstance(what, self._base):
            if args or kwargs:
                raise ParamError(f"{self._kind}: {what!r} is an instance already and takes no arguments")
            return what
        if isinstance(what, dict):
            given = dict(what)
            return self.create(given.pop(self._kind, None), **given)
        if not isinstance(what, str):
            raise ParamError(f"{self._kind}: must be a name or a {self._base.__name__}, got {what!r}")
        if what.lstrip().startswith("["):
            name, kwargs = json.loads(what)
            return self.create(name, **kwargs)
        if what.lstrip().startswith("{"):
            return self.create(json.loads(what))
        klass = self._classes.get(what.lower())
        if klass is None:
            raise RegistryError(f"{self._kind}: {what!r} is unknown{nearest(what, self._classes)}")
        try:
            return klass(*args, **kwargs)
        except TypeError:
            known = _parameters(klass)
            unknown = next((name for name in kwargs if name not in known), None)
            if unknown is None:
                raise
            takes = f"it takes: {', '.join(known) or 'none'}"
            raise ParamError(
                f"{klass.__name__}: unknown parameter {unknown!r}{nearest(unknown, known)} ({takes})"
            ) from None


def _parameters(klass: type) -> list[str]:
    """What a class is made with, by name, with what it passes on to its bases."""
    names: list[str] = []
    for each in klass.__mro__:
        if "__init__" in vars(each):
            _, *parameters = inspect.signature(each.__init__).parameters.values()
            names += [
                one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            ]
            if not any(one.kind is one.VAR_KEYWORD for one in parameters):
                break
    return names
