"""Random numbers as operators: their moments, their seeds, and the forms in which they are asked for."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DataError, GraphError, ShapeError
from roiops.operators.tensor.sampling import DISTRIBUTIONS

COUNT = 40000

# name: parameters, mean, standard deviation
MOMENTS = {
    "uniform": ({"low": -1.5, "high": 3.0}, 0.75, 4.5 / 12**0.5),
    "normal": ({"loc": 10.0, "scale": 0.5}, 10.0, 0.5),
    "gamma": ({"alpha": 9.0, "beta": 0.5}, 4.5, 1.5),
    "exponential": ({"lam": 4.0}, 0.25, 0.25),
    "poisson": ({"lam": 4.0}, 4.0, 2.0),
    "negative_binomial": ({"k": 3, "p": 0.4}, 4.5, (3 * 0.6) ** 0.5 / 0.4),
    "generalized_negative_binomial": ({"mu": 2.0, "alpha": 0.3}, 2.0, (2 + 0.3 * 4) ** 0.5),
    "randint": ({"low": -3, "high": 5}, 0.5, (63 / 12) ** 0.5),
}


def check(numbers, name):
    _, mean, deviation = MOMENTS[name]
    assert abs(numbers.mean(dtype=np.float64) - mean) < 5 * deviation / COUNT**0.5
    assert abs(numbers.std(dtype=np.float64) / deviation - 1) < 0.03


def test_every_distribution_is_here():
    assert set(MOMENTS) == set(DISTRIBUTIONS)


@pytest.mark.parametrize("name", MOMENTS)
def test_by_parameters_and_like_an_array(name):
    parameters = MOMENTS[name][0]
    mx.random.seed(1)
    numbers = getattr(mx.nd.op, f"_random_{name}")(shape=(COUNT,), **parameters)
    check(numbers.asnumpy(), name)
    assert numbers.dtype == np.dtype(DISTRIBUTIONS[name].dtype)
    if name != "randint":
        like = getattr(mx.nd.random, f"{name}_like")(mx.nd.zeros((COUNT,), dtype="float64"), **parameters)
        check(like.asnumpy(), name)
        assert like.dtype == np.float64


@pytest.mark.parametrize("name", [name for name in MOMENTS if name != "randint"])
def test_for_each_entry_of_arrays_in_a_graph(name):
    parameters = MOMENTS[name][0]
    symbols = [mx.sym.Variable(key) for key in parameters]
    scaled = [1 / value if name == "exponential" else value for value in parameters.values()]
    net = getattr(mx.sym.random, name)(*symbols, shape=(COUNT,))
    arrays = [mx.nd.array([value, value]) for value in scaled]
    (out,) = net.bind(mx.cpu(), dict(zip(parameters, arrays, strict=True))).forward()
    assert out.shape == (2, COUNT)
    for numbers in out.asnumpy():
        check(numbers, name)


def test_a_seed_starts_the_numbers_anew_in_graphs_too():
    net = mx.sym.random.normal(2, 3) + mx.sym.Variable("x")  # the shape follows from the graph
    executor = net.bind(mx.cpu(), {"x": mx.nd.zeros((3, 4))}, {"x": mx.nd.zeros((3, 4))})
    mx.random.seed(5)
    first = executor.forward(is_train=True)[0].asnumpy()
    second = executor.forward(is_train=True)[0].asnumpy()
    mx.random.seed(5, ctx=mx.cpu())
    again = executor.forward()[0].asnumpy()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


def test_multinomial_draws_by_weights():
    mx.random.seed(2)
    weights = mx.nd.array([[1, 2, 1], [0, 0, 4]])
    drawn, logs = mx.nd.random.multinomial(weights, shape=COUNT, get_prob=True)
    shares = np.bincount(drawn.asnumpy()[0], minlength=3) / COUNT
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.01)
    assert (drawn.asnumpy()[1] == 2).all()
    np.testing.assert_allclose(logs.asnumpy()[1], 0)
    np.testing.assert_allclose(np.unique(logs.asnumpy()[0]), np.log([0.25, 0.5]), rtol=1e-6)
    with pytest.raises(DataError, match="_sample_multinomial: each row of data must hold probabilities"):
        mx.nd.random.multinomial(mx.nd.zeros((3,)))


def test_gradient_of_the_logarithms_of_what_was_drawn():
    """As MXNet's: each draw gives its entry the head gradient over its probability."""
    net = mx.sym.random.multinomial(mx.sym.Variable("data"), shape=50, get_prob=True)
    executor = net.simple_bind(mx.cpu(), data=(2, 3), grad_req="add", type_dict={"data": "float64"})
    chances = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0]])
    drawn = executor.forward(is_train=True, data=chances)[0].asnumpy()
    heads = np.random.default_rng(0).standard_normal((2, 50))
    executor.grad_dict["data"][:] = 1
    executor.backward([mx.nd.zeros((2, 50), dtype="int32"), mx.nd.array(heads, dtype="float64")])
    expected = np.ones((2, 3))
    for row in range(2):
        for index, head in zip(drawn[row], heads[row], strict=True):
            expected[row, index] += head / chances[row, index]
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), expected, rtol=1e-12)


def test_multinomial_refuses_indices_that_its_dtype_cannot_hold():
    with pytest.raises(ShapeError, match="uint8 holds indices up to 255, the last axis of data is 257 long"):
        mx.nd.random.multinomial(mx.nd.ones((257,)), dtype="uint8")
    assert mx.nd.random.multinomial(mx.nd.ones((256,)), dtype="uint8").dtype is np.uint8


def test_shuffle_keeps_rows_together():
    mx.random.seed(3)
    rows = mx.nd.arange(0, 30).reshape((10, 3))
    (out,) = mx.sym.random.shuffle(mx.sym.Variable("x")).eval(x=rows)
    assert not np.array_equal(out.asnumpy(), rows.asnumpy())
    assert np.array_equal(np.sort(out.asnumpy(), axis=0), rows.asnumpy())


def test_classes_of_the_log_uniform_distribution():
    mx.random.seed(4)
    classes, trials = mx.nd._internal._sample_unique_zipfian(1000, shape=(2, 500))
    assert all(len(np.unique(row)) == 500 for row in classes.asnumpy())
    assert (trials.asnumpy() > 500).all()
    single, trials = mx.nd._internal._sample_unique_zipfian(5, shape=(COUNT, 1))
    shares = np.bincount(single.asnumpy()[:, 0]) / COUNT
    np.testing.assert_allclose(shares, np.log([2, 3 / 2, 4 / 3, 5 / 4, 6 / 5]) / np.log(6), atol=0.01)
    assert (trials.asnumpy() == 1).all()
    with pytest.raises(ShapeError, match="11 unique classes of 10 are more than there are"):
        mx.nd._internal._sample_unique_zipfian(10, shape=(1, 11))
    drawn, expected_true, expected_drawn = mx.nd.contrib.rand_zipfian(mx.nd.array([0, 19]), 1000, 20)
    np.testing.assert_allclose(expected_true.asnumpy(), 1000 * np.log([2, 21 / 20]) / np.log(21), rtol=1e-6)
    assert drawn.shape == expected_drawn.shape == (1000,)


def test_mistakes():
    with pytest.raises(DataError, match="_random_normal: scale < 0"):
        mx.nd.op._random_normal(loc=0, scale=-1, shape=(2,))
    with pytest.raises(
        GraphError, match=r"random\.normal: loc and scale must both be numbers or both symbols"
    ):
        mx.sym.random.normal(mx.sym.Variable("loc"), 1)
    with pytest.raises(ShapeError, match=r"_sample_uniform: high must have shape \(2,\), got \(3,\)"):
        mx.nd.op._sample_uniform(mx.nd.zeros((2,)), mx.nd.ones((3,)), shape=(4,))
