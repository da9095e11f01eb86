"""Functions inside MXNet that scripts with a module of their own import, as the Deformable-ConvNets do."""

import numpy as np
import pytest
from roiops.executor_manager import _split_input_slice
from roiops.model import _create_kvstore, _initialize_kvstore, _update_params, _update_params_on_kvstore

import roiops as mx
from roiops.training.module.base_module import _as_list, _check_input_names, _parse_data_desc

NET = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")


def test_names_and_shapes_of_inputs():
    assert (_as_list(None), _as_list(3), _as_list((3, 4))) == ([], [3], [3, 4])
    assert _split_input_slice(5, [1, 1]) == [slice(0, 2), slice(2, 5)]
    _check_input_names(NET, ["data"], "data", True)
    with pytest.raises(mx.MXNetError, match="'dta' of data_names is not an argument of the symbol"):
        _check_input_names(NET, ["dta"], "data", True)
    with pytest.warns(UserWarning, match="'label' of label_names is not an argument"):
        _check_input_names(NET, ["label"], "label", False)
    data, label = _parse_data_desc(["data"], [], [("data", (2, 3))], None)
    assert (data[0].name, data[0].shape, label) == ("data", (2, 3), None)
    with pytest.raises(mx.MXNetError, match=r"data_shapes are of \['x'\], data_names are \['data'\]"):
        _parse_data_desc(["data"], [], [("x", (2, 3))], None)
    with pytest.warns(UserWarning, match=r"label_shapes are of \[\], label_names are \['label'\]"):
        _parse_data_desc(["data"], ["label"], [("data", (2, 3))], None)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_step_in_a_store_and_beside_it(devices):
    start = {"w": mx.nd.ones((2, 3))}
    weights, gradients = (
        [[mx.nd.full((2, 3), value) for _ in range(devices)]] for value in (1, 0.5 / devices)
    )
    store, in_store = _create_kvstore("local", devices, start)
    assert (store is None, in_store) == (devices == 1, devices == 2)
    optimizer = mx.optimizer.SGD(learning_rate=0.1)
    if store is None:
        _update_params(weights, gradients, mx.optimizer.get_updater(optimizer), devices)
    else:
        store.set_optimizer(optimizer)
        _initialize_kvstore(store, weights, start, ["w"], in_store)
        _update_params_on_kvstore(weights, gradients, store, ["w"])
    for each in weights[0]:
        np.testing.assert_allclose(each.asnumpy(), 0.95, rtol=1e-6)


def test_gradients_that_a_store_adds_up_for_an_updater_of_each_device():
    start = {"w": mx.nd.ones((2, 3))}
    weights, gradients = ([[mx.nd.full((2, 3), value) for _ in range(2)]] for value in (1, 0.25))
    store, in_store = _create_kvstore(mx.kv.create("device"), 2, start)
    assert in_store
    _initialize_kvstore(store, weights, start, ["w"], False)
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1))
    _update_params(weights, gradients, updater, 2, store, ["w"])
    for each in weights[0]:
        np.testing.assert_allclose(each.asnumpy(), 0.95, rtol=1e-6)
    assert _create_kvstore(None, 2, start) == (None, False)
