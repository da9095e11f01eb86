"""``gluon.model_zoo``: networks, without their trained parameters."""

from . import vision
from .vision import get_model

__all__ = ["get_model", "vision"]
