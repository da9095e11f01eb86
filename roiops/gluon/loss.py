"""``gluon.loss``: losses, one number for each sample."""

import numpy as np

from .. import ndarray
from ..training.factory import Declared
from .hybrid import HybridBlock

__all__ = ["CTCLoss", "CosineEmbeddingLoss", "HingeLoss", "HuberLoss", "KLDivLoss", "L1Loss", "L2Loss"]
__all__ += ["LogisticLoss", "Loss", "PoissonNLLLoss", "SDMLLoss", "SigmoidBCELoss", "TripletLoss"]
__all__ += ["SigmoidBinaryCrossEntropyLoss", "SoftmaxCELoss", "SoftmaxCrossEntropyLoss", "SquaredHingeLoss"]

_WEIGHTED = {"weight": None, "batch_axis": 0}
_OF_CLASSES = {"axis": -1, "sparse_label": True, "from_logits": False, **_WEIGHTED}


def _apply_weighting(F, loss, weight=None, sample_weight=None):
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        if not isinstance(weight, int | float | np.generic):
            raise AssertionError("weight must be a number")
        loss = loss * weight
    return loss


def _reshape_like(F, x, y):
    return x.reshape(y.shape) if F is ndarray else F.reshape_like(x, y)


def _log_sigmoid_loss(F, pred, label):
    return F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")


class Loss(Declared, HybridBlock, takes=_WEIGHTED):
    """Base of losses: ``weight`` is a factor on the loss, ``batch_axis`` the axis of the samples."""

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _mean(self, F, loss, sample_weight, weight=None):
        loss = _apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class _Pairwise(Loss):
    """Base of losses that are the mean of a function of prediction and label."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        return self._mean(F, self._loss_of(F, pred, _reshape_like(F, label, pred)), sample_weight)


class L2Loss(_Pairwise, takes={"weight": 1.0, "batch_axis": 0}):
    """Half of the square of the difference."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        loss = F.square(_reshape_like(F, label, pred) - pred)
        return self._mean(F, loss, sample_weight, self._weight / 2)


class L1Loss(_Pairwise):
    """The difference without its sign."""

    def _loss_of(self, F, pred, label):
        return F.abs(label - pred)


class SigmoidBinaryCrossEntropyLoss(Loss, takes={"from_sigmoid": False, **_WEIGHTED}):
    """The cross-entropy of yes and no; ``from_sigmoid`` says that predictions are probabilities."""

    def hybrid_forward(self, F, pred, label, sample_weight=None, pos_weight=None):
        label = _reshape_like(F, label, pred)
        if self._from_sigmoid:
            yes, no = F.log(pred + 1e-12) * label, F.log(1.0 - pred + 1e-12) * (1.0 - label)
            loss = -((yes if pos_weight is None else F.broadcast_mul(yes, pos_weight)) + no)
        elif pos_weight is None:
            loss = _log_sigmoid_loss(F, pred, label)
        else:
            factor = 1 + F.broadcast_mul(pos_weight - 1, label)
            soft = F.Activation(-F.abs(pred), act_type="softrelu")
            loss = pred - pred * label + factor * (soft + F.relu(-pred))
        return self._mean(F, loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss, takes=_OF_CLASSES):
    """The cross-entropy of classes, which lie along ``axis``.

    Labels are numbers of classes, with ``sparse_label=False`` probabilities; ``from_logits`` says that
    predictions are logarithms of probabilities.
    """

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._mean(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss, takes={"from_logits": True, "axis": -1, **_WEIGHTED}):
    """The Kullback-Leibler divergence of two distributions."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification; the last class is the blank."""

    def __init__(self, layout="NTC", label_layout="NT", weight=None, **kwargs):
        if layout not in ("NTC", "TNC"):
            raise AssertionError(f"Only 'NTC' and 'TNC' layouts for pred are supported. Got: {layout}")
        if label_layout not in ("NT", "TN"):
            raise AssertionError(f"Only 'NT' and 'TN' layouts for label are supported. Got: {label_layout}")
        self._layout, self._label_layout = layout, label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(self, F, pred, label, pred_lengths=None, label_lengths=None, sample_weight=None):
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        lengths = {"data_lengths": pred_lengths, "label_lengths": label_lengths}
        given = {name: each for name, each in lengths.items() if each is not None}
        uses = {f"use_{name}": True for name in given}
        loss = F.CTCLoss(pred, label, blank_label="last", **given, **uses)
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(_Pairwise, takes={"rho": 1, **_WEIGHTED}):
    """Squared up to a difference of ``rho``, straight from there on."""

    def _loss_of(self, F, pred, label):
        loss = F.abs(label - pred)
        return F.where(loss > self._rho, loss - 0.5 * self._rho, (0.5 / self._rho) * F.square(loss))


class HingeLoss(_Pairwise, takes={"margin": 1, **_WEIGHTED}):
    """``max(0, margin - pred * label)``, for labels -1 and 1."""

    def _loss_of(self, F, pred, label):
        return F.relu(self._margin - pred * label)


class SquaredHingeLoss(HingeLoss):
    """The square of :class:`HingeLoss`."""

    def _loss_of(self, F, pred, label):
        return F.square(super()._loss_of(F, pred, label))


class LogisticLoss(_Pairwise, takes={**_WEIGHTED, "label_format": "signed"}):
    """``log(1 + exp(-pred * label))``; labels are -1 and 1 (``"signed"``) or 0 and 1 (``"binary"``)."""

    def _set_up(self, label_format, **given):
        super()._set_up(label_format=label_format, **given)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, recieved {label_format}.")

    def _loss_of(self, F, pred, label):
        label = (label + 1.0) / 2.0 if self._label_format == "signed" else label
        return _log_sigmoid_loss(F, pred, label)


class TripletLoss(Loss, takes={"margin": 1, **_WEIGHTED}):
    """How much nearer the negative is than the positive, plus ``margin``."""

    def hybrid_forward(self, F, pred, positive, negative):
        near, far = (F.square(_reshape_like(F, each, pred) - pred) for each in (positive, negative))
        loss = F.sum(near - far, axis=self._batch_axis, exclude=True)
        return _apply_weighting(F, F.relu(loss + self._margin), self._weight)


_OF_COUNTS = {"weight": None, "from_logits": True, "batch_axis": 0, "compute_full": False}


class PoissonNLLLoss(Loss, takes=_OF_COUNTS):
    """The negative log-likelihood of counts."""

    def hybrid_forward(self, F, pred, target, sample_weight=None, epsilon=1e-08):
        target = _reshape_like(F, target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:  # Stirling's approximation of log(target!)
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * target * np.pi)
            loss = loss + stirling * (target > 1)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss, takes={**_WEIGHTED, "margin": 0}):
    """``1 - cos`` of pairs labelled 1, ``max(0, cos - margin)`` of those labelled -1."""

    def hybrid_forward(self, F, input1, input2, label, sample_weight=None):
        input1, column = _reshape_like(F, input1, input2), (-1, 1)
        lengths = F.norm(input1, axis=-1).reshape(column) * F.norm(input2, axis=-1).reshape(column)
        cosine = F.sum(input1 * input2, axis=-1).reshape(column) / F.maximum(lengths, 1e-12)
        label = label.reshape(column)
        apart = F.relu((label == -1) * (cosine - self._margin))
        return _apply_weighting(F, (1 - cosine) * (label == 1) + apart, self._weight, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: rows of two batches that belong together are the nearest."""

    def __init__(self, smoothing_parameter=0.3, weight=1.0, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F, x1, x2):
        size, dim = x1.shape
        rows, columns = (x.expand_dims(i).broadcast_to((size, size, dim)) for x, i in ((x1, 1), (x2, 0)))
        distances = F.sum(F.square(rows - columns), axis=2)
        gold = F.eye(size)
        labels = gold * (1 - self.smoothing_parameter) + (1 - gold) * self.smoothing_parameter / (size - 1)
        return self.kl_loss(F.log_softmax(-distances, axis=1), labels.as_in_context(x1.context))
