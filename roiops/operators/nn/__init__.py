"""Network operators: convolution, pooling, normalisation, activation, dropout, resizing."""

from . import (  # noqa: F401
    activation,
    batch_norm,
    convolution,
    dropout,
    fully_connected,
    normalization,
    pooling,
    resize,
)
