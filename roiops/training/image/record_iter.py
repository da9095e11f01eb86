"""``mx.io.ImageRecordIter`` and ``mx.io.ImageDetRecordIter``: batches of the pictures of a record file.

What does not depend on chance is MXNet's to the last bit. Random numbers are others: MXNet's depend on its
threads, these on ``seed_aug`` alone, or on ``seed`` where that is not given.
"""

import logging
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ... import ndarray as nd
from ...errors import DataError, MXNetError, ParamError, ShapeError, nearest
from ...processors import share
from ..io import DataBatch, DataDesc, DataIter
from .augment import IMAGENET_LIGHT
from .batches import read_list
from .opencv import shift_hsl, warp_affine
from .reading import _get_interp_method, imdecode, imresize
from .recordio import MXIndexedRecordIO, MXRecordIO, record_places, unpack

__all__ = ["ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"]

#: What MXNet takes of red, green and blue for a grey, in 2**14ths: it has blue where it expects red.
_GREY = np.array([1868, 9617, 4899])
#: Parameters of MXNet's that have no effect here.
_WITHOUT_EFFECT = {
    "verbose", "silent", "device_id", "prefetch_buffer", "ctx", "shuffle_chunk_size", "shuffle_chunk_seed",
    "aug_seq", "mean_a", "std_a",
}  # fmt: skip
_OF_BOTH = {
    "path_imglist": "", "path_imgidx": "", "preprocess_threads": 4, "num_parts": 1, "part_index": 0,
    "shuffle": False, "seed": 0, "seed_aug": None, "round_batch": True, "dtype": "float32", "resize": -1,
    "inter_method": 1, "mean_img": "", "mean_r": 0.0, "mean_g": 0.0, "mean_b": 0.0, "std_r": 1.0,
    "std_g": 1.0, "std_b": 1.0, "scale": 1.0,
}  # fmt: skip


class _RecordIter(DataIter):
    """Which records come in which order, and batches of what :meth:`_change` makes of them."""

    #: The parameters with their defaults, and the dtypes of the data.
    _defaults, _dtypes = _OF_BOTH, ("float32",)

    def __init__(
        self, path_imgrec, data_shape, batch_size, data_name="data", label_name="softmax_label", **given
    ):
        super().__init__(batch_size)
        self._name, self._shape = type(self).__name__, tuple(data_shape)
        for unknown in given.keys() - self._defaults.keys() - _WITHOUT_EFFECT:
            hint = nearest(unknown, self._defaults)
            logging.warning("%s: there is no parameter %r; it has no effect%s", self._name, unknown, hint)
        self._p = p = SimpleNamespace(**{**self._defaults, **given})
        p.dtype = np.dtype(p.dtype or "float32").name
        if p.dtype not in self._dtypes:
            raise ParamError(f"{self._name}: dtype must be {' or '.join(self._dtypes)}, got {p.dtype}")
        if len(self._shape) != 3 or self._shape[0] not in (1, 3):
            shape = f"1 or 3 channels, height and width, got {self._shape}"
            raise ParamError(f"{self._name}: data_shape must be {shape}")
        if not 0 <= p.part_index < p.num_parts:
            raise ParamError(f"{self._name}: part_index must be 0 to {p.num_parts - 1}, got {p.part_index}")
        self._file, self._places = MXRecordIO(path_imgrec, "r"), self._part(path_imgrec)
        self._listed = read_list(p.path_imglist) if p.path_imglist else None
        self._order, self._shuffled = np.random.default_rng(p.seed), list(self._places)
        self._pool = ThreadPoolExecutor(max(1, min(p.preprocess_threads, share().threads)))
        self._changed, self._wrapped = 0, False
        self._prepare()
        self._means = np.array([p.mean_r, p.mean_g, p.mean_b][: self._shape[0]], np.float32)[:, None, None]
        self._deviations = np.array([p.std_r, p.std_g, p.std_b][: self._shape[0]], np.float32)[:, None, None]
        if p.mean_img:
            self._means = self._mean_picture(Path(p.mean_img))
        self._begin()
        self.provide_data = [DataDesc(data_name, (batch_size, *self._shape), np.dtype(p.dtype).type)]
        self.provide_label = [DataDesc(label_name, (batch_size, *self._label_shape()))]

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

    def next(self) -> DataBatch:
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
        numbers = range(self._changed, self._changed + len(records))
        self._changed += len(records)
        return self._pool.map(self._sample, records, numbers)

    def _sample(self, record, number):
        p = self._p
        chance = np.random.default_rng([p.seed if p.seed_aug is None else p.seed_aug, number])
        header, raw = unpack(record)
        try:
            pixels = imdecode(raw, flag=int(self._shape[0] == 3)).asnumpy()
        except MXNetError as error:
            raise DataError(f"{self._name}: {self._file.uri}, picture {header.id}: {error}") from None
        label = header.label
        if self._listed is not None:
            if header.id not in self._listed:
                raise DataError(f"{self._name}: {p.path_imglist} has no line for picture {header.id}")
            label = self._listed[header.id][0]
        label = np.atleast_1d(np.asarray(label, np.float32))
        if p.resize != -1:
            height, width = pixels.shape[:2]
            by_width = height > width
            short, long = sorted((height, width))
            longer = p.resize * long // short
            size = (p.resize, longer) if by_width else (longer, p.resize)
            pixels = self._resized(pixels, *size, chance)
        pixels, label = self._change(pixels, self._label(label, header.id), chance)
        return self._normalized(np.moveaxis(pixels, 2, 0), chance), label, header.id

    def _interp(self, pixels, width, height, chance) -> int:
        """How to interpolate; 10 is by chance."""
        way = self._p.inter_method
        return (
            int(chance.integers(5))
            if way == 10
            else _get_interp_method(way, (*pixels.shape[:2], height, width))
        )

    def _resized(self, pixels, width, height, chance):
        interp = self._interp(pixels, width, height, chance)
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
    "max_aspect_ratio": 0.0, "min_aspect_ratio": None, "max_shear_ratio": 0.0, "max_crop_size": -1,
    "min_crop_size": -1, "max_random_scale": 1.0, "min_random_scale": 1.0, "max_random_area": 1.0,
    "min_random_area": 1.0, "max_img_size": 1e10, "min_img_size": 0.0, "brightness": 0.0, "contrast": 0.0,
    "saturation": 0.0, "pca_noise": 0.0, "random_h": 0, "random_s": 0, "random_l": 0, "fill_value": 255,
    "pad": 0, "mirror": False, "rand_mirror": False, "max_random_contrast": 0.0,
    "max_random_illumination": 0.0, "rotate_list": (),
}  # fmt: skip


class ImageRecordIter(_RecordIter):
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
        Whether each epoch has an order of its own; what the orders and what the changes follow from.
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

    _defaults, _dtypes = {**_OF_BOTH, **_CLASSIFYING}, ("float32", "uint8", "int8")

    def _label_shape(self):
        return (self._p.label_width,) if self._p.label_width > 1 else ()

    def _label(self, label, number):
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
        resizes = p.random_resized_crop
        scaled = (p.max_random_scale, p.min_random_scale) != (1, 1)
        if resizes and (scaled or p.rand_crop or (p.min_crop_size, p.max_crop_size) != (-1, -1)):
            raise ParamError(
                f"{self._name}: random_resized_crop goes without min_random_scale, max_random_scale, "
                "min_crop_size, max_crop_size and rand_crop"
            )
        stretched = not resizes and self._ratios() != (1, 1)
        limited = (p.max_img_size, p.min_img_size) != (1e10, 0)
        turned = p.max_rotate_angle > 0 or p.rotate > 0 or len(p.rotate_list) > 0
        if turned or p.max_shear_ratio > 0 or scaled or stretched or limited:
            pixels = self._turned(pixels, chance)
        if p.pad > 0:
            around = (p.pad, p.pad), (p.pad, p.pad), (0, 0)
            pixels = np.pad(pixels, around, constant_values=np.uint8(p.fill_value))
        pixels = self._recoloured(self._cropped(pixels, chance), chance)
        if p.mirror or (p.rand_mirror and chance.random() < 0.5):
            pixels = pixels[:, ::-1]
        return pixels, label

    def _turned(self, pixels, chance):
        """The picture sheared, rotated, scaled and stretched around its middle."""
        p, (height, width) = self._p, pixels.shape[:2]
        shear = chance.uniform(-p.max_shear_ratio, p.max_shear_ratio)
        angle = chance.integers(-p.max_rotate_angle, p.max_rotate_angle, endpoint=True)
        angle = p.rotate if p.rotate > 0 else angle
        angles = p.rotate_list.split(",") if isinstance(p.rotate_list, str) else p.rotate_list
        angle = int(chance.choice(angles)) if len(angles) else angle
        scale = ratio = 1.0
        if not p.random_resized_crop:
            scale = chance.uniform(p.min_random_scale, p.max_random_scale)
            ratio = chance.uniform(*self._ratios())
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
        if rows < height:
            columns = int(np.float32(height) / np.float32(rows) * np.float32(columns))
            pixels, rows = self._resized(pixels, columns, height, chance), height
        if columns < width:
            rows = int(np.float32(width) / np.float32(columns) * np.float32(rows))
            pixels = self._resized(pixels, width, rows, chance)
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
        return np.clip(np.rint(pixels * share + towards * (1 - share)), 0, 255).astype(np.uint8)

    def _normalized(self, picture, chance):
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


class ImageRecordUInt8Iter(ImageRecordIter):
    """:class:`ImageRecordIter` with ``dtype="uint8"``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "dtype": "uint8"})


class ImageRecordInt8Iter(ImageRecordIter):
    """:class:`ImageRecordIter` with ``dtype="int8"``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "dtype": "int8"})


_DETECTING = {
    "label_width": -1, "label_pad_width": 0, "label_pad_value": -1.0, "rand_crop_prob": 0.0,
    "min_crop_scales": 0.0, "max_crop_scales": 1.0, "min_crop_aspect_ratios": 1.0,
    "max_crop_aspect_ratios": 1.0, "min_crop_overlaps": 0.0, "max_crop_overlaps": 1.0,
    "min_crop_sample_coverages": 0.0, "max_crop_sample_coverages": 1.0, "min_crop_object_coverages": 0.0,
    "max_crop_object_coverages": 1.0, "num_crop_sampler": 1, "crop_emit_mode": "center",
    "emit_overlap_thresh": 0.3, "max_crop_trials": 25, "rand_pad_prob": 0.0, "max_pad_scale": 1.0,
    "max_random_hue": 0, "random_hue_prob": 0.0, "max_random_saturation": 0, "random_saturation_prob": 0.0,
    "max_random_illumination": 0, "random_illumination_prob": 0.0, "max_random_contrast": 0.0,
    "random_contrast_prob": 0.0, "rand_mirror_prob": 0.0, "fill_value": 127, "resize_mode": "force",
}  # fmt: skip
#: Parameters of which each crop sampler may have its own.
_OF_SAMPLERS = [key for key in _DETECTING if key.endswith(("s", "trials")) and "crop_" in key]


class ImageDetRecordIter(_RecordIter):
    """Batches of pictures and of the boxes in them from a record file. All parameters are given by name.

    A label is: the picture's channels, height and width, how many numbers follow, and these, as
    :class:`~.detection.ImageDetIter` describes them; the rest is ``label_pad_value``.

    Parameters
    ----------
    label_pad_width : int
        Room for so many numbers in a label; at least those of the largest one.
    rand_mirror_prob, rand_pad_prob, rand_crop_prob, random_hue_prob, ...
        With which probability pictures are changed, as in MXNet and in its order: colours, mirroring,
        padding by up to ``max_pad_scale``, and one of ``num_crop_sampler`` kinds of crops.
    resize_mode : str
        ``force`` to ``data_shape``; ``shrink`` what is larger, or ``fit``, in proportion.

    The others are those of :class:`~.ImageRecordIter`, where both have them.
    """

    _defaults = {**_OF_BOTH, **_DETECTING}

    def _prepare(self):
        p = self._p
        if self._listed is None:
            labels = [unpack(self._file.read_at(place))[0].label for place in self._places]
        else:
            labels = [label for label, _ in self._listed.values()]
        most = max(map(np.size, labels), default=0)
        if 0 < p.label_pad_width < most:
            raise ParamError(
                f"{self._name}: label_pad_width is {p.label_pad_width}, a label has {most} numbers"
            )
        self._width = max(most, p.label_pad_width)
        samplers = p.num_crop_sampler
        given = {name: np.atleast_1d(getattr(p, name)) for name in _OF_SAMPLERS}
        for name, values in given.items():
            if len(values) not in (1, samplers):
                raise ParamError(f"{self._name}: {name} must be 1 or {samplers} numbers, got {len(values)}")
        #: The parameters of each sampler.
        self._samplers = [
            SimpleNamespace(**{name: values[i % len(values)] for name, values in given.items()})
            for i in range(samplers)
        ]

    def _label_shape(self):
        return (self._width + 4,)

    def _label(self, label, number):
        before, width = (int(each) for each in label[:2]) if label.size >= 7 else (0, 0)
        if before < 2 or width < 5 or (label.size - before) % width:
            raise DataError(f"{self._name}: the label of picture {number} holds no boxes: {label[:7]}, ...")
        return label

    def _change(self, pixels, label, chance):
        p, before, width = self._p, int(label[0]), int(label[1])
        boxes = label[before:].reshape(-1, width)
        boxes = boxes[(boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])].copy()
        pixels = self._recoloured(pixels, chance)
        if p.rand_mirror_prob > 0 and chance.random() < p.rand_mirror_prob:
            pixels = pixels[:, ::-1]
            boxes[:, 1], boxes[:, 3] = 1 - boxes[:, 3], 1 - boxes[:, 1]
        if p.rand_pad_prob > 0 and p.max_pad_scale > 1 and chance.random() < p.rand_pad_prob:
            pixels, boxes = self._padded(pixels, boxes, chance)
        if p.rand_crop_prob > 0 and self._samplers and chance.random() < p.rand_crop_prob:
            pixels, boxes = self._cropped(pixels, boxes, chance)
        pixels = self._fitted(pixels, chance)
        label = np.concatenate([label[:before], boxes.ravel()])
        filled = np.full(self._width + 4, p.label_pad_value, np.float32)
        filled[:4] = pixels.shape[2], *pixels.shape[:2], label.size
        filled[4 : 4 + label.size] = label
        return pixels, filled

    def _recoloured(self, pixels, chance):
        p = self._p
        kinds = "hue", "saturation", "illumination", "contrast"
        if self._shape[0] == 1 or not any(getattr(p, f"random_{kind}_prob") > 0 for kind in kinds):
            return pixels
        amounts = []
        for kind in kinds:
            amount = chance.uniform(-1, 1) * getattr(p, f"max_random_{kind}")
            amounts.append(amount if chance.random() < getattr(p, f"random_{kind}_prob") else 0)
        hue, saturation, light, contrast = amounts
        shifts = int(hue), int(saturation), int(light)
        pixels = shift_hsl(pixels, *shifts) if any(shifts) else pixels
        if abs(contrast) > 1e-3:
            pixels = np.clip(np.rint(pixels * (1 + contrast)), 0, 255).astype(np.uint8)
        return pixels

    def _padded(self, pixels, boxes, chance):
        """The picture somewhere in a larger one."""
        height, width = pixels.shape[:2]
        scale = chance.uniform(1, self._p.max_pad_scale)
        if scale < 1.05:  # as in MXNet
            return pixels, boxes
        x, y = chance.uniform(0, scale - 1, 2)
        left, top = int(x * width), int(y * height)
        right, bottom = int((scale - x - 1) * width), int((scale - y - 1) * height)
        around = (top, bottom), (left, right), (0, 0)
        pixels = np.pad(pixels, around, constant_values=np.uint8(self._p.fill_value))
        return pixels, _within(boxes, -x, -y, scale, scale)

    def _cropped(self, pixels, boxes, chance):
        """A part that one of the samplers finds, in random order; the whole where none does."""
        height, width = pixels.shape[:2]
        for i in chance.permutation(len(self._samplers)):
            sampler = self._samplers[i]
            for _ in range(sampler.max_crop_trials):
                x, y, w, h = _random_window(sampler, width / height, chance)
                kept = self._kept(boxes, sampler, x, y, w, h)
                if kept is not None and int(w * width) and int(h * height):
                    left, top = int(x * width), int(y * height)
                    part = pixels[top : top + int(h * height), left : left + int(w * width)]
                    return part, _within(kept, x, y, w, h)
        return pixels, boxes

    def _kept(self, boxes, sampler, x, y, w, h):
        """The boxes that a part keeps; None if it shows none of them well enough."""
        if not len(boxes):
            return boxes
        sides = np.minimum(boxes[:, 3:5], (x + w, y + h)) - np.maximum(boxes[:, 1:3], (x, y))
        shown = np.clip(sides, 0, None).prod(1)
        areas = (boxes[:, 3:5] - boxes[:, 1:3]).prod(1)
        rules = [
            (getattr(sampler, f"min_crop_{name}"), share, getattr(sampler, f"max_crop_{name}"))
            for name, share in (
                ("overlaps", shown / (areas + w * h - shown)),
                ("sample_coverages", shown / (w * h)),
                ("object_coverages", shown / areas),
            )
        ]
        # As in MXNet, limits count only where each of them is one.
        if all(least > 0 and most < 1 for least, _, most in rules):
            fits = [(least <= share) & (share <= most) for least, share, most in rules]
            if not np.logical_and.reduce(fits).any():
                return None
        if self._p.crop_emit_mode == "overlap":
            kept = boxes[shown / areas > self._p.emit_overlap_thresh]
        else:
            centres = (boxes[:, 1:3] + boxes[:, 3:5]) / 2
            kept = boxes[((centres >= (x, y)) & (centres < (x + w, y + h))).all(1)]
        return kept if len(kept) else None

    def _fitted(self, pixels, chance):
        """The picture resized as ``resize_mode`` says."""
        (height, width), (_, high, wide) = pixels.shape[:2], self._shape
        ratio = min(high / height, wide / width)
        if self._p.resize_mode == "force":
            size = wide, high
        elif self._p.resize_mode == "fit" or ratio < 1:
            size = max(1, int(np.float32(ratio) * width)), max(1, int(np.float32(ratio) * height))
        else:
            return pixels
        return self._resized(pixels, *size, chance)

    def _normalized(self, picture, chance):
        pixels = picture.astype(np.float32)
        if (self._means > 0).any():
            means = (
                self._means
                if self._means.shape[1:] == (1, 1)
                else self._means[:, : pixels.shape[1], : pixels.shape[2]]
            )
            pixels = pixels - means
        return pixels / np.where(self._deviations > 0, self._deviations, 1) * np.float32(self._p.scale)


def _within(boxes, x, y, w, h):
    """The boxes in a part of the picture, as shares of it."""
    boxes = boxes.copy()
    boxes[:, 1:3] = np.maximum(0, (boxes[:, 1:3] - (x, y)) / (w, h))
    boxes[:, 3:5] = np.minimum(1, (boxes[:, 3:5] - (x, y)) / (w, h))
    return boxes


def _random_window(sampler, proportions, chance):
    """Left, top, width and height as shares of a picture of these proportions."""
    scale = chance.uniform(sampler.min_crop_scales, sampler.max_crop_scales) + 1e-12
    least = max(sampler.min_crop_aspect_ratios / proportions, scale * scale)
    most = min(sampler.max_crop_aspect_ratios / proportions, 1 / (scale * scale))
    # Of limits that cross, anything between them may come, as in MXNet.
    ratio = math.sqrt(chance.uniform(*sorted((least, most))))
    width, height = min(1.0, scale * ratio), min(1.0, scale / ratio)
    return chance.uniform(0, 1 - width), chance.uniform(0, 1 - height), width, height
