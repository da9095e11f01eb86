"""Precise ROI pooling: the integral of the bilinear surface over each bin (IoU-Net, 2018)."""

from ...params import shape
from ...registry import register
from .base import SeparableOp, SeparableProp
from .crop import backward_of_boxes
from .fields import DialectParam, pooled_size_field, scale_field

__all__ = ["PrROIPoolingOp", "PrROIPoolingParam", "PrROIPoolingProp"]


class PrROIPoolingParam(DialectParam):
    table = "PrROIPooling"
    pooled_size = pooled_size_field(shape(2))
    spatial_scale = scale_field(high=None)


class PrROIPoolingOp(SeparableOp):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        super().backward(ctx, out_grad, in_data, out_data, req, in_grad, aux)
        backward_of_boxes(self, ctx, out_grad, in_data, req, in_grad)


@register("PrROIPooling", "_contrib_PrROIPooling")
class PrROIPoolingProp(SeparableProp):
    """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""

    param, op = PrROIPoolingParam, PrROIPoolingOp
    zero_grad = ()
