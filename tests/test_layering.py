"""Imports run downwards only, importing is quick and compiles nothing; read from the code's own imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import roiops
from roiops import registry

PACKAGE = Path(roiops.__file__).parent

# Each part of the package, and the parts below it that it may import. A part is a room, or one module of a
# room in which the order matters too. What is not named here stands above all of them.
ALLOWED = {
    "_version": set(),
    "errors": set(),
    "random": {"errors"},
    "shapes": set(),
    "recording": set(),
    "dtypes": {"errors"},
    "context": {"errors"},
    "processors": {"errors"},
    "params": {"errors", "dtypes"},
    "kernels": {"errors", "context", "dtypes", "processors"},
    "compiling": {"processors", "kernels"},
    "registry": {"errors", "params"},
    "operators": {
        *("errors", "context", "params", "kernels", "registry", "random", "shapes", "dtypes", "recording"),
    },
    "ndarray.html": set(),
    "ndarray.device": {"errors", "context", "dtypes", "kernels"},
    "ndarray.invoke": {"errors", "context", "operators", "recording", "ndarray.device"},
    "ndarray.ndarray": {
        *("errors", "context", "dtypes", "registry", "recording"),
        *("ndarray.device", "ndarray.invoke", "ndarray.html"),
    },
    "ndarray.foreign": {"errors", "context", "dtypes", "ndarray.device", "ndarray.ndarray"},
    "ndarray.functions": {
        *("errors", "context", "dtypes", "registry", "operators"),
        *("ndarray.device", "ndarray.foreign", "ndarray.invoke", "ndarray.ndarray"),
    },
    "ndarray": {
        *("errors", "context", "params", "kernels", "registry", "operators", "random", "shapes", "dtypes"),
        "ndarray",
    },
    "graph.naming": set(),
    "graph.nodes": {"errors", "registry", "shapes", "dtypes"},
    "graph.plan": set(),
    "graph.common": {"graph.nodes"},
    "graph.placement": {"errors", "context"},
    "graph.program": {"errors", "graph.plan"},
    "graph.memory": {"errors", "context", "ndarray"},
    "graph.fuse": {"graph.program"},
    "graph.parts": {"graph.plan"},
    "graph.executor": {
        *("errors", "context", "random", "shapes", "dtypes", "operators", "ndarray", "compiling"),
        *("graph.nodes", "graph.plan", "graph.program", "graph.memory", "graph.fuse", "graph.parts"),
        *("graph.placement", "graph.common"),
    },
    "graph.json_format": {"errors", "registry", "shapes", "graph.nodes", "graph.naming"},
    "graph": {"errors", "context", "registry", "ndarray", "shapes", "dtypes", "graph"},
    "autograd": {
        *("errors", "registry", "params", "operators", "ndarray", "graph", "recording"),
    },
    "gluon": {
        *("errors", "context", "params", "registry", "operators", "random", "dtypes", "ndarray", "graph"),
        *("recording", "autograd", "training", "mxnet"),
    },
    "training": {"errors", "context", "ndarray", "graph", "random"},
    "training.image": {"errors", "random", "params", "ndarray", "training"},
    "torch": {
        *("errors", "context", "dtypes", "params", "kernels", "registry", "operators", "ndarray"),
        "torch.onnx",
    },
    "torch.onnx": {"errors", "graph", "models", "torch"},
    "models": {
        "_version",
        "processors",
        "errors",
        "context",
        "dtypes",
        "ndarray",
        "graph",
        "operators",
        "training.image",
    },
}


def part(module: str) -> str:
    """The part that a module of the package belongs to: ``graph.plan``, or its room."""
    names = module.split(".")
    return ".".join(names[:2]) if ".".join(names[:2]) in ALLOWED else names[0]


def imported_modules(source: str, path: Path):
    """(line, module) of everything of this package that a file imports, inside functions too."""
    parts = ("roiops", *path.relative_to(PACKAGE).with_suffix("").parts)
    package = parts[:-1]
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        for name in names:
            if name.startswith("roiops."):
                yield node.lineno, name.removeprefix("roiops.")


def violations(source: str, path: Path) -> list[str]:
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    here = part(module)
    if here not in ALLOWED:
        return []
    found = []
    for line, name in imported_modules(source, path):
        there = part(name)
        below = ALLOWED[here]
        if there != here and there not in below and there.split(".")[0] not in below:
            found.append(f"{path.relative_to(PACKAGE)}:{line}: {here} must not import {there}")
    return found


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
        ("kernels/cpu/roi/average.py", "from ....operators.roi import rotated"),
        ("operators/base.py", "from ..graph import symbol"),
        ("operators/roi/__init__.py", "from ...graph.executor import Executor"),
        ("graph/nodes.py", "def f():\n    from ..operators import base"),
        ("graph/plan.py", "from .symbol import Symbol"),
        ("graph/executor.py", "from .symbol import Symbol"),
        ("graph/symbol.py", "from ..operators.roi import rotated"),
        ("ndarray/__init__.py", "from ..graph import nodes"),
        ("ndarray/ndarray.py", "def f():\n    from .functions import function_for"),
        ("ndarray/foreign.py", "from .functions import call"),
        ("training/metric.py", "from ..models import archive"),
        ("models/archive.py", "from ..training import module"),
        ("errors.py", "from . import context"),
        ("ndarray/ndarray.py", "from .. import autograd"),
        ("graph/executor.py", "from .. import autograd"),
        ("autograd.py", "from .gluon import block"),
        ("gluon/block.py", "from ..models import archive"),
    ],
)
def test_a_planted_import_is_found(path, line):
    assert violations(line, PACKAGE / path), f"{line!r} in {path} went unnoticed"


def circles(sources: dict) -> list[list[str]]:
    """Modules of one room that import each other, at the top or in a function; ``sources`` by path."""
    paths = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in sources}
    paths = {module.removesuffix(".__init__"): path for module, path in paths.items()}
    imports = {module: set() for module in paths}
    for module, path in paths.items():
        for _, name in imported_modules(sources[path], path):
            while name and name not in paths:
                name = name.rpartition(".")[0]
            if name != module and name.split(".")[0] == module.split(".")[0]:
                imports[module].add(name)

    def reached(module):
        seen, waiting = set(), [module]
        while waiting:
            new = imports[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {module: reached(module) for module in imports}
    found = {tuple(sorted(m for m in reach[one] if one in reach[m])) for one in reach}
    return sorted(list(circle) for circle in found if circle)


def test_no_modules_of_a_room_import_each_other():
    assert not circles({path: path.read_text() for path in files()})


def test_a_planted_circle_is_found():
    sources = {path: path.read_text() for path in files()}
    path = PACKAGE / "training" / "stores.py"
    sources[path] += "\ndef f():\n    from .mpi import load_mpi\n"
    assert circles(sources) == [["training.mpi", "training.stores"]]


def comparisons_with_operators(source: str) -> list[int]:
    """The lines that compare something's ``op`` or ``name`` with the name of a registered operator."""
    names = set(registry.list_operators(aliases=True))
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(side, ast.Attribute) and side.attr in ("op", "name") for side in sides)
            texts = {
                part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)
            }
            if asked and texts & names:
                found.append(node.lineno)
    return found


def test_nobody_asks_for_the_name_of_an_operator():
    """What an operator can do, its Prop and its Op say."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in files()
        for line in comparisons_with_operators(path.read_text())
    ]
    assert not found, found


def test_a_planted_comparison_is_found():
    assert comparisons_with_operators('if node.op == "Convolution":\n    pass') == [1]
    assert comparisons_with_operators('known = prop.name in ("Dropout", "Pad")') == [1]
    assert not comparisons_with_operators('known = node.op == "null"')


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
