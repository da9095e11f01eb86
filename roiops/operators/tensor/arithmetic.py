"""Element-wise operators of two arrays, with and without broadcasting, and of an array and a scalar.

Each row of the table makes three operators. A gradient is ``(function, sources)``: the letters name its
arguments, ``g`` the head gradient, ``l`` and ``r`` the operands, ``o`` the output; the function None
hands its one argument on.
"""

import functools
from dataclasses import dataclass

import numpy as np

from ...dtypes import as_scalar, wide
from ...params import Field
from .. import arrays
from ..base import Following, GradientFree, variant
from .chain import ARITHMETIC, ChainOp, ChainProp, two_arrays
from .common import ElementwiseProp, declare


def _mod(l, r):
    # The remainder has the sign of the divisor, and a zero divisor gives 0. So it is in NumPy's mod, which
    # takes twice as long.
    rest = np.fmod(l, r)
    opposite = (rest != 0) & ((rest < 0) != (r < 0))
    return np.where(r == 0, 0, rest + np.where(opposite, r, 0))


@dataclass(frozen=True)
class Row:
    """One binary function: its operator names, what it computes, and its gradients."""

    elemwise: str
    broadcast: str
    scalar: str
    reflected: str
    words: str
    function: object
    #: What it is in ONNX: ``f(graph, l, r)``.
    onnx: object
    lhs: tuple | None = None
    rhs: tuple | None = None

    def gradients(self, dtype) -> tuple:
        """Those of both operands. A remainder of whole numbers is a step function to MXNet: zeros."""
        steps = self.function is _mod and dtype.kind != "f"
        return ((np.zeros_like, "g"),) * 2 if steps else (self.lhs, self.rhs)


def _named(name, words, function, onnx, lhs=None, rhs=None, reflected=False):
    """A row whose names follow from one."""
    old = name.title()  # in MXNet's first names
    first = old.replace("_", "")
    scalar = f"_{name}_scalar _{first}Scalar"
    other = f"_r{name}_scalar _R{first}Scalar" if reflected else ""
    return Row(f"_{name} _{old}", f"broadcast_{name}", scalar, other, words, function, onnx, lhs, rhs)


def _comparison(name, sign, function, op, opposite=False):
    def compare(g, l, r):
        found = g.add(op, (l, r))
        return g.cast(~found if opposite else found, l.dtype)

    return _named(name, f"1 where {{l}} {sign} {{r}}, else 0", function, compare)


def _logic(name, words, function):
    def combine(g, l, r):
        return g.cast(g.add(name.title(), (~l.equals(0), ~r.equals(0))), l.dtype)

    return _named(f"logical_{name}", words, function, combine)


def _onnx_mod(g, l, r):
    if l.dtype.kind != "f":
        return g.Mod(l, r)
    rest = g.Mod(l, r, fmod=1)
    zero = np.array(0, l.dtype)
    other_sign = (rest * r) < 0
    return g.Where(r.equals(0), zero, g.Where(other_sign, rest + r, rest))


ROWS = (
    Row(
        "elemwise_add _add _plus _Plus _grad_add",
        "broadcast_add broadcast_plus",
        "_plus_scalar _PlusScalar",
        "",
        "{l} + {r}",
        np.add,
        lambda g, l, r: l + r,
        (None, "g"),
        (None, "g"),
    ),
    Row(
        "elemwise_sub _sub _minus _Minus",
        "broadcast_sub broadcast_minus",
        "_minus_scalar _MinusScalar",
        "_rminus_scalar _RMinusScalar",
        "{l} - {r}",
        np.subtract,
        lambda g, l, r: l - r,
        (None, "g"),
        (np.negative, "g"),
    ),
    Row(
        "elemwise_mul _mul _Mul",
        "broadcast_mul",
        "_mul_scalar _MulScalar",
        "",
        "{l} * {r}",
        np.multiply,
        lambda g, l, r: l * r,
        (np.multiply, "gr"),
        (np.multiply, "gl"),
    ),
    Row(
        "elemwise_div _div _Div",
        "broadcast_div",
        "_div_scalar _DivScalar",
        "_rdiv_scalar _RDivScalar",
        "{l} / {r}",
        np.true_divide,
        lambda g, l, r: l / r,
        (np.true_divide, "gr"),
        (lambda g, l, r: -g * l / (r * r), "glr"),
    ),
    _named(
        "mod",
        "the remainder of {l} / {r}, with the sign of the divisor and 0 for a zero divisor",
        _mod,
        _onnx_mod,
        (None, "g"),
        (lambda g, l, r: -g * np.floor(l / r), "glr"),
        reflected=True,
    ),
    _named(
        "power",
        "{l} to the power {r}",
        np.power,
        lambda g, l, r: g.Pow(l, r),
        (lambda g, l, r: g * r * np.power(l, r - 1), "glr"),
        (lambda g, l, o: g * o * np.log(l), "glo"),
        reflected=True,
    ),
    _named(
        "maximum",
        "the larger of {l} and {r}",
        np.maximum,
        lambda g, l, r: g.Max(l, r),
        (lambda g, l, r: g * (l >= r), "glr"),
        (lambda g, l, r: g * (l < r), "glr"),
    ),
    _named(
        "minimum",
        "the smaller of {l} and {r}",
        np.minimum,
        lambda g, l, r: g.Min(l, r),
        (lambda g, l, r: g * (l <= r), "glr"),
        (lambda g, l, r: g * (l > r), "glr"),
    ),
    _named(
        "hypot",
        "the hypotenuse of {l} and {r}",
        np.hypot,
        lambda g, l, r: g.Sqrt(l * l + r * r),
        (lambda g, l, o: g * (l / o), "glo"),
        (lambda g, r, o: g * (r / o), "gro"),
    ),
    _comparison("equal", "==", np.equal, "Equal"),
    _comparison("not_equal", "!=", np.not_equal, "Equal", opposite=True),
    _comparison("greater", ">", np.greater, "Greater"),
    _comparison("greater_equal", ">=", np.greater_equal, "GreaterOrEqual"),
    _comparison("lesser", "<", np.less, "Less"),
    _comparison("lesser_equal", "<=", np.less_equal, "LessOrEqual"),
    _logic("and", "1 where neither {l} nor {r} is 0, else 0", np.logical_and),
    _logic("or", "0 where both {l} and {r} are 0, else 1", np.logical_or),
    _logic("xor", "1 where just one of {l} and {r} is 0, else 0", np.logical_xor),
)


def _needs(*gradients) -> tuple:
    """``backward_needs`` for gradients of these sources."""
    letters = "".join(sources for _, sources in gradients)
    return (
        ("out_grad",)
        + (("in_data",) if "l" in letters or "r" in letters else ())
        + (("out_data",) if "o" in letters else ())
    )


# -- two arrays of one shape, or broadcasting ------------------------------------------------------------


class BinaryOp(ChainOp):
    """``function(lhs, rhs)``, broadcasting where the shapes ask for it."""

    shareable = True

    row: Row

    _scratch = None

    def work(self, in_shapes):
        return two_arrays(self.row.function, in_shapes)

    def bind_alone(self, in_data, out, req):
        return arrays.bind(self.row.function, in_data, out, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        by_letter = {"g": out_grad[0], "l": in_data[0], "r": in_data[1], "o": out_data[0]}
        gradients = self.row.gradients(out_grad[0].dtype)
        for (function, sources), target, how in zip(gradients, in_grad, req, strict=True):
            if how == "null":
                continue
            inputs = [by_letter[letter] for letter in sources]
            if target.shape == out_grad[0].shape:
                arrays.evaluate(function, inputs, target, how)
            elif function is None:
                arrays.sum_to(inputs[0], target, how)
            else:
                arrays.evaluate(function, inputs, self._full(out_grad[0]))
                arrays.sum_to(self._scratch, target, how)

    def _full(self, grad):
        """Scratch for a gradient before it is summed over the broadcast axes, kept between calls."""
        if self._scratch is None:
            self._scratch = np.empty(grad.shape, wide(grad.dtype))
        return self._scratch


class BinaryProp(ChainProp, ElementwiseProp):
    """Two arrays of one shape."""

    arguments = {"lhs": "left operand", "rhs": "right operand, of the same shape and dtype"}


class BroadcastProp(ChainProp):
    """Two arrays that broadcast: an axis of length 1, or missing at the front, is repeated."""

    arguments = {"lhs": "left operand", "rhs": "right operand; an axis of length 1 is repeated"}
    partial_shapes = repeatable = True

    def infer_shape(self, in_shapes):
        return in_shapes, [broadcast_shape(self, *in_shapes)]


def broadcast_shape(prop, lhs, rhs):
    """The shape that two shapes broadcast to, as far as they are known."""
    if lhs is None or rhs is None:
        return None
    ndim = max(len(lhs), len(rhs))
    wide = [(1,) * (ndim - len(s)) + tuple(s) for s in (lhs, rhs)]
    shape = []
    for l, r in zip(*wide, strict=True):
        if l != r and 1 not in (l, r) and -1 not in (l, r):
            raise prop.shape_error(f"lhs and rhs must broadcast together, got {tuple(lhs)} and {tuple(rhs)}")
        shape.append(r if l == 1 or (l == -1 and r > 1) else l)
    return tuple(shape)


# -- an array and a scalar -------------------------------------------------------------------------------


def computed_in(dtype, is_int) -> np.dtype:
    """The dtype of data with a number: a fraction makes float64 of whole numbers, others int64 of bools."""
    if dtype.kind != "f" and not is_int:
        return np.dtype(np.float64)
    return np.dtype(np.int64) if dtype.kind == "b" else dtype


class ScalarOp(ChainOp):
    """``function(data, scalar)``, or the other way round where the row is reflected."""

    shareable = True

    row: Row
    reflected = False

    _scalar = None

    def work(self, in_shapes):
        function, number = self.row.function, self.params.scalar
        details = {"function": function, "number": number, "reflected": self.reflected}
        return Following("arithmetic", (0,), details) if function in ARITHMETIC else None

    def _operand(self, data):
        """The scalar as an array of the dtype that it is computed in, made once."""
        dtype = computed_in(data.dtype, self.params.is_int)
        if self._scalar is None or self._scalar.dtype != dtype:
            self._scalar = as_scalar(self.params.scalar, dtype)
        return self._scalar

    def bind_alone(self, in_data, out, req):
        operands = [in_data[0], self._operand(in_data[0])]
        if operands[0].dtype != out.dtype:
            return functools.partial(self._promote, operands, out, req)
        return arrays.bind(self.row.function, self._order(operands), out, req)

    def _order(self, operands):
        return operands[::-1] if self.reflected else operands

    def _promote(self, operands, out, req):
        operands = [operands[0].astype(out.dtype), operands[1]]
        arrays.evaluate(self.row.function, self._order(operands), out, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        function, sources = self.row.gradients(out_grad[0].dtype)[self.reflected]
        by_letter = {"g": out_grad[0], "o": out_data[0]}
        if len(sources) > 1:
            l, r = self._order([in_data[0], self._operand(out_grad[0])])
            by_letter.update(l=l, r=r)
        arrays.evaluate(function, [by_letter[letter] for letter in sources], in_grad[0], req[0])


class ScalarProp(ChainProp, ElementwiseProp):
    """An array and a number."""

    scalar = Field(float, 1.0, doc="the other operand")
    is_int = Field(bool, True, doc="whether integer data stays integer; if not, it becomes float64")

    typed_by_output = True

    def infer_type(self, in_types):
        (dtype,) = in_types
        return in_types, [dtype if dtype is None else computed_in(dtype, self.params.is_int)]


# -- the operators ---------------------------------------------------------------------------------------


def _sentence(row, l, r, more=""):
    text = row.words.format(l=l, r=r) + more
    return f"Entry by entry, {text}."


def _declare(row):
    # A comparison is piecewise constant, so without a gradient.
    above = () if row.lhs else (GradientFree,)
    op = variant(*above, BinaryOp, row=row)
    shared = {}
    if row.lhs:
        # A left gradient that is the head gradient itself may stay in its memory.
        shared = {
            "backward_needs": _needs(row.lhs, row.rhs),
            "inplace_grad": {0: 0} if row.lhs == (None, "g") and row.rhs[1] == "g" else {},
        }
    declare(row.elemwise, BinaryProp, _sentence(row, "lhs", "rhs"), op=op, **shared)
    shared.pop("inplace_grad", None)
    declare(row.broadcast, BroadcastProp, _sentence(row, "lhs", "rhs", ", broadcasting"), op=op, **shared)
    for names, reflected, operands in (
        (row.scalar, False, ("data", "scalar")),
        (row.reflected, True, ("scalar", "data")),
    ):
        if not names:
            continue
        gradient = row.rhs if reflected else row.lhs
        shared = {"backward_needs": _needs(gradient), "inplace_grad": {0: 0}} if gradient else {}
        scalar_op = variant(*above, ScalarOp, row=row, reflected=reflected)
        declare(names, ScalarProp, _sentence(row, *operands), op=scalar_op, **shared)


for _row in ROWS:
    _declare(_row)
