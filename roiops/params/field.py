"""What one operator parameter may be: its kind, default, range and description.

A *kind* turns a Python value or one of MXNet's strings into the canonical Python value (``parse``), turns
that back into MXNet's string (``format``), and says in words what it takes (``text``). ``int``, ``float``,
``bool`` and ``str`` are kinds; :func:`enum`, :func:`shape`, :func:`floats`, :data:`dtype` and
:func:`optional` make the others.
"""

import dataclasses
import math
import numbers
import re
from typing import Any

import numpy as np

from ..dtypes import NAMES, number_type
from ..errors import DTypeError

__all__ = ["MOST_ARRAYS", "REQUIRED", "Field", "dtype", "enum", "floats", "optional", "shape"]


class _Required:
    def __repr__(self):
        return "required"


#: The default of a parameter that has none.
REQUIRED = _Required()

#: The most inputs or outputs that an operator may have: a bound on what a forged file can ask for.
MOST_ARRAYS = 1 << 16


class _Kind:
    text = ""
    #: A small value, for calls that are only to run; None where there is none.
    example: object = None

    def parse(self, value):
        """The canonical value, or ``ValueError`` where ``value`` is not of this kind."""
        raise NotImplementedError

    def format(self, value) -> str:
        """MXNet's string for a value."""
        return str(value)

    def advice(self, value) -> str:
        """What to say to somebody who gave a value that is not of this kind; empty for nothing."""
        return ""


class _Int(_Kind):
    text = "int"
    example = 1

    def parse(self, value):
        number = self._read(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError
        return number

    def _read(self, value) -> int:
        if isinstance(value, str):
            text = value.strip()
            if text in ("True", "False"):  # MXNet's own front end lets a bool stand for an int
                return int(text == "True")
            return int(re.sub(r"[lL]$", "", text))
        if isinstance(value, numbers.Integral | np.bool_):
            return int(value)
        if isinstance(value, numbers.Real) and math.isfinite(value) and value == int(value):
            return int(value)
        raise ValueError


class _Float(_Kind):
    text = "float"
    example = 1.0

    def parse(self, value):
        if isinstance(value, str):
            return float(re.sub(r"[fF]$", "", value.strip()) if "inf" not in value.lower() else value)
        if isinstance(value, numbers.Real):
            return float(value)
        raise ValueError

    def format(self, value):
        return repr(value)


class _Bool(_Kind):
    text = "bool"
    example = False

    def parse(self, value):
        if isinstance(value, str):
            text = value.strip().lower()
            if text in ("true", "1"):
                return True
            if text in ("false", "0"):
                return False
            raise ValueError
        if isinstance(value, bool | np.bool_) or (isinstance(value, numbers.Integral) and value in (0, 1)):
            return bool(value)
        raise ValueError


class _Str(_Kind):
    text = "str"
    example = ""

    def parse(self, value):
        if isinstance(value, str):
            return value
        raise ValueError


class device(_Str):
    """The name of a device, or the :class:`Context` that has it."""

    def parse(self, value):
        return super().parse(str(value) if hasattr(value, "device_type") else value)


class enum(_Kind):
    """One of a few words.

    They may also come as the old integer codes in ``codes``. ``elsewhere`` has words that users of other
    libraries try, and what to say to them.
    """

    def __init__(self, *words: str, codes: dict | None = None, elsewhere: dict[str, str] | None = None):
        self.words = words
        self.example = words[0]
        self.elsewhere = elsewhere or {}
        self.codes = codes or {}
        self.text = "{" + ", ".join(repr(w) for w in words) + "}"

    def parse(self, value):
        value = self.codes.get(value, value)
        if value not in self.words:
            raise ValueError
        return value

    def advice(self, value):
        text = self.elsewhere.get(value) if isinstance(value, str) else None
        return f"; {text}" if text else ""


_TUPLE = re.compile(r"^[(\[]\s*(.*?)\s*,?\s*[)\]]$")


def _items(value) -> list:
    """The items of a tuple given as a Python sequence, as MXNet's string, or as one number."""
    if isinstance(value, str):
        match = _TUPLE.match(value.strip())
        text = match.group(1) if match else value.strip()
        if not match and not text:
            raise ValueError
        return [item.strip() for item in text.split(",")] if text else []
    if isinstance(value, numbers.Number):
        return [value]
    return list(value)


class shape(_Kind):
    """A tuple of whole numbers, of ``ndim`` entries (a number, several numbers, or None for any).

    A single number stands for a tuple of one, or, where ``ndim`` is one fixed number and ``repeat`` is
    true, for that number repeated. ``none_items`` allows None for an entry, as ``slice`` needs.
    """

    item = _Int()
    noun = "int"

    def __init__(self, ndim=None, *, repeat: bool = False, none_items: bool = False):
        self.ndims = (ndim,) if isinstance(ndim, int) else ndim
        self.example = (self.item.example,) * (self.ndims or (1,))[0]
        self.repeat = repeat
        self.none_items = none_items
        self.text = f"tuple of {self.noun}"
        if self.ndims:
            *others, last = map(str, self.ndims)
            words = f"{', '.join(others)} or {last}" if others else last
            self.text = f"{f'{self.noun} or ' if repeat else ''}tuple of {words} {self.noun}s"

    def parse(self, value):
        if value is None:
            raise ValueError
        single = not isinstance(value, str) and isinstance(value, numbers.Number)
        single = single or (isinstance(value, str) and not _TUPLE.match(value.strip()))
        items = tuple(self._parse_item(item) for item in _items(value))
        if single and self.repeat and self.ndims and len(items) == 1:
            items *= self.ndims[0]
        if self.ndims and len(items) not in self.ndims:
            raise ValueError
        return items

    def _parse_item(self, item):
        if self.none_items and (item is None or item == "None"):
            return None
        return self.item.parse(item)

    def format(self, value):
        return "(" + ", ".join(str(item) for item in value) + (",)" if len(value) == 1 else ")")


class floats(shape):
    """A tuple of floats, of ``ndim`` entries or of any number."""

    item = _Float()
    noun = "float"


class _DType(_Kind):
    text = "dtype"
    example = "float32"

    def parse(self, value):
        if isinstance(value, str):
            value = value.strip()
            if value.isdigit():  # very old files hold MXNet's type code
                value = NAMES[int(value)] if int(value) < len(NAMES) else None
        if value is None:
            raise ValueError
        try:
            return number_type(self.text, value)
        except DTypeError:
            raise ValueError from None

    def format(self, value):
        return value.name

    def advice(self, value):
        return f"; it is one of {', '.join(NAMES)}"


#: The kind of a dtype parameter; values are ``numpy.dtype``.
dtype = _DType()


class optional(_Kind):
    """Another kind, or None."""

    def __init__(self, kind):
        self.kind = _as_kind(kind)
        self.text = f"{self.kind.text} or None"

    def parse(self, value):
        if value is None or (isinstance(value, str) and value.strip() in ("None", "")):
            return None
        return self.kind.parse(value)

    def format(self, value):
        return "None" if value is None else self.kind.format(value)


_BUILTIN = {int: _Int(), float: _Float(), bool: _Bool(), str: _Str()}


def _as_kind(kind) -> _Kind:
    return kind if isinstance(kind, _Kind) else _BUILTIN[kind]


@dataclasses.dataclass(eq=False, repr=False, slots=True)
class Field:
    """The declaration of one parameter.

    Parameters
    ----------
    kind : int, float, bool, str, or a kind of this module
        What the value is.
    default : object, optional
        The value when none is given; without it the parameter is required.
    range : (low, high), optional
        Closed bounds, either of which may be None. Entries of a tuple are each held to them.
    above, below : number, optional
        Open bounds.
    nonzero : bool
        Whether 0 is refused.
    aliases : tuple of str
        Other names under which the parameter is accepted.
    doc : str
        One sentence for the generated documentation.
    """

    kind: Any
    default: Any = REQUIRED
    _: dataclasses.KW_ONLY
    range: tuple | None = None
    above: float | None = None
    below: float | None = None
    nonzero: bool = False
    aliases: tuple[str, ...] = ()
    doc: str = ""
    name: str = dataclasses.field(default="", init=False)
    #: What is wrong with the declaration, for the class that it stands in to tell.
    fault: str = dataclasses.field(default="", init=False)

    def __post_init__(self):
        kind = self.kind
        try:
            self.kind = _as_kind(kind)
        except (KeyError, TypeError):
            self.fault = (
                "the kind must be int, float, bool, str or one of roiops.params, such as enum, shape and "
                f"optional, got {kind!r}"
            )
            if isinstance(kind, tuple | list | set) and all(isinstance(word, str) for word in kind):
                self.fault += f"; enum({', '.join(map(repr, kind))}) is a choice of words"
        if self.required or self.fault:
            return
        try:
            self.default = self.parse(self.default)
        except ValueError:
            self.fault = f"the default must be {self.need}, got {self.default!r}"

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def need(self) -> str:
        """What a value must be, in words: ``"float in [0, 1]"``."""
        words = self.kind.text
        low, high = self.range or (None, None)
        if low is not None and high is not None:
            words += f" in [{low}, {high}]"
        elif low is not None:
            words += f", {low} or more"
        elif high is not None:
            words += f", at most {high}"
        if self.above is not None:
            words += f" above {self.above}"
        if self.below is not None:
            words += f" below {self.below}"
        if self.nonzero:
            words += ", not 0"
        return words

    @property
    def example(self):
        """A small value that it takes: that of its kind, or its lower bound."""
        small = self.kind.example
        try:
            return self.parse(small)
        except ValueError:
            low = (self.range or (None,))[0]
            return self.parse((low,) * len(small) if isinstance(small, tuple) else low)

    def parse(self, value):
        """The checked canonical value; ``ValueError`` where ``value`` cannot be one."""
        if self.default == () and (value is None or (isinstance(value, str) and value.strip() == "None")):
            return ()
        try:
            parsed = self.kind.parse(value)
        except (TypeError, OverflowError):
            raise ValueError from None
        for item in parsed if isinstance(parsed, tuple) else (parsed,):
            if isinstance(item, int | float) and not isinstance(item, bool):
                self._check(item)
        return parsed

    def _check(self, number) -> None:
        low, high = self.range or (None, None)
        within = (
            (low is None or number >= low)
            and (high is None or number <= high)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )
        if not within or (self.nonzero and number == 0):
            raise ValueError

    def format(self, value) -> str:
        """MXNet's string for a value."""
        return self.kind.format(value)
