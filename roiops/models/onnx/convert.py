"""From a symbol graph and its parameters to a graph of ONNX operators."""

import dataclasses
import importlib
import math

import numpy as np

from ...errors import GraphError, MXNetError, nearest
from ...graph import nodes as symbol_graph
from ...ndarray import device
from ...operators import lowering
from ...operators.base import OpContext
from ..inspection import infer_types
from .graph import Graph, Value

__all__ = ["NEWEST", "OLDEST", "Conversion", "Lowered", "convert"]

#: The opsets that lowerings write; the oldest is taken unless a graph needs a later one.
OLDEST, NEWEST = lowering.OLDEST, 22

_FAMILIES = ("nn", "tensor", "loss", "detection", "roi")
#: Lengths that stand for an open height or width; each open one gets its own. Odd ones come early: they tell
#: apart what even ones make equal, such as a map and its upsampled half. Far apart, they tell a map that
#: shrinks to a pixel or two from one of a fixed size.
_TRIAL_LENGTHS = (256, 333, 611, 139, 640, 128, 384, 512, 320, 448, 224, 192, 64)
_TRIALS = 3
#: Lengths that are tried to say what could stay open.
_USUAL_LENGTHS = (224, 256, 299, 300, 416, 512, 112, 96, 64, 48, 32, 24)
#: Bytes up to which what follows from the parameters alone is worked out now, however small those are.
_FOLDED_BYTES = 1 << 16
_NO_LOWERING = "this operator has no lowering to ONNX"


@dataclasses.dataclass
class Lowered:
    """What a lowering is told of its node, besides the inputs."""

    name: str
    label: str
    params: object
    prop: object
    #: Shapes of the outputs, -1 where a length is open.
    shapes: list
    #: The same in each of the trials.
    sizes: list
    dtypes: list
    #: Name of the operator that makes each input, None for a variable.
    sources: list
    #: Inputs of the graph, whose lengths others may follow.
    graph_inputs: list

    def cannot(self, reason: str):
        """Raise: the node cannot be written, for this reason."""
        raise lowering.CannotLower(reason)

    def computed(self, *arrays) -> list:
        """The outputs, all of known shapes, as arrays that the operator makes of these."""
        prop, ctx = self.prop, OpContext(label=self.prop.label)
        count = len(prop.list_arguments())
        inputs, aux = arrays[:count], arrays[count:]
        operator = prop.create_operator(ctx, [a.shape for a in inputs], [a.dtype for a in inputs])
        outs = [np.empty(*each) for each in zip(self.shapes, self.dtypes, strict=True)]
        with np.errstate(all="ignore"):
            operator.forward(ctx, inputs, ["write"] * len(outs), outs, aux)
        return outs

    def fixed(self, value: Value, *axes: int) -> tuple:
        """The lengths of these axes (all, if none are named); an error where one is open."""
        chosen = axes or range(value.ndim)
        lengths = tuple(value.shape[a] for a in chosen)
        if -1 in lengths:
            raise lowering.CannotLower(
                f"the lengths of {value.name} must be known for it, got "
                f"{symbol_graph.format_shape(value.shape)}; give the inputs fixed shapes"
            )
        return lengths

    def lengths(self, g, output: int = 0, *inputs: Value) -> list:
        """The lengths of an output; an open one is that of an input, of the node or the graph."""
        found = []
        for axis, length in enumerate(self.shapes[output]):
            if length == -1:
                length = self._same_length(g, [s[output][axis] for s in self.sizes], inputs)
            found.append(length)
        return found

    def _same_length(self, g, sizes, inputs):
        for x in (*inputs, *self.graph_inputs):
            for axis in range(x.ndim):
                if [shape[axis] for shape in x.sizes] == sizes:
                    return g.dim(x, axis)
        raise lowering.CannotLower(
            "no input tells an open length of its output; give the inputs fixed shapes"
        )

    def reshape_like(self, g, x: Value, like: Value) -> Value:
        """``x`` in the shape of another value."""
        return g.Reshape(x, g.Shape(like) if -1 in like.shape else g.ints(*like.shape))

    def reshape(self, g, x: Value, output: int = 0) -> Value:
        """``x`` in the shape of an output, open lengths taken from ``x`` where they stand."""
        shape, sizes = self.shapes[output], [s[output] for s in self.sizes]
        if -1 not in shape:
            return g.reshape(x, *shape)
        told = {}  # which axes of x are as long as an open one in all trials
        for axis in (i for i, length in enumerate(shape) if length == -1):
            after = [each[axis] for each in sizes]
            told[axis] = [a for a in range(x.ndim if x.sizes else 0) if [s[a] for s in x.sizes] == after]
        codes = [0 if axis in told.get(axis, ()) else length for axis, length in enumerate(shape)]
        left = sorted((axis for axis in told if codes[axis] == -1), key=lambda axis: bool(told[axis]))
        if any(not told[axis] for axis in left[1:]) or 0 in shape:
            self.cannot(
                f"its output {symbol_graph.format_shape(shape)} has more than one open length that "
                "the input does not tell; give the inputs fixed shapes"
            )
        for axis in left[1:]:  # one may stay -1, best the one that the input does not tell
            codes[axis] = g.dim(x, told[axis][0])
        return g.reshape(x, *codes)


@dataclasses.dataclass
class Conversion:
    """A graph of ONNX operators with what goes in and out, before it is written."""

    graph: Graph
    inputs: list[Value]
    #: Names of the open lengths of each input, None for fixed ones.
    open_lengths: dict[str, tuple]
    outputs: list[Value]
    #: Sentences on what was left out or changed.
    notes: list[str]


def convert(
    model, shapes: dict, opset: int | None = None, dtype=np.float32, functions: bool = False
) -> Conversion:
    """The graph of ``model``, an :class:`~roiops.models.archive.ArchivedModel`, in ONNX's operators.

    ``shapes`` gives each input's shape, with a name in place of a length that is to stay open; ``dtype`` is
    that of inputs that no parameter decides. With ``functions``, compositions are functions of the model.
    """
    for family in _FAMILIES:
        importlib.import_module(f"roiops.operators.{family}.onnx")
    if opset is not None and not OLDEST <= opset <= NEWEST:
        raise GraphError(f"opset must be from {OLDEST} to {NEWEST}, got {opset}")
    return _Converter(model, shapes, opset, np.dtype(dtype), functions).run()


class _Converter:
    def __init__(self, model, shapes, opset, dtype, functions):
        self.model, self.given = model, shapes
        self.order = symbol_graph.topological_order(model.symbol.heads)
        symbol_graph.check_unique_names(self.order)
        # Read only, so not copied.
        self.params = {
            name: np.asarray(device.to_host(array.data), order="C") for name, array in model.params.items()
        }
        self.opset, self.dtype, self.functions = opset, dtype, functions
        self.values: dict[tuple, Value] = {}
        self.failures: list[tuple] = []
        self.notes: list[str] = []

    def run(self) -> Conversion:
        self._check_shapes()
        nodes = [node for node in self.order if not node.is_variable]
        self.lowerings = {id(node): lowering.find(*node.require_prop().lowered_as) for node in nodes}
        self.needed = self._reachable()
        try:
            self._infer()
        except MXNetError:
            self._refuse_unknown()  # says more than that a shape is missing
            raise
        found = [each.opset for key, each in self.lowerings.items() if each and key in self.needed]
        self.graph = Graph(self.opset or max([OLDEST, *found]), {} if self.functions else None)
        inputs = self.inputs = []
        for node in self.order:
            if id(node) not in self.needed:
                continue
            if node.is_variable:
                value = self._variable(node)
                if value.constant is None:
                    inputs.append(value)
            else:
                self._lower(node)
        self._raise_failures()
        outputs = [
            self._output(entry, name)
            for entry, name in zip(self.model.symbol.heads, self.model.output_names, strict=True)
        ]
        known = {value.name for value in inputs}
        dropped = [name for name in (*self.model.input_names, *self.model.label_names) if name not in known]
        if dropped:
            self.notes.append(f"inputs that inference does not read were left out: {', '.join(dropped)}")
        lengths = {value.name: self._open(value) for value in inputs}
        order = {name: i for i, name in enumerate(self.model.input_names)}
        inputs.sort(key=lambda value: order.get(value.name, len(order)))
        return Conversion(self.graph, inputs, lengths, outputs, self.notes)

    def _check_shapes(self):
        known = [*self.model.input_names, *self.model.label_names]
        for name, shape in self.given.items():
            if name not in known and name not in self.params:
                raise GraphError(
                    f"{self.model.source}: a shape is given for {name!r}, which is no input"
                    + (nearest(name, known) or f"; the inputs are {', '.join(self.model.input_names)}")
                )
            if any(not isinstance(d, str) and d < 1 for d in shape):
                raise GraphError(
                    f"{self.model.source}: the lengths of {name} must be 1 or more, or names, got {shape}"
                )

    # -- what there is to do -----------------------------------------------------------------------------

    def _inputs(self, node) -> list:
        """``(entry, name)`` of the inputs that inference reads."""
        found = self.lowerings[id(node)]
        unused = found.unused if found else ()
        pairs = zip(node.inputs, node.input_names(), strict=True)
        return [(entry, name) for entry, name in pairs if name not in unused]

    def _reachable(self) -> set:
        reached, stack = set(), [node for node, _ in self.model.symbol.heads]
        while stack:
            node = stack.pop()
            if id(node) in reached:
                continue
            reached.add(id(node))
            if not node.is_variable:
                stack += [entry[0] for entry, _ in self._inputs(node)]
        return reached

    # -- shapes ------------------------------------------------------------------------------------------

    def _infer(self):
        trials = self._trials()
        self.trials = [self._shapes(trial) for trial in trials] if len(trials) == 1 else trials
        types = {name: array.dtype for name, array in self.params.items()}
        self.types = infer_types(self.order, types, self.dtype)

    def _shapes(self, given):
        fixed = {name: array.shape for name, array in self.params.items()}
        found = symbol_graph.infer_shapes(self.order, {**given, **fixed})
        for node in self.order:
            for index in range(node.num_outputs):
                shape = found[id(node)][index]
                if id(node) in self.needed and not symbol_graph.known(shape):
                    name = node.output_name(index)
                    raise GraphError(
                        f"{self.model.source}: the shape of {name} does not follow from the shapes given "
                        f"({symbol_graph.format_shape(shape)}); give those of all inputs, "
                        f"{', '.join(self.model.input_names)}"
                    )
        return found

    def _trials(self) -> list:
        """The shapes of one trial as they are given, or the inferred shapes of several."""
        letters = list(dict.fromkeys(d for shape in self.given.values() for d in shape if isinstance(d, str)))
        if not letters:
            return [self.given]
        found, error = self._try(letters)
        if len(found) == _TRIALS:
            return found
        hint = self._hint(letters)
        raise GraphError(
            f"{self.model.source}: {', '.join(letters)} cannot stay open{hint}: {error}"
        ) from error

    def _hint(self, letters) -> str:
        """Which lengths could stay open were the others fixed, if that is found by trying usual ones."""
        for side in _USUAL_LENGTHS:
            for letter in letters:
                if len(self._try([letter], dict.fromkeys(letters, side))[0]) == _TRIALS:
                    rest = ", ".join(other for other in letters if other != letter)
                    return f"; {letter} could, with {rest} fixed, at {side} for example" if rest else ""
        return ""

    def _try(self, letters, fixed=None):
        """Inferred shapes for several lengths of the open axes, and the last error."""
        batch = list(dict.fromkeys(shape[0] for shape in self.given.values() if shape))
        found, error = [], None
        for number, length in enumerate(_TRIAL_LENGTHS):
            lengths = dict(fixed or {})
            spatial = [letter for letter in letters if letter not in batch]
            # No two are ever as long as each other: a length is known by what it is in all trials.
            firsts = {each: 2 + number + i * len(_TRIAL_LENGTHS) for i, each in enumerate(batch)}
            lengths.update({letter: firsts[letter] for letter in letters if letter in firsts})
            lengths.update({letter: length + 64 * i for i, letter in enumerate(spatial)})
            given = {name: tuple(lengths.get(d, d) for d in shape) for name, shape in self.given.items()}
            try:
                found.append(self._shapes(given))
            except MXNetError as problem:
                error = problem
            if len(found) == _TRIALS:
                break
        return found, error

    def _shape(self, node, index):
        shapes = [trial[id(node)][index] for trial in self.trials]
        return tuple(d[0] if len(set(d)) == 1 else -1 for d in zip(*shapes, strict=True)), shapes

    def _open(self, value):
        given = self.given.get(value.name, ())
        return tuple(
            (given[i] if i < len(given) and isinstance(given[i], str) else None) if length == -1 else None
            for i, length in enumerate(value.shape)
        )

    # -- nodes -------------------------------------------------------------------------------------------

    def _variable(self, node) -> Value:
        shape, sizes = self._shape(node, 0)
        constant = self.params.get(node.name)
        value = Value(self.graph, node.name, self.types[id(node)][0], shape, constant)
        value.sizes = sizes
        self.values[id(node), 0] = value
        return value

    def _lower(self, node):
        prop, found = node.prop, self.lowerings[id(node)]
        self.graph.scope = node.name
        described = [self._shape(node, i) for i in range(node.num_outputs)]
        info = Lowered(
            node.name,
            prop.label,
            prop.params,
            prop,
            [shape for shape, _ in described],
            [[trial[id(node)][i] for i in range(node.num_outputs)] for trial in self.trials],
            self.types[id(node)],
            [entry[0].op for entry, _ in self._inputs(node)],
            self.inputs,
        )
        inputs = [self.values[id(entry[0]), entry[1]] for entry, _ in self._inputs(node)]
        try:
            results = self._folded(node, found, info, inputs) or self._written(node, found, info, inputs)
        except lowering.CannotLower as error:
            self.failures.append((node, prop, str(error)))
            results = []
        for i, (shape, sizes) in enumerate(described):
            value = results[i] if i < len(results) else None
            if value is None:  # of no use to inference, or not written
                value = Value(self.graph, f"{node.name}:{i}", self.types[id(node)][i])
                value.name = None
            if value.shape is None:
                value.shape, value.sizes = shape, sizes
            self.values[id(node), i] = value

    def _written(self, node, found, info, inputs):
        if found is None:
            raise lowering.CannotLower(_NO_LOWERING)
        if found.oldest > self.graph.opset:
            raise lowering.CannotLower(f"it needs opset {found.oldest} or later, got {self.graph.opset}")
        start = len(self.graph.nodes)
        if found.as_function:

            def body(g, *values):
                return found.function(g, info, *values)

            operator, users_type = info.prop.lowered_as
            name = (users_type or operator).removeprefix("_contrib_")
            results = self.graph.call(name, body, *inputs, doc=(type(info.prop).__doc__ or "").strip())
        else:
            results = found.function(self.graph, info, *inputs)
        results = list(results) if isinstance(results, tuple | list) else [results]
        fresh = {id(each) for each in self.graph.nodes[start:]}
        for i, value in enumerate(results):
            if value is not None and id(value.node) in fresh and value.shape is None:
                value.name = node.output_name(i)
        return results

    def _folded(self, node, found, info, inputs):
        """The outputs as arrays, where they follow from the parameters and from known shapes alone."""
        if not info.prop.reusable or not found or found.unused:
            return None
        arrays = []
        for (_, name), x in zip(self._inputs(node), inputs, strict=True):
            if x.constant is not None:
                arrays.append(x.constant)
            elif name in found.shape_only and -1 not in x.shape:
                arrays.append(np.broadcast_to(np.zeros((), x.dtype), x.shape))
            else:
                return None
        if any(-1 in shape for shape in info.shapes):
            return None
        size = sum(math.prod(s) * t.itemsize for s, t in zip(info.shapes, info.dtypes, strict=True))
        if size > max(_FOLDED_BYTES, sum(x.constant.nbytes for x in inputs if x.constant is not None)):
            return None
        results = []
        for i, array in enumerate(info.computed(*arrays)):
            results.append(Value(self.graph, node.output_name(i), array.dtype, array.shape, array))
            results[-1].sizes = [array.shape] * len(self.trials)
        return results

    def _output(self, entry, name) -> Value:
        value = self.values[id(entry[0]), entry[1]]
        if value.name is None:
            raise GraphError(f"{self.model.source}: output {name} cannot be written as ONNX")
        if value.node is None or value.name != name:
            self.graph.scope = ""
            same = self.graph.Identity(value)
            same.shape, same.sizes, same.name = value.shape, value.sizes, name
            return same
        return value

    def _refuse_unknown(self):
        """Raise if operators have no lowering."""
        for node in self.order:
            if id(node) in self.needed and not node.is_variable and self.lowerings[id(node)] is None:
                self.failures.append((node, node.prop, _NO_LOWERING))
        self._raise_failures()

    def _raise_failures(self):
        # Once a name is missing, what reads it fails too; only the first in each line is of interest.
        if not self.failures:
            return
        lines = [f"  {prop.label}: {reason}" for _, prop, reason in self.failures]
        left = self._outputs_without({id(node) for node, _, _ in self.failures})
        if left:
            lines.append(f"  Outputs that need none of them: {', '.join(left)} (outputs=, or --outputs)")
        raise GraphError(
            f"{self.model.source}: {len(self.failures)} of {len(self.order)} nodes cannot be written as "
            "ONNX:\n" + "\n".join(lines)
        )

    def _outputs_without(self, failed) -> list:
        """Names of the outputs that none of these nodes, given by ``id``, leads to."""
        spoiled = set()
        for node in self.order:
            below = () if node.is_variable else (entry[0] for entry, _ in self._inputs(node))
            if id(node) in failed or any(id(child) in spoiled for child in below):
                spoiled.add(id(node))
        heads = zip(self.model.symbol.heads, self.model.output_names, strict=True)
        return [name for (node, _), name in heads if id(node) not in spoiled]
