"""Pictures on their way to a network: ``nd.image.to_tensor``, ``normalize``, ``crop`` and flips."""

import numpy as np

from ...errors import ParamError, ShapeError
from ...params import Field, Parameter, floats
from ...registry import register
from ..base import OperatorProperty
from ..dense import FloatProperty, FormulaOperator
from .common import declare


class ToTensorOp(FormulaOperator):
    def values(self, data):
        return (np.moveaxis(data, -1, -3) / np.float32(255),)

    def slopes(self, heads, inputs, outputs):
        return (np.moveaxis(heads[0], -3, -1) / np.float32(255),)


@register("_image_to_tensor")
class ImageToTensorProp(OperatorProperty):
    """Pictures with the channels last and numbers up to 255 as float32, channels first, numbers up to 1."""

    op = ToTensorOp
    argument_docs = {"data": "(height, width, channels), or a batch of them"}
    backward_needs = ("out_grad",)
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        self.check_ndim("data", shape, 3, 4)
        return in_shapes, [(*shape[:-3], shape[-1], *shape[-3:-1])]

    def infer_type(self, in_types):
        return in_types, [np.dtype(np.float32)]


class NormalizeParam(Parameter):
    mean = Field(floats(), (0.0,), doc="what is subtracted: one number, or one for each channel")
    std = Field(floats(), (1.0,), doc="what is then divided by: one number, or one for each channel")

    def validate(self, operator):
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, 3):
                raise ParamError(f"{operator}: {name} must have 1 or 3 entries, got {getattr(self, name)}")


class NormalizeOp(FormulaOperator):
    def _per_channel(self, numbers, dtype):
        return np.array(numbers, dtype)[:, None, None]

    def values(self, data):
        p = self.params
        return ((data - self._per_channel(p.mean, data.dtype)) / self._per_channel(p.std, data.dtype),)

    def slopes(self, heads, inputs, outputs):
        return (heads[0] / self._per_channel(self.params.std, heads[0].dtype),)


@register("_image_normalize")
class ImageNormalizeProp(FloatProperty):
    """``(data - mean) / std``, channel by channel."""

    param, op = NormalizeParam, NormalizeOp
    partial_shapes = False
    argument_docs = {"data": "(channels, height, width), or a batch of them; 1 or 3 channels"}
    backward_needs = ("out_grad",)
    keeps_shape = True
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        self.check_ndim("data", shape, 3, 4)
        p = self.params
        if shape[-3] not in (1, 3) or max(len(p.mean), len(p.std)) > shape[-3]:
            raise ShapeError(
                f"{self.label}: data must have 3 channels, or 1 with one number for mean and std, "
                f"got shape {tuple(shape)}"
            )
        return in_shapes, [shape]


class CropOp(FormulaOperator):
    @property
    def _kept(self):
        p = self.params
        return ..., slice(p.y, p.y + p.height), slice(p.x, p.x + p.width), slice(None)

    def values(self, data):
        return (data[self._kept],)

    def slopes(self, heads, inputs, outputs):
        grad = np.zeros_like(inputs[0])
        grad[self._kept] = heads[0]
        return (grad,)


@register("_image_crop")
class ImageCropProp(OperatorProperty):
    """A rectangle of each picture."""

    x = Field(int, range=(0, None), doc="left edge of what is kept")
    y = Field(int, range=(0, None), doc="upper edge of what is kept")
    width = Field(int, range=(1, None), doc="width of what is kept")
    height = Field(int, range=(1, None), doc="height of what is kept")

    op = CropOp
    argument_docs = {"data": "(height, width, channels), or a batch of them"}
    backward_needs = ("out_grad", "in_data")
    moves_data = True

    def infer_shape(self, in_shapes):
        (shape,) = in_shapes
        self.check_ndim("data", shape, 3, 4)
        p = self.params
        if p.y + p.height > shape[-3] or p.x + p.width > shape[-2]:
            raise ShapeError(
                f"{self.label}: the rectangle up to ({p.y + p.height}, {p.x + p.width}) "
                f"reaches out of pictures of shape {tuple(shape)}"
            )
        return in_shapes, [(*shape[:-3], p.height, p.width, shape[-1])]


class FlipOp(FormulaOperator):
    axis = -2

    def values(self, data):
        return (np.flip(data, self.axis),)

    def slopes(self, heads, inputs, outputs):
        return (np.flip(heads[0], self.axis),)


class FlipUpDownOp(FlipOp):
    axis = -3


class FlipProp(OperatorProperty):
    """Base: pictures with the channels last, mirrored."""

    op = FlipOp
    argument_docs = {"data": "(height, width, channels), or a batch of them"}
    backward_needs = ("out_grad",)
    moves_data = keeps_shape = True

    def infer_shape(self, in_shapes):
        self.check_ndim("data", in_shapes[0], 3, 4)
        return in_shapes, [in_shapes[0]]


declare("_image_flip_left_right", FlipProp, "Each picture with left and right changed.")
declare("_image_flip_top_bottom", FlipProp, "Each picture with top and bottom changed.", op=FlipUpDownOp)
