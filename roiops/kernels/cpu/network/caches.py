"""The sizes of this machine's caches, as the system tells them once."""

import os

__all__ = ["LAST_CACHE", "SECOND_CACHE"]


def _size(name: str, otherwise: int) -> int:
    try:
        return os.sysconf(name) or otherwise
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return otherwise


#: Bytes of a core's second-level cache.
SECOND_CACHE = _size("SC_LEVEL2_CACHE_SIZE", 1 << 20)
#: Bytes of the cache before memory, which the cores share.
LAST_CACHE = max(SECOND_CACHE, _size("SC_LEVEL3_CACHE_SIZE", 8 << 20))
