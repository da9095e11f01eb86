"""Datasets: samples by their numbers."""

import functools
import os

from ...ndarray import NDArray
from ...training.image import recordio
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base of datasets: ``dataset[i]`` and ``len(dataset)``."""

    def __getitem__(self, idx):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def filter(self, fn) -> "Dataset":
        """The samples for which ``fn(sample)`` is true."""
        return _Sampled(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> "Dataset":
        """Part ``index`` of ``num_shards`` parts of about equal length."""
        if not 0 <= index < num_shards:
            raise AssertionError(f"Shard index of out bound: {index} out of {num_shards}")
        each, rest = divmod(len(self), num_shards)
        start = each * index + min(index, rest)
        return _Sampled(self, SequentialSampler(each + (index < rest), start))

    def take(self, count: int | None) -> "Dataset":
        """The first ``count`` samples."""
        return _Sampled(self, SequentialSampler(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler: Sampler) -> "Dataset":
        """The samples that a sampler names, in its order."""
        if not isinstance(sampler, Sampler):
            raise TypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _Sampled(self, sampler)

    def transform(self, fn, lazy: bool = True) -> "Dataset":
        """Each sample as ``fn`` gives it: when it is read, or with ``lazy=False`` all at once."""
        made = _Transformed(self, fn)
        return made if lazy else SimpleDataset([made[i] for i in range(len(made))])

    def transform_first(self, fn, lazy: bool = True) -> "Dataset":
        """The same, for the first entry of each sample only."""
        return self.transform(functools.partial(_of_first, fn), lazy)


def _of_first(fn, first, *rest):
    return (fn(first), *rest) if rest else fn(first)


class SimpleDataset(Dataset):
    """A list as a dataset."""

    def __init__(self, data):
        self._data = data

    def __len__(self):
        return len(self._data)

    def __getitem__(self, idx):
        return self._data[idx]


class _Transformed(SimpleDataset):
    def __init__(self, data, fn):
        super().__init__(data)
        self._fn = fn

    def __getitem__(self, idx):
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _Sampled(SimpleDataset):
    def __init__(self, data, sampler):
        super().__init__(data)
        self._indices = list(sampler)

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, idx):
        return self._data[self._indices[idx]]


class ArrayDataset(Dataset):
    """Arrays or lists of one length, side by side."""

    def __init__(self, *args):
        if not args:
            raise AssertionError("Needs at least 1 arrays")
        for i, each in enumerate(args):
            if len(each) != len(args[0]):
                raise AssertionError(
                    f"All arrays must have the same length; array[0] has length {len(args[0])} while "
                    f"array[{i}] has {len(each)}."
                )
        self._data = [
            each.asnumpy() if isinstance(each, NDArray) and each.ndim == 1 else each for each in args
        ]

    def __getitem__(self, idx):
        return self._data[0][idx] if len(self._data) == 1 else tuple(each[idx] for each in self._data)

    def __len__(self):
        return len(self._data[0])


class RecordFileDataset(Dataset):
    """The records of a record file, as bytes; its index is beside it, with the ending ``.idx``."""

    def __init__(self, filename):
        self.filename, self.idx_file = filename, os.path.splitext(filename)[0] + ".idx"
        self._record = recordio.MXIndexedRecordIO(self.idx_file, filename, "r")

    def __getitem__(self, idx):
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self):
        return len(self._record.keys)
