"""Threads that work together are kept on processors of their own.

A thread of GNU OpenMP that has slept is often woken on the processor of the thread that waits for it. On some
machines, virtual ones above all, nothing moves it from there: the two take turns, each looking for work until
it gives up, and a small network takes several times as long (``benchmarks/awake.py``, after a rest). So the
processor of the caller is taken from those that its helpers may run on. They may use all others; nobody is
bound to one.
"""

import contextlib
import ctypes
import functools
import os
import threading
import time

#: A thread changes its processor when it wakes: seldom while kernels follow each other.
_SECONDS = 1e-3


class _Team(threading.local):
    """The helpers of a Python thread: their numbers, and the processor that they leave to it."""

    helpers, size, processor, checked = (), 0, None, 0.0


_team = _Team()


@functools.cache
def _functions():
    """C's ``sched_getcpu`` and OpenMP's ``GOMP_parallel``, or None where there is no such thing.

    OpenMP is loaded by then: it reads its variables from the environment once, as it is.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        return ctypes.CDLL(None).sched_getcpu, ctypes.CDLL("libgomp.so.1").GOMP_parallel
    except (OSError, AttributeError):
        return None


def keep_apart(threads: int) -> None:
    """Leave the processor of this Python thread to it, for kernels on so many threads of GNU OpenMP."""
    if threads == 1:
        return
    now = time.monotonic()
    if now < _team.checked + _SECONDS:
        return
    _team.checked = now
    if _functions() is None:
        return
    processor = _functions()[0]()
    if processor == _team.processor and threads == _team.size:
        return
    allowed = os.sched_getaffinity(0)
    if len(allowed) < threads:
        return
    if threads != _team.size:
        _team.helpers, _team.size = _helpers(threads), threads
    for helper in _team.helpers:
        with contextlib.suppress(OSError):  # it has ended, or may not be moved
            os.sched_setaffinity(helper, allowed - {processor})
    _team.processor = processor


def _helpers(threads: int) -> list[int]:
    """The system's numbers of the threads that OpenMP gives this one."""
    numbers = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: numbers.append(threading.get_native_id()))
    _functions()[1](note, None, ctypes.c_uint(threads), ctypes.c_uint(0))
    mine = threading.get_native_id()
    return [number for number in numbers if number != mine]
