"""Run what numba-cuda compiled for a GPU on this machine's processor, checked, beside the CPU kernels.

    python verify/gpu_compiled.py                 # every case; an error if a kernel of ptx_check.py has none
    python verify/gpu_compiled.py --short         # the planted mistakes, and one operator
    python verify/gpu_compiled.py --only rotated  # cases whose label holds this

``verify/gpu_host.py`` says how a kernel runs and what is checked: bounds, races, barriers, memory that
nobody wrote. Each case of ``tests/cuda`` runs with blocks and threads in other orders: the bits must be the
same. The environment is that of ``verify/peers.py cuda``; no GPU and no driver is needed.
"""

import argparse
import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent
SHORT = ("ROIAlign/mmcv small, float32",)
DTYPES = "float32", "float16", "float64"


def all_cases():
    """``(label, function)`` of each case: float32 first, and small cases first."""
    import gpu_check
    import numpy as np

    def random_case(name, params, arrays, head, dtype):
        gpu_check._as_cpu(name, params, arrays, head, dtype)
        given = gpu_check._in_dtype(name, params, arrays, dtype)
        # Each in another order of threads. Kernels that add to a gradient are others than those that write.
        one, two, added = (
            gpu_check.OnDevice(name, params, given, request).results(head.astype(dtype))
            for request in ("write", "write", "add")
        )
        for key, value in one.items():
            if not np.array_equal(value, two[key], equal_nan=True):
                raise AssertionError(f"{key} depends on the order of threads")
            if not np.array_equal(value, added[key], equal_nan=True):
                raise AssertionError(f"{key} is another where it is added to zeros")

    random_cases = sorted(gpu_check.calls.random_cases().items(), key=lambda case: "small" not in case[0])
    for dtype in DTYPES:
        for label, case in random_cases:
            yield f"{label}, {dtype}", functools.partial(random_case, *case, dtype)
        for channels in (8, 6):
            for label in gpu_check.calls.ALIKE:
                case = label, channels, dtype
                yield (
                    "{}, {} channels last, {}".format(*case),
                    functools.partial(gpu_check._channels_last, *case),
                )
    for dialect in "ROIAlign/mmcv", "ROIPooling/mxnet":
        yield f"{dialect}, bfloat16", functools.partial(gpu_check._bfloat16, dialect)


def run_cases(accepted):
    """``(how many ran, failures)`` of the cases whose label is accepted."""
    failures, checks = [], 0
    for label, case in all_cases():
        if not accepted(label):
            continue
        checks += 1
        started = time.perf_counter()
        try:
            case()
            told = "ok"
        except Exception as error:  # of any kind: it is this case's failure, and the others still run
            told = f"{type(error).__name__}: {error}"
            failures.append(f"{label}: {told}")
        print(f"{label}: {time.perf_counter() - started:.0f} s, {told}", flush=True)
    return checks, failures


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
    import gpu_host
    import gpu_planted
    import ptx_check

    wanted = {}
    if not args.short:
        launches = ptx_check.launches()
        wanted = {launches[variant]: variant for variant, _ in ptx_check.variants()}
    failures = [f"planted: {each}" for each in gpu_planted.check()]
    kernels = gpu_host.Device().install().kernels
    checks, found = run_cases(SHORT.__contains__ if args.short else lambda label: args.only in label)
    failures += found
    missing = sorted(name for kernel, name in wanted.items() if kernel not in kernels)
    if wanted:
        print(
            f"{len(wanted) - len(missing)} of the {len(wanted)} kernels of ptx_check.py were launched. Not:"
        )
        print("\n".join(map(", ".join, missing)))
    seconds = time.perf_counter() - started
    print(f"gpu_compiled: {checks} cases, {len(kernels)} kernels, {len(failures)} failures, {seconds:.0f} s")
    if failures or (missing and not args.only):
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
