"""Processes that compile, while this one does, what it is going to need.

numba compiles one function at a time in a process, but what any process has compiled is on disk for all. So
the first forward of a graph has helpers: each goes through the graph from another place, backwards, on zeros
(``warmup.help_out``). The first call of a single operator has one, for what its kernel calls by an address
(:func:`jit.separate`). Who compiles which kernel, they agree on by :mod:`kernels.claims`.
``ROIOPS_JOBS`` says how many processes compile at most, this one among them.
"""

import atexit
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .kernels import claims
from .processors import number_asked, share

#: Processes at most, if nobody says more, and bytes that all helpers together may take for arrays.
_MOST, _BYTES = 8, 1 << 30
_running: list[subprocess.Popen] = []


class _Wanted:
    jobs: int | None = None


@contextlib.contextmanager
def at_most(count: int | None):
    """Within the ``with`` statement, so many processes compile; if None, as many as ROIOPS_JOBS says."""
    before, _Wanted.jobs = _Wanted.jobs, count
    try:
        yield
    finally:
        _Wanted.jobs = before


def jobs() -> int:
    """How many processes compile: as :func:`at_most` or ROIOPS_JOBS says, or one for each thread."""
    return _Wanted.jobs or number_asked("ROIOPS_JOBS") or min(share().threads, _MOST)


@functools.cache
def _listening():
    """numba's way to listen, and a listener that hears of the first compiling."""
    # Importing roiops loads no numba. A package comes before its modules: of two threads that import at once,
    # one may hold the one and wait for the other.
    import numba  # noqa: F401
    from numba.core import event

    class First(event.Listener):
        def __init__(self, call):
            self._call = call

        def on_start(self, event):
            call, self._call = self._call, None
            if call is not None:
                call()

        def on_end(self, event):
            pass

    return event.install_listener, First


def as_soon_as_compiling(call):
    """Within the ``with`` statement, ``call()`` once, when something turns out not to be on disk."""
    install, first = _listening()
    return install("numba:compile", first(call))


def _can_start() -> bool:
    """Whether this program may start processes of Python that are of use to it."""
    is_python = Path(sys.executable or "").name.startswith("python") and not hasattr(sys, "frozen")
    ranks = "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"
    is_rank = any(name in os.environ for name in ranks)  # the others do the same
    return is_python and not is_rank and claims.CAN_SHARE and os.environ.get("ROIOPS_CACHE") != "0"


def helpers_for(size: int) -> int:
    """How many processes may help with a graph whose arrays take so many bytes."""
    return min(jobs() - 1, _BYTES // max(1, size)) if _can_start() else 0


def start(task: dict, count: int) -> None:
    """Start ``count`` processes on a task, something of JSON that :func:`warmup.calls_of` understands.

    They end by themselves, or with this process. Nobody waits for them: a helper that comes to grief, such
    as one that knows no operator of that name, has helped less.
    """
    package = Path(__file__).resolve().parent
    environment = {**os.environ, "ROIOPS_JOBS": "1"}
    if environment.get("NUMBA_CACHE_DIR"):
        environment["NUMBA_CACHE_DIR"] = os.path.abspath(environment["NUMBA_CACHE_DIR"])
    told = json.dumps({**task, "path": [os.path.abspath(each) for each in sys.path]}).encode()
    command = [sys.executable, "-W", "ignore", "-m", f"{package.name}.warmup"]
    _running[:] = [each for each in _running if each.poll() is None]
    for i in range(count):
        with contextlib.suppress(OSError), tempfile.TemporaryFile() as given:
            given.write(told)
            given.seek(0)
            helper = subprocess.Popen(
                [*command, str(i), str(count)],
                cwd=package.parent,
                env=environment,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _running.append(helper)


def start_one(task: dict) -> None:
    """Start a process on a task if there is none that helps already."""
    if not any(each.poll() is None for each in _running) and helpers_for(0) > 0:
        start(task, 1)


claims.ask_for_help = start_one


@atexit.register
def _end_all() -> None:
    """Stop those that still run; a cache file is written whole or not at all."""
    for each in _running:
        each.kill()
        each.wait()
