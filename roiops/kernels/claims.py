"""A kernel is compiled by one process at a time; others wait until it is on disk, or do something else first.

A claim is a lock on one byte of a file in the folder of the cache: the system takes it back from a process
that ends in any way. Where there are no such locks (Windows, some network drives) every process compiles.
"""

import contextlib
import functools
import os
import time
import zlib

try:
    import fcntl
except ImportError:  # not there on Windows
    fcntl = None

#: Whether several processes can share the work at all.
CAN_SHARE = fcntl is not None
_FILE = "roiops-compiling.lock"
#: Seconds after which a process compiles a kernel all the same, and those after which it looks again.
_PATIENCE, _LOOK_AGAIN = 120.0, 0.01


def ask_for_help(task: dict) -> None:
    """Have another process compile something; ``roiops/compiling.py`` puts in its place what starts one."""


class KernelBusy(RuntimeError):
    """Another process compiles this kernel now."""


class _Here:
    """What this process does where a kernel is claimed: it waits, or raises :class:`KernelBusy`."""

    waits = True


def never_wait() -> None:
    """Let :func:`take` raise :class:`KernelBusy` in this process."""
    _Here.waits = False


@functools.cache
def _file_in(folder: str) -> int | None:
    """The file of a folder, open for good: a process that closed it would give back all its claims."""
    try:
        return os.open(os.path.join(folder, _FILE), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # somebody else's folder
        return None


#: What this process compiles now: the folder and name of each kernel.
_held: set[tuple[str, str]] = set()


def _lock(file: int, name: str, action: int) -> None:
    fcntl.lockf(file, action, 1, zlib.crc32(name.encode()) >> 1)


def take(folder: str, name: str) -> bool:
    """Claim a kernel; whether another process has just compiled it, or tried to."""
    file = _file_in(folder) if CAN_SHARE else None
    if file is None:
        return False
    waited, end = False, time.monotonic() + _PATIENCE
    while True:
        try:
            _lock(file, name, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # both are said of a lock that is taken
            if not _Here.waits:
                raise KernelBusy(name) from None
            if time.monotonic() > end:
                return False
            waited = True
            time.sleep(_LOOK_AGAIN)
        except OSError:  # no locks here
            return False
        else:
            _held.add((folder, name))
            return waited


def give_back(folder: str, name: str) -> None:
    """End a claim, if there is one."""
    _held.discard((folder, name))
    file = _file_in(folder) if CAN_SHARE else None
    if file is not None:
        with contextlib.suppress(OSError):
            _lock(file, name, fcntl.LOCK_UN)


def give_back_all() -> None:
    """End all claims: what was compiled will not be on disk, for an error or Ctrl-C."""
    for each in tuple(_held):
        give_back(*each)
