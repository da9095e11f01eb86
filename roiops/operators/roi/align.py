"""ROIAlign: the mean, or the maximum, of bilinear samples in bins that no rounding moves."""

from ...errors import ShapeError
from ...params import Field
from ...registry import register
from .base import SeparableProp
from .fields import DialectParam, dialect_field, mode_field, pooled_size_field, samples_field, scale_field


class ROIAlignParam(DialectParam):
    table = "ROIAlign"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)
    sampling_ratio = samples_field(0, "sample_num", "sample_ratio")
    mode = mode_field(table)
    aligned = Field(
        bool,
        True,
        doc="pixel centres at half-integers, and no least size of a box; for dialects that know it",
    )
    dialect = dialect_field(table)

    def to_strings(self, *, defaults=False):
        # Always with the dialect: a graph file without one comes from MXNet, and means its own.
        return {**super().to_strings(defaults=defaults), "dialect": self.dialect}


@register("ROIAlign")
class ROIAlignProp(SeparableProp):
    """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017)."""

    param = ROIAlignParam


class ContribROIAlignParam(DialectParam):
    table = "contrib.ROIAlign"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field()
    sample_ratio = samples_field(-1, "sampling_ratio")
    position_sensitive = Field(bool, False, doc="whether each bin reads channels of its own")
    aligned = Field(bool, False, doc="pixel centres at half-integers, and no least size of a box")

    @property
    def ratio(self):
        return self.sample_ratio


@register("_contrib_ROIAlign", "_npx_roi_align")
class ContribROIAlignProp(SeparableProp):
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
