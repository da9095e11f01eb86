"""Products of float32 matrices on our own threads against NumPy's in float64."""

import numpy as np
import pytest

from roiops.kernels.cpu.product.matmul import bind_few_rows, matmul
from roiops.kernels.cpu.product.turn import turn
from roiops.kernels.jit import Calls, use_threads

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 700, 500),
        (3, 600, 333),
        (9, 300, 130),
        (100, 70, 90),
        (4, 5, 6),
        (40, 700, 31),
        (2, 0, 8),
        (9, 0, 9),
    ],
    ids=str,
)
def test_matmul(sizes, turned, added):
    rows, terms, columns = sizes
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((rows, terms), (terms, columns)))
    if turned:  # the same numbers, column by column
        b = np.ascontiguousarray(b.T).T
    before = RNG.normal(size=(rows, columns)).astype(np.float32)
    out = before.copy()
    matmul(a, b, out, add=added)
    right = np.float64(a) @ b + (before if added else 0)
    np.testing.assert_allclose(out, right, rtol=0, atol=2e-6 * np.abs(right).max())


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", [(5, 66, 65, 101), (3, 9, 400, 130), (2, 2, 700, 300)], ids=str)
def test_products_of_a_stack_are_those_of_its_matrices(sizes, turned):
    count, rows, terms, columns = sizes
    a = RNG.normal(size=(count, rows, terms)).astype(np.float32)
    b = RNG.normal(size=(count, columns, terms) if turned else (count, terms, columns)).astype(np.float32)
    b = b.swapaxes(1, 2) if turned else b
    expected, out = np.empty((2, count, rows, columns), np.float32)
    for left, right, each in zip(a, b, expected, strict=True):
        matmul(left, right, each)
    for threads in (1, 2):
        with use_threads(threads):
            matmul(a, b, out)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("filters", [3, 8])
def test_without_terms_there_is_the_bias(rows, filters):
    bias, out = np.arange(1, filters + 1, dtype=np.float32), np.full((rows, filters), np.nan, np.float32)
    data, weight = np.zeros((rows, 0), np.float32), np.zeros((filters, 0), np.float32)
    bind_few_rows(data, weight, bias, out, Calls())()
    np.testing.assert_array_equal(out, np.tile(bias, (rows, 1)))


@pytest.mark.parametrize("shape", [(32, 48, 1, 1, 1), (5, 7, 1, 1, 1), (16, 16, 1, 3, 2)], ids=str)
def test_filters_turned_round(shape):
    weight = RNG.normal(size=shape).astype(np.float32)
    turned = turn(weight)
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, weight.swapaxes(0, 1)[:, :, ::-1, ::-1, ::-1])
