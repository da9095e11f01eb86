"""Each way to compute a network's heavy operators against its definition in plain loops."""

import numpy as np
import pytest
import reference

import roiops as mx
from roiops.kernels.cpu.network import recurrent


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
@pytest.mark.parametrize(
    ("kernel", "stride", "pad"),
    [
        ((1, 1), (2, 2), (0, 0)),
        ((1, 1), (1, 1), (0, 0)),
        ((2, 2), (2, 2), (0, 0)),
        ((3, 3), (2, 1), (1, 1)),
    ],
)
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


def test_batch_norm_in_training():
    data, gamma, beta = random(3, 4, 5, 6) * 2 + 1, random(4), random(4) + 1
    moving = [np.zeros(4, np.float32), np.ones(4, np.float32)]
    with_gamma = {"fix_gamma": False, "eps": 1e-3}
    executor = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", **with_gamma).bind(
        mx.cpu(),
        {"data": data, "bn_gamma": gamma, "bn_beta": beta},
        aux_states=dict(zip(("bn_moving_mean", "bn_moving_var"), moving, strict=True)),
        grad_req="null",
    )
    found = executor.forward(is_train=True)[0].asnumpy()
    np.testing.assert_allclose(found, reference.batch_norm(data, gamma, beta, 1e-3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(9, 13), (3, 4), (5, 7), (1, 2)])
def test_resize(size, align_corners):
    data = random(2, 3, 5, 7)
    found = mx.nd.contrib.BilinearResize2D(
        data, height=size[0], width=size[1], align_corners=align_corners
    ).asnumpy()
    expected = reference.resize(data, *size, align_corners)
    if size[0] == 1 and not align_corners:  # MXNet's single output pixel is the first, not the middle one
        expected = reference.resize(data[:, :, :1], *size, align_corners)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("large", [1 << 18, 0])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("batch", "hidden"), [(2, 1), (5, 3), (3, 17)])
@pytest.mark.parametrize(("mode", "gates"), [("rnn_relu", 1), ("rnn_tanh", 1), ("lstm", 4), ("gru", 3)])
def test_recurrent(mode, gates, batch, hidden, directions, large, monkeypatch):
    monkeypatch.setattr(recurrent, "_LARGE", large)
    features, rows = 5, gates * hidden
    data = random(4, batch, features)
    shapes = [(rows, features), (rows, hidden), (rows,), (rows,)]
    every = [[random(*shape) * np.float32((0.5 + d) / hidden) for shape in shapes] for d in range(directions)]
    state, cell = random(directions, batch, hidden), random(directions, batch, hidden) / 2
    matrices, biases = ([a for weights in every for a in weights[part]] for part in (slice(2), slice(2, 4)))
    flat = np.concatenate([array.reshape(-1) for array in matrices + biases])
    inputs = [data, flat, state] + ([cell] if mode == "lstm" else [])
    results = mx.nd.RNN(
        *inputs, mode=mode, state_size=hidden, num_layers=1, bidirectional=directions == 2, state_outputs=True
    )
    for d, weights in enumerate(every):
        order = slice(None, None, -1 if d else 1)
        out, last = reference.recurrent(mode, data[order], weights, state[d], cell[d])
        here = results[0].asnumpy()[:, :, d * hidden : (d + 1) * hidden]
        np.testing.assert_allclose(here, out[order], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(results[1].asnumpy()[d], out[-1], rtol=1e-5, atol=1e-6)
        if mode == "lstm":
            np.testing.assert_allclose(results[2].asnumpy()[d], last, rtol=1e-5, atol=1e-6)
