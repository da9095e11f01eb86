"""Automatic names of nodes and attributes given to every node of a block."""

import threading

__all__ = ["AttrScope", "NameManager", "Prefix"]

_local = threading.local()

#: Attributes that are stored as ``__lr_mult__`` but may be asked for and given as ``lr_mult``.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


def hidden_key(key: str) -> str:
    """The name under which an attribute is stored."""
    return f"__{key}__" if key in HIDDEN_KEYS else key


class Scoped:
    """Something of which the innermost ``with`` block's is current."""

    def __enter__(self):
        stack = getattr(_local, self._stack, None)
        if stack is None:
            stack = []
            setattr(_local, self._stack, stack)
        stack.append(self)
        return self

    def __exit__(self, *exc):
        getattr(_local, self._stack).pop()

    @classmethod
    def current(cls):
        stack = getattr(_local, cls._stack, None)
        if not stack:
            stack = [cls._default()]
            setattr(_local, cls._stack, stack)
        return stack[-1]


class NameManager(Scoped):
    """Gives nodes without a name ``<operator><number>``, counting each operator from 0."""

    _stack = "names"

    def __init__(self):
        self._counters: dict[str, int] = {}

    @staticmethod
    def _default():
        return NameManager()

    def get(self, name: str | None, hint: str) -> str:
        """``name``, or a new one made from ``hint`` where there is none."""
        if name:
            return name
        count = self._counters.get(hint, 0)
        self._counters[hint] = count + 1
        return f"{hint}{count}"


class Prefix(NameManager):
    """A name manager that puts ``prefix`` before every name, given or automatic."""

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


class AttrScope(Scoped):
    """Attributes for every node made within the block: ``with AttrScope(ctx_group="dev1"): ...``."""

    _stack = "attributes"

    def __init__(self, **attributes: str):
        for key, value in attributes.items():
            if not isinstance(value, str):
                raise ValueError(f"AttrScope: attribute {key} must be a string, got {value!r}")
        self._own = {hidden_key(k): v for k, v in attributes.items()}
        self._all = dict(self._own)

    @staticmethod
    def _default():
        return AttrScope()

    def __enter__(self):
        self._all = {**AttrScope.current()._all, **self._own}
        return super().__enter__()

    def get(self, attributes: dict | None) -> dict[str, str]:
        """The scope's attributes and ``attributes``, which win."""
        return {**self._all, **{hidden_key(k): v for k, v in (attributes or {}).items()}}
