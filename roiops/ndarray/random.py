"""``nd.random``: arrays of random numbers, from the generator that ``roiops.random.seed`` seeds."""

import numpy as np

from .. import random as source
from .. import registry
from ..context import Context
from ..errors import DataError, ShapeError
from ..operators.tensor.sampling import DISTRIBUTIONS
from .creation import array
from .functions import call, function_for
from .ndarray import NDArray

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "shuffle",
    "uniform",
]


def _draw(draw, parameters, shape, dtype, ctx, out, default="float32") -> NDArray:
    """Draw with numbers as parameters, or ``shape`` numbers for each element of array parameters."""
    hosts = [p.asnumpy() if isinstance(p, NDArray) else np.asarray(p) for p in parameters]
    extent = () if shape is None else tuple(np.atleast_1d(shape).tolist())
    arrays = [h for h in hosts if h.ndim]
    if arrays:
        if any(h.shape != arrays[0].shape for h in hosts):
            raise ShapeError(
                "random: array parameters must all be arrays of one shape, got "
                f"{', '.join(str(h.shape) for h in hosts)}"
            )
        hosts = [h.reshape(h.shape + (1,) * len(extent)) for h in hosts]
        extent = arrays[0].shape + extent
    elif out is not None and shape is None:
        extent = out.shape
    try:
        values = draw(source.generator(), *hosts, extent or (1,))
    except ValueError as error:
        raise DataError(f"random: {error}") from None
    if out is not None:
        if out.shape != values.shape:
            raise ShapeError(f"random: out must have shape {values.shape}, got {out.shape}")
        out[:] = values
        return out
    if dtype in (None, "None"):
        dtype = default
    ctx = ctx or next((p.context for p in parameters if isinstance(p, NDArray)), None)
    return array(values, ctx, dtype)


def uniform(low=0, high=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Numbers spread evenly over [low, high)."""
    return _draw(lambda g, a, b, n: a + (b - a) * g.random(n), (low, high), shape, dtype, ctx, out)


def normal(loc=0, scale=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Normal numbers of mean ``loc`` and standard deviation ``scale``."""
    return _draw(lambda g, a, b, n: g.normal(a, b, n), (loc, scale), shape, dtype, ctx, out)


def randn(*shape, loc=0, scale=1, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Normal numbers in an array of the given dimensions."""
    return normal(loc, scale, shape or None, dtype, ctx, out)


def poisson(lam=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Poisson numbers of rate ``lam``."""
    return _draw(lambda g, a, n: g.poisson(a, n), (lam,), shape, dtype, ctx, out)


def exponential(scale=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Exponential numbers of mean ``scale``."""
    return _draw(lambda g, a, n: g.exponential(a, n), (scale,), shape, dtype, ctx, out)


def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Gamma numbers of shape ``alpha`` and scale ``beta``."""
    return _draw(lambda g, a, b, n: g.gamma(a, b, n), (alpha, beta), shape, dtype, ctx, out)


def negative_binomial(k=1, p=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """How many failures come before ``k`` successes of probability ``p``."""
    return _draw(lambda g, a, b, n: g.negative_binomial(a, b, n), (k, p), shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu=1, alpha=1, shape=None, dtype=None, ctx: Context | None = None, out=None
) -> NDArray:
    """Poisson numbers whose rate is a gamma number of mean ``mu`` and variance ``alpha * mu**2``."""
    row = DISTRIBUTIONS["generalized_negative_binomial"]
    return _draw(row.draw, (mu, alpha), shape, dtype, ctx, out)


def randint(low, high, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Whole numbers in [low, high)."""
    return _draw(lambda g, a, b, n: g.integers(a, b, n), (low, high), shape, dtype, ctx, out, "int32")


def multinomial(data: NDArray, shape=None, get_prob: bool = False, out=None, dtype="int32"):
    """Indices drawn by the probabilities in the last axis; with ``get_prob``, their logarithms too."""
    extent = () if shape is None else tuple(np.atleast_1d(shape).tolist())
    given = {"shape": extent, "get_prob": get_prob, "dtype": dtype}
    if get_prob and out is not None:
        results = call(registry.get("_sample_multinomial"), (data,), given)
        out[:] = results[0]
        return [out, results[1]]
    return call(registry.get("_sample_multinomial"), (data,), {**given, "out": out})


def shuffle(data: NDArray, out=None) -> NDArray:
    """The rows of ``data`` in a random order."""
    return call(registry.get("_shuffle"), (data,), {"out": out})


def __getattr__(name):
    """``uniform_like(data)`` and the others that draw as many numbers as an array has."""
    if name.endswith("_like") and registry.find(f"_random_{name}") is not None:
        return function_for(f"_random_{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
