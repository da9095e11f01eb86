"""ROI operators beside torchvision, MXNet and onnxruntime, forward and backward, on the same inputs.

    python verify/peers.py torch mxnet onnx      # once
    python benchmarks/roi.py                    # writes benchmarks/results/roi.{json,md}

Every peer runs in an interpreter of its own. For each row the outputs are compared first; then roiops and
the peers are timed in turn, and the medians reported. The limit is the time that merely reading the inputs
and writing the result once takes, at the copy bandwidth that this run measured.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numba
import numpy as np
from machine import processor
from roi_workloads import WORKLOADS, operators

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "verify")]

import peers  # noqa: E402

from roiops.operators.imperative import Invocation  # noqa: E402
from roiops.registry import get  # noqa: E402

ENVIRONMENTS = {"torchvision": "torch", "mxnet": "mxnet", "onnxruntime": "onnx"}
KINDS = {"align": "bilinear", "pool": "integer bins", "moved": "deformed and rotated"}

# Seconds between two calls: threads of the one before may wait for more work by spinning, on a core that
# the next one wants.
PAUSE = 0.1

# Rows with a peer that takes longer than this get few rounds.
SLOW_SECONDS, FEW = 1.0, 3


class Peer:
    """A worker process."""

    def __init__(self, name, threads):
        self.process = subprocess.Popen(
            [
                peers.interpreter(ENVIRONMENTS[name]),
                Path(__file__).with_name("roi_peer.py"),
                name,
                str(threads),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"roi.py: a peer died on {request}")
        return json.loads(line)

    def save(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.npz"
            self.ask({"save": str(path)})
            with np.load(path) as file:
                return {name: file[name] for name in file.files}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    """An operator of roiops bound to arrays, as an executor binds it."""

    def __init__(self, work, operator):
        self.inputs = operator.inputs(work)
        prop = get(operator.name).create(operator.arguments(work))
        self.invocation = Invocation(prop, list(self.inputs.values()))
        self.head = np.random.default_rng(1).standard_normal(
            self.invocation.outputs[0].shape, dtype=np.float32
        )
        self.grads = {name: np.zeros_like(array) for name, array in self.inputs.items()}
        self.requests = ["null" if name == "rois" else "write" for name in self.grads]

    def forward(self):
        self.invocation.forward()

    def backward(self):
        self.invocation.backward([self.head], self.requests, list(self.grads.values()))

    def bytes(self, direction):
        """What must be read and written at the least."""
        outputs, data = self.invocation.outputs, self.inputs["data"].nbytes
        if direction == "forward":
            return data + sum(out.nbytes for out in outputs)
        # The gradient of the displacements reads the data and them.
        moves = data + 2 * self.inputs["trans"].nbytes if "trans" in self.inputs else 0
        return data + self.head.nbytes + sum(out.nbytes for out in outputs[1:]) + moves


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def copy_bandwidth(threads) -> float:
    """Bytes a second, read plus written, when ``threads`` threads copy large arrays."""
    size = 1 << 25
    pairs = [(np.ones(size, np.float32), np.zeros(size, np.float32)) for _ in range(threads)]

    def run():
        workers = [threading.Thread(target=np.copyto, args=(b, a)) for a, b in pairs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return 2 * 4 * size * threads / min(seconds(run) for _ in range(7))


def agree(ours, theirs, what) -> None:
    for name, expected in theirs.items():
        found = ours.invocation.outputs[0] if name == "out" else ours.grads[name]
        error = np.abs(found - expected).max()
        if not error <= 2e-5 * max(1, np.abs(expected).max()):
            raise SystemExit(f"roi.py: {what}: {name} differs by {error}")


def enough(times, repeats) -> bool:
    """Whether ``repeats`` rounds are done, or few where a peer takes longer than a second."""
    slow = any(max(spent, default=0) > SLOW_SECONDS for spent in times.values())
    return len(times["roiops"]) >= (min(FEW, repeats) if slow else repeats)


def measure(threads, chosen, repeats) -> list[dict]:
    numba.set_num_threads(threads)
    bandwidth = copy_bandwidth(threads)
    workers = {name: Peer(name, threads) for name in ENVIRONMENTS}
    rows = []
    for workload in chosen:
        work = WORKLOADS[workload]
        for label, operator in operators(work).items():
            ours = Ours(work, operator)
            ours.forward()
            ours.backward()
            for name in operator.peers:
                workers[name].ask({"workload": workload, "operator": label})
                for direction in ("forward", "backward"):
                    if direction == "forward" or name not in operator.forward_only:
                        workers[name].ask(direction)
                agree(ours, workers[name].save(), f"{workload}, {label}, {name}")
            for direction in ("forward", "backward"):
                names = [
                    n for n in operator.peers if direction == "forward" or n not in operator.forward_only
                ]
                times = {name: [] for name in ("roiops", *names)}
                while not enough(times, repeats):
                    time.sleep(PAUSE)
                    times["roiops"].append(seconds(getattr(ours, direction)))
                    for name in names:
                        time.sleep(PAUSE)
                        times[name].append(workers[name].ask(direction)["seconds"])
                row = {
                    "workload": workload,
                    "operator": label,
                    "kind": operator.kind,
                    "direction": direction,
                    "threads": threads,
                    "rounds": len(times["roiops"]),
                    "milliseconds": {n: round(1e3 * statistics.median(t), 3) for n, t in times.items()},
                    "least": {n: round(1e3 * min(t), 3) for n, t in times.items()},
                    "limit": round(1e3 * ours.bytes(direction) / bandwidth, 3),
                }
                rows.append(row)
                print(text_of(row), flush=True)
    for worker in workers.values():
        worker.close()
    return rows


def ratio(row, key="milliseconds"):
    """How many times faster than the fastest peer; None without one."""
    others = [value for name, value in row[key].items() if name != "roiops"]
    return min(others) / row[key]["roiops"] if others else None


def text_of(row) -> str:
    found = ratio(row)
    others = ", ".join(f"{n} {v:.1f}" for n, v in row["milliseconds"].items() if n != "roiops")
    return (
        f"{row['threads']} threads {row['workload']:10} {row['operator']:30} {row['direction']:8} "
        f"{row['milliseconds']['roiops']:8.2f} ms  {found or float('nan'):6.1f}x  ({others})"
    )


def geometric_mean(values) -> float:
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summaries(rows) -> list[tuple]:
    """``(threads, kind, direction, geometric mean, least, rows)`` over the rows that have a peer."""
    found = []
    for threads in sorted({row["threads"] for row in rows}):
        for kind in KINDS:
            for direction in ("forward", "backward"):
                key = threads, kind, direction
                same = [row for row in rows if (row["threads"], row["kind"], row["direction"]) == key]
                ratios = [found for found in map(ratio, same) if found]
                if ratios:
                    found.append((threads, kind, direction, geometric_mean(ratios), min(ratios), len(ratios)))
    return found


def markdown(report) -> str:
    rows = report["rows"]
    lines = ["# ROI operators on the CPU", "", report["machine"], "", *report["notes"], ""]
    lines += [
        "| threads | operators | direction | faster than the fastest peer, geometric mean | least | rows |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    for threads, kind, direction, mean, least, count in summaries(rows):
        lines.append(f"| {threads} | {KINDS[kind]} | {direction} | {mean:.1f} | {least:.1f} | {count} |")
    for threads in sorted({row["threads"] for row in rows}):
        lines += ["", f"## {threads} thread{'s' if threads > 1 else ''}", ""]
        lines += [
            "Milliseconds, medians. The limit is reading and writing everything once at copy bandwidth.",
            "",
        ]
        lines += [
            "| workload | operator | direction | roiops | torchvision | MXNet | onnxruntime | faster "
            "| limit | reached |"
        ]
        lines += ["|---|---|---|---|---|---|---|---|---|---|"]
        for row in rows:
            if row["threads"] != threads:
                continue
            ms, found = row["milliseconds"], ratio(row)
            cells = [f"{ms[name]:.1f}" if name in ms else "" for name in ENVIRONMENTS]
            lines.append(
                f"| {row['workload']} | {row['operator']} | {row['direction']} | {ms['roiops']:.2f} | "
                + " | ".join(cells)
                + f" | {f'{found:.1f}x' if found else ''} | {row['limit']:.2f} "
                + f"| {row['limit'] / ms['roiops']:.0%} |"
            )
    lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "roi")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [row for threads in args.threads for row in measure(threads, args.workloads, args.repeats)]
    report = {
        "machine": (
            f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
            f"numba {numba.__version__}."
        ),
        "notes": [
            f"{time.strftime('%Y-%m-%d')}; medians of {args.repeats} rounds, in each of which roiops and the "
            f"peers run in turn, of {FEW} where a peer takes longer than {SLOW_SECONDS:g} s; load average "
            f"{load:.1f} before the start.",
        ],
        "rows": rows,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(markdown(report))
    for threads, kind, direction, mean, least, count in summaries(rows):
        print(f"{threads} threads, {kind} {direction}: {mean:.1f}x (least {least:.1f}x of {count} rows)")


if __name__ == "__main__":
    main()
