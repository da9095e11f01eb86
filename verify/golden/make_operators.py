"""What MXNet declares of its operators: inputs, parameters with types and defaults, and aliases.

tests/golden/operators.json holds, for every operator in the golden cases and graphs, its own name and
    {"aliases": [...], "inputs": [[name, type], ...], "parameters": [[name, type and default], ...],
     "variable_inputs": the parameter that counts the inputs, or ""}
"""

import ctypes
import json
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN

LIBRARY = mx.base._LIB
INPUT_TYPES = ("NDArray", "Symbol", "NDArray-or-Symbol", "NDArray-or-Symbol[]")


def check(code):
    if code:
        raise RuntimeError(mx.base.py_str(LIBRARY.MXGetLastError()))


def declaration(name):
    """MXNet's own name of an operator, and what it declares."""
    handle = ctypes.c_void_p()
    check(LIBRARY.NNGetOpHandle(mx.base.c_str(name), ctypes.byref(handle)))
    real, text, counter, result = (ctypes.c_char_p() for _ in range(4))
    count = ctypes.c_uint()
    names, types, texts = (ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    pointers = [ctypes.byref(x) for x in (real, text, count, names, types, texts, counter, result)]
    check(LIBRARY.MXSymbolGetAtomicSymbolInfo(handle, *pointers))
    fields = [(names[i].decode(), types[i].decode()) for i in range(count.value)]
    return real.value.decode(), {
        "inputs": [field for field in fields if field[1] in INPUT_TYPES],
        "parameters": [field for field in fields if field[1] not in INPUT_TYPES],
        "variable_inputs": (counter.value or b"").decode(),
    }


def names_in_use():
    """Every operator name in the golden cases of MXNet and in the golden graphs."""
    used = set()
    for path in GOLDEN.glob("[ro]*/*.npz"):
        with np.load(path) as file:
            meta = json.loads(str(file["meta"]))
        if meta["peer"] == "mxnet" and path.parent.name != "optimizer":
            used.update(case["op"] for case in meta["cases"])
    for folder in ("graphs", "legacy"):
        for path in GOLDEN.glob(folder + "/*.npz"):
            nodes = json.loads(path.with_suffix(".json").read_text())["nodes"]
            used.update(node["op"] for node in nodes if node["op"] != "null")
    return used


def main():
    operators, aliases = {}, {}
    for name in sorted(mx.operator.get_all_registered_operators()):
        real, declared = declaration(name)
        if name == real:
            operators[real] = declared
        else:
            aliases.setdefault(real, []).append(name)
    wanted = {declaration(name)[0] for name in names_in_use()}
    table = {name: {"aliases": aliases.get(name, []), **operators[name]} for name in sorted(wanted)}
    text = {"peer": "mxnet", "version": mx.__version__, "script": Path(__file__).name, "operators": table}
    path = GOLDEN / "operators.json"
    path.write_text(json.dumps(text, indent=1) + "\n")
    print(f"{path.name}: {len(table)} operators, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
