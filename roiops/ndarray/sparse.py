"""Sparse arrays by MXNet's names: ``nd.sparse.row_sparse_array``, ``nd.sparse.csr_matrix``, ``x.tostype``.

They are dense inside: every zero takes memory and time, as in any other array. What they add is which rows
a gradient has, for the formulas that ask for it: with ``lazy_update`` an optimizer changes those rows of a
weight and no others. Operators take them as the dense arrays that they are, and give dense ones.

``data`` is the memory underneath, as of every array here; MXNet's ``data``, the numbers that are stored, is
``values``.
"""

import numpy as np

from ..context import Context
from ..errors import DeviceError, MXNetError, ParamError, ShapeError
from . import creation
from .arithmetic import FUNCTIONS
from .functions import function_for
from .ndarray import NDArray

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "array",
    "cast_storage",
    "csr_matrix",
    "empty",
    "retain",
    "row_sparse_array",
    "rows_of",
    "zeros",
]


class BaseSparseNDArray(NDArray):
    """What both kinds share."""

    __slots__ = ()

    def __init__(self, array, ctx: Context | None = None):
        super().__init__(array, ctx)
        if self._context.is_gpu:
            raise DeviceError(f"{type(self).__name__}: sparse arrays are on the CPU, got {self._context}")

    def __repr__(self):
        extent = "x".join(map(str, self.shape))
        return f"\n<{type(self).__name__} {extent} @{self._context}>"

    def __reduce__(self):
        return _again, (self.asnumpy(), self.stype, rows_of(self))

    def copyto(self, other):
        """Copy into another NDArray of this shape, or make a copy of this kind on a Context."""
        if isinstance(other, Context):
            return _with_storage(super().copyto(other), self.stype, rows_of(self))
        if isinstance(other, RowSparseNDArray):
            other[:] = self
            return other
        return super().copyto(other)

    def astype(self, dtype, copy: bool = True):
        """A copy of another dtype, of this kind."""
        return _with_storage(super().astype(dtype, copy), self.stype, rows_of(self))

    def check_format(self, full_check: bool = True) -> None:
        """Nothing: what is dense inside cannot be malformed."""


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows count: those that it was made of, and those that are not zero."""

    __slots__ = ("_named",)
    stype = "row_sparse"

    def __init__(self, array, ctx: Context | None = None, rows=()):
        super().__init__(array, ctx)
        if not self.ndim:
            raise ShapeError("RowSparseNDArray: needs at least one dimension, got shape ()")
        self._named = np.asarray(rows, np.int64)

    @property
    def indices(self) -> NDArray:
        """The numbers of the rows, rising."""
        return NDArray(rows_of(self), self._context)

    @property
    def values(self) -> NDArray:
        """The rows."""
        return NDArray(self.data[rows_of(self)], self._context)

    def __setitem__(self, key, value):
        if isinstance(key, slice) and key == slice(None):  # all is written anew
            self._named = rows_of(value) if isinstance(value, RowSparseNDArray) else self._named[:0]
        super().__setitem__(key, value)

    def __iadd__(self, other):
        if isinstance(other, RowSparseNDArray):
            self._named = np.union1d(rows_of(self), rows_of(other))
        return super().__iadd__(other)

    def retain(self, indices) -> "RowSparseNDArray":
        """The same with these rows only."""
        return retain(self, indices)


class CSRNDArray(BaseSparseNDArray):
    """A matrix of which the numbers that are not zero are listed row by row."""

    __slots__ = ()
    stype = "csr"

    def __init__(self, array, ctx: Context | None = None):
        super().__init__(array, ctx)
        if self.ndim != 2:
            raise ShapeError(f"CSRNDArray: needs two dimensions, got shape {self.shape}")

    @property
    def indices(self) -> NDArray:
        """The columns of the numbers."""
        return NDArray(np.nonzero(self.data)[1], self._context)

    @property
    def indptr(self) -> NDArray:
        """Where the numbers of each row start in ``indices`` and ``values``, and the end of the last."""
        counts = np.count_nonzero(self.data, axis=1)
        return NDArray(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), self._context)

    @property
    def values(self) -> NDArray:
        """The numbers."""
        return NDArray(self.data[np.nonzero(self.data)], self._context)

    def __getitem__(self, key):
        if isinstance(key, int | np.integer):
            key = slice(key, key + 1 or None)
        part = super().__getitem__(key)
        return CSRNDArray(part.data, self._context) if isinstance(key, slice) else part

    def asscipy(self):
        """A ``scipy.sparse.csr_matrix``."""
        from scipy.sparse import csr_matrix as scipy_matrix  # an extra, asked for by this call only

        return scipy_matrix(self.asnumpy())


_CLASSES = {"row_sparse": RowSparseNDArray, "csr": CSRNDArray}


def _with_storage(dense: NDArray, stype: str, rows=None) -> NDArray:
    """An array of a storage type over the memory of ``dense``."""
    if stype == "row_sparse":
        return RowSparseNDArray(dense.data, dense.context, () if rows is None else rows)
    return dense if stype == "default" else CSRNDArray(dense.data, dense.context)


def _again(host, stype, rows):
    return _with_storage(NDArray(host), stype, rows)


def rows_of(array: NDArray) -> np.ndarray | None:
    """The numbers of the rows of a row-sparse array, rising; None for any other array."""
    if not isinstance(array, RowSparseNDArray):
        return None
    filled = np.flatnonzero(array.data.reshape(len(array.data), -1).any(axis=1)) if array.size else ()
    return np.union1d(array._named, filled).astype(np.int64)


# -- make them ---------------------------------------------------------------------------------------------


def cast_storage(data: NDArray, stype: str) -> NDArray:
    """A copy with this storage type: ``"default"``, ``"row_sparse"`` or ``"csr"``."""
    if stype not in ("default", *_CLASSES):
        raise MXNetError(f"cast_storage: stype must be default, row_sparse or csr, got {stype!r}")
    if "default" not in (stype, data.stype) and stype != data.stype:
        raise MXNetError(f"cast_storage: an array cannot go from {data.stype} to {stype}")
    rows = rows_of(data)
    return _with_storage(NDArray(data.data, data.context).copy(), stype, rows)


def tostype(self, stype: str) -> NDArray:
    """This array where it has the storage type ``stype``, else :func:`nd.sparse.cast_storage` of it."""
    return self if stype == self.stype else cast_storage(self, stype)


def _dtype(source, dtype):
    return dtype or getattr(source, "dtype", None)


def row_sparse_array(arg1, shape=None, ctx: Context | None = None, dtype=None) -> RowSparseNDArray:
    """A row-sparse array.

    Parameters
    ----------
    arg1 : array, tuple of int, or (values, indices)
        Anything array-like; a shape, for an array without rows; or rows and their numbers.
    shape : tuple of int, optional
        The shape, for rows and numbers; up to the last row unless given.
    ctx, dtype
        As of :func:`roiops.nd.array`; the dtype is that of the source where it has one.
    """
    if not isinstance(arg1, tuple):
        dense = creation.array(arg1, ctx, _dtype(arg1, dtype))
        return _with_storage(dense, "row_sparse", rows_of(arg1))
    if len(arg1) != 2 or isinstance(arg1[0], int | np.integer):
        return _with_storage(creation.zeros(arg1, ctx, dtype), "row_sparse")
    values = creation.array(arg1[0], None, _dtype(arg1[0], dtype)).asnumpy()
    rows = np.asarray(arg1[1], np.int64).reshape(-1)
    if shape is None:
        shape = (int(rows.max(initial=-1)) + 1, *values.shape[1:])
    if len(rows) != len(values) or tuple(shape[1:]) != values.shape[1:]:
        raise ShapeError(
            f"row_sparse_array: {len(rows)} rows of an array of shape {tuple(shape)} are needed, "
            f"got values of shape {values.shape}"
        )
    _check_range("row_sparse_array", "indices", rows, shape[0])
    dense = np.zeros(shape, values.dtype)
    dense[rows] = values
    return _with_storage(creation.array(dense, ctx, dense.dtype), "row_sparse", np.unique(rows))


def csr_matrix(arg1, shape=None, ctx: Context | None = None, dtype=None) -> CSRNDArray:
    """A matrix of the kind "compressed sparse row".

    Parameters
    ----------
    arg1 : array, (rows, columns), (values, indices, indptr), or (values, (row, column))
        Anything array-like, a SciPy matrix too; a shape, for a matrix of zeros; the three arrays of the
        format; or numbers with their places.
    shape : (int, int), optional
        The shape; unless given, up to the last place that is named.
    ctx, dtype
        As of :func:`roiops.nd.array`; the dtype is that of the source where it has one.
    """
    if not isinstance(arg1, tuple):
        source = arg1.toarray() if hasattr(arg1, "toarray") else arg1
        return _with_storage(creation.array(source, ctx, _dtype(source, dtype)), "csr")
    if len(arg1) == 2 and not isinstance(arg1[1], tuple | list):
        return _with_storage(creation.zeros(arg1, ctx, dtype), "csr")
    values = creation.array(arg1[0], None, _dtype(arg1[0], dtype)).asnumpy().reshape(-1)
    if len(arg1) == 2:
        rows, columns = (np.asarray(each, np.int64).reshape(-1) for each in arg1[1])
    elif len(arg1) == 3:
        columns, starts = (np.asarray(each, np.int64).reshape(-1) for each in arg1[1:])
        if starts[-1] != len(columns) or (np.diff(starts) < 0).any():
            raise ParamError(f"csr_matrix: indptr must rise to {len(columns)}, got {starts.tolist()}")
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        shape = shape or (len(starts) - 1, int(columns.max(initial=-1)) + 1)
    else:
        raise ParamError(f"csr_matrix: arg1 must hold 2 or 3 entries, got {len(arg1)}")
    if not len(values) == len(rows) == len(columns):
        raise ShapeError(f"csr_matrix: {len(values)} values, but places for {len(columns)}")
    shape = shape or (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    _check_range("csr_matrix", "rows", rows, shape[0])
    _check_range("csr_matrix", "columns", columns, shape[1])
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, (rows, columns), values)  # as in SciPy, numbers at one place add up
    return _with_storage(creation.array(dense, ctx, dense.dtype), "csr")


def _check_range(what: str, name: str, numbers, size: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < size:
        raise ParamError(f"{what}: {name} must be in [0, {size}), got {numbers.min()} to {numbers.max()}")


def array(source_array, ctx: Context | None = None, dtype=None) -> NDArray:
    """A copy of a sparse array, of the same kind; of a SciPy matrix, as :func:`csr_matrix`."""
    if isinstance(source_array, RowSparseNDArray):
        return row_sparse_array(source_array, ctx=ctx, dtype=dtype)
    return csr_matrix(source_array, ctx=ctx, dtype=dtype)


def zeros(stype: str, shape, ctx: Context | None = None, dtype=None) -> NDArray:
    """An array of zeros, of which no row counts."""
    return cast_storage(creation.zeros(shape, ctx, dtype), stype)


empty = zeros


def retain(data: RowSparseNDArray, indices) -> RowSparseNDArray:
    """``data`` with these rows only."""
    if not isinstance(data, RowSparseNDArray):
        raise MXNetError(f"sparse.retain: data must be row_sparse, got {data.stype}")
    rows = np.intersect1d(rows_of(data), np.asarray(indices).astype(np.int64))
    return row_sparse_array((data.data[rows], rows), data.shape, data.context, data.dtype)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return FUNCTIONS.get(name) or function_for(name)


# An array need not know of its kinds: they put this there.
NDArray.tostype = tostype
