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


def dense():
    return gluon.nn.Dense(3)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: mx.nd.contrib.fft,
            "'contrib.fft' is not registered: compute it with NumPy, or write an mx.o",
        ),
        (
            lambda: mx.sym.contrib.dgl_subgraph,
            "'contrib.dgl_subgraph' is not registered: compute it with Num",
        ),
        (
            lambda: mx.sym.sgd_mom_update,
            "registered: mx.optimizer updates weights, mx.nd.sgd_update and its kin",
        ),
        (lambda: mx.nd.contrib.SparseEmbedding, "registered: gradients are dense here; use Embedding"),
        (lambda: mx.nd.imdecode, "'imdecode' is not registered: mx.image reads, resizes and pads pictures"),
        (lambda: mx.nd._internal._set_value, r"registered: x\[:\] = value, x\[i\] = value, x.copyto"),
        (
            lambda: mx.optimizer.LARS,
            "mx.optimizer.LARS is not offered: use LAMB, or SGD with the warm-up of mx.",
        ),
        (
            lambda: mx.optimizer.create("groupadagrad"),
            "optimizer: 'groupadagrad' is not offered: use AdaGrad",
        ),
        (lambda: mx.kv.KVStoreServer, "mx.kvstore.KVStoreServer is not offered: .*; mpiexec starts them"),
        (
            lambda: mx.util.use_np,
            "mx.util.use_np is not offered: MXNet's NumPy interface is not here; arrays a",
        ),
        (lambda: mx.use_np, "roiops has no use_np: arrays are those of mxnet.nd"),
        (
            lambda: mx.onnx,
            "roiops has no onnx: `roiops convert` and roiops.models.to_onnx write ONNX files; n",
        ),
        (
            lambda: mx.library,
            "roiops has no library: .* operators of one's own are Python, as mxnet.operator.C",
        ),
        (lambda: mx.context.gpu_memory_info, "mx.context.gpu_memory_info is not offered: nvidia-smi tells"),
        (
            lambda: mx.registry.get_register_func,
            "is not offered: a dict of classes by name does what they do",
        ),
        (lambda: mx.rnn.rnn_unroll, r"mx.rnn.rnn_unroll is not offered: call cell.unroll\(...\)"),
        (lambda: mx.contrib.io, "mx.contrib.io is not offered: mx.mod.Module takes batches of a DataIter"),
        (
            lambda: mx.test_utils.check_speed,
            "MXNet's own test_utils.py, put beside a script, runs with `pyth",
        ),
        (
            lambda: gluon.contrib.rnn,
            "mx.gluon.contrib.rnn is not offered: gluon.rnn has cells and layers; mx.r",
        ),
        (lambda: gluon.contrib.nothing, "module 'roiops.gluon.contrib' has no attribute 'nothing'$"),
        (
            lambda: dense().save("x"),
            "Dense: save and load are not offered: save_parameters and load_parameters",
        ),
        (lambda: dense().optimize_for(None, backend="x"), "there are no backends; call hybridize"),
        (lambda: gluon.Parameter("w", shape=(2,)).row_sparse_data(None), r"as all are here; call data\(\)"),
    ],
)
def test_other_parts_of_mxnet(ask, text):
    with pytest.raises((AttributeError, MXNetError), match=text):
        ask()


def test_a_symbol_block_whose_shapes_follow_from_numbers():
    x, mask = mx.sym.var("x"), mx.sym.var("mask")
    block = gluon.SymbolBlock(mx.sym.contrib.boolean_mask(x, mask, name="rows"), [x, mask])
    with pytest.raises(
        MXNetError, match="shape or dtype of rows_output does not follow from the arrays given"
    ):
        block(mx.nd.ones((3, 2)), mx.nd.array([0, 1, 1]))
