"""``roiops.torch.op``: every registered operator on regions of interest, under its own name, on tensors.

``roiops.torch.op.ROIAlign`` takes what ``roiops.nd.ROIAlign`` takes; ``op.contrib`` holds those whose names
start with ``_contrib_``. Operators that are registered later appear here too.
"""

from . import contrib
from .generic import namespace

__all__ = ["contrib"]

__getattr__, _operators = namespace(__name__)


def __dir__():
    return sorted({*__all__, *_operators()})
