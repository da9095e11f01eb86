"""Run what numba-cuda compiled for a GPU on this machine's processor, checked, beside the CPU kernels.

    python verify/gpu_compiled.py                 # every dialect in three dtypes, good and hostile boxes
    python verify/gpu_compiled.py --short         # the planted mistakes, and one operator
    python verify/gpu_compiled.py --only rotated  # cases whose label holds this

``verify/gpu_host.py`` says how a kernel runs and what is checked: bounds, races, barriers, memory that
nobody wrote. Each case runs twice, with blocks and threads in another order: the bits must be the same. The
environment is that of ``verify/peers.py cuda``; no GPU and no driver is needed.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent
SHORT = ("ROIAlign/mmcv small",)


def run_cases(only, dtypes):
    """``(checks, failures, what ran)`` of the cases of ``tests/cuda`` whose label ``only`` accepts."""
    import gpu_host

    device = gpu_host.Device().install()
    import gpu_check
    import numpy as np

    failures, checks = [], 0
    for label, (name, params, arrays, head) in gpu_check.calls.random_cases().items():
        for dtype in dtypes if only(label) else ():
            given = gpu_check._in_dtype(name, params, arrays, dtype)
            checks += 1
            try:
                gpu_check._as_cpu(name, params, arrays, head, dtype)
                one, two = (
                    gpu_check.OnDevice(name, params, given).results(head.astype(dtype)) for _ in range(2)
                )
                for key, value in one.items():
                    if not np.array_equal(value, two[key], equal_nan=True):
                        raise AssertionError(f"{key} depends on the order of threads")
            except (gpu_host.Fault, AssertionError, NotImplementedError) as error:
                failures.append(f"{label}, {dtype}: {type(error).__name__}: {error}")
            print(f"{label}, {dtype}: {len(failures)} failures so far", flush=True)
    return checks, failures, device.kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--short", action="store_true", help="what the default tests run")
    parser.add_argument("--only", default="", help="cases whose label holds this")
    args = parser.parse_args()
    python = peers.interpreter("cuda")
    if Path(sys.executable).absolute() != python.absolute():
        peers.set_up("cuda")
        folders = (ROOT, ROOT / "tests", ROOT / "tests" / "operators", ROOT / "tests" / "cuda")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
        environment.pop("NUMBA_ENABLE_CUDASIM", None)
        environment.pop("NUMBA_DISABLE_JIT", None)
        sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=environment).returncode)
    started = time.perf_counter()
    import gpu_planted

    failures = [f"planted: {each}" for each in gpu_planted.check()]
    if args.short:
        checks, found, kernels = run_cases(lambda label: label in SHORT, ["float32"])
    else:
        checks, found, kernels = run_cases(
            lambda label: args.only in label, ["float32", "float16", "float64"]
        )
    failures += found
    seconds = time.perf_counter() - started
    print(f"gpu_compiled: {checks} cases, {len(kernels)} kernels, {len(failures)} failures, {seconds:.0f} s")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
