"""Datasets of pictures."""

import os
import warnings

from ....training import image
from ..dataset import Dataset

__all__ = ["ImageFolderDataset"]


class ImageFolderDataset(Dataset):
    """Pictures in folders, one for each class: ``root/cat/1.jpg``.

    Parameters
    ----------
    root : str
        The folder of the classes' folders.
    flag : int
        1 for colours, 0 for grey.
    transform : callable, optional
        ``transform(picture, label)`` makes the sample.
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
