"""Pictures on their way to a network: ``nd.image.to_tensor``, ``normalize``, ``crop`` and flips."""

import numpy as np

from ...errors import ParamError
from ...params import Field, Parameter, floats
from ...registry import register
from ..base import OperatorProperty
from ..dense import FloatProperty, FormulaOperator
from .common import declare
from .slices import SliceProp


class ToTensorOp(FormulaOperator):
    def values(self, data):
        return (np.moveaxis(data, -1, -3) / np.float32(255),)

    def slopes(self, heads, inputs, outputs):
        return (np.moveaxis(heads[0], -3, -1) / np.float32(255),)


@register("_image_to_tensor")
class ImageToTensorProp(OperatorProperty):
    """Pictures with the channels last and numbers up to 255 as float32, channels first, numbers up to 1."""

    op = ToTensorOp
    out_types = (np.dtype(np.float32),)
    arguments = {"data": "(height, width, channels), or a batch of them"}
    backward_needs = ("out_grad",)
    monitored_as_data = True

    def out_shapes(self, shape):
        self.check_ndim("data", shape, 3, 4)
        return [(*shape[:-3], shape[-1], *shape[-3:-1])]


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
    arguments = {"data": "(channels, height, width), or a batch of them; 1 or 3 channels"}
    backward_needs = ("out_grad",)
    keeps_shape = True
    monitored_as_data = True

    def out_shapes(self, shape):
        self.check_ndim("data", shape, 3, 4)
        p = self.params
        if shape[-3] not in (1, 3) or max(len(p.mean), len(p.std)) > shape[-3]:
            raise self.shape_error(
                f"data must have 3 channels, or 1 with one number for mean and std, got shape {tuple(shape)}"
            )
        return [shape]


class PictureProp(SliceProp):
    """Base: a part of each picture, with the channels last."""

    arguments = {"data": "(height, width, channels), or a batch of them"}

    def whole(self, shape) -> list:
        """All of the pictures, as a slice for each axis."""
        self.check_ndim("data", shape, 3, 4)
        return [slice(0, n, 1) for n in shape]


@register("_image_crop")
class ImageCropProp(PictureProp):
    """A rectangle of each picture."""

    x = Field(int, range=(0, None), doc="left edge of what is kept")
    y = Field(int, range=(0, None), doc="upper edge of what is kept")
    width = Field(int, range=(1, None), doc="width of what is kept")
    height = Field(int, range=(1, None), doc="height of what is kept")

    def key(self, shape):
        key, p = self.whole(shape), self.params
        bottom, right = p.y + p.height, p.x + p.width
        if bottom > key[-3].stop or right > key[-2].stop:
            raise self.shape_error(
                f"the rectangle up to ({bottom}, {right}) reaches out of pictures of shape {tuple(shape)}"
            )
        key[-3:-1] = slice(p.y, bottom, 1), slice(p.x, right, 1)
        return tuple(key)


class FlipProp(PictureProp):
    """Base: pictures mirrored."""

    keeps_shape = True
    axis = -2

    def key(self, shape):
        key = self.whole(shape)
        key[self.axis] = slice(key[self.axis].stop - 1, -1, -1)
        return tuple(key)


declare("_image_flip_left_right", FlipProp, "Each picture with left and right changed.")
declare("_image_flip_top_bottom", FlipProp, "Each picture with top and bottom changed.", axis=-3)
