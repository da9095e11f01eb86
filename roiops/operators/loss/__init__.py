"""Softmax and loss operators."""

from . import output, softmax

__all__ = ["output", "softmax"]
