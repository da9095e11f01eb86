"""Operators on regions of interest."""

from . import deformable, max_or_average, rotated

__all__ = ["deformable", "max_or_average", "rotated"]
