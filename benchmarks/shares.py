"""How evenly work is divided among 8, 16 and 64 threads: the longest share over the mean share of each layer.

    python benchmarks/shares.py                     # all models that .peers/zoo holds, as zoo.py exports them
    python benchmarks/shares.py --only ssd yolo     # those whose names contain one of these
    python benchmarks/shares.py --above 1.15        # the layers that are worse, one by one

No machine with so many processors is needed. Kernels are told that there are that many threads, and divide
their work by the code that always does; but the shares are run one after the other, each by itself, and the
processor's time of each is taken: the least of several runs, each after one that fills the caches. Of a layer
with several loops the longest shares are added up, and so are the means. What a layer takes outside of loops
that are divided is left out, and so is how long threads wait for memory together. A layer of too little work
for so many threads gets fewer (``jit.num_threads``); the table says how many layers get all of them.
"""

import argparse
import gc
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from machine import processor

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "verify" / "zoo")]

import custom_ops  # noqa: E402

import roiops  # noqa: E402
from roiops.kernels import jit  # noqa: E402

COUNTS, RUNS = (8, 16, 64), 3
#: Nanoseconds of the shares of each loop since this was last emptied.
_loops: list = []


def _one_by_one(part, parts):
    took = []
    for i in range(parts):
        part(i)
        start = time.thread_time_ns()
        part(i)
        took.append(time.thread_time_ns() - start)
    _loops.append(took)


def loops_of(call) -> list:
    """The shares of each divided loop of a call, in nanoseconds: of each share the least of several runs."""
    runs = []
    call()  # what is done once only
    for _ in range(RUNS):
        _loops.clear()
        call()
        runs.append([np.array(loop) for loop in _loops])
    return [np.minimum.reduce(same) for same in zip(*runs, strict=True)]


def layers(folder: Path, threads: int):
    """``(operator, what it is given, call)`` for each step of a saved model."""
    with np.load(folder / "inputs.npz") as file:
        data = dict(file)
    model = roiops.models.load(folder / "model-symbol.json", folder / "model-0000.params")
    executor = model.bind(**{name: array.shape for name, array in data.items()})
    for name, array in data.items():
        executor.arg_dict[name][:] = array
    with jit.pretend_threads(threads, _one_by_one):
        executor.forward(is_train=False)
        bound = executor._bind_inference()
        for step, call in zip(bound.program.forward, bound.forward, strict=True):
            values = [value for value in (*step.inputs, *step.outputs) if value is not None]
            shapes = [bound.arrays[value].shape for value in values]
            yield step.prop.name, f"{shapes} {vars(step.prop)}", call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT / ".peers" / "zoo", help="the models' folder")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT")
    parser.add_argument("--threads", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--above", type=float, help="also list the layers whose longest share is longer")
    options = parser.parse_args()
    custom_ops.register(roiops)
    found: dict = {}  # (operator, threads) -> {what: (loops, ratio)}
    for folder in sorted(options.models.iterdir()):
        if not (folder / "made.json").exists() or not any(text in folder.name for text in options.only):
            continue
        for threads in options.threads:
            for operator, what, call in layers(folder, threads):
                rows = found.setdefault((operator, threads), {})
                if what not in rows:
                    rows[what] = loops_of(call)
            gc.collect()
        print(folder.name, file=sys.stderr, flush=True)
    print(f"{processor()}; shares of {max(options.threads)} threads and fewer, run one by one")
    print("| operator | threads | layers | with all threads | longest by mean share, median | largest |")
    print("|---|---:|---:|---:|---:|---:|")
    worse = []
    for (operator, threads), rows in sorted(found.items()):
        ratios = {}
        for what, loops in rows.items():
            if any(len(loop) == threads for loop in loops):
                longest, mean = (sum(f(loop) for loop in loops) for f in (np.max, np.mean))
                ratios[what] = longest / mean
                worse.append((longest / mean, operator, threads, what, [len(loop) for loop in loops], mean))
        if ratios:
            middle, most = statistics.median(ratios.values()), max(ratios.values())
            print(f"| {operator} | {threads} | {len(rows)} | {len(ratios)} | {middle:.2f} | {most:.2f} |")
    if options.above:
        for ratio, operator, threads, what, parts, mean in sorted(worse, reverse=True):
            if ratio > options.above:
                print(f"{ratio:.2f} {operator} {threads} threads, {mean / 1e3:.0f} us: {what}; {parts}")


if __name__ == "__main__":
    main()
