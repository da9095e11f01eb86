"""Executors: values and gradients worked by hand, requests, memory, errors that leave it usable."""

import json
import os
import random
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.errors import DeviceError, DTypeError, GraphError, MXNetError, ShapeError
from roiops.registry import get


def variables(names):
    return [mx.sym.Variable(name) for name in names]


def product(grad_req="write", **kwargs):
    a, b = variables("ab")
    executor = (a * b + a).simple_bind(mx.cpu(), grad_req=grad_req, a=(2,), b=(2,))
    executor.arg_dict["a"][:] = np.array([2, 3])
    executor.arg_dict["b"][:] = np.array([5, 7])
    return executor


def test_forward_and_backward_by_hand():
    executor = product()
    (out,) = executor.forward(is_train=True)
    assert out.asnumpy().tolist() == [12, 24]  # a b + a
    executor.backward(mx.nd.array([1, 10]))
    assert executor.grad_dict["a"].asnumpy().tolist() == [6, 80]  # (b + 1) g
    assert executor.grad_dict["b"].asnumpy().tolist() == [2, 30]  # a g


def test_add_accumulates_over_calls_and_null_leaves_alone():
    executor = product(grad_req={"a": "add", "b": "null"})
    executor.grad_dict["a"][:] = 100
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward([mx.nd.ones((2,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [112, 116]
    assert executor.grad_dict["b"] is None


def test_grad_req_as_a_list_follows_the_arguments():
    executor = product(grad_req=["null", "write"])
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2,))])
    assert executor.grad_arrays[0] is None
    assert executor.grad_arrays[1].asnumpy().tolist() == [2, 3]


def test_one_output_feeding_many_nodes_gathers_all_gradients():
    (a,) = variables("a")
    shared = mx.sym.square(a)
    total = mx.sym.add_n(shared, shared * 2, mx.sym.exp(shared * 0), shared)
    executor = total.simple_bind(mx.cpu(), a=(1,))
    executor.arg_dict["a"][:] = 3
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [24]  # (1 + 2 + 0 + 1) * 2 a


def test_a_variable_used_twice_by_one_node():
    (a,) = variables("a")
    executor = (a * a).simple_bind(mx.cpu(), a=(1,))
    executor.arg_dict["a"][:] = 5
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["a"].asscalar() == 10


@pytest.mark.parametrize("args_grad", [None, {"a": np.zeros((1, 2), np.float32)}])
def test_backward_before_any_forward_of_given_arrays(args_grad):
    net = mx.sym.FullyConnected(mx.sym.var("a"), mx.sym.var("w"), num_hidden=1, no_bias=True)
    executor = net.bind(mx.cpu(), [mx.nd.ones((1, 2)), mx.nd.array([[3, 4]])], args_grad)
    executor.backward([mx.nd.ones((1, 1))])
    gradients = [g.asnumpy().tolist() for g in executor.grad_dict.values() if g is not None]
    assert gradients == ([[[3, 4]]] if args_grad else [])


def test_a_head_that_other_nodes_use_too():
    (a,) = variables("a")
    inner = mx.sym.square(a)
    executor = mx.sym.Group([inner, inner * 3]).simple_bind(mx.cpu(), a=(1,))
    executor.arg_dict["a"][:] = 2
    executor.forward(is_train=True)
    executor.backward([mx.nd.array([10]), mx.nd.array([1])])
    assert executor.grad_dict["a"].asscalar() == (10 + 3) * 4


def test_a_variable_that_is_a_head_itself():
    a, b = variables("ab")
    executor = mx.sym.Group([a, a + b]).simple_bind(mx.cpu(), a=(1,), b=(1,))
    executor.arg_dict["a"][:] = 4
    assert executor.forward(is_train=True)[0].asscalar() == 4
    executor.backward([mx.nd.array([100]), mx.nd.array([1])])
    assert executor.grad_dict["a"].asscalar() == 101
    assert executor.grad_dict["b"].asscalar() == 1
    executor = mx.sym.Group([a, a + b]).simple_bind(mx.cpu(), "add", a=(1,), b=(1,))
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward([mx.nd.array([100]), mx.nd.array([1])])
    assert executor.grad_dict["a"].asscalar() == 202


def test_stopped_gradients_are_zero_and_overwrite_what_was_there():
    a, b = variables("ab")
    executor = (mx.sym.BlockGrad(a) * b).simple_bind(mx.cpu(), a=(1,), b=(1,))
    executor.arg_dict["a"][:] = 3
    executor.grad_dict["a"][:] = np.nan
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["a"].asscalar() == 0
    assert executor.grad_dict["b"].asscalar() == 3


def test_an_output_nobody_uses_has_no_say_in_the_gradient():
    (a,) = variables("a")
    parts = mx.sym.SliceChannel(a, num_outputs=2, axis=0)
    executor = (parts[1] * 5).simple_bind(mx.cpu(), a=(2,))
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [0, 5]


def test_loss_heads_need_no_gradient():
    data, label = variables(["data", "label"])
    loss = mx.sym.LinearRegressionOutput(data, label)
    executor = loss.simple_bind(mx.cpu(), data=(2, 1), label=(2, 1), grad_req={"data": "write"})
    executor.arg_dict["data"][:] = np.array([[3], [5]])
    executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_dict["data"].asnumpy().ravel().tolist() == [3, 5]


@pytest.mark.parametrize(
    "after",
    [
        lambda loss: mx.sym.Reshape(loss, shape=(3, 1)),
        mx.sym.exp,
        mx.sym.BlockGrad,
        lambda loss: mx.sym.Group([loss * 2, loss]),
    ],
    ids=["reshape", "exp", "BlockGrad", "group"],
)
def test_what_follows_a_loss_needs_no_head_gradient(after):
    data, label = variables(["data", "label"])
    executor = after(mx.sym.SoftmaxOutput(data, label)).simple_bind(mx.cpu(), data=(1, 3), label=(1,))
    executor.arg_dict["label"][:] = 1
    executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), [[1 / 3, -2 / 3, 1 / 3]], rtol=1e-6)


def test_a_path_beside_the_loss_still_needs_its_head_gradient():
    data, label = variables(["data", "label"])
    net = mx.sym.SoftmaxOutput(data, label) + data
    executor = net.simple_bind(mx.cpu(), data=(1, 3), label=(1,))
    executor.forward(is_train=True)
    with pytest.raises(GraphError, match=r"output _plus\d+_output is not a loss"):
        executor.backward()
    executor.backward(mx.nd.ones((1, 3)))
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), [[1 / 3, 4 / 3, 4 / 3]], rtol=1e-6)


def test_a_smaller_shape_runs_in_its_parents_memory():
    a = mx.sym.Variable("a")
    executor = (a * 2).simple_bind(mx.cpu(), a=(5, 2), grad_req="null")
    executor.arg_dict["a"][:] = 1
    smaller = executor.reshape(a=(3, 2))
    smaller.forward()
    assert executor.outputs[0].asnumpy().tolist() == [[2, 2]] * 3 + [[0, 0]] * 2
    assert smaller.internal_bytes == 0
    larger = smaller.reshape(a=(6, 2), allow_up_sizing=True)
    larger.arg_dict["a"][:] = 3
    larger.forward()
    assert executor.outputs[0].asnumpy()[0].tolist() == [2, 2]
    assert larger.outputs[0].asnumpy().tolist() == [[6, 6]] * 6


def test_groups_of_nodes_are_on_devices_of_their_own():
    with mx.AttrScope(ctx_group="one"):
        a = mx.sym.Variable("a")
        first = a * 2
    with mx.AttrScope(ctx_group="two"):
        net = first + mx.sym.Variable("b")
    groups = {"one": mx.cpu(1), "two": mx.cpu(2)}
    executor = net.simple_bind(mx.cpu(), group2ctx=groups, a=(2,), b=(2,))
    assert [each.context for each in executor.arg_arrays] == [mx.cpu(1), mx.cpu(2)]
    assert executor.grad_dict["a"].context == mx.cpu(1)
    assert executor.outputs[0].context == mx.cpu(2)
    executor.forward(is_train=True, a=np.array([1, 2]), b=np.array([10, 20]))
    executor.backward(mx.nd.ones((2,), mx.cpu(2)))
    assert executor.outputs[0].asnumpy().tolist() == [12, 24]
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 2]
    with pytest.raises(DeviceError, match=r"node 'a' is to go to gpu\(0\), the graph to cpu\(0\)"):
        net.simple_bind(mx.cpu(), group2ctx={"one": mx.gpu(0)}, a=(2,), b=(2,))


def test_a_monitor_sees_what_backward_computes():
    executor = product(grad_req={"a": "write", "b": "null"})
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.update({name: array.asnumpy().tolist()}))
    executor.forward(is_train=True)
    assert [*seen.values()] == [[10, 21], [12, 24]]
    seen.clear()
    executor.backward(mx.nd.ones((2,)))
    assert [name.rpartition("_")[2] for name in seen] == ["output0", "output1"] * 2
    assert [*seen.values()][-2:] == [[6, 8], [0, 0]]  # (b + 1) g, and what nobody asks for


def test_backward_without_head_gradients_says_which_output():
    executor = product()
    executor.forward(is_train=True)
    with pytest.raises(GraphError, match=r"output _plus\d+_output is not a loss.*out_grads.*make_loss"):
        executor.backward()
    executor.backward([mx.nd.ones((2,))])  # still usable


@pytest.mark.parametrize("is_train", [True, False])
@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_backward_twice_after_one_forward(is_train, grad_req):
    """The plan gives the memory of forward's values to gradients, so each backward would spoil the next."""
    x = mx.sym.Variable("x")
    net = x
    for _ in range(4):
        net = net * net  # x**16; each factor is read by backward
    executor = net.simple_bind(mx.cpu(), x=(2,), grad_req=grad_req, type_dict={"x": "float64"})
    numbers = np.array([0.5, -1.25])
    for _ in range(2):
        executor.forward(is_train=is_train, x=numbers)
        expected = 0
        executor.grad_dict["x"][:] = 0
        for head in (1, 3, -2):
            executor.backward([mx.nd.full((2,), head, dtype="float64")])
            slope = head * 16 * numbers**15
            expected = expected + slope if grad_req == "add" else slope
            np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), expected, rtol=1e-13)
            np.testing.assert_allclose(executor.outputs[0].asnumpy(), numbers**16, rtol=1e-13)


def test_a_second_backward_draws_and_counts_nothing_anew():
    """Dropout keeps its mask and random numbers go on as after one; BatchNorm's averages move in backward."""
    data = mx.sym.Variable("data")
    net = mx.sym.Dropout(mx.sym.BatchNorm(data, name="bn", fix_gamma=False, momentum=0.5), p=0.5)
    executor = net.simple_bind(mx.cpu(), data=(8, 3))
    executor.arg_dict["bn_gamma"][:] = 1
    executor.arg_dict["data"][:] = np.random.default_rng(1).standard_normal((8, 3))
    mx.random.seed(5)
    out = executor.forward(is_train=True)[0].asnumpy()
    head = mx.nd.array(np.random.default_rng(2).standard_normal((8, 3)))
    executor.backward([head])
    once = {name: array.asnumpy() for name, array in executor.grad_dict.items()}
    states = {name: array.asnumpy() for name, array in executor.aux_dict.items()}
    stands = mx.random.get_state()
    for array in executor.grad_arrays:
        array[:] = 7
    executor.backward([head])
    np.testing.assert_array_equal(executor.outputs[0].asnumpy(), out)
    for name, array in executor.grad_dict.items():
        np.testing.assert_array_equal(array.asnumpy(), once[name])
    mean = executor.arg_dict["data"].asnumpy().mean(axis=0)
    np.testing.assert_allclose(states["bn_moving_mean"], mean / 2, rtol=1e-5)
    np.testing.assert_allclose(executor.aux_dict["bn_moving_mean"].asnumpy(), mean * 3 / 4, rtol=1e-5)
    assert mx.random.get_state() == stands


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_gradients_in_another_dtype_are_computed_in_that_of_the_arrays(dtype):
    a, b, c = variables("abc")
    net = mx.sym.Group([a * b * b, c])  # c is an output itself
    values = {"a": 1.1, "b": 3, "c": 1}
    args = {name: mx.nd.full((2,), value) for name, value in values.items()}
    grads = {name: mx.nd.full((2,), 100, dtype=dtype) for name in "abc"}
    executor = net.bind(mx.cpu(), args, grads, {"a": "write", "b": "add", "c": "add"})
    told = {}
    executor.set_gradient_callback(lambda names: told.update({name: grads[name].asnumpy() for name in names}))
    executor.forward(is_train=True)
    for times in (1, 2):
        executor.backward([mx.nd.ones((2,)), mx.nd.full((2,), 5)])
        slope = np.float32(1.1) * np.float32(3) + np.float32(1.1) * np.float32(3)
        for name, value in {"a": 9, "b": 100 + times * float(slope), "c": 100 + times * 5}.items():
            assert grads[name].dtype == np.dtype(dtype)
            rounding = {"float16": 2e-3, "float64": 1e-7}[dtype]
            np.testing.assert_allclose(grads[name].asnumpy(), value, rtol=rounding)
        for name in "ab":  # c's does not come out of a step
            np.testing.assert_array_equal(told[name], grads[name].asnumpy())


def test_gradients_in_whole_numbers_are_refused():
    (a,) = variables("a")
    with pytest.raises(DTypeError, match=r"args_grad of a must have dtype .*float32.*, got .*int32"):
        (a * a).bind(mx.cpu(), {"a": mx.nd.ones((2,))}, {"a": mx.nd.zeros((2,), dtype="int32")})


# -- nodes that compute the same --------------------------------------------------------------------------


def _repeated():
    a, b = variables("ab")
    return [
        ((a + 1) + (a + 2), 0),
        ((a + b) + (a + b), 1),
        (mx.sym.relu(a * b) * mx.sym.relu(a * b), 2),
        (mx.sym.Dropout(a) + mx.sym.Dropout(a), 0),  # each draws a mask of its own
        (mx.sym.random_normal_like(a) + mx.sym.random_normal_like(a), 0),
        (mx.sym.make_loss(a, name="one") + mx.sym.make_loss(a, name="two"), 0),
    ]


@pytest.mark.parametrize("case", range(len(_repeated())))
def test_equal_nodes_are_computed_once(case, monkeypatch):
    net, saved = _repeated()[case]
    shapes = dict.fromkeys(net.list_arguments(), (3, 4))
    monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
    every = net.simple_bind(mx.cpu(), **shapes)
    monkeypatch.delenv("MXNET_ELIMINATE_COMMON_EXPR")
    once = net.simple_bind(mx.cpu(), **shapes)
    assert len(every.get_optimized_symbol().get_internals()) == len(net.get_internals())
    assert len(once.get_optimized_symbol().get_internals()) == len(net.get_internals()) - saved
    rng = np.random.default_rng(case)
    values = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    for executor in (every, once):
        mx.random.seed(1)
        executor.forward(is_train=True, **values)
        executor.backward([mx.nd.ones((3, 4))])
    np.testing.assert_array_equal(once.outputs[0].asnumpy(), every.outputs[0].asnumpy())
    for name, array in every.grad_dict.items():
        np.testing.assert_allclose(once.grad_dict[name].asnumpy(), array.asnumpy(), rtol=1e-6)


def test_outputs_that_are_computed_once_are_arrays_of_their_own():
    a, b = variables("ab")
    net = mx.sym.Group([mx.sym.elemwise_mul(a, b, name="one"), mx.sym.elemwise_mul(a, b, name="two")])
    executor = net.simple_bind(mx.cpu(), a=(2,), b=(2,))
    executor.forward(is_train=True, a=np.array([2, 3]), b=np.array([5, 7]))
    assert list(executor.output_dict) == ["one_output", "two_output"]
    executor.backward({"one_output": mx.nd.ones((2,)), "two_output": mx.nd.full((2,), 10)})
    assert executor.grad_dict["a"].asnumpy().tolist() == [55, 77]
    executor.outputs[0][:] = 0
    assert executor.outputs[1].asnumpy().tolist() == [10, 21]
    assert executor.get_optimized_symbol().list_outputs() == ["one_output", "one_0_copy_output"]


def test_no_operator_that_draws_or_keeps_something_is_computed_once():
    draws = [name for name in mx.registry.list_operators() if name.startswith(("_random", "_sample"))]
    assert len(draws) > 20
    for name in (*draws, "_shuffle", "Dropout", "LeakyReLU", "RNN", "BatchNorm", "Custom"):
        assert not get(name).repeatable, name
    for name in mx.registry.list_operators():
        assert not (get(name).repeatable and get(name).aux), name


def test_batch_take_has_no_gradient():
    """MXNet 1.9.1: binding fails where a gradient would go through it, and only there."""
    x, index = variables(["x", "index"])
    taken = mx.sym.batch_take(x, index, name="taken")
    shapes = {"x": (3, 4), "index": (3,), "type_dict": {"index": "int32"}}
    with pytest.raises(GraphError, match=r"bind: batch_take\(taken\) has no gradient.*grad_req.*BlockGrad"):
        taken.simple_bind(mx.cpu(), **shapes)
    executor = mx.sym.BlockGrad(taken).simple_bind(mx.cpu(), **shapes)
    executor.forward(is_train=True)
    executor.backward()
    assert not executor.grad_dict["x"].asnumpy().any()
    taken.simple_bind(mx.cpu(), grad_req="null", **shapes).forward()


def test_backward_before_any_forward():
    executor = product()
    executor.backward([mx.nd.ones((2,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [6, 8]  # b + 1


def test_backward_after_an_inference_forward_gives_its_gradient():
    """MXNet 1.9.1: frozen statistics, no dropout."""
    data = mx.sym.Variable("data")
    frozen = mx.sym.BatchNorm(data, name="bn", fix_gamma=False)
    executor = mx.sym.Dropout(frozen * 2).simple_bind(mx.cpu(), data=(2, 2))
    executor.arg_dict["data"][:] = np.array([[1, 2], [3, 5]])
    executor.arg_dict["bn_gamma"][:] = 1
    executor.aux_dict["bn_moving_var"][:] = 4
    for _ in range(3):
        executor.forward()
        out = executor.outputs[0].asnumpy().copy()
        executor.backward([mx.nd.ones((2, 2))])
        np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), 1, rtol=1e-3)
        np.testing.assert_array_equal(executor.outputs[0].asnumpy(), out)
        assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
        executor.grad_dict["data"][:] = 7


def test_gradients_that_nothing_reads_are_not_looked_at():
    (a,) = variables("a")
    executor = mx.sym.Group([a * 3, mx.sym.shape_array(a)]).simple_bind(mx.cpu(), a=(2,))
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2,)), mx.nd.ones((9,)), mx.nd.ones((1,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [3, 3]


def test_head_gradients_are_checked_before_anything_runs():
    executor = product()
    executor.forward(is_train=True)
    executor.grad_dict["a"][:] = 77
    with pytest.raises(ShapeError, match=r"gradient of _plus\d+_output must have shape \(2,\), got \(3,\)"):
        executor.backward([mx.nd.ones((3,))])
    assert executor.grad_dict["a"].asnumpy().tolist() == [77, 77]


def test_outputs_are_valid_after_bind_and_stay_the_same_arrays():
    executor = product()
    out = executor.outputs[0]
    assert out.asnumpy().tolist() == [0, 0]
    assert executor.forward()[0] is out
    assert list(executor.output_dict.values()) == [out]


def test_forward_takes_inputs_by_name():
    executor = product()
    out = executor.forward(a=np.array([1.0, 1.0]), b=mx.nd.array([2, 3]))[0]
    assert out.asnumpy().tolist() == [3, 4]


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"c": np.zeros(2)}, GraphError, "forward: 'c' is not an argument"),
        ({"a": np.zeros(3)}, ShapeError, r"forward: a must have shape \(2,\), got \(3,\); use reshape"),
    ],
)
def test_bad_inputs_leave_the_executor_as_it_was(kwargs, error, text):
    executor = product()
    with pytest.raises(error, match=text):
        executor.forward(b=np.array([9.0, 9.0]), **kwargs)
    assert executor.arg_dict["b"].asnumpy().tolist() == [5, 7]
    assert executor.forward()[0].asnumpy().tolist() == [12, 24]


def test_bind_uses_the_callers_arrays():
    a, b = variables("ab")
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    executor = (a + b).bind(mx.cpu(), {"a": x, "b": y})
    x[:] = 10
    assert executor.forward()[0].asnumpy().tolist() == [13, 14]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "text"),
    [
        ([np.zeros(2, "f4")], {}, GraphError, "args has 1 arrays, the graph has 2: a, b"),
        ({"a": np.zeros(2, "f4")}, {}, GraphError, "args lacks b"),
        (
            [np.zeros(2, "f4"), np.zeros(3, "f4")],
            {},
            ShapeError,
            r"rhs must have shape \(2,\), got \(3,\)|inputs: lhs=\(2,\), rhs=\(3,\)",
        ),
        ([np.zeros(2, "f4"), np.zeros(2, "f8")], {}, DTypeError, "float32.*float64"),
        (
            [np.zeros(2, "f4")] * 2,
            {"args_grad": [np.zeros(3, "f4")]},
            ShapeError,
            r"args_grad of a must have shape \(2,\), got \(3,\)",
        ),
        (
            [np.zeros(2, "f4")] * 2,
            {"grad_req": "sum"},
            GraphError,
            "grad_req of a must be 'write', 'add' or 'null'",
        ),
        ([np.zeros(2, "f4")] * 2, {"grad_req": ["write"]}, GraphError, "1 entries for 2 arguments"),
    ],
)
def test_bind_checks_what_it_is_given(args, kwargs, error, text):
    a, b = variables("ab")
    with pytest.raises(error, match=text):
        (a + b).bind(mx.cpu(), args, **kwargs)


def test_simple_bind_lists_all_that_is_missing():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    with pytest.raises(
        ShapeError,
        match="give the shapes of these too, or more of the others: data: unknown, fc_weight: unknown",
    ):
        fc.simple_bind(mx.cpu())


def test_reshape_shares_what_keeps_its_shape():
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    executor = fc.simple_bind(mx.cpu(), data=(2, 4))
    executor.arg_dict["fc_weight"][:] = 1
    larger = executor.reshape(data=(5, 4))
    assert larger.arg_dict["fc_weight"] is executor.arg_dict["fc_weight"]
    assert larger.forward(data=np.ones((5, 4)))[0].asnumpy().tolist() == [[4.0] * 3] * 5
    with pytest.raises(GraphError, match="reshape: 'dta' is not an argument; did you mean 'data'"):
        executor.reshape(dta=(1, 4))


def test_a_shared_buffer_holds_what_executors_have_in_common():
    """The names and the sharing are MXNet 1.9.1's."""
    fc, buffer = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc"), {}
    first = fc.simple_bind(mx.cpu(), x=(4, 2), shared_buffer=buffer)
    second = fc.simple_bind(mx.cpu(), x=(3, 2), shared_buffer=buffer)
    names = {"x", "fc_weight", "fc_bias"}
    assert set(buffer) == names | {f"grad of {name}" for name in names}
    second.arg_dict["fc_bias"][:] = 3
    second.arg_dict["x"][:] = 5
    assert first.arg_dict["fc_bias"].asnumpy().tolist() == [3, 3, 3]
    assert first.arg_dict["x"].asnumpy()[:, 0].tolist() == [5, 5, 5, 0]
    larger = fc.simple_bind(mx.cpu(), x=(5, 2), shared_buffer=buffer, grad_req="null")
    assert larger.arg_dict["x"] is buffer["x"]
    assert larger.arg_dict["fc_bias"].asnumpy().tolist() == [3, 3, 3]


def test_reshape_does_not_swap_a_weight_for_an_empty_one():
    fc = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), name="s"
    )
    executor = fc.simple_bind(mx.cpu(), data=(2, 4))
    text = r"reshape: fc_weight has shape \(3, 4\), and these inputs need \(3, 5\): give its new shape, too, or p"
    with pytest.raises(ShapeError, match=text):
        executor.reshape(data=(2, 5))
    assert executor.reshape(data=(2, 5), partial_shaping=True).arg_dict["fc_weight"].shape == (3, 5)
    assert executor.reshape(data=(2, 5), fc_weight=(3, 5)).arg_dict["fc_weight"].shape == (3, 5)
    assert executor.reshape(data=(7, 4)).arg_dict["s_label"].shape == (7,)  # labels follow the data


def test_reshape_does_not_swap_a_state_for_an_empty_one():
    norm = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn")
    executor = norm.simple_bind(mx.cpu(), data=(2, 4, 3, 3), bn_gamma=(4,))
    with pytest.raises(ShapeError, match=r"reshape: bn_gamma has shape \(4,\), and these inputs need \(5,\)"):
        executor.reshape(data=(2, 5, 3, 3))


def test_copy_params_from():
    executor = product()
    executor.copy_params_from({"a": mx.nd.array([8, 9])})
    assert executor.arg_dict["a"].asnumpy().tolist() == [8, 9]
    with pytest.raises(GraphError, match="not an argument of the graph: 'aa'; did you mean 'a'"):
        executor.copy_params_from({"aa": mx.nd.zeros((2,))})
    executor.copy_params_from({"aa": mx.nd.zeros((2,))}, allow_extra_params=True)
    with pytest.raises(ShapeError, match=r"copy_params_from: a must have shape \(2,\), got \(3,\)"):
        executor.copy_params_from({"a": mx.nd.zeros((3,))})


def test_the_monitor_sees_every_operator():
    a, b = variables("ab")
    net = mx.sym.exp(mx.sym.elemwise_add(a, b, name="sum"), name="top")
    executor = net.simple_bind(mx.cpu(), a=(1,), b=(1,), grad_req="null")
    seen = []
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.asscalar())))
    executor.forward()
    assert seen == [("sum_output", 0.0), ("top_output", 1.0)]
    seen.clear()
    executor.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    executor.forward()
    assert seen == ["a", "sum_lhs", "b", "sum_rhs", "sum_output", "top_input0", "top_output"]
    executor.set_monitor_callback(None)
    seen.clear()
    executor.forward()
    assert not seen


def test_a_monitor_calls_inputs_what_mxnet_calls_them():
    recorded = json.loads((GOLDEN / "monitor_names.json").read_text())["operators"]
    assert len(recorded) > 300
    checked = 0
    for op, names in recorded.items():
        prop = get(op)
        if not names or prop.variadic or len(names) != len(prop.arguments) + len(prop.aux):
            continue  # parameters say which inputs there are
        needs_parameters = any(field.required for field in prop.param.fields.values())
        if needs_parameters and len(names) > 1:
            continue
        made = prop(None) if len(names) == 1 else prop.create({})
        if len(names) == len(made.list_arguments()) + len(prop.aux):
            assert made.list_monitored_inputs() == names, op
            checked += 1
    assert checked > 200


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("SequenceMask", {}),
        ("SequenceLast", {}),
        ("SequenceReverse", {}),
        ("moments", {"axes": 0}),
        ("_contrib_quadratic", {}),
        ("_unravel_index", {"shape": (3, 4)}),
        ("_ravel_multi_index", {"shape": (3, 4)}),
    ],
)
def test_a_monitor_calls_these_single_inputs_data(op, params):
    """As in MXNet 1.9.1: operators that the recorded names lack, or have with two inputs."""
    assert get(op)(get(op).param(**params)).list_monitored_inputs() == ["data"]


def chain(length, shape, grad_req="null"):
    net = mx.sym.Variable("x")
    for i in range(length):
        # Two operators that cannot work in place, so that the plan is what saves memory.
        net = mx.sym.transpose(net, axes=(1, 0), name=f"layer{i}")
    return net.simple_bind(mx.cpu(), grad_req=grad_req, x=shape)


def test_inference_of_a_long_chain_takes_the_memory_of_two_layers():
    assert chain(100, (50, 50)).internal_bytes == chain(2, (50, 50)).internal_bytes == 2 * 50 * 50 * 4


def test_the_memory_stands_where_scripts_look_for_it():
    """As in MXNet's memory examples: the third line from the end, its second word."""
    text = chain(3, (1000, 1000)).debug_str()
    assert text.splitlines()[0] == "layer0: transpose(layer0)"
    assert text.split("\n")[-3] == "Total 7 MB allocated"  # two layers of 4,000,000 bytes


def test_in_place_operators_share_one_buffer():
    net = mx.sym.Variable("x")
    for _ in range(50):
        net = mx.sym.exp(net) + 1
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=(1000,))
    assert executor.internal_bytes == 4000


def test_training_keeps_what_backward_reads():
    net = mx.sym.Variable("x")
    for _ in range(4):
        net = mx.sym.square(net)
    executor = net.simple_bind(mx.cpu(), x=(3,), type_dict={"x": "float64"})
    executor.arg_dict["x"][:] = np.array([0.5, 1.0, 1.5])
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((3,), dtype="float64")])
    np.testing.assert_allclose(
        executor.grad_dict["x"].asnumpy(), 16 * np.array([0.5, 1.0, 1.5]) ** 15, rtol=1e-12
    )


def test_running_again_allocates_nothing_that_grows():
    a, b = variables("ab")
    net = mx.sym.FullyConnected(mx.sym.relu(a + b), num_hidden=64, name="fc")
    executor = net.simple_bind(mx.cpu(), a=(256, 256), b=(256, 256))
    head = mx.nd.ones((256, 64))

    def step():
        executor.forward(is_train=True)
        executor.backward([head])

    step()
    step()
    tracemalloc.start()
    step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 * 256 * 4, f"a step allocated {peak} bytes, one array of the graph has {256 * 256 * 4}"


def test_a_graph_of_twenty_thousand_nodes():
    a, b = variables("ab")
    net = a
    for _ in range(20_000):
        net = net + b
    executor = net.simple_bind(mx.cpu(), a=(1,), b=(1,))
    executor.arg_dict["b"][:] = 1
    assert executor.forward(is_train=True)[0].asscalar() == 20_000
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["b"].asscalar() == 20_000
    again = mx.sym.load_json(net.tojson())
    assert again.tojson() == net.tojson()


def test_empty_inputs():
    data, rois = variables(["data", "rois"])
    net = mx.sym.broadcast_mul(data, rois)
    executor = net.simple_bind(mx.cpu(), data=(0, 3), rois=(1, 3))
    assert executor.forward(is_train=True)[0].shape == (0, 3)
    executor.backward([mx.nd.empty((0, 3))])
    assert executor.grad_dict["rois"].asnumpy().tolist() == [[0, 0, 0]]


def test_an_operator_error_leaves_the_executor_usable():
    @mx.registry.register("_test_picky")
    class PickyProp(mx.operators.base.OperatorProperty):
        """Refuses negative numbers."""

        class op(mx.operators.base.Operator):
            def forward(self, ctx, in_data, req, out_data, aux):
                if (in_data[0] < 0).any():
                    raise MXNetError(f"{ctx.label}: data must not be negative")
                out_data[0][...] = np.sqrt(in_data[0])

    net = mx.sym._internal._test_picky(mx.sym.Variable("x"), name="root") + 1
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=(2,))
    with pytest.raises(MXNetError, match=r"_test_picky\(root\): data must not be negative"):
        executor.forward(x=np.array([1, -1]))
    assert executor.forward(x=np.array([4, 9]))[0].asnumpy().tolist() == [3, 4]


def test_threads_on_one_executor_and_on_their_own():
    shared = product()
    failures = []

    def work(own):
        executor = own or shared
        for _ in range(200):
            if executor.forward(is_train=True)[0].asnumpy().tolist() != [12, 24]:
                failures.append("wrong output")

    threads = [threading.Thread(target=work, args=(product() if i % 2 else None,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_two_variables_of_one_name_cannot_be_bound():
    net = mx.sym.Variable("x") + mx.sym.Variable("x")
    with pytest.raises(GraphError, match="two different variables are named 'x'"):
        net.simple_bind(mx.cpu(), x=(1,))


def test_eval():
    a, b = variables("ab")
    (out,) = (a / b).eval(mx.cpu(), a=mx.nd.array([6]), b=mx.nd.array([4]))
    assert out.asscalar() == 1.5


def test_an_executor_for_smaller_inputs_shares_their_memory():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=4, name="fc")
    executor = net.simple_bind(mx.cpu(), x=(5, 4), grad_req="null")
    for name in ("x", "fc_weight"):
        executor.arg_dict[name][:] = 1
    smaller = executor.reshape(x=(3, 4))
    assert (smaller.forward()[0].asnumpy() == 4).all()
    smaller.arg_dict["x"][:] = 2
    assert executor.arg_dict["x"].asnumpy()[:, 0].tolist() == [2, 2, 2, 1, 1]


def inference(net, **inputs):
    """An executor without gradients, what it computes, and what each operator by itself does."""
    executor = net.simple_bind(mx.cpu(), grad_req="null", **{k: v.shape for k, v in inputs.items()})
    results = [output.asnumpy() for output in executor.forward(**inputs)]
    executor.set_monitor_callback(lambda name, array: None)  # runs every operator by itself
    return executor, results, [output.asnumpy() for output in executor.forward()]


def test_the_inputs_of_a_concat_are_computed_in_their_place():
    net = mx.sym.Variable("x")
    for i in range(8):  # as in a DenseNet: each layer's result is joined to all before it
        net = mx.sym.concat(net, mx.sym.transpose(net, axes=(0, 1, 3, 2)), dim=1, name=f"join{i}")
    net = mx.sym.transpose(net, axes=(0, 1, 3, 2))
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 5)).astype(np.float32)
    executor, (result,), (alone,) = inference(net, x=x)
    np.testing.assert_array_equal(result, alone)
    wanted = x
    for _ in range(8):
        wanted = np.concatenate([wanted, wanted.swapaxes(2, 3)], axis=1)
    np.testing.assert_array_equal(result, wanted.swapaxes(2, 3))
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=x.shape)
    assert (
        executor.internal_bytes == 2 * wanted.nbytes
    )  # the last join, which holds all others, and the output


def test_places_in_a_concat_with_other_readers_before_and_after():
    x = mx.sym.Variable("x")
    a, b = mx.sym.transpose(x, axes=(0, 1, 3, 2)), x * 2
    joined = mx.sym.concat(a, b, a, dim=1)
    changed = mx.sym.relu(joined)  # may not work in place: a and b are read once more
    again = mx.sym.concat(
        mx.sym.negative(mx.sym.reshape(changed, shape=(1, 6, 9))), mx.sym.reshape(b, shape=(1, 2, 9)), dim=1
    )
    net = mx.sym.Group([again, a + b, mx.sym.stack(mx.sym.sum(a), mx.sym.sum(b)), b])
    value = np.random.default_rng(1).normal(size=(1, 2, 3, 3)).astype(np.float32)
    _, results, alone = inference(net, x=value)
    one, two = value.swapaxes(2, 3), value * 2
    whole = np.maximum(np.concatenate([one, two, one], 1), 0).reshape(1, 6, 9)
    np.testing.assert_array_equal(results[0], np.concatenate([-whole, two.reshape(1, 2, 9)], 1))
    for result, other in zip(results, alone, strict=True):
        np.testing.assert_array_equal(result, other)
    np.testing.assert_array_equal(results[1], one + two)


def test_an_input_of_a_concat_that_is_an_output_too():
    x = mx.sym.Variable("x")
    a = mx.sym.exp(x)
    value = np.arange(6, dtype=np.float32).reshape(1, 6)
    _, (joined, output), _ = inference(mx.sym.Group([mx.sym.concat(a, x, a * 1, dim=1), a]), x=value)
    np.testing.assert_array_equal(output, np.exp(value))
    np.testing.assert_array_equal(joined, np.concatenate([np.exp(value), value, np.exp(value)], 1))


def test_graphs_of_many_joins_agree_with_their_operators_one_by_one():
    rng = random.Random(2)
    for _ in range(30):
        values = [mx.sym.Variable("x")]
        for _ in range(12):
            a, b, c = (rng.choice(values) for _ in range(3))
            values.append(
                rng.choice(
                    [
                        lambda a=a, b=b, c=c: mx.sym.concat(a, b, c, dim=0),
                        lambda a=a, b=b: mx.sym.concat(a, b, dim=0),
                        lambda a=a: mx.sym.relu(a),
                        lambda a=a: mx.sym.negative(a),
                        lambda a=a: mx.sym.reshape(mx.sym.reshape(a, shape=(-1,)), shape=(-1, 3)),
                    ]
                )()
            )
        net = mx.sym.Group([*rng.sample(values, 2), values[-1]])
        x = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)
        _, results, alone = inference(net, x=x)
        for result, other in zip(results, alone, strict=True):
            np.testing.assert_array_equal(result, other)


def test_batch_norm_and_relu_train_as_one_step_with_the_same_bits():
    """A monitor sees each operator by itself; without one a batch norm does the ReLU after it as well."""
    net = mx.sym.Variable("data")
    for i, given in enumerate([False, True]):
        net = mx.sym.BatchNorm(net, use_global_stats=given, fix_gamma=given, name=f"norm{i}")
        net = mx.sym.Activation(net, act_type="relu", name=f"relu{i}")
    rng = np.random.default_rng(0)
    data, heads = (mx.nd.array(rng.standard_normal((2, 5, 7, 9))) for _ in range(2))
    seen = []

    def two_steps(monitors):
        executor = net.simple_bind(mx.cpu(), data=data.shape)
        executor.copy_params_from({"norm0_gamma": mx.nd.array(np.arange(5.0)), "norm1_gamma": mx.nd.ones(5)})
        executor.arg_dict["norm0_beta"][:] = 0.5
        for name in ("norm0_moving_var", "norm1_moving_var"):
            executor.aux_dict[name][:] = 2
        executor.arg_dict["data"][:] = data
        for monitor in monitors:
            executor.set_monitor_callback(monitor)
            executor.forward(is_train=True)
            executor.backward(heads)
        return [each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays, *executor.aux_arrays)]

    def watch(name, array):
        seen.append((name, array.asnumpy()))

    alone = two_steps([watch, watch])
    assert [name for name, _ in seen[:4]] == ["norm0_output", "relu0_output", "norm1_output", "relu1_output"]
    assert seen[0][1].min() < 0
    for monitors in ([None, None], [None, watch], [watch, None]):
        for one, other in zip(alone, two_steps(monitors), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_second_backward_repeats_random_numbers_and_leaves_those_of_others():
    net = mx.sym.Dropout(mx.sym.Variable("data"), p=0.5)
    executor = net.simple_bind(mx.cpu(), data=(64, 64))
    executor.arg_dict["data"][:] = 1
    mx.random.seed(3)
    mask = executor.forward(is_train=True)[0].asnumpy()
    state = mx.random.get_state()
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append(mx.random.get_state() == state))
    for _ in range(2):
        executor.backward(mx.nd.ones((64, 64)))
        np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), mask)
    assert seen
    assert all(seen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_a_thread_draws_can_draw():
    script = (
        "import os, threading, time, roiops as mx\n"
        "def draw():\n"
        "    while True: mx.nd.random.uniform(shape=(64, 64))\n"
        "threading.Thread(target=draw, daemon=True).start()\n"
        "time.sleep(0.3)\n"
        "for _ in range(10):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        mx.nd.random.uniform(shape=(2,))\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_a_thread_compiles_can_compile():
    script = (
        "import os, threading, time, numba, roiops.kernels.jit\n"
        "from numba.core.compiler_lock import global_compiler_lock\n"
        "begun = threading.Event()\n"
        "def compile():\n"
        "    with global_compiler_lock:\n"
        "        begun.set()\n"
        "        time.sleep(1)\n"
        "threading.Thread(target=compile).start()\n"
        "begun.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(numba.njit(lambda x: x + 1)(6))\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)


def test_the_first_forward_in_two_threads_at_once():
    script = (
        "import sys, threading, roiops as mx\n"
        "sys.setswitchinterval(1e-5)\n"
        "net = mx.sym.Dropout(mx.sym.Variable('data'), p=0.5)\n"
        "executors = [net.simple_bind(mx.cpu(), data=(8, 8)) for _ in range(2)]\n"
        "threads = [threading.Thread(target=each.forward) for each in executors]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()\n"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
        assert not done.stderr


def test_inputs_of_forward_go_by_name():
    executor = mx.sym.relu(mx.sym.Variable("data")).bind(mx.cpu(), {"data": np.ones(2, np.float32)})
    with pytest.raises(mx.MXNetError, match="forward: the first argument is is_train; inputs go by name"):
        executor.forward(np.ones(2, np.float32))


def test_what_an_executor_lends_to_another():
    """As in MXNet: nothing without a buffer; with one, states and the arguments that are named."""
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="f"), name="b")
    first = net.simple_bind(mx.cpu(), x=(2, 4))

    def lent(**options):
        other = net.simple_bind(mx.cpu(), x=(2, 4), shared_exec=first, **options)
        pairs = [(first.arg_dict, other.arg_dict), (first.aux_dict, other.aux_dict)]
        pairs.append((first.grad_dict, other.grad_dict))
        return [
            {n for n, a in ours.items() if np.shares_memory(a.data, theirs[n].data)} for ours, theirs in pairs
        ]

    assert lent(shared_arg_names=["f_weight"]) == [set()] * 3
    states = {"b_moving_mean", "b_moving_var"}
    assert lent(shared_arg_names=["f_weight"], shared_buffer={}) == [{"f_weight"}, states, {"f_weight"}]
