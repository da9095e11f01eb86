"""Softmax and loss operators."""

from . import ctc, output, softmax
