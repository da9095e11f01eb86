"""Operators whose bins give the mean or the maximum of pixels or samples, each bin where the box puts it."""

import numpy as np

from ...errors import ShapeError
from ...params.roi import (
    ContribROIAlignParam,
    PSROIAlignParam,
    PSROIPoolingParam,
    ROIAlignParam,
    ROIPoolingParam,
)
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty, rules_of

__all__ = [
    "AverageOp",
    "ContribROIAlignProp",
    "MaxOp",
    "PSROIAlignProp",
    "PSROIPoolingProp",
    "ROIAlignProp",
    "ROIPoolingProp",
]


class _SeparableOp(ROIOperator):
    """What the kernels need to know of the parameters."""

    def __init__(self, params):
        super().__init__(params)
        self.rules, self.backward_rules = rules_of(params.forward_rules), rules_of(params.rules)
        self.numbers = params.spatial_scale, params.ratio, params.groups


class AverageOp(_SeparableOp):
    def compute(self, ctx, in_data, out_data):
        kernels("roi_average", ctx.device).forward(*in_data, *self.numbers, self.rules, *out_data)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "null":
            kernels("roi_average", ctx.device).backward(
                out_grad[0], in_data[1], *self.numbers, self.backward_rules, req[0] == "add", in_grad[0]
            )


def _least(dtype) -> float:
    """The least finite number of a dtype; uint16 are the bits of bfloat16."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else -float.fromhex("0x1.fep127")


class MaxOp(_SeparableOp):
    def compute(self, ctx, in_data, out_data):
        # What a bin of nothing but NaN gives: nothing is greater than the start.
        lowest = self.rules.empty if self.rules.empty else _least(in_data[0].dtype)
        kernels("roi_max", ctx.device).forward(*in_data, *self.numbers, self.rules, lowest, *out_data)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "null":
            kernels("roi_max", ctx.device).backward(
                out_grad[0],
                out_data[1],
                in_data[1],
                *self.numbers,
                self.rules,
                req[0] == "add",
                in_grad[0],
            )


class _SeparableProp(ROIProperty):
    """Has a second output where it takes the maximum: which pixel or sample of the bin it was."""

    visible_outputs = 1

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return self.params.takes_maximum

    def list_outputs(self):
        return ("output", "argmax") if self.takes_maximum else ("output",)

    @property
    def backward_needs(self):
        return ("out_grad", "in_data", *(("out_data",) if self.takes_maximum else ()))

    def infer_shape(self, in_shapes):
        if self.takes_maximum and in_shapes[0] is not None and len(in_shapes[0]) == 4:
            self.check_plane(in_shapes[0])
        return super().infer_shape(in_shapes)

    def create_operator(self, ctx, in_shapes, in_types):
        return (MaxOp if self.takes_maximum else AverageOp)(self.params)


@register("ROIPooling", "_npx_roi_pooling")
class ROIPoolingProp(_SeparableProp):
    """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015)."""

    param = ROIPoolingParam
    outputs = ("output", "argmax")


@register("ROIAlign")
class ROIAlignProp(_SeparableProp):
    """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017)."""

    param = ROIAlignParam


@register("_contrib_ROIAlign", "_npx_roi_align")
class ContribROIAlignProp(_SeparableProp):
    """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""

    param = ContribROIAlignParam

    def out_channels(self, channels):
        if not self.params.position_sensitive:
            return channels
        bins = self.params.pooled_size[0] * self.params.pooled_size[1]
        if channels % bins:
            raise ShapeError(
                f"{self.label}: data must have a multiple of {bins} channels, one a bin, got {channels}"
            )
        return channels // bins


class _PositionSensitiveProp(_SeparableProp):
    def out_channels(self, channels):
        p = self.params
        if p.dialect == "torchvision":
            height, width = p.pooled_size
            need, words = (
                p.output_dim * height * width,
                f"output_dim * bins = {p.output_dim} * {height * width}",
            )
        else:
            need = p.output_dim * p.groups**2
            words = f"output_dim * group_size * group_size = {p.output_dim} * {p.groups} * {p.groups}"
        self.check_channels(channels, need, words)
        return p.output_dim


@register("_contrib_PSROIPooling", "PSROIPooling")
class PSROIPoolingProp(_PositionSensitiveProp):
    """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""

    param = PSROIPoolingParam


@register("PSROIAlign")
class PSROIAlignProp(_PositionSensitiveProp):
    """Mean of bilinear samples in bins that each read their own score maps."""

    param = PSROIAlignParam
