"""Saved models: load them, look into them, read what they detect."""

from . import archive, detections, inspection
from .archive import ArchivedModel, load
from .inspection import inspect_model, read_params, read_symbol

__all__ = [
    "ArchivedModel",
    "archive",
    "detections",
    "inspect_model",
    "inspection",
    "load",
    "read_params",
    "read_symbol",
]
