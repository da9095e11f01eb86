"""The model zoo's speed beside today's engines, which run what roiops writes in ONNX.

    python verify/peers.py gluoncv engines                      # once
    python benchmarks/zoo_engines.py                            # every 6th model, two threads
    python benchmarks/zoo_engines.py --every 1 --threads 1 2    # all models, with one thread, too
    python benchmarks/zoo_engines.py --only squeezenet cifar    # those whose names contain one of these
    python benchmarks/zoo_engines.py --resume --minutes 20      # a piece at a time
    python benchmarks/zoo_engines.py --table                    # writes the table anew from the results

Models and turns are those of ``zoo.py``: each library in a process of its own, one after the other. Every 6th
is counted from the first of ``verify/zoo/catalogue.py``, which goes family by family. The engines run in
float32 with all their optimisations, OpenVINO for the least ``LATENCY``, with as many threads as roiops.
``verify/check_engines.py`` compares what they compute. Results go to
benchmarks/results/zoo_engines.{json,md}; ``report.py`` shows them in the README.
"""

import argparse
import datetime
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean

from machine import processor
from zoo import RESULTS, ROOT, SECONDS, export, measure, models, peers

sys.path.insert(0, str(ROOT / "verify"))

from check_engines import ENGINES
from check_engines import versions as versions_of_engines
from check_model_zoo import Worker, held_results, keep_results

TIMED = ("onnxruntime", "openvino")
EVERY = 6


def write(folder, target, opset=None):
    """Write the ONNX file of a model, and its inputs; the operators in it."""
    worker = Worker(sys.executable, "onnx_worker.py", 2)
    answer = worker.ask(do="write", folder=str(folder), target=str(target), opset=opset)
    worker.close()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["operators"]


def rows_of(folder, wanted, seconds):
    """``(engine, threads, row)`` of one model, for those that are wanted."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "model.onnx"
        try:
            operators = write(folder, target)
            for engine in dict.fromkeys(engine for engine, _ in wanted):
                opset = ENGINES[engine][1]
                if opset and "DeformConv" in operators:  # which the engine has not
                    write(folder, target, opset)
                for threads in (threads for each, threads in wanted if each == engine):
                    yield engine, threads, measure(folder, threads, seconds, engine, target)
        except RuntimeError as error:
            yield *wanted[0], {"error": str(error)}


def ratios(result):
    """For each engine and number of threads: how many times as fast as it roiops is, by model."""
    found = {}
    for model, rows in result["models"].items():
        for key, row in rows.items():
            if "ratio" in row:
                engine, threads = key.split()
                found.setdefault((engine, int(threads)), {})[model] = row["ratio"]
    return dict(sorted(found.items()))


def summary(result):
    """The table by engine, with the worst model of each."""
    lines = [
        "| engine | threads | models | times as fast | at 1.0 or above | least | model of the least |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for (engine, threads), found in ratios(result).items():
        worst = min(found, key=found.get)
        ahead = sum(ratio >= 1 for ratio in found.values()) / len(found)
        lines.append(
            f"| {result['about']['versions'][engine]} | {threads} | {len(found)} "
            f"| {geometric_mean(found.values()):.2f} | {ahead:.0%} | {found[worst]:.2f} | {worst} |"
        )
    return lines


def words(result):
    """What was run where, and how a ratio was formed."""
    about = result["about"]
    return (
        f"`python benchmarks/zoo_engines.py`, {about['date']}, {about['machine']}: {about['chosen']}. "
        "*Times as fast* is the median over turns of the engine's time by ours; of all models, the "
        "geometric mean."
    )


def markdown(result):
    lines = ["# The model zoo beside today's engines", "", words(result), "", *summary(result), ""]
    lines += [
        "| model | engine | threads | roiops | engine | times as fast |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for model, rows in result["models"].items():
        for key, row in rows.items():
            engine, threads = key.split()
            cells = [row["error"].replace("|", "/"), "", ""] if "error" in row else []
            if not cells:
                cells = [f"{row[name] * 1e3:.2f} ms" for name in ("roiops_s", f"{engine}_s")]
                cells.append(f"{row['ratio']:.2f}")
            lines.append(f"| {model} | {engine} | {threads} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def record(result, chosen):
    """Write results and table; a run that is cut leaves those of the models before."""
    known = versions_of_engines()
    result["about"] = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": {engine: f"{ENGINES[engine][0]} {known[ENGINES[engine][0]]}" for engine in TIMED},
        "chosen": chosen,
    }
    keep_results(RESULTS / "zoo_engines.json", result)
    write_table(result)


def write_table(result):
    (RESULTS / "zoo_engines.md").write_text(markdown(result), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=peers.ROOT / "zoo", help="the exported models' folder")
    parser.add_argument("--every", type=int, default=EVERY, metavar="N", help=f"each N-th model ({EVERY})")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="all whose names contain one of these")
    parser.add_argument("--engines", nargs="+", choices=TIMED, default=list(TIMED))
    parser.add_argument("--threads", nargs="+", type=int, default=[2])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long all turns of a model take")
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--resume", action="store_true", help="leave out what the results hold already")
    parser.add_argument("--exported", action="store_true", help="only models that are exported already")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table")
    options = parser.parse_args()
    path, began = RESULTS / "zoo_engines.json", time.monotonic()
    result = held_results(path)
    if options.table:
        write_table(result)
        return
    if not options.resume:
        result = {"models": {}}
    if options.only:
        chosen = f"models whose names contain {' or '.join(options.only)}"
        asked = [model for model in models() if any(text in model.name for text in options.only)]
    else:
        chosen = f"every {options.every}th model of the zoo's list" if options.every > 1 else "all models"
        asked = models()[:: options.every]
    for model in asked:
        if options.minutes is not None and time.monotonic() - began > options.minutes * 60:
            print("the rest is left for --resume")
            break
        folder = options.models / model.name.replace(":", "_")
        rows = result["models"].get(model.name, {})
        wanted = [(engine, threads) for engine in options.engines for threads in options.threads]
        if options.resume:
            wanted = [(e, t) for e, t in wanted if "ratio" not in rows.get(f"{e} {t}", {})]
        if not wanted or (options.exported and not (folder / "made.json").exists()):
            continue
        error = export(model.name, folder)
        found = (
            [(*wanted[0], {"error": f"MXNet: {error}"})]
            if error
            else rows_of(folder, wanted, options.seconds)
        )
        for engine, threads, row in found:
            result["models"].setdefault(model.name, {})[f"{engine} {threads}"] = row
            shown = row.get("error") or f"{row['roiops_s'] * 1e3:.2f} ms, {row['ratio']:.2f} times as fast"
            print(f"{model.name}, {engine}, {threads} threads: {shown}", flush=True)
        record(result, chosen)


if __name__ == "__main__":
    main()
