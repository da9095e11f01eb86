"""The dtypes that arrays may have, in the order of the numbers that MXNet's files hold for them."""

import numpy as np

__all__ = ["DTYPES", "NAMES", "NUM_BEFORE_2"]

NAMES = (
    "float32", "float64", "float16", "uint8", "int32", "int8", "int64",
    "bool", "int16", "uint16", "uint32", "uint64",
)  # fmt: skip
#: How many of them there were before MXNet 2.0.
NUM_BEFORE_2 = 8

DTYPES = frozenset(map(np.dtype, NAMES))
