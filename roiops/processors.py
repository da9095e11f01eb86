"""How many processors this process may use, and what says so.

A container often has a share of a large machine: the operating system shows all 64 processors and lets the
container compute for the time of two. With a thread for each of the 64, all wait for the few that run.
"""

import functools
import math
import os
from pathlib import Path
from typing import NamedTuple

from .errors import ParamError


class Share(NamedTuple):
    """A number of threads, and in words what it comes from."""

    threads: int
    reason: str


def usable() -> int:
    """The processors that the operating system lets this process run on: affinity and cpusets count."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def number_asked(variable: str) -> int | None:
    """The number above 0 that an environment variable holds; None where it is not set."""
    asked = os.environ.get(variable, "").strip()
    if asked and not (asked.isdecimal() and int(asked)):
        raise ParamError(f"{variable} must be a whole number above 0, got {asked!r}")
    return int(asked) if asked else None


@functools.cache
def share(root="/") -> Share:
    """How many threads kernels use where nothing in the program says otherwise.

    ``NUMBA_NUM_THREADS`` is taken as it is. Else it is the least of what may be used: the processors, the
    quota of the container, and ``OMP_NUM_THREADS``.
    """
    asked = number_asked("NUMBA_NUM_THREADS")
    import numba

    most = numba.config.NUMBA_NUM_THREADS
    if asked:
        return Share(most, "NUMBA_NUM_THREADS")
    found = [Share(most, "the processors that this process may use")]
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        found.append(Share(int(asked), "OMP_NUM_THREADS"))
    quota = _quota(Path(root))
    if quota is not None:
        found.append(Share(max(1, math.ceil(quota)), f"the container's quota of {quota:g} processors"))
    return min(found, key=lambda each: each.threads)


def _quota(root: Path) -> float | None:
    """The processors that control groups leave to this process, of version 1 or 2; None where all."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux, or hidden
        return None
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, read = root / "sys/fs/cgroup", _quota_of_version_2
        elif "cpu" in controllers.split(","):
            mounts = (root / "sys/fs/cgroup" / name for name in (controllers, "cpu"))
            mount, read = next((each for each in mounts if each.is_dir()), None), _quota_of_version_1
        else:
            continue
        if mount is not None:
            # Each group is bound by those above it. Within a container the groups above are often not shown,
            # and its own is the mount itself.
            path = Path(path.lstrip("/"))
            found += [read(mount / each) for each in (path, *path.parents, Path())]
    return min((quota for quota in found if quota), default=None)


def _quota_of_version_2(group: Path) -> float | None:
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_of_version_1(group: Path) -> float | None:
    try:
        quota, period = (int((group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
