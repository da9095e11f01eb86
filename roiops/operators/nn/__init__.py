"""Network operators: convolution, pooling, normalisation, activation, dropout, recurrence, resizing."""

from . import (
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
