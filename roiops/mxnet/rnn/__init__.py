"""``mxnet.rnn``: cells that build recurrent graphs step by step, and the batches that language models take.

A cell makes one time step of a graph; ``unroll`` makes many. Weights are variables, shared by all steps.
``FusedRNNCell`` is the operator ``RNN`` instead, whose one array of parameters ``unpack_weights`` cuts up.
"""

import sys

from ...errors import without
from . import cells, convolution, sentences
from .cells import *  # noqa: F403
from .convolution import *  # noqa: F403
from .sentences import *  # noqa: F403

__all__ = [*cells.__all__, *convolution.__all__, *sentences.__all__]

#: MXNet's two modules of this one.
io = rnn_cell = sys.modules[__name__]

__getattr__ = without("rnn", {"rnn_unroll": "call cell.unroll(...)"})
