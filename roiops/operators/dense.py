"""How arrays reach kernels that want them C-contiguous, float32 or float64, and how results get back.

Any array may be strided, float16, or to be added to; kernels see none of that. :class:`DenseOperator` is for
kernels that are asked for each result by itself, :class:`WholeOperator` for kernels that write all their
results in one go, whether somebody wants them or not.
"""

import functools
import math
from types import NoneType

import numpy as np

from ..dtypes import wide
from ..kernels.memory import empty
from .base import Operator, OperatorProperty, assign
from .checks import Undeclared


class DenseOperator(Operator):
    """An operator that computes on dense arrays only, and never sees a request.

    Strided and float16 arrays are copied to scratch that is kept from call to call (float16 becomes
    float32), results are copied back or added as requested. Subclasses override :meth:`compute` or
    :meth:`bind`, and :meth:`gradient`; a result that nobody wants is None there, every other one is to be
    written.
    """

    def __init__(self, params, **worked_out):
        super().__init__(params, **worked_out)
        self._scratch = {}

    def forget(self):
        self._scratch.clear()

    def compute(self, ctx, in_data, out_data, aux) -> None:
        """The forward pass."""
        if type(self).bind is DenseOperator.bind:
            raise NotImplementedError
        self.bind(ctx, in_data, out_data, aux)()

    def bind(self, ctx, in_data, out_data, aux):
        """A call of the forward pass on these very arrays, again and again."""
        return functools.partial(self.compute, ctx, in_data, out_data, aux)

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux) -> None:
        """The backward pass."""
        raise NotImplementedError

    def forward(self, ctx, in_data, req, out_data, aux):
        if self.as_they_are(in_data, req, out_data):
            self.compute(ctx, in_data, out_data, aux)
            return
        outs = [self._result(f"out{i}", a, r) for i, (a, r) in enumerate(zip(out_data, req, strict=True))]
        self.compute(ctx, self._inputs("in", in_data), outs, aux)
        _deliver(out_data, req, outs)

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        if self.as_they_are(in_data, req, out_data):
            return self.bind(ctx, in_data, out_data, aux)
        return super().bind_forward(ctx, in_data, req, out_data, aux)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grads = [
            self._result(f"grad{i}", a, "null" if a is None else r)
            for i, (a, r) in enumerate(zip(in_grad, req, strict=True))
        ]
        self.gradient(
            ctx,
            self._inputs("head", out_grad),
            self._inputs("in", in_data),
            self._inputs("out", out_data),
            grads,
            aux,
        )
        _deliver(in_grad, req, grads)

    @staticmethod
    def as_they_are(in_data, req, out_data) -> bool:
        """Whether :meth:`compute` can have these arrays, and write its results into them."""
        for each, target in zip(req, out_data, strict=True):
            if target is not None and (each not in ("write", "inplace") or not _is_dense(target)):
                return False
        return all(array is None or _is_dense(array) for array in in_data)

    def scratch(self, role: str, shape, dtype):
        """An uninitialised array that stays the same one from call to call."""
        array = self._scratch.get(role)
        if array is None or array.shape != tuple(shape) or array.dtype != dtype:
            array = self._scratch[role] = np.empty(shape, dtype)
        return array

    def _inputs(self, role, arrays):
        return [self._dense(f"{role}{i}", a) for i, a in enumerate(arrays)]

    def _dense(self, role, array):
        if array is None or isinstance(array, Undeclared) or _is_dense(array):
            return array
        copy = self.scratch(role, array.shape, wide(array.dtype))
        np.copyto(copy, array)
        return copy

    def _result(self, role, array, req):
        if req == "null":
            return None
        if req != "add" and _is_dense(array):
            return array
        return self.scratch("new " + role, array.shape, wide(array.dtype))


class ImageOperator(DenseOperator):
    """An operator whose images may have their channels last; it computes with the channels second."""

    def forward(self, ctx, in_data, req, out_data, aux):
        super().forward(ctx, self._channels_second(in_data), req, self._channels_second(out_data), aux)

    def bind_forward(self, ctx, in_data, req, out_data, aux):
        if self.params.channels_last:
            return functools.partial(self.forward, ctx, in_data, req, out_data, aux)
        return super().bind_forward(ctx, in_data, req, out_data, aux)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        arrays = map(self._channels_second, (out_grad, in_data, out_data))
        super().backward(ctx, *arrays, req, self._channels_second(in_grad), aux)

    def _channels_second(self, arrays):
        if not self.params.channels_last:
            return arrays
        is_image = [not isinstance(a, NoneType | Undeclared) and a.ndim > 2 for a in arrays]
        return [np.moveaxis(a, -1, 1) if is_it else a for a, is_it in zip(arrays, is_image, strict=True)]


class FormulaOperator(DenseOperator):
    """An operator given by two functions that return new arrays; for what NumPy computes fast enough.

    A gradient that is None is zero.
    """

    def values(self, *inputs) -> tuple:
        """All outputs."""
        raise NotImplementedError

    def slopes(self, heads, inputs, outputs) -> tuple:
        """The gradients of all inputs, from those of the outputs."""
        raise NotImplementedError

    def compute(self, ctx, in_data, out_data, aux):
        _store(out_data, self.values(*in_data))

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        _store(in_grad, self.slopes(out_grad, in_data, out_data))


def _store(targets, values):
    for target, value in zip(targets, values, strict=True):
        if target is not None:
            target[...] = 0 if value is None else value.reshape(target.shape)


def _is_dense(array) -> bool:
    return array.dtype.char != "e" and array.flags.c_contiguous


def _deliver(targets, reqs, results) -> None:
    for target, req, result in zip(targets, reqs, results, strict=True):
        if result is None or result is target:
            continue
        if req == "add":
            target += result
        else:
            np.copyto(target, result, casting="same_kind")


def computing(dtype):
    """The dtype in which box operators compute: float64 for float64, float32 for everything else."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def dense(array):
    """``array`` itself if a kernel can read it, else a copy that it can."""
    return np.ascontiguousarray(array, computing(array.dtype))


class Result:
    """Where a kernel writes one output: the output itself if it can, else memory that ``store`` copies."""

    def __init__(self, target, req, shape, dtype):
        self.target, self.req = target, req
        direct = req in ("write", "inplace") and target.flags.c_contiguous and target.dtype == dtype
        self.array = target if direct else empty(shape, dtype)

    def store(self):
        """Hand the result over, as the request asks."""
        if self.req != "null":
            assign(self.target, self.req, self.array)


class WholeOperator(Operator):
    """An operator whose kernel writes all results in one go; boxes are computed so, in float32 or float64."""

    shareable = True

    #: Shape and dtype of each result, as the kernel writes it.
    results: list

    def run(self, ctx, inputs, results) -> None:
        """Compute all results from the inputs, arrays that a kernel takes."""
        raise NotImplementedError

    def forward(self, ctx, in_data, req, out_data, aux):
        results = [Result(a, r, *each) for a, r, each in zip(out_data, req, self.results, strict=True)]
        self.run(ctx, [dense(a) for a in in_data], [each.array for each in results])
        for each in results:
            each.store()


class WholeProperty(OperatorProperty):
    """The property of a :class:`WholeOperator`."""

    floating = True

    def create_operator(self, ctx, in_shapes, in_types):
        shapes, types = self.infer_shape(in_shapes)[1], self.infer_type(in_types)[1]
        types = [each if each.kind == "i" else computing(each) for each in types]
        return self.op(self.params, results=list(zip(shapes, types, strict=True)))


def row_view(array, axis: int):
    """``array`` as (outer, axis, inner)."""
    shape = array.shape
    axis %= len(shape)
    return array.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


class FloatProperty(OperatorProperty):
    """A property whose inputs are all of one floating-point dtype, and whose shapes follow from the first."""

    floating = partial_shapes = True
    needed_shapes = 1
