"""Calls of element-wise operators, with and without broadcasting, with scalars, and of reductions."""

import numpy as np

from ops_harness import call, golden

HALVES = np.array([-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 0.3, -0.7, 3.0], np.float32)


@golden
def unary(draw):
    anywhere = (
        "abs negative relu sigmoid tanh square exp sign ceil floor rint round trunc fix erf sin cos "
        "arctan sinh cosh arcsinh cbrt softsign expm1 logical_not degrees radians"
    )
    for op in anywhere.split():
        yield call(op, np.concatenate([HALVES, draw.normal(6)]).reshape(4, 4))
    for op in "log sqrt rsqrt rcbrt reciprocal log2 log10 log1p gamma gammaln".split():
        yield call(op, draw.uniform(0.2, 3, 3, 5))
    for op in "arcsin arccos arctanh erfinv tan".split():
        yield call(op, draw.uniform(-0.9, 0.9, 2, 5))
    yield call("arccosh", draw.uniform(1.2, 3, 5))
    yield call("hard_sigmoid", draw.normal(4, 4) * 3)
    yield call("hard_sigmoid", draw.normal(4, 4), alpha=0.5, beta=0.25)
    for op in "exp log tanh sigmoid sqrt square".split():
        yield call(op, draw.uniform(0.2, 2, 7).astype(np.float64), label="float64")
    for op in "exp tanh sigmoid relu".split():
        yield call(op, draw.normal(7).astype(np.float16), label="float16")


@golden
def copies(draw):
    for op in "identity _copy BlockGrad stop_gradient zeros_like ones_like make_loss".split():
        yield call(op, draw.normal(3, 4))
    for dtype in ("float16", "float64", "int32", "uint8", "int8", "int64", "float32"):
        yield call("Cast", draw.uniform(0, 50, 3, 3), dtype=dtype)
    yield call("cast", HALVES, dtype="int32")
    yield call("Cast", draw.integers(200, 5).astype(np.uint8), dtype="float32", backward=False)
    yield call("amp_cast", draw.normal(4), dtype="float16")
    inputs = {"lhs": draw.normal(2, 6), "rhs": draw.normal(3, 4)}
    yield call("reshape_like", inputs)
    yield call("shape_array", draw.normal(2, 3, 4), backward=False)
    yield call("size_array", draw.normal(2, 3, 4), backward=False)
    yield call("_identity_with_attr_like_rhs", {"lhs": draw.normal(3), "rhs": draw.normal(3)})


@golden
def sources(draw):
    """Operators without inputs."""
    yield call("_zeros", {}, shape=(2, 3), backward=False)
    yield call("_zeros", {}, shape=(2,), dtype="int32", backward=False)
    yield call("_ones", {}, shape=(2, 3), dtype="float64", backward=False)
    yield call("_full", {}, shape=(2, 2), value=1.5, backward=False)
    yield call("_arange", {}, start=2, stop=9, backward=False)
    yield call("_arange", {}, start=0, stop=4, step=1.5, repeat=2, backward=False)
    yield call("_arange", {}, start=5, stop=0, step=-2, dtype="int32", backward=False)
    yield call("_eye", {}, N=3, M=4, k=1, backward=False)
    yield call("_linspace", {}, start=0, stop=1, num=5, backward=False)
    yield call("_contrib_arange_like", draw.normal(2, 3), backward=False)
    yield call("_contrib_arange_like", draw.normal(2, 3), axis=1, start=3, step=2, backward=False)


@golden
def agreement(draw):
    one = draw.normal(3, 4)
    yield call("_contrib_allclose", {"a": one, "b": one + 1e-7}, backward=False)
    yield call("_contrib_allclose", {"a": one, "b": one + 1e-2}, backward=False)
    yield call("_contrib_allclose", {"a": one, "b": one * 1.25}, rtol=0.3, backward=False)
    yield call("_contrib_allclose", {"a": one, "b": one + 0.25}, rtol=0, atol=0.3, backward=False)
    odd = np.array([1, np.inf, -np.inf, np.nan], np.float32)
    yield call("_contrib_allclose", {"a": odd, "b": odd}, label="NaN", backward=False)
    yield call("_contrib_allclose", {"a": odd, "b": odd}, equal_nan=False, backward=False)
    yield call("cast_storage", draw.normal(2, 3), stype="default")
    yield call("all_finite", one, backward=False)
    yield call("all_finite", odd, backward=False)
    yield call("multi_all_finite", [one, odd], num_arrays=2, backward=False)
    yield call("multi_all_finite", [one, one], num_arrays=2, backward=False)


@golden
def binary(draw):
    for op in "elemwise_add elemwise_sub elemwise_mul elemwise_div _hypot _maximum _minimum".split():
        yield call(op, {"lhs": draw.normal(3, 4), "rhs": draw.normal(3, 4)})
    yield call("_power", {"lhs": draw.uniform(0.2, 2, 3, 4), "rhs": draw.normal(3, 4)})
    yield call("_mod", {"lhs": draw.normal(3, 4) * 5, "rhs": draw.normal(3, 4)})
    for op in "_maximum _minimum".split():
        yield call(op, {"lhs": HALVES, "rhs": HALVES.copy()}, label="ties")
    for op in "_equal _not_equal _greater _greater_equal _lesser _lesser_equal".split():
        yield call(op, {"lhs": draw.integers(3, 4, 4), "rhs": draw.integers(3, 4, 4)})
    for op in "_logical_and _logical_or _logical_xor".split():
        yield call(op, {"lhs": draw.integers(2, 4, 4), "rhs": draw.integers(2, 4, 4)})
    for op in "_plus _Plus _add _minus _Minus _sub _mul _Mul _div _Div".split():
        yield call(op, {"lhs": draw.normal(2, 3), "rhs": draw.normal(2, 3)})
    for (
        op
    ) in "_Power _Maximum _Minimum _Hypot _Mod _Equal _Not_Equal _Greater _Lesser_Equal _Logical_And".split():
        yield call(op, {"lhs": draw.uniform(0.2, 2, 2, 3), "rhs": draw.uniform(0.2, 2, 2, 3)})
    for op in "elemwise_add elemwise_mul".split():
        for dtype in ("float64", "float16", "int32"):
            inputs = {
                "lhs": draw.integers(9, 2, 3).astype(dtype),
                "rhs": draw.integers(9, 2, 3).astype(dtype),
            }
            yield call(op, inputs, label=dtype)


@golden
def broadcasting(draw):
    shapes = [
        ((3, 1, 4), (1, 2, 4)),
        ((2, 3), (2, 1)),
        ((1,), (4,)),
        ((2, 1, 3, 1), (2, 4, 1, 2)),
        ((3, 4), (4,)),
    ]
    names = "add plus sub minus mul div hypot maximum minimum"
    for index, name in enumerate(names.split()):
        for left, right in (shapes[index % 5], shapes[(index + 2) % 5]):
            yield call("broadcast_" + name, {"lhs": draw.normal(*left), "rhs": draw.normal(*right)})
    yield call("broadcast_power", {"lhs": draw.uniform(0.2, 2, 3, 1), "rhs": draw.normal(1, 4)})
    yield call("broadcast_mod", {"lhs": draw.normal(3, 1) * 5, "rhs": draw.normal(1, 4)})
    for name in "equal not_equal greater greater_equal lesser lesser_equal".split():
        yield call("broadcast_" + name, {"lhs": draw.integers(3, 4, 1), "rhs": draw.integers(3, 1, 4)})
    for name in "logical_and logical_or logical_xor".split():
        yield call("broadcast_" + name, {"lhs": draw.integers(2, 3, 1), "rhs": draw.integers(2, 1, 4)})
    yield call("broadcast_to", draw.normal(1, 3, 1), shape=(2, 3, 4))
    yield call("broadcast_to", draw.normal(2, 1), shape=(0, 5))
    yield call("broadcast_axis", draw.normal(1, 3, 1), axis=2, size=4)
    yield call("broadcast_axes", draw.normal(1, 3, 1), axis=(0, 2), size=(2, 3))
    yield call("broadcast_like", {"lhs": draw.normal(1, 3), "rhs": draw.normal(4, 3)})
    inputs = {"lhs": draw.normal(1, 3), "rhs": draw.normal(2, 5)}
    yield call("broadcast_like", inputs, lhs_axes=(0,), rhs_axes=(1,))


@golden
def scalars(draw):
    for op in "_plus _minus _rminus _mul _div _hypot _maximum _minimum".split():
        yield call(op + "_scalar", draw.normal(3, 3), scalar=0.75)
    for op in "_rdiv _power _rpower".split():
        yield call(op + "_scalar", draw.uniform(0.3, 2, 3, 3), scalar=1.5)
    yield call("_power_scalar", draw.normal(3, 3), scalar=2.0)
    yield call("_power_scalar", HALVES, scalar=3, label="cube, zero among the values")
    for op in "_mod _rmod".split():
        for scalar in (0.7, -0.7):
            yield call(op + "_scalar", draw.normal(3, 3) * 3, scalar=scalar)
    for op in "_equal _not_equal _greater _greater_equal _lesser _lesser_equal".split():
        yield call(op + "_scalar", draw.integers(3, 3, 3), scalar=1)
    for op in "_logical_and _logical_or _logical_xor".split():
        yield call(op + "_scalar", draw.integers(2, 3, 3), scalar=1)
    old = (
        "_PlusScalar _MinusScalar _RMinusScalar _MulScalar _DivScalar _RDivScalar _PowerScalar _RPowerScalar "
        "_MaximumScalar _MinimumScalar _HypotScalar _ModScalar _EqualScalar _NotEqualScalar _GreaterScalar "
        "_GreaterEqualScalar _LesserScalar _LesserEqualScalar"
    )
    for op in old.split():
        yield call(op, draw.uniform(0.3, 2, 2, 3), scalar=1.5)
    yield call("_mul_scalar", draw.integers(9, 4).astype(np.int32), scalar=3, label="int32")
    yield call("_plus_scalar", draw.normal(4).astype(np.float16), scalar=0.1, label="float16")
    yield call("_div_scalar", draw.normal(4).astype(np.float64), scalar=3, label="float64")


@golden
def clip(draw):
    yield call("clip", draw.normal(3, 4), a_min=-0.5, a_max=0.5)
    yield call("clip", HALVES, a_min=-1.5, a_max=1.5, label="values on the limits")
    yield call("clip", draw.normal(5) * 4, a_min=0, a_max=6)


@golden
def smooth_l1(draw):
    for scalar in (1.0, 3.0, 0.5):
        yield call("smooth_l1", draw.normal(3, 4), scalar=scalar)
    yield call("smooth_l1", np.array([-1, -1 / 9, 0, 1 / 9, 1], np.float32), scalar=3.0, label="at the joint")
    yield call("smooth_l1", draw.normal(4))


@golden
def add_n(draw):
    for op in "add_n ElementWiseSum".split():
        for count in (1, 2, 5):
            yield call(op, [draw.normal(2, 3) for _ in range(count)])


@golden
def where(draw):
    x, y = draw.normal(3, 4), draw.normal(3, 4)
    yield call("where", {"condition": draw.integers(2, 3, 4), "x": x, "y": y}, hold=("condition",))
    yield call("where", {"condition": draw.integers(2, 3), "x": x, "y": y}, hold=("condition",))
    condition = np.array([[0, 0.5, -1, np.nan]], np.float32)
    inputs = {"condition": condition, "x": x[:1], "y": y[:1]}
    yield call("where", inputs, hold=("condition",), label="fractions, negatives and NaN as conditions")


@golden
def reductions(draw):
    axes = [
        {},
        {"axis": 1},
        {"axis": -1},
        {"axis": (0, 2)},
        {"axis": (1,), "keepdims": True},
        {"keepdims": True},
        {"axis": 1, "exclude": True},
        {"axis": (-1, 0), "keepdims": True, "exclude": True},
    ]
    for op in "sum mean max min prod nansum nanprod".split():
        for params in axes if op in ("sum", "mean", "max") else axes[:4]:
            yield call(op, draw.distinct(2, 3, 4) if op in ("max", "min") else draw.normal(2, 3, 4), **params)
    yield call("sum", draw.normal(2, 3), axis=())
    for op in "sum_axis max_axis min_axis".split():
        yield call(op, draw.distinct(2, 3, 4), axis=1)
    tied = np.array([[1, 3, 3], [2, 2, 2]], np.float32)
    yield call("max", tied, axis=1, label="ties")
    yield call("min", tied, axis=1, label="ties")
    hole = np.array([[1, np.nan, 3], [np.nan, 2, 2]], np.float32)
    for op in "nansum nanprod sum max".split():
        yield call(op, hole, axis=1, label="NaN", backward=op.startswith("nan"))
    yield call("sum", draw.normal(3, 4).astype(np.float64), axis=0, label="float64")
    yield call("mean", draw.normal(3, 4).astype(np.float16), axis=0, label="float16")


@golden
def norm(draw):
    x = draw.normal(2, 3, 4)
    for params in ({}, {"axis": 1}, {"ord": 1, "axis": 2}, {"axis": (0, 2), "keepdims": True}, {"ord": 1}):
        yield call("norm", x, **params)


@golden
def argmax(draw):
    x = draw.distinct(3, 4, 2)
    for op in "argmax argmin".split():
        for params in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": 0}):
            yield call(op, x, backward=False, **params)
        tied = np.array([[1, 3, 3], [2, 2, 1]], np.float32)
        yield call(op, tied, axis=1, backward=False, label="ties")
    yield call("argmax_channel", draw.distinct(3, 4), backward=False)


@golden
def dot(draw):
    yield call("dot", {"lhs": draw.normal(3, 4), "rhs": draw.normal(4, 2)})
    yield call("dot", {"lhs": draw.normal(4, 3), "rhs": draw.normal(4, 2)}, transpose_a=True)
    yield call("dot", {"lhs": draw.normal(3, 4), "rhs": draw.normal(2, 4)}, transpose_b=True)
    yield call(
        "dot", {"lhs": draw.normal(4, 3), "rhs": draw.normal(2, 4)}, transpose_a=True, transpose_b=True
    )
    yield call("dot", {"lhs": draw.normal(5), "rhs": draw.normal(5)})
    yield call("dot", {"lhs": draw.normal(3, 5), "rhs": draw.normal(5)})
    yield call("dot", {"lhs": draw.normal(2, 3, 4), "rhs": draw.normal(4, 2, 2)})
    yield call(
        "dot", {"lhs": draw.normal(3, 4).astype("float64"), "rhs": draw.normal(4, 2).astype("float64")}
    )


@golden
def batch_dot(draw):
    yield call("batch_dot", {"lhs": draw.normal(2, 3, 4), "rhs": draw.normal(2, 4, 5)})
    yield call("batch_dot", {"lhs": draw.normal(2, 4, 3), "rhs": draw.normal(2, 4, 5)}, transpose_a=True)
    yield call("batch_dot", {"lhs": draw.normal(2, 3, 4), "rhs": draw.normal(2, 5, 4)}, transpose_b=True)
    both = {"transpose_a": True, "transpose_b": True}
    yield call("batch_dot", {"lhs": draw.normal(2, 4, 3), "rhs": draw.normal(2, 5, 4)}, **both)
