"""An operator on regions of interest with its parameters, run on tensors: shapes, memory and threads."""

import functools
import math

import numpy as np
import torch

from ..context import Context, cpu
from ..dtypes import BFLOAT16
from ..errors import DeviceError, DTypeError, MXNetError
from ..kernels.jit import use_threads
from ..kernels.memory import empty
from ..ndarray import device as memory
from ..operators.base import OpContext
from ..operators.imperative import infer
from ..operators.roi.base import ROIProperty, SeparableOp

__all__ = ["NUMPY_DTYPES", "BoundOperator", "Plan", "bind", "bind_choices"]

NUMPY_DTYPES = {
    torch.float16: np.dtype(np.float16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.bfloat16: BFLOAT16,
    torch.uint8: np.dtype(np.uint8),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
}
#: The dtypes of memory: those of what callers give, and of an argmax of few bits.
_MEMORY = {**NUMPY_DTYPES, torch.uint16: np.dtype(np.uint16)}
_TORCH = {array: tensor for tensor, array in _MEMORY.items()}

# How many combinations of shapes and dtypes an operator with its parameters remembers.
_MOST_PLANS = 1024

# Bytes from which on memory is NumPy's, which asks Linux for huge pages. PyTorch does not, and to get the
# memory of a large gradient page by page takes longer than to compute the gradient. Smaller tensors mostly
# get memory that was freed before, and rounding them up to huge pages of 2 MiB would add to the peak.
_LARGE = 1 << 23


def bind(prop_class, params: dict) -> "BoundOperator":
    """A registered operator with its parameters."""
    try:
        return _bind(prop_class, tuple(params.items()))
    except TypeError:  # a list is not hashable
        return BoundOperator(prop_class.create(params))


@functools.lru_cache(maxsize=1024)
def _bind(prop_class, params) -> "BoundOperator":
    return BoundOperator(prop_class.create(dict(params)))


@functools.lru_cache(maxsize=1024)
def bind_choices(prop_class, make_params, choices: tuple) -> "BoundOperator":
    """:func:`bind` for the parameters that ``make_params`` makes of what a caller gave, all hashable."""
    return BoundOperator(prop_class.create(make_params(*choices)))


class BoundOperator:
    """An operator with its parameters."""

    def __init__(self, prop: ROIProperty):
        self.prop = prop
        self.names = prop.list_arguments()
        self.has_gradient = tuple(name not in prop.list_zero_gradients() for name in self.names)
        self.has_hidden = len(prop.list_outputs()) > 1
        is_map = [name.startswith("data") for name in self.names]
        # The gradient of a map follows from the boxes; that of anything else is a slope of the map.
        reads_maps = any(has and not each for has, each in zip(self.has_gradient, is_map, strict=True))
        #: Of which inputs backward reads what they hold; of the others it needs shape and dtype only.
        self.is_read = tuple(reads_maps or not each for each in is_map)
        self._plans = {}

    def read_by_backward(self, inputs) -> list:
        """The inputs, with None for those that backward does not read."""
        return [each if read else None for each, read in zip(inputs, self.is_read, strict=True)]

    def wanted(self, needed) -> list:
        """Of which inputs to compute the gradient, of those for which autograd needs one."""
        return [has and need for has, need in zip(self.has_gradient, needed, strict=False)]

    def plan(self, tensors) -> "Plan":
        """How the operator is run on ``tensors``."""
        if len(tensors) == 2:  # nearly always, and without lists in half the time
            one, two = tensors
            plan = self._plans.get((one.shape, two.shape, one.dtype, two.dtype, one.device, two.device))
            if plan is not None:
                return plan
        return self.plan_for(
            [t.shape for t in tensors], [t.dtype for t in tensors], [t.device for t in tensors]
        )

    def plan_for(self, shapes, dtypes, devices) -> "Plan":
        """How the operator is run on tensors of these shapes and dtypes, on one device."""
        key = (*map(tuple, shapes), *dtypes, *devices)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = Plan(self, shapes, dtypes, devices)
        return plan


class Plan:
    """An operator with its parameters on tensors of known shapes and dtypes. It knows nothing of autograd"""

    def __init__(self, operator: BoundOperator, shapes, dtypes, devices):
        prop, names = operator.prop, operator.names
        if len(shapes) != len(names):
            raise MXNetError(
                f"{prop.label}: takes {len(names)} inputs ({', '.join(names)}), got {len(shapes)}"
            )
        for name, dtype, device in zip(names, dtypes, devices, strict=True):
            if dtype not in NUMPY_DTYPES:
                raise DTypeError(f"{prop.label}: {name} must hold real numbers, got {dtype}")
            if device != devices[0]:
                raise DeviceError(f"{prop.label}: data is on {devices[0]}, but {name} is on {device}")
        self.operator, self.device, self.dtype = operator, devices[0], dtypes[0]
        self._on_gpu = self.device.type == "cuda"
        # NumPy has no bfloat16: on the CPU it is widened to float32, and what comes of it rounded.
        self._widens = not self._on_gpu and torch.bfloat16 in dtypes
        self._dtypes, shapes = dtypes, [tuple(shape) for shape in shapes]
        self._gradients = [(shape, self._stored(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
        types = [NUMPY_DTYPES[dtype] for _, dtype in self._gradients]
        out_shapes, out_types, _, _ = infer(prop, shapes, types)
        self._outputs = [(tuple(s), _TORCH[t]) for s, t in zip(out_shapes, out_types, strict=True)]
        self._context = OpContext(Context("gpu", self.device.index) if self._on_gpu else cpu(), prop.label)
        self._op = prop.create_operator(self._context, shapes, types)
        self._shapes, self._types, self._out_shape = shapes, types, out_shapes[0]
        #: The shapes of the inputs that backward does not read, one after the other.
        self.unread_shapes = [
            n for read, shape in zip(operator.is_read, shapes, strict=True) if not read for n in shape
        ]
        # What stands for inputs that are not read: of their shape and dtype, one number large.
        self._unread = [
            None if read else torch.empty((), dtype=dtype, device=self.device).expand(shape)
            for read, (shape, dtype) in zip(operator.is_read, self._gradients, strict=True)
        ]

    @functools.cached_property
    def _at_addresses(self):
        """A small call as functions of addresses, or None. Not asked for while shapes are symbols."""
        dtype, *others = self._types
        of_one_dtype = dtype in (np.float32, np.float64) and all(each == dtype for each in others)
        if self._on_gpu or self._widens or not of_one_dtype or not isinstance(self._op, SeparableOp):
            return None
        return self._op.at_addresses(self._context, self._shapes, self._out_shape, dtype)

    @property
    def is_small(self) -> bool:
        """Whether :meth:`gradient_of_map` can be asked for. Not asked for while shapes are symbols."""
        return self._at_addresses is not None

    @functools.cached_property
    def _makers(self):
        """What makes memory for each output and each gradient. Not asked for while shapes are symbols."""
        return [[self._maker(*each) for each in every] for every in (self._outputs, self._gradients)]

    @functools.cached_property
    def _make_short(self):
        """What makes memory for an argmax that only :meth:`backward` reads, or None for an ordinary one.

        It is of the fewest bits that will do: to write it and to read it again takes a good part of the time.
        """
        if self._on_gpu or self.is_small or len(self._outputs) == 1 or not isinstance(self._op, SeparableOp):
            return None
        dtype = self._op.argmax_dtype(self._context, self._shapes[0])
        return self._maker(self._outputs[1][0], _TORCH[dtype])

    def _maker(self, shape, dtype):
        if not self._on_gpu and math.prod(shape) * dtype.itemsize >= _LARGE:
            return lambda: torch.from_numpy(empty(shape, _MEMORY[dtype]))
        # Sooner done than `torch.empty`, which is told a dtype and a device each time.
        return functools.partial(torch.empty(0, dtype=dtype, device=self.device).new_empty, shape)

    def forward(self, tensors, keep_hidden: bool = False, short: bool = False) -> list:
        """The output, then those that only :meth:`backward` reads, or None for each of these.

        If they may be ``short``, these can have fewer bits than the operator's own.
        """
        make, *others = self._makers[0]
        outputs = [make()]
        if others:
            if short and self._make_short:
                others = [self._make_short]
            outputs += [make_other() if keep_hidden else None for make_other in others]
        if self._at_addresses and _are_in_order(*tensors):
            data, rois = tensors
            run, output = self._at_addresses[0], outputs[0]
            argmax = outputs[1].data_ptr() if others and keep_hidden else 0
            stray = run(data.data_ptr(), rois.data_ptr(), output.data_ptr(), argmax)
            if stray < 0:
                return outputs
        with self._stream_or_threads(tensors[0]), np.errstate(all="ignore"):
            inputs, arrays = self._arrays(tensors), self._arrays(outputs)
            self._op.forward(self._context, inputs, _requests(outputs), arrays, [])
        if self._widens:
            outputs[0] = outputs[0].to(self.dtype)
        return outputs

    def backward(self, grad_out, inputs, hidden, wanted) -> list:
        """The gradients of the inputs that are ``wanted``, None for the others.

        ``inputs`` are those of the forward pass, with None for those that backward does not read.
        """
        if self._at_addresses and wanted[0] and _are_in_order(grad_out, inputs[1]):
            return [self.gradient_of_map(grad_out, inputs[1], hidden), None]
        grads = [make() if wants else None for make, wants in zip(self._makers[1], wanted, strict=True)]
        inputs = [other if each is None else each for each, other in zip(inputs, self._unread, strict=True)]
        with self._stream_or_threads(grad_out), np.errstate(all="ignore"):
            heads = [*self._arrays([grad_out]), *(None for _ in hidden)]
            outputs = [None, *self._arrays(hidden)]
            inputs, arrays = self._arrays(inputs), self._arrays(grads)
            self._op.backward(self._context, heads, inputs, outputs, _requests(grads), arrays, [])
        if self._widens:
            grads = [g if g is None else g.to(dtype) for g, dtype in zip(grads, self._dtypes, strict=True)]
        return grads

    def gradient_of_map(self, grad_out, rois, hidden):
        """The first of the gradients, in a small call that has no others."""
        if not _are_in_order(grad_out, rois):
            return self.backward(grad_out, [None, rois], hidden, [True, False])[0]
        grad = self._makers[1][0]()
        argmax = hidden[0].data_ptr() if hidden else 0
        self._at_addresses[1](grad.data_ptr(), rois.data_ptr(), grad_out.data_ptr(), argmax)
        return grad

    def empty_outputs(self) -> list:
        """Tensors like the output and those that only :meth:`backward` reads."""
        return [torch.empty(shape, dtype=dtype, device=self.device) for shape, dtype in self._outputs]

    def empty_gradients(self, wanted) -> list:
        """Tensors like the gradients of the inputs that are ``wanted``."""
        return [
            torch.empty(shape, dtype=dtype, device=self.device) if wants else None
            for (shape, dtype), wants in zip(self._gradients, wanted, strict=True)
        ]

    def _stored(self, dtype):
        """The dtype of the memory that kernels are given for a tensor."""
        return torch.float32 if self._widens and dtype is torch.bfloat16 else dtype

    def _arrays(self, tensors) -> list:
        """The memory of tensors as operators take it: NumPy's arrays, or the CUDA runtime's."""
        if self._widens:
            tensors = [t.float() if t is not None and t.dtype is torch.bfloat16 else t for t in tensors]
        if self._on_gpu:
            return [t if t is None else memory.shared(t.detach()).array for t in tensors]
        return [t if t is None else t.numpy(force=True) for t in tensors]

    def _stream_or_threads(self, tensor):
        """A context in which work goes to PyTorch's current stream, or to as many threads as PyTorch has."""
        return memory.on_stream_of(tensor) if self._on_gpu else use_threads(torch.get_num_threads())


def _are_in_order(one, other) -> bool:
    """Whether the numbers of both tensors are in memory as they are, one after the other."""
    return one.is_contiguous() and other.is_contiguous() and not (one.is_neg() or other.is_neg())


def _requests(targets) -> list:
    return ["null" if each is None else "write" for each in targets]
