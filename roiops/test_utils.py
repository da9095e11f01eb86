"""MXNet's name of :mod:`roiops.testing`: the same module."""

import sys

from . import testing

sys.modules[__name__] = testing
