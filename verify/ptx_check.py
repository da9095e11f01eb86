"""Compile every CUDA kernel for several GPUs, with no GPU at hand, and see that none spills registers.

    python verify/ptx_check.py            # writes the table in docs/gpu_kernels.md
    python verify/ptx_check.py --check    # only compiles

Each kernel is compiled to PTX for compute capabilities 7.5, 8.0 and 9.0 and assembled by ``ptxas -v``, in an
environment of its own (``verify/peers.py cuda``): one dialect of each kernel in all dtypes, the others in
float32 and for the newest GPU. An error is: spilled registers, an array that is not in registers, too much
shared memory, an instruction on doubles in a kernel that computes with float32, a product that is not rounded
before it is added. What the kernels compute is checked elsewhere, under the simulator; whether they run is
for ``verify/gpu_check.py`` on a real GPU.
"""

import argparse
import contextlib
import functools
import importlib
import itertools
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest import mock

import peers

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gpu_kernels.md"
BEGIN, END = "<!-- table: verify/ptx_check.py -->", "<!-- end of table -->"

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
DTYPES = ("float32", "float64", "float16", "bfloat16")
# What a block may have of shared memory that is declared, not asked for at launch.
MOST_SHARED = 48 * 1024
# Stack that CUDA's own cosine and sine take, for the reduction of huge angles.
MOST_STACK = 40
# Doubles that a kernel for float32 may compute with, by a number in them, and how many instructions that is:
# an angle in degrees, which MXNet turns to radians in double, and huge angles in CUDA's own cosine and sine.
DOUBLES = {"0d400921FB54442D18": 4, "0d3BF921FB54442D19": 3}


# Kernels that call CUDA's own cosine, sine and logarithm.
MATHEMATICAL = "rotated_", "rows_of_each_level"


@contextlib.contextmanager
def without_driver(note, layout_of):
    """Have the kernels' modules take NumPy's arrays for device memory, and a launch call ``note``."""
    import numpy as np

    import roiops.kernels.cuda

    instead = {
        "on": lambda device_id: contextlib.nullcontext(),
        "_cupy": lambda: np,
        "device_of": lambda array: 0,
        "launch": lambda kernel, items, threads, *arguments: note(kernel, arguments),
        "layout_of": layout_of,
        "_seen_as": np.lib.stride_tricks.as_strided,
    }
    # Before any is replaced: a module that is imported later would keep what it imports of the others.
    found = pkgutil.walk_packages(roiops.kernels.cuda.__path__, "roiops.kernels.cuda.")
    modules = [importlib.import_module(each.name) for each in found]
    with contextlib.ExitStack() as replaced:
        for module in modules:
            for name in instead.keys() & vars(module).keys():
                replaced.enter_context(mock.patch.object(module, name, instead[name]))
        yield


def examples():
    """``(dialect, operator, parameters)``: small calls of each operator that has kernels for a GPU."""
    from roiops.operators.roi.dialects import named
    from roiops.registry import get, list_operators
    from roiops.warmup import example

    for name in list_operators():
        if "gpu" in get(name).devices and name != "Custom":  # which runs anybody's Python
            rows = {
                dialect: row.parameters
                for dialect, row in named().items()
                if get(row.operator.replace("contrib.", "_contrib_")) is get(name)
            }
            for dialect, params in (rows or {name: {}}).items():
                yield dialect, name, example(name, params)


@functools.cache
def launches() -> dict:
    """``{(kernel, dialect, dtype): (dispatcher, types of its arguments)}`` of all that the operators launch.

    Each operator with kernels for a GPU runs forward and backward on small arrays: in each of its dialects
    and each dtype, and as if the features lay in each ``Layout``. No kernel runs, and nothing is read of what
    it would write.
    """
    import numba
    import numpy as np

    found, known = {}, set()

    def is_bfloat16(argument):
        return isinstance(argument, np.ndarray) and argument.dtype == BFLOAT16

    def note(kernel, arguments):
        layout, (dialect, *_), dtype = running
        bits = [each.view(np.uint16) if is_bfloat16(each) else each for each in arguments]
        types = tuple(map(numba.typeof, bits))
        if (kernel, types) not in known:  # dialects that differ in nothing have one kernel
            known.add((kernel, types))
            where = "" if layout is lanes.Layout.PLANES else f" {layout.name}"
            found[f"{kernel.py_func.__name__}{where}", dialect, dtype] = kernel, types

    from roiops import gpu
    from roiops.dtypes import BFLOAT16
    from roiops.kernels.cuda import lanes, runtime
    from roiops.warmup import run_example

    with without_driver(note, lambda *features: running[0]):
        for running in itertools.product(lanes.Layout, examples(), DTYPES):
            _, (_, operator, params), dtype = running
            kind = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
            run_example(operator, params, 1, kind, gpu(0), "add")
        for dtype in ("float32", "float16"):  # any strides to C order, the most dimensions that there are
            running = lanes.Layout.PLANES, ("",), dtype
            runtime.contiguous(np.zeros((2, 2, 2, 2), dtype).T)
    return found


def variants():
    """The keys of :func:`launches` that are compiled, and whether for all GPUs."""
    from roiops.kernels.rules import PIXELS
    from roiops.operators.roi.dialects import named

    of_pixels = {dialect for dialect, row in named().items() if row.rules.samples == PIXELS}
    first = {}
    for kernel, dialect, dtype in launches():
        like = kernel, dialect in of_pixels, dtype  # what reads pixels differs most from what reads samples
        if first.setdefault(like, dialect) == dialect:
            # CHANNELS_LAST differs from planes in which thread takes what, and in nothing else.
            if dtype == "float32" or not kernel.endswith("CHANNELS_LAST"):
                yield (kernel, dialect, dtype), True
        elif dtype == "float32" and not kernel.endswith("CHANNELS_LAST"):
            yield (kernel, dialect, dtype), False


def ptxas() -> str:
    import nvidia

    (found,) = sorted(Path(nvidia.__path__[0]).glob("*/bin/ptxas"))
    return str(found)


def doubles_in(ptx) -> int:
    """How many instructions on doubles there are, but for those that may be."""
    lines = [line for line in ptx.splitlines() if ".f64" in line and ".reg" not in line]
    return len(lines) - sum(take for number, take in DOUBLES.items() for line in lines if number in line)


def contracts(kernel, ptx) -> bool:
    """Whether a product and a sum are one operation, but in CUDA's own cosine, sine and logarithm."""
    return "fma.rn" in ptx and not kernel.startswith(MATHEMATICAL)


def vectors_in(ptx) -> tuple[str, ...]:
    """The accesses of memory that load or store several elements, as ``global.v4.f32``."""
    found = re.findall(r"\b(?:ld|st)\.((?:global|shared)\S*\.v[24]\.\w+)", ptx)
    return tuple(sorted(set(found)))


def lowered(kernel, types, capability, lineinfo=False):
    """The library that ``cuda.compile_ptx`` makes of a kernel, before NVIDIA's compiler has seen it."""
    import numba.cuda.api
    import numba.cuda.compiler
    import numba.cuda.dispatcher

    class Device:
        compute_capability = capability

    # Without a driver there is no current device to ask; the compiler wants no more than this of it.
    for module in (numba.cuda.api, numba.cuda.compiler, numba.cuda.dispatcher):
        module.get_current_device = Device
    library, _ = numba.cuda.compiler._compile_pyfunc_with_fixup(
        kernel.py_func, types, device=False, cc=capability, abi="numba", lineinfo=lineinfo
    )
    return library


def assembled(library, kernel, capability):
    """The PTX of a kernel, and ``(registers, shared memory, stack, spills)`` of its code for a GPU."""
    from roiops.kernels.cuda import runtime

    with runtime.separate_rounding():
        (ptx,) = library.get_asm_strs(cc=capability)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [ptxas(), "-v", "-arch=sm_{}{}".format(*capability), file.name, "-o", "/dev/null"]
        most = kernel.targetoptions.get("max_registers")
        command += ["--maxrregcount", str(most)] if most else []
        told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode:
        raise SystemExit(
            f"ptx_check: {kernel.py_func.__name__}: ptxas failed for {capability}:\n{told.stderr}"
        )
    stack, stores, loads = (
        int(n) for n in re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", told.stderr
        ).groups()
    )  # fmt: skip
    registers = int(re.search(r"Used (\d+) registers", told.stderr)[1])
    shared = re.search(r"(\d+) bytes smem", told.stderr)
    return ptx, (registers, int(shared[1]) if shared else 0, stack, stores + loads)


def compile_one(job):
    """``{capability: (registers, shared memory, stack, spills, doubles, vectors)}`` of one variant."""
    variant, first = job
    kernel, types = launches()[variant]
    capabilities = CAPABILITIES if first else CAPABILITIES[-1:]
    # One lowering for all GPUs, to which it makes no difference, since it takes the longest.
    library = lowered(kernel, types, capabilities[0])
    # TensorFlow takes the middle of a box in double where a crop has one row or column.
    # The angle of a box becomes orientations in double, as in mmcv, whatever the data.
    exempt = variant[2] == "float64" or variant[1].startswith("CropAndResize") or variant[0] == "orientations"
    result = {}
    for capability in capabilities:
        ptx, numbers = assembled(library, kernel, capability)
        if contracts(variant[0], ptx):
            raise SystemExit(f"ptx_check: {variant}: products and sums are contracted")
        result[capability] = (*numbers, 0 if exempt else doubles_in(ptx), vectors_in(ptx))
    return variant, result


def common_vectors(found) -> list:
    """The vector accesses that a kernel has in each dialect and on each GPU."""
    return sorted(set.intersection(*(set(numbers[5]) for one in found for numbers in one.values())))


def table(results) -> str:
    """A Markdown table: for each kernel and dtype, the most over its dialects."""
    rows = {}
    for (kernel, _, dtype), found in results.items():
        rows.setdefault((kernel, dtype), []).append(found)
    names = ", ".join("{}.{}".format(*c) for c in CAPABILITIES)
    lines = [
        f"| kernel | dtype | dialects | registers a thread, on {names} | shared memory, bytes | spills "
        "| vector accesses |",
        "|---|---|---|---|---|---|---|",
    ]
    for (kernel, dtype), found in sorted(
        rows.items(), key=lambda row: (row[0][0], DTYPES.index(row[0][1] or "float32"))
    ):
        registers = ", ".join(str(max(one[c][0] for one in found if c in one)) for c in CAPABILITIES)
        shared = max(numbers[1] for one in found for numbers in one.values())
        spills = max(numbers[3] for one in found for numbers in one.values())
        vectors = ", ".join(f"`{each}`" for each in common_vectors(found)) or "none"
        columns = f"`{kernel}`", dtype or "any", len(found), registers, shared, spills, vectors
        lines.append(f"| {' | '.join(map(str, columns))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    args = parser.parse_args()
    os.environ["ROIOPS_CACHE"] = "0"
    peers.enter("cuda")
    started = time.perf_counter()
    wanted = [variant for variant in variants() if args.only in variant[0][0]]
    with ProcessPoolExecutor() as pool:
        results = dict(pool.map(compile_one, wanted))
    bad = [
        f"{kernel} ({dialect}, {dtype}), compute capability {major}.{minor}: {stack} bytes of stack, "
        f"{spills} of spills, {shared} of shared memory, {doubles} instructions on doubles"
        for (kernel, dialect, dtype), found in results.items()
        for (major, minor), (_, shared, stack, spills, doubles, _) in found.items()
        if stack > MOST_STACK or spills or shared > MOST_SHARED or doubles
    ]
    if not args.check and not args.only:
        text = PAGE.read_text()
        head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        PAGE.write_text(f"{head}\n{table(results)}\n{tail}")
    else:
        print(table(results))
    seconds = time.perf_counter() - started
    print(
        f"ptx_check: {len(results)} kernels, {len(CAPABILITIES)} architectures, {seconds:.0f} s",
        file=sys.stderr,
    )
    if bad:
        sys.exit("ptx_check: too much for a GPU:\n" + "\n".join(bad))


if __name__ == "__main__":
    main()
