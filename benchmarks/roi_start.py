"""What first calls cost, cold and from the cache, and what a small call of an ROI operator costs.

    python benchmarks/roi_start.py          # writes benchmarks/results/roi_start.{json,md}
    python benchmarks/roi_start.py --bars   # only the first table, within four minutes; the others stay

Each first call, forward and backward, is timed in a fresh interpreter: cold with an empty cache folder, then
once more with what that left there.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import RESULTS, processor

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

MAP_AND_BOXES = """
import time
import numpy as np, roiops as mx
random = np.random.default_rng(0)
data = random.standard_normal((2, 256, 50, 68), np.float32)
corners = random.random((512, 2)) * (600, 500)
image = np.arange(512)[:, None] % 2
rois = np.hstack([image, corners, corners + 20 + 200 * random.random((512, 2))]).astype(np.float32)
"""

#: Prints the seconds of the forward pass and of the backward pass.
ROI_ALIGN = {
    "roiops.torch.roi_align": """
import torch, roiops.torch
data, rois = torch.tensor(data, requires_grad=True), torch.tensor(rois)
start = time.perf_counter()
out = roiops.torch.roi_align(data, rois, 7, 1 / 16, 2)
middle = time.perf_counter()
out.sum().backward()
print(middle - start, time.perf_counter() - middle)
""",
    "mx.nd.contrib.ROIAlign": """
data, rois = mx.nd.array(data), mx.nd.array(rois)
data.attach_grad()
start = time.perf_counter()
with mx.autograd.record():
    out = mx.nd.contrib.ROIAlign(data, rois, pooled_size=(7, 7), spatial_scale=1 / 16, sample_ratio=2)
out.asnumpy()
middle = time.perf_counter()
out.backward()
data.grad.asnumpy()
print(middle - start, time.perf_counter() - middle)
""",
}

ONET = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "verify" / "zoo")!r})
import roiops as mx
from faces import mtcnn
start = time.perf_counter()
executor = mtcnn(mx, "onet").simple_bind(mx.cpu(), grad_req="null", data=(32, 3, 48, 48))
executor.forward(is_train=False)[0].asnumpy()
print(time.perf_counter() - start)
"""

WARMUP = (
    "-m", "roiops", "warmup", str(ROOT / "examples" / "archived" / "shapes-symbol.json"),
    "--shape", "data=1,3,128,128", "--shape", "im_info=1,3",
)  # fmt: skip


def run(arguments, threads, cache) -> str:
    """What a fresh interpreter prints."""
    environment = {
        **os.environ, "NUMBA_NUM_THREADS": str(threads), "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Python's own cache is a part of "on disk"
    answer = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(answer.stderr)
    return answer.stdout


def ask(script, threads, cache) -> list[float]:
    return [float(word) for word in run(["-c", script], threads, cache).split()]


def seconds(arguments, cache) -> float:
    """How long a fresh interpreter takes from its start to its end."""
    start = time.perf_counter()
    run(arguments, 2, cache)
    return time.perf_counter() - start


def ten_lines() -> str:
    """The script below "Ten lines" in README.md."""
    return re.search(r"## Ten lines\n+```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]


def measure_bars(rounds=3) -> list[dict]:
    """First calls that have a bar, two threads: the medians of rounds that take turns."""
    align = "roiops.torch.roi_align" if importlib.util.find_spec("torch") else "mx.nd.contrib.ROIAlign"
    script = ["-c", ten_lines()]
    bars = {
        "README's ten lines, the whole script": 6,
        f"`{align}`, 512 boxes on 2x256x50x68": 4,
        "its gradient, after that": 4,
        "MTCNN's O-Net on 32 images, bind and forward": 5,
        "`roiops warmup` of the demo's detector": 9,
        "the ten lines with all on disk, above `import numba`": 0.4,
    }
    found = []
    for _ in range(rounds):
        with contextlib.ExitStack() as stack:
            caches = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(4)]
            row = [seconds(script, caches[0]), *ask(MAP_AND_BOXES + ROI_ALIGN[align], 2, caches[1])]
            row += [*ask(ONET, 2, caches[2]), seconds(WARMUP, caches[3])]
            turns = [(seconds(script, caches[0]), seconds(["-c", "import numba"], "")) for _ in range(7)]
        found.append([*row, statistics.median(ours - numbas for ours, numbas in turns)])
        print(found[-1], flush=True)
    medians = map(statistics.median, zip(*found, strict=True))
    return [
        {"what": what, "bar": bar, "seconds": median}
        for (what, bar), median in zip(bars.items(), medians, strict=True)
    ]


def measure_operators():
    """The rows of the tables of operators: first calls, and small calls."""
    rows, small = [], []
    for name, call in OPERATORS.items():
        script = FIRST.format(
            channels=49 if "PSROI" in name else 256,
            angle=", 30" if "RROI" in name else "",
            call="roiops.nd." + call,
            name=name,
        )
        with tempfile.TemporaryDirectory() as cache:
            cold, rest = ask(script, 2, cache)
            cached = statistics.median(ask(script, 2, cache)[0] for _ in range(5))
        rows.append({"operator": name, "threads": 2, "cold": cold, "rest": rest, "cached": cached})
        print(rows[-1], flush=True)
    with tempfile.TemporaryDirectory() as cache:
        for threads in (1, 2):
            for name in ("ROIPooling", "ROIAlign"):
                median, least = ask(SMALL.format(call=OPERATORS[name]), threads, cache)
                small.append(
                    {"operator": name, "threads": threads, "median": 1e6 * median, "least": 1e6 * least}
                )
                print(small[-1], flush=True)
    return rows, small


def table_of_bars(rows) -> list[str]:
    lines = ["| two threads, nothing on disk | seconds | goal |", "|---|---:|---:|"]
    return lines + [f"| {r['what']} | {r['seconds']:.2f} | {r['bar']} |" for r in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "roi_start")
    parser.add_argument("--bars", action="store_true", help="only the table of first calls that have a bar")
    args = parser.parse_args()
    kept = args.out.with_suffix(".json")
    report = json.loads(kept.read_text()) if args.bars and kept.exists() else {}
    machine = (
        f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load average {os.getloadavg()[0]:.1f} before the start"
    )
    report |= {"machine of bars": machine, "bars": measure_bars()}
    if not args.bars:
        rows, small = measure_operators()
        report |= {
            "machine": machine, "first calls, seconds": rows, "small calls, microseconds": small,
        }  # fmt: skip
    kept.write_text(json.dumps(report, indent=1) + "\n")
    lines = ["# First calls and small calls", "", report["machine of bars"] + ".", ""]
    lines += table_of_bars(report["bars"])
    if "machine" in report:
        lines += ["", *tables_of_operators(report)]
    args.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


def tables_of_operators(report) -> list[str]:
    rows, small = report["first calls, seconds"], report["small calls, microseconds"]
    lines = [
        report["machine"] + ".", "",
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
    return lines + [
        f"| {r['operator']} | {r['threads']} | {r['median']:.0f} | {r['least']:.0f} |" for r in small
    ]


if __name__ == "__main__":
    main()
