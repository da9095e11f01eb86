"""Pictures and the boxes in them, changed together at random, and batches of both, for training detectors.

The boxes of a picture are an array with a row for each object: its class, then left, top, right and bottom
as shares of the width and height, then whatever else. Random numbers come from Python's ``random``, in
MXNet's order, so that equal seeds give equal pictures.
"""

import logging
import random
import warnings
from math import sqrt
from numbers import Number

import numpy as np

from ... import ndarray as nd
from ...errors import DataError, MXNetError, ParamError
from ..factory import REQUIRED, Declared
from .augment import Augmenter, CastAug, ForceResizeAug, ResizeAug, colour_augmenters, mean_and_std
from .batches import ImageIter
from .reading import copyMakeBorder, fixed_crop, pillow

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "ImageDetIter",
]

#: OpenCV's number for a constant border around the picture itself.
_CONSTANT_BORDER = 16


# -- augmenters ------------------------------------------------------------------------------------------


class DetAugmenter(Augmenter):
    """Changes an image and its boxes; the array of boxes may be changed in place."""

    def __call__(self, src, label):
        """The changed image and boxes."""
        raise NotImplementedError("Must override implementation.")


class DetBorrowAug(DetAugmenter):
    """An augmenter that leaves the boxes where they are, relative to the image."""

    def __init__(self, augmenter):
        if not isinstance(augmenter, Augmenter):
            raise TypeError("Borrowing from invalid Augmenter")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self):
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src, label):
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters, or none with probability ``skip_prob``."""

    def __init__(self, aug_list, skip_prob=0):
        super().__init__(skip_prob=skip_prob)
        aug_list = aug_list if isinstance(aug_list, list | tuple) else [aug_list]
        if not all(isinstance(each, DetAugmenter) for each in aug_list):
            raise ValueError("Allow DetAugmenter in list only")
        self.aug_list, self.skip_prob = list(aug_list), skip_prob if aug_list else 1

    def dumps(self):
        return [type(self).__name__.lower(), [each.dumps() for each in self.aug_list]]

    def __call__(self, src, label):
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(Declared, DetAugmenter, takes={"p": REQUIRED}):
    """Left and right changed, with probability ``p``."""

    def __call__(self, src, label):
        if random.random() < self.p:
            src = nd.flip(src, axis=1)
            label[:, 1], label[:, 3] = 1.0 - label[:, 3], 1.0 - label[:, 1]
        return src, label


class _DetRandomAreaAug(Declared, DetAugmenter):
    """Base of what cuts out or pads to a random area of random proportions."""

    #: The largest area that makes no difference.
    _without_effect = 0.0

    def _set_up(self, **given):
        name = type(self).__name__
        for argument, what in (("aspect_ratio_range", "aspect ratio"), ("area_range", "area range")):
            given[argument] = self._kwargs[argument] = _pair(name, what, given[argument])
        super()._set_up(**given)
        self.enabled = True
        for what, (least, most), bad in (
            ("area_range", self.area_range, self.area_range[1] <= self._without_effect),
            ("aspect_ratio_range", self.aspect_ratio_range, self.aspect_ratio_range[0] <= 0),
        ):
            if self.enabled and (bad or least > most):
                warnings.warn(f"Skip {name} due to invalid {what}: {(least, most)}", stacklevel=3)
                self.enabled = False

    def _proportions(self):
        """A random width over height for each attempt."""
        for _ in range(self.max_attempts if self.enabled else 0):
            yield random.uniform(*self.aspect_ratio_range)


def _pair(name, what, given):
    """The least and the largest value of a range; a number is both."""
    if isinstance(given, list | tuple):
        return given
    if not isinstance(given, Number):
        raise ParamError(f"{name}: the {what} must be a number or a pair of numbers, got {given!r}")
    logging.info("Using fixed %s: %s in %s", what, given, name)
    return given, given


_CROPS = {"min_object_covered": 0.1, "aspect_ratio_range": (0.75, 1.33), "area_range": (0.05, 1.0)}
_CROPS |= {"min_eject_coverage": 0.3, "max_attempts": 50}


class DetRandomCropAug(_DetRandomAreaAug, takes=_CROPS):
    """Keep a random part that shows enough of the boxes; the whole image where none is found.

    Parameters
    ----------
    min_object_covered : float
        The part must show more than this share of each box that it shows at all.
    aspect_ratio_range : (float, float)
        The least and the largest width over height.
    area_range : (float, float)
        The least and the largest share of the image's area.
    min_eject_coverage : float
        A box of which no more than this share is shown is dropped.
    max_attempts : int
        How many parts are tried.
    """

    def __call__(self, src, label):
        height, width = src.shape[:2]
        for x, y, w, h in self._parts(height, width):
            if self._shows_enough(label, x, y, w, h, height, width):
                kept = self._boxes_within(label, x / width, y / height, w / width, h / height)
                if len(kept):
                    return fixed_crop(src, x, y, w, h), kept
        return src, label

    def _parts(self, height, width):
        """Random places and sizes: left, top, width and height in pixels."""
        smallest, largest = (share * height * width for share in self.area_range)
        for ratio in self._proportions():
            h, most = round(sqrt(smallest / ratio)), round(sqrt(largest / ratio))
            if round(most * ratio) > width:
                most = int((width + 0.4999999) / ratio)
            most = min(most, height)
            h = min(h, most)
            if h < most:
                h = random.randint(h, most)
            w = round(h * ratio)
            if w * h < smallest:
                h += 1
                w = round(h * ratio)
            if w * h > largest:
                h -= 1
                w = round(h * ratio)
            if smallest <= w * h <= largest and 0 <= w <= width and 0 <= h <= height:
                y = random.randint(0, height - h)
                yield random.randint(0, width - w), y, w, h

    def _shows_enough(self, label, x, y, w, h, height, width) -> bool:
        if w * h < 2:
            return False
        areas = _areas(label[:, 1:5])
        large = areas * width * height > 2
        boxes, areas = label[large, 1:5], areas[large]
        low = np.maximum(boxes[:, :2], np.array([x / width, y / height], boxes.dtype))
        high = np.minimum(boxes[:, 2:], np.array([(x + w) / width, (y + h) / height], boxes.dtype))
        shown = _areas(np.concatenate([low, high], 1)) / areas
        shown = shown[shown > 0]
        return shown.size > 0 and float(shown.min()) > self.min_object_covered

    def _boxes_within(self, label, x, y, w, h):
        """The boxes relative to the part, without those of which too little is left."""
        found = label.copy()
        found[:, (1, 3)] = (found[:, (1, 3)] - x) / w
        found[:, (2, 4)] = (found[:, (2, 4)] - y) / h
        found[:, 1:5] = np.clip(found[:, 1:5], 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = _areas(found[:, 1:5]) * w * h / _areas(label[:, 1:5])
        return found[have_area(found) & (shown > self.min_eject_coverage)]


def have_area(objects) -> np.ndarray:
    """Which rows of a label are boxes with a width and a height."""
    return (objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])


def _areas(boxes):
    return np.maximum(0, boxes[:, 3] - boxes[:, 1]) * np.maximum(0, boxes[:, 2] - boxes[:, 0])


_PADS = {"aspect_ratio_range": (0.75, 1.33), "area_range": (1.0, 3.0), "max_attempts": 50}
_PADS |= {"pad_val": (128, 128, 128)}


class DetRandomPadAug(_DetRandomAreaAug, takes=_PADS):
    """Put the image somewhere into a larger one of one colour.

    Parameters
    ----------
    aspect_ratio_range : (float, float)
        The least and the largest width over height of the larger image.
    area_range : (float, float)
        Its least and its largest area, in areas of the image.
    max_attempts : int
        How many sizes are tried.
    pad_val : float or tuple of float
        The colour, or its value in every channel.
    """

    _without_effect = 1.0

    def __call__(self, src, label):
        height, width = src.shape[:2]
        found = self._larger(height, width)
        if found is None:
            return src, label
        x, y, w, h = found
        label = label.copy()
        label[:, (1, 3)] = (label[:, (1, 3)] * width + x) / w
        label[:, (2, 4)] = (label[:, (2, 4)] * height + y) / h
        below, beside = h - y - height, w - x - width
        return copyMakeBorder(src, y, below, x, beside, _CONSTANT_BORDER, values=self.pad_val), label

    def _larger(self, height, width):
        """Where in what larger image the image is: left, top, width and height; None where none is found."""
        smallest, largest = (share * height * width for share in self.area_range)
        for ratio in self._proportions():
            h, most = round(sqrt(smallest / ratio)), round(sqrt(largest / ratio))
            if round(h * ratio) < width:
                h = int((width + 0.499999) / ratio)
            h = min(max(h, height), most)
            if h < most:
                h = random.randint(h, most)
            w = round(h * ratio)
            if h - height >= 2 and w - width >= 2:
                y = random.randint(0, h - height)
                return random.randint(0, w - width), y, w, h
        return None


def CreateMultiRandCropAugmenter(
    min_object_covered=0.1,
    aspect_ratio_range=(0.75, 1.33),
    area_range=(0.05, 1.0),
    min_eject_coverage=0.3,
    max_attempts=50,
    skip_prob=0,
) -> DetRandomSelectAug:
    """One of several :class:`DetRandomCropAug`, chosen at random for each image.

    Each parameter is that of all of them, or a list with one for each.
    """
    given = min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
    lists = [each if isinstance(each, list) else [each] for each in given]
    count = max(map(len, lists))
    if any(len(each) not in (1, count) for each in lists):
        counts = [len(each) for each in lists]
        raise ParamError(f"CreateMultiRandCropAugmenter: lists must have equal lengths, got {counts}")
    lists = [each * count if len(each) == 1 else each for each in lists]
    return DetRandomSelectAug([DetRandomCropAug(*each) for each in zip(*lists, strict=True)], skip_prob)


def CreateDetAugmenter(
    data_shape,
    resize=0,
    rand_crop=0,
    rand_pad=0,
    rand_gray=0,
    rand_mirror=False,
    mean=None,
    std=None,
    brightness=0,
    contrast=0,
    saturation=0,
    pca_noise=0,
    hue=0,
    inter_method=2,
    min_object_covered=0.1,
    aspect_ratio_range=(0.75, 1.33),
    area_range=(0.05, 3.0),
    min_eject_coverage=0.3,
    max_attempts=50,
    pad_val=(127, 127, 127),
) -> list:
    """The usual augmenters for detection, in the usual order, for images of ``data_shape``.

    ``rand_crop``, ``rand_pad`` and ``rand_gray`` are probabilities; ``mean`` and ``std`` are arrays, or True
    for those of ImageNet. The others are those of the single augmenters.
    """
    found = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        crops = min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        found.append(CreateMultiRandCropAugmenter(*crops, skip_prob=1 - rand_crop))
    if rand_mirror > 0:
        found.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        found.append(DetRandomSelectAug([pad], 1 - rand_pad))
    borrowed = [ForceResizeAug((data_shape[2], data_shape[1]), inter_method), CastAug()]
    mean, std = mean_and_std("CreateDetAugmenter", mean, std, np.array)
    borrowed += colour_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)
    return found + [DetBorrowAug(each) for each in borrowed]


# -- batches ---------------------------------------------------------------------------------------------


class ImageDetIter(ImageIter):
    """Batches of images and of the boxes in them.

    The label of an image is the count of numbers that come before the first object, at least 2, the count
    of numbers of an object, at least 5, whatever else comes before, and the objects: class, left, top,
    right, bottom and whatever else. A batch's label has as many rows for an image as the image with the
    most objects, with -1 where there is none.

    Parameters
    ----------
    aug_list : list of DetAugmenter, optional
        What changes the images; :func:`CreateDetAugmenter` with the further keywords unless given.

    The others are those of :class:`ImageIter`.
    """

    def __init__(
        self,
        batch_size,
        data_shape,
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
        label_name="label",
        last_batch_handle="pad",
        **kwargs,
    ):
        super().__init__(
            batch_size=batch_size,
            data_shape=data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=[],
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
        )
        self.auglist = CreateDetAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The most objects of an image, and how many numbers an object has."""
        count, width = 0, 0
        self.reset()
        for label, _ in self._samples():
            found, width = self._parse_label(label).shape
            count = max(count, found)
        self.reset()
        return count, width

    def _parse_label(self, label) -> np.ndarray:
        """The objects of a label, without those of no area."""
        raw = np.asarray(label).ravel()
        if raw.size < 7:
            raise DataError(f"Label shape is invalid: {raw.shape}")
        before, width = (int(each) for each in np.nan_to_num(raw[:2]))
        if width < 5 or not 0 <= before <= raw.size or (raw.size - before) % width != 0:
            raise DataError(f"Label shape {raw.shape} inconsistent with annotation width {width}.")
        objects = raw[before:].reshape(-1, width)
        objects = objects[have_area(objects)]
        if not len(objects):
            raise DataError("Encounter sample with no valid label.")
        return objects

    def _check_valid_label(self, label) -> None:
        """Raise unless there is an object of some area with a class."""
        if label.ndim != 2 or label.shape[1] < 5:
            raise DataError(f"Label with shape (1+, 5+) required, {label} received.")
        if not (have_area(label) & (label[:, 0] >= 0)).any():
            raise DataError("Invalid label occurs.")

    def _no_labels(self):
        return np.full(self.provide_label[0][1], -1, np.float32)

    def _put(self, label, image, data, labels) -> bool:
        try:
            self.check_valid_image([image])
            image, label = self.augmentation_transform(image, self._parse_label(label))
            self._check_valid_label(label)
        except DataError as error:
            logging.debug("Invalid image, skipping:  %s", error)
            return False
        self._write(image, data)
        labels[0, : len(label)] = label
        labels[0, len(label) :] = -1
        return True

    def augmentation_transform(self, data, label):
        """The image and its boxes after all augmenters."""
        for each in self.auglist:
            data, label = each(data, label)
        return data, label

    def reshape(self, data_shape=None, label_shape=None) -> None:
        """Change the size of the images, or the rows of a label, from the next batch on."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *data_shape))]
            self.data_shape = tuple(data_shape)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *label_shape))]
            self.label_shape = tuple(label_shape)

    def check_label_shape(self, label_shape) -> None:
        """Raise unless labels of this shape have room for all objects."""
        if len(label_shape) != 2:
            raise ValueError("label_shape should have length 2")
        rows, width = self.label_shape
        if label_shape[0] < rows:
            raise ValueError(f"Attempts to reduce label count from {rows} to {label_shape[0]}, not allowed.")
        if label_shape[1] != width:
            raise ValueError(f"label_shape object width inconsistent: {width} vs {label_shape[1]}.")

    def sync_label_shape(self, it, verbose=False) -> "ImageDetIter":
        """Give this and another iterator the larger of their two label shapes; the other is returned."""
        if not isinstance(it, ImageDetIter):
            raise ParamError(f"sync_label_shape: it must be an ImageDetIter, got {type(it).__name__}")
        (own, width), (other, other_width) = self.label_shape, it.label_shape
        if width != other_width:
            raise ParamError(f"sync_label_shape: objects of {width} numbers and of {other_width}")
        rows = max(own, other)
        for each in (self, it):
            each.reshape(None, (rows, width))
        if verbose and own != other:
            logging.info("Resized label_shape to (%d, %d).", rows, width)
        return it

    def draw_next(
        self,
        color=None,
        thickness=2,
        mean=None,
        std=None,
        clip=True,
        waitKey=None,
        window_name="draw_next",
        id2labels=None,
    ):
        """Each further image with its boxes drawn into it: arrays of uint8, with blue first.

        Parameters
        ----------
        color : (int, int, int), optional
            Of the boxes, with red first; random unless given.
        thickness : int
            Of their lines.
        mean, std : bool or array
            What normalization took, put back; True for ImageNet's.
        clip : bool
            Whether to cut values to 0 to 255.
        waitKey : int, optional
            Show each image with OpenCV, for so many milliseconds.
        id2labels : dict, optional
            The names of the classes, to be written into the boxes.
        """
        mean, std = mean_and_std("ImageDetIter.draw_next", mean, std, np.array)
        for label, raw in self._samples():
            image = self.imdecode(raw)
            try:
                self.check_valid_image([image])
                label = self._parse_label(label)
            except DataError as error:
                logging.debug("Invalid image, skipping:  %s", error)
                continue
            image, label = self.augmentation_transform(image, label)
            pixels = image.asnumpy().astype(np.float32)
            pixels = pixels if std is None else pixels * std
            pixels = pixels if mean is None else pixels + mean
            pixels = np.clip(pixels, 0, 255) if clip else pixels
            drawn = _with_boxes(pixels.astype(np.uint8), label, color, thickness, id2labels or {})[:, :, ::-1]
            if waitKey is not None:
                _show(window_name, drawn, waitKey)
            yield drawn


def _with_boxes(pixels, label, color, thickness, names) -> np.ndarray:
    PIL = pillow()
    height, width = pixels.shape[:2]
    picture = PIL.Image.fromarray(pixels)
    draw = PIL.ImageDraw.Draw(picture)
    sizes = width, height, width, height
    for kind, *box in label[:, :5]:
        left, top, right, bottom = (int(share * size) for share, size in zip(box, sizes, strict=True))
        if left < 0:
            continue
        colour = color or tuple(int(each) for each in np.random.rand(3) * 255)  # noqa: NPY002
        draw.rectangle((left, top, right, bottom), outline=tuple(colour), width=thickness)
        if int(kind) in names:
            draw.text((left + 5, top + 5), names[int(kind)], fill=(255, 255, 255))
    return np.array(picture)


def _show(window, picture, milliseconds) -> None:
    try:
        import cv2
    except ImportError:
        raise MXNetError("draw_next: waitKey needs OpenCV: pip install opencv-python") from None
    cv2.imshow(window, picture)
    cv2.waitKey(milliseconds)
