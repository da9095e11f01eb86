"""Every way of a convolution, for vectors of every width, in normal and in checked mode, on several threads."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

SCRIPT = Path(__file__).with_name("ways_beside_float64.py")
ALL = "by_filters by_taps depthwise dilated one_pixel pointwise shifted winograd"
pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the tiles need a compiler")


#: The tiles for the 32 registers of Arm's processors, on any.
AS_ON_ARM = """
import numba, platform, runpy, sys
platform.machine = lambda: "aarch64"
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(lanes, checked, threads, cache, way="", *, arm=False):
    """In a process of its own: the width of vectors is decided once, and kernels of another one are others."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_BOUNDSCHECK": str(int(checked))}
    done = subprocess.run(
        [sys.executable, *(["-c", AS_ON_ARM] if arm else []), str(SCRIPT), *map(str, threads)],
        env={
            **environment,
            "ROIOPS_LANES": str(lanes),
            "NUMBA_NUM_THREADS": str(max(threads)),
            "ROIOPS_WAY": way,
        },
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == f"{lanes} lanes: {way or ALL}"


@pytest.mark.parametrize(
    ("way", "lanes", "checked", "arm"),
    [("one_pixel", 4, False, False), ("pointwise", 16, True, False), ("winograd", 4, True, True)],
    ids=str,
)
def test_a_sample_of_the_ways(way, lanes, checked, arm, tmp_path):
    run(lanes, checked, (1, 2), tmp_path, way, arm=arm)


@pytest.mark.slow
@pytest.mark.parametrize("checked", [False, True], ids=["normal", "checked"])
@pytest.mark.parametrize(("lanes", "arm"), [(16, False), (8, False), (4, False), (4, True)])
def test_every_way_beside_float64(lanes, arm, checked, tmp_path):
    run(lanes, checked, (1, 2, 5), tmp_path, arm=arm)
