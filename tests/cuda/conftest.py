"""CUDA kernels in numba's simulator, in a session of their own: see ``tests/test_cuda.py``."""

import os

import pytest

SIMULATOR = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")

if SIMULATOR:
    import scheduler

    scheduler.install()
else:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few threads and few of them, so that every loop over a grid goes round more than once."""
    from roiops.kernels.cuda import runtime, tiles

    monkeypatch.setattr(runtime, "MOST_BLOCKS", 3)
    monkeypatch.setattr(runtime, "COPY_THREADS", 5)
    monkeypatch.setattr(
        tiles,
        "SIZES",
        tiles.Sizes(
            tile_h=2, tile_w=3, channels=2, max_channels=2, bins=3, each=2, room=24, threads=5, blocks=16
        ),
    )
