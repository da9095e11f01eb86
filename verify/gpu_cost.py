"""What the CUDA kernels would cost a GPU, computed from what they do on this machine's processor.

    python verify/gpu_cost.py                 # writes benchmarks/results/gpu_cost.md and docs/gpu_kernels.md
    python verify/gpu_cost.py --only "R-FCN"  # prints the rows of which the name holds this

Every row of ``benchmarks/roi.py`` runs under ``verify/gpu_host.py``, which logs each access. Launches of more
than 64 blocks run 8 of them, drawn at random, which stand for all. Accesses of one instruction by the threads
of a warp are taken together: those that each thread came to equally often since the last barrier. So it is
on a GPU where they go through loops together. No GPU takes part: nothing here is a measurement. The
environment is that of ``verify/peers.py cuda``.
"""

import argparse
import functools
import itertools
import math
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import peers

# NVIDIA's compiler for these devices wants pointers that have a type, and ``gpu_host`` those that have none:
# registers are counted in a process that does not import it.
os.environ["LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS"] = "1"

ROOT = Path(__file__).resolve().parent.parent
PAGE, TABLES = ROOT / "docs" / "gpu_kernels.md", ROOT / "benchmarks" / "results" / "gpu_cost.md"
BEGIN, END = "<!-- table: verify/gpu_cost.py -->", "<!-- end of table: verify/gpu_cost.py -->"

WARP, SECTOR, BANKS, WORD = 32, 32, 32, 4
NOT = "*computed, not measured*"
EXPLAINED = (
    "`make gpu-cost` wrote this; [docs/gpu_kernels.md](../../docs/gpu_kernels.md) says what the columns are. "
    "Of launches of more than 64 blocks, 8 ran, drawn at random, and stand for all."
)


class Device(NamedTuple):
    """Published numbers of a GPU."""

    capability: tuple
    bandwidth: float  # bytes a second
    threads: int  # of a multiprocessor, at most
    shared: int  # bytes of a multiprocessor


DEVICES = {
    "H100 SXM": Device((9, 0), 3350e9, 2048, 228 << 10),
    "A10": Device((8, 6), 600e9, 1536, 100 << 10),
    "RTX 4060 Laptop": Device((8, 9), 256e9, 1536, 100 << 10),
}
REGISTERS = 1 << 16  # of a multiprocessor; a thread gets them in eights
RESERVED = 1 << 10  # bytes of shared memory that each block takes beside its own


def occupancy(device, registers, shared, threads) -> float:
    """Threads that a multiprocessor has room for, as a part of the most that it can have."""
    of_registers = REGISTERS // (-(-registers // 8) * 8 * threads)
    blocks = min(of_registers, device.shared // (shared + RESERVED), device.threads // threads)
    return blocks * threads / device.threads


class Cost:
    """What the launches of one kernel have cost."""

    def __init__(self, code):
        self.code = code
        self.asks = self.lanes = self.sectors = self.used = 0  # of global memory
        self.kept = self.kept_used = 0  # sectors and bytes, each once a block
        self.phases = self.cycles = 0  # of shared memory

    def add(self, notes, weight):
        """Take the notes of a block, which stands for ``weight`` of them: see ``gpu_host._log``."""
        import numpy as np

        if not len(notes):
            return
        site, thread, stamp, place = (notes[name].astype(np.int64) for name in notes.dtype.names)
        stamp -= stamp.min()
        size = np.array([told.size for told in self.code.sites])
        shared = np.array([(told.array or "@").startswith("@") for told in self.code.sites])
        array = np.unique([told.array or "" for told in self.code.sites], return_inverse=True)[1]
        # In the order of barrier, access and thread, and then as they came.
        number = np.arange(len(site))
        order = packed(stamp, site, thread, number)
        order.sort()
        same, came = np.divmod(order, len(site))
        site, thread, stamp, place = site[came], thread[came], stamp[came], place[came]
        # How often the thread has come to this access since the barrier.
        turn = number - np.maximum.accumulate(np.where(np.r_[True, np.diff(same) != 0], number, 0))
        ask = np.unique(packed(stamp, site, turn, thread // WARP), return_inverse=True)[1]
        of_block = shared[site]
        for mine, count in (~of_block, self._add_global), (of_block, self._add_shared):
            at = site[mine]
            count(ask[mine], thread[mine], array[at], place[mine], size[at], weight)

    def _add_global(self, ask, thread, array, place, size, weight):
        sizes = size.max(initial=0) + 1
        self.asks += weight * len(distinct(ask))
        self.lanes += weight * len(ask)
        self.sectors += weight * len(distinct(ask, place // SECTOR))
        self.used += weight * int((distinct(ask, place, size) % sizes).sum())
        self.kept += weight * len(distinct(array, place // SECTOR))
        self.kept_used += weight * int((distinct(array, place, size) % sizes).sum())

    def _add_shared(self, ask, thread, array, place, size, weight):
        """An access takes as many cycles as there are words in its fullest bank; wide ones go in phases."""
        import numpy as np

        lanes = np.maximum(1, WARP * WORD // np.maximum(size, WORD))
        phase = ask * 8 + thread % WARP // lanes
        for words in np.unique(size // WORD):
            mine = size // WORD == words
            every = np.concatenate([place[mine] // WORD + k for k in range(max(1, words))])
            # Of each phase and word, one; then how many words of a phase are in a bank.
            phases, word = np.divmod(distinct(np.tile(phase[mine], max(1, words)), every), every.max() + 1)
            banks, count = np.unique(phases * BANKS + word % BANKS, return_counts=True)
            first = np.flatnonzero(np.r_[True, np.diff(banks // BANKS) != 0])
            self.phases += weight * len(first)
            self.cycles += weight * int(np.maximum.reduceat(count, first).sum())

    @property
    def of_block(self) -> float:
        """Bytes of the sectors that a block moves, each once, over the bytes that it uses."""
        return self.kept * SECTOR / self.kept_used


def packed(*columns):
    """Columns of numbers from 0 on as one number a row."""
    import numpy as np

    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    assert math.prod(sizes) < 1 << 63, sizes
    numbers = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        numbers = numbers * size + column
    return numbers


def distinct(*columns):
    """The rows of some columns, :func:`packed`, each once."""
    import numpy as np

    numbers = packed(*columns)
    numbers.sort()  # far sooner done than by ``np.unique``, which looks each up in a table
    return numbers[np.r_[True, np.diff(numbers) != 0][: len(numbers)]]


class Row:
    """A row of the benchmark on the host's GPU: bytes that must move, and costs of kernels, by direction."""

    def __init__(self, name, label, running, compiler):
        import gpu_check
        from roi import Ours
        from roi_workloads import WORKLOADS, operators

        from roiops.registry import get

        work, operator = WORKLOADS[name], operators(name)[label]
        self.name, ours = f"{name}, {label}", Ours(work, operator)
        self.bytes = {direction: ours.bytes(direction) for direction in ("forward", "backward")}
        inputs = list(ours.inputs.values())
        call = gpu_check.OnDevice(get(operator.name).name, operator.arguments(work), inputs)
        self.costs = {"forward": large(call.forward, running, compiler)}
        if len(ours.invocation.outputs) > 1:  # where the maxima were, which the gradient reads, of all boxes
            ours.forward()
            call.invocation.outputs[1].set(ours.invocation.outputs[1])
        head = gpu_check.to_device(ours.head)
        self.costs["backward"] = large(lambda: call.backward(head), running, compiler)


def large(run, running, compiler) -> list:
    """The costs of the kernels of a call that move 2% or more of its sectors, which ``running`` gets."""
    running.clear()
    run()
    moved = sum(cost.sectors for cost in running.values())
    found = [cost for cost in running.values() if cost.sectors >= 0.02 * moved]
    for cost in found:
        cost.of_devices = asked(compiler, cost.code)
    return found


@functools.cache
def asked(compiler, code):
    """What :func:`of_devices` will tell of a kernel."""
    return compiler.submit(of_devices, code.dispatcher, code.signature)


def of_devices(dispatcher, types):
    """Registers, and the part of the threads that there is room for, of a kernel on each of the devices."""
    import ptx_check

    from roiops.kernels.cuda.roi.tiles import SIZES

    registers, rooms, library = [], [], ptx_check.lowered(dispatcher, types, (8, 0))
    for name, device in DEVICES.items():
        try:
            _, (count, shared, _, _) = ptx_check.assembled(library, dispatcher, device.capability)
        except Exception as error:
            raise RuntimeError(f"{dispatcher.py_func.__name__}{types} does not compile for {name}") from error
        registers.append(count)
        rooms.append(occupancy(device, count, shared, SIZES.threads))
    return registers, rooms


KERNEL = "lanes active", "sectors an access", "sectors a block", "bank conflicts"


def shown(*costs) -> list:
    """The columns ``KERNEL`` of a kernel, from the least of some costs to the most."""
    columns = (
        [f"{cost.lanes / cost.asks / WARP:6.0%}" for cost in costs],
        [f"{cost.sectors * SECTOR / cost.used:6.2f}" for cost in costs],
        [f"{cost.of_block:6.2f}" for cost in costs],
        [f"{cost.cycles / cost.phases:6.2f}" for cost in costs if cost.phases] or ["none"],
    )
    return [" to ".join(dict.fromkeys((min(each).strip(), max(each).strip()))) for each in columns]


def headed(*names) -> list:
    """The first lines of a table."""
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def every_row(rows) -> str:
    """The tables of all rows, in Markdown."""
    devices = ", ".join(DEVICES)
    found = headed(
        f"row ({NOT})", "direction", "kernel", *KERNEL, f"registers, {devices}", f"occupancy, {devices}"
    )
    for row in rows:
        for direction, costs in row.costs.items():
            for cost in costs:
                registers, rooms = cost.of_devices.result()
                room = ", ".join(f"{each:.0%}" for each in rooms)
                columns = row.name, direction, f"`{cost.code.name}`", *shown(cost)
                found.append(f"| {' | '.join(columns)} | {', '.join(map(str, registers))} | {room} |")
    found += ["", *headed(f"row ({NOT})", "direction", "MB", *(f"least ms, {name}" for name in DEVICES))]
    for row in rows:
        for direction, moved in row.bytes.items():
            times = (f"{1e3 * moved / device.bandwidth:.3f}" for device in DEVICES.values())
            found.append(f"| {row.name} | {direction} | {moved / 1e6:.1f} | {' | '.join(times)} |")
    return "\n".join(found)


def every_kernel(rows) -> str:
    """A table of the kernels, each with its least and its most over the rows, in Markdown."""
    devices = ", ".join(DEVICES)
    names = f"kernel ({NOT})", "rows", *KERNEL, f"registers at most, {devices}", f"occupancy, {devices}"
    lines, found = headed(*names, "most sectors a block"), {}
    for row in rows:
        for cost in itertools.chain(*row.costs.values()):
            found.setdefault(cost.code.name, []).append((cost, row.name))
    for name, costs in sorted(found.items()):
        told = [cost.of_devices.result() for cost, _ in costs]
        registers = ", ".join(str(max(each)) for each in zip(*(one for one, _ in told), strict=True))
        room = ", ".join(f"{min(each):.0%}" for each in zip(*(both for _, both in told), strict=True))
        worst = max(costs, key=lambda each: each[0].of_block)[1]
        columns = f"`{name}`", str(len(costs)), *shown(*(cost for cost, _ in costs)), registers, room, worst
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    args = parser.parse_args()
    peers.enter("cuda", "benchmarks", "tests", "tests/operators", "tests/cuda")
    import gpu_host
    import numba.cuda

    # Without the lines of the source that ``gpu_host`` reports: of those NVIDIA's compiler takes not all.
    numba.cuda.jit = numba.cuda.jit.func
    from roi_workloads import WORKLOADS, operators

    running, rows = {}, []
    compiler = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    gpu_host.Device(lambda code, *told: running.setdefault(code, Cost(code)).add(*told)).install()
    for name in WORKLOADS:
        for label in operators(name):
            if args.only in f"{name}, {label}":
                rows.append(Row(name, label, running, compiler))
                print(rows[-1].name, f"{time.process_time():.0f} s", file=sys.stderr, flush=True)
    each, text = every_row(rows), every_kernel(rows)
    if args.only:
        print(each, text, sep="\n\n")
        return
    date = time.strftime("%Y-%m-%d")
    TABLES.write_text(f"# What the CUDA kernels would cost a GPU: {NOT}\n\n{date}. {EXPLAINED}\n\n{each}\n")
    page = PAGE.read_text()
    head, tail = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(f"{head}\n{text}\n{tail}")
    print(f"gpu_cost: {len(rows)} rows, {time.process_time():.0f} s of processor time", file=sys.stderr)


if __name__ == "__main__":
    main()
