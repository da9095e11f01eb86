"""Sharing memory with PyTorch tensors on the CPU, where PyTorch is installed."""

import numpy as np
import pytest

from roiops import nd
from roiops.errors import DTypeError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_tensor_and_ndarray_share_memory():
    tensor = torch.zeros(2, 3)
    array = nd.from_dlpack(tensor)
    array[0, 0] = 7
    tensor[1, 2] = 8
    assert array.asnumpy().tolist() == tensor.tolist() == [[7, 0, 0], [0, 0, 8]]
    back = torch.from_dlpack(array)
    back[0, 1] = 9
    assert array[0, 1].asscalar() == 9
    old = torch.utils.dlpack.from_dlpack(array.to_dlpack_for_read())
    assert old.data_ptr() == tensor.data_ptr()


def test_capsules_are_writable():
    tensor = torch.zeros(2)
    nd.from_dlpack(torch.utils.dlpack.to_dlpack(tensor))[:] = 3
    assert tensor.tolist() == [3, 3]


def test_transposed_tensor_is_seen_without_copying():
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    array = nd.from_dlpack(tensor.T)
    array[0, 1] = -1
    assert tensor[1, 0] == -1
    assert array.asnumpy().tolist() == tensor.T.tolist()


def test_operators_take_tensors():
    result = nd.exp(torch.zeros(2, dtype=torch.float64))
    assert (result.dtype, result.asnumpy().tolist()) == (np.float64, [1, 1])
    assert (nd.ones((2,)) + torch.ones(2)).asnumpy().tolist() == [2, 2]


def test_bfloat16_is_refused_by_name():
    with pytest.raises(DTypeError, match="from_dlpack: NumPy cannot take the array"):
        nd.from_dlpack(torch.zeros(2, dtype=torch.bfloat16))
