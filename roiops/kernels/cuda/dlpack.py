"""Reading and relabelling DLPack capsules, which know bfloat16 where NumPy and most of CuPy do not.

The layouts are those of dlpack.h. A capsule that is read is not taken over: it stays valid, and its memory
lives, for as long as somebody holds it.
"""

import ctypes
import math
from typing import NamedTuple

import numpy as np

from ...dtypes import BFLOAT16, stored
from ...errors import DTypeError

_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
_BFLOAT = 4
_READ_ONLY = 1  # of a versioned tensor's flags


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


# Prototypes of our own: those of ctypes.pythonapi are shared with whoever else sets their types.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Memory(NamedTuple):
    """Where an array is and how it lies there; ``dtype`` may be ``BFLOAT16``."""

    address: int
    shape: tuple
    strides: tuple  # in bytes
    dtype: np.dtype
    read_only: bool
    owner: object  # what keeps the memory alive

    @property
    def interface(self) -> dict:
        """The same as NumPy's and CUDA's array interfaces say it."""
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": stored(self.dtype).str,
            "data": (self.address, self.read_only),
            "version": 3,
        }


def _open(capsule) -> tuple[_Tensor, int]:
    """The tensor of a capsule that nobody has taken over yet, and its flags."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise BufferError(f"from_dlpack: version {versioned.major} of DLPack is not known")
        return versioned.tensor, versioned.flags
    return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0


def read(capsule) -> Memory:
    """The memory that a capsule describes."""
    tensor, flags = _open(capsule)
    given = tensor.dtype
    if (given.code, given.bits) == (_BFLOAT, 16):
        dtype = BFLOAT16
    elif given.code in _KINDS and given.bits in (8, 16, 32, 64) and given.lanes == 1:
        dtype = np.dtype(f"{_KINDS[given.code]}{given.bits // 8}")
    else:
        raise DTypeError(
            f"from_dlpack: elements of DLPack's type code {given.code} with {given.bits} bits and "
            f"{given.lanes} lanes are not known"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim])
    else:  # older producers leave them out where the elements are in order
        strides = tuple(math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape)))
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, shape, strides, dtype, bool(flags & _READ_ONLY), capsule)


def label_bfloat16(capsule) -> None:
    """Have a new capsule of uint16 say that these are the bits of bfloat16."""
    tensor, _ = _open(capsule)
    tensor.dtype.code = _BFLOAT
