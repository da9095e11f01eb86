"""ROIAlign over several maps at once: each box reads the one that suits its size (FPN, 2017)."""

import math

from ...errors import ParamError, ShapeError
from ...kernels.rules import Pooling
from ...params import Field, floats
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty
from .fields import DialectParam, dialect_field, pooled_size_field, samples_field


class MultiScaleROIAlignParam(DialectParam):
    table = "MultiScaleROIAlign"
    num_args = Field(int, range=(2, None), doc="number of inputs: the maps, and the boxes")
    pooled_size = pooled_size_field()
    spatial_scales = Field(floats(), above=0, doc="feature-map pixels per image pixel, for each map")
    sampling_ratio = samples_field(2, "sample_num", "sample_ratio")
    aligned = Field(
        bool, True, doc="pixel centres at half-integers, and no least size of a box; not under torchvision"
    )
    canonical_size = Field(
        float,
        0.0,
        range=(0, None),
        doc="side of a box that reads the canonical level; 0: 224, and under mmdet 56, its finest_scale",
    )
    canonical_level = Field(
        int, 4, doc="level of a box of that size, where a map scaled by 1 / 2**n has level n; not under mmdet"
    )
    dialect = dialect_field(table)

    def validate(self, operator):
        super().validate(operator)
        if len(self.spatial_scales) != self.num_args - 1:
            raise ParamError(
                f"{operator}: spatial_scales must hold one number for each of {self.num_args - 1} maps, "
                f"got {len(self.spatial_scales)}"
            )


class MultiScaleROIAlignOp(ROIOperator):
    def __init__(self, params):
        super().__init__(params)
        self.hows = [
            Pooling(params.row.rules, scale, params.sampling_ratio) for scale in params.spatial_scales
        ]
        inside, added = params.row.level_slack
        mmdet = params.dialect == "mmdet"
        size = params.canonical_size or (56.0 if mmdet else 224.0)
        # mmdet counts from the first map, the others from the image.
        first = 0.0 if mmdet else params.canonical_level + math.log2(params.spatial_scales[0])
        self.levels = first, size, inside, added, len(params.spatial_scales)

    def data_and_rois(self, in_data):
        return in_data[0], in_data[-1]

    def _each(self, ctx, in_data):
        """``(map, its rows, how to pool)``: all rows, those that read another map marked to be ignored."""
        *maps, rois = in_data
        rows = kernels("roi.levels", ctx.device).rows_of_levels(rois, self.levels, maps[0].dtype)
        return enumerate(zip(maps, rows, self.hows, strict=True))

    def compute(self, ctx, in_data, out_data):
        for k, (data, rois, how) in self._each(ctx, in_data):
            kernels("roi.average", ctx.device).forward(data, rois, how, out_data[0], clear=k == 0)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        for k, (_, rois, how) in self._each(ctx, in_data):
            if req[k] != "null":
                kernels("roi.average", ctx.device).backward(
                    out_grad[0], rois, how, req[k] == "add", in_grad[k]
                )


@register("MultiScaleROIAlign", "_contrib_MultiScaleROIAlign")
class MultiScaleROIAlignProp(ROIProperty):
    """ROIAlign on a feature pyramid: the size of a box says which map it reads (FPN, 2017)."""

    param, op = MultiScaleROIAlignParam, MultiScaleROIAlignOp
    variadic = "num_args"
    arguments = {
        "data0": "the finest feature map (N, C, H, W); data1 and so on are the others",
        "rois": ROIProperty.argument_docs["rois"],
    }

    @property
    def maps(self):
        return self.params.num_args - 1

    def list_arguments(self):
        return (*(f"data{k}" for k in range(self.maps)), "rois")

    def infer_shape(self, in_shapes):
        *maps, rois = in_shapes
        shapes, outputs = super().infer_shape([maps[0], rois])
        for k, data in enumerate(maps):
            self.check_ndim(f"data{k}", data, 4)
            if tuple(data[:2]) != tuple(maps[0][:2]):
                raise ShapeError(
                    f"{self.label}: data{k} must have the images and channels of data0, "
                    f"{tuple(maps[0][:2])}, got shape {tuple(data)}"
                )
        return [*maps, shapes[1]], outputs
