"""``sym.random``: random numbers in a graph, drawn anew in every forward.

Parameters are numbers, or all symbols: then each of their entries gets ``shape`` numbers of its own. A device
(``ctx``) has no effect: a graph draws where it is bound.
"""

from .. import registry
from ..errors import GraphError
from ..ndarray import random as arrays
from .symbol import Symbol, invoke

__all__ = [*arrays.__all__, "rand_zipfian"]


def _draw(name: str, parameters: dict, shape, dtype, options) -> Symbol:
    given = {key: value for key, value in options.items() if key in ("name", "attr")}
    if shape is not None:
        given["shape"] = shape
    if dtype not in (None, "None"):
        given["dtype"] = dtype
    symbols = [isinstance(value, Symbol) for value in parameters.values()]
    if not any(symbols):
        return invoke(registry.get(f"_random_{name}"), (), {**parameters, **given}, f"_random_{name}")
    if not all(symbols):
        raise GraphError(f"random.{name}: {' and '.join(parameters)} must both be numbers or both symbols")
    return invoke(registry.get(f"_sample_{name}"), tuple(parameters.values()), given, f"_sample_{name}")


def uniform(low=0, high=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Numbers spread evenly over [low, high)."""
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc=0, scale=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Normal numbers of mean ``loc`` and standard deviation ``scale``."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape, loc=0, scale=1, dtype=None, **kwargs) -> Symbol:
    """Normal numbers in an array of the given dimensions."""
    return normal(loc, scale, shape or None, dtype, **kwargs)


def poisson(lam=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Poisson numbers of rate ``lam``."""
    return _draw("poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Exponential numbers of mean ``scale``."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha=1, beta=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Gamma numbers of shape ``alpha`` and scale ``beta``."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k=1, p=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """How many failures come before ``k`` successes of probability ``p``."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(mu=1, alpha=1, shape=None, dtype=None, **kwargs) -> Symbol:
    """Poisson numbers whose rate is a gamma number of mean ``mu`` and variance ``alpha * mu**2``."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def randint(low, high, shape=None, dtype=None, **kwargs) -> Symbol:
    """Whole numbers in [low, high)."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, kwargs)


def multinomial(data, shape=None, get_prob=True, dtype="int32", **kwargs) -> Symbol:
    """Indices drawn by the probabilities in the last axis; with ``get_prob``, their logarithms too."""
    given = {"shape": () if shape is None else shape, "get_prob": get_prob, "dtype": dtype, **kwargs}
    return invoke(registry.get("_sample_multinomial"), (data,), given, "_sample_multinomial")


def shuffle(data, **kwargs) -> Symbol:
    """The rows of ``data`` in a random order."""
    return invoke(registry.get("_shuffle"), (data,), kwargs, "_shuffle")


def rand_zipfian(true_classes, num_sampled: int, range_max: int) -> list[Symbol]:
    """Classes drawn by the log-uniform distribution, and how often each is to be expected.

    Returns
    -------
    list of Symbol
        The drawn classes; how often each of ``true_classes`` is expected among them; the same for the drawn.
    """
    return arrays.draw_zipfian(uniform, true_classes, num_sampled, range_max)


def __getattr__(name):
    """``uniform_like(data)`` and the others that draw as many numbers as a symbol's array has."""
    if not name.endswith("_like") or registry.find(f"_random_{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def like(data, dtype=None, **kwargs):  # the dtype is that of the data, whatever is asked for
        return invoke(registry.get(f"_random_{name}"), (data,), kwargs, f"_random_{name}")

    like.__name__ = name
    return like
