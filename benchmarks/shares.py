"""How evenly work is divided among 8, 16 and 64 threads: the longest share over the mean share of each layer.

    python benchmarks/shares.py                     # all models that .peers/zoo holds, as zoo.py exports them
    python benchmarks/shares.py --only ssd yolo     # those whose names contain one of these
    python benchmarks/shares.py --above 1.15        # the layers that are worse, one by one
    python benchmarks/shares.py --every 12 --record # writes benchmarks/results/shares.md

No machine with so many processors is needed. Kernels are told that there are that many threads, and divide
their work by the code that always does; but the shares are run one after the other, each by itself, and the
processor's time of each is taken: the least of several runs, each after one that fills the caches. Of a layer
with several loops the longest shares are added up, and so are the means. What a layer takes outside of loops
that are divided is left out, and so is how long threads wait for memory together. That who is done
goes on with what others have not begun (``kernels/shares.py``) is not counted. A layer of too little work
for so many threads gets fewer (``jit.num_threads``): the table is of those that get all of them, with a
mean share of at least 10 us.
"""

import argparse
import gc
import statistics
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "verify" / "zoo")]

import custom_ops  # noqa: E402

import roiops  # noqa: E402
from roiops.kernels import jit  # noqa: E402

COUNTS, RUNS = (8, 16, 64), 3
#: Nanoseconds of a mean share that are worth a thread.
ENOUGH = 10_000
HEAD = "| operator | threads | layers | of all threads | longest by mean share, median | 90 % | largest |"
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
    executor.forward(is_train=False)
    with jit.pretend_threads(threads, _one_by_one):
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
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth model")
    parser.add_argument(
        "--record", action="store_true", help="write the table to benchmarks/results/shares.md"
    )
    options = parser.parse_args()
    custom_ops.register(roiops)
    found: dict = {}  # (operator, threads) -> {what: loops}
    folders = [each for each in sorted(options.models.iterdir()) if (each / "made.json").exists()]
    folders = [each for each in folders if any(text in each.name for text in options.only)][:: options.every]
    for folder in folders:
        for threads in options.threads:
            for operator, what, call in layers(folder, threads):
                rows = found.setdefault((operator, threads), {})
                if what in rows:
                    continue
                try:
                    rows[what] = loops_of(call)
                except roiops.MXNetError as error:  # a layer that works in place has run several times
                    print(f"{folder.name}: left out: {error}", file=sys.stderr)
            gc.collect()
        print(folder.name, file=sys.stderr, flush=True)
    lines, worse = [], []
    for (operator, threads), rows in sorted(found.items()):
        ratios = []
        for what, loops in rows.items():
            longest, mean = (sum(f(loop) for loop in loops) for f in (np.max, np.mean))
            if any(len(loop) == threads for loop in loops) and mean >= ENOUGH:
                ratios.append(longest / mean)
                worse.append((longest / mean, operator, threads, what, [len(loop) for loop in loops], mean))
        if ratios:
            numbers = statistics.median(ratios), np.quantile(ratios, 0.9), max(ratios)
            shown = " | ".join(f"{each:.2f}" for each in numbers)
            lines.append(f"| {operator} | {threads} | {len(rows)} | {len(ratios)} | {shown} |")
    table = "\n".join((HEAD, "|---|" + "---:|" * (HEAD.count("|") - 2), *lines))
    print(table)
    if options.record:
        command = f"`python benchmarks/shares.py --every {options.every} --record`"
        words = f"{command}, {date.today()}, {processor()}: {len(folders)} models; shares are run one by one."
        target = RESULTS / "shares.md"
        target.write_text(f"# How evenly work is divided\n\n{words}\n\n{table}\n")
    if options.above:
        for ratio, operator, threads, what, parts, mean in sorted(worse, reverse=True):
            if ratio > options.above:
                print(f"{ratio:.2f} {operator} {threads} threads, {mean / 1e3:.0f} us: {what}; {parts}")


if __name__ == "__main__":
    main()
