"""The testing tools themselves: right gradients pass, each kind of wrong one fails and is named."""

import subprocess
import sys

import numpy as np
import pytest

import roiops as mx
from roiops import nd, registry, testing
from roiops.operators.base import Operator, OperatorProperty, assign
from roiops.params import Field, Parameter

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget after each test what it registered."""
    monkeypatch.setattr(registry, "_properties", dict(registry._properties))


# -- comparing -------------------------------------------------------------------------------------------


def test_assert_almost_equal_says_where_and_by_how_much():
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = a.copy()
    b[0, 1] += 0.5
    b[1, 2] -= 2
    with pytest.raises(AssertionError) as caught:
        testing.assert_almost_equal(a, b, rtol=0, atol=0.25, names=("out", "expected"))
    assert str(caught.value).splitlines() == [
        "out and expected differ at 2 of 6 elements (rtol=0, atol=0.25)",
        "  worst at (1, 2): out=6, expected=4, difference 2, 8 times what is allowed",
        "        at (0, 1): out=2, expected=2.5, difference 0.5, 2 times what is allowed",
    ]


def test_assert_almost_equal_lists_no_more_than_asked():
    with pytest.raises(AssertionError, match=r"(?s)differ at 100 of 100 elements.*and 97 more") as caught:
        testing.assert_almost_equal(np.zeros(100), np.ones(100), mismatches=(3, 3))
    assert len(str(caught.value).splitlines()) == 5


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (np.ones(3), np.ones(3), {}),
        (nd.ones((3,)), np.ones(3), {}),
        ([1, 2], (1, 2), {}),
        (np.float32(1), 1.00005, {"rtol": 1e-4}),
        (np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf]), {}),
        (np.array([np.nan]), np.array([np.nan]), {"equal_nan": True}),
        (np.ones((2, 3)), np.ones(3), {}),
        (np.zeros((0, 3)), np.zeros((0, 3)), {}),
        (np.ones(2, np.float32), np.ones(2) + 5e-4, {}),
        (np.ones(2), np.ones(2) + 1e-3, {"rtol": {np.float64: 1e-2}}),
        (np.array([True, False]), np.array([True, False]), {}),
        (np.array([2**62]), np.array([2**62]), {"rtol": 0, "atol": 0}),
    ],
)
def test_assert_almost_equal_passes(a, b, options):
    testing.assert_almost_equal(a, b, **options)
    assert testing.almost_equal(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "options", "text"),
    [
        (np.ones(3), np.ones(2), {}, r"a has shape \(3,\), b has shape \(2,\)"),
        (np.ones((2, 3)), np.ones(3), {"use_broadcast": False}, r"a has shape \(2, 3\), b has shape \(3,\)"),
        (np.array([np.nan]), np.array([np.nan]), {}, "a=nan, b=nan"),
        (np.array([np.inf]), np.array([1.0]), {}, "a=inf, b=1"),
        (np.array([np.inf]), np.array([-np.inf]), {}, "a=inf, b=-inf"),
        (np.ones(2), np.ones(2) + 1e-3, {}, "differ at 2 of 2"),
        (np.array([2**62]), np.array([2**62 + 1]), {"rtol": 0, "atol": 0}, "differ at 1 of 1"),
        (np.array([True]), np.array([False]), {}, "differ at 1 of 1"),
    ],
)
def test_assert_almost_equal_fails(a, b, options, text):
    with pytest.raises(AssertionError, match=text):
        testing.assert_almost_equal(a, b, **options)
    assert not testing.almost_equal(a, b, **options)


def test_same_and_allclose():
    assert testing.same(nd.ones((2,)), np.ones(2))
    assert not testing.same(np.ones(2), np.ones((1, 2)))
    testing.assert_allclose([1.0], [1.0 + 1e-9])
    with pytest.raises(AssertionError, match="differ at 1 of 1"):
        testing.assert_allclose([1.0], [1.0 + 1e-6])


def test_assert_exception():
    testing.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="int did not raise ValueError"):
        testing.assert_exception(int, ValueError, "1")


# -- random data and defaults ----------------------------------------------------------------------------


def test_random_shapes_and_arrays():
    mx.random.seed(0)
    shapes = [testing.rand_shape_nd(3, dim=2) for _ in range(50)]
    assert {n for shape in shapes for n in shape} == {1, 2}
    assert 0 in {n for _ in range(50) for n in testing.rand_shape_nd(3, 2, allow_zero_size=True)}
    assert len(testing.rand_shape_2d()) == 2
    assert len(testing.rand_shape_3d(1, 2, 3)) == 3
    assert testing.rand_shape_3d(1, 1, 1) == (1, 1, 1)
    assert testing.rand_ndarray((2, 3)).shape == (2, 3)
    assert testing.rand_ndarray((2,), dtype="float64").dtype is np.float64
    one = testing.random_arrays((2, 2))
    assert (one.shape, one.dtype) == ((2, 2), np.float32)
    assert [a.shape for a in testing.random_arrays((1,), (2,))] == [(1,), (2,)]
    with pytest.raises(ValueError, match="stype must be 'default', got 'csr'"):
        testing.rand_ndarray((2, 2), stype="csr")


def test_defaults():
    assert testing.default_context() == mx.cpu()
    assert testing.default_dtype() is np.float32
    assert (testing.get_rtol(), testing.get_atol(0.5)) == (1e-5, 0.5)
    assert len(testing.list_gpus()) >= 0


def test_simple_forward():
    x = mx.sym.Variable("x")
    assert testing.simple_forward(x + 1, x=np.ones(2)).tolist() == [2, 2]
    both = testing.simple_forward(mx.sym.Group([x + 1, x * 3]), x=np.ones(2))
    assert [out.tolist() for out in both] == [[2, 2], [3, 3]]


def test_test_utils_is_the_same_module():
    code = "import roiops.test_utils as t; from roiops import testing; assert t is testing"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert mx.test_utils is testing


# -- checks of graphs ------------------------------------------------------------------------------------


def test_check_symbolic_forward():
    net = mx.sym.Variable("a") * mx.sym.Variable("b")
    outputs = testing.check_symbolic_forward(net, [np.array([1, 2]), np.array([3, 4])], [np.array([3, 8])])
    assert outputs[0].asnumpy().tolist() == [3, 8]
    testing.check_symbolic_forward(
        net, {"a": np.ones(1), "b": np.ones(1)}, {net.list_outputs()[0]: np.ones(1)}
    )
    with pytest.raises(AssertionError, match=r"EXPECTED__mul\d+_output and FORWARD__mul\d+_output differ"):
        testing.check_symbolic_forward(net, [np.ones(1), np.ones(1)], [np.zeros(1)])


def test_locations_are_checked():
    net = mx.sym.Variable("a") * mx.sym.Variable("b")
    with pytest.raises(ValueError, match="location has 1 arrays for 2 names: a, b"):
        testing.check_symbolic_forward(net, [np.ones(1)], [np.ones(1)])
    with pytest.raises(ValueError, match="location must name a, b, got a, c"):
        testing.check_numeric_gradient(net, {"a": np.ones(1), "c": np.ones(1)})


@pytest.mark.parametrize("req", ["write", "add"])
def test_check_symbolic_backward(req):
    net = mx.sym.Variable("a") * mx.sym.Variable("b")
    a, b, g = np.array([1.0, 2]), np.array([3.0, 4]), np.array([1.0, 10])
    testing.check_symbolic_backward(net, [a, b], [g], [b * g, a * g], grad_req=req)
    testing.check_symbolic_backward(net, [a, b], [g], {"b": a * g}, grad_req={"b": req}, dtype="asnumpy")
    with pytest.raises(AssertionError, match="EXPECTED_b and BACKWARD_b"):
        testing.check_symbolic_backward(net, [a, b], [g], [b * g, b * g], grad_req=req)


def test_check_symbolic_backward_leaves_null_alone():
    net = mx.sym.Variable("a") * 2
    testing.check_symbolic_backward(net, [np.ones(2)], [np.ones(2)], [np.zeros(2)], grad_req="null")


def test_numeric_gradient_of_right_operators():
    x = mx.sym.Variable("x")
    w = mx.sym.Variable("w")
    point = RNG.standard_normal((2, 3))
    testing.check_numeric_gradient(mx.sym.tanh(x * 2) + x, [point])
    testing.check_numeric_gradient(mx.sym.dot(x, w), [point, RNG.standard_normal((3, 2))])
    testing.check_numeric_gradient(mx.sym.Group([mx.sym.exp(x), x * w]), {"x": point, "w": point})
    testing.check_numeric_gradient(mx.sym.sigmoid(x), [point], dtype=np.float32)
    testing.check_numeric_gradient(mx.sym.square(x), [point], numeric_eps=1e-3, rtol=1e-4, atol=1e-6)


def test_numeric_gradient_with_states_and_randomness():
    x = mx.sym.Variable("x")
    net = mx.sym.BatchNorm(x, fix_gamma=False, name="bn")
    location = [RNG.standard_normal((4, 2)), np.array([1.0, 2]), np.array([0.5, 0])]
    testing.check_numeric_gradient(net, location, aux_states=[np.zeros(2), np.ones(2)], atol=1e-6)
    mx.random.seed(5)
    testing.check_numeric_gradient(mx.sym.Dropout(x, p=0.5), [RNG.standard_normal((4, 5))])


def test_numeric_gradient_passes_over_kinks_and_jumps():
    x = mx.sym.Variable("x")
    point = RNG.standard_normal((3, 4))
    point[1, 2] = 0  # relu and abs have a kink here, floor a jump
    point[0, 0] = 1e-6  # the kink is within the first step
    for function in (mx.sym.relu, mx.sym.abs, mx.sym.floor):
        testing.check_numeric_gradient(function(x), [point])
    with pytest.raises(
        AssertionError, match=r"not differentiable in x at 12 of 12 elements, first at \(0, 0\)"
    ):
        testing.check_numeric_gradient(mx.sym.relu(x), [np.zeros((3, 4))])


# -- planted mistakes ------------------------------------------------------------------------------------


class WrongParam(Parameter):
    mistake = Field(str, "none", doc="what backward does wrong")


class WrongOp(Operator):
    """a * b**2, with one of several mistakes in backward."""

    def forward(self, ctx, in_data, req, out_data, aux):
        a, b = in_data
        assign(out_data[0], req[0], a * b * b)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        (a, b), g, mistake = in_data, out_grad[0], self.params.mistake
        grads = [g * b * b, 2 * g * a * b]
        if mistake == "factor":
            grads[1] = grads[1] * 1.001
        elif mistake == "one element":
            grads[1][0, 1] += 0.01
        elif mistake == "sign":
            grads[0] = -grads[0]
        elif mistake == "nan":
            grads[0][0, 0] = np.nan
        for i, grad in enumerate(grads):
            if mistake == "add is write" and req[i] == "add":
                in_grad[i][...] = grad
            elif mistake == "write is add" and req[i] == "write":
                in_grad[i] += grad
            elif mistake == "null is written" and req[i] == "null":
                in_grad[i][...] = grad
            else:
                assign(in_grad[i], req[i], grad)


class WrongProp(OperatorProperty):
    param, op = WrongParam, WrongOp
    arguments = ("a", "b")

    def infer_shape(self, in_shapes):
        return in_shapes, [in_shapes[0]]


MISTAKES = {
    "factor": r"gradient of b with grad_req='write' is wrong: NUMERICAL_b and BACKWARD_b differ at 6 of 6",
    "one element": r"gradient of b with grad_req='write' is wrong.*differ at 1 of 6.*\n.*worst at \(0, 1\)",
    "sign": r"gradient of a with grad_req='write' is wrong",
    "nan": r"gradient of a with grad_req='write' is wrong.*differ at 1 of 6.*\n.*BACKWARD_a=nan",
    "write is add": r"gradient of a with grad_req='write' is wrong",
    "add is write": r"gradient of a with grad_req='add' is wrong: NUMERICAL_a and BACKWARD_a_ADDED differ",
}
POINT = [RNG.standard_normal((2, 3)), RNG.standard_normal((2, 3)) + 3]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_planted_mistake_in_an_operator_is_found_and_named(mistake):
    registry.register("wrong")(WrongProp)
    with pytest.raises(AssertionError, match=MISTAKES[mistake]):
        testing.check_operator_gradient("wrong", POINT, {"mistake": mistake})
    net = mx.sym.wrong(mx.sym.Variable("a"), mx.sym.Variable("b"), mistake=mistake, name="culprit")
    with pytest.raises(AssertionError, match="culprit: " + MISTAKES[mistake]):
        testing.check_numeric_gradient(net, POINT)


def test_writing_where_nothing_is_wanted_is_found():
    registry.register("wrong")(WrongProp)
    with pytest.raises(AssertionError, match="gradient of a with grad_req='null' is wrong: UNTOUCHED_a"):
        testing.check_operator_gradient("wrong", POINT, {"mistake": "null is written"})


def test_operator_without_a_mistake_passes():
    registry.register("wrong")(WrongProp)
    testing.check_operator_gradient("wrong", POINT)
    testing.check_operator_gradient(WrongProp.create({}), [p.astype(np.float32) for p in POINT])
    testing.check_numeric_gradient(mx.sym.wrong(mx.sym.Variable("a"), mx.sym.Variable("b")), POINT)


def test_only_the_chosen_arguments_and_requests_are_checked():
    registry.register("wrong")(WrongProp)
    testing.check_operator_gradient("wrong", POINT, {"mistake": "factor"}, grad_nodes=["a"])
    testing.check_operator_gradient("wrong", POINT, {"mistake": "add is write"}, grad_nodes={"a": "write"})
    net = mx.sym.wrong(mx.sym.Variable("a"), mx.sym.Variable("b"), mistake="sign")
    testing.check_numeric_gradient(net, POINT, grad_nodes=["b"])


def test_a_wrong_gradient_is_not_taken_for_a_kink():
    class AbsOp(Operator):
        def forward(self, ctx, in_data, req, out_data, aux):
            np.abs(in_data[0], out=out_data[0])

        def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
            assign(in_grad[0], req[0], out_grad[0] * 2 * np.sign(in_data[0] + 1e-30))

    class AbsProp(OperatorProperty):
        op = AbsOp

    point = np.array([0.0, 1.0, 2.0, 3.0, -1.0])
    registry.register("double_abs")(AbsProp)
    with pytest.raises(AssertionError, match=r"gradient of data .* is wrong.*differ at 5 of 5"):
        testing.check_operator_gradient("double_abs", [point])


def test_integer_inputs_have_no_gradient_to_check():
    registry.register("wrong")(WrongProp)
    with pytest.raises(ValueError, match="wrong: b is int64, which has no gradient"):
        testing.check_operator_gradient("wrong", [POINT[0], np.ones((2, 3), np.int64)], grad_nodes=["b"])


# -- consistency -----------------------------------------------------------------------------------------


def runs(**shapes):
    return [
        {"ctx": mx.cpu(), **shapes, "type_dict": dict.fromkeys(shapes, dtype)}
        for dtype in (np.float32, np.float64)
    ]


def test_check_consistency_of_dtypes():
    x = mx.sym.Variable("x")
    net = mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=3, name="fc")
    truth = testing.check_consistency(net, runs(x=(4, 5)))
    assert set(truth) == {"fc_output", "x", "fc_weight", "fc_bias"}
    assert truth["x"].dtype is np.float64
    testing.check_consistency(net, runs(x=(4, 5)), grad_req="null", use_uniform=True)
    testing.check_consistency(net, runs(x=(4, 5)), grad_req="add", arg_params={"x": np.ones((4, 5))})


def test_check_consistency_finds_a_difference():
    class DriftOp(Operator):
        def forward(self, ctx, in_data, req, out_data, aux):
            out_data[0][...] = in_data[0] * (1.01 if in_data[0].dtype == np.float32 else 1)

        def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
            assign(in_grad[0], req[0], out_grad[0])

    class DriftProp(OperatorProperty):
        op = DriftOp

    registry.register("drift")(DriftProp)
    net = mx.sym.drift(mx.sym.Variable("x"), name="d")
    with pytest.raises(AssertionError, match="d_output of run 0 and run 1 differ at"):
        testing.check_consistency(net, runs(x=(3, 3)))
    with pytest.warns(RuntimeWarning, match=r"d_output.* of run 0 and run 1 differ at"):
        testing.check_consistency(net, runs(x=(3, 3)), raise_on_err=False)
    with pytest.raises(AssertionError, match="d_output of run 0 and ground truth differ at"):
        testing.check_consistency(
            net, runs(x=(1,)), grad_req="null", arg_params={"x": 1}, ground_truth={"d_output": np.zeros(1)}
        )


def test_check_consistency_needs_two_runs():
    with pytest.raises(ValueError, match="needs two or more entries in ctx_list"):
        testing.check_consistency(mx.sym.Variable("x"), runs(x=(1,))[:1])
