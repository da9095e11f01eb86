"""``nd.random``: arrays of random numbers, from the generator that ``roiops.random.seed`` seeds."""

import math
from dataclasses import replace

import numpy as np

from .. import registry
from ..context import Context
from ..errors import ShapeError
from ..operators.tensor.sampling import DISTRIBUTIONS, draw
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


_ROWS = {
    **DISTRIBUTIONS,
    # by their mean, without the detour over its inverse
    "exponential": replace(DISTRIBUTIONS["exponential"], draw=lambda g, scale, n: g.exponential(scale, n)),
}


def _draw(name, parameters, shape, dtype, ctx, out) -> NDArray:
    """Draw with numbers as parameters, or ``shape`` numbers for each element of array parameters."""
    row, label = _ROWS[name], f"random.{name}"
    hosts = [np.asarray(p) for p in parameters]
    extent = () if shape is None else tuple(np.atleast_1d(shape).tolist())
    arrays = [h for h in hosts if h.ndim]
    if arrays:
        if any(h.shape != arrays[0].shape for h in hosts):
            raise ShapeError(
                f"{label}: array parameters must all be arrays of one shape, got "
                f"{', '.join(str(h.shape) for h in hosts)}"
            )
        hosts = [h.reshape(h.shape + (1,) * len(extent)) for h in hosts]
        extent = arrays[0].shape + extent
    elif out is not None and shape is None:
        extent = out.shape
    values = draw(row, label, hosts, extent or (1,))
    if out is not None:
        if out.shape != values.shape:
            raise ShapeError(f"{label}: out must have shape {values.shape}, got {out.shape}")
        out[:] = values
        return out
    if dtype in (None, "None"):
        dtype = row.dtype
    ctx = ctx or next((p.context for p in parameters if isinstance(p, NDArray)), None)
    return array(values, ctx, dtype)


def uniform(low=0, high=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Numbers spread evenly over [low, high)."""
    return _draw("uniform", (low, high), shape, dtype, ctx, out)


def normal(loc=0, scale=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Normal numbers of mean ``loc`` and standard deviation ``scale``."""
    return _draw("normal", (loc, scale), shape, dtype, ctx, out)


def randn(*shape, loc=0, scale=1, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Normal numbers in an array of the given dimensions."""
    return normal(loc, scale, shape or None, dtype, ctx, out)


def poisson(lam=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Poisson numbers of rate ``lam``."""
    return _draw("poisson", (lam,), shape, dtype, ctx, out)


def exponential(scale=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Exponential numbers of mean ``scale``."""
    return _draw("exponential", (scale,), shape, dtype, ctx, out)


def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Gamma numbers of shape ``alpha`` and scale ``beta``."""
    return _draw("gamma", (alpha, beta), shape, dtype, ctx, out)


def negative_binomial(k=1, p=1, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """How many failures come before ``k`` successes of probability ``p``."""
    return _draw("negative_binomial", (k, p), shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu=1, alpha=1, shape=None, dtype=None, ctx: Context | None = None, out=None
) -> NDArray:
    """Poisson numbers whose rate is a gamma number of mean ``mu`` and variance ``alpha * mu**2``."""
    return _draw("generalized_negative_binomial", (mu, alpha), shape, dtype, ctx, out)


def randint(low, high, shape=None, dtype=None, ctx: Context | None = None, out=None) -> NDArray:
    """Whole numbers in [low, high)."""
    return _draw("randint", (low, high), shape, dtype, ctx, out)


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


def draw_zipfian(uniform, true_classes, num_sampled: int, range_max: int) -> list:
    """What ``nd.contrib.rand_zipfian`` and ``sym.random.rand_zipfian`` do, with their own ``uniform``."""
    logs = math.log(range_max + 1)
    drawn = uniform(0, logs, (num_sampled,), "float64")
    sampled = (drawn.exp() - 1).astype("int64") % range_max
    counts = []
    for classes in (true_classes.astype("float64"), sampled.astype("float64")):
        counts.append(((classes + 2) / (classes + 1)).log() / logs * num_sampled)
    return [sampled, *counts]


def __getattr__(name):
    """``uniform_like(data)`` and the others that draw as many numbers as an array has."""
    if name.endswith("_like") and registry.find(f"_random_{name}") is not None:
        return function_for(f"_random_{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
