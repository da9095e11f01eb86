"""The operators on regions of interest in ONNX."""

from . import points, pooling
