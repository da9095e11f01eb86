"""``gluon.data``: datasets, samplers and loaders of batches."""

from . import dataloader, dataset, sampler, vision
from .dataloader import DataLoader
from .dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from .sampler import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "BatchSampler", "DataLoader", "Dataset", "FilterSampler", "RandomSampler"]
__all__ += ["RecordFileDataset", "Sampler", "SequentialSampler", "SimpleDataset"]
__all__ += ["dataloader", "dataset", "sampler", "vision"]
