"""Which engines run the zoo as roiops writes it in ONNX, with MXNet's numbers; writes a part of docs/onnx.md.

    python verify/peers.py gluoncv engines               # once: MXNet with GluonCV, and the engines
    python verify/check_engines.py                       # all that ``zoo/catalogue.py`` lists
    python verify/check_engines.py --only rcnn ssd       # those whose names contain one of these
    python verify/check_engines.py --engines openvino    # one engine; the results of others stay
    python verify/check_engines.py --resume --minutes 8  # a piece at a time: what the results lack
    python verify/check_engines.py --table               # runs nothing, writes the table from the results

MXNet builds each model with random weights and leaves its files and what it computes, as in
``check_model_zoo.py``. Each engine then runs the file in a process of its own. All outputs must agree with
MXNet's to 1e-4 relative, detections box by box; where two choices tie but for rounding, the operators that
select boxes get what they got in roiops, and everything must agree with roiops.

TensorRT needs a GPU and is not run: of it the table says whether its parser's list has every operator of the
file.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import peers
from check_model_zoo import TOLERANCE, Worker, exported, held_results, keep_results, processor

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
sys.path.insert(0, str(ZOO))

from catalogue import models, named  # noqa: E402

from roiops.models.compare import compare_boxes, relative_difference, split_boxes  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "engines.json"
PAGE = ROOT / "docs" / "onnx.md"
BEGIN, END = "<!-- written by verify/check_engines.py -->", "<!-- end -->"

#: Engines by the name of their function in ``zoo/engine_worker.py``: the title, and what `--opset` says for
#: a graph with deformable convolutions, where the engine has no DeformConv.
ENGINES = {
    "onnxruntime": ("onnxruntime", None),
    "openvino": ("OpenVINO", 17),
    "reference": ("onnx's reference evaluator", None),
    "opencv": ("OpenCV dnn", 17),
}
TENSORRT = "TensorRT, by its list"
#: Operators that lowerings write and TensorRT's parser has not: docs/operators.md of onnx-tensorrt 10.1.
TENSORRT_LIST = "TensorRT 10.1"
NOT_IN_TENSORRT = {"Col2Im", "Compress", "Det", "MaxRoiPool", "Multinomial", "Unique"}
#: Seconds after which an engine is given up.
PATIENCE = 900


def differences(expected, got, size):
    """The worst difference, and how many boxes of how many differ."""
    boxes, rest = split_boxes(expected)
    worst = [relative_difference(a, got[name]) for name, a in rest.items()]
    count, wrong = 0, 0
    if boxes is not None:
        found = np.concatenate([got[name] for name in expected if name not in rest], axis=-1)
        count, wrong, worst_box = compare_boxes(boxes, found, size)
        worst.append(worst_box)
    return {"worst": max(worst, default=0.0), "boxes": count, "wrong": wrong}


def agrees(row):
    return "error" not in row and row["worst"] <= TOLERANCE and not row["wrong"]


def run(engine, target):
    """The outputs of a file in one engine, or why there are none."""
    outputs = target.with_suffix(".outputs.npz")
    outputs.unlink(missing_ok=True)
    command = [str(peers.interpreter("engines")), str(ZOO / "engine_worker.py"), engine, str(target)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": ""}
    try:
        done = subprocess.run(
            [*command, str(target.with_suffix(".inputs.npz")), str(outputs)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return None, f"took longer than {PATIENCE} s"
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"the process ended with {done.returncode}"
        return None, said if done.returncode > 0 else f"the process ended with signal {-done.returncode}"
    with np.load(outputs) as file:
        got = [file[name] for name in file.files]
    return got, None


class Files:
    """The ONNX files of one model, each written when it is asked for."""

    def __init__(self, worker, folder, made, scratch):
        self.worker, self.folder, self.made, self.scratch = worker, folder, made, scratch
        self._known = {}

    def get(self, opset, given=False):
        """The file, and what is in it; ``given`` is the one that is told what to select from."""
        if (opset, given) not in self._known:
            target = self.scratch / f"{'given' if given else 'model'}-{opset or 'default'}.onnx"
            request = {"do": "write_given", "choices": self.made["choices"]} if given else {"do": "write"}
            answer = self.worker.ask(**request, folder=str(self.folder), target=str(target), opset=opset)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            self._known[opset, given] = target, answer
        return self._known[opset, given]

    def for_engine(self, engine, given=False):
        """The file that an engine gets."""
        deformable = "DeformConv" in self.get(None)[1]["operators"]
        return self.get(ENGINES[engine][1] if deformable else None, given)[0]


def check_engine(engine, files, folder, made, size):
    """How one engine does with one model."""
    got, error = run(engine, files.for_engine(engine))
    if error is not None:
        return {"error": error}
    with np.load(folder / "expected.npz") as file:
        expected = {name: file[name] for name in made["outputs"]}
    if len(got) != len(expected):
        return {"error": f"gives {len(got)} of {len(expected)} outputs"}
    got = dict(zip(expected, got, strict=True))
    row = differences(expected, got, size)
    if agrees(row) or not made["choices"]:
        return row
    alone, target = row, files.for_engine(engine, given=True)
    got, error = run(engine, target)
    if error is not None:
        return {**alone, "given_error": error}
    with np.load(target.with_suffix(".expected.npz")) as file:
        wanted = dict(file)
    got = dict(zip(wanted, got, strict=True))  # roiops's outputs, and what is selected from
    outputs = {name: array for name, array in wanted.items() if not name.startswith("choice/")}
    row = differences(outputs, got, size)
    heads = [relative_difference(wanted[name], got[name]) for name in wanted if name not in outputs]
    return {**row, "worst": max([row["worst"], *heads]), "own_choices": alone}


def check(model, args, held, worker):
    """One model's row: every engine that is asked for, as far as ``held`` lacks it."""
    row = {**held, "engines": dict(held.get("engines", {}))}
    wanted = [name for name in args.engines if name not in row["engines"] or not args.resume]
    if not wanted:
        return row
    with exported(model, args.exported) as (folder, made), tempfile.TemporaryDirectory() as scratch:
        if "error" in made:
            return {**row, "error": f"mxnet: {made['error']}"}
        files = Files(worker, folder, made, Path(scratch))
        try:
            row.update(files.get(None)[1])
            for engine in wanted:
                row["engines"][engine] = check_engine(engine, files, folder, made, model.image)
        except RuntimeError as error:
            return {**row, "error": str(error)}
    row.pop("error", None)
    return row


# -- the table -------------------------------------------------------------------------------------------


def missing_in_tensorrt(row):
    """Operators of the file that TensorRT's parser has not."""
    return sorted(NOT_IN_TENSORRT.intersection(row["operators"]))


def reason(row):
    """Why an engine did not agree, in a few words."""
    if "error" not in row:
        return f"{row['wrong']} of {row['boxes']} boxes" if row["wrong"] else f"differs by {row['worst']:.1e}"
    return short(row["error"])


def short(text):
    """The part of an engine's message that says what is the matter."""
    for pattern in PATTERNS:
        found = re.search(pattern, text)
        if found:
            return found.group(found.lastindex or 0).strip()
    return text[:150]


#: Where in the engines' messages the operator or the reason stands.
PATTERNS = (
    r"OpenVINO does not support the following ONNX operations: ([^.]*)",
    r"(Can't create layer[^.]*)",
    r"(error: \(.*)",
)


def write_table(results):
    """The section of docs/onnx.md between two marks."""
    about, rows = results["about"], {n: r for n, r in results["models"].items() if "operators" in r}
    columns = [name for name in ENGINES if any(name in row["engines"] for row in rows.values())]
    families = {}
    for model in models():
        if model.name in rows:
            families.setdefault(model.family, []).append(rows[model.name])
    titles = [ENGINES[name][0] for name in columns] + [TENSORRT]
    lines = [
        f"{len(rows)} of the zoo's {len(models())} models; "
        f"{', '.join(f'{n} {v}' for n, v in about['versions'].items())}; {TENSORRT_LIST}.",
        "",
        f"| family | models | {' | '.join(titles)} |",
        "|---" * (2 + len(titles)) + "|",
    ]
    for family, members in [*families.items(), ("**all**", list(rows.values()))]:
        cells = []
        for name in columns:
            tried = [row["engines"][name] for row in members if name in row["engines"]]
            count = sum(map(agrees, tried))
            cells.append(
                str(count) if len(tried) == len(members) else f"{count} of {len(tried)}" * bool(tried)
            )
        cells.append(str(sum(not missing_in_tensorrt(row) for row in members)))
        lines.append(f"| {family} | {len(members)} | {' | '.join(cells)} |")
    lines += ["", "What does not agree:", ""]
    for name in columns:
        reasons = {}
        for model, row in rows.items():
            if name in row["engines"] and not agrees(row["engines"][name]):
                reasons.setdefault(reason(row["engines"][name]), []).append(model)
        for text, names in reasons.items():
            lines.append(f"- {ENGINES[name][0]}: {text}: {', '.join(names)}")
    lacking = {}
    for model, row in rows.items():
        for operator in missing_in_tensorrt(row):
            lacking.setdefault(operator, []).append(model)
    for operator, names in lacking.items():
        lines.append(f"- TensorRT's list lacks `{operator}`: {len(names)} models")
    failed = [f"{n} ({r['error']})" for n, r in results["models"].items() if "error" in r]
    if failed:
        lines += ["", f"Not converted: {', '.join(failed)}."]
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN + "\n")
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def versions():
    """The versions of the engines, as their own environment tells."""
    code = (
        "from importlib.metadata import version as v; import json;"
        "print(json.dumps({n: v(p) for n, p in "
        "dict(onnxruntime='onnxruntime', OpenVINO='openvino', onnx='onnx', "
        "OpenCV='opencv-python-headless').items()}))"
    )
    done = subprocess.run([str(peers.interpreter("engines")), "-c", code], capture_output=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="models with this in the name"
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--resume", action="store_true", help="do only what the results lack")
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="where MXNet's files are kept")
    parser.add_argument("--ready", action="store_true", help="only models that MXNet has exported already")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    args = parser.parse_args()
    results = held_results(RESULTS)
    if args.table:
        write_table(results)
        return 0
    failed, started = 0, time.monotonic()
    for model in named(args.only):
        place = args.exported and args.exported / model.name.replace(":", "_") / "made.json"
        if args.ready and not (place and place.exists()):
            continue
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print("the rest is left for --resume")
            break
        held = results["models"].get(model.name, {})
        if args.resume and "error" not in held and not set(args.engines) - set(held.get("engines", ())):
            continue
        worker = Worker(sys.executable, "onnx_worker.py", 2)
        try:
            row = check(model, args, held, worker)
        finally:
            worker.close()
        asked = {name: row["engines"][name] for name in args.engines if name in row["engines"]}
        shown = {name: "agrees" if agrees(each) else reason(each) for name, each in asked.items()}
        failed += "error" in row or any(text != "agrees" for text in shown.values())
        print(model.name, row.get("error", ""), json.dumps(shown), flush=True)
        if not args.dry:
            results["models"][model.name] = row
            record(results)
    return 1 if failed else 0


def record(results):
    """Write the results and the table; a run that is cut leaves those of the models before."""
    results["about"] = {
        "date": date.today().isoformat(),
        "versions": versions(),
        "processor": processor(),
    }
    known = [m.name for m in models()]
    results["models"] = {name: results["models"][name] for name in known if name in results["models"]}
    keep_results(RESULTS, results)
    write_table(results)


if __name__ == "__main__":
    sys.exit(main())
