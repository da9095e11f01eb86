"""Calls of network layers, normalisations and loss heads."""

import numpy as np

from ops_harness import call, golden


@golden
def convolution(draw):
    op = "Convolution"
    image = draw.normal(2, 4, 7, 8)
    yield call(op, image, kernel=(3, 3), num_filter=3)
    yield call(op, image, kernel=(3, 3), num_filter=3, pad=(1, 1), no_bias=True)
    yield call(op, image, kernel=(3, 2), num_filter=2, stride=(2, 1), pad=(1, 0))
    yield call(op, image, kernel=(3, 3), num_filter=4, dilate=(2, 2), pad=(2, 2))
    yield call(op, image, kernel=(3, 2), num_filter=2, dilate=(1, 3), stride=(2, 2), pad=(0, 2))
    yield call(op, image, kernel=(3, 3), num_filter=6, num_group=2, pad=(1, 1))
    yield call(
        op, image, kernel=(3, 3), num_filter=4, num_group=4, pad=(1, 1), no_bias=True, label="depthwise"
    )
    yield call(
        op,
        image,
        kernel=(3, 3),
        num_filter=8,
        num_group=4,
        stride=(2, 2),
        label="depthwise, two filters each",
    )
    yield call(op, image, kernel=(1, 1), num_filter=5)
    yield call(op, image, kernel=(1, 1), num_filter=3, stride=(2, 2), no_bias=True)
    yield call(op, image, kernel=(7, 8), num_filter=2, label="kernel of the size of the map")
    yield call(op, image, kernel=(5, 5), num_filter=2, pad=(2, 2), stride=(1, 1))
    yield call(op, draw.normal(1, 3, 12, 13), kernel=(7, 7), num_filter=2, stride=(2, 2), pad=(3, 3))
    yield call(op, draw.normal(1, 1, 4, 4), kernel=(2, 2), num_filter=1)
    yield call(
        op,
        draw.normal(1, 8, 9, 10),
        kernel=(3, 3),
        num_filter=8,
        pad=(1, 1),
        label="3x3, stride 1, 8 channels",
    )
    yield call(op, image.astype(np.float64), kernel=(3, 3), num_filter=2, pad=(1, 1), label="float64")
    signal = draw.normal(2, 4, 9)
    yield call(op, signal, kernel=(3,), num_filter=3)
    yield call(op, signal, kernel=(3,), num_filter=4, stride=(2,), pad=(2,), dilate=(2,), num_group=2)
    volume = draw.normal(1, 2, 4, 5, 4)
    yield call(op, volume, kernel=(2, 3, 2), num_filter=2)
    yield call(op, volume, kernel=(3, 3, 3), num_filter=2, pad=(1, 1, 1), stride=(2, 2, 2), no_bias=True)
    yield call("Convolution_v1", image, kernel=(3, 3), num_filter=2, pad=(1, 1))


@golden
def deconvolution(draw):
    op = "Deconvolution"
    image = draw.normal(1, 4, 4, 5)
    yield call(op, image, kernel=(2, 2), num_filter=3)
    yield call(op, image, kernel=(4, 4), num_filter=3, stride=(2, 2), pad=(1, 1))
    yield call(op, image, kernel=(3, 3), num_filter=2, stride=(2, 2), pad=(1, 1), adj=(1, 1))
    yield call(op, image, kernel=(3, 3), num_filter=2, no_bias=False)
    yield call(op, image, kernel=(4, 4), num_filter=4, stride=(2, 2), pad=(1, 1), num_group=4)
    yield call(op, image, kernel=(3, 3), num_filter=2, num_group=2, stride=(2, 1))
    # In float32 MXNet hands this to oneDNN without the padding that it has just worked out.
    double = image.astype(np.float64)
    yield call(op, double, kernel=(3, 3), num_filter=2, stride=(2, 2), target_shape=(8, 10))
    yield call(op, double, kernel=(4, 4), num_filter=2, stride=(2, 2), target_shape=(8, 10), no_bias=False)
    yield call(op, image, kernel=(2, 3), num_filter=2, dilate=(2, 2))
    yield call(op, draw.normal(1, 2, 4), kernel=(3,), num_filter=2, stride=(2,))


@golden
def fully_connected(draw):
    op = "FullyConnected"
    yield call(op, draw.normal(3, 4), num_hidden=5)
    yield call(op, draw.normal(3, 4), num_hidden=2, no_bias=True)
    yield call(op, draw.normal(2, 3, 4), num_hidden=5)
    yield call(op, draw.normal(2, 3, 4), num_hidden=5, flatten=False)
    yield call(op, draw.normal(2, 3, 2, 2), num_hidden=3, flatten=False, no_bias=True)
    yield call(op, draw.normal(3, 4).astype(np.float64), num_hidden=2, label="float64")


@golden
def batch_norm(draw):
    op = "BatchNorm"
    shape = (3, 4, 2, 5)

    def norm(data=None, channels=4, **params):
        data = draw.normal(*shape) * 2 + 1 if data is None else data
        inputs = {"data": data, "gamma": draw.uniform(0.5, 2, channels), "beta": draw.normal(channels)}
        inputs = {key: value.astype(data.dtype) for key, value in inputs.items()}
        aux = {"moving_mean": draw.normal(channels), "moving_var": draw.uniform(0.3, 2, channels)}
        return call(op, inputs, aux=aux, **params)

    for train in (True, False):
        for fix_gamma in (True, False):
            yield norm(fix_gamma=fix_gamma, train=train, eps=1e-3, backward=train)
            yield norm(fix_gamma=fix_gamma, train=train, use_global_stats=True, eps=2e-5, momentum=0.99)
    yield norm(momentum=0.5, fix_gamma=False)
    yield norm(axis=-1, channels=5, fix_gamma=False)
    yield norm(axis=0, channels=3, fix_gamma=False)
    yield norm(output_mean_var=True, fix_gamma=False, train=False, backward=False)
    yield norm(output_mean_var=True, fix_gamma=False, backward=False)
    yield norm(draw.normal(6, 4), fix_gamma=False)
    yield norm(draw.normal(2, 4, 3), fix_gamma=False)
    yield norm(draw.normal(2, 4, 2, 2, 2), fix_gamma=False)
    yield norm(draw.normal(2, 4, 3, 3).astype(np.float64), fix_gamma=False, label="float64")
    op = "BatchNorm_v1"
    yield norm(fix_gamma=False, eps=1e-3)
    yield norm(fix_gamma=False, eps=1e-3, train=False, backward=False)


@golden
def pooling(draw):
    op = "Pooling"
    image = draw.distinct(2, 2, 7, 8)
    for kind in ("max", "avg", "sum"):
        yield call(op, image, kernel=(2, 2), stride=(2, 2), pool_type=kind)
        yield call(op, image, kernel=(3, 3), stride=(2, 2), pool_type=kind, pad=(1, 1))
        yield call(op, image, kernel=(3, 3), stride=(2, 2), pool_type=kind, pooling_convention="full")
        yield call(
            op, image, kernel=(3, 2), stride=(3, 3), pool_type=kind, pad=(1, 1), pooling_convention="full"
        )
        yield call(op, image, kernel=(3, 3), pool_type=kind)
        yield call(op, image, global_pool=True, pool_type=kind)
        yield call(op, image, global_pool=True, kernel=(2, 2), pool_type=kind, pad=(1, 1), stride=(2, 2))
        yield call(op, image, kernel=(7, 8), pool_type=kind)
        yield call(op, draw.distinct(1, 2, 9), kernel=(3,), stride=(2,), pad=(1,), pool_type=kind)
        yield call(op, draw.distinct(1, 2, 4, 5, 4), kernel=(2, 2, 2), stride=(2, 2, 2), pool_type=kind)
    for convention in ("valid", "full"):
        for include in (True, False):
            params = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg"}
            yield call(op, image, count_include_pad=include, pooling_convention=convention, **params)
    yield call(op, np.array([[[[2, 2], [2, 2]]]], np.float32), kernel=(2, 2), pool_type="max", label="ties")
    yield call(
        op, image - 100, kernel=(3, 3), pad=(1, 1), pool_type="max", label="all below zero, with padding"
    )
    yield call(op, image.astype(np.float64), kernel=(3, 3), stride=(2, 2), pool_type="max", label="float64")
    yield call(op, draw.normal(1, 2, 5, 5), kernel=(2, 2), pool_type="lp", p_value=2)
    yield call("Pooling_v1", image, kernel=(3, 3), stride=(2, 2), pool_type="max")
    yield call("Pooling_v1", image, kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full")


@golden
def activation(draw):
    x = np.append(draw.normal(9), [0, -20, 20]).astype(np.float32).reshape(3, 4)
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        yield call("Activation", x, act_type=kind)


@golden
def leaky_relu(draw):
    x = (
        np.append(draw.normal(2, 3, 2, 2).ravel(), [0, -5, 5, -0.5, 0, 0])
        .astype(np.float32)
        .reshape(2, 3, 5, 1)
    )
    for kind in ("leaky", "elu", "selu", "gelu"):
        yield call("LeakyReLU", x, act_type=kind)
    yield call("LeakyReLU", x, act_type="leaky", slope=0.1)
    yield call("LeakyReLU", x, act_type="elu", slope=1.5)
    yield call("LeakyReLU", {"data": x, "gamma": draw.uniform(0.1, 0.5, 3)}, act_type="prelu")
    yield call("LeakyReLU", {"data": x, "gamma": draw.uniform(0.1, 0.5, 1)}, act_type="prelu")
    yield call("LeakyReLU", {"data": draw.normal(4, 3), "gamma": draw.uniform(0.1, 0.5, 3)}, act_type="prelu")


@golden
def dropout(draw):
    yield call("Dropout", draw.normal(3, 4), p=0.5, train=False)
    yield call("Dropout", draw.normal(3, 4), p=0)


@golden
def softmax(draw):
    x = draw.normal(2, 3, 4) * 3
    for op in ("softmax", "log_softmax", "softmin"):
        yield call(op, x)
        yield call(op, x, axis=1)
        yield call(op, x, axis=0, temperature=2.5)
    yield call("softmax", draw.normal(2, 3).astype(np.float64), label="float64")
    yield call("softmax", draw.normal(2, 3).astype(np.float16), dtype="float32")
    inputs = {"data": x, "length": np.array([[1, 2, 3, 3], [2, 3, 1, 2]], np.int32)}
    yield call("softmax", inputs, axis=1, use_length=True, hold=("length",))
    for op in ("softmax", "log_softmax"):
        yield call(op, np.array([[1000, 1001, -1000], [0, 0, 0]], np.float32), label="large values")


@golden
def softmax_activation(draw):
    yield call("SoftmaxActivation", draw.normal(3, 4))
    yield call("SoftmaxActivation", draw.normal(3, 4), mode="instance")
    yield call("SoftmaxActivation", draw.normal(2, 3, 4), mode="channel")
    yield call("SoftmaxActivation", draw.normal(2, 3, 2, 2), mode="channel")


@golden
def softmax_output(draw):
    op = "SoftmaxOutput"

    def head(data, targets, **params):
        return call(op, {"data": data, "label": targets}, hold=("label",), **params)

    flat, labels = draw.normal(4, 3), np.array([0, 2, 1, 2], np.float32)
    yield head(flat, labels)
    yield head(flat, labels, grad_scale=0.25)
    for normalization in ("null", "batch", "valid"):
        yield head(flat, labels, normalization=normalization)
        yield head(flat, labels, normalization=normalization, use_ignore=True, ignore_label=2, grad_scale=2)
        yield head(flat, labels, normalization=normalization, ignore_label=2)
    yield head(flat, labels, use_ignore=True, ignore_label=2)
    yield head(flat, np.array([-1, 1, 3, 0.7], np.float32), label="labels out of range, and a fraction")
    yield head(flat, np.full(4, 2, np.float32), use_ignore=True, ignore_label=2, normalization="valid")
    yield head(flat, labels, smooth_alpha=0.1)
    yield head(flat, labels, smooth_alpha=0.3, use_ignore=True, ignore_label=2, normalization="valid")
    maps, map_labels = draw.normal(2, 3, 2, 4), draw.integers(3, 2, 2, 4)
    for normalization in ("null", "batch", "valid"):
        yield head(maps, map_labels, multi_output=True, normalization=normalization)
        params = {"multi_output": True, "normalization": normalization, "use_ignore": True, "ignore_label": 1}
        yield head(maps, map_labels, grad_scale=0.5, **params)
    rows = draw.normal(2, 3, 8)
    yield head(rows, draw.integers(3, 2, 8), multi_output=True)
    yield head(maps, map_labels.reshape(2, 8), multi_output=True, label="label of shape (N, rest)")
    inputs = {"data": rows, "label": draw.integers(8, 2, 3)}
    yield call(op, inputs, backward=False, label="more than two axes, flattened")
    for normalization in ("null", "batch", "valid"):
        yield head(rows, draw.integers(8, 2, 3), preserve_shape=True, normalization=normalization)
    yield head(flat, draw.uniform(0, 1, 4, 3), label="label of the data's shape")
    yield head(flat, draw.uniform(0, 1, 4, 3), grad_scale=3, normalization="batch")
    yield call("Softmax", {"data": flat, "label": labels}, hold=("label",))
    yield call(op, {"data": flat, "label": labels}, backward=False, train=False)


@golden
def regression_outputs(draw):
    names = "LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput"
    for op in names.split():
        for data, label in ((draw.normal(3, 4), draw.normal(3, 4)), (draw.normal(3, 1), draw.normal(3))):
            for params in ({}, {"grad_scale": 0.5}):
                yield call(op, {"data": data, "label": label}, hold=("label",), **params)


@golden
def make_loss(draw):
    positive = draw.normal(3, 4)
    for normalization in ("null", "batch", "valid"):
        yield call("MakeLoss", positive, normalization=normalization)
        yield call("MakeLoss", positive, normalization=normalization, grad_scale=0.5, valid_thresh=0.5)
    yield call("MakeLoss", draw.normal(2, 3, 4), normalization="batch")
    yield call("MakeLoss", draw.normal(5), normalization="batch")
    yield call(
        "MakeLoss", -np.abs(draw.normal(5)), normalization="valid", label="nothing above the threshold"
    )
    yield call("make_loss", draw.normal(3, 4))


@golden
def losses(draw):
    inputs = {"data": draw.normal(4, 3), "label": np.array([0, 2, 1, 2], np.float32)}
    yield call("softmax_cross_entropy", inputs, hold=("label",))
    inputs = {"data": draw.normal(4, 3), "label": np.array([0, 2, 1, 2], np.float32)}
    yield call("SVMOutput", inputs, hold=("label",))
    yield call(
        "SVMOutput", inputs, hold=("label",), use_linear=True, margin=0.5, regularization_coefficient=0.7
    )


@golden
def upsampling(draw):
    op = "UpSampling"
    yield call(op, [draw.normal(2, 3, 2, 3)], scale=2, sample_type="nearest", num_args=1)
    yield call(op, [draw.normal(1, 2, 2, 2)], scale=3, sample_type="nearest", num_args=1)
    both = [draw.normal(1, 2, 4, 4), draw.normal(1, 2, 2, 2)]
    yield call(op, both, scale=2, sample_type="nearest", num_args=2)
    yield call(op, both, scale=2, sample_type="nearest", num_args=2, multi_input_mode="sum")
    for scale in (2, 3, 4):
        kernel = 2 * scale - scale % 2
        inputs = [draw.normal(1, 2, 3, 4), draw.normal(2, 1, kernel, kernel)]
        yield call(op, inputs, scale=scale, sample_type="bilinear", num_filter=2, num_args=2)


@golden
def normalizations(draw):
    x = draw.normal(2, 3, 4, 2)
    for mode in ("instance", "channel", "spatial"):
        yield call("L2Normalization", x, mode=mode)
    yield call("L2Normalization", x, mode="channel", eps=0.5)
    yield call("L2Normalization", draw.normal(3, 4))
    maps = draw.normal(2, 6, 3, 3)
    yield call("LRN", maps, nsize=3)
    yield call("LRN", maps, nsize=5, alpha=0.01, beta=0.5, knorm=1)
    for op in ("InstanceNorm",):
        yield call(op, x)
        yield call(op, draw.normal(2, 3, 5), eps=0.1)
    yield call("LayerNorm", x)
    yield call("LayerNorm", x, axis=1, eps=1e-3)
    yield call("GroupNorm", {"data": maps, "gamma": draw.normal(2), "beta": draw.normal(2)}, num_groups=2)


@golden
def resizing(draw):
    op = "_contrib_BilinearResize2D"
    x = draw.normal(2, 2, 4, 5)
    for corners in (True, False):
        for height, width in ((8, 10), (3, 3), (4, 5), (1, 1), (7, 2)):
            yield call(op, x, height=height, width=width, align_corners=corners)
        yield call(op, x, scale_height=2, scale_width=1.5, mode="odd_scale", align_corners=corners)
    inputs = {"data": x, "like": draw.normal(1, 1, 6, 3)}
    # Its backward corrupts the heap in MXNet.
    yield call(op, inputs, mode="like", backward=False)
    for mode in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
        yield call(op, draw.normal(1, 1, 4, 5), mode=mode)
    pool = "_contrib_AdaptiveAvgPooling2D"
    for size in ((1,), (2,), (3, 2), (4, 5), (6, 7)):
        yield call(pool, x, output_size=size)
    yield call(pool, x)


@golden
def recurrent(draw):
    def layers(mode, steps=4, batch=2, features=3, state_size=5, num_layers=1, **params):
        directions, gates = (2 if params.get("bidirectional") else 1), {"lstm": 4, "gru": 3}.get(mode, 1)
        state = draw.normal(num_layers * directions, batch, state_size)
        widths = [features] + [directions * state_size] * (num_layers - 1)
        count = directions * gates * state_size * sum(width + state_size + 2 for width in widths)
        # Small weights: with large ones the rounding of each step grows from step to step.
        inputs = {
            "data": draw.normal(steps, batch, features),
            "parameters": draw.normal(count) / 2,
            "state": state,
        }
        if mode == "lstm":
            inputs["state_cell"] = draw.normal(*state.shape)
        return call("RNN", inputs, mode=mode, state_size=state_size, num_layers=num_layers, **params)

    for mode in ("rnn_relu", "rnn_tanh", "lstm", "gru"):
        yield layers(mode)
        yield layers(mode, state_outputs=True)
        yield layers(mode, num_layers=2, state_outputs=True)
        yield layers(mode, num_layers=3, bidirectional=True, state_outputs=True)
        yield layers(mode, steps=1, batch=1, features=1, state_size=1, bidirectional=True)
        yield layers(
            mode, steps=6, batch=3, features=8, state_size=2, num_layers=2, p=0.5, train=False, backward=False
        )


@golden
def spatial(draw):
    image = draw.normal(1, 2, 5, 6)
    grid = draw.uniform(-1.2, 1.2, 1, 2, 3, 4)
    yield call("BilinearSampler", {"data": image, "grid": grid})
    affine = np.array([[0.9, 0.1, 0.05, -0.1, 1.1, -0.1]], np.float32)
    yield call("GridGenerator", affine, transform_type="affine", target_shape=(3, 4))
    yield call("GridGenerator", draw.normal(1, 2, 3, 4), transform_type="warp")
    inputs = {"data": image, "loc": affine}
    kinds = {"transform_type": "affine", "sampler_type": "bilinear"}
    yield call("SpatialTransformer", inputs, target_shape=(3, 4), **kinds)
    yield call("_contrib_div_sqrt_dim", draw.normal(2, 4))


@golden
def deformable_convolution(draw):
    op = "_contrib_DeformableConvolution"

    def layer(kernel, out, groups=1, **params):
        inputs = {"data": draw.normal(2, 4, 6, 7)}
        inputs["offset"] = draw.normal(2, 2 * kernel[0] * kernel[1] * groups, *out) * 1.5
        return call(op, inputs, kernel=kernel, num_deformable_group=groups, **params)

    yield layer((3, 3), (6, 7), num_filter=2, pad=(1, 1))
    yield layer((3, 3), (4, 5), num_filter=2, no_bias=True)
    yield layer((3, 2), (3, 3), num_filter=2, stride=(2, 2), pad=(1, 0))
    yield layer((3, 3), (6, 7), num_filter=4, pad=(2, 2), dilate=(2, 2), groups=2)
    yield layer((3, 3), (6, 7), num_filter=4, pad=(1, 1), num_group=2, groups=4)
    yield layer((1, 1), (6, 7), num_filter=3)
