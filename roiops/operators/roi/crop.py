"""TensorFlow's crop_and_resize: one point a bin, from one end of the box to the other."""

from ...params import Field, enum
from ...registry import register
from ..base import kernels
from .base import SeparableOp, SeparableProp
from .fields import DialectParam, Pair, mode_field, pooled_size_field


class CropAndResizeParam(DialectParam):
    table = "CropAndResize"
    pooled_size = pooled_size_field(Pair(), aliases=("crop_size",))
    mode = mode_field(table, doc="how a point between pixels is read", aliases=("method",))
    extrapolation_value = Field(float, 0.0, doc="what a point outside the map gives")
    layout = Field(enum("NCHW", "NHWC"), "NCHW", doc="order of the axes of data and output")

    #: Normalised boxes have no scale.
    spatial_scale = 1.0

    @property
    def channels_last(self) -> bool:
        return self.layout == "NHWC"


class BoxGradientOp(SeparableOp):
    """Means whose boxes have a gradient too."""

    def gradient(self, ctx, number, head, in_data, out_data, add, target):
        if number == 0:
            super().gradient(ctx, number, head, in_data, out_data, add, target)
        else:
            kernels("roi.edges", ctx.device).backward(head, *in_data, self.how, add, target)

    def at_addresses(self, ctx, in_shapes, out_shape, dtype):
        """None: the functions of addresses know the gradient of the map only."""
        return


class CropAndResizeOp(BoxGradientOp):
    def forward(self, ctx, in_data, req, out_data, aux):
        (data, rois), (out,) = in_data, out_data
        super().forward(ctx, [self._planes(ctx, data), rois], req, [self._planes(ctx, out)], aux)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        (data, rois), (head,), (grad_data, grad_rois) = in_data, out_grad, in_grad
        data, head, grad_data = (self._planes(ctx, array) for array in (data, head, grad_data))
        super().backward(ctx, [head], [data, rois], out_data, req, [grad_data, grad_rois], aux)

    def _planes(self, ctx, array):
        """An array of the given layout as (N, C, H, W); the kernels take any strides."""
        if not self.params.channels_last or array is None:
            return array
        order = 0, 3, 1, 2
        if ctx.device.is_gpu:
            return kernels("runtime", ctx.device).transposed(array, order)
        return array.transpose(order)

    def compute(self, ctx, in_data, out_data):
        super().compute(ctx, in_data, out_data)
        if self.params.extrapolation_value:
            kernels("roi.edges", ctx.device).fill_outside(
                self.params.extrapolation_value, *in_data, self.how, out_data[0]
            )


@register("CropAndResize", "_contrib_CropAndResize")
class CropAndResizeProp(SeparableProp):
    """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""

    param, op = CropAndResizeParam, CropAndResizeOp
    example_params = {"extrapolation_value": 1.0}
    zero_grad = ()
    arguments = {
        **SeparableProp.argument_docs,
        "data": "image or feature map, (N, C, H, W) or (N, H, W, C) as layout says",
        "rois": "boxes (num_rois, 5): image index, y1, x1, y2, x2, where 0 and 1 are the centres of the "
        "first and the last pixel. A row with a negative index or a number that is not finite gives zeros",
    }

    def infer_shape(self, in_shapes):
        if not self.params.channels_last or in_shapes[0] is None:
            return super().infer_shape(in_shapes)
        self.check_ndim("data", in_shapes[0], 4)
        images, height, width, channels = in_shapes[0]
        (_, rois), [(count, _, *bins)] = super().infer_shape(
            [(images, channels, height, width), *in_shapes[1:]]
        )
        return [in_shapes[0], rois], [(count, *bins, channels)]
