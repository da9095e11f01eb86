"""Files of the data sets that MXNet's examples train with. They are read where they are, not downloaded."""

import os

import numpy as np

from ..training.io import MNISTIter, _read_idx

__all__ = ["download", "get_mnist", "get_mnist_iterator", "get_mnist_ubyte"]

_MNIST = "http://data.mxnet.io/data/mnist/"


def download(url, fname=None, dirname=None, overwrite=False, retries=5) -> str:
    """Where the file of this URL is, if it is there already; nothing is downloaded here, so else an error."""
    from ..gluon import utils  # which takes a while to import

    return utils.download(url, os.path.join(dirname or "", fname or url.split("/")[-1]), overwrite)


def get_mnist() -> dict:
    """Digits written by hand, from the four ``.gz`` files of MNIST in the current folder: arrays of NumPy."""
    found = {}
    for part, start in ("train", "train"), ("test", "t10k"):
        pictures = _read_idx(download(f"{_MNIST}{start}-images-idx3-ubyte.gz"), 3)
        labels = _read_idx(download(f"{_MNIST}{start}-labels-idx1-ubyte.gz"), 1)
        found[f"{part}_data"] = pictures[:, np.newaxis].astype(np.float32) / 255
        found[f"{part}_label"] = labels.astype(np.int8)
    return found


def get_mnist_ubyte() -> None:
    """An error unless the four files of MNIST are in the folder ``data``."""
    for name in ("images-idx3", "labels-idx1"):
        for start in ("train", "t10k"):
            download(f"{_MNIST}{start}-{name}-ubyte", dirname="data")


def get_mnist_iterator(batch_size, input_shape, num_parts=1, part_index=0):
    """Iterators over MNIST's digits for training and for validation, from the four files in ``data``."""
    get_mnist_ubyte()
    return tuple(
        MNISTIter(
            image=f"data/{start}-images-idx3-ubyte",
            label=f"data/{start}-labels-idx1-ubyte",
            input_shape=input_shape,
            batch_size=batch_size,
            flat=len(input_shape) != 3,
            num_parts=num_parts,
            part_index=part_index,
        )
        for start in ("train", "t10k")
    )
