"""One operator without a graph: what calls of equal shapes share, and what they do not."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DTypeError, ShapeError
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation, Plan
from roiops.registry import get

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def plan_for(name, params, *arrays):
    return Plan(get(name).create(params), [a.shape for a in arrays], [a.dtype for a in arrays])


@pytest.mark.parametrize(
    ("name", "params", "arrays"),
    [
        ("exp", {}, [X]),
        ("broadcast_add", {}, [X, X[:1]]),
        ("sum", {"axis": 1}, [X]),
        ("Concat", {"num_args": 2, "dim": 0}, [X, X]),
        ("take", {}, [X, np.array([1.0, 0.0], np.float32)]),
        ("transpose", {}, [X]),
        ("Reshape", {"shape": (3, 2)}, [X]),
    ],
)
def test_an_op_that_calls_share_keeps_nothing_of_them(name, params, arrays):
    plan, ctx = plan_for(name, params, *arrays), OpContext()
    op = plan.operator(ctx)
    before = {key: id(value) for key, value in vars(op).items()}
    plan.forward(op, ctx, arrays, [np.empty(*each) for each in plan.outputs], [])
    assert {key: id(value) for key, value in vars(op).items()} == before
    assert plan.operator(ctx) is op


def test_an_op_with_scratch_serves_one_call():
    ctx, weight = OpContext(), np.ones((4, 3), np.float32)
    plan = plan_for("FullyConnected", {"num_hidden": 4, "no_bias": True}, X, weight)
    assert plan.operator(ctx) is not plan.operator(ctx)
    norm = plan_for("norm", {"axis": 1}, X)
    assert norm.operator(ctx) is not norm.operator(ctx)


def test_targets_must_fit():
    prop = get("exp").create({})
    with pytest.raises(ShapeError, match=r"exp: out must have shape \(2, 3\), got \(3, 2\)"):
        Invocation(prop, [X], out=[np.empty((3, 2), np.float32)])
    with pytest.raises(DTypeError, match="exp: out must have dtype float32, got float64"):
        mx.nd.exp(X, out=mx.nd.zeros((2, 3), dtype="float64"))
