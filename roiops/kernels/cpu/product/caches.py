"""The sizes of this machine's caches, as Linux tells them; elsewhere common ones."""

from pathlib import Path


def _sizes() -> dict:
    """Bytes by level, of caches that hold data."""
    sizes = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                sizes[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # hidden, or told in other words
            continue
    return sizes


_SIZES = _sizes()
#: Bytes of a core's second-level cache.
SECOND_CACHE = _SIZES.get(2, 1 << 20)
#: Bytes of the cache before memory, which cores share.
LAST_CACHE = max(SECOND_CACHE, _SIZES.get(3, 16 << 20))
