"""Precise ROI pooling: the integral of the bilinear surface over each bin (IoU-Net, 2018)."""

from ...registry import register
from .base import SeparableProp
from .crop import BoxGradientOp
from .fields import DialectParam, pooled_size_field, scale_field


class PrROIPoolingParam(DialectParam):
    table = "PrROIPooling"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)


@register("PrROIPooling", "_contrib_PrROIPooling")
class PrROIPoolingProp(SeparableProp):
    """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""

    param, op = PrROIPoolingParam, BoxGradientOp
    zero_grad = ()
