"""Where the memory of results begins."""

import numpy as np
import pytest

from roiops.kernels.memory import empty
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
