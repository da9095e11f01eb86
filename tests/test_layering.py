"""Imports run downwards only, importing is quick and compiles nothing; read from the code's own imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import roiops

PACKAGE = Path(roiops.__file__).parent

# Each room, and the rooms below it that it may import when the module loads.
ALLOWED = {
    "_version": set(),
    "errors": set(),
    "random": {"errors"},
    "shapes": set(),
    "dtypes": set(),
    "context": {"errors"},
    "params": {"errors", "dtypes"},
    "kernels": {"errors", "context"},
    "registry": {"errors", "params"},
    "operators": {"errors", "context", "params", "kernels", "registry", "random", "shapes"},
    "graph": {"errors", "registry", "shapes", "dtypes"},
    "ndarray": {"errors", "context", "params", "kernels", "registry", "operators", "random", "dtypes"},
    "executor": {"errors", "context", "registry", "graph", "operators", "ndarray", "shapes"},
    "symbol": {"errors", "context", "registry", "graph", "executor", "ndarray", "shapes", "dtypes"},
    "factory": {"errors"},
    "lr_scheduler": {"errors"},
    "metric": {"errors", "factory"},
    "monitor": {"ndarray"},
    "io": {"errors", "ndarray", "random"},
    "initializer": {"errors", "factory", "ndarray", "random"},
    "optimizer": {"errors", "factory", "ndarray"},
    "checkpoint": {"errors", "context", "ndarray", "symbol"},
    "callback": {"checkpoint"},
    "module": {"errors", "context", "ndarray", "initializer", "io", "metric", "checkpoint", "optimizer"},
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(source: str, path: Path):
    """(line, room) of everything of this package that a file imports, inside functions too."""
    parts = ("roiops", *path.relative_to(PACKAGE).with_suffix("").parts)
    package = parts if path.name == "__init__.py" else parts[:-1]
    package = package[:-1] if path.name == "__init__.py" else package
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        for name in names:
            pieces = name.split(".")
            if pieces[0] == "roiops" and len(pieces) > 1:
                yield node.lineno, pieces[1]


def violations(source: str, path: Path) -> list[str]:
    here = room(path)
    if here not in ALLOWED:
        return []
    return [
        f"{path.relative_to(PACKAGE)}:{line}: {here} must not import {there}"
        for line, there in imported_rooms(source, path)
        if there != here and there not in ALLOWED[here]
    ]


def files():
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_run_downwards():
    found = [v for path in files() for v in violations(path.read_text(), path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("params/field.py", "from ..operators import base"),
        ("kernels/geometry.py", "import roiops.params"),
        ("operators/base.py", "from .. import symbol"),
        ("operators/roi/__init__.py", "from ...executor import Executor"),
        ("graph.py", "def f():\n    from .operators import base"),
        ("executor/plan.py", "from ..symbol import Symbol"),
        ("errors.py", "from . import context"),
    ],
)
def test_a_planted_import_is_found(path, line):
    assert violations(line, PACKAGE / path), f"{line!r} in {path} went unnoticed"


def test_only_one_module_imports_the_cuda_backend():
    backends = ("numba.cuda", "numba_cuda", "cupy")
    found = []
    for path in files():
        if path == PACKAGE / "kernels" / "cuda" / "runtime.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [
                f"{path.relative_to(PACKAGE)}:{node.lineno}: {n}" for n in names if n.startswith(backends)
            ]
    assert not found, "\n".join(found)


def test_importing_compiles_nothing_and_loads_no_compiler():
    code = (
        "import sys, time; start = time.perf_counter(); import roiops; took = time.perf_counter() - start;"
        "print('numba' in sys.modules, 'matplotlib' in sys.modules, took)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    numba, matplotlib, took = out.split()
    assert numba == "False", "importing roiops loads numba, and with it the time of the first compilation"
    assert matplotlib == "False"
    print(f"import took {float(took):.3f} s")
