"""What is done to pictures before a network sees them; those of mx.image's augmenters are a row each."""

import random
import sys

import numpy as np

from .... import ndarray
from ....training import image
from ...block import Block
from ...declare import REQUIRED, Declared
from ...hybrid import HybridBlock
from ...nn import HybridSequential, Sequential


class Compose(Sequential):
    """Transforms one after the other; hybrid ones that follow each other run as one graph."""

    def __init__(self, transforms):
        super().__init__()
        together = []
        for each in [*transforms, None]:
            if isinstance(each, HybridBlock):
                together.append(each)
                continue
            if len(together) > 1:
                block = HybridSequential()
                block.add(*together)
                block.hybridize()
                self.add(block)
            elif together:
                self.add(together[0])
            together = []
            if each is not None:
                self.add(each)


class Cast(Declared, HybridBlock, takes={"dtype": "float32"}):
    """Pictures of another dtype."""

    def hybrid_forward(self, F, x):
        return F.cast(x, dtype=self._dtype)


class ToTensor(HybridBlock):
    """Pictures ``(H, W, C)`` of 0 to 255 as ``(C, H, W)`` of 0 to 1."""

    def hybrid_forward(self, F, x):
        return F.image.to_tensor(x)


class Normalize(Declared, HybridBlock, takes={"mean": 0.0, "std": 1.0}):
    """``(x - mean) / std`` of each channel."""

    def hybrid_forward(self, F, x):
        return F.image.normalize(x, self._mean, self._std)


class _Augmenting(Block):
    """Base of transforms that are an augmenter of ``mx.image``, whose parameters they have."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._augmenter = self._make(*args, **kwargs)

    def forward(self, x):
        return self._augmenter(x)


# The name, the augmenter, and what it does.
_ROWS = (
    ("RandomFlipLeftRight", lambda: image.HorizontalFlipAug(0.5), "Every second picture mirrored."),
    ("RandomBrightness", lambda brightness: image.BrightnessJitterAug(brightness), "Lighter or darker."),
    ("RandomContrast", lambda contrast: image.ContrastJitterAug(contrast), "More contrast or less."),
    ("RandomSaturation", lambda saturation: image.SaturationJitterAug(saturation), "More colour or less."),
    ("RandomHue", lambda hue: image.HueJitterAug(hue), "Colours turned."),
    ("RandomLighting", lambda alpha: image.LightingAug(alpha, _VALUES, _VECTORS), "Noise as colours vary."),
)

# How colours of ImageNet vary together.
_VALUES = np.array([55.46, 4.794, 1.148])
_VECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]], np.float64
)


class RandomColorJitter(Block):
    """Brightness, contrast, saturation and hue changed by chance."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        self._steps = [image.ColorJitterAug(brightness, contrast, saturation)]
        if hue:
            self._steps.append(image.HueJitterAug(hue))

    def forward(self, x):
        for step in self._steps:
            x = step(x)
        return x


class RandomFlipTopBottom(Block):
    """Every second picture upside down."""

    def forward(self, x):
        return ndarray.image.flip_top_bottom(x) if random.random() < 0.5 else x


def _pair(size):
    return (size, size) if isinstance(size, int) else size


class Resize(Declared, Block, takes={"size": REQUIRED, "keep_ratio": False, "interpolation": 1}):
    """Pictures of another size; with ``keep_ratio``, the shorter side has it."""

    def forward(self, x):
        if isinstance(self._size, int) and self._keep_ratio:
            return image.resize_short(x, self._size, self._interpolation)
        return image.imresize(x, *_pair(self._size), self._interpolation)


class CropResize(Block):
    """A part of a picture, in another size if one is given."""

    def __init__(self, x, y, width, height, size=None, interpolation=None):
        super().__init__()
        self._part = {"x": x, "y": y, "width": width, "height": height}
        self._resize = None if size is None else Resize(size, interpolation=interpolation or 1)

    def forward(self, x):
        part = ndarray.image.crop(x, **self._part)
        return part if self._resize is None else self._resize(part)


class CenterCrop(Declared, Block, takes={"size": REQUIRED, "interpolation": 1}):
    """The middle of a picture, ``size`` being ``(width, height)``."""

    def forward(self, x):
        return image.center_crop(x, _pair(self._size), self._interpolation)[0]


_CROP = {"size": REQUIRED, "scale": (0.08, 1.0), "ratio": (3.0 / 4.0, 4.0 / 3.0), "interpolation": 1}


class RandomResizedCrop(Declared, Block, takes=_CROP):
    """A part of a picture, of an area within ``scale`` and sides within ``ratio``, in another size."""

    def forward(self, x):
        how = self._scale, self._ratio, self._interpolation
        return image.random_size_crop(x, _pair(self._size), *how)[0]


class RandomApply(Sequential):
    """A transform that is done with probability ``p``."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, x):
        return x if self.p < random.random() else self.transforms(x)


for _name, _maker, _text in _ROWS:
    _members = {"_make": staticmethod(_maker), "__doc__": _text, "__module__": __name__}
    setattr(sys.modules[__name__], _name, type(_name, (_Augmenting,), _members))

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "Normalize",
    "RandomApply",
    "RandomColorJitter",
    "RandomFlipTopBottom",
    "RandomResizedCrop",
    "Resize",
    "ToTensor",
    *(_row[0] for _row in _ROWS),
]
