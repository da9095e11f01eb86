"""roiops.torch beside torchvision, forward and forward with backward, in one process and in turn.

    python benchmarks/pytorch.py                # writes benchmarks/results/pytorch.{json,md}
    python benchmarks/pytorch.py --threads 1 --workloads "4 boxes"      # those rows of it anew
    python benchmarks/pytorch.py --memory       # the peaks of it anew

Both get the same tensors and the same number of PyTorch's threads. Results and gradients are compared before
they are timed. In each round a library makes one call that is not counted, before those that are. A row's
peak is how far the memory of a process of its own, with two threads, rises in a forward and backward pass, as
Linux tells it; small calls have been made before, so that libraries are loaded and kernels compiled.
``--processor-time`` is for a machine that does other work too: it counts the time of the processor, which is
that of a call only on one thread. ``--layer`` instead prints what a call costs above the kernels it runs.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# torchvision 0.29 asks whether there is a package `pytorch`, and would find this file.
sys.modules["pytorch"] = None

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from machine import MAIN_RESULTS, RESULTS, processor  # noqa: E402
from roi_workloads import WORKLOADS, Workload  # noqa: E402

import roiops.torch  # noqa: E402

SMALL = {
    "4 boxes": Workload((1, 64, 16, 16), 4, (16, 200), 7, 1 / 16),
    "30 boxes": Workload((1, 256, 50, 68), 30, (32, 600), 7, 1 / 16),
    "4 boxes, R-FCN": Workload((1, 49 * 2, 16, 16), 4, (16, 200), 7, 1 / 16, 2),
}
EVERY = {**SMALL, **WORKLOADS}
#: Images of the pyramid's boxes; its maps are 1/4 to 1/32 of them.
PYRAMID = (2, 256, 256, 320), 512


def calls(work):
    """Label -> the call, for a library that has torchvision's functions."""
    if work.output_dim:
        return {
            "ps_roi_align, 2": lambda ops, x, r: ops.ps_roi_align(x, r, work.pooled, work.scale, 2),
            "ps_roi_align, adaptive": lambda ops, x, r: ops.ps_roi_align(x, r, work.pooled, work.scale),
            "ps_roi_pool": lambda ops, x, r: ops.ps_roi_pool(x, r, work.pooled, work.scale),
        }
    return {
        "roi_align, 2": lambda ops, x, r: ops.roi_align(x, r, work.pooled, work.scale, 2),
        "roi_align, adaptive": lambda ops, x, r: ops.roi_align(x, r, work.pooled, work.scale),
        "roi_pool": lambda ops, x, r: ops.roi_pool(x, r, work.pooled, work.scale),
    }


class Job:
    """One row: a call of a library on fixed inputs, and its gradient."""

    def __init__(self, workload, operator, call, inputs, rois):
        self.workload, self.operator = workload, operator
        self._call, self._inputs, self._rois = call, inputs, rois
        self._leaves = [each.detach().requires_grad_() for each in inputs]
        shape = self.forward(torchvision.ops).shape
        self._head = torch.randn(shape, generator=torch.Generator().manual_seed(2))

    def forward(self, library):
        with torch.no_grad():
            return self._call(library, self._inputs, self._rois)

    def forward_and_backward(self, library):
        out = self._call(library, self._leaves, self._rois)
        return torch.autograd.grad(out, self._leaves, self._head)

    def small(self, count):
        """The same for small maps and ``count`` boxes."""
        maps = [each[:1, :, :16, :16].contiguous() for each in self._inputs]
        rois = torch.tensor([[0.0, 0, 0, 16, 16]]).repeat(count, 1)
        return Job(self.workload, self.operator, self._call, maps, [rois[:, 1:]] if self._many else rois)

    @property
    def _many(self) -> bool:
        """Whether there are several maps, for which boxes are lists."""
        return isinstance(self._rois, list)

    def check(self) -> None:
        """Stop unless outputs and gradients are the same to a few units of float32."""
        ours, theirs = (
            [self.forward(library), *self.forward_and_backward(library)] for library in LIBRARIES.values()
        )
        for found, expected in zip(ours, theirs, strict=True):
            if not (found - expected).abs().max() <= 2e-5 * expected.abs().max().clamp(min=1):
                raise SystemExit(f"pytorch.py: {self.workload}, {self.operator}: the results differ")


PATH = RESULTS / "pytorch.json"
LIBRARIES = {"roiops": roiops.torch, "torchvision": torchvision.ops}


def jobs(chosen):
    """The rows of some workloads."""
    for name in chosen:
        if name == "pyramid":
            yield pyramid()
            continue
        work = EVERY[name]
        data, rois = (torch.from_numpy(array) for array in work.inputs())
        for label, call in calls(work).items():
            yield Job(name, label, lambda ops, x, r, call=call: call(ops, x[0], r), [data], rois)


def pyramid():
    """The feature pyramid of a Mask R-CNN at half its usual size."""
    (images, channels, height, width), count = PYRAMID
    random = torch.Generator().manual_seed(1)
    maps = [torch.randn((images, channels, height >> i, width >> i), generator=random) for i in range(4)]
    sides = torch.exp(torch.rand((images, count, 2), generator=random) * math.log(40) + math.log(16))
    corner = torch.rand((images, count, 2), generator=random) * torch.tensor([width * 3.0, height * 3.0])
    boxes = list(torch.cat([corner, corner + sides], 2))

    def call(ops, x, r):
        pooler = ops.MultiScaleRoIAlign([str(i) for i in range(4)], 7, 2)
        return pooler({str(i): each for i, each in enumerate(x)}, r, [(4 * height, 4 * width)] * len(r))

    return Job("pyramid", "MultiScaleRoIAlign, 2", call, maps, boxes)


#: What times are taken with.
_clock = time.perf_counter


def seconds(run) -> float:
    start = _clock()
    run()
    return _clock() - start


def peak_bytes(run) -> int:
    """How far the memory of the process rises above what it has before ``run``."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls have freed would hide what this one takes
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(name) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name + ":"))
    return 1024 * int(line.split()[1])


def print_peak(which, workload, operator) -> None:
    """Print the peak of a row, in bytes, of one library, in this process."""
    torch.set_num_threads(2)
    library = LIBRARIES[which]
    job = next(job for job in jobs([workload]) if job.operator == operator)
    for count in (1, 64):  # loads what is loaded once, for one thread and for two
        job.small(count).forward_and_backward(library)
    print(peak_bytes(lambda: job.forward_and_backward(library)))


def peaks_of(chosen) -> dict[str, dict]:
    """Workload and operator -> library -> MiB, each in a process of its own.

    What another row has freed may still be resident, and would hide what this one takes.
    """
    peaks = {}
    for job in jobs(chosen):
        key = f"{job.workload}: {job.operator}"
        for which in LIBRARIES:
            command = [sys.executable, __file__, "--peak-of", which, job.workload, job.operator]
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            peaks.setdefault(key, {})[which] = round(int(found) / 2**20, 1)
        print(key, peaks[key], flush=True)
    return peaks


def times_of(run) -> dict[str, float]:
    """Seconds of one call for each library; a short call is repeated for a hundredth of a second.

    The first call is not counted. It finds caches and memory as the other library left them, whose freed
    pages Linux may have to gather before it has huge ones to give.
    """
    found = {}
    for which, library in LIBRARIES.items():
        first = seconds(lambda library=library: run(library))
        repeats = max(1, min(200, int(0.01 / first)))
        times = [seconds(lambda library=library: run(library)) for _ in range(repeats)]
        found[which] = statistics.median(times)
    return found


def measure(threads, chosen, rounds, budget) -> list[dict]:
    """The rows of some workloads: ``rounds`` rounds each, or as many as ``budget`` seconds have room for."""
    torch.set_num_threads(threads)
    rows = []
    for job in jobs(chosen):
        job.check()
        for direction in ("forward", "forward and backward"):
            run = getattr(job, direction.replace(" ", "_"))
            times, start = [], time.perf_counter()
            while len(times) < rounds and (not times or time.perf_counter() - start < budget):
                times.append(times_of(run))
            row = {"workload": job.workload, "operator": job.operator, "direction": direction}
            row |= {"threads": threads, "rounds": len(times), "clock": _clock.__name__, "milliseconds": {}}
            for which in LIBRARIES:
                row["milliseconds"][which] = round(1e3 * statistics.median(t[which] for t in times), 4)
            rows.append(row)
            print(text_of(row), flush=True)
    return rows


def ratio(row) -> float:
    return row["milliseconds"]["torchvision"] / row["milliseconds"]["roiops"]


def text_of(row) -> str:
    ms = row["milliseconds"]
    return (
        f"{row['threads']} threads  {row['workload']:15} {row['operator']:23} {row['direction']:21} "
        f"{ms['roiops']:9.3f} ms  torchvision {ms['torchvision']:9.3f}  {ratio(row):6.1f} times as fast"
    )


def summary(rows) -> list[str]:
    lines = [
        "| threads | direction | times as fast, geometric mean | least | rows |",
        "|---:|---|---:|---:|---:|",
    ]
    for threads in sorted({row["threads"] for row in rows}):
        for direction in ("forward", "forward and backward"):
            found = [ratio(r) for r in rows if (r["threads"], r["direction"]) == (threads, direction)]
            mean = statistics.geometric_mean(found)
            lines.append(f"| {threads} | {direction} | {mean:.1f} | {min(found):.1f} | {len(found)} |")
    return lines


def markdown(report) -> str:
    lines = ["# roiops.torch beside torchvision on the CPU", "", report["machine"], ""]
    lines += [*summary(report["rows"]), "", "Milliseconds, medians.", ""]
    lines += [
        "| threads | workload | operator | direction | roiops | torchvision | times as fast |",
        "|---:|---|---|---|---:|---:|---:|",
    ]
    for row in report["rows"]:
        ms = row["milliseconds"]
        lines.append(
            f"| {row['threads']} | {row['workload']} | {row['operator']} | {row['direction']} | "
            f"{ms['roiops']:.3f} | {ms['torchvision']:.3f} | {ratio(row):.1f} |"
        )
    lines += ["", "Peaks of memory in a forward and backward pass, in MiB, in a process for each.", ""]
    lines += ["| workload and operator | roiops | torchvision |", "|---|---:|---:|"]
    for key, peak in report["peaks"].items():
        lines.append(f"| {key} | {peak['roiops']:.1f} | {peak['torchvision']:.1f} |")
    return "\n".join([*lines, ""])


def layer(rounds=300) -> None:
    """Print what a call of ``roi_align`` costs above its kernels, on one thread: medians, in turn."""
    from roiops.registry import get
    from roiops.torch.plans import bind

    torch.set_num_threads(1)
    data, rois = (torch.from_numpy(array) for array in SMALL["4 boxes"].inputs())
    leaf, head = data.clone().requires_grad_(), torch.randn(4, 64, 7, 7)
    params = {
        "pooled_size": (7, 7), "spatial_scale": 1 / 16, "sampling_ratio": (2, 2), "mode": "avg",
        "aligned": False, "dialect": "mmcv",
    }  # fmt: skip
    op = bind(get("ROIAlign"), params).plan((data, rois))
    arrays, grad_out = [data.numpy(), rois.numpy()], head.numpy()

    def operator():
        out = np.empty(head.shape, np.float32)
        op._op.forward(op._context, arrays, ["write"], [out], [])

    def operator_both():
        operator()
        grad = np.empty(data.shape, np.float32)
        op._op.backward(op._context, [grad_out], arrays, [None], ["write", "null"], [grad, None], [])

    def call():
        roiops.torch.roi_align(data, rois, 7, 1 / 16, 2)

    def call_both():
        torch.autograd.grad(roiops.torch.roi_align(leaf, rois, 7, 1 / 16, 2), leaf, head)

    def engine():
        torch.autograd.grad(leaf * 2.0, leaf, leaf)

    runs = operator, call, operator_both, call_both, engine
    times = [[] for _ in runs]
    for _ in range(rounds):
        for run, spent in zip(runs, times, strict=True):
            spent.append(seconds(lambda run=run: [run() for _ in range(10)]) / 10)
    plain, forward, plain_both, both, engine = (1e6 * statistics.median(each) for each in times)
    print(f"forward: {forward:.0f} us, {forward - plain:.0f} more than the operator on arrays")
    print(
        f"forward and backward: {both:.0f} us, {both - plain_both:.0f} more than the operator on arrays; "
        f"PyTorch's own `x * 2.0`, forward and backward, takes {engine:.0f}"
    )


def saved(path) -> dict:
    """What is on disk, for the rows and peaks that are not measured anew."""
    return json.loads(path.read_text()) if path.exists() else {"machine": "", "rows": [], "peaks": {}}


def save(path, rows, peaks) -> dict:
    """Put rows and peaks in the place of those of the same name, or after the others."""
    report = saved(path)
    names = ("threads", "workload", "operator", "direction")
    every = {tuple(row[name] for name in names): row for row in [*report["rows"], *rows]}
    order = [*EVERY, "pyramid"]
    report["rows"] = sorted(every.values(), key=lambda row: (row["threads"], order.index(row["workload"])))
    report["peaks"] |= peaks
    report["machine"] = (
        f"{time.strftime('%Y-%m-%d')}; {processor()}, {os.cpu_count()} cores; torch {torch.__version__}, "
        f"torchvision {torchvision.__version__}; medians of rounds, in each of which both run in turn."
    )
    busy = [row["rounds"] for row in report["rows"] if row["clock"] == "process_time"]
    if busy:
        report["machine"] += (
            f" {len(busy)} of {len(report['rows'])} rows are processor time, of {min(busy)} to {max(busy)} "
            "rounds, taken while the machine did other work too: read them as rough."
        )
    path.write_text(json.dumps(report, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(report))
    if path == MAIN_RESULTS / PATH.name:
        write_into_page(report)
    return report


def write_into_page(report) -> None:
    """Put the summary into docs/pytorch.md."""
    page = ROOT / "docs" / "pytorch.md"
    start, end = "<!-- written by benchmarks/pytorch.py -->\n", "<!-- end -->\n"
    before, rest = page.read_text().split(start)
    text = "\n".join([report["machine"], "", *summary(report["rows"]), ""])
    page.write_text(before + start + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15, help="at most")
    parser.add_argument("--budget", type=float, default=8, help="seconds of a row, after its first round")
    names = [*EVERY, "pyramid"]
    parser.add_argument("--workloads", nargs="+", default=names, choices=names)
    parser.add_argument("--layer", action="store_true", help="what a call costs above its kernels")
    parser.add_argument("--memory", action="store_true", help="the peaks only")
    parser.add_argument("--no-memory", action="store_true", help="the times only")
    parser.add_argument("--peak-of", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--processor-time", action="store_true", help="on a busy machine; one thread only")
    args = parser.parse_args()
    if args.processor_time:
        if args.threads != [1]:
            raise SystemExit("pytorch.py: --processor-time goes with --threads 1")
        global _clock
        _clock = time.process_time
    if args.layer:
        layer()
        return
    if args.peak_of:
        print_peak(*args.peak_of)
        return
    rows = []
    if not args.memory:
        for threads in args.threads:
            rows += measure(threads, args.workloads, args.rounds, args.budget)
    peaks = {} if args.no_memory else peaks_of(args.workloads)
    print("\n".join(summary(save(args.out, rows, peaks)["rows"])))


if __name__ == "__main__":
    main()
