"""Tensor operators."""

from . import (
    arithmetic,
    create,
    indexing,
    join,
    matrix,
    ordering,
    reduce,
    repeats,
    sequence,
    slices,
    unary,
    views,
)

__all__ = [
    "arithmetic",
    "create",
    "indexing",
    "join",
    "matrix",
    "ordering",
    "reduce",
    "repeats",
    "sequence",
    "slices",
    "unary",
    "views",
]
