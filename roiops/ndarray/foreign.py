"""Arrays of other libraries (PyTorch, CuPy, JAX): what a call takes, and gives back as its caller's kind.

They share memory through DLPack, or through CUDA's array interface. Work on a GPU is queued on the stream
that is current to the caller's library.
"""

import contextlib
import sys

import numpy as np

from ..context import Context
from ..dtypes import BFLOAT16, name_of, stored
from ..errors import DTypeError
from . import device
from .ndarray import DLPACK_CUDA, NDArray, from_dlpack

__all__ = ["Borrowed", "asked_kind", "borrow", "give_back", "is_foreign", "on_stream_of"]


def is_foreign(value) -> bool:
    """Whether ``value`` is an array of another library."""
    if isinstance(value, NDArray | np.ndarray):
        return False
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def asked_kind(values):
    """The array among ``values`` of whose kind the results are to be; None if they are to be NDArrays.

    That is the first of another library, as long as none is an NDArray.
    """
    if any(isinstance(value, NDArray) for value in values):
        return None
    return next(filter(is_foreign, values), None)


def _on_gpu(value) -> bool:
    if hasattr(value, "__dlpack__"):
        return value.__dlpack_device__()[0] in DLPACK_CUDA
    return hasattr(value, "__cuda_array_interface__")


class Borrowed(NDArray):
    """Memory of another library on a GPU, for as long as a call lasts. It may hold the bits of bfloat16."""

    __slots__ = ("element_type", "read_only")

    def __init__(self, source):
        raw, self.element_type, self.read_only = device.shared(source)
        super().__init__(raw, Context("gpu", device.device_of(raw)))


def borrow(value, what: str) -> NDArray:
    """Another library's array as an NDArray over its memory; ``what`` names it in errors."""
    if _on_gpu(value):
        return Borrowed(value)
    if name_of(BFLOAT16) in str(getattr(value, "dtype", "")):
        raise DTypeError(
            f"{what} is bfloat16, which NumPy has not; give float32 or float16 on the CPU, or a GPU's array"
        )
    return from_dlpack(value)


def on_stream_of(value):
    """Work on the stream that is current to the library of ``value``, as a context."""
    return device.on_stream_of(value) if _on_gpu(value) else contextlib.nullcontext()


def _from_dlpack_of(array):
    """``from_dlpack`` of the library that ``array`` is of, or None if it has none."""
    if hasattr(array, "__array_namespace__"):
        return getattr(array.__array_namespace__(), "from_dlpack", None)
    for kind in type(array).__mro__:
        library = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(library, "from_dlpack"):
            return library.from_dlpack
    return None


def give_back(results: list[NDArray], like, *, bfloat16: bool = False) -> list:
    """``results`` as arrays of the library of ``like``; as they are where it takes nothing by DLPack.

    ``bfloat16``: whether what is stored as its bits is bfloat16.
    """
    take = _from_dlpack_of(like)
    if take is None:
        if bfloat16:
            raise DTypeError(
                f"{type(like).__module__}.{type(like).__name__}: bfloat16 can be given back only by DLPack"
            )
        return results
    types = [each.data.dtype for each in results]
    if bfloat16:
        types = [BFLOAT16 if dtype == stored(BFLOAT16) else dtype for dtype in types]
    return [take(device.export(each.data, dtype)) for each, dtype in zip(results, types, strict=True)]
