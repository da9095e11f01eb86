"""Region-of-interest operators of every framework, and the MXNet-style graph around them, on numba."""

from . import context, errors, params, registry  # noqa: I001  (operators register before anything asks for them)
from . import operators
from . import ndarray, symbol
from . import executor, operator, random, test_utils, testing, viz
from . import callback, initializer, io, lr_scheduler, metric, model, module, monitor, optimizer
from . import archive, base, contrib, image
from ._version import __version__
from .context import Context, cpu, cpu_pinned, current_context, gpu
from .errors import MXNetError
from .executor import Executor
from .ndarray import NDArray
from .symbol import AttrScope, Symbol
from .symbol import naming as name
from .warmup import warmup

attribute = name
img = image
init = initializer
mod = module
mon = monitor
nd = ndarray
sym = symbol
visualization = viz

__all__ = [
    "AttrScope",
    "Context",
    "Executor",
    "MXNetError",
    "NDArray",
    "Symbol",
    "__version__",
    "archive",
    "attribute",
    "base",
    "callback",
    "context",
    "contrib",
    "cpu",
    "cpu_pinned",
    "current_context",
    "errors",
    "executor",
    "gpu",
    "image",
    "init",
    "initializer",
    "inspection",
    "io",
    "lr_scheduler",
    "metric",
    "mod",
    "model",
    "module",
    "mon",
    "monitor",
    "name",
    "nd",
    "ndarray",
    "operator",
    "operators",
    "optimizer",
    "params",
    "random",
    "registry",
    "sym",
    "symbol",
    "test_utils",
    "testing",
    "visualization",
    "viz",
    "warmup",
]


def __dir__():
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
