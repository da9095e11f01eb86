"""Kernels that are compiled before a model runs, in several processes, with word of it on standard error."""

import sys
import threading

from .. import compiling
from ..warmup import compile_kinds, kinds_of_steps

#: Seconds after which somebody who waits is told what for.
_PATIENCE = 1.0


class Progress:
    """What is compiled and how much is left: a line that changes on a terminal, one line elsewhere.

    Nothing is said before :meth:`begin` and for a moment after it, and so nothing where all is on disk.
    """

    def __init__(self, count: int, stream=None):
        self._count, self._done, self._last = count, 0, ""
        self._stream = stream or sys.stderr
        self._said = self._patient = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, self._speak)
        self._timer.daemon = True

    def begin(self) -> None:
        """Something is being compiled; whoever still waits in a moment is told so."""
        self._timer.start()

    def __call__(self, name: str) -> None:
        """One more is done, ``name`` the last of them."""
        with self._lock:
            self._done, self._last = min(self._done + 1, self._count), name
            if self._patient:
                self._write()

    def _speak(self):
        with self._lock:
            self._patient = True
            self._write()

    def _write(self):
        if self._stream.isatty():
            last = f", last {self._last}" if self._last else ""
            text = f"compiling kernels: {self._done} of {self._count}{last}"
            self._stream.write(f"\r{text[:78]:<78}")
        elif not self._said:
            left = self._count - self._done
            self._stream.write(
                f"compiling kernels, {left} of {self._count} kinds of operators left; kept on disk\n"
            )
        self._said = True
        self._stream.flush()

    def close(self) -> None:
        """Clear the line."""
        self._timer.cancel()
        with self._lock:
            self._patient = False
            if self._said and self._stream.isatty():
                self._stream.write("\r" + " " * 78 + "\r")
                self._stream.flush()


def compile_in_processes(kinds, task: dict | None, size: int = 0, jobs: int | None = None) -> None:
    """Have all compiled that ``kinds`` need; see :func:`roiops.warmup.kinds_of_steps`.

    Other processes help with the ``task`` as soon as the first kernel turns out not to be on disk. ``size``
    are the bytes of arrays that each of them takes.
    """
    progress = Progress(len(kinds))
    helpers = 0 if task is None else min(compiling.helpers_for(size, jobs), len(kinds) - 1)

    def begin():
        progress.begin()
        compiling.start(task, helpers)

    try:
        with compiling.as_soon_as_compiling(begin):
            compile_kinds(kinds, progress)
    finally:
        progress.close()


def compile_model(executor, jobs: int | None = None) -> int:
    """Have all compiled that inferences of an executor need; how many kinds of operators that are."""
    kinds = kinds_of_steps(executor)
    compile_in_processes(kinds, executor.compile_task(), executor.size, jobs)
    return len(kinds)
