"""``mxnet.autograd`` for MXNet's unit tests: what ``mx.nd`` computes is recorded, and gone back over.

roiops has no autograd. Many of MXNet's tests of operators take their gradients through it, and this lets
them: forward and backward are those of roiops' operators, and nothing is computed here but sums of gradients.
Slices are recorded, too; copies are not.
"""

import contextlib

import numpy as np

from roiops.errors import MXNetError
from roiops.ndarray import functions, invoke, ndarray
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation

_compute = invoke.run
_slice, _assign = ndarray.NDArray.__getitem__, ndarray.NDArray.__setitem__
_calls: list[Invocation] = []
#: By the identity of an array's memory: the memory, the NDArray of its gradient, and what is done with it.
_marked: dict[int, tuple] = {}
_mode = {"recording": False, "training": False}


def _run(prop_class, given, arrays, ctx, out=None, names=None, types=None):
    """What :func:`roiops.ndarray.invoke.run` does, recorded."""
    if out is not None or types is not None or not (_mode["recording"] or _mode["training"]):
        return _compute(prop_class, given, arrays, ctx, out, names, types)
    prop = prop_class.create(given)
    count = len(prop.list_arguments())
    context = OpContext(ctx, prop.label, is_train=_mode["training"])
    call = Invocation(prop, arrays[:count], arrays[count:], ctx=context)
    outputs = call.forward()
    if _mode["recording"]:
        _calls.append(call)
    return outputs


class _Slice:
    """A slice in the place of an operator's call: its gradient goes to where its entries come from."""

    class prop:
        num_visible_outputs = 1

    def __init__(self, source, key, part):
        self.in_data, self.key, self.outputs = [source], key, [part]

    def backward(self, gradients):
        (source,), (gradient,) = self.in_data, gradients
        numbers = _slice(ndarray.NDArray(np.arange(source.size).reshape(source.shape)), self.key).asnumpy()
        result = np.zeros_like(source)
        np.add.at(result.reshape(-1), numbers.reshape(-1), gradient.reshape(-1))
        return [result]


def _getitem(self, key):
    part = _slice(self, key)
    if _mode["recording"]:
        _calls.append(_Slice(self.data, key, part.data))
    return part


def _setitem(self, key, value) -> None:
    everything = key is Ellipsis or (isinstance(key, slice) and key == slice(None)) or key is None
    if _mode["recording"] and not everything:
        raise MXNetError(
            "Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd."
        )
    _assign(self, key, value)


@contextlib.contextmanager
def _switched(**modes):
    before = dict(_mode)
    _mode.update({name: value for name, value in modes.items() if value is not None})
    try:
        yield
    finally:
        _mode.update(before)


def record(train_mode=True):
    """Record what is computed within a ``with`` block."""
    return _switched(recording=True, training=train_mode)


def pause(train_mode=False):
    """Record nothing within a ``with`` block."""
    return _switched(recording=False, training=train_mode)


def train_mode():
    """Compute as in training within a ``with`` block."""
    return _switched(training=True)


def predict_mode():
    """Compute as in inference within a ``with`` block."""
    return _switched(training=False)


def is_recording() -> bool:
    """Whether what is computed is recorded."""
    return _mode["recording"]


def is_training() -> bool:
    """Whether what is computed is computed as in training."""
    return _mode["training"]


def mark_variables(variables, gradients, grad_reqs="write") -> None:
    """Take the gradients of these arrays from now on, into other arrays."""
    variables = variables if isinstance(variables, list | tuple) else [variables]
    gradients = gradients if isinstance(gradients, list | tuple) else [gradients]
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else grad_reqs
    for variable, gradient, req in zip(variables, gradients, reqs, strict=True):
        _marked[id(variable.data)] = variable.data, gradient, req


def backward(heads, head_grads=None, retain_graph=False, train_mode=True) -> None:
    """Go back over what was recorded, from these arrays to those that are marked."""
    heads = heads if isinstance(heads, list | tuple) else [heads]
    given = head_grads if isinstance(head_grads, list | tuple) else [head_grads] * len(heads)
    found: dict[int, np.ndarray] = {}

    def add(array, gradient):
        known = found.get(id(array))
        found[id(array)] = gradient if known is None else known + gradient

    for head, gradient in zip(heads, given, strict=True):
        add(head.data, np.ones_like(head.data) if gradient is None else gradient.asnumpy())
    for call in _calls[::-1]:
        outputs = call.outputs[: call.prop.num_visible_outputs]
        gradients = [found.get(id(output)) for output in outputs]
        if all(gradient is None for gradient in gradients):
            continue
        gradients = [
            np.zeros_like(output) if gradient is None else gradient.astype(output.dtype, copy=False)
            for output, gradient in zip(outputs, gradients, strict=True)
        ]
        for array, gradient in zip(call.in_data, call.backward(gradients), strict=True):
            add(array, gradient)
        if not retain_graph:
            _calls.remove(call)
    for memory, gradient, req in _marked.values():
        if req != "null" and id(memory) in found:
            value = found[id(memory)]
            gradient.data[...] = gradient.data + value if req == "add" else value


def _attach_grad(self, grad_req="write", stype=None) -> None:
    mark_variables(self, ndarray.NDArray(np.zeros_like(self.data)), grad_req)


def _grad(self):
    return _marked[id(self.data)][1] if id(self.data) in _marked else None


def _backward(self, out_grad=None, retain_graph=False, train_mode=True) -> None:
    backward(self, out_grad, retain_graph, train_mode)


def _detach(self):
    return ndarray.NDArray(self.data.copy())


def install(module) -> None:
    """Put these functions into the module that ``import mxnet.autograd`` gives, and methods into NDArray."""
    functions.run = ndarray.run = _run
    for each in (
        record,
        pause,
        train_mode,
        predict_mode,
        is_recording,
        is_training,
        mark_variables,
        backward,
    ):
        setattr(module, each.__name__, each)
    array = ndarray.NDArray
    array.__getitem__, array.__setitem__ = _getitem, _setitem
    array.attach_grad, array.backward, array.detach, array.grad = (
        _attach_grad,
        _backward,
        _detach,
        property(_grad),
    )
