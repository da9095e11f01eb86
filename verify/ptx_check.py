"""Compile every CUDA kernel for several GPUs, with no GPU at hand, and see that none spills registers.

    python verify/ptx_check.py            # writes the table in docs/gpu_kernels.md
    python verify/ptx_check.py --check    # only compiles

Each kernel is compiled to PTX for compute capabilities 7.5, 8.0 and 9.0 and assembled by ``ptxas -v``, in an
environment of its own (``verify/peers.py cuda``): one dialect of each kernel in all dtypes, the others in
float32 and for the newest GPU. Spilled registers, an array that is not in registers, too much shared memory,
or an instruction on doubles in a kernel that computes with float32 is an error. What the kernels compute is
checked elsewhere, under the simulator; whether they run is for ``verify/gpu_check.py`` on a real GPU.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

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


def in_layouts(kernel):
    """A forward kernel for each layout of the features; for planes under its own name."""
    return kernel, f"{kernel} CHANNELS_LAST", f"{kernel} QUADS"


def variants():
    """``(kernel, dialect, dtype)`` of everything that is compiled, and whether for all GPUs."""
    from roiops.kernels.rules import CORNERS_XY, CORNERS_YX_NORMALISED, PIXELS, is_maximum
    from roiops.operators.roi.dialects import named

    families = {}
    for dialect, row in named().items():
        rules = row.rules
        family = "max" if is_maximum(rules) else "average"
        if rules.displaced:
            family = "deformable"
        elif rules.boxes not in (CORNERS_XY, CORNERS_YX_NORMALISED):
            family = "rotated"
        elif is_maximum(rules) and rules.samples == PIXELS:
            family = "max_pixels"
        # Dialects that differ in nothing are one kernel.
        families.setdefault(family, {}).setdefault(rules, dialect)
    kernels = {
        "average": (*in_layouts("average_forward"), "average_tables", "boxes"),
        "max": (*in_layouts("max_forward"), "max_backward"),
        "max_pixels": (*in_layouts("max_forward"), "max_backward"),
        "deformable": (
            *in_layouts("deformable_forward"), "deformable_boxes", "deformable_data", "deformable_trans"
        ),
        "rotated": (*in_layouts("rotated_forward"), "rotated_boxes", "rotated_backward"),
    }  # fmt: skip
    for family, dialects in families.items():
        for kernel in kernels[family]:
            for at, dialect in enumerate(dialects.values()):
                if at == 0:
                    # CHANNELS_LAST differs from planes in which thread takes what, and in nothing else.
                    for dtype in DTYPES[:1] if kernel.endswith("CHANNELS_LAST") else DTYPES:
                        yield (kernel, dialect, dtype), True
                elif " " not in kernel or kernel.endswith("QUADS"):
                    yield (kernel, dialect, "float32"), False
    for dtype in DTYPES:
        yield ("average_backward", "", dtype), True
    yield ("order", "", ""), True
    yield ("levels", "", "float32"), True
    for dialect in ("CropAndResize", "PrROIPooling"):
        yield ("box_edges", dialect, "float32"), True
    yield ("outside", "CropAndResize", "float32"), True
    # The angle becomes orientations in double, as in mmcv, whatever the data.
    yield ("orientations", "", "float64"), True
    for dtype in ("float32", "float16"):
        yield ("copy", "", dtype), True


def kernel_and_types(kernel, dialect, dtype):
    """A dispatcher and the types of its arguments, as a launch would pass them."""
    from numba import types as t

    from roiops.kernels import geometry
    from roiops.kernels.cuda import runtime
    from roiops.kernels.cuda.lanes import Layout
    from roiops.kernels.cuda.roi import average as roi_average
    from roiops.kernels.cuda.roi import deformable as roi_deformable
    from roiops.kernels.cuda.roi import edges as roi_edges
    from roiops.kernels.cuda.roi import levels as roi_levels
    from roiops.kernels.cuda.roi import maximum as roi_max
    from roiops.kernels.cuda.roi import orientation as roi_orientation
    from roiops.kernels.cuda.roi import rotated as roi_rotated
    from roiops.kernels.cuda.roi import tiles
    from roiops.operators.roi.dialects import named

    size, ints, sizes = t.int64, t.int32[::1], tiles.SIZES
    if kernel == "copy":  # any strides to C order, the most dimensions that there are
        element = getattr(t, dtype)
        return runtime._copy_kernel(), (t.Array(element, 4, "A"), t.Array(element, 4, "C"))
    if kernel == "order":
        return tiles._order_kernel(sizes), (ints, size, ints, ints)
    rules = named()[dialect].rules if dialect else None
    real = t.float64 if dtype == "float64" else t.float32
    flat = {"bfloat16": t.uint16}.get(dtype, getattr(t, dtype, None))[::1]
    strides, groups = t.UniTuple(size, 4), t.UniTuple(size, 2)
    setting = t.NamedTuple([real, *[size] * 7], geometry.Setting)
    rois, trans = t.Array(real, 2, "C"), t.Array(real, 4, "C")
    boxes, lists = (ints, ints), t.NamedTuple([ints] * 3, tiles.Lists)
    kernel, _, layout = kernel.partition(" ")
    layout = Layout[layout or "PLANES"]
    table = {
        "average_forward": lambda: (
            roi_average.forward_kernel(rules, dtype, layout, sizes),
            (flat, strides, rois, setting, groups, size, size, flat),
        ),
        "average_tables": lambda: (
            roi_average.tables_kernel(rules),
            (rois, setting, t.int32[:, ::1], real[::1]),
        ),
        "average_backward": lambda: (
            roi_average.backward_kernel(dtype, True, sizes),
            (flat, t.int32[:, ::1], real[::1], lists, setting, groups, size, size, flat),
        ),
        "boxes": lambda: (tiles._boxes_kernel(rules), (rois, setting, *boxes)),
        "levels": lambda: (
            roi_levels.levels_kernel(),
            (rois, t.NamedTuple([real] * 4 + [size], geometry.Levels), t.Array(real, 3, "C")),
        ),
        "box_edges": lambda: (
            roi_edges.edges_kernel(rules, dtype, True, sizes),
            (flat, flat, strides, rois, setting, size, flat),
        ),
        "outside": lambda: (
            roi_edges.outside_kernel(rules, dtype),
            (rois, setting, size, real, flat),
        ),
        "orientations": lambda: (
            roi_orientation.turn_kernel(dtype, True),
            (flat, rois, size, size, size, flat),
        ),
        "max_forward": lambda: (
            roi_max.forward_kernel(rules, dtype, layout, True),
            (flat, strides, rois, setting, groups, size, real, flat, ints),
        ),
        "max_backward": lambda: (
            roi_max.backward_kernel(rules, dtype, True, sizes),
            (flat, ints, rois, lists, setting, groups, size, size, flat),
        ),
        "deformable_forward": lambda: (
            roi_deformable.forward_kernel(rules, dtype, layout),
            (flat, strides, rois, trans, setting, real, size, size, flat),
        ),
        "deformable_boxes": lambda: (
            roi_deformable._boxes_kernel(rules),
            (rois, trans, setting, real, *boxes),
        ),
        "deformable_data": lambda: (
            roi_deformable.data_kernel(rules, dtype, True, sizes),
            (flat, rois, trans, lists, setting, real, size, size, size, flat),
        ),
        "deformable_trans": lambda: (
            roi_deformable.trans_kernel(rules, dtype, True, sizes),
            (flat, flat, strides, rois, trans, setting, real, size, size, flat),
        ),
        "rotated_forward": lambda: (
            roi_rotated.forward_kernel(rules, dtype, layout),
            (flat, strides, rois, setting, size, flat),
        ),
        "rotated_boxes": lambda: (roi_rotated._boxes_kernel(rules, dtype), (rois, setting, *boxes)),
        "rotated_backward": lambda: (
            roi_rotated.backward_kernel(rules, dtype, True, sizes),
            (flat, rois, lists, setting, size, size, flat),
        ),
    }
    return table[kernel]()


def ptxas() -> str:
    import nvidia

    (found,) = sorted(Path(nvidia.__path__[0]).glob("*/bin/ptxas"))
    return str(found)


def doubles_in(ptx) -> int:
    """How many instructions on doubles there are, but for those that may be."""
    lines = [line for line in ptx.splitlines() if ".f64" in line and ".reg" not in line]
    return len(lines) - sum(take for number, take in DOUBLES.items() for line in lines if number in line)


def vectors_in(ptx) -> tuple[str, ...]:
    """The accesses of memory that load or store several elements, as ``global.v4.f32``."""
    found = re.findall(r"\b(?:ld|st)\.((?:global|shared)\S*\.v[24]\.\w+)", ptx)
    return tuple(sorted(set(found)))


def compile_one(job):
    """``{capability: (registers, shared memory, stack, spills, doubles, vectors)}`` of one variant."""
    variant, first = job
    import numba.cuda.api
    import numba.cuda.compiler
    import numba.cuda.dispatcher

    class Device:
        compute_capability = CAPABILITIES[0]

    # Without a driver there is no current device to ask; the compiler wants no more than this of it.
    for module in (numba.cuda.api, numba.cuda.compiler, numba.cuda.dispatcher):
        module.get_current_device = Device
    kernel, types = kernel_and_types(*variant)
    capabilities = CAPABILITIES if first else CAPABILITIES[-1:]
    # As ``cuda.compile_ptx`` does, but with one lowering for all GPUs, to which it makes no difference, since
    # it takes the longest.
    Device.compute_capability = capabilities[0]
    library, _ = numba.cuda.compiler._compile_pyfunc_with_fixup(
        kernel.py_func, types, device=False, cc=capabilities[0], abi="numba"
    )
    result = {}
    for capability in capabilities:
        Device.compute_capability = capability
        (ptx,) = library.get_asm_strs(cc=capability)
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(ptx)
            file.flush()
            command = [ptxas(), "-v", "-arch=sm_{}{}".format(*capability), file.name, "-o", "/dev/null"]
            most = kernel.targetoptions.get("max_registers")
            command += ["--maxrregcount", str(most)] if most else []
            told = subprocess.run(command, capture_output=True, text=True)
        if told.returncode:
            raise SystemExit(f"ptx_check: {variant}: ptxas failed for {capability}:\n{told.stderr}")
        stack, stores, loads = (
            int(n) for n in re.search(
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", told.stderr
            ).groups()
        )  # fmt: skip
        registers = int(re.search(r"Used (\d+) registers", told.stderr)[1])
        shared = re.search(r"(\d+) bytes smem", told.stderr)
        # TensorFlow takes the middle of a box in double where a crop has one row or column.
        exempt = variant[2] == "float64" or variant[1].startswith("CropAndResize")
        doubles = 0 if exempt else doubles_in(ptx)
        result[capability] = (
            registers, int(shared[1]) if shared else 0, stack, stores + loads, doubles, vectors_in(ptx)
        )  # fmt: skip
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
    python = peers.interpreter("cuda")
    if Path(sys.executable).absolute() != python.absolute():
        peers.set_up("cuda")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "ROIOPS_CACHE": "0"}
        environment.pop("NUMBA_ENABLE_CUDASIM", None)
        sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=environment).returncode)
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
