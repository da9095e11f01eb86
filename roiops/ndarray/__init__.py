"""``roiops.nd``: arrays, and every registered operator as a function on them.

``nd.X(inputs..., parameters..., out=None)`` calls the operator ``X``; ``nd.contrib.X`` calls ``_contrib_X``.
NumPy arrays are taken wherever NDArrays are. Operators that are registered later appear here too.
"""

from . import _internal, contrib, image, linalg, op, random, sparse, updates
from .arithmetic import FUNCTIONS as _FUNCTIONS
from .creation import arange, array, empty, eye, from_numpy, full, linspace, ones, reset_arrays, zeros
from .files import load, load_frombuffer, save
from .functions import function_for as _function_for
from .functions import namespace as _namespace
from .ndarray import NDArray, from_dlpack, waitall
from .shaping import concatenate, histogram, moveaxis, onehot_encode, split_v2
from .sparse import cast_storage
from .updates import *  # noqa: F403

globals().update(_FUNCTIONS)

#: Names from before there was ``nd.random``.
_RANDOM = {
    "normal": random.normal,
    "random_exponential": _function_for("_random_exponential"),  # by its rate
    "random_gamma": random.gamma,
    "random_negative_binomial": random.negative_binomial,
    "random_normal": random.normal,
    "random_poisson": random.poisson,
    "random_randint": random.randint,
    "random_uniform": random.uniform,
    "uniform": random.uniform,
}
globals().update(_RANDOM)

to_dlpack_for_read = NDArray.to_dlpack_for_read
to_dlpack_for_write = NDArray.to_dlpack_for_write

__all__ = [
    "NDArray",
    "_internal",
    "arange",
    "array",
    "cast_storage",
    "concatenate",
    "contrib",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "histogram",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_frombuffer",
    "moveaxis",
    "onehot_encode",
    "ones",
    "op",
    "random",
    "reset_arrays",
    "save",
    "sparse",
    "split_v2",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "waitall",
    "zeros",
    *updates.__all__,
    *sorted(_FUNCTIONS),
    *sorted(_RANDOM),
]

__getattr__, _operators = _namespace(__name__)


def __dir__():
    return sorted({*__all__, *_operators()})
