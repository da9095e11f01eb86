"""Archived models for inference, and the traps that cost their users days."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.models import archive
from roiops.models.files import find_files, read_symbol
from roiops.models.inspection import inspect_model


def save(folder, symbol, params, prefix="model", epoch=0):
    symbol.save(str(folder / f"{prefix}-symbol.json"))
    mx.nd.save(
        str(folder / f"{prefix}-{epoch:04d}.params"), {name: mx.nd.array(a) for name, a in params.items()}
    )
    return str(folder / prefix)


def classifier():
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.BatchNorm(x, name="bn")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def values(symbol, seed=0, **shapes):
    """Random parameters with MXNet's prefixes."""
    random = np.random.default_rng(seed)
    arguments, _, states = symbol.infer_shape(**shapes)
    found = {}
    for kind, names, sizes in (
        ("arg", symbol.list_arguments(), arguments),
        ("aux", symbol.list_auxiliary_states(), states),
    ):
        for name, shape in zip(names, sizes, strict=True):
            if name not in shapes and not name.endswith("label"):
                found[f"{kind}:{name}"] = random.uniform(0.5, 1, shape).astype(np.float32)
    return found


SHAPE = (2, 3, 6, 6)


@pytest.fixture
def saved(tmp_path):
    symbol = classifier()
    return save(tmp_path, symbol, values(symbol, data=SHAPE))


def data(seed=1, shape=SHAPE):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# -- loading and running ---------------------------------------------------------------------------------


def test_two_lines_are_enough(saved):
    model = archive.load(saved)
    (probabilities,) = model(data=data())
    np.testing.assert_allclose(probabilities.asnumpy().sum(axis=1), 1, rtol=1e-6)


def test_files_may_be_named_in_full(saved):
    model = archive.load(f"{saved}-symbol.json", f"{saved}-0000.params")
    np.testing.assert_array_equal(
        model(data=data())[0].asnumpy(), archive.load(saved, 0)(data=data())[0].asnumpy()
    )


def test_labels_are_not_asked_for(saved):
    model = archive.load(saved)
    assert model.input_names == ["data"]
    assert model.label_names == ["softmax_label"]
    assert model.bind(data=SHAPE).arg_dict["softmax_label"].shape == (2,)


def test_results_stay_when_the_model_is_called_again(saved):
    model = archive.load(saved)
    first = model(data=data(1))[0]
    kept = first.asnumpy()
    second = model(data=data(2))[0]
    assert not np.array_equal(kept, second.asnumpy())
    np.testing.assert_array_equal(first.asnumpy(), kept)
    reused = model(data=data(1), reuse=True)[0]
    assert model(data=data(2), reuse=True)[0] is reused
    np.testing.assert_array_equal(reused.asnumpy(), second.asnumpy())


def test_the_current_context_is_that_of_each_call(saved):
    model = archive.load(saved)
    assert model(data=data())[0].context == mx.cpu(0)
    with mx.cpu(1):
        assert model(data=data())[0].context == mx.cpu(1)
    assert model(data=data())[0].context == mx.cpu(0)


@pytest.mark.parametrize("shape", [(2.7, 3), ("a", 3), (float("nan"), 3)])
def test_shapes_are_whole_numbers(saved, shape):
    text = r"data must be a tuple of whole numbers, got \("
    with pytest.raises(mx.MXNetError, match=text):
        archive.load(saved).bind(data=shape)
    symbol = mx.sym.Variable("data") * 2
    with pytest.raises(mx.MXNetError, match=text):
        symbol.simple_bind(mx.cpu(), data=shape)
    with pytest.raises(mx.MXNetError, match=text):
        symbol.simple_bind(mx.cpu(), data=(2, 3)).reshape(data=shape)


def test_an_only_input_needs_no_name(saved, tmp_path):
    model = archive.load(saved)
    np.testing.assert_array_equal(model(data())[0].asnumpy(), model(data=data())[0].asnumpy())
    with pytest.raises(mx.MXNetError, match=r"inputs are given by name \(data\); only the input of a model"):
        model(data(), data())
    with pytest.raises(mx.MXNetError, match=r"a device is given by name: model\(..., ctx=cpu\(0\)\)"):
        model(mx.cpu(), data=data())
    both = mx.sym.Variable("left") + mx.sym.Variable("right")
    model = archive.ArchivedModel(both, {})
    with pytest.raises(mx.MXNetError, match=r"inputs are given by name \(left, right\)"):
        model(data())


def test_inputs_may_change_their_size(saved):
    model = archive.load(saved)
    assert model(data=data())[0].shape == (2, 3)
    assert model(data=data(shape=(5, 3, 6, 6)))[0].shape == (5, 3)


def test_a_training_graph_gives_the_outputs_asked_for(tmp_path):
    feature = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    target, weight = mx.sym.Variable("target"), mx.sym.Variable("weight_of_target")
    loss = mx.sym.MakeLoss(weight * mx.sym.smooth_l1(feature - target), name="loss")
    prefix = save(tmp_path, loss, {"arg:fc_weight": np.eye(2, dtype=np.float32), "arg:fc_bias": np.zeros(2)})
    model = archive.load(prefix, outputs="fc_output")
    assert model.input_names == ["data"]
    assert model(data=np.array([[1.0, 2.0]]))[0].asnumpy().tolist() == [[1, 2]]
    with pytest.raises(mx.MXNetError, match=r"lacks the inputs weight_of_target, target"):
        archive.load(prefix)(data=np.ones((1, 2)))


def test_the_executor_uses_the_parameters_without_copying(saved):
    model = archive.load(saved)
    bound = model.bind(data=SHAPE).arg_dict["conv_weight"]
    assert np.shares_memory(bound.data, model.params["conv_weight"].data)


# -- fix_gamma, pooling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fix_gamma", [True, False])
def test_fix_gamma_means_one_whatever_the_file_holds(tmp_path, fix_gamma):
    norm = mx.sym.BatchNorm(mx.sym.Variable("data"), fix_gamma=fix_gamma, eps=1e-3, name="bn")
    params = {
        "arg:bn_gamma": np.full(3, 5.0, np.float32),
        "arg:bn_beta": np.zeros(3, np.float32),
        "aux:bn_moving_mean": np.zeros(3, np.float32),
        "aux:bn_moving_var": np.ones(3, np.float32),
    }
    x = data()
    got = archive.load(save(tmp_path, norm, params))(data=x)[0].asnumpy()
    np.testing.assert_allclose(got, x * (1 if fix_gamma else 5) / np.sqrt(1.001), rtol=1e-5)


@pytest.mark.parametrize(("convention", "size"), [("valid", 3), ("full", 4)])
def test_pooling_rounds_as_the_file_says(tmp_path, convention, size):
    pool = mx.sym.Pooling(
        mx.sym.Variable("data"), kernel=(2, 2), stride=(2, 2), pool_type="max", pooling_convention=convention
    )
    prefix = save(tmp_path, pool, {"arg:unused": np.zeros(1)})
    with pytest.warns(UserWarning, match="that the graph does not: unused"):
        model = archive.load(prefix)
    assert model(data=data(shape=(1, 1, 7, 7)))[0].shape == (1, 1, size, size)


# -- parameters that do not fit --------------------------------------------------------------------------


def test_missing_and_surplus_parameters_are_listed_at_once_with_near_names(tmp_path):
    symbol = classifier()
    params = values(symbol, data=SHAPE)
    params["arg:conv1_weight"] = params.pop("arg:conv_weight")
    del params["aux:bn_moving_var"]
    prefix = save(tmp_path, symbol, params)
    message = (
        r"model-0000.params: the file lacks 2 parameters of the graph:\n  conv_weight; did you mean "
        r"'conv1_weight'\?\n  bn_moving_var\nthe file has 1 array that the graph does not: "
        r"conv1_weight; did you mean 'conv_weight'\?"
    )
    with pytest.raises(mx.MXNetError, match=message):
        archive.load(prefix)


def test_surplus_parameters_are_a_warning(tmp_path):
    symbol = classifier()
    params = {**values(symbol, data=SHAPE), "arg:old_weight": np.zeros(3, np.float32)}
    with pytest.warns(UserWarning, match=r"the file has 1 array that the graph does not: old_weight"):
        archive.load(save(tmp_path, symbol, params))


def test_parameters_of_parts_that_are_left_out_are_no_surplus(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = archive.load(saved, outputs=["bn_output"])
    assert set(model.params) == {
        "conv_weight", "conv_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var",
    }  # fmt: skip


def test_missing_parameters_may_be_given_as_inputs(tmp_path):
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    prefix = save(tmp_path, symbol, {"arg:fc_bias": np.ones(1, np.float32)})
    model = archive.load(prefix, allow_missing=True)
    assert model.input_names == ["data", "fc_weight"]
    got = model(data=np.ones((1, 2), np.float32), fc_weight=np.full((1, 2), 3, np.float32))
    assert got[0].asnumpy().tolist() == [[7]]


def test_wrong_shapes_are_listed_at_once(tmp_path):
    symbol = classifier()
    params = values(symbol, data=SHAPE)
    params["arg:conv_weight"] = np.zeros((4, 3, 5, 5), np.float32)
    params["arg:fc_bias"] = np.zeros(4, np.float32)
    model = archive.load(save(tmp_path, symbol, params))
    message = (
        r"parameters do not have the shapes that the graph needs for data \(2, 3, 6, 6\):\n"
        r"  conv_weight has shape \(4, 3, 5, 5\) in the file, the graph needs \(4, 3, 3, 3\)\n"
        r"  fc_bias has shape \(4,\) in the file, the graph needs \(3,\)"
    )
    with pytest.raises(mx.MXNetError, match=message):
        model.bind(data=SHAPE)


def test_inputs_that_are_missing_or_unknown(saved):
    model = archive.load(saved)
    with pytest.raises(TypeError, match="data must be an array of numbers, got str; pictures go to predict"):
        model("cat.jpg")
    with pytest.raises(mx.MXNetError, match=r"lacks the inputs data"):
        model()
    with pytest.raises(mx.MXNetError, match=r"'dat' is not an input of the model; did you mean 'data'\?"):
        model.bind(dat=SHAPE)
    with pytest.raises(mx.MXNetError, match=r"the shapes of these inputs must be given: data"):
        model.bind()


def test_operators_that_are_not_there_are_listed_at_once(tmp_path):
    nodes = [{"op": "null", "name": "data", "inputs": []}]
    for i, op in enumerate(("Convolutio", "_foreach", "Convolutio")):
        nodes.append({"op": op, "name": f"n{i}", "inputs": [[i, 0, 0]]})
    path = tmp_path / "odd-symbol.json"
    path.write_text(json.dumps({"nodes": nodes, "heads": [[3, 0, 0]], "arg_nodes": [0]}))
    message = r"odd-symbol.json: operators that cannot be run: Convolutio x2; did you mean .*, _foreach x1"
    with pytest.raises(mx.MXNetError, match=message):
        archive.load(path, {})


# -- other ways of saving --------------------------------------------------------------------------------


def test_what_runs_without_a_loss_that_is_not_there(tmp_path):
    """As text recognisers are saved: probabilities beside a loss that this library has not."""
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    text = mx.sym.Group([mx.sym.softmax(x, name="prob"), mx.sym.MakeLoss(x, name="loss")]).tojson()
    text = text.replace('"op": "MakeLoss"', '"op": "WarpCTC"')
    prefix = save(
        tmp_path, mx.sym.load_json(text), {"arg:fc_weight": np.ones((3, 2)), "arg:fc_bias": [0, 1, 2]}
    )
    with pytest.raises(
        mx.MXNetError,
        match=r"WarpCTC x1.*; outputs that can be computed without them: 'prob_output' \(choose",
    ):
        archive.load(prefix)
    assert archive.load(prefix, outputs="prob_output")(data=np.ones((1, 2)))[0].shape == (1, 3)
    found = inspect_model(f"{prefix}-symbol.json")
    assert found.notes == ["outputs that can be computed without what cannot be run: prob_output"]
    # A loss that is the only output: what goes into it.
    graph = mx.sym.load_json(text)
    found = inspect_model(mx.sym.Group([graph["loss_output"]]))
    assert found.notes == ["outputs that can be computed without what cannot be run: fc_output"]


def test_float16_models_run_in_float16(tmp_path):
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    params = {"arg:fc_weight": np.eye(2, dtype=np.float16), "arg:fc_bias": np.zeros(2, np.float16)}
    symbol.save(str(tmp_path / "half-symbol.json"))
    mx.nd.save(
        str(tmp_path / "half-0000.params"), {k: mx.nd.array(v, dtype="float16") for k, v in params.items()}
    )
    (output,) = archive.load(tmp_path / "half")(data=np.array([[1.0, 2.0]], np.float32))
    assert output.dtype == np.float16
    assert output.asnumpy().tolist() == [[1, 2]]


def test_a_dtype_that_is_none():
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    params = {"fc_weight": np.eye(2)}
    for call in (
        lambda: mx.models.load(symbol, params, dtype="foo", source="half"),
        lambda: inspect_model(symbol, params, dtype="foo", source="half"),
    ):
        with pytest.raises(mx.MXNetError, match=r"half: dtype must be one of float32, .*, got 'foo'"):
            call()
    with pytest.raises(mx.MXNetError, match=r"dtype must be one of float32, .*, got 'foo'"):
        mx.models.to_onnx(symbol, params, shapes={"data": (1, 2)}, dtype="foo")


def test_names_without_prefix_are_sorted_by_the_graph(tmp_path):
    symbol = classifier()
    bare = {name.split(":", 1)[1]: a for name, a in values(symbol, data=SHAPE).items()}
    model = archive.load(save(tmp_path, symbol, bare))
    assert model(data=data())[0].shape == (2, 3)


@pytest.mark.parametrize("names", [("arg:w", "w"), ("w", "aux:w"), ("arg:w", "aux:w")])
def test_one_name_for_two_parameters_is_an_error(tmp_path, names):
    mx.nd.save(str(tmp_path / "p.params"), {name: mx.nd.zeros((1,)) for name in names})
    with pytest.raises(
        mx.MXNetError, match=rf"p\.params: holds two arrays that are 'w', the later of which is '{names[1]}'"
    ):
        archive.read_params(tmp_path / "p.params")


@pytest.mark.parametrize("repeats", [10**12, 10**17])
def test_a_graph_that_asks_for_too_much_memory_is_an_error(repeats):
    symbol = mx.sym.repeat(mx.sym.Variable("data"), repeats=repeats)
    with pytest.raises(
        mx.MXNetError, match=r"bind: a block of .* GiB for values between the operators cannot be allocated"
    ):
        symbol.simple_bind(mx.cpu(), data=(1, 3), grad_req="null")


def test_unnamed_arrays_are_not_parameters(tmp_path):
    path = tmp_path / "list-0000.params"
    mx.nd.save(str(path), [mx.nd.ones((2,))])
    classifier().save(str(tmp_path / "list-symbol.json"))
    with pytest.raises(mx.MXNetError, match=r"list-0000.params: holds 1 arrays without names"):
        archive.load(tmp_path / "list")


def test_a_graph_without_parameters_loads_from_its_empty_file(tmp_path):
    net = mx.sym.relu(mx.sym.Variable("data"), name="relu")
    mx.model.save_checkpoint(str(tmp_path / "bare"), 0, net, {}, {})
    model = archive.load(tmp_path / "bare", 0)
    np.testing.assert_array_equal(model(data=np.array([[-1.0, 2]], np.float32))[0], [[0, 2]])
    assert mx.model.load_checkpoint(str(tmp_path / "bare"), 0)[1:] == ({}, {})


def test_custom_operators_of_the_user(tmp_path):
    @mx.operator.register("archived_negate")
    class NegateProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Negate()

    class Negate(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], -in_data[0])

    symbol = mx.sym.Custom(mx.sym.Variable("data") * mx.sym.Variable("scale"), op_type="archived_negate")
    prefix = save(tmp_path, symbol, {"arg:scale": np.full((1, 2), 2, np.float32)})
    assert archive.load(prefix)(data=np.ones((1, 2)))[0].asnumpy().tolist() == [[-2, -2]]
    text = (tmp_path / "model-symbol.json").read_text().replace("archived_negate", "archived_unknown")
    (tmp_path / "model-symbol.json").write_text(text)
    with pytest.raises(mx.MXNetError, match=r"cannot be run: Custom\(op_type=archived_unknown\) x1"):
        archive.load(prefix)


# -- inspection ------------------------------------------------------------------------------------------


def test_inspection_counts_by_hand():
    found = inspect_model(classifier(), shapes={"data": SHAPE})
    convolution = 2 * (2 * 4 * 4 * 4) * 3 * 3 * 3
    norm, dense, softmax = 2 * 2 * 4 * 4 * 4, 2 * (2 * 3) * 64, 2 * 3
    assert found.flops == convolution + norm + dense + softmax
    assert found.num_parameters == (4 * 27 + 4) + 4 * 4 + (3 * 64 + 3)
    assert found.parameter_bytes == 4 * found.num_parameters
    assert [v.name for v in found.inputs] == ["data"]
    assert [v.name for v in found.labels] == ["softmax_label"]
    assert [(v.name, v.shape) for v in found.outputs] == [("softmax_output", (2, 3))]
    assert found.runs


def test_inspection_plans_the_memory_that_the_executor_takes():
    symbol = classifier()
    # Merging operators, which the executor does for inference, leaves fewer buffers than the plan alone.
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=SHAPE)
    found = inspect_model(symbol, shapes={"data": SHAPE})
    assert 0 < executor.internal_bytes <= found.buffer_bytes


def test_inspection_without_shapes_leaves_sizes_open():
    found = inspect_model(classifier())
    assert found.flops is None
    assert found.runs
    assert found.notes == ["give the shape of data to learn sizes, arithmetic and memory"]


def test_the_library_and_the_command_line_choose_the_same_epoch(tmp_path):
    symbol = classifier()
    for epoch in (3, 12, 10001):
        save(tmp_path, symbol, values(symbol, seed=epoch, data=SHAPE), epoch=epoch)
    prefix = str(tmp_path / "model")
    assert find_files(prefix) == (f"{prefix}-symbol.json", f"{prefix}-10001.params")
    assert find_files(f"{prefix}-symbol.json", "3") == (f"{prefix}-symbol.json", f"{prefix}-0003.params")
    for epoch, chosen in ((None, 10001), (12, 12)):
        model = archive.load(prefix, epoch)
        file = mx.nd.load(f"{prefix}-{chosen:04d}.params")
        np.testing.assert_array_equal(model.params["fc_bias"].asnumpy(), file["arg:fc_bias"].asnumpy())
    inspected = inspect_model(prefix, 3, {"data": SHAPE})
    assert (inspected.num_parameters, inspected.problems) == (112 + 16 + 195, [])


def test_a_missing_file_is_an_error_of_ours_with_near_names(tmp_path):
    symbol = classifier()
    prefix = save(tmp_path, symbol, values(symbol, data=SHAPE))
    with pytest.raises(
        FileNotFoundError, match=r"model-0007.params: No such file or directory; did you mean"
    ):
        archive.load(prefix, 7)
    for call in (mx.nd.load, mx.sym.load, archive.load, inspect_model, read_symbol):
        with pytest.raises(mx.MXNetError, match=r"none(-symbol)?.json"):
            call(str(tmp_path / "none.json"))
    with pytest.raises(mx.MXNetError, match=r"is a folder; .* and it holds model-symbol.json"):
        archive.load(tmp_path)
    symbol.save(str(tmp_path / "alone-symbol.json"))
    with pytest.raises(mx.MXNetError, match="no parameters lie beside it; give their file"):
        archive.load(tmp_path / "alone")


def test_inspection_deduces_channels_from_the_weights(tmp_path):
    symbol = classifier()
    found = inspect_model(save(tmp_path, symbol, values(symbol, data=SHAPE)), 0)
    assert str(found.inputs[0]) == "data (?, 3, ?, ?) float32"
    assert not found.problems


def test_weights_of_an_operator_that_is_not_there_are_no_inputs(tmp_path):
    symbol = classifier()
    prefix = save(tmp_path, symbol, values(symbol, data=SHAPE))
    text = Path(f"{prefix}-symbol.json").read_text().replace('"Convolution"', '"Konvolution"')
    Path(f"{prefix}-symbol.json").write_text(text)
    found = inspect_model(prefix)
    assert found.unsupported == {"Konvolution": 1}
    assert [value.name for value in found.inputs] == ["data"]
    assert {value.name for value in found.parameters} >= {"conv_weight", "conv_bias"}


def test_inspection_compares_with_the_file(tmp_path):
    symbol = classifier()
    params = {name.split(":", 1)[1]: a for name, a in values(symbol, data=SHAPE).items()}
    params["fc_weigth"] = params.pop("fc_weight")
    params["conv_bias"] = np.zeros(5, np.float32)
    found = inspect_model(symbol, params, {"data": SHAPE})
    assert found.problems == [
        "the file lacks 1 parameter of the graph: fc_weight; did you mean 'fc_weigth'?",
        "the file has 1 array that the graph does not: fc_weigth; did you mean 'fc_weight'?",
        "parameter conv_bias has shape (5,) in the file, the graph needs (4,)",
    ]
    assert not found.runs


def test_inspection_takes_parameters_for_what_gluon_marks_so():
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {
            "op": "null",
            "name": "anchors",
            "attrs": {"__shape__": "(1, 4)", "__storage_type__": "0"},
            "inputs": [],
        },
        {"op": "broadcast_add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]},
    ]
    text = json.dumps({"nodes": nodes, "heads": [[2, 0, 0]], "arg_nodes": [0, 1]})
    found = inspect_model(mx.sym.load_json(text), shapes={"data": (3, 4)})
    assert [v.name for v in found.inputs] == ["data"]
    assert [(v.name, v.shape) for v in found.parameters] == [("anchors", (1, 4))]


# -- a whole detector that MXNet saved -------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]


def test_the_archived_detector_gives_what_mxnet_gave():
    with np.load(ROOT / "tests" / "golden" / "archived.npz") as file:
        golden = {name: file[name] for name in file.files if name != "meta"}
    model = archive.load(
        ROOT / "examples" / "archived" / "shapes-symbol.json",
        ROOT / "examples" / "rcnn" / "model" / "model.params",
        dtype="float32",
    )
    outputs = model(data=golden["data"], im_info=golden["im_info"])
    for name, output in zip(model.output_names, outputs, strict=True):
        want = golden[name]
        np.testing.assert_allclose(output.asnumpy(), want, atol=1e-4 * np.abs(want).max(), err_msg=name)


# -- scripts of MXNet's first years ----------------------------------------------------------------------


def test_feed_forward_predicts_all_rows_and_follows_their_number(saved):
    net = mx.model.FeedForward.load(saved, 0, ctx=[mx.cpu()], numpy_batch_size=2)
    rows = data(shape=(5, 3, 6, 6))
    want = archive.load(saved)(data=rows)[0].asnumpy()
    np.testing.assert_allclose(net.predict(rows), want, rtol=1e-4)
    np.testing.assert_allclose(net.predict(mx.nd.array(rows[:1])), want[:1], rtol=1e-4)
    classes = want.argmax(axis=1)
    batches = mx.io.NDArrayIter(rows, classes, 2)
    outputs, fed, labels = net.predict(batches, return_data=True)
    np.testing.assert_allclose(outputs, want, rtol=1e-4)
    assert (fed == rows).all()
    assert (labels == classes).all()
    assert len(net.predict(batches, num_batch=1)) == 2
    assert net.score(batches) == 1
    seen = []
    assert net.score(batches, num_batch=2, batch_end_callback=seen.append) == 1
    assert [each.nbatch for each in seen] == [0, 1]


def test_feed_forward_gives_a_list_where_there_are_several_outputs(saved):
    net = mx.model.FeedForward.load(saved, 0)
    layers = net.symbol.get_internals()
    net.symbol = mx.sym.Group([layers["fc_output"], layers["bn_output"]])
    shapes = [array.shape for array in net.predict(data())]
    assert shapes == [(2, 3), (2, 4, 4, 4)]


def test_feed_forward_takes_no_more_parameters_than_it_says(saved):
    net = mx.model.FeedForward.load(saved, 0)
    net.arg_params["left_over"] = mx.nd.ones((1,))
    with pytest.raises(mx.MXNetError, match="left_over"):
        net.predict(data())
    net.allow_extra_params = True
    assert net.predict(data()).shape == (2, 3)
    del net.arg_params["fc_weight"]
    with pytest.raises(mx.MXNetError, match="fc_weight"):
        mx.model.FeedForward(net.symbol, arg_params=net.arg_params, aux_params=net.aux_params).predict(data())
    with pytest.raises(TypeError, match=r"X must be DataIter, NDArray or numpy\.ndarray, got list"):
        net.predict([1, 2])


def test_feed_forward_saves_what_it_loads(saved, tmp_path):
    net = mx.model.FeedForward.load(saved, 0)
    net.save(str(tmp_path / "again"), 7)
    again = mx.model.FeedForward.load(str(tmp_path / "again"), 7)
    assert (again.predict(data()) == net.predict(data())).all()


def test_scripts_reach_through_a_module_to_its_executor(saved):
    symbol, arg_params, aux_params = mx.model.load_checkpoint(saved, 0)
    module = mx.mod.Module(symbol)
    module.bind(data_shapes=[("data", SHAPE)], for_training=False)
    module.set_params(arg_params, aux_params)
    group = module._exec_group
    for count in (1, 3):
        rows = data(shape=(count, 3, 6, 6))
        group.reshape([mx.io.DataDesc("data", rows.shape)], None)
        group.data_arrays[0][0][1][:] = rows
        group.execs[0].forward(is_train=False)
        got = group.execs[0].outputs[0].asnumpy()
        np.testing.assert_allclose(got, archive.load(saved)(data=rows)[0].asnumpy(), rtol=1e-4)
        assert group.data_arrays[0][0][0] == slice(0, count)
        assert group.label_arrays == []


def test_outputs_of_the_same_name_are_told_apart():
    data = mx.sym.Variable("data")
    twice = mx.sym.Group([mx.sym.relu(data, name="act"), mx.sym.relu(-data, name="act")])
    model = archive.ArchivedModel(twice, {})
    values = [array.asnumpy().tolist() for array in model(np.float32([[-1, 2]]))]
    assert dict(zip(model.output_names, values, strict=True)) == {
        "act_output": [[0, 2]],
        "act_output_2": [[1, 0]],
    }


def test_threads_that_share_a_model_get_results_of_their_own():
    graph = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=32, pad=(1, 1), name="conv")
    params = {"conv_weight": mx.nd.random.normal(shape=(32, 3, 3, 3)), "conv_bias": mx.nd.zeros(32)}
    model = archive.load(graph, params)
    inputs = [mx.nd.ones((1, 3, 64, 64)), mx.nd.zeros((1, 3, 64, 64))]
    expected = [model(data=each)[0].asnumpy() for each in inputs]

    def wrong(i):
        return sum(not np.array_equal(model(data=inputs[i])[0].asnumpy(), expected[i]) for _ in range(200))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(wrong, range(2))) == [0, 0]
