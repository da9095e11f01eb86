"""TensorFlow's crop_and_resize: one point a bin, from one end of the box to the other."""

from ...params import Field
from ...registry import register
from ..base import kernels
from .base import SeparableOp, SeparableProp
from .fields import DialectParam, Pair, mode_field, pooled_size_field


class CropAndResizeParam(DialectParam):
    table = "CropAndResize"
    pooled_size = pooled_size_field(Pair(), aliases=("crop_size",))
    mode = mode_field(table, doc="how a point between pixels is read", aliases=("method",))
    extrapolation_value = Field(float, 0.0, doc="what a point outside the map gives")

    #: Normalised boxes have no scale.
    spatial_scale = 1.0


class BoxGradientOp(SeparableOp):
    """Means whose boxes have a gradient too."""

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        edges = kernels("roi.edges", ctx.device)
        inputs = out_grad[0], *in_data, self.params.spatial_scale, self.rules
        add_data, add_rois = (request == "add" for request in req)
        in_one_pass = not ctx.device.is_gpu and "null" not in req
        if in_one_pass and edges.backward_with_data(*inputs, (add_data, add_rois), *in_grad):
            return
        super().backward(ctx, out_grad, in_data, out_data, req, in_grad, aux)
        if req[1] != "null":
            edges.backward(*inputs, add_rois, in_grad[1])

    def at_addresses(self, ctx, in_shapes, out_shape, dtype):
        """None: the functions of addresses know the gradient of the map only."""
        return


class CropAndResizeOp(BoxGradientOp):
    def compute(self, ctx, in_data, out_data):
        super().compute(ctx, in_data, out_data)
        if self.params.extrapolation_value:
            kernels("roi.edges", ctx.device).fill_outside(
                self.params.extrapolation_value, in_data[0].shape, in_data[1], self.rules, out_data[0]
            )


@register("CropAndResize", "_contrib_CropAndResize")
class CropAndResizeProp(SeparableProp):
    """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""

    param, op = CropAndResizeParam, CropAndResizeOp
    example_params = {"extrapolation_value": 1.0}
    zero_grad = ()
    argument_docs = {
        **SeparableProp.argument_docs,
        "rois": "boxes (num_rois, 5): image index, y1, x1, y2, x2, where 0 and 1 are the centres of the "
        "first and the last pixel. A row with a negative index or a number that is not finite gives zeros",
    }
