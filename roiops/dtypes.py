"""The dtypes of arrays, in the order of the numbers that MXNet's files hold for them, and bfloat16."""

import numpy as np

from .errors import DTypeError

__all__ = [
    "BFLOAT16",
    "DTYPES",
    "NAMES",
    "NUM_BEFORE_2",
    "as_scalar",
    "name_of",
    "number_type",
    "stored",
    "wide",
]

NAMES = (
    "float32",
    "float64",
    "float16",
    "uint8",
    "int32",
    "int8",
    "int64",
    "bool",
    "int16",
    "uint16",
    "uint32",
    "uint64",
)
#: How many of them there were before MXNet 2.0.
NUM_BEFORE_2 = 8

DTYPES = frozenset(map(np.dtype, NAMES))

#: bfloat16. NumPy has none, so arrays hold its bits as uint16, and this dtype says what they mean.
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def number_type(what: str, dtype) -> np.dtype:
    """The dtype that a user gives for ``what``, in this machine's order of bytes; one that MXNet has."""
    try:
        found = np.dtype(dtype).newbyteorder("=")
    except (TypeError, SyntaxError):  # the latter of "i4,(2"
        found = None
    if found not in DTYPES:
        got = repr(dtype) if found is None else found
        raise DTypeError(f"{what} must be one of {', '.join(NAMES)}, got {got}")
    return found


def name_of(dtype) -> str:
    """How users call a dtype."""
    dtype = np.dtype(dtype)
    return "bfloat16" if dtype == BFLOAT16 else dtype.name


def stored(dtype) -> np.dtype:
    """The dtype of an array that holds elements of ``dtype``."""
    dtype = np.dtype(dtype)
    return BFLOAT16["bfloat16"] if dtype == BFLOAT16 else dtype


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which numbers of ``dtype`` are computed and added up: float32 for float16."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def as_scalar(number: float, dtype) -> np.ndarray:
    """A number in the dtype of an array that it meets, cast as in C: -1 is 255 among uint8."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        wide = np.iinfo(np.int64 if dtype.itemsize == 8 else np.int32)
        fits = wide.min <= number < max(wide.max, np.iinfo(dtype).max) + 1
        whole = int(number) if fits else wide.min  # as processors have it, of NaN and infinity, too
        return np.array(whole & (2**64 - 1), np.uint64).astype(dtype)
    with np.errstate(over="ignore"):  # infinite, where it is beyond the dtype
        return np.array(number, dtype)
