"""Make arrays from data or from a rule."""

import operator

import numpy as np

from ..context import Context, current_context
from ..dtypes import as_scalar, number_type
from ..errors import DTypeError, ParamError, ShapeError
from ..shapes import is_np_shape
from . import device
from .ndarray import NDArray, of_dtype

__all__ = [
    "arange",
    "array",
    "empty",
    "eye",
    "from_numpy",
    "full",
    "linspace",
    "ones",
    "reset_arrays",
    "zeros",
]


def _device(ctx) -> Context:
    """A device given as a context, by its name, or not at all."""
    if ctx is None:
        return current_context()
    return ctx if isinstance(ctx, Context) else Context(ctx)


def _place(host: np.ndarray, ctx: Context | None) -> NDArray:
    ctx = _device(ctx)
    return NDArray(device.from_host(host, ctx), ctx)


def _dtype(dtype) -> np.dtype:
    return number_type("NDArray: dtype", "float32" if dtype is None else dtype)


def _shape(shape) -> tuple[int, ...]:
    try:
        shape = tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int | np.integer) else shape))
    except TypeError:
        raise ShapeError(f"NDArray: shape must be a whole number or some of them, got {shape!r}") from None
    if any(n < 0 for n in shape):
        raise ShapeError(f"NDArray: every entry of shape must be 0 or more, got {shape}")
    return shape


#: Whether zeros and ones refuse empty arrays and those without dimensions, unless under ``np_shape``: to
#: MXNet these are unknown shapes. Its other functions take them, and here all do unless it is imitated.
refuses_unknown_shapes = False


def _shape_to_fill(shape) -> tuple[int, ...]:
    shape = _shape(shape)
    if refuses_unknown_shapes and not is_np_shape() and (not shape or 0 in shape):
        raise ShapeError(
            f"NDArray: shape {shape} has unknown lengths, as MXNet has it outside of np_shape; use nd.empty"
        )
    return shape


def array(source_array, ctx: Context | None = None, dtype=None) -> NDArray:
    """A new array from any array-like, copied.

    The dtype is that of an NDArray source, and float32 for anything else, a NumPy array included.
    """
    if isinstance(source_array, NDArray):
        dtype = _dtype(source_array.dtype if dtype is None else dtype)
        made = _place(np.array(device.to_host(source_array.data), dtype, order="C"), ctx)
        return source_array._followed_by(made, "Cast", dtype=dtype.name)
    dtype = _dtype(dtype)
    try:
        host = of_dtype(source_array, dtype)
    except (ValueError, TypeError) as error:
        if isinstance(error, DTypeError):
            raise
        raise TypeError(f"array: source_array must be array like object: {error}") from None
    return _place(host, ctx)


def empty(shape, ctx: Context | None = None, dtype=None, stype: str | None = None) -> NDArray:
    """An array with no particular contents, or of zeros where it has another storage type."""
    if stype not in (None, "default"):
        return zeros(shape, ctx, dtype, stype=stype)
    ctx = _device(ctx)
    return NDArray(device.empty(_shape(shape), _dtype(dtype), ctx), ctx)


def full(shape, val, ctx: Context | None = None, dtype=None, out: NDArray | None = None) -> NDArray:
    """An array filled with ``val``."""
    if out is not None:
        out[:] = val
        return out
    dtype = _dtype(dtype)
    return _place(np.full(_shape(shape), as_scalar(val, dtype), dtype), ctx)


def zeros(shape, ctx: Context | None = None, dtype=None, stype: str | None = None, **kwargs) -> NDArray:
    """An array of zeros, of the storage type ``stype`` if that is given."""
    if kwargs.get("out") is not None:
        return full(shape, 0, out=kwargs["out"])
    dense = _place(np.zeros(_shape_to_fill(shape), _dtype(dtype)), ctx)
    return dense.tostype(stype or "default")


def ones(shape, ctx: Context | None = None, dtype=None, **kwargs) -> NDArray:
    """An array of ones."""
    return full(_shape_to_fill(shape), 1, ctx, dtype, **kwargs)


def arange(
    start, stop=None, step=1.0, repeat: int = 1, infer_range=None, ctx: Context | None = None, dtype=None
) -> NDArray:
    """Numbers from ``start`` up to, not including, ``stop``, each ``repeat`` times."""
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ParamError("arange: step must not be 0")
    values, dtype = np.arange(start, stop, step), _dtype(dtype)
    if dtype.kind != "f":  # MXNet takes whole steps from a whole number then
        values = int(start) + int(step) * np.arange(values.size)
    values = values.astype(dtype)
    return _place(np.repeat(values, repeat), ctx)


def linspace(start, stop, num: int, endpoint: bool = True, ctx: Context | None = None, dtype=None) -> NDArray:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
    return _place(np.linspace(start, stop, num, endpoint).astype(_dtype(dtype)), ctx)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype=None) -> NDArray:
    """Ones on diagonal ``k`` of an N x M array (N x N where M is 0), zeros elsewhere."""
    return _place(np.eye(N, M or N, k, dtype=_dtype(dtype)), ctx)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An NDArray on the CPU over a NumPy array's memory, or over a copy of it.

    Without copying, what is written to the NDArray shows in the NumPy array, which can itself be written no
    more, as in MXNet.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: needs a numpy.ndarray, got {type(ndarray).__name__}")
    if not zero_copy:
        return NDArray(ndarray.copy(order="C"))
    if not (ndarray.flags.c_contiguous and ndarray.flags.aligned and ndarray.dtype.isnative):
        raise ValueError("from_numpy: zero_copy needs a C-contiguous, aligned array in native byte order")
    if ndarray.flags.owndata:
        ndarray.flags.writeable = True  # a second NDArray over it can be written, like the first
    shared = NDArray(ndarray.view())
    ndarray.flags.writeable = False
    return shared


def reset_arrays(*arrays: NDArray, num_arrays: int | None = None) -> None:
    """Set all these arrays to zero; ``num_arrays`` is how many they are."""
    for each in arrays:
        each[:] = 0
