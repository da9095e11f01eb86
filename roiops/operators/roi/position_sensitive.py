"""Pooling of score maps: each group of bins reads channels of its own (R-FCN, 2016)."""

from ...errors import ParamError
from ...kernels.rules import INNER, ONE_PER_BIN
from ...params import Field
from ...registry import register
from .base import SeparableProp
from .fields import (
    DialectParam,
    Pair,
    dialect_field,
    mode_field,
    output_dim_field,
    pooled_size_field,
    samples_field,
    scale_field,
)


class _Param(DialectParam):
    spatial_scale = scale_field(high=None)
    output_dim = output_dim_field()
    pooled_size = pooled_size_field(Pair())
    group_size = Field(
        int,
        0,
        range=(0, None),
        doc="groups of bins on each axis, each with score maps of its own; 0: as many as bins",
    )

    @property
    def groups(self) -> int:
        return self.group_size or self.pooled_size[0]

    @classmethod
    def translate(cls, given, operator):
        given = super().translate(given, operator)
        if "pooled_size" not in given and given.get("group_size"):
            given = {**given, "pooled_size": given["group_size"]}  # R-FCN has one number for both
        return given

    def validate(self, operator):
        super().validate(operator)
        height, width = self.pooled_size
        if self.row.rules.channels == ONE_PER_BIN:
            if self.group_size and (self.group_size, self.group_size) != self.pooled_size:
                raise ParamError(
                    f"{operator}: group_size must be left out under dialect {self.dialect!r}, which has one "
                    f"group a bin, got {self.group_size}"
                )
        elif not self.group_size and height != width:
            raise ParamError(
                f"{operator}: group_size is required when pooled_size is not square, {height, width}"
            )


class _Prop(SeparableProp):
    """Score maps: ``output_dim`` for each group of bins."""

    def out_channels(self, channels):
        p = self.params
        if p.row.rules.channels == ONE_PER_BIN:
            bins = p.pooled_size[0] * p.pooled_size[1]
            self.check_channels(channels, p.output_dim * bins, f"output_dim * bins = {p.output_dim} * {bins}")
        else:
            words = f"output_dim * group_size * group_size = {p.output_dim} * {p.groups} * {p.groups}"
            self.check_channels(channels, p.output_dim * p.groups**2, words)
        return p.output_dim


class PSROIPoolingParam(_Param):
    table = "PSROIPooling"
    bounds_mxnets_scale = True
    dialect = dialect_field(table)
    mode = mode_field(table)
    as_released = Field(
        bool,
        False,
        doc="leave the last row and column of the map out of the forward pass, as torchvision does",
    )


@register("_contrib_PSROIPooling", "PSROIPooling")
class PSROIPoolingProp(_Prop):
    """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""

    param = PSROIPoolingParam


class PSROIAlignParam(_Param):
    table = "PSROIAlign"
    sampling_ratio = samples_field(2, "sample_num", "sample_ratio")
    dialect = dialect_field(table)
    mode = mode_field(table)

    def validate(self, operator):
        super().validate(operator)
        if self.row.rules.samples == INNER and min(self.sampling_ratio) < 1:
            raise ParamError(
                f"{operator}: sampling_ratio must be 1 or more under dialect {self.dialect!r}, "
                f"got {self.sampling_ratio}"
            )


@register("PSROIAlign")
class PSROIAlignProp(_Prop):
    """Mean of bilinear samples in bins that each read their own score maps."""

    param = PSROIAlignParam
