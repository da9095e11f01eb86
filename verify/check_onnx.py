"""Convert the models of the zoo to ONNX, run them in onnxruntime beside roiops; writes ``docs/onnx_zoo.md``.

    python verify/check_onnx.py                       # all that ``zoo/catalogue.py`` lists
    python verify/check_onnx.py --only rcnn ssd       # those whose names contain one of these
    python verify/check_onnx.py --rounds 0            # compare only
    python verify/check_onnx.py --resume --minutes 8  # a piece at a time: what the results lack
    python verify/check_onnx.py --exported FOLDER     # what MXNet exports is kept there, and taken from it

MXNet builds each model with random weights and leaves its files, as in ``check_model_zoo.py``. Another
process loads them in roiops, converts them, has the file checked with full inference of shapes, and runs it
in onnxruntime. All outputs must agree to 2e-5 relative, detections box by box; where two choices tie but for
rounding, the operators that select boxes get in both what they got in roiops.

Then MXNet, roiops and onnxruntime run the model in turns, with one thread each and with two, MXNet in a
process of its own. With everything exported and compared before, as after ``--rounds 0 --exported FOLDER``,
``--resume --exported FOLDER`` only measures: about half an hour on two cores that do nothing else.
"""

import argparse
import contextlib
import json
import math
import os
import platform
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
            made = worker.ask(do="prepare", name=model.name, folder=str(place), timed=False)
            worker.close()
            if "error" not in made:
                said.write_text(json.dumps(made))
        yield place, made


class Sides:
    """For each number of threads a process with MXNet, and one with roiops and onnxruntime.

    They are new after every few models, so that memory does not grow, and after one that failed.
    """

    MODELS = 8

    def __init__(self):
        self._workers, self._models = {}, 0

    def next_model(self):
        self._models += 1
        if self._models % self.MODELS == 0:
            self.close()

    def worker(self, name, threads):
        if (name, threads) not in self._workers:
            python, script = {
                "mxnet": (str(peers.interpreter("gluoncv")), "mxnet_worker.py"),
                "ours": (sys.executable, "onnx_worker.py"),
            }[name]
            self._workers[name, threads] = Worker(python, script, threads)
        return self._workers[name, threads]

    def close(self):
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()


def check(model, args, held, sides):
    """One model's row: the comparison and the times, as far as ``held`` lacks them."""
    with exported(model, args.exported) as (folder, made), tempfile.TemporaryDirectory() as scratch:
        if "error" in made:
            return {"error": f"mxnet: {made['error']}"}
        target, row = Path(scratch) / "model.onnx", dict(held)
        sides.next_model()
        if not row.get("agrees"):
            sides.close()  # the peak of its memory is to be that of this model
            row = sides.worker("ours", args.threads[0]).ask(
                do="convert", folder=str(folder), choices=made["choices"], size=model.image,
                threads=args.threads[0], target=str(target),
            )  # fmt: skip
            row["load"] = os.getloadavg()[0]
        if not row.get("agrees") or not args.rounds:
            return row
        for threads in args.threads:
            if str(threads) in row.get("ms", {}):
                continue
            found = measure(
                folder, target, threads, args, sides, "proposal" in str(made["operators"]).lower()
            )
            row.get("unmeasured", {}).pop(str(threads), None)
            for key, value in found.items():
                if key != "ms" or value:  # without times, another run tries again
                    row.setdefault(key, {})[str(threads)] = value
        return row


#: Threads of a library that has just run look for more work for a while: 4 ms in MXNet, 40 in onnxruntime.
PAUSE = 0.05


def measure(folder, target, threads, args, sides, two_stage):
    """Medians of the times of all three, in turns, and how the compositions of a two-stage detector do."""
    workers = {name: sides.worker(name, threads) for name in ("mxnet", "ours")}
    workers["mxnet"].send(do="load", folder=str(folder))
    workers["ours"].send(do="load", folder=str(folder), target=str(target), threads=threads)
    errors = {name: worker.answer().get("error") for name, worker in workers.items()}
    engines = {"mxnet": "mxnet", "roiops": "ours", "onnxruntime": "ours"}
    engines = {engine: name for engine, name in engines.items() if not errors[name]}
    times = {engine: [] for engine in engines}
    started = time.monotonic()
    while engines and len(next(iter(times.values()))) < args.rounds:
        for engine, name in engines.items():
            time.sleep(PAUSE if threads > 1 else 0)
            asked = workers[name].ask(do="measure", engine=engine)
            if "error" in asked:
                errors[engine] = asked["error"]
            times[engine].append(asked.get("ms"))
        if any(errors.values()) or time.monotonic() - started > args.seconds:
            break
    found = {"load_timed": os.getloadavg()[0], "rounds": min(map(len, times.values()), default=0)}
    if not errors["ours"] and two_stage:
        found["compositions"] = workers["ours"].ask(do="compositions", rounds=min(2, found["rounds"]))
    if any(errors.values()):
        found["unmeasured"] = "; ".join(f"{name}: {error}" for name, error in errors.items() if error)
        sides.close()
    found["ms"] = {
        engine: statistics.median(taken) for engine, taken in times.items() if taken and None not in taken
    }
    return found


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
        ms = row.get("ms", {}).get(count, {})
        cells.append(" / ".join(_ms(ms.get(name)) for name in ENGINES) if ms else "")
    return cells


ENGINES = {"mxnet": "MXNet", "roiops": "roiops", "onnxruntime": "onnxruntime"}


def _ms(taken):
    """Milliseconds in three digits."""
    return "–" if taken is None else f"{taken:.0f}" if taken >= 100 else f"{taken:#.3g}".rstrip(".")


def _threads(count):
    return f"{count} thread" if count == "1" else f"{count} threads"


def _speeds(rows, counts):
    """How roiops stands to onnxruntime, in a sentence for each number of threads."""
    lines = []
    for count in counts:
        both = {
            name: row["ms"][count]["onnxruntime"] / row["ms"][count]["roiops"]
            for name, row in rows.items()
            if {"roiops", "onnxruntime"} <= set(row.get("ms", {}).get(count, ()))
        }
        ahead = sum(ratio >= 1 for ratio in both.values())
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in both.values()))
        lines.append(
            f"- {_threads(count)}: roiops is {mean:.2f} times as fast as onnxruntime (geometric mean of "
            f"{len(both)} models), and as fast or faster in {ahead}; least {min(both.values()):.2f} "
            f"({min(both, key=both.get)})."
        )
    return lines


def _two_stage(rows, counts):
    """The section on detectors with compositions between backbone and heads."""
    ratios = {}
    for name, row in rows.items():
        for count, ms in row.get("compositions", {}).items():
            if "error" not in ms:
                whole, bar = ms["rest"] + ms["onnxruntime"], ms["rest"] + ms["roiops"]
                ratios.setdefault(name, {})[count] = whole / bar
    if not ratios:
        return []
    worst = max(ratio for each in ratios.values() for ratio in each.values())
    lines = [
        "",
        "## Two-stage detectors",
        "",
        "How well the compositions do: the time of the whole model in onnxruntime, over that of everything "
        "but the compositions plus what the same operators take in roiops. It should be no more than 1.5; "
        f"the largest is {worst:.2f}.",
        "",
        f"| model | {' | '.join(_threads(count) for count in counts)} |",
        "|---" * (1 + len(counts)) + "|",
    ]
    for name, each in ratios.items():
        cells = [f"{each[count]:.2f}" if count in each else "" for count in counts]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def write_table(results) -> None:
    """``docs/onnx_zoo.md``, from the results of all models."""
    about, rows = results["about"], results["models"]
    catalogue = {m.name: m for m in models()}
    left = [name for name in catalogue if name not in rows]
    counts = sorted({count for row in rows.values() for count in row.get("ms", {})})
    agreeing = [row for row in rows.values() if row.get("agrees")]
    worst = max((row["worst"] for row in agreeing), default=0.0)
    not_yet = f"; {len(left)} of {len(catalogue)} are not checked yet." if left else "."
    machine = (
        f"Compared on {about['processor']}; {about['date']}; roiops {about['roiops']}, onnx {about['onnx']}, "
        f"Python {about['python']}."
    )
    if counts:
        timed, loads = results["about_times"], []
        for row in rows.values():
            loads += row.get("load_timed", {}).values()
        machine += (
            f" Times of {timed['processor']}; {timed['date']}; load average of the last minute "
            f"{min(loads):.1f} to {max(loads):.1f} while they were taken."
        )
    lines = [
        "# The model zoo in onnxruntime",
        "",
        f"{len(agreeing)} of {len(rows)} models convert, pass `onnx.checker` with full inference of shapes, "
        f"and agree with roiops in onnxruntime {about['onnxruntime']} to {worst:.1e} relative or "
        f"better{not_yet}",
        "",
        "Written by `python verify/check_onnx.py`, which has MXNet export each model with random weights, "
        "converts, checks, compares and measures. *Worst* is the largest difference over all outputs, "
        "relative to the largest magnitude in that output. *Boxes* are compared one by one, in order: "
        "class, score and corners. A model marked *same choice* selects by numbers that tie but for "
        "rounding; there the operators that select boxes get in both what they got in roiops, and all "
        "outputs and all that is selected from must agree. *MB* is the size of the file, the weights in "
        "float32.",
    ]
    if counts:
        lines += [
            "",
            "*ms* are medians of a pass in MXNet, roiops and onnxruntime, in turns. "
            "Where roiops takes longer than onnxruntime, its network kernels have something left to gain.",
            "",
            *_speeds(rows, counts),
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
    titles += [f"ms, {_threads(count)}: {' / '.join(ENGINES.values())}" for count in counts]
    for family, names in families.items():
        lines += ["", f"## {family}", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
        lines += [f"| {' | '.join(_cells(n, catalogue[n], rows[n], counts))} |" for n in names]
    lines += _two_stage(rows, counts)
    unmeasured = [
        f"- {name}, {_threads(count)}: {reason}"
        for name, row in rows.items()
        for count, reason in row.get("unmeasured", {}).items()
    ]
    if unmeasured:
        lines += ["", "## Not measured", "", *unmeasured]
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
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="numbers of threads"
    )
    parser.add_argument(
        "--rounds", type=int, default=10, help="measurements at most, after a pass that is dropped; 0: none"
    )
    parser.add_argument(
        "--seconds", type=float, default=2, help="start no more rounds of a model after this long"
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
        wanted = [str(n) for n in args.threads] if args.rounds else []
        held = results["models"]
        chosen = [
            m
            for m in chosen
            if not held.get(m.name, {}).get("agrees")
            or any(n not in held[m.name].get("ms", {}) for n in wanted)
        ]
    failed, started, sides = [], time.monotonic(), Sides()
    for done, model in enumerate(chosen):
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print(f"{len(chosen) - done} are left for another run")
            chosen = chosen[:done]
            break
        held = results["models"].get(model.name, {}) if args.resume else {}
        row = check(model, args, held, sides)
        if not row.get("agrees"):
            failed.append(model.name)
        print(model.name, json.dumps(row), flush=True)
        if not args.dry:
            results["models"][model.name] = row
            record(results, compared=row.get("load") != held.get("load"), measured=args.rounds > 0)
    sides.close()
    text = f"; not: {', '.join(failed)}" if failed else ""
    print(f"{len(chosen) - len(failed)} of {len(chosen)} agree{text}")
    return 1 if failed else 0


def record(results, compared, measured) -> None:
    """Write the results and the table; a run that is cut leaves those of the models before."""
    import onnx
    import onnxruntime

    from roiops._version import __version__

    about = {
        "roiops": __version__,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processor": processor(),
        "date": date.today().isoformat(),
    }
    if compared:
        results["about"] = about
    if measured:
        results["about_times"] = about
    known = [m.name for m in models()]
    results["models"] = {name: results["models"][name] for name in known if name in results["models"]}
    scratch = RESULTS.with_suffix(".part")
    scratch.write_text(json.dumps(results, indent=1) + "\n")
    scratch.replace(RESULTS)
    write_table(results)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
