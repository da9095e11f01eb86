"""Linear algebra beyond the golden files: what a matrix must be, and what follows from the factors."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DataError
from roiops.testing import check_numeric_gradient, check_operator_gradient

RNG = np.random.default_rng(3)


def positive(*shape):
    root = RNG.standard_normal(shape)
    return root @ np.swapaxes(root, -1, -2) + 2 * np.eye(shape[-1])


def test_cholesky_of_what_is_not_positive_definite_names_the_operator():
    with pytest.raises(DataError, match=r"^linalg\.potrf: Matrix is not positive definite$"):
        mx.nd.linalg.potrf(mx.nd.array(-np.eye(2)))


@pytest.mark.parametrize("lower", [True, False])
def test_gradient_of_cholesky(lower):
    # Of a symmetric matrix, so that a step in one triangle is one in the other.
    data = mx.sym.Variable("a")
    net = mx.sym.linalg.potrf(data + mx.sym.swapaxes(data, dim1=-1, dim2=-2), lower=lower)
    check_numeric_gradient(net, {"a": positive(2, 3, 3) / 2})


def test_gradient_of_eigenvectors():
    data = mx.sym.Variable("a")
    vectors, roots = mx.sym.linalg.syevd(data + mx.sym.swapaxes(data, dim1=-1, dim2=-2))
    weights = mx.sym.Variable("w")
    net = mx.sym.sum(mx.sym.square(vectors) * weights) + mx.sym.sum(roots)
    check_numeric_gradient(net, {"a": positive(3, 3) / 2, "w": RNG.uniform(1, 2, (3, 3))}, grad_nodes=["a"])


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_singular_matrices_have_no_gradient(name):
    data = mx.nd.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]], dtype="float64")
    grad = mx.nd.full(data.shape, 7.0, dtype="float64")
    executor = getattr(mx.sym.linalg, name)(mx.sym.Variable("a")).bind(mx.cpu(), {"a": data}, {"a": grad})
    heads = [mx.nd.ones(out.shape, dtype="float64") for out in executor.forward(is_train=True)]
    executor.backward(heads)
    assert (grad.asnumpy()[0] == 0).all()
    assert (grad.asnumpy()[1] != 0).all()


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_rows_of_a_product_may_be_any_axis_but_the_last(axis):
    shapes = {0: [(3, 2, 4), (5, 2, 3)], 1: [(2, 3, 4), (2, 5, 3)], -2: [(2, 3, 4), (2, 5, 3)]}[axis]
    params = {"transpose_a": True, "transpose_b": True, "axis": axis, "alpha": 0.5}
    check_operator_gradient("linalg_gemm2", [RNG.standard_normal(s) for s in shapes], params)


def test_a_label_that_cannot_be_reached_costs_infinitely_and_has_no_gradient():
    data = mx.nd.array(RNG.standard_normal((2, 2, 3)))
    label = mx.nd.array([[1, 1], [1, 2]])  # two of the same need a blank between them, so three steps
    loss, grad = mx.nd.zeros(2), mx.nd.zeros(data.shape)
    executor = mx.sym.CTCLoss(mx.sym.Variable("x"), mx.sym.Variable("y")).bind(
        mx.cpu(), {"x": data, "y": label}, {"x": grad}, grad_req={"x": "write", "y": "null"}
    )
    loss = executor.forward(is_train=True)[0].asnumpy()
    assert loss[0] == np.inf
    assert 0 < loss[1] < np.inf
    executor.backward(mx.nd.ones(2))
    assert (grad.asnumpy()[:, 0] == 0).all()
    assert (grad.asnumpy()[:, 1] != 0).all()


def test_ctc_loss_of_one_step_is_the_softmax_loss():
    scores = RNG.standard_normal((1, 1, 4))
    loss = mx.nd.CTCLoss(mx.nd.array(scores, dtype="float64"), mx.nd.array([[2]])).asscalar()
    expected = np.log(np.exp(scores[0, 0]).sum()) - scores[0, 0, 2]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_histogram_counts_and_edges():
    data = mx.nd.array([0, 0.5, 1, 1.5, 2, 9])
    counts, edges = mx.nd.histogram(data, bins=2, range=(0, 2))
    assert counts.asnumpy().tolist() == [2, 3]
    assert edges.asnumpy().tolist() == [0, 1, 2]
    counts, _ = mx.nd.histogram(data, bins=mx.nd.array([0, 1, 10]))
    assert counts.asnumpy().tolist() == [2, 4]
    counts, edges = mx.nd.histogram(data, bins=3)
    assert counts.asnumpy().tolist() == [5, 0, 1]
    assert edges.asnumpy().tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_large_triangular_systems(lower, transpose):
    rng = np.random.default_rng(0)
    given, right = rng.normal(size=(2, 150, 150)) / 150 + np.eye(150), rng.normal(size=(2, 150, 3))
    triangle = np.tril(given) if lower else np.triu(given)
    solved = mx.nd.linalg.trsm(given, right, lower=lower, transpose=transpose, alpha=2).asnumpy()
    product = (np.swapaxes(triangle, 1, 2) if transpose else triangle) @ solved
    np.testing.assert_allclose(product, 2 * right, rtol=0, atol=1e-12)
