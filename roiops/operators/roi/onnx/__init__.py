"""The operators on regions of interest in ONNX."""

from . import points, pooling  # noqa: F401 (they declare the lowerings)
