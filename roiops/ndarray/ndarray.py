"""NDArray: an array on a device, with MXNet's names and behaviour."""

import ctypes
import itertools
import types
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import registry
from ..context import Context, cpu
from ..dtypes import BFLOAT16, as_scalar, number_type
from ..errors import DeviceError, DTypeError, InputError, ShapeError
from ..recording import current
from . import device
from .invoke import run

__all__ = [
    "DLPACK_CPU",
    "DLPACK_CUDA",
    "SCALARS",
    "NDArray",
    "apply",
    "compute",
    "from_any",
    "from_dlpack",
    "of_dtype",
    "waitall",
    "wrap",
    "writable",
]

#: What counts as a number beside an array.
SCALARS = (bool, int, float, np.generic)


class NDArray:
    """An array of numbers on a device.

    It lies over ``array`` without copying it: over a NumPy array on the CPU, over a device array on a
    GPU. Use :func:`roiops.nd.array` to make one from any data, which copies.

    ``data`` is the array underneath; it shares memory with this one. As in MXNet, a basic slice shares
    memory where it is contiguous and is a copy where it is not, ``reshape`` shares memory, operators
    return new arrays, and assignment to a slice always writes into the array.

    Parameters
    ----------
    array : numpy.ndarray or device array
        The memory to lie over.
    ctx : Context, optional
        Where that memory is; the CPU unless given.
    writable : bool
        Accepted for MXNet's sake: monitors there make arrays of handles with ``writable=False``.
    """

    # ``_entry`` is the place in a recorded graph, of :mod:`roiops.autograd`, that it is a value of, or None.
    __slots__ = ("__weakref__", "_context", "_entry", "data")

    # NumPy leaves ``numpy_array + x`` to NDArray.__radd__.
    __array_priority__ = 1000.0

    def __init__(self, array, ctx: Context | None = None, writable: bool = True):
        if isinstance(array, ctypes.c_void_p):
            array, ctx = _of_handle(array)
        self.data = device.readable(array) if isinstance(array, np.ndarray) else array
        self._context = ctx or cpu()
        self._entry = None

    # -- what it is ----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.data.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.data.size)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.data.shape)

    @property
    def dtype(self) -> type:
        """NumPy's scalar type, such as ``numpy.float32``."""
        return self.data.dtype.type

    @property
    def context(self) -> Context:
        """The device that the elements are on."""
        return self._context

    ctx = context

    #: The storage type: ``"default"``, or that of an array of :mod:`roiops.nd.sparse`.
    stype: str = "default"

    @property
    def grad(self):
        """The array that :meth:`attach_grad` made for the gradient, or None."""
        return None if self._entry is None else self._entry[0].gradient

    @property
    def T(self) -> "NDArray":
        """A copy with the axes in reverse order; the array itself where it has one axis at the most."""
        return apply("transpose", self) if self.ndim > 1 else self

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an NDArray without dimensions")
        return self.shape[0]

    def _repr_html_(self):
        from .html import array_table  # notebooks only

        shape = " x ".join(map(str, self.shape)) or "one number"
        return array_table(self.asnumpy(), f"NDArray {shape}, {np.dtype(self.dtype).name}, {self.context}")

    def __repr__(self):
        extent = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()!s}\n<{type(self).__name__} {extent} @{self._context}>"

    def __bool__(self):
        if self.size > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.size and self.asscalar())

    def __float__(self):
        return float(self.asscalar())

    def __int__(self):
        return int(self.asscalar())

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    __hash__ = object.__hash__

    # -- to and from other things --------------------------------------------------------------------

    @property
    def _as_parameter_(self):
        """What ``ctypes.cast(array, NDArrayHandle)`` makes a handle of, good as long as this array lives."""
        _handles[id(self)] = self
        return ctypes.c_void_p(id(self))

    def asnumpy(self) -> np.ndarray:
        """A NumPy copy."""
        return np.array(device.to_host(self.data), order="C")

    def asscalar(self):
        """The only element, as a NumPy scalar."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return device.to_host(self.data).reshape(-1)[0]

    def wait_to_read(self) -> None:
        """Nothing on the CPU; on a GPU, wait until the work queued for this array is done."""
        if self._context.is_gpu:
            device.synchronize()

    def copy(self) -> "NDArray":
        """A copy on the same device."""
        return self.copyto(self._context)

    def copyto(self, other):
        """Copy into another NDArray of this shape, converting the dtype; or make a copy on a Context."""
        if isinstance(other, Context):
            raw = device.empty(self.shape, self.data.dtype, other)
            device.copy_into(raw, self.data)
            return self._followed_by(NDArray(raw, other), "_copy")
        if not isinstance(other, NDArray):
            raise TypeError(f"NDArray.copyto: needs an NDArray or a Context, got {type(other).__name__}")
        if other is self:
            warnings.warn("NDArray.copyto: the array is copied to itself", RuntimeWarning, stacklevel=2)
            return False
        if other.shape != self.shape:
            raise ShapeError(f"NDArray.copyto: other must have shape {self.shape}, got {other.shape}")
        if current.tape is not None:
            current.tape.check_may_write(other)
        device.copy_into(other.data, self.data)
        if other.data.dtype == self.data.dtype:
            return self._followed_by(other, "_copy")
        return self._followed_by(other, "Cast", dtype=other.data.dtype.name)

    def _followed_by(self, result: "NDArray", name: str, **given) -> "NDArray":
        """``result``, made of this array as the operator ``name`` would make it; recorded as its call."""
        if current.tape is not None:
            current.tape.add_made(name, given, [self], result)
        return result

    def as_in_context(self, context: Context) -> "NDArray":
        """This array where it is on ``context`` already, else a copy there."""
        return self if context == self._context else self.copyto(context)

    as_in_ctx = as_in_context

    def astype(self, dtype, copy: bool = True) -> "NDArray":
        """A copy of another dtype; with ``copy=False``, this array where it has that dtype already."""
        dtype = number_type("NDArray.astype: dtype", dtype)
        if not copy and dtype == self.data.dtype:
            return self
        result = NDArray(device.empty(self.shape, dtype, self._context), self._context)
        return self.copyto(result)

    if TYPE_CHECKING:  # ``sparse`` puts it here

        def tostype(self, stype: str) -> "NDArray": ...

    def as_nd_ndarray(self) -> "NDArray":
        """This array."""
        return self

    def detach(self) -> "NDArray":
        """Another NDArray over the same memory."""
        return NDArray(self.data, self._context)

    def __reduce__(self):
        return _rebuild, (np.ascontiguousarray(device.to_host(self.data)), self._context)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __array__(self, dtype=None, copy=None):
        host = device.to_host(self.data)
        if dtype is not None and np.dtype(dtype) != host.dtype:
            if copy is False:
                raise ValueError(f"a {host.dtype} NDArray cannot be seen as {np.dtype(dtype)} without a copy")
            return host.astype(dtype)
        return host.copy() if copy else host

    def __dlpack__(self, **options):
        return device.export(self.data).__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    def to_dlpack_for_read(self):
        """A DLPack capsule that shares memory with this array."""
        return self.__dlpack__()

    to_dlpack_for_write = to_dlpack_for_read

    @property
    def __cuda_array_interface__(self):
        if not self._context.is_gpu:
            raise AttributeError("__cuda_array_interface__")  # so that hasattr() tells a GPU array
        return self.data.__cuda_array_interface__

    # -- parts of it ---------------------------------------------------------------------------------

    def __getitem__(self, key):
        if isinstance(key, slice) and key == slice(None):
            return self
        part = self.data[_index(key, self._context)]
        if not part.ndim:
            part = part.reshape(1)
        part = wrap(device.contiguous(part), self._context)
        if current.tape is not None:
            current.tape.add_part(self, key, part)
        return part

    def __setitem__(self, key, value):
        if current.tape is not None:
            current.tape.add_assignment(self, key, value)
        if isinstance(value, NDArray):
            value = value.data if value.context == self._context else device.to_host(value.data)
        if isinstance(value, SCALARS):
            value = as_scalar(value, self.data.dtype)[()]
        elif not self._context.is_gpu or isinstance(value, list | tuple):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            value = device.from_host(value, self._context)
        self.data[_index(key, self._context)] = value

    def _at(self, index: int) -> "NDArray":
        return self[index]

    def _slice(self, start: int, stop: int) -> "NDArray":
        return self[start:stop]

    def reshape(self, *shape, **options) -> "NDArray":
        """The same memory in another shape.

        Codes as in the operator ``Reshape``: 0 copies a dimension, -1 is inferred, -2 copies all that
        remain, -3 merges two, -4 splits one in the two that follow; ``reverse=True`` reads from the right.
        """
        if len(shape) == 1 and not isinstance(shape[0], int | np.integer):
            shape = tuple(shape[0])
        shape = shape or tuple(options.pop("shape", ()))
        prop = registry.get("Reshape").create({"shape": shape, **options}, "NDArray.reshape")
        target = prop.infer_shape([self.shape])[1][0]
        result = NDArray(self.data.reshape(target), self._context)
        return self._followed_by(result, "Reshape", shape=target)

    def flatten(self, inplace: bool = False) -> "NDArray":
        """All dimensions after the first merged into one: a copy, or with ``inplace`` the same memory."""
        flat = apply("Flatten", self)
        return self.reshape(flat.shape) if inplace else flat

    def squeeze(self, axis=None, inplace: bool = False) -> "NDArray":
        """Without axes of length 1: a copy, or with ``inplace`` the same memory."""
        less = apply("squeeze", self, axis=axis)
        return self.reshape(less.shape) if inplace else less

    def expand_dims(self, axis: int, inplace: bool = False) -> "NDArray":
        """With a new axis of length 1: a copy, or with ``inplace`` the same memory."""
        more = apply("expand_dims", self, axis=axis)
        return self.reshape(more.shape) if inplace else more

    def broadcast_to(self, shape) -> "NDArray":
        """A copy repeated to ``shape``, which may have more dimensions at its front."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        front = len(shape) - self.ndim
        array = self.reshape((1,) * front + self.shape) if front > 0 else self
        return apply("broadcast_to", array, shape=shape)

    def broadcast_like(self, other) -> "NDArray":
        """A copy repeated to the shape of another array."""
        return self.broadcast_to(other.shape)

    def slice_assign(self, rhs, begin, end, step) -> "NDArray":
        """Write ``rhs``, an array or a number, to a slice; gives this array."""
        self[tuple(slice(*each) for each in itertools.zip_longest(begin, end, step))] = rhs
        return self

    def slice_assign_scalar(self, value, begin, end, step) -> "NDArray":
        """Write a number to a slice; gives this array."""
        return self.slice_assign(value, begin, end, step)

    # -- arithmetic ----------------------------------------------------------------------------------

    def __neg__(self):
        return apply("_mul_scalar", self, scalar=-1.0)

    def __abs__(self):
        return apply("abs", self)

    if TYPE_CHECKING:  # ``arithmetic`` puts them here

        def _infix(self, other: Any) -> "NDArray": ...

        __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = _infix
        __mul__ = __rmul__ = __imul__ = __truediv__ = __rtruediv__ = __itruediv__ = _infix
        __mod__ = __rmod__ = __imod__ = __pow__ = __rpow__ = _infix
        __gt__ = __ge__ = __lt__ = __le__ = _infix

        # Every other operator is a method, too: ``functions`` puts them here.
        def __getattr__(self, name: str) -> Any: ...


#: The arrays that handles were made of, while they live.
_handles: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def _of_handle(handle: ctypes.c_void_p):
    """The memory and the device of the array that a handle was made of."""
    array = _handles.get(handle.value)
    if array is None:
        raise InputError("NDArray: the handle is that of no NDArray that is still there")
    return array.data, array._context


def _rebuild(array, ctx):
    return NDArray(array, cpu()).as_in_context(ctx)


def _index(key, ctx):
    """An index as the array underneath takes it, such that a basic one gives a view, never a scalar."""
    if isinstance(key, tuple):
        parts = tuple(_index_part(part, ctx) for part in key)
        return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)
    if isinstance(key, slice) and key == slice(None):  # of an array without axes, too
        return Ellipsis
    part = _index_part(key, ctx)
    return part if part is Ellipsis else (part, Ellipsis)


def _index_part(part, ctx):
    if isinstance(part, int | slice | np.integer) or part is None or part is Ellipsis:
        return part
    if isinstance(part, list | tuple | range | NDArray | np.ndarray):
        array = np.asarray(part)
        if array.dtype.kind == "f" or not array.size:  # MXNet's indices are floats more often than not
            if np.isnan(array).any():
                raise IndexError("an index is NaN")
            array = array.astype(np.int64)
        if array.dtype.kind in "biu":
            return device.from_host(array, ctx)
    raise ValueError(f"NDArray does not support slicing with key {part} of type {type(part)}.")


# -- calls of operators ----------------------------------------------------------------------------------


def apply(name: str, *arrays, out: "NDArray | None" = None, **given) -> NDArray:
    """The operator ``name``, which has one output, on arrays of one device."""
    prop = registry.get(name)
    ctx = next((a._context for a in arrays if isinstance(a, NDArray)), None)
    inputs = []
    for each in arrays:
        if not isinstance(each, NDArray):
            each = from_any(each, prop.label, ctx)
            ctx = ctx or each._context
        elif each._context is not ctx and each._context != ctx:
            raise DeviceError(f"{prop.label}: the inputs are on {ctx} and on {each._context}")
        inputs.append(each)
    return compute(prop, given, inputs, ctx, None if out is None else [out])[0]


def compute(prop, given: dict, inputs: list, ctx: Context, out=None, names=None, types=None) -> list:
    """The visible outputs of an operator on NDArrays, ``out`` where that is given; recorded where that is on.

    The parameters are those of :func:`roiops.ndarray.invoke.run`.
    """
    raws = None if out is None else [each.data for each in out]
    arrays = [each.data for each in inputs]
    tape = current.tape
    kept = [] if tape is not None and tape.follows(inputs, out) else None
    results = run(prop, given, arrays, ctx, raws, names, types, kept)
    results = [wrap(raw, ctx) for raw in results] if out is None else out
    if kept:
        tape.add_call(given, inputs, results, kept)
    return results


def of_dtype(values, dtype) -> np.ndarray:
    """A new array of ``values`` on the host. Whole numbers that do not fit wrap around, as in MXNet."""
    try:
        return np.array(values, dtype=dtype, order="C")
    except OverflowError:
        return np.array(values).astype(dtype, order="C")


def wrap(raw, ctx: Context) -> NDArray:
    """An NDArray over memory of the library's own, which needs no check."""
    array = object.__new__(NDArray)
    array.data = raw
    array._context = ctx
    array._entry = None
    return array


def waitall() -> None:
    """Nothing on the CPU; on a GPU, wait until all queued work is done."""
    device.synchronize()


# -- anything as an NDArray ------------------------------------------------------------------------------


class _Capsule:
    """A bare DLPack capsule with the methods that consumers ask for."""

    def __init__(self, capsule, device_id):
        self.capsule, self.device_id = capsule, device_id

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return self.device_id


#: DLPack's numbers of the kinds of device: host and pinned host, device and managed.
DLPACK_CPU, DLPACK_CUDA = (1, 3), (2, 13)
# Only from 1.0 on can a capsule say that it is read-only, and NumPy reads those from 2.1 on.
_DLPACK_OPTIONS = {"max_version": (1, 0)} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}


def from_any(value, what: str, ctx: Context | None = None) -> NDArray:
    """``value`` as an NDArray over its own memory; ``what`` names it in errors."""
    if isinstance(value, NDArray):
        return value
    if isinstance(value, np.ndarray):
        array = NDArray(value)
        return array if ctx is None else array.as_in_context(ctx)
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    raise InputError(f"{what} must be an NDArray or a NumPy array, got {type(value).__name__}")


def from_dlpack(source) -> NDArray:
    """An NDArray over the memory of ``source``: any object with ``__dlpack__``, or a DLPack capsule.

    It is read-only only where the producer says so, which producers of DLPack before 1.0 cannot.
    """
    if not hasattr(source, "__dlpack__"):
        if type(source).__name__ != "PyCapsule":
            raise TypeError(f"from_dlpack: needs an object with __dlpack__, got {type(source).__name__}")
        source = _Capsule(source, (DLPACK_CPU[0], 0))
    kind, number = source.__dlpack_device__()
    if kind in DLPACK_CUDA:
        raw, dtype, _ = device.shared(source)
        if dtype == BFLOAT16:
            raise DTypeError("from_dlpack: NumPy has no bfloat16, so no NDArray has; give float16 or float32")
        return NDArray(raw, Context("gpu", number))
    if kind not in DLPACK_CPU:
        raise DeviceError(f"from_dlpack: the array is on DLPack device type {kind}, neither CPU nor CUDA")
    try:
        try:
            capsule = source.__dlpack__(**_DLPACK_OPTIONS)
        except TypeError:  # a producer of DLPack before 1.0
            capsule = source.__dlpack__()
        unversioned = "dltensor_versioned" not in repr(capsule)
        array = np.from_dlpack(_Capsule(capsule, (kind, number)))
    except (RuntimeError, BufferError) as error:
        raise DTypeError(f"from_dlpack: NumPy cannot take the array: {error}") from None
    if unversioned and not array.flags.writeable:
        array = writable(array)
    return NDArray(array)


def writable(array: np.ndarray) -> np.ndarray:
    """The same memory as an array that may be written, whatever NumPy says; who writes must know better."""
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    holder = types.SimpleNamespace(__array_interface__=interface, keeps=array)
    return np.asarray(holder)
