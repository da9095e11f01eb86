"""MXNet's late errors for its unit tests: what fails while it computes is raised when a result is read.

MXNet's engine computes after a call has returned; some of its tests expect no error before ``asnumpy``,
``wait_to_read`` or ``waitall``. roiops raises at the call. Here that error is kept by the arrays that were to
hold the results, and by what is made of them, until one of them is read, which raises it once.
"""

import weakref

import numpy as np

from roiops.context import current_context
from roiops.errors import DataError
from roiops.graph.executor import Executor
from roiops.ndarray import ndarray, random
from roiops.ndarray.ndarray import NDArray, wrap
from roiops.operators.imperative import Plan


class _Failure:
    """An error that nobody has been told yet."""

    def __init__(self, error):
        self.error = type(error)(str(error))  # without the frames of the first, which hold the arrays
        _untold.add(self)

    def tell(self) -> None:
        error, self.error = self.error, None
        _untold.discard(self)
        if error is not None:
            raise error


#: Failures live as long as arrays that hold them: what nobody can read any more is not told by waitall.
_untold: weakref.WeakSet = weakref.WeakSet()


class _Missing:
    """The place of an array's numbers that were not computed."""

    def __init__(self, failure, shape, dtype):
        self.failure, self.shape, self.dtype = failure, tuple(shape), np.dtype(dtype)
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape))

    def part(self, shape) -> "_Missing":
        return _Missing(self.failure, shape, self.dtype)


def _guarded(name, otherwise):
    """Put a method into NDArray that does ``otherwise`` where numbers are missing."""
    plain = getattr(NDArray, name)

    def method(self, *args, **kwargs):
        if isinstance(self.data, _Missing):
            return otherwise(self, *args, **kwargs)
        return plain(self, *args, **kwargs)

    setattr(NDArray, name, method)


def _read(self, *args):
    self.data.failure.tell()
    return np.zeros(self.shape, self.dtype)


def _copyto(self, other):
    if isinstance(other, NDArray):
        other.data = self.data
        return other
    return wrap(self.data, other)


def _getitem(self, key):
    shape = np.empty(self.shape, bool)[key].shape or (1,)
    return wrap(self.data.part(shape), self.context)


def _draw_late(draw):
    def drawn(row, parameters, shape, dtype, ctx, out):
        try:
            return draw(row, parameters, shape, dtype, ctx, out)
        except DataError as error:
            if shape is None:
                raise
            missing = _Missing(_Failure(error), np.atleast_1d(shape).tolist(), dtype or row.dtype)
            return wrap(missing, ctx or current_context())

    return drawn


def _run_late(run):
    def ran(prop_class, given, arrays, ctx, *rest):
        missing = next((array for array in arrays if isinstance(array, _Missing)), None)
        if missing is None:
            return run(prop_class, given, arrays, ctx, *rest)
        prop = prop_class.create(given)
        plan = Plan(prop, [array.shape for array in arrays], [array.dtype for array in arrays])
        return [_Missing(missing.failure, *each) for each in plan.outputs[: prop.num_visible_outputs]]

    return ran


def _forward_late(forward):
    def forwarded(self, is_train=False, **kwargs):
        for output, memory in getattr(self, "_memory_of_outputs", ()):
            output.data = memory
        try:
            return forward(self, is_train, **kwargs)
        except DataError as error:
            failure = _Failure(error)
            self._memory_of_outputs = [(output, output.data) for output in self.outputs]
            for output in self.outputs:
                output.data = _Missing(failure, output.shape, output.dtype)
            return self.outputs

    return forwarded


def waitall() -> None:
    """Raise an error that nobody has been told yet, and forget the others."""
    failures = [failure for failure in _untold if failure.error is not None]
    for failure in failures[1:]:
        failure.error = None
    for failure in failures[:1]:
        failure.tell()


def install(mxnet) -> None:
    """Put these ways into NDArray, Executor and ``mx.nd``."""
    for name in ("asnumpy", "asscalar", "wait_to_read", "__array__"):
        _guarded(name, _read)
    _guarded("copyto", _copyto)
    _guarded("__getitem__", _getitem)
    random._draw = _draw_late(random._draw)
    ndarray.run = _run_late(ndarray.run)
    Executor.forward = _forward_late(Executor.forward)
    mxnet.nd.waitall = waitall
