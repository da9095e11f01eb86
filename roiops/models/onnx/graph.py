"""A graph of ONNX operators while it is being built. It knows ONNX's names, but not the onnx package.

    y = g.Relu(g.Conv(x, weight, bias, pads=[1, 1, 1, 1]))
    z = g.Where(y > 0, y, g.cast(mask, y.dtype) * 2)

Every operator is a method; its inputs are values, NumPy arrays, or numbers, which take the dtype of the first
value beside them. A method with ``outputs=n`` gives ``n`` values.
"""

import numpy as np

from ...operators.lowering import CannotLower

__all__ = ["Function", "Graph", "Node", "Value"]

#: Operators whose result has a dtype of its own; of all others it is that of the first input.
_RESULTS = {
    **dict.fromkeys(("Shape", "Size", "NonZero", "ArgMax", "ArgMin", "NonMaxSuppression"), np.int64),
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"), np.bool_),
    **dict.fromkeys(("And", "Or", "Xor", "Not", "IsNaN", "IsInf"), np.bool_),
}
#: The last index there is, for slices that go to the end.
END = np.iinfo(np.int64).max


class Value:
    """An array of the graph. Arithmetic and comparisons make nodes.

    ``shape`` holds -1 for what is not known before the model runs; None where nothing is known. ``constant``
    is the array itself where it is known now.
    """

    __slots__ = ("constant", "dtype", "graph", "name", "node", "shape", "sizes")
    __array_ufunc__ = None  # NumPy leaves arithmetic with a value to it

    def __init__(self, graph, name, dtype, shape=None, constant=None, node=None):
        self.graph, self.name, self.node = graph, name, node
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape, self.constant = shape, constant
        #: The shape in each of the trials that tell which lengths are open.
        self.sizes = None

    def __repr__(self):
        return f"<Value {self.name} {self.shape} {self.dtype}>"

    @property
    def ndim(self) -> int:
        """The number of axes, known or of the graph's own shapes."""
        if self.shape is None:
            raise CannotLower(f"the number of dimensions of {self.name} is not known")
        return len(self.shape)

    def equals(self, other):
        """Whether the entries are equal."""
        return self.graph.Equal(self, other)

    def __neg__(self):
        return self.graph.Neg(self)

    def __invert__(self):
        return self.graph.Not(self)


#: Python's infix operators as ONNX's.
_INFIX = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "truediv": "Div",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "and": "And",
    "or": "Or",
}
_REFLECTED = "add", "sub", "mul", "truediv"

for _name, _op in _INFIX.items():
    setattr(Value, f"__{_name}__", lambda self, other, op=_op: self.graph.add(op, (self, other)))
    if _name in _REFLECTED:
        setattr(Value, f"__r{_name}__", lambda self, other, op=_op: self.graph.add(op, (other, self)))


class Node:
    """An operator applied to values; ``function`` is the local one that it calls, if any."""

    __slots__ = ("attributes", "function", "inputs", "name", "op", "outputs")

    def __init__(self, op, name, inputs, attributes, function=None):
        self.op, self.name, self.inputs, self.attributes = op, name, inputs, attributes
        self.function, self.outputs = function, []


class Function:
    """A function of the model: a graph of its own, whose constants are inside."""

    def __init__(self, name, doc, inputs, graph, outputs):
        self.name, self.doc, self.inputs, self.graph, self.outputs = name, doc, inputs, graph, outputs

    def key(self):
        """What two calls must share to share one function."""
        numbers, lines = {}, []

        def number(value):
            return None if value is None else numbers.setdefault(id(value), len(numbers))

        for value in self.inputs:
            number(value)
        for array in self.graph.constants.values():
            lines.append((number(array), array.dtype, array.constant.shape, array.constant.tobytes()))
        for node in self.graph.nodes:
            ends = tuple(map(number, node.inputs)), tuple(map(number, node.outputs))
            lines.append((node.op, *ends, repr(sorted(node.attributes.items()))))
        return self.name, len(self.inputs), tuple(lines), tuple(map(number, self.outputs))


class Graph:
    """The nodes of a model or of one of its functions, in order."""

    def __init__(self, opset: int, functions: dict | None = None):
        self.opset = opset
        self.nodes: list[Node] = []
        #: Arrays that lowerings made, by content.
        self.constants: dict[tuple, Value] = {}
        #: The functions of the model, by content; None where compositions are written out.
        self.functions = functions
        #: What the names of new nodes and values begin with: the node that is being written.
        self.scope = ""
        self._counts: dict[str, int] = {}

    def __getattr__(self, op):
        if not op[:1].isupper():
            raise AttributeError(op)

        def add(*inputs, outputs=1, **attributes):
            return self.add(op, inputs, outputs, attributes)

        return add

    def add(self, op, inputs, outputs=1, attributes=None, function=None):
        """A node of the operator ``op``: its value, or a tuple of them where there are several."""
        attributes = {name: value for name, value in (attributes or {}).items() if value is not None}
        like = next((x.dtype for x in inputs if isinstance(x, Value)), np.dtype(np.float32))
        values = [self._value(x, like) for x in inputs]
        while values and values[-1] is None:
            values.pop()
        node = Node(op, self._name(op), values, attributes, function)
        self.nodes.append(node)
        dtype = self._result(op, values, attributes)
        for i in range(outputs):
            suffix = f":{i}" if outputs > 1 else ""
            kind = np.dtype(np.int64) if op == "TopK" and i else dtype
            node.outputs.append(Value(self, node.name + suffix, kind, node=node))
        return node.outputs[0] if outputs == 1 else tuple(node.outputs)

    @staticmethod
    def _result(op, values, attributes):
        if op in _RESULTS:
            return np.dtype(_RESULTS[op])
        if op == "Cast":
            return attributes["to"]
        if op == "ConstantOfShape":
            return attributes["value"].dtype
        which = {"Where": 1, "OneHot": 2}.get(op, 0)
        return values[which].dtype if len(values) > which else None

    def _name(self, op):
        stem = f"{self.scope}/{op}" if self.scope else op
        count = self._counts[stem] = self._counts.get(stem, -1) + 1
        return f"{stem}_{count}" if count else stem

    def _value(self, x, like):
        if x is None or isinstance(x, Value):
            return x
        if isinstance(x, np.ndarray | np.generic):
            return self.constant(x)
        if like.kind in "iu" and x != int(x):
            raise CannotLower(f"it computes with {x:.6g}, which {like} cannot hold")
        return self.constant(np.asarray(x, like))

    # -- constants ---------------------------------------------------------------------------------------

    def constant(self, array) -> Value:
        """An array that is part of the model. One of equal content is made once."""
        array = np.asarray(array)
        array = np.ascontiguousarray(array).reshape(array.shape)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.constants:
            name = f"constant_{len(self.constants)}"
            self.constants[key] = Value(self, name, array.dtype, array.shape, array)
        return self.constants[key]

    def ints(self, *numbers) -> Value:
        """A one-dimensional int64 array: of a shape, of axes, of indices."""
        return self.constant(np.array(numbers, np.int64))

    def parameter(self, value: Value, array) -> Value:
        """A parameter of the model under its name, with other numbers."""
        return Value(self, value.name, array.dtype, array.shape, array)

    # -- types and shapes --------------------------------------------------------------------------------

    def cast(self, x: Value, dtype) -> Value:
        """``x`` in another dtype; itself where it has that already."""
        return x if x.dtype == dtype else self.Cast(x, to=np.dtype(dtype))

    def dim(self, x: Value, axis: int):
        """The length of an axis: a number where it is known, else a value of shape (1,)."""
        axis %= x.ndim
        if x.shape[axis] != -1:
            return x.shape[axis]
        return self.Shape(x, start=axis, end=axis + 1)

    def shape_of(self, *lengths) -> Value:
        """A shape from numbers and values of shape (1,)."""
        if all(isinstance(n, int | np.integer) for n in lengths):
            return self.ints(*lengths)
        parts, run = [], []
        for n in (*lengths, None):
            if isinstance(n, int | np.integer):
                run.append(n)
                continue
            if run:
                parts.append(self.ints(*run))
                run = []
            if n is not None:
                parts.append(n)
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def full(self, lengths, number, dtype) -> Value:
        """An array of one number; its shape is a value, or lengths as :meth:`shape_of` takes them."""
        shape = lengths if isinstance(lengths, Value) else self.shape_of(*lengths)
        return self.ConstantOfShape(shape, value=np.array([number], dtype))

    def length(self, count, dtype=np.int64):
        """A length, as :meth:`dim` gives it, as a number of a dtype to compute with."""
        known = isinstance(count, int | np.integer)
        return np.dtype(dtype).type(count) if known else self.cast(count, dtype)

    def places(self, mask: Value) -> Value:
        """The indices of the entries that are true, a row each."""
        return self.Transpose(self.NonZero(mask), perm=[1, 0])

    def reshape(self, x: Value, *lengths) -> Value:
        """``x`` in another shape, whose lengths are numbers or values of shape (1,)."""
        return self.Reshape(x, self.shape_of(*lengths))

    def squeeze(self, x: Value, *axes: int) -> Value:
        """Without these axes of length 1."""
        return self.Squeeze(x, self.ints(*axes))

    def unsqueeze(self, x: Value, *axes: int) -> Value:
        """With new axes of length 1."""
        return self.Unsqueeze(x, self.ints(*axes))

    def slice(self, x: Value, axis: int, start, stop=END, step: int = 1) -> Value:
        """A range of indices along one axis; bounds are numbers or values of shape (1,)."""
        bounds = (self.ints(n) if isinstance(n, int | np.integer) else n for n in (start, stop))
        return self.Slice(x, *bounds, self.ints(axis), self.ints(step))

    def column(self, x: Value, index: int, axis: int = -1) -> Value:
        """One entry along an axis, which is lost."""
        return self.Gather(x, np.int64(index), axis=axis)

    def range(self, count) -> Value:
        """The int64 numbers below ``count``, a number or a value of shape (1,)."""
        if isinstance(count, int | np.integer):
            return self.constant(np.arange(count, dtype=np.int64))
        return self.Range(np.int64(0), self.squeeze(count, 0), np.int64(1))

    def reduce(self, kind: str, x: Value, axes, keepdims: bool = False) -> Value:
        """``ReduceSum``, ``ReduceMax`` and so on, whose axes became an input one by one over the opsets."""
        op, axes = f"Reduce{kind}", [int(a) for a in axes]
        if kind == "Sum" or self.opset >= 18:
            return self.add(op, (x, self.ints(*axes)), 1, {"keepdims": int(keepdims)})
        return self.add(op, (x,), 1, {"axes": axes, "keepdims": int(keepdims)})

    def split(self, x: Value, axis: int, sizes) -> tuple:
        """Pieces of these lengths along an axis."""
        if len(sizes) == 1:
            return (x,)
        return self.Split(x, self.ints(*sizes), axis=axis, outputs=len(sizes))

    def clip(self, x: Value, low, high) -> Value:
        """``x`` within bounds."""
        return self.Clip(x, *(None if n is None else self._value(n, x.dtype) for n in (low, high)))

    # -- functions ---------------------------------------------------------------------------------------

    def call(self, name: str, body, *inputs: Value, doc: str = ""):
        """What ``body(g, *inputs)`` writes; in a model with functions as one of them, equal ones once."""
        if self.functions is None:
            return body(self, *inputs)
        inner = Graph(self.opset, self.functions)
        formal = []
        for i, x in enumerate(inputs):
            value = Value(inner, f"input{i}", x.dtype, x.shape, x.constant)
            value.sizes = x.sizes
            formal.append(value)
        result = body(inner, *formal)
        results = list(result) if isinstance(result, tuple | list) else [result]
        results = [inner.Identity(r) if r in formal or r.node is None else r for r in results]
        function = Function(name, doc, formal, inner, results)
        key = function.key()
        if key in self.functions:
            function = self.functions[key]
        else:
            taken = {each.name for each in self.functions.values()}
            number = 2
            while function.name in taken:
                function.name = f"{name}_{number}"
                number += 1
            self.functions[key] = function
        values = self.add(function.name, inputs, len(results), function=function)
        values = (values,) if len(results) == 1 else values
        for value, inside in zip(values, results, strict=True):
            value.dtype = inside.dtype
        return values
