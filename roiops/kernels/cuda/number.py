"""What kernels store and what they compute with.

float16 and bfloat16 are stored, and computed with as float32. Arrays hold the bits of bfloat16 as uint16.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ...dtypes import BFLOAT16, name_of
from ...errors import DTypeError
from .runtime import device


@device
def _single(x):
    return np.float32(x)


@device
def _double(x):
    return np.float64(x)


@device
def _half(x):
    return np.float16(x)


@device
def _from_bits(bits):
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@device
def _to_bits(x):
    """The nearest bfloat16, ties to even."""
    bits = np.float32(x).view(np.uint32)
    if x != x:
        return np.uint16(0x7FC0)
    tie = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + tie) >> np.uint32(16))


class Kind(NamedTuple):
    """How a kernel treats the elements of one dtype."""

    real: type  # NumPy's type of the numbers computed with
    shared: object  # the same, as the backend declares memory
    read: object  # device function: stored -> real
    write: object  # device function: real -> stored


_KINDS = {
    "float16": Kind(np.float32, numba.float32, _single, _half),
    name_of(BFLOAT16): Kind(np.float32, numba.float32, _from_bits, _to_bits),
    "float32": Kind(np.float32, numba.float32, _single, _single),
    "float64": Kind(np.float64, numba.float64, _double, _double),
}


def kind_of(dtype) -> str:
    """The name under which :func:`computing` knows a dtype; uint16 is taken for the bits of bfloat16."""
    name = name_of(BFLOAT16 if dtype == np.uint16 else dtype)
    if name not in _KINDS:
        raise DTypeError(f"roiops: data on a GPU must be float16, bfloat16, float32 or float64, got {name}")
    return name


@functools.cache
def computing(name: str) -> Kind:
    return _KINDS[name]
