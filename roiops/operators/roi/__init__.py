"""Operators on regions of interest; ``dialects`` says which there are."""

from . import align, crop, deformable, pooling, position_sensitive, precise, pyramid, rotated
