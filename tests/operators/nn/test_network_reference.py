"""Each way to compute a network's heavy operators against its definition in plain loops."""

import numpy as np
import pytest
import reference

import roiops as mx


def random(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "params"),
    [
        (5, 7, (1, 1), {}),
        (5, 7, (1, 1), {"stride": (2, 2)}),
        (6, 9, (3, 3), {"pad": (1, 1)}),
        (4, 6, (3, 2), {"stride": (2, 1), "pad": (1, 0), "dilate": (1, 2)}),
        (6, 4, (3, 3), {"num_group": 2, "pad": (1, 1)}),
        (6, 6, (3, 3), {"num_group": 6, "pad": (1, 1)}),
        (6, 6, (5, 5), {"num_group": 6, "pad": (2, 2), "stride": (2, 2)}),
    ],
)
def test_convolution(channels, filters, kernel, params, dtype):
    groups = params.get("num_group", 1)
    data, weight = random(2, channels, 9, 11, dtype=dtype), random(filters, channels // groups, *kernel)
    given = {key: value for key, value in params.items() if key != "num_group"}
    expected = reference.convolution(data, weight.astype(dtype), **given, groups=groups)
    found = mx.nd.Convolution(
        data, weight.astype(dtype), kernel=kernel, num_filter=filters, no_bias=True, **params
    )
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["max", "avg"])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [((2, 2), (2, 2), (0, 0)), ((3, 3), (2, 1), (1, 1))])
def test_pooling(kernel, stride, pad, mode):
    data = random(2, 5, 9, 10)
    found = mx.nd.Pooling(data, kernel=kernel, stride=stride, pad=pad, pool_type=mode)
    expected = reference.pooling(data, kernel, stride, pad, mode)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [2, 40])
def test_fully_connected(rows):
    data, weight = random(rows, 33), random(20, 33)
    found = mx.nd.FullyConnected(data, weight, num_hidden=20, no_bias=True)
    np.testing.assert_allclose(found.asnumpy(), reference.product(data, weight.T), rtol=1e-5, atol=1e-5)


def test_softmax():
    data = 10 * random(4, 21)
    np.testing.assert_allclose(mx.nd.softmax(data).asnumpy(), reference.softmax(data), rtol=1e-5, atol=1e-7)
