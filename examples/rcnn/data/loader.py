"""Batches for training and for detection."""

import numpy as np

import roiops as mx

from ..config import Config
from ..targets import anchor_targets
from .dataset import Record
from .image import open_image, prepare, stack

__all__ = ["TestLoader", "TrainLoader"]


class TrainLoader(mx.io.DataIter):
    """Images with the targets of their anchors, in an order that depends on seed and epoch alone.

    So a run that starts in the middle of an epoch sees what the uninterrupted one would have seen.

    Parameters
    ----------
    records : list of Record
        The data set.
    config : Config
        Sizes, thresholds and the seed.
    stride : int
        Of the feature map.
    map_size : callable
        From height and width of a batch to those of its feature map.
    rank, ranks : int
        Which of several processes this is, and how many learn from shares of one larger batch.
    """

    data_names = ("data", "im_info", "gt_boxes")
    label_names = ("rpn_label", "rpn_bbox_target", "rpn_bbox_weight")

    def __init__(self, records: list[Record], config: Config, stride: int, map_size, rank=0, ranks=1):
        super().__init__(config.training.batch_images)
        self.rank, self.ranks = rank, ranks
        if len(records) < self.batch_size * ranks:
            raise ValueError(
                f"{len(records)} images are too few for {ranks} x {self.batch_size} in a batch"
                if ranks > 1
                else f"{len(records)} images are too few for a batch of {self.batch_size}"
            )
        self.records, self.config, self.stride, self.map_size = records, config, stride, map_size
        self.epoch = self.position = 0
        self._images = {}
        self.start(0)

    def __len__(self):
        """Batches in an epoch; images that do not fill one wait for another epoch's order."""
        return len(self.records) // (self.batch_size * self.ranks)

    def start(self, epoch: int, position: int = 0) -> None:
        """Go to a batch of an epoch."""
        self.epoch, self.position = epoch, position
        self._order = self._generator(epoch).permutation(len(self.records))

    def _generator(self, *where):
        return np.random.default_rng([self.config.training.seed, *where])

    def reset(self):
        self.start(self.epoch + 1)

    @property
    def provide_data(self):
        return self._described(self.data_names, self._batch(range(self.batch_size))[0])

    @property
    def provide_label(self):
        return self._described(self.label_names, self._batch(range(self.batch_size))[1])

    @staticmethod
    def _described(names, arrays):
        return [mx.io.DataDesc(name, each.shape) for name, each in zip(names, arrays, strict=True)]

    def next(self):
        if self.position == len(self):
            raise StopIteration
        first = (self.position * self.ranks + self.rank) * self.batch_size
        self.position += 1
        data, label = self._batch(self._order[first : first + self.batch_size])
        return mx.io.DataBatch(data, label, pad=0)

    def _batch(self, indices):
        """Inputs and labels of these images."""
        images, infos, truths = [], [], []
        generator = self._generator(self.epoch, *map(int, indices))
        for index in indices:
            pixels, factor, record = self._prepared(int(index))
            boxes = record.boxes * factor
            if self.config.data.flip and generator.random() < 0.5:
                pixels = pixels[:, :, ::-1]
                boxes[:, [0, 2]] = pixels.shape[2] - 1 - boxes[:, [2, 0]]
            kept = np.flatnonzero(~record.difficult)[: self.config.data.max_boxes]
            images.append(pixels)
            infos.append((*pixels.shape[1:], factor))
            truths.append(np.column_stack([boxes, record.classes])[kept].astype(np.float32))
        data = stack(images, self.stride)
        map_size = self.map_size(*data.shape[2:])
        padded = np.zeros((len(truths), self.config.data.max_boxes, 5), np.float32)
        labels = []
        for slot, truth, info in zip(padded, truths, infos, strict=True):
            slot[: len(truth)] = truth
            wanted = (self.config, self.stride, map_size, info[:2], truth[:, :4], generator)
            labels.append(anchor_targets(*wanted))
        return [data, np.array(infos, np.float32), padded], [
            np.stack(each) for each in zip(*labels, strict=True)
        ]

    def _prepared(self, index):
        """Pixels of an image, remembered while they fit in a gigabyte."""
        if index in self._images:
            return self._images[index]
        record = self.records[index]
        pixels, factor = prepare(open_image(record.image), self.config.data)
        if pixels.nbytes * len(self.records) < 2**30:
            self._images[index] = (pixels, factor, record)
        return pixels, factor, record


class TestLoader:
    """One image at a time: ``for batch, record, factor in loader``."""

    def __init__(self, records: list[Record], config: Config, stride: int):
        self.records, self.config, self.stride = records, config, stride

    def __len__(self):
        return len(self.records)

    def __iter__(self):
        for record in self.records:
            pixels, factor = prepare(open_image(record.image), self.config.data)
            info = np.array([[*pixels.shape[1:], factor]], np.float32)
            yield mx.io.DataBatch([stack([pixels], self.stride), info]), record, factor
