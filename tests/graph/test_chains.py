"""Chains of element-wise operators, which inference computes in one pass."""

import itertools

import numpy as np
import pytest

import roiops as mx
from roiops import registry
from roiops.operators.tensor.chain import ChainOp, ChainProp


def bound(net, **shapes):
    executor = net.simple_bind(mx.cpu(), grad_req="null", **shapes)
    rng = np.random.default_rng(0)
    for array in executor.arg_dict.values():
        array[:] = rng.standard_normal(array.shape) * 4
    return executor


def operators(executor):
    """The names of the steps of inference."""
    executor.forward()
    return [step.name for step in executor._inference.program.forward]


def results(executor):
    """Those of inference, and those of one operator after the other."""
    one = [output.asnumpy().copy() for output in executor.forward()]
    executor.set_monitor_callback(lambda name, array: None)
    other = [output.asnumpy().copy() for output in executor.forward()]
    executor.set_monitor_callback(None)
    return zip(one, other, strict=True)


def hard_swish(x):
    return x * (mx.sym.clip(x + 3, a_min=0, a_max=6) / 6)


X, Y, ROWS = map(mx.sym.Variable, ("x", "y", "rows"))
NETS = {
    "hard_swish": hard_swish(X),
    "reflected": 2 / (1 - X),
    "difference": mx.sym.relu(X - Y) * 0.3 - Y,
    "quotient": mx.sym.clip((X * Y) / Y, a_min=-1, a_max=2),
    "rows": mx.sym.broadcast_add(mx.sym.broadcast_mul(X + 1, ROWS), ROWS),
    "rows_first": mx.sym.broadcast_div(mx.sym.broadcast_sub(ROWS, X + 1), ROWS),
    "leaky": mx.sym.LeakyReLU(X + Y, act_type="leaky", slope=0.1) + Y,
    "sum_of_four": mx.sym.relu(X + Y + X * 2 + Y),
}


@pytest.mark.parametrize("size", [(1, 1), (7, 7), (33, 70)])
@pytest.mark.parametrize("name", NETS)
def test_a_chain_has_the_bits_of_its_operators(name, size):
    known = {"x": (2, 3, *size), "y": (2, 3, *size), "rows": (2, 3, 1, 1)}
    executor = bound(NETS[name], **{n: known[n] for n in NETS[name].list_arguments()})
    executor.arg_dict["x"][0, 0, 0, 0] = np.nan
    # A chain goes on from the left side of a difference of two arrays of one shape.
    apart = name == "sum_of_four" or (name == "rows_first" and size == (1, 1))
    assert len(operators(executor)) == (2 if apart else 1)
    for one, other in results(executor):
        np.testing.assert_array_equal(one, other)


def test_operands_with_rows_of_several_lengths():
    first, second, third = map(mx.sym.Variable, ("first", "second", "third"))
    net = mx.sym.broadcast_add(mx.sym.broadcast_mul(X, first), second)
    net = mx.sym.broadcast_sub(net + 1, third)
    some = (2, 1, 1, 1), (2, 3, 1, 1), (2, 3, 5, 1), (1, 1, 1, 1)
    for shapes in itertools.permutations(some, 3):
        executor = bound(net, x=(2, 3, 5, 7), **dict(zip(("first", "second", "third"), shapes, strict=True)))
        assert len(operators(executor)) == 1
        for one, other in results(executor):
            np.testing.assert_array_equal(one, other, err_msg=str(shapes))


def test_arrays_without_axes_are_read_in_each_run():
    x, y = np.array(2, np.float32), np.array(4, np.float32)
    executor = (X * Y + 1).bind(mx.cpu(), {"x": x, "y": y}, grad_req="null")
    assert executor.forward()[0].asscalar() == 9
    y[...] = 6
    assert executor.forward()[0].asscalar() == 13
    with mx.np_shape():
        assert executor.forward(x=mx.nd.ones(()))[0].asscalar() == 7


def test_zeros_keep_the_sign_that_operators_alone_give_them():
    data = mx.nd.array([-0.0, 0.0, -1.0, 1.0])
    nets = 1 / mx.sym.relu(X * 1.0), 1 / mx.sym.LeakyReLU(X * 1.0, act_type="leaky", slope=-1)
    nets += (1 / mx.sym.clip(X * 1.0, a_min=0, a_max=2),)
    for net in nets:
        executor = net.bind(mx.cpu(), {"x": data}, grad_req="null")
        assert len(operators(executor)) == 1
        for one, other in results(executor):
            np.testing.assert_array_equal(one, other)


def test_arrays_that_cannot_be_written():
    weight = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(np.float32)
    given = {"x": np.ones((1, 4, 8, 8), np.float32), "w": weight, "y": np.ones((1, 4, 8, 8), np.float32)}
    net = mx.sym.Convolution(X, mx.sym.Variable("w"), kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True)
    net = mx.sym.relu(mx.sym.broadcast_add(net * 2, Y))
    (expected,) = net.bind(mx.cpu(), given, grad_req="null").forward()
    for array in given.values():
        array.flags.writeable = False
    (found,) = net.bind(mx.cpu(), given, grad_req="null").forward()
    np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_what_others_read_is_kept():
    inner = X + 3
    net = mx.sym.Group([mx.sym.relu(inner) * 2, inner])
    executor = bound(net, x=(1, 2, 5, 5))
    assert len(operators(executor)) == 2
    for one, other in results(executor):
        np.testing.assert_array_equal(one, other)


def test_other_dtypes_and_long_chains():
    net = X
    for i in range(9):
        net = (net + Y) * (i - 3.5)
    for dtype in ("float16", "float64", "int32", "float32"):
        executor = net.simple_bind(mx.cpu(), grad_req="null", x=(3, 40), type_dict={"x": dtype, "y": dtype})
        for array in executor.arg_dict.values():
            array[:] = np.arange(120).reshape(3, 40) % 7 - 3
        for one, other in results(executor):
            np.testing.assert_array_equal(one, other)


def test_a_convolution_adds_before_a_chain_does():
    """The sum of a convolution and a chain is the convolution's: its results are at hand."""
    conv = mx.sym.Convolution(X, kernel=(3, 3), pad=(1, 1), num_filter=3, name="conv")
    executor = bound(mx.sym.relu(conv + Y * 2), x=(1, 3, 9, 9), y=(1, 3, 9, 9))
    assert operators(executor)[-1] == "conv"
    assert len(operators(executor)) == 2
    for one, other in results(executor):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["div_sqrt_dim", "gradientmultiplier"])
def test_operators_that_no_chain_has_stay_apart(name):
    net = getattr(mx.sym.contrib, name)(X + 1) * 2
    executor = bound(net, x=(3, 4))
    assert len(operators(executor)) == 3
    for one, other in results(executor):
        np.testing.assert_array_equal(one, other)


def test_every_operator_of_a_chain_says_what_it_does():
    props = [registry.get(name) for name in registry.list_operators()]
    assert [prop for prop in props if issubclass(prop, ChainProp) and not issubclass(prop.op, ChainOp)] == []
