"""Single operators against real MXNet 1.9.1 (oneDNN), forward and with their gradients.

    python benchmarks/operators.py                 # writes benchmarks/results/operators.{json,md}
    python benchmarks/operators.py --only RNN CTC  # those whose names contain one of these; keeps nothing

The operators are those that a network has beside its convolutions, and some that programs around a network
call (``operator_side.py``), through ``nd`` and ``autograd`` as a script calls them. Both libraries have a
process of their own with as many threads. Their results and gradients must agree before anything is timed.
Then they take turns, of all operators each. A ratio is MXNet's time by ours in two turns, one after the
other; the tables show the median of these.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from machine import processor
from zoo import RESULTS, ROOT, environment, peers

ROUNDS = 7
#: Seconds after which the threads of the library that had its turn are asleep.
REST = 0.5
#: Worst difference of a result, relative to its largest entry.
AGREEMENT = 1e-3
#: Results that are not compared, and why.
UNLIKE = {
    "selu/1": "MXNet multiplies by the scale once too often",
    "argsort/0": "MXNet leaves equal numbers in any order",
    "argsort of one row/0": "MXNet leaves equal numbers in any order",
    "random.uniform/0": "another generator",
    "random.normal/0": "another generator",
}


class Side:
    """One library in a process of its own."""

    def __init__(self, library, folder, threads, only):
        python = sys.executable if library == "roiops" else str(peers.interpreter("mxnet"))
        self.process = subprocess.Popen(
            [python, "-W", "ignore", str(ROOT / "benchmarks" / "operator_side.py"), library, folder, *only],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(library, threads),
        )
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a library failed: what it said stands above")
        return json.loads(line)

    def turn(self):
        time.sleep(REST)
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        return self.answer()


def compare(folder) -> None:
    """An error where results of the two libraries differ."""
    with np.load(folder / "roiops.npz") as ours, np.load(folder / "mxnet.npz") as theirs:
        for name in theirs:
            if name.rpartition("/")[0] in UNLIKE:
                continue
            a, b = ours[name].astype(np.float64), theirs[name].astype(np.float64)
            worst = np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)
            if a.shape != b.shape or not worst <= AGREEMENT:
                raise SystemExit(f"{name}: shapes {a.shape} and {b.shape}, largest difference {worst}")


def measure(threads, only) -> list[dict]:
    """A row for each operator and direction."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {library: Side(library, folder, threads, only) for library in ("mxnet", "roiops")}
        compare(Path(folder))
        turns = [{library: side.turn() for library, side in sides.items()} for _ in range(ROUNDS)]
        for side in sides.values():
            side.process.kill()
    rows = []
    for name, of_name in turns[0]["roiops"].items():
        for i, direction in enumerate(("forward", "with gradient")[: len(of_name)]):
            ours, theirs = ([turn[library][name][i] for turn in turns] for library in ("roiops", "mxnet"))
            rows.append(
                {
                    "operator": name,
                    "direction": direction,
                    "roiops_s": statistics.median(ours),
                    "mxnet_s": statistics.median(theirs),
                    "ratio": statistics.median(b / a for a, b in zip(ours, theirs, strict=True)),
                }
            )
    return rows


def summary(rows) -> list[str]:
    """A table of both directions."""
    lines = [
        "| direction | operators | times as fast | at 1.0 or above | least | operator of the least |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for direction in dict.fromkeys(row["direction"] for row in rows):
        found = [row for row in rows if row["direction"] == direction]
        ratios = [row["ratio"] for row in found]
        least = min(found, key=lambda row: row["ratio"])
        share = sum(ratio >= 1 for ratio in ratios) / len(ratios)
        lines.append(
            f"| {direction} | {len(found)} | {geometric_mean(ratios):.2f} | {share:.0%} "
            f"| {least['ratio']:.2f} | {least['operator']} |"
        )
    return lines


def behind(rows) -> str:
    """The operators in which MXNet is ahead, the worst first."""
    found = sorted((row for row in rows if row["ratio"] < 1), key=lambda row: row["ratio"])
    gradient = {"forward": "", "with gradient": ", gradient"}
    return "; ".join(f"{row['operator']}{gradient[row['direction']]} ({row['ratio']:.2f})" for row in found)


def table(rows) -> list[str]:
    lines = [
        "| operator | forward: roiops | MXNet | ratio | with its gradient: roiops | MXNet | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(row["operator"] for row in rows):
        cells = [
            f"{row['roiops_s'] * 1e3:.2f} ms | {row['mxnet_s'] * 1e3:.2f} ms | {row['ratio']:.2f}"
            for row in rows
            if row["operator"] == name
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |" + " | | |" * (len(cells) == 1))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = measure(args.threads, args.only)
    about = (
        f"{datetime.date.today()}, {processor()}, {args.threads} threads, load average {load:.1f} before the "
        "start. *Times as fast* is the median over turns of MXNet's time by ours."
    )
    head = "# Single operators against MXNet 1.9.1 with oneDNN", "", f"`benchmarks/operators.py`, {about}"
    text = "\n".join([*head, "", *summary(rows), "", *table(rows), ""])
    print(text)
    if not args.only:
        (RESULTS / "operators.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
        (RESULTS / "operators.md").write_text(text)


if __name__ == "__main__":
    main()
