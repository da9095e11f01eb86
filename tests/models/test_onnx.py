"""Saved models as ONNX files, run in onnxruntime: against MXNet's golden outputs, and beside roiops."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops import cli
from roiops.errors import GraphError
from roiops.models import onnx as roiops_onnx
from roiops.models import to_onnx
from roiops.models.archive import ArchivedModel
from roiops.models.compare import compare_boxes, relative_difference, split_boxes

onnx = pytest.importorskip("onnx", reason="writing ONNX needs the onnx package")
pytest.importorskip("onnxruntime", reason="running ONNX needs onnxruntime")

from onnxruntime_session import session  # noqa: E402

from roiops.models.onnx import write  # noqa: E402
from roiops.models.onnx.check import check  # noqa: E402
from roiops.operators.lowering import lowers  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sym = mx.sym


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# -- the zoo's small models against MXNet ----------------------------------------------------------------


@pytest.fixture(scope="module")
def golden_model():
    """Reads a golden file of the model zoo."""
    sys.path.insert(0, str(ROOT / "verify" / "zoo"))
    sys.path.insert(0, str(Path(__file__).parent))
    from test_model_zoo import Golden

    yield Golden
    sys.path.remove(str(Path(__file__).parent))
    sys.path.remove(str(ROOT / "verify" / "zoo"))


GOLDEN = sorted(path.stem for path in (ROOT / "tests" / "golden" / "models").glob("*.npz"))


@pytest.mark.parametrize(
    ("name", "opset"),
    # With deformable convolutions there is another way before DeformConv.
    [*((name, None) for name in GOLDEN), ("gluoncv_center_net_resnet18_v1b_dcnv2_voc", 17)],
)
def test_small_models_of_the_zoo_give_what_mxnet_gave(golden_model, name, opset):
    golden = golden_model(name)
    inputs = golden.group("input")
    shapes = {key: a.shape for key, a in inputs.items()}
    made = to_onnx(golden.symbol, golden.params, shapes=shapes, opset=opset)
    assert opset is None or made.opset_import[0].version == opset
    onnx.checker.check_model(made, full_check=True)
    running = session(made)
    names = golden.symbol.list_outputs()
    assert [each.name for each in running.get_outputs()] == names
    got = dict(
        zip(names, running.run(None, {x.name: inputs[x.name] for x in running.get_inputs()}), strict=True)
    )
    want = golden.group("out")
    boxes, rest = split_boxes({key: want[key] for key in names})
    if boxes is not None:
        count, wrong, _ = compare_boxes(boxes, split_boxes(got)[0], inputs["data"].shape[2:])
        assert count > 10
        assert wrong == 0
    for key, array in rest.items():
        step = golden.meta["steps"][key]
        found = got[key].reshape(-1)[::step] if step > 1 else got[key]
        assert relative_difference(array, found) <= 1e-4, key


def test_a_faster_rcnn_that_mxnet_saved_gives_what_mxnet_gave():
    folder = ROOT / "examples"
    made = to_onnx(
        folder / "archived" / "shapes-symbol.json",
        folder / "rcnn" / "model" / "model.params",
        shapes={"data": (1, 3, 128, 128), "im_info": (1, 3)},
        dtype="float32",
    )
    with np.load(ROOT / "tests" / "golden" / "archived.npz") as file:
        golden = {name: file[name] for name in file.files}
    running = session(made)
    inputs = {each.name: golden[each.name] for each in running.get_inputs()}
    for each, got in zip(running.get_outputs(), running.run(None, inputs), strict=True):
        assert relative_difference(golden[each.name], got) <= 1e-4, each.name


CONVERTED = sorted((ROOT / "tests" / "golden" / "converted").glob("*.npz"))


def converted(path):
    """A golden file: the symbol, its parameters, the inputs, and what MXNet gave."""
    with np.load(path) as file:
        arrays = {}
        for name in file.files:
            kind, _, rest = name.partition("/")
            arrays.setdefault(kind, {})[rest] = file[name]
        symbol = sym.load_json(bytes(file["symbol"]).decode())
    return symbol, arrays["param"], arrays["input"], arrays["output"]


@pytest.mark.parametrize("path", CONVERTED, ids=lambda path: path.stem)
def test_detectors_and_a_text_recogniser_give_what_mxnet_gave(path):
    symbol, params, inputs, outputs = converted(path)
    made = to_onnx(symbol, params, shapes={name: array.shape for name, array in inputs.items()})
    onnx.checker.check_model(made, full_check=True)
    running = session(made)
    for each, got in zip(running.get_outputs(), running.run(None, inputs), strict=True):
        assert relative_difference(outputs[each.name], got) <= 1e-4, each.name
    held = {name: mx.nd.array(array) for name, array in params.items()}
    for agreement in check(made, ArchivedModel(symbol, held), inputs):
        assert agreement.agrees, agreement


def test_there_is_one_of_each_kind():
    assert [path.stem for path in CONVERTED] == [
        "mask_rcnn_pyramid", "rfcn", "rfcn_deformable", "text_recogniser"
    ]  # fmt: skip
    assert len(GOLDEN) == 9


def names_of_the_zoo():
    specification = importlib.util.spec_from_file_location(
        "zoo_catalogue", ROOT / "verify" / "zoo" / "catalogue.py"
    )
    catalogue = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(catalogue)
    return [model.name for model in catalogue.models()]


@pytest.mark.slow
@pytest.mark.parametrize("name", names_of_the_zoo())
def test_the_whole_zoo(name):
    """A model as MXNet exports it, in onnxruntime, beside MXNet. What is exported stays in ``.peers/zoo``."""
    peers = ROOT / ".peers"
    if not all((peers / name / "bin" / "python").exists() for name in ("gluoncv", "engines")):
        pytest.skip("MXNet or the engines are not set up: python verify/peers.py gluoncv engines")
    command = [sys.executable, str(ROOT / "verify" / "check_engines.py"), "--dry", "--only", name]
    command += ["--engines", "onnxruntime", "--exported", str(peers / "zoo")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert f'{name}  {{"onnxruntime": "agrees"}}' in done.stdout


# -- shapes that stay open -------------------------------------------------------------------------------


def detector():
    """A one-layer Faster R-CNN with a position-sensitive head."""
    data, im_info = sym.Variable("data"), sym.Variable("im_info")
    x = sym.Convolution(data, num_filter=8, kernel=(3, 3), stride=(4, 4), pad=(1, 1), name="conv")
    x = sym.Activation(sym.BatchNorm(x, name="bn", fix_gamma=False), act_type="relu")
    scores = sym.Convolution(x, num_filter=6, kernel=(1, 1), name="score")
    deltas = sym.Convolution(x, num_filter=12, kernel=(1, 1), name="delta")
    chance = sym.softmax(sym.Reshape(scores, shape=(0, 2, -1, 0)), axis=1)
    chance = sym.Reshape(chance, shape=(0, 6, -1, 0))
    rois = sym.contrib.MultiProposal(
        chance, deltas, im_info, feature_stride=4, scales=(2, 4, 6), ratios=(1,), rpn_min_size=2,
        rpn_post_nms_top_n=20, rpn_pre_nms_top_n=100, name="rois",
    )  # fmt: skip
    maps = sym.Convolution(x, num_filter=18, kernel=(1, 1), name="maps")
    pooled = sym.contrib.PSROIPooling(
        maps, rois, spatial_scale=0.25, output_dim=2, pooled_size=3, name="pooled"
    )
    found = sym.Pooling(pooled, global_pool=True, kernel=(1, 1), pool_type="avg")
    label = sym.Variable("label")
    return sym.Group([rois, sym.SoftmaxOutput(sym.Flatten(found), label, name="cls")])


def parameters(symbol, **shapes):
    arguments, _, auxiliary = symbol.infer_shape(**shapes)
    known = {*shapes, "label"}
    names = [n for n in symbol.list_arguments() if n not in known]
    found = dict(zip(symbol.list_arguments(), arguments, strict=True))
    params = {name: mx.nd.array(noise(*found[name], seed=i) * 0.3) for i, name in enumerate(names)}
    states = zip(symbol.list_auxiliary_states(), auxiliary, strict=True)
    return {**params, **{name: mx.nd.array(np.abs(noise(*shape)) + 0.5) for name, shape in states}}


SIZES = {"data": (1, 3, 64, 64), "im_info": (1, 3)}


def test_batch_and_size_stay_open():
    symbol = detector()
    params = parameters(symbol, **SIZES)
    made = to_onnx(symbol, params, shapes={"data": ("N", 3, "H", "W"), "im_info": ("N", 3)})
    onnx.checker.check_model(made, full_check=True)
    dims = [d.dim_param or d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["N", 3, "H", "W"]
    assert [x.name for x in made.graph.input] == ["data", "im_info"]  # no label
    assert [x.name for x in made.graph.output] == ["rois_output", "cls_output"]
    for images, height, width in ((1, 64, 64), (2, 48, 80), (3, 100, 60)):
        info = np.tile(np.array([[height, width, 1]], np.float32), (images, 1))
        inputs = {"data": noise(images, 3, height, width), "im_info": info}
        for each in check(made, ArchivedModel(symbol, params), inputs):
            assert each.agrees, (each, height, width)


def test_sizes_that_only_some_lengths_tell_apart_stay_open(golden_model):
    """An upsampled map is as large as what it is cut to for even lengths; a map may shrink to one pixel."""
    for name in ("retinaface_mobilenet0.25", "gluoncv_ssd_300_mobilenet0.25_voc"):
        golden = golden_model(name)
        inputs, want = golden.group("input"), golden.group("out")
        made = to_onnx(golden.symbol, golden.params, shapes={"data": ("N", 3, "H", "W")})
        running = session(made)
        names = [each.name for each in running.get_outputs()]
        got = dict(zip(names, running.run(None, inputs), strict=True))
        boxes, _ = split_boxes({key: want[key] for key in names})
        if boxes is not None:
            assert compare_boxes(boxes, split_boxes(got)[0], inputs["data"].shape[2:])[1] == 0
            continue
        for key, step in ((key, golden.meta["steps"][key]) for key in names):
            assert (
                relative_difference(want[key], got[key].reshape(-1)[::step].reshape(want[key].shape)) <= 1e-4
            )


def test_what_cannot_stay_open_is_said_with_the_node():
    symbol = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
    params = parameters(symbol, data=(1, 3, 48, 8))
    to_onnx(symbol, params, shapes={"data": ("N", 3, 48, 8)})
    match = (
        r"N, H cannot stay open; N could, with H fixed, at 48 for example: FullyConnected\(fc\): weight must"
    )
    with pytest.raises(GraphError, match=match):
        to_onnx(symbol, params, shapes={"data": ("N", 3, "H", 8)})
    grid = sym.contrib.AdaptiveAvgPooling2D(sym.Variable("data"), output_size=(3, 3), name="grid")
    with pytest.raises(GraphError, match=r"AdaptiveAvgPooling2D\(grid\): the lengths of data must be known"):
        to_onnx(grid, {}, shapes={"data": (1, 3, "H", "W")})


# -- what a file holds -----------------------------------------------------------------------------------


def test_names_of_weights_stay_and_fixed_gammas_are_ones():
    x = sym.Convolution(sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv", no_bias=True)
    symbol = sym.Dropout(sym.BatchNorm(x, name="bn"))
    params = parameters(symbol, data=(1, 3, 8, 8))
    made = to_onnx(symbol, params, shapes={"data": (1, 3, 8, 8)})
    held = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    assert set(held) == {"conv_weight", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"}
    np.testing.assert_array_equal(held["bn_gamma"], 1)
    np.testing.assert_array_equal(held["conv_weight"], params["conv_weight"].asnumpy())
    assert [node.op_type for node in made.graph.node] == ["Conv", "BatchNormalization", "Identity"]
    assert {domain.domain for domain in made.opset_import} == {""}


@pytest.mark.parametrize("bias", [False, True])
def test_fold_merges_batch_norm(bias):
    x = sym.Convolution(sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv", no_bias=not bias)
    x = sym.BatchNorm(x, name="bn", fix_gamma=False)
    symbol = sym.BatchNorm(sym.Activation(x, act_type="relu"), name="alone")
    params = parameters(symbol, data=(1, 3, 8, 8))
    made = to_onnx(symbol, params, shapes={"data": (1, 3, 8, 8)}, fold=True)
    assert [node.op_type for node in made.graph.node] == ["Conv", "Relu", "BatchNormalization"]
    assert "BatchNorm nodes merged into what stands before them: 1" in made.doc_string
    (found,) = check(made, ArchivedModel(symbol, params), {"data": noise(1, 3, 8, 8)})
    assert found.agrees


def test_float16():
    symbol = detector()
    params = parameters(symbol, **SIZES)
    made = to_onnx(symbol, params, shapes=SIZES, dtype="float16")
    kinds = {x.type.tensor_type.elem_type for x in (*made.graph.input, *made.graph.output)}
    assert kinds == {onnx.TensorProto.FLOAT16}
    net = sym.Convolution(sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv")
    net = sym.Pooling(sym.Activation(net, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    params = parameters(net, data=(1, 3, 8, 8))
    made = to_onnx(net, params, shapes={"data": (1, 3, 8, 8)}, dtype="float16")
    (found,) = check(made, ArchivedModel(net, params), {"data": noise(1, 3, 8, 8)})
    assert found.agrees
    assert found.tolerance > 1e-3


def test_a_file_of_another_dtype_than_the_graph_wants_says_what_to_do():
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn")
    arrays = {f"bn_{name}": np.ones(3, np.float16) for name in ("gamma", "beta", "moving_mean", "moving_var")}
    with pytest.raises(mx.MXNetError, match=r"parameters are float16: dtype='float32' \(--dtype float32\)"):
        to_onnx(net, arrays, shapes={"data": (1, 3, 8, 8)})
    assert to_onnx(net, arrays, shapes={"data": (1, 3, 8, 8)}, dtype="float32").graph.output


def test_float16_where_the_graph_declares_float32():
    data = sym.Variable("data", dtype="float32")
    weight = sym.Variable("fc_weight", dtype="float32")
    symbol = sym.FullyConnected(data, weight, num_hidden=4, no_bias=True, name="fc")
    symbol = sym.broadcast_add(symbol, sym.ones((1, 4), dtype="float32"))
    made = to_onnx(symbol, parameters(symbol, data=(2, 3)), shapes={"data": (2, 3)}, dtype="float16")
    kinds = {x.type.tensor_type.elem_type for x in (*made.graph.input, *made.graph.output)}
    assert kinds == {onnx.TensorProto.FLOAT16}


def test_float16_goes_through_what_is_told_a_dtype():
    """Such as the table of words; the words' numbers stay float32, as float16 counts to 2048."""
    words = sym.Embedding(sym.Variable("words"), input_dim=3000, output_dim=4, name="table")
    places = sym.expand_dims(sym.arange(3) * sym.Cast(sym.ones((3,), dtype="int32"), dtype="float32"), axis=1)
    net = sym.dot(sym.broadcast_add(words, places), sym.eye(4))
    net = sym.broadcast_add(net, sym.one_hot(sym.Variable("kind"), depth=4))
    net = sym.FullyConnected(net, num_hidden=2, flatten=False, name="fc")
    shapes = {"words": (2, 3), "kind": (2, 3)}
    params = parameters(net, **shapes)
    inputs = {"words": np.array([[2049, 2051, 7], [2999, 0, 2049]], "f4"), "kind": np.zeros((2, 3), "f4")}
    (wanted,) = ArchivedModel(net, params)(**inputs)
    made = to_onnx(net, params, shapes=shapes, dtype="float16")
    assert {t.data_type for t in made.graph.initializer} == {onnx.TensorProto.FLOAT16, onnx.TensorProto.INT64}
    (found,) = session(made).run(None, inputs)
    assert found.dtype == np.float16
    assert relative_difference(wanted.asnumpy(), found) < 2e-3


def depth(symbol):
    """The largest number of layers that one output has gone through."""
    graph, layers = json.loads(symbol.tojson()), {}
    for i, node in enumerate(graph["nodes"]):
        before = max((layers[entry[0]] for entry in node["inputs"]), default=0)
        layers[i] = before + (node["op"] != "null")
    return max(layers[head[0]] for head in graph["heads"])


@pytest.mark.parametrize("name", ["mask_rcnn_pyramid", "rfcn", "text_recogniser"])
def test_float16_of_detectors_and_a_text_recogniser(name):
    """Each layer is rounded to 11 bits in both, so the difference grows by 2**-11 a layer at most."""
    symbol, params, inputs, _ = converted(ROOT / "tests" / "golden" / "converted" / f"{name}.npz")
    made = to_onnx(symbol, params, shapes={n: a.shape for n, a in inputs.items()}, dtype="float16")
    onnx.checker.check_model(made, full_check=True)
    half = {n: a.astype(np.float16) for n, a in inputs.items()}
    got = session(made).run(None, half)
    cast = roiops_onnx._cast(
        ArchivedModel(symbol, {n: mx.nd.array(a) for n, a in params.items()}), np.dtype("f2")
    )
    for wanted, found in zip(cast(**half), got, strict=True):
        assert found.dtype == np.float16
        assert relative_difference(wanted.asnumpy(), found) <= depth(symbol) * 2.0**-11


def test_compositions_are_written_out_or_functions():
    symbol = detector()
    params = parameters(symbol, **SIZES)
    plain = to_onnx(symbol, params, shapes=SIZES)
    assert not plain.functions
    assert {domain.domain for domain in plain.opset_import} == {""}
    made = to_onnx(symbol, params, shapes=SIZES, functions=True)
    assert {f.name for f in made.functions} == {"MultiProposal", "PSROIPooling"}
    feeds = {"data": noise(1, 3, 64, 64), "im_info": np.array([[64, 64, 1]], np.float32)}
    for proto in (plain, made):
        onnx.checker.check_model(proto, full_check=True)
        assert all(each.agrees for each in check(proto, ArchivedModel(symbol, params), feeds))


def test_recurrent_text_recogniser():
    """Columns of features through two LSTM layers, as OCR models have it, with Gluon's joined parameters."""
    data = sym.Variable("data")
    x = sym.Activation(
        sym.Convolution(data, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv"), act_type="relu"
    )
    x = sym.transpose(sym.Reshape(x, shape=(0, -3, 0)), axes=(2, 0, 1))
    parts = [sym.Reshape(sym.Variable(f"lstm_{i}"), shape=(-1,)) for i in range(4)]
    packed = sym._rnn_param_concat(*parts, dim=0)
    zeros = [sym.zeros((2, 0, 5)), sym.zeros((2, 0, 5))]
    x = sym.RNN(x, packed, *zeros, state_size=5, num_layers=1, mode="lstm", bidirectional=True, name="lstm")
    symbol = sym.softmax(sym.FullyConnected(x, num_hidden=7, flatten=False, name="letters"))
    shapes = {
        "data": (2, 1, 6, 20),
        "lstm_0": (40, 24),
        "lstm_1": (40, 5),
        "lstm_2": (60, 24),
        "lstm_3": (80,),
    }
    sizes = [2 * 20 * 24 + 2 * 20 * 5, 2 * 2 * 20]
    shapes = {"data": (2, 1, 6, 20), "lstm_0": (sizes[0] // 2,), "lstm_1": (sizes[0] // 2,)}
    shapes.update(lstm_2=(sizes[1] // 2,), lstm_3=(sizes[1] // 2,))
    params = parameters(symbol, **shapes)
    params.update({name: mx.nd.array(noise(*s) * 0.3) for name, s in shapes.items() if name != "data"})
    made = to_onnx(symbol, params, shapes={"data": ("N", 1, 6, "W")})
    for count, width in ((2, 20), (1, 33)):
        (found,) = check(made, ArchivedModel(symbol, params), {"data": noise(count, 1, 6, width)})
        assert found.agrees


# -- errors and files ------------------------------------------------------------------------------------


def test_everything_that_cannot_be_written_is_listed_at_once(tmp_path):
    data = sym.Variable("data")
    x = sym.gamma(sym.erfinv(data, name="first"), name="second")
    symbol = sym.Group([x, sym.Dropout(data, mode="always", name="third")])
    with pytest.raises(GraphError) as error:
        to_onnx(symbol, {}, shapes={"data": (1, 4)}, path=tmp_path / "m.onnx")
    text = str(error.value)
    assert "3 of 4 nodes cannot be written as ONNX" in text
    assert "erfinv(first): this operator has no lowering to ONNX" in text
    assert "gamma(second): this operator has no lowering to ONNX" in text
    assert "Dropout(third): mode='always' drops at random in inference too" in text
    assert "need none" not in text
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_can_be_written_are_named():
    data = sym.Variable("data")
    symbol = sym.Group([sym.relu(data, name="first"), sym.erfinv(data, name="second")])
    with pytest.raises(GraphError, match=r"Outputs that need none of them: first_output \(outputs=, or"):
        to_onnx(symbol, {}, shapes={"data": (1, 4)})
    to_onnx(symbol, {}, shapes={"data": (1, 4)}, outputs="first_output")
    # The loss is named even where nothing tells the shape of its label.
    loss = sym.CTCLoss(sym.Reshape(data, shape=(4, 1, 3)), sym.Variable("label"), name="loss")
    symbol = sym.Group([sym.relu(data, name="first"), loss])
    with pytest.raises(
        GraphError, match=r"CTCLoss\(loss\): this operator has no lowering to ONNX\n.*first_output"
    ):
        to_onnx(symbol, {}, shapes={"data": (1, 12)})


def test_what_onnxruntime_cannot_run_is_said_in_a_line():
    net = sym.Convolution(sym.Variable("data"), num_filter=2, kernel=(1, 1), name="conv")
    params = parameters(net, data=(1, 3, 4, 4))
    made = to_onnx(net, params, shapes={"data": (1, 3, 4, 4)}, dtype="float64")
    with pytest.raises(mx.MXNetError, match=r"onnxruntime cannot run the model: .*Conv"):
        session(made)


def test_opsets_are_checked():
    data, offset = sym.Variable("data"), sym.Variable("offset")
    symbol = sym.contrib.DeformableConvolution(data, offset, kernel=(1, 1), num_filter=2, name="moved")
    shapes = {"data": (1, 2, 4, 4), "offset": (1, 2, 4, 4)}
    params = parameters(symbol, **shapes)
    assert to_onnx(symbol, params, shapes=shapes).opset_import[0].version == 19
    assert to_onnx(symbol, params, shapes=shapes, opset=17).opset_import[0].version == 17
    with pytest.raises(GraphError, match="opset must be from 17 to 22, got 12"):
        to_onnx(symbol, params, shapes=shapes, opset=12)


def test_an_operator_of_a_later_opset_says_so():
    @lowers(op_type="test_onnx_late", opset=20)
    def late(g, node, data):
        return g.Gelu(data)

    symbol = sym.Custom(sym.Variable("data"), op_type="test_onnx_late", name="late")
    assert to_onnx(symbol, {}, shapes={"data": (2, 3)}).opset_import[0].version == 20
    with pytest.raises(GraphError, match=r"late\).*: it needs opset 20 or later, got 17"):
        to_onnx(symbol, {}, shapes={"data": (2, 3)}, opset=17)


def test_missing_shapes_are_named():
    with pytest.raises(
        GraphError, match=r"the shape of data does not follow.*give those of all inputs, data, im_info"
    ):
        to_onnx(detector(), parameters(detector(), **SIZES), shapes={"im_info": (1, 3)})


def test_a_file_is_overwritten_by_force_only_and_never_half_written(tmp_path, monkeypatch):
    symbol = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
    params = parameters(symbol, data=(1, 3))
    path = tmp_path / "m.onnx"
    path.write_text("mine")
    with pytest.raises(GraphError, match=r"m\.onnx exists already; --force"):
        to_onnx(symbol, params, shapes={"data": (1, 3)}, path=path)
    assert path.read_text() == "mine"

    def broken(*args, **kwargs):
        Path(args[1]).write_text("half")
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(onnx, "save_model", broken)
        with pytest.raises(OSError, match="disk full"):
            to_onnx(symbol, params, shapes={"data": (1, 3)}, path=path, force=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    to_onnx(symbol, params, shapes={"data": (1, 3)}, path=path, force=True)
    assert check(path, ArchivedModel(symbol, params), {"data": noise(1, 3)})[0].agrees


def test_large_models_keep_their_arrays_in_a_second_file(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_MOST_BYTES", 1000)
    symbol = sym.FullyConnected(sym.Variable("data"), num_hidden=100, name="fc")
    params = parameters(symbol, data=(1, 30))
    made = to_onnx(symbol, params, shapes={"data": (1, 30)}, path=tmp_path / "m.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx").stat().st_size < 2000
    for model in (tmp_path / "m.onnx", made):  # what is returned holds its arrays still
        assert check(model, ArchivedModel(symbol, params), {"data": noise(1, 30)})[0].agrees
    (tmp_path / "m.onnx").unlink()
    with pytest.raises(GraphError, match=r"m\.onnx\.data exists already; --force"):
        to_onnx(symbol, params, shapes={"data": (1, 30)}, path=tmp_path / "m.onnx")


# -- operators of a user's own ---------------------------------------------------------------------------


class Triple(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 3)


@mx.operator.register("test_onnx_late")
@mx.operator.register("test_onnx_triple")
class TripleProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Triple()


def test_a_custom_operator_brings_its_lowering():
    symbol = sym.Custom(sym.Variable("data"), op_type="test_onnx_triple", name="thrice")
    with pytest.raises(GraphError, match=r"Custom\(thrice\).*: this operator has no lowering to ONNX"):
        to_onnx(symbol, {}, shapes={"data": (2, 3)})

    @lowers(op_type="test_onnx_triple")
    def triple(g, node, data):
        return data * 3

    made = to_onnx(symbol, {}, shapes={"data": (2, 3)})
    assert check(made, ArchivedModel(symbol, {}), {"data": noise(2, 3)})[0].agrees


def _best_of_two(first, folder=None):
    """Which of two columns is larger, once the first is multiplied by ``first``, and their sum."""
    scaled = sym.broadcast_mul(sym.Variable("data"), sym.Variable("scale"))
    symbol = sym.Group([sym.argmax(scaled, axis=1, name="best"), sym.sum(scaled, axis=1, name="total")])
    params = {"scale": mx.nd.array([[first, 1.0]])}
    if folder:
        symbol.save(str(folder / "net-symbol.json"))
        mx.nd.save(str(folder / "net-0000.params"), {"arg:scale": params["scale"]})
    return symbol, params


def test_scores_that_tie_are_told_from_wrong_ones():
    symbol, params = _best_of_two(1.0)
    data = np.ones((8, 2), np.float32)
    for first, tied in ((1 + 3e-7, True), (1.5, False)):
        made = to_onnx(*_best_of_two(first), shapes={"data": (8, 2)})
        data[:, 1] = 1 + 1.2e-7  # larger by one step of float32; the ONNX file says otherwise
        best, total = check(made, ArchivedModel(symbol, params), {"data": data})
        assert not best.agrees
        assert best.tied  # the original's choice hangs on the last bit
        assert total.agrees is tied
        assert not total.tied  # what is simply wrong is not called so


# -- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    symbol = detector()
    params = parameters(symbol, **SIZES)
    symbol.save(str(tmp_path / "net-symbol.json"))
    states = set(symbol.list_auxiliary_states())
    mx.nd.save(
        str(tmp_path / "net-0003.params"),
        {("aux:" if name in states else "arg:") + name: array for name, array in params.items()},
    )
    return tmp_path / "net"


def test_the_command_converts_and_checks(saved, capsys):
    target = f"{saved}.onnx"
    shapes = ["--shape", "data=N,3,H,W", "--shape", "im_info=N,3"]
    assert cli.main(["convert", str(saved), target, *shapes, "--check"]) == 0
    out, err = capsys.readouterr()
    assert "opset 17" in out
    assert "cls_output" in out
    assert "inputs that inference does not read were left out: label" in err
    assert cli.main(["convert", str(saved), "3", target, *shapes]) == 1
    assert "exists already; --force" in capsys.readouterr().err
    assert cli.main(["convert", str(saved), "3", target, *shapes, "--force", "--fold", "--opset", "20"]) == 0
    assert "opset 20" in capsys.readouterr().out


def test_the_command_says_where_scores_tie(tmp_path, capsys, monkeypatch):
    _best_of_two(1.0, tmp_path)
    np.save(tmp_path / "tied.npy", np.array([[1, 1 + 1.2e-7]] * 8, np.float32))
    other = session(to_onnx(*_best_of_two(1 + 3e-7), shapes={"data": (8, 2)}))
    monkeypatch.setattr("roiops.models.onnx.check.session", lambda path: other)
    arguments = ["--shape", "data=8,2", "--check", "--input", f"data={tmp_path / 'tied.npy'}"]
    assert cli.main(["convert", str(tmp_path / "net"), str(tmp_path / "net.onnx"), *arguments]) == 1
    said = capsys.readouterr().out
    assert "differs: scores tie" in said
    assert "check with a picture: --input data=picture.jpg" in said


def test_the_command_checks_with_arrays_of_files(saved, tmp_path, capsys):
    data = np.random.default_rng(1).random((1, 3, 64, 64), dtype=np.float32)
    shapes = ["--shape", "data=1,3,64,64", "--shape", "im_info=1,3", "--check", "--force"]
    for save, name in ((np.save, "x.npy"), (lambda path, data: np.savez(path, data=data), "x.npz")):
        save(tmp_path / name, data)
        given = ["--input", f"data={tmp_path / name}"]
        assert cli.main(["convert", str(saved), f"{saved}.onnx", *shapes, *given]) == 0
    (tmp_path / "x.npy").write_bytes(b"no array")
    given = ["--input", f"data={tmp_path / 'x.npy'}"]
    assert cli.main(["convert", str(saved), f"{saved}.onnx", *shapes, *given]) == 1
    assert "x.npy: not an array that NumPy can read" in capsys.readouterr().err


def test_the_command_says_what_is_wrong(saved, capsys):
    assert cli.main(["convert", str(saved), f"{saved}.onnx", "--shape", "im_info=1,3"]) == 1
    assert "does not follow from the shapes given" in capsys.readouterr().err
    assert cli.main(["convert", str(saved), f"{saved}.onnx", "--shape", "dta=1,3,64,64"]) == 1
    assert "a shape is given for 'dta', which is no input; did you mean 'data'?" in capsys.readouterr().err
    with pytest.raises(mx.MXNetError, match="the lengths of data must be 1 or more, or names, got"):
        to_onnx(
            f"{saved}-symbol.json", f"{saved}-0003.params", shapes={"data": (0, 3, 64, 64), "im_info": (1, 3)}
        )
    for value, message in (
        ("data=[1,2]", "--input data: its shape is (2,), but --shape says 1,3,64,64"),
        ("image=[1,2]", "--input image: the model has no such input; it takes data, im_info"),
    ):
        arguments = ["--shape", "data=1,3,64,64", "--shape", "im_info=1,3", "--check", "--input", value]
        with pytest.raises(SystemExit):
            cli.main(["convert", str(saved), f"{saved}.onnx", *arguments])
        assert message in capsys.readouterr().err
    (saved.parent / "folder.onnx").mkdir()
    arguments = ["--shape", "data=1,3,64,64", "--shape", "im_info=1,3", "--force"]
    assert cli.main(["convert", str(saved), str(saved.parent / "folder.onnx"), *arguments]) == 1
    assert "folder.onnx is a folder" in capsys.readouterr().err
    for shape in ("data=1,3,6-4", "data=0,3,64,64"):
        with pytest.raises(SystemExit):
            cli.main(["convert", str(saved), f"{saved}.onnx", "--shape", shape])
        assert "must be like data=1,3,600,800 or data=N,3,H,W, each above 0" in capsys.readouterr().err
    assert not Path(f"{saved}.onnx").exists()


def test_importing_needs_no_onnx():
    assert roiops_onnx.OLDEST == 17


def _both(net, inputs, params=None, shapes=None, **options):
    """What onnxruntime and an executor make of a network."""
    params = {name: mx.nd.array(value) for name, value in (params or {}).items()}
    proto = to_onnx(
        net, params, shapes=shapes or {name: value.shape for name, value in inputs.items()}, **options
    )
    (got,) = session(proto.SerializeToString()).run(None, inputs)
    executor = net.simple_bind(
        mx.cpu(), grad_req="null", **{name: value.shape for name, value in inputs.items()}
    )
    executor.copy_params_from(params, params, allow_extra_params=True)
    return got, executor.forward(**inputs)[0].asnumpy()


def _of_batch_norm(name, count, seed):
    values = noise(4, count, seed=seed)
    values[3] = np.abs(values[3]) + 0.5
    endings = "gamma", "beta", "moving_mean", "moving_var"
    return {f"{name}_{ending}": value for ending, value in zip(endings, values, strict=True)}


def test_open_batches_of_two_inputs_are_told_apart():
    data, other = sym.Variable("data"), sym.Variable("other")
    inputs = {"data": noise(3, 2, 4), "other": noise(5, 4)}
    shapes = {"data": ("N", 2, 4), "other": ("M", 4)}
    np.testing.assert_allclose(
        *_both(sym.dot(data, other, transpose_b=True), inputs, shapes=shapes), atol=1e-5
    )
    with pytest.raises(GraphError, match="N, M cannot stay open"):
        to_onnx(sym.slice_like(data, other, axes=(0,)), {}, shapes={"data": ("N", 3), "other": ("M", 3)})


def test_batch_and_length_stay_open_where_heads_are_split_and_joined():
    data = sym.Variable("data")
    heads = sym.Reshape(
        sym.transpose(sym.Reshape(data, shape=(0, 0, 2, -1)), axes=(0, 2, 1, 3)), shape=(-3, 0, 0)
    )
    mixed = sym.batch_dot(sym.softmax(sym.batch_dot(heads, heads, transpose_b=True)), heads)
    mixed = sym.transpose(sym.Reshape(mixed, shape=(-4, -1, 2, 0, 0)), axes=(0, 2, 1, 3))
    net = sym.Reshape(mixed, shape=(0, 0, -3))
    for shape in ((3, 5, 6), (1, 2, 6)):
        inputs = {"data": noise(*shape)}
        np.testing.assert_allclose(*_both(net, inputs, shapes={"data": ("N", "T", 6)}), atol=1e-5)


def test_the_check_takes_outputs_that_are_inputs():
    data = sym.Variable("data")
    model = ArchivedModel(sym.Group([data * 2, data]), {})
    made = to_onnx(model.symbol, {}, shapes={"data": (2, 3)})
    found = check(made, model, {"data": noise(2, 3)})
    assert [(each.name, each.agrees) for each in found] == [(name, True) for name in model.output_names]


def test_whole_numbers_that_onnx_has_no_operator_for_are_refused():
    x = sym.Variable("x", dtype="int32")
    for net, reason in (
        (sym.sqrt(x, name="root"), "root/Sqrt: ONNX has no Sqrt of int32"),
        (sym.add_n(x, x, name="all"), "all/Sum: ONNX has no Sum of int32"),
        (sym.hard_sigmoid(x, name="line"), r"hard_sigmoid\(line\): it computes with 0.2, which int32 cannot"),
    ):
        with pytest.raises(GraphError, match=reason):
            to_onnx(net, {}, shapes={"x": (2, 3)})


def test_the_batch_of_a_deconvolution_to_a_size_stays_open():
    net = sym.Deconvolution(
        sym.Variable("data"), kernel=(4, 4), stride=(2, 2), target_shape=(9, 8), num_filter=2, name="up"
    )
    params = {"up_weight": noise(3, 2, 4, 4)}
    inputs, shapes = {"data": noise(5, 3, 4, 4)}, {"data": ("N", 3, 4, 4)}
    np.testing.assert_allclose(*_both(net, inputs, params, shapes=shapes), atol=1e-5)


def test_two_batch_norms_are_folded_into_a_convolution():
    net = sym.Convolution(sym.Variable("data"), kernel=(1, 1), num_filter=2, name="conv")
    for name in ("one", "two"):
        net = sym.BatchNorm(net, fix_gamma=False, name=name)
    params = {"conv_weight": noise(2, 3, 1, 1), "conv_bias": noise(2)}
    params |= {**_of_batch_norm("one", 2, 1), **_of_batch_norm("two", 2, 2)}
    np.testing.assert_allclose(*_both(net, {"data": noise(1, 3, 4, 4)}, params, fold=True), atol=1e-4)


def test_operators_that_were_written_wrongly_or_not_at_all():
    data = sym.Variable("data")
    x = noise(3, 4)
    net = sym.BatchNorm(data, axis=0, fix_gamma=False, name="norm")
    np.testing.assert_allclose(*_both(net, {"data": x}, _of_batch_norm("norm", 3, 1)), atol=1e-5)
    x[0, 1] = np.nan
    for name in ("nansum", "nanprod"):
        np.testing.assert_allclose(*_both(getattr(sym, name)(data, axis=1), {"data": x}), atol=1e-5)
    for p_value in (1, 3):
        lp = sym.Pooling(data, kernel=(2,), pool_type="lp", p_value=p_value)
        with pytest.raises(GraphError, match=f"without their sign, which p_value={p_value} keeps"):
            to_onnx(lp, {}, shapes={"data": (1, 1, 6)})
