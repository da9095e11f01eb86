"""What every operator promises to the executor, tried on the inputs of a golden case.

@pytest.mark.parametrize("promise", operator_contract.PROMISES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("case", golden_harness.cases("ops/binary"))
def test_promise(case, promise):
    promise(case)
"""

import golden_harness
import numpy as np

from roiops.operators.base import merge_shapes
from roiops.operators.imperative import Plan

GARBAGE = {"f": np.nan, "i": 77, "u": 77, "b": True}


def _heads(case, outputs):
    names = golden_harness.numbered("grad_out", outputs)
    return [case[n].copy() for n in names] if names[0] in case else None


def _gradients(run, heads, req="write"):
    return [np.array(g) for g in run.backward([h.copy() for h in heads], req)]


def _same(ours, expected, what):
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"{what} {i}")


def _strided(array):
    """The same array in memory that is not contiguous."""
    if array.ndim == 0 or array.size == 0:
        return array
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), GARBAGE[array.dtype.kind], array.dtype)
    view = wide[..., ::2]
    view[...] = array
    return view


def strided_arrays(case):
    """Inputs, outputs and gradients may all be strided views."""
    plain, strided = golden_harness.invoke(case), golden_harness.invoke(case)
    strided.in_data = [_strided(a) for a in strided.in_data]
    strided.outputs = [_strided(a) for a in strided.outputs]
    _close(strided.forward(), plain.forward(), "out")
    heads = _heads(case, plain.outputs[: plain.prop.num_visible_outputs])
    if heads:
        expected = _gradients(plain, heads)
        for req in ("write", "add"):
            buffers = [_strided(np.ones_like(a)) for a in plain.in_data]
            strided.backward([_strided(h) for h in heads], req, buffers)
            start = 0 if req == "write" else 1
            zero = [
                req == "add" and n in plain.prop.list_zero_gradients() for n in plain.prop.list_arguments()
            ]
            wanted = [g + g.dtype.type(start) * (not z) for g, z in zip(expected, zero, strict=True)]
            ours = [b - b.dtype.type(1) * z for b, z in zip(buffers, zero, strict=True)]
            _close(ours, wanted, f"gradient ({req})")


def _close(ours, expected, what):
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}.get(a.dtype.name, 0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"{what} {i}")


def inplace_outputs(case):
    """An output that ``inplace`` pairs with an input may be that very memory."""
    expected = [np.array(o) for o in golden_harness.invoke(case).forward()]
    for number, source in golden_harness.invoke(case).prop.inplace.items():
        run = golden_harness.invoke(case)
        shared = run.in_data[source]
        if shared.dtype != run.outputs[number].dtype or shared.size != run.outputs[number].size:
            continue
        run.outputs[number] = shared.reshape(run.outputs[number].shape)
        _same(run.forward(), expected, f"output {number} in place of input {source}:")


def inplace_gradients(case):
    """A gradient that ``inplace_grad`` pairs with a head gradient may be that very memory."""
    run = golden_harness.invoke(case)
    heads = _heads(case, run.forward())
    if not heads:
        return
    expected = _gradients(run, heads)
    for number, source in run.prop.inplace_grad.items():
        shared = [h.copy() for h in heads]
        buffers = [np.empty_like(a) for a in run.in_data]
        if buffers[number].dtype != shared[source].dtype or buffers[number].size != shared[source].size:
            continue
        buffers[number] = shared[source].reshape(buffers[number].shape)
        run.backward(shared, "write", buffers)
        _same(buffers, expected, f"gradient {number} in place of head {source}:")


def backward_needs(case):
    """What is not in ``backward_needs`` may hold anything when backward runs."""
    run = golden_harness.invoke(case)
    heads = _heads(case, run.forward())
    if not heads:
        return
    expected = _gradients(run, heads)
    needs = run.prop.backward_needs
    for name, arrays in (("in_data", run.in_data), ("out_data", run.outputs), ("out_grad", heads)):
        if name not in needs:
            for array in arrays:
                array[...] = GARBAGE[array.dtype.kind]
    _same(_gradients(run, heads), expected, "gradient")


def null_requests(case):
    """What is asked for with ``null`` may be None; the other gradients come out as they would."""
    run = golden_harness.invoke(case)
    heads = _heads(case, run.forward())
    outputs = run.outputs
    Plan.forward(run.op, run.ctx, run.in_data, [None] * len(outputs), run.aux)
    if not heads:
        return
    expected = _gradients(run, heads)
    for kept in range(len(run.in_data)):
        reqs = ["write" if i == kept else "null" for i in range(len(run.in_data))]
        buffers = [np.empty_like(a) if i == kept else None for i, a in enumerate(run.in_data)]
        run.backward([h.copy() for h in heads], reqs, buffers)
        np.testing.assert_array_equal(buffers[kept], expected[kept])


def bound_forward(case):
    """The bound call sees new contents of the arrays that it was bound to, call after call."""
    run, other = golden_harness.invoke(case), golden_harness.invoke(case)
    expected = [np.array(o) for o in other.forward()]
    with np.errstate(all="ignore"):
        call = run.op.bind_forward(run.ctx, run.in_data, ["write"] * len(run.outputs), run.outputs, run.aux)
        inputs = [a.copy() for a in run.in_data]
        for _ in range(2):
            for array, value in zip(run.in_data, inputs, strict=True):
                array[...] = value
            for output in run.outputs:
                output[...] = GARBAGE[output.dtype.kind]
            call()
            _same(run.outputs[: run.prop.num_visible_outputs], expected, "out")


def partial_shapes(case):
    """Inference from shapes known in part says nothing that the whole shapes contradict."""
    run = golden_harness.invoke(case)
    prop = run.prop
    if not prop.partial_shapes or not run.in_data:
        return
    shapes = [tuple(a.shape) for a in run.in_data]
    whole = [tuple(s) for s in prop.infer_shape(list(shapes))[1]]
    for hidden in range(len(shapes)):
        forms = [
            None,
            *((*shapes[hidden][:i], -1, *shapes[hidden][i + 1 :]) for i in range(len(shapes[hidden]))),
        ]
        for form in forms:
            given = [form if i == hidden else s for i, s in enumerate(shapes)]
            if prop.may_infer(given):
                found_in, found_out = prop.infer_shape(list(given))[:2]
                if form is None:  # what an input nothing is known of defaults to is the operator's choice
                    found_in = [None if i == hidden else s for i, s in enumerate(found_in)]
                _agree(found_in, shapes, f"inputs from {given}")
                _agree(found_out, whole, f"outputs from {given}")
            back = prop.infer_shape_from_outputs(list(given), list(whole))
            _agree(back, shapes, f"inputs from {given} and outputs")


def _agree(found, truth, what):
    for one, true in zip(found, truth, strict=True):
        if one is not None:
            assert merge_shapes(tuple(one), tuple(true)) == tuple(true), f"{what}: {one}, true is {true}"
            assert all(n == t for n, t in zip(one, true, strict=True) if n != -1)


PROMISES = (
    strided_arrays,
    inplace_outputs,
    inplace_gradients,
    backward_needs,
    null_requests,
    bound_forward,
    partial_shapes,
)
