"""What is done to pictures before a network sees them; most are augmenters of mx.image as blocks."""

import functools
import inspect
import itertools
import random

import numpy as np

from .... import ndarray
from ....training import image
from ....training.image.augment import IMAGENET_LIGHT, turn_hues
from ...block import Block
from ...declare import Declared
from ...hybrid import HybridBlock
from ...nn import HybridSequential, Sequential
from ...nn.conv_layers import _tuple

__all__ = ["Cast", "CenterCrop", "Compose", "CropResize", "Normalize", "RandomApply", "RandomBrightness"]
__all__ += ["RandomColorJitter", "RandomContrast", "RandomFlipLeftRight", "RandomFlipTopBottom", "RandomHue"]
__all__ += ["RandomLighting", "RandomResizedCrop", "RandomRotation", "RandomSaturation", "Resize", "Rotate"]
__all__ += ["ToTensor"]


class Compose(Sequential):
    """Transforms one after the other; hybrid ones that follow each other run as one graph."""

    def __init__(self, transforms):
        super().__init__()
        for hybrid, group in itertools.groupby(transforms, lambda each: isinstance(each, HybridBlock)):
            blocks = list(group)
            if hybrid and len(blocks) > 1:
                together = HybridSequential()
                together.add(*blocks)
                together.hybridize()
                blocks = [together]
            self.add(*blocks)


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


class RandomApply(Sequential):
    """A transform that is done with probability ``p``."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, x):
        return x if self.p < random.random() else self.transforms(x)


class _Augmenting(Block):
    """Base of transforms that are a function of a picture, which ``_make`` makes."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._augment = self._make(*args, **kwargs)

    def forward(self, x):
        return self._augment(x)


class _Recolouring(_Augmenting):
    """Base of those that change colours: in float32, on a copy; whole numbers stay within 0 and 255."""

    def forward(self, x):
        made = super().forward(x.astype("float32"))
        return (made if np.dtype(x.dtype).kind == "f" else ndarray.clip(made, 0, 255)).astype(x.dtype)


class _Resizing(_Augmenting):
    """Base of those that take a batch of pictures, too."""

    def forward(self, x):
        each = super().forward
        return ndarray.stack(*map(each, x)) if x.ndim == 4 else each(x)


def _augmenting(make, name=None, text=None, base=_Augmenting) -> type:
    """The class of transforms that takes what this function takes and does what its result does."""
    members = {"_make": staticmethod(make), "__signature__": inspect.signature(make)}
    members |= {"__doc__": text or make.__doc__, "__module__": __name__}
    return type(name or make.__name__, (base,), members)


_recolouring = functools.partial(_augmenting, base=_Recolouring)
_resizing = functools.partial(_augmenting, base=_Resizing)


def _flip_top_bottom(x):
    return ndarray.image.flip_top_bottom(x) if random.random() < 0.5 else x


RandomFlipLeftRight = _augmenting(
    lambda: image.HorizontalFlipAug(0.5), "RandomFlipLeftRight", "Every second picture mirrored."
)
RandomFlipTopBottom = _augmenting(
    lambda: _flip_top_bottom, "RandomFlipTopBottom", "Every second picture upside down."
)
RandomBrightness = _recolouring(image.BrightnessJitterAug, "RandomBrightness", "Lighter or darker.")
RandomContrast = _recolouring(image.ContrastJitterAug, "RandomContrast", "More contrast or less.")
RandomSaturation = _recolouring(image.SaturationJitterAug, "RandomSaturation", "More colour or less.")


def _turned_by_chance(picture, most):
    return turn_hues(picture, random.uniform(max(0, 1 - most), 1 + most))


@_recolouring
def RandomHue(hue):
    """Colours turned by up to ``hue``, a share of the circle."""
    return functools.partial(_turned_by_chance, most=hue)


@_recolouring
def RandomLighting(alpha):
    """Noise as colours vary."""
    return image.LightingAug(alpha, *IMAGENET_LIGHT)


@_recolouring
def RandomColorJitter(brightness=0, contrast=0, saturation=0, hue=0):
    """Brightness, contrast, saturation and hue changed by chance, in random order."""
    three = image.ColorJitterAug(brightness, contrast, saturation).ts
    return image.RandomOrderAug([*three, RandomHue(hue)] if hue else three)


@_resizing
def Resize(size, keep_ratio=False, interpolation=1):
    """Pictures, or a batch of them, of another size; with ``keep_ratio``, the shorter side has it."""
    if isinstance(size, int) and keep_ratio:
        return image.ResizeAug(size, interpolation)
    return image.ForceResizeAug(_tuple(size, 2), interpolation)


def _cropped(picture, **place):  # a function that pickle finds, for workers
    return ndarray.image.crop(picture, **place)


@_resizing
def CropResize(x, y, width, height, size=None, interpolation=None):
    """A part of a picture, or of each of a batch, in another size if one is given."""
    crop = functools.partial(_cropped, x=x, y=y, width=width, height=height)
    method = 1 if interpolation is None else interpolation
    resize = [] if size is None else [image.ForceResizeAug(_tuple(size, 2), method)]
    return image.SequentialAug([crop, *resize])


@_augmenting
def CenterCrop(size, interpolation=1):
    """The middle of a picture, ``size`` being ``(width, height)``."""
    return image.CenterCropAug(_tuple(size, 2), interpolation)


@_augmenting
def RandomResizedCrop(size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=1):
    """A part of a picture, of an area within ``scale`` and sides within ``ratio``, in another size."""
    return image.RandomSizedCropAug(_tuple(size, 2), scale, ratio, interpolation)


def _turned(x, turn, angles, zoom_in, zoom_out):
    if x.dtype != np.float32:
        raise TypeError("This transformation only supports float32. Consider calling it after ToTensor")
    return turn(x, angles, zoom_in, zoom_out)


@_augmenting
def Rotate(rotation_degrees, zoom_in=False, zoom_out=False):
    """Pictures ``(C, H, W)``, or a batch of them, turned around their middle by ``mx.image.imrotate``."""
    given = {"angles": rotation_degrees, "zoom_in": zoom_in, "zoom_out": zoom_out}
    return functools.partial(_turned, turn=image.imrotate, **given)


class RandomRotation(Block):
    """:class:`Rotate` by an angle between two limits, done with probability ``rotate_with_proba``."""

    def __init__(self, angle_limits, zoom_in=False, zoom_out=False, rotate_with_proba=1.0):
        super().__init__()
        lower, upper = angle_limits
        if lower >= upper:
            raise ValueError("`angle_limits` must be an ordered tuple")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError("Probability of rotating the image should be between 0 and 1")
        self._how = image.random_rotate, angle_limits, zoom_in, zoom_out
        self._probability = rotate_with_proba

    def forward(self, x):
        skipped = np.random.random() > self._probability  # noqa: NPY002 - MXNet draws from this generator
        return x if skipped else _turned(x, *self._how)
