"""Arrays for the executor: blocks of bytes that values are views of, and the caller's arrays as they are."""

import math

import numpy as np

from ..context import Context
from ..errors import DeviceError, MXNetError
from ..ndarray import NDArray, array
from ..ndarray import device as devices

__all__ = ["as_ndarray", "drop_oldest", "raw", "view_bytes", "zero_bytes"]

_ALIGNMENT = 64
#: Executors for earlier shapes are kept up to this number and to these bytes of their own memory.
_MOST_SHAPES, _MOST_BYTES = 8, 2**30


def zero_bytes(size: int, device: Context):
    """A block of zeroed bytes on a device, aligned for vector loads."""
    if device.is_gpu:
        return devices.zeros((size,), np.uint8, device)
    try:
        block = np.zeros(size + _ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):  # the latter where the size is beyond any address
        raise MXNetError(
            f"bind: a block of {size / 2**30:.1f} GiB for values between the operators cannot be allocated"
        ) from None
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + size]


def view_bytes(block, shape, dtype):
    """The first bytes of a block as an array."""
    size = math.prod(shape) * dtype.itemsize
    return block[:size].view(dtype).reshape(shape)


def as_ndarray(value, device: Context) -> NDArray:
    """``value`` as an NDArray of a device: itself, or borrowing a NumPy array's memory."""
    if isinstance(value, NDArray):
        if value.context.is_gpu != device.is_gpu:
            raise DeviceError(f"bind: an array is on {value.context}, but the graph is bound to {device}")
        return value
    if isinstance(value, np.ndarray) and not device.is_gpu:
        return NDArray(value, device)
    return array(value, ctx=device, dtype=getattr(value, "dtype", None))


def raw(value, device: Context):
    """The array under an NDArray, or under what :func:`as_ndarray` makes of ``value``."""
    return as_ndarray(value, device).data


def drop_oldest(executors: dict, bytes_of, most: int = _MOST_SHAPES) -> None:
    """Forget executors for earlier shapes, the first ones first, before another one takes memory."""
    while len(executors) >= most or sum(map(bytes_of, list(executors.values()))) > _MOST_BYTES:
        executors.pop(next(iter(executors)), None)
