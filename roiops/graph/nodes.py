"""The graph under a Symbol: nodes, topological order, shape and type passes.

An *entry* is one output of one node, ``(node, index)``. A graph is given by its *heads*, a list of entries.
Nothing here recurses, so graphs may be of any depth. Operators are known only through the registry.
"""

import numpy as np

from .. import dtypes, registry
from ..errors import DTypeError, GraphError, MXNetError, ShapeError
from ..shapes import format_shape, from_user, known, merge_shapes

__all__ = [
    "Node",
    "argument_nodes",
    "auxiliary_nodes",
    "check_unique_names",
    "format_shape",
    "infer_shapes",
    "infer_types",
    "known",
    "operator_params",
    "parse_shape",
    "topological_order",
    "whole_sizes",
]

_SHAPE_KEY, _DTYPE_KEY = "__shape__", "__dtype__"


class Node:
    """A variable (``op`` is None) or an operator applied to entries.

    ``attrs`` holds strings only, as MXNet's JSON does: the operator's parameters under their names and
    everything else under names like ``__lr_mult__``. ``inputs`` are the entries of the arguments, then
    of the auxiliary states. ``subgraphs`` is what an MXNet backend or a control-flow operator left in a
    file: it is kept, but cannot be run.
    """

    __slots__ = ("attrs", "inputs", "name", "op", "prop", "subgraphs")

    def __init__(self, op: str | None, name: str, attrs: dict[str, str] | None = None, inputs=(), prop=None):
        self.op = op
        self.name = name
        self.attrs = attrs or {}
        self.inputs = list(inputs)
        self.prop = prop
        self.subgraphs = None

    def copy(self, inputs) -> "Node":
        """The same node with other inputs."""
        made = Node(self.op, self.name, dict(self.attrs), inputs, self.prop)
        made.subgraphs = self.subgraphs
        return made

    @property
    def is_variable(self) -> bool:
        """Whether this is an input of the graph, not an operator."""
        return self.op is None

    def require_prop(self):
        """The operator property; an error that names the node if the operator is not registered."""
        if self.prop is None:
            if self.subgraphs:
                raise GraphError(
                    f"node {self.name!r}: operator {self.op!r} holds a subgraph, left by an MXNet backend or "
                    "a control-flow operator, which cannot be run; save the model without partitioning it"
                )
            try:
                prop_class = registry.get(self.op)
            except MXNetError as error:
                raise type(error)(f"node {self.name!r}: {error}") from None
            label = registry.node_label(self.op, self.name)
            self.prop = prop_class.create(operator_params(self.attrs), label)
        return self.prop

    @property
    def num_outputs(self) -> int:
        """All outputs, hidden ones too; 1 for a variable or an operator that is not registered."""
        return len(self.prop.list_outputs()) if self.prop else 1

    @property
    def num_visible(self) -> int:
        """Those outputs that a user sees."""
        return self.prop.num_visible_outputs if self.prop else 1

    def output_name(self, index: int) -> str:
        """``fc1_output``, or ``data`` for a variable."""
        if self.is_variable:
            return self.name
        if self.prop is None:
            return f"{self.name}_output{index or ''}"
        return f"{self.name}_{self.prop.list_outputs()[index]}"

    def input_names(self) -> list[str]:
        """Names of the arguments, then of the auxiliary states, in the order of ``inputs``."""
        prop = self.require_prop()
        return [*prop.list_arguments(), *prop.list_auxiliary_states()]

    def annotate_inputs(self) -> None:
        """Give variables what an operator says of them, such as how a state is initialised."""
        for name, (child, _) in zip(self.input_names(), self.inputs, strict=False):
            if child.is_variable:
                for key, value in self.prop.variable_attributes.get(name, {}).items():
                    child.attrs.setdefault(key, value)

    def __repr__(self):
        return f"<Node {self.name} of {self.op or 'variable'}>"


def operator_params(attrs: dict[str, str]) -> dict[str, str]:
    """Those of a node's attributes that are operator parameters, not annotations like ``__lr_mult__``."""
    return {k: v for k, v in attrs.items() if not (k.startswith("__") and k.endswith("__"))}


def topological_order(heads) -> list[Node]:
    """Every node below ``heads``, inputs before users, in the order of MXNet's depth-first visit."""
    order, seen = [], set()
    for head, _ in heads:
        if id(head) in seen:
            continue
        seen.add(id(head))
        stack = [(head, iter(head.inputs))]
        while stack:
            node, pending = stack[-1]
            for child, _ in pending:
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append((child, iter(child.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def auxiliary_nodes(order) -> list[Node]:
    """The variables that are auxiliary states of some operator, in graph order."""
    auxiliary = set()
    for node in order:
        if node.prop and (count := len(node.prop.list_auxiliary_states())):
            auxiliary.update(id(child) for child, _ in node.inputs[-count:])
    return [node for node in order if node.is_variable and id(node) in auxiliary]


def argument_nodes(order) -> list[Node]:
    """The variables that are not auxiliary states, in graph order."""
    auxiliary = {id(node) for node in auxiliary_nodes(order)}
    return [node for node in order if node.is_variable and id(node) not in auxiliary]


def check_unique_names(order) -> None:
    """Two different variables under one name cannot both be bound."""
    seen = {}
    for node in order:
        if node.is_variable and seen.setdefault(node.name, node) is not node:
            raise GraphError(f"two different variables are named {node.name!r}; rename one of them")


# -- shapes ----------------------------------------------------------------------------------------------


def parse_shape(text: str, variable: str) -> tuple | None:
    """The shape in a ``__shape__`` attribute, which is in the convention of the one who wrote it."""
    if text.strip() == "None":
        return None
    parts = text.strip("()[] ").replace("L", "").split(",")
    try:
        items = [int(float(part)) for part in parts if part.strip()]
    except (ValueError, OverflowError):
        raise GraphError(
            f"variable {variable!r}: {_SHAPE_KEY} must be a shape such as (1, 3, 600, 800), got {text!r}"
        ) from None
    return from_user(tuple(items))


class _Shapes:
    """Shapes of all entries, by node; grows monotonically."""

    def __init__(self):
        self.of = {}
        self.changed = False
        #: The inputs that a node's shapes were inferred from, where nothing is left to infer.
        self.settled = {}

    def get(self, entry):
        node, index = entry
        return self.of[id(node)][index]

    def put(self, entry, shape, blame) -> None:
        """Add what is known of an entry; ``blame(have)`` words the error where it contradicts."""
        if shape is None:
            return
        shape = tuple(int(d) for d in shape)
        node, index = entry
        shapes = self.of[id(node)]
        have = shapes[index]
        if have == shape:
            return
        merged = merge_shapes(have, shape)
        if merged is None:
            raise ShapeError(blame(have))
        if merged != have:
            shapes[index] = merged
            self.changed = True


def whole_sizes(what: str, shape) -> tuple[int, ...]:
    """A shape that a user gives for ``what``, in whole numbers."""
    try:
        sizes = tuple(int(d) for d in shape)
        if all(n == d for n, d in zip(sizes, shape, strict=True)):
            return sizes
    except (TypeError, ValueError, OverflowError):
        pass
    raise ShapeError(f"{what} must be a tuple of whole numbers, got {shape!r}")


def infer_shapes(order, given: dict[str, tuple]) -> dict[int, list]:
    """Shapes of every node's outputs, by ``id(node)``, as far as they follow from those ``given``.

    Works in both directions and repeats until nothing new follows. A shape is a tuple with -1 for an
    unknown entry, or None. Contradictions raise :class:`ShapeError` with the node and the inputs.
    """
    shapes = _Shapes()
    for node in order:
        shapes.of[id(node)] = [None] * node.num_outputs
        if node.is_variable:
            declared = node.attrs.get(_SHAPE_KEY)
            shapes.of[id(node)][0] = given.get(node.name)
            if declared and not known(given.get(node.name)):  # as MXNet, which merges nothing
                shapes.of[id(node)][0] = parse_shape(declared, node.name)
    operators = [node for node in order if not node.is_variable]
    while True:
        shapes.changed = False
        for node in operators:
            _infer_node(node, shapes)
        if not shapes.changed:
            return shapes.of
        for node in reversed(operators):
            _infer_node_inputs(node, shapes)


def _infer_node(node: Node, shapes: _Shapes) -> None:
    prop = node.require_prop()
    count = len(prop.list_arguments())
    have = [shapes.get(entry) for entry in node.inputs[:count]]
    if shapes.settled.get(id(node)) == have:
        return
    if not prop.may_infer(have):
        return
    try:
        inferred = prop.inferred(have)
    except MXNetError as error:
        raise type(error)(f"{error}{_inputs_text(node, have)}") from None
    except Exception as error:
        text = f"{prop.label}: shape inference failed with {type(error).__name__}: {error}"
        raise ShapeError(text + _inputs_text(node, have)) from error
    _put_inputs(node, inferred[0], shapes, have)
    for i, shape in enumerate(inferred[1]):
        shapes.put((node, i), shape, _output_blame(node, i, shape))
    for i, (name, shape) in enumerate(zip(prop.list_auxiliary_states(), inferred[2], strict=False)):
        entry = node.inputs[count + i]
        shapes.put(entry, shape, _input_blame(node, name, shape, entry, have))
    found = [shapes.get(entry) for entry in node.inputs[:count]]
    if all(known(s) for s in (*found, *shapes.of[id(node)])):
        shapes.settled[id(node)] = found


def _infer_node_inputs(node: Node, shapes: _Shapes) -> None:
    prop = node.prop
    count = len(prop.list_arguments())
    have = [shapes.get(entry) for entry in node.inputs[:count]]
    if all(known(s) for s in have):
        return
    outputs = shapes.of[id(node)]
    if any(s is not None for s in outputs):
        _put_inputs(node, prop.infer_shape_from_outputs(list(have), list(outputs)), shapes, have)


def _put_inputs(node, inferred, shapes, have):
    for name, entry, shape in zip(node.prop.list_arguments(), node.inputs, inferred, strict=False):
        shapes.put(entry, shape, _input_blame(node, name, shape, entry, have))


def _inputs_text(node: Node, have) -> str:
    listed = ", ".join(
        f"{name}={format_shape(shape)}" for name, shape in zip(node.prop.list_arguments(), have, strict=False)
    )
    return f" [inputs: {listed}]"


def _input_blame(node, name, need, entry, have):
    def text(got):
        source = entry[0].output_name(entry[1])
        return (
            f"{node.prop.label}: {name} must have shape {format_shape(need)}, got {format_shape(got)} "
            f"from {source}{_inputs_text(node, have)}"
        )

    return text


def _output_blame(node, index, shape):
    def text(got):
        name = node.output_name(index)
        have, need = format_shape(shape), format_shape(got)
        return f"{node.prop.label}: {name} has shape {have}, but its users need {need}"

    return text


# -- types -----------------------------------------------------------------------------------------------


def _parse_type(text: str, variable: str) -> np.dtype | None:
    """The dtype in a ``__dtype__`` attribute, a name or one of MXNet's numbers."""
    text = text.strip()
    if len(text) < 4 and text.removeprefix("-").isdecimal():
        code = int(text)
        return np.dtype(dtypes.NAMES[code]) if 0 <= code < len(dtypes.NAMES) else None
    if text not in dtypes.NAMES:
        raise GraphError(
            f"variable {variable!r}: {_DTYPE_KEY} must be one of {', '.join(dtypes.NAMES)} or its number, "
            f"got {text!r}"
        )
    return np.dtype(text)


def infer_types(order, given: dict[str, np.dtype], default=None) -> dict[int, list]:
    """Dtypes of every node's outputs, by ``id(node)``; variables that nothing decides get ``default``."""
    types = {}
    for node in order:
        types[id(node)] = [None] * node.num_outputs
        if node.is_variable:
            declared = node.attrs.get(_DTYPE_KEY)
            dtype = given.get(node.name, _parse_type(declared, node.name) if declared else None)
            types[id(node)][0] = None if dtype is None else np.dtype(dtype)
    operators = [node for node in order if not node.is_variable]
    _type_sweeps(operators, types)
    if default is not None:
        # One at a time: giving one variable the default may decide others otherwise.
        for node in order:
            if node.is_variable and types[id(node)][0] is None:
                types[id(node)][0] = np.dtype(default)
                _type_sweeps(operators, types)
                if all(t is not None for each in types.values() for t in each):
                    break
    return types


def _type_sweeps(operators, types) -> None:
    changed = True
    while changed:
        changed = False
        for node in operators:
            prop = node.require_prop()
            count = len(prop.list_arguments())
            have = [types[id(child)][i] for child, i in node.inputs[:count]]
            inferred = prop.infer_type(prop.infer_type_from_outputs(have, types[id(node)]))
            aux = inferred[2] if len(inferred) > 2 else [None] * len(prop.list_auxiliary_states())
            needs = [*inferred[0], *aux]
            for name, (child, i), need in zip(node.input_names(), node.inputs, needs, strict=False):
                if need is None:
                    continue
                got = types[id(child)][i]
                if got is None:
                    types[id(child)][i] = np.dtype(need)
                    changed = True
                elif got != need:
                    source = child.output_name(i)
                    raise DTypeError(f"{prop.label}: {name} must have dtype {need}, got {got} from {source}")
            for i, dtype in enumerate(inferred[1]):
                got = types[id(node)][i]
                if dtype is not None and got is None:
                    types[id(node)][i] = np.dtype(dtype)
                    changed = True
                elif dtype is not None and got != dtype:
                    name = node.output_name(i)
                    raise DTypeError(f"{prop.label}: {name} has dtype {dtype}, but its users need {got}")
