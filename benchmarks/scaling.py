"""How the time of ROIAlign and ROIPooling grows with ROIs, channels and threads.

python benchmarks/scaling.py      # writes benchmarks/results/scaling.json
"""

import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numba
import numpy as np
from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from roiops.operators.imperative import Invocation  # noqa: E402
from roiops.registry import get  # noqa: E402

OPERATORS = {
    "ROIAlign": ("ROIAlign", {"sampling_ratio": 2}),
    "ROIAlign, adaptive": ("ROIAlign", {}),
    "ROIPooling": ("ROIPooling", {}),
}
SCALE, HEIGHT, WIDTH, POOLED = 1 / 16, 50, 68, 7
ROIS, CHANNELS = 256, 256


def milliseconds(operator: str, rois: int, channels: int, direction: str, repeats: int = 9) -> float:
    name, params = OPERATORS[operator]
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, channels, HEIGHT, WIDTH), dtype=np.float32)
    size = np.exp(rng.uniform(np.log(32), np.log(448), (rois, 2)))
    corner = rng.uniform(0, 1, (rois, 2)) * np.maximum((WIDTH, HEIGHT) / np.float64(SCALE) - size, 0)
    boxes = np.concatenate([np.zeros((rois, 1)), corner, corner + size], axis=1).astype(np.float32)
    prop = get(name).create({"pooled_size": (POOLED, POOLED), "spatial_scale": SCALE, **params})
    invocation = Invocation(prop, [data, boxes])
    invocation.forward()
    head, grad = np.ones_like(invocation.outputs[0]), [np.empty_like(data), np.empty_like(boxes)]

    def run():
        if direction == "forward":
            invocation.forward()
        else:
            invocation.backward([head], ["write", "null"], grad)

    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main() -> None:
    cores = numba.config.NUMBA_NUM_THREADS
    axes = {
        "ROIs": [(n, n, CHANNELS, 1) for n in (1, 4, 16, 64, 256, 1024)],
        "channels": [(c, ROIS, c, 1) for c in (8, 32, 128, 512, 2048)],
        "threads": [(t, ROIS, 1024, t) for t in (1, 2, 4, 8, 16) if t <= cores],
    }
    rows = []
    for axis, points in axes.items():
        for operator in OPERATORS:
            for value, rois, channels, threads in points:
                numba.set_num_threads(threads)
                spent = milliseconds(operator, rois, channels, "forward")
                rows.append(
                    {"axis": axis, "operator": operator, "value": value, "milliseconds": round(spent, 4)}
                )
                print(f"{operator:20} {axis:9} {value:5} {spent:9.3f} ms", flush=True)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numba {numba.__version__}, load average {os.getloadavg()[0]:.1f}",
        "what": f"Forward, data 1xCx{HEIGHT}x{WIDTH}, boxes of 32 to 448 pixels, {POOLED}x{POOLED} bins; "
        f"{ROIS} ROIs and {CHANNELS} channels where they do not vary (1024 channels for the threads).",
        "rows": rows,
    }
    (RESULTS / "scaling.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
