"""Softmax and loss operators."""

from . import ctc, output, softmax

__all__ = ["ctc", "output", "softmax"]
