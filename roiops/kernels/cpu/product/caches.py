"""The sizes of this machine's caches, as Linux or macOS tells them; elsewhere common ones."""

import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Caches(NamedTuple):
    """Sizes in bytes."""

    #: The second-level cache of one core, or its part of one that cores share.
    second: int
    #: The cache before memory, which cores share.
    last: int
    #: Who says so.
    source: str


def find(root="/") -> Caches:
    """The caches of the first processor."""
    told = _told_by_macos() if sys.platform == "darwin" else _told_by_linux(Path(root))
    if 2 in told:
        source = "as the system says"
    else:
        source = "assumed, as the system does not say"
        # Those of most processors with AVX2, or of Arm's for servers. A smaller guess costs less than a
        # larger one: what is packed for a cache that is not there comes from memory each time.
        told = {2: 1 << 20 if platform.machine() in ("aarch64", "arm64") else 512 << 10, 3: 8 << 20}
    return Caches(told[2], max(told[2], told.get(3, 0), told.get("shared", 0)), source)


def _told_by_linux(root: Path) -> dict:
    """Bytes by level, of caches that hold data."""
    sizes = {}
    for folder in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                sizes[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # hidden, or told in other words
            continue
    return sizes


#: In macOS's words: those of the faster cores of Apple's processors, and those of all others.
_OF_APPLE = "hw.perflevel0.l2cachesize", "hw.perflevel0.cpusperl2"
_OF_OTHERS = "hw.l2cachesize", "hw.l3cachesize"


def _told_by_macos() -> dict:
    """Bytes by level. Apple's cores share the second-level cache, and it is the last before memory."""
    try:
        told = subprocess.run(["sysctl", *_OF_APPLE, *_OF_OTHERS], capture_output=True, text=True, timeout=10)
        pairs = [line.split(":") for line in told.stdout.splitlines()]  # unknown names are not in it
        found = {name.strip(): int(value) for name, value in pairs}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    shared, cores = (found.get(name, 0) for name in _OF_APPLE)
    if shared and cores:
        return {2: shared // cores, "shared": shared}
    return {level: found[name] for level, name in zip((2, 3), _OF_OTHERS, strict=True) if found.get(name)}


HERE = find()
SECOND_CACHE, LAST_CACHE, _ = HERE
