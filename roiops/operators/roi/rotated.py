"""ROIAlign for rotated boxes."""

from ...params import Parameter, shape
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty, rules_of
from .fields import caffe_names, pooled_size_field, samples_field, scale_field

__all__ = ["RROIAlignOp", "RROIAlignProp"]


class RROIAlignParam(Parameter):
    pooled_size = pooled_size_field(shape(2))
    spatial_scale = scale_field()
    sampling_ratio = samples_field(-1, "sample_num", "sample_ratio")

    @classmethod
    def translate(cls, given, operator):
        return caffe_names(given, operator)


class RROIAlignOp(ROIOperator):
    def __init__(self, params):
        super().__init__(params)
        self.numbers = params.spatial_scale, params.sampling_ratio, rules_of("contrib.RROIAlign")

    def compute(self, ctx, in_data, out_data):
        kernels("roi.rotated", ctx.device).forward(*in_data, *self.numbers, *out_data)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "null":
            kernels("roi.rotated", ctx.device).backward(
                out_grad[0], in_data[1], *self.numbers, req[0] == "add", in_grad[0]
            )


@register("_contrib_RROIAlign")
class RROIAlignProp(ROIProperty):
    """Mean of bilinear samples in the bins of rotated boxes. Unlike MXNet's, it has a gradient."""

    param, op = RROIAlignParam, RROIAlignOp
    roi_columns = 6
    argument_docs = {
        **ROIProperty.argument_docs,
        "rois": "boxes (num_rois, 6): image index, centre x, centre y, width, height in image pixels, and "
        "the angle in degrees. A row with a negative index or a number that is not finite is ignored",
    }
