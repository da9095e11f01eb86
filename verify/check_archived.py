"""Run model files that others published, in MXNet and in roiops, and compare; convert them to ONNX as well.

    git clone https://github.com/deepinsight/insightface FOLDER/deepinsight/insightface    # and so on
    python verify/peers.py mxnet
    python verify/check_archived.py FOLDER                             # writes docs/published_models.md
    python verify/check_archived.py FOLDER --resume --minutes 4        # a piece at a time
    python verify/check_archived.py FOLDER --shape det1:data=1,3,60,80 --shape gender-age:data=1,3,112,112

Every ``*-symbol.json`` below the folder is looked into with ``roiops.models.inspect_model``; a repository's
files lie in ``owner/name`` below it. Those that can be run are loaded from the very files by MXNet 1.9.1 and
by roiops, with the parameters beside them, or random ones where there are none, and must agree to 1e-4
relative. They are then converted, checked with full inference of shapes and run in onnxruntime, and must
agree with roiops to 2e-5. ``--shape TEXT:NAME=SHAPE`` gives inputs of the models with TEXT in their path
their shapes, where those known here do not fit. Of identical files one is taken.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import peers
from check_model_zoo import held_results, keep_results

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
sys.path[:0] = [str(ROOT), str(ZOO)]

import roiops  # noqa: E402
from roiops.graph.nodes import topological_order  # noqa: E402
from roiops.models import onnx as roiops_onnx  # noqa: E402
from roiops.models.archive import ArchivedModel  # noqa: E402
from roiops.models.compare import TOLERANCE, relative_difference  # noqa: E402
from roiops.models.files import read_symbol  # noqa: E402
from roiops.models.inspection import inspect_model, runnable_outputs  # noqa: E402
from roiops.models.onnx.check import check as compare_onnx  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "archived.json"
PAGE = ROOT / "docs" / "published_models.md"
#: The table in the page stands between these.
BEGIN, END = "<!-- table: verify/check_archived.py -->", "<!-- end of the table -->"

#: Shapes of inputs by what a path holds; later ones go before earlier ones.
SHAPES = [
    ("", "data", (1, 3, 224, 224)),
    ("det1", "data", (1, 3, 60, 80)),
    ("det2", "data", (2, 3, 24, 24)),
    ("det3", "data", (2, 3, 48, 48)),
    ("det4", "data", (2, 15, 24, 24)),
    ("alignment", "data", (1, 3, 64, 64)),
    ("2d106det", "data", (1, 3, 192, 192)),
    ("iris", "data", (1, 3, 64, 96)),
    ("cab2d", "data", (1, 3, 128, 128)),
    ("gender", "data", (1, 3, 112, 112)),
    ("Gender", "data", (1, 3, 112, 112)),
    ("model-r50", "data", (1, 3, 112, 112)),
    ("LeaderFaceRecognition/model/", "data", (1, 3, 112, 112)),
    ("vec2vec", "data", (1, 3, 224, 112)),
    ("mobilenet-MXNet", "data", (1, 3, 224, 224)),
    ("lightened", "data", (1, 1, 128, 128)),
    ("cnocr", "data", (1, 1, 32, 280)),
    ("cnocr", "label", (1, 10)),
    ("lstm_ptb", "data", (2, 20)),
    ("lstm_ptb", "softmax_label", (2, 20)),
    ("mtcnn-model/det1", "data", (1, 3, 60, 80)),
    ("mtcnn-model/det2", "data", (2, 3, 24, 24)),
    ("mtcnn-model/det3", "data", (2, 3, 48, 48)),
    ("mtcnn-model/det4", "data", (2, 15, 24, 24)),
]


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
            if path.name.startswith("._"):  # what macOS leaves beside a file
                continue
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
    last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return last.replace(f"{symbol.parent}/", "")


def check(symbol, params, shapes):
    """What came of it: a dictionary whose ``ok`` is whether that is as it should be."""
    try:
        found = inspect_model(symbol, params)
    except roiops.MXNetError as error:
        with tempfile.TemporaryDirectory() as folder:
            problem = run_mxnet(symbol, params, shapes, folder)
        refused = f"refused{', by MXNet too' if problem else ''}: {error}".replace(f"{symbol.parent}/", "")
        return {"refused": refused, "ok": bool(problem)}
    row = {
        "saved_by": (found.version or "before 0.9").removeprefix("MXNet "),
        "nodes": found.num_nodes,
        "parameters": "own" if params else "random",
    }
    outputs = []
    if found.unsupported:
        row["lacks"] = ", ".join(found.unsupported)
        heads = read_symbol(symbol)[0].heads
        outputs = runnable_outputs(topological_order(heads), heads)
        if not outputs:
            return {**row, "ok": True}
        row["outputs"] = outputs
    with tempfile.TemporaryDirectory() as folder:
        problem = run_mxnet(symbol, params, shapes, folder, outputs)
        if problem:
            return {**row, "refused": f"MXNet itself cannot run it: {problem}", "ok": True}
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
        return {
            **row,
            "error": f"{type(error).__name__}: {error}".replace(f"{symbol.parent}/", ""),
            "ok": False,
        }
    if list(got) != list(expected):
        return {**row, "error": f"other outputs: {', '.join(got)}", "ok": False}
    row["worst"] = max(relative_difference(a, got[name]) for name, a in expected.items())
    row["onnx"] = check_onnx(model, inputs)
    return {**row, "ok": row["worst"] <= TOLERANCE and row["onnx"].get("agrees", False)}


def check_onnx(model, inputs):
    """The model converted, checked, and run in onnxruntime beside roiops; without the outputs of losses."""
    symbol, names = model.symbol, model.output_names
    kept = [i for i, name in enumerate(names) if "label" not in symbol[i].list_arguments()]
    if len(kept) < len(names):
        model = ArchivedModel(roiops.sym.Group([symbol[i] for i in kept]), model.params, model.source)
    shapes = {name: inputs[name].shape for name in model.input_names if name in inputs}
    try:
        conversion = roiops_onnx.prepare(model, shapes)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            roiops_onnx.write.save(roiops_onnx.write.proto(conversion), path)
            agreements = compare_onnx(path, model, {name: inputs[name] for name in shapes})
    except roiops.MXNetError as error:
        return {"error": str(error).replace(f"{Path(model.source).parent}/", "")}
    return {
        "opset": conversion.graph.opset,
        "worst": max(each.worst for each in agreements),
        "agrees": all(each.agrees for each in agreements),
    }


def write_table(results) -> None:
    """The table of the page, from the results."""
    about, rows = results["about"], results["models"]
    lines = [
        "`python verify/check_archived.py` wrote this. The outputs agree with MXNet 1.9.1 to "
        f"{TOLERANCE:.0e} relative, those in onnxruntime {about['onnxruntime']} with roiops to 2e-05:",
        "",
        "| file | saved by | parameters | in onnxruntime |",
        "|---|---|---|---|",
    ]
    for name, row in rows.items():
        if "worst" not in row:
            continue
        onnx = row["onnx"]
        converted = onnx.get("error") or ("agrees" if onnx["agrees"] else f"differs by {onnx['worst']:.1e}")
        differs = "" if row["worst"] <= TOLERANCE else f" (differs by {row['worst']:.1e})"
        lines.append(f"| {name}{differs} | {row['saved_by']} | {row['parameters']} | {converted} |")
    others = [
        f"- {name}: {row.get('refused') or row.get('error') or 'lacks ' + row['lacks']}"
        for name, row in rows.items()
        if "worst" not in row
    ]
    if others:
        lines += ["", "Not run:", "", *others]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def record(results) -> None:
    import onnxruntime

    results["about"] = {"date": date.today().isoformat(), "onnxruntime": onnxruntime.__version__}
    results["models"] = dict(sorted(results["models"].items()))
    keep_results(RESULTS, results)
    write_table(results)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--shape", action="append", default=[], type=shape_rule, metavar="TEXT:NAME=N,...")
    parser.add_argument("--only", default="", metavar="TEXT", help="files with this in their path")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the files that the results hold already"
    )
    parser.add_argument("--minutes", type=float, help="start no more files after this long")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    args = parser.parse_args()
    results = held_results(RESULTS)
    failed, started = [], time.monotonic()
    for symbol, params in models([args.folder]):
        name = str(symbol.relative_to(args.folder))
        if args.only not in name or (args.resume and results["models"].get(name, {}).get("ok")):
            continue
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print("some are left for another run")
            break
        shapes = {key: shape for text, key, shape in [*SHAPES, *args.shape] if text in name}
        row = check(symbol, params, shapes)
        print(f"{'' if row['ok'] else 'WRONG '}{name}: {json.dumps(row)}", flush=True)
        if not row["ok"]:
            failed.append(name)
        if not args.dry:
            results["models"][name] = row
            record(results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
