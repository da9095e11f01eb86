"""What it does to small networks that threads stay awake between layers, on a quiet and on a busy machine.

Passes follow each other at once, or after a rest of 50 ms, in which all threads fall asleep.

    python benchmarks/awake.py

MobileNet for one picture of 96 by 96, with all cores, in a process for each setting of GNU OpenMP: asleep as
soon as there is no work, ours (threads look for work for less than a millisecond), and OpenMP's own default,
which spins for many milliseconds. On the busy machine every core has another process that always computes.
"""

import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import processor

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "asleep at once": {"OMP_WAIT_POLICY": "passive"},
    "as roiops has it": {},
    "OpenMP's default": {"GOMP_SPINCOUNT": "300000"},
}
SECONDS = 2
REST = 0.05


def work():
    """Print milliseconds of a forward pass: wall, CPU, and wall after a rest; medians."""
    import numpy as np
    from network import mobilenet

    import roiops as mx

    executor = mobilenet(mx).simple_bind(mx.cpu(), grad_req="null", data=(1, 3, 96, 96))
    rng = np.random.default_rng(0)
    for array in executor.arg_dict.values():
        array[:] = rng.normal(scale=0.05, size=array.shape)
    for name, array in executor.aux_dict.items():
        array[:] = float(name.endswith("var"))
    wall, cpu, rested = [], [], []
    for _ in range(20):
        executor.forward()
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        start, before = time.perf_counter(), time.process_time()
        executor.forward()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - before)
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        time.sleep(REST)
        start = time.perf_counter()
        executor.forward()
        rested.append(time.perf_counter() - start)
    print(*(statistics.median(times) * 1e3 for times in (wall, cpu, rested)))


def compute():
    while True:
        sum(range(10_000))


def measure(setting):
    found = {name: value for name, value in os.environ.items() if "OMP" not in name}
    found.update(setting, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")]))
    done = subprocess.run(
        [sys.executable, __file__, "work"], env=found, capture_output=True, text=True, check=True
    )
    return map(float, done.stdout.split())


def main():
    print(f"{processor()}, {os.cpu_count()} cores")
    print("| machine | threads between layers | wall | CPU | wall after a rest |")
    print("|---|---|---:|---:|---:|")
    for machine in ("quiet", "busy"):
        others = [multiprocessing.Process(target=compute, daemon=True) for _ in range(os.cpu_count())]
        if machine == "busy":
            for other in others:
                other.start()
        for name, setting in SETTINGS.items():
            wall, cpu, rested = measure(setting)
            print(f"| {machine} | {name} | {wall:.1f} ms | {cpu:.1f} ms | {rested:.1f} ms |", flush=True)
        for other in others:
            if other.pid:
                other.terminate()


if __name__ == "__main__":
    work() if sys.argv[1:] == ["work"] else main()
