"""Probability densities of samples: ``random_pdf_normal`` and its kin."""

import math

import numpy as np

from ...params import Field
from ..base import variant
from ..dense import FloatProperty, FormulaOperator
from .common import declare
from .unary import digamma, gammaln


class DensityOp(FormulaOperator):
    """Base: ``log_density`` and ``log_slopes``, for samples and parameters that broadcast to them.

    A slope of None is zero. Each sample is a number, or with ``vectors`` 1 a vector, in the last axis.
    """

    vectors = 0

    def values(self, sample, *parameters):
        density = self.log_density(sample, *self._beside(sample, parameters))
        density = np.broadcast_to(density, sample.shape[: self._lead(sample)])
        return (density if self.params.is_log else np.exp(density),)

    def slopes(self, heads, inputs, outputs):
        sample, *parameters = inputs
        head = heads[0] if self.params.is_log else heads[0] * outputs[0]
        slopes = self.log_slopes(sample, *self._beside(sample, parameters))
        head = head.reshape(sample.shape[: self._lead(sample)] + (1,) * self.vectors)
        result = [None if slopes[0] is None else head * slopes[0]]
        for value, slope in zip(parameters, slopes[1:], strict=True):
            flow = np.broadcast_to(head * slope, sample.shape)
            result.append(flow.sum(axis=tuple(range(self._lead(value), self._lead(sample)))))
        return tuple(result)

    def _lead(self, array) -> int:
        """How many axes count distributions or samples."""
        return array.ndim - self.vectors

    def _beside(self, sample, parameters):
        """Parameters as they broadcast to the samples."""
        for value in parameters:
            lead, ones = self._lead(value), (1,) * (sample.ndim - value.ndim)
            yield value.reshape(value.shape[:lead] + ones + value.shape[lead:])


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
            raise self.shape_error(f"the shape of {name} is not known")
        if len(first) > len(sample):
            raise self.shape_error(
                f"{name} must not have more dimensions than sample {tuple(sample)}, got {tuple(first)}"
            )
        lead, whole = len(sample) - self.op.vectors, len(first) - self.op.vectors
        first = self.check_shape(name, first, (*sample[:whole], *sample[lead:]))
        others = [self.check_shape(n, s, first) for n, s in zip(names, others, strict=True)]
        return [sample, first, *others], [sample[:lead] or (1,)]


def _declare(name, words, parameters, log_density, log_slopes, vectors=0):
    """Register a density by its logarithm and the slopes of that, for samples and for parameters."""
    functions = {"log_density": staticmethod(log_density), "log_slopes": staticmethod(log_slopes)}
    declare(
        f"_random_pdf_{name} random_pdf_{name}",
        DensityProp,
        f"The probability density of samples of {words}.",
        op=variant(DensityOp, vectors=vectors, **functions),
        arguments={"sample": "samples; the leading axes are those of the parameters", **parameters},
    )


_declare(
    "uniform",
    "uniform distributions",
    {"low": "lower ends of the intervals", "high": "upper ends of the intervals"},
    lambda x, low, high: -np.log(high - low),
    lambda x, low, high: (None, 1 / (high - low), 1 / (low - high)),
)
_declare(
    "normal",
    "normal distributions",
    {"mu": "means", "sigma": "standard deviations"},
    lambda x, mu, sigma: -0.5 * ((x - mu) / sigma) ** 2 - np.log(math.sqrt(2 * math.pi) * sigma),
    _normal_slopes,
)
_declare("gamma", "gamma distributions", {"alpha": "shapes", "beta": "rates"}, _gamma, _gamma_slopes)
_declare(
    "exponential",
    "exponential distributions",
    {"lam": "rates"},
    lambda x, lam: np.log(lam) - lam * x,
    lambda x, lam: (np.broadcast_to(-lam, x.shape), 1 / lam - x),
)
_declare(
    "poisson",
    "Poisson distributions",
    {"lam": "rates"},
    lambda x, lam: x * np.log(lam) - gammaln(x + 1) - lam,
    lambda x, lam: (None, x / lam - 1),
)
_declare(
    "negative_binomial",
    "negative binomial distributions",
    {"k": "numbers of failures at which an experiment ends", "p": "probabilities of a failure"},
    _negative_binomial,
    _negative_binomial_slopes,
)
_declare(
    "generalized_negative_binomial",
    "negative binomial distributions, given by mean and dispersion",
    {"mu": "means", "alpha": "dispersions"},
    _generalized,
    _generalized_slopes,
)
_of_dirichlet = {"alpha": "concentrations"}
_declare("dirichlet", "Dirichlet distributions", _of_dirichlet, _dirichlet, _dirichlet_slopes, vectors=1)
