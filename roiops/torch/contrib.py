"""``roiops.torch.contrib``: the operators on regions of interest whose names start with ``_contrib_``."""

from .generic import namespace

__getattr__, __dir__ = namespace(__name__, "_contrib_")
