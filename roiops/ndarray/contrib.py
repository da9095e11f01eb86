"""``nd.contrib``: the operators whose names start with ``_contrib_``, and functions made of operators."""

import math

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
    logs = math.log(range_max + 1)
    drawn = random.uniform(0, logs, (num_sampled,), "float64", ctx or true_classes.context)
    sampled = (drawn.exp() - 1).astype("int64") % range_max
    counts = []
    for classes in (true_classes.astype("float64"), sampled.astype("float64")):
        counts.append(((classes + 2) / (classes + 1)).log() / logs * num_sampled)
    return [sampled, *counts]


def __dir__():
    return sorted({*_operators(), "rand_zipfian"})
