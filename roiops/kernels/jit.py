"""The one place that decides how a CPU kernel is compiled.

Kernels are compiled on first use, cached on disk, and fall back to no cache where the folder cannot be
written (``ROIOPS_CACHE=0`` asks for no cache). A function that only kernels call is decorated with
:func:`inner`. One that holds ``prange`` is decorated with :func:`parallel`; with one thread its serial twin
runs, which touches no threading layer.

Threads that were running when a process forked are not there in the child, and GNU OpenMP ends a child that
asks for them; so a child whose parent had threads runs everything on one. numba's workqueue layer ends the
process when two Python threads enter it; so they take turns there.
"""

import functools
import math
import os
import threading
import types

import numba
import numpy as np
from numba import prange

from .numba_insides import KERNEL, entry_of, make_inner, watch_cache
from .threads_apart import keep_apart

__all__ = ["Calls", "Direct", "inner", "njit", "num_threads", "parallel", "prange", "split", "use_threads"]


def _cache_wanted() -> bool:
    return os.environ.get("ROIOPS_CACHE", "1") != "0"


def njit(function=None, **options):
    """``numba.njit`` with NumPy's division rules and a disk cache where one can be had."""
    if function is None:
        return functools.partial(njit, **options)
    options.setdefault("error_model", "numpy")
    options.setdefault("nogil", True)
    options = {**KERNEL, **options}
    if _cache_wanted():
        try:
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder it may write to
            pass
        else:
            watch_cache(compiled, function.__module__)
            return compiled
    return numba.njit(cache=False, **options)(function)


def inner(function=None, **options):
    """Compile ``function`` as a part of those that call it, never by itself.

    numba optimises each function, and makes an entry from Python, an entry from C and a cache file for it,
    before it compiles the function into its callers and optimises the whole again. For the many small
    functions of a kernel that is more than half of the time that its first call takes.
    """
    if function is None:
        return functools.partial(inner, **options)
    return make_inner(
        function, functools.partial(njit, **options), error_model="numpy", nogil=True, **options
    )


class Direct:
    """A compiled function whose argument types all follow from one dtype, which calls give first.

    numba looks at the type of each argument in each call, which takes microseconds where some are tuples.
    Here it does so once for each dtype. The caller sees to it that arrays are contiguous.
    """

    def __init__(self, function):
        self._compiled, self._entries = njit(getattr(function, "py_func", function)), {}

    def __call__(self, dtype, *args):
        return (self._entries.get(dtype) or self.entry(dtype, *args))(*args)

    def entry(self, dtype, *args):
        """The function for one dtype, compiled for arguments like these."""
        if dtype not in self._entries:
            self._entries[dtype] = entry_of(self._compiled, args)
        return self._entries[dtype]


class Calls:
    """Calls of parallel kernels by one object, each kernel with arguments of the same types every time.

    As with :class:`Direct`, the types are looked at in the first call only.
    """

    def __init__(self):
        self._entries = {}

    def __call__(self, kernel, threads: int, *args):
        entry = self._entries.get((kernel, threads > 1))
        if entry is None:
            entry = self._entries[kernel, threads > 1] = entry_of(kernel.by(threads), args)
        return entry(*args)


_layer = None  # numba's threading layer, once it runs
_forked = False  # whether it ran in the parent when this process was forked
_turn = threading.Lock()


def _after_fork() -> None:
    global _forked
    try:
        numba.threading_layer()
    except ValueError:  # no threads yet, of ours or of anybody else's kernels
        return
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


#: Vector operations, rough processor cycles, that are not worth another thread: about 10 us.
_LITTLE = 30_000


def num_threads(work: float = math.inf) -> int:
    """How many threads a parallel kernel would use now for so many vector operations."""
    global _layer
    if _forked or work < _LITTLE or numba.config.NUMBA_NUM_THREADS == 1 or _asked.threads == 1:
        return 1
    if _layer is None:
        _layer = _start_threads()
    count = numba.get_num_threads()
    if _layer == "omp":
        keep_apart(count)
    return count


#: How often a thread of GNU OpenMP looks for work before it sleeps. A look takes 15 to 50 ns, by processor:
#: it stays awake from one layer of a network to the next, and sleeps within a millisecond of the last.
_LOOKS = 10_000


def _start_threads() -> str:
    """Start numba's threads; the name of their layer.

    Threads of GNU OpenMP wait for each other by spinning, by default for many milliseconds. On a busy machine
    that takes the processor from the very thread that is waited for; sleeping at once costs some 10 us for
    each loop, which is more than a small layer takes. The variables are read once, now; other libraries and
    child processes are not to inherit our choice.
    """
    ours = {"GOMP_SPINCOUNT": str(_LOOKS), "KMP_BLOCKTIME": "1"}
    if {"OMP_WAIT_POLICY", *ours} & set(os.environ):
        ours = {}
    os.environ.update(ours)
    numba.get_num_threads()
    for name in ours:
        del os.environ[name]
    return numba.threading_layer()


class _Asked(threading.local):
    threads = None  # how many `use_threads` asks for in this Python thread


_asked = _Asked()


class use_threads:
    """Within the ``with`` statement, kernels that this Python thread calls use ``count`` threads.

    There are never more than numba was started with.
    """

    __slots__ = ("_before", "_count", "_mask")

    def __init__(self, count: int):
        self._count = min(count, numba.config.NUMBA_NUM_THREADS)

    def __enter__(self):
        self._before, self._mask = _asked.threads, None
        _asked.threads = self._count
        if self._count > 1 and not _forked:
            num_threads()  # starts the threads
            mask = numba.get_num_threads()
            if mask != self._count:
                self._mask = mask
                numba.set_num_threads(self._count)

    def __exit__(self, *error):
        _asked.threads = self._before
        if self._mask is not None:
            numba.set_num_threads(self._mask)


class _Parallel:
    """A kernel compiled twice from one source: with ``prange`` as threads, and as a plain loop."""

    def __init__(self, function, options):
        functools.update_wrapper(self, function)
        self.serial = njit(function, **options)
        # Loops are written as they are to run; looking for any to merge takes time.
        self.threaded = njit(_copy(function), parallel={"fusion": False}, **options)

    def __call__(self, *args):
        return self.by(num_threads())(*args)

    def by(self, threads: int):
        """The function for one thread or for more, as :func:`num_threads` says for the work at hand."""
        if threads == 1:
            return self.serial
        return self.threaded if _layer != "workqueue" else self._in_turn

    def _in_turn(self, *args):
        with _turn:
            return self.threaded(*args)


def _copy(function):
    """A second function of the same code, under a name by which numba's cache tells them apart."""
    name = function.__name__ + "_threaded"
    code = function.__code__.replace(co_name=name)
    twin = types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    twin.__qualname__ = name
    twin.__module__ = function.__module__
    return twin


def parallel(function=None, **options):
    """Compile ``function`` with and without threads; calling it picks by the thread count."""
    if function is None:
        return functools.partial(parallel, **options)
    return _Parallel(function, options)


@inner
def split(index, count):
    """``divmod(index, count)`` in int64; prange counts in uint64, which mixed with int64 makes floats."""
    signed = np.int64(index)
    return signed // count, signed % count
