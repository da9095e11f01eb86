"""Random arrays: seeds, shapes and the moments of what is drawn."""

import numpy as np
import pytest

import roiops as mx
from roiops import nd
from roiops.errors import MXNetError, ShapeError

DRAWS = {
    "uniform": (lambda n: nd.random.uniform(-1, 3, n), 1.0, 16 / 12),
    "normal": (lambda n: nd.random.normal(2, 3, n), 2.0, 9.0),
    "randn": (lambda n: nd.random.randn(*n, loc=1), 1.0, 1.0),
    "poisson": (lambda n: nd.random.poisson(4, n), 4.0, 4.0),
    "exponential": (lambda n: nd.random.exponential(0.5, n), 0.5, 0.25),
    "gamma": (lambda n: nd.random.gamma(9, 0.5, n), 4.5, 2.25),
    "negative_binomial": (lambda n: nd.random.negative_binomial(3, 0.4, n), 4.5, 11.25),
    "randint": (lambda n: nd.random.randint(0, 5, n), 2.0, 2.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_moments_and_seed(name):
    draw, mean, variance = DRAWS[name]
    mx.random.seed(7)
    first = draw((100, 200)).asnumpy()
    mx.random.seed(7)
    again = draw((100, 200)).asnumpy()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(again, draw((100, 200)).asnumpy())
    # 20,000 draws: the mean is within 5 of its standard deviations, the variance within a tenth.
    assert abs(first.mean() - mean) < 5 * np.sqrt(variance / first.size)
    assert abs(first.var() / variance - 1) < 0.1


def test_dtypes_shapes_and_out():
    assert nd.random.uniform().shape == (1,)
    assert nd.random.uniform(shape=3).dtype is np.float32
    assert nd.random.randint(0, 9, 4).dtype is np.int32
    assert nd.random.normal(shape=(2,), dtype="float64").dtype is np.float64
    out = nd.zeros((2, 2))
    assert nd.random.uniform(5, 6, out=out) is out
    assert (out.asnumpy() >= 5).all()
    with pytest.raises(ShapeError, match=r"random.uniform: out must have shape \(3,\), got \(2, 2\)"):
        nd.random.uniform(shape=(3,), out=out)


def test_array_parameters_give_a_draw_for_each_element():
    low = nd.array([0, 100])
    drawn = nd.random.uniform(low, low + 1, shape=(50,)).asnumpy()
    assert drawn.shape == (2, 50)
    assert ((drawn >= [[0], [100]]) & (drawn < [[1], [101]])).all()
    with pytest.raises(ShapeError, match="array parameters must all be arrays of one shape"):
        nd.random.normal(low, 1)


def test_shuffle_keeps_the_rows():
    mx.random.seed(1)
    x = nd.array(np.arange(40).reshape(20, 2))
    shuffled = nd.random.shuffle(x).asnumpy()
    assert not np.array_equal(shuffled, x.asnumpy())
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), x.asnumpy())


def test_multinomial():
    mx.random.seed(1)
    chances = nd.array([[0, 1, 0], [0.5, 0, 0.5]])
    drawn, logs = nd.random.multinomial(chances, shape=1000, get_prob=True)
    assert drawn.shape == (2, 1000)
    assert drawn.dtype is np.int32
    counts = [np.bincount(row, minlength=3) for row in drawn.asnumpy()]
    assert counts[0].tolist() == [0, 1000, 0]
    assert counts[1][1] == 0
    assert abs(counts[1][0] - 500) < 80
    np.testing.assert_allclose(logs.asnumpy()[1], np.log(0.5), rtol=1e-6)
    assert nd.random.multinomial(nd.array([0, 1])).asnumpy().tolist() == [1]
    with pytest.raises(MXNetError, match="multinomial: each row of data must hold probabilities"):
        nd.random.multinomial(nd.array([-1, 2]))


def test_module_random_has_the_drawing_functions():
    mx.random.seed(3)
    one = mx.random.uniform(shape=(2,)).asnumpy()
    mx.random.seed(3)
    np.testing.assert_array_equal(one, nd.random.uniform(shape=(2,)).asnumpy())
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = mx.random.no_such_thing


def test_parameters_that_no_distribution_has():
    with pytest.raises(MXNetError, match=r"random.normal: scale < 0"):
        mx.nd.random.normal(0, -1, shape=(2, 2))


def test_the_old_name_of_exponential_numbers_takes_their_rate():
    for numbers in (nd.random_exponential(4.0, shape=20_000), nd.random_exponential(lam=4, shape=20_000)):
        assert abs(numbers.asnumpy().mean() - 0.25) < 0.02
