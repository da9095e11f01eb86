"""Element-wise operators that do those after them as well: in inference, a chain of them is one pass."""

import math

import numpy as np

from ..base import Following, OpContext, Operator, OperatorProperty, kernels
from ..dense import DenseOperator

#: The functions of two numbers that a chain can have.
ARITHMETIC = np.add, np.subtract, np.multiply, np.true_divide
#: Fewer numbers are left to NumPy, as the kernel's module has it; that brings numba.
_SOME = 4096


class ChainOp(Operator):
    """One whose inference may go on with the operators that read its result."""

    def work(self, in_shapes) -> Following | None:
        """What this does to one of its inputs, where a chain can do it."""
        raise NotImplementedError

    def bind_alone(self, in_data, out, req):
        """A call of this operator in NumPy."""
        raise NotImplementedError

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        """A chain of one operator, where that is faster than NumPy."""
        out = out_data[0]
        dense = out.size >= _SOME and DenseOperator.as_they_are(in_data, req, out_data)
        floats = dense and all(array.dtype == np.float32 for array in (*in_data, out))
        shapes = [array.shape for array in in_data]
        work = floats and self.work(shapes)
        by_rows = shapes[0] != shapes[-1]
        if work and kernels("network.chain", ctx.device).is_faster(work.kind, out.size, by_rows):
            return self.bind_followed(ctx, in_data, aux, out, [], [])
        return self.bind_alone(in_data, out, req[0])

    def bind_followed(self, ctx, in_data, aux, out, work, before):
        own = self.work([array.shape for array in in_data])
        first = own.inputs[0]
        others = [*in_data[:first], *in_data[first + 1 :]]
        chain = kernels("network.chain", ctx.device)
        steps = [step for each in ((own, others), *work) for step in _steps(chain, *each)]
        return chain.bind(in_data[first], steps, out)


class ChainProp(OperatorProperty):
    """The property of a :class:`ChainOp`."""

    def follows(self, in_shapes):
        return self.op(self.params).work(in_shapes)

    def takes_over(self, work, done, in_shapes):
        own = self.follows(in_shapes)
        if own is None or work.kind in ("batch_norm", "prelu"):
            return False
        room = kernels("network.chain", OpContext().device).MOST_ARRAYS
        return sum(kind not in ("act", "sigmoid") for kind in (own.kind, *done, work.kind)) <= room


def _steps(chain, work, others) -> list:
    """The steps of a chain that are the work of one operator."""
    if work.kind == "act":
        return chain.activation(**work.details)
    if work.kind == "sigmoid":
        return [(chain.SIGMOID, 0)]
    if work.kind == "add":
        return [(chain.ADD, others[0])]
    function, number, reflected = (work.details[name] for name in ("function", "number", "reflected"))
    return [(chain.CODES[function][reflected], others[0] if number is None else number)]


def two_arrays(function, in_shapes) -> Following | None:
    """The work of a function of two arrays, of one shape or where the one has a number for each row."""
    left, right = in_shapes
    both = left == right
    if function is np.add and both:
        return Following("add", (0, 1), {})
    if function not in ARITHMETIC or not (both or _has_rows(left, right) or _has_rows(right, left)):
        return None
    reflected = not (both or _has_rows(left, right))
    inputs = (0, 1) if both and function is np.multiply else (int(reflected),)
    return Following("arithmetic", inputs, {"function": function, "number": None, "reflected": reflected})


def _has_rows(shape, rows) -> bool:
    """Whether an array of shape ``rows`` has one number for each row of an array of ``shape``."""
    if len(shape) != len(rows) or 0 in shape:
        return False
    axes = next((i for i, (n, m) in enumerate(zip(shape, rows, strict=True)) if n != m), len(shape))
    return math.prod(rows[axes:]) == 1
