"""The Executor: a bound graph, its memory and its two flat lists of ready calls."""

import contextlib
import functools
import itertools
import math
import threading
from collections import Counter
from typing import NamedTuple

import numpy as np

from .. import compiling, random
from ..context import Context, current_context
from ..dtypes import number_type
from ..errors import DTypeError, GraphError, InputError, MXNetError, ShapeError, nearest
from ..ndarray import NDArray
from ..ndarray import device as devices
from ..operators import checks
from ..operators.base import OpContext, ResultShapeError, assign
from . import fuse, memory
from . import nodes as graph
from .common import without_repeats
from .parts import find_parts, in_wholes
from .placement import place
from .plan import Step, bytes_of, plan
from .program import build, grad_of, parse_grad_req

__all__ = ["Executor", "bind", "simple_bind"]


class Arrays(NamedTuple):
    """What a graph is bound to, by name; ``requests`` say what is done with each gradient."""

    args: dict
    grads: dict
    requests: dict
    aux: dict


class _Bound:
    """A program on its arrays, as lists of ready calls."""

    def __init__(self, program, arrays: dict):
        self.program, self.arrays = program, arrays
        self.contexts, self.forward, self.backward = [], [], []
        self.is_train = False
        #: The directions in which it has run, and whether other processes were asked for help with that.
        self.ran, self.is_helped = set(), False

    def set_mode(self, is_train: bool) -> None:
        """Let operators compute as in training, or not."""
        if is_train != self.is_train:
            self.is_train = is_train
            for ctx in self.contexts:
                ctx.is_train = is_train


def _in_another_dtype(call, target, req, gradient) -> None:
    call()
    assign(target, req, gradient)


def _run_on_zeros(call, inputs) -> None:
    for array in inputs:
        if isinstance(array, np.ndarray):
            array[...] = 0
    call()


class Executor:
    """A graph bound to arrays. Made by ``Symbol.bind`` and ``Symbol.simple_bind``.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        The bound arrays; None where an argument has no gradient.
    arg_dict, grad_dict, aux_dict, output_dict : dict of NDArray
        The same by name.
    outputs : list of NDArray
        The results; the same arrays are written by every forward.
    """

    #: The class of symbols, which stands above this one and tells it on the first bind.
    symbol_type: type
    #: Whether an operator may do the one after it as well, in training.
    _merges = True

    def __init__(
        self,
        heads,
        device: Context,
        arrays: Arrays,
        output_names: list[str],
        places=None,
        order=None,
        donor=None,
        inferred=None,
    ):
        self._heads = list(heads)
        #: As in the symbol, whose nodes may have become one here.
        self._output_names = output_names
        self._device = self._ctx = device
        #: The devices of the nodes that are on another than the graph's.
        self._places = places or {}
        self._order = graph.topological_order(self._heads) if order is None else order
        #: The blocks of memory of each of the two programs, and those that a parent lends.
        self._blocks: dict[str, list] = {}
        self._lent_blocks = {} if donor is None else donor._blocks
        self._grad_req = arrays.requests
        self.arg_dict, self.aux_dict = arrays.args, arrays.aux
        self.grad_dict = {name: arrays.grads.get(name) for name in arrays.args}
        self._lock = threading.RLock()
        self._monitor = None
        self._monitor_all = False
        #: What the last forward ran, and whether a backward has used its intermediate values up.
        self._ran, self._used_up = None, False
        #: Where random numbers stood when the last forward began.
        self._drew_from: dict = {}
        self._on_gradients = None
        #: Whether a forward keeps what backward reads even where is_train is False.
        self._keeps = False
        shapes, types = inferred or self._infer()
        self._check_arrays(shapes, types)
        self._build(shapes, types)

    # -- building ------------------------------------------------------------------------------------

    def _infer(self):
        """Shapes and types of all values, from the arrays."""
        bound = {**self.arg_dict, **self.aux_dict}
        shapes = graph.infer_shapes(self._order, {name: tuple(a.shape) for name, a in bound.items()})
        types = graph.infer_types(self._order, {name: np.dtype(a.dtype) for name, a in bound.items()})
        return shapes, types

    def _check_arrays(self, shapes, types):
        """Raise unless all shapes and types are known and every gradient agrees with its array."""
        for node in self._order:
            for i in range(node.num_outputs):
                shape = shapes[id(node)][i]
                if not graph.known(shape) or types[id(node)][i] is None:
                    raise ShapeError(
                        f"bind: shape or dtype of {node.output_name(i)} does not follow from the arrays given"
                    )
        for name, grad in self.grad_dict.items():
            if grad is None:
                continue
            array = self.arg_dict[name]
            if tuple(grad.shape) != tuple(array.shape):
                raise ShapeError(
                    f"bind: args_grad of {name} must have shape {tuple(array.shape)}, got {tuple(grad.shape)}"
                )
            if grad.dtype != array.dtype and not self._can_convert(grad, array):
                raise DTypeError(f"bind: args_grad of {name} must have dtype {array.dtype}, got {grad.dtype}")

    def _can_convert(self, *arrays) -> bool:
        """Whether a gradient of the one dtype can go to memory of the other."""
        return not self._device.is_gpu and all(np.issubdtype(each.dtype, np.floating) for each in arrays)

    def _build(self, shapes, types) -> None:
        self._specs = {}
        for node in self._order:
            for i in range(node.num_outputs):
                self._specs[id(node), i] = (shapes[id(node)][i], types[id(node)][i])
        self._take_arrays()
        requests = self._requests
        self._program = build(self._order, self._heads, requests, self._device)
        #: That of training, where nobody watches each operator.
        self._merged = self._program
        self._trains = any(r != "null" for r in requests.values())
        if self._trains and self._merges and not self._device.is_gpu:
            self._merged = build(self._order, self._heads, requests, self._device, merged=True)
        #: Bytes of the buffers that the plan made, shared ones counted once.
        self.internal_bytes = 0
        self._bind_first()

    def _take_arrays(self) -> None:
        """Note the values that have arrays already, and what is done with each gradient."""
        req = {
            name: r if self.grad_dict.get(name) is not None else "null" for name, r in self._grad_req.items()
        }
        #: Gradients for memory of another dtype: that memory, the request, and where they are computed.
        self._converted: dict[str, tuple] = {}
        arrays = self._known_values()
        for node in self._order:
            if node.is_variable:
                held = self.arg_dict.get(node.name)
                arrays[id(node), 0] = (self.aux_dict[node.name] if held is None else held).data
                grad = self.grad_dict.get(node.name)
                if grad is not None and grad.dtype == held.dtype:
                    arrays[grad_of((id(node), 0))] = grad.data
                elif grad is not None:
                    gradient = devices.empty(held.shape, np.dtype(held.dtype), self._device)
                    arrays[grad_of((id(node), 0))] = gradient
                    self._converted[node.name] = (grad.data, req[node.name], gradient)
                    req[node.name] = "write"
        self._requests, self._seen = req, arrays

    def _bind_first(self) -> None:
        """Bind the program that is most likely to run, and the arrays that the caller sees.

        Those are the same in both programs; the other one is bound when it is first needed.
        """
        self._plain = self._inference = None
        first = self._bind_plain() if self._trains else self._bind_inference()
        self._seen.update(((id(node), i), first.arrays[id(node), i]) for node, i in self._heads)
        self.outputs = [NDArray(self._seen[id(node), i], self._place(node)) for node, i in self._heads]
        wanted = self._program.wanted
        self._head_grads = [
            (value, first.arrays[grad_of(value)], self._requests.get(wanted.get(value), "write"))
            for value in self._program.head_grads
        ]
        self._seen.update((grad_of(value), array) for value, array, _ in self._head_grads)

    def _bind_plain(self):
        """For training, and every operator by itself for a monitor to watch."""
        program = self._merged if self._monitor is None else self._program
        if self._plain is None or self._plain.program is not program:
            self._plain = self._bind_program(program, "plain")
        return self._plain

    def _bind_inference(self):
        """Operators merged where that saves work; without gradients."""
        if self._inference is None:
            program = self._program
            if not self._device.is_gpu:
                heads = {(id(node), i) for node, i in self._heads}
                program = fuse.fuse(program, self._specs, self._seen, heads)
            self._inference = self._bind_program(program, "inference")
        return self._inference

    def _bind_program(self, program, kind: str):
        arrays = dict(self._seen)
        self._allocate(program, arrays, kind)
        bound = _Bound(program, arrays)
        self._ready_backward(bound, self._ready_forward(bound))
        return bound

    def _place(self, node) -> Context:
        return self._places.get(id(node), self._device)

    def _spec(self, value):
        """Shape and dtype of a value; those of a gradient are those of what it belongs to."""
        return self._specs[value[1] if value[0] == "grad" else value]

    def _allocate(self, program, arrays, kind: str) -> None:
        """Give every internal value its memory, by the plan; in a parent's blocks where those suffice."""
        if program.layout is None:
            program.layout = self._lay_out(program, arrays, kind)
        slots, slot_sizes, parts = program.layout
        blocks = self._blocks[kind] = self._lent_blocks.get(kind, [])[: len(slot_sizes)]
        for slot, size in enumerate(slot_sizes):
            if slot == len(blocks) or blocks[slot].size < size:
                blocks[slot : slot + 1] = [memory.zero_bytes(size, self._device)]
                self.internal_bytes += size
        places = {value: (slot, 0) for value, slot in slots.items()}
        places.update((value, (slots[whole], start)) for value, (whole, start) in parts.items())
        for value, (slot, start) in places.items():
            if value not in arrays:  # what the caller sees is there already where this is bound again
                arrays[value] = memory.view_bytes(blocks[slot][start:], *self._spec(value))
        for value in program.zeros:
            arrays[value] = devices.zeros(*self._spec(value), self._device)

    def _lay_out(self, program, arrays, kind: str) -> tuple[dict, list[int], dict]:
        """The slot of each value that has no array, the sizes of slots, and values that lie within others."""
        steps = program.plan_steps()
        sizes = {
            value: bytes_of(*self._spec(value))
            for step in steps
            for value in (*step.reads, *step.writes)
            if value not in arrays and value not in program.zeros
        }
        head_values = {(id(node), i) for node, i in self._heads}
        parts = {}
        if kind == "inference" and not self._device.is_gpu:
            parts = find_parts(program.forward, self._specs, arrays, head_values)
            steps = [in_wholes(step, parts) for step in steps]
            sizes = {value: size for value, size in sizes.items() if value not in parts}
        for value in program.head_grads:
            # The caller's gradient is copied in before the first step, so it lives from the start.
            if grad_of(value) not in arrays:
                head_values.add(grad_of(value))
                sizes[grad_of(value)] = bytes_of(*self._spec(value))
        if program.head_grads:
            steps.insert(0, Step(writes=[grad_of(v) for v in program.head_grads if grad_of(v) in sizes]))
        return *plan(steps, sizes, head_values), parts

    def _known_values(self) -> dict:
        """Values between the operators that have their arrays already."""
        return {}

    def _ready_forward(self, bound) -> dict:
        """Turn the steps of forward into calls; the operator and its context of each, by its identity."""
        arrays, ops = bound.arrays, {}
        for step in bound.program.forward:
            ctx = OpContext(self._device, step.prop.label)
            in_specs = [self._specs[value] for value in step.inputs]
            op = step.prop.create_operator(ctx, [s for s, _ in in_specs], [t for _, t in in_specs])
            if step.with_relu:
                op.with_relu = True
            ops[id(step)] = (op, ctx)
            bound.contexts.append(ctx)
            outputs = [None if value is None else arrays[value] for value in step.outputs]
            req = ["null" if array is None else "write" for array in outputs]
            inputs = [arrays[value] for value in step.inputs]
            if step.fused or step.before:
                call = fuse.bind(op, ctx, step, arrays)
            else:
                call = op.bind_forward(ctx, inputs, req, outputs, [arrays[value] for value in step.aux])
            if checks.on():
                read = [arrays[value] for value in step.reads]
                call = checks.writing_all(call, f"{ctx.label}: forward", req, read, outputs)
            bound.forward.append(call)
        return ops

    def _ready_backward(self, bound, ops) -> None:
        arrays = bound.arrays
        for step in bound.program.backward:
            op, ctx = ops[id(step.forward)]

            def pick(values):
                return [None if value is None else arrays.get(value) for value in values]

            given = map(pick, (step.out_grads, step.forward.inputs, step.forward.outputs))
            given = checks.declared_only(step.forward.prop, ctx.label, *given)
            results = step.reqs, pick(step.in_grads), pick(step.forward.aux)
            bound.backward.append(functools.partial(op.backward, ctx, *given, *results))
        converted = dict(self._converted)
        for i, names in enumerate(bound.program.finished_gradients()):
            for name in names:
                if name in converted:
                    bound.backward[i] = functools.partial(
                        _in_another_dtype, bound.backward[i], *converted.pop(name)
                    )
        for name, (target, req, gradient) in converted.items():  # of arguments that are outputs themselves
            if name not in bound.program.unreached:
                bound.backward.append(functools.partial(assign, target, req, gradient))
        # Arguments that ask for a gradient and cannot get one receive zeros.
        for name in bound.program.unreached:
            if self._grad_req[name] == "write":
                bound.backward.append(functools.partial(self.grad_dict[name].data.fill, 0))

    # -- running -------------------------------------------------------------------------------------

    def forward(self, is_train: bool = False, **kwargs) -> list[NDArray]:
        """Compute the outputs. Arrays given by name are copied into the arguments first.

        Parameters
        ----------
        is_train : bool
            Whether operators behave as in training.
        **kwargs : NDArray or numpy.ndarray
            New values of arguments.
        """
        if not isinstance(is_train, bool | int | np.bool_):
            raise InputError(
                "forward: the first argument is is_train; inputs go by name, as data=..., "
                f"got {type(is_train).__name__}"
            )
        with self._lock:
            self._ran, self._used_up = None, False
            if kwargs:
                self._feed(kwargs)
            is_train = bool(is_train)
            watched = self._monitor is not None
            plain = is_train or watched or self._keeps
            bound = self._bind_plain() if plain else self._bind_inference()
            if plain:
                self._drew_from = random.get_state()
            bound.set_mode(is_train)
            # 1 / 0 is inf here, as in MXNet, and no warning.
            with self._helped(bound, "forward"), np.errstate(all="ignore"):
                if watched:
                    self._forward_watched(bound)
                else:
                    self._run(bound.forward, bound.program.forward, "forward")
            self._ran = bound
        return self.outputs

    @staticmethod
    def _run(calls, steps, direction: str) -> None:
        """Make the calls; an error of a result's shape gets the name of the node."""
        try:
            for call in calls:
                call()
        except ResultShapeError as error:
            raise error.named(f"{steps[calls.index(call)].prop.label}: {direction}") from None

    def _helped(self, bound, direction: str):
        """While a program runs for the first time, other processes help to compile what it needs."""
        if direction in bound.ran:
            return contextlib.nullcontext()
        bound.ran.add(direction)
        return compiling.as_soon_as_compiling(functools.partial(self._ask_for_help, bound))

    def _ask_for_help(self, bound) -> None:
        calls = len(bound.forward) + len(bound.backward)
        if not bound.is_helped and calls > 1:
            bound.is_helped = True
            task, helpers = None, min(compiling.helpers_for(self.size), calls - 1)
            if helpers > 0:
                with contextlib.suppress(MXNetError, TypeError, ValueError):  # of graphs that have no JSON
                    task = self.compile_task(training=bound is self._plain)
            if task is not None:
                compiling.start(task, helpers)

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        held = (*self.arg_dict.values(), *self.grad_dict.values(), *self.aux_dict.values())
        return self.internal_bytes + sum(array.data.nbytes for array in held if array is not None)

    def compile_task(self, training: bool = False) -> dict | None:
        """What :func:`compiling.start` is told of this graph; None where other processes cannot bind it."""
        if self._device.is_gpu or self._places:
            return None
        props = [node.prop for node in self._order if not node.is_variable]
        modules = {type(prop).__module__ for prop in props} - {"__main__"}
        return {
            "symbol": self.symbol_type(self._heads).tojson(),
            "shapes": {name: array.shape for name, array in self.arg_dict.items()},
            "types": {name: str(np.dtype(array.dtype)) for name, array in self.arg_dict.items()},
            "requests": self._requests,
            "training": training,
            "imports": sorted(name for name in modules if not name.startswith("roiops.")),
        }

    def _feed(self, values: dict) -> None:
        for name, value in values.items():
            if name not in self.arg_dict:
                raise GraphError(f"forward: {name!r} is not an argument{nearest(name, self.arg_dict)}")
            target = self.arg_dict[name]
            if tuple(np.shape(value)) != tuple(target.shape):
                raise ShapeError(
                    f"forward: {name} must have shape {tuple(target.shape)}, got {tuple(np.shape(value))}; "
                    "use reshape() for inputs of another size"
                )
        for name, value in values.items():
            self.arg_dict[name][:] = value

    def _forward_watched(self, bound) -> None:
        variables = {id(node): node.name for node in self._order if node.is_variable}
        for step, call in zip(bound.program.forward, bound.forward, strict=True):
            names = step.prop.list_outputs()
            if self._monitor_all:
                inputs = step.prop.list_monitored_inputs()
                for name, value in zip(inputs, (*step.inputs, *step.aux), strict=True):
                    array = NDArray(bound.arrays[value], self._device)
                    if value[0] in variables:
                        self._monitor(variables[value[0]], array)
                    self._monitor(f"{step.name}_{name}", array)
            self._run([call], [step], "forward")
            for name, value in zip(names[: step.prop.num_visible_outputs], step.outputs, strict=False):
                self._monitor(f"{step.name}_{name}", NDArray(bound.arrays[value], self._device))

    def backward(self, out_grads=None, is_train: bool = True) -> None:
        """Compute the gradients of the arguments, into ``grad_arrays`` as ``grad_req`` asks.

        They are those of the last forward, whether that was for training or not; before any, of the
        arguments as they are. A backward overwrites what a forward leaves, so a second one after the same
        forward computes that again, with the same random numbers and from the arguments as they are then.

        Parameters
        ----------
        out_grads : NDArray, list or dict of NDArray, optional
            Gradients of the outputs; not needed for outputs of loss operators, and not looked at there.
        is_train : bool
            Accepted for MXNet's sake.
        """
        with self._lock:
            if not any(req != "null" for req in self._grad_req.values()):
                return
            given = self._given_head_grads(out_grads)
            if self._used_up:
                self._forward_again()
            elif self._plain is None or self._ran is not self._plain:
                self._keeps = True  # once is enough: the next forward is followed by a backward too
                self.forward()
            self._used_up = True
            for (_, target, req), value in zip(self._head_grads, given, strict=True):
                if req == "add":
                    target += value
                else:
                    target[...] = value
            with self._helped(self._plain, "backward"), np.errstate(all="ignore"):
                if self._on_gradients is None and self._monitor is None:
                    steps = [step.forward for step in self._plain.program.backward]
                    self._run(self._plain.backward, steps, "backward")
                else:
                    self._backward_reported()

    def spoil_undeclared(self) -> None:
        """Fill all that the last forward left and no backward declares with NaN, arguments too.

        For checks of operators: a backward that kept an array which it does not declare is then seen.
        """
        arrays, program = self._plain.arrays, self._plain.program
        steps = program.plan_steps()[len(program.forward) :]
        kept = {value for step in steps for value in (*step.reads, *step.writes)}
        left = {value for step in program.forward for value in (*step.inputs, *step.outputs)}
        checks.spoil(
            (arrays[value] for value in left - kept - {None}), [arrays[v] for v in kept if v in arrays]
        )

    def keep_for_backward(self) -> None:
        """Let every forward keep what backward reads, also one that is not for training."""
        self._keeps = True

    def _forward_again(self) -> None:
        """Compute once more what a backward has overwritten; random numbers and states go on as before."""
        states = [array.copy() for array in self.aux_dict.values()]
        with random.repeated_from(self._drew_from), np.errstate(all="ignore"):
            self._run(self._plain.forward, self._plain.program.forward, "forward")
        for array, state in zip(self.aux_dict.values(), states, strict=True):
            array[:] = state

    def _backward_reported(self) -> None:
        """Backward, telling after each step which gradients are final, and a monitor what it computed."""
        program = self._plain.program
        calls, finished, steps = self._plain.backward, program.finished_gradients(), program.backward
        for call, names, step in itertools.zip_longest(calls, finished, steps):
            self._run([call], [step and step.forward], "backward")
            if self._on_gradients is not None:
                self._on_gradients(names or ())
            if self._monitor is not None and step is not None:
                self._watch_gradients(step)

    def _watch_gradients(self, step) -> None:
        """Show a monitor the gradients of a step's inputs; one that nobody asks for shows as zeros."""
        many = len(step.in_grads) > 1
        for i, (value, of) in enumerate(zip(step.in_grads, step.forward.inputs, strict=True)):
            array = self._plain.arrays.get(value)
            if array is None:
                array = devices.zeros(*self._spec(of), self._device)
            number = i if many else ""
            self._monitor(f"{step.forward.name}_backward_output{number}", NDArray(array, self._device))

    @property
    def gradient_order(self) -> list[str]:
        """The arguments that get a gradient, in the order in which backward finishes them."""
        reached = [name for names in self._program.finished_gradients() for name in names]
        return [*reached, *(name for name in self._program.wanted.values() if name not in reached)]

    def set_gradient_callback(self, callback) -> None:
        """Call ``callback(names)`` in every backward, after each of its steps; None stops it.

        ``names`` are the arguments whose gradients that step was the last to write, often none. The arrays in
        ``grad_dict`` then hold them, so that other work on them can begin while backward goes on.
        """
        self._on_gradients = callback

    def _given_head_grads(self, out_grads) -> list:
        """The arrays for the heads that need a gradient, checked."""
        names = self._output_names
        if out_grads is None:
            out_grads = [None] * len(names)
        elif isinstance(out_grads, dict):
            for name in out_grads:
                if name not in names:
                    raise GraphError(f"backward: {name!r} is not an output{nearest(name, names)}")
            out_grads = [out_grads.get(name) for name in names]
        elif isinstance(out_grads, list | tuple):
            out_grads = list(out_grads)
        else:
            out_grads = [out_grads]
        out_grads += [None] * (len(names) - len(out_grads))
        by_value = {}
        needed = {value for value, _, _ in self._head_grads}
        # Like MXNet, take no notice of gradients that nothing reads, nor of more of them than outputs.
        for name, (node, i), output, grad in zip(names, self._heads, self.outputs, out_grads, strict=False):
            if (id(node), i) not in needed:
                continue
            if grad is None:
                by_value.setdefault((id(node), i), (name, None))
                continue
            raw = memory.raw(grad, self._device)
            if tuple(raw.shape) != tuple(output.shape):
                raise ShapeError(
                    f"backward: the gradient of {name} must have shape {tuple(output.shape)}, "
                    f"got {tuple(raw.shape)}"
                )
            before = by_value.get((id(node), i), (name, None))[1]
            by_value[id(node), i] = (name, raw if before is None else before + raw)
        given = []
        for value, _, _ in self._head_grads:
            name, grad = by_value[value]
            if grad is None:
                raise GraphError(
                    f"backward: output {name} is not a loss, so its gradient must be given in out_grads; "
                    "to minimise the output itself, pass it through make_loss"
                )
            given.append(grad)
        return given

    # -- the rest of the contract --------------------------------------------------------------------

    @property
    def arg_arrays(self) -> list[NDArray]:
        """The arguments, in graph order."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list:
        """The gradient of each argument, None where there is none."""
        return [self.grad_dict.get(name) for name in self.arg_dict]

    @property
    def aux_arrays(self) -> list[NDArray]:
        """The auxiliary states, in graph order."""
        return list(self.aux_dict.values())

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs by name: ``fc1_output``."""
        return dict(zip(self._output_names, self.outputs, strict=True))

    def get_optimized_symbol(self):
        """The graph that is computed, as a symbol: in it, nodes that compute the same have become one."""
        return self.symbol_type(self._heads)

    def copy_params_from(self, arg_params, aux_params=None, allow_extra_params: bool = False) -> None:
        """Copy arrays by name into arguments and auxiliary states.

        Parameters
        ----------
        allow_extra_params : bool
            Whether names that the graph does not have are passed over instead of an error.
        """
        for kind, given, have in (
            ("argument", arg_params, self.arg_dict),
            ("auxiliary state", aux_params or {}, self.aux_dict),
        ):
            extra = [name for name in given if name not in have]
            if extra and not allow_extra_params:
                listed = ", ".join(f"{name!r}{nearest(name, have)}" for name in extra)
                raise GraphError(f"copy_params_from: not an {kind} of the graph: {listed}")
            for name, value in given.items():
                if name not in have:
                    continue
                if tuple(value.shape) != tuple(have[name].shape):
                    raise ShapeError(
                        f"copy_params_from: {name} must have shape {tuple(have[name].shape)}, "
                        f"got {tuple(value.shape)}"
                    )
                have[name][:] = value

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs) -> "Executor":
        """A new executor for inputs of other shapes, which shares all memory that need not grow.

        That holds for outputs, too: each of the two overwrites those of the other.

        Parameters
        ----------
        partial_shaping : bool
            Whether what is not named may change its shape too, though it is no label: a weight that does
            has new numbers.
        allow_up_sizing : bool
            Accepted for MXNet's sake; arrays that grow are always allocated anew.
        """
        for name in kwargs:
            if name not in self.arg_dict:
                raise GraphError(f"reshape: {name!r} is not an argument{nearest(name, self.arg_dict)}")
        given = {name: graph.whole_sizes(f"reshape: {name}", shape) for name, shape in kwargs.items()}
        if not partial_shaping:
            fixed = {name: tuple(a.shape) for name, a in {**self.arg_dict, **self.aux_dict}.items()}
            # Labels and states follow the data, so only what cannot be inferred is held to its old shape.
            inferred = graph.infer_shapes(self._order, given)
            for node in self._order:
                if node.is_variable and not graph.known(inferred[id(node)][0]):
                    given.setdefault(node.name, fixed[node.name])
        shapes = graph.infer_shapes(self._order, given)
        if not partial_shaping:
            self._refuse_changed_weights(kwargs, shapes)

        def fit(node, array):
            shape = shapes[id(node)][0]
            if not graph.known(shape):
                raise ShapeError(f"reshape: the shape of {node.name} does not follow from those given")
            if array is None or tuple(array.shape) == shape:
                return array
            part = _first_numbers(array, shape, self._device)
            if part is not None:
                return part
            return NDArray(devices.zeros(shape, array.dtype, self._device), self._device)

        by_name = {node.name: node for node in self._order if node.is_variable}
        args, grads, aux = (
            {name: fit(by_name[name], array) for name, array in arrays.items()}
            for arrays in (self.arg_dict, self.grad_dict, self.aux_dict)
        )
        arrays = Arrays(args, grads, self._grad_req, aux)
        made = Executor(
            self._heads, self._device, arrays, self._output_names, self._places, self._order, donor=self
        )
        made.keep_monitor_of(self)
        return made

    def _refuse_changed_weights(self, named, shapes) -> None:
        """Raise where a variable that is neither named nor a label has another shape than it had."""
        arrays, learned = {**self.arg_dict, **self.aux_dict}, set()
        for node in self._order:
            if not node.is_variable:
                zero = node.prop.list_zero_gradients()
                pairs = zip(node.input_names(), node.inputs, strict=True)
                learned.update(id(child) for name, (child, _) in pairs if name not in zero)
        for node in self._order:
            if id(node) not in learned or not node.is_variable or node.name in named:
                continue
            had, need = tuple(arrays[node.name].shape), shapes[id(node)][0]
            if graph.known(need) and need != had:
                raise ShapeError(
                    f"reshape: {node.name} has shape {had}, and these inputs need {need}: give its new "
                    "shape, too, or partial_shaping=True"
                )

    def ready_steps(self, training: bool = False) -> list:
        """What an inference runs, or a step of training, in order: an operator's property and a call.

        A call takes no arguments. It zeroes what it reads of other steps first, so that it can run by itself.
        """
        with self._lock:
            bound = self._bind_plain() if training else self._bind_inference()
            bound.set_mode(training)
        program, steps = bound.program, []
        for step, call in zip(program.forward, bound.forward, strict=True):
            steps.append((step.prop, call, step.inputs))
        if training:
            for step, call in zip(program.backward, bound.backward, strict=False):
                read = (*step.out_grads, *step.forward.inputs, *step.forward.outputs)
                steps.append((step.forward.prop, call, read))
        variables = {(id(node), 0) for node in self._order if node.is_variable}

        def on_zeros(call, read):
            inputs = [bound.arrays.get(value) for value in read if value not in variables]
            return functools.partial(_run_on_zeros, call, inputs)

        return [(prop, on_zeros(call, read)) for prop, call, read in steps]

    def set_monitor_callback(self, callback, monitor_all: bool = False) -> None:
        """Call ``callback(name, NDArray)`` after each operator, forward and backward; None stops it.

        Outputs are named as in ``get_internals``; the gradients of a node's inputs, as in MXNet,
        ``<node>_backward_output`` or, of several, ``<node>_backward_output0`` and so on.

        Parameters
        ----------
        monitor_all : bool
            Whether the operators' inputs are reported as well.
        """
        self._monitor, self._monitor_all = callback, monitor_all

    def keep_monitor_of(self, other: "Executor") -> None:
        """Show a monitor of another executor, in whose place this one comes, what is computed here."""
        self._monitor, self._monitor_all = other._monitor, other._monitor_all

    def debug_str(self) -> str:
        """The steps of the program and their memory; scripts read the last lines, which are MXNet's."""
        counts = Counter(step.prop.name for step in self._program.forward)
        lines = [f"{step.name}: {step.prop.label}" for step in self._program.forward]
        lines.append(f"{sum(counts.values())} operators, {len(self._program.backward)} backward steps")
        lines.append(f"Total {self.internal_bytes >> 20} MB allocated")
        lines.append("Total 0 TempSpace resource requested\n")
        return "\n".join(lines)


# -- binding ---------------------------------------------------------------------------------------------


def _first_numbers(array, shape, device):
    """An array of this shape in the memory of another one; None where that is too small."""
    size = math.prod(shape)
    if size > array.size or not array.data.flags.c_contiguous:
        return None
    return NDArray(array.data.reshape(-1)[:size].reshape(shape), device)


def _check_device(ctx) -> Context:
    return current_context() if ctx is None else Context(ctx)


def _by_name(what: str, given, names: list[str], device, *, partial: bool) -> dict:
    """Arrays given as list or dict, by name, each on ``device``."""
    if given is None:
        given = {}
    if not isinstance(given, dict):
        given = list(given)
        if len(given) != len(names):
            raise GraphError(
                f"bind: {what} has {len(given)} arrays, the graph has {len(names)}: {', '.join(names)}"
            )
        given = dict(zip(names, given, strict=True))
    missing = [name for name in names if given.get(name) is None]
    if missing and not partial:
        raise GraphError(f"bind: {what} lacks {', '.join(missing)}")
    return {name: memory.as_ndarray(given[name], device) for name in names if given.get(name) is not None}


def bind(heads, ctx, args, args_grad=None, grad_req="write", aux_states=None, group2ctx=None) -> Executor:
    """Bind a graph to the caller's arrays. ``Symbol.bind`` describes the parameters."""
    device = _check_device(ctx)
    outputs, heads = [node.output_name(i) for node, i in heads], without_repeats(heads)
    order = graph.topological_order(heads)
    graph.check_unique_names(order)
    names = [node.name for node in graph.argument_nodes(order)]
    aux_names = [node.name for node in graph.auxiliary_nodes(order)]
    args = _by_name("args", args, names, device, partial=False)
    for name, array in args.items():
        if isinstance(array.data, np.ndarray) and not array.data.flags.writeable:
            args[name] = array.copy()  # kernels take arrays that can be written, though they write to none
    if isinstance(args_grad, list | tuple) and len(args_grad) < len(names):
        args_grad = [*args_grad, *[None] * (len(names) - len(args_grad))]
    grads = _by_name("args_grad", args_grad, names, device, partial=True)
    aux = _by_name("aux_states", aux_states, aux_names, device, partial=False)
    arrays = Arrays(args, grads, parse_grad_req(grad_req, names), aux)
    return Executor(heads, device, arrays, outputs, place(order, device, group2ctx), order)


def simple_bind(
    heads,
    ctx,
    grad_req,
    type_dict,
    given,
    explicit,
    shared=None,
    shared_names=(),
    buffer=None,
    group2ctx=None,
) -> Executor:
    """Infer, allocate and bind. ``Symbol.simple_bind`` describes the parameters.

    ``given`` has -1 for entries that are 0 in ``explicit``; those that nothing else decides are empty.
    """
    device = _check_device(ctx)
    outputs, heads = [node.output_name(i) for node, i in heads], without_repeats(heads)
    order = graph.topological_order(heads)
    graph.check_unique_names(order)
    shapes = graph.infer_shapes(order, given)
    variables = [node for node in order if node.is_variable]
    if any(not graph.known(shapes[id(node)][0]) for node in variables):
        # What is still unknown where the caller wrote 0 is an empty array, such as no ROIs.
        for name, shape in explicit.items():
            if 0 in shape and -1 not in shape:
                given = {**given, name: shape}
        shapes = graph.infer_shapes(order, given)
    missing = [node for node in variables if not graph.known(shapes[id(node)][0])]
    if missing:
        listed = ", ".join(f"{node.name}: {graph.format_shape(shapes[id(node)][0])}" for node in missing)
        raise ShapeError(f"simple_bind: give the shapes of these too, or more of the others: {listed}")
    types = {n: number_type(f"simple_bind: type_dict of {n}", t) for n, t in (type_dict or {}).items()}
    types = graph.infer_types(order, types, np.float32)
    names = [node.name for node in graph.argument_nodes(order)]
    requests = parse_grad_req(grad_req, names)
    places = place(order, device, group2ctx)
    lent, lent_grads = {}, {}
    if shared is not None:
        lent = {name: shared.arg_dict.get(name) for name in shared_names} | shared.aux_dict
        lent_grads = {name: shared.grad_dict.get(name) for name in shared_names}

    def allocate(node, pool, spare, prefix=""):
        shape, dtype, name = shapes[id(node)][0], types[id(node)][0], prefix + node.name
        if dtype is None:
            raise DTypeError(f"simple_bind: the dtype of {node.name} does not follow from those given")
        held = pool.get(node.name)
        if held is not None and tuple(held.shape) == shape and held.dtype == dtype:
            return held
        context = places.get(id(node), device)
        held = spare.get(name)
        if held is not None and held.dtype == dtype and held.context == context:
            part = _first_numbers(held, shape, context)
            if part is not None:
                return part
        try:
            spare[name] = NDArray(devices.zeros(shape, dtype, context), context)
        except MemoryError as error:
            raise MXNetError(f"simple_bind: no memory for {node.name} of shape {shape}: {error}") from None
        return spare[name]

    buffer = {} if buffer is None else buffer
    args = {node.name: allocate(node, lent, buffer) for node in graph.argument_nodes(order)}
    grads = {
        node.name: allocate(node, lent_grads, buffer, "grad of ")
        for node in graph.argument_nodes(order)
        if requests[node.name] != "null"
    }
    aux = {node.name: allocate(node, lent, {}) for node in graph.auxiliary_nodes(order)}
    everything = [shape for node in order for shape in shapes[id(node)]]
    # Where an operator's output follows from the arrays only, they are asked once more.
    inferred = (shapes, types) if all(map(graph.known, everything)) else None
    arrays = Arrays(args, grads, requests, aux)
    return Executor(heads, device, arrays, outputs, places, order, inferred=inferred)
