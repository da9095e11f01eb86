"""Probability densities of samples: ``random_pdf_normal`` and its kin."""

import math

import numpy as np

from ...errors import ShapeError
from ...params import Field
from ..dense import FloatProperty, FormulaOperator
from .common import declare
from .unary import digamma, gammaln


class DensityOp(FormulaOperator):
    """Base: ``log_density`` and ``log_slopes``, for samples and parameters that broadcast to them.

    A slope of None is zero.
    """

    def values(self, sample, *parameters):
        density = self.log_density(sample, *map(self._beside(sample), parameters))
        density = np.broadcast_to(density, self.density_shape(sample))
        return (density if self.params.is_log else np.exp(density),)

    def slopes(self, heads, inputs, outputs):
        sample, *parameters = inputs
        head = heads[0] if self.params.is_log else heads[0] * outputs[0]
        slopes = self.log_slopes(sample, *map(self._beside(sample), parameters))
        head = self.head_for(head, sample)
        result = [None if slopes[0] is None else head * slopes[0]]
        for value, slope in zip(parameters, slopes[1:], strict=True):
            flow = np.broadcast_to(head * slope, sample.shape)
            result.append(flow.sum(axis=self.repeated(sample, value)))
        return tuple(result)

    def density_shape(self, sample):
        return sample.shape

    def head_for(self, head, sample):
        """The head gradient as it broadcasts to the samples."""
        return head

    def repeated(self, sample, value):
        """The axes of the sample along which a parameter is repeated."""
        return tuple(range(value.ndim, sample.ndim))

    def _beside(self, sample):
        return lambda value: value.reshape(value.shape + (1,) * (sample.ndim - value.ndim))


class VectorDensityOp(DensityOp):
    """Each sample is a vector, in the last axis."""

    def density_shape(self, sample):
        return sample.shape[:-1]

    def head_for(self, head, sample):
        return head.reshape(*sample.shape[:-1], 1)

    def repeated(self, sample, value):
        return tuple(range(value.ndim - 1, sample.ndim - 1))

    def _beside(self, sample):
        return lambda value: value.reshape(
            value.shape[:-1] + (1,) * (sample.ndim - value.ndim) + value.shape[-1:]
        )


def _normal_slopes(x, mu, sigma):
    away = (x - mu) / sigma
    return -away / sigma, away / sigma, (away * away - 1) / sigma


def _gamma(x, alpha, beta):
    return alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - gammaln(alpha)


def _gamma_slopes(x, alpha, beta):
    return (alpha - 1) / x - beta, np.log(beta) + np.log(x) - digamma(alpha), alpha / beta - x


def _negative_binomial(x, k, p):
    return gammaln(x + k) - gammaln(x + 1) - gammaln(k) + k * np.log(p) + x * np.log(1 - p)


def _negative_binomial_slopes(x, k, p):
    return None, digamma(x + k) - digamma(k) + np.log(p), k / p - x / (1 - p)


# The generalized one is the same with ``k = 1 / alpha`` and ``p = 1 / (1 + mu * alpha)``.


def _generalized(x, mu, alpha):
    return _negative_binomial(x, 1 / alpha, 1 / (1 + mu * alpha))


def _generalized_slopes(x, mu, alpha):
    p = 1 / (1 + mu * alpha)
    _, slope_k, slope_p = _negative_binomial_slopes(x, 1 / alpha, p)
    return None, -slope_p * alpha * p * p, -slope_k / alpha**2 - slope_p * mu * p * p


def _dirichlet(x, alpha):
    terms = (alpha - 1) * np.log(x) - gammaln(alpha)
    return terms.sum(-1) + gammaln(alpha.sum(-1))


def _dirichlet_slopes(x, alpha):
    whole = digamma(alpha.sum(-1, keepdims=True))
    return (alpha - 1) / x, np.log(x) + whole - digamma(alpha)


class DensityProp(FloatProperty):
    """Base: the shape of the parameters is the beginning of that of the samples."""

    is_log = Field(bool, False, doc="whether the logarithm of the density is wanted")

    partial_shapes = False

    def infer_shape(self, in_shapes):
        sample, first, *others = in_shapes
        self.check_ndim("sample", sample, least=1)
        name, *names = self.arguments[1:]
        if first is None:
            raise ShapeError(f"{self.label}: the shape of {name} is not known")
        if len(first) > len(sample):
            raise ShapeError(
                f"{self.label}: {name} must not have more dimensions than sample {tuple(sample)}, "
                f"got {tuple(first)}"
            )
        first = self.check_shape(name, first, self.parameter_shape(sample, len(first)))
        others = [self.check_shape(n, s, first) for n, s in zip(names, others, strict=True)]
        return [sample, first, *others], [self.density_shape(sample)]

    def parameter_shape(self, sample, ndim):
        return sample[:ndim]

    def density_shape(self, sample):
        return sample


class VectorDensityProp(DensityProp):
    """Base: a sample is a vector, in the last axis."""

    def parameter_shape(self, sample, ndim):
        return (*sample[: ndim - 1], sample[-1])

    def density_shape(self, sample):
        return sample[:-1] or (1,)


_DOCS = {
    "sample": "samples; the leading axes are those of the parameters",
    "low": "lower ends of the intervals",
    "high": "upper ends of the intervals",
    "sigma": "standard deviations",
    "beta": "rates",
    "lam": "rates",
    "k": "numbers of failures at which an experiment ends",
    "p": "probabilities of a failure",
}
#: Name, words, parameters, the logarithm of the density and its slopes, for samples and for parameters.
_ROWS = (
    (
        "uniform",
        "uniform distributions",
        {"low": "", "high": ""},
        lambda x, low, high: -np.log(high - low),
        lambda x, low, high: (None, 1 / (high - low), 1 / (low - high)),
    ),
    (
        "normal",
        "normal distributions",
        {"mu": "means", "sigma": ""},
        lambda x, mu, sigma: -0.5 * ((x - mu) / sigma) ** 2 - np.log(math.sqrt(2 * math.pi) * sigma),
        _normal_slopes,
    ),
    ("gamma", "gamma distributions", {"alpha": "shapes", "beta": ""}, _gamma, _gamma_slopes),
    (
        "exponential",
        "exponential distributions",
        {"lam": ""},
        lambda x, lam: np.log(lam) - lam * x,
        lambda x, lam: (np.broadcast_to(-lam, x.shape), 1 / lam - x),
    ),
    (
        "poisson",
        "Poisson distributions",
        {"lam": ""},
        lambda x, lam: x * np.log(lam) - gammaln(x + 1) - lam,
        lambda x, lam: (None, x / lam - 1),
    ),
    (
        "negative_binomial",
        "negative binomial distributions",
        {"k": "", "p": ""},
        _negative_binomial,
        _negative_binomial_slopes,
    ),
    (
        "generalized_negative_binomial",
        "negative binomial distributions, given by mean and dispersion",
        {"mu": "means", "alpha": "dispersions"},
        _generalized,
        _generalized_slopes,
    ),
    ("dirichlet", "Dirichlet distributions", {"alpha": "concentrations"}, _dirichlet, _dirichlet_slopes),
)


def _declare(name, words, parameters, log_density, log_slopes):
    vectors = name == "dirichlet"
    functions = {"log_density": staticmethod(log_density), "log_slopes": staticmethod(log_slopes)}
    base = VectorDensityOp if vectors else DensityOp
    declare(
        f"_random_pdf_{name} random_pdf_{name}",
        VectorDensityProp if vectors else DensityProp,
        f"The probability density of samples of {words}.",
        op=type("RowDensityOp", (base,), {**functions, "__module__": __name__}),
        arguments={"sample": _DOCS["sample"], **{n: t or _DOCS[n] for n, t in parameters.items()}},
    )


for _row in _ROWS:
    _declare(*_row)
