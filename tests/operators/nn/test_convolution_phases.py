"""Transposed convolutions with steps, as one convolution a phase or one product, against float64."""

import numpy as np
import pytest

import roiops as mx
from roiops.kernels.cpu.conv import convolution as conv
from roiops.kernels.jit import use_threads

RNG = np.random.default_rng(8)

#: batch, filters, height, width, channels, kernel, stride, dilate, pad, and what the result is longer by
SHAPES = [
    (1, 16, 8, 6, 24, (4, 4), (2, 2), (1, 1), (1, 1), (0, 0)),
    (2, 7, 5, 9, 5, (3, 3), (2, 2), (1, 1), (1, 1), (1, 0)),
    (2, 6, 4, 5, 3, (1, 1), (2, 2), (1, 1), (0, 0), (1, 1)),
    (1, 5, 6, 7, 9, (5, 2), (3, 2), (1, 2), (2, 0), (2, 1)),
    (1, 4, 3, 8, 6, (3, 4), (1, 3), (1, 2), (2, 3), (0, 2)),
    (1, 3, 9, 12, 8, (3, 3), (1, 1), (1, 1), (3, 4), (0, 0)),
    (2, 3, 4, 4, 2, (2, 2), (4, 4), (3, 2), (0, 1), (3, 0)),
    # all phases at once
    (1, 64, 32, 32, 32, (4, 4), (2, 2), (1, 1), (1, 1), (0, 0)),
    (2, 40, 24, 20, 24, (4, 4), (2, 2), (1, 1), (1, 1), (1, 0)),
    # few pixels, many filters
    (1, 300, 4, 3, 24, (4, 4), (2, 2), (1, 1), (1, 1), (0, 0)),
    (2, 390, 3, 5, 16, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    (1, 2200, 2, 30, 8, (5, 3), (1, 3), (2, 1), (2, 1), (0, 2)),
]


def windows(kernel, stride, dilate, pad):
    return (1, *kernel), (1, *stride), (1, *dilate), (0, *pad)


def case(batch, filters, height, width, channels, kernel, stride, dilate, pad, longer):
    """Head, weight, window and the gradient of the data, in float64 by the general way."""
    sizes = [
        (n - 1) * s + d * (k - 1) + 1 - 2 * p + more
        for n, s, d, k, p, more in zip((height, width), stride, dilate, kernel, pad, longer, strict=True)
    ]
    head = RNG.standard_normal((batch, filters, 1, height, width))
    weight = RNG.standard_normal((filters, channels, 1, *kernel))
    out = np.empty((batch, channels, 1, *sizes))
    window = windows(kernel, stride, dilate, pad)
    conv.backward_data(head, weight, window, 1, out)
    return np.float32(head), np.float32(weight), window, out


@pytest.mark.parametrize("shape", SHAPES)
def test_data_gradient(shape):
    head, weight, window, expected = case(*shape)
    backward = conv.BackwardData(window, 1)
    out = np.full(expected.shape, np.nan, np.float32)
    limit = 2e-6 * max(1, np.abs(expected).max()) * 2
    for steady in (False, True, True):
        out[...] = np.nan
        backward(head, weight, out, steady=steady)
        np.testing.assert_allclose(out, expected, rtol=0, atol=limit)
    weight *= -2  # in place: what was kept of it is not right any more
    backward(head, weight, out, steady=True)
    np.testing.assert_allclose(out, -2 * expected, rtol=0, atol=2 * limit)
    bits = out.copy()
    with use_threads(1):
        backward(head, weight, out, steady=True)
    np.testing.assert_array_equal(out, bits)


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)},
        {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "num_filter": 32, "data": (1, 64, 32, 32)},
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "adj": (1, 1), "no_bias": False},
        {"kernel": (2, 2), "stride": (3, 3), "target_shape": (16, 14)},
        {"kernel": (4,), "stride": (2,), "pad": (1,)},
        {"kernel": (4, 4), "stride": (2, 2), "num_group": 2},
    ],
)
def test_what_follows_a_deconvolution_is_done_on_the_way(params):
    params = {"num_filter": 8, "data": (2, 6, *(6, 5)[: len(params["kernel"])]), **params}
    shape = params.pop("data")
    net = mx.sym.Deconvolution(mx.sym.var("data"), name="up", **params)
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="norm")
    net = mx.sym.Activation(net, act_type="relu")
    executor = net.simple_bind(grad_req="null", data=shape)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        low = 0.5 if "var" in name else -1
        array[:] = RNG.uniform(low, 1, array.shape)
    found = executor.forward()[0].asnumpy().copy()
    executor.set_monitor_callback(lambda *_: None)  # every operator by itself
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), found, rtol=0, atol=1e-5)
