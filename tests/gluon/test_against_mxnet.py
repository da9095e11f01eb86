"""Gluon's names, files and numbers are those of MXNet 1.9.1 (verify/golden/make_gluon.py)."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops import autograd, gluon
from roiops.gluon import nn

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = GOLDEN / "gluon"


@pytest.fixture(scope="module")
def golden():
    return np.load(GOLDEN / "gluon.npz")


def network():
    net = nn.HybridSequential(prefix="net0_")
    with net.name_scope():
        net.add(
            nn.Conv2D(4, 3, padding=1, activation="relu"),
            nn.BatchNorm(),
            nn.MaxPool2D(),
            nn.Conv2DTranspose(3, 2, strides=2),
            nn.LeakyReLU(0.1),
            nn.AvgPool2D(3, 2, ceil_mode=True),
            nn.Flatten(),
            nn.Dense(5, activation="tanh"),
            nn.LayerNorm(),
            nn.Dense(2),
        )
    return net


@pytest.mark.parametrize("hybridised", [False, True])
@pytest.mark.parametrize("file", ["small.params", "small_prefixed.params", "small-0000.params"])
def test_a_file_of_each_layout(golden, file, hybridised):
    net = network()
    net.load_parameters(str(FILES / file))
    net.hybridize(hybridised)
    output = net(mx.nd.array(golden["data"]))
    np.testing.assert_allclose(output.asnumpy(), golden["output"], rtol=1e-5, atol=1e-6)


def test_an_exported_network_as_a_block(golden):
    net = gluon.SymbolBlock.imports(
        str(FILES / "small-symbol.json"), ["data"], str(FILES / "small-0000.params")
    )
    output = net(mx.nd.array(golden["data"]))
    np.testing.assert_allclose(output.asnumpy(), golden["output"], rtol=1e-5, atol=1e-6)


def test_names_of_parameters_and_nodes(golden, tmp_path):
    net = network()
    assert list(net.collect_params().keys()) == golden["names"].tolist()
    net.initialize()
    net.hybridize()
    net(mx.nd.array(golden["data"]))
    graph, params = net.export(str(tmp_path / "net"))
    nodes = [node["name"] for node in json.loads(Path(graph).read_text())["nodes"]]
    assert nodes == golden["nodes"].tolist()
    assert sorted(mx.nd.load(params)) == sorted(mx.nd.load(str(FILES / "small-0000.params")))


@pytest.mark.parametrize("hybridised", [False, True])
def test_some_steps_of_training(golden, hybridised):
    net = network()
    net.load_parameters(str(FILES / "small.params"))
    net.hybridize(hybridised)
    options = {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    loss, losses, x = gluon.loss.SoftmaxCrossEntropyLoss(), [], mx.nd.array(golden["data"])
    for step in range(4):
        with autograd.record():
            value = loss(net(x), mx.nd.array([0, 1]))
        value.backward()
        for name, parameter in (
            net.collect_params(".*(weight|bias|gamma|beta|alpha)").items() if step == 0 else ()
        ):
            got, need = parameter.grad().asnumpy(), golden[f"grad_{name}"]
            np.testing.assert_allclose(got, need, rtol=1e-3, atol=1e-5, err_msg=name)
        trainer.step(2)
        losses.append(value.asnumpy())
    np.testing.assert_allclose(losses, golden["losses"], rtol=1e-3, atol=1e-5)


def test_the_zoo_has_the_names_of_parameters(golden):
    def digest(names):
        return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()

    for name, needed in json.loads(str(golden["zoo"])).items():
        net = gluon.model_zoo.vision.get_model(name, prefix="m_")
        got = [digest(net.collect_params().keys()), digest(net._collect_params_with_prefix())]
        assert got == needed, name


def test_networks_by_their_sizes_are_those_of_the_zoo():
    vision = gluon.model_zoo.vision

    def shapes(net):
        return {name: parameter.shape for name, parameter in net.collect_params().items()}

    layers, filters = (1, 1, 2, 2, 2), (64, 128, 256, 512, 512)
    for made, name in [
        (vision.get_vgg(11, batch_norm=True, prefix="m_"), "vgg11_bn"),
        (vision.VGG(layers, filters, prefix="m_"), "vgg11"),
        (vision.get_mobilenet(0.5, prefix="m_"), "mobilenet0.5"),
        (vision.get_mobilenet_v2(0.5, prefix="m_"), "mobilenetv2_0.5"),
        (
            vision.ResNetV1(vision.BasicBlockV1, [2, 2, 2, 2], [64, 64, 128, 256, 512], prefix="m_"),
            "resnet18_v1",
        ),
    ]:
        assert shapes(made) == shapes(vision.get_model(name, prefix="m_")), name
    with pytest.raises(ValueError, match="load_parameters"):
        vision.get_mobilenet(0.5, pretrained=True)
