"""Scratch that all kernels of a Python thread share."""

import threading

import numpy as np

from roiops.kernels.cpu.scratch import Scratch


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
