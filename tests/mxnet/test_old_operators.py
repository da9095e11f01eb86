"""Operators in Python as they were written before CustomOp, and small modules that scripts import."""

import numpy as np
import pytest

import roiops as mx


class Softmax(mx.operator.NumpyOp):
    """The example of MXNet's documentation of its time."""

    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0][:1]], [in_shape[0]]

    def forward(self, in_data, out_data):
        assert isinstance(in_data[0], np.ndarray)
        powers = np.exp(in_data[0] - in_data[0].max(axis=1, keepdims=True))
        out_data[0][:] = powers / powers.sum(axis=1, keepdims=True)

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_data[0]
        in_grad[0][np.arange(len(in_data[1])), in_data[1].astype(int)] -= 1


class Doubled(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * 2

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0] * 2


def made(kind):
    with pytest.warns(UserWarning, match="CustomOp has taken this class's place"):
        return kind()


@pytest.mark.parametrize("req", ["write", "add"])
def test_a_loss_in_numpy_agrees_with_the_built_in_one(req):
    x, label = np.random.default_rng(0).normal(size=(3, 4)), np.array([0, 3, 1])
    data, labels = mx.sym.Variable("data"), mx.sym.Variable("label")
    results = []
    for net in (made(Softmax)(data, labels, name="softmax"), mx.sym.SoftmaxOutput(data, labels)):
        executor = net.simple_bind(mx.cpu(), data=(3, 4), grad_req={"data": req, "label": "null"})
        executor.grad_dict["data"][:] = 5
        executor.forward(is_train=True, data=x, label=label)
        executor.backward()
        results.append((executor.outputs[0].asnumpy(), executor.grad_dict["data"].asnumpy()))
    for ours, built_in in zip(*results, strict=True):
        assert np.allclose(ours, built_in, atol=1e-6)


def test_an_operator_on_ndarrays_has_its_names_and_gradients():
    operator = made(Doubled)
    net = operator.get_symbol(mx.sym.Variable("x"), name="twice")
    assert net.list_outputs() == ["twice_output"]
    executor = net.simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True, x=np.array([1, 3]))
    executor.backward(mx.nd.array([1, 10]))
    assert executor.outputs[0].asnumpy().tolist() == [2, 6]
    assert executor.grad_dict["x"].asnumpy().tolist() == [2, 20]


def test_without_methods_of_its_own_it_hands_its_input_on():
    executor = made(mx.operator.NumpyOp)(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True, x=np.array([1, 3]))
    executor.backward(mx.nd.array([7, 7]))
    assert executor.outputs[0].asnumpy().tolist() == [1, 3]
    assert executor.grad_dict["x"].asnumpy().tolist() == [1, 1]


def test_blocks_of_operations_run_at_once():
    before = mx.engine.set_bulk_size(4)
    assert mx.engine.set_bulk_size(before) == 4
    with mx.engine.bulk(10):
        assert (mx.nd.ones(3) * 2).asnumpy().tolist() == [2, 2, 2]


def test_the_folder_of_downloads(monkeypatch):
    monkeypatch.setenv("MXNET_HOME", "/somewhere")
    assert mx.base.data_dir() == "/somewhere"
    monkeypatch.delenv("MXNET_HOME")
    assert mx.base.data_dir().endswith(".mxnet")


def test_random_by_its_short_name():
    mx.random.seed(1)
    first = mx.rnd.uniform(shape=(3,)).asnumpy()
    mx.rnd.seed(1)
    assert (mx.random.uniform(shape=(3,)).asnumpy() == first).all()
