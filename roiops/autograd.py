"""``mx.autograd``: gradients of what is computed call by call.

Within ``record()`` each call of an operator becomes a node of a graph, as in a symbol's, and keeps its
arrays. ``backward`` runs the backward half of that graph's program; nothing of the forward half is computed
again.
"""

import contextlib
import functools
import itertools

import numpy as np

from . import registry
from .errors import DeviceError, MXNetError, ParamError
from .graph.executor import Arrays, Executor
from .graph.memory import drop_oldest
from .graph.nodes import Node, topological_order
from .graph.symbol import Symbol, param_strings
from .ndarray import NDArray, device, ones
from .ndarray.ndarray import wrap
from .operators.base import OpContext, Operator, OperatorProperty, assign
from .params import Parameter
from .recording import Mode, current

__all__ = ["Function", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables"]
__all__ += ["pause", "predict_mode", "record", "set_recording", "set_training", "train_mode"]

_numbers = itertools.count()

_NOT_IN_A_GRAPH = (
    "Cannot differentiate node because it is not in a computational graph. You need to set is_recording to "
    "true or use autograd.record() to save computational graphs for backward. If you want to differentiate "
    "the same graph twice, you need to pass retain_graph=True to backward."
)
_MUST_NOT_WRITE = (
    "Assigning to NDArrays that are already in a computational graph will cause undefined behavior when "
    "evaluating gradients. Please call backward first to clear the graph or do this out side of a record "
    "section. Also note that you cannot use inplace operations like +=, *=, relu(x, out=x), y[idx]=x, etc "
    "inside a record section."
)
_NO_PARTIAL_WRITES = "Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd."


# -- what is recorded ------------------------------------------------------------------------------------


class _Recorded(Node):
    """A node with the arrays that it had when it was recorded.

    ``alive`` says whether it is still part of a graph, ``wants`` whether a gradient goes to it or through it.
    """

    __slots__ = ("alive", "device", "results", "wants")

    gradient = None


class _Variable(_Recorded):
    """An array that was not computed by a recorded call: marked for a gradient, or a constant."""

    __slots__ = ("fresh", "gradient", "req")

    def __init__(self, array: NDArray, gradient: NDArray | None = None, req: str = "null"):
        super().__init__(None, f"{'null' if gradient is None else 'var'}{next(_numbers)}")
        self.alive, self.wants, self.fresh = True, gradient is not None, False
        self.results, self.device, self.gradient, self.req = [array.data], array.context, gradient, req

    def forget(self) -> None:
        """Leave the graph, if this is a constant."""
        self.alive = self.wants


class _Call(_Recorded):
    """A call of an operator."""

    __slots__ = ("context", "given", "op_object")

    def __init__(self, prop, given, entries, results, context: OpContext, op_object=None):
        super().__init__(prop.name, f"node_{next(_numbers)}", None, entries, prop)
        self.alive = self.wants = True
        self.results, self.device, self.context = results, context.device, context
        self.given, self.op_object = given, op_object

    def operator(self) -> Operator:
        """The Op whose backward follows the call: that of the call where it serves no other."""
        if self.op_object is not None and not self.op_object.shareable:
            return self.op_object
        arrays = [node.results[i] for node, i in self.inputs][: len(self.prop.list_arguments())]
        shapes, types = [array.shape for array in arrays], [array.dtype for array in arrays]
        return self.prop.create_operator(self.context, shapes, types)

    def forget(self) -> None:
        """Let go of the arrays, and of the nodes before this one."""
        self.alive = self.wants = False
        self.inputs, self.results, self.op_object = (), (), None


def _entry(array: NDArray):
    """The place of an array in the graph; one that has none gets one, as a constant."""
    entry = array._entry
    if entry is None or not entry[0].alive:
        entry = array._entry = (_Variable(array), 0)
    return entry


class _Tape:
    """Makes nodes of calls. Nodes hang together by what they compute, so there is no list of them."""

    def follows(self, inputs, out=()) -> bool:
        """Whether a call is part of a graph; an error where it would write to an array that is."""
        for array in out or ():
            self.check_may_write(array)
        for array in inputs:
            entry = array._entry
            if entry is not None and entry[0].wants:
                return True
        return False

    def check_may_write(self, array: NDArray) -> None:
        entry = array._entry
        if entry is not None and entry[0].alive:
            raise MXNetError(_MUST_NOT_WRITE)

    def add_call(self, given, inputs, results, kept) -> None:
        """Record a call of which ``kept`` is what :func:`~roiops.ndarray.invoke.run` kept."""
        prop, op, context, outputs = kept
        node = _Call(prop, given, [_entry(array) for array in inputs], outputs, context, op)
        for i, array in enumerate(results):
            array._entry = (node, i)

    def add_made(self, name: str, given: dict, inputs: list, result: NDArray) -> None:
        """Record ``result``, made in another way, as what the operator ``name`` makes of the inputs."""
        if self.follows(inputs):
            prop = _property(name, tuple(given.items()))
            context = OpContext(inputs[0].context, prop.label, current.training)
            self.add_call(given, inputs, [result], (prop, None, context, [result.data]))

    def add_part(self, array: NDArray, key, part: NDArray) -> None:
        """Record ``part``, which is ``array[key]``."""
        if not self.follows([array]):
            return
        data, ctx = array.data, array.context
        if type(key) is NDArray and data.ndim and key.data.dtype != bool:
            rows = NDArray(key.data.copy(), key.context).as_in_context(ctx)
            self.add_made("take", {"axis": 0, "mode": "wrap"}, [array, rows], part)
            return
        if type(key) is int and data.ndim:  # the commonest one, done fast
            ranges = (_range(key),)
        else:
            ranges = _basic_ranges(key, data.ndim)
        if ranges is None:
            numbers = NDArray(np.arange(array.size).reshape(array.shape))[key]
            flat = wrap(data.reshape(-1), ctx)
            self.add_made("Reshape", {"shape": (-1,)}, [array], flat)
            self.add_made("take", {}, [flat, numbers.as_in_context(ctx)], part)
            return
        begin, end, step = zip(*ranges, strict=True)
        view = wrap(data[tuple(map(slice, begin, end, step))], ctx)
        self.add_made("slice", {"begin": begin, "end": end, "step": step}, [array], view)
        if view.shape == part.shape:
            part._entry = view._entry
        else:
            self.add_made("Reshape", {"shape": part.shape}, [view], part)

    def add_assignment(self, array: NDArray, key, value) -> None:
        """Record ``array[key] = value``, before it is done."""
        whole = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
        in_graph = array._entry is not None and array._entry[0].alive
        recorded = isinstance(value, NDArray) and self.follows([value])
        if not whole and (in_graph or recorded):
            raise MXNetError(_NO_PARTIAL_WRITES)
        if in_graph and (isinstance(value, NDArray) or np.isscalar(value)):
            raise MXNetError(_MUST_NOT_WRITE)
        if recorded:
            source = value if value.shape == array.shape else value.broadcast_to(array.shape)
            self.add_made("Cast", {"dtype": array.data.dtype.name}, [source], array)

    def add_function(self, name: str, inputs: list, results: list, backward, always=True) -> None:
        """Record a function of which only the gradient is known.

        ``backward(out_grads, reqs, in_grads)`` is what an Op's backward does, on arrays; ``always``:
        :attr:`OperatorProperty.backward_always`.
        """
        if self.follows(inputs):
            prop = _function(name, len(inputs), len(results), always)
            context = OpContext(inputs[0].context, name, current.training)
            kept = prop, _Backward(None, function=backward), context, [array.data for array in results]
            self.add_call({}, inputs, results, kept)


_tape = _Tape()


@functools.lru_cache(4096)
def _property(name: str, given: tuple) -> OperatorProperty:
    return registry.get(name).create(dict(given))


def _range(part):
    """A number or a slice as ``(begin, end, step)``."""
    return (part.start, part.stop, part.step) if isinstance(part, slice) else (part, part + 1 or None, 1)


def _basic_ranges(key, ndim):
    """The range of each axis for an index of numbers and slices; None for any other."""
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not None]
    basic = (part is Ellipsis or isinstance(part, int | np.integer | slice) for part in parts)
    if not ndim or not all(basic) or any(isinstance(part, bool) for part in parts):
        return None
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    missing = ndim - sum(part is not Ellipsis for part in parts)
    parts[at : at + 1] = [slice(None)] * missing
    return list(map(_range, parts))


class _Backward(Operator):
    """The Op of a recorded function, which knows its gradient only: ``function``."""

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        self.function(out_grad, req, in_grad)


class _FunctionProp(OperatorProperty):
    backward_needs = ("out_grad",)
    devices = ("cpu", "gpu")

    def __init__(self, name, count, results, backward_always):
        super().__init__(Parameter(operator=name), name)
        self.name, self.backward_always = name, backward_always
        self.arguments = tuple(f"arg{i}" for i in range(count))
        self.outputs = tuple(f"output{i}" for i in range(results))


_function = functools.lru_cache(4096)(_FunctionProp)


# -- modes -----------------------------------------------------------------------------------------------


def record(train_mode: bool = True):
    """Record what is computed within a ``with`` block, by default as in training."""
    return Mode(tape=_tape) if train_mode is None else Mode(tape=_tape, training=train_mode)


def pause(train_mode: bool = False):
    """Record nothing within a ``with`` block."""
    return Mode(tape=None) if train_mode is None else Mode(tape=None, training=train_mode)


def train_mode():
    """Compute as in training within a ``with`` block, recorded or not."""
    return Mode(training=True)


def predict_mode():
    """Compute as in inference within a ``with`` block, recorded or not."""
    return Mode(training=False)


def is_recording() -> bool:
    """Whether calls are recorded in this thread."""
    return current.tape is not None


def is_training() -> bool:
    """Whether operators compute as in training in this thread."""
    return current.training


def set_recording(is_recording: bool) -> bool:
    """Turn recording on or off; gives what it was before."""
    before, current.tape = current.tape is not None, _tape if is_recording else None
    return before


def set_training(train_mode: bool) -> bool:
    """Turn the mode of training on or off; gives what it was before."""
    before, current.training = current.training, bool(train_mode)
    return before


# -- gradients -------------------------------------------------------------------------------------------


def _as_list(value) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def _zeros_like(array: NDArray) -> NDArray:
    """Zeros where an array's gradient may go."""
    return wrap(device.zeros(array.shape, array.data.dtype, array.context), array.context)


def mark_variables(variables, gradients, grad_reqs="write") -> None:
    """From here on, ``backward`` puts the gradients of these arrays into those, which ``x.grad`` then is.

    ``grad_reqs`` is ``"write"``, ``"add"`` or ``"null"``, for all or for each.
    """
    variables, gradients = _as_list(variables), _as_list(gradients)
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else grad_reqs
    for variable, gradient, req in zip(variables, gradients, reqs, strict=True):
        if req not in ("write", "add", "null"):
            raise ParamError(f"autograd: grad_req must be 'write', 'add' or 'null', got {req!r}")
        variable._entry = (_Variable(variable, gradient, req), 0)


class _Replay(Executor):
    """The executor of recorded graphs that look alike: their forward is done, and left its arrays.

    Its nodes are its own; ``_recorded`` are those of the graph at hand, in the same order.
    """

    _merges = False

    def __init__(self, order, heads, targets):
        copies = _copies(order)
        own = [(copies[id(node)], i) for node, i in heads]
        shapes = {id(copies[id(node)]): [array.shape for array in node.results] for node in order}
        types = {id(copies[id(node)]): [array.dtype for array in node.results] for node in order}
        variables = [copy for copy in copies.values() if copy.is_variable]
        self._names, self._recorded = [copy.name for copy in variables], order
        requests = dict(zip(self._names, (req for _, req in targets), strict=True))
        arrays = Arrays(*self._named(targets), requests, {})
        names = [f"heads[{i}]" for i in range(len(heads))]
        device, order = heads[0][0].device, list(copies.values())
        super().__init__(own, device, arrays, names, order=order, inferred=(shapes, types))
        self._lent_blocks = self._blocks

    def _named(self, targets):
        """The variables and their gradients, by name."""
        variables = [node for node in self._recorded if node.is_variable]
        held = [wrap(node.results[0], node.device) for node in variables]
        given = {name: target for name, (target, _) in zip(self._names, targets, strict=True)}
        gradients = {name: target for name, target in given.items() if target is not None}
        return dict(zip(self._names, held, strict=True)), gradients

    def go_back(self, order, targets, head_grads) -> None:
        """Run backward for the recorded nodes, and let go of their arrays."""
        if order is not self._recorded:
            self._recorded = order
            self.arg_dict, self.grad_dict = self._named(targets)
            self._take_arrays()
            self._bind_first()
        self._ran, self._used_up = self._plain, False
        self.backward(head_grads)
        self._recorded = self._head_grads = self.outputs = ()
        self.arg_dict = self.grad_dict = self._seen = self._converted = {}
        self._plain = self._ran = None

    def _helped(self, bound, direction):
        return contextlib.nullcontext()  # other processes cannot bind what Python has recorded

    def _known_values(self):
        pairs = zip(self._order, self._recorded, strict=True)
        return {(id(own), i): array for own, node in pairs for i, array in enumerate(node.results)}

    def _ready_forward(self, bound):
        calls = dict(zip(map(id, self._order), self._recorded, strict=True))
        steps = [(step, calls[step.outputs[0][0]]) for step in bound.program.forward]
        return {id(step): (call.operator(), call.context) for step, call in steps}


#: Those of graphs that may come again, by what they look like: each step of a training records one.
_replays: dict[tuple, _Replay] = {}


def _copies(order, attrs=lambda node: None) -> dict[int, Node]:
    """Recorded nodes as nodes of a symbol, without arrays, by the identity of the recorded one."""
    copies = {}
    for node in order:
        inputs = [(copies[id(child)], i) for child, i in node.inputs]
        copies[id(node)] = Node(node.op, node.name, attrs(node), inputs, node.prop)
    return copies


def _look(order, heads, targets) -> tuple | None:
    """What graphs must share to be replayed alike; None for one that cannot come again."""
    places, targets = {id(node): place for place, node in enumerate(order)}, iter(targets)
    rows = [heads[0][0].device, *[(places[id(node)], i) for node, i in heads]]
    for node in order:
        if node.is_variable:
            target, req = next(targets)
            rows.append((req, target is not None and (target.shape, target.dtype)))
        elif node.prop.reusable:
            rows.append((node.prop, *[(places[id(child)], i) for child, i in node.inputs]))
        else:
            return None
        rows += [(array.shape, array.dtype) for array in node.results]
    return tuple(rows)


def _replay(heads, head_grads, retain_graph: bool, asked: dict | None = None) -> None:
    """Run backward from ``heads``, into the gradients of all variables or of those asked for."""
    heads = _as_list(heads)
    given = [None] * len(heads) if head_grads is None else _as_list(head_grads)
    if len(given) != len(heads):
        raise MXNetError(
            f"autograd: heads and head_grads must be of one length, got {len(heads)} and {len(given)}"
        )
    entries = [head._entry for head in heads]
    if not entries or any(entry is None or not entry[0].wants for entry in entries):
        raise MXNetError(_NOT_IN_A_GRAPH)
    order = topological_order(entries)
    variables = [node for node in order if node.is_variable]
    #: The gradient of each variable, if it gets one, and what is done with it.
    targets = [(node.gradient if node.req != "null" else None, node.req) for node in variables]
    if asked is not None:
        names = [node.name for node in variables]
        for i, name in enumerate(asked):
            if name not in names:
                raise MXNetError(
                    f"Cannot differentiate with respect to the {i + 1}-th variable because it is unreachable "
                    "from the outputs."
                )
        targets = [(asked.get(name), "write" if name in asked else "null") for name in names]
    if all(target is None for target, _ in targets):
        raise MXNetError("There are no inputs in computation graph that require gradients.")
    if any(node.device.is_gpu != entries[0][0].device.is_gpu for node in order):
        raise DeviceError("autograd: what was recorded is on the CPU and on GPUs; keep a graph on one kind")
    given = [
        ones(head.shape, head.context, head.dtype) if gradient is None else gradient
        for head, gradient in zip(heads, given, strict=True)
    ]
    look = _look(order, entries, targets)
    replay = _replays.pop(look, None) or _Replay(order, entries, targets)
    with Mode(tape=None):
        replay.go_back(order, targets, given)
    if look is not None:
        drop_oldest(_replays, lambda each: each.internal_bytes)
        _replays[look] = replay
    if asked is None:
        for node in variables:
            node.fresh = True
    if not retain_graph:
        for node in order:
            node.forget()


def backward(heads, head_grads=None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Compute the gradients of ``heads`` and put them where the arrays marked for one want them.

    They begin with ``head_grads``, or with ones; ``retain_graph`` keeps the graph, to be gone through again.
    ``train_mode`` is accepted for MXNet's sake: each call goes back in the mode in which it was recorded.
    """
    _replay(heads, head_grads, retain_graph)


def grad(
    heads,
    variables,
    head_grads=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
):
    """The gradients of ``heads`` by ``variables``, as new arrays; ``x.grad`` stays as it is.

    The parameters are those of :func:`backward`; ``variables`` are one array or a list, the result is a list.
    """
    if create_graph:
        raise MXNetError(
            "autograd.grad: create_graph=True asks for gradients of gradients, which are not offered; "
            "write the first gradient as a computation of its own and record that"
        )
    wanted, names = _as_list(variables), {}
    if not wanted:
        raise MXNetError("autograd.grad: variables must hold at least one NDArray")
    for i, array in enumerate(wanted):
        entry = array._entry
        if entry is None or not entry[0].is_variable or entry[0].gradient is None:
            raise MXNetError(
                f"Cannot differentiate with respect to the {i + 1}-th variable because it does not require "
                "gradient."
            )
        names[entry[0].name] = _zeros_like(array)
    _replay(heads, head_grads, bool(retain_graph), names)
    return [names[array._entry[0].name] for array in wanted]


def get_symbol(x: NDArray) -> Symbol:
    """The graph that was recorded for an array, as a symbol."""
    if x._entry is None or not x._entry[0].alive:
        raise MXNetError(_NOT_IN_A_GRAPH)
    order = topological_order([x._entry])
    copies = _copies(order, lambda node: None if node.is_variable else param_strings(node.prop, node.given))
    return Symbol([(copies[id(x._entry[0])], x._entry[1])])


class Function:
    """A function with a gradient of its own: override ``forward`` and ``backward``, on NDArrays.

    Each object is called once: ``y = Sigmoid()(x)``.
    """

    _used, saved_tensors = False, ()

    def save_for_backward(self, *args) -> None:
        """Keep arrays for ``backward``, as ``self.saved_tensors``."""
        self.saved_tensors = args

    def forward(self, *inputs):
        """The outputs: one NDArray or a tuple of them."""
        raise NotImplementedError

    def backward(self, *output_grads):
        """The gradients of the inputs, from those of the outputs: as many as ``forward`` takes."""
        raise NotImplementedError

    def __call__(self, *inputs):
        if self._used:
            raise MXNetError("Each Function instance can only be called once. Create another instance.")
        self._used = True
        training = current.training
        with Mode(tape=None):
            outputs = self.forward(*inputs)
        if current.tape is None:
            return outputs
        results = [each.detach() for each in _as_list(outputs)]

        def go_back(out_grads, reqs, in_grads):
            context = inputs[0].context
            with Mode(tape=None, training=training):
                gradients = _as_list(self.backward(*(wrap(each, context) for each in out_grads)))
            if len(gradients) != len(in_grads):
                raise MXNetError(
                    f"{type(self).__name__}.backward must return exactly the same number of NDArrays as the "
                    f"number of NDArrays arguments to forward. Expecting {len(in_grads)} got {len(gradients)}"
                )
            for target, req, gradient in zip(in_grads, reqs, gradients, strict=True):
                if req != "null":
                    assign(target, req, gradient.data)

        _tape.add_function(type(self).__name__, list(inputs), results, go_back)
        return tuple(results) if isinstance(outputs, list | tuple) else results[0]


# -- methods of NDArray: put there from here, so that an array need not know what records it ----------------


def _attach_grad(self, grad_req: str = "write", stype=None) -> None:
    """Take this array's gradient from here on: ``x.grad`` is where ``backward`` puts it, zeros at first.

    ``grad_req`` is ``"write"``, ``"add"`` to what is there, or ``"null"``; ``stype`` is ``"default"``.
    """
    if stype not in (None, "default"):
        raise ParamError(
            f"attach_grad: stype must be 'default', since gradients are dense here, got {stype!r}"
        )
    mark_variables(self, _zeros_like(self), grad_req)


def _backward_of(self, out_grad=None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """:func:`roiops.autograd.backward` from this array."""
    backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)


def _is_fresh(self) -> bool:
    """Whether backward wrote the gradient after somebody set this to False, as trainers do."""
    return self._entry is not None and self._entry[0].is_variable and self._entry[0].fresh


def _set_fresh(self, value: bool) -> None:
    if self._entry is not None and self._entry[0].is_variable:
        self._entry[0].fresh = bool(value)


NDArray.attach_grad, NDArray.backward = _attach_grad, _backward_of
NDArray._fresh_grad = property(_is_fresh, _set_fresh)
