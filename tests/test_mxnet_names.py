"""Names and arguments of MXNet 1.9.1 that scripts use now and then; expected values are MXNet's own."""

import numpy as np
import pytest

import roiops as mx
from roiops.gluon import nn


def test_slices_are_assigned():
    x = mx.nd.ones((3, 4))
    assert x.slice_assign(mx.nd.zeros((1, 2)), (0, 0), (1, 4), (None, 2)) is x
    assert x.slice_assign_scalar(5, (1,), (3,), ()) is x
    np.testing.assert_array_equal(x.asnumpy(), [[0, 1, 0, 1], [5, 5, 5, 5], [5, 5, 5, 5]])


def test_arguments_by_mxnets_names():
    assert mx.autograd.set_recording(is_recording=False) is False
    assert isinstance(mx.init.create(initializer="xavier"), mx.init.Xavier)
    assert isinstance(mx.optimizer.create(name="sgd", learning_rate=0.5), mx.optimizer.SGD)
    assert mx.optimizer.Optimizer.opt_registry["sgd"] is mx.optimizer.SGD
    assert mx.metric.create("pcc", has_global_stats=True).get()[0] == "pcc"
    assert mx.sym.var("a", lr_mult=2.0).list_attr(recursive=False)["__lr_mult__"] == "2.0"
    with pytest.raises(
        mx.MXNetError, match=r"recursive=True is not offered, nor by MXNet; use attr_dict\(\)"
    ):
        mx.sym.var("a").list_attr(recursive=True)


def test_methods_of_symbols():
    first, second = mx.sym.var("a").split_v2(2).eval(a=mx.nd.arange(4))
    assert (first.asnumpy().tolist(), second.asnumpy().tolist()) == ([0, 1], [2, 3])
    for name in ("as_in_context", "copy", "detach", "wait_to_read"):
        with pytest.raises(AttributeError, match=f"Symbol has no attribute '{name}': it holds no values; "):
            getattr(mx.sym.var("a"), name)
    with pytest.raises(AttributeError, match="'optimize_for': there are no backends; a graph is fused when"):
        mx.sym.var("a").optimize_for("MKLDNN")
    with pytest.raises(AttributeError, match="'as_np_ndarray': MXNet's NumPy interface is not offered; asn"):
        mx.nd.ones((2,)).as_np_ndarray()


def test_devices():
    assert mx.Context.devtype2str == {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    assert mx.Context.devstr2type[str(mx.cpu().device_type)] == mx.cpu().device_typeid
    mx.cpu().empty_cache()


@pytest.mark.parametrize("hybridised", [False, True])
def test_batch_norm_and_relu(hybridised):
    one, two = nn.BatchNormReLU(in_channels=3), nn.BatchNorm(in_channels=3)
    x = mx.nd.array(np.random.default_rng(0).normal(size=(2, 3, 4, 4)))
    for net in (one, two):
        net.initialize()
    one.hybridize(hybridised)
    assert one.prefix.startswith("batchnormrelu")
    with mx.autograd.record():
        made = one(x), mx.nd.relu(two(x))
    np.testing.assert_allclose(made[0].asnumpy(), made[1].asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(one.running_mean.data().asnumpy(), two.running_mean.data().asnumpy(), 1e-6)


def test_the_filler_of_fused_cells():
    assert mx.init.FusedRNN is mx.rnn.FusedRNN
    filler = mx.init.FusedRNN(mx.init.Constant(2), 3, 1, "gru")
    assert mx.init.create(filler.dumps()).dumps() == filler.dumps()
    with pytest.raises(TypeError, match="LSTMCell: unknown parameter 'forget_bais'; did you mean"):
        mx.rnn.LSTMCell(4, forget_bais=2)
