"""Optimizers and update operators beside MXNet's: sixty steps from states of zeros, and each dtype."""

import golden_files
import numpy as np
import pytest

import roiops as mx
from roiops.errors import ParamError, ShapeError

CASES = golden_files.load("optimizer/steps")
GIVEN = {case.label: case for case in CASES if case.op == "arrays"}
KEPT = (1, 2, 10, 60)
#: Rules in which a power is computed, or a norm in another order. All others agree to the bit.
ROUNDED = {"ftml", "ftml_update", "lamb", "lamb_update", "adamax", "nadam"}


def cases(choose):
    return pytest.mark.parametrize("case", [each for each in CASES if choose(each.op)], ids=str)


def check(case, found, expected):
    if case.op in ROUNDED:
        # LAMB's steps are float32 in MXNet, whatever the weight is.
        limit = {"float16": 1e-2, "float32": 5e-6, "float64": 2e-7}[found.dtype.name]
        np.testing.assert_allclose(found, expected, rtol=limit, atol=limit)
    else:
        np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def given(dtype):
    case = GIVEN[dtype]
    return case["weight"], [mx.nd.array(each, dtype=dtype) for each in case["gradients"]]


@cases(lambda name: not name.endswith("_update") and name != "arrays")
def test_optimizer(case):
    dtype = case["weights"].dtype.name
    start, gradients = given(dtype)
    weight = mx.nd.array(start, dtype=dtype)
    update = mx.optimizer.get_updater(mx.optimizer.create(case.op, **case.params))
    warned = dtype == "float16" and not case.params.get("multi_precision")
    expected = dict(zip(KEPT, case["weights"], strict=True))
    with pytest.warns(UserWarning, match="use multi_precision=True") if warned else np.errstate():
        for step, gradient in enumerate(gradients, 1):
            update(0, gradient, weight)
            if step in KEPT:
                check(case, weight.asnumpy(), expected[step])


@cases(lambda name: name.endswith("_update") and not name.startswith(("multi_", "lamb_")))
def test_operator(case):
    dtype = case["weights"].dtype.name
    start, gradients = given(dtype)
    weight = mx.nd.array(start, dtype=dtype)
    names = [name for name in case.arrays if name.startswith("states")]
    states = [mx.nd.zeros(start.shape, dtype=case[name].dtype) for name in names]
    if case.op.startswith("mp_"):
        states[-1][:] = start
    operator = getattr(mx.nd, case.op)
    more = {}
    for step, gradient in enumerate(gradients, 1):
        before = gradient.asnumpy().copy()
        more = {"t": step} if case.op == "ftml_update" else {}
        assert operator(weight, gradient, *states, out=weight, **case.params, **more) is weight
        np.testing.assert_array_equal(gradient.asnumpy(), before)
        if step in KEPT:
            i = KEPT.index(step)
            check(case, weight.asnumpy(), case["weights"][i])
            for name, state in zip(names, states, strict=True):
                check(case, state.asnumpy(), case[name][i])
    apart = operator(weight, gradients[-1], *states, **case.params, **more)
    check(case, apart.asnumpy(), case["apart"])
    check(case, weight.asnumpy(), case["weights"][-1])


@cases(lambda name: name.startswith("multi_"))
def test_operator_on_several_weights(case):
    dtype = case["weights"].dtype.name
    start, gradients = given(dtype)
    copies, momentum = "_mp_" in case.op, "_mom_" in case.op
    groups = []
    for values in (start, start[::-1]):
        states = [mx.nd.zeros(start.shape, dtype="float32" if copies else dtype)] * momentum
        states += [mx.nd.array(values, dtype="float32")] * copies
        groups.append([mx.nd.array(values, dtype=dtype), None, *states])
    out = [group[0] for group in groups]
    for step, gradient in enumerate(gradients, 1):
        groups[0][1], groups[1][1] = gradient, gradient[::-1]
        getattr(mx.nd, case.op)(*groups[0], *groups[1], out=out, num_weights=2, **case.params)
        if step in KEPT:
            for weight, expected in zip(out, case["weights"][KEPT.index(step)], strict=True):
                check(case, weight.asnumpy(), expected)


@cases(lambda name: name == "lamb_update")
def test_two_phases_of_lamb(case):
    start, gradients = given("float32")
    weight, mean, var = mx.nd.array(start), mx.nd.zeros(start.shape), mx.nd.zeros(start.shape)
    bounds = {name: value for name, value in case.params.items() if name.endswith("_bound")}
    settings = {name: value for name, value in case.params.items() if name not in bounds}
    for step, gradient in enumerate(gradients, 1):
        g = mx.nd.lamb_update_phase1(weight, gradient, mean, var, t=step, **settings)
        mx.nd.lamb_update_phase2(weight, g, weight.norm(), g.norm(), lr=0.05, out=weight, **bounds)
        if step in KEPT:
            check(case, weight.asnumpy(), case["weights"][KEPT.index(step)])


def test_first_step_of_adam_by_hand():
    """``1 - 0.999`` in float32 is 9.9998713e-04: what MXNet multiplies the squared gradient by."""
    weight, mean, var = mx.nd.array([1.0]), mx.nd.zeros((1,)), mx.nd.zeros((1,))
    mx.nd.adam_update(weight, mx.nd.array([0.1]), mean, var, out=weight, lr=0.1)
    assert var.asscalar() == pytest.approx(9.9998715e-06, rel=1e-7)


def test_update_in_place_and_mistakes():
    weight = mx.nd.array([1.0, 2.0])
    out = mx.nd.sgd_update(weight, mx.nd.array([1.0, -1.0]), out=weight, lr=0.5, lazy_update=False)
    assert out is weight
    assert weight.asnumpy().tolist() == [0.5, 2.5]
    alone = mx.nd.multi_sgd_update(weight, mx.nd.array([1.0, 1.0]), lrs=[0.5], wds=[0])
    assert alone.asnumpy().tolist() == [0.0, 2.0]
    with pytest.raises(ParamError, match="sgd_mom_update: missing a required argument: 'mom'"):
        mx.nd.sgd_mom_update(weight, weight, lr=0.5)
    with pytest.raises(TypeError, match="multi_sgd_update takes 2 arrays for each of 2 weights, got 3"):
        mx.nd.multi_sgd_update(weight, weight, weight, lrs=[1, 1], wds=[0, 0], num_weights=2)
    with pytest.raises(ParamError, match="sgd_mom_update: got an unexpected keyword argument 'momentun'"):
        mx.nd.sgd_mom_update(weight, weight, weight, lr=0.5, momentun=0.9)


def test_arrays_and_settings_may_be_given_in_either_way():
    weight, grad, state = mx.nd.array([4.0, 8.0]), mx.nd.array([2.0, 4.0]), mx.nd.array([1.0, 1.0])
    assert mx.nd.sgd_update(weight, grad, 0.5, 0.25).asnumpy().tolist() == [2.5, 5.0]
    assert mx.nd.sgd_update(weight=weight, grad=grad, lr=0.5).asnumpy().tolist() == [3.0, 6.0]
    new = mx.nd.sgd_mom_update(weight, grad, mom=state, lr=0.5, momentum=0.5)
    assert (new.asnumpy().tolist(), state.asnumpy().tolist()) == ([3.5, 6.5], [-0.5, -1.5])


def test_arrays_of_other_shapes_are_not_repeated():
    weight, row = mx.nd.ones((3, 4)), mx.nd.ones((4,))
    for call, argument in (
        (lambda: mx.nd.sgd_update(weight, row, lr=0.1), "sgd_update: grad"),
        (lambda: mx.nd.sgd_mom_update(weight, weight, row, lr=0.1), "sgd_mom_update: mom"),
        (lambda: mx.nd.sgd_update(weight, weight, lr=0.1, out=row), "sgd_update: out"),
        (lambda: mx.optimizer.get_updater(mx.optimizer.SGD())(0, row, weight), "SGD: grad"),
    ):
        with pytest.raises(
            ShapeError, match=rf"{argument} must have the weight's shape \(3, 4\), got \(4,\)"
        ):
            call()
