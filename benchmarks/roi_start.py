"""What the first call of each ROI operator costs, cold and from the cache, and what a small call costs.

    python benchmarks/roi_start.py      # writes benchmarks/results/roi_start.{json,md}

Each first call, forward and backward, is timed in a fresh interpreter: cold with an empty cache folder, then
once more with what that left there.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import processor

ROOT = Path(__file__).resolve().parent.parent

FIRST = """
import sys, time
import numpy as np, roiops
data = np.zeros((1, {channels}, 50, 68), np.float32)
rois = np.array([[0, 16, 16, 400, 300{angle}]], np.float32)
start = time.perf_counter()
{call}
first = time.perf_counter() - start
start = time.perf_counter()
roiops.warmup({name!r})
print(first, time.perf_counter() - start)
"""

SMALL = """
import time, statistics
import numpy as np, roiops
data = roiops.nd.array(np.ones((1, 256, 50, 68), np.float32))
rois = roiops.nd.array(np.array([[0, 16, 16, 400, 300]], np.float32))
call = lambda: roiops.nd.{call}
for _ in range(200): call()
times = []
for _ in range(2000):
    start = time.perf_counter(); call(); times.append(time.perf_counter() - start)
print(statistics.median(times), min(times))
"""

OPERATORS = {
    "ROIPooling": "ROIPooling(data, rois, pooled_size=(7, 7), spatial_scale=1 / 16)",
    "ROIAlign": "ROIAlign(data, rois, pooled_size=(7, 7), spatial_scale=1 / 16)",
    "contrib.ROIAlign": "contrib.ROIAlign(data, rois, pooled_size=(7, 7), spatial_scale=1 / 16)",
    "PSROIPooling": "PSROIPooling(data, rois, pooled_size=7, output_dim=1, spatial_scale=1 / 16)",
    "PSROIAlign": "PSROIAlign(data, rois, pooled_size=7, output_dim=1, spatial_scale=1 / 16)",
    "contrib.DeformablePSROIPooling": "contrib.DeformablePSROIPooling(data, rois, pooled_size=7, "
    "group_size=7, output_dim=1, spatial_scale=1 / 16, no_trans=True)",
    "contrib.RROIAlign": "contrib.RROIAlign(data, rois, pooled_size=(7, 7), spatial_scale=1 / 16)",
}


def ask(script, threads, cache) -> list[float]:
    environment = {
        **os.environ, "NUMBA_NUM_THREADS": str(threads), "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    answer = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(answer.stderr)
    return [float(word) for word in answer.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "roi_start")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows, small = [], []
    for threads in (1, 2):
        for name, call in OPERATORS.items():
            script = FIRST.format(
                channels=49 if "PSROI" in name else 256,
                angle=", 30" if "RROI" in name else "",
                call="roiops.nd." + call,
                name=name,
            )
            with tempfile.TemporaryDirectory() as cache:
                cold, rest = ask(script, threads, cache)
                cached = statistics.median(ask(script, threads, cache)[0] for _ in range(7))
            rows.append({"operator": name, "threads": threads, "cold": cold, "rest": rest, "cached": cached})
            print(rows[-1], flush=True)
        with tempfile.TemporaryDirectory() as cache:
            for name in ("ROIPooling", "ROIAlign"):
                median, least = ask(SMALL.format(call=OPERATORS[name]), threads, cache)
                small.append(
                    {"operator": name, "threads": threads, "median": 1e6 * median, "least": 1e6 * least}
                )
                print(small[-1], flush=True)
    machine = (
        f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load average {load:.1f} before the start"
    )
    report = {"machine": machine, "first calls, seconds": rows, "small calls, microseconds": small}
    args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    lines = [
        "# First calls and small calls", "", machine + ".", "",
        "Seconds. The rest is what the gradient and the operator's other kernels take after that.", "",
        "| operator | threads | first call, cold | the rest, cold | first call, cached |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {r['operator']} | {r['threads']} | {r['cold']:.1f} | {r['rest']:.1f} | {r['cached']:.2f} |"
        for r in rows
    ]
    lines += [
        "",
        "One ROI on a 1x256x50x68 map, 7x7 bins, the call of `roiops.nd` included: microseconds.",
        "",
    ]
    lines += ["| operator | threads | median | least |", "|---|---|---|---|"]
    lines += [f"| {r['operator']} | {r['threads']} | {r['median']:.0f} | {r['least']:.0f} |" for r in small]
    args.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
