"""Convert the models of the zoo to ONNX, run them in onnxruntime beside roiops; writes ``docs/onnx_zoo.md``.

    python verify/check_onnx.py                       # all that ``zoo/catalogue.py`` lists; hours
    python verify/check_onnx.py --only rcnn ssd       # those whose names contain one of these
    python verify/check_onnx.py --rounds 0            # compare only
    python verify/check_onnx.py --resume --minutes 8  # a piece at a time
    python verify/check_onnx.py --exported FOLDER     # keep what MXNet exports there, and take it from there

MXNet builds each model with random weights and leaves its files, as in ``check_model_zoo.py``. Another
process loads them in roiops, converts them, has the file checked with full inference of shapes, and runs it
in onnxruntime. All outputs must agree to 2e-5 relative, detections box by box; where two choices tie but for
rounding, the operators that select boxes get in both what they got in roiops. Times are taken in turns, with
as many threads for each, in new processes for each number of threads.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
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


@contextlib.contextmanager
def exported(model, mxnet, folder):
    """The folder with the model's files, and what the worker said of them."""
    if folder is None:
        scratch = Path(tempfile.mkdtemp(prefix="onnx_zoo_"))
        try:
            yield scratch, mxnet.ask(do="prepare", name=model.name, folder=str(scratch), timed=True)
        finally:
            shutil.rmtree(scratch)
        return
    place = folder / model.name.replace(":", "_")
    place.mkdir(parents=True, exist_ok=True)
    said = place / "made.json"
    made = json.loads(said.read_text()) if said.exists() else None
    if made is None or mxnet is not None:
        own = mxnet or Worker(str(peers.interpreter("gluoncv")), "mxnet_worker.py", 2)
        made = own.ask(do="prepare", name=model.name, folder=str(place), timed=mxnet is not None)
        if mxnet is None:
            own.close()
        if "error" not in made:
            said.write_text(json.dumps(made))
    yield place, made


def check(model, args):
    """One model's row: the comparison, then times for each number of threads."""
    result = {}
    for threads in args.threads if args.rounds else args.threads[:1]:
        mxnet = Worker(str(peers.interpreter("gluoncv")), "mxnet_worker.py", threads) if args.rounds else None
        ours = Worker(sys.executable, "onnx_worker.py", threads)
        try:
            with exported(model, mxnet, args.exported) as (folder, made):
                if "error" in made:
                    return {"error": f"mxnet: {made['error']}"}
                answer = ours.ask(
                    do="convert",
                    folder=str(folder),
                    choices=made["choices"],
                    size=model.image,
                    threads=threads,
                )
            if "error" in answer:
                return {**result, "error": answer["error"]}
            result = result or answer
            if not args.rounds:
                return result
            times = {"mxnet": [], "roiops": [], "onnxruntime": []}
            for _ in range(args.rounds + 1):  # the first of each is dropped
                for name, taken in times.items():
                    asked = (
                        mxnet.ask(do="measure") if name == "mxnet" else ours.ask(do="measure", engine=name)
                    )
                    if "error" in asked:
                        return {**result, "agrees": False, "error": f"{name}: {asked['error']}"}
                    taken.append(asked["ms"])
            medians = {name: statistics.median(taken[1:]) for name, taken in times.items()}
            result.setdefault("ms", {})[str(threads)] = medians
            if "proposal" in str(made["operators"]).lower():
                result.setdefault("compositions", {})[str(threads)] = ours.ask(
                    do="compositions", rounds=args.rounds
                )
        finally:
            ours.close()
            if mxnet:
                mxnet.close()
    return result


def _cells(name, model, row, counts):
    shape = "x".join(map(str, model.inputs["data"]))
    if "error" in row:
        return [name, shape, "", "", row["error"], "", *[""] * len(counts)]
    worst = f"{row['worst']:.1e}" + ("" if row["agrees"] else " (differs)")
    worst += ", same choice" if "own_choices" in row else ""
    boxes = (
        ""
        if row["boxes"] is None
        else str(row["boxes"]) + (f", {row['wrong']} differ" if row["wrong"] else "")
    )
    cells = [name, shape, str(row["opset"]), f"{row['bytes'] / 1e6:.1f}", worst, boxes]
    for count in counts:
        ms = row.get("ms", {}).get(count)
        cells.append(" / ".join(f"{ms[n]:.0f}" for n in ("mxnet", "roiops", "onnxruntime")) if ms else "")
    return cells


def write_table(results) -> None:
    """``docs/onnx_zoo.md``, from the results of all models."""
    about, rows = results["about"], results["models"]
    catalogue = {m.name: m for m in models()}
    left = [name for name in catalogue if name not in rows]
    counts = sorted({count for row in rows.values() for count in row.get("ms", {})})
    agreeing = [row for row in rows.values() if row.get("agrees")]
    worst = max((row["worst"] for row in agreeing), default=0.0)
    loads = [row["load"] for row in rows.values()]
    not_yet = f"; {len(left)} of {len(catalogue)} are not checked yet." if left else "."
    lines = [
        "# The model zoo in onnxruntime",
        "",
        f"{len(agreeing)} of {len(rows)} models convert, pass `onnx.checker` with full inference of shapes, "
        f"and agree with roiops in onnxruntime {about['onnxruntime']} to {worst:.1e} relative or "
        f"better{not_yet}",
        "",
        "Written by `python verify/check_onnx.py`, which has MXNet export each model with random weights, "
        "converts, checks and compares in one run. *Worst* is the largest difference over all outputs, "
        "relative to the largest magnitude in that output. *Boxes* are compared one by one, in order: "
        "class, score and corners. A model marked *same choice* selects by numbers that tie but for "
        "rounding; there the operators that select boxes get in both what they got in roiops, and all "
        "outputs and all that is selected from must agree. *MB* is the size of the file, the weights in "
        "float32.",
        "",
        f"Machine: {about['processor']}; {about['date']}; load average of the last minute {min(loads):.1f} "
        f"to {max(loads):.1f} while it ran; roiops {about['roiops']}, onnx {about['onnx']}, "
        f"Python {about['python']}.",
    ]
    families = {}
    for name in catalogue:
        if name in rows:
            families.setdefault(catalogue[name].family, []).append(name)
    titles = ["model", "input", "opset", "MB", "worst", "boxes"]
    titles += [
        f"ms, {count} thread{'s' if count != '1' else ''}: MXNet / roiops / onnxruntime" for count in counts
    ]
    for family, names in families.items():
        lines += ["", f"## {family}", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
        lines += [f"| {' | '.join(_cells(n, catalogue[n], rows[n], counts))} |" for n in names]
    two_stage = {name: row["compositions"] for name, row in rows.items() if "compositions" in row}
    if two_stage:
        lines += [
            "",
            "## Two-stage detectors",
            "",
            "How well the compositions do: the time of the whole model in onnxruntime, over that of "
            "everything but the compositions plus what the same operators take in roiops.",
            "",
            f"| model | {' | '.join(f'{count} threads' for count in counts)} |",
            "|---" * (1 + len(counts)) + "|",
        ]
        for name, by_count in two_stage.items():
            cells = []
            for count in counts:
                ms = by_count.get(count)
                whole = ms and (ms["rest"] + ms["onnxruntime"]) / (ms["rest"] + ms["roiops"])
                cells.append(f"{whole:.2f}" if whole else "")
            lines.append(f"| {name} | {' | '.join(cells)} |")
    if left:
        lines += ["", "## Not checked yet", "", ", ".join(left) + "."]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="models with this in their name"
    )
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="numbers of threads"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="measurements after one that is dropped; 0: none"
    )
    parser.add_argument(
        "--resume", action="store_true", help="leave out the models that the results hold already"
    )
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="where MXNet's files are kept")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"models": {}}
    if args.table:
        write_table(results)
        return 0
    chosen = [m for m in models() if any(text in m.name for text in args.only)]
    if args.resume:
        wanted = [str(n) for n in args.threads] if args.rounds else []
        held = results["models"]
        chosen = [
            m
            for m in chosen
            if not held.get(m.name, {}).get("agrees")
            or any(n not in held[m.name].get("ms", {}) for n in wanted)
        ]
    failed, started = [], time.monotonic()
    for done, model in enumerate(chosen):
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print(f"{len(chosen) - done} are left for another run")
            chosen = chosen[:done]
            break
        load = os.getloadavg()[0]
        row = {**check(model, args), "load": load}
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
