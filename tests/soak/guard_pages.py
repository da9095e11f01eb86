"""Memory for NumPy's arrays between pages that nobody may touch, with what was in it before as one likes.

A read or a write beyond an array ends the process. For Linux and macOS, through NumPy's memory handlers (NEP 49).
"""

import contextlib
import ctypes
import mmap
import random
import sys

import numpy as np

from roiops.kernels import memory
from roiops.kernels.cpu import scratch, vector

HERE = sys.platform in ("linux", "darwin")
REASON = "mmap and mprotect are called as on Linux and macOS"

_PAGE, _NOTHING = mmap.PAGESIZE, 0  # PROT_NONE
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
#: NumPy's numbers of functions in the table of its C interface.
_SET_HANDLER = 304


def _functions():
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = _POINTER
    c.mmap.argtypes = [_POINTER, _SIZE, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong]
    c.mprotect.argtypes, c.munmap.argtypes = [_POINTER, _SIZE, ctypes.c_int], [_POINTER, _SIZE]
    return c


_C = _functions() if HERE else None


class _Blocks:
    """Blocks of memory, each between two pages that cannot be touched.

    Some begin at the first, the others end at the second. ``fill`` is what each byte holds at first.
    """

    def __init__(self, fill: int, seed):
        self._fill, self._random, self._maps = fill, random.Random(seed), {}

    def new(self, size: int, fill: int | None = None) -> int:
        whole = -(-size // _PAGE) * _PAGE + 2 * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANON
        start = _C.mmap(None, whole, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if start in (None, _POINTER(-1).value):
            return 0
        fill = self._fill if fill is None else fill
        if fill:  # new pages hold zeros
            ctypes.memset(start + _PAGE, fill, whole - 2 * _PAGE)
        for guard in (start, start + whole - _PAGE):
            if _C.mprotect(guard, _PAGE, _NOTHING):
                raise OSError(ctypes.get_errno(), "mprotect")
        at = start + _PAGE if self._random.random() < 0.4 else start + whole - _PAGE - size
        self._maps[at] = start, whole, size
        return at

    def size(self, at: int) -> int:
        return self._maps[at][2]

    def free(self, at: int, unmap=_C and _C.munmap) -> None:
        start, whole, _ = self._maps.pop(at)
        unmap(start, whole)


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", _POINTER),
        ("malloc", _POINTER),
        ("calloc", _POINTER),
        ("realloc", _POINTER),
        ("free", _POINTER),
    ]


def _set_handler():
    """NumPy's ``PyDataMem_SetHandler``: it takes a capsule or nothing, and gives the one before."""
    module = np._core if hasattr(np, "_core") else np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(module._multiarray_umath._ARRAY_API, None), ctypes.POINTER(_POINTER))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])


def _handler(blocks: _Blocks):
    """A capsule for NumPy by which its arrays are blocks."""

    def realloc(_, at, size):
        new = blocks.new(size)
        if at and new:
            ctypes.memmove(new, at, min(size, blocks.size(at)))
            blocks.free(at)
        return new

    calls = (
        ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE)(lambda _, size: blocks.new(size)),
        ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)(lambda _, n, size: blocks.new(n * size, 0)),
        ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE)(realloc),
        ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE)(lambda _, at, size: blocks.free(at)),
    )
    handler = _Handler(b"guard pages", 1, None, *(ctypes.cast(call, _POINTER) for call in calls))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
    capsule = make(ctypes.addressof(handler), b"mem_handler", None)
    # Arrays that were made with a handler go back to it, those that caches hold at the very end of the process:
    # so it is never taken apart.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((calls, handler, capsule)))
    return capsule


def _lines(size: int, dtype) -> np.ndarray:
    """An array that begins at a cache line: at a guard, or ending less than a line before one."""
    dtype = np.dtype(dtype)
    whole = np.empty(-(-max(size, 1) * dtype.itemsize // 64) * 64, np.uint8)  # of the handler's memory
    return whole[: size * dtype.itemsize].view(dtype)


@contextlib.contextmanager
def guarded(fill: int, seed=0):
    """Within the ``with`` statement, arrays lie between guards; each byte of memory holds ``fill`` at first.

    ``seed`` decides which begin at a guard and which end at one. That goes for each array of a kernel's scratch, too, and for each call of it anew. What numba's own code
    asks for inside a kernel is not guarded.
    """
    blocks = _Blocks(fill, seed)

    def scratch_of(self):
        made = self.__dict__.setdefault("_guarded", {})
        if id(blocks) not in made:
            made[id(blocks)] = [
                _lines(stop - start, np.float32).reshape(shape) for start, stop, shape in self._places
            ]
        for array in made[id(blocks)]:
            array.view(np.uint8)[...] = fill
        return made[id(blocks)]

    def empty(shape, dtype):
        return _lines(int(np.prod(shape)), dtype).reshape(shape)

    def zeros(count):
        return _lines(count, np.float32)

    instead = {id(vector.aligned_zeros): zeros, id(memory.empty): empty}
    changed = [(scratch.Scratch, "__call__", scratch.Scratch.__call__)]
    scratch.Scratch.__call__ = scratch_of
    for module in [each for name, each in sys.modules.items() if name.startswith("roiops.")]:
        for name, value in list(vars(module).items()):
            if id(value) in instead:
                changed.append((module, name, value))
                setattr(module, name, instead[id(value)])
    set_handler = _set_handler()
    before = set_handler(_handler(blocks))
    try:
        yield
    finally:
        set_handler(before)
        for owner, name, value in changed:
            setattr(owner, name, value)
