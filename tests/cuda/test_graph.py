"""Arrays and graphs on the (simulated) GPU."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DeviceError


def test_arrays_go_there_and_back():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = mx.nd.array(values, ctx=mx.gpu(0))
    assert there.context == mx.gpu(0)
    np.testing.assert_array_equal(there.asnumpy(), values)
    np.testing.assert_array_equal(there.as_in_context(mx.cpu()).asnumpy(), values)
    assert not mx.nd.zeros((2, 2), ctx=mx.gpu(0)).asnumpy().any()


def test_there_is_one_simulated_device():
    with pytest.raises(DeviceError, match=r"gpu\(1\): there are 1 CUDA devices, numbered from 0"):
        mx.nd.zeros((1,), ctx=mx.gpu(1))


def test_an_operator_on_arrays():
    data, rois = np.ones((1, 2, 6, 6), np.float32), np.float32([[0, 1, 1, 4, 4]])
    on_gpu = mx.nd.ROIAlign(
        mx.nd.array(data, ctx=mx.gpu(0)),
        mx.nd.array(rois, ctx=mx.gpu(0)),
        pooled_size=(2, 2),
        spatial_scale=1.0,
    )
    assert on_gpu.context == mx.gpu(0)
    np.testing.assert_array_equal(on_gpu.asnumpy(), np.ones((1, 2, 2, 2), np.float32))


def test_a_graph_forward_and_backward():
    out = mx.sym.ROIPooling(mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(2, 2), spatial_scale=0.5)
    random = np.random.default_rng(0)
    values = {
        "data": random.permutation(2 * 3 * 5 * 4).reshape(2, 3, 5, 4).astype(np.float32),
        "rois": np.float32([[0, 1, 1, 7, 8], [1, -2, 0, 3, 3]]),
    }
    head = random.standard_normal((2, 3, 2, 2)).astype(np.float32)
    found = {}
    for device in (mx.cpu(), mx.gpu(0)):
        executor = out.simple_bind(ctx=device, **{name: value.shape for name, value in values.items()})
        for name, value in values.items():
            executor.arg_dict[name][:] = value
        executor.forward(is_train=True)
        executor.backward([mx.nd.array(head, ctx=device)])
        found[device] = executor.outputs[0].asnumpy(), executor.grad_dict["data"].asnumpy()
    for one, other in zip(found[mx.cpu()], found[mx.gpu(0)], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_graph_says_what_has_no_kernel():
    out = mx.sym.exp(mx.sym.var("x"), name="growth")
    with pytest.raises(DeviceError, match=r"exp\(growth\).*no kernel for gpu\(0\); it runs on cpu"):
        out.simple_bind(ctx=mx.gpu(0), x=(2, 3))
