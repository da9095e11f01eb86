"""Symbol JSON of every era: it loads, runs as MXNet 1.9.1 runs it, and is saved as MXNet saves it."""

import json
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.graph import json_format

FOLDER = Path(__file__).parents[1] / "golden" / "legacy"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))


class Legacy:
    def __init__(self, name):
        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files if key != "meta"}
            self.meta = json.loads(str(file["meta"]))
        self.text = (FOLDER / f"{name}.json").read_text()
        self.symbol = mx.sym.load_json(self.text)

    def group(self, kind):
        return {key.split("/", 1)[1]: a for key, a in self.arrays.items() if key.startswith(kind + "/")}


@pytest.fixture(params=NAMES)
def legacy(request):
    return Legacy(request.param)


def graph_of(text):
    """What a file says, without its layout and the counts of hidden outputs."""
    document = json.loads(text)
    nodes = [
        (n["op"], n["name"], n.get("attrs", {}), [e[:2] for e in n["inputs"]]) for n in document["nodes"]
    ]
    return nodes, [head[:2] for head in document["heads"]], document["arg_nodes"]


def test_every_era_is_there():
    eras = {name.split("_", 1)[1] for name in NAMES if name.startswith("convnet")}
    assert eras == {"0_8", "0_9", "0_12", "1_0", "1_6", "2_0"}


def test_names_and_attributes(legacy):
    assert legacy.symbol.list_arguments() == legacy.meta["arguments"]
    assert legacy.symbol.list_outputs() == legacy.meta["outputs"]
    assert legacy.symbol.list_auxiliary_states() == legacy.meta["auxiliary_states"]
    assert legacy.symbol.get_internals().list_outputs() == legacy.meta["internals"]
    assert legacy.symbol.attr_dict() == legacy.meta["attr_dict"]


def test_saving_gives_the_upgraded_graph_of_mxnet(legacy):
    saved = legacy.symbol.tojson()
    assert graph_of(saved) == graph_of(legacy.meta["upgraded"])
    assert mx.sym.load_json(saved).tojson() == saved


def test_outputs_and_gradients(legacy):
    meta = legacy.meta
    executor = legacy.symbol.bind(
        mx.cpu(),
        legacy.group("arg"),
        args_grad=legacy.group("grad_before"),
        grad_req=meta["grad_req"],
        aux_states=legacy.group("aux"),
    )
    executor.forward(is_train=meta["is_train"])
    for index, want in legacy.group("out").items():
        np.testing.assert_allclose(executor.outputs[int(index)].asnumpy(), want, rtol=1e-5, atol=1e-6)
    if meta["backward"]:
        heads = legacy.group("head")
        executor.backward([heads[str(i)] for i in range(len(heads))])
        gradients = legacy.group("grad")
        scale = max(np.abs(g).max() for g in gradients.values())  # some are sums that cancel to nothing
        for name, want in gradients.items():
            got = executor.grad_dict[name].asnumpy()
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize(
    ("name", "version"),
    [("convnet_0_9", "0.9"), ("convnet_0_12", "0.12"), ("convnet_1_6", "1.6"), ("convnet_0_8", None)],
)
def test_the_version_that_saved_it(name, version):
    saved_by = json_format.saved_by((FOLDER / f"{name}.json").read_text())
    assert saved_by == version or saved_by.startswith(f"MXNet {version}.")


# -- what the eras did differently, in the smallest files ------------------------------------------------


def document(*nodes, heads, **more):
    return json.dumps({"nodes": list(nodes), "heads": heads, "arg_nodes": [0], **more})


DATA = {"op": "null", "name": "data", "inputs": []}


def test_an_operator_hands_lr_mult_to_its_weight():
    fc = {
        "op": "FullyConnected",
        "param": {"num_hidden": "2"},
        "name": "fc",
        "inputs": [[0, 0], [1, 0], [2, 0]],
        "backward_source_id": -1,
        "attr": {"weight_lr_mult": "3", "lr_mult": "0.5"},
    }
    weight, bias = ({"op": "null", "name": f"fc_{n}", "inputs": []} for n in ("weight", "bias"))
    attributes = mx.sym.load_json(document(DATA, weight, bias, fc, heads=[[3, 0]])).attr_dict()
    assert attributes["fc_weight"]["__lr_mult__"] == "3"
    assert attributes["fc"]["__lr_mult__"] == "0.5"
    assert "weight_lr_mult" not in attributes["fc"]


def test_auxiliary_states_that_a_file_does_not_list_are_made():
    names = ("data", "bn_gamma", "bn_beta")
    variables = [{"op": "null", "name": n, "inputs": []} for n in names]
    norm = {"op": "BatchNorm", "name": "bn", "param": {}, "inputs": [[0, 0], [1, 0], [2, 0]]}
    symbol = mx.sym.load_json(document(*variables, norm, heads=[[3, 0]]))
    assert symbol.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


@pytest.mark.parametrize(("version", "made"), [(800, True), (900, False), (10901, False)])
def test_inputs_that_a_file_does_not_list_are_made_for_old_ones_only(version, made):
    fc = {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"}, "inputs": [[0, 0, 0]]}
    text = document(DATA, fc, heads=[[1, 0, 0]], attrs={"mxnet_version": ["int", version]})
    if made:
        assert mx.sym.load_json(text).list_arguments() == ["data", "fc_weight", "fc_bias"]
        return
    message = r"node 'fc': operator FullyConnected takes 3 inputs \(data, weight, bias\), the file gives 1"
    with pytest.raises(mx.MXNetError, match=message):
        mx.sym.load_json(text)


@pytest.mark.parametrize("head", [[1, 0], [1, 0, 0]])
def test_heads_have_two_or_three_numbers(head):
    text = document(DATA, {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]}, heads=[head])
    assert mx.sym.load_json(text).list_outputs() == ["e_output"]


def test_attributes_of_operators_without_parameters_are_passed_over():
    zeros = {"op": "zeros_like", "name": "z", "attrs": {"dtype": "float32"}, "inputs": [[0, 0, 0]]}
    symbol = mx.sym.load_json(document(DATA, zeros, heads=[[1, 0, 0]]))
    assert symbol.eval(data=np.ones((2,), np.float32))[0].asnumpy().tolist() == [0, 0]


def test_a_roi_align_by_mxnet_is_of_its_dialect():
    rois = {"op": "null", "name": "rois", "inputs": []}
    pool = {
        "op": "ROIAlign",
        "name": "pool",
        "attrs": {"pooled_size": "(2, 2)", "spatial_scale": "0.5"},
        "inputs": [[0, 0, 0], [1, 0, 0]],
    }
    symbol = mx.sym.load_json(document(DATA, rois, pool, heads=[[2, 0, 0]]))
    assert symbol.attr("dialect") == "mxnet"
    ours = mx.sym.ROIAlign(mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(2, 2), spatial_scale=0.5)
    assert mx.sym.load_json(ours.tojson()).attr("dialect") == "mmcv"


# -- what cannot be run is still there to be looked at ---------------------------------------------------


def test_unknown_operators_are_kept_and_named_when_used():
    foo = {"op": "FooBar", "name": "foo", "attrs": {"a": "1"}, "inputs": [[0, 0, 0]]}
    symbol = mx.sym.load_json(document(DATA, foo, heads=[[1, 0, 0]]))
    assert json_format.unsupported([node for node, _ in symbol.get_internals().heads]) == {"FooBar": 1}
    assert json.loads(symbol.tojson())["nodes"][1]["attrs"] == {"a": "1"}
    with pytest.raises(mx.MXNetError, match=r"node 'foo': operator 'FooBar' is not registered"):
        symbol.infer_shape(data=(1, 2))


def test_subgraphs_of_a_backend_are_kept_and_named_when_used():
    inner = {"nodes": [DATA], "heads": [[0, 0, 0]]}
    fused = {"op": "_sg_mkldnn_conv", "name": "sg", "inputs": [[0, 0, 0]], "subgraphs": [inner]}
    symbol = mx.sym.load_json(document(DATA, fused, heads=[[1, 0, 0]]))
    assert json.loads(symbol.tojson())["nodes"][1]["subgraphs"] == [inner]
    with pytest.raises(
        mx.MXNetError, match=r"node 'sg': operator '_sg_mkldnn_conv' holds a subgraph, left by"
    ):
        symbol.infer_shape(data=(1, 2))


def test_a_custom_operator_can_be_registered_after_loading():
    custom = {"op": "Custom", "name": "c", "attrs": {"op_type": "era_twice"}, "inputs": [[0, 0, 0]]}
    text = document(DATA, custom, heads=[[1, 0, 0]])
    early = mx.sym.load_json(text)
    with pytest.raises(mx.MXNetError, match="era_twice"):
        early.eval(data=np.ones((2,), np.float32))

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("era_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    for symbol in (early, mx.sym.load_json(text)):
        assert symbol.eval(data=np.ones((2,), np.float32))[0].asnumpy().tolist() == [2, 2]


#: What MXNet 1.9.1 writes of this variable: control characters other than \\n, \\r and \\t are as they are.
CONTROL = '"attrs": {"note": "x\x01y\\t\\"\\\\u0001\\n\x08\u00e9"}'


def test_control_characters_are_as_mxnet_writes_and_reads_them():
    symbol = mx.sym.Variable("a", attr={"note": 'x\x01y\t"\\u0001\n\x08\u00e9'})
    text = symbol.tojson()
    assert CONTROL in text
    assert mx.sym.load_json(text).attr("note") == symbol.attr("note")
    assert json_format.saved_by(text) == "MXNet 1.9.1"
