"""Saved models: load them, look into them, give them pictures, read what they detect."""

from . import archive, detections, inspection
from .archive import ArchivedModel
from .inspection import inspect_model, read_params, read_symbol
from .pictures import Preprocessing
from .predict import PictureModel, Prediction, load

__all__ = [
    "ArchivedModel",
    "PictureModel",
    "Prediction",
    "Preprocessing",
    "archive",
    "detections",
    "inspect_model",
    "inspection",
    "load",
    "read_params",
    "read_symbol",
]
