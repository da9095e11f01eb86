"""The loss of connectionist temporal classification (Graves et al., 2006)."""

import numpy as np

from ...errors import DataError, ShapeError
from ...params import Field, enum
from ...registry import register
from ..dense import DenseOperator, FloatProperty


class CTCLossOp(DenseOperator):
    """The second output is the gradient, which the forward pass finds on its way."""

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        np.multiply(out_grad[0][:, None], out_data[1], out=in_grad[0])

    def _lengths(self, data, label, lengths):
        p = self.params
        steps = lengths.pop(0) if p.use_data_lengths else np.full(len(label), len(data))
        if p.use_label_lengths:
            return steps, lengths.pop(0)
        padding = 0 if p.blank_label == "first" else -1
        return steps, np.logical_and.accumulate(label != padding, axis=1).sum(1)

    def compute(self, ctx, in_data, out_data, aux):
        data = in_data[0]
        if any(np.isnan(each).any() for each in in_data[1:]):
            raise DataError(f"{ctx.label}: a label or a length is NaN")
        label, *lengths = (each.astype(np.int64) for each in in_data[1:])
        steps, counts = self._lengths(data, label, lengths)
        within = np.arange(label.shape[1]) < counts[:, None]
        for name, given, least, most in (
            ("data_lengths", steps, 1, len(data)),
            ("label_lengths", counts, 0, label.shape[1]),
        ):
            wrong = np.flatnonzero((given < least) | (given > most))
            if wrong.size:
                raise DataError(
                    f"{ctx.label}: {name}[{wrong[0]}] must be at least {least} and at most {most}, "
                    f"got {given[wrong[0]]}"
                )
        wrong = within & ((label < 0) | (label >= data.shape[2]))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise DataError(
                f"{ctx.label}: label[{row}, {column}] must be a class below {data.shape[2]}, "
                f"got {label[row, column]}"
            )
        loss, grad = _loss_and_gradient(
            data, label, within, steps, counts, 0 if self.params.blank_label == "first" else data.shape[2] - 1
        )
        for target, value in zip(out_data, (loss, grad), strict=True):
            if target is not None:
                target[...] = value


def _loss_and_gradient(data, label, within, steps, counts, blank):
    """The loss of each sequence, and its gradient for ``data``; infinite, without one, where no path exists.

    All sequences go side by side, one step of time after the other, in logarithms.
    """
    time, batch, _ = data.shape
    top = data.max(-1, keepdims=True)
    log_probability = data - top - np.log(np.exp(data - top).sum(-1, keepdims=True))
    # The labels with a blank before, between and after them; what lies past the end of a label is blank too.
    path = np.full((batch, 2 * label.shape[1] + 1), blank)
    path[:, 1::2] = np.where(within, label, blank)
    position = np.arange(path.shape[1])
    may_skip = np.zeros(path.shape, bool)
    may_skip[:, 2:] = (path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2])
    outside = position > 2 * counts[:, None]
    emitted = np.take_along_axis(log_probability, np.broadcast_to(path, (time, *path.shape)), 2)
    emitted = np.where(outside, -np.inf, emitted).astype(np.float64)

    def moved(values, by, allowed=True):
        """Values of the position ``by`` before."""
        result = np.full_like(values, -np.inf)
        if by > 0:
            result[:, by:] = values[:, :-by]
        else:
            result[:, :by] = values[:, -by:]
        return np.where(allowed, result, -np.inf)

    forward = np.full(emitted.shape, -np.inf)
    forward[0] = np.where(position < 2, emitted[0], -np.inf)
    for t in range(1, time):
        before = forward[t - 1]
        reached = np.logaddexp(before, moved(before, 1))
        forward[t] = np.logaddexp(reached, moved(before, 2, may_skip)) + emitted[t]
    skip_ahead = np.zeros(may_skip.shape, bool)
    skip_ahead[:, :-2] = may_skip[:, 2:]
    # ``backward`` is the logarithm of what follows after the step, so a sequence ends where its steps end.
    last = np.where((position >= 2 * counts[:, None] - 1) & ~outside, 0.0, -np.inf)
    backward = np.full(emitted.shape, -np.inf)
    for t in range(time - 1, -1, -1):
        if t + 1 < time:
            after = backward[t + 1] + emitted[t + 1]
            left = np.logaddexp(after, moved(after, -1))
            backward[t] = np.logaddexp(left, moved(after, -2, skip_ahead))
        backward[t] = np.where((steps == t + 1)[:, None], last, backward[t])
    ends = np.take_along_axis(forward, (steps - 1)[None, :, None], 0)[0] + last
    log_likelihood = np.logaddexp.reduce(ends, axis=1)
    possible = np.isfinite(log_likelihood)
    share = np.exp(np.where(possible[:, None], forward + backward - log_likelihood[:, None], -np.inf))
    grad = np.exp(log_probability).astype(np.float64)
    rows = np.broadcast_to(np.arange(batch)[:, None], path.shape)
    for t in range(time):
        np.subtract.at(grad[t], (rows, path), share[t])
    alive = (np.arange(time)[:, None] < steps) & possible
    return -log_likelihood, np.where(alive[:, :, None], grad, 0)


@register("CTCLoss", "ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss")
class CTCLossProp(FloatProperty):
    """The negative logarithm of the probability of each label sequence, summed over all alignments.

    ``data`` holds scores, to which the softmax is applied here. A label that is too long for its data has an
    infinite loss, and no gradient.
    """

    use_data_lengths = Field(bool, False, doc="whether data_lengths is an input")
    use_label_lengths = Field(bool, False, doc="whether label_lengths is an input")
    blank_label = Field(
        enum("first", "last"), "first", doc="which class is the blank; labels are padded with 0, or with -1"
    )

    op = CTCLossOp
    partial_shapes = False
    arguments = {
        "data": "scores, (time, batch, classes)",
        "label": "classes, (batch, most labels)",
        "data_lengths": "steps of each sequence, with use_data_lengths",
        "label_lengths": "labels of each sequence, with use_label_lengths",
    }
    zero_grad = own_types = ("label", "data_lengths", "label_lengths")
    outputs, visible_outputs = ("output0", "output1"), 1
    backward_needs = ("out_grad", "out_data")

    def list_arguments(self):
        p = self.params
        lengths = ["data_lengths"] * p.use_data_lengths + ["label_lengths"] * p.use_label_lengths
        return ("data", "label", *lengths)

    def infer_shape(self, in_shapes):
        data, label, *lengths = in_shapes
        self.check_ndim("data", data, 3)
        label = self.check_shape("label", label, (data[1], "labels"))
        if label[1] > data[0]:
            raise ShapeError(f"{self.label}: label has {label[1]} entries, but data only {data[0]} steps")
        names = self.list_arguments()[2:]
        lengths = [self.check_shape(n, s, (data[1],)) for n, s in zip(names, lengths, strict=True)]
        return [data, label, *lengths], [(data[1],), data]
