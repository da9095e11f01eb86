"""Activation functions."""

import math

import numpy as np

from ... import random
from ...params import Field, enum
from ...registry import register
from ..base import Following, kernels, merge_shapes
from ..dense import DenseOperator, FloatProperty


class ActivationOp(DenseOperator):
    def bind(self, ctx, in_data, out_data, aux):
        kind = self.params.act_type
        if kind not in ("relu", "sigmoid"):
            return super().bind(ctx, in_data, out_data, aux)
        return kernels("network.act", ctx.device).bind(kind, in_data[0], out_data[0])

    def compute(self, ctx, in_data, out_data, aux):
        kernels("network.act", ctx.device).forward(self.params.act_type, in_data[0], out_data[0])

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        kind = self.params.act_type
        known = in_data[0] if kind == "softsign" else out_data[0]
        kernels("network.act", ctx.device).backward(kind, out_grad[0], known, in_grad[0])


@register("Activation", "_npx_activation")
class ActivationProp(FloatProperty):
    """Apply a function to each element."""

    act_type = Field(
        enum("relu", "sigmoid", "tanh", "softrelu", "softsign"), doc="the function applied to each element"
    )

    op = ActivationOp
    repeatable = True
    keeps_shape = True
    arguments = {"data": "any shape"}
    inplace = {0: 0}
    inplace_grad = {0: 0}

    @property
    def backward_needs(self):
        return ("out_grad", "in_data" if self.params.act_type == "softsign" else "out_data")

    def follows(self, in_shapes):
        kind = self.params.act_type
        if kind == "sigmoid":
            return Following("sigmoid", (0,), {})
        return Following("act", (0,), {"floor": 0}) if kind == "relu" else None


#: SELU's factor of the exponential, and that of everything.
_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


class LeakyReLUOp(DenseOperator):
    @property
    def _exponential(self):
        return _SELU if self.params.act_type == "selu" else (self.params.slope, 1)

    def compute(self, ctx, in_data, out_data, aux):
        kind, data, out = self.params.act_type, in_data[0], out_data[0]
        act = kernels("network.act", ctx.device)
        if kind == "rrelu" and ctx.is_train:
            mask = self.scratch("mask", data.shape, data.dtype) if out_data[1] is None else out_data[1]
            low, high = self.params.lower_bound, self.params.upper_bound
            mask[...] = random.generator().uniform(low, high, data.shape)
            np.multiply(data, np.where(data > 0, data.dtype.type(1), mask), out=out)
        elif kind in ("elu", "selu"):
            act.elu(data, *self._exponential, out)
        elif kind == "gelu":
            act.gelu(data, out)
        elif kind == "prelu":
            rows, slope = self._rows(*in_data)
            act.leaky(rows, slope, out.reshape(rows.shape))
        else:
            act.bent(data, self._slope, out)
            if kind == "rrelu" and out_data[1] is not None:
                out_data[1][...] = self._slope

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        kind, head, data = self.params.act_type, out_grad[0], in_data[0]
        act = kernels("network.act", ctx.device)
        target = self.scratch("data", data.shape, data.dtype) if in_grad[0] is None else in_grad[0]
        if kind == "rrelu" and ctx.is_train:
            np.multiply(head, np.where(data > 0, data.dtype.type(1), out_data[1]), out=target)
        elif kind in ("elu", "selu"):
            act.elu_backward(head, data, *self._exponential, target)
        elif kind == "gelu":
            act.gelu_backward(head, data, target)
        elif kind != "prelu":
            act.bent_backward(head, data, self._slope, target)
        else:
            rows, slope = self._rows(*in_data)
            grad_slope = self.scratch("slope", slope.shape, np.float64)
            act.leaky_backward(head.reshape(rows.shape), rows, slope, target.reshape(rows.shape), grad_slope)
            if in_grad[1] is not None:
                in_grad[1][...] = self._sum_slopes(grad_slope, data, in_grad[1])

    @property
    def _slope(self):
        p = self.params
        return p.slope if p.act_type == "leaky" else (p.lower_bound + p.upper_bound) / 2

    @staticmethod
    def _rows(data, slopes):
        """The data as rows of one slope each, and those slopes."""
        gamma = slopes.reshape(-1)
        if slopes.ndim > 1:
            return data.reshape(gamma.size, math.prod(data.shape[slopes.ndim :])), gamma
        channels = data.shape[1] if data.ndim > 1 else 1
        rows = data.reshape(data.shape[0] * channels, math.prod(data.shape[2:]))
        return rows, np.tile(np.broadcast_to(gamma, channels), data.shape[0])

    @staticmethod
    def _sum_slopes(grad_slope, data, gamma):
        if gamma.ndim > 1:
            return grad_slope.reshape(gamma.shape)
        by_channel = grad_slope.reshape(data.shape[:2]).sum(axis=0)
        return (by_channel.sum() if gamma.size == 1 else by_channel).reshape(gamma.shape)


@register("LeakyReLU")
class LeakyReLUProp(FloatProperty):
    """Rectifiers that let something through below 0."""

    act_type = Field(
        enum("leaky", "prelu", "elu", "selu", "gelu", "rrelu"),
        "leaky",
        doc="the function; 'prelu' takes its slopes as the input gamma, 'rrelu' draws them when training",
    )
    slope = Field(float, 0.25, doc="slope below 0 ('leaky'), or scale of the exponential ('elu')")
    lower_bound = Field(float, 0.125, doc="smallest random slope of 'rrelu'")
    upper_bound = Field(float, 0.334, doc="largest random slope of 'rrelu'")

    op = LeakyReLUOp
    keeps_shape = True
    arguments = {
        "data": "any shape",
        "gamma": "slopes by channel, one slope, or one for each index of the first axes; only for 'prelu'",
    }
    present_if = {"gamma": lambda p: p.act_type == "prelu"}
    outputs = ("output", "mask")
    variable_attributes = {"gamma": {"__init__": '["Constant", {"value": 0.25}]'}}
    monitored_as_data = True

    def follows(self, in_shapes):
        kind = self.params.act_type
        if kind == "leaky":
            return Following("act", (0,), {"slopes": self.params.slope})
        of_channels = kind == "prelu" and len(in_shapes[1]) == 1 and len(in_shapes[0]) > 1
        return Following("prelu", (0,), {}) if of_channels else None

    def list_outputs(self):
        return self.outputs if self.params.act_type == "rrelu" else self.outputs[:1]

    @property
    def backward_needs(self):
        if self.params.act_type == "rrelu":
            return ("out_grad", "in_data", "out_data")
        return ("out_grad", "in_data")

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        outs = [data] * len(self.list_outputs())
        if self.params.act_type != "prelu":
            return in_shapes, outs
        gamma = in_shapes[1]
        if data is not None:
            channels = data[1] if len(data) > 1 else 1
            if gamma is None:
                gamma = (channels,)
            elif -1 not in gamma and channels != -1:
                # One, one for each channel, or one for each index of the leading axes.
                leading = len(gamma) > 1 and merge_shapes(gamma, data[: len(gamma)]) is not None
                if not leading and (len(gamma) > 1 or gamma[0] not in (1, channels)):
                    raise self.shape_error(
                        f"gamma must have shape ({channels},), (1,) or that of data's "
                        f"first axes, got {gamma} for data {data}"
                    )
        return [data, gamma], outs
