"""``gluon.model_zoo``: networks, without their trained parameters."""

from . import model_store, vision
from .vision import get_model

__all__ = ["get_model", "model_store", "vision"]
