"""Run the published models in MXNet and in roiops, compare, and write the table in the docs.

    python verify/peers.py gluoncv                        # once: MXNet 1.9.1 with GluonCV
    python verify/check_model_zoo.py                      # all models; writes docs/model_zoo.md
    python verify/check_model_zoo.py --only rcnn ssd      # those whose names contain one of these
    python verify/check_model_zoo.py --resume --minutes 8 # some at a time: goes on where the last run ended
    python verify/check_model_zoo.py --exported FOLDER    # MXNet's files are kept there, and used again
    python verify/check_model_zoo.py --list

Each model gets random weights of sensible size, so nothing is downloaded. One process has MXNet, builds the
model and leaves its files, as MXNet saves them; another has roiops and no MXNet, and loads them. Outputs, and
a detector's raw heads before boxes are selected, must agree to 1e-4 relative; detections box by box. Where
they do not, since two scores or an overlap and its threshold tie but for rounding, MXNet runs the graph again
with what its selecting operators got in roiops, and outputs, heads and those numbers must all agree. Both
processes are new for each model, so memory does not grow, and what was found is written down after each.
Engines that read ONNX: ``check_engines.py``. Times: ``benchmarks/zoo.py`` and ``benchmarks/zoo_engines.py``.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

import numpy as np
import peers

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
sys.path.insert(0, str(ZOO))

from catalogue import models, named  # noqa: E402

from roiops.models.compare import compare_boxes, relative_difference, split_boxes  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "model_zoo.json"
TABLE = ROOT / "docs" / "model_zoo.md"
TOLERANCE = 1e-4


class Worker:
    """A process that answers one JSON request a line."""

    def __init__(self, python, script, threads, *, module=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        environment["PYTHONPATH"] = str(ROOT) if python == sys.executable or module else ""
        for key in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[key] = str(threads)
        self.process = subprocess.Popen(
            [python, *(["-m", module] if module else []), str(ZOO / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ZOO,
        )

    def send(self, **request):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"the process ended with code {self.process.wait()}"}
        return json.loads(line)

    def ask(self, **request):
        self.send(**request)
        return self.answer()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def compare(folder, outputs, size):
    """What is in ``got.npz`` against ``expected.npz``: differences, boxes and the verdict."""
    with np.load(folder / "expected.npz") as file:
        expected = dict(file)
    with np.load(folder / "got.npz") as file:
        got = dict(file)
    heads = {name: relative_difference(a, got[name]) for name, a in expected.items() if name not in outputs}
    boxes, rest = split_boxes({name: expected[name] for name in outputs})
    differences = {name: relative_difference(a, got[name]) for name, a in rest.items()}
    result = {"outputs": differences, "heads": heads, "boxes": None}
    worst = max([*differences.values(), *heads.values()], default=0.0)
    agrees = worst <= TOLERANCE
    if boxes is not None:
        found = np.concatenate([got[name] for name in outputs if name not in rest], axis=-1)
        count, wrong, box_difference = compare_boxes(boxes, found, size)
        result["boxes"] = {"count": count, "wrong": wrong}
        worst = max(worst, box_difference)
        agrees = agrees and wrong == 0
    result.update(worst=worst, agrees=bool(agrees and worst <= TOLERANCE))
    return result


@contextlib.contextmanager
def exported(model, folder):
    """Where the files lie that MXNet made of the model, below ``folder``, and what it said of them."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zoo_")))
        else:
            place = folder.resolve() / model.name.replace(":", "_")
        yield place, prepare(model.name, place)


def prepare(name, folder, threads=2, patience=None) -> dict:
    """Have MXNet build a model and leave its files in ``folder``, unless they are there; what it says of it.

    It is given up after so many seconds of ``patience``.
    """
    said = folder / "made.json"
    if said.exists():
        return json.loads(said.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    worker = _mxnet(threads)
    late = threading.Timer(patience or threading.TIMEOUT_MAX, worker.process.kill)
    late.daemon = True
    late.start()
    made = ask_once(worker, do="prepare", name=name, folder=str(folder))
    if not late.is_alive():
        return {"error": f"took longer than {patience} s to build the model"}
    late.cancel()
    if "error" not in made:
        said.write_text(json.dumps(made))
    return made


def _mxnet(threads):
    return Worker(str(peers.interpreter("gluoncv")), "mxnet_worker.py", threads)


def ask_once(worker, **request):
    try:
        return worker.ask(**request)
    finally:
        worker.close()


def run_archived(model, folder, made, threads):
    """Have roiops run MXNet's files and leave what it computes in ``folder``."""
    worker = Worker(sys.executable, "roiops_worker.py", threads)
    return ask_once(worker, folder=str(folder), heads={**made["heads"], **made["choices"]})


def check(model, folder, threads, run=run_archived):
    """One model's row of the table."""
    with exported(model, folder) as (place, made):
        if "error" in made:
            return {"error": f"mxnet: {made['error']}"}
        answer = run(model, place, made, threads)
        if "error" in answer:
            return answer
        result = compare(place, made["outputs"], model.image)
    if not result["agrees"] and made["choices"]:
        alone = {key: result[key] for key in ("worst", "boxes")}
        result = {**result, **_given_choices(model, threads, run), "own_choices": alone}
    return {**result, "operators": made["operators"]}


def _given_choices(model, threads, run):
    """The comparison in which the operators that select boxes get in MXNet what they got in roiops."""
    mxnet = _mxnet(threads)
    try:
        with tempfile.TemporaryDirectory(prefix="zoo_") as scratch:
            made = mxnet.ask(do="prepare", name=model.name, folder=scratch)
            if "error" not in made:
                made.update(run(model, Path(scratch), made, threads))
            if "error" not in made:
                made.update(mxnet.ask(do="choose", folder=scratch))
            if "error" in made:
                return {"error": made["error"]}
            return compare(Path(scratch), made["outputs"], model.image)
    finally:
        mxnet.close()


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def said_of_boxes(row) -> str:
    """How many boxes were compared, and what is not as it should be."""
    if "error" in row:
        return row["error"]
    boxes, notes = row["boxes"], []
    if boxes:
        notes.append(f"{boxes['count']}" + (f", {boxes['wrong']} differ" if boxes["wrong"] else ""))
    if "own_choices" in row:
        notes.append("same choice")
    if not row["agrees"]:
        notes.append(f"differs by {row['worst']:.1e}")
    return ", ".join(notes)


def write_table(results) -> None:
    """``docs/model_zoo.md``, from the results of all models."""
    about, rows = results["about"], results["models"]
    agreeing = sum(row.get("agrees", False) for row in rows.values())
    left = [m.name for m in models() if m.name not in rows]
    lines = [
        "# The model zoo",
        "",
        f"{agreeing} of {len(rows)} published models, saved by {about['mxnet']} with random weights, agree "
        f"with it to {TOLERANCE:.0e} relative when roiops loads and runs the files.",
        "",
        "Written by `python verify/check_model_zoo.py`. The largest difference over all outputs, and over a "
        "detector's raw heads before boxes are selected, is relative to the largest magnitude in that "
        "output; model by model it stands in `benchmarks/results/model_zoo.json`. *Boxes* are "
        "compared one by one, in order: class, score and corners; those whose scores differ by less than "
        "1e-6 may change places. A model marked *same choice* selects by numbers that tie but for "
        "rounding: two scores, or an overlap and its threshold. There MXNet runs its graph a second time, "
        "and the operators that select boxes (Proposal, NMS and the like) get what they got in roiops, "
        "everything else what MXNet itself computes. Then all outputs, all raw heads and the inputs of "
        "those operators must agree, with the same tolerance. Where ROIAlign gets a negative "
        "batch index, as in GluonCV's pyramids, MXNet's kernel for the CPU reads memory before the "
        "features, though its documentation promises zeros; compared is what MXNet gives with those "
        "zeros. In which other engines these models run, once they are converted, stands with "
        "[ONNX](onnx.md#in-which-engines), how fast they are on the [page of benchmarks](benchmarks.md).",
    ]
    families = {}
    catalogue = {m.name: m for m in models()}
    for name in catalogue:
        if name in rows:
            families.setdefault(catalogue[name].family, []).append(name)
    for family, names in families.items():
        lines += [
            "",
            f"## {family}",
            "",
            "| model | input | operators | boxes |",
            "|---|---|---|---|",
        ]
        for name in names:
            row, shape = rows[name], "x".join(map(str, catalogue[name].inputs["data"]))
            cells = [name, shape, str(len(row.get("operators", ()))), said_of_boxes(row)]
            lines.append(f"| {' | '.join(cells)} |")
    if left:
        lines += ["", "## Not checked yet", "", f"{len(left)} of {len(catalogue)}: {', '.join(left)}."]
    operators = sorted({op for row in rows.values() for op in row.get("operators", ())})
    listed = ", ".join(f"`{name}`" for name in operators)
    lines += ["", "## Operators", "", f"These models use {len(operators)} operators: {listed}."]
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
        help="a name, or what is in a name",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--resume", action="store_true", help="leave out the models that the results hold already"
    )
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="where MXNet's files are kept")
    parser.add_argument("--list", action="store_true", help="print the names only")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    parser.add_argument("--table", action="store_true", help="run nothing, write the table from the results")
    parser.add_argument("--golden", action="store_true", help="write tests/golden/models instead")
    args = parser.parse_args()
    if args.golden:
        return write_golden()
    if args.table:
        write_table(json.loads(RESULTS.read_text()))
        return 0
    chosen = named(args.only)
    if args.list:
        print("\n".join(m.name for m in chosen))
        return 0
    python = peers.interpreter("gluoncv")
    if not python.exists():
        parser.error("MXNet with GluonCV is not set up: python verify/peers.py gluoncv")
    results = held_results(RESULTS)
    if args.resume:
        chosen = [m for m in chosen if m.name not in results["models"]]
    failed, started = [], time.monotonic()
    for done, model in enumerate(chosen):
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print(f"{len(chosen) - done} are left for another run")
            chosen = chosen[:done]
            break
        row = check(model, args.exported, args.threads)
        if not row.get("agrees"):
            failed.append(model.name)
        shown = {key: row[key] for key in ("error", "worst", "agrees", "own_choices", "boxes") if key in row}
        print(model.name, json.dumps(shown), flush=True)
        if not args.dry:
            results["models"][model.name] = row
            record(results, args)
    print(
        f"{len(chosen) - len(failed)} of {len(chosen)} agree"
        + (f"; not: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


def held_results(path) -> dict:
    """The results that are kept in a file; of no model where there is none."""
    return json.loads(path.read_text()) if path.exists() else {"models": {}}


def keep_results(path, results) -> None:
    """Write results to a file, which is whole at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(results, indent=1) + "\n")
    scratch.replace(path)


def record(results, args) -> None:
    """Write the results and the table; a run that is cut leaves those of the models before."""
    results["about"] = about(args)
    known = [m.name for m in models()]
    results["models"] = {name: results["models"][name] for name in known if name in results["models"]}
    keep_results(RESULTS, results)
    write_table(results)


#: Small models for the tests, with the size of their input.
GOLDEN = {
    "gluon:mobilenet0.25": (1, 3, 64, 64),
    "gluoncv:resnet18_v1b": (1, 3, 64, 64),
    "gluoncv:ssd_300_mobilenet0.25_voc": (1, 3, 128, 128),
    "gluoncv:yolo3_mobilenet0.25_coco": (1, 3, 96, 96),
    "gluoncv:center_net_resnet18_v1b_dcnv2_voc": (1, 3, 64, 64),
    "gluoncv:simple_pose_resnet18_v1b": (1, 3, 64, 64),
    "retinaface_mobilenet0.25": (1, 3, 72, 100),
    "mtcnn_onet": (4, 3, 48, 48),
    "mobilefacenet": (1, 3, 112, 112),
}


def write_golden() -> int:
    """The small models of the tests, as MXNet computes them."""
    folder = ROOT / "tests" / "golden" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    worker = _mxnet(2)
    for name, size in GOLDEN.items():
        path = folder / (name.replace(":", "_") + ".npz")
        answer = worker.ask(do="golden", name=name, path=str(path), size=size)
        if "error" in answer:
            raise SystemExit(f"{name}: {answer['error']}")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")
    worker.close()
    return 0


def about(args) -> dict:
    import numba

    sys.path.insert(0, str(ROOT))
    from roiops._version import __version__

    return {
        "mxnet": "MXNet 1.9.1",
        "roiops": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "processor": processor(),
        "threads": args.threads,
        "date": date.today().isoformat(),
    }


if __name__ == "__main__":
    sys.exit(main())
