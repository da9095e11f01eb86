"""The one place that decides how a CPU kernel is compiled.

Kernels are compiled on first use, cached on disk, and fall back to no cache where the folder cannot be
written (``ROIOPS_CACHE=0`` asks for no cache). A function that only kernels call is decorated with
:func:`inner`. One with loops that threads share is decorated with :func:`parallel`; on one thread it touches
no threading layer.

Threads that were running when a process forked are not there in the child, and GNU OpenMP ends a child that
asks for them; so a child whose parent had threads runs everything on one. numba's workqueue layer ends the
process when two Python threads enter it; so they take turns there.
"""

import contextlib
import ctypes
import functools
import hashlib
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from ..errors import ParamError
from ..processors import share
from .numba_insides.addresses import separate_call
from .numba_insides.cache import as_kernel, remember_source
from .numba_insides.compiler import KERNEL, UNCOUNTED, make_inner
from .numba_insides.found import INSIDES
from .numba_insides.launch import (
    KEEP,
    STATE,
    compiler_lock,
    entry_of,
    kept_size,
    launcher_by,
    launcher_of,
    run_kept,
    threads_counter,
    threads_launcher,
)
from .threads_apart import keep_apart

#: Whether numba's insides are put to use.
_INSIDES = INSIDES and not numba.config.DISABLE_JIT


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
        with contextlib.suppress(RuntimeError):  # numba found no folder it may write to
            return as_kernel(numba.njit(cache=True, **options)(function), function)
    return as_kernel(numba.njit(cache=False, **options)(function), function)


def inner(function=None, *, makes_arrays=True, **options):
    """Compile ``function`` as a part of those that call it, never by itself.

    numba optimises each function, and makes an entry from Python, an entry from C and a cache file for it,
    before it compiles the function into its callers and optimises the whole again. For the many small
    functions of a kernel that is more than half of the time that its first call takes.

    ``makes_arrays=False`` is for a function that neither makes arrays nor gives any back: what it is given,
    its callers hold, and nobody counts who uses it.
    """
    if not makes_arrays:
        options = {**UNCOUNTED, **options}
    if function is None:
        return functools.partial(inner, **options)
    _tell_apart(function)
    return make_inner(
        function, functools.partial(njit, **options), error_model="numpy", nogil=True, **options
    )


def separate(returns, *, makes_arrays=True):
    """A decorator: compile a function by itself, once for all kernels that call it.

    It is for a large part that several kernels have. They call it by its address, which costs some
    nanoseconds, and another process may compile it meanwhile. The kernels are compiled without knowing more
    of it than ``returns(*kinds)``: numba's type of its result for arguments of these types.
    """
    options = {} if makes_arrays else UNCOUNTED

    def decorate(function):
        if not _INSIDES:
            return inner(function, **options)
        remember_source(function)
        call = separate_call(function, functools.partial(njit, **options), returns)
        code = function.__code__
        names = ", ".join(code.co_varnames[: code.co_argcount])
        return inner(_in_place_of(function, names, f"return _call(({names},))", {"_call": call}), **options)

    return decorate


def _in_place_of(function, names: str, body: str, globals_: dict):
    """A function of arguments ``names`` that stands where ``function`` does, in numba's cache too."""
    code = function.__code__
    source = "\n" * (code.co_firstlineno - 1) + f"def {function.__name__}({names}):\n    {body}\n"
    found = {**globals_, "__name__": function.__module__}
    exec(compile(source, code.co_filename, "exec"), found)
    made = found[function.__name__]
    made.__qualname__, made.made_of = function.__qualname__, function
    return made


def _tell_apart(function) -> None:
    """Give functions that one ``def`` makes of different functions and values names of their own.

    Machine code is linked by name. In one process numba numbers what it compiles; kernels that two
    processes have left on disk would take each other's parts.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if cells:
        parts = [f"{c.__module__}.{c.__qualname__}" if hasattr(c, "__qualname__") else repr(c) for c in cells]
        # A digest: numba puts this into names of files, which have 255 characters at most.
        function.__qualname__ += f"[{hashlib.sha256(', '.join(parts).encode()).hexdigest()[:12]}]"


class Direct:
    """A compiled function whose argument types all follow from one dtype, or a few, which calls give first.

    numba looks at the type of each argument in each call, which takes microseconds where some are tuples.
    Here it does so once for each dtype. The caller sees to it that arrays are contiguous.

    The function is one of a module. numba would never find one that holds others (a closure) on disk again;
    such a function can be a part.
    """

    def __init__(self, function):
        self._function, self._entries = getattr(function, "py_func", function), {}
        if self._function.__closure__:
            raise TypeError(f"{self._function.__qualname__}: a kernel must be a function of a module")
        remember_source(self._function)

    @functools.cached_property
    def _compiled(self):
        return njit(self._function)

    def __call__(self, dtype, *args):
        return (self._entries.get(dtype) or self.entry(dtype, *args))(*args)

    def entry(self, dtype, *args):
        """The function for one dtype, compiled for arguments like these."""
        if dtype not in self._entries:
            self._entries[dtype] = entry_of(self._compiled, args)
        return self._entries[dtype]


class Whole(Direct):
    """A :class:`Direct` whose loops threads share: ``function(launcher, parts, *args)``."""

    def by(self, threads, dtype, *args):
        """Call it with so many threads, which :func:`num_threads` has allowed."""
        return _run(self._entries.get(dtype) or self.entry(dtype, 0, 1, *args), threads, *args)


def in_turn(*calls):
    """A call of several, one after the other."""

    def run():
        for call in calls:
            call()

    return run


class Calls:
    """Calls of parallel kernels by one object, each kernel with arguments of the same types every time.

    As with :class:`Direct`, the types are looked at in the first call only.
    """

    def __init__(self):
        self._entries = {}

    def __call__(self, kernel, threads: int, *args):
        return _run(self.entry(kernel, args), threads, *args)

    def entry(self, kernel, args):
        """The kernel's function, compiled for arguments like these."""
        found = self._entries.get(kernel)
        if found is None:
            found = self._entries[kernel] = entry_of(kernel.compiled, (0, 1, *args))
        return found

    def repeated(self, kernels):
        """A call of kernels, each with its number of threads and its arguments, one after the other."""
        if _INSIDES and _layer != "workqueue":
            return self._kept(kernels)
        return in_turn(
            *(
                functools.partial(_run, self.entry(kernel, args), threads, *args)
                for kernel, threads, *args in kernels
            )
        )

    def _kept(self, kernels):
        """:meth:`repeated` with all arguments as the kernels want them, in memory of the call's own."""
        sizes = [kept_size(tuple(args)) for _, _, *args in kernels]
        blocks = [size + STATE * threads for size, (_, threads, *_) in zip(sizes, kernels, strict=True)]
        memory, places = np.zeros(sum(blocks), np.int64), np.empty(len(kernels), np.int64)
        rest = memory
        for i, (kernel, threads, *args) in enumerate(kernels):
            call, states, rest = np.split(rest, (sizes[i], blocks[i]))
            places[i] = call.ctypes.data
            # Without threads there is one part, as in a call that is not kept.
            call[:4] = call.nbytes, threads if _launcher else 1, states.ctypes.data, 1
            self.entry(kernel, args)(KEEP, int(places[i]), *args)
        run = functools.partial(_entry_of_run_all(), _launcher, _NUMBERS.ctypes.data, places)
        run.holds = memory, kernels
        return run


#: The numbers of the parts of a kernel; of more than there are threads for :class:`pretend_threads`.
_NUMBERS = np.arange(max(256, numba.config.NUMBA_NUM_THREADS))


@njit
def _run_all(launcher, numbers, places):
    """Run kept calls, given their addresses."""
    for at in places:
        run_kept(launcher, numbers, at)


def cache_folder() -> str | None:
    """A folder in which compiled kernels are kept; None where they are not, or none can be written."""
    return getattr(getattr(_run_all, "_cache", None), "cache_path", None)


@functools.cache
def _entry_of_run_all():
    return entry_of(_run_all, (0, 0, _NUMBERS))


_layer = None  # numba's threading layer, once it runs
_launcher = 0  # how its threads are made to run a function
_count_threads = numba.get_num_threads
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
    # A child would wait for good for a thread that compiled in its parent: a fork waits until it has.
    _lock = compiler_lock()
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


#: Vector operations, rough processor cycles, that are worth another thread: about 10 us.
_LITTLE = 30_000


_starting = threading.Lock()


def num_threads(work: float = math.inf) -> int:
    """How many threads a parallel kernel would use now for so many vector operations."""
    global _layer, _launcher, _count_threads
    most = _asked.threads or share().threads
    if _forked or work < _LITTLE or most == 1:
        return 1
    if _layer is None:
        with _starting:
            if _layer is None:
                layer = _start_threads()
                _launcher, _count_threads = threads_launcher(), threads_counter()
                _layer = layer  # last: others look at it without the lock
    count = min(most, _count_threads())
    if work < count * _LITTLE:
        count = 1 + int(work // _LITTLE)
    if _layer == "omp" and count > 1:
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
    try:
        numba.get_num_threads()
    except ValueError as error:  # an unknown layer, or one that is not installed
        told = " ".join(str(error).split())
        raise ParamError(f"NUMBA_THREADING_LAYER is {numba.config.THREADING_LAYER}: {told}") from error
    finally:
        for name in ours:
            del os.environ[name]
    return numba.threading_layer()


class _Asked(threading.local):
    threads = None  # how many `use_threads` asks for in this Python thread


_asked = _Asked()


_pretended = []  # launchers, of which kept calls may hold the addresses


@contextlib.contextmanager
def pretend_threads(count: int, run, *, claims=False):
    """Within the ``with`` statement, loops are divided among so many threads, of which there is none.

    ``run(part, parts)`` calls ``part(i)`` for each part of a loop; once, if they claim items
    (``shares.pieces``): the one that is called first does nearly all of them. So a test or a measurement can
    take the parts in any order, one by one, for machines that are not at hand.
    """
    global _layer, _launcher, _count_threads
    before = _asked.threads, _layer, _launcher, _count_threads
    _pretended.append(launcher_by(run, claims))
    address = ctypes.cast(_pretended[-1], ctypes.c_void_p).value
    _asked.threads, _layer, _launcher, _count_threads = count, "pretended", address, lambda: count
    try:
        yield
    finally:
        _asked.threads, _layer, _launcher, _count_threads = before


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


def _run(function, threads, *args):
    """Call ``function(launcher, parts, *args)`` with as many threads as :func:`num_threads` has allowed."""
    if threads > 1 and _layer == "workqueue":
        with _turn:
            return function(_launcher, threads, *args)
    return function(_launcher if threads > 1 else 0, threads, *args)


class _Parallel:
    """A kernel whose loop is divided into a part for each thread: ``function(share, *args)``."""

    def __init__(self, function, options):
        functools.update_wrapper(self, function)
        self._options = options
        remember_source(function)

    @functools.cached_property
    def compiled(self):
        """``f(launcher, parts, *args)``, for any number of parts."""
        function = self.__wrapped__
        if not _INSIDES:
            return _by_threads_of_python(njit(function, **self._options))
        body = inner(function, **self._options)
        return njit(_with_launcher(function, launcher_of(body)), **self._options)

    def __call__(self, *args):
        return _run(self.compiled, num_threads(), *args)

    def by(self, threads: int):
        """The kernel on one thread or on more, as :func:`num_threads` says for the work at hand."""
        if threads == 1:
            return functools.partial(self.compiled, 0, 1)
        return functools.partial(_run, self.compiled, threads)


def _by_threads_of_python(part):
    """``part((i, parts), *args)`` for each part of a loop, by threads of Python if there are several."""

    def run(launcher, parts, *args):
        if parts == 1:
            part((0, 1, 0), *args)
            return
        with ThreadPoolExecutor(parts) as pool:
            done = [pool.submit(part, (i, parts, 0), *args) for i in range(parts)]
        for each in done:
            each.result()

    return run


def _with_launcher(function, launch):
    """``function`` without its first argument; how threads are launched, and how many, instead."""
    code = function.__code__
    names = ", ".join(code.co_varnames[1 : code.co_argcount])
    body = f"_launch(_launcher, _parts, ({names},))"
    return _in_place_of(function, f"_launcher, _parts, {names}", body, {"_launch": launch})


def parallel(function=None, *, makes_arrays=True, **options):
    """Compile ``function``, which has a loop that threads share, for any number of threads.

    The first argument stands for a thread's share, and calls leave it out: ``def f(share, ...)`` holds
    ``for i in within(share, count)`` (``shares.py``), at its end. What stands before the loop is done for
    each share.

    ``makes_arrays=False`` is for a function that makes no arrays, only parts of those that it is given. Then
    nobody counts who uses them, which numba does in inner loops, too.
    """
    if not makes_arrays:
        options = {**UNCOUNTED, **options}
    if function is None:
        return functools.partial(parallel, **options)
    return _Parallel(function, options)


def shared(function=None, **options):
    """A loop that threads share, as a part of other compiled functions: ``f(launcher, parts, *args)``.

    ``function(share, *args)`` does one share of ``parts``, as in :func:`parallel`. A :class:`Whole` is given
    the launcher; without it (0), and where numba's insides are not there, there is one share. The options
    are those of :func:`inner`.
    """
    if function is None:
        return functools.partial(shared, **options)
    remember_source(function)
    body = inner(function, **options)
    if _INSIDES:
        return inner(_with_launcher(function, launcher_of(body)), makes_arrays=False)

    @inner(makes_arrays=False)
    def alone(launcher, parts, args):
        body((0, 1, 0), *args)

    return inner(_with_launcher(function, alone))
