"""A short form of the soak run's calls between guard pages, and what they must find."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak import guard_pages

TESTS = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(not guard_pages.HERE, reason=guard_pages.REASON)


def run(*arguments):
    paths = [str(TESTS), str(TESTS / "operators"), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "soak.guarded", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_random_calls_stay_within_their_arrays_and_what_memory_held_does_not_show():
    done = run(0, 24)
    assert done.returncode == 0, (
        f"signal or exit {done.returncode} after {done.stdout[-60:]!r}\n{done.stderr}"
    )
    assert done.stdout.count("the same") > 12


@pytest.mark.parametrize("case", [0, 1, 2])
def test_a_planted_read_or_write_beyond_an_array_ends_the_process(case):
    done = run(case, case + 1, "planted")
    assert done.returncode < 0, done.stdout  # a signal: SIGSEGV, SIGBUS on macOS
    assert done.stdout.split() == [str(case)]


def test_a_planted_result_that_nobody_writes_is_found():
    done = run(3, 4, "planted")
    assert done.returncode == 1
    assert "planted: what memory held shows in arrays [0] of 1" in done.stderr
