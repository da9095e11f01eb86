"""Gradients of the network operators against finite differences in float64."""

import numpy as np
import pytest

from roiops import registry
from roiops.kernels.cpu.network import recurrent
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation
from roiops.testing import check_operator_gradient

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.normal(size=shape)


@pytest.mark.parametrize(
    ("data", "params"),
    [
        ((2, 3, 5, 4), {"kernel": (3, 3), "num_filter": 2, "pad": (1, 1)}),
        ((1, 4, 6, 5), {"kernel": (2, 3), "num_filter": 4, "stride": (2, 1), "num_group": 2}),
        ((1, 3, 6, 6), {"kernel": (3, 3), "num_filter": 6, "num_group": 3, "pad": (1, 1), "stride": (2, 2)}),
        ((1, 2, 7, 7), {"kernel": (3, 3), "num_filter": 2, "dilate": (2, 2), "pad": (2, 2)}),
        ((2, 2, 6), {"kernel": (3,), "num_filter": 3, "stride": (2,), "pad": (1,)}),
        ((1, 2, 3, 4, 3), {"kernel": (2, 2, 2), "num_filter": 2, "pad": (1, 0, 1)}),
        ((1, 5, 4, 3), {"kernel": (3, 3), "num_filter": 2, "layout": "NHWC"}),
    ],
    ids=lambda value: str(value),
)
def test_convolution(data, params):
    last = params.get("layout", "").endswith("C")
    channels = data[-1] if last else data[1]
    per_group = channels // params.get("num_group", 1)
    kernel = params["kernel"]
    weight = (
        (params["num_filter"], *kernel, per_group) if last else (params["num_filter"], per_group, *kernel)
    )
    check_operator_gradient(
        "Convolution", [normal(*data), normal(*weight), normal(params["num_filter"])], params
    )


@pytest.mark.parametrize(
    ("data", "weight", "params"),
    [
        ((1, 2, 3, 4), (2, 3, 3, 3), {"kernel": (3, 3), "num_filter": 3, "stride": (2, 2), "adj": (1, 0)}),
        ((1, 4, 3, 3), (4, 1, 4, 4), {"kernel": (4, 4), "num_filter": 2, "num_group": 2, "pad": (1, 1)}),
        (
            (1, 2, 3, 3),
            (2, 2, 4, 4),
            {"kernel": (4, 4), "num_filter": 2, "stride": (2, 2), "target_shape": (6, 6)},
        ),
    ],
    ids=lambda value: str(value),
)
def test_deconvolution(data, weight, params):
    check_operator_gradient("Deconvolution", [normal(*data), normal(*weight)], params)


@pytest.mark.parametrize("params", [{}, {"flatten": False}], ids=str)
def test_fully_connected(params):
    features = 4 if params else 12
    arrays = [normal(2, 3, 4), normal(5, features), normal(5)]
    check_operator_gradient("FullyConnected", arrays, {"num_hidden": 5, **params})


@pytest.mark.parametrize("act_type", ["relu", "sigmoid", "tanh", "softrelu", "softsign"])
def test_activation(act_type):
    check_operator_gradient("Activation", [normal(3, 4)], {"act_type": act_type})


SLOPES = {
    "relu": lambda x: x > 0,
    "sigmoid": lambda x: 1 / (2 + np.exp(x) + np.exp(-x)),
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "softrelu": lambda x: 1 / (1 + np.exp(-x)),
    "softsign": lambda x: (1 + np.abs(x)) ** -2,
}


@pytest.mark.parametrize("act_type", SLOPES)
def test_activation_of_a_large_array(act_type):
    random = np.random.default_rng(4)
    data, head = (random.standard_normal((3, 70_001), np.float32) for _ in range(2))
    prop = registry.get("Activation").create({"act_type": act_type})
    invocation = Invocation(prop, [data])
    invocation.forward()
    (gradient,) = invocation.backward([head])
    expected = head * SLOPES[act_type](np.float64(data))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("act_type", ["leaky", "elu", "selu", "gelu"])
def test_leaky_relu(act_type):
    check_operator_gradient("LeakyReLU", [normal(3, 4)], {"act_type": act_type})


@pytest.mark.parametrize("slopes", [3, 1])
def test_prelu(slopes):
    check_operator_gradient("LeakyReLU", [normal(2, 3, 4), normal(slopes)], {"act_type": "prelu"})


@pytest.mark.parametrize("pool_type", ["max", "avg", "sum", "lp"])
@pytest.mark.parametrize("convention", ["valid", "full"])
def test_pooling(pool_type, convention):
    params = {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0), "pool_type": pool_type}
    data = RNG.permutation(84).reshape(1, 2, 6, 7) / 10.0 + 1  # no two equal, none near another
    check_operator_gradient("Pooling", [data], {**params, "pooling_convention": convention, "p_value": 2})


@pytest.mark.parametrize(
    ("name", "shape", "params"),
    [
        ("L2Normalization", (2, 3, 4), {"mode": "instance"}),
        ("L2Normalization", (2, 3, 4), {"mode": "channel"}),
        ("L2Normalization", (2, 3, 4), {"mode": "spatial"}),
        ("LRN", (2, 5, 2, 3), {"nsize": 3, "alpha": 0.3, "beta": 0.6}),
        ("_contrib_AdaptiveAvgPooling2D", (1, 2, 5, 7), {"output_size": (2, 3)}),
        ("_contrib_BilinearResize2D", (1, 2, 4, 5), {"height": 7, "width": 3}),
        ("_contrib_BilinearResize2D", (1, 2, 4, 5), {"height": 3, "width": 9, "align_corners": False}),
        ("UpSampling", (1, 2, 3, 2), {"scale": 2, "sample_type": "nearest"}),
        ("GridGenerator", (2, 6), {"transform_type": "affine", "target_shape": (3, 4)}),
        ("GridGenerator", (1, 2, 3, 4), {"transform_type": "warp"}),
    ],
    ids=lambda value: str(value),
)
def test_one_input(name, shape, params):
    check_operator_gradient(name, [normal(*shape)], params)


@pytest.mark.parametrize(
    ("name", "shape", "affine", "params"),
    [
        ("InstanceNorm", (2, 3, 4, 2), 3, {}),
        ("LayerNorm", (2, 3, 5), 5, {}),
        ("LayerNorm", (2, 3, 5), 3, {"axis": 1}),
        ("GroupNorm", (2, 4, 3), 2, {"num_groups": 2}),
    ],
    ids=lambda value: str(value),
)
def test_affine_norms(name, shape, affine, params):
    check_operator_gradient(name, [normal(*shape), normal(affine), normal(affine)], params)


def test_bilinear_sampler():
    grid = RNG.uniform(-0.9, 0.9, (1, 2, 3, 4))
    check_operator_gradient("BilinearSampler", [normal(1, 2, 5, 6), grid], {})


def test_upsampling_bilinear():
    params = {"scale": 2, "sample_type": "bilinear", "num_filter": 2, "num_args": 2}
    check_operator_gradient("UpSampling", [normal(1, 2, 3, 2), normal(2, 1, 4, 4)], params)


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("params", [{}, {"bidirectional": True, "num_layers": 2}], ids=str)
@pytest.mark.parametrize("large", [1 << 18, 0])
def test_recurrent(mode, params, large, monkeypatch):
    monkeypatch.setattr(recurrent, "_LARGE", large)
    params = {"mode": mode, "state_size": 3, "num_layers": 1, "state_outputs": True, **params}
    directions = 1 + params.get("bidirectional", False)
    first = [normal(params["num_layers"] * directions, 2, 3) for _ in range(2 if mode == "lstm" else 1)]
    data = normal(3, 2, 4)
    prop = registry.get("RNN").create(params)
    (_, parameters, *_), _ = prop.infer_shape([data.shape, None, *[None] * len(first)])
    check_operator_gradient("RNN", [data, normal(*parameters) / 2, *first], params)


def test_dropout_between_recurrent_layers():
    params = {"mode": "lstm", "state_size": 40, "num_layers": 2, "p": 0.5}
    prop = registry.get("RNN").create(params)
    shapes, _ = prop.infer_shape([(5, 4, 3), None, None, None])
    arrays = [normal(*shape) for shape in shapes]
    runs = {}
    for is_train in (False, True):
        runs[is_train] = Invocation(prop, arrays, ctx=OpContext(is_train=is_train))
        runs[is_train].forward()
    trained = runs[True]
    masks = trained.outputs[-1]
    assert masks.shape == (1, 5, 4, 40)
    assert set(np.unique(masks)) == {0, 2}
    assert 0.4 < (masks == 0).mean() < 0.6
    assert abs(runs[False].outputs[0] - trained.outputs[0]).max() > 0.01
    # The same masks serve the backward pass: the output's change along the gradient is the gradient's length.
    head = np.zeros_like(trained.outputs[0])
    head[-1] = 1
    grad = trained.backward([head])[0]
    step = grad / abs(grad).max() * 1e-6
    moved = np.empty_like(head)
    recurrent.Network("lstm", arrays[0] + step, *arrays[1:], directions=1).forward(moved, masks)
    change = (moved[-1] - trained.outputs[0][-1]).sum()
    assert change == pytest.approx((grad * step).sum(), rel=1e-4)
