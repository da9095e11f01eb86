"""A pytest plugin for long runs in pieces: tests that passed before are left out, and it stops after a time.

``ROIOPS_PASSED`` names the file of those that passed, one a line, below the commit's trees of ``roiops``
and ``tests``; where one is another, all begins anew. ``ROIOPS_MINUTES`` is how long this piece may take.
"""

import os
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FILE = Path(os.environ["ROIOPS_PASSED"])
UNTIL = time.monotonic() + 60 * float(os.environ.get("ROIOPS_MINUTES", "inf"))


def pytest_collection_modifyitems(config, items):
    trees = subprocess.run(
        ["git", "rev-parse", "HEAD:roiops", "HEAD:tests"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    if lines[:2] != trees.split():
        FILE.write_text(trees)
        lines = []
    passed = set(lines[2:])
    before = [item for item in items if item.nodeid in passed]
    config.hook.pytest_deselected(items=before)
    items[:] = [item for item in items if item.nodeid not in passed]


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        with FILE.open("a") as file:
            file.write(report.nodeid + "\n")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if time.monotonic() > UNTIL:
        item.session.shouldstop = "the rest is left for another run"
