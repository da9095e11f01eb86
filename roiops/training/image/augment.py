"""Pictures changed at random for training.

Random numbers come from Python's ``random``, but for lighting and rotation, which take NumPy's: as in MXNet,
and in its order, so that equal seeds give equal pictures.
"""

import json
import math
import random
from numbers import Number

import numpy as np

from ... import ndarray as nd
from ...errors import ParamError
from ..factory import REQUIRED, Declared
from .reading import center_crop, color_normalize, fixed_crop, imresize, resize_short, scale_down

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
]

#: Mean and standard deviation of the colours of ImageNet's pictures.
IMAGENET_MEAN, IMAGENET_STD = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)

#: How much they vary along each of three axes, and these axes, as columns.
IMAGENET_LIGHT = (
    np.array([55.46, 4.794, 1.148]),
    np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]),
)

#: How much of grey each of red, green and blue is.
_GREY = (0.299, 0.587, 0.114)


# -- functions -------------------------------------------------------------------------------------------


def random_crop(src, size, interp=2):
    """A part of an image as large as ``size``, (width, height), anywhere, and where it was."""
    height, width = src.shape[:2]
    w, h = scale_down((width, height), size)
    x0, y0 = random.randint(0, width - w), random.randint(0, height - h)
    return fixed_crop(src, x0, y0, w, h, size, interp), (x0, y0, w, h)


def random_size_crop(src, size, area, ratio, interp=2, **kwargs):
    """A part of an image of random area and proportions, resized to ``size``, and where it was.

    Parameters
    ----------
    area : float or (float, float)
        The smallest share of the area, or the smallest and the largest.
    ratio : (float, float)
        The smallest and the largest width over height.
    """
    area = kwargs.pop("min_area", area)
    if kwargs:
        raise ParamError(f"random_size_crop: unknown parameter {next(iter(kwargs))!r}")
    least, most = (area, 1.0) if isinstance(area, Number) else area
    height, width = src.shape[:2]
    for _ in range(10):
        target = random.uniform(least, most) * height * width
        proportion = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(target * proportion)), round(math.sqrt(target / proportion))
        if w <= width and h <= height:
            x0, y0 = random.randint(0, width - w), random.randint(0, height - h)
            return fixed_crop(src, x0, y0, w, h, size, interp), (x0, y0, w, h)
    return center_crop(src, size, interp)


def imrotate(src, rotation_degrees, zoom_in=False, zoom_out=False) -> nd.NDArray:
    """An image turned around its middle, bilinear, with zeros where nothing is.

    Parameters
    ----------
    src : NDArray
        float32, (channels, height, width), or a batch of them.
    rotation_degrees : float or NDArray
        The angle, or one for each image of a batch.
    zoom_in, zoom_out : bool
        Whether to enlarge until no zeros show, or to shrink until the whole image does.
    """
    if zoom_in and zoom_out:
        raise ValueError("`zoom_in` and `zoom_out` cannot be both True")
    if src.dtype != np.float32:
        raise TypeError("Only `float32` images are supported by this function")
    if len(src.shape) == 3:
        if not isinstance(rotation_degrees, Number):
            raise TypeError("When a single image is passed the rotation angle is required to be a scalar.")
        return imrotate(src.expand_dims(axis=0), rotation_degrees, zoom_in, zoom_out)[0]
    if len(src.shape) != 4:
        raise ValueError("Only 3D and 4D are supported by this function")
    if isinstance(rotation_degrees, Number):
        rotation_degrees = np.full(src.shape[0], rotation_degrees)
    angles = np.asarray(rotation_degrees, np.float32)
    if len(angles) != src.shape[0]:
        raise ValueError("The number of images must be equal to the number of rotation angles")
    angles = np.deg2rad(angles)[:, None, None]
    height, width = src.shape[2:]
    y, x = np.ogrid[:height, :width]
    y, x = y - (height - 1) / 2, x - (width - 1) / 2
    sine, cosine = np.sin(angles), np.cos(angles)
    grid = np.stack(
        [(x * cosine - y * sine) / ((width - 1) / 2), (x * sine + y * cosine) / ((height - 1) / 2)], 1
    )
    if zoom_in or zoom_out:
        # How far the corners of the turned image reach.
        reach_x = width * np.abs(cosine) + height * np.abs(sine)
        reach_y = width * np.abs(sine) + height * np.abs(cosine)
        if zoom_out:
            scale = np.maximum(reach_x / width, reach_y / height)
        else:
            scale = np.minimum(width / reach_x, height / reach_y)
        grid = grid * scale[:, None]
    return nd.BilinearSampler(src, nd.array(grid, ctx=src.context, dtype="float32"))


def random_rotate(src, angle_limits, zoom_in=False, zoom_out=False) -> nd.NDArray:
    """:func:`imrotate` by angles drawn between two limits."""
    count = None if len(src.shape) == 3 else src.shape[0]
    return imrotate(src, np.random.uniform(*angle_limits, size=count), zoom_in, zoom_out)  # noqa: NPY002


def with_contrast(src, factor) -> nd.NDArray:
    """An image whose numbers are ``factor`` times as far from its mean grey; it is written to."""
    grey = src * nd.array([[_GREY]], src.context)
    grey = (3.0 * (1.0 - factor) / grey.size) * nd.sum(grey)
    src *= factor
    src += grey
    return src


def with_saturation(src, factor) -> nd.NDArray:
    """An image whose colours are ``factor`` times as far from grey; it is written to."""
    if src.shape[2] == 1:
        return src
    grey = nd.sum(src * nd.array([[_GREY]], src.context), axis=2, keepdims=True) * (1.0 - factor)
    src *= factor
    src += grey
    return src


def turn_hues(src, turn) -> nd.NDArray:
    """Colours turned as in the space HLS, 1 being once around: pixels keep their largest and least number."""
    if src.shape[2] == 1:
        return src
    pixels = src.asnumpy()
    high, spread = pixels.max(axis=-1), np.ptp(pixels, axis=-1)
    red, green, blue = np.moveaxis(pixels, -1, 0)
    sides = [(green - blue, 0), (blue - red, 2), (red - green, 4)]
    angles = [part / np.where(spread, spread, 1) + start for part, start in sides]
    angle = np.select([high == red, high == green], angles[:2], angles[2]) + 6 * turn
    places = (np.array([5, 3, 1]) + angle[..., None]) % 6
    turned = high[..., None] - spread[..., None] * np.clip(np.minimum(places, 4 - places), 0, 1)
    return nd.array(turned, src.context, src.dtype)


# -- augmenters ------------------------------------------------------------------------------------------


class Augmenter:
    """Changes an image. The keywords describe it, for :meth:`dumps`."""

    def __init__(self, **kwargs):
        arrays = np.ndarray | nd.NDArray
        self._kwargs = {n: np.asarray(v).tolist() if isinstance(v, arrays) else v for n, v in kwargs.items()}

    def dumps(self) -> str:
        """The class and its parameters, as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src):
        """The changed image."""
        raise NotImplementedError("Must override implementation.")


class SequentialAug(Augmenter):
    """Several augmenters, one after the other."""

    def __init__(self, ts):
        super().__init__()
        self.ts = ts

    def dumps(self):
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src):
        for each in self.ts:
            src = each(src)
        return src


class RandomOrderAug(SequentialAug):
    """Several augmenters in random order."""

    def __call__(self, src):
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Declared, Augmenter, takes={"size": REQUIRED, "interp": 2}):
    """Resize the shorter side to ``size``."""

    def __call__(self, src):
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(ResizeAug):
    """Resize to ``size``, (width, height), whatever the proportions."""

    def __call__(self, src):
        return imresize(src, *self.size, interp=self.interp)


class RandomCropAug(ResizeAug):
    """Keep a part of ``size``, (width, height), from anywhere."""

    def __call__(self, src):
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ResizeAug):
    """Keep the middle, of ``size`` as (width, height)."""

    def __call__(self, src):
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Keep a part of random size and proportions; see :func:`random_size_crop`."""

    def __init__(self, size, area, ratio, interp=2, **kwargs):
        area = kwargs.pop("min_area", area)
        if kwargs:
            raise ParamError(f"RandomSizedCropAug: unknown parameter {next(iter(kwargs))!r}")
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.area, self.ratio, self.interp = size, area, ratio, interp

    def __call__(self, src):
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class BrightnessJitterAug(Declared, Augmenter, takes={"brightness": REQUIRED}):
    """Brightness changed by up to ``brightness``, a share."""

    def __call__(self, src):
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Declared, Augmenter, takes={"contrast": REQUIRED}):
    """Contrast changed by up to ``contrast``, a share."""

    def __call__(self, src):
        return with_contrast(src, 1.0 + random.uniform(-self.contrast, self.contrast))


class SaturationJitterAug(Declared, Augmenter, takes={"saturation": REQUIRED}):
    """Saturation changed by up to ``saturation``, a share."""

    def __call__(self, src):
        return with_saturation(src, 1.0 + random.uniform(-self.saturation, self.saturation))


class HueJitterAug(Declared, Augmenter, takes={"hue": REQUIRED}):
    """Hues turned by up to ``hue``, a share of half a circle, in the colour space YIQ."""

    tyiq = np.array([_GREY, (0.596, -0.274, -0.321), (0.211, -0.523, 0.311)])
    ityiq = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __call__(self, src):
        angle = random.uniform(-self.hue, self.hue) * np.pi
        cosine, sine = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
        return nd.dot(src, nd.array((self.ityiq @ turn @ self.tyiq).T))


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation changed, in random order."""

    def __init__(self, brightness, contrast, saturation):
        kinds = {
            BrightnessJitterAug: brightness,
            ContrastJitterAug: contrast,
            SaturationJitterAug: saturation,
        }
        super().__init__([kind(share) for kind, share in kinds.items() if share > 0])


class LightingAug(Declared, Augmenter, takes={"alphastd": REQUIRED, "eigval": REQUIRED, "eigvec": REQUIRED}):
    """Light added along the colours' principal axes, as AlexNet does."""

    def __call__(self, src):
        alpha = np.random.normal(0, self.alphastd, size=(3,))  # noqa: NPY002  (scripts seed it)
        src += nd.array(np.dot(self.eigvec * alpha, self.eigval))
        return src


class ColorNormalizeAug(Augmenter):
    """``(image - mean) / std``."""

    def __init__(self, mean, std):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (
            each if each is None or isinstance(each, nd.NDArray) else nd.array(each) for each in (mean, std)
        )

    def __call__(self, src):
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Declared, Augmenter, takes={"p": REQUIRED}):
    """Grey instead of colours, with probability ``p``."""

    def _set_up(self, p):
        self.p, self.mat = p, nd.array([[0.21] * 3, [0.72] * 3, [0.07] * 3])

    def __call__(self, src):
        return nd.dot(src, self.mat) if random.random() < self.p else src


class HorizontalFlipAug(Declared, Augmenter, takes={"p": REQUIRED}):
    """Left and right changed, with probability ``p``."""

    def __call__(self, src):
        return nd.flip(src, axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """The image in another dtype."""

    def __init__(self, typ="float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src):
        return src.astype(self.typ)


def CreateAugmenter(
    data_shape,
    resize=0,
    rand_crop=False,
    rand_resize=False,
    rand_mirror=False,
    mean=None,
    std=None,
    brightness=0,
    contrast=0,
    saturation=0,
    hue=0,
    pca_noise=0,
    rand_gray=0,
    inter_method=2,
) -> list:
    """The usual augmenters, in the usual order, for images of ``data_shape``, (channels, height, width).

    ``mean`` and ``std`` are arrays, or True for those of ImageNet.
    """
    size = data_shape[2], data_shape[1]
    found = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise ParamError("CreateAugmenter: rand_resize needs rand_crop")
        found.append(RandomSizedCropAug(size, 0.08, (3 / 4, 4 / 3), inter_method))
    else:
        found.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        found.append(HorizontalFlipAug(0.5))
    found.append(CastAug())
    mean, std = mean_and_std("CreateAugmenter", mean, std, nd.array)
    return found + colour_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)


def mean_and_std(caller, mean, std, array) -> tuple:
    """Those of the colours, checked, each an array or None; for True those of ImageNet, made by ``array``."""
    mean = array(IMAGENET_MEAN) if mean is True else mean
    std = array(IMAGENET_STD) if std is True else std
    for name, given in (("mean", mean), ("std", std)):
        if given is not None and (not hasattr(given, "shape") or given.shape[0] not in (1, 3)):
            raise ParamError(f"{caller}: {name} must be True or an array of 1 or 3 numbers, got {given!r}")
    return mean, std


def colour_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std) -> list:
    """What changes the colours alone, in the usual order; parameters as :func:`CreateAugmenter` has them."""
    found = []
    if brightness or contrast or saturation:
        found.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        found.append(HueJitterAug(hue))
    if pca_noise > 0:
        found.append(LightingAug(pca_noise, *IMAGENET_LIGHT))
    if rand_gray > 0:
        found.append(RandomGrayAug(rand_gray))
    if mean is not None or std is not None:
        found.append(ColorNormalizeAug(mean, std))
    return found
