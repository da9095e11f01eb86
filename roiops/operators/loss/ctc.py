"""The loss of connectionist temporal classification (Graves et al., 2006)."""

import numpy as np

from ...errors import DataError
from ...params import Field, enum
from ...registry import register
from ..base import kernels
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
        blank = 0 if self.params.blank_label == "first" else data.shape[2] - 1
        loss = self.scratch("loss", (len(label),), data.dtype) if out_data[0] is None else out_data[0]
        kernels("network.ctc", ctx.device).loss_and_gradient(
            data, label, steps, counts, blank, loss, out_data[1]
        )


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
    present_if = {
        "data_lengths": lambda p: p.use_data_lengths,
        "label_lengths": lambda p: p.use_label_lengths,
    }
    zero_grad = own_types = ("label", "data_lengths", "label_lengths")
    outputs, visible_outputs = ("output0", "output1"), 1
    backward_needs = ("out_grad", "out_data")

    def infer_shape(self, in_shapes):
        data, label, *lengths = in_shapes
        self.check_ndim("data", data, 3)
        label = self.check_shape("label", label, (data[1], "labels"))
        if label[1] > data[0]:
            raise self.shape_error(f"label has {label[1]} entries, but data only {data[0]} steps")
        names = self.list_arguments()[2:]
        lengths = [self.check_shape(n, s, (data[1],)) for n, s in zip(names, lengths, strict=True)]
        return [data, label, *lengths], [(data[1],), data]
