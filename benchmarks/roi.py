"""ROI operators beside those of other libraries, forward and backward, on the same inputs.

    python verify/peers.py torch mxnet onnx mmcv paddle tf      # once
    python benchmarks/roi.py                    # writes benchmarks/results/roi.{json,md}

Every peer runs in an interpreter of its own. For each row the outputs are compared first; then roiops and
the peers are timed in turn, and the medians reported. The limit is the time that merely reading the inputs
and writing the result once takes, at the copy bandwidth that this run measured.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import geometric_mean

import numba
import numpy as np
from machine import RESULTS, processor
from roi_workloads import WORKLOADS, head_of, operators

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "verify")]

import peers  # noqa: E402

from roiops.operators.imperative import Invocation  # noqa: E402
from roiops.registry import get  # noqa: E402

# The name of each peer, and its environment (verify/peers.py).
ENVIRONMENTS = {
    "torchvision": "torch",
    "mxnet": "mxnet",
    "onnxruntime": "onnx",
    "mmcv": "mmcv",
    "paddle": "paddle",
    "tensorflow": "tf",
}
NAMES = {"mxnet": "MXNet", "paddle": "Paddle", "tensorflow": "TensorFlow"}
KINDS = {"align": "bilinear", "pool": "integer bins", "moved": "deformed and rotated"}

# Seconds between two calls of several threads: those of the one before may wait for more work by spinning,
# on a core that the next one wants.
PAUSE = 0.1

# Rows with a peer that takes longer than this get few rounds, after one that is not timed.
SLOW_SECONDS, FEW = 1.0, 1


class Peer:
    """A worker process."""

    def __init__(self, name, threads):
        interpreter = peers.interpreter(ENVIRONMENTS[name])
        if not interpreter.exists():
            raise SystemExit(
                f"roi.py: {name} is missing; python verify/peers.py {ENVIRONMENTS[name]} sets it up"
            )
        self.process = subprocess.Popen(
            [
                interpreter,
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
        self.operator, self.inputs = operator, operator.our_inputs(work)
        prop = get(operator.name).create(operator.arguments(work))
        self.invocation = Invocation(prop, list(self.inputs.values()))
        self.head = operator.laid_out(head_of(work))
        self.grads = {name: np.zeros_like(array) for name, array in self.inputs.items()}
        still = () if operator.boxes_have_gradient else ("rois",)
        self.requests = ["null" if name in still else "write" for name in self.grads]

    def forward(self):
        self.invocation.forward()

    def backward(self):
        self.invocation.backward([self.head], self.requests, list(self.grads.values()))

    def bytes(self, direction):
        """What must be read and written at the least."""
        outputs = self.invocation.outputs
        data = sum(array.nbytes for name, array in self.inputs.items() if name.startswith("data"))
        if direction == "forward":
            return data + sum(out.nbytes for out in outputs)
        # The gradient of displacements and of boxes reads the data and them.
        others = zip(self.requests, self.inputs.items(), strict=True)
        others = [a.nbytes for request, (n, a) in others if request == "write" and not n.startswith("data")]
        moves = data + 2 * sum(others) if others else 0
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


class Disagreement(Exception):
    """A peer computes something else: it is not timed."""


def agree(ours, theirs, what) -> None:
    for name, expected in theirs.items():
        found = ours.invocation.outputs[0] if name == "out" else ours.grads[name]
        expected = ours.operator.laid_out(expected)
        error = np.abs(found - expected).max()
        if not error <= 2e-5 * max(1, np.abs(expected).max()):
            raise Disagreement(f"{what}: {name} differs by {error}")


def enough(times, repeats) -> bool:
    """Whether ``repeats`` rounds are done, or few where a peer takes longer than a second."""
    slow = any(max(spent, default=0) > SLOW_SECONDS for spent in times.values())
    return len(times["roiops"]) >= (min(FEW, repeats) if slow else repeats)


def set_up(ours, operator, workload, label, workers) -> None:
    """Have the peers make the same inputs, and compare what they and we compute."""
    ours.forward()
    ours.backward()
    for name in operator.peers:
        workers[name].ask({"workload": workload, "operator": label})
        for direction in operator.directions(name):
            workers[name].ask(direction)
        agree(ours, workers[name].save(), f"{workload}, {label}, {name}")


def times_in_turn(ours, others, direction, repeats, pause) -> dict:
    """The seconds of each call, of ours and of the peers' one after another."""
    times = {name: [] for name in ("roiops", *others)}
    while not enough(times, repeats):
        time.sleep(pause)
        times["roiops"].append(seconds(getattr(ours, direction)))
        for name, worker in others.items():
            time.sleep(pause)
            times[name].append(worker.ask(direction)["seconds"])
    return times


def measure(threads, chosen, repeats, disagreements) -> list[dict]:
    """The rows of the ``chosen`` pairs of a workload and an operator, without those that disagree."""
    numba.set_num_threads(threads)
    bandwidth = copy_bandwidth(threads)
    pause = PAUSE if threads > 1 else 0
    needed = {peer for workload, label in chosen for peer in operators(workload)[label].peers}
    workers = {name: Peer(name, threads) for name in needed}
    rows = []
    for workload, label in chosen:
        operator = operators(workload)[label]
        ours = Ours(WORKLOADS[workload], operator)
        try:
            set_up(ours, operator, workload, label, workers)
        except Disagreement as error:
            print(f"roi.py: left out: {error}", file=sys.stderr, flush=True)
            disagreements.append(str(error))
            continue
        for direction in ("forward", "backward"):
            others = {
                name: workers[name] for name in operator.peers if direction in operator.directions(name)
            }
            times = times_in_turn(ours, others, direction, repeats, pause)
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
        f"{row['threads']} threads {row['workload']:12} {row['operator']:32} {row['direction']:8} "
        f"{row['milliseconds']['roiops']:8.2f} ms  {found or float('nan'):6.1f}x  ({others})"
    )


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
            "| workload | operator | direction | roiops | "
            + " | ".join(NAMES.get(name, name) for name in ENVIRONMENTS)
            + " | faster | limit | reached |"
        ]
        lines += ["|---" * (7 + len(ENVIRONMENTS)) + "|"]
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
    parser.add_argument("--operators", nargs="+", metavar="LABEL", help="only those that begin so")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "roi")
    args = parser.parse_args()
    chosen = [
        (workload, label)
        for workload in args.workloads
        for label in operators(workload)
        if not args.operators or label.startswith(tuple(args.operators))
    ]
    load = os.getloadavg()[0]
    disagreements: list[str] = []
    rows = [row for threads in args.threads for row in measure(threads, chosen, args.repeats, disagreements)]
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
    if disagreements:
        sys.exit("roi.py: left out, because results differ:\n" + "\n".join(disagreements))


if __name__ == "__main__":
    main()
