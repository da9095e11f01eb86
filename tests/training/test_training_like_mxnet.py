"""Training, and what is told on the way, beside MXNet's own."""

import logging

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.errors import GraphError, ParamError


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "training.npz") as file:
        return {key: file[key] for key in file.files if key != "meta"}


class ByName(mx.init.Initializer):
    def _init_weight(self, desc, arr):
        arr[:] = np.random.RandomState(len(str(desc))).uniform(-0.3, 0.3, arr.shape)


def data():
    random = np.random.RandomState(0)
    x = random.normal(size=(50, 6)).astype(np.float32)
    return x, (x[:, 0] > x[:, 1]).astype(np.float32) + (x[:, 2] > 0.3)


def network():
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="norm"), act_type="relu", name="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="second"), name="softmax")


def check_lines(found, expected):
    """Equal words, and numbers that are equal but for rounding."""
    found = [line for line in found if "Time cost" not in line]
    assert len(found) == len(expected)
    for line, golden_line in zip(found, expected, strict=True):
        words = [line.replace("=", " = ").split(" "), str(golden_line).replace("=", " = ").split(" ")]
        for word, golden_word in zip(*words, strict=True):
            try:
                number = float(golden_word)
            except ValueError:
                assert word == golden_word, (line, golden_line)
            else:
                assert float(word) == pytest.approx(number, rel=1e-3, abs=1e-5), (line, golden_line)


@pytest.mark.parametrize("last", ["pad", "discard", "roll_over"])
def test_shuffled_batches_after_the_same_seed(golden, last):
    np.random.seed(4)  # noqa: NPY002
    batches = mx.io.NDArrayIter(np.arange(10.0), np.arange(10.0), 4, shuffle=True, last_batch_handle=last)
    rows = []
    for _ in range(3):
        rows += [[*batch.data[0].asnumpy(), batch.pad] for batch in batches]
        batches.reset()
    assert np.array(rows).tolist() == golden[f"shuffled_{last}"].tolist()


def test_feed_forward_trains_as_mxnet_does(golden, caplog):
    x, y = data()
    np.random.seed(1)  # noqa: NPY002
    seen = []
    with caplog.at_level(logging.INFO):
        model = mx.model.FeedForward.create(
            network(),
            x,
            y,
            ctx=[mx.cpu(0), mx.cpu(1)],
            num_epoch=3,
            initializer=ByName(),
            eval_data=(x[:20], y[:20]),
            numpy_batch_size=16,
            learning_rate=0.2,
            momentum=0.9,
            batch_end_callback=lambda each: seen.append([each.epoch, each.nbatch, each.eval_metric.get()[1]]),
        )
    check_lines(caplog.messages, golden["feed_forward_lines"])
    np.testing.assert_allclose(seen, golden["feed_forward_seen"], rtol=1e-6)
    for name, array in model.arg_params.items():
        np.testing.assert_allclose(
            array.asnumpy(), golden[f"feed_forward_param_{name}"], rtol=1e-3, atol=1e-5
        )
    np.testing.assert_allclose(model.predict(x[:21]), golden["feed_forward_predicted"], rtol=1e-3, atol=1e-5)
    score = model.score(mx.io.NDArrayIter(x, y, 10))
    assert score == pytest.approx(float(golden["feed_forward_score"]))


def test_feed_forward_takes_batches_of_a_number_and_saves(tmp_path):
    x, y = data()
    counts = []
    model = mx.model.FeedForward(network(), num_epoch=2, epoch_size=7, numpy_batch_size=10)
    model.fit(x, y, batch_end_callback=lambda each: counts.append(each.nbatch))
    assert counts == [*range(1, 8)] * 2
    model.save(str(tmp_path / "net"))
    # Batches of the same size: only then are the last bits the same.
    again = mx.model.FeedForward.load(str(tmp_path / "net"), 2, numpy_batch_size=10)
    assert np.array_equal(again.predict(x), model.predict(x))
    batch = mx.io.DataBatch([mx.nd.array(x[:10])])  # says nothing of padding
    plain = mx.io.NDArrayIter(x[:10], batch_size=10)
    plain.next = iter([batch]).__next__
    assert np.array_equal(again.predict(plain), model.predict(x[:10]))
    with pytest.raises(ParamError, match="y must be specified when X is numpy"):
        model.fit(x)
    with pytest.raises(ParamError, match="num_epoch must be given"):
        mx.model.FeedForward(network()).fit(x, y)
    with pytest.raises(TypeError, match="Eval data must be DataIter"):
        model.fit(x, y, eval_data=3)


def gradient(scores, labels):
    scores, labels = scores.asnumpy(), labels.asnumpy().astype(int)
    found = np.zeros_like(scores)
    found[np.arange(len(labels)), labels] = -1 / scores[np.arange(len(labels)), labels]
    return found


def test_a_chain_of_modules_trains_as_mxnets_does(golden, caplog):
    x, y = data()
    first = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first"), act_type="tanh"
    )
    second = mx.sym.softmax(
        mx.sym.FullyConnected(mx.sym.Variable("features"), num_hidden=3, name="second"), name="prob"
    )
    modules = mx.mod.SequentialModule()
    modules.add(mx.mod.Module(first, label_names=None))
    modules.add(mx.mod.Module(second, ["features"], None), auto_wiring=True)
    modules.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    metric = mx.metric.create("acc")
    with caplog.at_level(logging.INFO):
        modules.fit(
            mx.io.NDArrayIter(x, y, 10),
            eval_metric=metric,
            num_epoch=2,
            initializer=ByName(),
            optimizer_params={"learning_rate": 0.3},
        )
    check_lines(caplog.messages, golden["chain_lines"])
    assert metric.get()[1] == pytest.approx(float(golden["chain_accuracy"]))
    assert modules.output_names == golden["chain_outputs"].tolist()
    assert modules.data_names == ["data"]
    assert modules.output_shapes == [("pyloss_output", (10, 3))]
    for name, array in modules.get_params()[0].items():
        np.testing.assert_allclose(array.asnumpy(), golden[f"chain_param_{name}"], rtol=1e-3, atol=1e-5)


def test_a_chain_says_what_is_wrong_with_it():
    layer = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="f")
    same = [mx.mod.Module(layer, label_names=None) for _ in range(2)]
    modules = mx.mod.SequentialModule()
    with pytest.raises(GraphError, match=r"there is no module yet"):
        modules.bind([("data", (2, 3))])
    with pytest.raises(ParamError, match='Unknown meta "take_label", a typo'):
        modules.add(same[0], take_label=True)
    modules.add(same[0]).add(same[1], auto_wiring=True)
    modules.bind([("data", (2, 3))])
    with pytest.raises(GraphError, match='name "f_weight" in layer 1 is already used in layer 0'):
        modules.init_params()


def test_devices_have_the_same_auxiliary_states_after_each_epoch(golden, caplog):
    """What is validated says so; the lines of the monitor are MXNet's, too."""
    x, y = data()
    module = mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)])
    with caplog.at_level(logging.INFO):
        module.fit(
            mx.io.NDArrayIter(x, y, 10),
            eval_data=mx.io.NDArrayIter(x[::-1].copy(), y[::-1].copy(), 10),
            eval_metric=["acc", "ce"],
            num_epoch=3,
            initializer=ByName(),
            optimizer_params={"learning_rate": 0.3},
            monitor=mx.mon.Monitor(4, pattern="second.*", sort=True),
        )
    check_lines(caplog.messages, golden["two_contexts_lines"])


def test_the_text_of_a_graph_is_mxnets(golden):
    assert network().debug_str() == str(golden["debug_str"])
    assert mx.sym.Variable("a").debug_str() == "Variable:a\n"
