"""Network operators: convolution, pooling, normalisation, activation, dropout, recurrence, resizing."""

from . import (  # noqa: F401
    activation,
    attention,
    batch_norm,
    convolution,
    correlation,
    dropout,
    fully_connected,
    normalization,
    pooling,
    recurrent,
    resize,
)
