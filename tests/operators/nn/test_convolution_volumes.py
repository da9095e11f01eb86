"""Convolutions of volumes in float32 beside the general way in float64."""

import numpy as np
import pytest

import roiops as mx
from roiops.kernels.cpu.conv import volumes

CASES = [
    # batch, channels, filters, size, kernel, stride, dilate, pad
    (2, 3, 5, (6, 9, 11), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (1, 4, 6, (7, 8, 8), (5, 1, 2), (2, 1, 2), (1, 1, 1), (2, 0, 1)),
    (1, 17, 18, (5, 7, 6), (3, 3, 3), (1, 2, 2), (2, 1, 1), (2, 1, 1)),
    (2, 2, 3, (4, 5, 5), (1, 3, 3), (3, 1, 1), (1, 1, 1), (0, 1, 1)),
    (1, 2, 3, (2, 6, 6), (3, 1, 1), (1, 1, 1), (3, 1, 1), (3, 0, 0)),
    (1, 1, 2, (16, 3, 3), (8, 1, 1), (8, 1, 1), (1, 1, 1), (0, 0, 0)),
]


def run(operator, params, arrays, head_seed, dtype):
    symbol = getattr(mx.sym, operator)(mx.sym.var("data"), mx.sym.var("weight"), mx.sym.var("bias"), **params)
    arrays = {name: mx.nd.array(array, dtype=dtype) for name, array in arrays.items()}
    grads = {name: mx.nd.zeros(array.shape, dtype=dtype) for name, array in arrays.items()}
    executor = symbol.bind(mx.cpu(), arrays, grads)
    out = executor.forward(is_train=True)[0]
    head = np.random.default_rng(head_seed).standard_normal(out.shape)
    executor.backward(mx.nd.array(head, dtype=dtype))
    return [out.asnumpy(), *(grads[name].asnumpy() for name in ("data", "weight", "bias"))]


@pytest.mark.parametrize("operator", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("at_once", [volumes.AT_ONCE, 1])
def test_volumes(operator, case, at_once, monkeypatch):
    batch, channels, filters, size, kernel, stride, dilate, pad = case
    monkeypatch.setattr(volumes, "AT_ONCE", at_once)
    params = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad, "num_filter": filters}
    rng = np.random.default_rng(0)
    ends = (filters, channels) if operator == "Convolution" else (channels, filters)
    arrays = {
        "data": rng.standard_normal((batch, channels, *size)),
        "weight": rng.standard_normal((*ends, *kernel)),
        "bias": rng.standard_normal(filters),
    }
    params["no_bias"] = False
    found, wanted = (run(operator, params, arrays, 1, dtype) for dtype in ("float32", "float64"))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)
