"""Data sets: readers of two formats, a generator that writes both, and the loaders of batches."""

from .dataset import DataError, Record, read_dataset
from .loader import TestLoader, TrainLoader

__all__ = ["DataError", "Record", "TestLoader", "TrainLoader", "read_dataset"]
