"""Softmax in ONNX, and losses: in inference they are what they compute forward."""

import numpy as np

from ..lowering import lowers


@lowers("softmax", "softmin", "log_softmax")
def softmax(g, node, data, length=None):
    kind, axis = node.prop.op(node.params), node.params.axis % data.ndim
    x = data if kind.scale == 1 else data * kind.scale
    write = g.LogSoftmax if kind.log else g.Softmax
    if length is None:
        return g.cast(write(x, axis=axis), node.dtypes[0])
    steps = g.reshape(g.range(g.dim(data, axis)), *(-1 if i == axis else 1 for i in range(data.ndim)))
    inside = steps < g.unsqueeze(g.cast(length, np.int64), axis)
    y = write(g.Where(inside, x, np.array(-np.inf, x.dtype)), axis=axis)
    return g.cast(g.Where(inside, y, np.array(0, x.dtype)), node.dtypes[0])


@lowers("SoftmaxActivation")
def softmax_activation(g, node, data):
    return g.Softmax(data, axis=1 if node.params.mode == "channel" else data.ndim - 1)


@lowers("SoftmaxOutput", unused=("label",))
def softmax_output(g, node, data):
    p = node.params
    if p.multi_output:
        return g.Softmax(data, axis=1)
    if p.preserve_shape or data.ndim <= 2:
        return g.Softmax(data, axis=data.ndim - 1)
    return node.reshape_like(g, g.Softmax(g.Flatten(data, axis=1), axis=1), data)


@lowers("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", unused=("label",))
@lowers("MakeLoss", "make_loss")
def as_it_is(g, node, data):
    return data


@lowers("LogisticRegressionOutput", unused=("label",))
def logistic_output(g, node, data):
    return g.Sigmoid(data)


@lowers("softmax_cross_entropy")
def softmax_cross_entropy(g, node, data, label):
    picked = g.GatherElements(g.LogSoftmax(data, axis=1), g.unsqueeze(g.cast(label, np.int64), 1), axis=1)
    return g.Neg(g.reshape(g.reduce("Sum", picked, (0, 1)), 1))
