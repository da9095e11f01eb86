"""Pictures to arrays as the published families feed them, and boxes back. Files are read by Pillow, which is
optional; resizing is that of ``mx.image``, which is OpenCV's, to the last bit."""

import dataclasses
import glob
import math
import os
from pathlib import Path

import numpy as np

from .. import ndarray as nd
from ..errors import MXNetError, SettingsError, nearest
from ..training.image.reading import imresize, in_bytes, in_gray, opened, pillow

__all__ = ["PRESETS", "Placement", "Preprocessing", "find_pictures", "read_image"]

#: Endings of the files of a folder that are taken for pictures.
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")

_OF_IMAGENET = {"scale": 1 / 255, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_CLASSIFIER = {"short_side": 256, "crop": (224, 224), "rounding": "down"}

#: How the published families take pictures, by name: the fields of :class:`Preprocessing`.
PRESETS: dict[str, dict] = {
    "raw": {},
    "imagenet": {**_CLASSIFIER, "mean": (123.68, 116.779, 103.939)},
    "gluon": {**_OF_IMAGENET, **_CLASSIFIER},
    "gluon-ssd": {**_OF_IMAGENET, "short_side": 512, "max_side": 1024, "interpolation": "cubic"},
    "gluon-yolo": {**_OF_IMAGENET, "short_side": 416, "max_side": 1024, "interpolation": "cubic"},
    "gluon-rcnn": {**_OF_IMAGENET, "short_side": 600, "max_side": 1000, "interpolation": "cubic"},
    "gluon-centernet": {**_OF_IMAGENET, "short_side": 512, "max_side": 1024, "interpolation": "cubic"},
    "gluon-segmentation": {**_OF_IMAGENET},
    "rcnn": {"mean": (123.68, 116.779, 103.939), "short_side": 600, "max_side": 1000},
    "ssd": {"mean": (123.0, 117.0, 104.0), "resize": (300, 300)},
    "mtcnn": {"color": "bgr", "mean": (127.5, 127.5, 127.5), "std": (128.0, 128.0, 128.0)},
}

#: The fields that say to which size a picture is brought; one of them given, those of a preset do not hold.
SIZES = ("resize", "short_side", "max_side", "crop")


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where a picture lies in a network's input: ``input = picture * scale - offset``, y before x."""

    height: int
    width: int
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[int, int] = (0, 0)

    def to_picture(self, box) -> tuple[float, ...]:
        """A box ``(x1, y1, x2, y2)`` of the input, in pixels of the picture."""
        (sy, sx), (top, left) = self.scale, self.offset
        x1, y1, x2, y2 = box
        return (x1 + left) / sx, (y1 + top) / sy, (x2 + left) / sx, (y2 + top) / sy


def finite_numbers(name, given, counts) -> tuple[float, ...]:
    """Finite numbers, as many as one of ``counts``."""
    try:
        values = tuple(float(each) for each in np.ravel(given))
    except (TypeError, ValueError):
        values = ()
    if len(values) not in counts or not all(map(math.isfinite, values)):
        many = " or ".join(map(str, counts))
        raise SettingsError(f"{name} must be {many} finite number{'s' * (many != '1')}, got {given!r}")
    return values


@dataclasses.dataclass
class Preprocessing:
    """What happens to a picture: resized, cropped in the middle, channels put in order,
    ``(x * scale - mean) / std``.

    Attributes
    ----------
    resize : (height, width), optional
        Resize to exactly this.
    short_side, max_side : int, optional
        Resize in proportion, so that the short side is this, but the long side no more than that.
    crop : (height, width), optional
        Then take so much from the middle.
    rounding : "nearest" or "down"
        How the length of the other side is made whole.
    interpolation : "linear" or "cubic"
        OpenCV's, without antialiasing.
    color : "rgb", "bgr" or "gray"
        Order of the channels, or the brightness as the only one.
    scale, mean, std : float or sequence of 3 floats
        Values are 0 to 255 before.
    layout : "nchw" or "nhwc"
        Where the channels stand.
    """

    resize: tuple[int, int] | None = None
    short_side: int | None = None
    max_side: int | None = None
    crop: tuple[int, int] | None = None
    rounding: str = "nearest"
    interpolation: str = "linear"
    color: str = "rgb"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "nchw"

    def __post_init__(self):
        for name in ("scale", "mean", "std"):
            values = finite_numbers(name, getattr(self, name), (1, 3))
            if name == "std" and min(values) <= 0:
                raise SettingsError(f"std must be above 0, got {self.std!r}")
        for name in ("resize", "crop"):
            given = getattr(self, name)
            if given is not None:
                sides = finite_numbers(f"{name} (height, width)", given, (2,))
                if any(side < 1 or side != int(side) for side in sides):
                    raise SettingsError(f"{name} must be whole numbers above 0, got {given!r}")
                setattr(self, name, tuple(map(int, sides)))
        if self.resize and (self.short_side or self.max_side):
            raise SettingsError("resize is the whole size: give it, or short_side and max_side")

    @classmethod
    def of(cls, preset: str = "raw", **chosen) -> "Preprocessing":
        """A preset, with some of its fields chosen otherwise."""
        if preset not in PRESETS:
            raise MXNetError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
        fields, known = PRESETS[preset], [field.name for field in dataclasses.fields(cls)]
        for name in chosen:
            if name not in known:
                raise MXNetError(
                    f"pictures: there is no argument {name!r}{nearest(name, known)} ({', '.join(known)})"
                )
        if any(chosen.get(name) for name in SIZES):
            fields = {name: value for name, value in fields.items() if name not in SIZES}
        how = cls(**{**fields, **chosen})
        if how.channels < max(map(np.size, (how.scale, how.mean, how.std))):
            raise SettingsError("pictures: with color gray, scale, mean and std must be one number each")
        return how

    @property
    def channels(self) -> int:
        """How many channels pictures have, as the network takes them."""
        return 1 if self.color == "gray" else 3

    def size(self, height: int, width: int) -> tuple[int, int]:
        """The height and width that a picture of this size is resized to, before it is cropped."""
        if self.resize:
            return self.resize
        factor = self._factor(height, width)
        whole = int if self.rounding == "down" else round
        # The side that decides is met exactly, whatever the factor's last digits.
        sides = [whole(n * factor + 1e-9) for n in (height, width)]
        return max(1, sides[0]), max(1, sides[1])

    def _factor(self, height: int, width: int) -> float:
        factor = self.short_side / min(height, width) if self.short_side else 1.0
        if self.max_side and round(factor * max(height, width)) > self.max_side:
            factor = self.max_side / max(height, width)
        return factor

    def place(self, height: int, width: int) -> Placement:
        """Where a picture of this size lies in the network's input."""
        new = self.size(height, width)
        factor = self._factor(height, width)
        scale = (new[0] / height, new[1] / width) if self.resize else (factor, factor)
        if not self.crop:
            return Placement(*new, scale)
        if self.crop[0] > new[0] or self.crop[1] > new[1]:
            raise MXNetError(
                f"pictures: cannot crop {_by(self.crop)} from a picture of {_by((height, width))} that was "
                f"resized to {_by(new)}; choose a larger short side, or resize"
            )
        offset = (new[0] - self.crop[0]) // 2, (new[1] - self.crop[1]) // 2
        return Placement(*self.crop, scale, offset)

    def apply(self, image) -> np.ndarray:
        """A float32 array of shape (1, channels, height, width), from an image as ``read_image`` gives it."""
        place, new = self.place(image.height, image.width), self.size(image.height, image.width)
        pixels = np.asarray(image) if self.channels == 3 else in_gray(image)[..., np.newaxis]
        if new != pixels.shape[:2]:
            interp = {"linear": 1, "cubic": 2}[self.interpolation]
            pixels = imresize(nd.array(pixels, dtype=np.uint8), new[1], new[0], interp).asnumpy()
        top, left = place.offset
        pixels = pixels[top : top + place.height, left : left + place.width].astype(np.float32)
        if self.color == "bgr":
            pixels = pixels[..., ::-1]
        values = (pixels * np.float32(self.scale) - np.float32(self.mean)) / np.float32(self.std)
        if self.layout == "nchw":
            values = values.transpose(2, 0, 1)
        return np.ascontiguousarray(values[None], dtype=np.float32)

    def describe(self, height: int, width: int) -> str:
        """What happens to the size of a picture, in a few words."""
        new, words = self.size(height, width), [_by((height, width))]
        if new != (height, width):
            words.append(f"resized to {_by(new)}")
        if self.crop:
            words.append(f"cropped to {_by(self.crop)}")
        return ", ".join(words)


def _by(size) -> str:
    return f"{size[0]}x{size[1]}"


def read_image(picture, name: str | None = None):
    """A picture as RGB: from a file, upright as its camera noted; a Pillow image; or an array.

    Parameters
    ----------
    picture : path, open file, PIL.Image.Image or array
        A file is open for bytes, such as ``io.BytesIO``. An array is (height, width) or (height, width, 3),
        RGB, with values from 0 to 255.
    name : str, optional
        What errors call it; the file's name unless given.
    """
    PIL = pillow()
    if isinstance(picture, PIL.Image.Image):
        return in_bytes(picture)
    if not isinstance(picture, str | os.PathLike) and not hasattr(picture, "read"):
        return PIL.Image.fromarray(_bytes(picture)).convert("RGB")
    with opened(picture, name or picture) as image:
        return in_bytes(PIL.ImageOps.exif_transpose(image))


def _bytes(picture) -> np.ndarray:
    array = np.asarray(picture)
    grey = array.ndim == 2
    if not (grey or (array.ndim == 3 and array.shape[2] in (1, 3))) or not array.size:
        raise MXNetError(f"a picture as an array must have shape (height, width, 3), got {array.shape}")
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all() or array.min() < 0 or array.max() > 255:
        raise MXNetError(f"a picture as an array must have values from 0 to 255, got {array.dtype}")
    return np.rint(array).astype(np.uint8)


def find_pictures(names) -> list[str]:
    """The files of pictures that folders, patterns (``photos/*.jpg``) and names stand for, in order.

    A folder stands for the pictures in it and in the folders below, by the endings of their names.
    """
    found: list[str] = []
    for name in map(str, names):
        if os.path.isdir(name):
            files = (each for each in Path(name).rglob("*") if each.is_file())
            inside = sorted(str(each) for each in files if each.suffix.lower() in ENDINGS)
            if not inside:
                raise MXNetError(f"{name}: holds no pictures ({', '.join(ENDINGS)})")
        elif not os.path.exists(name) and glob.has_magic(name):
            inside = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
            if not inside:
                raise MXNetError(f"{name}: no file has a name like that")
        else:
            inside = [name]
        found += inside
    return list(dict.fromkeys(found))
