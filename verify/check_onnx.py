"""Convert the models of the zoo to ONNX, run them in onnxruntime beside roiops; writes ``docs/onnx_zoo.md``.

    python verify/check_onnx.py                       # all that ``zoo/catalogue.py`` lists
    python verify/check_onnx.py --only rcnn ssd       # those whose names contain one of these
    python verify/check_onnx.py --resume --minutes 8  # a piece at a time: what the results lack
    python verify/check_onnx.py --exported FOLDER     # what MXNet exports is kept there, and taken from it

MXNet builds each model with random weights and leaves its files, as in ``check_model_zoo.py``. Another
process loads them in roiops, converts them, has the file checked with full inference of shapes, and runs it
in onnxruntime. All outputs must agree to 2e-5 relative, detections box by box; where two choices tie but for
rounding, the operators that select boxes get in both what they got in roiops. Other engines, and MXNet's
numbers: ``check_engines.py``. Times: ``benchmarks/zoo_engines.py``.
"""

import argparse
import contextlib
import json
import platform
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import peers
from check_model_zoo import Worker, processor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "verify" / "zoo"))

from catalogue import models  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "onnx_zoo.json"
TABLE = ROOT / "docs" / "onnx_zoo.md"
THREADS = 2


@contextlib.contextmanager
def exported(model, folder):
    """The folder with the files that MXNet made of the model, and what it said of them."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onnx_zoo_")))
        else:
            place = folder / model.name.replace(":", "_")
            place.mkdir(parents=True, exist_ok=True)
        said = place / "made.json"
        if said.exists():
            made = json.loads(said.read_text())
        else:
            worker = Worker(str(peers.interpreter("gluoncv")), "mxnet_worker.py", 2)
            made = worker.ask(do="prepare", name=model.name, folder=str(place))
            worker.close()
            if "error" not in made:
                said.write_text(json.dumps(made))
        yield place, made


def check(model, folder):
    """One model's row."""
    with exported(model, folder) as (place, made), tempfile.TemporaryDirectory() as scratch:
        if "error" in made:
            return {"error": f"mxnet: {made['error']}"}
        worker = Worker(sys.executable, "onnx_worker.py", THREADS)  # its peak of memory is this model's
        try:
            return worker.ask(
                do="convert", folder=str(place), choices=made["choices"], size=model.image,
                threads=THREADS, target=str(Path(scratch) / "model.onnx"),
            )  # fmt: skip
        finally:
            worker.close()


def _cells(name, model, row):
    shape = "x".join(map(str, model.inputs["data"]))
    if "error" in row:
        return [name, shape, "", "", row["error"], ""]
    worst = f"{row['worst']:.1e}" + ("" if row["agrees"] else " (differs)")
    worst += ", same choice" if "own_choices" in row else ""
    boxes = "" if row["boxes"] is None else str(row["boxes"])
    boxes += f", {row['wrong']} differ" if row["wrong"] else ""
    return [name, shape, str(row["opset"]), f"{row['bytes'] / 1e6:.1f}", worst, boxes]


def write_table(results) -> None:
    """``docs/onnx_zoo.md``, from the results of all models."""
    about, rows = results["about"], results["models"]
    catalogue = {m.name: m for m in models()}
    left = [name for name in catalogue if name not in rows]
    agreeing = [row for row in rows.values() if row.get("agrees")]
    worst = max((row["worst"] for row in agreeing), default=0.0)
    not_yet = f"; {len(left)} of {len(catalogue)} are not checked yet." if left else "."
    machine = (
        f"Compared on {about['processor']}; {about['date']}; roiops {about['roiops']}, onnx {about['onnx']}, "
        f"Python {about['python']}."
    )
    lines = [
        "# The model zoo in onnxruntime",
        "",
        f"{len(agreeing)} of {len(rows)} models convert, pass `onnx.checker` with full inference of shapes, "
        f"and agree with roiops in onnxruntime {about['onnxruntime']} to {worst:.1e} relative or "
        f"better{not_yet}",
        "",
        "Written by `python verify/check_onnx.py`, which has MXNet export each model with random weights, "
        "converts, checks and compares. *Worst* is the largest difference over all outputs, "
        "relative to the largest magnitude in that output. *Boxes* are compared one by one, in order: "
        "class, score and corners. A model marked *same choice* selects by numbers that tie but for "
        "rounding; there the operators that select boxes get in both what they got in roiops, and all "
        "outputs and all that is selected from must agree. *MB* is the size of the file, the weights in "
        "float32. How fast the zoo is beside onnxruntime, `python benchmarks/zoo_engines.py` measures.",
    ]
    held = [row["peak"] / row["bytes"] for row in rows.values() if row.get("peak") and row["bytes"] > 1e8]
    if held:
        lines += [
            "",
            f"To convert a model of over 100 MB, from loading it to the last check, took memory of up to "
            f"{max(held):.1f} times the size of the file ({len(held)} measured).",
        ]
    lines += ["", machine]
    families = {}
    for name in catalogue:
        if name in rows:
            families.setdefault(catalogue[name].family, []).append(name)
    titles = ["model", "input", "opset", "MB", "worst", "boxes"]
    for family, names in families.items():
        lines += ["", f"## {family}", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
        lines += [f"| {' | '.join(_cells(n, catalogue[n], rows[n]))} |" for n in names]
    if left:
        lines += ["", "## Not checked yet", "", ", ".join(left) + "."]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="the model of this name, or else those with this in it",
    )
    parser.add_argument("--resume", action="store_true", help="do only what the results lack")
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="where MXNet's files are kept")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    args = parser.parse_args()
    if args.exported:
        args.exported = args.exported.resolve()  # the workers run elsewhere
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"models": {}}
    if args.table:
        write_table(results)
        return 0
    names = {m.name for m in models()}
    chosen = [
        m
        for m in models()
        if any(m.name == text or (text not in names and text in m.name) for text in args.only)
    ]
    if args.resume:
        chosen = [m for m in chosen if not results["models"].get(m.name, {}).get("agrees")]
    failed, started = [], time.monotonic()
    for done, model in enumerate(chosen):
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print(f"{len(chosen) - done} are left for another run")
            chosen = chosen[:done]
            break
        row = check(model, args.exported)
        if not row.get("agrees"):
            failed.append(model.name)
        print(model.name, json.dumps(row), flush=True)
        if not args.dry:
            results["models"][model.name] = row
            record(results)
    text = f"; not: {', '.join(failed)}" if failed else ""
    print(f"{len(chosen) - len(failed)} of {len(chosen)} agree{text}")
    return 1 if failed else 0


def record(results) -> None:
    """Write the results and the table; a run that is cut leaves those of the models before."""
    import onnx
    import onnxruntime

    from roiops._version import __version__

    results["about"] = {
        "roiops": __version__,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processor": processor(),
        "date": date.today().isoformat(),
    }
    known = [m.name for m in models()]
    results["models"] = {name: results["models"][name] for name in known if name in results["models"]}
    scratch = RESULTS.with_suffix(".part")
    scratch.write_text(json.dumps(results, indent=1) + "\n")
    scratch.replace(RESULTS)
    write_table(results)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
