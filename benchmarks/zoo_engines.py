"""The model zoo's speed beside today's engines, which run what roiops writes in ONNX; one and two threads.

    python verify/peers.py gluoncv engines                      # once
    python benchmarks/zoo_engines.py                            # all models, in onnxruntime and OpenVINO
    python benchmarks/zoo_engines.py --only squeezenet cifar    # those whose names contain one of these
    python benchmarks/zoo_engines.py --resume --minutes 20      # a piece at a time

Models and turns are those of ``zoo.py``: each library in a process of its own, one after the other. The
engines run in float32 with all their optimisations, OpenVINO for the least ``LATENCY``, with as many threads
as roiops. ``verify/check_engines.py`` compares what they compute. Results go to
benchmarks/results/zoo_engines.{json,md}.
"""

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from machine import processor
from zoo import RESULTS, ROOT, SECONDS, export, mean, measure, models, peers

sys.path.insert(0, str(ROOT / "verify"))

from check_engines import ENGINES
from check_engines import versions as versions_of_engines
from check_model_zoo import Worker

TIMED = ("onnxruntime", "openvino")


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


def markdown(result):
    about = result["about"]
    lines = [
        "# The model zoo beside today's engines",
        "",
        f"`python benchmarks/zoo_engines.py`, {about['date']}, {about['machine']}, {about['versions']}. "
        "*Times as fast* is the median over turns of the engine's time by ours; of all models, the "
        "geometric mean.",
        "",
        "| engine | threads | models | times as fast | at 1.0 or above | least | model of the least |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    each = [
        "",
        "| model | engine | threads | roiops | engine | times as fast |",
        "|---|---|---:|---:|---:|---:|",
    ]
    found = {}
    for model, rows in result["models"].items():
        for key, row in rows.items():
            engine, threads = key.split()
            if "error" in row:
                each.append(f"| {model} | {engine} | {threads} | {row['error'].replace('|', '/')} | | |")
                continue
            found.setdefault((engine, threads), {})[model] = row["ratio"]
            ours, theirs = (f"{row[name] * 1e3:.2f} ms" for name in ("roiops_s", f"{engine}_s"))
            each.append(f"| {model} | {engine} | {threads} | {ours} | {theirs} | {row['ratio']:.2f} |")
    for (engine, threads), ratios in sorted(found.items()):
        worst = min(ratios, key=ratios.get)
        ahead = sum(ratio >= 1 for ratio in ratios.values()) / len(ratios)
        lines.append(
            f"| {ENGINES[engine][0]} | {threads} | {len(ratios)} | {mean(ratios.values()):.2f} | {ahead:.0%} "
            f"| {ratios[worst]:.2f} | {worst} |"
        )
    return "\n".join(lines + each) + "\n"


def record(result):
    """Write results and table; a run that is cut leaves those of the models before."""
    found = versions_of_engines()
    result["about"] = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": ", ".join(f"{ENGINES[engine][0]} {found[ENGINES[engine][0]]}" for engine in TIMED),
    }
    scratch = RESULTS / "zoo_engines.part"
    scratch.write_text(json.dumps(result, indent=1) + "\n")
    scratch.replace(RESULTS / "zoo_engines.json")
    (RESULTS / "zoo_engines.md").write_text(markdown(result), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=peers.ROOT / "zoo", help="the exported models' folder")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="names with one of these")
    parser.add_argument("--engines", nargs="+", choices=TIMED, default=list(TIMED))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long all turns of a model take")
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--resume", action="store_true", help="leave out what the results hold already")
    parser.add_argument("--exported", action="store_true", help="only models that are exported already")
    options = parser.parse_args()
    path, began = RESULTS / "zoo_engines.json", time.monotonic()
    result = json.loads(path.read_text()) if path.exists() else {"models": {}}
    for model in models():
        if not any(text in model.name for text in options.only):
            continue
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
        record(result)


if __name__ == "__main__":
    main()
