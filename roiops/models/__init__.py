"""Saved models: load them, look into them, give them pictures, read what they detect."""

from . import archive, compare, detections, inspection, onnx
from .archive import ArchivedModel
from .inspection import inspect_model, read_params, read_symbol
from .onnx import to_onnx
from .pictures import Preprocessing
from .predict import PictureModel, Prediction, load

__all__ = [
    "ArchivedModel",
    "PictureModel",
    "Prediction",
    "Preprocessing",
    "archive",
    "compare",
    "detections",
    "inspect_model",
    "inspection",
    "load",
    "onnx",
    "read_params",
    "read_symbol",
    "to_onnx",
]
