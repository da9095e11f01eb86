"""The ways to compute a convolution, layer by layer: which is chosen, which is the fastest, and the peak.

    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py
    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py --mxnet   # beside MXNet 1.9.1 with oneDNN
    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py --gradients  # transposed ones, gradients of weights
    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py --choices # what would be chosen elsewhere; no timing
    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py --record  # layers and gradients, kept for docs

The layers are those of networks for pictures of 224 by 224, one picture at a time; after them those of
dilated networks and of groups, those of small networks, and at last those on means of whole maps. Figures
are GFLOP/s of the fastest of several runs, of the convolution as defined: Winograd's way does a quarter
of the products, and taps that see only zeros are left out, so that both may pass the processor's peak.
With one thread, time is that of the processor, so that a busy machine disturbs less. The peak is that of
a product of matrices in the first cache. Weights, and what a way keeps of them, are others in each run as
far as the caches hold them, as in a network that is larger than these; MXNet keeps one, which is packed
already. Its process waits while a layer is timed here, and the other way round; verify/peers.py sets it
up.

At the end, for each way: in how many layers it is the fastest, and how much longer they take without it. With
``--gradients``, the same of transposed convolutions with steps and of the gradients of weights, in turn. What
``--record`` keeps, report.py shows in docs/performance.md.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import ways
from machine import processor

from roiops.kernels.cpu.conv import convolution, weight_winograd
from roiops.kernels.cpu.conv import weight as weight_sums
from roiops.kernels.cpu.conv.phases import Phases
from roiops.kernels.cpu.conv.way import ROOM, Arrays, Layer
from roiops.kernels.cpu.product.emitter import COLUMNS, ROWS, VECTORS, activation
from roiops.kernels.cpu.product.machine import HERE, Machine
from roiops.kernels.cpu.product.tiles import Rows, product_tile
from roiops.kernels.cpu.vector import aligned_zeros
from roiops.kernels.jit import njit

ROOT = Path(__file__).resolve().parent.parent
#: channels, size, filters, kernel, stride; and dilation and groups, if these are not 1
LAYERS = [
    (3, 224, 64, 7, 2),
    (3, 224, 32, 3, 2),
    (64, 56, 64, 3, 1),
    (128, 28, 128, 3, 1),
    (256, 14, 256, 3, 1),
    (512, 7, 512, 3, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 32, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (256, 14, 1024, 1, 1),
    (512, 14, 512, 1, 1),
    (512, 7, 2048, 1, 1),
    (512, 28, 1024, 1, 2),
    (32, 112, 64, 1, 1),
    (96, 14, 576, 1, 1),
    (192, 17, 192, 3, 1),
    (256, 30, 256, 3, 1, 2),
    (512, 30, 512, 3, 1, 4),
    (2048, 30, 256, 3, 1, 12),
    (2048, 30, 256, 3, 1, 24),
    (1024, 32, 1024, 3, 1, 1, 16),
    (2048, 32, 2048, 3, 2, 1, 16),
    (128, 56, 128, 3, 1, 1, 32),
    (256, 28, 256, 3, 1, 1, 32),
    (256, 56, 256, 3, 2, 1, 32),
    (512, 14, 512, 3, 1, 1, 32),
    (16, 32, 16, 3, 1),
    (32, 16, 32, 3, 1),
    (64, 8, 64, 3, 1),
    (128, 14, 32, 3, 1),
    (128, 7, 32, 3, 1),
    (64, 112, 64, 3, 2),
    (16, 112, 32, 3, 2),
    (3, 224, 16, 3, 2),
    (32, 28, 32, 3, 1),
    (18, 56, 18, 3, 1),
    (256, 1, 16, 1, 1),
    (2048, 1, 512, 1, 1),
    (1024, 1, 1000, 1, 1),
]
#: Transposed convolutions: batch, filters of the data, their size, channels of the results, kernel, stride.
TRANSPOSED = [
    (1, 2048, 8, 256, 4, 2),
    (1, 256, 16, 256, 4, 2),
    (1, 256, 32, 256, 4, 2),
    (1, 512, 7, 512, 3, 2),
    (1, 128, 28, 128, 3, 2),
    (1, 512, 28, 256, 1, 2),
    (8, 512, 7, 512, 3, 2),
    (8, 256, 14, 256, 3, 2),
    (8, 512, 28, 256, 1, 2),
]
#: Gradients of weights with steps of 1: batch, channels, size, filters, kernel, dilation.
WEIGHTS = [
    (1, 64, 56, 64, 3, 1),
    (1, 256, 14, 256, 3, 1),
    (1, 64, 14, 64, 5, 1),
    (1, 256, 30, 256, 3, 2),
    (8, 128, 28, 128, 3, 1),
    (8, 512, 7, 512, 3, 1),
    (8, 64, 8, 64, 3, 1),
    (8, 32, 28, 64, 5, 1),
]
ROUNDS = 12
#: Seconds of rest after a layer of MXNet's: its threads stay awake for a moment, and would slow ours.
REST = 0.3


@njit
def _products(left, panel, terms, out, count):
    for _ in range(count):
        product_tile(VECTORS, Rows(left, 0, terms), 1, panel, 0, terms, Rows(out, 0, COLUMNS))


def peak() -> float:
    """GFLOP/s of a tile of a matrix product that stays in the first cache."""
    terms, count = 96, 2000
    left, panel, out = (aligned_zeros(n) for n in (ROWS * terms, terms * COLUMNS, ROWS * COLUMNS))
    _products(left, panel, terms, out, 1)
    seconds = min(timed(_products, left, panel, terms, out, count) for _ in range(10))
    return 2 * ROWS * COLUMNS * terms * count / seconds / 1e9


_CLOCK = time.thread_time if os.environ.get("NUMBA_NUM_THREADS") == "1" else time.perf_counter
#: Machines for ``--choices``.
MACHINES = {
    "AVX-512, 1 MiB": Machine(16, 32, 1 << 20, 32 << 20, units=1),
    "AVX-512, 2 MiB": Machine(16, 32, 2 << 20, 64 << 20),
    "AVX2, 512 KiB": Machine(8, 16, 512 << 10, 32 << 20),
    "AVX2, 256 KiB": Machine(8, 16, 256 << 10, 8 << 20),
    "Arm, 1 MiB": Machine(4, 32, 1 << 20, 32 << 20),
}


def timed(call, *args) -> float:
    start = _CLOCK()
    call(*args)
    return _CLOCK() - start


def layer_of(channels, size, filters, kernel, stride, dilate=1, groups=1) -> Layer:
    pad = dilate * (kernel // 2)
    out = (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1
    counts = 1, channels, filters, groups
    return Layer(*counts, *((n, n) for n in (size, out, kernel, stride, dilate, pad)))


def speeds(layer: Layer) -> dict:
    """The GFLOP/s of each way that suits the layer."""
    rng = np.random.default_rng(0)
    shape = layer.filters, layer.channels // layer.groups, *layer.kernel
    data = rng.standard_normal((1, layer.channels, *layer.in_size), dtype=np.float32)
    # Winograd's way keeps 4 numbers for each weight.
    count = min(ROUNDS, 2 + 2 * HERE.last_cache // (16 * math.prod(shape)))
    weights = [rng.standard_normal(shape, dtype=np.float32) for _ in range(count)]
    out = np.empty((1, layer.filters, *layer.out_size), np.float32)
    scale, shift = np.ones((2, layer.filters + ROOM), np.float32)
    found = {}
    for way in convolution.WAYS:
        if not way.suits(layer, HERE):
            continue
        calls = []
        for weight in weights:
            made = way(layer)
            calls.append(made.bind(Arrays(data, weight, scale, shift, activation(), None, out)))
        seconds = []
        for turn in range(1 + -(-ROUNDS // count)):
            for call in calls:
                took = timed(call)
                seconds += [took] if turn else []
        found[way.name] = 2 * out.size * layer.terms / min(seconds) / 1e9
    return found


def in_turn(calls: dict) -> dict:
    """Calls per second of each, the fastest of several rounds."""
    seconds = dict.fromkeys(calls, math.inf)
    for turn in range(1 + ROUNDS // 2):
        for name, call in calls.items():
            took = timed(call)
            seconds[name] = min(seconds[name], took) if turn else math.inf
    return {name: 1 / each for name, each in seconds.items()}


def transposed(batch, filters, size, channels, kernel, stride) -> dict:
    """The speeds of the ways of a transposed convolution; the weight of ``phases`` is sorted in each call."""
    rng, pad = np.random.default_rng(0), (kernel - 1) // 2
    window = (1, kernel, kernel), (1, stride, stride), (1, 1, 1), (0, pad, pad)
    data = rng.standard_normal((batch, filters, 1, size, size), dtype=np.float32)
    taps = rng.standard_normal((filters, channels, 1, kernel, kernel), dtype=np.float32)
    out = np.empty((batch, channels, 1, size * stride, size * stride), np.float32)
    by_phases = Phases(window, lambda part: convolution.Forward(part, 1))
    return in_turn(
        {
            "phases": lambda: by_phases(data, taps, None, out),
            "product": lambda: convolution.backward_data(data, taps, window, 1, out),
        }
    )


def of_weight(batch, channels, size, filters, kernel, dilate) -> dict:
    """The speeds of the ways of the gradient of a weight."""
    rng, pad = np.random.default_rng(0), dilate * (kernel // 2)
    data = rng.standard_normal((batch, channels, size, size), dtype=np.float32)
    head = rng.standard_normal((batch, filters, size, size), dtype=np.float32)
    out = np.empty((filters, channels, kernel, kernel), np.float32)
    two = tuple((n, n) for n in (kernel, dilate, pad))
    window = (1, kernel, kernel), (1, 1, 1), (1, dilate, dilate), (0, pad, pad)
    calls = {
        "steps_of_one": lambda: weight_sums.steps_of_one(head, data, *two, out),
        "product": lambda: convolution.weight_unrolled(
            *(a[:, :, None] for a in (head, data)), window, 1, out[:, :, None]
        ),
    }
    if (kernel, dilate) == (3, 1):
        calls["winograd"] = lambda: weight_winograd.three_by_three(head, data, two[2], out)
    return in_turn(calls)


def gradients() -> dict:
    """Print how long each way takes, and what is lost without it."""
    found = {}
    for title, layers, speeds_of in (
        ("transposed convolution", TRANSPOSED, transposed),
        ("gradient of a weight", WEIGHTS, of_weight),
    ):
        print(f"| {title} | us of each way |\n|---|---|")
        rows = found[title] = []
        for each in layers:
            rows.append(speeds_of(*each))
            shown = ", ".join(f"{name} {1e6 / speed:.0f}" for name, speed in rows[-1].items())
            print(f"| {each} | {shown} |", flush=True)
        print("\n" + ways.table({title: rows}) + "\n")
    return found


def choices() -> str:
    """What is chosen for each layer on several machines."""
    lines = ["| layer | " + " | ".join(MACHINES) + " |", "|---|" + "---|" * len(MACHINES)]
    for each in LAYERS:
        ways = [convolution.choose(layer_of(*each), machine).name for machine in MACHINES.values()]
        lines.append("| " + " | ".join((str(each), *ways)) + " |")
    return "\n".join(lines)


def peer():
    """MXNet's process, which answers a line with a layer by its GFLOP/s."""
    sys.path.insert(0, str(ROOT / "verify"))
    import peers

    threads = os.environ.get("NUMBA_NUM_THREADS", str(os.cpu_count()))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [str(peers.interpreter("gluoncv")), "-W", "ignore", str(ROOT / "benchmarks" / "convolution_side.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, "OMP_NUM_THREADS": threads},
    )

    def ask(layer) -> float:
        process.stdin.write(json.dumps(layer) + "\n")
        process.stdin.flush()
        speed = float(process.stdout.readline())
        time.sleep(REST)
        return speed

    return ask


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", action="store_true", help="also the speed of MXNet's convolution")
    parser.add_argument("--choices", action="store_true", help="only what is chosen, on several machines")
    parser.add_argument("--record", action="store_true", help="layers and gradients, kept for the docs")
    parser.add_argument("--gradients", action="store_true", help="transposed ones and gradients of weights")
    options = parser.parse_args()
    if options.choices:
        print(choices())
        return
    if options.gradients:
        gradients()
        return
    rows = forward(options.mxnet)
    if options.record:
        ways.record(HERE.lanes, {"convolution": rows, **gradients()})


def forward(mxnet: bool) -> list:
    """Print the speed of each way in each layer; with MXNet's beside it, if asked for."""
    ask = peer() if mxnet else None
    print(f"{processor()}, {os.environ.get('NUMBA_NUM_THREADS', os.cpu_count())} threads")
    print(f"peak of one thread {peak():.0f} GFLOP/s; {HERE}")
    more = ("oneDNN", "chosen by oneDNN") if ask else ()
    print("| " + " | ".join(("layer", "chosen", "GFLOP/s of each way", "chosen by fastest", *more)) + " |")
    print("|---|---|---|" + "---:|" * (1 + len(more)))
    rows = []
    for each in LAYERS:
        layer = layer_of(*each)
        chosen, found = convolution.choose(layer).name, speeds(layer)
        rows.append(found)
        shown = ", ".join(f"{name} {speed:.0f}" for name, speed in found.items())
        cells = [str(each), chosen, shown, f"{found[chosen] / max(found.values()):.2f}"]
        if ask:
            theirs = ask(each)
            cells += [f"{theirs:.0f}", f"{found[chosen] / theirs:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    print()
    print(ways.table({"convolution": rows}))
    return rows


if __name__ == "__main__":
    main()
