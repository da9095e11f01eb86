"""The ways to compute a convolution, layer by layer: which is chosen, which is the fastest, and the peak.

    NUMBA_NUM_THREADS=1 python benchmarks/convolution.py

The layers are those of networks for pictures of 224 by 224, one picture at a time, and the last ones those of
small networks. Figures are GFLOP/s of the fastest of several runs, of the convolution as defined: Winograd's
way does a quarter of the products, so that it may pass the processor's peak. The peak is that of a product of
matrices in the first cache. Weights are others in each run, as in a network that is larger than the caches.
"""

import os
import time

import numpy as np
from machine import processor

import roiops.kernels.cpu.network.conv_cost as cost
from roiops.kernels.cpu.network import conv
from roiops.kernels.cpu.network.blas import Rows, product_tile
from roiops.kernels.cpu.network.emitter import COLUMNS, ROWS
from roiops.kernels.cpu.vector import aligned_zeros
from roiops.kernels.jit import njit

#: channels, size, filters, kernel, stride
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
    (16, 32, 16, 3, 1),
    (32, 16, 32, 3, 1),
    (64, 8, 64, 3, 1),
    (128, 14, 32, 3, 1),
    (128, 7, 32, 3, 1),
]
ROUNDS = 12


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


def speeds(channels, size, filters, kernel, stride) -> tuple[str, dict]:
    """The name of the chosen way, and the GFLOP/s of each."""
    rng = np.random.default_rng(0)
    pad = kernel // 2
    out_size = (size + 2 * pad - kernel) // stride + 1
    shape = filters, channels, kernel, kernel
    data = rng.standard_normal((1, channels, size, size), dtype=np.float32)
    weights = [rng.standard_normal(shape, dtype=np.float32) for _ in range(ROUNDS)]
    out = np.empty((1, filters, out_size, out_size), np.float32)
    window = (kernel,) * 2, (stride,) * 2, (1, 1), (pad,) * 2
    ways = [conv.ByFilters(*window, 1)]
    ways.append(conv.Pointwise(window[1], 1) if kernel == 1 else conv.Shifted(*window, 1))
    if (kernel, stride) == (3, 1):
        ways.append(conv.Winograd(window[3]))
    scale, shift = np.ones((2, filters + 2 * COLUMNS), np.float32)
    found = {}
    for way in ways:
        # Of a steady weight the transformed filters are kept.
        some = weights[:1] if isinstance(way, conv.Winograd) else weights
        for weight in some[:2]:
            way(data, weight, scale, shift, conv.activation(), None, out)
        seconds = [
            timed(way, data, weight, scale, shift, conv.activation(), None, out)
            for weight in some * (ROUNDS // len(some))
        ]
        found[type(way).__name__] = 2 * out.size * shape[1] * kernel * kernel / min(seconds) / 1e9
    whole = tuple((0 if i == 3 else 1, *values) for i, values in enumerate(window))
    chosen = conv.Forward(whole, 1)._choose(
        (1, channels, 1, size, size),
        (*shape[:2], 1, kernel, kernel),
        (1, filters, 1, out_size, out_size),
        True,
    )
    return type(chosen).__name__, found


def main():
    print(f"{processor()}, {os.environ.get('NUMBA_NUM_THREADS', os.cpu_count())} threads")
    print(f"peak of one thread {peak():.0f} GFLOP/s; caches of {cost.LAST_CACHE >> 20} MiB and less")
    print("| channels, size, filters, kernel, step | chosen | GFLOP/s of each way | chosen by fastest |")
    print("|---|---|---|---:|")
    for layer in LAYERS:
        chosen, found = speeds(*layer)
        each = ", ".join(f"{name} {speed:.0f}" for name, speed in found.items())
        print(f"| {layer} | {chosen} | {each} | {found[chosen] / max(found.values()):.2f} |", flush=True)


if __name__ == "__main__":
    main()
