"""``gluon.rnn``: cells, which are one step each, and layers over the operator ``RNN``."""

import sys

from . import cells, layers
from .cells import *  # noqa: F403
from .layers import *  # noqa: F403

__all__ = [*cells.__all__, *layers.__all__]

rnn_cell = rnn_layer = sys.modules[__name__]  # MXNet's names of the two modules
