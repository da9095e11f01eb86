"""The CUDA backend and its arrays. No other module imports the backend.

The backend is ``numba.cuda``, which the package numba-cuda provides; ``ROIOPS_CUDA_BACKEND`` names another
module with the same functions. Under numba's simulator (``NUMBA_ENABLE_CUDASIM=1``) kernels run as Python
on the CPU, and a device array is a NumPy array. Otherwise it is CuPy's where CuPy is installed, else the
backend's own, which knows less arithmetic.
"""

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import math
import os
import sys
import threading
import types
import warnings
from typing import NamedTuple

import numba
import numpy as np

from ...dtypes import BFLOAT16, stored
from ...errors import DeviceError
from ..numba_insides.compiler import Inner
from . import dlpack

#: No launch has more blocks. Kernels stride over what is left, so any number is right.
MOST_BLOCKS = 1 << 16
#: Threads of a block that copies. Any number is right; the simulator's is smaller.
COPY_THREADS = 256
#: Neighbouring elements that a thread takes in one access.
QUAD = 4

SIMULATOR = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")

_INSTALL = "pip install 'numba-cuda[cu13]' or 'numba-cuda[cu12]', to match the driver's CUDA version"


@functools.cache
def _backend():
    name = os.environ.get("ROIOPS_CUDA_BACKEND", "numba.cuda")
    # numba carries an old numba.cuda of its own, which is used for its simulator only.
    if name == "numba.cuda" and not SIMULATOR and importlib.util.find_spec("numba_cuda") is None:
        raise DeviceError(f"gpu: the package numba-cuda is missing; {_INSTALL}")
    try:
        backend = importlib.import_module(name)
        if name == "numba.cuda" and not SIMULATOR and not hasattr(np, "row_stack"):
            _import_on_current_numpy()
        return backend
    except ImportError as error:
        raise DeviceError(
            f"gpu: the CUDA backend {name!r} cannot be imported ({error}); {_INSTALL}"
        ) from error


def _import_on_current_numpy() -> None:
    """Import what numba-cuda imports when it first compiles: up to 0.30 it asks NumPy for ``row_stack``.

    NumPy 2.5 has that name no more. It is there for as long as the import takes.
    """
    setattr(np, "row_stack", np.vstack)  # noqa: B010 (the linter takes it for a call)
    try:
        importlib.import_module("numba.cuda.target")
        importlib.import_module("numba.cuda.np.arrayobj")
    finally:
        delattr(np, "row_stack")


@functools.cache
def _simulated_kernels():
    return importlib.import_module("numba.cuda.simulator.kernel")


class _Simulated:
    """The simulator's ``cuda`` module, within kernels and outside them.

    numba puts the simulated one into the globals of a kernel's own module while it runs; here it is found
    from functions of any module.
    """

    def __getattr__(self, name):
        inside = _simulated_kernels()._get_kernel_context()
        found = getattr(_backend() if inside is None else inside, name)
        return _SimulatedMemory(found) if name == "shared" and inside is not None else found


class _SimulatedMemory:
    """The simulator's ``cuda.shared``, which knows no ``alignment``; that of NumPy's memory is enough."""

    def __init__(self, shared):
        self._allocations = shared._allocations

    def array(self, shape, dtype, alignment=None):
        # As there, what tells arrays apart is the line that they stand on.
        frame = sys._getframe(1)
        place = frame.f_code, frame.f_lineno
        if place not in self._allocations:
            self._allocations[place] = np.empty(shape, numba.np.numpy_support.as_dtype(dtype))
        return self._allocations[place]


cuda = _Simulated() if SIMULATOR else _backend()


def kernel(real=None, most=128):
    """Decorator of a kernel; ``real`` is the dtype of the numbers that it computes with.

    float32 kernels that say so are held to ``most`` registers a thread: with 128, a multiprocessor has room
    for two blocks of 256. What would spill registers then says no dtype; verify/ptx_check.py sees to it.
    """
    if SIMULATOR:
        return cuda.jit
    # When it optimises as it links, the compiler contracts products and sums whatever it was told before.
    options = {"lto": False} if cuda.__name__ == "numba.cuda" else {}
    if real is not None and real is not np.float64:
        options["max_registers"] = most
    # Given options alone, numba-cuda 0.30 forgets what was said of ``lto``.
    return lambda function: _uncontracted(cuda.jit(function, **options))


def _uncontracted(dispatcher):
    """The same kernel, compiled within :func:`separate_rounding`."""
    compile_one = dispatcher.compile

    def compile_it(signature):
        with separate_rounding():
            return compile_one(signature)

    dispatcher.compile = compile_it
    return dispatcher


@contextlib.contextmanager
def separate_rounding():
    """Have CUDA's compiler round a product before it is added, as the CPU does.

    By itself it contracts both to one operation. Then a sample that is on the edge of an image, or a bin on
    that of a pixel, may be on its other side.
    """
    try:
        compiler = importlib.import_module("numba.cuda.cudadrv.nvvm")
        lock = importlib.import_module("numba.core.compiler_lock").global_compiler_lock
        compile_ir = compiler.compile_ir
    except (ImportError, AttributeError):  # another backend
        yield
        return
    with lock:
        compiler.compile_ir = functools.partial(compile_ir, fma=False)
        try:
            yield
        finally:
            compiler.compile_ir = compile_ir


def device(function):
    """Compile a function that kernels call and that itself uses ``cuda``."""
    return function if SIMULATOR else cuda.jit(device=True)(function)


def _take_parts() -> None:
    """Have the backend compile the parts that kernels of the CPU and of the GPU share.

    By itself it knows numba's functions only.
    """
    try:
        from numba.cuda.extending import typeof_impl
    except ImportError:  # of an older one
        return
    as_device = functools.cache(lambda part: device(part.py_func))
    typeof_impl.register(Inner)(lambda part, context: as_device(part)._numba_type_)


if not SIMULATOR:
    _take_parts()


def quad_alignment(dtype) -> int:
    """By how many bytes a quad of elements must be aligned: by its size, at most by the widest access."""
    return min(16, QUAD * dtype.itemsize)


def _quad_at_once():
    """The device function that loads a quad as a vector of LLVM, or None where none can be built."""
    if cuda.__name__ != "numba.cuda":
        return None
    try:
        from numba.cuda.extending import intrinsic
    except ImportError:  # of an older one
        return None
    from llvmlite import ir

    @intrinsic
    def quad_at(typing_context, array, index):
        def generate(context, builder, signature, arguments):
            kind = signature.args[0]
            element = context.get_data_type(kind.dtype)
            first = context.make_array(kind)(context, builder, arguments[0]).data
            index = context.cast(builder, arguments[1], signature.args[1], numba.uint64)
            vector = ir.VectorType(element, QUAD).as_pointer()
            size = QUAD * context.get_abi_sizeof(element)
            loaded = builder.load(builder.bitcast(builder.gep(first, [index]), vector), align=min(16, size))
            model = context.data_model_manager[kind.dtype]
            lanes = [builder.extract_element(loaded, ir.IntType(32)(lane)) for lane in range(QUAD)]
            lanes = [model.from_data(builder, lane) for lane in lanes]
            return context.make_tuple(builder, signature.return_type, lanes)

        return numba.types.UniTuple(array.dtype, QUAD)(array, index), generate

    return quad_at


def _quad_one_by_one(array, index):
    at = np.uint64(index)
    return array[at], array[at + np.uint64(1)], array[at + np.uint64(2)], array[at + np.uint64(3)]


def _quad_simulated(array, index):
    """Refuses what the hardware would: a quad that is not aligned, or not within the array."""
    index = int(index)
    if index < 0 or index + QUAD > array.size:
        raise IndexError(f"the quad at {index} reaches out of an array of {array.size}")
    if (array.ctypes.data + index * array.itemsize) % quad_alignment(array.dtype):
        raise IndexError(f"the quad at {index} is not aligned")
    return _quad_one_by_one(array, index)


#: ``quad_at(array, index)``: the ``QUAD`` elements from ``index`` on, in one access of the memory. They must
#: be aligned by :func:`quad_alignment`. Where that cannot be had, they are loaded one by one.
quad_at = _quad_simulated if SIMULATOR else (_quad_at_once() or device(_quad_one_by_one))


@functools.cache
def _cupy():
    """CuPy, or None."""
    if SIMULATOR:
        return None
    try:
        return importlib.import_module("cupy")
    except ImportError:
        return None


@functools.cache
def _count() -> int:
    """How many devices there are; an error where there is none, or no driver."""
    if SIMULATOR:
        return 1
    try:
        count = len(cuda.gpus)
    except Exception as error:
        raise DeviceError(f"gpu: no CUDA device can be used ({error}); {_INSTALL}") from error
    if count == 0:
        raise DeviceError("gpu: the CUDA driver finds no device")
    return count


_NOTHING_TO_ENTER = contextlib.nullcontext()
_entered = threading.local()


def on(device_id: int):
    """Work on a device within the ``with`` statement."""
    count = _count()
    if not 0 <= device_id < count:
        raise DeviceError(f"gpu({device_id}): there are {count} CUDA devices, numbered from 0")
    if count > 1:
        return _on_one_of_many(device_id)
    if not SIMULATOR and not getattr(_entered, "once", False):
        cuda.current_context()  # the only one there is, for this thread from now on
        _entered.once = True
    return _NOTHING_TO_ENTER


@contextlib.contextmanager
def _on_one_of_many(device_id):
    with contextlib.ExitStack() as stack:
        stack.enter_context(cuda.gpus[device_id])
        if _cupy() is not None:
            stack.enter_context(_cupy().cuda.Device(device_id))
        yield


def device_of(array) -> int:
    """The number of the device that a device array is on."""
    if _count() == 1:
        return 0
    device = getattr(array, "device", None)  # CuPy's arrays have one
    return device.id if hasattr(device, "id") else cuda.current_context().device.id


# -- arrays ----------------------------------------------------------------------------------------------


def empty(shape, dtype, device_id: int = 0):
    """Uninitialised device memory: within :func:`on_stream_of` the other library's, if it gives any."""
    source = getattr(_asked, "source", None)
    if hasattr(source, "new_empty") and 0 not in shape:
        dtype = np.dtype(dtype)
        memory = source.new_empty(math.prod(shape) * dtype.itemsize, dtype=_library_of(source).uint8)
        interface = {"shape": tuple(shape), "typestr": dtype.str, "data": (memory.data_ptr(), False)}
        return _over(interface, memory)
    with on(device_id):
        if SIMULATOR:
            return np.empty(shape, dtype)
        return _cupy().empty(shape, dtype) if _cupy() else cuda.device_array(shape, dtype)


def zeros(shape, dtype, device_id: int = 0):
    """Zeroed device memory."""
    with on(device_id):
        if SIMULATOR:
            return np.zeros(shape, dtype)
        return _cupy().zeros(shape, dtype) if _cupy() else cuda.to_device(np.zeros(shape, dtype))


def to_device(array: np.ndarray, device_id: int = 0):
    """A copy of a NumPy array on a device."""
    with on(device_id):
        if SIMULATOR:
            return array.copy()
        return _cupy().asarray(array) if _cupy() else cuda.to_device(array)


def address_of(array) -> int:
    """Where the elements of a device array begin."""
    interface = array.__array_interface__ if SIMULATOR else array.__cuda_array_interface__
    return interface["data"][0]


def to_host(array) -> np.ndarray:
    """A NumPy copy of a device array."""
    if SIMULATOR:
        return np.array(array)
    with on(device_of(array)):
        return array.get() if hasattr(array, "get") else array.copy_to_host()


def copy_from_host(target, source: np.ndarray) -> None:
    """Copy a NumPy array into a device array of its shape, converting the dtype."""
    if SIMULATOR:
        np.copyto(target, source, casting="unsafe")
        return
    source = np.ascontiguousarray(source, target.dtype)
    with on(device_of(target)):
        if hasattr(target, "set"):
            target.set(source)
        else:
            target.copy_to_device(source)


class Shared(NamedTuple):
    """Another library's array; of ``BFLOAT16``, ``array`` holds the bits."""

    array: object
    dtype: np.dtype
    read_only: bool


def shared(source) -> Shared:
    """A device array over the memory of an object with ``__dlpack__`` or ``__cuda_array_interface__``.

    Work that is queued from here on comes after what the other library has queued so far.
    """
    if _is_plain_tensor(source):
        return _shared_tensor(source)
    if not hasattr(source, "__dlpack__"):
        interface = dict(source.__cuda_array_interface__)
        _wait_for(interface.pop("stream", None))
        array = _over(interface, source)
        return Shared(array, np.dtype(array.dtype), bool(interface["data"][1]))
    _, device_id = source.__dlpack_device__()
    with on(device_id):
        # DLPack calls the default stream 1.
        options = {"stream": stream_pointer() or 1}
        try:
            capsule = source.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a producer of DLPack before 1.0
            capsule = source.__dlpack__(**options)
        memory = dlpack.read(capsule)
        if 0 in memory.shape:
            array = empty(memory.shape, stored(memory.dtype), device_id)
        else:
            array = _over(memory.interface, memory.owner)
    return Shared(array, memory.dtype, memory.read_only)


def _is_plain_tensor(source) -> bool:
    """Whether it is a tensor of the library whose stream is ours, within :func:`on_stream_of`."""
    if not (hasattr(getattr(_asked, "source", None), "data_ptr") and hasattr(source, "data_ptr")):
        return False
    return 0 not in source.shape and not (source.requires_grad or source.is_neg() or source.is_conj())


def _shared_tensor(source) -> Shared:
    name = str(source.dtype).partition(".")[2]
    dtype = BFLOAT16 if name == "bfloat16" else np.dtype(name)
    strides = tuple(dtype.itemsize * stride for stride in source.stride())
    interface = {"shape": tuple(source.shape), "typestr": stored(dtype).str, "strides": strides}
    return Shared(_over({**interface, "data": (source.data_ptr(), False)}, source), dtype, read_only=False)


def _over(interface, owner):
    """A device array over memory that ``owner`` keeps alive."""
    if SIMULATOR:
        return np.asarray(types.SimpleNamespace(__array_interface__=interface, owner=owner))
    if _cupy() is None:
        interface = {"version": 3, **interface}
        holder = types.SimpleNamespace(__cuda_array_interface__=interface, owner=owner)
        return cuda.as_cuda_array(holder, sync=False)
    # What ``cupy.asarray`` does with such a holder, for a fraction of its time.
    dtype, shape, strides = np.dtype(interface["typestr"]), interface["shape"], interface.get("strides")
    size = math.prod(shape) * dtype.itemsize
    if strides is not None and size:
        size = dtype.itemsize + sum(
            (n - 1) * max(stride, 0) for n, stride in zip(shape, strides, strict=True)
        )
    device_id = 0 if _count() == 1 else -1  # which asks the driver whose memory it is
    memory = _cupy().cuda.UnownedMemory(interface["data"][0], size, owner, device_id)
    return _cupy().ndarray(shape, dtype, _cupy().cuda.MemoryPointer(memory, 0), strides)


def _wait_for(pointer) -> None:
    """Have the caller's stream wait for another, without the host waiting for either."""
    # 0 is not allowed in an interface, and 1 is the default stream, which is 0 here.
    pointer = 0 if pointer in (None, 1) else pointer
    if SIMULATOR or pointer == stream_pointer():
        return
    event = cuda.event(timing=False)
    event.record(cuda.external_stream(pointer) if pointer else 0)
    event.wait(stream())


class _Exporter:
    """A device array as ``from_dlpack`` of other libraries takes it."""

    def __init__(self, array, dtype):
        self._array, self._dtype = array, dtype

    def __dlpack__(self, **options):
        capsule = self._array.__dlpack__(**options)
        if self._dtype == BFLOAT16:
            dlpack.label_bfloat16(capsule)
        return capsule

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def exporter(array, dtype: np.dtype) -> _Exporter:
    """An object with ``__dlpack__`` for a device array of elements of ``dtype``; it may be ``BFLOAT16``."""
    if not hasattr(array, "__dlpack__"):
        raise DeviceError(f"gpu: only CuPy's arrays can be given to other libraries; {_INSTALL}")
    return _Exporter(array, dtype)


def synchronize() -> None:
    """Wait for the work queued on the devices that are in use."""
    if not SIMULATOR and _count():
        cuda.synchronize()


@functools.cache
def _copy_kernel():
    @kernel()
    def copy_elements(source, target, together):
        """Neighbouring threads take so many neighbouring channels together, then those of the next pixel."""
        images, channels, height, width = source.shape
        pixels, groups = height * width, (channels + together - 1) // together
        for unit in range(cuda.grid(1), images * groups * pixels * together, cuda.gridsize(1)):
            pixel, rest = unit // together % pixels, unit // (together * pixels)
            n, c = rest // groups, rest % groups * together + unit % together
            if c < channels:
                y, x = pixel // width, pixel % width
                target[n, c, y, x] = source[n, c, y, x]

    return copy_elements


def copy(source, target) -> None:
    """Copy between device arrays of one shape and any strides, converting the dtype."""
    if source.size == 0:
        return
    if source.ndim > 4:
        for k in range(source.shape[0]):
            copy(source[k], target[k])
        return
    add = 4 - source.ndim
    shape = (1,) * add + source.shape
    source, target = (_seen_as(a, shape, (a.nbytes,) * add + a.strides) for a in (source, target))
    # Of a warp's elements, a whole sector of memory each, in planes as where the channels are last.
    together = 8 if any(a.strides[1] < a.strides[3] for a in (source, target)) else 1
    blocks = -(-source.size // COPY_THREADS)
    launch(_copy_kernel(), blocks, COPY_THREADS, source, target, together)


def contiguous(array, dtype=None):
    """``array`` itself if its elements are in order and of ``dtype``, else a copy on the device."""
    dtype = array.dtype if dtype is None else np.dtype(dtype)
    if array.flags["C_CONTIGUOUS"] and array.dtype == dtype:
        return array
    ordered = empty(array.shape, dtype, device_of(array))
    copy(array, ordered)
    return ordered


class Flat(NamedTuple):
    """The memory of an array from its first element to its last; the strides, in elements, of its axes."""

    elements: object
    strides: tuple


def flat_view(array):
    """The :class:`Flat` form of a device array that is read.

    An array of any strides is taken as it is: NHWC seen as NCHW, some of the channels, a part of each plane.
    Only one that runs backwards, or whose elements are not aligned, is copied.
    """
    strides = tuple(stride // array.dtype.itemsize for stride in array.strides)
    if array.size == 0 or array.flags["C_CONTIGUOUS"]:
        return Flat(array.reshape(-1), strides)
    if any(stride < 0 or stride % array.dtype.itemsize for stride in array.strides):
        return flat_view(contiguous(array))
    extent = 1 + sum((n - 1) * stride for n, stride in zip(array.shape, strides, strict=True))
    return Flat(_seen_as(array, (extent,), None), strides)


def transposed(array, order):
    """The elements of a device array with its axes in another order."""
    shape, strides = (tuple(given[axis] for axis in order) for given in (array.shape, array.strides))
    return array.reshape(shape) if array.size == 0 else _seen_as(array, shape, strides)


def _seen_as(array, shape, strides):
    interface = dict(array.__array_interface__ if SIMULATOR else array.__cuda_array_interface__)
    interface.pop("stream", None)  # it is the caller's
    return _over({**interface, "shape": shape, "strides": strides}, array)


@contextlib.contextmanager
def flat_output(array):
    """The elements of an array that a kernel writes, in order: its own, or a copy that is copied back."""
    ordered = contiguous(array)
    yield ordered.reshape(-1)
    if ordered is not array:
        copy(ordered, array)


# -- launching -------------------------------------------------------------------------------------------


_asked = threading.local()


def _library_of(source):
    """The imported package that the class of an array is of."""
    return sys.modules.get(type(source).__module__.partition(".")[0])


@contextlib.contextmanager
def on_stream_of(source):
    """Queue work, and order memory, on the stream that is current to the library of another's device array.

    A library says so as PyTorch does, by ``cuda.current_stream``; for the arrays of others nothing changes.
    New memory is the library's too, which knows of its streams, and of a graph that is being recorded.
    """
    current = getattr(getattr(_library_of(source), "cuda", None), "current_stream", None)
    if current is None:
        yield
        return
    pointer = current(source.device).cuda_stream
    before = getattr(_asked, "pointer", None), getattr(_asked, "source", None)
    _asked.pointer, _asked.source = pointer, source
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(on(source.__dlpack_device__()[1]))
            if _cupy() is not None:
                stream = _cupy().cuda.ExternalStream(pointer) if pointer else _cupy().cuda.Stream.null
                stack.enter_context(stream)
            yield
    finally:
        _asked.pointer, _asked.source = before


def stream_pointer() -> int:
    """The caller's stream: what :func:`on_stream_of` found, or CuPy's current one, or 0, the default."""
    pointer = getattr(_asked, "pointer", None)
    if pointer is not None:
        return pointer
    return 0 if _cupy() is None else _cupy().cuda.get_current_stream().ptr


def stream():
    """The same as the backend names it."""
    pointer = stream_pointer()
    return cuda.external_stream(pointer) if pointer else 0


def _argument(value):
    """A device array, or a named tuple of some, as the backend takes it.

    It does not wait for the stream that an array was last used on.
    """
    if hasattr(value, "_fields"):
        return value._make(map(_argument, value))
    if SIMULATOR:
        # Else it would copy the array to its device and back, which it refuses to do with a strided one.
        arrays = importlib.import_module("numba.cuda.simulator.cudadrv.devicearray")
        return arrays.FakeCUDAArray(value) if isinstance(value, np.ndarray) else value
    if not hasattr(value, "__cuda_array_interface__"):
        return value
    return cuda.as_cuda_array(value, sync=False)


@functools.lru_cache(maxsize=4096)
def _configured(kernel, blocks, threads, pointer):
    with warnings.catch_warnings():
        # numba warns of grids that are small for the GPU; a small call is just small.
        warnings.simplefilter("ignore")
        return kernel[blocks, threads, cuda.external_stream(pointer) if pointer else 0]


@functools.cache
def _core_launch():
    """The functions that the backend launches kernels by and makes their configurations with, or None.

    They are those of NVIDIA's cuda.core. Calling them with arguments that are laid out here takes the host a
    fraction of the time that the backend takes.
    """
    try:
        backend = importlib.import_module("numba.cuda.dispatcher")
        return backend.launch, functools.lru_cache(4096)(backend.LaunchConfig)
    except (ImportError, AttributeError):
        return None


# What the backend makes of a scalar's type when it calls a kernel.
_SCALARS = {
    int: int,
    bool: bool,
    float: ctypes.c_double,
    np.float64: ctypes.c_double,
    np.float32: ctypes.c_float,
    np.int64: int,
    np.int32: ctypes.c_int32,
}


def _lay_out(values, kinds, numbers) -> bool:
    """Append the kinds of a kernel's arguments and the numbers that they are to it; whether all are known."""
    for value in values:
        kind = type(value)
        if kind in _SCALARS:
            kinds.append(kind)
            numbers.append(_SCALARS[kind](value))
        elif hasattr(value, "_fields"):
            kinds.append(kind)
            if not _lay_out(value, kinds, numbers):
                return False
        elif kind is tuple:
            kinds.append(len(value))
            if not _lay_out(value, kinds, numbers):
                return False
        elif _cupy() is not None and kind is _cupy().ndarray:
            kinds.append((value.dtype, value.ndim, value.flags.c_contiguous))
            numbers += (0, 0, value.size, value.itemsize, value.data.ptr, *value.shape, *value.strides)
        else:
            return False
    return True


_known = {}  # the compiled kernel for the kinds of arguments of a kernel, or None


def _launch_known(kernel, blocks, threads, configured, arguments, device_id) -> bool:
    """Launch a kernel that was launched with such arguments before; whether it was."""
    kinds, numbers = [kernel, device_id], []
    if _core_launch() is None or not _lay_out(arguments, kinds, numbers):
        return False
    kinds = tuple(kinds)
    if kinds not in _known:
        configured(*(given := [_argument(each) for each in arguments]))
        compiled = kernel.overloads.get(tuple(map(kernel.typeof_pyval, given)))
        code = getattr(compiled, "_codelibrary", None)
        _known[kinds] = None if code is None else getattr(code.get_cufunc(), "kernel", None)
        return True
    if _known[kinds] is None:
        return False
    run, configuration = _core_launch()
    run(configured.stream, configuration(grid=blocks, block=threads), _known[kinds], *numbers)
    return True


def launch(kernel, items: int, threads: int, *arguments) -> None:
    """Queue a kernel with a block for each item, at most ``MOST_BLOCKS`` of them."""
    if items <= 0:
        return
    blocks = min(int(items), MOST_BLOCKS)
    if SIMULATOR:
        kernel[blocks, threads](*map(_argument, arguments))
        return
    several = _count() > 1
    device_id = device_of(next(_arrays_of(arguments))) if several else 0
    with on(device_id):
        configured = _configured(kernel, blocks, threads, stream_pointer())
        if not _launch_known(kernel, blocks, threads, configured, arguments, device_id):
            configured(*map(_argument, arguments))


def _arrays_of(arguments):
    for each in arguments:
        if hasattr(each, "__cuda_array_interface__"):
            yield each
        elif hasattr(each, "_fields"):
            yield from _arrays_of(each)
