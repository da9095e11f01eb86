"""``nd.contrib``: the operators whose names start with ``_contrib_``, and functions made of operators."""

import functools

from . import random
from .functions import namespace
from .ndarray import NDArray

__getattr__, _operators = namespace(__name__, "_contrib_")


def rand_zipfian(true_classes: NDArray, num_sampled: int, range_max: int, ctx=None) -> list[NDArray]:
    """Classes drawn by the log-uniform distribution, and how often each is to be expected.

    Returns
    -------
    list of NDArray
        The drawn classes; how often each of ``true_classes`` is expected among them; the same for the drawn.
    """
    uniform = functools.partial(random.uniform, ctx=ctx or true_classes.context)
    return random.draw_zipfian(uniform, true_classes, num_sampled, range_max)


def __dir__():
    return sorted({*_operators(), "rand_zipfian"})
