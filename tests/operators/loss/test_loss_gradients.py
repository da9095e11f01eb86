"""Gradients of softmax and the losses against finite differences in float64, and values worked by hand."""

import numpy as np
import pytest

from roiops.operators.imperative import Invocation
from roiops.registry import get
from roiops.testing import check_operator_gradient

RNG = np.random.default_rng(3)


def invoke(name, *arrays, **params):
    return Invocation(get(name).create(params), [np.asarray(a) for a in arrays])


def run(name, *arrays, **params):
    return invoke(name, *arrays, **params).forward()[0]


def gradient(name, *arrays, head=None, **params):
    invocation = invoke(name, *arrays, **params)
    out = invocation.forward()[0]
    return invocation.backward([np.full_like(out, 99) if head is None else head])[0]


# -- softmax ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "params"),
    [((3, 5), {}), ((2, 3, 4), {"axis": 1, "temperature": 0.7}), ((2, 3, 2), {"axis": 0})],
)
def test_softmax(name, shape, params):
    check_operator_gradient(name, [RNG.normal(size=shape)], params)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_softmax_with_lengths(name):
    data, length = RNG.normal(size=(2, 5, 3)), np.array([[2, 5, 1], [3, 4, 1]], np.int32)
    check_operator_gradient(name, [data, length], {"axis": 1, "use_length": True})


@pytest.mark.parametrize(
    ("mode", "shape"), [("channel", (2, 3, 4)), ("instance", (3, 4)), ("instance", (2, 3, 4))]
)
def test_softmax_activation(mode, shape):
    """The last case is one that MXNet gets wrong: its backward takes another axis than its forward."""
    check_operator_gradient("SoftmaxActivation", [RNG.normal(size=shape)], {"mode": mode})


@pytest.mark.parametrize("shape", [(3, 40000), (2, 3, 70000), (40000, 3), (300, 7, 40)], ids=str)
def test_softmax_in_several_blocks(shape):
    data = RNG.normal(size=shape)
    whole = np.exp(data - data.max(axis=1, keepdims=True))
    whole /= whole.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run("softmax", data, axis=1), whole, rtol=1e-12)
    head = RNG.normal(size=shape)
    expected = whole * (head - (head * whole).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(gradient("softmax", data, head=head, axis=1), expected, rtol=1e-9, atol=1e-15)


def test_softmax_of_large_numbers():
    assert run("softmax", np.float32([[1e30, 1e30, 0]])).tolist() == [[0.5, 0.5, 0]]
    assert run("softmax", np.float32([[-np.inf, 0]])).tolist() == [[0, 1]]
    assert run("log_softmax", np.float32([[1000, 0]])).tolist() == [[0, -1000]]
    assert np.isnan(run("softmax", np.float32([[np.nan, 0]]))).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 4)])
def test_softmax_of_nothing(shape):
    invocation = invoke("softmax", np.zeros(shape, np.float32), axis=1)
    assert invocation.forward()[0].shape == shape
    assert invocation.backward([np.zeros(shape, np.float32)])[0].shape == shape


def test_ctc_of_labels_without_entries():
    data = np.zeros((4, 2, 3), np.float32)
    np.testing.assert_allclose(
        run("CTCLoss", data, np.zeros((2, 0), np.float32)), [4 * np.log(3)] * 2, rtol=1e-6
    )


# -- SoftmaxOutput ---------------------------------------------------------------------------------------

PLAIN = np.zeros((1, 2, 2), np.float32)


def test_softmax_output_divides_by_the_positions():
    label = np.float32([[0, 1]])
    assert gradient("SoftmaxOutput", PLAIN, label, multi_output=True).tolist() == [
        [[-0.25, 0.25], [0.25, -0.25]]
    ]


def test_softmax_output_ignores_a_label():
    ours = gradient(
        "SoftmaxOutput",
        PLAIN,
        np.float32([[-1, 1]]),
        multi_output=True,
        normalization="valid",
        use_ignore=True,
    )
    assert ours.tolist() == [[[0, 0.5], [0, -0.5]]]


def test_softmax_output_is_the_gradient_of_the_cross_entropy():
    data, label = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2.0])
    loss = [
        -np.log(run("softmax", data + step))[np.arange(5), label.astype(int)].sum() for step in _steps(data)
    ]
    numeric = (np.array(loss[::2]) - loss[1::2]).reshape(data.shape) / 2e-6
    np.testing.assert_allclose(gradient("SoftmaxOutput", data, label), numeric, atol=1e-8)


def _steps(data):
    for index in np.ndindex(data.shape):
        for sign in (1, -1):
            step = np.zeros_like(data)
            step[index] = sign * 1e-6
            yield step


def test_softmax_output_takes_the_head_gradient_when_asked():
    """MXNet multiplies by its own output instead."""
    data, label = RNG.normal(size=(3, 4)), np.array([0, 3, 1.0])
    head = RNG.normal(size=(3, 4))
    plain = gradient("SoftmaxOutput", data, label)
    np.testing.assert_allclose(gradient("SoftmaxOutput", data, label, head=head, out_grad=True), plain * head)
    assert get("SoftmaxOutput").create({}).is_loss
    assert not get("SoftmaxOutput").create({"out_grad": True}).is_loss


def test_labels_that_are_no_class():
    data = RNG.normal(size=(6, 3)).astype(np.float32)
    label = np.float32([np.nan, np.inf, -np.inf, 1e30, -7, 3])
    np.testing.assert_array_equal(gradient("SoftmaxOutput", data, label), run("softmax", data))
    label[:] = 1.9
    np.testing.assert_array_equal(
        gradient("SoftmaxOutput", data, label), gradient("SoftmaxOutput", data, np.ones(6, np.int32))
    )


def test_softmax_output_of_no_samples():
    invocation = invoke(
        "SoftmaxOutput", np.zeros((0, 3), np.float32), np.zeros(0, np.float32), normalization="valid"
    )
    assert invocation.forward()[0].shape == (0, 3)
    assert invocation.backward([np.zeros((0, 3), np.float32)])[0].shape == (0, 3)


def test_label_shapes():
    def label(data, given=None, **params):
        return get("SoftmaxOutput").create(params).infer_shape([data, given])[0][1]

    assert label((4, 3)) == (4,)
    assert label((4, 3, 5, 6), multi_output=True) == (4, 30)
    assert label((4, 3, 5, 6), (4, 5, 6), multi_output=True) == (4, 5, 6)
    assert label((4, 3, 5), preserve_shape=True) == (4, 3)
    assert label((4, 3), (4, 3)) == (4, 3)
    assert label((4, 3), (-1,)) == (4,)


# -- the other losses ------------------------------------------------------------------------------------


def test_softmax_cross_entropy():
    data, label = RNG.normal(size=(4, 3)), np.array([0, 2, 1, 1])
    expected = -np.log(run("softmax", data)[np.arange(4), label]).sum()
    np.testing.assert_allclose(run("softmax_cross_entropy", data, label), [expected])
    check_operator_gradient("softmax_cross_entropy", [data, label])


def test_regressions():
    data, label = np.array([[0.0, 2.0]]), np.array([[1.0, 1.0]])
    assert gradient("LinearRegressionOutput", data, label, grad_scale=4).tolist() == [[-2, 2]]
    assert gradient("MAERegressionOutput", data, label).tolist() == [[-0.5, 0.5]]
    assert run("LogisticRegressionOutput", data, label)[0, 0] == 0.5
    assert gradient("LogisticRegressionOutput", data, label)[0, 0] == -0.25
    assert gradient("LinearRegressionOutput", np.array([[3.0], [5.0]]), np.array([1.0, 1.0])).tolist() == [
        [2],
        [4],
    ]


def test_support_vector_machine():
    data, label = np.array([[0.5, 0.2, -2.0]]), np.array([0.0])
    assert gradient("SVMOutput", data, label, use_linear=True).tolist() == [[-1, 1, 0]]
    np.testing.assert_allclose(gradient("SVMOutput", data, label), [[-1, 2.4, 0]])


def test_make_loss():
    data = np.float32([[1, -1, 3], [0, 2, -5]])
    assert set(gradient("MakeLoss", data, grad_scale=6).ravel()) == {6}
    assert set(gradient("MakeLoss", data, grad_scale=6, normalization="batch").ravel()) == {3}
    assert set(gradient("MakeLoss", data, grad_scale=6, normalization="valid", valid_thresh=1.5).ravel()) == {
        3
    }
    assert set(gradient("make_loss", data).ravel()) == {1}
