"""Losses: operators at which backward starts. They ignore the head gradient unless told otherwise."""

import math

import numpy as np

from ...dtypes import wide
from ...params import Field, enum
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty, kernels, known, merge_shapes, variant
from ..dense import FloatProperty
from ..tensor.common import ElementwiseProp, declare
from ..tensor.unary import sigmoid
from ..tensor.views import ReshapeOp


class LossProp(OperatorProperty):
    """Base of losses on ``data`` and ``label``."""

    zero_grad = own_types = ("label",)
    is_loss = True
    inplace = {0: 0}


# -- softmax with cross-entropy --------------------------------------------------------------------------


_NORMALIZATION = enum("null", "batch", "valid")


class SoftmaxOutputOp(Operator):
    """Forward is softmax, backward the gradient of its cross-entropy with the labels."""

    def _split(self, array):
        """The array as (outer, classes, inner)."""
        n = array.shape[0]
        if self.params.multi_output:
            return array.reshape(n, array.shape[1], math.prod(array.shape[2:]))
        if self.params.preserve_shape:
            return array.reshape(-1 if array.size else 0, array.shape[-1], 1)
        return array.reshape(n, math.prod(array.shape[1:]), 1)

    def forward(self, ctx, in_data, req, out_data, aux):
        loss = kernels("network.loss", ctx.device)
        x = self._split(in_data[0])
        arrays.fill(out_data[0], req[0], lambda out: loss.softmax(x, 1, False, self._split(out)))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        p = self.params
        y, label = out_data[0], in_data[1]
        if not y.size:
            return
        if label.shape == y.shape:
            factor = np.array(p.grad_scale, y.dtype)
            arrays.evaluate(lambda y, t: (y - t) * factor, [y, label], in_grad[0], req[0])
            return
        loss = kernels("network.loss", ctx.device)
        half = y.dtype == np.float16
        head = out_grad[0] if p.out_grad else None

        def compute(target):
            work = np.empty(target.shape, np.float32) if half else target
            outputs = self._split(y.astype(np.float32) if half else y)
            index = loss.class_index(label)
            loss.cross_entropy_gradient(
                np.ascontiguousarray(outputs),
                # With more axes than two, MXNet's default asks for more labels than it has rows.
                index.reshape(-1)[: outputs.shape[0] * outputs.shape[2]].reshape(outputs.shape[::2]),
                p.use_ignore,
                int(p.ignore_label),
                0.0 if p.multi_output else p.smooth_alpha,
                self._factor(index, outputs),
                self._split(work),
            )
            if head is not None:
                work *= head
            if half:
                target[...] = work

        arrays.fill(in_grad[0], req[0], compute)

    def _factor(self, index, outputs):
        p = self.params
        positions = max(outputs.shape[2], 1)
        if p.normalization == "valid":
            return p.grad_scale / max(int(np.count_nonzero(index != int(p.ignore_label))), 1)
        if p.normalization == "batch":
            return p.grad_scale / max(index.size, 1)
        return p.grad_scale / positions


@register("SoftmaxOutput", "Softmax")
class SoftmaxOutputProp(LossProp, FloatProperty):
    """Softmax, whose backward is the gradient of the cross-entropy with the labels.

    By default all axes but the first hold the classes; with ``preserve_shape`` the last one, with
    ``multi_output`` axis 1. Labels are class indices, or probabilities if they have the shape of data.
    """

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

    op = SoftmaxOutputOp
    arguments = {
        "data": "scores of the classes",
        "label": "index of the right class, or probabilities of the shape of data",
    }
    keeps_shape = True

    @property
    def backward_needs(self):
        return ("in_data", "out_data", *(("out_grad",) if self.params.out_grad else ()))

    @property
    def is_loss(self):
        return not self.params.out_grad

    def infer_shape(self, in_shapes):
        shape, label = in_shapes
        self.check_ndim("data", shape, least=2)
        same = None if label is None else merge_shapes(tuple(shape), tuple(label))
        if same is not None:  # probabilities
            return [same, same], [same]
        return [shape, self._label_shape(tuple(shape), label)], [shape]

    def _label_shape(self, shape, label):
        if self.params.multi_output:
            positions = math.prod(shape[2:]) if known(shape[2:]) else -1
            forms = [(shape[0], positions), (shape[0], *shape[2:]), (shape[0], 1, *shape[2:])]
        elif self.params.preserve_shape:
            forms = [shape[:-1]]
        else:
            forms = [shape[:-1], shape[:1]]
        return self.check_one_of("label", label, forms, f", or that of data, {shape}")


class SoftmaxCrossEntropyOp(Operator):
    """The sum over the batch of -log(softmax(data)[label])."""

    _softmax = None

    def _probabilities(self, ctx, data):
        loss = kernels("network.loss", ctx.device)
        if self._softmax is None:
            self._softmax = np.empty(data.shape, wide(data.dtype))
        loss.softmax(data[:, :, None], 1, False, self._softmax[:, :, None])
        return self._softmax

    def forward(self, ctx, in_data, req, out_data, aux):
        data, label = in_data
        index = kernels("network.loss", ctx.device).class_index(label)
        p = self._probabilities(ctx, data)
        inside = (index >= 0) & (index < data.shape[1])
        chosen = p[np.flatnonzero(inside), index[inside]]
        # MXNet keeps the logarithm finite in this way.
        total = -np.log(np.maximum(chosen, 1e-8)).sum()
        arrays.evaluate(None, [np.reshape(total, (1,))], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        loss = kernels("network.loss", ctx.device)
        data, label = in_data
        p = self._probabilities(ctx, data)[:, :, None]
        index = loss.class_index(label)[:, None]
        work = np.empty_like(p)
        loss.cross_entropy_gradient(p, index, False, -1, 0.0, float(out_grad[0][0]), work)
        arrays.evaluate(None, [work[:, :, 0]], in_grad[0], req[0])


def _scores_and_labels(prop, shape, label):
    """The shapes of scores ``(batch, classes)`` and of a class index for each row."""
    prop.check_ndim("data", shape, 2)
    return [shape, prop.check_shape("label", label, shape[:1])]


@register("softmax_cross_entropy")
class SoftmaxCrossEntropyProp(OperatorProperty):
    """The cross-entropy of softmax(data) with class labels, summed over the batch."""

    op = SoftmaxCrossEntropyOp
    zero_grad = own_types = ("label",)
    backward_needs = ("out_grad", "in_data")
    arguments = {"data": "scores, of shape (batch, classes)", "label": "class indices, of shape (batch,)"}

    def infer_shape(self, in_shapes):
        known = _scores_and_labels(self, *in_shapes)
        return known, [(1,)]


# -- regression ------------------------------------------------------------------------------------------


class RegressionOp(Operator):
    """``link(data)``; the gradient is ``slope(output, label)`` over the outputs of one sample."""

    link = None

    @staticmethod
    def slope(y, t):
        return y - t

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.evaluate(type(self).link, in_data[:1], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        y, label = out_data[0], in_data[1].reshape(out_data[0].shape)
        each = math.prod(y.shape[1:])
        factor = self.params.grad_scale / max(each, 1)
        slope = self.slope
        arrays.evaluate(lambda y, t: slope(y, t) * y.dtype.type(factor), [y, label], in_grad[0], req[0])


class AbsoluteOp(RegressionOp):
    @staticmethod
    def slope(y, t):
        one = y.dtype.type(1)
        return np.where(y > t, one, -one)  # where they are equal MXNet takes the left side


class RegressionProp(LossProp):
    """Base of the regression outputs."""

    grad_scale = Field(float, 1.0, doc="factor of the gradient")

    backward_needs = ("in_data", "out_data")
    arguments = {"data": "what was predicted", "label": "what it should be, with as many entries"}

    def infer_shape(self, in_shapes):
        shape, label = in_shapes
        if label is None:
            label = shape[:1] if len(shape) == 2 and shape[1] == 1 else shape
        label = merge_shapes(label, shape) or label
        if known(label) and (label[:1] != tuple(shape[:1]) or math.prod(label) != math.prod(shape)):
            raise self.shape_error(
                f"label must have as many entries as data, {tuple(shape)}, got {tuple(label)}"
            )
        return [shape, label], [shape]


declare(
    "LinearRegressionOutput",
    RegressionProp,
    "The data as it is; backward is the gradient of half the squared error.",
    op=RegressionOp,
)
declare(
    "LogisticRegressionOutput",
    RegressionProp,
    "sigmoid(data); backward is the gradient of the binary cross-entropy.",
    op=variant(RegressionOp, link=staticmethod(sigmoid)),
)
declare(
    "MAERegressionOutput",
    RegressionProp,
    "The data as it is; backward is the gradient of the absolute error.",
    op=AbsoluteOp,
)


class SVMOutputOp(ReshapeOp):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        loss = kernels("network.loss", ctx.device)
        p = self.params
        x = np.ascontiguousarray(out_data[0], wide(out_data[0].dtype))
        work = np.empty_like(x)
        index = loss.class_index(in_data[1])
        loss.svm_gradient(x, index, p.margin, p.regularization_coefficient, p.use_linear, work)
        arrays.evaluate(None, [work], in_grad[0], req[0])


@register("SVMOutput")
class SVMOutputProp(LossProp):
    """The data as it is; backward is the gradient of a support vector machine's hinge loss."""

    margin = Field(float, 1.0, doc="distance from the boundary below which an entry has a gradient")
    regularization_coefficient = Field(float, 1.0, doc="factor of the gradient")
    use_linear = Field(bool, False, doc="whether the loss is linear (L1-SVM) instead of squared (L2-SVM)")

    op = SVMOutputOp
    backward_needs = ("in_data", "out_data")
    arguments = {"data": "scores, of shape (batch, classes)", "label": "class indices, of shape (batch,)"}

    def infer_shape(self, in_shapes):
        known = _scores_and_labels(self, *in_shapes)
        return known, [known[0]]


# -- losses made of other operators ----------------------------------------------------------------------


class MakeLossOp(ReshapeOp):
    """Identity with a constant gradient."""

    def factor(self, data, shape):
        p = self.params
        if p.normalization == "batch":
            return p.grad_scale / max(math.prod(shape[:-1]), 1)
        if p.normalization == "valid":
            return p.grad_scale / max(int(np.count_nonzero(data > p.valid_thresh)), 1)
        return p.grad_scale

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        value = np.array(self.factor(in_data[0], in_grad[0].shape), in_grad[0].dtype)
        arrays.evaluate(None, [value], in_grad[0], req[0])


class MakeLossBase(ElementwiseProp):
    is_loss = True
    arguments = {"data": "the loss, computed by other operators"}


@register("MakeLoss")
class MakeLossProp(MakeLossBase):
    """Makes a loss of any array: the data as it is, whose gradient is ``grad_scale``."""

    grad_scale = Field(float, 1.0, doc="the gradient of every entry")
    valid_thresh = Field(float, 0.0, doc="entries above it count as valid")
    normalization = Field(
        _NORMALIZATION,
        "null",
        doc="what the gradient is divided by: nothing, the batch, or the valid entries",
    )

    op = MakeLossOp
    monitored_as_data = True

    @property
    def backward_needs(self):
        return ("in_data",) if self.params.normalization == "valid" else ()


declare(
    "make_loss",
    MakeLossBase,
    "Makes a loss of any array: the data as it is, whose gradient is 1.",
    op=variant(MakeLossOp, factor=lambda op, data, shape: 1),
    outputs=("loss",),
    backward_needs=(),
)
