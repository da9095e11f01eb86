"""Fully connected layers."""

import math

from ...params import Field
from ...registry import register
from ..base import kernels
from ..dense import DenseOperator, FloatProperty


class FullyConnectedOp(DenseOperator):
    def bind(self, ctx, in_data, out_data, aux):
        bias = None if self.params.no_bias else in_data[2]
        data, out = self._matrix(in_data[0]), self._matrix(out_data[0])
        return kernels("product.fc", ctx.device).bind(data, in_data[1], bias, out)

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        grad_data, grad_weight, *grad_bias = in_grad
        kernels("product.fc", ctx.device).backward(
            self._matrix(out_grad[0]),
            self._matrix(in_data[0]),
            in_data[1],
            None if grad_data is None else self._matrix(grad_data),
            grad_weight,
            grad_bias[0] if grad_bias else None,
        )

    def _matrix(self, array):
        if self.params.flatten:
            return array.reshape(len(array), math.prod(array.shape[1:]))
        return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


@register("FullyConnected", "_npx_fully_connected")
class FullyConnectedProp(FloatProperty):
    """A linear map of the features: ``data @ weight.T + bias``."""

    num_hidden = Field(int, range=(1, None), doc="number of output features")
    no_bias = Field(bool, False, doc="leave out the bias input")
    flatten = Field(bool, True, doc="take all axes but the first as features; otherwise only the last")

    op = FullyConnectedOp
    repeatable = True
    arguments = {
        "data": "features, (batch, ...)",
        "weight": "matrix, (num_hidden, features)",
        "bias": "one number for each output feature; not with no_bias",
    }
    present_if = {"bias": lambda p: not p.no_bias}
    backward_needs = ("out_grad", "in_data")

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(out_shapes[0]) * in_shapes[1][1]

    def infer_shape(self, in_shapes):
        p, data = self.params, in_shapes[0]
        if not data:
            self.check_ndim("data", data, 1)
        if p.flatten:
            features = -1 if -1 in data[1:] else math.prod(data[1:])
            out = (data[0], p.num_hidden)
        else:
            features, out = data[-1], (*data[:-1], p.num_hidden)
        weight = self.check_shape("weight", in_shapes[1], (p.num_hidden, features))
        if not p.flatten and features == -1:
            data = (*data[:-1], weight[1])
        shapes = [data, weight]
        if not p.no_bias:
            shapes.append(self.check_shape("bias", in_shapes[2], (p.num_hidden,)))
        return shapes, [out]

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        data, out = in_shapes[0], out_shapes[0]
        if data is None:
            return in_shapes
        known = (out[0], *data[1:]) if self.params.flatten else (*out[:-1], data[-1])
        if len(known) == len(data):
            data = tuple(a if a != -1 else b for a, b in zip(data, known, strict=True))
        return [data, *in_shapes[1:]]
