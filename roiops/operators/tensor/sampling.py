"""Random numbers as operators: by parameters, for each entry of arrays of parameters, or like an array.

Each row of the table makes three operators of one distribution. All draw from the library's one generator, on
the CPU, anew in every call; nothing has a gradient.
"""

import math
from dataclasses import dataclass

import numpy as np

from ... import random as source
from ...errors import DataError
from ...params import Field, device, dtype, optional
from ...params import shape as ints
from ...registry import register
from ..arrays import evaluate
from ..base import GradientFree, Operator, OperatorProperty, assign, variant
from .common import declare

_FLOAT = np.dtype(np.float32)


def _generalized_negative_binomial(generator, mu, alpha, shape):
    """Poisson numbers whose rates are gamma numbers; with ``alpha`` 0 the rate is ``mu`` itself."""
    mu, alpha = np.broadcast_to(mu, shape), np.broadcast_to(alpha, shape)
    safe = np.where(alpha == 0, 1, alpha)
    rates = np.where(alpha == 0, mu, generator.gamma(1 / safe, safe * mu))
    return generator.poisson(rates)


@dataclass(frozen=True)
class Distribution:
    """One distribution: its name, its parameters with their defaults, and how numbers are drawn."""

    name: str
    words: str
    parameters: tuple[tuple[str, float, str], ...]
    draw: object
    aliases: str = ""
    dtype: str = "float32"


DISTRIBUTIONS = {
    row.name: row
    for row in (
        Distribution(
            "uniform",
            "Numbers spread evenly over [low, high).",
            (("low", 0.0, "lower limit"), ("high", 1.0, "upper limit, not reached")),
            lambda g, low, high, n: low + (high - low) * g.random(n),
            "uniform",
        ),
        Distribution(
            "normal",
            "Normal numbers.",
            (("loc", 0.0, "mean"), ("scale", 1.0, "standard deviation")),
            lambda g, loc, scale, n: g.normal(loc, scale, n),
            "normal",
        ),
        Distribution(
            "gamma",
            "Gamma numbers.",
            (("alpha", 1.0, "shape"), ("beta", 1.0, "scale")),
            lambda g, alpha, beta, n: g.gamma(alpha, beta, n),
        ),
        Distribution(
            "exponential",
            "Exponential numbers.",
            (("lam", 1.0, "rate, the inverse of the mean"),),
            lambda g, lam, n: g.exponential(1 / np.asarray(lam, np.float64), n),
        ),
        Distribution(
            "poisson",
            "Poisson numbers.",
            (("lam", 1.0, "rate"),),
            lambda g, lam, n: g.poisson(lam, n),
        ),
        Distribution(
            "negative_binomial",
            "How many failures come before k successes of probability p.",
            (("k", 1, "how many successes"), ("p", 1.0, "probability of a success")),
            lambda g, k, p, n: g.negative_binomial(k, p, n),
        ),
        Distribution(
            "generalized_negative_binomial",
            "Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2.",
            (("mu", 1.0, "mean"), ("alpha", 1.0, "how much the rate varies")),
            _generalized_negative_binomial,
        ),
        Distribution(
            "randint",
            "Whole numbers in [low, high).",
            (("low", 0, "least number"), ("high", 1, "upper limit, not reached")),
            lambda g, low, high, n: g.integers(low, high, n),
            dtype="int32",
        ),
    )
}


def draw(row: Distribution, label: str, parameters, shape) -> np.ndarray:
    """Numbers of a distribution; a parameter out of its range is an error that names the operator."""
    try:
        return np.asarray(row.draw(source.generator(), *parameters, shape))
    except ValueError as error:
        raise DataError(f"{label}: {error}") from None


class DrawOp(GradientFree):
    row: Distribution

    def _parameters(self, in_data, out):
        return [getattr(self.params, name) for name, _, _ in self.row.parameters]

    def forward(self, ctx, in_data, req, out_data, aux):
        numbers = draw(self.row, ctx.label, self._parameters(in_data, out_data[0]), out_data[0].shape)
        evaluate(None, [numbers.astype(out_data[0].dtype)], out_data[0], req[0])


class DrawForEachOp(DrawOp):
    def _parameters(self, in_data, out):
        extra = (1,) * (out.ndim - in_data[0].ndim)
        return [array.astype(np.float64).reshape(array.shape + extra) for array in in_data]


class DrawProp(OperatorProperty):
    """Numbers of one distribution."""

    arguments = ()
    partial_shapes = True

    def infer_shape(self, in_shapes):
        return [], [tuple(self.params.shape) or None]

    def infer_type(self, in_types):
        return [], [self.params.dtype or np.dtype(self.op.row.dtype)]


class DrawForEachProp(OperatorProperty):
    """``shape`` numbers for each entry of the arrays of parameters."""

    def infer_shape(self, in_shapes):
        first, pairs = in_shapes[0], zip(self.arguments, in_shapes, strict=True)
        shapes = [self.check_shape(name, shape, first) for name, shape in pairs]
        return shapes, [(*first, *self.params.shape)]

    def infer_type(self, in_types):
        known = next((each for each in in_types if each is not None), None)
        return [each or known for each in in_types], [self.params.dtype or _FLOAT]


class DrawLikeProp(OperatorProperty):
    """Numbers in an array of the shape and dtype of another."""

    arguments = {"data": "only its shape and dtype are used"}


def _declare(row: Distribution) -> None:
    fields = {n: Field(type(default), default, doc=doc) for n, default, doc in row.parameters}
    created = {
        "shape": Field(
            ints(), (), range=(-1, None), doc="shape of the result; () where the graph decides it"
        ),
        "ctx": Field(device(), "", doc="device, for imperative calls"),
        "dtype": Field(optional(dtype), None, doc=f"dtype of the result, {row.dtype} if none"),
    }
    per_entry = {
        "shape": Field(ints(), (), range=(0, None), doc="shape of the numbers for each entry"),
        "dtype": Field(optional(dtype), None, doc="dtype of the result, float32 if none"),
    }
    op = variant(DrawOp, row=row)
    each = variant(DrawForEachOp, row=row)

    name = row.name
    declare(f"_random_{name} random_{name} {row.aliases}", DrawProp, row.words, op=op, **fields, **created)
    if name == "randint":
        return
    arguments = {"loc": "mu", "scale": "sigma"} if name == "normal" else {}
    declare(
        f"_sample_{name} sample_{name}",
        DrawForEachProp,
        f"{row.words} The parameters are arrays; each of their entries gets numbers of its own.",
        op=each,
        **per_entry,
        arguments={arguments.get(n, n): doc for n, _, doc in row.parameters},
    )
    declare(
        f"_random_{name}_like random_{name}_like",
        DrawLikeProp,
        f"{row.words} There are as many as the data has entries.",
        op=op,
        **fields,
    )


for _row in DISTRIBUTIONS.values():
    _declare(_row)


class MultinomialOp(Operator):
    """Only the logarithms have a gradient; as in MXNet it is that of probabilities that add up to 1."""

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] == "null":
            return
        chances = self._rows(in_data[0])
        picked = out_data[0].reshape(len(chances), -1).astype(np.int64)
        heads = out_grad[1].reshape(picked.shape)
        gradient = np.zeros(chances.shape, np.float64)
        rows = np.arange(len(chances))[:, None]
        np.add.at(gradient, (rows, picked), heads / np.take_along_axis(chances, picked, axis=1))
        assign(in_grad[0], req[0], gradient.reshape(in_grad[0].shape).astype(in_grad[0].dtype))

    @staticmethod
    def _rows(data):
        return data.reshape(math.prod(data.shape[:-1]), data.shape[-1])

    def forward(self, ctx, in_data, req, out_data, aux):
        chances = self._rows(in_data[0].astype(np.float64))
        totals = chances.sum(axis=1, keepdims=True)
        if (chances < 0).any() or not (totals > 0).all():
            raise DataError(f"{ctx.label}: each row of data must hold probabilities, some above 0")
        bounds = np.cumsum(chances / totals, axis=1)
        count = math.prod(self.params.shape)
        draws = source.generator().random((len(chances), count))
        last = chances.shape[1] - 1
        found = [np.searchsorted(b, d, side="right") for b, d in zip(bounds, draws, strict=True)]
        picked = np.minimum(np.array(found, np.int64).reshape(draws.shape), last)
        evaluate(None, [picked.reshape(out_data[0].shape)], out_data[0], req[0])
        if len(out_data) > 1:
            logs = np.log(np.take_along_axis(chances / totals, picked, axis=1))
            evaluate(None, [logs.reshape(out_data[1].shape)], out_data[1], req[1])


def _largest_index(dtype: np.dtype) -> int:
    """Up to where a dtype holds every whole number."""
    return np.iinfo(dtype).max if dtype.kind in "iu" else 2 ** (np.finfo(dtype).nmant + 1)


@register("_sample_multinomial", "sample_multinomial")
class MultinomialProp(OperatorProperty):
    """Indices drawn by the probabilities in the last axis, which need not add up to 1."""

    shape = Field(ints(), (), range=(0, None), doc="shape of the draws for each row")
    get_prob = Field(bool, False, doc="whether the logarithms of the probabilities come too")
    dtype = Field(dtype, "int32", doc="dtype of the indices")

    op = MultinomialOp
    arguments = {"data": "probabilities, along the last axis"}

    @property
    def zero_grad(self):
        return () if self.params.get_prob else ("data",)

    @property
    def backward_needs(self):
        return ("out_grad", "in_data", "out_data") if self.params.get_prob else ()

    def list_outputs(self):
        return ("output0", "output1") if self.params.get_prob else ("output",)

    def infer_shape(self, in_shapes):
        self.check_ndim("data", in_shapes[0], least=1)
        if in_shapes[0][-1] == 0:
            raise self.shape_error(f"the last axis of data has no entries, its shape is {in_shapes[0]}")
        most = _largest_index(self.params.dtype)
        if in_shapes[0][-1] > most + 1:
            raise self.shape_error(
                f"{self.params.dtype} holds indices up to {most}, "
                f"the last axis of data is {in_shapes[0][-1]} long"
            )
        shape = (*in_shapes[0][:-1], *self.params.shape) or (1,)
        return in_shapes, [shape] * len(self.list_outputs())

    def infer_type(self, in_types):
        return in_types, [self.params.dtype, in_types[0]][: len(self.list_outputs())]


class ShuffleOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        order = source.generator().permutation(len(in_data[0]))
        evaluate(None, [in_data[0][order]], out_data[0], req[0])


@register("_shuffle", "shuffle")
class ShuffleProp(OperatorProperty):
    """The rows of the data, which are its entries along the first axis, in a random order."""

    op = ShuffleOp
    arguments = {"data": "the rows"}

    def infer_shape(self, in_shapes):
        self.check_ndim("data", in_shapes[0], least=1)
        return in_shapes, [in_shapes[0]]


class ZipfianOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        (batches, count), limit = self.params.shape, self.params.range_max
        generator, logs = source.generator(), math.log(limit + 1)
        for batch in range(batches):
            seen: dict[int, None] = {}
            trials = 0
            while len(seen) < count:
                left = count - len(seen)
                drawn = np.exp(generator.random(left) * logs).astype(np.int64) - 1
                seen.update(dict.fromkeys((drawn % limit).tolist()))
                trials += left
            out_data[0][batch] = list(seen)
            out_data[1][batch] = trials


@register("_sample_unique_zipfian")
class ZipfianProp(OperatorProperty):
    """Classes drawn without repetition by the log-uniform distribution, and how many draws that took."""

    range_max = Field(int, range=(1, None), doc="how many classes there are")
    shape = Field(ints(2), doc="how many batches, and how many classes in each")

    op = ZipfianOp
    out_types = (np.dtype(np.int64),) * 2
    arguments = ()
    outputs = ("output0", "output1")

    def infer_shape(self, in_shapes):
        batches, count = self.params.shape
        if count > self.params.range_max:
            raise self.shape_error(
                f"{count} unique classes of {self.params.range_max} are more than there are"
            )
        return [], [(batches, count), (batches,)]
