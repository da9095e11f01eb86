"""What is done to pictures before a network sees them: ``nd.image`` and ``mx.image`` as blocks."""

import itertools
import random

import numpy as np

from .... import ndarray
from ....training import image
from ....training.factory import REQUIRED, Declared
from ...block import Block
from ...declare import block_class
from ...hybrid import HybridBlock
from ...nn import HybridSequential, Sequential
from ...nn.conv_layers import _tuple

__all__ = ["Cast", "CenterCrop", "Compose", "CropResize", "Normalize", "RandomApply", "RandomResizedCrop"]
__all__ += ["RandomRotation", "Rotate", "ToTensor"]


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


class _OneFunction(Declared, Block, takes={}):
    """Base of transforms that are one function of ``nd.image``, which takes their arguments."""

    _function = ""

    def _set_up(self, **given):
        self._args = tuple(given.values())

    def forward(self, x):
        return getattr(ndarray.image, self._function)(x, *self._args)


class _ByFactor(_OneFunction):
    """Base of those whose argument says how far from 1 a random factor may be."""

    def _set_up(self, **given):
        (most,) = given.values()
        self._args = max(0, 1 - most), 1 + most


_SHARES = dict.fromkeys(("brightness", "contrast", "saturation", "hue"), 0)

#: Transforms by the function that they are, with their arguments.
_ROWS = {
    "random_flip_left_right": (_OneFunction, {}, "Every second picture mirrored."),
    "random_flip_top_bottom": (_OneFunction, {}, "Every second picture upside down."),
    "random_brightness": (_ByFactor, {"brightness": REQUIRED}, "Lighter or darker."),
    "random_contrast": (_ByFactor, {"contrast": REQUIRED}, "More contrast or less."),
    "random_saturation": (_ByFactor, {"saturation": REQUIRED}, "More colour or less."),
    "random_hue": (_ByFactor, {"hue": REQUIRED}, "Colours turned by up to ``hue``, a share of the circle."),
    "random_color_jitter": (_OneFunction, _SHARES, "All of these changed by chance, in random order."),
    "random_lighting": (_OneFunction, {"alpha": REQUIRED}, "Noise as colours vary."),
    "resize": (
        _OneFunction,
        {"size": REQUIRED, "keep_ratio": False, "interpolation": 1},
        "Pictures, or a batch of them, of another size; with ``keep_ratio``, the shorter side has it.",
    ),
}
for _function, (_base, _takes, _text) in _ROWS.items():
    _name = "".join(word.capitalize() for word in _function.split("_"))
    globals()[_name] = block_class(__name__, _name, _base, _text, _takes, _function=_function)
    __all__ += [_name]


_PART = {"x": REQUIRED, "y": REQUIRED, "width": REQUIRED, "height": REQUIRED}


class CropResize(Declared, Block, takes={**_PART, "size": None, "interpolation": None}):
    """A part of a picture, or of each of a batch, in another size if one is given."""

    def forward(self, x):
        part = ndarray.image.crop(x, x=self._x, y=self._y, width=self._width, height=self._height)
        how = 1 if self._interpolation is None else self._interpolation
        return part if self._size is None else ndarray.image.resize(part, self._size, interp=how)


class CenterCrop(Declared, Block, takes={"size": REQUIRED, "interpolation": 1}):
    """The middle of a picture, ``size`` being ``(width, height)``."""

    def forward(self, x):
        return image.center_crop(x, _tuple(self._size, 2), self._interpolation)[0]


_LIMITS = {"scale": (0.08, 1.0), "ratio": (3.0 / 4.0, 4.0 / 3.0)}


class RandomResizedCrop(Declared, Block, takes={"size": REQUIRED, **_LIMITS, "interpolation": 1}):
    """A part of a picture, of an area within ``scale`` and sides within ``ratio``, in another size."""

    def forward(self, x):
        limits = self._scale, self._ratio
        return image.random_size_crop(x, _tuple(self._size, 2), *limits, self._interpolation)[0]


_ZOOM = {"zoom_in": False, "zoom_out": False}


class Rotate(Declared, Block, takes={"rotation_degrees": REQUIRED, **_ZOOM}):
    """Pictures ``(C, H, W)``, or a batch of them, turned around their middle by ``mx.image.imrotate``."""

    def forward(self, x):
        _check_float32(x)
        return image.imrotate(x, self._rotation_degrees, self._zoom_in, self._zoom_out)


class RandomRotation(Declared, Block, takes={"angle_limits": REQUIRED, **_ZOOM, "rotate_with_proba": 1.0}):
    """:class:`Rotate` by an angle between two limits, done with probability ``rotate_with_proba``."""

    def _set_up(self, **given):
        super()._set_up(**given)
        lower, upper = self._angle_limits
        if lower >= upper:
            raise ValueError("`angle_limits` must be an ordered tuple")
        if not 0 <= self._rotate_with_proba <= 1:
            raise ValueError("Probability of rotating the image should be between 0 and 1")

    def forward(self, x):
        if np.random.random() > self._rotate_with_proba:  # noqa: NPY002 - MXNet draws from this generator
            return x
        _check_float32(x)
        return image.random_rotate(x, self._angle_limits, self._zoom_in, self._zoom_out)


def _check_float32(x) -> None:
    if x.dtype != np.float32:
        raise TypeError("This transformation only supports float32. Consider calling it after ToTensor")
