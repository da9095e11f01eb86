"""Element-wise functions of one array. Each row of the table is an operator."""

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from ...dtypes import as_scalar
from ...params import Field
from .. import arrays
from ..base import Following, GradientFree, Operator, variant
from .chain import ChainOp, ChainProp
from .common import ElementwiseProp, declare
from .views import ReshapeOp

#: Where a function is defined and smooth: tests take numbers from there, and others than those about 0.
POSITIVE, INSIDE, OUTSIDE = (0.4, 4), (-0.9, 0.9), (1.2, 4)


@dataclass(frozen=True)
class Row:
    """A function and its slope: a number, or a function of the input or of the output.

    All of them take the parameters first where the operator has some.
    """

    names: str
    words: str
    function: object
    #: What it is in ONNX: an operator's name, or ``f(graph, [parameters,] x)``; None for nothing.
    onnx: object = None
    domain: tuple = (-1.3, 1.3)
    slope: float | None = None
    slope_in: object = None
    slope_out: object = None
    constant: float | None = None
    #: Whether it leaves whole numbers as they are.
    rounds: bool = False
    #: What an operator before may do as well: ``f(parameters)`` gives a :class:`Following` or None.
    following: object = None
    fields: dict = field(default_factory=dict)
    monitored_as_data: bool = False

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient."""
        return not (self.slope is None and self.slope_in is None and self.slope_out is None)


def _special(name, x):
    """A function of the compiled module, on float64; loaded when first used."""
    from ...kernels.cpu.tensor import special as tensor_special

    value = getattr(tensor_special, name)(np.ascontiguousarray(x, np.float64).reshape(-1))
    return value.reshape(x.shape).astype(x.dtype, copy=False)


_erfinv, _gamma, gammaln, digamma = (
    functools.partial(_special, name) for name in ("erfinv", "gamma", "gammaln", "digamma")
)


def _erf(x):
    if x.dtype != np.float32:
        return _special("erf", x)
    from ...kernels.cpu.network import curves

    out = np.empty(x.shape, x.dtype)
    curves.evaluate(curves.ERF, np.ascontiguousarray(x), out)
    return out


def _within(floor, ceiling):
    return Following("act", (0,), {"floor": floor, "ceiling": ceiling}) if floor <= ceiling else None


def sigmoid(x):
    """``1 / (1 + exp(-x))``."""
    return 1 / (1 + np.exp(-x))


def relu_slope(y):
    """Of the rectifier, from its value; that of NaN is NaN."""
    positive = y > 0
    # Looking for NaN first spares an array as large as y where there is none.
    return np.where(np.isnan(y), y, positive) if y.size and np.isnan(y.max()) else positive


def sign(x):
    """-1, 0 or 1; that of NaN is 0."""
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _round(x):
    # Halves go away from zero. The largest number below a half is added: a half could carry it over itself.
    if x.dtype.kind != "f":
        return x
    return np.trunc(x + np.copysign(np.nextafter(x.dtype.type(0.5), x.dtype.type(0)), x))


def _rint(x):
    # MXNet's, in which halves go down; IEEE's go to even numbers.
    if x.dtype.kind != "f":
        return x
    nearest = np.rint(x)
    return nearest - (nearest - x == 0.5)


def _onnx_trunc(g, x):
    return g.Sign(x) * g.Floor(g.Abs(x))


def _onnx_round(g, x):
    whole = _onnx_trunc(g, x)
    return whole + g.Where(g.Abs(x - whole) >= 0.5, g.Sign(x), np.array(0, x.dtype))


def _onnx_rint(g, x):
    below, above = g.Floor(x), g.Ceil(x)
    return g.Where(x - below <= above - x, below, above)


def _onnx_cbrt(g, x):
    return g.Sign(x) * g.Pow(g.Abs(x), 1 / 3)


def _hard_sigmoid_slope(p, x):
    line = p.alpha * x + p.beta
    return x.dtype.type(p.alpha) * ((line > 0) & (line < 1))


def _smooth_l1(p, x):
    square = p.scalar**2
    end = 1 / square if square else np.inf
    size = np.abs(x)
    return np.where(size > end, size - 0.5 * end, 0.5 * square * x * x)


def _onnx_smooth_l1(g, p, x):
    square = p.scalar**2
    if not square:
        return x * 0
    size = g.Abs(x)
    return g.Where(size > 1 / square, size - 0.5 / square, x * x * (0.5 * square))


#: NumPy before 2.1 makes 0 of -0 where a limit is 0; MXNet leaves it.
_LOSES_SIGNS = not np.signbit(np.clip(np.float32(-0.0), 0, 1))


def _clip(x, low, high):
    if low <= high:
        clipped = np.clip(x, low, high)
        if _LOSES_SIGNS and 0 in (low, high):
            np.copyto(clipped, x, where=x == 0)
        return clipped
    low, high = x.dtype.type(low), x.dtype.type(high)  # as in MXNet, the upper limit is looked at first
    return np.where(x > high, high, np.where(x < low, low, x))


def _onnx_clip(g, p, x):
    if p.a_min > p.a_max:
        low, high = (np.array(end, x.dtype) for end in (p.a_min, p.a_max))
        return g.Where(x > high, high, low)
    if x.dtype.kind != "f":
        return g.Min(g.Max(x, p.a_min), p.a_max)
    return g.clip(x, p.a_min, p.a_max)


def _question(name, words, function, onnx):
    return Row(
        name, f"1 where the entry is {words}, else 0.", function, lambda g, x: g.cast(onnx(g, x), x.dtype)
    )


ROWS = (
    Row("abs", "Absolute value.", np.absolute, "Abs", slope_in=sign),
    Row("negative", "The entry with its sign changed.", np.negative, "Neg", slope=-1),
    Row("sign", "-1, 0 or 1, by the sign; that of NaN is 0.", sign, "Sign"),
    Row("reciprocal", "1 / data.", np.reciprocal, "Reciprocal", slope_out=lambda y: -y * y),
    Row("square", "data * data.", np.square, lambda g, x: x * x, slope_in=lambda x: 2 * x),
    Row("sqrt", "Square root.", np.sqrt, "Sqrt", slope_out=lambda y: 0.5 / y, domain=POSITIVE),
    Row(
        "rsqrt",
        "1 / sqrt(data).",
        lambda x: 1 / np.sqrt(x),
        lambda g, x: g.Reciprocal(g.Sqrt(x)),
        slope_out=lambda y: -0.5 * y * y * y,
        domain=POSITIVE,
    ),
    Row("cbrt", "Cube root.", np.cbrt, _onnx_cbrt, slope_out=lambda y: 1 / (3 * y * y)),
    Row(
        "rcbrt",
        "1 / cbrt(data).",
        lambda x: 1 / np.cbrt(x),
        lambda g, x: g.Reciprocal(_onnx_cbrt(g, x)),
        slope_in=lambda x: -1 / (3 * x * np.cbrt(x)),
    ),
    Row("exp", "e to the power of the entry.", np.exp, "Exp", slope_out=lambda y: y),
    Row(
        "expm1",
        "exp(data) - 1, exact near 0.",
        np.expm1,
        lambda g, x: g.Exp(x) - 1,
        slope_in=np.exp,  # y + 1 has no digits left far below 0
    ),
    Row("log", "Natural logarithm.", np.log, "Log", slope_in=np.reciprocal, domain=POSITIVE),
    Row(
        "log2",
        "Logarithm to base 2.",
        np.log2,
        lambda g, x: g.Log(x) / math.log(2),
        slope_in=lambda x: 1 / (x * math.log(2)),
        domain=POSITIVE,
    ),
    Row(
        "log10",
        "Logarithm to base 10.",
        np.log10,
        lambda g, x: g.Log(x) / math.log(10),
        slope_in=lambda x: 1 / (x * math.log(10)),
        domain=POSITIVE,
    ),
    Row(
        "log1p",
        "log(1 + data), exact near 0.",
        np.log1p,
        lambda g, x: g.Log(x + 1),
        slope_in=lambda x: 1 / (1 + x),
        domain=POSITIVE,
    ),
    Row("sin", "Sine.", np.sin, "Sin", slope_in=np.cos),
    Row("cos", "Cosine.", np.cos, "Cos", slope_in=lambda x: -np.sin(x)),
    Row("tan", "Tangent.", np.tan, "Tan", slope_out=lambda y: y * y + 1),
    Row(
        "arcsin", "Inverse sine.", np.arcsin, "Asin", slope_in=lambda x: 1 / np.sqrt(1 - x * x), domain=INSIDE
    ),
    Row(
        "arccos",
        "Inverse cosine.",
        np.arccos,
        "Acos",
        slope_in=lambda x: -1 / np.sqrt(1 - x * x),
        domain=INSIDE,
    ),
    Row("arctan", "Inverse tangent.", np.arctan, "Atan", slope_in=lambda x: 1 / (1 + x * x)),
    Row("sinh", "Hyperbolic sine.", np.sinh, "Sinh", slope_in=np.cosh),
    Row("cosh", "Hyperbolic cosine.", np.cosh, "Cosh", slope_in=np.sinh),
    Row("tanh", "Hyperbolic tangent.", np.tanh, "Tanh", slope_out=lambda y: 1 - y * y),
    Row(
        "arcsinh", "Inverse hyperbolic sine.", np.arcsinh, "Asinh", slope_in=lambda x: 1 / np.sqrt(x * x + 1)
    ),
    Row(
        "arccosh",
        "Inverse hyperbolic cosine.",
        np.arccosh,
        "Acosh",
        slope_in=lambda x: 1 / np.sqrt(x * x - 1),
        domain=OUTSIDE,
    ),
    Row(
        "arctanh",
        "Inverse hyperbolic tangent.",
        np.arctanh,
        "Atanh",
        slope_in=lambda x: 1 / (1 - x * x),
        domain=INSIDE,
    ),
    Row("degrees", "Radians to degrees.", np.degrees, lambda g, x: x * (180 / math.pi), slope=180 / math.pi),
    Row("radians", "Degrees to radians.", np.radians, lambda g, x: x * (math.pi / 180), slope=math.pi / 180),
    Row(
        "relu",
        "max(data, 0).",
        np.maximum,
        "Relu",
        constant=0,
        slope_out=relu_slope,
        following=lambda p: Following("act", (0,), {"floor": 0}),
    ),
    Row(
        "sigmoid",
        "1 / (1 + exp(-data)).",
        sigmoid,
        "Sigmoid",
        slope_out=lambda y: y * (1 - y),
        following=lambda p: Following("sigmoid", (0,), {}),
    ),
    Row(
        "softsign",
        "data / (1 + |data|).",
        lambda x: x / (1 + np.abs(x)),
        "Softsign",
        slope_in=lambda x: (1 + np.abs(x)) ** -2,
    ),
    Row("erf", "Error function.", _erf, "Erf", slope_in=lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
    Row(
        "erfinv",
        "Inverse error function.",
        _erfinv,
        slope_out=lambda y: math.sqrt(math.pi) / 2 * np.exp(y * y),
        domain=INSIDE,
    ),
    Row("gamma", "Gamma function.", _gamma, slope_in=lambda x: _gamma(x) * digamma(x), domain=POSITIVE),
    Row(
        "gammaln",
        "Logarithm of the absolute value of the gamma function.",
        gammaln,
        slope_in=digamma,
        domain=POSITIVE,
    ),
    Row("round", "Nearest whole number, halves away from zero.", _round, _onnx_round, rounds=True),
    Row("rint", "Nearest whole number, halves down.", _rint, _onnx_rint, rounds=True),
    Row("ceil", "Smallest whole number not below.", np.ceil, "Ceil", rounds=True),
    Row("floor", "Largest whole number not above.", np.floor, "Floor", rounds=True),
    Row("trunc", "Nearest whole number towards zero.", np.trunc, _onnx_trunc, rounds=True),
    Row("fix", "Nearest whole number towards zero.", np.trunc, _onnx_trunc, rounds=True),
    _question("_contrib_isnan", "not a number", np.isnan, lambda g, x: g.IsNaN(x)),
    _question("_contrib_isinf", "infinite", np.isinf, lambda g, x: g.IsInf(x)),
    _question("_contrib_isfinite", "a finite number", np.isfinite, lambda g, x: ~(g.IsNaN(x) | g.IsInf(x))),
    _question("logical_not", "0", np.logical_not, lambda g, x: x.equals(0)),
    Row("_contrib_sign_ste", "Sign, with a gradient that passes through.", sign, "Sign", slope=1),
    Row(
        "_contrib_round_ste",
        "Rounding, with a gradient that passes through.",
        _round,
        _onnx_round,
        slope=1,
        rounds=True,
    ),
    Row(
        "hard_sigmoid",
        "A straight line between 0 and 1: ``clip(alpha * data + beta, 0, 1)``.",
        lambda p, x: np.clip(p.alpha * x + p.beta, 0, 1),
        lambda g, p, x: g.clip(x * p.alpha + p.beta, 0, 1),
        slope_in=_hard_sigmoid_slope,
        fields={
            "alpha": Field(float, 0.2, doc="slope of the line"),
            "beta": Field(float, 0.5, doc="height of the line at 0"),
        },
    ),
    Row(
        "smooth_l1",
        "The smooth L1 loss of R-CNN: ``|x| - 0.5 / scalar**2`` where ``|x| > 1 / scalar**2``, "
        "``0.5 * (scalar * x)**2`` elsewhere.",
        _smooth_l1,
        _onnx_smooth_l1,
        slope_in=lambda p, x: np.clip(p.scalar**2 * x, -1, 1),
        fields={"scalar": Field(float, 1.0, doc="sigma: the parabola ends at 1 / scalar**2")},
    ),
    Row(
        "_contrib_quadratic",
        "``a * data**2 + b * data + c``.",
        lambda p, x: (p.a * x + p.b) * x + p.c,
        lambda g, p, x: (x * p.a + p.b) * x + p.c,
        slope_in=lambda p, x: 2 * p.a * x + p.b,
        fields={
            "a": Field(float, 0.0, doc="factor of the square"),
            "b": Field(float, 0.0, doc="factor of the entry"),
            "c": Field(float, 0.0, doc="what is added"),
        },
        monitored_as_data=True,
    ),
    Row(
        "clip",
        "Limit each entry to ``[a_min, a_max]``; the gradient is 0 outside.",
        lambda p, x: _clip(x, p.a_min, p.a_max),
        _onnx_clip,
        slope_in=lambda p, x: ~((x < p.a_min) | (x > p.a_max)),
        following=lambda p: _within(p.a_min, p.a_max),
        fields={
            "a_min": Field(float, doc="lower limit"),
            "a_max": Field(float, doc="upper limit"),
        },
    ),
)


class UnaryOp(ChainOp):
    """``function(data)``; backward multiplies the head gradient by the slope."""

    shareable = True

    row: Row

    def work(self, in_shapes):
        return self.row.following and self.row.following(self.params)

    def _given_parameters(self, function):
        return functools.partial(function, self.params) if self.row.fields else function

    def bind_alone(self, in_data, out, req):
        inputs = [in_data[0]]
        if self.row.constant is not None:
            inputs.append(np.array(self.row.constant, in_data[0].dtype))
        return arrays.bind(self._given_parameters(self.row.function), inputs, out, req)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        row, head = self.row, out_grad[0]
        if row.slope is not None:
            arrays.evaluate(np.multiply, [head, as_scalar(row.slope, head.dtype)], in_grad[0], req[0])
        else:
            slope = self._given_parameters(row.slope_in or row.slope_out)
            known = (in_data if row.slope_in else out_data)[0]
            arrays.evaluate(lambda g, x: g * slope(x), [head, known], in_grad[0], req[0])


class UnaryProp(ElementwiseProp):
    """One array to another of its shape."""

    inplace_grad = {0: 0}


class RowProp(ChainProp, UnaryProp):
    pass


def _declare(row):
    op = variant(UnaryOp, row=row) if row.smooth else variant(GradientFree, UnaryOp, row=row)
    needs = ("out_grad", *(("in_data",) if row.slope_in else ("out_data",) if row.slope_out else ()))
    more = {"monitored_as_data": row.monitored_as_data, **row.fields}
    declare(row.names, RowProp, row.words, op=op, backward_needs=needs, **more)


for _row in ROWS:
    _declare(_row)


# -- functions that are no rows --------------------------------------------------------------------------


class GradientMultiplierOp(ReshapeOp):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        scalar = as_scalar(self.params.scalar, out_grad[0].dtype)
        arrays.evaluate(np.multiply, [out_grad[0], scalar], in_grad[0], req[0])


class DivSqrtDimOp(Operator):
    """The divisor of attention, forward and backward: the root of the length of the last axis."""

    def forward(self, ctx, in_data, req, out_data, aux):
        self._scale(in_data[0], out_data[0], req[0])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        self._scale(out_grad[0], in_grad[0], req[0])

    def _scale(self, source, target, req):
        length = source.shape[-1] if source.ndim else 1
        root = np.array(math.sqrt(max(length, 1)), source.dtype)  # of whole numbers, a whole one
        arrays.evaluate(np.true_divide, [source, root], target, req)


declare(
    "_contrib_gradientmultiplier",
    UnaryProp,
    "The data as it is; the gradient is multiplied by ``scalar``.",
    op=GradientMultiplierOp,
    backward_needs=("out_grad",),
    scalar=Field(float, 1.0, doc="factor of the gradient"),
    is_int=Field(bool, True, doc="whether the factor was given as a whole number"),
)
declare(
    "_contrib_div_sqrt_dim",
    UnaryProp,
    "The data divided by the square root of the length of its last axis.",
    op=DivSqrtDimOp,
    backward_needs=("out_grad",),
)
