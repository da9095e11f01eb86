"""``mx.io.ImageRecordIter``: batches of the pictures of a record file.

What does not depend on chance is MXNet's to the last bit. Random numbers are others: MXNet's depend on its
threads, these on ``seed_aug`` alone, or on ``seed`` where that is not given.
"""

import logging
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ... import ndarray as nd
from ...errors import DataError, MXNetError, ParamError, ShapeError, nearest
from ...params.field import Field, dtype, optional, shape
from ..io import BatchIter, DataBatch, DataDesc, MXDataIter
from .augment import IMAGENET_LIGHT
from .batches import read_list
from .opencv import shift_hsl, to_bytes, warp_affine
from .reading import _get_interp_method, imdecode, imresize, resize_short
from .recordio import MXIndexedRecordIO, MXRecordIO, record_places, unpack

__all__ = ["ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"]

#: What MXNet takes of red, green and blue for a grey, in 2**14ths: it has blue where it expects red.
_GREY = np.array([1868, 9617, 4899])
#: Parameters of MXNet's that have no effect here.
_WITHOUT_EFFECT = {
    "verbose", "silent", "device_id", "prefetch_buffer", "ctx", "shuffle_chunk_size", "shuffle_chunk_seed",
    "aug_seq", "mean_a", "std_a",
}  # fmt: skip
#: The parameters with their defaults that all iterators of records have.
OF_BOTH = {
    "path_imglist": "", "path_imgidx": "", "preprocess_threads": 4, "num_parts": 1, "part_index": 0,
    "shuffle": False, "seed": 0, "seed_aug": Field(optional(int), None), "round_batch": True,
    "dtype": Field(optional(dtype), None), "resize": -1, "inter_method": 1, "mean_img": "", "mean_r": 0.0,
    "mean_g": 0.0, "mean_b": 0.0, "std_r": 1.0, "std_g": 1.0, "std_b": 1.0, "scale": 1.0,
}  # fmt: skip


class RecordIter(MXDataIter, BatchIter):
    """Which records come in which order, and batches of what :meth:`_change` makes of them."""

    #: The parameters with their defaults, and the dtypes of the data.
    _defaults, _dtypes = OF_BOTH, ("float32",)
    #: Whether, with ``seed_aug``, a picture is changed alike in each epoch.
    _repeats = False

    def __init__(
        self, path_imgrec, data_shape, batch_size, data_name="data", label_name="softmax_label", **given
    ):
        self._name = type(self).__name__
        super().__init__(self._read("batch_size", Field(int, range=(1, None)), batch_size))
        batch_size, self._shape = self.batch_size, self._read("data_shape", Field(shape()), data_shape)
        for unknown in given.keys() - self._defaults.keys() - _WITHOUT_EFFECT:
            hint = nearest(unknown, self._defaults)
            logging.warning("%s: there is no parameter %r; it has no effect%s", self._name, unknown, hint)
        self._p = p = SimpleNamespace()
        for name, default in self._defaults.items():
            field = default if isinstance(default, Field) else Field(type(default), default)
            setattr(p, name, self._read(name, field, given.get(name, field.default)))
        p.fill_value = min(max(p.fill_value, 0), 255)
        p.dtype = (p.dtype or np.dtype(np.float32)).name
        if p.dtype not in self._dtypes:
            raise ParamError(f"{self._name}: dtype must be {' or '.join(self._dtypes)}, got {p.dtype}")
        if len(self._shape) != 3 or self._shape[0] not in (1, 3) or min(self._shape) < 1:
            wanted = f"1 or 3 channels, height and width, got {self._shape}"
            raise ParamError(f"{self._name}: data_shape must be {wanted}")
        if not 0 <= p.part_index < p.num_parts:
            raise ParamError(f"{self._name}: part_index must be 0 to {p.num_parts - 1}, got {p.part_index}")
        self._file, self._places = MXRecordIO(path_imgrec, "r"), self._part(path_imgrec)
        if not self._places:
            raise DataError(f"{self._name}: {self._file.uri} has no pictures in this part")
        self._listed = read_list(p.path_imglist) if p.path_imglist else None
        self._order, self._shuffled = np.random.default_rng(p.seed % 2**64), list(self._places)
        self._pool = ThreadPoolExecutor(max(1, p.preprocess_threads))
        self._changed, self._wrapped = 0, False
        self._prepare()
        self._means = np.array([p.mean_r, p.mean_g, p.mean_b][: self._shape[0]], np.float32)[:, None, None]
        self._deviations = np.array([p.std_r, p.std_g, p.std_b][: self._shape[0]], np.float32)[:, None, None]
        if p.mean_img:
            self._means = self._mean_picture(Path(p.mean_img))
        self._begin()
        self.provide_data = [DataDesc(data_name, (batch_size, *self._shape), np.dtype(p.dtype).type)]
        self.provide_label = [DataDesc(label_name, (batch_size, *self._label_shape()))]

    def _read(self, name, field, value):
        """A parameter, which may come as MXNet's string: its front end makes strings of all of them."""
        if field.default == "":  # the name of a file
            return "" if value is None else os.fspath(value)
        try:
            return field.parse(value)
        except ValueError:
            raise ParamError(f"{self._name}: {name} must be {field.need}, got {value!r}") from None

    def _prepare(self) -> None:
        """What is to be known before the first picture."""

    def _part(self, path) -> list[int]:
        """Where the records of this part begin: a share of their number, or of the bytes without an index."""
        p = self._p
        if p.path_imgidx:
            places = sorted(MXIndexedRecordIO(p.path_imgidx, path, "r").idx.values())
            step = -(-len(places) // p.num_parts)
            return places[p.part_index * step : (p.part_index + 1) * step]
        step = -(-Path(path).stat().st_size // p.num_parts)
        step += -step % 4
        first, end = p.part_index * step, (p.part_index + 1) * step
        return [place for place in record_places(path) if first <= place < end]

    def reset(self) -> None:
        if self._wrapped:  # the epoch goes on after the pictures that filled up the last batch
            self._wrapped = False
        else:
            self._begin()

    def _begin(self) -> None:
        self._at = 0
        if self._p.shuffle:
            self._order.shuffle(self._shuffled)

    def _next_batch(self) -> DataBatch:
        if self._wrapped:
            raise StopIteration
        places = self._next_places(self.batch_size)
        if not places:
            raise StopIteration
        pad = self.batch_size - len(places)
        if pad and self._p.round_batch:
            self._begin()
            places += self._next_places(pad)
            self._wrapped = True
            if len(places) < self.batch_size:
                raise DataError(
                    f"{self._name}: {self._file.uri} has {len(self._places)} pictures in this part; with "
                    f"round_batch, a batch of {self.batch_size} takes as many"
                )
        samples = list(self._samples(places))
        data = np.zeros((self.batch_size, *self._shape), self._p.dtype)
        labels = np.zeros((self.batch_size, *self._label_shape()), np.float32)
        for i, (picture, label, _) in enumerate(samples):
            data[i, :, : picture.shape[1], : picture.shape[2]], labels[i] = picture, label
        index = np.array([number for *_, number in samples], np.uint64)
        return DataBatch([nd.array(data, dtype=data.dtype)], [nd.array(labels)], pad, index)

    def _next_places(self, count) -> list[int]:
        self._at, first = self._at + count, self._at
        return self._shuffled[first : self._at]

    def _samples(self, places):
        """Pictures with the channels first, labels and numbers, in order, computed by several threads."""
        records = [self._file.read_at(place) for place in places]
        alike = self._repeats and self._p.seed_aug is not None
        numbers = places if alike else range(self._changed, self._changed + len(records))
        self._changed += len(records)
        return self._pool.map(self._sample, records, numbers)

    def _sample(self, record, number):
        p = self._p
        seed = p.seed if p.seed_aug is None else p.seed_aug
        chance = np.random.default_rng([seed % 2**64, number])
        header, raw = unpack(record)
        try:
            image = imdecode(raw, flag=int(self._shape[0] == 3))
        except MXNetError as error:
            raise DataError(f"{self._name}: {self._file.uri}, picture {header.id}: {error}") from None
        label = header.label
        if self._listed is not None:
            if header.id not in self._listed:
                raise DataError(f"{self._name}: {p.path_imglist} has no line for picture {header.id}")
            label = self._listed[header.id][0]
        label = np.atleast_1d(np.asarray(label, np.float32))
        if p.resize != -1:
            image = resize_short(image, p.resize, self._drawn_interp(chance))
        pixels, label = self._change(image.asnumpy(), self._label(label, header.id), chance)
        return self._normalized(np.moveaxis(pixels, 2, 0), chance), label, header.id

    def _drawn_interp(self, chance) -> int:
        """How to interpolate; one of the ways by chance for 10."""
        return int(chance.integers(5)) if self._p.inter_method == 10 else self._p.inter_method

    def _interp(self, pixels, width, height, chance) -> int:
        """How to interpolate, where sizes decide it, too."""
        return _get_interp_method(self._drawn_interp(chance), (*pixels.shape[:2], height, width))

    def _resized(self, pixels, width, height, chance, interp=None):
        interp = self._drawn_interp(chance) if interp is None else interp
        return imresize(nd.array(pixels, dtype=np.uint8), width, height, interp).asnumpy()

    def _mean_picture(self, path):
        """The mean of all pictures, from a file; where there is none it is computed, and written."""
        if not path.exists():
            logging.info("%s: %s is computed from all pictures", self._name, path)
            self._means, means = self._means * 0, self._means
            pictures = [self._samples([place]) for place in self._places]
            total = sum(picture.astype(np.float32) for each in pictures for picture, *_ in each)
            self._changed = 0
            nd.save(str(path), {"mean_img": nd.array(total * np.float32(1 / len(self._places)))})
            self._means = means
        (mean,) = loaded.values() if isinstance(loaded := nd.load(str(path)), dict) else loaded
        if mean.shape != self._shape:
            raise ShapeError(f"{self._name}: {path} holds shape {mean.shape}, data_shape is {self._shape}")
        return mean.asnumpy()


_CLASSIFYING = {
    "label_width": 1, "rand_crop": False, "random_resized_crop": False, "max_rotate_angle": 0, "rotate": -1,
    "max_aspect_ratio": 0.0, "min_aspect_ratio": Field(optional(float), None), "max_shear_ratio": 0.0,
    "max_crop_size": -1, "min_crop_size": -1, "max_random_scale": 1.0, "min_random_scale": 1.0,
    "max_random_area": 1.0, "min_random_area": 1.0, "max_img_size": 1e10, "min_img_size": 0.0,
    "brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "pca_noise": 0.0, "random_h": 0, "random_s": 0,
    "random_l": 0, "fill_value": 255, "pad": 0, "mirror": False, "rand_mirror": False,
    "max_random_contrast": 0.0, "max_random_illumination": 0.0, "rotate_list": Field(shape(), ()),
}  # fmt: skip


class ImageRecordIter(RecordIter):
    """Batches of pictures and their labels from a record file. All parameters are given by name.

    Parameters
    ----------
    path_imgrec, path_imgidx : str
        The record file, and its index: with one, parts are cut by the number of pictures.
    path_imglist : str
        A file of lines: number, labels and file, parted by tabs. Its labels replace those of the records.
    data_shape : (int, int, int)
        Channels, 1 or 3, height and width.
    batch_size, label_width : int
        Pictures in a batch, labels of a picture.
    shuffle, seed, seed_aug : bool, int, int
        Whether each epoch has an order of its own; what the orders and what the changes follow from. With
        ``seed_aug`` a picture is changed alike in each epoch, as in MXNet.
    num_parts, part_index : int
        Into how many parts the file is cut, and which of them is read.
    round_batch : bool
        Whether the last batch is filled up with the first pictures, which the next epoch then leaves out;
        otherwise with zeros. ``pad`` of the batch is how many these are.
    dtype : str
        ``float32``; ``uint8``, and nothing is normalized; ``int8``, and only means are subtracted.
    resize, pad, rand_crop, random_resized_crop, max_rotate_angle, max_aspect_ratio, max_shear_ratio, ...
        How pictures are changed, as in MXNet and in its order: resized by the shorter side, turned and
        stretched, padded, cropped, their colours changed, mirrored; then
        ``((picture - mean) * contrast + illumination) / std * scale``.
    mean_img : str
        A file with the mean picture; it is computed and written where there is none.
    """

    _defaults, _dtypes = {**OF_BOTH, **_CLASSIFYING}, ("float32", "uint8", "int8")
    _repeats = True

    def _prepare(self):
        p = self._p
        scaled = (p.max_random_scale, p.min_random_scale) != (1, 1)
        if p.random_resized_crop and (
            scaled or p.rand_crop or (p.min_crop_size, p.max_crop_size) != (-1, -1)
        ):
            raise ParamError(
                f"{self._name}: random_resized_crop goes without min_random_scale, max_random_scale, "
                "min_crop_size, max_crop_size and rand_crop"
            )

    def _label_shape(self):
        return (self._p.label_width,) if self._p.label_width > 1 else ()

    def _label(self, label, number):
        if self._listed is not None:  # of a list the first count
            label = label[: self._p.label_width]
        if label.size != self._p.label_width:
            raise DataError(
                f"{self._name}: picture {number} has {label.size} labels, "
                f"label_width is {self._p.label_width}"
            )
        return label.reshape(self._label_shape())

    def _ratios(self):
        """The least and the largest width over height."""
        p = self._p
        if p.min_aspect_ratio is None:
            return 1 - p.max_aspect_ratio, 1 + p.max_aspect_ratio
        return p.min_aspect_ratio, p.max_aspect_ratio

    def _change(self, pixels, label, chance):
        p = self._p
        stretched = not p.random_resized_crop and self._ratios() != (1, 1)
        scaled = (p.max_random_scale, p.min_random_scale) != (1, 1)
        limited = (p.max_img_size, p.min_img_size) != (1e10, 0)
        turned = p.max_rotate_angle > 0 or p.rotate > 0 or bool(p.rotate_list)
        if turned or p.max_shear_ratio > 0 or scaled or stretched or limited:
            pixels = self._turned(pixels, chance)
        if p.pad > 0:
            around = (p.pad, p.pad), (p.pad, p.pad), (0, 0)
            pixels = np.pad(pixels, around, constant_values=p.fill_value)
        return self._recoloured(self._cropped(pixels, chance), chance), label

    def _turned(self, pixels, chance):
        """The picture sheared, rotated, scaled and stretched around its middle."""
        p, (height, width) = self._p, pixels.shape[:2]
        shear = chance.uniform(-p.max_shear_ratio, p.max_shear_ratio)
        angle = chance.integers(-p.max_rotate_angle, p.max_rotate_angle, endpoint=True)
        angle = p.rotate if p.rotate > 0 else angle
        angle = int(chance.choice(p.rotate_list)) if p.rotate_list else angle
        scale = ratio = 1.0
        if not p.random_resized_crop:
            scale = _between(chance, p.min_random_scale, p.max_random_scale)
            ratio = _between(chance, *self._ratios())
        cosine, sine = (np.float32(f(angle / 180 * math.pi)) for f in (math.cos, math.sin))
        down = np.float32(2 * scale / (1 + ratio))
        across, shear = np.float32(ratio * down), np.float32(shear)
        new_width, new_height = (
            np.float32(max(p.min_img_size, min(p.max_img_size, scale * side))) for side in (width, height)
        )
        rows = np.array(
            [
                [down * cosine - shear * sine * across, down * sine + shear * cosine * across],
                [-sine * across, cosine * across],
            ],
            np.float32,
        )
        reach = rows[:, 0] * np.float32(width) + rows[:, 1] * np.float32(height)
        start = (np.array([new_width, new_height]) - reach) / np.float32(2)
        size = int(new_width), int(new_height)
        interp = self._interp(pixels, *size, chance)
        return warp_affine(pixels, np.column_stack([rows, start]), *size, interp, p.fill_value)

    def _cropped(self, pixels, chance):
        """A part of the picture of the size wanted, or resized to it."""
        p, (_, height, width) = self._p, self._shape
        if p.random_resized_crop:
            part = self._random_part(pixels, chance)
            if part is not None:
                return self._resized(part, width, height, chance)
        elif (p.max_crop_size, p.min_crop_size) != (-1, -1):
            if min(pixels.shape[:2]) < p.max_crop_size or p.max_crop_size < p.min_crop_size:
                raise ParamError(
                    f"{self._name}: crops of {p.min_crop_size} to {p.max_crop_size} pixels of a picture of "
                    f"{pixels.shape[1]} x {pixels.shape[0]}"
                )
            size = int(chance.integers(p.min_crop_size, p.max_crop_size, endpoint=True))
            return self._resized(self._window(pixels, size, size, chance), width, height, chance)
        rows, columns = pixels.shape[:2]
        # Both are done in the way that leads to the size wanted.
        interp = self._interp(pixels, width, height, chance)
        if rows < height:
            columns = int(np.float32(height) / np.float32(rows) * np.float32(columns))
            pixels, rows = self._resized(pixels, columns, height, chance, interp), height
        if columns < width:
            rows = int(np.float32(width) / np.float32(columns) * np.float32(rows))
            pixels = self._resized(pixels, width, rows, chance, interp)
        return self._window(pixels, width, height, chance)

    def _window(self, pixels, width, height, chance):
        """The middle, or any part."""
        y, x = pixels.shape[0] - height, pixels.shape[1] - width
        if self._p.rand_crop:
            y, x = chance.integers(y, endpoint=True), chance.integers(x, endpoint=True)
        else:
            y, x = y // 2, x // 2
        return pixels[y : y + height, x : x + width]

    def _random_part(self, pixels, chance):
        """A part of random area and proportions; None after ten that are too large."""
        p, (rows, columns), ratios = self._p, pixels.shape[:2], self._ratios()
        if (p.max_random_area, p.min_random_area) == (1, 1) and ratios == (1, 1):
            return None
        for _ in range(10):
            area = chance.uniform(p.min_random_area, p.max_random_area) * rows * columns
            ratio = chance.uniform(*ratios)
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if chance.random() > 0.5:
                height, width = width, height
            if 0 < height <= rows and 0 < width <= columns:
                y, x = chance.integers([rows - height, columns - width], endpoint=True)
                return pixels[y : y + height, x : x + width]
        return None

    def _recoloured(self, pixels, chance):
        p = self._p
        if self._shape[0] == 1:
            return pixels
        if p.brightness > 0 or p.contrast > 0 or p.saturation > 0:
            limits = p.brightness, p.contrast, p.saturation
            shares = [1 + chance.uniform(-limit, limit) for limit in limits]
            for kind in chance.permutation(3):
                pixels = self._jittered(pixels, kind, shares[kind])
        if p.random_h or p.random_s or p.random_l:
            drawn = [(chance.random() + 4 * chance.random()) / 5 for _ in range(3)]
            limits = p.random_h, p.random_s, p.random_l
            shifts = [int(share * limit * 2 - limit) for share, limit in zip(drawn, limits, strict=True)]
            pixels = shift_hsl(pixels, *shifts)
        if p.pca_noise > 0:
            spread, axes = IMAGENET_LIGHT
            noise = (axes * spread) @ chance.normal(0, p.pca_noise, 3)
            pixels = np.clip(np.trunc(pixels + noise), 0, 255).astype(np.uint8)
        return pixels

    @staticmethod
    def _jittered(pixels, kind: int, share: float):
        """Brightness (0), contrast (1) or saturation (2) multiplied."""
        grey = (pixels @ _GREY + 8192) >> 14
        towards = (0, grey.mean(), grey[:, :, None])[kind]
        return to_bytes(pixels * share + towards * (1 - share))

    def _normalized(self, picture, chance):
        # The picture is mirrored with the mean picture that was subtracted from it.
        mirrored = self._p.mirror or (self._p.rand_mirror and chance.random() < 0.5)
        picture = self._without_mean(picture, chance)
        return picture[:, :, ::-1] if mirrored else picture

    def _without_mean(self, picture, chance):
        p = self._p
        if p.dtype == "uint8":
            return picture
        if p.dtype == "int8":
            # Halves away from zero, as C's round.
            rounded = np.trunc(self._means + np.copysign(0.5, self._means))
            return np.clip(picture - rounded, -128, 127).astype(np.int8)
        contrast = chance.uniform(1 - p.max_random_contrast, 1 + p.max_random_contrast)
        light = chance.uniform(-p.max_random_illumination, p.max_random_illumination)
        factor = np.float32(np.float32(contrast) * np.float32(p.scale)) / self._deviations
        added = np.float32(np.float32(light) * np.float32(p.scale)) / self._deviations
        return (picture.astype(np.float32) - self._means) * factor + added


def _between(chance, first, last) -> float:
    """Any number between two, which may come in either order."""
    return first + (last - first) * chance.random()


class ImageRecordUInt8Iter(ImageRecordIter):
    """:class:`ImageRecordIter` with ``dtype="uint8"``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "dtype": "uint8"})


class ImageRecordInt8Iter(ImageRecordIter):
    """:class:`ImageRecordIter` with ``dtype="int8"``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "dtype": "int8"})
