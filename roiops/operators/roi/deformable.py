"""Pooling over bins that learned displacements move."""

import numpy as np

from ...errors import ShapeError
from ...kernels.rules import Pooling
from ...params import Field
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty
from .fields import (
    MOST_SAMPLES,
    DialectParam,
    output_dim_field,
    pooled_size_field,
    samples_field,
    scale_field,
)


class DeformablePSROIPoolingParam(DialectParam):
    table = "contrib.DeformablePSROIPooling"
    spatial_scale = scale_field()
    output_dim = output_dim_field()
    group_size = Field(int, range=(1, None), doc="groups of bins on each axis, each with its own score maps")
    pooled_size = Field(int, range=(1, None), doc="height and width of the output grid")
    part_size = Field(
        int, 0, range=(0, None), doc="parts of a box on each axis, each displaced alike; 0: one for each bin"
    )
    sample_per_part = Field(int, 1, range=(1, MOST_SAMPLES), doc="samples of a bin on each axis")
    trans_std = Field(float, 0.0, range=(0, 1), doc="factor of the displacements, which are in box sizes")
    no_trans = Field(bool, False, doc="whether there are no displacements")

    @property
    def parts(self) -> int:
        """How many parts of a box, on each axis, are displaced."""
        return self.part_size or self.pooled_size


class DisplacedOp(ROIOperator):
    """Means over bins that displacements move: the last input, which need not be there."""

    def __init__(self, params, deviation, ratio, groups):
        super().__init__(params)
        self.how = Pooling(params.row.rules, params.spatial_scale, ratio, groups, deviation)

    def compute(self, ctx, in_data, out_data):
        data, rois, *trans = in_data
        kernels("roi.deformable", ctx.device).forward(data, rois, _displacements(trans), self.how, *out_data)

    def gradient(self, ctx, number, head, in_data, out_data, add, target):
        data, rois, *trans = in_data
        module = kernels("roi.deformable", ctx.device)
        if number == 0:
            module.backward_data(head, rois, _displacements(trans), self.how, add, target)
        else:
            module.backward_trans(head, data, rois, trans[0], self.how, add, target)


class DeformablePSROIPoolingOp(DisplacedOp):
    def __init__(self, params):
        super().__init__(params, params.trans_std, (params.sample_per_part,) * 2, params.group_size)


def _displacements(trans):
    """The array of displacements; none is one without channels."""
    return trans[0] if trans else np.empty((0, 0, 1, 1), np.float32)


class DisplacedProp(ROIProperty):
    """Base: the third input holds the displacements."""

    def displacements(self, shape, rois, need):
        """The shape of the displacements, those of a box as ``need`` says; ``rois`` is how many boxes."""
        name = self.arguments[2]
        shape = self.check_shape(name, shape or (rois, *(-1 for _ in need)), ("num_rois", *need))
        if -1 not in (shape[0], rois) and shape[0] != rois:
            raise ShapeError(
                f"{self.label}: {name} must have one row for each of {rois} rois, got shape {shape}"
            )
        return shape


@register("_contrib_DeformablePSROIPooling")
class DeformablePSROIPoolingProp(DisplacedProp):
    """Mean of bilinear samples in bins that ``trans`` displaces (Deformable ConvNets, 2017)."""

    param, op = DeformablePSROIPoolingParam, DeformablePSROIPoolingOp
    arguments = {
        **ROIProperty.argument_docs,
        "trans": "displacements (num_rois, 2 * classes, parts, parts), x before y, in box sizes; "
        "left out with no_trans",
    }
    present_if = {"trans": lambda p: not p.no_trans}

    @property
    def pooled_size(self):
        return self.params.pooled_size, self.params.pooled_size

    def out_channels(self, channels):
        p = self.params
        words = f"output_dim * group_size * group_size = {p.output_dim} * {p.group_size} * {p.group_size}"
        self.check_channels(channels, p.output_dim * p.group_size**2, words)
        return p.output_dim

    def infer_shape(self, in_shapes):
        shapes, outputs = super().infer_shape(in_shapes)
        if self.params.no_trans:
            return shapes, outputs
        parts = self.params.parts
        trans = self.displacements(in_shapes[2], shapes[1][0], ("2 * classes", parts, parts))
        if trans[1] != -1 and (not trans[1] or trans[1] % 2 or self.params.output_dim % (trans[1] // 2)):
            raise ShapeError(
                f"{self.label}: trans must have 2 * classes channels, where classes divides output_dim "
                f"{self.params.output_dim}, got shape {trans}"
            )
        return [*shapes, trans], outputs


class DeformROIPoolingParam(DialectParam):
    table = "DeformROIPooling"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)
    sampling_ratio = samples_field(0, "sample_num", "sample_ratio")
    gamma = Field(float, 0.1, range=(0, None), doc="factor of the displacements, which are in box sizes")


class DeformROIPoolingOp(DisplacedOp):
    def __init__(self, params):
        super().__init__(params, params.gamma, params.sampling_ratio, 1)


@register("DeformROIPooling", "_contrib_DeformROIPooling")
class DeformROIPoolingProp(DisplacedProp):
    """ROIAlign whose bins ``offset`` displaces, all channels alike (Deformable ConvNets, as in mmcv)."""

    param, op = DeformROIPoolingParam, DeformROIPoolingOp
    arguments = {
        **ROIProperty.argument_docs,
        "offset": "displacements (num_rois, 2, height, width) of the bins, x before y, in box sizes",
    }

    def infer_shape(self, in_shapes):
        shapes, outputs = super().infer_shape(in_shapes)
        offset = self.displacements(in_shapes[2], shapes[1][0], (2, *self.pooled_size))
        return [*shapes, offset], outputs
