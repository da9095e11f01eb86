"""``gluon.contrib``: what GluonCV asks for."""

from . import cnn, nn

__all__ = ["cnn", "nn"]


def __getattr__(name):
    raise AttributeError(f"gluon.contrib.{name}: roiops has no {name} of it, only {' and '.join(__all__)}")
