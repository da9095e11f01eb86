"""What golden values do not cover: training, random masks, empty and odd inputs, threads."""

import numba
import numpy as np
import pytest

import roiops as mx
from roiops import random
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation
from roiops.registry import get

RNG = np.random.default_rng(7)


def invoke(name, *arrays, aux=(), is_train=False, **params):
    prop = get(name).create(params)
    return Invocation(prop, arrays, aux, ctx=OpContext(label=name, is_train=is_train))


def run(name, *arrays, **params):
    return invoke(name, *arrays, **params).forward()[0]


def normal(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


# -- resizing ----------------------------------------------------------------------------------------------


def test_resizing_to_the_same_size_keeps_infinite_pixels_to_themselves():
    data = np.float32([[[[1, np.inf], [3, np.nan]]]])
    np.testing.assert_array_equal(run("_contrib_BilinearResize2D", data, height=2, width=2), data)


@pytest.mark.parametrize(
    ("mode", "size", "scale", "resized"),
    [("odd_scale", 5, 2, 9), ("odd_scale", 5, 0.3, 2), ("odd_scale", 4, 2, 8), ("size", 5, 2, 10)],
)
def test_the_size_that_a_factor_gives_as_in_mxnet(mode, size, scale, resized):
    found = run(
        "_contrib_BilinearResize2D",
        normal(1, 1, size, size),
        mode=mode,
        scale_height=scale,
        scale_width=scale,
    )
    assert found.shape == (1, 1, resized, resized)


@pytest.mark.parametrize(("name", "groups"), [("LayerNorm", {}), ("GroupNorm", {"num_groups": 3})])
def test_mean_and_deviation_as_outputs(name, groups):
    data = normal(2, 3, 4)
    size = 4 if name == "LayerNorm" else 3
    inputs = [mx.nd.array(each) for each in (data, np.ones(size), np.zeros(size))]
    _, mean, deviation = getattr(mx.nd, name)(*inputs, output_mean_var=True, eps=0.1, **groups)
    np.testing.assert_allclose(mean.asnumpy().reshape(2, 3), data.mean(axis=2), rtol=1e-5)
    np.testing.assert_allclose(deviation.asnumpy().reshape(2, 3), np.sqrt(data.var(axis=2) + 0.1), rtol=1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_place_that_is_no_number_gives_nan(number):
    """As MXNet 1.9.1: the gradient of the other coordinate, too."""
    data = normal(1, 1, 4, 4)
    grid = np.float32([number, 0.2]).reshape(1, 2, 1, 1)
    call = invoke("BilinearSampler", data, grid, is_train=True)
    assert np.isnan(call.forward()[0]).all()
    of_data, of_grid = call.backward([np.ones((1, 1, 1, 1), np.float32)])
    assert not of_data.any()
    assert (of_grid[0, 0, 0, 0], np.isnan(of_grid[0, 1, 0, 0])) == (0, True)


# -- batch norm ----------------------------------------------------------------------------------------------


def test_batch_norm_fix_gamma_means_one_whatever_gamma_holds():
    data, zero = normal(4, 3, 5), np.zeros(3, np.float32)
    seven, one = np.full(3, 7, np.float32), np.ones(3, np.float32)
    state = [zero.copy(), one.copy()]
    fixed = run("BatchNorm", data, seven, zero, aux=state, fix_gamma=True)
    np.testing.assert_array_equal(fixed, run("BatchNorm", data, one, zero, aux=state, fix_gamma=False))
    assert seven.tolist() == [7, 7, 7]


def test_batch_norm_moves_its_statistics_in_backward_only():
    data, one, zero = normal(8, 2, 4), np.ones(2, np.float32), np.zeros(2, np.float32)
    state = [zero.copy(), one.copy()]
    call = invoke("BatchNorm", data, one, zero, aux=state, is_train=True, momentum=0.75)
    out = call.forward()[0]
    assert state[0].tolist() == [0, 0]
    call.backward([np.ones_like(out)])
    mean, variance = data.mean(axis=(0, 2)), data.var(axis=(0, 2))
    np.testing.assert_allclose(state[0], 0.25 * mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state[1], 0.75 + 0.25 * variance, rtol=1e-5)


def test_batch_norm_of_float16_keeps_float32_statistics():
    prop = get("BatchNorm").create({})
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    ins, outs, aux = prop.infer_type([half, None, None])
    assert ins == [half, single, single]
    assert outs == [half, single, single]
    assert aux == [single, single]


# -- dropout -------------------------------------------------------------------------------------------------


def test_dropout_is_the_identity_at_inference():
    data = normal(3, 4)
    np.testing.assert_array_equal(run("Dropout", data, p=0.9), data)


def test_dropout_drops_its_share_and_scales_the_rest():
    random.seed(1)
    call = invoke("Dropout", np.ones((200, 500), np.float32), is_train=True, p=0.25)
    out = call.forward()[0]
    assert set(np.unique(out)) == {np.float32(0), np.float32(4 / 3)}
    assert abs((out == 0).mean() - 0.25) < 0.01
    np.testing.assert_array_equal(call.backward([np.ones_like(out)])[0], out)


def test_dropout_is_reproducible():
    draws = []
    for _ in range(2):
        random.seed(3)
        draws.append(invoke("Dropout", np.ones((9, 9), np.float32), is_train=True).forward()[0].copy())
    np.testing.assert_array_equal(*draws)


def test_dropout_along_axes_drops_together():
    random.seed(2)
    out = invoke("Dropout", np.ones((6, 50, 4), np.float32), is_train=True, axes=(0, -1)).forward()[0]
    assert np.all(out == out[:1, :, :1])
    assert 0 < (out == 0).mean() < 1


@pytest.mark.parametrize(("p", "left"), [(0, 1), (1, np.nan)])  # NaN: MXNet 1.9.1, run
def test_dropout_of_nothing_and_of_all(p, left):
    out = invoke("Dropout", np.ones((5, 5), np.float32), is_train=True, p=p).forward()[0]
    np.testing.assert_array_equal(out, np.full((5, 5), left))


def test_dropout_always():
    random.seed(1)
    assert (run("Dropout", np.ones((50, 50), np.float32), mode="always") == 0).any()


@pytest.mark.parametrize("mode", ["training", "always"])
def test_dropout_in_the_memory_of_its_input(mode):
    graph = mx.sym.exp(mx.sym.Dropout(mx.sym.exp(mx.sym.Variable("data")), p=0.5, mode=mode))
    executor = graph.simple_bind(mx.cpu(), data=(30, 30))
    for is_train in (False, True, False):
        out = executor.forward(is_train=is_train)[0].asnumpy()
        drops = is_train or mode == "always"
        right = np.exp([0.0, 2.0]) if drops else np.exp([1.0])
        np.testing.assert_allclose(np.unique(out), right, rtol=1e-6)


def test_rrelu_draws_slopes_within_its_bounds():
    random.seed(5)
    call = invoke("LeakyReLU", -np.ones((40, 40), np.float32), is_train=True, act_type="rrelu")
    out, mask = call.forward()
    np.testing.assert_array_equal(out, -mask)
    assert 0.125 <= mask.min() < 0.15
    assert 0.3 < mask.max() <= 0.334
    np.testing.assert_array_equal(call.backward([np.ones_like(out), None])[0], mask)


# -- shapes --------------------------------------------------------------------------------------------------

EMPTY = [
    ("Convolution", [(0, 3, 9, 9), (4, 3, 3, 3), (4,)], {"kernel": (3, 3), "num_filter": 4}),
    ("Deconvolution", [(0, 3, 9, 9), (3, 4, 3, 3)], {"kernel": (3, 3), "num_filter": 4}),
    ("FullyConnected", [(0, 3), (4, 3), (4,)], {"num_hidden": 4}),
    ("Pooling", [(0, 3, 4, 4)], {"kernel": (2, 2)}),
    ("Pooling", [(2, 0, 4, 4)], {"kernel": (2, 2), "pool_type": "avg"}),
    ("Activation", [(0, 3)], {"act_type": "tanh"}),
    ("LeakyReLU", [(0, 3)], {}),
    ("LayerNorm", [(0, 3), (3,), (3,)], {}),
    ("L2Normalization", [(0, 3)], {}),
    ("LRN", [(0, 3, 2, 2)], {"nsize": 3}),
    ("UpSampling", [(0, 3, 2, 2)], {"scale": 2, "sample_type": "nearest"}),
    ("_contrib_BilinearResize2D", [(0, 3, 2, 2)], {"height": 3, "width": 3}),
    ("_contrib_AdaptiveAvgPooling2D", [(0, 3, 2, 2)], {}),
    ("Convolution", [(0, 3, 2, 2), (4, 3, 2, 2), (4,)], {"kernel": (2, 2), "num_filter": 4}),
    ("LeakyReLU", [(0, 3, 2), (3,)], {"act_type": "prelu"}),
    ("LeakyReLU", [(0, 3, 2), (0, 3)], {"act_type": "prelu"}),
    ("GridGenerator", [(0, 6)], {"transform_type": "affine", "target_shape": (2, 3)}),
    (
        "SpatialTransformer",
        [(0, 3, 2, 2), (0, 6)],
        {"transform_type": "affine", "sampler_type": "bilinear", "target_shape": (2, 3)},
    ),
    ("im2col", [(0, 3, 4, 4)], {"kernel": (2, 2)}),
    ("col2im", [(0, 12, 9)], {"kernel": (2, 2), "output_size": (4, 4)}),
    ("RNN", [(3, 0, 2), (21,), (1, 0, 3)], {"mode": "rnn_tanh", "state_size": 3, "num_layers": 1}),
    ("RNN", [(0, 2, 2), (21,), (1, 2, 3)], {"mode": "rnn_tanh", "state_size": 3, "num_layers": 1}),
    ("khatri_rao", [(0, 3), (2, 3)], {"num_args": 2}),
    (
        "UpSampling",
        [(2, 3, 1, 0), (3, 1, 4, 4)],
        {"scale": 2, "sample_type": "bilinear", "num_filter": 3, "num_args": 2},
    ),
    (
        "UpSampling",
        [(2, 0, 1, 3), (0, 1, 4, 4)],
        {"scale": 2, "sample_type": "bilinear", "num_filter": 0, "num_args": 2},
    ),
    ("SoftmaxOutput", [(2, 0, 3), (2, 0)], {}),
    ("_contrib_interleaved_matmul_selfatt_valatt", [(4, 0, 12), (0, 4, 4)], {"heads": 2}),
]


@pytest.mark.parametrize(
    ("name", "shapes", "params"), EMPTY, ids=[f"{e[0]}-{i}" for i, e in enumerate(EMPTY)]
)
def test_empty_batches(name, shapes, params):
    call = invoke(name, *(normal(*s) for s in shapes), **params)
    out = call.forward()[0]
    assert 0 in out.shape
    gradients = call.backward([np.zeros_like(out)])
    assert [g.shape for g in gradients] == shapes
    assert not any(g.any() for g in gradients)


def test_a_deconvolution_of_no_channels():
    data, weight = np.zeros((2, 0, 2, 3), np.float32), np.zeros((0, 2, 2, 2), np.float32)
    call = invoke("Deconvolution", data, weight, kernel=(2, 2), stride=(2, 2), num_filter=2)
    out = call.forward()[0]
    np.testing.assert_array_equal(out, np.zeros((2, 2, 4, 6)))
    assert [g.shape for g in call.backward([out])] == [data.shape, weight.shape]


def test_convolution_shapes_in_both_directions():
    prop = get("Convolution").create({"kernel": (3, 3), "num_filter": 8, "num_group": 2, "pad": (1, 1)})
    shapes, outs = prop.infer_shape([(-1, -1, 10, -1), (8, 3, -1, 3), None])
    assert shapes == [(-1, 6, 10, -1), (8, 3, 3, 3), (8,)]
    assert outs == [(-1, 8, 10, -1)]
    back = prop.infer_shape_from_outputs([(-1, 6, -1, -1), None, None], [(2, 8, 10, 12)])
    assert back[0] == (2, 6, 10, 12)


def test_channels_last_is_channels_second_transposed():
    data, weight, bias = normal(2, 6, 7, 4), normal(5, 3, 3, 4), normal(5)
    params = {"kernel": (3, 3), "num_filter": 5, "stride": (2, 1), "pad": (1, 0)}
    last = run("Convolution", data, weight, bias, layout="NHWC", **params)
    second = run("Convolution", np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1), bias, **params)
    np.testing.assert_allclose(last, np.moveaxis(second, 1, -1), rtol=1e-6)
    pooled = run("Pooling", data, kernel=(2, 2), layout="NHWC")
    np.testing.assert_array_equal(
        pooled, np.moveaxis(run("Pooling", np.moveaxis(data, -1, 1), kernel=(2, 2)), 1, -1)
    )


def test_pooling_passes_over_nan_and_padding_never_wins():
    data = np.float32([[[[np.nan, -5], [-3, -4]]]])
    assert run("Pooling", data, kernel=(2, 2)).item() == -3
    assert run("Pooling", data, kernel=(2, 2), pad=(1, 1), stride=(3, 3)).shape == (1, 1, 1, 1)
    assert run("Pooling", -np.ones((1, 1, 2, 2), np.float32), kernel=(3, 3), pad=(1, 1)).max() == -1
    assert run("Pooling_v1", -np.ones((1, 1, 2, 2), np.float32), kernel=(3, 3), pad=(1, 1)).max() == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relu_of_large_arrays_is_numpys_maximum_to_the_last_bit(dtype):
    data = np.random.default_rng(0).standard_normal(100_003).astype(dtype)
    data[:5] = data[-5:] = -0.0, np.nan, -np.nan, -np.inf, np.inf
    assert run("Activation", data, act_type="relu").tobytes() == np.maximum(data, 0).tobytes()


def test_relu_keeps_nan():
    for act_type in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        assert np.isnan(run("Activation", np.float32([np.nan]), act_type=act_type)).all()


def test_activations_saturate_without_overflow():
    data = np.float32([-1e4, 1e4])
    assert run("Activation", data, act_type="sigmoid").tolist() == [0, 1]
    assert run("Activation", data, act_type="softrelu").tolist() == [0, 1e4]


# -- threads -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("size", [(1, 16, 12, 30), (1, 16, 90, 200)], ids=str)
def test_any_number_of_threads_gives_the_same_bits(size):
    data, weight, bias = normal(*size), normal(24, 16, 3, 3), normal(24)
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        try:
            conv = run("Convolution", data, weight, bias, kernel=(3, 3), num_filter=24, pad=(1, 1))
            strided = run("Convolution", data, weight, bias, kernel=(3, 3), num_filter=24, stride=(2, 2))
            dense = run(
                "FullyConnected",
                conv.reshape(24, -1)[:, :40],
                normal(9, 40) * 0 + 1,
                normal(9) * 0,
                num_hidden=9,
            )
        finally:
            numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        results.append((conv, strided, dense))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_upsampling_in_a_graph():
    net = mx.sym.UpSampling(
        mx.sym.Variable("a"), mx.sym.Variable("b"), scale=2, sample_type="nearest", num_args=2
    )
    out = net.bind(mx.cpu(), {"a": np.ones((1, 1, 2, 2)), "b": np.ones((1, 2, 4, 4))}).forward()[0]
    assert out.shape == (1, 3, 4, 4)
    bilinear = mx.sym.UpSampling(
        mx.sym.Variable("data"), scale=2, sample_type="bilinear", num_filter=3, num_args=2, name="up"
    )
    assert bilinear.list_arguments() == ["data", "up_weight"]


def test_sync_batch_norm_tells_the_variance_and_batch_norm_its_inverse_root():
    """Both of MXNet's, whose output has the same name; the gradients are the same."""
    data = np.random.default_rng(0).random((4, 2), np.float32)
    found = []
    for make in (mx.sym.BatchNorm, mx.sym.contrib.SyncBatchNorm):
        net = make(mx.sym.Variable("data"), fix_gamma=False, output_mean_var=True, eps=1e-3, name="bn")
        executor = net.simple_bind(mx.cpu(), data=data.shape)
        executor.arg_dict["bn_gamma"][:] = 2
        outputs = executor.forward(is_train=True, data=mx.nd.array(data))
        found.append([output.asnumpy() for output in outputs])
        executor.backward([mx.nd.array(data), *(mx.nd.zeros(each.shape) for each in outputs[1:])])
        found[-1].append(executor.grad_dict["data"].asnumpy())
    (plain, mean, inverse, gradient), (same, same_mean, variance, same_gradient) = found
    np.testing.assert_array_equal(plain, same)
    np.testing.assert_array_equal(mean, same_mean)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(data.var(0) + 1e-3), rtol=1e-5)
    np.testing.assert_allclose(variance, data.var(0), rtol=1e-4)
    np.testing.assert_allclose(gradient, same_gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("beta", [0.75, 0.6])
@pytest.mark.parametrize("size", [(3, 5), (20, 29)])
def test_lrn_of_large_maps(beta, size):
    rng, half, alpha, knorm = np.random.default_rng(0), 2, 0.3, 1.5
    data, head = rng.standard_normal((2, 2, 7, *size))

    def sums(values):
        return np.stack([values[:, max(c - half, 0) : c + half + 1].sum(1) for c in range(7)], axis=1)

    norm = knorm + alpha / 5 * sums(data**2)
    slope = head * norm**-beta - 2 * alpha / 5 * beta * data * sums(head * data * norm ** (-beta - 1))
    lrn = mx.sym.LRN(mx.sym.var("data"), nsize=5, alpha=alpha, beta=beta, knorm=knorm)
    executor = lrn.bind(mx.cpu(), {"data": mx.nd.array(data)}, {"data": mx.nd.zeros(data.shape)})
    out = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(mx.nd.array(head))
    np.testing.assert_allclose(out, data * norm**-beta, rtol=1e-5)
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [100, 5000])
def test_sigmoid_of_any_number(count):
    some = np.float32([-np.inf, -200, -88, -87, -20, -1e-3, 0, 1e-3, 1, 20, 88, 200, np.inf, np.nan])
    data = np.resize(np.concatenate([some, np.random.default_rng(0).normal(0, 9, 90).astype("f")]), count)
    with np.errstate(over="ignore"):
        wanted = 1 / (1 + np.exp(-data.astype(np.float64)))
    x = mx.nd.array(data)
    symbol = mx.sym.var("x")
    found = (symbol * mx.sym.sigmoid(symbol)).bind(mx.cpu(), {"x": x}).forward()[0].asnumpy()
    for each in (mx.nd.sigmoid(x), mx.nd.Activation(x, act_type="sigmoid")):
        np.testing.assert_allclose(each.asnumpy(), wanted, rtol=5e-7, atol=1e-37)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, data * wanted, rtol=5e-7, atol=1e-35)
