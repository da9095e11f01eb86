"""Word on a terminal, once, for whoever waits for kernels to compile. ``ROIOPS_QUIET=1`` asks for none."""

import contextlib
import os
import sys
import threading
import time

#: Seconds of compiling, all of a process together, after which somebody who waits is told.
_SECONDS = 2.0
_WORDS = "roiops: compiling kernels for a first call; they are kept on disk (ROIOPS_QUIET=1: no such line)\n"


class _Waiting:
    """How long this process has compiled, and whether that has been said. numba's lock is held throughout."""

    seconds, depth, said = 0.0, 0, False


def _wanted() -> bool:
    if _Waiting.said or os.environ.get("ROIOPS_QUIET", "0") not in ("", "0"):
        return False
    return getattr(sys.stderr, "isatty", bool)()


def _say() -> None:
    if _wanted():
        _Waiting.said = True
        sys.stderr.write(_WORDS)
        sys.stderr.flush()


@contextlib.contextmanager
def compiling():
    """Around a compilation; it may be within another."""
    timer, start = None, time.monotonic()
    if _Waiting.depth == 0 and _wanted():
        timer = threading.Timer(max(0.0, _SECONDS - _Waiting.seconds), _say)
        timer.daemon = True
        timer.start()
    _Waiting.depth += 1
    try:
        yield
    finally:
        _Waiting.depth -= 1
        if timer is not None:
            timer.cancel()
        if _Waiting.depth == 0:
            _Waiting.seconds += time.monotonic() - start
