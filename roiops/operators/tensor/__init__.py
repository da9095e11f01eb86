"""Tensor operators."""

from . import (
    arithmetic,
    checks,
    columns,
    create,
    density,
    histogram,
    image,
    indexing,
    join,
    linalg,
    matrix,
    ordering,
    quantize,
    reduce,
    repeats,
    sampling,
    sequence,
    slices,
    unary,
    views,
)
