"""What the CUDA kernels would cost a GPU, computed from what they do on this machine's processor.

    python verify/gpu_cost.py                 # writes the tables in docs/gpu_kernels.md
    python verify/gpu_cost.py --only "R-FCN"  # prints those of the workloads whose name holds this

Workloads of ``benchmarks/roi.py``, with fewer boxes and channels, run under ``verify/gpu_host.py``, which
logs each access. Accesses of one instruction by the threads of a warp are taken together: those that each
thread came to equally often since the last barrier. So it is on a GPU where they go through loops together.
No GPU takes part: nothing here is a measurement. The environment is that of ``verify/peers.py cuda``.
"""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import NamedTuple

import peers

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gpu_kernels.md"
BEGIN, END = "<!-- table: verify/gpu_cost.py -->", "<!-- end of table: verify/gpu_cost.py -->"

BOXES, CHANNELS = 4, 32  # at most, of the workloads that run
WARP, SECTOR, BANKS, WORD = 32, 32, 32, 4

RUNS = [
    ("FPN P4", "ROIAlign avg, 2"),
    ("FPN P4", "ROIAlign avg, adaptive"),
    ("FPN P4", "ROIPooling"),
    ("FPN P4", "ROIAlignRotated, 2"),
    ("FPN P4", "DeformROIPooling, 2"),
    ("C4 head", "CropAndResize, bilinear, NHWC"),
    ("R-FCN 21", "PSROIPooling"),
    ("R-FCN 21", "DeformablePSROIPooling, 4"),
]


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

    def __init__(self):
        self.asks = self.lanes = self.sectors = self.used = 0  # of global memory
        self.kept = self.kept_used = 0  # sectors and bytes, each once a block
        self.phases = self.cycles = 0  # of shared memory

    def add(self, kernel, notes):
        """Take the notes of a block: see ``gpu_host._log``."""
        import numpy as np

        site, thread, stamp, place = (notes[name].astype(np.int64) for name in notes.dtype.names)
        order = np.lexsort((thread, site, stamp))
        site, thread, stamp, place = (each[order] for each in (site, thread, stamp, place))
        new = np.ones(len(site), bool)
        new[1:] = (np.diff(site) != 0) | (np.diff(thread) != 0) | (np.diff(stamp) != 0)
        # How often the thread has come to this access since the barrier.
        turn = np.arange(len(site)) - np.maximum.accumulate(np.where(new, np.arange(len(site)), 0))
        group = np.cumsum(np.r_[True, (np.diff(site) != 0) | (np.diff(stamp) != 0)])
        ask = (group * (1 << 16) + turn) * (1 << 6) + thread // WARP
        size = np.array([told.size for told in kernel.sites])[site]
        shared = np.array([(told.array or "@").startswith("@") for told in kernel.sites])[site]
        array = np.unique([told.array or "" for told in kernel.sites], return_inverse=True)[1][site]
        self._add_global(ask[~shared], array[~shared], place[~shared], size[~shared])
        self._add_shared(ask[shared], thread[shared], array[shared], place[shared], size[shared])

    def _add_global(self, ask, array, place, size):
        self.asks += len(distinct(ask))
        self.lanes += len(ask)
        self.sectors += len(distinct(ask, place // SECTOR))
        self.used += total_of_distinct(size, ask, place)
        self.kept += len(distinct(array, place // SECTOR))
        self.kept_used += total_of_distinct(size, array, place)

    def _add_shared(self, ask, thread, array, place, size):
        """An access takes as many cycles as there are words in its fullest bank; wide ones go in phases."""
        import numpy as np

        lanes = np.maximum(1, WARP * WORD // np.maximum(size, WORD))
        phase = ask * 8 + thread % WARP // lanes
        for words in np.unique(size // WORD):
            mine = size // WORD == words
            every = np.concatenate([place[mine] // WORD + k for k in range(max(1, words))])
            phases = np.tile(phase[mine], max(1, words))
            phases, word = distinct(phases, every).T
            banks, count = np.unique(np.stack([phases, word % BANKS], 1), axis=0, return_counts=True)
            first = np.unique(banks[:, 0], return_index=True)[1]
            self.phases += len(first)
            self.cycles += int(np.maximum.reduceat(count, first).sum()) if len(first) else 0


def distinct(*columns):
    """The rows of some columns, each once."""
    import numpy as np

    return np.unique(np.stack(columns, 1), axis=0)


def total_of_distinct(size, *columns) -> int:
    import numpy as np

    rows = np.stack(columns, 1)
    first = np.unique(rows, axis=0, return_index=True)[1]
    return int(size[first].sum())


def smaller(work):
    """A workload with as few boxes and channels as run here."""
    images, channels, *size = work.shape
    channels = channels if work.output_dim else min(channels, CHANNELS)  # score maps have one for each bin
    return dataclasses.replace(work, shape=(images, channels, *size), rois=BOXES)


def costs_of(work, operator) -> dict:
    """``{kernel: (Cost, dispatcher, types of its arguments)}`` of a small call, forward and backward."""
    import gpu_check
    import gpu_host
    from roi_workloads import head_of

    from roiops.registry import get

    costs = {}
    device = gpu_host.Device(log=lambda kernel, notes: costs.setdefault(kernel, Cost()).add(kernel, notes))
    device.install()
    work = smaller(work)
    inputs, head = operator.our_inputs(work), operator.laid_out(head_of(work))
    name = get(operator.name).name
    gpu_check.OnDevice(name, operator.arguments(work), list(inputs.values())).results(head)
    return {
        code.name: (costs[code], kernel, types)
        for (kernel, types), code in device.kernels.items()
        if code in costs
    }


def row_of(name, cost, kernel, types, threads) -> str:
    """A kernel's row of the first table."""
    import ptx_check

    library = ptx_check.lowered(kernel, types, (8, 6))
    found = [ptx_check.assembled(library, kernel, each.capability)[1] for each in DEVICES.values()]
    room = [
        f"{occupancy(device, registers, shared, threads):.0%}"
        for device, (registers, shared, _, _) in zip(DEVICES.values(), found, strict=True)
    ]
    columns = (
        f"`{name}`",
        f"{cost.lanes / cost.asks / WARP:.0%}",
        f"{cost.sectors * SECTOR / cost.used:.2f}",
        f"{cost.kept * SECTOR / cost.kept_used:.2f}",
        f"{cost.cycles / cost.phases:.2f}" if cost.phases else "none",
        ", ".join(str(registers) for registers, *_ in found),
        ", ".join(room),
    )
    return " | ".join(columns)


def tables(chosen) -> str:
    """The tables of some of :data:`RUNS`, in Markdown."""
    from roi import Ours
    from roi_workloads import WORKLOADS, operators

    from roiops.kernels.cuda.roi.tiles import SIZES

    devices = ", ".join(DEVICES)
    kernels = [
        f"| workload (*computed, not measured*) | kernel | lanes active | sectors an access "
        f"| sectors a block | bank conflicts | registers on {devices} | occupancy on {devices} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    least = [
        "| workload (*computed, not measured*) | direction | MB that must move | "
        + " | ".join(f"least ms, {name}" for name in DEVICES)
        + " |",
        "|---|---|---|" + "---|" * len(DEVICES),
    ]
    for name, label in chosen:
        operator = operators(name)[label]
        costs = costs_of(WORKLOADS[name], operator)
        all_sectors = sum(cost.sectors for cost, *_ in costs.values())
        for kernel, (cost, *compiled) in costs.items():
            if cost.sectors > 0.02 * all_sectors:
                kernels.append(f"| {name}, {label} | {row_of(kernel, cost, *compiled, SIZES.threads)} |")
        ours = Ours(WORKLOADS[name], operator)
        for direction in "forward", "backward":
            moved = ours.bytes(direction)
            times = " | ".join(f"{1e3 * moved / device.bandwidth:.3f}" for device in DEVICES.values())
            least.append(f"| {name}, {label} | {direction} | {moved / 1e6:.1f} | {times} |")
        print(f"{name}, {label}", file=sys.stderr, flush=True)
    return "\n".join([*kernels, "", *least])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="workloads and operators whose name holds this")
    args = parser.parse_args()
    peers.enter("cuda", "benchmarks", "tests", "tests/operators", "tests/cuda")
    found = tables([run for run in RUNS if args.only in ", ".join(run)])
    print(found)
    if not args.only:
        text = PAGE.read_text()
        head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        PAGE.write_text(f"{head}\n{found}\n{tail}")


if __name__ == "__main__":
    main()
