"""The Symbol class: one or several outputs of a graph, and everything a user does with them."""

import math
import numbers
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes, registry
from ..errors import FormatError, GraphError, InputError, nearest
from ..ndarray import files
from ..ndarray.html import table
from ..shapes import from_user, to_user
from . import json_format
from . import nodes as graph
from .naming import HIDDEN_KEYS, AttrScope, NameManager, hidden_key
from .nodes import Node

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from .executor import Executor

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "var",
    "zeros",
]


class Symbol:
    """Outputs of a symbolic graph. Made by :func:`Variable`, by operators and by :func:`Group`."""

    __slots__ = ("_heads",)
    __array_priority__ = 1000.0  # a NumPy scalar on the left lets our reflected operators run

    def __init__(self, heads):
        self._heads = list(heads)

    # -- looking at it -------------------------------------------------------------------------------

    @property
    def heads(self) -> list:
        """The entries ``(node, output number)`` that this symbol stands for."""
        return self._heads

    def _order(self):
        return graph.topological_order(self._heads)

    @property
    def name(self) -> str | None:
        """The name of the node, or None for a group."""
        nodes = {id(node): node for node, _ in self._heads}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def _repr_html_(self):
        """A table of the nodes, for notebooks."""
        rows = [
            (node.name, node.op, ", ".join(child.name for child, _ in node.inputs))
            for node in graph.topological_order(self.heads)
            if not node.is_variable
        ]
        more = f", the first 100 of {len(rows)}" if len(rows) > 100 else ""
        caption = f"Symbol {', '.join(self.list_outputs()[:10])}{more}"
        return table(rows[:100], ("node", "operator", "inputs"), caption)

    def __repr__(self):
        if self.name is not None:
            return f"<Symbol {self.name}>"
        return f"<Symbol group [{', '.join(node.name for node, _ in self._heads)}]>"

    def list_arguments(self) -> list[str]:
        """Names of the variables that are inputs or parameters, in graph order."""
        return [node.name for node in graph.argument_nodes(self._order())]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the variables that operators keep for themselves, such as moving averages."""
        return [node.name for node in graph.auxiliary_nodes(self._order())]

    def list_inputs(self) -> list[str]:
        """Names of all variables, auxiliary ones too."""
        return [node.name for node in self._order() if node.is_variable]

    def list_outputs(self) -> list[str]:
        """Names of the outputs: ``fc1_output``."""
        return [node.output_name(index) for node, index in self._heads]

    @property
    def num_outputs(self) -> int:
        """How many outputs it has; those of a group are counted together."""
        return len(self._heads)

    def __len__(self):
        return len(self._heads)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        raise GraphError("a Symbol has no truth value; compare with `is` or bind it first")

    def __contains__(self, name):
        return name in self.list_outputs()

    def __getitem__(self, index):
        """One output by number or name, or several by a slice."""
        if isinstance(index, str):
            names = self.list_outputs()
            found = [i for i, name in enumerate(names) if name == index]
            found = found or [i for i, (node, _) in enumerate(self._heads) if node.name == index]
            if len(found) != 1:
                problem = "is not an output" if not found else f"names {len(found)} outputs"
                raise GraphError(f"{self!r}: {index!r} {problem}{nearest(index, names)}")
            index = found[0]
        if isinstance(index, slice):
            heads = self._heads[index]
            if not heads:
                raise IndexError(f"{self!r}: the slice holds no outputs")
            return Symbol(heads)
        try:
            return Symbol([self._heads[index]])
        except IndexError:
            raise IndexError(f"{self!r} has {len(self)} outputs, index {index} is out of range") from None

    def get_internals(self) -> "Symbol":
        """All outputs of all nodes as one group: ``net.get_internals()["conv1_output"]``."""
        return Symbol((node, i) for node in self._order() for i in range(node.num_visible))

    def _gen_atomic_symbol(self) -> "Symbol":
        """The operator of the node by itself, with variables for its inputs; MXNet's name for it."""
        node = self._node()
        fresh = Node(node.op, node.name, dict(node.attrs), prop=node.require_prop())
        fresh.inputs = _entries(fresh, [], {})
        fresh.annotate_inputs()
        return Symbol((fresh, i) for i in range(fresh.num_visible))

    def get_children(self) -> "Symbol | None":
        """The inputs of the node (of each node of a group), or None for a variable."""
        nodes = {id(node): node for node, _ in self._heads}
        heads = [entry for node in nodes.values() for entry in node.inputs]
        return Symbol(heads) if heads else None

    # -- attributes ----------------------------------------------------------------------------------

    def _node(self) -> Node:
        node = self._heads[0][0]
        if any(other is not node for other, _ in self._heads):
            raise GraphError(f"{self!r}: attributes belong to one node, not to a group")
        return node

    def attr(self, key: str) -> str | None:
        """One attribute of the node, or None."""
        return self._node().attrs.get(hidden_key(key))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node; those like ``__lr_mult__`` under both of their names."""
        if recursive:
            raise GraphError("Symbol.list_attr: recursive=True is not offered, nor by MXNet; use attr_dict()")
        return _both_names(self._node().attrs)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes of every node that has any, by node name."""
        return {node.name: _both_names(node.attrs) for node in self._order() if node.attrs}

    def _set_attr(self, **attributes: str) -> None:
        node = self._node()
        for key, value in attributes.items():
            if not isinstance(value, str):
                raise GraphError(f"{self!r}: attribute {key} must be a string, got {value!r}")
            if not hidden_key(key).startswith("__"):
                raise GraphError(f"{self!r}: attribute {key!r} must be of the form __{key}__")
            node.attrs[hidden_key(key)] = value

    # -- shapes and types ----------------------------------------------------------------------------

    def _given(self, what, args, kwargs, convert):
        order = self._order()
        names = [node.name for node in graph.argument_nodes(order)]
        if args and kwargs:
            raise GraphError(f"{what}: give the inputs by position or by name, not both")
        if len(args) > len(names):
            raise GraphError(f"{what}: {len(args)} values for {len(names)} arguments")
        given = dict(zip(names, args, strict=False)) if args else kwargs
        every = {node.name for node in order if node.is_variable}
        for name in given:
            if name not in every:
                raise GraphError(f"{what}: {name!r} is not an input of the graph{nearest(name, every)}")
        return order, {n: convert(f"{what}: {n}", value) for n, value in given.items() if value is not None}

    def _infer_shapes(self, args, kwargs):
        order, given = self._given("infer_shape", args, kwargs, _shape_given)
        return order, graph.infer_shapes(order, {n: s for n, s in given.items() if s is not None})

    def infer_shape(self, *args, **kwargs):
        """Shapes of arguments, outputs and auxiliary states, from those given.

        Entries that are 0 or -1 are unknown. Where the given shapes do not decide all others, warns and
        gives ``(None, None, None)``; where they contradict each other, raises with the node's name.
        """
        order, shapes = self._infer_shapes(args, kwargs)
        missing = [
            (node.name, shapes[id(node)][0])
            for node in order
            if node.is_variable and not graph.known(shapes[id(node)][0])
        ]
        if missing or not all(graph.known(shapes[id(n)][i]) for n, i in self._heads):
            listed = ", ".join(f"{name}: {graph.format_shape(shape)}" for name, shape in missing)
            warnings.warn(f"infer_shape: not decided by the given shapes: {listed}", stacklevel=2)
            return None, None, None
        return self._lists(order, shapes, to_user)

    def infer_shape_partial(self, *args, **kwargs):
        """As :meth:`infer_shape`, with ``()`` for what is unknown and 0 for unknown entries.

        Under :class:`~roiops.shapes.np_shape` these are None and -1.
        """
        return self._lists(*self._infer_shapes(args, kwargs), to_user)

    def _lists(self, order, found, public):
        """What was found of arguments, outputs and auxiliary states, each as ``public`` makes it."""
        return (
            [public(found[id(node)][0]) for node in graph.argument_nodes(order)],
            [public(found[id(node)][i]) for node, i in self._heads],
            [public(found[id(node)][0]) for node in graph.auxiliary_nodes(order)],
        )

    def infer_type(self, *args, **kwargs):
        """Dtypes of arguments, outputs and auxiliary states; ``(None, None, None)`` if not decided."""
        lists = self.infer_type_partial(*args, **kwargs)
        if any(t is None for each in lists for t in each):
            return None, None, None
        return lists

    def infer_type_partial(self, *args, **kwargs):
        """As :meth:`infer_type`, with None for what is not decided."""
        order, given = self._given("infer_type", args, kwargs, dtypes.number_type)
        types = graph.infer_types(order, given)
        return self._lists(order, types, lambda dtype: None if dtype is None else dtype.type)

    # -- composing -----------------------------------------------------------------------------------

    def __call__(self, *args, name: str | None = None, **kwargs) -> "Symbol":
        """A copy in which variables are replaced by other symbols: ``net(data=features)``.

        Positional symbols replace the arguments in order.
        """
        given = dict(kwargs)
        if args:
            names = self.list_arguments()
            if len(args) > len(names):
                raise GraphError(f"{self!r}: {len(args)} inputs given, it has {len(names)} arguments")
            given = {**dict(zip(names, args, strict=False)), **kwargs}
        order = self._order()
        variables = {node.name for node in order if node.is_variable}
        replaced = {}
        for key, value in given.items():
            if key not in variables:
                raise GraphError(f"{self!r}: {key!r} is not an argument{nearest(key, variables)}")
            if not isinstance(value, Symbol) or len(value) != 1:
                raise GraphError(f"{self!r}: {key} must be a Symbol of one output, got {value!r}")
            replaced[key] = value._heads[0]
        copies: dict[int, Node] = {}

        def moved(entry):
            node, index = entry
            return replaced.get(node.name, entry) if node.is_variable else (copies[id(node)], index)

        for node in order:
            if not node.is_variable:
                copies[id(node)] = node.copy(map(moved, node.inputs))
        result = Symbol(map(moved, self._heads))
        if name is not None:
            result._node().name = name
        return result

    def __copy__(self):
        copies: dict[int, Node] = {}
        for node in self._order():
            copies[id(node)] = node.copy((copies[id(source)], index) for source, index in node.inputs)
        return Symbol((copies[id(node)], index) for node, index in self._heads)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        return load_json, (self.tojson(),)

    # -- saving --------------------------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet's JSON; without the casts of mixed precision, unless they are asked for."""
        return json_format.dump(_without_amp_casts(self._heads) if remove_amp_cast else self._heads)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write :meth:`tojson` to a file."""
        with files.replacing(fname) as file:
            file.write(self.tojson(remove_amp_cast).encode())

    def debug_str(self) -> str:
        """The nodes, their inputs and attributes, in MXNet's words."""
        order = self._order()
        if len(self.heads) == 1 and not order[0].is_variable and len(order) == 1:
            return f"AtomicFunctor  Op:{order[0].op}\n"
        if len(order) == 1:
            return f"Variable:{order[0].name}\n"
        auxiliary = {id(node) for node in graph.auxiliary_nodes(order)}
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{i}]={node.name}({index})" for i, (node, index) in enumerate(self.heads)]
        for node in order:
            if node.is_variable:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["-" * 20, f"Op:{node.op}, Name={node.name}", "Inputs:"]
            for i, (child, index) in enumerate(node.inputs):
                version = f" version={int(id(child) in auxiliary)}" if child.is_variable else ""
                lines.append(f"\targ[{i}]={child.name}({index}){version}")
            if node.attrs:
                lines += ["Attrs:", *(f"\t{key}={node.attrs[key]}" for key in sorted(node.attrs))]
        return "\n".join(lines) + "\n"

    # -- running -------------------------------------------------------------------------------------

    def bind(
        self,
        ctx,
        args,
        args_grad=None,
        grad_req="write",
        aux_states=None,
        group2ctx=None,
        shared_exec=None,
    ) -> "Executor":
        """An :class:`~roiops.executor.Executor` over the given arrays.

        Parameters
        ----------
        ctx : Context
            Where it runs.
        args : list or dict of NDArray
            All arguments; arrays are used as they are, not copied, but for those that cannot be written.
        args_grad : list or dict of NDArray, optional
            Where gradients go; arguments left out get none.
        grad_req : str, list or dict
            ``"write"``, ``"add"`` or ``"null"``, for all or for each argument.
        aux_states : list or dict of NDArray, optional
            Auxiliary states.
        group2ctx : dict of str to Context, optional
            Where the nodes of each ``ctx_group`` are. These devices must share memory, as CPUs do.
        shared_exec : optional
            Accepted for MXNet's sake: the memory between the operators is the executor's own.
        """
        return _executors().bind(self._heads, ctx, args, args_grad, grad_req, aux_states, group2ctx)

    def simple_bind(
        self,
        ctx=None,
        grad_req="write",
        type_dict=None,
        stype_dict=None,
        group2ctx=None,
        shared_arg_names=None,
        shared_exec=None,
        shared_buffer=None,
        **kwargs,
    ) -> "Executor":
        """Infer all shapes from those given, allocate every array, and bind.

        Parameters
        ----------
        ctx : Context, optional
            Where it runs; the current context unless given.
        grad_req : str, list or dict
            ``"write"``, ``"add"`` or ``"null"``, for all or for each argument.
        type_dict : dict of str to dtype, optional
            Dtypes of inputs; float32 where nothing decides otherwise.
        group2ctx : dict of str to Context, optional
            Where the nodes and arrays of each ``ctx_group`` are. These devices must share memory, as CPUs do.
        shared_exec : Executor, optional
            Where a ``shared_buffer`` is given, too, as in MXNet: lends its auxiliary states and the arguments
            in ``shared_arg_names``, with their gradients, where shape and dtype agree.
        shared_arg_names : list of str, optional
            What ``shared_exec`` lends.
        shared_buffer : dict, optional
            Arrays by name: the executor takes the memory of those that are large enough, and adds those that
            it had to make. Auxiliary states are not in it.
        stype_dict : optional
            Accepted for MXNet's sake.
        **kwargs : tuple of int
            Shapes of inputs by name.
        """
        # Like MXNet, pass over what neither is an input nor could be a shape.
        inputs = self.list_inputs()
        kwargs = {k: v for k, v in kwargs.items() if k in inputs or isinstance(v, list | tuple)}
        _, given = self._given("simple_bind", (), kwargs, _shape_given)
        explicit = {name: graph.whole_sizes(f"simple_bind: {name}", shape) for name, shape in kwargs.items()}
        given = {name: shape for name, shape in given.items() if shape is not None}
        shared = None if shared_buffer is None else shared_exec
        return _executors().simple_bind(
            self._heads,
            ctx,
            grad_req,
            type_dict,
            given,
            explicit,
            shared,
            shared_arg_names or (),
            shared_buffer,
            group2ctx,
        )

    def eval(self, ctx=None, **kwargs) -> "list[NDArray]":
        """Bind to the given arrays without gradients, run forward, and return the outputs."""
        return self.bind(ctx, kwargs, grad_req="null").forward()

    # -- arithmetic ----------------------------------------------------------------------------------

    def __neg__(self):
        return self.__mul__(-1.0)

    def __abs__(self):
        return _apply("abs", self)

    if TYPE_CHECKING:  # ``_INFIX`` puts them here

        def _infix(self, other: Any) -> "Symbol": ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _infix
        __mod__ = __rmod__ = __pow__ = __rpow__ = __gt__ = __ge__ = __lt__ = __le__ = _infix

    __hash__ = object.__hash__

    # -- operators as methods ------------------------------------------------------------------------

    def reshape(self, *shape, **kwargs) -> "Symbol":
        """The operator ``Reshape``; the shape may be given as a tuple or as numbers."""
        if shape and "shape" not in kwargs:
            kwargs["shape"] = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return _apply("Reshape", self, **kwargs)

    def split_v2(self, *args, **kwargs) -> "Symbol":
        """The function :func:`split_v2`."""
        return split_v2(self, *args, **kwargs)

    def astype(self, dtype, **kwargs) -> "Symbol":
        """The operator ``Cast``."""
        return _apply("Cast", self, dtype=dtype, **kwargs)

    def __getattr__(self, name):
        # Every operator whose public name is in lower case is a method: x.sum(axis=1), x.transpose().
        if name.startswith("_") or not name.islower() or registry.find(name) is None:
            raise AttributeError(_no_attribute(name))

        def method(*args, **kwargs):
            return _apply(name, self, *args, **kwargs)

        return method


#: Attributes of arrays and executors that users look for here.
_OF_VALUES = (
    *("asnumpy", "asscalar", "backward", "context", "dtype", "forward", "outputs", "shape", "size"),
    *("as_in_context", "as_nd_ndarray", "copy", "detach", "gradient", "wait_to_read"),
)
_OF_BACKENDS = ("get_backend_symbol", "optimize_for")


def _executors():
    """The module of executors, told what a symbol is; it is imported when the first graph is bound."""
    from . import executor

    executor.Executor.symbol_type = Symbol
    return executor


def _no_attribute(name: str) -> str:
    text = f"Symbol has no attribute {name!r}"
    if name in _OF_VALUES:
        return f"{text}: it holds no values; simple_bind, bind or eval give what does"
    if name in _OF_BACKENDS:
        return f"{text}: there are no backends; a graph is fused when it is bound"
    return text if name.startswith("_") else text + nearest(name, dir(Symbol))


def _both_names(attrs: dict[str, str]) -> dict[str, str]:
    shown = dict(attrs)
    for key in HIDDEN_KEYS:
        if f"__{key}__" in attrs:
            shown[key] = attrs[f"__{key}__"]
    return shown


def _shape_given(what: str, shape):
    """A shape as users give it, in the graph's terms."""
    return from_user(graph.whole_sizes(what, shape))


def _arithmetic(left: Symbol, right, op: str | None, scalar_op: str) -> Symbol:
    if isinstance(right, Symbol) and op is not None:
        return _apply(op, left, right)
    if isinstance(right, numbers.Number | np.number):
        return _apply(scalar_op, left, scalar=right)
    if op in ("_equal", "_not_equal"):  # Python compares identities
        return NotImplemented
    raise InputError(
        f"a Symbol goes with a Symbol or a number, got {type(right).__name__}; an array is given to a "
        "Variable when the graph is bound"
    )


#: Python's infix operators: MXNet's for two symbols, for symbol and number, and for number and symbol.
_INFIX = {
    "add": ("_Plus", "_PlusScalar", "_PlusScalar"),
    "sub": ("_Minus", "_MinusScalar", "_RMinusScalar"),
    "mul": ("_Mul", "_MulScalar", "_MulScalar"),
    "truediv": ("_Div", "_DivScalar", "_RDivScalar"),
    "mod": ("_Mod", "_ModScalar", "_RModScalar"),
    "pow": ("_Power", "_PowerScalar", "_rpower_scalar"),
    # Python reflects comparisons by itself.
    "eq": ("_equal", "_equal_scalar", None),
    "ne": ("_not_equal", "_not_equal_scalar", None),
    "gt": ("_greater", "_greater_scalar", None),
    "ge": ("_greater_equal", "_greater_equal_scalar", None),
    "lt": ("_lesser", "_lesser_scalar", None),
    "le": ("_lesser_equal", "_lesser_equal_scalar", None),
}


def _add_infix(name: str, op: str | None, scalar_op: str) -> None:
    def method(self, other):
        return _arithmetic(self, other, op, scalar_op)

    method.__name__, method.__qualname__ = name, f"Symbol.{name}"
    setattr(Symbol, name, method)


for _name, (_op, _scalar_op, _reflected) in _INFIX.items():
    _add_infix(f"__{_name}__", _op, _scalar_op)
    if _reflected is not None:
        _add_infix(f"__r{_name}__", None, _reflected)


def _apply(op: str, /, *args, **kwargs) -> Symbol:
    return invoke(registry.get(op), args, kwargs, hint=op)


def invoke(prop_class, args, kwargs, hint: str | None = None) -> Symbol:
    """Make a node of an operator: what ``sym.X(...)`` does."""
    kwargs = dict(kwargs)
    name = kwargs.pop("name", None)
    attr = kwargs.pop("attr", None)
    for key, value in list(kwargs.items()):
        # MXNet takes annotations beside the parameters: Convolution(..., lr_mult="2", __x__="y").
        annotation = key in HIDDEN_KEYS or (key.startswith("__") and key.endswith("__"))
        if annotation and key not in prop_class.param.fields and not isinstance(value, Symbol):
            attr = {**(attr or {}), key: str(kwargs.pop(key))}
    positional, named, params = registry.split_arguments(prop_class, args, kwargs, _is_symbol, "a Symbol")
    op_name = prop_class.name
    name = NameManager.current().get(name, _hint(hint or op_name))
    if prop_class.variadic:
        for symbol in positional:
            if len(symbol) != 1:
                positional = [entry for each in positional for entry in each]
                break
        params.setdefault(prop_class.variadic, len(positional) + len(named))
    label = registry.node_label(op_name, name)
    prop = prop_class.create(params, label)
    attrs = {**AttrScope.current().get(_attribute_texts(attr, label)), **param_strings(prop, params)}
    node = Node(op_name, name, attrs, prop=prop)
    node.inputs = _entries(node, positional, named)
    node.annotate_inputs()
    return Symbol((node, i) for i in range(prop.num_visible_outputs))


def _is_symbol(value) -> bool:
    return isinstance(value, Symbol)


def _hint(name: str) -> str:
    return registry.name_in_namespace(name).lower()


def _without_amp_casts(heads) -> list:
    """The heads of a graph in which what takes a result of amp_cast or amp_multicast takes its input.

    A head that is such a cast stays, as in MXNet.
    """
    order = graph.topological_order(heads)
    casts = ("amp_cast", "amp_multicast")
    if not any(node.op in casts for node in order):
        return heads
    copies: dict[int, Node] = {}

    def taken(entry):
        copy = copies[id(entry[0])]
        return copy.inputs[entry[1]] if copy.op in casts else (copy, entry[1])

    for node in order:
        copies[id(node)] = node.copy(map(taken, node.inputs))
    return [(copies[id(node)], i) for node, i in heads]


def _attribute_texts(attributes, label):
    """Attributes of a node as a graph has them; an initializer becomes its text."""
    texts = {}
    for key, value in (attributes or {}).items():
        if key == "__init__" and hasattr(value, "dumps"):
            value = value.dumps()
        if not isinstance(value, str):
            raise GraphError(f"{label}: attribute {key} must be a string, got {value!r}")
        texts[key] = value
    return texts


def param_strings(prop, given) -> dict[str, str]:
    """What a saved graph holds of the parameters: those given, and those that are not the default.

    A plain value given by the user is kept as ``str`` of it, as MXNet does: 1 stays ``"1"`` for a float.
    """
    if not prop.params.fields:
        return {key: str(value) for key, value in given.items()}
    needed, values, strings = prop.params.to_strings(), prop.params.to_dict(), {}
    for key, value in prop.params.to_strings(defaults=True).items():
        parsed = values[key]
        # One number that stands for several, and NumPy's other names of dtypes, MXNet does not read.
        spread = isinstance(given.get(key), int) and isinstance(parsed, tuple) and len(parsed) > 1
        if _is_plain(given.get(key)) and not spread and not isinstance(parsed, np.dtype):
            strings[key] = str(given[key])
        elif key in given or key in needed:
            strings[key] = value
    return strings


def _is_plain(value) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return type(value) in (str, int, float, bool)


def _entries(node: Node, positional, named) -> list:
    """The input entries of a new node; missing ones become variables ``<node>_<argument>``."""
    names = node.input_names()
    given = registry.bind_inputs(node.prop.label, names, positional, named, GraphError)
    entries = []
    for key in names:
        value = given.get(key)
        if value is None:
            # Like MXNet, hand the node's attributes down, so that lr_mult reaches its weights.
            entries.append((Node(None, f"{node.name}_{key}", dict(node.attrs)), 0))
        elif len(value) != 1:
            raise GraphError(f"{node.prop.label}: {key} must be a Symbol of one output, got {value!r}")
        else:
            entries.append(value._heads[0])
    return entries


def _type_code(variable: str, dtype) -> str:
    """MXNet's number for a dtype, as text."""
    return str(dtypes.NAMES.index(dtypes.number_type(f"Variable({variable}): dtype", dtype).name))


def _shape_text(variable: str, shape) -> str:
    """The shape as JSON files have it, with NumPy's integers as Python's."""
    try:
        entries = tuple(shape) if np.iterable(shape) else (shape,)
        return str(tuple(operator.index(d) for d in entries))
    except TypeError:
        raise GraphError(f"Variable({variable}): shape must be a tuple of integers, got {shape!r}") from None


_STORAGE_TYPES = {"default": "0", "row_sparse": "1", "csr": "2"}

# -- module functions ------------------------------------------------------------------------------------


def Variable(
    name: str,
    attr: dict | None = None,
    shape=None,
    lr_mult=None,
    wd_mult=None,
    dtype=None,
    init=None,
    stype=None,
    profiler_scope=None,
    **kwargs,
) -> Symbol:
    """A named input of a graph.

    Parameters
    ----------
    name : str
        Its name, under which arrays are bound.
    attr : dict of str, optional
        Further attributes.
    shape, dtype, init : optional
        What binding should take it to be, and how a module should fill it.
    lr_mult, wd_mult : float, optional
        Factors on the learning rate and the weight decay.
    """
    if not isinstance(name, str) or not name:
        raise GraphError(f"Variable: name must be a string that is not empty, got {name!r}")
    attributes = AttrScope.current().get(_attribute_texts(attr, f"Variable({name})"))
    if shape is not None:
        attributes["__shape__"] = _shape_text(name, shape)
    if lr_mult is not None:
        attributes["__lr_mult__"] = str(lr_mult)
    if wd_mult is not None:
        attributes["__wd_mult__"] = str(wd_mult)
    if dtype is not None:
        attributes["__dtype__"] = _type_code(name, dtype)
    if init is not None:
        attributes["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        if stype not in _STORAGE_TYPES:
            known = ", ".join(_STORAGE_TYPES)
            raise GraphError(f"Variable({name}): stype must be one of {known}, got {stype!r}")
        attributes["__storage_type__"] = _STORAGE_TYPES[stype]
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise GraphError(f"Variable({name}): attribute {key!r} must be of the form __{key}__")
        attributes[key] = str(value)
    return Symbol([(Node(None, name, attributes), 0)])


var = Variable


def Group(symbols) -> Symbol:
    """Several symbols as one of several outputs."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise GraphError("Group: needs a list of at least one Symbol")
    return Symbol(entry for symbol in symbols for entry in symbol.heads)


def load_json(json_str: str) -> Symbol:
    """The symbol in MXNet's JSON, of any era."""
    if not isinstance(json_str, str):
        raise GraphError(f"load_json: needs a string, got {type(json_str).__name__}")
    return Symbol(json_format.parse(json_str))


def load(fname: str) -> Symbol:
    """The symbol in a file that ``save`` or MXNet wrote."""
    return Symbol(json_format.parse(read_text(fname), str(fname)))


def read_text(fname) -> str:
    """The text of a symbol's file; a file of parameters, or one that is not there, is an error of ours."""
    with files.open_file(fname) as file:
        raw = file.read()
    if raw.startswith(files.MAGIC):
        raise FormatError(
            f"{fname}: holds parameters, not a graph, which is a file such as model-symbol.json"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{fname}: not a saved symbol, which is JSON: byte {error.start} is not UTF-8 text"
        ) from None


def zeros(shape, dtype=None, **kwargs) -> Symbol:
    """A constant of zeros."""
    return _apply("_zeros", shape=shape, dtype=dtype or "float32", **kwargs)


def ones(shape, dtype=None, **kwargs) -> Symbol:
    """A constant of ones."""
    return _apply("_ones", shape=shape, dtype=dtype or "float32", **kwargs)


def full(shape, val, dtype=None, **kwargs) -> Symbol:
    """A constant of one value."""
    return _apply("_full", shape=shape, value=float(val), dtype=dtype or "float32", **kwargs)


def arange(
    start, stop=None, step=1.0, repeat: int = 1, infer_range: bool = False, name=None, dtype=None
) -> Symbol:
    """Evenly spaced numbers from ``start`` up to but not with ``stop``, each ``repeat`` times."""
    params = {"start": start, "stop": stop, "step": step, "repeat": repeat, "infer_range": infer_range}
    return _apply("_arange", dtype=dtype or "float32", name=name, **params)


def linspace(start, stop, num: int, endpoint: bool = True, name=None, dtype=None) -> Symbol:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which is left out without ``endpoint``."""
    params = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
    return _apply("_linspace", dtype=dtype or "float32", name=name, **params)


def eye(N: int, M: int = 0, k: int = 0, dtype=None, **kwargs) -> Symbol:
    """A matrix of zeros with ones on diagonal ``k``; as many columns as rows unless ``M`` says otherwise."""
    return _apply("_eye", N=N, M=M, k=k, dtype=dtype or "float32", **kwargs)


def split_v2(ary: Symbol, indices_or_sections, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Cut into equal sections, or at the given indices."""
    # MXNet reads no graph that lacks the indices.
    indices, sections = (), indices_or_sections
    if isinstance(indices_or_sections, tuple):
        indices, sections = (0, *indices_or_sections), 0
    elif not isinstance(indices_or_sections, int):
        raise ValueError("indices_or_sections must either int or tuple of ints")
    return _apply("_split_v2", ary, indices=indices, axis=axis, squeeze_axis=squeeze_axis, sections=sections)


def histogram(a: Symbol, bins=10, range=None) -> Symbol:
    """How many entries fall into each bin, and the edges of the bins, which ``bins`` counts or holds."""
    if isinstance(bins, Symbol):
        return _apply("_histogram", a, bins)
    if not isinstance(bins, int):
        raise ValueError("bins argument should be either an integer or an NDArray")
    if range is None:
        raise ValueError("null range is not supported in symbol mode")
    return _apply("_histogram", a, bin_cnt=bins, range=range)


def _either(scalar_function, op: str, left_op: str, right_op: str):
    """A function of two arguments of which one or both may be numbers."""

    def function(left, right):
        if isinstance(left, Symbol):
            return _arithmetic(left, right, op, left_op)
        if isinstance(right, Symbol):
            return _arithmetic(right, left, None, right_op)
        return scalar_function(left, right)

    function.__name__ = function.__qualname__ = scalar_function.__name__
    function.__doc__ = f"``{scalar_function.__name__}`` of two symbols, or of a symbol and a number."
    return function


maximum = _either(max, "_Maximum", "_MaximumScalar", "_MaximumScalar")
minimum = _either(min, "_Minimum", "_MinimumScalar", "_MinimumScalar")
hypot = _either(math.hypot, "_Hypot", "_HypotScalar", "_HypotScalar")
pow = power = _either(operator.pow, "_Power", "_PowerScalar", "_RPowerScalar")
