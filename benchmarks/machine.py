"""What the benchmarks say of the machine they ran on."""

import os
import platform
from pathlib import Path

#: The results that pages are made of, and where benchmarks write: for another processor
#: ``BENCHMARK_RESULTS`` names a folder in there.
MAIN_RESULTS = Path(__file__).resolve().parent / "results"
RESULTS = MAIN_RESULTS / os.environ.get("BENCHMARK_RESULTS", "")
RESULTS.mkdir(exist_ok=True)

#: Vector instructions by their flag in Linux's list, the widest first.
_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def processor() -> str:
    """The name of the processor's model, and the widest vectors that it has, or that numba is held to."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    found = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    asked = os.environ.get("NUMBA_CPU_FEATURES")
    flags = found.get("flags", "").split() if asked is None else asked.replace("+", "").split(",")
    vectors = [f" with {name}" for flag, name in _VECTORS.items() if flag in flags]
    return found.get("model name", platform.processor()) + "".join(vectors[:1])
