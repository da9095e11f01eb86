"""``gluon.contrib``: what GluonCV asks for."""

from . import cnn, nn

__all__ = ["cnn", "nn"]
