"""Kernels with one mistake each, which ``verify/gpu_host.py`` must find, and some without any."""

import math

import numba
import numpy as np
from gpu_host import Fault, HostKernel
from numba import cuda

THREADS, SMALL = 64, 63


@cuda.jit
def reverse(source, target):
    tile = cuda.shared.array(THREADS, numba.float32)
    thread = cuda.threadIdx.x
    tile[thread] = source[thread]
    cuda.syncthreads()
    target[cuda.blockIdx.x * THREADS + thread] = tile[THREADS - 1 - thread]


@cuda.jit
def without_barrier(source, target):
    tile = cuda.shared.array(THREADS, numba.float32)
    thread = cuda.threadIdx.x
    tile[thread] = source[thread]
    target[cuda.blockIdx.x * THREADS + thread] = tile[THREADS - 1 - thread]


@cuda.jit
def one_too_far(source, target):
    thread = cuda.threadIdx.x
    target[cuda.blockIdx.x * THREADS + thread] = source[thread + 1]


@cuda.jit
def small_tile(source, target):
    tile = cuda.shared.array(SMALL, numba.float32)
    thread = cuda.threadIdx.x
    tile[thread] = source[thread]
    cuda.syncthreads()
    target[cuda.blockIdx.x * THREADS + thread] = tile[thread]


@cuda.jit
def blocks_meet(source, target):
    target[cuda.threadIdx.x] = source[cuda.threadIdx.x]


@cuda.jit
def half_a_barrier(source, target):
    if cuda.threadIdx.x < THREADS // 2:
        cuda.syncthreads()
    target[cuda.blockIdx.x * THREADS + cuda.threadIdx.x] = source[cuda.threadIdx.x]


@cuda.jit
def narrow_product(source, target):
    thread = cuda.threadIdx.x
    at = np.int32(source.size // THREADS * thread)  # 64 bits until here
    target[cuda.blockIdx.x * THREADS + thread] = source[np.uint64(at)]


@cuda.jit
def not_written(source, target):
    tile = cuda.shared.array(THREADS, numba.float32)
    thread = cuda.threadIdx.x
    if thread > 0:
        tile[thread] = source[thread]
    cuda.syncthreads()
    target[cuda.blockIdx.x * THREADS + thread] = tile[thread]


@cuda.jit
def turned(source, target):
    thread = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        target[thread] = math.cos(source[thread])
    else:
        target[THREADS + thread] = math.sin(source[thread])


# kernel -> what must be said of it
FAULTS = {
    without_barrier: "a race with",
    one_too_far: "loads element 64 of source.4, which has 64",
    small_tile: "stores element 63 of _cudapy_smem",
    blocks_meet: "a race with a thread of another block",
    half_a_barrier: "and thread",
    narrow_product: "out of the array",
}


def check() -> list:
    """What was not found."""
    missed = []
    small, target = np.arange(THREADS, dtype=np.float32), np.zeros(2 * THREADS, np.float32)
    large = np.zeros((1 << 32) + THREADS, np.uint8)  # memory that nobody touches is not there

    def run(kernel, source):
        HostKernel(kernel, (numba.typeof(source), numba.typeof(target)))(2, THREADS, source, target, seed=3)

    run(reverse, small)
    if not np.array_equal(target, np.tile(small[::-1], 2)):
        missed.append("reverse: wrong numbers")
    run(not_written, small)
    if not (np.isnan(target[0]) and np.array_equal(target[1:THREADS], small[1:])):
        missed.append("not_written: what is not written is not NaN")
    for dtype in (np.float32, np.float64):  # angles so large that CUDA's tables and assembler are needed
        angles = np.geomspace(0.1, np.finfo(dtype).max / 2, THREADS, dtype=dtype)
        found = np.zeros(2 * THREADS, dtype)
        HostKernel(turned, (numba.typeof(angles), numba.typeof(found)))(2, THREADS, angles, found)
        exact = np.concatenate([np.cos(angles.astype(np.float64)), np.sin(angles.astype(np.float64))])
        if not np.allclose(found, exact, rtol=0, atol=2 * np.finfo(dtype).eps):
            missed.append(f"turned, {dtype.__name__}: at most {abs(found - exact).max()} from the sine")
    for kernel, expected in FAULTS.items():
        name = kernel.py_func.__name__
        try:
            run(kernel, large if kernel is narrow_product else small)
        except Fault as fault:
            if expected not in str(fault) or "gpu_planted.py:" not in str(fault):
                missed.append(f"{name}: {fault}")
        else:
            missed.append(f"{name}: nothing was found")
    return missed
