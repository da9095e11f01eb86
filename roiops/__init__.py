"""Region-of-interest operators with the numbers of nine frameworks, and the MXNet-style graph around them."""

import importlib as _importlib
import sys as _sys

from . import (
    autograd,
    context,
    errors,
    graph,
    models,
    mxnet,
    ndarray,
    operators,
    params,
    random,
    registry,
    testing,
    training,
    viz,
)
from ._version import __version__
from .context import Context, cpu, cpu_pinned, current_context, gpu
from .errors import MXNetError
from .graph import executor
from .graph import functions as symbol
from .graph import naming as name
from .graph.executor import Executor
from .graph.symbol import AttrScope, Symbol
from .mxnet import base, contrib, engine, executor_manager, log, model, operator, rnn, util
from .ndarray import NDArray
from .shapes import is_np_shape, np_shape, set_np_shape, use_np_shape
from .training import (
    callback,
    image,
    initializer,
    io,
    kvstore,
    lr_scheduler,
    metric,
    module,
    monitor,
    optimizer,
)
from .training.image import recordio
from .warmup import warmup

attribute = name
img = image
init = initializer
kv = kvstore
mod = module
mon = monitor
nd = ndarray
rnd = random
sym = symbol
test_utils = testing
visualization = viz

__all__ = [
    "AttrScope",
    "Context",
    "Executor",
    "MXNetError",
    "NDArray",
    "Symbol",
    "__version__",
    "attribute",
    "autograd",
    "base",
    "callback",
    "context",
    "contrib",
    "cpu",
    "cpu_pinned",
    "current_context",
    "engine",
    "errors",
    "executor",
    "executor_manager",
    "gluon",
    "gpu",
    "graph",
    "image",
    "img",
    "init",
    "initializer",
    "io",
    "is_np_shape",
    "kv",
    "kvstore",
    "log",
    "lr_scheduler",
    "metric",
    "mod",
    "model",
    "models",
    "module",
    "mon",
    "monitor",
    "mxnet",
    "name",
    "nd",
    "ndarray",
    "np_shape",
    "operator",
    "operators",
    "optimizer",
    "params",
    "random",
    "recordio",
    "registry",
    "rnd",
    "rnn",
    "set_np_shape",
    "sym",
    "symbol",
    "test_utils",
    "testing",
    "training",
    "use_np_shape",
    "util",
    "visualization",
    "viz",
    "warmup",
]

# MXNet's names of modules: ``mx.metric``, and ``from roiops.metric import Accuracy``, wherever they stand.
_modules = {_name: globals().get(_name) for _name in __all__}
_sys.modules.update({f"{__name__}.{n}": each for n, each in _modules.items() if isinstance(each, type(_sys))})


def __getattr__(name):
    if name == "gluon":  # imported when it is first asked for: most programs run saved graphs
        return _importlib.import_module(".gluon", __name__)
    from .mxnet import absent  # only for what is not there

    if name in absent.ABSENT:
        raise AttributeError(absent.advice_for(name, __name__))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{errors.nearest(name, __all__)}")


def __dir__():
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
