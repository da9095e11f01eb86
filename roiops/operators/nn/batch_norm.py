"""Batch normalisation."""

import math

import numpy as np

from ...dtypes import wide
from ...params import Field, optional
from ...registry import register
from ..base import Following, kernels
from ..dense import DenseOperator, FloatProperty, row_view
from ..fields import IGNORED

_EPS = 0.0010000000474974513  # 1e-3 in float32: MXNet's own default


class BatchNormOp(DenseOperator):
    """As in MXNet, backward is what moves the moving statistics, and the second hidden output is 1 / std."""

    #: Whether the ReLU that follows is part of this, forward and backward.
    with_relu = False

    def compute(self, ctx, in_data, out_data, aux):
        data, gamma, beta = in_data
        out, *hidden = out_data
        if not ctx.is_train or self.params.use_global_stats:
            aux = [np.ascontiguousarray(array, gamma.dtype) for array in aux]
            if any(target is not None for target in hidden):
                for target, value in zip(hidden, (aux[0], self._invstd(aux[1])), strict=True):
                    if target is not None:
                        np.copyto(target, value)
            if out is not None:
                self._bind_inference(ctx, in_data, aux, out, self._floor)()
            return
        norm = kernels("network.norm", ctx.device)
        view = row_view(data, self.params.axis)
        mean, invstd = self._statistics(out_data, gamma)
        norm.batch_statistics(view, self.params.eps, mean, invstd)
        if out is not None:
            scale = invstd if self.params.fix_gamma else invstd * gamma
            norm.scale_channels(view, mean, scale, beta, self._floor, row_view(out, self.params.axis))

    @property
    def _floor(self):
        return 0.0 if self.with_relu else -np.inf

    def _statistics(self, out_data, gamma):
        """Where mean and invstd go: the hidden outputs, or scratch where nobody wants those."""
        return [
            self.scratch(name, gamma.shape, gamma.dtype) if array is None else array
            for name, array in zip(("mean", "invstd"), out_data[1:], strict=True)
        ]

    def _invstd(self, variance):
        return 1 / np.sqrt(variance + variance.dtype.type(self.params.eps))

    def _kept_invstd(self, out_data):
        """What forward left for backward."""
        return out_data[2]

    def bind(self, ctx, in_data, out_data, aux):
        whole = super().bind(ctx, in_data, out_data, aux)
        if out_data[0] is None or any(array is not None for array in out_data[1:]):
            return whole
        inference = self._bind_inference(ctx, in_data, aux, out_data[0], self._floor)
        return lambda: whole() if ctx.is_train else inference()

    def bind_followed(self, ctx, in_data, aux, out, work, before):
        return self._bind_inference(ctx, in_data, aux, out, 0.0)

    def _bind_inference(self, ctx, in_data, aux, out, floor):
        """A call that computes ``max(batch_norm, floor)`` by the moving statistics into ``out``."""
        axis, norm = self.params.axis, kernels("network.norm", ctx.device)
        data, gamma, beta = in_data
        gamma = np.ones_like(gamma) if self.params.fix_gamma else gamma
        scale, eps = np.empty_like(gamma), gamma.dtype.type(self.params.eps)
        view, target = row_view(data, axis), row_view(out, axis)

        def call():
            norm.scale_by_deviation(gamma, aux[1], eps, scale)
            norm.scale_channels(view, aux[0], scale, beta, floor, target)

        return call

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        data, gamma, _ = in_data
        moving_mean, moving_var = aux
        moving = self.params.use_global_stats or not ctx.is_train
        if moving:
            mean, invstd = moving_mean.astype(gamma.dtype), self._invstd(moving_var).astype(gamma.dtype)
        else:
            mean, invstd = out_data[1], self._kept_invstd(out_data)
        grad_gamma = self.scratch("gamma", gamma.shape, gamma.dtype)
        grad_beta = self.scratch("beta", gamma.shape, gamma.dtype)
        view = row_view(data, self.params.axis)
        grad_data = in_grad[0]
        kernels("network.norm", ctx.device).batch_backward(
            row_view(out_grad[0], self.params.axis),
            view,
            row_view(out_data[0], self.params.axis) if self.with_relu else view,
            (mean, invstd, moving, self.with_relu),
            np.ones_like(gamma) if self.params.fix_gamma else gamma,
            view if grad_data is None else row_view(grad_data, self.params.axis),
            grad_data is not None,
            grad_gamma,
            grad_beta,
        )
        if in_grad[1] is not None:
            in_grad[1][...] = 0 if self.params.fix_gamma else grad_gamma
        if in_grad[2] is not None:
            in_grad[2][...] = grad_beta
        if not moving:
            keep = float(np.float32(self.params.momentum))  # MXNet holds it in float32
            moving_mean[...] = moving_mean * keep + mean * (1 - keep)
            moving_var[...] = moving_var * keep + (1 / np.square(invstd) - self.params.eps) * (1 - keep)


@register("BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm", "_npx_batch_norm")
class BatchNormProp(FloatProperty):
    """Normalise each channel by its batch's mean and variance when training, by moving ones otherwise."""

    eps = Field(float, _EPS, range=(0, None), doc="added to the variance before the square root")
    momentum = Field(float, 0.9, doc="weight of the old moving statistics in their update")
    fix_gamma = Field(bool, True, doc="take gamma as 1 whatever it holds, and give it no gradient")
    use_global_stats = Field(bool, False, doc="normalise by the moving statistics when training too")
    output_mean_var = Field(bool, False, doc="also return the mean and the inverse standard deviation")
    axis = Field(int, 1, doc="the channel axis; negative counts from the end")
    cudnn_off = Field(bool, False, doc=IGNORED)
    min_calib_range = Field(optional(float), None, doc="accepted and ignored: quantised networks use it")
    max_calib_range = Field(optional(float), None, doc="accepted and ignored: quantised networks use it")

    op = BatchNormOp
    keeps_shape = typed_by_output = True
    trains_with_relu = True
    backward_always = True  # where the moving statistics are updated
    outputs, more_visible_with = ("output", "mean", "var"), "output_mean_var"
    variable_attributes = {
        "moving_mean": {"__init__": '["zero", {}]'},
        "moving_var": {"__init__": '["one", {}]'},
    }
    arguments = {
        "data": "any shape of two dimensions or more",
        "gamma": "scale of each channel; taken as 1 with fix_gamma",
        "beta": "shift of each channel",
    }
    aux = {
        "moving_mean": "moving mean of each channel, updated by backward in training",
        "moving_var": "moving variance of each channel, updated by backward in training",
    }

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(out_shapes[0])

    def follows(self, in_shapes):
        if self.params.axis % len(in_shapes[0]) != 1:
            return None
        return Following("batch_norm", (0,), {"eps": self.params.eps, "fix_gamma": self.params.fix_gamma})

    def takes_over(self, work, done, in_shapes):
        return not done and work.kind == "act" and work.details == {"floor": 0}

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        channels = data[self.check_axis("axis", self.params.axis, len(data))]
        gamma = self.check_shape("gamma", in_shapes[1], (channels,))
        beta = self.check_shape("beta", in_shapes[2], gamma)
        return [data, beta, beta], [data, beta, beta], [beta, beta]

    def infer_type(self, in_types):
        dtype = in_types[0]
        self.check_float(dtype)
        if dtype is None:
            return in_types, [None] * 3, [None] * 2
        stats = wide(dtype)
        return [dtype, stats, stats], [dtype, stats, stats], [stats, stats]


class SyncBatchNormOp(BatchNormOp):
    """Its second hidden output is the variance itself, as in MXNet."""

    def compute(self, ctx, in_data, out_data, aux):
        super().compute(ctx, in_data, out_data, aux)
        if out_data[2] is not None:
            variance = 1 / np.square(out_data[2]) - self.params.eps
            np.maximum(variance, 0, out=out_data[2])

    def _kept_invstd(self, out_data):
        return self._invstd(out_data[2])


@register("_contrib_SyncBatchNorm")
class SyncBatchNormProp(BatchNormProp):
    """BatchNorm under the name of its many-device form; here there is one device."""

    output_mean_var = Field(bool, False, doc="also return the mean and the variance")
    ndev = Field(int, 1, doc="accepted and ignored: statistics are those of the one device")
    key = Field(str, "", doc="accepted and ignored: it names a layer across devices")

    op = SyncBatchNormOp
