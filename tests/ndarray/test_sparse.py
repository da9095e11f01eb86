"""Sparse arrays by MXNet's names: what they hold, and what their rows mean to optimizers; golden files of MXNet."""

import json
import pickle

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops import nd

ROWS = ([[1, 2], [0, 0]], [2, 0])


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "sparse.npz") as file:
        return {name: file[name] for name in file.files}


META = json.loads(str(np.load(GOLDEN / "sparse.npz")["meta"]))


def gradients(golden):
    return [
        nd.sparse.row_sparse_array((values, rows), shape=golden["weight"].shape)
        for values, rows in zip(golden["values"], golden["rows"], strict=True)
    ]


@pytest.mark.parametrize(
    "number", range(len(META["optimizers"])), ids=lambda n: f"{META['optimizers'][n]['optimizer']}{n}"
)
def test_optimizers_change_the_rows_that_mxnets_change(golden, number):
    case = META["optimizers"][number]
    optimizer = mx.optimizer.create(case["optimizer"], **case["options"])
    weight = nd.array(golden["weight"]).tostype(case["stype"])
    state = optimizer.create_state_multi_precision(0, weight)
    for gradient in gradients(golden):
        optimizer.update_multi_precision(0, weight, gradient, state)
    np.testing.assert_allclose(weight.asnumpy(), golden[f"{number}_weight"], rtol=1e-5, atol=1e-6)
    states = [] if state is None else list(state) if isinstance(state, tuple) else [state]
    for i, each in enumerate(states):
        np.testing.assert_allclose(each.asnumpy(), golden[f"{number}_state{i}"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", range(len(META["operators"])))
def test_update_operators_change_the_rows_that_mxnets_change(golden, number):
    case = META["operators"][number]
    weight = nd.array(golden["weight"])
    states = [nd.full(weight.shape, 0.25) for _ in range(case["states"])]
    getattr(nd, case["name"])(weight, gradients(golden)[0], *states, out=weight, **case["options"])
    want = golden[f"{case['name']}{number}"]
    np.testing.assert_allclose(weight.asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_adagrad_takes_no_weight_decay_with_rows(golden):
    weight, optimizer = nd.array(golden["weight"]), mx.optimizer.AdaGrad(wd=0.1)
    with pytest.raises(mx.MXNetError, match="wd must be 0 with row-sparse gradients"):
        optimizer.update(0, weight, gradients(golden)[0], optimizer.create_state(0, weight))


def test_row_sparse_arrays_know_their_rows():
    x = nd.sparse.row_sparse_array(ROWS, shape=(4, 2))
    assert (x.stype, x.shape) == ("row_sparse", (4, 2))
    assert x.indices.asnumpy().tolist() == [0, 2]  # row 0 has zeros only, but was named
    assert x.values.asnumpy().tolist() == [[0, 0], [1, 2]]
    assert x.asnumpy().tolist() == [[0, 0], [0, 0], [1, 2], [0, 0]]
    for same in (x.copy(), x.astype("float64"), nd.sparse.array(x), pickle.loads(pickle.dumps(x))):
        assert same.stype == "row_sparse"
        assert same.indices.asnumpy().tolist() == [0, 2]
    x[:] = nd.array([[0, 0], [3, 0], [0, 0], [0, 4]])
    assert x.indices.asnumpy().tolist() == [1, 3]
    x += nd.sparse.row_sparse_array(ROWS, shape=(4, 2))
    assert x.indices.asnumpy().tolist() == [0, 1, 2, 3]
    assert x.retain(nd.array([3, 0])).indices.asnumpy().tolist() == [0, 3]
    assert x.tostype("default").stype == "default"
    assert (x * 2).stype == "default"


def test_csr_matrices(golden):
    matrix = nd.sparse.csr_matrix(([1, 2, 3], [2, 0, 1], [0, 1, 1, 3]), shape=(3, 4))
    assert np.array_equal(matrix.asnumpy(), golden["csr"])
    assert (matrix.stype, matrix[1:].stype) == ("csr", "csr")
    assert matrix.indptr.asnumpy().tolist() == [0, 1, 1, 3]
    assert matrix.indices.asnumpy().tolist() == [2, 0, 1]
    assert matrix.values.asnumpy().tolist() == [1, 2, 3]
    by_place = nd.sparse.csr_matrix(([1, 2, 3], ([0, 2, 2], [2, 0, 1])), shape=(3, 4))
    assert nd.sparse.csr_matrix(([1, 2, 3], ([0, 3, 2], [2, 0, 1]))).shape == (4, 3)
    assert nd.sparse.csr_matrix(([1, 2, 3], [0, 4, 1], [0, 1, 1, 3])).shape == (3, 5)
    assert np.array_equal(by_place.asnumpy(), matrix.asnumpy())
    assert nd.zeros((2, 3), stype="csr").indptr.asnumpy().tolist() == [0, 0, 0]
    assert nd.dot(matrix, nd.ones((4, 2))).asnumpy().tolist() == [[1, 1], [0, 0], [5, 5]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nd.ones((2, 2)).tostype("csc"), "stype must be default, row_sparse or csr, got 'csc'"),
        (lambda: nd.zeros((2, 2), stype="csr").tostype("row_sparse"), "cannot go from csr to row_sparse"),
        (lambda: nd.ones((2, 2, 2)).tostype("csr"), "CSRNDArray: needs two dimensions"),
        (lambda: nd.sparse.row_sparse_array(ROWS, shape=(2, 2)), r"indices must be in \[0, 2\), got 0 to 2"),
        (lambda: nd.sparse.row_sparse_array(ROWS, shape=(4, 3)), r"got values of shape \(2, 2\)"),
        (lambda: nd.sparse.csr_matrix(([1], [0], [0, 2]), shape=(1, 1)), "indptr must rise to 1"),
        (lambda: nd.sparse.csr_matrix(([1], [5], [0, 1]), shape=(1, 2)), r"columns must be in \[0, 2\)"),
        (lambda: nd.sparse.csr_matrix(([1], ([2], [0])), shape=(2, 1)), r"rows must be in \[0, 2\)"),
        (lambda: nd.sparse.retain(nd.ones((2, 2)), [0]), "data must be row_sparse, got default"),
    ],
)
def test_errors(call, text):
    with pytest.raises(mx.MXNetError, match=text):
        call()


def test_a_store_reads_rows():
    store = mx.kv.create("local")
    store.init("a", nd.ones((4, 2)).tostype("row_sparse"))
    out = [nd.zeros((4, 2), stype="row_sparse") for _ in range(2)]
    store.row_sparse_pull("a", out=out, row_ids=[nd.array([1, 1]), nd.array([0, 3])])
    assert [each.indices.asnumpy().tolist() for each in out] == [[1], [0, 3]]
    store.pull("a", out=out)  # which leaves sparse arrays alone
    assert out[0].indices.asnumpy().tolist() == [1]
    store.pull("a", out=out, ignore_sparse=False)
    assert out[0].asnumpy().tolist() == [[1, 1]] * 4
    with pytest.raises(mx.MXNetError, match="out of key 'a' must be row_sparse, got default"):
        store.row_sparse_pull("a", out=nd.ones((4, 2)), row_ids=nd.array([1]))


def test_batches_of_csr_matrices():
    matrix = nd.array(np.eye(5)).tostype("csr")
    batches = list(mx.io.NDArrayIter(matrix, batch_size=2, last_batch_handle="discard"))
    assert [batch.data[0].stype for batch in batches] == ["csr", "csr"]
    assert np.array_equal(batches[1].data[0].asnumpy(), np.eye(5)[2:4])
    with pytest.raises(NotImplementedError, match="last_batch_handle must be 'discard'"):
        mx.io.NDArrayIter(matrix, batch_size=2)


def test_graphs_compute_with_dense_arrays():
    data = mx.sym.Variable("data", stype="csr")
    net = mx.sym.sparse.dot(data, mx.sym.cast_storage(mx.sym.Variable("weight"), stype="row_sparse"))
    executor = net.bind(mx.cpu(), {"data": nd.ones((2, 3)), "weight": nd.ones((3, 2)).tostype("row_sparse")})
    assert executor.forward()[0].asnumpy().tolist() == [[3, 3], [3, 3]]


def test_arithmetic_of_sparse_arrays():
    x = mx.nd.ones((2, 2))
    assert mx.nd.sparse.add(x.tostype("csr"), x).asnumpy().tolist() == [[2, 2], [2, 2]]
