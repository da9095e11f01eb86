"""Dropout."""

import numpy as np

from ... import random
from ...params import Field, enum, optional, shape
from ...registry import register
from ..dense import DenseOperator, FloatProperty
from ..fields import IGNORED
from ..tensor.common import same_memory


def draw_mask(mask, p) -> None:
    """Fill ``mask`` with factors: 0 for a fraction ``p`` of them, for the others what makes up for those."""
    keep = 1 - p
    draws = random.generator().random(mask.shape, dtype=mask.dtype)
    np.less(draws, keep, out=mask, casting="unsafe")
    if keep > 0:
        mask *= 1 / keep


class DropoutOp(DenseOperator):
    def bind_forward(self, ctx, in_data, req, out_data, aux):
        run = super().bind_forward(ctx, in_data, req, out_data, aux)
        if req[0] == "add" or not same_memory(in_data[0], out_data[0]):
            return run

        always = self.params.mode == "always"

        def run_where_it_drops():  # else the data are there already
            if always or ctx.is_train:
                run()

        return run_where_it_drops

    def compute(self, ctx, in_data, out_data, aux):
        data, (out, mask) = in_data[0], out_data
        if not self._drops(ctx):
            np.copyto(out, data)
            return
        if mask is None:
            mask = self.scratch("mask", self.mask_shape(data.shape), data.dtype)
        draw_mask(mask, self.params.p)
        if self.params.p == 1:
            mask.fill(np.nan)  # as in MXNet: nothing is kept, and nothing can make up for it
        np.multiply(data, mask, out=out)

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        if self._drops(ctx):
            np.multiply(out_grad[0], out_data[1], out=in_grad[0])
        elif in_grad[0] is not out_grad[0]:
            np.copyto(in_grad[0], out_grad[0])

    def _drops(self, ctx):
        return self.params.p > 0 and (ctx.is_train or self.params.mode == "always")

    def mask_shape(self, shape):
        """The shape of the mask: 1 for axes along which elements share their fate."""
        shared = {axis % len(shape) for axis in self.params.axes}
        return tuple(1 if i in shared else n for i, n in enumerate(shape))


@register("Dropout", "_npx_dropout")
class DropoutProp(FloatProperty):
    """Set a random part of the elements to 0 and scale the others up; the identity at inference."""

    p = Field(float, 0.5, range=(0, 1), doc="fraction of the elements that are dropped")
    mode = Field(enum("training", "always"), "training", doc="whether to drop at inference too")
    axes = Field(shape(), (), doc="axes along which all elements are dropped or kept together")
    cudnn_off = Field(optional(bool), False, doc=IGNORED)

    moves_data = True
    op = DropoutOp
    keeps_shape = True
    arguments = {"data": "any shape"}
    outputs, visible_outputs = ("output", "mask"), 1
    backward_needs = ("out_grad", "out_data")
    inplace = {0: 0}
    inplace_grad = {0: 0}
    monitored_as_data = True

    def out_shapes(self, data):
        axes = {self.check_axis("axes", axis, len(data)) for axis in self.params.axes}
        return [data, tuple(1 if i in axes else n for i, n in enumerate(data))]
