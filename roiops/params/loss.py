"""Parameters of softmax and the loss operators."""

from .field import Field, dtype, enum, optional
from .parameter import Parameter

_NORMALIZATION = enum("null", "batch", "valid")


class SoftmaxParam(Parameter):
    axis = Field(int, -1, doc="axis along which entries sum to 1")
    temperature = Field(optional(float), None, doc="what the data is divided by first; 1 if none")
    dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")
    use_length = Field(
        optional(bool), False, doc="whether only the first entries count, as many as length says"
    )


class SoftmaxActivationParam(Parameter):
    mode = Field(
        enum("channel", "instance"),
        "instance",
        doc="channel: along axis 1; instance: along the last axis, which for two dimensions is the same",
    )


class SoftmaxOutputParam(Parameter):
    grad_scale = Field(float, 1.0, doc="factor of the gradient")
    ignore_label = Field(
        float, -1.0, range=(-(2.0**53), 2.0**53), doc="label of the positions that use_ignore leaves out"
    )
    multi_output = Field(bool, False, doc="whether axis 1 holds the classes and further axes positions")
    use_ignore = Field(bool, False, doc="whether positions labelled ignore_label get no gradient")
    preserve_shape = Field(bool, False, doc="whether the last axis holds the classes")
    normalization = Field(
        _NORMALIZATION,
        "null",
        doc="what the gradient is divided by: nothing, the labels, or the labels not ignored",
    )
    out_grad = Field(bool, False, doc="whether the gradient is multiplied by the head gradient")
    smooth_alpha = Field(
        float, 0.0, range=(0, 1), doc="how much of the label's probability goes to the other classes"
    )


class MakeLossParam(Parameter):
    grad_scale = Field(float, 1.0, doc="the gradient of every entry")
    valid_thresh = Field(float, 0.0, doc="entries above it count as valid")
    normalization = Field(
        _NORMALIZATION,
        "null",
        doc="what the gradient is divided by: nothing, the batch, or the valid entries",
    )


class RegressionOutputParam(Parameter):
    grad_scale = Field(float, 1.0, doc="factor of the gradient")


class SVMOutputParam(Parameter):
    margin = Field(float, 1.0, doc="distance from the boundary below which an entry has a gradient")
    regularization_coefficient = Field(float, 1.0, doc="factor of the gradient")
    use_linear = Field(bool, False, doc="whether the loss is linear (L1-SVM) instead of squared (L2-SVM)")
