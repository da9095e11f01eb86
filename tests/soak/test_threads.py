"""More threads than processors: see ``threads.py``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent


def run(*arguments):
    paths = [str(TESTS.parent), str(TESTS), str(TESTS / "operators")]
    # Threads that wait sleep: on few processors, so many that spin would keep the others from their work.
    environment = {"NUMBA_NUM_THREADS": "64", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        [sys.executable, "-m", "soak.threads", *map(str, arguments)],
        cwd=TESTS,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=7000,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("operators and of random convolutions: the same bits\n")


def test_every_operator_whose_shares_come_in_another_order():
    run("--backwards", 64)


@pytest.mark.slow
def test_every_operator_with_1_to_64_threads():
    run(*range(1, 65))
