"""The ways to compute a convolution, layer by layer: which is chosen, which is the fastest, and the peak.

    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py
    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py --mxnet   # beside MXNet 1.9.1 with oneDNN

The layers are those of networks for pictures of 224 by 224, one picture at a time; after them those of
dilated networks and of groups, and the last ones those of small networks. Figures are GFLOP/s of the fastest
of several runs, of the convolution as defined: Winograd's way does a quarter of the products, and taps that
see only zeros are left out, so that both may pass the processor's peak. The peak is that of a product of
matrices in the first cache. Weights, and what a way keeps of them, are others in each run as far as the
caches hold them, as in a network that is larger than these; MXNet keeps one, which is packed already. Its
process waits while a layer is timed here, and the other way round; verify/peers.py sets it up.
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
from machine import processor

import roiops.kernels.cpu.conv.cost as cost
from roiops.kernels.cpu.conv import convolution as conv
from roiops.kernels.cpu.product.emitter import COLUMNS, ROWS
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
]
ROUNDS = 12
#: Seconds of rest after a layer of MXNet's: its threads stay awake for a moment, and would slow ours.
REST = 0.3


@njit
def _products(left, panel, terms, out, count):
    for _ in range(count):
        product_tile(Rows(left, 0, terms), 1, panel, 0, terms, Rows(out, 0, COLUMNS))


def peak() -> float:
    """GFLOP/s of a tile of a matrix product that stays in the first cache."""
    terms, count = 96, 2000
    left, panel, out = (aligned_zeros(n) for n in (ROWS * terms, terms * COLUMNS, ROWS * COLUMNS))
    _products(left, panel, terms, out, 1)
    seconds = min(timed(_products, left, panel, terms, out, count) for _ in range(10))
    return 2 * ROWS * COLUMNS * terms * count / seconds / 1e9


def timed(call, *args) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def speeds(channels, size, filters, kernel, stride, dilate=1, groups=1) -> tuple[str, dict]:
    """The name of the chosen way, and the GFLOP/s of each."""
    rng = np.random.default_rng(0)
    pad = dilate * (kernel // 2)
    out_size = (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1
    shape = filters, channels // groups, kernel, kernel
    data = rng.standard_normal((1, channels, size, size), dtype=np.float32)
    # Winograd's way keeps 4 numbers for each weight.
    count = min(ROUNDS, 2 + 2 * cost.LAST_CACHE // (16 * math.prod(shape)))
    weights = [rng.standard_normal(shape, dtype=np.float32) for _ in range(count)]
    out = np.empty((1, filters, out_size, out_size), np.float32)
    window = (kernel,) * 2, (stride,) * 2, (dilate,) * 2, (pad,) * 2
    ways = [(conv.ByFilters, *window, groups)]
    ways.append((conv.Pointwise, window[1], groups) if kernel == 1 else (conv.Shifted, *window, groups))
    if (kernel, stride, dilate) == (3, 1, 1):
        ways.append((conv.Winograd, window[3], groups))
    elif (kernel, stride) == (3, 1):
        ways.append((conv.Dilated, *window[2:], groups))
        if groups == 1:
            ways.append((conv.ByTaps, window[0], *window[2:]))
    scale, shift = np.ones((2, filters + 2 * COLUMNS), np.float32)
    found = {}
    for make, *layout in ways:
        pairs = [(make(*layout), weight) for weight in weights]
        seconds = []
        for turn in range(1 + -(-ROUNDS // count)):
            for way, weight in pairs:
                took = timed(way, data, weight, scale, shift, conv.activation(), None, out)
                seconds += [took] if turn else []
        found[make.__name__] = 2 * out.size * weights[0][0].size / min(seconds) / 1e9
    whole = tuple((0 if i == 3 else 1, *values) for i, values in enumerate(window))
    chosen = conv.Forward(whole, groups)._choose(
        (1, channels, 1, size, size),
        (*shape[:2], 1, kernel, kernel),
        (1, filters, 1, out_size, out_size),
    )
    return type(chosen).__name__, found


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
    ask = peer() if parser.parse_args().mxnet else None
    print(f"{processor()}, {os.environ.get('NUMBA_NUM_THREADS', os.cpu_count())} threads")
    print(f"peak of one thread {peak():.0f} GFLOP/s; caches of {cost.LAST_CACHE >> 20} MiB and less")
    more = ("oneDNN", "chosen by oneDNN") if ask else ()
    print("| " + " | ".join(("layer", "chosen", "GFLOP/s of each way", "chosen by fastest", *more)) + " |")
    print("|---|---|---|" + "---:|" * (1 + len(more)))
    for layer in LAYERS:
        chosen, found = speeds(*layer)
        each = ", ".join(f"{name} {speed:.0f}" for name, speed in found.items())
        cells = [str(layer), chosen, each, f"{found[chosen] / max(found.values()):.2f}"]
        if ask:
            theirs = ask(layer)
            cells += [f"{theirs:.0f}", f"{found[chosen] / theirs:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
