"""Symbols: composing, naming, indexing, attributes, inference and its messages, saving."""

import copy
import pickle

import numpy as np
import pytest

import roiops as mx
from roiops.errors import (
    DTypeError,
    FormatError,
    GraphError,
    MXNetError,
    ParamError,
    RegistryError,
    ShapeError,
)


def small_net():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    return mx.sym.FullyConnected(net, num_hidden=3, name="fc2")


def test_missing_inputs_become_variables():
    assert small_net().list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]


def test_internals_by_name_and_number():
    internals = small_net().get_internals()
    assert internals["fc1_output"].list_outputs() == ["fc1_output"]
    assert internals[0].name == "data"
    assert internals[-1].name == "fc2"
    with pytest.raises(GraphError, match="'fc1_outptu' is not an output; did you mean 'fc1_output'"):
        internals["fc1_outptu"]
    with pytest.raises(IndexError, match="has 8 outputs, index 9 is out of range"):
        internals[9]


def test_children():
    assert small_net().get_children().list_outputs() == ["relu1_output", "fc2_weight", "fc2_bias"]
    assert mx.sym.Variable("x").get_children() is None


def test_composing_by_calling_leaves_the_original_alone():
    net = small_net()
    features = mx.sym.Variable("image") * 2
    composed = net(data=features, name="top")
    assert composed.list_arguments()[0] == "image"
    assert composed.name == "top"
    assert net.list_arguments()[0] == "data"
    assert net.name == "fc2"
    with pytest.raises(GraphError, match="'dat' is not an argument; did you mean 'data'"):
        net(dat=features)


def test_shapes_go_both_ways():
    net = small_net()
    arguments, outputs, _ = net.infer_shape(data=(5, 10))
    assert dict(zip(net.list_arguments(), arguments, strict=True))["fc1_weight"] == (8, 10)
    assert outputs == [(5, 3)]
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    # From the output of a sum back to its inputs, through a second sum.
    c = (a + b) + mx.sym.Variable("c")
    assert c.infer_shape(c=(4, 2))[0] == [(4, 2)] * 3
    # Two half-known shapes complete each other.
    assert (a + b).infer_shape(a=(0, 3), b=(2, -1))[0] == [(2, 3), (2, 3)]


def test_a_contradiction_names_the_node_and_its_inputs():
    net = small_net()
    with pytest.raises(ShapeError) as caught:
        net.infer_shape(data=(5, 10), fc1_weight=(8, 11))
    assert "FullyConnected(fc1): weight must have shape (8, 10), got (8, 11)" in str(caught.value)
    assert "[inputs: data=(5, 10), weight=(8, 11)" in str(caught.value)


def test_incomplete_inference_warns_and_says_what_is_missing():
    with pytest.warns(UserWarning, match="not decided by the given shapes: data: unknown"):
        assert small_net().infer_shape() == (None, None, None)
    assert small_net().infer_shape_partial(data=(0, 10))[1] == [(0, 3)]


def test_types():
    net = small_net()
    assert net.infer_type(data="float16")[1] == [np.float16]
    assert net.infer_type() == (None, None, None)
    with pytest.raises(DTypeError, match=r"FullyConnected\(fc1\): .*float64"):
        net.infer_type(data="float32", fc1_weight="float64")


def test_names_that_are_not_inputs():
    with pytest.raises(
        GraphError, match="infer_shape: 'dta' is not an input of the graph; did you mean 'data'"
    ):
        small_net().infer_shape(dta=(1, 2))


def test_unknown_operators_parameters_and_inputs():
    x = mx.sym.Variable("x")
    with pytest.raises(RegistryError, match="'Convolutoin' is not registered; did you mean 'Convolution'"):
        mx.sym.Convolutoin(x)
    with pytest.raises(RegistryError, match=r"did you mean 'contrib\.box_nms'"):
        mx.sym.contrib.box_mns(x)
    with pytest.raises(
        ParamError, match=r"FullyConnected\(f\): unknown parameter 'num_hiden'; did you mean 'num_hidden'"
    ):
        mx.sym.FullyConnected(x, num_hiden=3, name="f")
    with pytest.raises(ParamError, match=r"FullyConnected\(f\): parameter num_hidden is required"):
        mx.sym.FullyConnected(x, name="f")
    with pytest.raises(ParamError, match="exp: too many positional arguments: 2"):
        mx.sym.exp(x, x, name="e")
    with pytest.raises(GraphError, match=r"FullyConnected\(f\): has no input 'wight'; did you mean 'weight'"):
        mx.sym.FullyConnected(x, wight=x, num_hidden=3, name="f")
    with pytest.raises(GraphError, match="input data is given twice"):
        mx.sym.exp(x, data=x)
    pair = mx.sym.SliceChannel(x, num_outputs=2)
    with pytest.raises(GraphError, match="data must be a Symbol of one output"):
        mx.sym.exp(pair)


def test_a_symbol_has_no_truth_value():
    with pytest.raises(GraphError, match="no truth value"):
        bool(mx.sym.Variable("x") == 1)


def test_saving_copying_and_pickling(tmp_path):
    net = small_net()
    path = tmp_path / "net-symbol.json"
    net.save(str(path))
    for again in (
        mx.sym.load(str(path)),
        copy.deepcopy(net),
        copy.copy(net),
        pickle.loads(pickle.dumps(net)),
    ):
        assert again.tojson() == net.tojson()
        assert again is not net


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_nodes_of_its_own(copied):
    net = mx.sym.BatchNorm(mx.sym.amp_cast(mx.sym.Variable("data"), dtype="float16"), name="norm")
    before = net.attr_dict()
    again = copied(net)
    for node in again.get_internals():  # as memonger plans its mirrors
        node._set_attr(force_mirroring="True")
    assert all("__force_mirroring__" in each for each in again.attr_dict().values())
    assert net.attr_dict() == before
    assert again.get_internals().list_outputs() == net.get_internals().list_outputs()  # casts stay


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "has no list of nodes"),
        ('{"nodes": [{"name": "x"}]}', "node 0: has no operator name"),
        ('{"nodes": [{"op": "null"}]}', "node 0: has no name"),
        ('{"nodes": []}', "holds no nodes"),
        (
            '{"nodes": [{"op": "null", "name": "x"}], "heads": [[1, 0]]}',
            "heads: refers to node 1, but only 1",
        ),
        (
            '{"nodes": [{"op": "exp", "name": "e", "inputs": [[0, 0]]}]}',
            "node 'e': refers to node 0, but only 0",
        ),
        (
            '{"nodes": [{"op": "null", "name": "x"}], "heads": [["0", 0]]}',
            r"an entry must be \[node, output\]",
        ),
        (
            '{"nodes": [{"op": "null", "name": "x"}, {"op": "exp", "name": "e", "inputs": [[0,0],[0,0]]}]}',
            "node 'e': operator exp takes 1 inputs",
        ),
        ('{"nodes": [{"op": "null", "name": "x", "attrs": {"a": 1}}]}', "node 'x': attrs must hold strings"),
    ],
)
def test_damaged_json_says_where(text, message):
    with pytest.raises(FormatError, match=message):
        mx.sym.load_json(text)


def test_a_bad_parameter_in_a_file_names_node_and_field():
    text = small_net().tojson().replace('"num_hidden": "8"', '"num_hidden": "eight"')
    with pytest.raises(ParamError, match=r"FullyConnected\(fc1\): num_hidden must be int.*got 'eight'"):
        mx.sym.load_json(text)


def test_a_graph_with_an_unknown_operator_can_be_looked_at_but_not_run():
    text = small_net().tojson().replace('"op": "Activation"', '"op": "Activaton"')
    net = mx.sym.load_json(text)
    assert net.list_outputs() == ["fc2_output"]
    with pytest.raises(
        RegistryError, match="node 'relu1': operator 'Activaton' is not registered; did you mean"
    ):
        net.infer_shape(data=(1, 2))


def test_user_operators_are_full_citizens():
    base = mx.operators.base

    @mx.registry.register("_test_double", "_test_twice")
    class DoubleProp(base.OperatorProperty):
        """Twice the input."""

        class op(base.Operator):
            def forward(self, ctx, in_data, req, out_data, aux):
                base.assign(out_data[0], req[0], 2 * in_data[0])

            def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
                base.assign(in_grad[0], req[0], 2 * out_grad[0])

    assert "_test_double" in mx.registry.list_operators()
    net = mx.sym._internal._test_twice(mx.sym.Variable("x"), name="d")
    assert mx.sym.load_json(net.tojson()).list_outputs() == ["d_output"]
    executor = net.simple_bind(mx.cpu(), x=(2,))
    assert executor.forward(is_train=True, x=np.array([1, 2]))[0].asnumpy().tolist() == [2, 4]
    executor.backward([mx.nd.array([1, 10])])
    assert executor.grad_dict["x"].asnumpy().tolist() == [2, 20]
    assert mx.nd._internal._test_double(mx.nd.array([3])).asscalar() == 6
    with pytest.raises(RegistryError, match="'_test_double' is already registered"):
        mx.registry.register("_test_double")(DoubleProp)


def test_generated_functions_document_themselves():
    function = mx.sym.FullyConnected
    assert function.__name__ == "FullyConnected"
    assert list(function.__signature__.parameters)[:3] == ["data", "weight", "bias"]
    assert "num_hidden : int" in function.__doc__
    assert "Parameters\n----------" in function.__doc__


def test_every_operator_and_parameter_is_documented():
    bare = []
    for name in mx.registry.list_operators():
        prop = mx.registry.get(name)
        if name.startswith("_test_"):
            continue
        if not (vars(prop).get("__doc__") or "").strip():
            bare.append(name)
        bare += [
            f"{name}.{field}"
            for field, f in prop.param.fields.items()
            if not f.doc and field != prop.variadic
        ]
    assert not bare, f"without a description: {', '.join(bare)}"


def test_groups():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    group = mx.sym.Group([a + b, a - b])
    assert len(group) == 2
    assert [s.name for s in group] == [group[0].name, group[1].name]
    with pytest.raises(GraphError, match="at least one Symbol"):
        mx.sym.Group([])


def test_errors_are_mxnet_errors():
    for error in (DTypeError, FormatError, GraphError, ParamError, RegistryError, ShapeError):
        assert issubclass(error, MXNetError)
        assert issubclass(error, RuntimeError)


def test_an_input_that_the_parameters_rule_out_may_be_none():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    conv = mx.sym.Convolution(x, w, None, num_filter=2, kernel=(1, 1), no_bias=True)
    assert conv.list_arguments() == ["x", "w"]
    reverse = mx.sym.SequenceReverse(data=x, sequence_length=None, use_sequence_length=False)
    assert reverse.list_arguments() == ["x"]


def test_the_shape_of_a_variable_may_be_one_number():
    assert mx.sym.Variable("bias", shape=3).infer_shape()[0] == [(3,)]


def test_the_shape_of_a_variable_may_hold_numpys_integers():
    sizes = np.array([3, 4])
    assert mx.sym.Variable("x", shape=(sizes[0], 4)).attr("__shape__") == "(3, 4)"
    assert mx.sym.Variable("x", shape=sizes).infer_shape()[0] == [(3, 4)]
    with pytest.raises(
        GraphError, match=r"^Variable\(x\): shape must be a tuple of integers, got \(2.5, 4\)$"
    ):
        mx.sym.Variable("x", shape=(2.5, 4))


def test_a_reader_completes_an_array_of_zeros():
    """As in MXNet 1.x, where 0 stands for a size that is not known: exported recurrent networks have it."""
    net = mx.sym.RNN(
        mx.sym.Variable("data"),
        mx.sym.Variable("w"),
        mx.sym.zeros((1, 0, 5)),
        mode="gru",
        state_size=5,
        num_layers=1,
    )
    arg_shapes, out_shapes, _ = net.infer_shape(data=(7, 2, 3))
    assert (arg_shapes, out_shapes) == ([(7, 2, 3), (3 * 5 * (3 + 5 + 2),)], [(7, 2, 5)])
    assert net.simple_bind(mx.cpu(), data=(7, 2, 3)).forward()[0].shape == (7, 2, 5)


def test_a_storage_type_that_is_not_known_is_an_error():
    assert mx.sym.Variable("x", stype="csr").attr("__storage_type__") == "2"
    with pytest.raises(GraphError, match="stype must be one of default, row_sparse, csr, got 'dense'"):
        mx.sym.Variable("x", stype="dense")


def test_a_misspelt_dtype_is_named_with_what_it_was_given_for():
    x = mx.sym.Variable("x")
    with pytest.raises(DTypeError, match=r"^Variable\(y\): dtype must be one of float32, .*, got 'float33'$"):
        mx.sym.Variable("y", dtype="float33")
    with pytest.raises(DTypeError, match=r"^infer_type: x must be one of float32, .*, got 'float33'$"):
        x.infer_type(x="float33")
    with pytest.raises(DTypeError, match=r"^simple_bind: type_dict of x must be one of .*, got 'float33'$"):
        mx.sym.exp(x).simple_bind(mx.cpu(), x=(2,), type_dict={"x": "float33"})


def test_variable_declares_any_dtype_that_arrays_have():
    assert mx.sym.Variable("x", dtype="int16").attr("__dtype__") == "8"
    assert mx.sym.Variable("x", dtype="int16").infer_type()[0] == [np.int16]
    with pytest.raises(DTypeError, match=r"^Variable\(x\): dtype must be one of float32, .*, got complex64$"):
        mx.sym.Variable("x", dtype=np.complex64)


def test_shapes_found_late_are_checked_where_they_were_needed_early():
    """The transposed variable's shape follows from the other sum, after the transposition was looked at."""
    v, x = mx.sym.Variable("v"), mx.sym.Variable("x")
    both = mx.sym.transpose(v) + (x + v)
    with pytest.raises(
        ShapeError, match=r"transpose\d+_output has shape \(3, 2\), but its users need \(2, 3\)"
    ):
        both.simple_bind(mx.cpu(), x=(2, 3))
    assert both.infer_shape(x=(2, 2))[1] == [(2, 2)]


def test_a_declared_shape_stands_in_for_one_that_is_given_in_part():
    whole = mx.sym.Variable("x", shape=(2, 3)) + 1
    assert [whole.infer_shape(x=given)[1][0] for given in ((0, 0), (5, 0), (5, 3))] == [
        (2, 3),
        (2, 3),
        (5, 3),
    ]
    assert whole.simple_bind(mx.cpu(), x=(5, 0)).outputs[0].shape == (2, 3)


def test_variables_that_are_given_are_told_how_they_are_initialised():
    moving = [mx.sym.Variable(name) for name in "xgbmv"]
    norm = mx.sym.BatchNorm(*moving)
    slopes = mx.sym.LeakyReLU(norm, gamma=mx.sym.Variable("a"), act_type="prelu")
    told = {name: attrs["__init__"] for name, attrs in slopes.attr_dict().items() if "__init__" in attrs}
    assert told == {"m": '["zero", {}]', "v": '["one", {}]', "a": '["Constant", {"value": 0.25}]'}
    own = mx.sym.Variable("m", init=mx.init.One())
    assert mx.sym.BatchNorm(moving[0], moving_mean=own).attr_dict()["m"]["__init__"] == '["one", {}]'


def test_equal_parts_are_saved_with_the_indices_that_mxnet_requires():
    x = mx.sym.Variable("x")
    equal, places = mx.sym.split_v2(x, 2, axis=1), mx.sym.split_v2(x, (1, 3), axis=1)
    assert equal.list_attr() == {"indices": "()", "axis": "1", "squeeze_axis": "False", "sections": "2"}
    assert places.list_attr() == {
        "indices": "(0, 1, 3)",
        "axis": "1",
        "squeeze_axis": "False",
        "sections": "0",
    }


def test_types_of_inputs_follow_from_that_of_the_result():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = mx.sym.FullyConnected(mx.sym.relu(x), num_hidden=3, no_bias=True, name="fc") + y
    assert net.infer_type(y="float64") == ([np.float64] * 3, [np.float64], [])
    bound = net.simple_bind(mx.cpu(), x=(2, 5), type_dict={"y": "float16"})
    assert {array.dtype for array in bound.arg_arrays} == {np.float16}


@pytest.mark.parametrize(
    ("make", "x", "y", "out"),
    [
        (lambda s, x, y: s.slice_like(x, y), (3, 4), (0, 2), (0, 2)),
        (lambda s, x, y: s.gather_nd(x, y), (3, 4, 5), (0, 2), ()),
        (lambda s, x, y: s.gather_nd(x, y), (3, 4, 5), (1, 0), (0, 4, 5)),
        (lambda s, x, y: s.scatter_nd(x, y, shape=(3, 4)), (2, 4), (0, 2), (3, 4)),
        (lambda s, x, y: s.scatter_nd(x, y, shape=(3, 4)), (2, 4), (1, 0), (3, 4)),
        (lambda s, x, y: s.LinearRegressionOutput(x, y), (3, 4), (3, 0), (3, 4)),
        (lambda s, x, y: s.linalg.gemm2(x, y), (3, 4), (0, 5), (3, 5)),
        (lambda s, x, y: s.linalg.gemm2(x, y, transpose_b=True), (3, 4), (0, 4), (3, 0)),
        (lambda s, x, y: s.slice_axis(x, axis=0, begin=-2, end=3), (0, 4), None, (0, 4)),
    ],
)
def test_shapes_that_are_known_in_part(make, x, y, out):
    """A length that is not known yet was taken for one of -1: a wrong shape, or an error before the rest was known."""
    given = {"x": x} if y is None else {"x": x, "y": y}
    net = make(mx.sym, mx.sym.Variable("x"), mx.sym.Variable("y"))
    assert net.infer_shape_partial(**given)[1] == [out]


def test_a_shape_known_in_part_completes_others():
    net = mx.sym.linalg.gemm2(mx.sym.Variable("x"), mx.sym.Variable("y"))
    assert net.infer_shape_partial(x=(3, 4)) == ([(3, 4), (4, 0)], [(3, 0)], [])
    net = mx.sym.LinearRegressionOutput(mx.sym.Variable("x"), mx.sym.Variable("y"))
    assert net.infer_shape(x=(3, 4), y=(3, 0)) == ([(3, 4), (3, 4)], [(3, 4)], [])


@pytest.mark.parametrize(
    "make",
    [
        lambda s, x: 2 * x + 1,
        lambda s, x: s.sort(x),
        lambda s, x: s.topk(x, k=2, ret_typ="value"),
        lambda s, x: s.norm(x, axis=1, keepdims=True),
        lambda s, x: s.slice_like(x, s.Variable("like", dtype="int32")),
        lambda s, x: s.broadcast_like(x, s.Variable("like", dtype="int32")),
        lambda s, x: s.reshape_like(x, s.Variable("like", dtype="int32")),
        lambda s, x: s.BatchNorm(x),
        lambda s, x: s.batch_take(x, s.Variable("index", dtype="int32")),
        lambda s, x: s.linalg.potrf(x),
        lambda s, x: s.contrib.box_nms(x),
        lambda s, x: s.softmax(x),
        lambda s, x: s.ROIPooling(x, s.Variable("rois"), pooled_size=1, spatial_scale=1),
    ],
)
def test_the_type_of_the_data_follows_from_that_of_the_result(make):
    """As in MXNet 1.9.1, which leaves only the data of softmax and of ROIPooling unknown."""
    net = make(mx.sym, mx.sym.Variable("x")) + mx.sym.Variable("y")
    assert dict(zip(net.list_arguments(), net.infer_type(y="float64")[0], strict=True))["x"] == np.float64


def test_types_of_a_result_that_do_not_fit():
    """The data is float32 where nothing tells; its result was float32, and its user read it as float64."""
    net = mx.sym.amp_multicast(mx.sym.Variable("x"), num_outputs=1, name="cast") + mx.sym.Variable("y")
    message = "amp_multicast.cast.: cast_output0 has dtype float32, but its users need float64"
    with pytest.raises(DTypeError, match=message):
        net.simple_bind(mx.cpu(), x=(2,), type_dict={"y": "float64"})
