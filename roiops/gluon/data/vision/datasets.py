"""Datasets of pictures, read from files that are there; nothing is downloaded."""

import os
import warnings

import numpy as np

from ....errors import DataError
from ....mxnet.base import data_dir
from ....ndarray import array
from ....training import image
from ....training.image import recordio
from ....training.io import _read_idx
from ..dataset import Dataset, RecordFileDataset

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolderDataset", "ImageRecordDataset"]


class _FromFiles(Dataset):
    """Base of datasets of files that everybody has: pictures and labels in one folder.

    Nothing is downloaded: the files are in ``root``. ``transform(picture, label)`` makes the sample.
    """

    _folder = ""

    def __init__(self, root=None, train=True, transform=None):
        folder = os.path.join(data_dir(), "datasets", self._folder)
        self._root, self._train = os.path.expanduser(folder if root is None else root), train
        self._transform = transform
        data, self._label = self._read()
        self._data = array(data, dtype=data.dtype)

    def _path(self, *names) -> str:
        """The first of these files that is there."""
        paths = [os.path.join(self._root, name) for name in names]
        for path in paths:
            if os.path.exists(path):
                return path
        raise DataError(
            f"{type(self).__name__}: there is no {paths[0]}; nothing is downloaded here: put the files of "
            "the dataset into that folder"
        )

    def __getitem__(self, idx):
        sample = self._data[idx], self._label[idx]
        return sample if self._transform is None else self._transform(*sample)

    def __len__(self):
        return len(self._label)


class MNIST(_FromFiles):
    """Digits written by hand, of 28 x 28 pixels: ``train-images-idx3-ubyte.gz`` and the other three files."""

    _folder = "mnist"

    def _read(self):
        start = "train" if self._train else "t10k"
        names = f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"
        data, label = (
            _read_idx(self._path(f"{name}.gz", name), count)
            for name, count in zip(names, (3, 1), strict=True)
        )
        return data[..., np.newaxis], label.astype(np.int32)


class FashionMNIST(MNIST):
    """Clothes, in files like those of :class:`MNIST`."""

    _folder = "fashion-mnist"


class CIFAR10(_FromFiles):
    """Pictures of ten classes, of 32 x 32 pixels: ``data_batch_1.bin`` to ``5``, and ``test_batch.bin``."""

    _folder, _labels, _used = "cifar10", 1, 0
    _train_files, _test_files = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]

    def _read(self):
        row, parts = self._labels + 3 * 32 * 32, []
        for name in self._train_files if self._train else self._test_files:
            part = np.fromfile(self._path(name), np.uint8)
            if part.size % row:
                raise DataError(f"{type(self).__name__}: {name} has {part.size} bytes, no multiple of {row}")
            parts.append(part)
        rows = np.concatenate(parts).reshape(-1, row)
        pictures = rows[:, self._labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(pictures), rows[:, self._used].astype(np.int32)


class CIFAR100(CIFAR10):
    """Pictures of 20 groups, or with ``fine_label`` of 100 classes: ``train.bin`` and ``test.bin``."""

    _folder, _labels, _train_files, _test_files = "cifar100", 2, ["train.bin"], ["test.bin"]

    def __init__(self, root=None, fine_label=False, train=True, transform=None):
        self._used = int(fine_label)
        super().__init__(root, train, transform)


class ImageRecordDataset(RecordFileDataset):
    """Pictures with labels in a record file, whose index is beside it, with the ending ``.idx``.

    ``flag`` is 1 for colours, 0 for grey; ``transform(picture, label)`` makes the sample.
    """

    def __init__(self, filename, flag=1, transform=None):
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx):
        header, picture = recordio.unpack(super().__getitem__(idx))
        sample = image.imdecode(picture, self._flag), header.label
        return sample if self._transform is None else self._transform(*sample)


class ImageFolderDataset(Dataset):
    """Pictures in folders, one for each class: ``root/cat/1.jpg``.

    ``flag`` is 1 for colours, 0 for grey; ``transform(picture, label)`` makes the sample.
    """

    _ENDINGS = (".jpg", ".jpeg", ".png")

    def __init__(self, root, flag=1, transform=None):
        self._root, self._flag, self._transform = os.path.expanduser(root), flag, transform
        self.synsets, self.items = [], []
        for folder in sorted(os.listdir(self._root)):
            path = os.path.join(self._root, folder)
            if not os.path.isdir(path):
                warnings.warn(f"Ignoring {path}, which is not a directory.", stacklevel=3)
                continue
            label = len(self.synsets)
            self.synsets.append(folder)
            for name in sorted(os.listdir(path)):
                if os.path.splitext(name)[1].lower() in self._ENDINGS:
                    self.items.append((os.path.join(path, name), label))
                else:
                    warnings.warn(f"Ignoring {os.path.join(path, name)} of type {name}.", stacklevel=3)

    def __getitem__(self, idx):
        path, label = self.items[idx]
        picture = image.imread(path, self._flag)
        return (picture, label) if self._transform is None else self._transform(picture, label)

    def __len__(self):
        return len(self.items)
