"""``mx.io.ImageDetRecordIter``: batches of the pictures of a record file and of the boxes in them."""

import math
from types import SimpleNamespace

import numpy as np

from ...errors import DataError, ParamError
from ...params.field import Field, enum, floats, shape
from .detection import have_area
from .opencv import shift_hsl, to_bytes
from .record_iter import OF_BOTH, RecordIter
from .recordio import unpack

__all__ = ["ImageDetRecordIter"]

#: The parameters of which each crop sampler may have its own.
_LIMITS = {
    "min_crop_scales": 0.0, "max_crop_scales": 1.0, "min_crop_aspect_ratios": 1.0,
    "max_crop_aspect_ratios": 1.0, "min_crop_overlaps": 0.0, "max_crop_overlaps": 1.0,
    "min_crop_sample_coverages": 0.0, "max_crop_sample_coverages": 1.0, "min_crop_object_coverages": 0.0,
    "max_crop_object_coverages": 1.0,
}  # fmt: skip
_OF_SAMPLERS = {
    **{name: Field(floats(), default) for name, default in _LIMITS.items()},
    "max_crop_trials": Field(shape(), 25),
}
_DETECTING = {
    **_OF_SAMPLERS, "label_width": -1, "label_pad_width": 0, "label_pad_value": -1.0, "rand_crop_prob": 0.0,
    "num_crop_sampler": 1, "crop_emit_mode": Field(enum("center", "overlap"), "center"),
    "emit_overlap_thresh": 0.3, "rand_pad_prob": 0.0, "max_pad_scale": 1.0, "max_random_hue": 0,
    "random_hue_prob": 0.0, "max_random_saturation": 0, "random_saturation_prob": 0.0,
    "max_random_illumination": 0, "random_illumination_prob": 0.0, "max_random_contrast": 0.0,
    "random_contrast_prob": 0.0, "rand_mirror_prob": 0.0, "fill_value": 127,
    "resize_mode": Field(enum("force", "shrink", "fit"), "force"),
}  # fmt: skip


class ImageDetRecordIter(RecordIter):
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

    _defaults = {**OF_BOTH, **_DETECTING}

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
        given = {name: getattr(p, name) for name in _OF_SAMPLERS}
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
        before, width = (int(each) for each in np.nan_to_num(label[:2])) if label.size >= 7 else (0, 0)
        if not 2 <= before <= label.size or width < 5 or (label.size - before) % width:
            raise DataError(f"{self._name}: the label of picture {number} holds no boxes: {label[:7]}, ...")
        return label

    def _change(self, pixels, label, chance):
        p, before, width = self._p, int(label[0]), int(label[1])
        boxes = label[before:].reshape(-1, width)
        boxes = boxes[have_area(boxes)]  # a copy
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
            pixels = to_bytes(pixels * (1 + contrast))
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
        pixels = np.pad(pixels, around, constant_values=self._p.fill_value)
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
        # Of one box at least, all that is limited must be within the limits.
        fits = [(least <= share) & (share <= most) for least, share, most in rules if least > 0 or most < 1]
        if fits and not np.logical_and.reduce(fits).any():
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
            pixels = pixels - self._means[:, : pixels.shape[1], : pixels.shape[2]]
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
