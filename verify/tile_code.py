"""What LLVM makes of the inner loop of a matrix product, for processors that are not at hand.

    python verify/tile_code.py                      # the table
    python verify/tile_code.py neoverse-n1 packed   # one loop itself

Of each loop: multiply-adds (those that take their factor from one element of a vector in brackets), loads,
loads that repeat one number in a vector, and loads and stores of what did not fit into registers. Nothing is
run; the loop is compiled for the processor named, as numba would there.
"""

import itertools
import os
import platform
import re
import subprocess
import sys

#: Processor -> the system's name for LLVM, what ``platform.machine()`` says there, numbers of a vector.
PROCESSORS = {
    "neoverse-n1": ("aarch64-linux-gnu", "aarch64", 4),
    "neoverse-v1": ("aarch64-linux-gnu", "aarch64", 4),
    "apple-m1": ("arm64-apple-macosx", "arm64", 4),
    "haswell": ("x86_64-linux-gnu", "x86_64", 8),
    "skylake-avx512": ("x86_64-linux-gnu", "x86_64", 16),
}
FACTORS = "in place", "packed"
HEAD = (
    "| processor | left factor | tile | multiply-adds | loads | repeating a number "
    "| multiply-adds for a load | spilled |"
)


def assembly(processor: str, packed: bool) -> str:
    """A product's tile: sums of ``terms`` products, stored.

    The left factor is read in place, where rows lie ``left_step`` apart, or packed, term by term.
    """
    import llvmlite.binding as llvm
    from llvmlite import ir

    from roiops.kernels.cpu.product import tiles
    from roiops.kernels.cpu.product.emitter import ROWS, VECTORS, Emitter, Span

    number, pointer = ir.IntType(64), ir.FloatType().as_pointer()
    module = ir.Module("tile")
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, pointer, number, pointer, number])
    function = ir.Function(module, kind, "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    emit = Emitter(None, builder)
    left, left_step, panel, terms, out, out_step = function.args
    left, panel, out = (Span(each, each, None, "array") for each in (left, panel, out))
    left_step, term_step = (emit.number(1), emit.number(ROWS)) if packed else (left_step, emit.number(1))
    rows = out, out_step
    sums = tiles._sum_tile(emit, (left, left_step), term_step, panel, terms, rows, VECTORS, packed=packed)
    tiles._store_tile(emit, sums, rows)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = PROCESSORS[processor][0]
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    compiled = llvm.parse_assembly(str(module))
    compiled.triple, compiled.data_layout = triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(compiled, builder)
    return machine.emit_assembly(compiled)


def inner_loop(text: str) -> list[str]:
    """The instructions from a label to the jump back to it that hold the most multiply-adds."""
    lines = [line.strip() for line in text.splitlines()]
    labels = {
        line.rstrip(":"): i for i, line in enumerate(lines) if re.fullmatch(r"[.\w]+:", line.split("#")[0])
    }
    labels = {name.split(":")[0]: i for name, i in labels.items()}
    loops = [
        lines[labels[target] + 1 : i + 1]
        for i, line in enumerate(lines)
        for target in re.findall(r"[.\w]*L[.\w]+$", line)
        if labels.get(target, i) < i
    ]
    loops = [[line for line in loop if re.match(r"[a-z]", line)] for loop in loops]
    return max(loops, key=lambda loop: sum(is_product(line) for line in loop) / len(loop))


def is_product(line: str) -> bool:
    return line.startswith(("fmla", "vfmadd"))


def row(processor: str, factor: str, loop: list[str], tile) -> str:
    """A line of the table."""
    products = [line for line in loop if is_product(line)]
    by_element = sum(bool(re.search(r"v\d+(\.s)?\[\d\]", line)) for line in products)
    if "fmla" in products[0]:
        loads = [line for line in loop if re.match(r"ldr\s+[qs]|ldur\s+[qs]|ld1r|ld1|ldp\s+[qs]", line)]
        count = sum(1 + line.startswith("ldp") for line in loads)
        repeats = sum(line.startswith("ld1r") for line in loads)
        spilled = sum(bool(re.search(r"[qs]\d+.*\[sp", line)) for line in loop)
    else:  # a factor of a multiply-add may be in memory
        loads = [line for line in loop if re.search(r"\(.*\)", line) and line.startswith("v")]
        count, spilled = len(loads), sum("rsp" in line for line in loads)
        repeats = sum("broadcast" in line or "{1to" in line for line in loads)
    words = f"{len(products)}" + (f" ({by_element})" if by_element else "")
    shape = f"{tile[0]} x {tile[1]}"
    cells = (
        processor,
        factor,
        shape,
        words,
        str(count),
        str(repeats),
        f"{len(products) / count:.2f}",
        str(spilled),
    )
    return "| " + " | ".join(cells) + " |"


def describe(processor: str, factor: str, whole: bool) -> None:
    """In a process whose vectors are those of the processor."""
    platform.machine = lambda: PROCESSORS[processor][1]
    loop = inner_loop(assembly(processor, factor == "packed"))
    from roiops.kernels.cpu.product.machine import HERE

    print("\n".join(loop) if whole else row(processor, factor, loop, (HERE.rows, HERE.columns)))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        describe(*sys.argv[2:4], whole=sys.argv[4:] == ["whole"])
        return
    asked = [(*sys.argv[1:3], "whole")] if sys.argv[1:] else itertools.product(PROCESSORS, FACTORS)
    if not sys.argv[1:]:
        print(HEAD + "\n|---|---|---|---:|---:|---:|---:|---:|", flush=True)
    for processor, *how in asked:
        environment = {**os.environ, "ROIOPS_LANES": str(PROCESSORS[processor][2])}
        subprocess.run([sys.executable, __file__, "--one", processor, *how], env=environment, check=True)


if __name__ == "__main__":
    main()
