"""Normalisation other than by batch."""

import math

import numpy as np

from ...errors import ParamError
from ...params import Field, Parameter, enum
from ...registry import register
from ..base import kernels
from ..dense import DenseOperator, FloatProperty, row_view


class AffineNormOp(DenseOperator):
    """``gamma * (data - mean) / std + beta``, over groups of channels of each sample, or along an axis.

    ``rows(data, count)`` views an array so that statistics run over its middle axis; ``blocks(data, count)``
    views it as (outer, count, inner), so that gamma and beta, of that length, run along the middle axis.
    """

    def rows(self, data, count):
        return data.reshape(data.shape[0] * count, math.prod(data.shape[1:]) // max(count, 1), 1)

    def blocks(self, data, count):
        return data.reshape(data.shape[0], count, math.prod(data.shape[1:]) // max(count, 1))

    def compute(self, ctx, in_data, out_data, aux):
        data, gamma, beta = in_data
        self._normalize(ctx, data, len(gamma), out_data[0], *out_data[1:])
        result = self.blocks(out_data[0], len(gamma))
        result *= gamma[:, None]
        result += beta[:, None]

    def _normalize(self, ctx, data, count, out, mean=None, std=None):
        rows = self.rows(data, count)
        stats = (rows.shape[0], rows.shape[2])
        mean = self.scratch("mean", stats, data.dtype) if mean is None else mean.reshape(stats)
        std = self.scratch("std", stats, data.dtype) if std is None else std.reshape(stats)
        out = self.rows(out, count)
        kernels("network.norm", ctx.device).row_forward(rows, self.params.eps, mean, std, out)
        return std

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head, (data, gamma, _), count = out_grad[0], in_data, len(in_data[1])
        norm = self.scratch("norm", data.shape, data.dtype)
        std = self._normalize(ctx, data, count, norm)
        head_blocks = self.blocks(head, count)
        if in_grad[1] is not None:
            blocks = self.blocks(norm, count)
            in_grad[1][...] = _sums(
                lambda head, norm: np.einsum("nkc,nkc->k", head, norm), head_blocks, blocks
            )
        if in_grad[2] is not None:
            in_grad[2][...] = _sums(lambda head: np.sum(head, axis=(0, 2)), head_blocks)
        if in_grad[0] is not None:
            grad_norm = self.scratch("grad_norm", data.shape, data.dtype)
            np.multiply(head_blocks, gamma[:, None], out=self.blocks(grad_norm, count))
            of_data = self.rows(in_grad[0], count)
            kernels("network.norm", ctx.device).row_backward(
                self.rows(grad_norm, count), self.rows(norm, count), std, of_data
            )


def _sums(add_up, *blocks):
    """Sums over the first axis, some rows at a time: thousands of them lose no more digits than few."""
    rows = 64
    parts = range(0, max(len(blocks[0]), 1), rows)
    return sum(add_up(*(each[start : start + rows] for each in blocks)).astype(np.float64) for start in parts)


class LayerNormOp(AffineNormOp):
    def rows(self, data, count):
        return row_view(data, self.params.axis)

    blocks = rows


class _AffineNormProp(FloatProperty):
    keeps_shape = True
    backward_needs = ("out_grad", "in_data")

    def with_affine(self, in_shapes, length):
        """The shapes of the inputs: gamma and beta are vectors of one length."""
        gamma = self.check_shape("gamma", in_shapes[1], (length,))
        beta = self.check_shape("beta", in_shapes[2], gamma)
        return [in_shapes[0], beta, beta]


@register("LayerNorm", "_npx_layer_norm")
class LayerNormProp(_AffineNormProp):
    """Normalise over one axis, then scale and shift along it."""

    axis = Field(int, -1, doc="the axis to normalise over; negative counts from the end")
    eps = Field(float, 1e-5, range=(0, None), doc="added to the variance before the square root")
    output_mean_var = Field(bool, False, doc="also return the mean and the standard deviation")

    op = LayerNormOp
    outputs, more_visible_with = ("output", "mean", "std"), "output_mean_var"
    arguments = {
        "data": "any shape",
        "gamma": "scale, of the axis's length",
        "beta": "shift, of the axis's length",
    }

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        axis = self.check_axis("axis", self.params.axis, len(data))
        stats = (*data[:axis], 1, *data[axis + 1 :])
        return self.with_affine(in_shapes, data[axis]), [data, stats, stats]


@register("InstanceNorm")
class InstanceNormProp(_AffineNormProp):
    """Normalise each channel of each sample over its image, then scale and shift by channel."""

    eps = Field(float, 1e-3, range=(0, None), doc="added to the variance before the square root")

    op = AffineNormOp
    arguments = {
        "data": "images, (batch, channels, *spatial)",
        "gamma": "scale of each channel",
        "beta": "shift of each channel",
    }

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        self.check_ndim("data", data, least=3)
        return self.with_affine(in_shapes, data[1]), [data]


@register("GroupNorm")
class GroupNormProp(_AffineNormProp):
    """Normalise groups of channels of each sample, then scale and shift by group, as MXNet 1.9 does."""

    num_groups = Field(int, 1, range=(1, None), doc="number of groups that the channels are split into")
    eps = Field(float, 1e-5, range=(0, None), doc="added to the variance before the square root")
    output_mean_var = Field(bool, False, doc="also return the mean and the standard deviation")

    op = AffineNormOp
    outputs, more_visible_with = ("output", "mean", "std"), "output_mean_var"
    arguments = {
        "data": "images, (batch, channels, *spatial)",
        "gamma": "scale of each group",
        "beta": "shift of each group",
    }

    def infer_shape(self, in_shapes):
        data, groups = in_shapes[0], self.params.num_groups
        self.check_ndim("data", data, least=3)
        if data[1] != -1 and data[1] % groups:
            raise self.shape_error(
                f"data must have a multiple of num_groups {groups} channels, got shape {data}"
            )
        return self.with_affine(in_shapes, groups), [data, (data[0], groups), (data[0], groups)]


class L2NormalizationOp(DenseOperator):
    def _view(self, array):
        """The array with the axis to sum over in the middle."""
        batch, rest = array.shape[0], math.prod(array.shape[1:])
        if self.params.mode == "instance":
            return array.reshape(batch, rest, 1)
        if self.params.mode == "channel":
            return row_view(array, 1)
        planes = batch * array.shape[1]
        return array.reshape(planes, math.prod(array.shape[2:]), 1)

    def _norm(self, view):
        return np.sqrt(np.einsum("nki,nki->ni", view, view) + view.dtype.type(self.params.eps))[:, None]

    def compute(self, ctx, in_data, out_data, aux):
        view = self._view(in_data[0])
        np.divide(view, self._norm(view), out=self._view(out_data[0]))

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head, data, out = self._view(out_grad[0]), self._view(in_data[0]), self._view(out_data[0])
        target = self._view(in_grad[0])
        np.multiply(out, np.einsum("nki,nki->ni", head, out)[:, None], out=target)
        np.subtract(head, target, out=target)
        target /= self._norm(data)


@register("L2Normalization")
class L2NormalizationProp(FloatProperty):
    """Divide by the L2 norm, over each sample, each pixel's channels or each channel's image."""

    eps = Field(float, 1e-10, doc="added to the sum of squares before the square root")
    mode = Field(
        enum("instance", "channel", "spatial"),
        "instance",
        doc="the norm is over each sample, each pixel's channels, or each channel's image",
    )

    op = L2NormalizationOp
    keeps_shape = True
    arguments = {"data": "any shape; three dimensions or more unless mode is 'instance'"}
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        data, least = in_shapes[0], 1 if self.params.mode == "instance" else 3
        if len(data) < least:
            raise self.shape_error(
                f"data must have {least} dimensions or more for mode {self.params.mode!r}, got shape {data}"
            )
        return in_shapes, [data]


class LRNParam(Parameter):
    alpha = Field(float, 1e-4, doc="weight of the mean of squares")
    beta = Field(float, 0.75, doc="exponent")
    knorm = Field(float, 2, doc="constant under the exponent")
    nsize = Field(int, range=(1, None), doc="number of neighbouring channels; odd")

    def validate(self, operator):
        if self.nsize % 2 == 0:
            raise ParamError(f"{operator}: nsize must be odd, got {self.nsize}")


class LRNOp(DenseOperator):
    def compute(self, ctx, in_data, out_data, aux):
        p, view = self.params, row_view(in_data[0], 1)
        norm = self.scratch("norm", view.shape, view.dtype) if out_data[1] is None else out_data[1]
        kernels("network.norm", ctx.device).lrn_forward(
            view, p.nsize, *self._constants(view), norm.reshape(view.shape), row_view(out_data[0], 1)
        )

    def _constants(self, view):
        p, one = self.params, view.dtype.type
        return one(p.alpha), one(p.beta), one(p.knorm)

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        view = row_view(in_data[0], 1)
        alpha, beta, _ = self._constants(view)
        kernels("network.norm", ctx.device).lrn_backward(
            row_view(out_grad[0], 1),
            view,
            row_view(out_data[1], 1),
            self.params.nsize,
            alpha,
            beta,
            row_view(in_grad[0], 1),
        )


@register("LRN")
class LRNProp(FloatProperty):
    """Local response normalisation across neighbouring channels."""

    param, op = LRNParam, LRNOp
    keeps_shape = True
    outputs, visible_outputs = ("output", "norm"), 1
    arguments = {"data": "images, (batch, channels, height, width)"}
    monitored_as_data = True

    def out_shapes(self, data):
        self.check_ndim("data", data, 4)
        return [data, data]
