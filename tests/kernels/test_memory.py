"""Where the memory of results begins."""

import numpy as np
import pytest

from roiops.kernels.memory import _free, empty
from roiops.ndarray import empty as nd_empty


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(1 << 20,), (3, 512, 700), (1, 1, 0), (), (5,)])
def test_shape_and_dtype_are_those_asked_for(shape, dtype):
    array = empty(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_large_results_begin_at_a_cache_line():
    assert all(empty((n, 1024), np.float32).ctypes.data % 64 == 0 for n in range(256, 270))
    assert nd_empty((512, 1024)).data.ctypes.data % 64 == 0


def test_memory_is_taken_again_once_the_last_array_over_it_is_gone(monkeypatch):
    monkeypatch.setattr(_free, "_heaps", {})  # what other tests left may fill it: all would be let go at once
    monkeypatch.setattr(_free, "_size", 0)
    arrays = [empty((123, 457), np.float32) for _ in range(3)]
    places = sorted(each.ctypes.data for each in arrays)
    view = arrays.pop(0)[5:]
    held = view.ctypes.data - 5 * 457 * 4
    view[:] = 7
    del arrays
    again = [empty((123, 457), np.float32) for _ in range(2)]
    assert [each.ctypes.data for each in again] == [place for place in places if place != held]
    again[0][:] = again[1][:] = 0
    assert (view == 7).all()
    del view
    assert empty((457, 123), np.float32).ctypes.data == held  # of any shape and dtype
    assert empty((123, 457 * 2), np.int16).ctypes.data == held


def test_free_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(_free, "most", 1 << 20)
    for n in range(40):
        empty((n + 1, 1 << 14), np.float32)
        assert sum(size * len(heap) for size, heap in _free._heaps.items()) == _free._size <= 1 << 20
