"""``gluon.data.vision``: datasets of pictures, and what is done to them."""

from . import transforms
from .datasets import ImageFolderDataset

__all__ = ["ImageFolderDataset", "transforms"]
