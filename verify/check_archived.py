"""Run model files that others published, in MXNet and in roiops, and compare.

    git clone https://github.com/deepinsight/insightface        # or whatever holds *-symbol.json files
    python verify/peers.py mxnet
    python verify/check_archived.py insightface ...
    python verify/check_archived.py models --shape det1:data=1,3,60,80 --shape gender-age:data=1,3,112,112

Every ``*-symbol.json`` below the folders is looked into with ``roiops.models.inspect_model``. Those that
can be run are loaded from the very files by MXNet 1.9.1 and by roiops, with the parameters beside them, or
random ones where there are none, and must agree to 1e-4 relative. ``--shape TEXT:NAME=SHAPE`` gives inputs
of the models with TEXT in their path their shapes; ``data`` is (1, 3, 224, 224) otherwise. Of identical
files one is taken."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import peers

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
sys.path[:0] = [str(ROOT), str(ZOO)]

import roiops  # noqa: E402
from roiops.graph.nodes import topological_order  # noqa: E402
from roiops.models.compare import TOLERANCE, relative_difference  # noqa: E402
from roiops.models.files import read_symbol  # noqa: E402
from roiops.models.inspection import inspect_model, runnable_outputs  # noqa: E402

_DATA = {"data": (1, 3, 224, 224)}


def shape_rule(text):
    """``det1:data=1,3,60,80`` as ``("det1", "data", (1, 3, 60, 80))``."""
    where, _, rest = text.rpartition(":")
    name, _, shape = rest.partition("=")
    return where, name, tuple(int(d) for d in shape.split(","))


def models(folders):
    """``(symbol file, parameters' file or None)``, each contents once."""
    seen = set()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*symbol*.json")):
            prefix = path.name.split("-symbol")[0]
            params = sorted(path.parent.glob(f"{prefix}-[0-9]*.params"))
            key = (path.read_bytes(), params[-1].read_bytes() if params else b"")
            if key not in seen:
                seen.add(key)
                yield path, params[-1] if params else None


def run_mxnet(symbol, params, shapes, folder, outputs=()) -> str:
    """Have MXNet run the model and leave arrays in ``folder``; returns its last words where it cannot."""
    command = [peers.interpreter("mxnet"), ZOO / "archived_worker.py", symbol, params or "-"]
    done = subprocess.run(
        [*map(str, command), json.dumps(shapes), folder, *outputs],
        capture_output=True,
        text=True,
        cwd=ZOO,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
    )
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]


def check(symbol, params, shapes):
    """``(what came of it, whether that is as it should be)``."""
    try:
        found = inspect_model(symbol, params)
    except roiops.MXNetError as error:
        with tempfile.TemporaryDirectory() as folder:
            problem = run_mxnet(symbol, params, shapes, folder)
        return f"refused{', and by mxnet' if problem else ''}: {error}", bool(problem)
    own = "own" if params else "random"
    about = f"{found.version or 'before 0.9'}, {found.num_nodes} nodes, {own} parameters"
    outputs = []
    if found.unsupported:
        about += f", lacks {', '.join(found.unsupported)}"
        heads = read_symbol(symbol)[0].heads
        outputs = runnable_outputs(topological_order(heads), heads)
        if not outputs:
            return about, True
        about += f": {', '.join(outputs)}"
    with tempfile.TemporaryDirectory() as folder:
        problem = run_mxnet(symbol, params, shapes, folder, outputs)
        if problem:
            return f"{about}: mxnet itself cannot: {problem}", True
        with np.load(f"{folder}/values.npz") as file:
            values = dict(file)
        with np.load(f"{folder}/expected.npz") as file:
            expected = dict(file)
    inputs = {name: values[name] for name in shapes if name in values}
    held = params or {
        key: roiops.nd.array(a, dtype=a.dtype) for key, a in values.items() if key not in inputs
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = roiops.models.load(symbol, held, outputs=outputs or None, allow_missing=True)
        inputs.update({name: values[name] for name in model.input_names if name not in inputs})
        got = dict(zip(model.output_names, (a.asnumpy() for a in model(**inputs)), strict=True))
    except roiops.MXNetError as error:
        return f"{about}: {type(error).__name__}: {error}", False
    if list(got) != list(expected):
        return f"{about}: other outputs: {', '.join(got)}", False
    worst = max(relative_difference(a, got[name]) for name, a in expected.items())
    return f"{about}: worst {worst:.1e}", worst <= TOLERANCE


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--shape", action="append", default=[], type=shape_rule, metavar="TEXT:NAME=N,...")
    args = parser.parse_args()
    failed = []
    for symbol, params in models(args.folders):
        shapes = dict(_DATA)
        shapes.update({name: shape for text, name, shape in args.shape if text in str(symbol)})
        text, fine = check(symbol, params, shapes)
        print(f"{'' if fine else 'WRONG '}{symbol}: {text}", flush=True)
        if not fine:
            failed.append(symbol)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
