"""Kernel functions are short and shallow: whoever mends one reads it whole."""

import ast
from pathlib import Path

import pytest

import roiops

KERNELS = Path(roiops.__file__).parent / "kernels"
#: The folders with kernels. A function counts without those that are defined in it.
ROOMS = sorted({str(path.parent.relative_to(KERNELS)) for path in KERNELS.rglob("*.py")})
LINES, DEPTH = 60, 4
NESTING = ast.For, ast.While, ast.If, ast.With, ast.Try


def depth(node, outside=0) -> int:
    """How many loops and conditions stand inside each other; an ``elif`` stands beside its ``if``."""
    deepest = outside
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        deepest = max(deepest, depth(child, outside + (isinstance(child, NESTING) and not is_elif)))
    return deepest


def lines(function) -> int:
    """The lines of a function, without those of functions that are defined in it."""
    own = function.end_lineno - function.lineno + 1
    for child in ast.walk(function):
        if isinstance(child, ast.FunctionDef) and child is not function and parent(function, child):
            own -= child.end_lineno - child.lineno + 1
    return own


def parent(function, child) -> bool:
    """Whether ``child`` is defined in ``function`` itself, not in a function in it."""
    inner = [each for each in ast.walk(function) if isinstance(each, ast.FunctionDef)]
    return not any(child in ast.walk(each) for each in inner if each not in (function, child))


def too_large(source: str) -> list[str]:
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [
        f"{each.name}: {lines(each)} lines, {depth(each)} deep"
        for each in functions
        if lines(each) > LINES or depth(each) > DEPTH
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_kernel_functions_are_short_and_shallow(room):
    found = {path.name: too_large(path.read_text()) for path in (KERNELS / room).glob("*.py")}
    assert found
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_long_and_deep_functions_are_found():
    deep = "\n".join("    " * i + f"for i{i} in x:" for i in range(1, 6)) + " pass"
    elifs = "    if a: pass\n" + "    elif b: pass\n" * 6
    inside = "    def g():\n" + "        pass\n" * 50 + "    pass\n" * 20
    assert too_large(f"def f(x):\n{deep}") == ["f: 6 lines, 5 deep"]
    assert too_large("def f():\n" + "    pass\n" * 60) == ["f: 61 lines, 0 deep"]
    assert too_large(f"def f(a, b):\n{elifs}") == []
    assert too_large(f"def f():\n{inside}") == []
