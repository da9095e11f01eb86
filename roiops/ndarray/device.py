"""What NDArray does to memory, for each device: NumPy on the CPU, the CUDA runtime's arrays on a GPU."""

import importlib
import sys

import numpy as np

from .. import context
from ..context import Context
from ..dtypes import BFLOAT16, number_type
from ..errors import DeviceError
from ..kernels import memory


def _runtime():
    return importlib.import_module("..kernels.cuda.runtime", __package__)


def _count_gpus() -> int:
    count = 0
    try:
        while True:
            empty((1,), np.float32, Context("gpu", count))
            count += 1
    except (DeviceError, ImportError):
        return count


context._counters.append(_count_gpus)


def empty(shape, dtype, ctx: Context):
    """Uninitialised memory on ``ctx``."""
    if ctx.is_gpu:
        return _runtime().empty(shape, dtype, ctx.device_id)
    return memory.empty(shape, dtype)


def zeros(shape, dtype, ctx: Context):
    """Zeroed memory on ``ctx``."""
    if ctx.is_gpu:
        return _runtime().zeros(shape, dtype, ctx.device_id)
    return np.zeros(shape, dtype)


def from_host(array: np.ndarray, ctx: Context):
    """``array`` on ``ctx``: itself on the CPU, a copy on a GPU."""
    if ctx.is_gpu:
        return _runtime().to_device(np.ascontiguousarray(array), ctx.device_id)
    return array


def to_host(raw) -> np.ndarray:
    """``raw`` as a NumPy array: itself on the CPU, a copy from a GPU."""
    return raw if isinstance(raw, np.ndarray) else _runtime().to_host(raw)


def copy_into(target, source) -> None:
    """Copy between arrays of one shape, on any two devices, converting the dtype."""
    if isinstance(target, np.ndarray):
        np.copyto(target, to_host(source), casting="unsafe")
    elif isinstance(source, np.ndarray):
        _runtime().copy_from_host(target, source)
    else:
        target[...] = source


def synchronize() -> None:
    """Wait for every GPU that has been used."""
    runtime = sys.modules.get(f"{__package__.rpartition('.')[0]}.kernels.cuda.runtime")
    if runtime is not None:
        runtime.synchronize()


def contiguous(raw):
    """``raw`` itself if its elements lie one after the other, else a copy in which they do."""
    if raw.flags["C_CONTIGUOUS"]:
        return raw
    return raw.copy() if isinstance(raw, np.ndarray) else _runtime().contiguous(raw)


def overlap(one, other) -> bool:
    """Whether two arrays may share bytes."""
    if isinstance(one, np.ndarray):
        return np.may_share_memory(one, other)
    start, end = _bytes(one)
    other_start, other_end = _bytes(other)
    return start < other_end and other_start < end


def same_memory(one, other) -> bool:
    """Whether two arrays are the same elements in the same places."""
    return one is other or (
        _bytes(one) == _bytes(other) and one.shape == other.shape and one.strides == other.strides
    )


def _bytes(raw) -> tuple[int, int]:
    """First byte and end of a contiguous array."""
    interface = raw.__array_interface__ if isinstance(raw, np.ndarray) else raw.__cuda_array_interface__
    start = interface["data"][0]
    return start, start + raw.size * raw.dtype.itemsize


def shared(source):
    """A device array over another library's, its elements' dtype, and whether it is read-only."""
    return _runtime().shared(source)


def is_writable(raw) -> bool:
    """Whether ``raw`` may be written to, as far as it says."""
    return not isinstance(raw, np.ndarray) or raw.flags.writeable


def device_of(raw) -> int:
    """The number of the GPU that a device array is on."""
    return _runtime().device_of(raw)


def on_stream_of(source):
    """Work on the stream that is current to another library, as a context."""
    return _runtime().on_stream_of(source)


def export(raw, dtype: np.dtype | None = None):
    """``raw``, whose elements are of ``dtype``, as an object with ``__dlpack__``."""
    dtype = raw.dtype if dtype is None else dtype
    return raw if isinstance(raw, np.ndarray) and dtype != BFLOAT16 else _runtime().exporter(raw, dtype)


def readable(array: np.ndarray) -> np.ndarray:
    """A NumPy array as kernels can take it: itself, or a copy where its bytes are swapped or misaligned."""
    native = number_type("NDArray: dtype", array.dtype)
    if array.dtype.isnative and array.flags.aligned:
        return array
    return array.astype(native, order="C")
