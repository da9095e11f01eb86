"""Batches of pictures from files, changed by augmenters."""

import contextlib
import logging
import os
import random
from numbers import Number

import numpy as np

from ... import ndarray as nd
from ...errors import DataError, MXNetError, ParamError, ShapeError
from ...ndarray.files import open_file
from ..io import DataBatch, DataIter, check_batch_size
from .augment import CreateAugmenter
from .reading import imdecode
from .recordio import MXIndexedRecordIO, MXRecordIO, unpack

__all__ = ["ImageIter"]


class ImageIter(DataIter):
    """Batches of images from files, changed by augmenters.

    Parameters
    ----------
    batch_size : int
        Images in a batch.
    data_shape : (int, int, int)
        Channels, which are 3, height and width.
    label_width : int
        Labels of an image.
    path_imgrec, path_imgidx : str
        A record file of images, and its index; without an index it is read from its start to its end.
    path_imglist : str
        A file with a line for each image: number, labels and file, parted by tabs. Beside a record file it
        has the labels of its records.
    imglist : list
        In its place, a list of ``[label, ..., file]``.
    path_root : str
        The folder of the files.
    shuffle : bool
        Whether each epoch has an order of its own.
    part_index, num_parts : int
        Which part of how many is read.
    aug_list : list of Augmenter, optional
        What changes the images; :func:`CreateAugmenter` with the further keywords unless given.
    last_batch_handle : str
        ``"pad"`` fills the last batch up with the first images, ``"discard"`` leaves it out, ``"roll_over"``
        keeps its images for the next epoch.
    """

    def __init__(
        self,
        batch_size,
        data_shape,
        label_width=1,
        path_imgrec=None,
        path_imglist=None,
        path_root=None,
        path_imgidx=None,
        shuffle=False,
        part_index=0,
        num_parts=1,
        aug_list=None,
        imglist=None,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        last_batch_handle="pad",
        **kwargs,
    ):
        super().__init__(batch_size)
        name = type(self).__name__
        check_batch_size(name, batch_size)
        if path_imgrec is None and path_imglist is None and not isinstance(imglist, list):
            raise ParamError(f"{name}: path_imgrec, path_imglist or imglist must be given")
        if path_imgrec is not None and path_imgidx is None and (shuffle or num_parts > 1):
            raise ParamError(f"{name}: path_imgidx must be given to shuffle record files or to read a part")
        if dtype not in ("int32", "float32", "int64", "float64"):
            raise ParamError(f"{name}: dtype must be int32, float32, int64 or float64, got {dtype!r}")
        if not 0 <= part_index < num_parts:
            raise ParamError(f"{name}: part_index must be below num_parts, {num_parts}, got {part_index}")
        self.check_data_shape(data_shape)
        self.imgrec = self.imglist = None
        if path_imgrec is not None:
            logging.info("%s: loading recordio %s...", name, path_imgrec)
            indexed = path_imgidx is not None
            self.imgrec = (
                MXIndexedRecordIO(path_imgidx, path_imgrec, "r") if indexed else MXRecordIO(path_imgrec, "r")
            )
        if path_imglist is not None or isinstance(imglist, list):
            what = "image list" if path_imglist is None else f"image list {path_imglist}"
            logging.info("%s: loading %s...", name, what)
            listed = read_list(path_imglist) if path_imglist is not None else _from_list(imglist)
            self.imglist = {
                key: (nd.array(label, dtype=dtype), file) for key, (label, file) in listed.items()
            }
        self.path_root, self.shuffle = path_root, shuffle
        self.data_shape, self.label_width = tuple(data_shape), label_width
        self.provide_data = [(data_name, (batch_size, *self.data_shape))]
        self.provide_label = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        #: The keys of the images in the order of an epoch; None for a record file without an index.
        self.seq = list(self.imglist) if self.imgrec is None else getattr(self.imgrec, "keys", None)
        if num_parts > 1:
            part = len(self.seq) // num_parts
            self.seq = self.seq[part_index * part : (part_index + 1) * part]
        self.num_image = None if self.seq is None else len(self.seq)
        self.auglist = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.last_batch_handle = last_batch_handle
        self.hard_reset()

    def check_data_shape(self, data_shape) -> None:
        """Raise unless the shape is one of 3 channels."""
        if len(data_shape) != 3:
            raise ValueError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ValueError("This iterator expects inputs to have 3 channels.")

    def check_valid_image(self, data) -> None:
        """Raise unless the first of ``data`` is an image."""
        if len(data[0].shape) == 0:
            raise DataError("Data shape is wrong")

    def reset(self) -> None:
        if self.shuffle:
            random.shuffle(self.seq)
        if self._left_over is None:  # a new epoch goes on after the images that the last one left over
            self._rewind()
            self._has_ended = False

    def _rewind(self) -> None:
        self.cur = 0
        if self.imgrec is not None:
            self.imgrec.reset()

    def hard_reset(self) -> None:
        """Start anew, without what an epoch left over."""
        self._left_over = None
        self.reset()

    def next(self) -> DataBatch:
        if self._left_over is not None:
            (data, labels, filled), self._left_over = self._left_over, None
            rolled = True
        else:
            data = np.zeros(self.provide_data[0][1], np.float32)
            labels = self._no_labels()
            filled, rolled = self._fill(data, labels, 0), False
        if filled == 0:
            raise StopIteration
        pad = self.batch_size - filled  # after a batch that rolled over, what is read anew, as in MXNet
        if pad:
            if self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over" and not rolled:
                self._left_over = data, labels, filled
                raise StopIteration
            while filled < self.batch_size:
                filled = self._fill(data, labels, filled)
            self._has_ended = self.last_batch_handle == "pad"
        return DataBatch([nd.array(data)], [nd.array(labels)], pad=pad)

    def _no_labels(self) -> np.ndarray:
        return np.zeros(self.provide_label[0][1], np.float32)

    def _fill(self, data, labels, row: int) -> int:
        """Put samples into the rows from ``row`` on, until the images end; the first row that is free."""
        for label, raw in self._samples():
            row += self._put(label, self.imdecode(raw), data[row], labels[row : row + 1])
            if row == self.batch_size:
                break
        return row

    def _samples(self):
        """The samples that are left."""
        with contextlib.suppress(StopIteration):
            while True:
                yield self.next_sample()

    def _put(self, label, image, data, labels) -> bool:
        """Write one changed image and its label into a batch; False where it is passed over."""
        self._write(self.augmentation_transform(image), data)
        label = np.asarray(label)
        labels[0] = label if self.label_width > 1 else label.ravel()[0]
        return True

    def _write(self, image, data) -> None:
        image = self.postprocess_data(image).asnumpy()
        if image.shape != data.shape:
            raise ShapeError(
                f"{type(self).__name__}: {self._file()} became {image.shape}, data_shape is {data.shape}"
            )
        data[:] = image

    def next_sample(self):
        """The next label, and the bytes of its image's file."""
        if self._has_ended:
            raise StopIteration
        key = record = None
        if self.seq is None:
            record = self.imgrec.read()
        elif self.cur < self.num_image:
            key = self.seq[self.cur]
        if key is None and record is None:
            if self.last_batch_handle != "discard":
                self._rewind()
            raise StopIteration
        self.cur += 1
        if self.imgrec is None:
            label, file = self.imglist[key]
            return label, self.read_image(file)
        header, image = unpack(self.imgrec.read_idx(key) if record is None else record)
        return header.label if self.imglist is None or key is None else self.imglist[key][0], image

    def _file(self) -> str:
        """The file that was read last, or the record."""
        if self.imgrec is None:
            return self.imglist[self.seq[self.cur - 1]][1]
        return f"{self.imgrec.uri}, record {self.cur - 1 if self.seq is None else self.seq[self.cur - 1]}"

    def imdecode(self, s) -> nd.NDArray:
        """The image in the bytes of a file."""
        try:
            return imdecode(s)
        except MXNetError as error:
            raise DataError(f"{type(self).__name__}: {self._file()}: {error}") from None

    def read_image(self, fname) -> bytes:
        """The bytes of a file below ``path_root``."""
        with open_file(os.path.join(self.path_root or "", fname)) as file:
            return file.read()

    def augmentation_transform(self, data):
        """The image after all augmenters."""
        for each in self.auglist:
            data = each(data)
        return data

    def postprocess_data(self, datum):
        """The image with its channels first."""
        return nd.transpose(datum, axes=(2, 0, 1))


def read_list(path) -> dict:
    """Labels and file by number, from a file of lines."""
    found = {}
    with open_file(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                key, label, *labels, file = line.decode().strip().split("\t")
                found[int(key)] = np.array([label, *labels], np.float64), file
            except ValueError:
                raise DataError(
                    f"{path}, line {number}: not a number, labels and a file parted by tabs"
                ) from None
    return found


def _from_list(items) -> dict:
    """Labels and file by number, from a list; the numbers are text, as in MXNet."""
    found = {}
    for number, (*labels, file) in enumerate(items, 1):
        labels = labels[0] if len(labels) == 1 and not isinstance(labels[0], Number) else labels
        found[str(number)] = np.asarray(labels, np.float64), file
    return found
