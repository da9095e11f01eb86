"""``mxnet.util``: the two conventions of shapes."""

import json
import threading

import pytest

import roiops as mx
from roiops import nd
from roiops.errors import ShapeError
from roiops.ndarray import creation


def test_unknown_entries_in_both_conventions():
    net = mx.sym.dot(mx.sym.var("x"), mx.sym.var("y"))
    assert net.infer_shape_partial(x=(0, 3), y=(3, 5))[1] == [(0, 5)]
    assert net.infer_shape_partial()[1] == [()]
    with mx.np_shape():
        assert net.infer_shape_partial(x=(-1, 3), y=(3, 5))[1] == [(-1, 5)]
        assert net.infer_shape_partial(x=(0, 3), y=(3, 5))[1] == [(0, 5)]
        assert net.infer_shape_partial()[1] == [None]
        assert mx.sym.var("x", shape=()).infer_shape()[1] == [()]


def test_the_convention_is_the_threads_own_and_ends_with_its_block():
    seen = []
    with mx.np_shape():
        assert mx.is_np_shape()
        other = threading.Thread(target=lambda: seen.append(mx.is_np_shape()))
        other.start()
        other.join()
        with mx.np_shape(False):
            assert not mx.is_np_shape()
        assert mx.is_np_shape()
    assert seen == [False]
    assert not mx.is_np_shape()
    assert mx.set_np_shape(True) is False
    assert mx.set_np_shape(False) is True


def test_as_a_decorator_of_functions_and_classes():
    @mx.use_np_shape
    def inside():
        return mx.is_np_shape()

    @mx.use_np_shape
    class Holder:
        def inside(self):
            return mx.is_np_shape()

    assert inside()
    assert Holder().inside()
    assert not mx.is_np_shape()


def test_a_saved_graph_says_its_convention():
    weight = mx.sym.var("weight", shape=(4, 0))
    net = mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=4)
    assert "is_np_shape" not in json.loads(net.tojson())["attrs"]
    with mx.np_shape():
        assert json.loads(net.tojson())["attrs"]["is_np_shape"] == ["int", 1]
        loaded = mx.sym.load_json(net.tojson())
        assert loaded.attr_dict()["weight"]["__shape__"] == "(4, 0)"


def test_a_graph_of_the_older_convention_is_understood_under_the_newer():
    net = mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("weight", shape=(4, 0)), num_hidden=4)
    text = net.tojson()
    with mx.np_shape():
        assert mx.sym.load_json(text).infer_shape(data=(2, 7))[0][1] == (4, 7)


def test_environment(monkeypatch):
    monkeypatch.setenv("ROIOPS_TEST_NAME", "1")
    assert mx.util.getenv("ROIOPS_TEST_NAME") == "1"
    mx.util.setenv("ROIOPS_TEST_NAME", None)
    assert mx.util.getenv("ROIOPS_TEST_NAME") is None


@pytest.mark.parametrize("name", ["np_shape", "use_np_shape", "is_np_shape", "getenv"])
def test_names(name):
    assert name in mx.util.__all__


def test_zeros_and_ones_of_unknown_shapes_are_refused_where_mxnet_is_imitated(monkeypatch):
    """MXNet 1.9.1: zeros and ones refuse them, full, empty and array do not."""
    assert nd.zeros((0, 5)).shape == (0, 5)
    monkeypatch.setattr(creation, "refuses_unknown_shapes", True)
    for shape in ((0, 5), ()):
        for make in (nd.zeros, nd.ones):
            with pytest.raises(ShapeError, match=r"shape \(.*\) has unknown lengths.*use nd.empty"):
                make(shape)
            with mx.util.np_shape():
                assert make(shape).shape == shape
        assert nd.empty(shape).shape == shape
        assert nd.full(shape, 2).shape == shape
