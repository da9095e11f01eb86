"""Blocks, parameters and trainers: what they do, beyond MXNet's numbers."""

import copy
import gc
import inspect
import multiprocessing
import pickle
import time
import weakref

import numpy as np
import pytest

import roiops as mx
from roiops import autograd, gluon, nd
from roiops.gluon import nn


def ones(*shape):
    return nd.array(np.ones(shape))


def dense(units=2, **kwargs):
    net = nn.Dense(units, **kwargs)
    net.initialize(mx.init.Constant(0.5))
    return net


def test_shapes_follow_from_the_first_batch():
    net = dense()
    with pytest.raises(gluon.DeferredInitializationError, match="initialization was deferred"):
        net.weight.data()
    net(ones(3, 7))
    assert net.weight.shape == (2, 7)
    with pytest.raises(RuntimeError, match=r"has not been initialized\. Note"):
        nn.Dense(2).weight.data()


def test_files_that_lack_or_hold_more(tmp_path):
    file = str(tmp_path / "a.params")
    net = nn.HybridSequential()
    net.add(dense(in_units=3))
    net.save_parameters(file)
    more = nn.HybridSequential()
    more.add(nn.Dense(2, in_units=3), nn.Dense(2, in_units=2))
    with pytest.raises(AssertionError, match=r"'1.weight' is missing.*allow_missing=True"):
        more.load_parameters(file)
    more.load_parameters(file, allow_missing=True)
    more[1].initialize()
    more.save_parameters(file)
    with pytest.raises(ValueError, match=r"'1.weight' loaded.*ignore_extra=True"):
        net.load_parameters(file)
    net.load_parameters(file, ignore_extra=True)
    wrong = nn.HybridSequential()
    wrong.add(nn.Dense(2, in_units=4))
    with pytest.raises(AssertionError, match=r"shape incompatible expected \(2, 4\) vs saved \(2, 3\)"):
        wrong.load_parameters(file, ignore_extra=True)


@pytest.mark.parametrize(("source", "dtype"), [("current", "float64"), ("saved", "float32")])
def test_dtypes_of_files(tmp_path, source, dtype):
    file = str(tmp_path / "a.params")
    net = nn.HybridSequential()
    net.add(dense(in_units=3))
    net.save_parameters(file)
    wide = nn.HybridSequential()
    wide.add(nn.Dense(2, in_units=3, dtype="float64"))
    wide.cast("float64")
    with pytest.raises(AssertionError, match="dtype incompatible expected float64 vs saved float32"):
        wide.load_parameters(file)
    deferred = nn.HybridSequential()
    deferred.add(nn.Dense(2, dtype="float64"))
    with pytest.raises(AssertionError, match="dtype incompatible expected float64 vs saved float32"):
        deferred.load_parameters(file)
    assert deferred[0].weight.shape == (2, 0)
    wide.load_parameters(file, cast_dtype=True, dtype_source=source)
    assert wide[0].weight.data().dtype == np.dtype(dtype)


def test_a_hybrid_block_called_twice_before_backward():
    """Two calls of one shape need two executors until backward is through."""
    net = dense(1, in_units=2, use_bias=False)
    net.hybridize()
    one, two = nd.array([[1, 2]]), nd.array([[3, 5]])
    for _ in range(2):
        with autograd.record():
            y = net(one) * net(two)
        y.backward()
        # y = (w1 + 2 w2)(3 w1 + 5 w2) at 0.5 and 0.5
        assert net.weight.grad().asnumpy().tolist() == [[1 * 4 + 3 * 1.5, 2 * 4 + 5 * 1.5]]


@pytest.mark.parametrize("hybridised", [False, True])
@pytest.mark.parametrize("req", ["write", "add", "null"])
def test_what_is_done_with_gradients(hybridised, req):
    net = dense(1, in_units=2)
    net.weight.grad_req = req
    net.hybridize(hybridised)
    x = nd.array([[1, 2]])
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            y = net(x) * 3
        y.backward()
    assert x.grad.asnumpy().tolist() == [[1.5, 1.5]]
    assert net.bias.grad().asnumpy().tolist() == [3]
    if req == "null":
        with pytest.raises(RuntimeError, match="because grad_req='null'"):
            net.weight.grad()
    else:
        assert net.weight.grad().asnumpy().tolist() == [[3, 6] if req == "write" else [6, 12]]


def test_grad_of_a_hybrid_block_leaves_the_parameters_gradients():
    net = dense(1, in_units=2)
    net.hybridize()
    net.weight.grad()[:] = 7
    with autograd.record():
        y = net(nd.array([[1, 2]]))
    (gradient,) = autograd.grad(y, [net.weight.data()])
    assert gradient.asnumpy().tolist() == [[1, 2]]
    assert net.weight.grad().asnumpy().tolist() == [[7, 7]]


def test_hybrid_blocks_see_new_values_and_new_arrays():
    net = dense(1, in_units=2)
    net.hybridize()
    x = nd.array([[1, 2]])
    assert net(x).asscalar() == 1.5
    net.weight.set_data(nd.array([[1, 1]]))
    assert net(x).asscalar() == 3
    net.initialize(mx.init.Constant(2), force_reinit=True)
    assert net(x).asscalar() == 6
    net.cast("float64")
    assert net(x.astype("float64")).dtype == np.float64


def test_a_hybrid_block_forgets_executors_for_shapes_of_long_ago():
    net = nn.Conv2D(2, 3, in_channels=3)
    net.initialize()
    net.hybridize()
    made = []
    for size in [*range(8, 24), 8]:
        x = nd.random.normal(shape=(1, 3, size, size))
        np.testing.assert_array_equal(net(x).asnumpy(), net(x).asnumpy())
        (newest,) = list(net._cached_op._free.values())[-1]
        made.append(weakref.ref(newest))
    del newest
    gc.collect()
    assert [ref() is not None for ref in made] == [False] * 9 + [True] * 8
    copied = copy.deepcopy(net)  # with executors of its own
    np.testing.assert_array_equal(copied(x).asnumpy(), net(x).asnumpy())


@pytest.mark.parametrize("hybridised", [False, True])
def test_a_block_that_was_called_can_be_pickled(hybridised):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), nn.Activation("relu"), nn.HybridLambda("tanh"))
    net.initialize()
    net.hybridize(hybridised)
    x = nd.random.normal(shape=(1, 3, 8, 8))
    expected = net(x).asnumpy()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(net))(x).asnumpy(), expected)


def test_a_pickled_optimizer_holds_no_parameters():
    net = dense(1000, in_units=1000)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    text = pickle.dumps(trainer.optimizer)
    assert len(text) < 2000
    assert pickle.loads(text).momentum == 0.9


def test_dropout_in_a_hybrid_block_goes_back_through_its_mask():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5))
    net.hybridize()
    x = ones(4, 100)
    x.attach_grad()
    with autograd.record():
        y = net(x)
        net(x)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    assert (net(x).asnumpy() == 1).all()


def test_a_trainer_wants_new_gradients():
    net = dense(1, in_units=2)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    with pytest.raises(UserWarning, match="has not been updated by backward since last `step`"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5]]


def test_a_step_without_all_gradients_changes_nothing():
    used, unused = (gluon.Parameter(name, shape=(1,), init="ones") for name in ("used", "unused"))
    for each in (used, unused):
        each.initialize()
    trainer = gluon.Trainer([used, unused], "sgd", {"learning_rate": 1})
    with mx.autograd.record():
        loss = used.data() * 3
    loss.backward()
    with pytest.raises(UserWarning, match="Parameter `unused`"):
        trainer.step(1)
    assert used.data().asscalar() == 1
    trainer.step(1, ignore_stale_grad=True)
    assert used.data().asscalar() == -2


def test_several_devices_sum_their_gradients():
    devices = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(1, in_units=2)
    net.initialize(mx.init.Constant(0.5), ctx=devices)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    parts = gluon.utils.split_and_load(nd.array([[1, 2], [3, 4]]), devices)
    with autograd.record():
        losses = [net(part) for part in parts]
    for each in losses:
        each.backward()
    trainer.step(2)
    for ctx in devices:
        assert net.weight.data(ctx).asnumpy().tolist() == [[0.5 - 2, 0.5 - 3]]


def test_sparse_batches_are_split_and_stay_sparse():
    batch = nd.array([[1, 0], [0, 2]]).tostype("csr")
    parts = gluon.utils.split_and_load(batch, [mx.cpu(0), mx.cpu(1)])
    assert [each.stype for each in parts] == ["csr", "csr"]


def test_a_step_on_several_devices_counts_once():
    devices = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(1, in_units=2)
    net.initialize(mx.init.Constant(0.5), ctx=devices)
    scheduler = mx.lr_scheduler.FactorScheduler(2, factor=0.1, base_lr=1)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": scheduler}, update_on_kvstore=False)
    rates = []
    for _ in range(4):
        with autograd.record():
            losses = [net(ones(1, 2).as_in_context(ctx)) for ctx in devices]
        autograd.backward(losses)
        trainer.step(2)
        rates.append(round(trainer.learning_rate, 6))
    assert rates == [1, 1, 0.1, 0.1]


def test_hooks_and_summary(capsys):
    net, seen = dense(in_units=3), []
    with net.register_forward_hook(lambda block, x, y: seen.append(y.shape)):
        net(ones(4, 3))
    net(ones(4, 3))
    assert seen == [(4, 2)]
    net.summary(ones(4, 3))
    assert "Total params: 8" in capsys.readouterr().out
    net, other = nn.Sequential(), dense(in_units=2)
    net.add(other, nn.Dense(2, in_units=2, params=other.params))
    net.summary(ones(4, 2))
    told = capsys.readouterr().out
    assert "Total params: 12" in told  # MXNet's numbers
    assert "Shared params in forward computation graph: 6\nUnique parameters in model: 6\n" in told


@pytest.mark.parametrize("held", [lambda a: [a], lambda a: (a,), lambda a: {"a": a}, lambda a: [{"a": (a,)}]])
def test_a_container_of_blocks_that_are_no_children(held):
    net, layer = gluon.Block(), nn.Dense(2)
    net.held = held(layer)
    with pytest.warns(UserWarning, match=r'"Block.held" is an unregistered container with Blocks'):
        net.collect_params()
    net.register_child(layer)
    assert len(net.collect_params()) == 2


def test_a_child_that_cannot_be_a_graph():
    with pytest.raises(ValueError, match="Children of HybridBlock must also be HybridBlock"):
        nn.HybridSequential().add(nn.Sequential())


@pytest.mark.parametrize("workers", [0, 2])
def test_batches(workers):
    data = gluon.data.ArrayDataset(np.arange(10, dtype="float32"), np.arange(10))
    loader = gluon.data.DataLoader(data, 4, num_workers=workers)
    batches = [batch[0].asnumpy().tolist() for batch in loader]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(loader) == 3


def test_a_loader_left_in_the_middle_ends():
    """Batches larger than a pipe's buffer are on their way when the loader goes."""
    import subprocess
    import sys

    code = """if True:
        import numpy as np
        from roiops.gluon.data import DataLoader
        for _ in range(3):
            loader = DataLoader(np.zeros((400, 20000)), batch_size=8, num_workers=4)
            next(iter(loader))
            del loader
        print("done")"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "done\n", ended.stderr


class _Waits:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(0.5)
        raise TimeoutError("the dataset's own")


def test_a_batch_that_takes_too_long_says_what_to_do():
    with pytest.raises(multiprocessing.TimeoutError, match="larger timeout or more workers"):
        next(iter(gluon.data.DataLoader(_Waits(), 1, num_workers=1, thread_pool=True, timeout=0.05)))
    with pytest.raises(TimeoutError, match="the dataset's own"):
        next(iter(gluon.data.DataLoader(_Waits(), 1, num_workers=1, thread_pool=True)))


def test_gluon_is_imported_when_it_is_asked_for():
    import subprocess
    import sys

    code = "import sys, roiops; before = 'roiops.gluon' in sys.modules; roiops.gluon; print(before)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


def test_hooks_of_operators_tell_node_operator_and_value():
    net = nn.HybridSequential(prefix="a_")
    with net.name_scope():
        net.add(nn.Dense(2), nn.Activation("relu"))
    net.initialize()
    net.hybridize()
    told = []
    net.register_op_hook(lambda name, operator, array: told.append((name, operator, array.shape)))
    net(mx.nd.ones((3, 4)))
    assert told == [
        ("a_dense0_fwd_output", "FullyConnected", (3, 2)),
        ("a_relu0_fwd_output", "Activation", (3, 2)),
    ]


def test_none_and_lists_as_first_argument():
    class Either(gluon.HybridBlock):
        def hybrid_forward(self, F, a, b):
            return b if a is None else sum(a) + b

    x = mx.nd.ones((2,))
    for active in (False, True):
        for a, expected in ((None, 1), ([x, x], 3)):
            net = Either()
            net.hybridize(active)
            np.testing.assert_array_equal(net(a, x).asnumpy(), [expected] * 2)
        with pytest.raises(ValueError, match="there must be one NDArray or one Symbol in the input"):
            Either()(None, None)
        with pytest.raises(ValueError, match="we do not support mixed NDArrays and Symbols"):
            Either()([x], mx.sym.var("x"))
    net.hybridize()
    with pytest.raises(ValueError, match=r"all inputs must be on one device, got \['cpu\(1\)', 'cpu\(2\)'\]"):
        net([mx.nd.ones((2,), ctx=mx.cpu(1))], mx.nd.ones((2,), ctx=mx.cpu(2)))


def test_layers_that_one_kernel_does():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), nn.BatchNorm(in_channels=4), nn.Activation("relu"), nn.Flatten())
    mx.random.seed(0)
    net.initialize(mx.init.Uniform(1))
    net[1].running_mean.set_data(nd.array([0.1, -0.2, 0.3, 0]))
    x = nd.array(np.random.default_rng(0).normal(size=(2, 3, 6, 6)))

    def apart():
        y = x
        for layer in net:
            y = layer(y)
        return y.asnumpy()

    def counts():
        net._at_once.clear()
        net(x)
        return [each.count for each in net._at_once.values() if each.count]

    assert counts() == [3]
    np.testing.assert_allclose(net(x).asnumpy(), apart(), rtol=1e-5, atol=1e-6)
    with autograd.train_mode():
        assert counts() == []
        np.testing.assert_array_equal(net(x).asnumpy(), apart())
    copied = copy.deepcopy(net)
    net[0].weight.data()[:] = 0
    assert copied(x).asnumpy().any()
    seen = []
    net[1].register_forward_hook(lambda block, x, y: seen.append(y.shape))
    assert counts() == []
    assert seen == [(2, 4, 4, 4)]
    wide = x.astype("float64")
    net.cast("float64")
    assert net(wide).dtype == np.float64


def test_layers_that_one_kernel_does_are_bound_to_their_arrays():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.Activation("relu"))
    net.initialize(mx.init.Uniform(1))
    images = [nd.random.normal(shape=(1, 3, 40, 40)) for _ in range(2)]

    def matches(x):
        executor = net(mx.sym.var("data")).simple_bind(mx.cpu(), grad_req="null", data=x.shape)
        values = {name: each.data() for name, each in net.collect_params().items()}
        executor.copy_params_from(values, values, allow_extra_params=True)
        expected = executor.forward(data=x)[0].asnumpy()
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)

    for _ in range(3):
        net(images[0])
    bound = net._at_once[0]._call._run
    assert bound is not None
    images[0][:] = images[1]
    net[0].weight.data()[:] *= 2
    net[1].running_mean.set_data(nd.ones(8))
    matches(images[0])
    assert net._at_once[0]._call._run is bound
    results = [net(images[0]) for _ in range(3)]  # in memory of their own
    results[0][:] = 0
    np.testing.assert_array_equal(results[1].asnumpy(), results[2].asnumpy())
    assert results[1].asnumpy().any()
    net[1].gamma.initialize(mx.init.Constant(3), force_reinit=True)
    for x in images:
        matches(x)
        matches(x)
    call = weakref.ref(net._at_once[0]._call)
    net[0].weight.initialize(mx.init.One(), force_reinit=True)
    matches(images[0])
    gc.collect()
    assert call() is None  # nor does anything else hold the weight of before
    net[0]._kwargs["pad"] = (1, 1)
    matches(images[0])
    net[0]._kwargs["pad"] = (0, 0)
    matches(nd.random.normal(shape=(2, 3, 20, 30)))


def test_a_sequence_of_hybrid_blocks_is_better_a_hybrid_one():
    net = nn.Sequential(prefix="a_")
    net.add(nn.Dense(2))
    with pytest.warns(UserWarning, match="layer 'a_' are HybridBlocks. Consider using HybridSequential"):
        net.hybridize()


def test_arguments_of_layers_are_told():
    assert str(inspect.signature(nn.AvgPool1D)) == (
        "(pool_size=2, strides=None, padding=0, ceil_mode=False, layout='NCW', count_include_pad=True, **kwargs)"
    )
    assert list(inspect.signature(nn.Conv2DTranspose).parameters)[:5] == [
        *("channels", "kernel_size", "strides", "padding", "output_padding")
    ]
    with pytest.raises(TypeError, match="missing a required argument: 'channels'"):
        nn.Conv2D()
    with pytest.raises(TypeError, match="too many positional arguments"):
        nn.GlobalAvgPool2D("NCHW", 3)
    with pytest.raises(TypeError, match="Conv2D: unknown parameter 'stride'; did you mean 'strides'"):
        nn.Conv2D(3, 3, stride=2)

    class Mine(nn.Conv2D):
        def __init__(self, channels):
            super().__init__(channels, 3, padding=1, prefix="mine_")

    assert Mine(4).weight.name == "mine_weight"


def test_arrays_are_reset():
    arrays = [mx.nd.ones((2,)), mx.nd.ones((3, 2))]
    mx.nd.reset_arrays(*arrays, num_arrays=2)
    assert [float(each.sum().asscalar()) for each in arrays] == [0, 0]


@pytest.mark.parametrize("kvstore", [None, "local"])
def test_training_goes_on_from_saved_states_as_without_a_stop(tmp_path, kvstore):
    """Adam's step depends on how often it was made."""
    file = str(tmp_path / "states")

    def trained(stops_at):
        net = dense(1, in_units=2)
        trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=kvstore)
        for step in range(4):
            if step == stops_at:
                trainer.save_states(file)
                trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=kvstore)
                trainer.load_states(file)
            with autograd.record():
                loss = net(nd.array([[1, 2]])) ** 2 * (1 + step)
            loss.backward()
            trainer.step(1)
        return net.weight.data().asnumpy().tolist()

    assert trained(stops_at=2) == trained(stops_at=None)


@pytest.mark.parametrize("kvstore", [None, "local"])
def test_saved_states_hold_the_learning_rate_that_was_set(tmp_path, kvstore):
    file, net = str(tmp_path / "states"), dense(1, in_units=2)
    trainers = [gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore) for _ in range(2)]
    trainers[0].set_learning_rate(np.float32(0.5))
    trainers[0].save_states(file)
    trainers[1].load_states(file)
    assert trainers[1].learning_rate == 0.5
    scheduler = mx.lr_scheduler.FactorScheduler(2, base_lr=0.25)  # decides itself
    other = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": scheduler}, kvstore)
    other.save_states(file)
    other.load_states(file)
    assert other.learning_rate == 0.25


def test_what_holds_nothing_is_printed_with_an_empty_line():
    assert repr(gluon.nn.HybridSequential()) == "HybridSequential(\n\n)"
    assert repr(gluon.ParameterDict("net_")) == "net_ (\n\n)"


def test_a_symbol_block_has_parameters_of_the_dtype_that_its_input_says():
    wide = mx.sym.var("data", dtype="float64")
    block = gluon.SymbolBlock(mx.sym.BatchNorm(mx.sym.FullyConnected(wide, num_hidden=2)), wide)
    assert {np.dtype(each.dtype).name for each in block.collect_params().values()} == {"float64"}
    block.initialize()
    assert block(nd.zeros((1, 3), dtype="float64")).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_network_of_another_dtype_is_imported(tmp_path, dtype):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 1), nn.BatchNorm(), nn.Dense(2))
    net.initialize()
    net.cast(dtype)
    net.hybridize()
    x = nd.array(np.arange(8).reshape(1, 2, 2, 2), dtype=dtype)
    expected = net(x).asnumpy()
    graph, params = net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(graph, "data", params)
    result = block(x).asnumpy()
    assert result.dtype == np.dtype(dtype)
    assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("hybrid", [False, True])
def test_sampled_parameters_take_the_place_of_the_blocks_own(hybrid):
    """As Bayes by Backprop does: parameters are computed from others in each step."""
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2, activation="relu"), nn.Dense(1, in_units=2))
    net.initialize()
    if hybrid:
        net.hybridize()
        net(nd.ones((1, 2)))
    parameters = list(net.collect_params().values())
    means = [nd.full(each.shape, 0.5) for each in parameters]
    autograd.mark_variables(means, [nd.zeros(each.shape) for each in means])
    with autograd.record():
        for each, mean in zip(parameters, means, strict=True):
            each._data[0] = mean * 3
        out = net(nd.ones((1, 2)))
    out.backward()
    assert out.asscalar() == 15
    assert [np.unique(each.grad.asnumpy()).tolist() for each in means] == [[4.5], [4.5], [13.5], [3]]
    assert parameters[0]._data[0] is parameters[0].data()
    assert parameters[0]._ctx_map == ([], [0])  # by which MXFusion finds the array's place
    with pytest.raises(IndexError):
        parameters[0]._data[1]


class Choosing(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=2)

    def hybrid_forward(self, F, x, mask):
        return F.contrib.boolean_mask(self.dense(x), mask)


def test_a_hybrid_block_whose_shapes_follow_from_numbers():
    net = Choosing()
    net.initialize()
    x = nd.arange(6).reshape((3, 2))
    expected = net.dense(x).asnumpy()
    net.hybridize()
    for rows in ([1, 0, 1], [0, 0, 1]):
        found = net(x, nd.array(rows)).asnumpy()
        np.testing.assert_array_equal(found, expected[np.flatnonzero(rows)])


class Created(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        noise = F.random_normal(0, 0.0, shape=(2,), ctx=mx.cpu())
        return F.broadcast_add(x, F.ones((1,), ctx=mx.cpu(0))) + noise


def test_a_device_may_be_given_in_a_graph():
    net = Created()
    net.hybridize()
    assert net(nd.ones((2,))).asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize("remove", [True, False])
def test_an_exported_graph_has_casts_of_mixed_precision_where_that_is_asked_for(tmp_path, remove):
    net = nn.HybridLambda(lambda F, x: F.exp(F.amp_cast(x, dtype="float16")))
    net.hybridize()
    net(nd.ones((2,)))
    graph, _ = net.export(str(tmp_path / "net"), remove_amp_cast=remove)
    names = mx.sym.load(graph).get_internals().list_outputs()
    assert any("amp_cast" in name for name in names) is not remove
