"""Each operator's lowering, run in onnxruntime beside the operator itself."""

import contextlib
import functools

import golden_files
import golden_harness
import numpy as np
import pytest

import roiops as mx
from roiops import registry
from roiops.errors import MXNetError
from roiops.graph.symbol import invoke
from roiops.kernels.rules import SAME_CHANNEL
from roiops.models import onnx as roiops_onnx
from roiops.models.archive import ArchivedModel
from roiops.operators import lowering
from roiops.operators.roi import dialects
from roiops.operators.tensor import arithmetic, unary

pytest.importorskip("onnx", reason="writing ONNX needs the onnx package")
pytest.importorskip("onnxruntime", reason="running ONNX needs onnxruntime")

from onnxruntime_session import session

from roiops.models.onnx import write
from roiops.models.onnx.check import check

sym = mx.sym
v = functools.cache(sym.Variable)


def noise(*shape, seed=0, low=None, high=None):
    random = np.random.default_rng(seed)
    if low is None:
        return random.standard_normal(shape).astype(np.float32)
    return random.uniform(low, high, shape).astype(np.float32)


def whole(*shape, top):
    return np.random.default_rng(1).integers(0, top, shape).astype(np.float32)


def boxes(count, size=40.0, columns=4, seed=3):
    """Corners of sensible boxes."""
    random = np.random.default_rng(seed)
    low = random.uniform(0, 0.7 * size, (count, 2))
    return np.concatenate([low, low + random.uniform(0.05 * size, 0.5 * size, (count, 2))], 1).astype(
        np.float32
    )


def rois(count=9, images=2, size=40.0):
    """Rows of which one is to be ignored, one lies outside, two are turned around, and one has no size."""
    rows = np.concatenate([np.arange(count)[:, None] % images, boxes(count, size)], 1).astype(np.float32)
    rows[1, 0] = -1
    rows[2, 1:] = (-30, -12, 20, 9)
    rows[3, 1:] = (20, 20, 8, 6)
    rows[4, 1:] = (7, 9, 7, 9)
    rows[5, 1:] = (20, 6, 8, 20)  # on one axis only
    return rows


def outputs_of(model, inputs, dtype):
    if dtype == "float32":
        return model(**inputs)
    arrays = {name: mx.nd.array(array, dtype=dtype) for name, array in inputs.items()}
    return model.symbol.bind(mx.cpu(), {**arrays, **model.params}).forward()


def run(symbol, arrays, params=(), opset=None, shapes=None, tolerance=2e-5, dtype="float32"):
    """Convert, check with full inference of shapes, run in both, compare; returns the protocol buffer."""
    import onnx

    held = {name: mx.nd.array(arrays[name].astype(dtype), dtype=dtype) for name in params}
    model = ArchivedModel(symbol, held)
    inputs = {
        name: arrays[name].astype(dtype)
        for name in symbol.list_arguments()
        if name in arrays and name not in params
    }
    shapes = shapes or {name: array.shape for name, array in inputs.items()}
    made = write.proto(roiops_onnx.prepare(model, shapes, opset=opset, dtype=dtype))
    onnx.checker.check_model(made, full_check=True)
    wanted = [a.asnumpy() for a in outputs_of(model, inputs, dtype)]
    running = session(made)
    feeds = {
        x.name: inputs[x.name].astype("i4" if "int32" in x.type else dtype) for x in running.get_inputs()
    }
    got = running.run(None, feeds)
    assert len(got) == len(wanted)
    for one, other in zip(wanted, got, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        scale = max(np.abs(one[np.isfinite(one)]).max(initial=0), 1e-6)
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * scale)
    return made


DATA = {"x": noise(2, 3, 7, 9)}
POSITIVE = {"x": noise(2, 3, 5, low=0.1, high=0.9)}
PAIR = {"a": noise(2, 3, 4), "b": noise(2, 3, 4, seed=1)}

UNARY = {row.names: row for row in unary.ROWS if row.onnx and row.names != "clip"}
OTHERS = ["zeros_like", "ones_like", "identity", "BlockGrad"]


@pytest.mark.parametrize("name", [*UNARY, *OTHERS])
def test_functions_of_one_array(name):
    low, high = UNARY[name].domain if name in UNARY else unary.Row.domain
    out = getattr(sym, name)(v("x") * 1)
    run(out, {"x": noise(2, 3, 5, low=max(low, 0.1), high=high)})
    if low < -1:
        run(out, {"x": np.array([-2.5, -1.5, -0.2, 0.3, 0.5, 2.5], np.float32)})


#: A power of these would be NaN: `test_arithmetic_with_numbers` has it.
BINARY = [name for row in arithmetic.ROWS if (name := row.broadcast.split()[0]) != "broadcast_power"]


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    arrays = {"a": np.round(noise(2, 3, 4)), "b": np.round(noise(1, 3, 1, seed=1))}
    run(getattr(sym, name)(v("a"), v("b")), arrays)


def test_arithmetic_with_numbers():
    x = v("x")
    results = [
        x + 2,
        2 - x,
        x * 3,
        x / 4,
        5 / (x + 9),
        x % 2,
        7 % (x + 9),
        (x + 9) ** 0.5,
        2**x,
        x > 0,
        x <= 0.5,
        sym.clip(x, a_min=-0.5, a_max=0.7),
        sym.clip(x, a_min=0.7, a_max=-0.5),
        sym.clip(sym.Cast(x * 9, dtype="int32"), a_min=5, a_max=-2),
        sym.smooth_l1(x, scalar=2),
    ]
    run(sym.Group(results), DATA)


CASES = {
    "Convolution": lambda: (
        sym.Convolution(v("x"), v("w"), v("b"), kernel=(3, 2), stride=(2, 1), pad=(1, 0), dilate=(1, 2), num_filter=4),
        {**DATA, "w": noise(4, 3, 3, 2), "b": noise(4)},
        ("w", "b"),
    ),
    "Convolution in groups, channels last": lambda: (
        sym.Convolution(v("x"), v("w"), kernel=(3, 3), num_filter=4, num_group=2, no_bias=True, layout="NHWC"),
        {"x": noise(2, 6, 7, 4), "w": noise(4, 3, 3, 2)},
        ("w",),
    ),
    "Convolution of one axis": lambda: (
        sym.Convolution(v("x"), v("w"), kernel=(3,), num_filter=4, no_bias=True),
        {"x": noise(2, 3, 9), "w": noise(4, 3, 3)},
        ("w",),
    ),
    "Deconvolution": lambda: (
        sym.Deconvolution(v("x"), v("w"), kernel=(4, 3), stride=(2, 3), pad=(1, 0), adj=(1, 2), num_filter=4, num_group=1),
        {**DATA, "w": noise(3, 4, 4, 3)},
        ("w",),
    ),
    "Deconvolution to a size": lambda: (
        sym.Deconvolution(v("x"), v("w"), kernel=(4, 4), stride=(2, 2), target_shape=(15, 18), num_filter=4),
        {**DATA, "w": noise(3, 4, 4, 4)},
        ("w",),
    ),
    "FullyConnected": lambda: (
        sym.FullyConnected(v("x"), v("w"), v("b"), num_hidden=5),
        {**DATA, "w": noise(5, 189), "b": noise(5)},
        ("w", "b"),
    ),
    "FullyConnected of the last axis": lambda: (
        sym.FullyConnected(v("x"), v("w"), v("b"), num_hidden=5, flatten=False),
        {**DATA, "w": noise(5, 9), "b": noise(5)},
        ("w", "b"),
    ),
    "LeakyReLU": lambda: (
        sym.Group(
            [sym.LeakyReLU(v("x"), act_type=kind) for kind in ("leaky", "elu", "selu", "gelu", "rrelu")]
            + [sym.LeakyReLU(v("x"), v("g"), act_type="prelu")]
        ),
        {**DATA, "g": noise(3, low=0.1, high=0.4)},
        ("g",),
    ),
    "Activation": lambda: (
        sym.Group([sym.Activation(v("x"), act_type=k) for k in ("relu", "sigmoid", "tanh", "softrelu", "softsign")]),
        DATA,
    ),
    "UpSampling": lambda: (
        sym.Group(
            [
                sym.UpSampling(v("x"), scale=2, sample_type="nearest"),
                sym.UpSampling(v("x"), v("w"), scale=3, sample_type="bilinear", num_filter=3),
                sym.UpSampling(v("y"), v("x"), scale=1, sample_type="nearest", num_args=2),
            ]
        ),
        {**DATA, "w": noise(3, 1, 5, 5), "y": noise(2, 2, 14, 18)},
        ("w",),
    ),
    "BilinearResize2D": lambda: (
        sym.Group(
            [
                sym.contrib.BilinearResize2D(v("x"), height=11, width=5),
                sym.contrib.BilinearResize2D(v("x"), height=11, width=5, align_corners=False),
                sym.contrib.BilinearResize2D(v("x"), height=1, width=4, align_corners=False),
                sym.contrib.BilinearResize2D(v("x"), height=1, width=1),
                sym.contrib.BilinearResize2D(v("x"), scale_height=1.7, scale_width=0.6),
                sym.contrib.BilinearResize2D(v("x"), v("y"), mode="like"),
            ]
        ),
        {**DATA, "y": noise(1, 1, 4, 12)},
    ),
    "AdaptiveAvgPooling2D": lambda: (
        sym.Group([sym.contrib.AdaptiveAvgPooling2D(v("x"), output_size=s) for s in (1, (7, 3), (4, 5))]),
        DATA,
    ),
    "sampling": lambda: (
        sym.Group(
            [
                sym.BilinearSampler(v("x"), sym.GridGenerator(v("m"), transform_type="affine", target_shape=(5, 6))),
                sym.SpatialTransformer(
                    v("x"), v("m"), target_shape=(4, 6), transform_type="affine", sampler_type="bilinear"
                ),
                sym.GridGenerator(v("f"), transform_type="warp"),
            ]
        ),
        {**DATA, "m": noise(2, 6) * 0.3 + np.array([1, 0, 0, 0, 1, 0], np.float32), "f": noise(2, 2, 4, 5)},
    ),
    "norms": lambda: (
        sym.Group(
            [
                sym.LayerNorm(v("x"), v("g9"), v("b9")),
                sym.LayerNorm(v("x"), v("g3"), v("b3"), axis=1),
                sym.InstanceNorm(v("x"), v("g3"), v("b3")),
                sym.LRN(v("x"), nsize=3, alpha=0.1),
                *(sym.L2Normalization(v("x"), mode=m) for m in ("instance", "channel", "spatial")),
            ]
        ),
        {**DATA, "g9": noise(9), "b9": noise(9), "g3": noise(3), "b3": noise(3)},
        ("g9", "b9", "g3", "b3"),
    ),
    "GroupNorm": lambda: (
        sym.GroupNorm(v("x"), v("g"), v("b"), num_groups=2),
        {"x": noise(2, 4, 5, 3), "g": noise(2), "b": noise(2)},
        ("g", "b"),
    ),
    "BatchNorm": lambda: (
        sym.Group(
            [
                sym.BatchNorm(v("x"), v("g"), v("b"), v("m"), v("s"), fix_gamma=False, eps=1e-3),
                sym.BatchNorm(v("x"), v("h"), v("b"), v("m"), v("s")),
                sym.BatchNorm(sym.transpose(v("x"), axes=(0, 2, 3, 1)), v("h"), v("b"), v("m"), v("s"), axis=3),
            ]
        ),
        {**DATA, "g": noise(3), "h": noise(3), "b": noise(3), "m": noise(3), "s": noise(3, low=0.5, high=2)},
        ("g", "h", "b", "m", "s"),
    ),
    "softmax": lambda: (
        sym.Group(
            [
                sym.softmax(v("x"), axis=1),
                sym.softmin(v("x")),
                sym.log_softmax(v("x"), axis=2, temperature=2.0),
                sym.SoftmaxActivation(v("x"), mode="channel"),
                sym.softmax(v("a"), v("n"), use_length=True, axis=1),
            ]
        ),
        {**DATA, "a": noise(2, 6), "n": np.array([3, 6], np.float32)},
    ),
    "losses": lambda: (
        sym.Group(
            [
                sym.SoftmaxOutput(v("x"), v("label"), multi_output=True),
                sym.SoftmaxOutput(v("x"), v("fifth_label"), preserve_shape=True),
                sym.SoftmaxOutput(v("x"), v("second_label")),
                sym.LogisticRegressionOutput(v("x"), v("third_label")),
                sym.LinearRegressionOutput(v("x"), v("fourth_label")),
                sym.MakeLoss(v("x") * 2),
            ]
        ),
        DATA,
    ),
    "shapes": lambda: (
        sym.Group(
            [
                sym.Reshape(v("x"), shape=(0, -3, -1)),
                sym.Reshape(v("x"), shape=(-4, 1, 2, -2)),
                sym.Flatten(v("x")),
                sym.expand_dims(v("x"), axis=-1),
                sym.squeeze(sym.expand_dims(v("x"), axis=2)),
                sym.transpose(v("x"), axes=(0, 2, 3, 1)),
                sym.SwapAxis(v("x"), dim1=1, dim2=3),
                sym.reshape_like(v("x"), v("y")),
                sym.shape_array(v("x")),
                sym.size_array(v("x")),
            ]
        ),
        {**DATA, "y": noise(2, 7, 27)},
    ),
    "blocks": lambda: (
        sym.Group([sym.depth_to_space(v("x"), block_size=2), sym.space_to_depth(v("x"), block_size=2)]),
        {"x": noise(2, 8, 4, 6)},
    ),
    "joins": lambda: (
        sym.Group(
            [sym.concat(v("a"), v("b"), dim=2), sym.stack(v("a"), v("b"), axis=1), sym.add_n(v("a"), v("b"), v("a"))]
        ),
        PAIR,
    ),
    "slices": lambda: (
        sym.Group(
            [
                sym.slice_axis(v("x"), axis=2, begin=1, end=-2),
                sym.slice_axis(v("x"), axis=-1, begin=-3, end=None),
                sym.slice(v("x"), begin=(None, 2, 5), end=(None, None, 0), step=(1, -1, -2)),
                sym.slice_like(v("x"), v("y"), axes=(2, 3)),
                sym.Crop(v("x"), v("y"), num_args=2),
                sym.Crop(v("x"), v("y"), num_args=2, center_crop=True),
                sym.Crop(v("x"), num_args=1, offset=(1, 2), h_w=(3, 4)),
                sym.reverse(v("x"), axis=(1, 3)),
                *sym.split(v("x"), num_outputs=3, axis=1),
                *sym.split(v("x"), num_outputs=3, axis=1, squeeze_axis=True),
            ]
        ),
        {**DATA, "y": noise(1, 1, 5, 4)},
    ),
    "repeats": lambda: (
        sym.Group(
            [
                sym.tile(v("a"), reps=(2, 1, 3)),
                sym.tile(v("a"), reps=(2, 1, 3, 1)),
                sym.repeat(v("a"), repeats=3, axis=1),
                sym.repeat(v("a"), repeats=2),
                sym.broadcast_to(v("c"), shape=(2, 3, 4)),
                sym.broadcast_axis(v("c"), axis=(0, 2), size=(2, 4)),
                sym.broadcast_like(v("c"), v("a")),
                sym.Pad(v("x"), mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 3, 0), constant_value=2.5),
                sym.Pad(v("x"), mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)),
                sym.Pad(v("x"), mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)),
            ]
        ),
        {**PAIR, **DATA, "c": noise(1, 3, 1)},
    ),
    "products": lambda: (
        sym.Group(
            [
                sym.batch_dot(v("a"), v("b"), transpose_b=True),
                sym.batch_dot(v("a"), v("b"), transpose_a=True),
                sym.dot(v("m"), v("n")),
                sym.dot(v("m"), v("m"), transpose_a=True),
                sym.dot(v("a"), v("n")),
            ]
        ),
        {**PAIR, "m": noise(5, 4), "n": noise(4, 6)},
    ),
    "reductions": lambda: (
        sym.Group(
            [
                sym.sum(v("x")),
                sym.sum(v("x"), axis=(1, 2), keepdims=True),
                sym.mean(v("x"), axis=1, exclude=True),
                sym.max(v("x"), axis=-1),
                sym.min(v("x"), axis=(0, 1)),
                sym.prod(v("x"), axis=1),
                sym.norm(v("x"), axis=1),
                sym.norm(v("x"), ord=1, axis=(2, 3), keepdims=True),
                sym.argmax(v("x"), axis=1),
                sym.argmin(v("x"), axis=2, keepdims=True),
                sym.argmax_channel(v("x")),
                *sym.moments(v("x"), axes=(0, 2, 3)),
            ]
        ),
        DATA,
    ),
    "order": lambda: (
        sym.Group(
            [
                sym.topk(v("x"), k=3, axis=3),
                *sym.topk(v("x"), k=2, axis=1, ret_typ="both", is_ascend=True),
                sym.topk(v("x"), k=4, axis=-1, ret_typ="mask"),
                sym.sort(v("x"), axis=2, is_ascend=False),
                sym.argsort(v("x"), axis=None),
            ]
        ),
        {"x": np.round(noise(2, 3, 7, 9), 1)},  # with equal entries
    ),
    "indices": lambda: (
        sym.Group(
            [
                sym.take(v("x"), v("i"), axis=1),
                sym.take(v("x"), v("i") - 2, axis=2, mode="wrap"),
                sym.Embedding(v("i"), v("w"), input_dim=6, output_dim=4),
                sym.pick(v("m"), v("p"), axis=1),
                sym.pick(v("m"), v("p"), axis=1, keepdims=True),
                sym.one_hot(v("i") - 1, depth=4, on_value=2.0, off_value=-1.0),
                sym.gather_nd(v("x"), v("n")),
                sym.scatter_nd(v("p"), v("s"), shape=(6, 3)),
                sym.where(v("m") > 0, v("m"), v("m") * 2),
                sym.where(v("p"), v("m"), v("m") * 2),
            ]
        ),
        {
            **DATA,
            "i": whole(2, 3, top=6),
            "w": noise(6, 4),
            "m": noise(5, 7),
            "p": whole(5, top=7),
            "n": np.array([[0, 1, 1], [2, 0, 1]], np.float32),
            "s": np.array([[0, 1, 2, 3, 5], [2, 0, 1, 1, 0]], np.float32),
        },
    ),
    "sequences": lambda: (
        sym.Group(
            [
                sym.SequenceMask(v("x"), v("n"), use_sequence_length=True, value=-1),
                sym.SequenceLast(v("x"), v("n"), use_sequence_length=True),
                sym.SequenceLast(v("x")),
                sym.SequenceReverse(v("x"), v("n"), use_sequence_length=True),
                sym.SequenceReverse(v("x")),
            ]
        ),
        {"x": noise(5, 3, 2), "n": np.array([2, 5, 1], np.float32)},
    ),
    "created": lambda: (
        sym.Group(
            [
                v("a") + sym.zeros((2, 3, 4)),
                v("a") * sym.ones((2, 3, 4)),
                sym.broadcast_add(v("a"), sym.arange(0, 8, 2)),
                sym.elemwise_add(sym.Reshape(v("a"), shape=(-1,)), sym.arange(3, step=0.5, infer_range=True)),
                sym.Cast(v("a") * 9, dtype="int32"),
                sym.cumsum(v("a"), axis=1),
            ]
        ),
        PAIR,
    ),
    "box_decode": lambda: (
        sym.contrib.box_decode(v("x"), v("a"), std0=0.1, std1=0.1, std2=0.2, std3=0.2, clip=1.0),
        {"x": noise(2, 5, 4) * 4, "a": boxes(5)[None]},
    ),
    "box_iou": lambda: (sym.contrib.box_iou(v("a"), v("b")), {"a": boxes(5), "b": boxes(7, seed=4)}),
    "DeformableConvolution": lambda: (
        sym.contrib.DeformableConvolution(
            v("x"), v("o"), v("w"), v("b"), kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=4, num_deformable_group=3
        ),
        {**DATA, "o": noise(2, 54, 4, 5) * 2, "w": noise(4, 3, 3, 3), "b": noise(4)},
        ("w", "b"),
    ),
    "ModulatedDeformableConvolution": lambda: (
        sym.contrib.ModulatedDeformableConvolution(
            v("x"), v("o"), v("m"), v("w"), v("b"), kernel=(3, 3), pad=(1, 1), num_filter=4
        ),
        {**DATA, "o": noise(2, 18, 7, 9) * 2, "m": noise(2, 9, 7, 9, low=0, high=1), "w": noise(4, 3, 3, 3), "b": noise(4)},
        ("w", "b"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operators(case):
    symbol, arrays, *params = CASES[case]()
    run(symbol, arrays, *params)


@pytest.mark.parametrize(
    "case", ["Convolution", "reductions", "slices", "BilinearResize2D", "order", "norms"]
)
def test_operators_in_the_newest_opset(case):
    symbol, arrays, *params = CASES[case]()
    made = run(symbol, arrays, *params, opset=roiops_onnx.NEWEST)
    assert made.opset_import[0].version == roiops_onnx.NEWEST


@pytest.mark.parametrize("case", ["DeformableConvolution", "ModulatedDeformableConvolution"])
def test_deformable_convolution_before_opset_19(case):
    symbol, arrays, *params = CASES[case]()
    made = run(symbol, arrays, *params, opset=17)
    assert "GridSample" in {node.op_type for node in made.graph.node}
    assert "DeformConv" in {node.op_type for node in run(symbol, arrays, *params).graph.node}


def test_deformable_convolution_of_groups_and_dilated():
    symbol = sym.contrib.DeformableConvolution(
        v("x"), v("o"), v("w"), v("b"), kernel=(3, 2), pad=(2, 1), stride=(1, 2), dilate=(2, 1), num_filter=4,
        num_deformable_group=2, num_group=2,
    )  # fmt: skip
    arrays = {"x": noise(2, 4, 7, 9), "o": noise(2, 24, 7, 5) * 3, "w": noise(4, 2, 3, 2), "b": noise(4)}
    for opset in (17, 19):
        run(symbol, arrays, ("w", "b"), opset=opset)


POOLINGS = [
    {"pool_type": kind, "kernel": (3, 2), "stride": (2, 2), "pad": (1, 0), "pooling_convention": convention, **more}
    for kind in ("max", "avg", "sum")
    for convention in ("valid", "full")
    for more in ([{}, {"count_include_pad": False}] if kind == "avg" else [{}])
] + [
    {"pool_type": "avg", "kernel": (3, 3), "stride": (2, 2), "pooling_convention": "same"},
    {"pool_type": "lp", "p_value": 2, "kernel": (2, 3), "stride": (1, 2)},
    *({"pool_type": kind, "global_pool": True, "kernel": (1, 1)} for kind in ("max", "avg", "sum")),
]  # fmt: skip


@pytest.mark.parametrize("params", POOLINGS, ids=str)
def test_pooling(params):
    for size in ((7, 9), (8, 8)):
        run(sym.Pooling(v("x"), **params), {"x": noise(2, 3, *size)})
    if not params.get("global_pool"):
        first = {
            k: a
            for k, a in params.items()
            if k in ("kernel", "stride", "pad", "pool_type", "pooling_convention")
        }
        if first["pool_type"] in ("max", "avg") and params.get("pooling_convention") != "same":
            run(sym.Pooling_v1(v("x"), **first), {"x": noise(2, 3, 7, 9)})


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers(mode, bidirectional):
    from roiops.kernels.cpu.network.recurrent import num_parameters

    count = num_parameters(mode, 4, 5, 2, 1 + bidirectional)
    first = noise(2 * (1 + bidirectional), 2, 5)
    arrays = {"x": noise(6, 2, 4), "p": noise(count) * 0.3, "h": first}
    states = [v("h")]
    if mode == "lstm":
        arrays["c"] = first * 0.5
        states.append(v("c"))
    net = sym.RNN(
        v("x"), v("p"), *states, state_size=5, num_layers=2, mode=mode, bidirectional=bidirectional, state_outputs=True
    )  # fmt: skip
    run(net, arrays, ("p",))
    run(net, arrays, ("p",), dtype="float16", tolerance=2 * 2.0**-10)  # two layers, each rounded


# -- boxes -----------------------------------------------------------------------------------------------


def detections(images=2, count=40, classes=3):
    random = np.random.default_rng(5)
    kinds = random.integers(-1, classes, (images, count, 1))
    scores = np.round(random.uniform(0, 1, (images, count, 1)), 2)  # with ties
    corners = np.stack([boxes(count, seed=s) for s in range(images)])
    return np.concatenate([kinds, scores, corners], 2).astype(np.float32)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"topk": 10, "id_index": 0},
        {"topk": 10, "id_index": 0, "background_id": 0, "valid_thresh": 0.3},
        {"id_index": 0, "force_suppress": True, "overlap_thresh": 0.2},
        {"in_format": "center", "out_format": "corner"},
        {"out_format": "center", "topk": 1000},
        {"topk": 0},
    ],
    ids=str,
)
def test_box_nms(params):
    run(sym.contrib.box_nms(v("x"), **{"overlap_thresh": 0.4, **params}), {"x": detections()})
    run(sym.contrib.box_nms(v("x"), **params), {"x": detections()[0]})
    none = detections()
    none[..., 1] = -1
    run(sym.contrib.box_nms(v("x"), **params), {"x": none})


@pytest.mark.parametrize("seed", range(3))
def test_reversed_boxes_suppress_nothing_and_stay(seed):
    found = detections()
    turned = np.random.default_rng(seed).random(found.shape[:2]) < 0.4
    found[turned, 2:] = found[turned][:, [4, 3, 2, 5]]
    run(sym.contrib.box_nms(v("x"), overlap_thresh=0.1, force_suppress=True), {"x": found})


@pytest.mark.parametrize("operator", ["Proposal", "MultiProposal"])
@pytest.mark.parametrize(
    "more", [{}, {"iou_loss": True}, {"rpn_pre_nms_top_n": 20, "rpn_min_size": 0}], ids=str
)
def test_proposals(operator, more):
    images = 1 if operator == "Proposal" else 2
    arrays = {
        "c": noise(images, 12, 6, 8, low=0, high=1),
        "d": noise(images, 24, 6, 8) * 0.3,
        "i": np.array([[96, 128, 1.5], [80, 100, 1]], np.float32)[:images],
    }
    params = {"rpn_min_size": 8, "rpn_post_nms_top_n": 30, "rpn_pre_nms_top_n": 100, **more}
    params.update(scales=(1, 2), ratios=(0.5, 1, 2), output_score=True, threshold=0.6)
    found = getattr(sym.contrib, operator)(v("c"), v("d"), v("i"), **params)
    run(sym.Group(list(found)), arrays)


@pytest.mark.parametrize(
    "params", [{}, {"nms_topk": 15}, {"force_suppress": True, "clip": False}, {"nms_threshold": -1}], ids=str
)
def test_multi_box_detection(params):
    arrays = {
        "s": noise(2, 4, 50, low=0, high=1),
        "l": noise(2, 200),
        "a": boxes(50, 1.0)[None],
    }
    params = {"threshold": 0.5, "nms_threshold": 0.3, **params}
    run(sym.contrib.MultiBoxDetection(v("s"), v("l"), v("a"), **params), arrays)


@pytest.mark.parametrize("params", [{}, {"negative_mining_ratio": 3.0}, {"overlap_threshold": 0.0}], ids=str)
def test_multi_box_target(params):
    labels = np.full((3, 4, 5), -1, np.float32)
    labels[0, :3, 0], labels[0, :3, 1:] = (1, 0, 2), boxes(3, 1.0, seed=7)
    labels[1, :1, 0], labels[1, :1, 1:] = 2, boxes(1, 1.0, seed=8)
    arrays = {"a": boxes(60, 1.0)[None], "y": labels, "s": noise(3, 4, 60)}
    run(sym.Group(list(sym.contrib.MultiBoxTarget(v("a"), v("y"), v("s"), **params))), arrays)


# -- regions of interest ---------------------------------------------------------------------------------

POOLED = {"pooled_size": (3, 3), "spatial_scale": 0.25}
ROI_CASES = [
    ("ROIPooling", 5, {}),
    *(("ROIPooling", 5, {"dialect": d}) for d in ("torchvision", "mmcv", "chainer")),
    ("ROIPooling", 5, {"dialect": "chainer", "mode": "avg"}),
    ("contrib.ROIAlign", 5, {"sample_ratio": 2}),
    ("contrib.ROIAlign", 5, {"aligned": True}),
    ("contrib.ROIAlign", 18, {"position_sensitive": True, "sample_ratio": 2}),
    ("ROIAlign", 5, {"sampling_ratio": 2}),
    ("ROIAlign", 5, {"aligned": False}),
    ("ROIAlign", 5, {"mode": "max", "sampling_ratio": 2}),
    ("ROIAlign", 5, {"mode": "max"}),
    ("ROIAlign", 5, {"dialect": "chainer", "mode": "max"}),
    ("ROIAlign", 5, {"dialect": "mxnet"}),
    ("PSROIPooling", 18, {"output_dim": 2}),
    ("PSROIPooling", 8, {"output_dim": 2, "group_size": 2}),
    *(("PSROIPooling", 18, {"output_dim": 2, "dialect": d}) for d in ("torchvision", "chainer")),
    ("PSROIPooling", 18, {"output_dim": 2, "dialect": "torchvision", "as_released": True}),
    ("PSROIPooling", 18, {"output_dim": 2, "dialect": "paddle"}),
    *(("ROIAlign", 5, {"mode": "max", "dialect": "onnx", "aligned": aligned}) for aligned in (False, True)),
    ("PrROIPooling", 5, {}),
    ("PSROIPooling", 18, {"output_dim": 2, "dialect": "chainer", "mode": "max"}),
    *(("PSROIAlign", 18, {"output_dim": 2, "dialect": d}) for d in ("rfcn", "torchvision", "chainer")),
    ("PSROIAlign", 18, {"output_dim": 2, "dialect": "chainer", "mode": "max"}),
]


def _cases_of_the_table():
    """Rows of the table of dialects that none of the cases above is of."""
    done = {
        registry.get(_registered(name)).create({**POOLED, **more}).params.row for name, _, more in ROI_CASES
    }
    names = {row.operator for row in done}
    for row in dialects.TABLE.values():
        if row.operator in names and row not in done:
            separate = row.rules.channels != SAME_CHANNEL
            more = {"output_dim": 2} if row.operator.startswith("PS") else {}
            yield row.operator, 18 if separate else 5, {**row.parameters, **more}


def _registered(name):
    return f"_{name.replace('.', '_')}" if "." in name else name


ROI_CASES += _cases_of_the_table()


@pytest.mark.parametrize(("name", "channels", "params"), ROI_CASES, ids=str)
def test_regions_of_interest(name, channels, params):
    operator = getattr(sym.contrib, name.split(".")[1]) if "." in name else getattr(sym, name)
    arrays = {"x": noise(2, channels, 11, 12), "r": rois()}
    run(operator(v("x"), v("r"), **POOLED, **params), arrays)


def turned(degrees=False):
    """The same boxes as centres and sizes, with angles."""
    rows = rois()
    angle = np.random.default_rng(5).uniform(-4, 4, (len(rows), 1)) * (60 if degrees else 1)
    middle, size = (rows[:, 1:3] + rows[:, 3:]) / 2, np.abs(rows[:, 3:] - rows[:, 1:3])
    return np.concatenate([rows[:, :1], middle, size, angle], 1).astype(np.float32)


@pytest.mark.parametrize(
    ("operator", "params"),
    [
        (sym.contrib.RROIAlign, {"sampling_ratio": 2}),
        (sym.ROIAlignRotated, {}),
        (sym.ROIAlignRotated, {"sampling_ratio": (2, 1), "aligned": False, "clockwise": True}),
        (sym.ROIAlignRotated, {"dialect": "detectron2", "sampling_ratio": 3}),
        (sym.RiROIAlign, {"num_orientations": 4, "sampling_ratio": 2}),
        (sym.RiROIAlign, {"num_orientations": 4, "clockwise": True}),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_turned_boxes(operator, params):
    degrees = operator is sym.contrib.RROIAlign or "dialect" in params
    run(operator(v("x"), v("r"), **POOLED, **params), {"x": noise(2, 8, 11, 12), "r": turned(degrees)})


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 2)])
def test_crop_and_resize(mode, size):
    rows = rois()
    rows[:, 1:] = rows[:, 1:] / 44
    rows[5, 1:] = (0, 0, 1, 1)  # whose points lie on the border
    made = sym.CropAndResize(v("x"), v("r"), pooled_size=size, mode=mode, extrapolation_value=-2.0)
    run(made, {"x": noise(2, 5, 11, 12), "r": rows})
    run(sym.CropAndResize(v("x"), v("r"), pooled_size=size, mode=mode, layout="NHWC"),
        {"x": noise(2, 11, 12, 5), "r": rows})  # fmt: skip


@pytest.mark.parametrize("ratio", [0, 2])
def test_deform_roi_pooling(ratio):
    arrays = {"x": noise(2, 5, 11, 12), "r": rois(), "o": noise(9, 2, 3, 3)}
    made = sym.DeformROIPooling(v("x"), v("r"), v("o"), gamma=0.2, sampling_ratio=ratio, **POOLED)
    run(made, arrays)
    arrays["r"][:, 3:] = arrays["r"][:, 1:3] = np.round(arrays["r"][:, 1:3])
    arrays["r"][:, 3:] += (12, 24)  # bins of whole pixels
    run(made, arrays)


@pytest.mark.parametrize("dialect", ["torchvision", "detectron2", "mmdet"])
def test_multi_scale_align(dialect):
    sizes = {"canonical_size": 10.0, "canonical_level": 3}
    made = sym.MultiScaleROIAlign(
        v("a"), v("b"), v("c"), v("r"), num_args=4, pooled_size=(3, 3), sampling_ratio=2,
        spatial_scales=(0.5, 0.25, 0.125), dialect=dialect, **({} if dialect == "mmdet" else sizes),
    )  # fmt: skip
    rows = rois()
    rows[6, 1:] = (4, 4, 14, 14)  # on the border between two levels
    arrays = {name: noise(2, 5, 24 // n, 20 // n) for name, n in (("a", 1), ("b", 2), ("c", 4))}
    run(made, {**arrays, "r": rows})


@pytest.mark.parametrize("classes", [0, 1, 2])
def test_deformable_psroi_pooling(classes):
    params = {"spatial_scale": 0.25, "output_dim": 4, "group_size": 3, "pooled_size": 3, "sample_per_part": 4}
    arrays = {"x": noise(2, 36, 11, 12), "r": rois()}
    if not classes:
        run(sym.contrib.DeformablePSROIPooling(v("x"), v("r"), no_trans=True, **params), arrays)
        return
    arrays["t"] = noise(9, 2 * classes, 3, 3) * 2
    run(sym.contrib.DeformablePSROIPooling(v("x"), v("r"), v("t"), trans_std=0.1, **params), arrays)


@pytest.mark.parametrize(
    ("name", "shapes", "params"),
    [
        ("_linalg_gemm", [(2, 3, 4), (2, 4, 5), (2, 3, 5)], {"alpha": 2.0, "beta": 0.5}),
        ("_linalg_gemm2", [(4, 2, 3), (5, 2, 4)], {"transpose_a": True, "transpose_b": True, "axis": 0}),
        ("_linalg_syrk", [(2, 3, 4)], {"transpose": True, "alpha": -1.5}),
        ("_linalg_det", [(3, 3)], {}),
        ("_linalg_det", [(2, 3, 3)], {}),
        ("_image_to_tensor", [(2, 4, 5, 3)], {}),
        ("_image_normalize", [(3, 4, 5)], {"mean": (1, 2, 3), "std": (2, 3, 4)}),
        ("_image_crop", [(5, 6, 3)], {"x": 1, "y": 2, "width": 3, "height": 2}),
        ("_image_flip_left_right", [(5, 6, 3)], {}),
        ("_image_flip_top_bottom", [(2, 5, 6, 3)], {}),
        ("_contrib_interleaved_matmul_selfatt_qk", [(4, 2, 18)], {"heads": 3}),
        ("_contrib_interleaved_matmul_selfatt_valatt", [(4, 2, 18), (6, 4, 4)], {"heads": 3}),
        ("_contrib_interleaved_matmul_encdec_qk", [(4, 2, 6), (5, 2, 12)], {"heads": 3}),
        ("_contrib_interleaved_matmul_encdec_valatt", [(5, 2, 12), (6, 4, 5)], {"heads": 3}),
        ("Correlation", [(2, 3, 7, 8)] * 2, {"max_displacement": 2, "pad_size": 2}),
        ("Correlation", [(2, 3, 7, 8)] * 2,
         {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 3,
          "is_multiply": False}),
    ],
)  # fmt: skip
def test_algebra_pictures_and_attention(name, shapes, params):
    names = "abc"[: len(shapes)]
    arrays = {n: noise(*shape, seed=i) for i, (n, shape) in enumerate(zip(names, shapes, strict=True))}
    run(getattr(sym.op, name)(*map(v, names), **params), arrays)


# -- float16 ---------------------------------------------------------------------------------------------

#: Both sides compute in float32 and round once, so they are no more than one unit in the last place apart.
HALF = {"dtype": "float16", "tolerance": 2.0**-10}


@pytest.mark.parametrize(
    ("name", "channels", "params"),
    ROI_CASES[::3],
    ids=str,
)
def test_regions_of_interest_in_float16(name, channels, params):
    operator = getattr(sym.contrib, name.split(".")[1]) if "." in name else getattr(sym, name)
    run(operator(v("x"), v("r"), **POOLED, **params), {"x": noise(2, channels, 11, 12), "r": rois()}, **HALF)


def test_detection_in_float16():
    run(sym.contrib.box_nms(v("x"), topk=10, id_index=0), {"x": detections()}, **HALF)
    arrays = {"s": noise(2, 4, 50, low=0, high=1), "l": noise(2, 200), "a": boxes(50, 1.0)[None]}
    run(sym.contrib.MultiBoxDetection(v("s"), v("l"), v("a"), threshold=0.5), arrays, **HALF)
    arrays = {
        "c": noise(2, 12, 6, 8, low=0, high=1),
        "d": noise(2, 24, 6, 8) * 0.3,
        "i": np.array([[96, 128, 1.5], [80, 100, 1]], np.float32),
    }
    params = {"rpn_min_size": 8, "rpn_post_nms_top_n": 30, "rpn_pre_nms_top_n": 100}
    found = sym.contrib.MultiProposal(v("c"), v("d"), v("i"), scales=(1, 2), ratios=(0.5, 1, 2), **params)
    run(found, arrays, **HALF)


@pytest.mark.parametrize("case", ["DeformableConvolution", "ModulatedDeformableConvolution"])
@pytest.mark.parametrize("opset", [17, 19])
def test_deformable_convolution_in_float16(case, opset):
    symbol, arrays, *params = CASES[case]()
    run(symbol, arrays, *params, opset=opset, **HALF)


# -- what there is ---------------------------------------------------------------------------------------


def test_every_lowering_is_of_a_registered_operator_under_its_own_name():
    run(v("x") * 2, DATA)  # loads all families
    for name, op_type in lowering._lowerings:
        if op_type is None:
            assert registry.get(name).name == name


#: Operators without a lowering, and why.
NONE = {
    "Custom",  # the user's own
    "erfinv", "gamma", "gammaln",  # ONNX has no such function
    "_contrib_bipartite_matching", "_contrib_mrcnn_mask_target",  # training only
    "_contrib_boolean_mask",  # no graph holds it: the number of its rows is known when they are counted
    "all_finite", "multi_all_finite", "_contrib_allclose",  # training and tests only
    "CTCLoss", "im2col", "col2im", "_histogram", "_contrib_quantize", "_contrib_dequantize",
    "_linalg_extractdiag", "_linalg_extracttrian", "_linalg_gelqf", "_linalg_inverse", "_linalg_makediag",
    "_linalg_maketrian", "_linalg_potrf", "_linalg_potri", "_linalg_slogdet", "_linalg_sumlogdiag",
    "_linalg_syevd", "_linalg_trmm", "_linalg_trsm",
    "_contrib_index_array", "_ravel_multi_index", "_unravel_index", "diag", "khatri_rao",
}  # fmt: skip


def is_random(name):
    """Random numbers are of no use in an inference graph."""
    return name.startswith(("_random_", "_sample_")) or name == "_shuffle"


def test_every_other_operator_has_a_lowering():
    run(v("x") * 2, DATA)
    ours = [n for n in registry.list_operators() if registry.get(n).__module__.startswith("roiops.")]
    assert {name for name in ours if lowering.find(name) is None and not is_random(name)} == NONE


#: Operators whose golden cases are converted, with lengths fixed and with those above 1 open, where that goes.
GOLDEN = {
    "Crop", "GridGenerator", "SliceChannel", "_contrib_BilinearResize2D", "_contrib_MultiBoxPrior", "_contrib_arange_like",
    "_contrib_box_encode", "_eye", "_identity_with_attr_like_rhs", "_linspace", "_slice_assign", "_slice_assign_scalar",
    "_split_v2", "ones_like", "reshape_like", "size_array", "softmax_cross_entropy", "squeeze", "zeros_like",
}  # fmt: skip


def in_float32(case):
    return case.op in GOLDEN and {a.dtype.name for a in case.arrays.values()} == {"float32"}


@pytest.mark.parametrize("case", golden_harness.cases(*golden_files.names("ops"), only=in_float32))
def test_golden_cases(case):
    given = golden_harness.invoke(case)
    arrays = dict(zip(given.prop.list_arguments(), given.in_data, strict=True))
    symbol = invoke(registry.get(case.op), [v(each) for each in arrays], case.params)
    run(symbol, arrays)
    shapes = {each: tuple(f"d{n}" if n > 1 else n for n in a.shape) for each, a in arrays.items()}
    with contextlib.suppress(MXNetError):
        run(symbol, arrays, shapes=shapes)


def test_check_compares_a_model_with_its_file(tmp_path):
    symbol = sym.FullyConnected(v("data"), v("w"), num_hidden=2, no_bias=True, name="fc")
    params = {"w": mx.nd.array(noise(2, 3))}
    made = roiops_onnx.to_onnx(symbol, params, shapes={"data": ("N", 3)}, path=tmp_path / "m.onnx")
    (found,) = check(tmp_path / "m.onnx", ArchivedModel(symbol, params), {"data": noise(4, 3)})
    assert found.name == "fc_output"
    assert found.agrees
    other = ArchivedModel(symbol, {"w": mx.nd.array(noise(2, 3, seed=9))})
    (found,) = check(made, other, {"data": noise(4, 3)})
    assert not found.agrees
