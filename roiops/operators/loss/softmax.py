"""Softmax in its several forms."""

import numpy as np

from ...params import Field, dtype, enum, optional
from ...registry import register
from .. import arrays
from ..base import Operator, kernels, variant
from ..dense import FloatProperty, row_view
from ..tensor.common import declare


class SoftmaxOp(Operator):
    """Softmax along an axis, perhaps with the sign changed first, or its logarithm."""

    shareable = True

    sign, log = 1, False

    def axis(self, data):
        return self.params.axis % data.ndim

    @property
    def scale(self):
        return self.sign / (self.params.temperature or 1.0)

    def forward(self, ctx, in_data, req, out_data, aux):
        loss = kernels("network.loss", ctx.device)
        data, axis = in_data[0], self.axis(in_data[0])
        if len(in_data) > 1:
            self._forward_masked(loss, in_data, axis, req[0], out_data[0])
            return
        arrays.fill(
            out_data[0],
            req[0],
            lambda out: loss.softmax(row_view(data, axis), self.scale, self.log, row_view(out, axis)),
        )

    def _forward_masked(self, loss, in_data, axis, req, out):
        data, length = in_data
        outside = self._outside(data, length, axis)
        lowest = np.where(outside, -np.inf * self.sign, data)

        def compute(target):
            loss.softmax(row_view(lowest, axis), self.scale, self.log, row_view(target, axis))
            target[outside] = 0

        arrays.fill(out, req, compute)

    @staticmethod
    def _outside(data, length, axis):
        """Where the index along the axis is not below the length."""
        index = np.arange(data.shape[axis]).reshape([-1 if i == axis else 1 for i in range(data.ndim)])
        return np.broadcast_to(index >= np.expand_dims(length, axis), data.shape)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        loss = kernels("network.loss", ctx.device)
        axis = self.axis(out_data[0])
        grad = out_grad[0]
        outside = self._outside(grad, in_data[1], axis) if len(in_data) > 1 else None
        if outside is not None and self.log:
            grad = np.where(outside, 0, grad)

        def compute(target):
            g, y, t = (row_view(a, axis) for a in (grad, out_data[0], target))
            loss.softmax_gradient(g, y, self.scale, self.log, t)
            if outside is not None:
                target[outside] = 0

        arrays.fill(in_grad[0], req[0], compute)


class SoftmaxProp(FloatProperty):
    """Base of softmax, softmin and log_softmax."""

    axis = Field(int, -1, doc="axis along which entries sum to 1")
    temperature = Field(optional(float), None, doc="what the data is divided by first; 1 if none")
    dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")
    use_length = Field(
        optional(bool), False, doc="whether only the first entries count, as many as length says"
    )

    zero_grad = ("length",)
    arguments = {
        "data": "the array",
        "length": "with use_length: how many entries count, an integer for each row along the axis",
    }
    present_if = {"length": lambda p: p.use_length}
    usual_types, out_types = {"length": np.dtype(np.int32)}, ("dtype",)
    keeps_shape = repeatable = True
    inplace, inplace_grad = {0: 0}, {0: 0}

    @property
    def backward_needs(self):
        return ("out_grad", "in_data", "out_data") if self.params.use_length else ("out_grad", "out_data")

    def infer_shape(self, in_shapes):
        shape = in_shapes[0]
        axis = self.check_axis("axis", self.params.axis, len(shape))
        if self.params.use_length:
            length = self.check_shape("length", in_shapes[1], (*shape[:axis], *shape[axis + 1 :]))
            return [shape, length], [shape]
        return in_shapes, [shape]


declare(
    "softmax",
    SoftmaxProp,
    "exp(data), scaled so that the entries along an axis sum to 1.",
    op=SoftmaxOp,
    monitored_as_data=True,
)
declare("softmin", SoftmaxProp, "softmax(-data).", op=variant(SoftmaxOp, sign=-1))
declare(
    "log_softmax",
    SoftmaxProp,
    "The logarithm of softmax, without overflow.",
    op=variant(SoftmaxOp, log=True),
    monitored_as_data=True,
)


class SoftmaxActivationOp(SoftmaxOp):
    scale = 1

    def axis(self, data):
        return 1 if self.params.mode == "channel" else data.ndim - 1


@register("SoftmaxActivation")
class SoftmaxActivationProp(FloatProperty):
    """Softmax along axis 1 (``mode="channel"``) or the last axis (``"instance"``).

    MXNet's backward takes axis 1 in both modes; here it takes the axis of the forward pass.
    """

    mode = Field(
        enum("channel", "instance"),
        "instance",
        doc="channel: along axis 1; instance: along the last axis, which for two dimensions is the same",
    )

    op = SoftmaxActivationOp
    backward_needs = ("out_grad", "out_data")
    keeps_shape = True
    inplace, inplace_grad = {0: 0}, {0: 0}
    arguments = {"data": "the array; three or more dimensions for channel"}

    def out_shapes(self, shape):
        if shape is not None and len(shape) < (3 if self.params.mode == "channel" else 2):
            raise self.shape_error(
                f"data must have {'3' if self.params.mode == 'channel' else '2'} dimensions "
                f"or more for mode {self.params.mode!r}, got shape {tuple(shape)}"
            )
        return [shape]
