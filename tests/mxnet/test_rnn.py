"""``mxnet.rnn``: recurrent cells against the fused operator, their names, and batches of sentences."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import GraphError, MXNetError


def run(outputs, arguments, data):
    executor = outputs.simple_bind(mx.cpu(), data=data.shape)
    executor.copy_params_from({**arguments, "data": mx.nd.array(data)}, allow_extra_params=True)
    (out,) = executor.forward(is_train=True)
    executor.backward(mx.nd.ones(out.shape))
    return out.asnumpy(), executor.grad_dict["data"].asnumpy()


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_cells_compute_what_the_fused_operator_does(mode, bidirectional):
    fused = mx.rnn.FusedRNNCell(3, 2, mode, bidirectional, prefix="net_")
    stack = fused.unfuse()
    data = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    with pytest.warns(UserWarning, match="the layout TNC spares it two transpositions"):
        one, _ = fused.unroll(4, mx.sym.Variable("data"), merge_outputs=True)
    other, _ = stack.unroll(4, mx.sym.Variable("data"), merge_outputs=True)
    shapes = dict(zip(one.list_arguments(), one.infer_shape(data=data.shape)[0], strict=True))
    whole = np.random.default_rng(1).standard_normal(shapes["net_parameters"]).astype(np.float32)
    pieces = fused.unpack_weights({"net_parameters": mx.nd.array(whole)})
    packed = stack.pack_weights(pieces)
    assert sorted(packed) == sorted(n for n in other.list_arguments() if n.endswith(("weight", "bias")))
    ours = run(one, {"net_parameters": mx.nd.array(whole)}, data)
    for fused_value, value in zip(ours, run(other, packed, data), strict=True):
        np.testing.assert_allclose(fused_value, value, rtol=2e-5, atol=2e-6)
    assert np.array_equal(fused.pack_weights(pieces)["net_parameters"].asnumpy(), whole)


def test_names_are_mxnets():
    outputs, _ = mx.rnn.LSTMCell(4, prefix="a_").unroll(2, [mx.sym.Variable("x0"), mx.sym.Variable("x1")])
    assert [out.name for out in outputs] == ["a_t0_out", "a_t1_out"]
    names = ["a_i2h_weight", "a_i2h_bias", "a_h2h_weight", "a_h2h_bias"]
    assert [n for n in mx.sym.Group(outputs).list_arguments() if n.startswith("a_")] == names
    with mx.name.NameManager():
        outputs, _ = mx.rnn.RNNCell(4).unroll(2, mx.sym.Variable("data"))
    assert mx.sym.Group(outputs).get_internals().list_outputs()[1:3] == ["split0_output0", "split0_output1"]


def test_the_forget_gate_starts_open():
    cell = mx.rnn.LSTMCell(2, forget_bias=3.0)
    output, _ = cell(mx.sym.Variable("data"), cell.begin_state())
    module = mx.mod.Module(output, label_names=None)
    module.bind([("data", (1, 2))])
    module.init_params(mx.init.One())
    assert module.get_params()[0]["lstm_i2h_bias"].asnumpy().tolist() == [0, 0, 3, 3, 0, 0, 0, 0]


def test_the_fused_parameters_start_as_those_of_the_cells_would():
    fused = mx.rnn.FusedRNNCell(2, mode="lstm", prefix="", forget_bias=2.0)
    outputs, _ = fused.unroll(2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    module = mx.mod.Module(outputs, label_names=None)
    module.bind([mx.io.DataDesc("data", (2, 1, 3), layout="TNC")])
    module.init_params(mx.init.One())
    pieces = fused.unpack_weights(module.get_params()[0])
    assert pieces["l0_i2h_f_bias"].asnumpy().tolist() == [2, 2]
    assert pieces["l0_i2h_i_bias"].asnumpy().tolist() == [0, 0]
    assert pieces["l0_h2h_o_weight"].asnumpy().tolist() == [[1, 1], [1, 1]]


def test_a_graph_of_mxnet_says_how_the_fused_parameters_start():
    settings = '{"init": null, "num_hidden": 1, "num_layers": 1, "mode": "lstm", "bidirectional": false'
    how = f'["fusedrnn", {settings}, "forget_bias": 2.0}}]'  # as MXNet 1.9.1 saves it
    cell = mx.rnn.FusedRNNCell(1, prefix="a_", forget_bias=2.0)
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    assert outputs.attr_dict()["a_parameters"]["__init__"] == how
    values = mx.nd.zeros((16,))
    mx.init.One()(mx.init.InitDesc("a_parameters", {"__init__": how}, mx.init.One()), values)
    assert values.asnumpy().tolist() == [1] * 8 + [0, 2, 0, 0] * 2


def test_cells_on_cells():
    data = np.ones((1, 2, 3), np.float32)
    plain = mx.rnn.RNNCell(3, prefix="r_")
    outputs, _ = mx.rnn.ResidualCell(plain).unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    out, _ = run(outputs, {}, data)
    assert out.tolist() == data.tolist()  # zero weights: the inputs themselves
    with pytest.raises(GraphError, match="RNNCell: a modifier cell holds this cell"):
        plain.begin_state()
    with pytest.raises(GraphError, match="ZoneoutCell: a FusedRNNCell cannot be stepped"):
        mx.rnn.ZoneoutCell(mx.rnn.FusedRNNCell(3))
    zoned = mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(3), zoneout_outputs=0.5, zoneout_states=0.5)
    outputs, _ = zoned.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    assert run(outputs, {}, data)[0].shape == (1, 2, 3)
    with pytest.raises(NotImplementedError, match="BidirectionalCell cannot be stepped; use unroll"):
        mx.rnn.BidirectionalCell(plain, plain)(None, [])


def test_batches_of_sentences(capsys):
    coded, vocabulary = mx.rnn.encode_sentences([["a", "b"], ["b", "c", "a"]], start_label=1, invalid_label=0)
    assert coded == [[1, 2], [2, 3, 1]]
    assert vocabulary == {"\n": 0, "a": 1, "b": 2, "c": 3}
    with pytest.raises(MXNetError, match="the word 'd' is not in vocab"):
        mx.rnn.encode_sentences([["d"]], vocabulary)
    batches = mx.rnn.BucketSentenceIter([[1, 2], [2, 3, 1], [1] * 9], 1, buckets=[2, 4], invalid_label=0)
    assert "discarded 1 sentences longer than the largest bucket" in capsys.readouterr().out
    seen = {b.bucket_key: (b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()) for b in batches}
    assert seen == {2: ([[1, 2]], [[2, 0]]), 4: ([[2, 3, 1, 0]], [[3, 1, 0, 0]])}
    assert batches.provide_data[0].shape == (1, 4)
