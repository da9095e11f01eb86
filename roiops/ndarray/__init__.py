"""``roiops.nd``: arrays, and every registered operator as a function on them.

``nd.X(inputs..., parameters..., out=None)`` calls the operator ``X``; ``nd.contrib.X`` calls ``_contrib_X``.
NumPy arrays are taken wherever NDArrays are. Operators that are registered later appear here too.
"""

from . import contrib, creation, image, linalg, op, random, shaping, sparse, updates
from . import op as _internal
from .arithmetic import FUNCTIONS as _FUNCTIONS
from .creation import *  # noqa: F403
from .files import load, load_frombuffer, save
from .functions import function_for as _function_for
from .functions import namespace as _namespace
from .ndarray import NDArray, from_dlpack, waitall
from .shaping import *  # noqa: F403
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
    "cast_storage",
    "contrib",
    "from_dlpack",
    "image",
    "linalg",
    "load",
    "load_frombuffer",
    "op",
    "random",
    "save",
    "sparse",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "waitall",
    *creation.__all__,
    *shaping.__all__,
    *updates.__all__,
    *sorted(_FUNCTIONS),
    *sorted(_RANDOM),
]

__getattr__, _operators = _namespace(__name__)


def __dir__():
    return sorted({*__all__, *_operators()})
