"""Convolution of single channels against one general convolution for each channel, both ways."""

import numpy as np
import pytest

from roiops.kernels.cpu.conv import convolution as conv
from roiops.kernels.cpu.conv import depthwise as conv_depthwise
from roiops.kernels.jit import pretend_threads, use_threads

#: batch, channels, size, filters of a channel, kernel, stride, dilate, pad; sizes about those of vectors
CASES = [
    (2, 3, (1, 9, 11), 1, (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1)),
    (1, 4, (1, 20, 16), 1, (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1)),
    (1, 2, (1, 8, 33), 2, (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1)),
    (1, 2, (1, 7, 50), 1, (1, 5, 2), (1, 3, 3), (1, 1, 2), (0, 2, 0)),
    (1, 2, (1, 12, 35), 3, (1, 3, 5), (1, 1, 2), (1, 2, 3), (0, 2, 7)),
    (1, 2, (1, 1, 1), 1, (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1)),
    (1, 2, (1, 5, 40), 1, (1, 1, 1), (1, 2, 4), (1, 1, 1), (0, 0, 3)),
    (1, 2, (1, 4, 4), 1, (1, 2, 2), (1, 1, 1), (1, 1, 1), (0, 5, 6)),  # more zeros around than the kernel
    (1, 2, (1, 19, 37), 2, (1, 5, 5), (1, 2, 2), (1, 1, 1), (0, 2, 2)),
    (2, 3, (1, 2, 18), 1, (1, 5, 5), (1, 1, 1), (1, 1, 1), (0, 3, 1)),
    (1, 2, (1, 23, 37), 2, (1, 7, 7), (1, 2, 2), (1, 1, 1), (0, 3, 3)),
    (2, 3, (1, 4, 18), 1, (1, 7, 7), (1, 1, 1), (1, 1, 1), (0, 3, 2)),
    (2, 2, (5, 6, 18), 2, (3, 2, 3), (2, 1, 2), (1, 2, 1), (1, 1, 1)),
    (1, 2, (4, 5, 20), 1, (2, 3, 3), (1, 1, 1), (2, 1, 1), (2, 1, 1)),
    (1, 3, (1, 64, 80), 1, (1, 16, 16), (1, 8, 8), (1, 1, 1), (0, 4, 4)),
    (1, 2, (1, 30, 21), 2, (1, 3, 4), (1, 4, 3), (1, 2, 3), (0, 2, 1)),  # results that no tap sees
    (1, 2, (2, 6, 9), 1, (1, 2, 3), (3, 1, 4), (1, 1, 1), (0, 0, 1)),  # and a depth that none sees
]


def single_channels(data, weight, window, out_shape, grad_out):
    """The general way in float64, channel by channel: results and both gradients."""
    multiplier = len(weight) // data.shape[1]
    out, grad_data, grad_weight = np.empty(out_shape), np.empty(data.shape), np.empty(weight.shape)
    for c in range(data.shape[1]):
        of = slice(c * multiplier, (c + 1) * multiplier)
        image, filters, head = data[:, c : c + 1], weight[of], grad_out[:, of]
        parts = [np.empty(a.shape) for a in (head, image, filters)]
        conv.forward(image, filters, None, window, 1, parts[0])
        conv.backward_data(head, filters, window, 1, parts[1])
        conv.backward_weight(head, image, window, 1, parts[2])
        out[:, of], grad_data[:, c : c + 1], grad_weight[of] = parts
    return out, grad_data, grad_weight


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_one_convolution_for_each_channel(case, dtype):
    batch, channels, size, multiplier, *window = case
    kernel, stride, dilate, pad = window
    rng = np.random.default_rng(0)
    data = rng.normal(size=(batch, channels, *size)).astype(dtype)
    weight = rng.normal(size=(channels * multiplier, 1, *kernel)).astype(dtype)
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    ]
    grad_out = rng.normal(size=(batch, len(weight), *sizes)).astype(dtype)
    wide = [np.ascontiguousarray(a, np.float64) for a in (data, weight, grad_out)]
    expected = single_channels(*wide[:2], window, grad_out.shape, wide[2])
    out, grad_data, grad_weight = (np.full(a.shape, np.nan, dtype) for a in (grad_out, data, weight))
    conv.forward(data, weight, None, window, channels, out)
    conv.backward_data(grad_out, weight, window, channels, grad_data)
    conv.backward_weight(grad_out, data, window, channels, grad_weight)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for name, ours, right in zip(
        ("out", "data", "weight"), (out, grad_data, grad_weight), expected, strict=True
    ):
        limit = tolerance * max(1, np.abs(right).max())
        np.testing.assert_allclose(ours, right, rtol=0, atol=limit, err_msg=name)


def test_the_number_of_workers_does_not_show():
    rng = np.random.default_rng(1)
    data, weight = (np.float32(rng.normal(size=shape)) for shape in ((2, 5, 1, 9, 21), (5, 1, 1, 3, 3)))
    head = np.float32(rng.normal(size=(2, 5, 1, 5, 11)))
    window = (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1)
    scale, shift = np.float32(rng.normal(size=(2, 5)))
    results = []
    for workers in (1, 3):
        out, grad_data, grad_weight = (np.empty_like(a) for a in (head, data, weight))
        epilogue = scale, shift, conv.activation(floor=0)
        with pretend_threads(workers, lambda part, parts: [*map(part, range(parts))]):
            conv_depthwise._forward.by(workers)(data, weight, window, epilogue, out)
            conv_depthwise.backward_data(head, weight, window, grad_data)
            conv_depthwise.backward_weight(head, data, window, grad_weight)
        results.append((out, grad_data, grad_weight))
    assert results[0][0].min() == 0
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_nan_stays_where_it_is():
    """Beside a NaN everything is a number, although vectors reach beyond the row's end."""
    data = np.ones((1, 2, 1, 4, 17), np.float32)
    data[0, 0, 0, 1, 16] = np.nan
    weight, out = np.ones((2, 1, 1, 3, 3), np.float32), np.empty((1, 2, 1, 4, 17), np.float32)
    conv.forward(data, weight, None, ((1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1)), 2, out)
    bad = np.zeros((1, 2, 1, 4, 17), bool)
    bad[0, 0, 0, :3, 15:] = True
    np.testing.assert_array_equal(np.isnan(out), bad)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_threads_that_divide_the_rows_of_a_large_map(size, stride):
    rng = np.random.default_rng(2)
    data = np.float32(rng.normal(size=(1, 30, 1, 71, 69)))
    weight = np.float32(rng.normal(size=(30, 1, 1, size, size)))
    window = (1, size, size), (1, stride, stride), (1, 1, 1), (0, size // 2, size // 2)
    sizes = [(n - 1) // stride + 1 for n in (71, 69)]
    results = np.full((2, 1, 30, 1, *sizes), np.nan, np.float32)
    for threads, out in zip((1, 2), results, strict=True):
        with use_threads(threads):
            conv.forward(data, weight, None, window, 30, out)
    np.testing.assert_array_equal(*results)
    expected = single_channels(
        data.astype(float), weight.astype(float), window, results[0].shape, np.zeros(results[0].shape)
    )[0]
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
