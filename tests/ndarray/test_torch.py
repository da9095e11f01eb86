"""Sharing memory with PyTorch tensors on the CPU, where PyTorch is installed."""

import pytest

from roiops import nd
from roiops.errors import DataError, DTypeError

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


def test_operators_give_tensors_for_tensors():
    result = nd.exp(torch.zeros(2, dtype=torch.float64))
    assert (type(result), result.dtype, result.tolist()) == (torch.Tensor, torch.float64, [1, 1])
    assert (nd.ones((2,)) + torch.ones(2)).asnumpy().tolist() == [2, 2]
    target = torch.zeros(2)
    assert nd.exp(torch.zeros(2), out=target) is target
    assert target.tolist() == [1, 1]


def test_a_tensor_that_requires_a_gradient_must_be_detached():
    with pytest.raises(DataError, match=r"exp: data requires a gradient; detach\(\) it"):
        nd.exp(torch.zeros(2, requires_grad=True))
    data, rois = torch.zeros(1, 1, 4, 4, requires_grad=True), torch.zeros(1, 5)
    for name, function in (("ROIAlign", "roi_align"), ("PSROIAlign", r"ps_roi_align")):
        need = rf"{name}: data requires a gradient; call roiops\.torch\.{function}, which gives it one"
        with pytest.raises(DataError, match=need):
            getattr(nd, name)(data, rois, pooled_size=(2, 2), spatial_scale=1)
    with pytest.raises(DataError, match=r"call roiops\.torch\.op\.contrib\.RROIAlign"):
        nd.contrib.RROIAlign(data, torch.zeros(1, 6), pooled_size=(2, 2), spatial_scale=1)


def test_bfloat16_is_refused_by_name():
    with pytest.raises(DTypeError, match="from_dlpack: NumPy cannot take the array"):
        nd.from_dlpack(torch.zeros(2, dtype=torch.bfloat16))
    with pytest.raises(
        DTypeError, match="exp: data is bfloat16, which NumPy has not; give float32 or float16"
    ):
        nd.exp(torch.zeros(2, dtype=torch.bfloat16))
