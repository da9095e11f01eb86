"""KVStore on one process: what MXNet's own tests of it expect, and the errors."""

import warnings

import numpy as np
import pytest

import roiops as mx
from roiops import kvstore

SHAPE = (4, 4)
KEYS = {int: [5, 7, 11], str: ["b", "c", "d"]}
SINGLE = {int: 3, str: "a"}


def ones(value=1.0):
    return mx.nd.ones(SHAPE) * value


def read(store, key):
    out = mx.nd.zeros(SHAPE)
    store.pull(key, out=out)
    return out.asnumpy()


@pytest.fixture(params=["local", "device"])
def store(request):
    return mx.kv.create(request.param)


@pytest.fixture(params=[int, str], ids=["numbers", "names"])
def kind(request):
    return request.param


def test_init_then_pull(store, kind):
    value = ones(4)
    store.init(SINGLE[kind], value)
    value[:] = 0  # the store has a copy
    assert (read(store, SINGLE[kind]) == 4).all()


def test_push_takes_the_place_of_the_array(store, kind):
    store.init(SINGLE[kind], ones(7))
    gradient = ones(2)
    store.push(SINGLE[kind], gradient)
    gradient[:] = 100
    assert (read(store, SINGLE[kind]) == 2).all()


def test_values_of_several_devices_are_added_up(store, kind):
    store.init(SINGLE[kind], mx.nd.zeros(SHAPE))
    store.init(KEYS[kind], [mx.nd.zeros(SHAPE)] * 3)
    devices = [mx.cpu(i) for i in range(4)]
    outs = [mx.nd.zeros(SHAPE, device) for device in devices]
    store.push(SINGLE[kind], [mx.nd.ones(SHAPE, device) for device in devices])
    store.pull(SINGLE[kind], out=outs)
    assert all((out.asnumpy() == 4).all() for out in outs)
    assert [out.context for out in outs] == devices
    store.push(KEYS[kind], [[mx.nd.ones(SHAPE, device) * 2 for device in devices]] * 3)
    nested = [[mx.nd.zeros(SHAPE, device) for device in devices] for _ in range(3)]
    store.pull(KEYS[kind], out=nested)
    assert all((out.asnumpy() == 8).all() for outs in nested for out in outs)


def test_a_key_given_twice_is_pushed_once_with_the_sum(store):
    store.init(3, mx.nd.zeros(SHAPE))
    store.push([3, 3], [ones(1), ones(5)])
    assert (read(store, 3) == 6).all()


def test_an_updater_gets_key_sum_and_array(store, kind):
    store.init(KEYS[kind], [mx.nd.zeros(SHAPE)] * 3)
    seen = []

    def update(key, pushed, stored):
        seen.append(key)
        stored += pushed * 2

    store._set_updater(update)
    for _ in range(4):
        store.push(KEYS[kind], [[ones(), ones()]] * 3)
    assert seen == KEYS[kind] * 4
    assert (read(store, KEYS[kind][1]) == 4 * 2 * 2).all()


def test_an_optimizer_in_the_store(store, tmp_path):
    store.init(3, mx.nd.zeros(SHAPE))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
    store.push(3, ones())
    assert (read(store, 3) == -0.5).all()
    store.save_optimizer_states(tmp_path / "states")
    store.push(3, ones())
    assert (read(store, 3) == -0.5 - 0.75).all()
    other = mx.kv.create("local")
    other.init(3, mx.nd.ones(SHAPE) * -0.5)
    other.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
    other.load_optimizer_states(tmp_path / "states")
    other.push(3, ones())
    assert (read(other, 3) == -0.5 - 0.75).all()


def test_pushpull_in_place_and_into_out(store):
    store.broadcast(3, mx.nd.zeros(SHAPE), out=mx.nd.zeros(SHAPE))
    values = [ones(), ones(2)]
    outs = [mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE)]
    store.pushpull(3, values, out=outs)
    assert all((out.asnumpy() == 3).all() for out in outs)
    assert (values[0].asnumpy() == 1).all()
    store.pushpull(3, values)
    assert all((value.asnumpy() == 3).all() for value in values)


def test_broadcast_to_many(store, kind):
    outs = [[mx.nd.zeros(SHAPE)] * 2 for _ in range(3)]
    store.broadcast(KEYS[kind], [ones(2)] * 3, outs)
    assert all((out.asnumpy() == 2).all() for some in outs for out in some)


def test_half_precision_is_pushed_into_what_was_initialized(store):
    store.init(3, mx.nd.zeros(SHAPE))
    store.push(3, ones(1.5).astype(np.float16))
    assert (read(store, 3) == 1.5).all()


@pytest.mark.parametrize(
    "name", ["local", "device", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device"]
)
def test_type_rank_and_workers(name):
    store = mx.kv.create(name)
    assert (store.type, store.rank, store.num_workers) == (name, 0, 1)
    assert mx.kv.create().type == "local"
    assert store.is_capable("optimizer")
    store.barrier()
    store._barrier()


def test_a_store_of_ones_own(monkeypatch):
    monkeypatch.setattr(kvstore.KVStoreBase, "kv_registry", dict(kvstore.KVStoreBase.kv_registry))

    @mx.kvstore.KVStoreBase.register
    class MyStore(mx.kvstore.KVStoreBase):
        pass

    assert type(mx.kv.create("mystore")) is MyStore
    with pytest.warns(UserWarning, match="overriding existing kvstore"):
        mx.kvstore.KVStoreBase.register(type("MyStore", (kvstore.KVStoreBase,), {}))


def test_mxnets_test_store():
    store = mx.kv.create("teststore")
    out = mx.nd.zeros(SHAPE)
    store.broadcast(1, ones(), out)
    assert (out.asnumpy() == 1).all()
    values = [ones(), ones()]
    store.pushpull(1, values)
    assert (values[1].asnumpy() == 2).all()
    store.pushpull(1, values, out=out)
    assert (out.asnumpy() == 4).all()
    assert (values[1].asnumpy() == 2).all()
    assert not store.is_capable("optimizer")
    with pytest.raises(NotImplementedError):
        store.set_optimizer(mx.optimizer.create("sgd"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.init(3, ones()), r"KVStore.init: key 3 is there already"),
        (lambda s: s.init(4, [ones(), ones()]), r"KVStore.init: key 4 must come with one array, got 2"),
        (lambda s: s.push(4, ones()), r"KVStore.push: key 4 has not been initialized; call init\(\) first"),
        (lambda s: s.pull(4, ones()), r"KVStore.pull: key 4 has not been initialized"),
        (lambda s: s.pull(3), r"KVStore.pull: out must be given"),
        (lambda s: s.push("a", ones()), r"KVStore.push: Mixed key types are not allowed"),
        (lambda s: s.push(1.5, ones()), r"a key is a whole number or a string, got 1.5"),
        (lambda s: s.push([3, 4], [ones()]), r"KVStore.push: 2 keys, but arrays for 1"),
        (lambda s: s.push(3, np.ones(SHAPE)), r"key 3 must come with NDArrays, got ndarray"),
        (lambda s: s.push(3, mx.nd.ones((4,))), r"push: key 3 must have shape \(4, 4\), got \(4,\)"),
        (
            lambda s: s.pull(3, mx.nd.ones((4,))),
            r"pull: out of key 3 must have shape \(4, 4\), got \(4,\)",
        ),
        (lambda s: s.row_sparse_pull(3), r"KVStore.row_sparse_pull: out and row_ids must be given"),
        (lambda s: s.set_gradient_compression({"type": "2bit"}), r"gradients are not compressed here"),
        (lambda s: s.save_optimizer_states("x"), r"save_optimizer_states: call set_optimizer\(\) first"),
        (lambda s: s.is_capable("sparse"), r"unknown capability 'sparse'"),
    ],
)
def test_errors(store, call, text):
    store.init(3, ones())
    with pytest.raises(mx.MXNetError, match=text):
        call(store)


def test_a_failed_push_changes_nothing(store):
    store.init([1, 2], [ones(1), ones(2)])
    with pytest.raises(mx.MXNetError, match="key 2 must have shape"):
        store.push([1, 2], [ones(5), mx.nd.ones((3,))])
    assert (read(store, 1) == 1).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dist_async", "there is no 'dist_async' store: .* use 'dist_sync', in which all processes step"),
        ("nccl", "there is no 'nccl' store: use 'device'"),
        ("horovod", "there is no 'horovod' store: use 'dist_sync'"),
        ("locl", "unknown type 'locl'; did you mean 'local'"),
    ],
)
def test_types_that_there_are_not(name, text):
    with pytest.raises(mx.MXNetError, match=text):
        mx.kv.create(name)


def test_a_type_is_a_string():
    with pytest.raises(TypeError, match="name must be a string"):
        mx.kv.create(1)


def test_without_mpi4py_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with warnings.catch_warnings(), pytest.raises(mx.MXNetError, match=r"pip install mpi4py mpich"):
        mx.kv.create("dist_sync")
