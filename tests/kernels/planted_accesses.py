"""Kernels that load and store beyond arrays. In checked mode each says so; run by ``test_checked.py``."""

import numpy as np

from roiops.kernels.cpu import vector
from roiops.kernels.jit import Calls, inner, njit, num_threads, parallel
from roiops.kernels.shares import within

ONE = np.float32(1)


@inner
def part(array, at):
    return vector.load(array, at)


@njit
def load(array, at):
    vector.store(array, 0, part(vector.pointer_to(array), at))


@njit
def store(array, at):
    vector.store(array, at, vector.splat(ONE))


@njit
def load_some(array, at, count):
    vector.store(array, 0, vector.load_some(array, at, count))


@njit
def store_some(array, at, count):
    vector.store_some(array, at, vector.splat(ONE), count)


@njit
def stream(array, at):
    vector.stream(array, at, vector.splat(ONE))


@njit
def transpose(source, at, rows, target, to):
    vector.transpose_block(source, at, 16, rows, target, to, 16)


@njit
def prefetch(array, at):
    vector.prefetch_to_read(array, at, 1 << 20)


@parallel(makes_arrays=False)
def shared(share, array, count):
    for i in within(share, count):
        vector.store(array, 16 * i, vector.splat(ONE))


def attempts():
    """Calls that are right, and calls with what their errors must end with."""
    array, line = np.zeros(40, np.float32), vector.aligned_zeros(64)
    block, turned = np.zeros(256, np.float32), np.zeros(256, np.float32)
    for call in (
        (load, array, 24),
        (store, array, 24),
        (load_some, array, 35, 5),
        (load_some, array, 100, 0),
        (load_some, array, 24, 99),  # sixteen at most
        (store_some, array, 39, 1),
        (store_some, array, -7, -1),
        (stream, line, 48),
        (transpose, block, 0, 16, turned, 0),
        (transpose, block, 240, 1, turned, 0),
        (prefetch, array, -1000),
        (shared, block, 16),
    ):
        yield call, None
    for call, error in (
        ((load, array, 25), "16 from index 25 on, of an array of 40"),
        ((load, array, -1), "16 from index -1 on, of an array of 40"),
        ((store, array, 25), "16 from index 25 on, of an array of 40"),
        ((load_some, array, 36, 5), "5 from index 36 on, of an array of 40"),
        ((load_some, array, 30, 99), "16 from index 30 on, of an array of 40"),
        ((store_some, array, 40, 1), "1 from index 40 on, of an array of 40"),
        ((stream, line, 64), "16 from index 64 on, of an array of 64"),
        ((stream, line, 4), "index 4 is not at a multiple of 64 bytes"),
        ((transpose, block, 1, 16, turned, 0), "256 from index 1 on, of an array of 256"),
        ((transpose, block, 0, 0, turned, 0), "16 from index -16 on, of an array of 256"),
        ((transpose, block, 0, 16, turned, 16), "256 from index 16 on, of an array of 256"),
    ):
        yield call, error
    for threads in 1, 2, 3:
        for place in 17, 40:
            yield (shared.by(threads), block, place), "16 from index 256 on, of an array of 256"
            repeated = Calls().repeated([(shared, threads, block, place)])
            yield (repeated,), "16 from index 256 on, of an array of 256"


def main():
    num_threads()  # starts the threads
    for (function, *arguments), wanted in attempts():
        try:
            function(*arguments)
            said = None
        except (IndexError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
        name = getattr(getattr(function, "py_func", function), "__name__", "shared")
        if said is None or wanted is None:
            assert said is wanted, (name, arguments, said)
        else:
            assert said.endswith(": " + wanted), (name, arguments, said)
            print(said)


if __name__ == "__main__":
    main()
