"""``gluon.data.vision``: datasets of pictures, and what is done to them."""

from . import datasets, transforms
from .datasets import *  # noqa: F403

__all__ = [*datasets.__all__, "datasets", "transforms"]
