"""Run the networks of GluonCV and of MXNet's Gluon zoo on roiops, unchanged, beside MXNet; write the table.

    python verify/peers.py gluoncv gluoncv-now            # once: GluonCV with MXNet 1.9.1, and without MXNet
    python verify/check_gluon.py                          # all networks; writes docs/gluon_zoo.md
    python verify/check_gluon.py --only rcnn ssd          # those whose names contain one of these
    python verify/check_gluon.py --graphs                 # only graphs and parameters: seconds a network
    python verify/check_gluon.py --exported FOLDER        # MXNet's files are kept there, and used again
    python verify/check_gluon.py --resume --minutes 8     # some at a time: goes on where the last run ended

MXNet builds the network by GluonCV's code, gives it random weights of sensible size, runs it, and writes
``save_parameters``. Another process, which has no MXNet, runs the same code of GluonCV by ``python -m
roiops.as_mxnet``: it builds the network, loads the file and runs it as a hybridised block. The graph must
have the same nodes by name, and the outputs and a detector's raw heads the same numbers, as in
``check_model_zoo.py``.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import check_model_zoo
import peers
from check_model_zoo import ROOT, TOLERANCE, Worker, ask_once, processor, said_of_boxes

sys.path.insert(0, str(ROOT / "verify" / "zoo"))

from catalogue import find, models, named

RESULTS = ROOT / "benchmarks" / "results" / "gluon_zoo.json"
TABLE = ROOT / "docs" / "gluon_zoo.md"


def every_network() -> list:
    """Those of MXNet's zoo, and those of GluonCV's own list."""
    worker = Worker(str(peers.interpreter("gluoncv")), "mxnet_worker.py", 1)
    names = worker.ask(do="names")["names"]
    worker.close()
    own = [model for model in models() if model.name.startswith("gluon:")]
    return own + [find(f"gluoncv:{name}") for name in names]


def run_network(model, folder, made, threads):
    """Have GluonCV's code, on roiops, load MXNet's parameters and leave what it computes in ``folder``."""
    now = str(peers.interpreter("gluoncv-now"))
    worker = Worker(now, "gluon_worker.py", threads, module="roiops.as_mxnet")
    heads = {**made["heads"], **made["choices"]}
    answer = ask_once(worker, do="load", name=model.name, folder=str(folder), heads=heads)
    return {"error": f"the graph {answer['graph']}"} if answer.get("graph") else answer


def check(model, folder, threads) -> dict:
    """One network's row of the table."""
    if model.inputs is None:
        return {"left_out": model.family}
    row = check_model_zoo.check(model, folder, threads, run_network)
    return {key: value for key, value in row.items() if key not in ("outputs", "heads", "operators")}


class Graphs:
    """Compares graphs and parameters only; one process of each kind builds all networks."""

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="gluon_"))
        self._workers = {}

    def _ask(self, kind, **request):
        worker = self._workers.get(kind)
        if worker is None:
            module = "roiops.as_mxnet" if kind == "gluoncv-now" else None
            script = "gluon_worker.py" if module else "mxnet_worker.py"
            worker = Worker(str(peers.interpreter(kind)), script, 1, module=module)
            self._workers[kind] = worker
        return worker.ask(do="graph", **request)

    def check(self, model) -> dict:
        if model.inputs is None:
            return {"left_out": model.family}
        expected, path = (str(self._folder / name) for name in ("expected.json", "got.json"))
        made = self._ask("gluoncv", name=model.name, path=expected)
        if "error" in made:
            return {"error": f"mxnet: {made['error']}"}
        answer = self._ask("gluoncv-now", name=model.name, path=path, expected=expected)
        if "error" in answer or answer["graph"]:
            return {"error": answer.get("error") or f"the graph {answer['graph']}"}
        if answer["params"] != made["params"]:
            key = next(k for k in made["params"] if answer["params"].get(k) != made["params"][k])
            return {"error": f"{key} is {answer['params'].get(key)}, MXNet's {made['params'][key]}"}
        return {"same_graph": len(made["params"])}

    def close(self):
        for worker in self._workers.values():
            worker.close()
        shutil.rmtree(self._folder)


def _row(row) -> dict:
    """A row; a network that GluonCV cannot build under MXNet either is left out."""
    error = row.get("error", "")
    if error.startswith("mxnet: "):
        return {"left_out": f"cannot be built without a download under MXNet either: {error[7:160]}"}
    return row


def write_table(results) -> None:
    """``docs/gluon_zoo.md``, from the results of all networks."""
    about, rows = results["about"], {name: _row(row) for name, row in results["models"].items()}
    tried = {name: row for name, row in rows.items() if "left_out" not in row}
    agreeing = sum(row.get("agrees", False) for row in tried.values())
    same = sum("same_graph" in row for row in tried.values())
    lines = [
        "# Gluon networks",
        "",
        f"{agreeing} of {len(tried)} networks, built by GluonCV 0.10.5 and by MXNet's Gluon zoo, load "
        f"parameters that MXNet 1.9.1 saved and agree with it to {TOLERANCE:.0e} relative. {same} more "
        "have the same graph and the same parameters by name and shape; their numbers were not compared.",
        "",
        "Written by `python verify/check_gluon.py`. GluonCV is the published package, unchanged, with "
        f"Python {about['python']} and NumPy {about['numpy']}, run by `python -m roiops.as_mxnet`. The "
        "graph that its code builds must have the same nodes, by name, as with MXNet. *Boxes* and *same "
        "choice* are those of the [model zoo](model_zoo.md): the last means that boxes are selected by "
        "numbers that tie but for rounding, and MXNet ran again with the numbers that roiops selected by.",
        "",
        "Weights are random. Networks that a list of GluonCV holds under several names for several data "
        "sets differ in their number of classes.",
    ]
    families = {}
    for name, row in rows.items():
        family = "left out" if "left_out" in row else find(name).family
        families.setdefault(family, {})[name] = row
    for family, members in families.items():
        if family == "left out":
            continue
        lines += ["", f"## {family}", "", "| network | input | compared | boxes |", "|---|---|---|---|"]
        for name, row in members.items():
            shape = ", ".join("x".join(map(str, shape)) for shape in find(name).inputs.values())
            graph = "same_graph" in row
            cells = [name, shape, "graph" if graph else "numbers", "" if graph else said_of_boxes(row)]
            lines.append(f"| {' | '.join(cells)} |")
    if "left out" in families:
        lines += ["", "## Left out", "", "| network | why |", "|---|---|"]
        lines += [f"| {name} | {row['left_out']} |" for name, row in families["left out"].items()]
    left = [name for name in results["all"] if name not in rows]
    if left:
        lines += ["", "## Not checked yet", "", f"{len(left)} of {len(results['all'])}: {', '.join(left)}."]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="networks with this in their name"
    )
    parser.add_argument("--graphs", action="store_true", help="compare graphs and parameters, run nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="leave out those that agreed already")
    parser.add_argument("--minutes", type=float, help="start no more networks after this long")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="where MXNet's files are kept")
    parser.add_argument("--list", action="store_true", help="print the names only")
    parser.add_argument("--dry", action="store_true", help="write neither results nor table")
    parser.add_argument("--table", action="store_true", help="run nothing, write the table from the results")
    args = parser.parse_args()
    results = check_model_zoo.held_results(RESULTS)
    if args.table:
        write_table(results)
        return 0
    every = every_network()
    chosen = named(args.only, every)
    if args.resume:
        over = ("agrees", "left_out", "same_graph") if args.graphs else ("agrees", "left_out")
        done = {name for name, row in results["models"].items() if any(row.get(key) for key in over)}
        chosen = [m for m in chosen if m.name not in done]
    if args.list:
        print("\n".join(m.name for m in chosen))
        return 0
    failed, started, graphs = [], time.monotonic(), Graphs()
    for count, model in enumerate(chosen):
        if args.minutes is not None and time.monotonic() - started > args.minutes * 60:
            print(f"{len(chosen) - count} are left for another run")
            break
        begun = time.monotonic()
        row = graphs.check(model) if args.graphs else check(model, args.exported, args.threads)
        print(f"{model.name} {json.dumps(row)} {time.monotonic() - begun:.0f} s", flush=True)
        if "error" in row or row.get("agrees") is False:
            failed.append(model.name)
        if args.dry:
            continue
        # Read again: other runs may have written meanwhile.
        results = check_model_zoo.held_results(RESULTS)
        if args.graphs and "same_graph" in row and results["models"].get(model.name, {}).get("agrees"):
            continue  # its numbers were compared meanwhile
        results["models"][model.name] = row
        results["all"] = [each.name for each in every]
        results["about"] = _about()
        results["models"] = {m.name: results["models"][m.name] for m in every if m.name in results["models"]}
        check_model_zoo.keep_results(RESULTS, results)
        write_table(results)
    graphs.close()
    print("all agree" if not failed else f"not: {', '.join(failed)}")
    return 1 if failed else 0


def _about() -> dict:
    import platform

    import numpy

    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "processor": processor(),
        "date": date.today().isoformat(),
    }


if __name__ == "__main__":
    sys.exit(main())
