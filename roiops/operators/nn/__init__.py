"""Network operators: convolution, pooling, normalisation, activation, dropout, recurrence, resizing."""

from . import (  # noqa: F401
    activation,
    batch_norm,
    convolution,
    dropout,
    fully_connected,
    normalization,
    pooling,
    recurrent,
    resize,
)
