"""ROIPooling: the maximum, or the mean, of the pixels in integer bins."""

from ...registry import register
from .base import SeparableProp
from .fields import DialectParam, dialect_field, mode_field, pooled_size_field, scale_field


class ROIPoolingParam(DialectParam):
    table = "ROIPooling"
    bounds_mxnets_scale = True
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)
    dialect = dialect_field(table)
    mode = mode_field(table)


@register("ROIPooling", "_npx_roi_pooling")
class ROIPoolingProp(SeparableProp):
    """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015)."""

    param = ROIPoolingParam
    outputs = ("output", "argmax")
