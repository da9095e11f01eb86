"""Parameters by themselves, as in MXNet 1.9.1: shapes that become known, devices, constants, dicts, files."""

import numpy as np
import pytest

import roiops as mx
from roiops import autograd, gluon

BOTH = [mx.cpu(0), mx.cpu(1)]


def parameter(ctx=None, **more):
    one = gluon.Parameter("w", **{"shape": (2,), **more})
    one.initialize(mx.init.One(), ctx=ctx)
    return one


def filled(**more):
    group = gluon.ParameterDict("a_")
    group.get("w", **{"shape": (2,), **more})
    group.initialize(mx.init.One())
    return group


def differentiate(one):
    with autograd.record():
        losses = [(array * (i + 3)).sum() for i, array in enumerate(one.list_data())]
    autograd.backward(losses)


@pytest.mark.parametrize(
    ("known", "more", "both"),
    [((2, 0), (0, 3), (2, 3)), ((-1, 3), (2, -1), (2, 3)), ((2, 3), (2, 3), (2, 3))],
)
def test_a_shape_becomes_known_bit_by_bit(known, more, both):
    group = gluon.ParameterDict("a_")
    one = group.get("w", shape=known)
    assert group.get("w", shape=more) is one
    assert one.shape == both


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"shape": (2,)}, {"shape": (3,)}),
        ({"shape": (2,)}, {"shape": (2, 1)}),
        ({"dtype": "float32"}, {"dtype": "float16"}),
        ({"init": "ones"}, {"init": "zeros"}),
    ],
)
def test_a_parameter_is_not_had_twice_with_other_attributes(first, then):
    group = gluon.ParameterDict("a_")
    group.get("w", **first)
    with pytest.raises(AssertionError, match="Cannot retrieve Parameter 'a_w' because desired attribute"):
        group.get("w", **then)


def test_constants():
    group = gluon.ParameterDict("a_")
    one = group.get_constant("c", mx.nd.array([1, 2]))
    assert group.get_constant("c") is group.get_constant("c", mx.nd.array([1, 2])) is one
    group.get("w", shape=(2,))
    group.initialize()
    assert one.data().asnumpy().tolist() == [1, 2]
    with pytest.raises(KeyError, match="No constant named 'a_d'"):
        group.get_constant("d")
    with pytest.raises(AssertionError, match="it's value doesn't match"):
        group.get_constant("c", mx.nd.array([1, 3]))
    with pytest.raises(AssertionError, match="already exists but it is not a constant"):
        group.get_constant("w", [1, 3])
    with pytest.warns(UserWarning, match='does not support grad_req other than "null"'):
        one.grad_req = "write"
    assert one.grad_req == "null"


def test_a_dict_takes_in_another():
    group, other = filled(), gluon.ParameterDict("b_")
    other.get("w")
    group.update(other)
    assert list(group) == ["a_w", "b_w"]
    with pytest.raises(AssertionError, match="different Parameters with the same name 'a_w'"):
        group.update(filled())


def test_files_without_a_prefix(tmp_path):
    file = str(tmp_path / "x.params")
    filled().save(file, strip_prefix="a_")
    assert list(mx.nd.load(file)) == ["w"]
    group = gluon.ParameterDict("a_")
    group.get("w", shape=(2,))
    group.load(file, BOTH, restore_prefix="a_")
    assert [each.asnumpy().tolist() for each in group["a_w"].list_data()] == [[1, 1]] * 2
    group.load(file, restore_prefix="a_")  # where it is
    with pytest.raises(AssertionError, match="because it was previous initialized on"):
        group.load(file, mx.cpu(0), restore_prefix="a_")
    with pytest.raises(AssertionError, match="dtype incompatible"):
        filled(dtype="float16").load(file, restore_prefix="a_")
    with pytest.raises(AssertionError, match="shape incompatible expected"):
        filled(shape=(3,)).load(file, restore_prefix="a_")
    with pytest.raises(
        AssertionError, match="restore_prefix is 'c_' but Parameters name 'a_w' does not start"
    ):
        group.load(file, restore_prefix="c_")
    with pytest.raises(ValueError, match="Prefix 'b_' is to be striped before saving"):
        group.save(file, strip_prefix="b_")


def test_arrays_and_gradients_on_several_devices():
    one = parameter(BOTH)
    differentiate(one)
    one.grad_req = "write"  # as it is: the gradients stay
    assert [each.asnumpy().tolist() for each in one.list_grad()] == [[3, 3], [4, 4]]
    one.zero_grad()
    assert [each.asnumpy().tolist() for each in one.list_grad()] == [[0, 0]] * 2
    with pytest.raises(RuntimeError, match=r"was not initialized on context cpu\(5\)"):
        one.data(mx.cpu(5))
    one.list_data()[1][:] = 5
    one.reset_ctx(mx.cpu(1))
    assert (one.list_ctx(), one.data().asnumpy().tolist()) == ([mx.cpu(1)], [3, 3])  # the mean
    one.grad_req = "null"
    with pytest.raises(RuntimeError, match="because grad_req='null'"):
        one.grad()
    with pytest.raises(AssertionError, match=r"Expected shape \(3,\) is incompatible with given shape"):
        one.shape = (3,)
    with pytest.raises(ValueError, match="because it has invalid shape"):
        gluon.Parameter("w", shape=(0, 3)).initialize()
    with pytest.raises(AssertionError, match="has not been initialized"):
        gluon.Parameter("w", shape=(2,)).set_data(np.ones(2))


def test_values_set_by_hand_reach_the_store():
    one = parameter(BOTH)
    trainer = gluon.Trainer([one], "sgd", {"learning_rate": 0.5}, kvstore="local", update_on_kvstore=True)
    differentiate(one)
    trainer.step(1)
    one.set_data(mx.nd.array([7, 8]))
    differentiate(one)
    trainer.step(1)
    assert [each.asnumpy().tolist() for each in one.list_data()] == [[3.5, 4.5]] * 2


@pytest.mark.parametrize("layer", [gluon.nn.Lambda, gluon.nn.HybridLambda])
def test_what_is_no_function(layer):
    with pytest.raises(ValueError, match="Lambda: needs a function or an operator's name, got 3"):
        layer(3)
    with pytest.raises(AssertionError, match="Function name nope is not found"):
        layer("nope")


def test_a_store_without_an_optimizer():
    one = parameter(BOTH)
    differentiate(one)
    gluon.Trainer([one], "sgd", {"learning_rate": 0.5}, kvstore="teststore").step(1)
    assert [each.asnumpy().tolist() for each in one.list_data()] == [[-2.5, -2.5]] * 2
    trainer = gluon.Trainer([one], "sgd", kvstore="teststore", update_on_kvstore=True)
    with pytest.raises(ValueError, match="Please set update_on_kvstore=False when training with"):
        trainer.step(1)
