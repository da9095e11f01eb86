"""How the detection operators hand arrays to kernels: contiguous, and no narrower than float32."""

import numpy as np

from ..base import Operator, assign

__all__ = ["GradientFree", "Result", "computing", "plain"]


def computing(dtype):
    """The dtype in which an operator computes for data of ``dtype``."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def plain(array, dtype=None):
    """``array`` itself if a kernel can read it, else a copy that it can."""
    return np.ascontiguousarray(array, dtype or computing(array.dtype))


class Result:
    """Where a kernel writes one output: the output itself if it can, else memory that ``store`` copies."""

    def __init__(self, target, req, shape, dtype):
        self.target, self.req = target, req
        direct = req in ("write", "inplace") and target.flags.c_contiguous and target.dtype == dtype
        self.array = target if direct else np.empty(shape, dtype)

    def store(self):
        """Hand the result over, as the request asks."""
        if self.req != "null":
            assign(self.target, self.req, self.array)


class GradientFree(Operator):
    """An operator whose inputs all have a gradient of zero, which the caller fills in."""

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        pass
