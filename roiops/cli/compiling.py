"""Kernels that are compiled before a model runs, in several processes, with word of it on standard error."""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ..processors import share
from ..warmup import compile_kinds, shares

#: Seconds after which somebody who waits is told what for.
_PATIENCE = 1.0
#: Seconds after which a process looks again whether another one has finished.
_LOOK_AGAIN = 0.02


def shape_arguments(shapes: dict) -> list[str]:
    """Shapes by name as ``roiops warmup`` takes them."""
    return [f"--shape={name}={','.join(map(str, shape))}" for name, shape in shapes.items()]


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


class Claims:
    """Who compiles which kind: an agreement of processes, by files in a folder.

    What two processes compile at once is compiled twice, as only what is finished is on disk for all.
    """

    def __init__(self, folder):
        self._folder = Path(folder)

    def take(self, kind: int) -> bool:
        """Whether this process is the first to ask for number ``kind``; if so, it is to compile it."""
        try:
            (self._folder / str(kind)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def finish(self, kind: int) -> None:
        """Say that a kind is on disk."""
        (self._folder / f"{kind}.finished").touch()

    def finished(self, kind: int) -> bool:
        return (self._folder / f"{kind}.finished").exists()


class _Helpers:
    """Processes of ``roiops warmup`` that compile a share each, while this one compiles its own.

    numba compiles one function at a time in a process, but what any process compiled is on disk for all. An
    error of theirs comes up again where their share is needed.
    """

    def __init__(self, arguments: list[str], count: int, folder: str):
        command = [sys.executable, "-W", "ignore", "-m", "roiops", "warmup", *arguments]
        self._processes = [
            subprocess.Popen(
                [*command, "--share", str(i), str(count), folder],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for i in range(1, count)
        ]

    def running(self) -> bool:
        return any(process.poll() is None for process in self._processes)

    def end(self) -> None:
        """Stop those that still run; a cache file is written whole or not at all."""
        for process in self._processes:
            process.kill()
            process.wait()


def compile_in_processes(kinds, arguments: list[str], jobs: int | None = None) -> None:
    """Have all compiled that ``kinds`` need; see :func:`roiops.warmup.kinds_of_steps`.

    Other processes help as soon as the first kernel turns out not to be on disk. ``arguments`` are those of
    ``roiops warmup`` for the same kinds.
    """
    jobs = max(1, min(jobs or share().threads, len(kinds)))
    progress, helpers, begun = Progress(len(kinds)), None, False

    def begin():
        nonlocal helpers, begun
        if begun:
            return
        begun = True
        progress.begin()
        if jobs > 1:
            helpers = _Helpers(arguments, jobs, folder)

    with tempfile.TemporaryDirectory() as folder:
        claims = Claims(folder)
        try:
            theirs = compile_share(kinds, 0, jobs, claims, progress, begin)
            for kind in theirs:
                while not claims.finished(kind) and helpers is not None and helpers.running():
                    time.sleep(_LOOK_AGAIN)
                if claims.finished(kind):
                    progress(kinds[kind][0])
                else:  # a process came to grief
                    compile_kinds([kinds[kind]], progress)
        finally:
            progress.close()
            if helpers is not None:
                helpers.end()


def compile_share(kinds, part: int, count: int, claims: Claims, report=None, on_compile=None) -> list[int]:
    """Compile the share of a process, then what the others have not come to: theirs from the end on.

    The numbers of those that other processes compile are returned.
    """
    found = shares([(name, kind) for kind, (name, _) in enumerate(kinds)], count)
    others = found[part + 1 :] + found[:part]
    theirs = []
    for _, kind in found[part] + [each for kept in others for each in kept[::-1]]:
        if claims.take(kind):
            compile_kinds([kinds[kind]], report, on_compile)
            claims.finish(kind)
        else:
            theirs.append(kind)
    return theirs
