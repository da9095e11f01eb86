"""``gluon.contrib``: what GluonCV asks for."""

from ...errors import without
from . import cnn, nn

__all__ = ["cnn", "nn"]

__getattr__ = without(
    "gluon.contrib",
    {
        "data": "gluon.data has data sets and loaders",
        "estimator": "write the loop with autograd.record() and gluon.Trainer, or use mx.mod.Module.fit",
        "rnn": "gluon.rnn has cells and layers; mx.rnn has cells that convolve, for symbols",
    },
)
