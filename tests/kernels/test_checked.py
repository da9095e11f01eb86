"""The checked mode: what a kernel loads or stores beyond an array is an error there."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

PLANTED = Path(__file__).with_name("planted_accesses.py")
EVERY = Path(__file__).with_name("every_kernel.py")


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_each_access_beyond_an_array_is_an_error_that_says_where(tmp_path):
    """Two runs: what a kernel's error needs is kept on disk, too."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "3"}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(PLANTED)],
            env={**environment, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout.splitlines()
        assert len(said) == 23
        place, number = said[0].split("planted_accesses.py:")
        assert place.startswith("OutsideError: load by part (")
        assert number.startswith("14: return vector.load(array, at)): 16 from index 25 on")
        assert said[7].startswith("AlignmentError: stream by stream (")
    assert [*tmp_path.rglob("*shared*.nbc")]


def not_run(*arguments):
    """What ``every_kernel.py`` names in checked mode; an access beyond an array ends it with an error."""
    done = subprocess.run(
        [sys.executable, str(EVERY), *arguments],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    title, *names = done.stdout.splitlines()
    assert title == "not run:"
    return names


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_of_a_room_stay_within_their_arrays():
    assert not_run("tensor") == []
