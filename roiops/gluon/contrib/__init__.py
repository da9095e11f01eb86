"""``gluon.contrib``: layers that GluonCV asks for."""

from . import nn

__all__ = ["nn"]
