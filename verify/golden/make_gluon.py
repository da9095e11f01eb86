"""A small Gluon network of MXNet's: its files in all layouts, its numbers, and the zoo's names of parameters.

Writes tests/golden/gluon.npz and, in tests/golden/gluon/, files of ``save_parameters``, ``save_params`` and
``export``.
"""

import hashlib
import json

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

from golden_format import GOLDEN, write_npz

ZOO = (
    *(f"resnet{depth}_v{version}" for depth in (18, 34, 50, 101, 152) for version in (1, 2)),
    *(f"mobilenet{m}" for m in ("1.0", "0.25")),
    *(f"mobilenetv2_{m}" for m in ("1.0", "0.5")),
    *("alexnet", "vgg11", "vgg13_bn", "vgg16", "vgg19_bn"),
)


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


def digest(names) -> str:
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def main():
    mx.random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - MXNet's initializers draw from this generator
    folder = GOLDEN / "gluon"
    folder.mkdir(exist_ok=True)
    net = network()
    net.initialize(mx.init.Normal(0.4))
    data = np.random.default_rng(1).uniform(-1, 1, (2, 3, 8, 8)).astype("float32")
    x = mx.nd.array(data)
    net(x)
    net.save_parameters(str(folder / "small.params"))
    net.save_params(str(folder / "small_prefixed.params"))
    net.hybridize()
    arrays = {"data": data, "output": net(x).asnumpy()}
    net.export(str(folder / "small"))
    arrays["names"] = np.array(list(net.collect_params().keys()))
    arrays["nodes"] = np.array(
        [n["name"] for n in json.loads((folder / "small-symbol.json").read_text())["nodes"]]
    )
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01})
    loss, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for step in range(4):
        with autograd.record():
            value = loss(net(x), mx.nd.array([0, 1]))
        value.backward()
        if step == 0:
            for name, parameter in net.collect_params(".*(weight|bias|gamma|beta|alpha)").items():
                arrays[f"grad_{name}"] = parameter.grad().asnumpy()
        trainer.step(2)
        losses.append(value.asnumpy())
    arrays["losses"] = np.array(losses)
    zoo = {}
    for name in ZOO:
        made = gluon.model_zoo.vision.get_model(name, prefix="m_")
        zoo[name] = digest(made.collect_params().keys()), digest(made._collect_params_with_prefix())
    arrays["zoo"] = np.array(json.dumps(zoo))
    arrays["meta"] = np.array(
        json.dumps({"peer": "mxnet", "version": mx.__version__, "script": "make_gluon.py"})
    )
    write_npz(GOLDEN / "gluon.npz", arrays)


if __name__ == "__main__":
    main()
