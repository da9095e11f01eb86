"""Linear algebra on the matrices in the last two axes: ``sym.linalg.gemm2``, ``potrf`` and their kin.

All axes before the last two count matrices. What LAPACK computes comes from ``numpy.linalg``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...errors import DataError, DTypeError
from ...params import Field, Parameter
from ...registry import register
from ..base import OperatorProperty, merge_shapes
from ..dense import FormulaOperator
from .common import declare

_OF_INPUTS, _OF_OUTPUTS = ("out_grad", "in_data"), ("out_grad", "out_data")


class LinearAlgebraOp(FormulaOperator):
    """Base: matrices that LAPACK cannot work on are an error that names the operator."""

    def compute(self, ctx, in_data, out_data, aux):
        try:
            super().compute(ctx, in_data, out_data, aux)
        except np.linalg.LinAlgError as error:
            raise DataError(f"{ctx.label}: {error}") from None


class LinearAlgebraProp(OperatorProperty):
    """Base: one matrix ``A``, float32 or float64, from which as large a one comes."""

    arguments = {"A": "the matrices"}
    square, floating = False, True

    def check_float(self, dtype, name="A"):
        if dtype not in (None, np.float32, np.float64):
            raise DTypeError(f"{self.label}: {name} must be float32 or float64, got {dtype}")

    def infer_shape(self, in_shapes):
        self.check_matrices(in_shapes[0])
        return super().infer_shape(in_shapes)

    def check_matrices(self, shape):
        """Raise unless a shape is that of matrices, square ones where they have to be."""
        self.check_ndim("A", shape, least=2)
        if self.square and shape[-1] != shape[-2]:
            raise self.shape_error(f"A must hold square matrices, got {tuple(shape)}")


class NumberProp(LinearAlgebraProp):
    """Base: a number for each square matrix, or several."""

    square = True

    def out_shapes(self, shape):
        return [shape[:-2] or (1,)] * len(self.outputs)


def _declare(name, base, op, doc, **attributes):
    """Register the operator of this name in the namespace, computed by ``op``."""
    declare(f"_linalg_{name} linalg_{name}", base, doc, op=op, **attributes)


def _t(matrix):
    """The transpose of each matrix."""
    return np.swapaxes(matrix, -1, -2)


def _mirrored(matrix):
    """Symmetric matrices, of which the lower triangles are given."""
    return np.tril(matrix) + _t(np.tril(matrix, -1))


# -- products --------------------------------------------------------------------------------------------


class GemmOp(LinearAlgebraOp):
    def _rows(self, array):
        return np.moveaxis(array, self.params.axis, -2)

    def _back(self, array):
        return np.moveaxis(array, -2, self.params.axis)

    def _factors(self, a, b):
        p = self.params
        a, b = self._rows(a), self._rows(b)
        return _t(a) if p.transpose_a else a, _t(b) if p.transpose_b else b

    def values(self, a, b, *c):
        p = self.params
        product = self._back(p.alpha * np.matmul(*self._factors(a, b)))
        return (product + p.beta * c[0],) if c else (product,)

    def slopes(self, heads, inputs, outputs):
        p = self.params
        head, (a, b) = self._rows(heads[0]), self._factors(*inputs[:2])
        slope_a, slope_b = p.alpha * (head @ _t(b)), p.alpha * (_t(a) @ head)
        slopes = (
            self._back(_t(slope_a) if p.transpose_a else slope_a),
            self._back(_t(slope_b) if p.transpose_b else slope_b),
        )
        return (*slopes, p.beta * heads[0]) if len(inputs) == 3 else slopes


class GemmProp(LinearAlgebraProp):
    """Base: the product of A and B, and perhaps something that is added."""

    transpose_a = Field(bool, False, doc="whether A is transposed first")
    transpose_b = Field(bool, False, doc="whether B is transposed first")
    alpha = Field(float, 1.0, doc="factor of the product")

    arguments = {"A": "left factors", "B": "right factors", "C": "what is added"}
    backward_needs = _OF_INPUTS

    def count_operations(self, in_shapes, out_shapes):
        inner = in_shapes[0][self.params.axis if self.params.transpose_a else -1]
        return 2 * math.prod(out_shapes[0]) * inner

    def infer_shape(self, in_shapes):
        a, b, *c = in_shapes
        self.check_matrices(a)
        p = self.params
        axis = self.check_axis("axis", p.axis, len(a))
        if axis == len(a) - 1:
            raise self.shape_error(f"axis must not be the last one, got {p.axis} for A of {tuple(a)}")
        rows, inner = (a[-1], a[axis]) if p.transpose_a else (a[axis], a[-1])
        need = list(a)
        need[axis], need[-1] = (-1, inner) if p.transpose_b else (inner, -1)
        factor = merge_shapes(b, tuple(need))
        if factor is None:
            raise self.shape_error(f"A {tuple(a)} and B {tuple(b)} cannot be multiplied")
        columns = factor[axis if p.transpose_b else -1]
        out = (*a[:axis], rows, *a[axis + 1 : -1], columns)
        return [a, factor, *(self.check_shape("C", each, out) for each in c)], [out]


_BETA = Field(float, 1.0, doc="factor of C")
_AXIS = Field(int, -2, doc="the axis of the rows; that of the columns is the last one")
_TWO = {"A": "left factors", "B": "right factors"}
_declare("gemm", GemmProp, GemmOp, "``alpha * A @ B + beta * C`` for each matrix.", beta=_BETA, axis=_AXIS)
_declare("gemm2", GemmProp, GemmOp, "``alpha * A @ B`` for each matrix.", axis=_AXIS, arguments=_TWO)


class SyrkOp(LinearAlgebraOp):
    def values(self, a):
        p = self.params
        return (p.alpha * (_t(a) @ a if p.transpose else a @ _t(a)),)

    def slopes(self, heads, inputs, outputs):
        p = self.params
        both = p.alpha * (heads[0] + _t(heads[0]))
        return (inputs[0] @ both if p.transpose else both @ inputs[0],)


@register("_linalg_syrk", "linalg_syrk")
class LinalgSyrkProp(LinearAlgebraProp):
    """``alpha * A @ A.T`` for each matrix, or ``alpha * A.T @ A``."""

    transpose = Field(bool, False, doc="whether it is the transposed matrix times the matrix")
    alpha = Field(float, 1.0, doc="factor of the product")

    op = SyrkOp
    backward_needs = ("out_grad", "in_data")

    def out_shapes(self, shape):
        return [(*shape[:-2], *[shape[-1 if self.params.transpose else -2]] * 2)]


# -- triangular matrices ---------------------------------------------------------------------------------


#: Rows of a triangular matrix that LAPACK's solver for all matrices gets.
_ROWS = 64


def _solve(a, b):
    """The x of ``a @ x = b`` for triangular ``a``, half by half, so that most of it is products."""
    n = a.shape[-1]
    if n <= _ROWS:
        return np.linalg.solve(a, b)
    first, last = slice(n // 2), slice(n // 2, n)
    if a[..., first, last].any():  # an upper triangle begins at the end
        first, last = last, first
    x = np.empty(b.shape, b.dtype)
    x[..., first, :] = _solve(a[..., first, first], b[..., first, :])
    rest = b[..., last, :] - a[..., last, first] @ x[..., first, :]
    x[..., last, :] = _solve(a[..., last, last], rest)
    return x


class TriangularOp(LinearAlgebraOp):
    """Base: a triangular matrix, of which the other triangle is ignored, and another matrix."""

    def triangle(self, matrix):
        return np.tril(matrix) if self.params.lower else np.triu(matrix)

    def factor(self, a):
        """The triangular factor as it stands in the product."""
        return _t(self.triangle(a)) if self.params.transpose else self.triangle(a)

    def factor_slope(self, slope):
        return self.triangle(_t(slope) if self.params.transpose else slope)


class TrmmOp(TriangularOp):
    def values(self, a, b):
        p, a = self.params, self.factor(a)
        return (p.alpha * (b @ a if p.rightside else a @ b),)

    def slopes(self, heads, inputs, outputs):
        p, head, b = self.params, self.params.alpha * heads[0], inputs[1]
        a = self.factor(inputs[0])
        if p.rightside:
            return self.factor_slope(_t(b) @ head), head @ _t(a)
        return self.factor_slope(head @ _t(b)), _t(a) @ head


class TrsmOp(TriangularOp):
    def _solve(self, a, b):
        return _t(_solve(_t(a), _t(b))) if self.params.rightside else _solve(a, b)

    def values(self, a, b):
        return (self._solve(self.factor(a), self.params.alpha * b),)

    def slopes(self, heads, inputs, outputs):
        solved = self._solve(_t(self.factor(inputs[0])), heads[0])
        out = outputs[0]
        slope = _t(out) @ solved if self.params.rightside else solved @ _t(out)
        return self.factor_slope(-slope), self.params.alpha * solved


class TriangularProp(LinearAlgebraProp):
    """Base: the result has the shape of B."""

    transpose = Field(bool, False, doc="whether A is transposed first")
    rightside = Field(bool, False, doc="whether A stands to the right of the other matrix")
    lower = Field(bool, True, doc="whether A is the lower triangle of what is given, else the upper one")
    alpha = Field(float, 1.0, doc="factor of B")

    arguments = {"A": "triangular matrices", "B": "the other matrices"}
    square = True

    def infer_shape(self, in_shapes):
        a, b = in_shapes
        self.check_matrices(a)
        need = ("any", a[-1]) if self.params.rightside else (a[-1], "any")
        b = self.check_shape("B", b, (*a[:-2], *need))
        return [a, b], [b]


_PRODUCT = "``alpha * A @ B`` with triangular A."
_declare("trmm", TriangularProp, TrmmOp, _PRODUCT, backward_needs=_OF_INPUTS)
_declare("trsm", TriangularProp, TrsmOp, "The X of ``A @ X = alpha * B`` with triangular A.")


class CholeskyOp(LinearAlgebraOp):
    """Base: everything is computed for lower triangles; for upper ones all matrices are transposed."""

    def turn(self, matrix):
        return matrix if self.params.lower else _t(matrix)


class PotrfOp(CholeskyOp):
    def values(self, a):
        return (self.turn(np.linalg.cholesky(self.turn(a))),)

    def slopes(self, heads, inputs, outputs):
        root, head = self.turn(outputs[0]), self.turn(heads[0])
        inner = _solve(_t(root), _mirrored(_t(root) @ head))
        return (0.5 * self.turn(_t(_solve(_t(root), _t(inner)))),)


class PotriOp(CholeskyOp):
    def values(self, root):
        root = np.tril(self.turn(root))
        inverse = _solve(root, np.broadcast_to(np.eye(root.shape[-1], dtype=root.dtype), root.shape))
        return (_t(inverse) @ inverse,)

    def slopes(self, heads, inputs, outputs):
        root, out = np.tril(self.turn(inputs[0])), outputs[0]
        both = out @ (heads[0] + _t(heads[0]))
        return (self.turn(-np.tril(_t(_solve(root, _t(both))))),)


class CholeskyProp(LinearAlgebraProp):
    """Base of the two."""

    lower = Field(bool, True, doc="whether the triangular matrix is a lower one, else an upper one")

    square, keeps_shape = True, True


_FACTOR = "The Cholesky factor L of positive-definite matrices: ``A = L @ L.T``, or ``A = U.T @ U``."
_declare("potrf", CholeskyProp, PotrfOp, _FACTOR, backward_needs=_OF_OUTPUTS)
_declare("potri", CholeskyProp, PotriOp, "The inverses of the matrices whose Cholesky factors are given.")


class SumLogDiagOp(LinearAlgebraOp):
    def values(self, a):
        return (np.log(np.diagonal(a, axis1=-2, axis2=-1)).sum(-1),)

    def slopes(self, heads, inputs, outputs):
        diagonal = np.diagonal(inputs[0], axis1=-2, axis2=-1)
        return (_diagonal_matrix(heads[0].reshape(*diagonal.shape[:-1], 1) / diagonal),)


_SUM = "The sum of the logarithms of each matrix's diagonal."
_declare("sumlogdiag", NumberProp, SumLogDiagOp, _SUM, backward_needs=_OF_INPUTS)


# -- parts of matrices -----------------------------------------------------------------------------------


class DiagonalParam(Parameter):
    offset = Field(int, 0, doc="which diagonal: 0 is the main one, 1 the one above, -1 the one below")


class TrianParam(Parameter):
    offset = Field(int, 0, doc="the triangle's diagonal: 1 is the one above the main one, -1 below")
    lower = Field(bool, True, doc="with offset 0: whether it is the lower triangle, else the upper one")


class Part(NamedTuple):
    """Some entries of square matrices."""

    #: Row and column numbers, ``f(parameters, size)``.
    places: Callable
    #: How many entries there are in matrices of a size, less the offset.
    count: Callable
    #: The size, less the offset, of matrices with so many of them, rounded down.
    size: Callable


def _diagonal(p, size):
    along = np.arange(size - abs(p.offset))
    return along + max(-p.offset, 0), along + max(p.offset, 0)


def _triangle(p, size):
    if p.offset < 0 or (p.offset == 0 and p.lower):
        return np.tril_indices(size, p.offset)
    columns, rows = np.tril_indices(size, -p.offset)
    return rows, columns


DIAGONAL = Part(_diagonal, lambda size: size, lambda count: count)
TRIANGLE = Part(
    _triangle, lambda size: size * (size + 1) // 2, lambda count: (math.isqrt(8 * count + 1) - 1) // 2
)


def _diagonal_matrix(vector):
    """Matrices of zeros but for the main diagonal."""
    return vector[..., None] * np.eye(vector.shape[-1], dtype=vector.dtype)


class PartOp(LinearAlgebraOp):
    """A part of square matrices as a vector, or with ``make`` matrices from such vectors."""

    part: Part
    make: bool

    def _take(self, matrix):
        return matrix[(..., *self.part.places(self.params, matrix.shape[-1]))]

    def _put(self, vector):
        size = self.part.size(vector.shape[-1]) + abs(self.params.offset)
        matrix = np.zeros((*vector.shape[:-1], size, size), vector.dtype)
        matrix[(..., *self.part.places(self.params, size))] = vector
        return matrix

    def values(self, array):
        return (self._put(array) if self.make else self._take(array),)

    def slopes(self, heads, inputs, outputs):
        return (self._take(heads[0]) if self.make else self._put(heads[0]),)


class PartProp(LinearAlgebraProp):
    """Base: parts of square matrices."""

    backward_needs = ("out_grad",)
    moves_data = True
    square = True

    part: Part
    make = False

    def create_operator(self, ctx, in_shapes, in_types):
        return self.op(self.params, part=self.part, make=self.make)

    def out_shapes(self, shape):
        size = shape[-1] - abs(self.params.offset)
        if size <= 0:
            raise self.shape_error(
                f"offset {self.params.offset} lies outside matrices of shape {tuple(shape)}"
            )
        return [(*shape[:-2], self.part.count(size))]


class MakingProp(PartProp):
    """Base: matrices made of their parts."""

    make = True

    def infer_shape(self, in_shapes):
        shape = in_shapes[0]
        self.check_ndim("A", shape, least=1)
        size = self.part.size(shape[-1])
        if self.part.count(size) != shape[-1]:
            raise self.shape_error(f"A must hold whole triangles: 1, 3, 6, ... entries, got {shape[-1]}")
        return in_shapes, [(*shape[:-1], *[size + abs(self.params.offset)] * 2)]


_DIAGONAL = {"param": DiagonalParam, "part": DIAGONAL}
_TRIANGLE = {"param": TrianParam, "part": TRIANGLE}
_LOWER = "One triangle of each square matrix: a lower one row by row, an upper one column by column."
_MADE = "Square matrices of zeros but for one "
_LINES = {"A": "the diagonals"}
_AS = "triangle, which is given as ``extracttrian`` gives it."
_declare("extractdiag", PartProp, PartOp, "One diagonal of each square matrix.", **_DIAGONAL)
_declare("extracttrian", PartProp, PartOp, _LOWER, **_TRIANGLE)
_declare("makediag", MakingProp, PartOp, f"{_MADE}diagonal, which is given.", **_DIAGONAL, arguments=_LINES)
_declare("maketrian", MakingProp, PartOp, f"{_MADE}{_AS}", **_TRIANGLE, arguments={"A": "the triangles"})


# -- factorisations --------------------------------------------------------------------------------------


class GelqfOp(LinearAlgebraOp):
    def values(self, a):
        q, r = np.linalg.qr(_t(a))
        return _t(q), _t(r)

    def slopes(self, heads, inputs, outputs):
        (head_q, head_l), (q, lower) = heads, outputs
        inner = _mirrored(_t(lower) @ head_l - head_q @ _t(q))
        return (_solve(_t(lower), head_q + inner @ q),)


@register("_linalg_gelqf", "linalg_gelqf")
class LinalgGelqfProp(LinearAlgebraProp):
    """``A = L @ Q``: lower triangular L, and Q with orthonormal rows. A has no more rows than columns."""

    op = GelqfOp
    outputs = ("output0", "output1")
    backward_needs = ("out_grad", "out_data")

    def out_shapes(self, shape):
        if shape[-2] > shape[-1]:
            raise self.shape_error(f"A must have no more rows than columns, got {tuple(shape)}")
        return [shape, (*shape[:-1], shape[-2])]


class SyevdOp(LinearAlgebraOp):
    def values(self, a):
        roots, vectors = np.linalg.eigh(a)
        rows = _t(vectors)
        # The entry of largest size is positive; of equal ones the first.
        most = np.take_along_axis(rows, np.abs(rows).argmax(-1)[..., None], -1)
        return np.where(most < 0, -rows, rows), roots

    def slopes(self, heads, inputs, outputs):
        (head_u, head_l), (u, roots) = heads, outputs
        inner = head_u @ _t(u)
        # Equal eigenvalues count as apart by a little, as in MXNet.
        apart = np.maximum(
            np.abs(roots[..., :, None] - roots[..., None, :]), 1e-30 if u.dtype == np.float32 else 1e-100
        )
        below = np.tril(inner - _t(inner), -1) / (2 * apart)
        return (_t(u) @ (below + _t(below) + _diagonal_matrix(head_l)) @ u,)


@register("_linalg_syevd", "linalg_syevd")
class LinalgSyevdProp(LinearAlgebraProp):
    """``A = U.T @ diag(L) @ U`` of symmetric matrices: U has eigenvectors as rows, L ascends."""

    op = SyevdOp
    outputs = ("output0", "output1")
    backward_needs = ("out_grad", "out_data")
    square = True

    def out_shapes(self, shape):
        return [shape, shape[:-1]]


class InverseOp(LinearAlgebraOp):
    def values(self, a):
        return (np.linalg.inv(a),)

    def slopes(self, heads, inputs, outputs):
        turned = _t(outputs[0])
        return (-turned @ heads[0] @ turned,)


_ALIKE = {"square": True, "keeps_shape": True, "backward_needs": _OF_OUTPUTS}
_declare("inverse", LinearAlgebraProp, InverseOp, "The inverse of each matrix.", **_ALIKE)


def _determinant_slope(factor, matrix, determinant):
    """``factor`` times the transposed inverse of each matrix; zero where the determinant is."""
    regular = (determinant != 0).reshape(*matrix.shape[:-2], 1, 1)
    inverse = np.linalg.inv(np.where(regular, matrix, np.eye(matrix.shape[-1], dtype=matrix.dtype)))
    return np.where(regular, factor.reshape(regular.shape) * _t(inverse), 0)


class DetOp(LinearAlgebraOp):
    def values(self, a):
        return (np.linalg.det(a),)

    def slopes(self, heads, inputs, outputs):
        return (_determinant_slope(heads[0] * outputs[0], inputs[0], outputs[0]),)


_DET = "The determinant of each matrix. That of a singular matrix has no gradient."
_declare("det", NumberProp, DetOp, _DET, outputs=("output0",))


class SlogdetOp(LinearAlgebraOp):
    def values(self, a):
        return tuple(np.linalg.slogdet(a))

    def slopes(self, heads, inputs, outputs):
        return (_determinant_slope(heads[1], inputs[0], outputs[0]),)


_SIGN = "The sign of each matrix's determinant, and the logarithm of its size. The sign has no gradient."
_declare("slogdet", NumberProp, SlogdetOp, _SIGN, outputs=("output0", "output1"))
