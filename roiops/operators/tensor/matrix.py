"""Matrix products."""

import math

import numpy as np

from ...params import MOST_ARRAYS, Field, enum, optional
from ...registry import register
from .. import arrays
from ..base import Operator, OperatorProperty


class ProductProp(OperatorProperty):
    """Base of the products of two arrays."""

    transpose_a = Field(bool, False, doc="whether lhs is transposed first")
    transpose_b = Field(bool, False, doc="whether rhs is transposed first")
    forward_stype = Field(
        optional(enum("csr", "default", "row_sparse")), None, doc="accepted, without effect: arrays are dense"
    )

    backward_needs = ("out_grad", "in_data")
    partial_shapes = repeatable = True
    needed_shapes = 2


class DotOp(Operator):
    """The product of matrices, to which arrays of other dimensions are reshaped."""

    shareable = True

    def forward(self, ctx, in_data, req, out_data, aux):
        lhs, rhs = self._matrices(*in_data)
        arrays.store_matmul(lhs, rhs, out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        lhs, rhs = self._matrices(*in_data)
        grad = out_grad[0].reshape(lhs.shape[0], rhs.shape[1])
        p = self.params
        if req[0] != "null":
            pair = (rhs, grad.T) if p.transpose_a else (grad, rhs.T)
            arrays.store_matmul(*pair, in_grad[0], req[0])
        if req[1] != "null":
            pair = (grad.T, lhs) if p.transpose_b else (lhs.T, grad)
            arrays.store_matmul(*pair, in_grad[1], req[1])

    def _matrices(self, lhs, rhs):
        """Both operands as matrices of which the inner axes are summed over."""
        if self.params.transpose_a:
            lhs = lhs.reshape(lhs.shape[0], math.prod(lhs.shape[1:])).T
        else:
            lhs = lhs.reshape(math.prod(lhs.shape[:-1]), lhs.shape[-1])
        if self.params.transpose_b:
            rhs = rhs.reshape(math.prod(rhs.shape[:-1]), rhs.shape[-1]).T
        else:
            rhs = rhs.reshape(rhs.shape[0], math.prod(rhs.shape[1:]))
        return lhs, rhs


@register("dot")
class DotProp(ProductProp):
    """The product of two matrices, or the sum over the last axis of lhs and the first of rhs.

    A transposed lhs is summed over its first axis, a transposed rhs over its last one.
    """

    op = DotOp
    arguments = {"lhs": "left factor", "rhs": "right factor"}

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(out_shapes[0]) * in_shapes[0][0 if self.params.transpose_a else -1]

    def infer_shape(self, in_shapes):
        lhs, rhs = in_shapes
        p = self.params
        for name, shape in zip(self.arguments, in_shapes, strict=True):
            self.check_ndim(name, shape, least=1)
        # A transposed vector is that vector.
        inner_l, outer_l = (lhs[0], lhs[1:]) if p.transpose_a else (lhs[-1], lhs[:-1])
        inner_r, outer_r = (rhs[-1], rhs[:-1]) if p.transpose_b else (rhs[0], rhs[1:])
        if inner_l != inner_r and -1 not in (inner_l, inner_r):
            raise self.shape_error(
                f"lhs {tuple(lhs)} and rhs {tuple(rhs)} do not fit: "
                f"the summed axes have lengths {inner_l} and {inner_r}"
            )
        return in_shapes, [(*outer_l, *outer_r) or (1,)]


class BatchDotOp(Operator):
    shareable = True

    def forward(self, ctx, in_data, req, out_data, aux):
        arrays.matmul(*self._oriented(*in_data), out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        lhs, rhs = self._oriented(*in_data)
        grad = out_grad[0]
        if req[0] != "null":
            arrays.matmul(grad, np.swapaxes(rhs, -1, -2), self._oriented(in_grad[0], rhs)[0], req[0])
        if req[1] != "null":
            arrays.matmul(np.swapaxes(lhs, -1, -2), grad, self._oriented(lhs, in_grad[1])[1], req[1])

    def _oriented(self, lhs, rhs):
        lhs = np.swapaxes(lhs, -1, -2) if self.params.transpose_a else lhs
        return lhs, np.swapaxes(rhs, -1, -2) if self.params.transpose_b else rhs


@register("batch_dot")
class BatchDotProp(ProductProp):
    """The products of the matrices in the last two axes; the axes before them count the matrices."""

    op = BatchDotOp
    arguments = {"lhs": "left factors", "rhs": "right factors, as many"}

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(out_shapes[0]) * in_shapes[0][-2 if self.params.transpose_a else -1]

    def infer_shape(self, in_shapes):
        lhs, rhs = in_shapes
        p = self.params
        fits = len(lhs) == len(rhs) >= 3
        if fits:
            rows, inner_l = lhs[-2:][:: -1 if p.transpose_a else 1]
            inner_r, columns = rhs[-2:][:: -1 if p.transpose_b else 1]
            fits = all(
                -1 in pair or pair[0] == pair[1]
                for pair in zip((*lhs[:-2], inner_l), (*rhs[:-2], inner_r), strict=True)
            )
        if not fits:
            raise self.shape_error(
                f"lhs and rhs must be batches of matrices that fit, got {tuple(lhs)} and {tuple(rhs)}"
            )
        if -1 in (*lhs[-2:], *rhs[-2:]):  # MXNet says nothing of the result then
            return in_shapes, [None]
        batch = tuple(max(pair) for pair in zip(lhs[:-2], rhs[:-2], strict=True))
        return in_shapes, [(*batch, rows, columns)]


class KhatriRaoOp(Operator):
    """Each column of the result is the Kronecker product of that column of all inputs."""

    def forward(self, ctx, in_data, req, out_data, aux):
        result = in_data[0]
        for factor in in_data[1:]:
            result = (result[:, None] * factor).reshape(len(result) * len(factor), factor.shape[1])
        arrays.evaluate(None, [result], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        rows = [len(array) for array in in_data]
        columns = out_grad[0].shape[1]
        whole = out_grad[0].reshape(*rows, columns)
        for k, (target, how) in enumerate(zip(in_grad, req, strict=True)):
            if how == "null":
                continue
            value = whole
            for j, factor in enumerate(in_data):
                if j != k:
                    value = value * factor.reshape(
                        [n if i == j else 1 for i, n in enumerate(rows)] + [columns]
                    )
            others = tuple(axis for axis in range(len(rows)) if axis != k)
            arrays.evaluate(None, [value.sum(axis=others)], target, how)


@register("khatri_rao")
class KhatriRaoProp(OperatorProperty):
    """Matrices of as many columns multiplied column by column, by the Kronecker product."""

    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")

    op = KhatriRaoOp
    variadic = "num_args"
    backward_needs = ("out_grad", "in_data")

    def infer_shape(self, in_shapes):
        for name, shape in zip(self.list_arguments(), in_shapes, strict=True):
            self.check_ndim(name, shape, 2)
            self.check_shape(name, shape, ("rows", in_shapes[0][1]))
        return in_shapes, [(math.prod(shape[0] for shape in in_shapes), in_shapes[0][1])]
