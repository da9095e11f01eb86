"""CUDA kernels in numba's simulator, in a session of their own: see ``tests/test_cuda.py``."""

import os

import numpy as np
import pytest

SIMULATOR = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")

if SIMULATOR:
    import calls
    import scheduler

    scheduler.install()
    worker = os.environ.get(
        "PYTEST_XDIST_WORKER"
    )  # not that which starts them: they would have its processor
    if worker and hasattr(os, "sched_setaffinity"):
        # Its threads run one at a time: on one processor, handing over costs half as much.
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[int(worker[2:]) % len(processors)]})
else:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def memory_of_nobody(monkeypatch):
    """What is not written before it is read is NaN, or an index far outside: kernels' memory and arrays."""
    before = np.empty

    def empty(shape, dtype=float, **options):
        array = before(shape, dtype, **options)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        elif array.dtype.kind in "iu":
            array.fill(np.iinfo(array.dtype).max // 2)
        return array

    monkeypatch.setattr(np, "empty", empty)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few threads and few of them, so that every loop over a grid goes round more than once."""
    from roiops.kernels.cuda import runtime
    from roiops.kernels.cuda.roi import tiles

    monkeypatch.setattr(runtime, "MOST_BLOCKS", 3)
    monkeypatch.setattr(runtime, "COPY_THREADS", 5)
    monkeypatch.setattr(tiles, "SIZES", tiles.Sizes(**calls.SMALL_SIZES))
