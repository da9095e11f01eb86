"""Sequences of different lengths in one array: (time, batch, ...), or (batch, time, ...) with axis 1."""

import math

import numpy as np

from ...dtypes import as_scalar
from ...errors import DataError, ParamError
from ...params import Field
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty

#: Numbers of each step of a sequence that are masked together.
_ROW = 16


class SequenceOp(Operator):
    """Base: works on views with time first."""

    def timed(self, array):
        """``array`` as (time, batch, ...)."""
        return np.swapaxes(array, 0, self.params.axis)

    def lengths(self, ctx, in_data, low=0):
        """The lengths, checked; None where all sequences are as long as the array."""
        if not self.params.use_sequence_length:
            return None
        lengths = in_data[1]
        longest = in_data[0].shape[self.params.axis]
        wrong = np.flatnonzero(~((lengths > low - 1) & (lengths < longest + 1)))  # cut off to whole numbers
        if wrong.size:
            raise DataError(
                f"{ctx.label}: sequence_length must be in [{low}, {longest}], "
                f"got {lengths[wrong[0]]:g} for sequence {wrong[0]}"
            )
        return lengths.astype(np.int64)


class SequenceMaskOp(SequenceOp):
    def forward(self, ctx, in_data, req, out_data, aux):
        self._store(self.lengths(ctx, in_data), in_data[0], self.params.value, out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        self._store(self.lengths(ctx, in_data), out_grad[0], 0, in_grad[0], req[0])

    def _store(self, lengths, source, value, target, req):
        source, target, value = self.timed(source), self.timed(target), as_scalar(value, source.dtype)
        after = None if lengths is None else np.arange(len(source))[:, None] >= lengths
        # NumPy finds rows in less time than it chooses each of their numbers.
        by_rows = after is not None and req != "add" and math.prod(source.shape[2:]) >= _ROW
        if after is not None and not by_rows:
            source = np.where(after.reshape(after.shape + (1,) * (source.ndim - 2)), value, source)
        arrays.evaluate(None, [source], target, req)
        if by_rows and req != "null":
            target[after] = value


class SequenceLastOp(SequenceOp):
    def _place(self, ctx, in_data):
        data = self.timed(in_data[0])
        lengths = self.lengths(ctx, in_data, low=1)
        if lengths is None:
            return np.full(data.shape[1], len(data) - 1), np.arange(data.shape[1])
        return lengths - 1, np.arange(data.shape[1])

    def forward(self, ctx, in_data, req, out_data, aux):
        last = self.timed(in_data[0])[self._place(ctx, in_data)]
        arrays.evaluate(None, [last], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "add":
            in_grad[0][...] = 0
        self.timed(in_grad[0])[self._place(ctx, in_data)] += out_grad[0]


class SequenceReverseOp(SequenceOp):
    def _place(self, ctx, in_data):
        data = in_data[0]
        time = np.arange(len(data))[:, None]
        lengths = self.lengths(ctx, in_data)
        if lengths is None:
            lengths = np.full(data.shape[1], len(data))
        return np.where(time < lengths, lengths - 1 - time, time), np.arange(data.shape[1])

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.evaluate(None, [in_data[0][self._place(ctx, in_data)]], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        # Reversing twice gives the sequence back.
        arrays.evaluate(None, [out_grad[0][self._place(ctx, in_data)]], in_grad[0], req[0])


class SequenceProp(OperatorProperty):
    """Base of the sequence operators."""

    use_sequence_length = Field(bool, False, doc="whether sequences have lengths of their own")
    axis = Field(int, 0, range=(0, 1), doc="axis of time; the other of the first two counts the sequences")

    zero_grad = own_types = ("sequence_length",)
    monitored_as_data = True
    backward_needs = ("out_grad", "in_data")
    arguments = {
        "data": "the sequences, of shape (time, batch, ...)",
        "sequence_length": "length of each sequence, with use_sequence_length",
    }
    present_if = {"sequence_length": lambda p: p.use_sequence_length}

    def infer_shape(self, in_shapes):
        shape = in_shapes[0]
        self.check_ndim("data", shape, least=2)
        if self.params.use_sequence_length:
            batch = (shape[1 - self.params.axis],)
            in_shapes = [shape, self.check_shape("sequence_length", in_shapes[1], batch)]
        return super().infer_shape(in_shapes)


@register("SequenceMask")
class SequenceMaskProp(SequenceProp):
    """Entries after the end of each sequence set to a number."""

    value = Field(float, 0.0, doc="what entries after the end become")

    op = SequenceMaskOp


@register("SequenceLast")
class SequenceLastProp(SequenceProp):
    """The last entry of each sequence."""

    op = SequenceLastOp

    def out_shapes(self, shape):
        if shape[self.params.axis] == 0:
            raise self.shape_error(f"data has no entries along axis {self.params.axis}, got {shape}")
        return [(shape[1 - self.params.axis], *shape[2:])]


@register("SequenceReverse")
class SequenceReverseProp(SequenceProp):
    """Each sequence backwards, what is after its end left in place."""

    op = SequenceReverseOp

    def __init__(self, params, label=None):
        super().__init__(params, label)
        if params.axis != 0:
            raise ParamError(f"{self.label}: axis must be 0, got {params.axis}")
