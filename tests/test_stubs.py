"""The stubs of the operators' functions: they are the registry's, and type checkers find mistakes with them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import roiops as mx
from roiops import registry

ROOT = Path(__file__).resolve().parent.parent
MISTAKES = ROOT / "tests" / "annotations" / "mistakes.py"


def test_the_stubs_are_what_the_registry_says():
    pytest.importorskip("ruff", reason="ruff lays out the stubs")
    command = [sys.executable, ROOT / "tools" / "make_stubs.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_operator_is_in_both_stubs():
    package = Path(mx.__file__).parent
    names = {n for n in registry.list_operators(aliases=True) if n.isidentifier()}
    sym = (package / "graph" / "functions.pyi").read_text()
    nd = (package / "ndarray" / "__init__.pyi").read_text()
    spaces = {space: (package / "ndarray" / f"{space}.pyi").read_text() for space in registry.NAMESPACES}
    for name in names:
        if not registry.get(name).__module__.startswith("roiops."):
            continue  # registered by a test
        space, _, short = registry.public_name(name).rpartition(".")
        defined = re.compile(rf"(\bdef {short}\(|\bas {short}$|^ *{short} = )", re.M)
        assert defined.search(sym), name
        assert defined.search(spaces.get(space, nd)), name


def test_mypy_finds_the_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("mypy", reason="mypy is the type checker")
    command = [
        *(sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent"),
        *("--ignore-missing-imports", f"--cache-dir={tmp_path}", MISTAKES),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    lines = MISTAKES.read_text().splitlines()
    wanted = {i for i, line in enumerate(lines, start=1) if "# wrong:" in line}
    found = {int(m[1]): m[2] for m in re.finditer(r"mistakes\.py:(\d+): error: (.*)", done.stdout)}
    assert set(found) == wanted, done.stdout + done.stderr
    for number in wanted:
        word = lines[number - 1].partition("# wrong: ")[2].split()[-1]
        assert word in found[number]
