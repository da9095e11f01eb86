"""Tensor operators."""

from . import (
    arithmetic,
    checks,
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
    "arithmetic",
    "checks",
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
