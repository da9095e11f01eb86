"""Saved models: load them, look into them, give them pictures, read what they detect."""

from . import archive, compare, detections, files, inspection, onnx
from .archive import ArchivedModel
from .files import read_params, read_symbol
from .inspection import inspect_model
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
    "files",
    "inspect_model",
    "inspection",
    "load",
    "onnx",
    "read_params",
    "read_symbol",
    "to_onnx",
]
