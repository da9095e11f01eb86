"""Run a golden case against our operator: outputs, gradients of every input, auxiliary states.

@pytest.mark.parametrize("case", golden_harness.cases("ops/pooling", "ops/binary"))
def test_golden(case):
    golden_harness.check(case)
"""

import golden_files
import numpy as np
import pytest

from roiops import registry
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation

#: Relative and absolute tolerance by dtype: both sides round, and add up in their own order.
TOLERANCE = {"float16": (2e-3, 2e-3), "float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}


def cases(*files, only=None, skip=None) -> list:
    """The cases of golden files as pytest parameters; ``only`` and ``skip`` are tests on a case."""
    found = [case for file in files for case in golden_files.load(file)]
    return [
        pytest.param(case, id=f"{case}-{case.op}")
        for case in found
        if (only is None or only(case)) and not (skip is not None and skip(case))
    ]


def family(name) -> list:
    """The cases of all operators of one family: ``"tensor"``, ``"loss"``, ``"nn"``, ``"detection"``."""
    package = f"roiops.operators.{name}"

    def belongs(case):
        prop = registry.find(case.op)
        return prop is not None and prop.__module__.startswith(package + ".")

    return cases(*golden_files.names("ops"), only=belongs)


def invoke(case, *, dtype=None) -> Invocation:
    """Our operator on the case's inputs, not run yet."""
    prop_class = registry.get(case.op)
    params = dict(case.params)
    if prop_class.variadic:
        params[prop_class.variadic] = sum(name.startswith("arg") for name in case.arrays)
    prop = prop_class.create(params)
    inputs = [case[_key(case, i, name)].copy() for i, name in enumerate(prop.list_arguments())]
    aux = [case[f"aux_{name}"].copy() for name in prop.list_auxiliary_states()]
    if dtype is not None:
        inputs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in inputs]
    return Invocation(prop, inputs, aux, ctx=OpContext(label=prop.label, is_train=case.is_train))


def check(case, *, tolerance=None, gradients=True) -> None:
    """Raise where our operator and the case disagree.

    ``tolerance`` is ``(relative, absolute)``. Gradients are asked for with ``write`` into buffers of NaN
    and with ``add`` to noise.
    """
    run = invoke(case)
    outputs = run.forward()
    for name, ours in zip(numbered("out", outputs), outputs, strict=True):
        _compare(name, ours, case[name], tolerance)
    heads = [case[name] for name in numbered("grad_out", outputs) if name in case]
    if gradients and heads:
        _check_gradients(case, run, heads, tolerance)
    else:
        _check_aux(case, run, tolerance)


def _check_aux(case, run, tolerance):
    for name, ours in zip(run.prop.list_auxiliary_states(), run.aux, strict=True):
        _compare(f"aux_{name}_after", ours, case[f"aux_{name}_after"], tolerance)


def _key(case, position, name):
    """The case's name of an input: the operator's own, or MXNet's for the inputs of a list."""
    return name if name in case else f"arg{position}"


def _check_gradients(case, run, heads, tolerance):
    names = run.prop.list_arguments()
    rng = np.random.default_rng(0)
    noise = [rng.integers(-8, 8, x.shape).astype(x.dtype) / x.dtype.type(8) for x in run.in_data]
    for req in ("write", "add"):
        buffers = [
            np.full_like(x, np.nan) if req == "write" and x.dtype.kind == "f" else n.astype(x.dtype)
            for x, n in zip(run.in_data, noise, strict=True)
        ]
        start = [b.copy() for b in buffers]
        run.backward([h.copy() for h in heads], req, buffers)
        if req == "write":
            _check_aux(case, run, tolerance)
        for i, (name, before, after) in enumerate(zip(names, start, buffers, strict=True)):
            key = f"grad_{_key(case, i, name)}"
            if key not in case:
                continue
            expected = case[key]
            if req == "add":
                expected = (before + expected).astype(expected.dtype)
            _compare(f"{key} ({req})", after, expected, tolerance)


def numbered(stem, outputs):
    return [stem] if len(outputs) == 1 else [f"{stem}{i}" for i in range(len(outputs))]


def _compare(name, ours, expected, tolerance):
    assert ours.shape == expected.shape, f"{name}: shape {ours.shape}, expected {expected.shape}"
    assert ours.dtype == expected.dtype, f"{name}: dtype {ours.dtype}, expected {expected.dtype}"
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, expected, err_msg=name)
        return
    relative, absolute = tolerance or TOLERANCE[ours.dtype.name]
    np.testing.assert_allclose(ours, expected, rtol=relative, atol=absolute, err_msg=name)
