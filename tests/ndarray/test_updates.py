"""One step of each optimizer by MXNet's update operators, beside MXNet's own."""

import golden_files
import numpy as np
import pytest

import roiops as mx

CASES = golden_files.load("optimizer/update_operators")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_update(case):
    names = [n for n in case.arrays if n != "out" and not n.endswith("_after")]
    arrays = {name: mx.nd.array(case[name]) for name in names}
    out = getattr(mx.nd, case.op)(*arrays.values(), **case.params)
    np.testing.assert_allclose(out.asnumpy(), case["out"], rtol=2e-5, atol=2e-6)
    for name in names[2:]:
        np.testing.assert_allclose(arrays[name].asnumpy(), case[f"{name}_after"], rtol=2e-5, atol=2e-6)
    for name in names[:2]:
        np.testing.assert_array_equal(arrays[name].asnumpy(), case[name])


def test_update_in_place():
    weight = mx.nd.array([1.0, 2.0])
    out = mx.nd.sgd_update(weight, mx.nd.array([1.0, -1.0]), out=weight, lr=0.5, lazy_update=False)
    assert out is weight
    assert weight.asnumpy().tolist() == [0.5, 2.5]
    with pytest.raises(TypeError, match="sgd_mom_update takes a weight, a gradient and 1 states"):
        mx.nd.sgd_mom_update(weight, weight, lr=0.5)
