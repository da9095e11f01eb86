"""Modules: training as MXNet trains, checkpoints that resume exactly, shapes that change, mistakes."""

import json
import logging
from collections import namedtuple

import numpy as np
import pytest
from golden_files import GOLDEN, load

import roiops as mx
from roiops.errors import DataError, DeviceError, FormatError, GraphError, ParamError, ShapeError
from roiops.training.module.executor_group import split_batch

with np.load(GOLDEN / "optimizer" / "network.npz") as file:
    SYMBOLS = [case.get("symbol") for case in json.loads(str(file["meta"]))["cases"]]


@pytest.mark.parametrize("case", load("optimizer/network"), ids=str)
def test_twenty_steps_give_mxnets_weights(case):
    data, label = case["data"], case["label"]
    module = mx.mod.Module(mx.sym.load_json(SYMBOLS[case.index]))
    module.bind([("data", data.shape[1:])], [("softmax_label", label.shape[1:])])
    initial = {
        name.removeprefix("init_"): mx.nd.array(a) for name, a in case.arrays.items() if "init_" in name
    }
    states = module.symbol.list_auxiliary_states()
    module.init_params(
        arg_params={name: a for name, a in initial.items() if name not in states},
        aux_params={name: initial[name] for name in states},
    )
    params = dict(case.params)
    if "lr_scheduler" in params:
        kind, arguments = params["lr_scheduler"]
        params["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(**arguments)
    module.init_optimizer(optimizer=case.op, optimizer_params=params)
    # A bias before BatchNorm has no effect and so no gradient but rounding noise, which these rules blow up
    # to full steps. It, and the mean that takes it up, can only be compared where steps follow the gradient.
    noise = ("conv_bias", "bn_moving_mean") if case.op in ("adam", "rmsprop", "adagrad") else ()
    for step in range(1, 21):
        turn = (step - 1) % len(data)
        module.forward_backward(mx.io.DataBatch([data[turn]], [label[turn]]))
        module.update()
        if f"step{step}_fc_weight" not in case:
            continue
        args, aux = module.get_params()
        for name, value in {**args, **aux}.items():
            if name not in noise:
                np.testing.assert_allclose(
                    value.asnumpy(),
                    case[f"step{step}_{name}"],
                    rtol=1e-5,
                    atol=1e-5,
                    err_msg=f"{step} {name}",
                )


def classifier(hidden=8, classes=3):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=hidden, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def samples(count=60, seed=0):
    """Three clouds of points."""
    generator = np.random.default_rng(seed)
    label = generator.integers(0, 3, count)
    return (np.eye(4)[label] * 2 + generator.normal(size=(count, 4)) * 0.3).astype(np.float32), label


def iterator(batch_size=10, **options):
    return mx.io.NDArrayIter(*samples(), batch_size=batch_size, **options)


def bound(symbol=None, batch_size=10, **options):
    mx.random.seed(0)
    module = mx.mod.Module(symbol or classifier())
    module.bind([("data", (batch_size, 4))], [("softmax_label", (batch_size,))], **options)
    module.init_params(mx.init.Xavier())
    return module


def test_fit_learns_score_and_predict_agree(caplog):
    caplog.set_level("INFO")
    mx.random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (what shuffles)
    module = mx.mod.Module(classifier())
    heard = []
    module.fit(
        iterator(shuffle=True),
        eval_data=iterator(),
        eval_metric=["acc", "ce"],
        optimizer="adam",
        optimizer_params={"learning_rate": 0.02},
        initializer=mx.init.Xavier(),
        num_epoch=8,
        batch_end_callback=[lambda p: heard.append((p.epoch, p.nbatch)), mx.callback.Speedometer(10, 3)],
        epoch_end_callback=lambda epoch, sym, arg, aux: heard.append(sorted(arg)),
        eval_end_callback=mx.callback.LogValidationMetricsCallback(),
    )
    assert heard[:7] == [(0, i) for i in range(6)] + [["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]]
    assert "Epoch[7] Train-accuracy=" in caplog.text
    assert "Epoch[7] Validation-cross-entropy=" in caplog.text
    assert "Batch [0-3]\tSpeed: " in caplog.text
    accuracy = dict(module.score(iterator(), "acc"))["accuracy"]
    assert accuracy > 0.95
    data, label = samples()
    # 60 samples in batches of 16 leave padding, which must not come back.
    predicted = module.predict(mx.io.NDArrayIter(data, label, batch_size=16))
    assert predicted.shape == (60, 3)
    assert (predicted.asnumpy().argmax(1) == label).mean() == accuracy
    parts = module.predict(iterator(), merge_batches=False, num_batch=2)
    assert [[x.shape for x in part] for part in parts] == [[(10, 3)], [(10, 3)]]
    assert isinstance(module.predict(iterator(), always_output_list=True), list)
    # Products of 4 rows and of 16 add in different orders: some units in the last place of the logits.
    np.testing.assert_allclose(module.predict(data[:4]).asnumpy(), predicted.asnumpy()[:4], rtol=1e-5)


@pytest.mark.parametrize("prefetch", [False, True])
def test_resuming_is_bit_identical(tmp_path, prefetch):
    """Four epochs at once, and two, a checkpoint, a new module and two more."""

    def data():
        return mx.io.PrefetchingIter(iterator()) if prefetch else iterator()

    def options():
        schedule = mx.lr_scheduler.FactorScheduler(step=7, factor=0.5, base_lr=0.02)
        return {"optimizer": "adam", "optimizer_params": {"lr_scheduler": schedule, "learning_rate": 0.02}}

    straight = bound()
    start = straight.get_params()
    straight.fit(data(), num_epoch=4, force_rebind=True, **options())
    first = bound()
    first.set_params(*start)
    prefix = str(tmp_path / "net")
    save = mx.callback.module_checkpoint(first, prefix, save_optimizer_states=True)
    first.fit(data(), num_epoch=2, force_rebind=True, epoch_end_callback=save, **options())
    second = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    second.fit(data(), num_epoch=4, begin_epoch=2, **options())
    for a, b in zip(straight.get_params(), second.get_params(), strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name].asnumpy(), b[name].asnumpy(), err_msg=name)


def test_fixed_parameters_stay():
    mx.random.seed(0)
    module = mx.mod.Module(classifier(), fixed_param_names=["fc1_weight"])
    module.bind([("data", (10, 4))], [("softmax_label", (10,))])
    module.init_params(mx.init.Xavier())
    before = module.get_params()[0]
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    module.forward_backward(iterator().next())
    module.update()
    after = module.get_params()[0]
    changed = [n for n in before if not np.array_equal(before[n].asnumpy(), after[n].asnumpy())]
    assert changed == ["fc1_bias", "fc2_weight", "fc2_bias"]


def test_names_that_derived_modules_read():
    module = mx.mod.Module(classifier(), context=TWO, fixed_param_names=["fc1_weight"])
    assert module._context == TWO
    assert module._fixed_param_names == ["fc1_weight"]
    assert module._arg_params is None
    module.bind([("data", (10, 4))], [("softmax_label", (10,))])
    module.init_params(mx.init.One())
    assert {name: array.shape for name, array in module._arg_params.items()} == {
        name: array.shape for name, array in module.get_params()[0].items()
    }
    assert module._aux_params == {}


def two_headed():
    left, right = mx.sym.Variable("left"), mx.sym.Variable("right")
    joined = mx.sym.Concat(left, right, dim=1)
    cls = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(joined, num_hidden=2, name="fc_cls"), name="cls")
    box = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(joined, num_hidden=1, name="fc_box"), name="box"
    )
    return mx.sym.Group([cls, box])


def test_several_inputs_and_labels_and_input_gradients():
    module = mx.mod.Module(two_headed(), ["left", "right"], ["cls_label", "box_label"])
    module.bind(
        [("right", (2, 3)), ("left", (2, 1))],  # in another order than data_names
        [("cls_label", (2,)), ("box_label", (2, 1))],
        inputs_need_grad=True,
    )
    module.init_params(mx.init.One())
    assert module.output_shapes == [("cls_output", (2, 2)), ("box_output", (2, 1))]
    left, right = np.ones((2, 1), np.float32), np.full((2, 3), 2, np.float32)
    module.forward(mx.io.DataBatch([right, left], [np.zeros(2), np.zeros((2, 1))]))
    assert module.get_outputs()[1].asnumpy().tolist() == [[7], [7]]
    module.backward()
    grads = module.get_input_grads()
    assert [g.shape for g in grads] == [(2, 3), (2, 1)]  # in the order of data_shapes
    assert grads[1].asnumpy().tolist() == [[7], [7]]  # p - label through a weight of 1; the classes cancel
    metric = mx.metric.MSE(output_names=["box_output"], label_names=["box_label"])
    module.update_metric(metric, [mx.nd.zeros((2,)), mx.nd.zeros((2, 1))])
    assert metric.get()[1] == 49


def test_an_output_that_is_no_loss_takes_its_gradient():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 2))], inputs_need_grad=True)
    module.init_params(mx.init.Constant(3))
    module.forward(mx.io.DataBatch([mx.nd.array([[1, 2]])]), is_train=True)
    module.backward([mx.nd.array([[2.0]])])
    assert module.get_input_grads()[0].asnumpy().tolist() == [[6, 6]]


def convnet():
    net = mx.sym.Convolution(mx.sym.Variable("data"), num_filter=2, kernel=(3, 3), pad=(1, 1), name="conv")
    net = mx.sym.Pooling(net, global_pool=True, pool_type="avg", kernel=(1, 1))
    return mx.sym.SoftmaxOutput(mx.sym.Flatten(net), name="softmax")


def test_inputs_of_changing_shape():
    """The parameters, their gradients and the optimizer stay; earlier shapes need no new binding."""
    mx.random.seed(0)
    module = mx.mod.Module(convnet())
    module.bind([("data", (2, 1, 6, 6))], [("softmax_label", (2,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    generator = np.random.default_rng(0)
    first = module._executor
    for shape in ((2, 1, 6, 6), (2, 1, 9, 5), (1, 1, 4, 4), (2, 1, 6, 6)):
        batch = mx.io.DataBatch([generator.normal(size=shape)], [np.zeros(shape[0])])
        before = module.get_params()[0]["conv_weight"].asnumpy()
        module.forward_backward(batch)
        module.update()
        assert module.get_outputs()[0].shape == (shape[0], 2)
        assert module.data_shapes[0].shape == shape
        assert not np.array_equal(module.get_params()[0]["conv_weight"].asnumpy(), before)
    assert module._executor is first
    module.forward(
        mx.io.DataBatch([np.zeros((3, 1, 8, 8))]), is_train=False
    )  # no labels: their shape follows
    assert module.get_outputs()[0].shape == (3, 2)


def test_many_shapes_do_not_fill_the_memory():
    module = mx.mod.Module(convnet())
    module.bind([("data", (1, 1, 4, 4))], [("softmax_label", (1,))])
    module.init_params(mx.init.One())
    for size in range(4, 24):
        module.forward(mx.io.DataBatch([np.ones((1, 1, size, size))], [np.zeros(1)]))
    assert len(module._groups) == 8
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), [[0.5, 0.5]])


def test_large_executors_are_not_kept(monkeypatch):
    """Parameters, gradients and momentum go on although no executor of another shape stays."""
    results = []
    for limit in (2**30, 0):
        monkeypatch.setattr("roiops.graph.memory._MOST_BYTES", limit)
        mx.random.seed(0)
        module = mx.mod.Module(convnet())
        module.bind([("data", (2, 1, 6, 6))], [("softmax_label", (2,))])
        module.init_params(mx.init.Xavier())
        module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
        generator = np.random.default_rng(0)
        for size in (6, 9, 6, 5):
            data = generator.normal(size=(2, 1, size, size))
            module.forward_backward(mx.io.DataBatch([data], [np.arange(2)]))
            module.update()
        assert len(module._groups) == (3 if limit else 1)
        results.append(module.get_params()[0]["conv_weight"].asnumpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("limit", [2**30, 0])
def test_a_parameter_may_not_depend_on_the_input_shape(monkeypatch, limit):
    """The batch is refused, and the module goes on with others."""
    monkeypatch.setattr("roiops.graph.memory._MOST_BYTES", limit)
    module = bound()
    good = iterator().next()
    module.forward(good)
    before = module.get_outputs()[0].asnumpy()
    batch = mx.io.DataBatch([np.zeros((10, 5))], [np.zeros(10)])
    with pytest.raises(ShapeError, match=r"fc1_weight would have shape \(8, 5\), it has \(8, 4\)"):
        module.forward(batch)
    with pytest.raises(GraphError, match=r"Module.get_outputs: the last forward\(\) failed"):
        module.get_outputs()
    module.forward(good)
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), before)


def test_binding_anew_keeps_parameters():
    module = bound()
    before = module.get_params()[0]
    module.bind([("data", (3, 4))], for_training=False, force_rebind=True)
    module.forward(mx.io.DataBatch([np.zeros((3, 4))]))
    after = module.get_params()[0]
    assert all(np.array_equal(before[n].asnumpy(), after[n].asnumpy()) for n in before)
    assert module.label_shapes is None


def test_get_params_are_copies():
    module = bound()
    module.get_params()[0]["fc2_bias"][:] = 5
    assert module.get_params()[0]["fc2_bias"].asnumpy().tolist() == [0, 0, 0]


def test_parameters_file(tmp_path):
    one, other = bound(), bound()
    other.init_params(mx.init.Zero(), force_init=True)
    one.save_params(str(tmp_path / "a.params"))
    other.load_params(str(tmp_path / "a.params"))
    a, b = one.get_params()[0], other.get_params()[0]
    assert all(np.array_equal(a[n].asnumpy(), b[n].asnumpy()) for n in a)


def test_missing_and_surplus_parameters_are_listed_at_once():
    module = bound()
    args, aux = module.get_params()
    wrong = {name.replace("fc2_weight", "fc2_weigth"): a for name, a in args.items() if name != "fc1_bias"}
    with pytest.raises(ParamError) as error:
        module.set_params(wrong, aux)
    text = str(error.value)
    assert text.startswith("Module.init_params: arg_params lacks fc1_bias")
    assert "lacks fc2_weight; did you mean 'fc2_weigth'" in text
    assert "has fc2_weigth, which the network does not; did you mean 'fc2_weight'" in text
    with pytest.raises(ParamError, match="arg_params has fc2_weigth, which the network does not"):
        module.set_params(wrong, aux, allow_missing=True)
    module.set_params(wrong, aux, allow_missing=True, allow_extra=True)
    module.init_params(mx.init.One(), wrong, aux, allow_missing=True, force_init=True, allow_extra=True)
    assert module.get_params()[0]["fc2_weight"].asnumpy().min() == 1
    with pytest.raises(ShapeError, match=r"fc1_bias of arg_params must have shape \(8,\), got \(2,\)"):
        module.set_params({**args, "fc1_bias": mx.nd.zeros((2,))}, aux)


def test_parameters_of_another_networks_head_are_passed_over():
    """As MXNet 1.9.1 does: scripts hand `fit` all that a pretrained network has, to train a new head."""
    module = bound()
    args, aux = module.get_params()
    more = {**args, "fc7_weight": mx.nd.ones((2, 2))}
    module.init_params(mx.init.One(), more, aux, force_init=True)
    module.set_params(more, aux)
    del more["fc2_weight"]
    module.init_params(mx.init.One(), more, aux, allow_missing=True, force_init=True)
    assert module.get_params()[0]["fc2_weight"].asnumpy().min() == 1


def test_gradients_add_up():
    module = bound(grad_req="add")
    batch = iterator().next()
    once = {}
    for count in (1, 2):
        module.forward_backward(batch)
        grad = module._executor.grad_dict["fc2_weight"].asnumpy()
        once.setdefault("grad", grad)
        np.testing.assert_allclose(grad, once["grad"] * count, rtol=1e-6)


def test_monitor_sees_values_and_gradients(caplog):
    caplog.set_level("INFO")
    monitor = mx.mon.Monitor(2, pattern="fc2.*", sort=True)
    module = mx.mod.Module(classifier())
    module.fit(iterator(), num_epoch=1, monitor=monitor)
    lines = [r.message.split() for r in caplog.records if r.message.startswith("Batch:")]
    assert [name for _, _, name, _ in lines[:5]] == [
        "fc2_backward_output0",
        "fc2_backward_output1",
        "fc2_backward_output2",
        "fc2_bias",
        "fc2_output",
    ]
    assert len(lines) == 18  # six of every second of six batches
    module.install_monitor(mx.mon.Monitor(1, stat_func=lambda x: x.size, monitor_all=True))
    module.forward(iterator().next())


def bucket(key):
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(mx.sym.Reshape(data, shape=(-1, 2)), num_hidden=3, name="fc")
    net = mx.sym.Reshape(net, shape=(-1, key, 3))
    return mx.sym.SoftmaxOutput(mx.sym.sum(net, axis=1), name="softmax"), ("data",), ("softmax_label",)


def test_buckets_share_parameters_and_optimizer():
    module = mx.mod.BucketingModule(bucket, default_bucket_key=4)
    module.bind([("data", (5, 4, 2))], [("softmax_label", (5,))])
    module.init_params(mx.init.One())
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    for key in (4, 2, 3, 2):
        before = module.get_params()[0]["fc_weight"].asnumpy()
        data = np.random.default_rng(key).normal(size=(5, key, 2))
        batch = mx.io.DataBatch(
            [data],
            [np.arange(5) % 3],
            bucket_key=key,
            provide_data=[("data", data.shape)],
            provide_label=[("softmax_label", (5,))],
        )
        module.forward_backward(batch)
        module.update()
        assert module.get_outputs()[0].shape == (5, 3)
        assert not np.array_equal(module.get_params()[0]["fc_weight"].asnumpy(), before)
    assert module._buckets[4]._optimizer.num_update == 4
    metric = mx.metric.create("acc")
    module.update_metric(metric, batch.label)
    assert metric.num_inst == 5


def test_a_bucket_of_before_takes_the_new_optimizer():
    module = mx.mod.BucketingModule(bucket, default_bucket_key=4)
    module.bind([("data", (1, 4, 2))], [("softmax_label", (1,))])
    module.init_params(mx.init.One())
    shapes = {"provide_data": [("data", (1, 2, 2))], "provide_label": [("softmax_label", (1,))]}
    batch = mx.io.DataBatch([mx.nd.ones((1, 2, 2))], [mx.nd.zeros((1,))], bucket_key=2, **shapes)
    module.forward(batch, is_train=False)
    steps = []
    for rate in (0.1, 0.2):
        module.init_params(mx.init.One(), force_init=True)
        module.init_optimizer(optimizer_params={"learning_rate": rate}, force_init=True)
        module.forward_backward(batch)
        module.update()
        steps.append(module.get_params()[0]["fc_weight"].asnumpy() - 1)
    assert steps[0].any()
    np.testing.assert_allclose(steps[1], 2 * steps[0], rtol=1e-5)


@pytest.mark.parametrize("buckets", [False, True])
def test_states_are_set_not_trained(buckets):
    state = mx.sym.Variable("state")
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("data") + state, name="softmax")
    if buckets:
        named = (net, ["data"], ["softmax_label"])
        module = mx.mod.BucketingModule(lambda key: named, 1, state_names=["state"])
    else:
        module = mx.mod.Module(net, state_names=["state"])
    module.bind([("data", (1, 2))], [("softmax_label", (1,))])
    module.init_params()
    module.set_states(value=3)
    assert module.get_states()[0].asnumpy().tolist() == [[3, 3]]
    module.set_states([mx.nd.array([[1, 2]])])
    assert module.get_states()[0].asnumpy().tolist() == [[1, 2]]


def test_calls_out_of_order():
    module = mx.mod.Module(classifier())
    batch = iterator().next()
    with pytest.raises(GraphError, match=r"Module.forward: call bind\(\) first"):
        module.forward(batch)
    with pytest.raises(GraphError, match=r"Module.get_params: call init_params\(\) first"):
        module.get_params()
    module.bind([("data", (10, 4))], [("softmax_label", (10,))])
    with pytest.raises(GraphError, match=r"Module.forward: call init_params\(\) first"):
        module.forward(batch)
    module.init_params()
    module.forward(batch)
    with pytest.raises(GraphError, match=r"Module.update: call init_optimizer\(\) first"):
        module.update()
    with pytest.raises(GraphError, match=r"Module.get_input_grads: bind with inputs_need_grad=True"):
        module.get_input_grads()
    with pytest.raises(DataError, match="fit: num_epoch must be given"):
        module.fit(iterator())


def test_doing_things_twice_is_said(caplog):
    module = bound()
    module.bind([("data", (10, 4))])
    assert "Already bound, ignoring bind()" in caplog.text
    with pytest.warns(UserWarning, match="parameters are initialized and force_init is False; call ignored"):
        module.init_params()
    module.init_optimizer()
    module.init_optimizer()
    assert "optimizer already initialized" in caplog.text


def test_mistakes_in_names_and_devices():
    with pytest.raises(GraphError, match=r"'dat' of data_names is not an argument .*did you mean 'data'"):
        mx.mod.Module(classifier(), data_names=["dat"])
    with pytest.warns(UserWarning, match="'label' of label_names is not an argument of the symbol"):
        mx.mod.Module(classifier(), label_names=["label"])
    with pytest.raises(GraphError, match="'fc9_weight' of fixed_param_names is not an argument"):
        mx.mod.Module(classifier(), fixed_param_names=["fc9_weight"])
    with pytest.raises(DeviceError, match=r"gradients are not compressed, got compression_params=\{'type'"):
        mx.mod.Module(classifier(), compression_params={"type": "2bit"})
    module = mx.mod.Module(classifier(), context=[mx.cpu(0)], group2ctxs={"a": mx.cpu(), "b": [mx.cpu(0)]})
    with pytest.raises(GraphError, match=r"data_shapes are of \['image'\], data_names are \['data'\]"):
        module.bind([("image", (1, 4))])
    with pytest.warns(UserWarning, match=r"label_shapes are of \['label'\], label_names are"):
        module.bind([("data", (1, 4))], [("label", (1,))])
    module.init_params()
    with pytest.raises(DataError, match=r"Module.forward: 2 inputs for data_names \['data'\]"):
        module.forward(mx.io.DataBatch([np.zeros((1, 4))] * 2))
    for wrong in (np.zeros((1, 4)), mx.nd.zeros((1, 4)), [mx.nd.zeros((1, 4))]):
        with pytest.raises(
            TypeError, match=r"data_batch must be a batch such as mx.io.DataBatch\(.* (?i:got .*array)"
        ):
            module.forward(wrong)
    with pytest.raises(TypeError, match=r"initializer must be one such as mx.init.Xavier\(\), got 'xavier'"):
        module.init_params("xavier", force_init=True)
    with pytest.raises(DataError, match=r"shapes must be a list of \(name, shape\) .*got {'data': \(1, 4\)}"):
        mx.mod.Module(classifier()).bind({"data": (1, 4)})
    with pytest.raises(DeviceError, match="there is no 'dist_async' store"):
        module.init_optimizer(kvstore="dist_async")
    with pytest.raises(GraphError, match="inputs_need_grad needs for_training"):
        mx.mod.Module(classifier()).bind([("data", (1, 4))], for_training=False, inputs_need_grad=True)
    with pytest.warns(UserWarning, match="the optimizer has rescale_grad 1.0, 1 / batch size is 0.1"):
        bound().init_optimizer(optimizer=mx.optimizer.SGD())


# -- several devices -------------------------------------------------------------------------------------

TWO = [mx.cpu(0), mx.cpu(1)]


def trained(contexts, steps=4, **options):
    """A module after some steps on batches that a fixed seed gives."""
    rng = np.random.default_rng(3)
    module = mx.mod.Module(classifier(), context=contexts, work_load_list=options.pop("work_load_list", None))
    module.bind([("data", (6, 4))], [("softmax_label", (6,))])
    mx.random.seed(2)
    module.init_params(mx.init.Uniform(0.5))
    module.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9}, **options)
    for _ in range(steps):
        data, label = rng.standard_normal((6, 4)), rng.integers(0, 2, 6)
        module.forward_backward(mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(label)]))
        module.update()
    return module


def test_devices_of_buckets_take_parts_of_unequal_size():
    module = mx.mod.BucketingModule(bucket, 4, context=TWO, work_load_list=[2, 1])
    module.bind([("data", (6, 4, 2))], [("softmax_label", (6,))])
    assert module._curr_module._exec_group.slices == [slice(0, 4), slice(4, 6)]


@pytest.mark.parametrize(
    "options",
    [{"kvstore": "local"}, {"kvstore": "device"}, {"work_load_list": [2, 1]}, {"kvstore": "teststore"}],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_two_devices_train_as_one_does(options):
    one, two = trained(mx.cpu()), trained(TWO, **options)
    for name, value in one.get_params()[0].items():
        np.testing.assert_allclose(two.get_params()[0][name].asnumpy(), value.asnumpy(), rtol=1e-5, atol=1e-6)
    assert two._update_on_kvstore == (options.get("kvstore") != "teststore")
    rows = [each.stop - each.start for each in two._exec_group.slices]
    assert rows == ([4, 2] if "work_load_list" in options else [3, 3])
    np.testing.assert_allclose(two.get_outputs()[0].asnumpy(), one.get_outputs()[0].asnumpy(), rtol=1e-5)
    (parts,) = two.get_outputs(merge_multi_context=False)
    assert [part.context for part in parts] == TWO
    assert [part.shape[0] for part in parts] == rows
    assert two.output_shapes == one.output_shapes == [(two.output_names[0], two.get_outputs()[0].shape)]


def test_the_environment_takes_the_optimizer_out_of_the_store(monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    module, one = trained(TWO), trained(mx.cpu())
    assert not module._update_on_kvstore
    assert len(module._updater.states) == 2 * len(module._param_names)  # each device has states of its own
    for name, value in one.get_params()[0].items():
        np.testing.assert_allclose(
            module.get_params()[0][name].asnumpy(), value.asnumpy(), rtol=1e-5, atol=1e-6
        )


def test_without_a_store_devices_part_ways():
    first, second = trained(TWO, kvstore=None)._exec_group.execs
    assert not np.allclose(first.arg_dict["fc1_weight"].asnumpy(), second.arg_dict["fc1_weight"].asnumpy())


def test_metrics_and_head_gradients_are_sliced_too():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    module = mx.mod.Module(net, label_names=None, context=TWO)
    module.bind([("data", (4, 1))], inputs_need_grad=True)
    module.init_params(mx.init.One())
    module.forward(mx.io.DataBatch([np.array([[1], [2], [3], [4]])]))
    module.backward([mx.nd.array([[1], [10], [100], [1000]])])
    assert module.get_input_grads()[0].asnumpy().ravel().tolist() == [1, 10, 100, 1000]
    grads = [each.grad_dict["fc_weight"].asscalar() for each in module._exec_group.execs]
    assert grads == [1 + 20, 300 + 4000]
    metric = mx.metric.Accuracy()
    module = trained(TWO, 1)
    module.update_metric(metric, [mx.nd.zeros((6,))])
    assert metric.num_inst == 6
    value = metric.get()
    metric.reset()
    module.update_metric(metric, [[mx.nd.zeros((3,))], [mx.nd.zeros((3,))]], pre_sliced=True)
    assert (metric.num_inst, metric.get()) == (6, value)


def test_a_batch_for_each_device():
    module = trained(TWO, 0)
    batches = [mx.io.DataBatch([mx.nd.ones((3, 4)) * k], [mx.nd.zeros((3,))]) for k in (1, 2)]
    module.forward(batches)
    fed = [each.arg_dict["data"].asnumpy()[0, 0] for each in module._exec_group.execs]
    assert fed == [1, 2]
    with pytest.raises(DataError, match=r"Module.forward: 3 batches for 2 contexts"):
        module.forward([*batches, batches[0]])


@pytest.mark.parametrize(
    ("size", "loads", "ends"),
    [(7, [1, 1, 1], [2, 4, 7]), (8, [1, 1, 1], [3, 6, 8]), (10, [3, 1, 1], [6, 8, 10])],
)
def test_rows_of_devices_as_in_mxnet(size, loads, ends):
    assert [each.stop for each in split_batch(size, loads)] == ends


def test_a_batch_too_small_for_its_devices():
    with pytest.raises(DataError, match="a batch of 1 is too small for 2 devices"):
        mx.mod.Module(classifier(), context=TWO).bind([("data", (1, 4))], [("softmax_label", (1,))])


def test_states_file_of_another_optimizer(tmp_path):
    module = bound()
    module.init_optimizer(optimizer="adam")
    module.save_checkpoint(str(tmp_path / "net"), 1, save_optimizer_states=True)
    other = mx.mod.Module.load(str(tmp_path / "net"), 1, load_optimizer_states=True)
    other.bind([("data", (10, 4))], [("softmax_label", (10,))])
    with pytest.raises(FormatError, match="made by Adam, but the optimizer is SGD"):
        other.init_optimizer(optimizer="sgd")


def test_a_batch_is_anything_with_data():
    """The idiom of MXNet's inference examples."""
    batch = namedtuple("Batch", ["data"])
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("data") * 2, name="softmax")
    module = mx.mod.Module(net, label_names=["softmax_label"])
    module.bind([("data", (1, 4))], [("softmax_label", (1,))], for_training=False)
    module.init_params()
    for shape in ((1, 4), (3, 5)):
        module.forward(batch([mx.nd.ones(shape)]))
        np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), np.full(shape, 1 / shape[1]), rtol=1e-6)


def test_bucketing_module_saves_and_loads_all_its_networks(tmp_path):
    def bucket(length):
        data = mx.sym.Variable("data")
        net = mx.sym.FullyConnected(mx.sym.sum(data, axis=1), num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    def batch(length):
        shapes = [("data", (2, length, 3))], [("softmax_label", (2,))]
        arrays = [mx.nd.ones(shape) for _, shape in (shapes[0][0], shapes[1][0])]
        return mx.io.DataBatch([arrays[0]], [arrays[1]], 0, None, length, *shapes)

    module = mx.mod.BucketingModule(bucket, default_bucket_key=4)
    module.bind([("data", (2, 4, 3))], [("softmax_label", (2,))])
    module.init_params(mx.init.Uniform(1))
    module.forward(batch(3), is_train=False)
    module.save_checkpoint(str(tmp_path / "m"), 2)
    assert {p.name for p in tmp_path.iterdir()} == {
        "m-0002.params", "m-3-symbol.json", "m-4-symbol.json", "m.buckets",
    }  # fmt: skip
    again = mx.mod.BucketingModule.load(str(tmp_path / "m"), 2, bucket, default_bucket_key=4)
    again.bind([("data", (2, 4, 3))], [("softmax_label", (2,))])
    for length in (4, 3):
        module.forward(batch(length), is_train=False)
        again.forward(batch(length), is_train=False)
        outputs = [m.get_outputs()[0].asnumpy() for m in (module, again)]
        np.testing.assert_array_equal(*outputs)
    with pytest.raises(mx.base.MXNetError, match="sym_gen must be given to load a module"):
        mx.mod.BucketingModule.load(str(tmp_path / "m"), 2, default_bucket_key=4)


def test_bucketing_module_saves_only_keys_that_are_numbers(tmp_path):
    def bucket(key):
        return mx.sym.identity(mx.sym.Variable("data")), ("data",), ()

    module = mx.mod.BucketingModule(bucket, default_bucket_key="long")
    module.bind([("data", (2, 3))], for_training=False)
    module.init_params()
    with pytest.raises(mx.base.MXNetError, match="keys must be whole numbers, got 'long'"):
        module.save_checkpoint(str(tmp_path / "m"), 0)


def test_a_monitor_stays_when_other_shapes_come():
    seen = []
    module = mx.mod.Module(mx.sym.relu(mx.sym.Variable("data"), name="act"), label_names=None)
    module.bind([("data", (1, 3))], for_training=False)
    module.init_params()
    module._exec_group.execs[0].set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 4))]), is_train=False)
    assert seen == [("act_output", (2, 4))]


def dense():
    data = mx.sym.Variable("data")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), name="softmax")


def test_fit_without_labels_says_so():
    batches = mx.io.NDArrayIter(np.ones((8, 4)), batch_size=4)
    loss = mx.metric.CustomMetric(lambda label, pred: 0.0, allow_extra_outputs=True)
    with pytest.warns(UserWarning, match="fit: train_data gives no labels for softmax_label, which stay 0"):
        mx.mod.Module(dense()).fit(batches, eval_metric=loss, num_epoch=1)


def test_fit_and_bind_say_what_they_take():
    with pytest.raises(
        mx.MXNetError, match=r"train_data must be a DataIter, got ndarray; mx\.io\.NDArrayIter"
    ):
        mx.mod.Module(dense()).fit(np.ones((8, 4)), num_epoch=1)
    with pytest.raises(
        mx.MXNetError, match=r"must be a list of \(name, shape\) or of DataDesc, got \[\(4, 4\)\]"
    ):
        mx.mod.Module(dense()).bind([(4, 4)])


def test_a_monitor_looks_at_the_executor_for_the_shapes_at_hand():
    net = mx.sym.Pooling(
        mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=2), global_pool=True
    )
    module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.Flatten(net), name="softmax"))
    module.bind([("data", (2, 3, 8, 8))], [("softmax_label", (2,))])
    module.init_params()
    monitor = mx.mon.Monitor(1)
    module.install_monitor(monitor)
    counts = []
    for size in (8, 9, 10, 8, 11):
        monitor.tic()
        batch = mx.io.DataBatch([mx.nd.ones((2, 3, size, 8))], [mx.nd.zeros((2,))])
        module.forward(batch, is_train=True)
        module.backward()
        counts.append(len(monitor.toc()))
        assert monitor.exes == module._group.execs
    assert len(set(counts)) == 1


class OwnMetric(mx.metric.EvalMetric):
    """As repositories write them: without sums of the whole epoch."""

    def __init__(self):
        super().__init__("mine")

    def update(self, labels, preds):
        self.sum_metric += 1
        self.num_inst += 2


def test_the_metric_of_an_epoch_is_read_before_a_callback_resets_it(caplog):
    data = mx.io.NDArrayIter(np.ones((8, 3), np.float32), np.zeros(8, np.float32), 2)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    with caplog.at_level(logging.INFO):
        mx.mod.Module(net).fit(
            data,
            eval_metric=OwnMetric(),
            num_epoch=1,
            batch_end_callback=lambda each: each.eval_metric.reset_local(),
        )
    assert "Epoch[0] Train-mine=0.500000" in caplog.messages
