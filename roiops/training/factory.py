"""Classes that are made by name (metrics, initializers, optimizers), and whose arguments are a row."""

import inspect
import json

from ..errors import InputError, ParamError, RegistryError, nearest

__all__ = ["REQUIRED", "Declared", "Factory"]

#: The default of an argument that must be given.
REQUIRED = inspect.Parameter.empty
_OTHERS = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


class Declared:
    """Mixed into a class before its base: ``class Adamax(Declared, Optimizer, takes={"beta1": 0.9})``.

    The arguments are a row: names in order, with defaults, or with a list of all choices, the default first.
    The base gets those that it takes, and any others that are given by name. ``_set_up`` gets those that the
    base does not name. It may be left out: each then becomes an attribute, whose name begins with the base's
    ``_begins`` if it has that: ``alpha`` is ``_alpha`` in Gluon's blocks.
    """

    _row = inspect.Signature([_OTHERS])
    _of_base = _own = ()
    _choices: dict = {}

    def __init_subclass__(cls, takes=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if takes is None:
            return
        named = inspect.signature(super().__init__).parameters
        keeps_any = any(each.kind is each.VAR_KEYWORD for each in named.values())
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        cls._choices = {name: each for name, each in takes.items() if isinstance(each, list)}
        defaults = takes | {name: each[0] for name, each in cls._choices.items()}
        given = [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]
        # A base that keeps whatever it is given, to be made again from it, is not to be given anything else.
        others = [] if keeps_any or named.keys() <= {"self", *takes} else [_OTHERS]
        cls._row = cls.__signature__ = inspect.Signature([*given, *others])
        cls._of_base = [name for name in takes if keeps_any or name in named]
        cls._own = [name for name in takes if name not in named]

    def __init__(self, *args, **kwargs):
        try:
            bound = self._row.bind(*args, **kwargs)
        except TypeError as error:
            message = _unknown(type(self), kwargs) or f"{type(self).__name__}: {error}"
            raise InputError(message) from None
        bound.apply_defaults()
        given = bound.arguments
        others = given.pop("kwargs", {})
        for name, choices in self._choices.items():
            if given[name] not in choices:
                *firsts, last = map(repr, choices)
                wanted = f"{', '.join(firsts)} or {last}"
                raise ParamError(f"{type(self).__name__}: {name} must be {wanted}, got {given[name]!r}")
        if others:
            declares = next((each for each in type(self).__mro__ if "__signature__" in vars(each)), None)
            if declares and (message := _unknown(declares, others)):
                raise InputError(message)
        super().__init__(**others, **{name: given[name] for name in self._of_base})
        self._set_up(**{name: given[name] for name in self._own})

    def _set_up(self, **given):
        begins = getattr(self, "_begins", "")
        for name, value in given.items():
            setattr(self, f"{begins}{name}", value)


class Factory:
    """The known subclasses of ``base``, by lower-case name.

    ``kind`` is what errors call such a class, and the key of its name in a configuration dict: ``"metric"``.
    ``instead`` has classes of MXNet's that are not offered, and what to use.
    """

    def __init__(self, base: type, kind: str, instead=None):
        self._base, self._kind = base, kind
        self._instead = {name.lower(): advice for name, advice in (instead or {}).items()}
        self.classes: dict[str, type] = {}

    def register(self, klass: type, name: str | None = None) -> type:
        """Make ``klass`` known under its own name, or ``name``; a later one of that name replaces it."""
        if not (isinstance(klass, type) and issubclass(klass, self._base)):
            raise RegistryError(f"register: {klass!r} is not a subclass of {self._base.__name__}")
        self.classes[(name or klass.__name__).lower()] = klass
        return klass

    def alias(self, *names: str):
        """A class decorator that adds further names."""

        def decorate(klass):
            for name in names:
                self.register(klass, name)
            return klass

        return decorate

    def create(self, what=None, *args, **kwargs):
        """An instance of what is named: an instance (returned as it is), a name, JSON or a dict.

        JSON is ``["name", {"parameter": value}]``; a dict holds the name under the kind's own key.
        """
        what = kwargs.pop(self._kind, None) if what is None else what
        if isinstance(what, self._base):
            if args or kwargs:
                raise ParamError(f"{self._kind}: {what!r} is an instance already and takes no arguments")
            return what
        if isinstance(what, dict):
            given = dict(what)
            return self.create(given.pop(self._kind, None), **given)
        if not isinstance(what, str):
            raise ParamError(f"{self._kind}: must be a name or a {self._base.__name__}, got {what!r}")
        if what.lstrip().startswith(("[", "{")):
            try:
                given = json.loads(what)
                name, kwargs = (given, {}) if isinstance(given, dict) else (given[0], dict(given[1]))
            except (ValueError, TypeError, IndexError, RecursionError):
                raise ParamError(
                    f'{self._kind}: JSON must be ["name", {{"parameter": value}}], got {what!r}'
                ) from None
            return self.create(name, **kwargs)
        klass = self.classes.get(what.lower())
        if klass is None:
            if what.lower() in self._instead:
                raise RegistryError(f"{self._kind}: {what!r} is not offered: {self._instead[what.lower()]}")
            raise RegistryError(f"{self._kind}: {what!r} is unknown{nearest(what, self.classes)}")
        try:
            return klass(*args, **kwargs)
        except TypeError:
            message = _unknown(klass, kwargs)
            if message is None:
                raise
            raise ParamError(message) from None


def _unknown(klass: type, given) -> str | None:
    """What to say of the first name that a class is not made with; None where there is none."""
    known = _parameters(klass)
    for name in given:
        if name not in known:
            takes = ", ".join(known) or "none"
            return f"{klass.__name__}: unknown parameter {name!r}{nearest(name, known)} (it takes: {takes})"
    return None


def _parameters(klass: type) -> list[str]:
    """What a class is made with, by name, with what it passes on to its bases."""
    names: list[str] = []
    for each in klass.__mro__:
        if "__signature__" in vars(each):
            parameters = [*vars(each)["__signature__"].parameters.values()]
        elif "__init__" in vars(each):
            _, *parameters = inspect.signature(each.__init__).parameters.values()
        else:
            continue
        names += [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return list(dict.fromkeys(names))
