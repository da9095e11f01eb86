"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
from typing import Any

from roiops.ndarray import Array, NDArray

def det(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The determinant of each matrix. That of a singular matrix has no gradient."""
def extractdiag(A: Array | None = ..., offset: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One diagonal of each square matrix."""
def extracttrian(A: Array | None = ..., offset: int = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One triangle of each square matrix: a lower one row by row, an upper one column by column."""
def gelqf(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """``A = L @ Q``: lower triangular L, and Q with orthonormal rows. A has no more rows than columns."""
def gemm(A: Array | None = ..., B: Array | None = ..., C: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B + beta * C`` for each matrix."""
def gemm2(A: Array | None = ..., B: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B`` for each matrix."""
def inverse(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The inverse of each matrix."""
def makediag(A: Array | None = ..., offset: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square matrices of zeros but for one diagonal, which is given."""
def maketrian(A: Array | None = ..., offset: int = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square matrices of zeros but for one triangle, which is given as ``extracttrian`` gives it."""
def potrf(A: Array | None = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The Cholesky factor L of positive-definite matrices: ``A = L @ L.T``, or ``A = U.T @ U``."""
def potri(A: Array | None = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The inverses of the matrices whose Cholesky factors are given."""
def slogdet(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """The sign of each matrix's determinant, and the logarithm of its size. The sign has no gradient."""
def sumlogdiag(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The sum of the logarithms of each matrix's diagonal."""
def syevd(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """``A = U.T @ diag(L) @ U`` of symmetric matrices: U has eigenvectors as rows, L ascends."""
def syrk(A: Array | None = ..., transpose: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ A.T`` for each matrix, or ``alpha * A.T @ A``."""
def trmm(A: Array | None = ..., B: Array | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B`` with triangular A."""
def trsm(A: Array | None = ..., B: Array | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The X of ``A @ X = alpha * B`` with triangular A."""
