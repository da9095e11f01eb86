"""How the public names are called, for `mypy`, which checks what comes out of each. It is not run."""

import numpy as np
from typing_extensions import assert_type

import roiops as mx


def symbols() -> mx.Symbol:
    data = mx.sym.Variable("data")
    rois = mx.sym.var("rois", shape=(5, 5))
    net: mx.Symbol = mx.sym.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    other: mx.Symbol = mx.sym.contrib.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    names: list[str] = mx.sym.Group([net + 1, 2 * other]).list_arguments()
    net.save("-".join(names))
    return mx.sym.load("net-symbol.json")


def executors(net: mx.Symbol) -> np.ndarray:
    assert_type(net.eval(data=mx.nd.ones((1, 3, 8, 8))), list[mx.NDArray])
    executor = net.simple_bind(mx.cpu(), data=(1, 3, 8, 8), rois=(5, 5))
    assert_type(executor, mx.Executor)
    assert_type(net.bind(mx.cpu(), executor.arg_dict), mx.Executor)
    outputs: list[mx.NDArray] = executor.forward(is_train=True)
    executor.backward(mx.nd.ones((5, 3, 2, 2)))
    gradient: mx.NDArray | None = executor.grad_dict["data"]
    return outputs[0].asnumpy() if gradient is None else gradient.asnumpy()


def arrays(array: np.ndarray) -> mx.NDArray:
    x: mx.NDArray = mx.nd.array(array, ctx=mx.gpu(0))
    pooled: mx.NDArray = mx.nd.ROIPooling(x, x, pooled_size=(2, 2), spatial_scale=1.0)
    total: mx.NDArray = 1 - x * 2 + pooled / x
    total += x
    shape: tuple[int, ...] = total.shape
    device: mx.Context = total.context
    mx.nd.save("arrays.params", {"x": x})
    return total.reshape(shape).as_in_context(device)


def models() -> float:
    symbol, arg_params, aux_params = mx.model.load_checkpoint("prefix", 1)
    module = mx.mod.Module(symbol, data_names=["data", "rois"], label_names=None)
    module.set_params(arg_params, aux_params)
    seconds: dict[str, float] = mx.warmup("ROIAlign")
    return seconds["ROIAlign"]
