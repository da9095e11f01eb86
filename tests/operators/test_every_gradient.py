"""Every operator that has a gradient has a case here: the list of them is derived from the registry.

Most cases follow from the operator's declarations: a small call of it, against finite differences. What needs
other inputs is in ``CASES``; where the gradient is by definition not the slope, ``DEFINED`` says what it is.
"""

import importlib

import numpy as np
import pytest

import roiops as mx
from roiops import registry
from roiops.operators.base import GradientFree
from roiops.operators.imperative import Invocation, infer
from roiops.testing import check_numeric_gradient, check_operator_gradient

warmup = importlib.import_module("roiops.warmup")  # `roiops.warmup` is the function


def spread(*shape, low=0.3, high=0.8):
    """Numbers that all differ, in no order."""
    size = int(np.prod(shape))
    order = np.random.default_rng(0).permutation(size)
    return (low + (high - low) * order / max(1, size)).reshape(shape)


def positive_definite(x):
    """A symmetric, positive definite matrix made of any square one, as a symbol."""
    return mx.sym.linalg.gemm2(x, x, transpose_b=True) + mx.sym.eye(3, dtype="float64").expand_dims(0)


def has_gradient(name) -> bool:
    """Whether a gradient of any of its inputs can be other than zero."""
    prop = registry.get(name)
    if not prop.__module__.startswith("roiops.") or not prop.differentiable or name == "Custom":
        return False
    return not (isinstance(prop.op, type) and issubclass(prop.op, GradientFree))


EVERY = [name for name in registry.list_operators() if has_gradient(name)]

#: Parameters and inputs of a call, where those that follow from the declarations do not do.
CASES = {
    "BilinearSampler": ({}, [spread(1, 2, 4, 4), spread(1, 2, 2, 2, low=-0.7, high=0.7)]),
    "CTCLoss": ({}, [spread(4, 2, 3), np.array([[1.0, 2], [2, 0]])]),
    "Correlation": (
        {"kernel_size": 1, "max_displacement": 1, "stride1": 1, "stride2": 1, "pad_size": 1},
        [spread(1, 2, 4, 4), spread(1, 2, 4, 4)[..., ::-1].copy()],
    ),
    "GridGenerator": ({"transform_type": "affine", "target_shape": (2, 3)}, [spread(2, 6)]),
    "Pad": ({"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 2, 1)}, [spread(1, 2, 2, 3)]),
    "Pooling": ({"kernel": (2, 2), "pool_type": "max"}, [spread(1, 2, 4, 3)]),
    "Pooling_v1": ({"kernel": (2, 2), "pool_type": "avg"}, [spread(1, 2, 4, 3)]),
    "_contrib_boolean_mask": ({}, [spread(3, 2), np.array([1.0, 0, 1])]),
    "_contrib_box_nms": ({"overlap_thresh": 0.9}, [spread(1, 4, 6)]),
    "_contrib_index_copy": ({}, [spread(3, 2), np.array([0, 2]), spread(2, 2, low=1, high=2)]),
    "_contrib_interleaved_matmul_encdec_qk": ({"heads": 1}, [spread(2, 1, 2), spread(3, 1, 4)]),
    "_contrib_interleaved_matmul_encdec_valatt": ({"heads": 1}, [spread(3, 1, 4), spread(1, 2, 3)]),
    "_contrib_interleaved_matmul_selfatt_qk": ({"heads": 1}, [spread(2, 1, 6)]),
    "_contrib_interleaved_matmul_selfatt_valatt": ({"heads": 1}, [spread(2, 1, 6), spread(1, 2, 2)]),
    "_image_crop": ({"x": 1, "y": 0, "width": 2, "height": 3}, [spread(4, 4, 3)]),
    "_linalg_maketrian": ({}, [spread(6)]),
    "_random_pdf_dirichlet": (
        {},
        [np.array([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]), spread(1, 3, low=1, high=2)],
    ),
    "_random_pdf_exponential": ({}, [spread(2, 3), spread(2)]),
    "_random_pdf_gamma": ({}, [spread(2, 3), spread(2, low=1, high=2), spread(2)]),
    "_random_pdf_generalized_negative_binomial": ({}, [np.array([[1.0, 2], [0, 3]]), spread(2), spread(2)]),
    "_random_pdf_negative_binomial": (
        {},
        [np.array([[1.0, 2], [0, 3]]), spread(2, low=1, high=3), spread(2)],
    ),
    "_random_pdf_normal": ({}, [spread(2, 3), spread(2), spread(2)]),
    "_random_pdf_poisson": ({}, [np.array([[1.0, 2], [0, 3]]), spread(2)]),
    "_random_pdf_uniform": ({}, [spread(2, 3), spread(2, low=-1, high=0), spread(2, low=1, high=2)]),
    "_split_v2": ({"sections": 2, "axis": 1}, [spread(2, 4)]),
    "arccosh": ({}, [spread(2, 3, low=1.2, high=3)]),
    **dict.fromkeys(["_maximum", "_minimum"], ({}, [spread(2, 3), spread(2, 3)[::-1] + 0.03])),
    **dict.fromkeys(
        ["broadcast_maximum", "broadcast_minimum"], ({}, [spread(2, 1, 3), spread(1, 2, 3)[..., ::-1] + 0.03])
    ),
    "_mod": ({}, [spread(2, 3, low=2.1, high=2.9), spread(2, 3, low=0.8, high=0.95)]),
    "broadcast_mod": ({}, [spread(2, 1, 3, low=2.1, high=2.9), spread(1, 2, 3, low=0.8, high=0.95)]),
    "broadcast_to": ({"shape": (3, 2)}, [spread(1, 2)]),
    "col2im": ({"output_size": (3, 3), "kernel": (2, 2)}, [spread(1, 8, 4)]),
    "scatter_nd": ({"shape": (4, 2)}, [spread(2, 2), np.array([[3, 1]])]),
}

#: The inputs with a gradient of densities of whole numbers, which are not differentiated by the sample.
INPUTS = {
    "_random_pdf_generalized_negative_binomial": ["mu", "alpha"],
    "_random_pdf_negative_binomial": ["k", "p"],
    "_random_pdf_poisson": ["lam"],
}

#: A graph in which the gradient of an operator that wants symmetric matrices can be seen.
GRAPHS = {
    "_linalg_potrf": mx.sym.linalg.potrf(positive_definite(mx.sym.var("x"))),
    "_linalg_syevd": mx.sym.linalg.syevd(positive_definite(mx.sym.var("x")))[1],
}


def softmax(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def hinge(x, label):
    """The slope of the squares of what lacks to a margin of 1."""
    sign = np.where(np.arange(x.shape[1]) == label[:, None], 1, -1)
    return -2 * sign * np.maximum(0, 1 - sign * x)


HEAD, LABELS = spread(3, 2, low=1, high=2), np.array([1.0, 0, 1])
#: Parameters and inputs, and the gradient of the first input by its definition, from these and ``HEAD``.
DEFINED = {
    "_contrib_round_ste": ({}, [spread(3, 2)], lambda x: HEAD),
    "_contrib_sign_ste": ({}, [spread(3, 2)], lambda x: HEAD),
    "_contrib_gradientmultiplier": ({"scalar": 3}, [spread(3, 2)], lambda x: 3 * HEAD),
    "LinearRegressionOutput": ({}, [spread(3, 2), 1 - spread(3, 2)], lambda x, y: (x - y) / 2),
    "LogisticRegressionOutput": (
        {},
        [spread(3, 2), 1 - spread(3, 2)],
        lambda x, y: (1 / (1 + np.exp(-x)) - y) / 2,
    ),
    "MAERegressionOutput": ({}, [spread(3, 2), spread(3, 2)[::-1] + 0.01], lambda x, y: np.sign(x - y) / 2),
    "MakeLoss": ({"grad_scale": 2}, [spread(3, 2)], lambda x: np.full_like(x, 2)),
    "make_loss": ({}, [spread(3, 2)], np.ones_like),
    "SVMOutput": ({}, [spread(3, 2), LABELS], hinge),
    "SoftmaxOutput": ({}, [spread(3, 2), LABELS], lambda x, y: softmax(x) - np.eye(2)[y.astype(int)]),
}


@pytest.mark.parametrize("name", [name for name in EVERY if name not in {**DEFINED, **GRAPHS}])
def test_against_finite_differences(name):
    if name in CASES:
        params, location = CASES[name]
        check_operator_gradient(name, location, params, grad_nodes=INPUTS.get(name))
        return
    prop = registry.get(name).create(warmup.example(name, {}))
    shapes, types = warmup.small_inputs(prop, 1, np.dtype(np.float64))
    location = [
        spread(*shape).astype(dtype) if dtype.kind == "f" else np.zeros(shape, dtype)
        for shape, dtype in zip(shapes, types, strict=True)
    ]
    states = [np.ones(*each) for each in zip(*infer(prop, shapes, types)[2:], strict=True)]
    check_operator_gradient(prop, location, aux_states=states)


@pytest.mark.parametrize("name", GRAPHS)
def test_of_symmetric_matrices(name):
    check_numeric_gradient(GRAPHS[name], {"x": spread(1, 3, 3, low=-1, high=1)})


@pytest.mark.parametrize("name", DEFINED)
def test_by_definition(name):
    params, location, gradient = DEFINED[name]
    call = Invocation(registry.get(name).create(params), [np.array(each) for each in location])
    call.forward()
    found = call.backward([HEAD])
    np.testing.assert_allclose(found[0], gradient(*location), rtol=1e-6, err_msg=name)


def test_no_case_is_left_over():
    assert not {*CASES, *GRAPHS, *DEFINED} - set(EVERY)
