"""Cells and layers of gluon.rnn: names, shapes, and layers against the stacks of cells they stand for."""

import numpy as np
import pytest

import roiops as mx
from roiops import gluon, nd
from roiops.errors import MXNetError
from roiops.gluon import rnn


def values(arrays):
    return [each.asnumpy() for each in arrays]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(
    "make", [rnn.LSTM, rnn.GRU, rnn.RNN, lambda *a, **k: rnn.RNN(*a, activation="tanh", **k)]
)
def test_layers_are_the_stack_of_their_cells(make, bidirectional):
    mx.random.seed(3)
    layer = make(5, num_layers=2, bidirectional=bidirectional, input_size=4, layout="NTC")
    layer.initialize(mx.init.Uniform(0.7))
    stack, x = layer._unfuse(), mx.nd.array(np.random.default_rng(0).normal(size=(3, 6, 4)))
    begin = layer.begin_state(3)
    outputs, states = layer(x, begin)
    expected, after = stack.unroll(6, x, merge_outputs=True)
    np.testing.assert_allclose(outputs.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-6)
    kinds = len(begin)
    for kind in range(kinds):
        each = np.stack(values(after[kind::kinds]))
        np.testing.assert_allclose(states[kind].asnumpy(), each, rtol=1e-4, atol=1e-6)
    assert sorted(layer._collect_params_with_prefix()) == sorted(
        f"_unfused.{key}" for key in stack._collect_params_with_prefix()
    )


@pytest.mark.parametrize("cell", [rnn.LSTMCell, rnn.GRUCell, rnn.RNNCell])
def test_a_cell_runs_as_a_bound_graph(cell):
    net = cell(5, prefix="a_")
    net.initialize(mx.init.Uniform(0.7))
    x, states = mx.nd.ones((2, 3)), net.begin_state(2)
    plain = net(x, states)
    net.hybridize()
    bound = net(x, states)
    for one, other in zip([plain[0], *plain[1]], [bound[0], *bound[1]], strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6, atol=1e-7)
    names = ["a_i2h_weight", "a_h2h_weight", "a_i2h_bias", "a_h2h_bias"]
    assert list(net.collect_params().keys()) == names


def test_sequences_of_several_lengths_end_where_they_end():
    """By hand: the output after a sequence's end is 0, and the state is that of its last step."""
    cell = rnn.RNNCell(2, activation="relu", input_size=2)
    cell.initialize(mx.init.One())
    x = mx.nd.ones((2, 3, 2))
    lengths = mx.nd.array([1, 3])
    outputs, (state,) = cell.unroll(3, x, merge_outputs=True, valid_length=lengths)
    # h = relu(2 + 2 h): 2, 6, 14
    np.testing.assert_array_equal(outputs.asnumpy()[:, :, 0], [[2, 0, 0], [2, 6, 14]])
    np.testing.assert_array_equal(state.asnumpy()[:, 0], [2, 14])
    both = rnn.BidirectionalCell(cell, rnn.RNNCell(2, activation="relu", input_size=2))
    both.initialize(mx.init.One(), force_reinit=True)
    outputs, _ = both.unroll(3, x, merge_outputs=True, valid_length=lengths)
    np.testing.assert_array_equal(outputs.asnumpy()[:, :, 2], [[2, 0, 0], [14, 6, 2]])


def test_modifiers():
    base = rnn.GRUCell(3, input_size=3)
    cell = rnn.ResidualCell(base)
    cell.initialize()
    x = mx.nd.ones((2, 3))
    output, _ = cell(x, cell.begin_state(batch_size=2, func=mx.nd.zeros))
    with pytest.raises(AssertionError, match="After applying modifier cells"):
        base.begin_state(2)
    with pytest.raises(AssertionError, match="is already modified"):
        rnn.ZoneoutCell(base)
    with pytest.raises(AssertionError, match="doesn't support zoneout"):
        rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(3)))
    inner, _ = cell._of_base("__call__", x, [mx.nd.zeros((2, 3))])
    np.testing.assert_allclose(output.asnumpy(), inner.asnumpy() + 1, rtol=1e-6)
    kept = rnn.ZoneoutCell(rnn.RNNCell(3, input_size=3), 0.5, 0.5)
    kept.initialize()
    assert kept.unroll(4, mx.nd.ones((2, 4, 3)), merge_outputs=True)[0].shape == (2, 4, 3)


def test_both_directions_of_unknown_width_in_a_bound_graph():
    net = gluon.nn.HybridSequential()
    net.add(rnn.LSTM(10, bidirectional=True), gluon.nn.Dense(3))
    net.hybridize()
    net.initialize()
    assert net(mx.nd.ones((2, 3, 7))).shape == (2, 3)
    assert net[0].l0_i2h_weight.shape == net[0].r0_i2h_weight.shape == (40, 7)


@pytest.mark.parametrize("layer", [rnn.LSTM, rnn.GRU, rnn.RNN])
def test_what_recurrent_layers_do_not_take(layer):
    with pytest.raises(MXNetError, match=f"{layer.__name__}: use_sequence_length is not offered"):
        layer(4, use_sequence_length=True)
    for name, value in (("projection_size", 2), ("state_clip_min", -1.0), ("state_clip_nan", True)):
        if layer is rnn.LSTM:
            with pytest.raises(MXNetError, match=f"LSTM: {name} is not offered, and not by MXNet on a CPU"):
                layer(4, **{name: value})
    wrong = layer(4)
    wrong.initialize()
    count = 2 if layer is rnn.LSTM else 1
    text = rf"{layer.__name__} takes {count} states, as begin_state\(\) gives them, got 3"
    with pytest.raises(ValueError, match=text):
        wrong(nd.ones((3, 2, 5)), [nd.zeros((1, 2, 4))] * 3)
