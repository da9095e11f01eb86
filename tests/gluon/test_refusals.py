"""What is not offered says so by name, and what to do instead."""

import pytest

import roiops as mx
from roiops import gluon
from roiops.errors import MXNetError, ParamError, RegistryError


def test_gradients_of_gradients():
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
    with pytest.raises(
        MXNetError, match=r"create_graph=True asks for gradients of gradients, which are not "
    ):
        mx.autograd.grad(y, x, create_graph=True)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mx.nd.ones((2,)).attach_grad(stype="row_sparse"), "since gradients are dense here"),
        (lambda: gluon.nn.Embedding(3, 4, sparse_grad=True), "sparse_grad=True is not offered.*leave it out"),
        (lambda: gluon.Parameter("w", shape=(2,), stype="row_sparse"), "stype='row_sparse' is not offered"),
        (lambda: gluon.Parameter("w", shape=(2,), grad_stype="csr"), "grad_stype='csr' is not offered"),
        (lambda: gluon.contrib.nn.SparseEmbedding(3, 4), "is not offered, .*; use nn.Embedding"),
    ],
)
def test_sparse_gradients(make, text):
    with pytest.raises(ParamError, match=text):
        make()


def test_mixed_precision():
    with pytest.raises(
        AttributeError, match=r"mx.contrib.amp.init: automatic mixed precision is not offered; "
    ):
        mx.contrib.amp.init()
    assert mx.contrib.amp.amp is mx.contrib.amp  # from mxnet.contrib.amp import amp


def test_quantisation():
    with pytest.raises(
        AttributeError, match=r"mx.contrib.quantization.quantize_model: quantisation is not off"
    ):
        mx.contrib.quantization.quantize_model(None)
    graph = mx.sym.load_json(
        '{"nodes": [{"op": "null", "name": "a", "inputs": []}, {"op": "_contrib_quantize_v2", "name": "q", '
        '"inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]]}'
    )
    text = r"'contrib.quantize_v2' is not registered: quantisation is not offered; run the network that was"
    with pytest.raises(RegistryError, match=text):
        graph.bind(mx.cpu(), {"a": mx.nd.ones((2,))})


def test_the_numpy_interface():
    with pytest.raises(AttributeError, match=r"roiops.np: roiops has no np: arrays are those of mxnet.nd"):
        mx.np.ones((2,))
    with pytest.raises(AttributeError, match=r"roiops.npx: roiops has no npx: arrays are those of mxnet.nd"):
        mx.npx.relu(None)


def test_downloads():
    for make in (
        lambda: gluon.model_zoo.vision.resnet18_v1(pretrained=True),
        lambda: gluon.model_zoo.vision.get_resnet(1, 18, pretrained=True),
    ):
        with pytest.raises(
            ValueError, match="pretrained=True would download parameters, which is not done here"
        ):
            make()
    with pytest.raises(RuntimeError, match="nothing is downloaded here; fetch x by other means"):
        gluon.utils.download("x")
