"""Run what numba-cuda compiled for a GPU on this machine's processor, checked, beside the CPU kernels.

    python verify/gpu_compiled.py                 # every kernel that ptx_check.py finds
    python verify/gpu_compiled.py --short         # the planted mistakes, and one operator
    python verify/gpu_compiled.py --only rotated  # cases whose name holds this
    python verify/gpu_compiled.py --part 2/2      # the second half of the cases
    python verify/gpu_compiled.py --contract      # with products and sums contracted wherever LLVM can

``verify/gpu_host.py`` says how a kernel runs and what is checked: bounds, races, barriers, memory that
nobody wrote. A case is a dialect in one dtype and one layout of the features: golden calls, hostile boxes
and sizes that reach every loop, each with blocks and threads in several orders, of which the bits must be
the same. Which cases there are follows from the kernels of ``ptx_check.py``. A kernel that its case did not
launch is an error. The environment is that of ``verify/peers.py cuda``; no GPU and no driver is needed.
"""

import argparse
import functools
import sys
import time

import peers

SHORT = "ROIAlign/mmcv, float32"

# Calls of each dialect, beside its golden ones: arguments of ``calls.case_of``. Every loop of a kernel is
# gone through more than once: of more boxes than a block lists at a time, of more bins and channels than it
# sums up at a time, and of a bin of more pixels than a table has room for.
SIZES = {
    "small": {"scale": 0.5},
    "adaptive": {"size": (13, 9), "pooled": (3, 3), "scale": 0.25, "ratio": 0},
    "hostile": {"size": (7, 4), "pooled": (3, 2), "hostile": True},
    "hostile, adaptive": {"scale": 0.5, "ratio": 0, "hostile": True},
    "one pixel": {"size": (1, 1), "pooled": (1, 1), "count": 2},
    "no boxes": {"count": 0},
    "long": {"size": (3, 400), "pooled": (1, 1), "ratio": 0},
    "many boxes": {"size": (9, 34), "pooled": (1, 2), "count": 1100},
    "many bins": {"size": (9, 11), "pooled": (10, 9), "channels": 18, "count": 4},
}
DRAWN = 3  # calls of sizes that are drawn, besides


def wanted() -> dict:
    """``{(dialect, dtype, layout): the kernels that it must launch}``: all those of ``ptx_check.py``."""
    import ptx_check

    from roiops.operators.roi.dialects import named

    cases = {(dialect, "float32", "PLANES"): [] for dialect in named()}
    for (kernel, dialect, dtype), _ in ptx_check.variants():
        case = dialect, dtype, kernel.partition(" ")[2] or "PLANES"
        if dialect and dialect not in named():
            sys.exit(f"gpu_compiled: {kernel} ({dialect}, {dtype}) has no case")
        cases.setdefault(case, []).append(ptx_check.launches()[kernel, dialect, dtype][0])
    return cases


def calls_of(dialect, layout):
    """``(label, name, parameters, inputs, gradient of the output)`` of each call of a case."""
    import calls
    import golden_files
    import numpy as np
    import peer_calls

    from roiops.operators.roi.dialects import named
    from roiops.registry import get

    row, random = named()[dialect], np.random.default_rng(7)
    drawn = {
        f"drawn {k}": {
            "size": tuple(random.integers(1, (40, 70))),
            "pooled": tuple(random.integers(1, 7, 2).tolist()),
            "scale": float(random.choice([0.25, 0.5, 1])),
            "ratio": int(random.integers(0, 4)),
            "count": int(random.integers(1, 20)),
            "channels": int(random.integers(1, 12)),
        }
        for k in range(DRAWN)
    }
    for label, given in (SIZES | drawn).items():
        given = {"channels": 3, **given}
        if layout != "PLANES":  # one that four divides, or none
            given["channels"] = given["channels"] // 4 * 4 + (4 if layout == "QUADS" else 3)
        name, params, arrays, head = calls.case_of(row, random, **given)
        boxes = arrays[get(name).create(params).maps]
        if label == "long":  # so is the one bin of this box
            boxes[0, 1:5] = 0, 0, given["size"][1], 2
        if label in drawn and "rois" not in get(name).zero_grad:
            # Off whole pixels, where the slope jumps: which side it is of follows from the last bit.
            boxes[:, 1:] += random.uniform(-0.01, 0.01, boxes[:, 1:].shape)
        yield label, name, params, arrays, head
    if layout == "PLANES":
        for case in (case for file in row.golden for case in golden_files.load("roi/" + file)):
            operator, params, arrays = peer_calls.translate(row, case)
            head = case.arrays.get("grad_out")
            yield str(case), operator, params, arrays, np.ones_like(case["out"]) if head is None else head


def laid_out(name, params, arrays, dtype, layout):
    """The inputs in a dtype, bits of bfloat16 too, and a layout of the features."""
    import calls
    import numpy as np

    from roiops.dtypes import BFLOAT16
    from roiops.registry import get

    prop = get(name).create(params)
    kind = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
    types = [each or kind for each in prop.infer_type([kind, *[None] * (len(arrays) - 1)])[0]]
    with np.errstate(over="ignore"):  # huge boxes, in float16
        arrays = [
            calls.bits_of(array).view(kind) if each == BFLOAT16 else array.astype(each)
            for array, each in zip(arrays, types, strict=True)
        ]
    if layout != "PLANES":
        last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in arrays[: prop.maps]]
        arrays[: prop.maps] = [a.transpose(0, 3, 1, 2) for a in last]
    return arrays, prop.maps


def widened(array):
    """What bits of bfloat16 are as float32; other arrays as they are."""
    import calls
    import numpy as np

    return calls.from_bits(array.view(np.uint16)) if array.dtype.itemsize == 2 else array


def check_call(name, params, arrays, head, dtype, layout):
    """One call, written in two orders of threads and added to zeros in another, beside the CPU's."""
    import calls
    import gpu_check
    import numpy as np

    from roiops.dtypes import BFLOAT16

    arrays, maps = laid_out(name, params, arrays, dtype, layout)
    wide = dtype == "bfloat16"
    head = calls.bits_of(head) if wide else head.astype(dtype)

    def on_device(arrays, head, request):
        results = gpu_check.OnDevice(name, params, arrays, request).results(head)
        return {key: a.view(np.uint16) if a.dtype == BFLOAT16 else a for key, a in results.items()}

    found = on_device(arrays, head, "write")
    for request in "write", "add":
        for key, value in on_device(arrays, head, request).items():
            if not np.array_equal(value, found[key], equal_nan=True):
                raise AssertionError(f"{key} is another where it is {request}n in another order of threads")
    if wide:  # the same as the float32 kernels give for these numbers, rounded once
        arrays = [widened(array) for array in arrays]
        expected = on_device(arrays, calls.from_bits(head), "write")
        for key, value in found.items():
            if name == "RiROIAlign" and value.dtype == np.uint16:  # rounded before it is turned, too
                most = abs(expected[key]).max(initial=0)
                assert (abs(calls.from_bits(value) - expected[key]) <= most / 128).all(), key
                continue
            same = calls.bits_of(expected[key]) if value.dtype == np.uint16 else expected[key]
            np.testing.assert_array_equal(value, same, err_msg=key)
        return
    # The CPU refuses an image that there is not, and ignores -1: so does the GPU with either.
    images, index = len(arrays[0]), arrays[maps][:, 0]
    index[~((index < images) & np.isfinite(index))] = -1
    gpu_check.agree_with_cpu(name, params, arrays, head, found, most=5e-6)


def check_copies(dtype):
    """Arrays of any strides, in order."""
    import numpy as np

    from roiops.kernels.cuda import runtime

    array = np.arange(2 * 3 * 4 * 5, dtype=dtype).reshape(2, 3, 4, 5)
    for order in (3, 2, 1, 0), (0, 2, 3, 1):
        ordered = runtime.contiguous(runtime.to_device(array).transpose(order))
        np.testing.assert_array_equal(runtime.to_host(ordered), array.transpose(order))


def checks_of(dialect, dtype, layout):
    """``(label, function)`` of each check of a case."""
    if not dialect:  # what no operator launches
        return [("copies", functools.partial(check_copies, dtype))]
    return (
        (label, functools.partial(check_call, *call, dtype, layout))
        for label, *call in calls_of(dialect, layout)
    )


def run_case(case) -> list:
    """Its failures."""
    failures = []
    for label, check in checks_of(*case):
        try:
            check()
        except Exception as error:  # of any kind: it is this call's failure, and the others still run
            failures.append(f"{', '.join(case)}, {label}: {type(error).__name__}: {error}")
    return failures


def run_cases(cases) -> list:
    """Run cases, and their failures. What a case must launch and does not is one."""
    import gpu_host

    device = gpu_host.Device().install()
    failures = []
    for case, kernels in cases.items():
        started = time.perf_counter()
        found = run_case(case)
        launched = {kernel for kernel, _ in device.kernels}
        names = {each.py_func.__name__ for each in kernels if each not in launched}
        found += [f"{', '.join(case)}: {each} was not launched" for each in sorted(names)]
        seconds = time.perf_counter() - started
        print(f"{', '.join(case)}: {seconds:.0f} s, {len(found)} failures", *found, sep="\n  ", flush=True)
        failures += found
    for (kernel, _), code in device.kernels.items():
        if lines := code.never_reached():
            print(f"{kernel.py_func.__name__}: not reached:", *lines, sep="\n  ")
    print(f"{len(cases)} cases, {len(device.kernels)} kernels")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--short", action="store_true", help="what the default tests run")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--part", default="1/1", help="this of so many parts of the cases")
    parser.add_argument("--contract", action="store_true", help="contract products and sums: see gpu_host")
    args = parser.parse_args()
    peers.enter("cuda", "tests", "tests/operators", "tests/cuda")
    started = time.perf_counter()
    import gpu_host
    import gpu_planted

    gpu_host.CONTRACT = args.contract
    part, parts = map(int, args.part.split("/"))
    chosen = args.only or (SHORT if args.short else "")
    cases = {case: kernels for case, kernels in wanted().items() if chosen in ", ".join(case)}
    # The cases of a dialect share what is compiled for it.
    dialects = sorted({dialect for dialect, _, _ in cases})[part - 1 :: parts]
    cases = {case: cases[case] for case in sorted(cases) if case[0] in dialects}
    failures = [f"planted: {each}" for each in gpu_planted.check()] + run_cases(cases)
    print(f"gpu_compiled: {len(failures)} failures, {time.perf_counter() - started:.0f} s")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
