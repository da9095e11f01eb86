"""Hybrid blocks: the same Python on arrays and on symbols, and one bound graph for each shape of inputs."""

import os
import weakref
from operator import is_not

import numpy as np

from .. import ndarray
from ..autograd import _tape as tape
from ..autograd import _zeros_like
from ..errors import MXNetError
from ..graph import functions as symbol
from ..graph.memory import drop_oldest
from ..graph.nodes import topological_order
from ..graph.symbol import Symbol
from ..ndarray import NDArray, device
from ..ndarray.ndarray import wrap
from ..operators.base import assign
from ..recording import Mode, current
from ..training.checkpoint import save_checkpoint
from .block import Block, flatten, regroup
from .parameter import Parameter, ParameterDict

__all__ = ["HybridBlock", "SymbolBlock"]


class _BoundGraph:
    """The graph of a hybridised block, and its executors: one for each device and shape, or more."""

    def __init__(self, block, inputs: list[str], outputs: Symbol, params: dict[str, Parameter]):
        self._block, self._outputs = block, outputs
        names = outputs.list_inputs()
        self._inputs = [(i, name) for i, name in enumerate(inputs) if name in names]
        self._params = [(name, params[name]) for name in names if name not in inputs]
        self._aux = set(outputs.list_auxiliary_states())
        order = topological_order(outputs._heads)
        self._operators = {node.name: node.op or "" for node in order}
        self._backward_always = any(node.prop and node.prop.backward_always for node in order)
        #: Executors that nobody uses, by what they are bound for.
        self._free: dict[tuple, list] = {}
        self._held: dict[tuple, list] = {}

    def __call__(self, arrays: list[NDArray]) -> list[NDArray]:
        used = [arrays[i] for i, _ in self._inputs]
        ctx = arrays[0].context
        params = [parameter.data(ctx) for _, parameter in self._params]
        recorded = current.tape is not None and tape.follows([*used, *params])
        wants = tuple(recorded and a._entry is not None and a._entry[0].wants for a in used)
        key = (ctx, recorded, wants, *((a.shape, a.data.dtype) for a in used))
        gradients = [a.grad for a in params] if recorded else []
        free = self._executors_for(key, [*params, *gradients])
        executor = free.pop() if free else self._bind(key, ctx, used, params, gradients)
        if self._block._callback is not None:
            executor.set_monitor_callback(self._told, self._block._monitor_all)
        with Mode(tape=None):
            given = {name: a for (_, name), a in zip(self._inputs, used, strict=True)}
            results = [each.copy() for each in executor.forward(current.training, **given)]
        if recorded:
            names = [name for _, name in self._inputs] + [name for name, _ in self._params]
            go_back = _Backward(executor, names)
            weakref.finalize(go_back, free.append, executor).atexit = False
            tape.add_function("_CachedOp", [*used, *params], results, go_back, self._backward_always)
        else:
            free.append(executor)
        return results

    def __reduce__(self):
        return type(None), ()  # a block that is copied or pickled makes its own

    def _told(self, name, array):
        """Call the block's hook with the name of a value, the operator of its node, and the value."""
        node = name
        while node not in self._operators and "_" in node:
            node = node.rpartition("_")[0]
        operator = self._operators.get(node)
        if operator:  # not the variables themselves, which MXNet does not tell of either
            self._block._callback(name, operator, array)

    def _executors_for(self, key, arrays) -> list:
        """Those of a kind that are free, as long as parameters have the arrays that they are bound to."""
        kind = key[:2]
        if any(map(is_not, arrays, self._held.get(kind, arrays))):
            self._free = {each: pool for each, pool in self._free.items() if each[:2] != kind}
        self._held[kind] = arrays
        free = self._free.pop(key, [])
        if not free:
            drop_oldest(self._free, lambda executors: sum(each.internal_bytes for each in executors))
        self._free[key] = free  # the last one used stands last
        return free

    def _bind(self, key, ctx, used, params, gradients):
        args, grads, requests, aux = {}, {}, {}, {}
        for (_, name), array, wants in zip(self._inputs, used, key[2], strict=True):
            args[name] = wrap(device.empty(array.shape, array.data.dtype, ctx), ctx)
            if wants:
                grads[name], requests[name] = _zeros_like(array), "write"
        gradients = gradients or [None] * len(params)
        for (name, parameter), array, gradient in zip(self._params, params, gradients, strict=True):
            (aux if name in self._aux else args)[name] = array.detach()
            if gradient is not None and name not in self._aux:
                grads[name], requests[name] = gradient, parameter.grad_req
            elif key[1] and array._entry is not None and array._entry[0].wants:  # computed from others
                grads[name], requests[name] = _zeros_like(array), "write"
        with Mode(tape=None):
            executor = self._outputs.bind(ctx, args, grads, requests, aux)
        if key[1]:
            executor.keep_for_backward()
        return executor


class _Backward:
    """The backward pass of one call of an executor, into what the tape asks for."""

    def __init__(self, executor, names):
        self._executor, self._names = executor, names

    def __call__(self, out_grads, reqs, in_grads) -> None:
        executor, moved = self._executor, []
        for name, req, target in zip(self._names, reqs, in_grads, strict=True):
            own = executor.grad_dict.get(name)
            if own is None or (req == executor._grad_req[name] and own.data is target):
                continue
            # What the executor is bound to must not change, or is to be used otherwise than it is bound for.
            moved.append((own.data, own.data.copy(), req, target))
            if executor._grad_req[name] == "add":
                own.data[...] = 0
        ctx = executor._device
        executor.backward([wrap(each, ctx) for each in out_grads])
        for own, before, req, target in moved:
            value = own.copy()
            own[...] = before
            if req != "null":
                assign(target, req, value)


def _read(inputs: list[Symbol], outputs: Symbol, values) -> dict:
    """The values of those inputs that the outputs read, by name."""
    names = set(outputs.list_inputs())
    return {each.name: value for each, value in zip(inputs, values, strict=True) if each.name in names}


class HybridBlock(Block):
    """A block that can run as a bound graph: override ``hybrid_forward(F, x, ..., **params)``.

    ``F`` is ``nd`` or ``sym``; the block's own parameters arrive by the names of their attributes.
    """

    #: Whether it runs as a bound graph also where it is not hybridised.
    _always_bound = False

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)
        self._active = False
        #: The graph as (input symbols, outputs); how inputs and outputs are nested.
        self._cached_graph, self._in_format, self._out_format = (), None, None
        self._cached_op = None
        self._callback, self._monitor_all = None, False

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()

    def register_child(self, block, name=None):
        if not isinstance(block, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. If "
                "you are using Sequential, please try HybridSequential instead."
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def _clear_cached_op(self) -> None:
        self._cached_graph, self._cached_op = (), None

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **kwargs):
        """Run as a bound graph from the next call on; other keywords are accepted for MXNet's sake."""
        self._active = active
        self._clear_cached_op()
        super().hybridize(active, static_alloc=static_alloc, static_shape=static_shape, **kwargs)

    def optimize_for(self, x, *args, **kwargs):
        """Refused: there are no backends."""
        raise MXNetError(f"{type(self).__name__}.optimize_for: there are no backends; call hybridize()")

    def cast(self, dtype):
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback, monitor_all=False):
        if not self._active:
            super().register_op_hook(callback, monitor_all)
            return
        self._callback, self._monitor_all = callback, monitor_all

    # -- the graph -----------------------------------------------------------------------------------

    def _get_graph(self, *args):
        """The symbols of the inputs, and the outputs of the graph on them."""
        if not self._cached_graph:
            flat, self._in_format = flatten(list(args))
            count = sum(each is not None for each in flat)
            if not count:
                raise ValueError(f"All args are None and we do not support such a case. Received args={args}")
            names = iter([f"data{i}" for i in range(count)] if count > 1 else ["data"])
            inputs = [None if each is None else symbol.var(next(names)) for each in flat]
            outputs = self._on_symbols(*regroup(inputs, self._in_format))
            outputs, self._out_format = flatten(outputs, "output")
            self._cached_graph = [each for each in inputs if each is not None], symbol.Group(outputs)
        return self._cached_graph

    def _on_symbols(self, *args):
        params = {name: each.var() for name, each in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(symbol, *args, **params)

    def _infer(self, what: str, args, attribute: str) -> None:
        inputs, outputs = self._get_graph(*args)
        flat = [getattr(each, attribute) for each in flatten(list(args))[0] if each is not None]
        of_arguments, _, of_states = getattr(outputs, f"infer_{what}")(**_read(inputs, outputs, flat))
        if of_arguments is None:
            raise ValueError(f"the inputs given do not decide the {attribute} of all parameters")
        names = *outputs.list_arguments(), *outputs.list_auxiliary_states()
        found = dict(zip(names, (*of_arguments, *of_states), strict=True))
        for name, parameter in self.collect_params().items():
            if name in found:
                setattr(parameter, attribute, found[name])

    def infer_shape(self, *args) -> None:
        """Find the shapes of all parameters from these inputs."""
        self._infer("shape", args, "shape")

    def infer_type(self, *args) -> None:
        """Find the dtypes of all parameters from these inputs."""
        self._infer("type", args, "dtype")

    def _finish_parameters(self, args, params) -> None:
        """Initialize parameters that waited for the shapes of the inputs."""
        if not any(each._deferred_init for each in params):
            return
        try:
            self.infer_shape(*args)
        except Exception as error:
            raise ValueError(
                f"Deferred initialization failed because shape cannot be inferred. {error}"
            ) from error
        for each in params:
            each._finish_deferred_init()

    def _call_cached_op(self, *args):
        flat, form = flatten(list(args))
        if self._cached_op is None:
            inputs, outputs = self._get_graph(*args)
            order = topological_order(outputs._heads)
            if not self._always_bound and any(node.prop and node.prop.counts_numbers for node in order):
                self._active = False  # no graph can be bound whose shapes are known only when it runs
                return self.forward(*args)
            params = dict(self.collect_params().items())
            names = [each.name for each in inputs]
            used = [name for name in outputs.list_inputs() if name not in names]
            unknown = [name for name in used if name not in params]
            if unknown:
                raise AssertionError(f"Unknown input to HybridBlock: {unknown[0]}")
            self._finish_parameters(args, [params[name] for name in used])
            for name in used:
                params[name].list_data()  # an error where it was never initialised
            self._cached_op = _BoundGraph(self, names, outputs, params)
        if _without_nones(form) != _without_nones(self._in_format):
            raise ValueError(
                f"The argument structure of HybridBlock does not match the cached version. Stored format = "
                f"{self._in_format}, input format = {form}"
            )
        arrays = [each for each in flat if each is not None]
        devices = {(each.context.is_gpu, each.context.device_id) for each in arrays}
        if len(devices) > 1:
            raise ValueError(
                "In HybridBlock, hybridized, all inputs must be on one device, "
                f"got {[str(each.context) for each in arrays]}"
            )
        results = self._cached_op(arrays)
        return regroup(results, self._out_format)

    def forward(self, x, *args):
        """Compute the outputs: on arrays, or as a part of a graph on symbols."""
        tensors = _tensors((x, *args))
        symbols = sum(isinstance(each, Symbol) for each in tensors)
        if not tensors:
            raise ValueError(
                "In HybridBlock, there must be one NDArray or one Symbol in the input. "
                f"Please check the type of the args, got {[type(each).__name__ for each in (x, *args)]}"
            )
        if symbols not in (0, len(tensors)):
            raise ValueError(
                "In HybridBlock, we do not support mixed NDArrays and Symbols types for the input. "
                f"Received types are: {[type(each).__name__ for each in tensors]}"
            )
        if symbols:
            return self._on_symbols(x, *args)
        if self._active or self._always_bound:
            return self._call_cached_op(x, *args)
        ctx = tensors[0].context
        with ctx:
            if any(each._data is None for each in self._reg_params.values()):
                self._finish_parameters((x, *args), self.params.values())
            params = {name: each.data(ctx) for name, each in self._reg_params.items()}
            return self.hybrid_forward(ndarray, x, *args, **params)

    def hybrid_forward(self, F, x, *args, **kwargs):
        """Compute the outputs with ``F``, which is ``nd`` or ``sym``; to be overridden."""
        raise NotImplementedError

    def export(self, path, epoch=0, remove_amp_cast=True):
        """Write ``<path>-symbol.json`` and ``<path>-0000.params``, as checkpoints have them.

        The block must be hybridised and have run once. Gives the two file names.
        """
        if not self._cached_graph:
            raise RuntimeError(
                "Please first call block.hybridize() and then run forward with this block at least once "
                "before calling export."
            )
        outputs, params = self._cached_graph[1], self.collect_params()
        arrays = [
            {name: params[name]._reduce() for name in names if name in params}
            for names in (outputs.list_arguments(), outputs.list_auxiliary_states())
        ]
        save_checkpoint(path, epoch, outputs, *arrays, remove_amp_cast)
        return f"{path}-symbol.json", f"{path}-{epoch:04d}.params"


def _tensors(args) -> list:
    """The arrays and symbols of nested lists; whatever else there is, is left out."""
    if isinstance(args, NDArray | Symbol):
        return [args]
    return [found for each in args for found in _tensors(each)] if isinstance(args, list | tuple) else []


def _without_nones(form):
    if not isinstance(form, list):
        return form
    return [_without_nones(each) for each in form if each != -1]


class SymbolBlock(HybridBlock):
    """A symbol as a block: the variables among ``inputs`` are its inputs, all others are parameters.

    ``params`` lends parameters of the same names.
    """

    _always_bound = True

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None, allow_missing=False, ignore_extra=False):
        """The block of a file that ``export`` or a checkpoint wrote."""
        names = [input_names] if isinstance(input_names, str) else input_names
        block = SymbolBlock(symbol.load(symbol_file), [symbol.var(name) for name in names])
        if param_file is not None:
            options = {"cast_dtype": True, "dtype_source": "saved"}
            block.collect_params().load(param_file, ctx, allow_missing, ignore_extra, **options)
        return block

    def __init__(self, outputs, inputs, params=None):
        super().__init__(None, None)
        self._prefix, self._params = "", ParameterDict("", params)
        if isinstance(inputs, Symbol) and len(inputs) == 1:
            inputs = [inputs]
        if isinstance(outputs, list | tuple) and len(outputs) == 1:
            outputs = outputs[0]
        symbols, self._in_format = flatten(inputs)
        flat, self._out_format = flatten(outputs, "output")
        for each in symbols:
            if len(each.get_internals()) != 1:
                raise AssertionError(f"Input symbols must be variable, but {each} is an output of operators")
        graph = symbol.Group(flat)
        types_said = {each.name: each.infer_type_partial()[0][0] for each in symbols}
        used = set(graph.list_inputs())
        types = graph.infer_type_partial(
            **{n: dtype for n, dtype in types_said.items() if dtype and n in used}
        )
        states = graph.list_auxiliary_states()
        for name, dtype in zip([*graph.list_arguments(), *states], [*types[0], *types[2]], strict=True):
            if name not in types_said:
                given = {"grad_req": "null"} if name in states else {}
                self.params.get(name, allow_deferred_init=True, dtype=dtype or np.float32, **given)
        self._cached_graph = symbols, graph
        common = len(os.path.commonprefix(list(self._params)))  # noqa: RUF071 - of characters
        self._reg_params = {name[common:]: each for name, each in self._params.items()}

    def __repr__(self):
        inputs, outputs = self._cached_graph
        return f"{type(self).__name__}(\n{outputs} : {len(inputs)} -> {len(outputs)}\n)"

    def _clear_cached_op(self):
        self._cached_op = None  # the graph stays

    def _on_symbols(self, *args):
        flat, form = flatten(list(args))
        if form != self._in_format:
            raise AssertionError(f"Invalid input format: {form}, it is {self._in_format}")
        inputs, outputs = self._cached_graph
        return regroup(list(outputs(**_read(inputs, outputs, flat))), self._out_format)
