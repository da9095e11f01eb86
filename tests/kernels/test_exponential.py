"""``exp`` in vector registers against the double-precision one, and softmax rows that need care."""

import math

import numpy as np
import pytest

from roiops.kernels.cpu.network import curves, loss
from roiops.kernels.cpu.network.exponential import exp_below_zero
from roiops.kernels.jit import njit, pretend_threads


@njit
def every(x, out):
    for i in range(x.size):
        out[i] = exp_below_zero(x[i])


def test_exp_is_right_to_a_unit_in_the_last_place():
    x = -np.concatenate([np.linspace(0, 87.3, 200_000), np.geomspace(1e-8, 1, 1000)]).astype(np.float32)
    out = np.empty_like(x)
    every(x, out)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(out - exact) / np.spacing(exact.astype(np.float32))).max() < 1.1
    ends = np.array([0.0, -0.0, -87.4, -1e30, -np.inf, np.nan], np.float32)
    out = np.empty_like(ends)
    every(ends, out)
    np.testing.assert_array_equal(out, [1, 1, 0, 0, 0, np.nan])


def phi(x):
    return 0.5 * np.vectorize(math.erfc)(-x * math.sqrt(0.5))


def density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


CURVES = {
    curves.ERF: np.vectorize(math.erf),
    curves.GELU: lambda x: x * phi(x),
    curves.ELU: lambda x: 1.5 * np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0))),
    curves.SOFTRELU: lambda x: np.logaddexp(x, 0),
    curves.GELU_SLOPE: lambda x: phi(x) + x * density(x),
    curves.ELU_SLOPE: lambda x: 1.5 * np.where(x > 0, 1, 0.7 * np.exp(np.minimum(x, 0))),
    curves.SOFTRELU_SLOPE: lambda x: -np.expm1(-np.abs(x)),
}


@pytest.mark.parametrize("code", CURVES)
def test_functions_made_of_exponentials(code):
    """GELU takes the rounded ``x / sqrt(2)``, which matters far below 0; its slope is 0 somewhere."""
    x = np.concatenate([np.linspace(-12, 12, 40_001), np.geomspace(1e-20, 1, 100)]).astype(np.float32)
    x = np.abs(x) if code == curves.SOFTRELU_SLOPE else x
    with np.errstate(invalid="ignore"):
        exact = CURVES[code](x.astype(np.float64))
    out = np.empty_like(x)
    curves.evaluate(code, x, out, 0.7, 1.5)
    rtol, atol = {curves.GELU: (2e-5, 1e-37), curves.GELU_SLOPE: (2e-6, 2e-7)}.get(code, (2e-6, 1e-37))
    np.testing.assert_allclose(out, exact, rtol=rtol, atol=atol)
    times = x.copy()
    curves.evaluate(code, times, times, 0.7, 1.5, times)  # in place
    np.testing.assert_array_equal(times, out * x)
    ends = np.array([0, np.inf, np.nan], np.float32)
    curves.evaluate(code, ends, ends, 0.7, 1.5)
    at_end = {curves.ELU: np.inf, curves.GELU: np.inf, curves.SOFTRELU: np.inf, curves.ELU_SLOPE: 1.5}
    assert ends[1] == at_end.get(code, 1) or (code == curves.GELU_SLOPE and np.isnan(ends[1]))
    assert np.isnan(ends[2])


def exact_softmax(x, log):
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        shifted = x - x.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 15, 16, 31, 32, 33, 100, 511, 512, 513, 1500])
def test_rows_of_every_length(classes, log):
    """Lengths about those of vectors and pieces; in place gives the same bits."""
    x = np.random.default_rng(classes).normal(size=(5, classes)).astype(np.float32)
    out = np.empty_like(x)
    loss.softmax(x[:, :, None], 1, log, out[:, :, None])
    np.testing.assert_allclose(out, exact_softmax(x, log), rtol=1e-6, atol=1e-6 * log)
    grad = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
    y, g = out.astype(np.float64), grad.astype(np.float64)
    if log:
        expected = g - np.exp(y) * g.sum(1, keepdims=True)
    else:
        expected = (g - (g * y).sum(1, keepdims=True)) * y
    loss.softmax_gradient(grad[:, :, None], out[:, :, None], 1, log, grad[:, :, None])
    np.testing.assert_allclose(grad, expected, atol=2e-6 * np.abs(g).sum(1).max())
    loss.softmax(x[:, :, None], 1, log, x[:, :, None])
    np.testing.assert_array_equal(x, out)


def test_rows_with_nan_and_infinity():
    x = np.zeros((5, 40), np.float32)
    x[0, 3], x[1, 3], x[2, 3], x[3], x[4, 35] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    out = np.empty_like(x)
    loss.softmax(x[:, :, None], 1, False, out[:, :, None])
    assert np.isnan(out[[0, 1, 3]]).all()
    np.testing.assert_allclose(out[2], np.where(np.arange(40) == 3, 0, 1 / 39), rtol=1e-6)
    np.testing.assert_array_equal(out[4], np.arange(40) == 35)


def test_the_number_of_threads_does_not_show():
    x = np.random.default_rng(0).normal(size=(7, 900)).astype(np.float32)
    one, three = np.empty_like(x), np.empty_like(x)
    for threads, out in ((1, one), (3, three)):
        with pretend_threads(threads, lambda part, parts: [*map(part, range(parts))]):
            loss._softmax_rows.by(threads)(x, np.float32(0.5), False, out)
    np.testing.assert_array_equal(one, three)
