"""The exception family: what operators, graphs, models and files refuse is an :class:`MXNetError`.

The subclasses also derive from the built-in a caller would expect, so ``except ValueError`` works.
"""

__all__ = [
    "DTypeError",
    "DataError",
    "DeviceError",
    "FormatError",
    "GraphError",
    "InputError",
    "MXNetError",
    "MissingFileError",
    "NotOfferedError",
    "OutOfBoundsError",
    "ParamError",
    "RegistryError",
    "SettingsError",
    "ShapeError",
    "nearest",
    "without",
]


class MXNetError(RuntimeError):
    """Base of all errors raised by the library, under the name that MXNet users catch."""


class ParamError(MXNetError, ValueError):
    """An operator parameter is unknown, missing, of the wrong type or out of range."""


class ShapeError(MXNetError, ValueError):
    """An array has the wrong shape, or a shape cannot be inferred."""


class DTypeError(MXNetError, TypeError):
    """An array has the wrong dtype, or a dtype cannot be inferred."""


class DataError(MXNetError, ValueError):
    """An array's contents are not what the operator can take, such as a batch index out of range."""


class OutOfBoundsError(DataError, IndexError):
    """An index that an array holds leaves the axis that it counts along."""


class DeviceError(MXNetError):
    """A device is missing, or an operator cannot run on the one asked for."""


class RegistryError(MXNetError, AttributeError):
    """An operator name is unknown, or registered twice."""


class NotOfferedError(MXNetError, AttributeError):
    """A part of MXNet is not here; the text says what to do instead."""


class GraphError(MXNetError, ValueError):
    """A symbolic graph is not put together the way an operation needs."""


class InputError(MXNetError, TypeError):
    """An argument is of a type that cannot be taken, such as a list in place of an array."""


class SettingsError(MXNetError, ValueError):
    """What was asked for does not fit the model, whatever picture it is given."""


class MissingFileError(MXNetError, FileNotFoundError):
    """A file is not there."""


class FormatError(MXNetError, ValueError):
    """A symbol JSON or .params file is damaged or of an unknown form."""


def nearest(name: str, known, part=str) -> str:
    """``"; did you mean 'x'?"`` for the closest names in ``known``, in any case, or an empty string.

    Only what ``part`` gives of a name is compared. Names with ``_`` first are for those who ask for one.
    """
    import difflib  # imported on the error path only: importing roiops stays fast

    wanted = part(name).lower()
    spellings: dict[str, list[str]] = {}
    for each in dict.fromkeys(map(str, known)):
        if name.startswith("_") or not each.startswith("_"):
            spellings.setdefault(part(each).lower(), []).append(each)
    words = difflib.get_close_matches(wanted, spellings, n=3, cutoff=0.66)
    if len(name) > 2 and not words:  # "prob1" is short for "prob1_output"
        words = [word for word in spellings if word.startswith(wanted)]
    close = [each for word in words for each in spellings[word]][:3]
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""


def without(module: str, instead: dict[str, str]):
    """The ``__getattr__`` of a module that lacks names of MXNet's: it says what to do ``instead``."""

    def __getattr__(name: str):
        if name in instead:
            raise NotOfferedError(f"mx.{module}.{name} is not offered: {instead[name]}")
        raise AttributeError(f"module 'roiops.{module}' has no attribute {name!r}")

    return __getattr__
