"""``mxnet.rnn``: cells that build recurrent graphs step by step, and the batches that language models take.

A cell makes one time step of a graph; ``unroll`` makes many. Weights are variables, shared by all steps.
``FusedRNNCell`` is the operator ``RNN`` instead, whose one array of parameters ``unpack_weights`` cuts up.
"""

import sys

from .cells import *  # noqa: F403
from .cells import __all__ as _cells
from .convolution import *  # noqa: F403
from .convolution import __all__ as _convolution
from .sentences import *  # noqa: F403
from .sentences import __all__ as _sentences

__all__ = [*_cells, *_convolution, *_sentences]

#: MXNet's two modules of this one.
io = rnn_cell = sys.modules[__name__]
