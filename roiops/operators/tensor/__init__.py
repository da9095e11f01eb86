"""Tensor operators."""

from . import (
    allclose,
    arithmetic,
    create,
    indexing,
    join,
    matrix,
    ordering,
    reduce,
    repeats,
    sampling,
    sequence,
    slices,
    unary,
    views,
)

__all__ = [
    "allclose",
    "arithmetic",
    "create",
    "indexing",
    "join",
    "matrix",
    "ordering",
    "reduce",
    "repeats",
    "sampling",
    "sequence",
    "slices",
    "unary",
    "views",
]
