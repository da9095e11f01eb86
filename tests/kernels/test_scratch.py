"""Scratch that all kernels of a Python thread share."""

import threading

import numpy as np

from roiops.kernels.cpu.scratch import Repeated, Scratch
from roiops.kernels.jit import Calls, num_threads, parallel, use_threads
from roiops.kernels.shares import within


def test_all_get_the_same_memory_and_a_larger_piece_when_they_need_it():
    small, large = Scratch((3, 5), (7,)), Scratch((6 << 20,))
    one, two = small()
    assert (one.shape, two.shape) == ((3, 5), (7,))
    assert one.ctypes.data % 64 == two.ctypes.data % 64 == 0
    assert not np.shares_memory(one, two)
    (three,) = large()
    assert np.shares_memory(small()[0], three)
    assert Scratch((1,))()[0].ctypes.data == three.ctypes.data


def test_python_threads_have_memory_of_their_own():
    scratch, found = Scratch((4,)), []
    thread = threading.Thread(target=lambda: found.append(scratch()[0]))
    mine = scratch()[0]
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, found[0])


@parallel
def _fill(share, workers, block, number, out):
    for worker in within(share, workers):
        block[worker] = number
        out[worker] = block[worker] + workers


def test_a_repeated_call_is_prepared_again_for_other_threads_and_other_memory():
    scratch, out, asked = Scratch((4,)), np.zeros(4, np.float32), []

    def prepare(threads):
        asked.append(threads)
        return [(_fill, threads, threads, scratch()[0], np.float32(10), out)]

    call = Repeated(Calls(), np.inf, prepare)
    with use_threads(1):
        call()
        call()
        assert asked == [1]
        Scratch((3 * scratch()[0].base.size,))()  # a larger piece of memory in place of the one before
        call()
        assert asked == [1, 1]
        assert out[0] == 11
    with use_threads(2):
        call()
        assert out[0] == 10 + num_threads()  # 11 on a machine with one processor
        assert asked[-1] == num_threads()
    before = len(asked)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert len(asked) == before + 1
