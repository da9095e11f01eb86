"""What running damaged graphs found in operators (verify/soak.py), one small case each."""

import re

import numpy as np
import pytest

import roiops as mx
from roiops.errors import ParamError


def test_smooth_l1_without_a_parabola():
    """sigma 0: the parabola never ends, and is flat."""
    x = mx.nd.array([-1e30, -2.0, 0.0, 3.0, np.inf])
    assert mx.nd.smooth_l1(x, scalar=0.0).asnumpy()[:4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("Pooling", {"kernel": "(2, 2)", "stride": "(99999999999999999999, 1)"}),
        ("Pooling", {"kernel": (2, 2), "pad": (2**63, 0)}),
        ("SliceChannel", {"num_outputs": 2**64}),
    ],
)
def test_whole_numbers_fit_an_int64(op, params):
    name = next(name for name in params if name != "kernel")
    need = re.escape(f"{op}(node): {name} must be ") + ".*got " + re.escape(repr(params[name]))
    with pytest.raises(ParamError, match=need):
        getattr(mx.sym, op)(mx.sym.Variable("x"), name="node", **params)


@pytest.mark.parametrize("label", ["inf", "nan", 1e300])
def test_ignored_label_is_a_label(label):
    with pytest.raises(ParamError, match=r"SoftmaxOutput\(node\): ignore_label must be float in "):
        mx.sym.SoftmaxOutput(mx.sym.Variable("x"), name="node", use_ignore=True, ignore_label=label)
