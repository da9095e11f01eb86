"""Write the type stubs of the operators' functions, from the registry.

python tools/make_stubs.py            # write them
python tools/make_stubs.py --check    # say whether they are up to date; exit code 1 if not

The functions of ``sym``, ``nd`` and of the namespaces in both are made when they are first asked for, so an
editor or a type checker that reads the sources cannot know them. The stubs tell: roiops/graph/functions.pyi
and the files beside roiops/ndarray/__init__.pyi.
"""

import argparse
import inspect
import keyword
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import roiops  # noqa: E402
from roiops import registry  # noqa: E402
from roiops.operators.base import OperatorProperty  # noqa: E402
from roiops.params import field as kinds  # noqa: E402

HEADER = '''\
"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
'''
_INT, _FLOAT, _BOOL, _STR = (kinds._BUILTIN[kind] for kind in (int, float, bool, str))


def type_of(kind) -> str:
    """The annotation of a parameter of this kind."""
    if isinstance(kind, kinds.optional):
        return f"{type_of(kind.kind)} | None"
    if isinstance(kind, kinds.enum):
        return f"Literal[{', '.join(map(repr, kind.words))}]"
    if isinstance(kind, kinds.shape):
        item = "float" if isinstance(kind, kinds.floats) else "int"
        return f"{item} | Sequence[{item}{' | None' if kind.none_items else ''}]"
    for builtin, name in ((_INT, "int"), (_FLOAT, "float"), (_BOOL, "bool"), (_STR, "str")):
        if kind is builtin:
            return name
    return "DTypeLike" if kind is kinds.dtype else "Any"


def parameters(prop, tensor: str, keywords) -> list[str]:
    """The parameters of an operator's function, in the order of its signature."""
    optional = f"{tensor} | None = ..."
    takes_any = not prop.arguments and prop.list_arguments is not OperatorProperty.list_arguments
    found = []
    if prop.variadic or takes_any:
        found.append(f"*data: {tensor} | Sequence[{tensor}]")
    else:
        found += [f"{name}: {optional}" for name in (*prop.arguments, *prop.aux)]
    fields = prop.param.fields
    found += [f"{name}: {type_of(field.kind)} = ..." for name, field in fields.items() if _can_be_named(name)]
    named = [f"{name}: {kind} = ..." for name, kind in keywords.items() if name not in fields]
    aliases = [
        f"{alias}: {type_of(field.kind)} = ..."
        for field in fields.values()
        for alias in field.aliases
        if alias.isidentifier() and alias not in fields
    ]
    if named + aliases and not found[0].startswith("*"):
        found.append("*")
    found += [*aliases, *named]
    return [*found, "**parameters: Any"] if takes_any else found


def result_of(prop, tensor: str) -> str:
    """What the function gives: an array, a list of several, or what depends on the parameters."""
    if tensor == "Symbol":
        return "Symbol"
    if prop.list_outputs is not OperatorProperty.list_outputs:
        return "Any"
    seen = prop.outputs[: prop.visible_outputs] if prop.visible_outputs else prop.outputs
    return "NDArray" if len(seen) == 1 else "list[NDArray]"


def _can_be_named(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def functions(prefix: str, taken, tensor: str, keywords, indent: str = "") -> list[str]:
    """The functions of the operators whose names begin with ``prefix``, without it; one line each.

    A second name of an operator is an assignment, after the first.
    """
    argument = "Symbol" if tensor == "Symbol" else "Array"
    lines, aliases, first = [], [], {}
    for name in registry.list_operators(aliases=True):
        short = name[len(prefix) :]
        hidden = not prefix and registry.public_name(name) != name
        if not name.startswith(prefix) or hidden or not _can_be_named(short) or short in taken:
            continue
        prop = registry.get(name)
        if not prop.__module__.startswith(roiops.__name__ + "."):
            continue
        if first.setdefault(prop, short) != short:
            aliases.append(f"{indent}{short} = {first[prop]}")
            continue
        listed = ", ".join(parameters(prop, argument, keywords))
        if indent:
            lines.append(f"{indent}@staticmethod")
        lines.append(f"{indent}def {short}({listed}) -> {result_of(prop, tensor)}: {_quoted(prop)}")
    return lines + aliases


def _quoted(prop) -> str:
    """The first line of an operator's documentation, as the one statement of its function."""
    summary = registry.docstring(prop).split("\n", 1)[0].replace("\\", "\\\\")
    return f'"""{summary}"""'


def imported(module, names) -> tuple[list[str], list[str]]:
    """Lines that import the other public names of a module from where they stand, and names left over."""
    lines, left = [], []
    for name in names:
        value = getattr(module, name)
        home, own = getattr(value, "__module__", None), getattr(value, "__qualname__", name)
        if inspect.ismodule(value):
            parent, _, leaf = value.__name__.rpartition(".")
            lines.append(f"from {parent} import {leaf} as {name}")
        elif home and "." not in own and getattr(sys.modules.get(home), own, None) is value:
            lines.append(f"from {home} import {own} as {name}")
        else:
            left.append(name)
    return sorted(lines), left


def exported(lines) -> str:
    """``__all__``, without which what a stub imports under another name is not public."""
    return f"__all__ = {[line.rpartition(' as ')[2] for line in lines]}"


def dynamic(module, names) -> list[str]:
    """Functions that the module makes itself, such as ``nd.add``, by their signatures."""
    lines = []
    for name in names:
        value = getattr(module, name)
        if callable(value):
            summary = (inspect.getdoc(value) or name).split("\n", 1)[0]
            lines.append(f'def {name}{_untyped(value)} -> Any: """{summary}"""')
    return lines


def _untyped(value) -> str:
    found = []
    for p in inspect.signature(value).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        found.append(f"{star}{p.name}: Any" + ("" if p.default is p.empty else " = ..."))
    return f"({', '.join(found)})"


_TYPES = [
    "from collections.abc import Sequence",
    "from typing import Any, Literal, Protocol",
    "",
    "import numpy as np",
    "from numpy.typing import DTypeLike",
]
_ARRAY = [
    "class _SupportsDLPack(Protocol):",
    "    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...",
    "",
    "#: What the functions take. They give NDArrays; for arrays of another library, arrays of that library.",
    "Array = NDArray | np.ndarray | _SupportsDLPack",
    "",
]
_OF_SYM = {"name": "str | None", "attr": "dict[str, Any] | None"}
_OF_ND = {"out": "Any", "name": "str | None"}


def stubs() -> dict[str, str]:
    """File name to text."""
    sym, nd = roiops.sym, roiops.nd
    made = {}

    names = [n for n in sym.__all__ if n not in (*registry.NAMESPACES, "sparse")]
    lines, left = imported(sym, names)
    made["graph/functions.pyi"] = [
        *_TYPES, "", *lines, "", exported(lines), "",
        *dynamic(sym, left),
        *functions("", {*sym.__all__}, "Symbol", _OF_SYM),
        *(line for space in registry.NAMESPACES for line in _class_of(space)),
        "op: Any", "_internal: Any", "sparse: Any",
    ]  # fmt: skip

    lines, left = imported(nd, nd.__all__)
    lines.append("from roiops.ndarray import files as files")
    made["ndarray/__init__.pyi"] = [
        *_TYPES, "", *lines, "", exported(lines), "", *_ARRAY,
        *dynamic(nd, left),
        *functions("", {*nd.__all__}, "NDArray", _OF_ND),
    ]  # fmt: skip
    for space in registry.NAMESPACES:
        module = getattr(nd, space)
        own = [name for name in dir(module) if registry.find(f"_{space}_{name}") is None]
        made[f"ndarray/{space}.pyi"] = [
            *_TYPES, "", "from roiops.ndarray import Array, NDArray", "",
            *dynamic(module, own),
            *functions(f"_{space}_", (), "NDArray", _OF_ND),
        ]  # fmt: skip
    return {name: _formatted(HEADER + "\n".join(lines) + "\n") for name, lines in made.items()}


def _class_of(space: str) -> list[str]:
    """A namespace of ``sym``: a class of functions, and the one object of it."""
    name = f"_{space.capitalize()}"
    functions_of_it = functions(f"_{space}_", (), "Symbol", _OF_SYM, indent="    ")
    return [f"class {name}:", *(functions_of_it or ["    pass"]), f"{space}: {name}"]


def _formatted(text: str) -> str:
    """Without the imports that are not needed; a signature stays on its line."""
    command = ["check", "--fix", "--quiet", "--stdin-filename", str(ROOT / "roiops/stub.pyi"), "-"]
    return subprocess.run(
        [sys.executable, "-m", "ruff", *command],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    package, stale = Path(roiops.__file__).parent, []
    for name, text in stubs().items():
        path = package / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not args.check:
            path.write_text(text, encoding="utf-8")
    if args.check and stale:
        print(f"the stubs are not up to date ({', '.join(stale)}): run python tools/make_stubs.py")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
