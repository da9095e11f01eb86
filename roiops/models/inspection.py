"""What a saved model is made of and what it needs, found out without running it or allocating for it."""

import dataclasses
import math
from collections import Counter

import numpy as np

from ..context import cpu
from ..dtypes import number_type
from ..errors import DTypeError, MXNetError, nearest
from ..graph import json_format
from ..graph import nodes as graph
from ..graph.plan import plan
from ..graph.program import build
from ..graph.symbol import Symbol
from .files import all_params, compare, find_files, read_symbol

__all__ = [
    "Inspection",
    "Value",
    "count_flops",
    "free_variables",
    "inspect_model",
    "runnable_outputs",
]

#: Input names under which operators take what training adjusts.
_PARAMETER_ROLES = {"weight", "bias", "gamma", "beta", "parameters", "running_mean", "running_var"}


@dataclasses.dataclass
class Value:
    """A named array of the graph: its shape, with -1 for open entries or None, and its dtype or None."""

    name: str
    shape: tuple | None
    dtype: str | None

    def __str__(self):
        return f"{self.name} {graph.format_shape(self.shape)}" + (f" {self.dtype}" if self.dtype else "")


@dataclasses.dataclass
class Inspection:
    """The findings. ``str`` of it is a page of text, :meth:`to_dict` the same for programs."""

    source: str
    version: str | None
    num_nodes: int
    #: Operators by name, with how often each occurs; those that cannot be run are in both.
    operators: dict[str, int]
    unsupported: dict[str, int]
    inputs: list[Value]
    #: Inputs that only training reads, such as the label of a SoftmaxOutput.
    labels: list[Value]
    outputs: list[Value]
    parameters: list[Value]
    num_parameters: int | None
    parameter_bytes: int | None
    flops: int | None = None
    #: Bytes of the buffers between operators, shared ones counted once, as the executor would plan them.
    buffer_bytes: int | None = None
    #: What stands in the way of running it, and what was left open: one sentence each.
    problems: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether nothing that was found stands in the way of running the model."""
        return not self.unsupported and not self.problems

    def to_dict(self) -> dict:
        """The same as a dict, fit for JSON."""
        return {**dataclasses.asdict(self), "runs": self.runs}

    def __str__(self):
        lines = [
            f"{self.source}: {self.num_nodes} nodes" + (f", saved by {self.version}" if self.version else "")
        ]

        def table(title, rows):
            if rows:
                lines.extend(["", title, *(f"  {row}" for row in rows)])

        width = max((len(name) for name in self.operators), default=0)
        known = {name: n for name, n in self.operators.items() if name not in self.unsupported}
        table("Operators", [f"{name:{width}}  x{n}" for name, n in known.items()])
        table(
            "Operators that cannot be run", [f"{name:{width}}  x{n}" for name, n in self.unsupported.items()]
        )
        table("Inputs", self.inputs)
        table("Labels, which inference does not need", self.labels)
        table("Outputs", self.outputs)
        lines += [
            "",
            f"Parameters: {len(self.parameters)} arrays, {_known(self.num_parameters, _count, ' numbers')}",
            f"Arithmetic: {_known(self.flops, _count, ' floating-point operations a forward pass')}",
            f"Memory: {_known(self.parameter_bytes, _bytes)} of parameters, "
            f"{_known(self.buffer_bytes, _bytes)} of buffers between operators",
        ]
        table("Problems", self.problems)
        table("Notes", self.notes)
        return "\n".join(lines)


def _known(value, form, unit="") -> str:
    return "unknown" if value is None else form(value) + unit


def _count(value: int) -> str:
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.4g} {letter}"
    return str(value)


def _bytes(value: int) -> str:
    return f"{value / 2**20:.1f} MiB" if value >= 2**20 else f"{value / 2**10:.1f} KiB"


def inspect_model(
    symbol, params=None, shapes: dict[str, tuple] | None = None, *, dtype=None, source: str = "symbol"
) -> Inspection:
    """Look into a model.

    Parameters
    ----------
    symbol : Symbol or path
        The graph, its file, or what the file's name begins with.
    params : dict of arrays, path or int, optional
        The parameters, their file, or their epoch: tells inputs from parameters, and is compared with the
        graph.
    shapes : dict of str to tuple, optional
        Shapes of inputs, without which sizes stay open.
    dtype : optional
        Take the parameters to be converted to this.
    source : str
        What to call a model that is given as a symbol.
    """
    problems: list[str] = []
    version = None
    if not isinstance(symbol, Symbol):
        source, found = find_files(symbol, params)
        params = None if params is None else found  # those that lie beside it are not asked for
        symbol, version = read_symbol(source, problems)
    held = (params or {}) if params is None or isinstance(params, dict) else all_params(params)
    dtype = dtype and number_type(f"{source}: dtype", dtype)
    held = {n: Value(n, tuple(a.shape), np.dtype(dtype or a.dtype).name) for n, a in held.items()}

    order = graph.topological_order(symbol.heads)
    supported = _supported(order)
    variables = {node.name: node for node in order if node.is_variable}
    given_shapes = _known_names(shapes or {}, variables, problems)
    deduced = {n: s for n, s in _deduced_shapes(supported, held).items() if n not in given_shapes}
    known_shapes = _infer(graph.infer_shapes, supported, {**deduced, **given_shapes}, problems)
    given_types = {name: value.dtype for name, value in held.items() if name in variables}
    known_types = _infer(infer_types, supported, given_types, problems, np.float32)

    def value(node, index=0, name=None):
        unknown = [None] * (index + 1)
        dtype = known_types.get(id(node), unknown)[index]
        shape = known_shapes.get(id(node), unknown)[index]
        return Value(name or node.name, shape, None if dtype is None else np.dtype(dtype).name)

    free = free_variables(order)
    if held:
        found = compare(order, known_shapes, held, free)
        problems += [found.missing_text()] if found.missing else []
        problems += [found.surplus_text()] if found.surplus else []
        problems += [f"parameter {each}" for each in found.shapes_text()]
        free = [name for name in free if name not in held]
    parameters = [held.get(name, value(node)) for name, node in variables.items() if name not in free]
    labels = {node.name for node in label_variables(order)}
    num_parameters, parameter_bytes = _size_of(parameters)
    result = Inspection(
        source=source,
        version=version,
        num_nodes=len(order),
        operators=dict(Counter(node.op for node in order if not node.is_variable).most_common()),
        unsupported=json_format.unsupported(order),
        inputs=[value(variables[name]) for name in free if name not in labels],
        labels=[value(variables[name]) for name in free if name in labels],
        outputs=[value(node, index, node.output_name(index)) for node, index in symbol.heads],
        parameters=parameters,
        num_parameters=num_parameters,
        parameter_bytes=parameter_bytes,
        problems=problems,
    )
    if result.unsupported:
        if others := runnable_outputs(order, symbol.heads):
            result.notes.append(
                f"outputs that can be computed without what cannot be run: {', '.join(others)}"
            )
    elif known_types and all(graph.known(s) for n in order for s in known_shapes.get(id(n), [None])):
        result.flops = count_flops(order, known_shapes)
        result.buffer_bytes = _buffer_bytes(order, symbol.heads, known_shapes, known_types)
    elif not problems and not all(graph.known(v.shape) for v in result.inputs):
        listed = " and ".join(v.name for v in result.inputs if not graph.known(v.shape))
        result.notes.append(f"give the shape of {listed} to learn sizes, arithmetic and memory")
    return result


def _known_names(shapes, variables, problems) -> dict[str, tuple]:
    """The shapes given for what the graph has, with -1 for open entries."""
    for name in shapes:
        if name not in variables:
            problems.append(
                f"a shape is given for {name!r}, which the graph does not have{nearest(name, variables)}"
            )
    return {name: tuple(-1 if d <= 0 else d for d in s) for name, s in shapes.items() if name in variables}


def _size_of(parameters) -> tuple:
    """How many numbers and bytes the parameters hold, or None for both while a shape is open."""
    if not all(graph.known(p.shape) for p in parameters):
        return None, None
    sizes = [math.prod(p.shape) for p in parameters]
    widths = [np.dtype(p.dtype or "float32").itemsize for p in parameters]
    return sum(sizes), sum(n * width for n, width in zip(sizes, widths, strict=True))


def _supported(order) -> list:
    """The nodes that do not depend on an operator that cannot be run."""
    bad: set[int] = set()
    kept = []
    for node in order:
        if (not node.is_variable and node.prop is None) or any(id(child) in bad for child, _ in node.inputs):
            bad.add(id(node))
        else:
            kept.append(node)
    return kept


def runnable_outputs(order, heads) -> list[str]:
    """Outputs that do without the operators that cannot be run.

    They are those of the graph, or, where only its last operators cannot be run, such as a loss, what goes
    into those.
    """
    supported = {id(node) for node in _supported(order)}
    found = [node.output_name(index) for node, index in heads if id(node) in supported]
    last = {id(node) for node, _ in heads}
    if not found and all(id(node) in supported or id(node) in last for node in order):
        inputs = (entry for node, _ in heads for entry in node.inputs)
        found = [
            node.output_name(index)
            for node, index in inputs
            if id(node) in supported and not node.is_variable
        ]
    return list(dict.fromkeys(found))


def infer_types(order, held, dtype) -> dict:
    """The dtypes of a graph whose parameters have those of ``held``; an error says how to convert halves."""
    held = {name: np.dtype(each) for name, each in held.items()}
    try:
        return graph.infer_types(order, held, dtype)
    except DTypeError as error:
        floats = {each.name for each in held.values() if each.kind == "f"}
        if floats <= {np.dtype(dtype).name}:
            raise
        raise DTypeError(
            f"{error}; the parameters are {' and '.join(sorted(floats))}: "
            "dtype='float32' (--dtype float32) converts them"
        ) from None


def _infer(how, order, given, problems, *more) -> dict:
    try:
        return how(order, given, *more)
    except MXNetError as error:
        problems.append(str(error))
        return {}


# -- which variables are what ----------------------------------------------------------------------------


def free_variables(order) -> list[str]:
    """Names of the variables that a user has to give, in graph order.

    They are those that no operator takes as a weight or keeps as a state, and that carry no sign of
    being one of Gluon's parameters. What goes into an operator that is not there is a weight if it is
    called like one.
    """
    variables = [node for node in order if node.is_variable]
    auxiliary = {id(node) for node in graph.auxiliary_nodes(order)}
    roles: dict[int, set[str]] = {}
    for node in order:
        names = node.input_names() if node.prop else [_role(child) for child, _ in node.inputs]
        for role, (child, _) in zip(names, node.inputs, strict=False):
            roles.setdefault(id(child), set()).add(role)
    return [
        node.name
        for node in variables
        if id(node) not in auxiliary
        and not roles.get(id(node), set()) & _PARAMETER_ROLES
        and not {"__init__", "__storage_type__"} & set(node.attrs)
    ]


def _role(child) -> str:
    """What the input of an operator that is not there would be: the end of its name, ``weight``."""
    ends = (role for role in (*_PARAMETER_ROLES, "moving_mean", "moving_var") if child.name.endswith(role))
    return next(ends, "")


def _deduced_shapes(order, held) -> dict[str, tuple]:
    """Shapes of the inputs as far as the parameters of the layers that read them tell: the channels."""
    deduced: dict[str, tuple] = {}
    for node in order:
        if node.is_variable or not node.prop or len(node.inputs) < 2:
            continue
        (data, _), (weight, _) = node.inputs[:2]
        while not data.is_variable and data.prop and data.prop.keeps_shape:
            data = data.inputs[0][0]
        if not data.is_variable or data.name in held or weight.name not in held:
            continue
        shape = node.prop.data_shape_of(held[weight.name].shape)
        if shape is not None:
            deduced.setdefault(data.name, shape)
    return deduced


def label_variables(order) -> list:
    """Variables that only losses read, as their label: inference needs no values for them."""
    read_otherwise: set[int] = set()
    labels = {}
    for node in order:
        if node.is_variable:
            continue
        names = node.input_names() if node.prop else [""] * len(node.inputs)
        for role, (child, _) in zip(names, node.inputs, strict=False):
            if node.prop and node.prop.is_loss and role == "label":
                labels[id(child)] = child
            else:
                read_otherwise.add(id(child))
    return [node for key, node in labels.items() if node.is_variable and key not in read_otherwise]


# -- arithmetic ------------------------------------------------------------------------------------------


def count_flops(order, shapes) -> int:
    """Floating-point operations of a forward pass; a multiplication and an addition count as two.

    Matrix products, convolutions, pooling and batch normalisation are counted exactly, moving data
    counts nothing, and every other operator one for each number it puts out.
    """
    total = 0
    for node in order:
        if node.is_variable:
            continue
        inputs = [shapes[id(child)][i] for child, i in node.inputs]
        outputs = shapes[id(node)][: node.num_visible]
        total += node.prop.count_operations(inputs, outputs)
    return total


def _buffer_bytes(order, heads, shapes, types) -> int:
    names = [node.name for node in order if node.is_variable]
    program = build(order, heads, dict.fromkeys(names, "null"), cpu())
    by_id = {id(node): node for node in order}
    sizes = {}
    for step in program.plan_steps():
        for value in (*step.reads, *step.writes):
            node_id, index = value
            if not by_id[node_id].is_variable:
                sizes[value] = math.prod(shapes[node_id][index]) * np.dtype(types[node_id][index]).itemsize
    _, slots = plan(program.plan_steps(), sizes, {(id(node), index) for node, index in heads})
    return sum(slots)
