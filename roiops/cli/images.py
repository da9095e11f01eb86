"""Images to arrays and back, for `roiops run`. The only user of Pillow, which is optional."""

import dataclasses

import numpy as np

from ..errors import MXNetError

__all__ = ["PRESETS", "Preprocessing", "draw", "read_image"]

#: Pictures with a long side below this are enlarged before boxes are drawn.
_LEAST_SIDE = 512

#: How the published families feed their networks: colour order, scale, mean, std, short side, long side.
PRESETS = {
    "raw": {},
    "gluon": {"scale": 1 / 255, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
    "rcnn": {"mean": (123.68, 116.779, 103.939), "short_side": 600, "max_side": 1000},
    "ssd": {"mean": (123.0, 117.0, 104.0)},
    "mtcnn": {"color": "bgr", "mean": (127.5, 127.5, 127.5), "std": (128.0, 128.0, 128.0)},
}


@dataclasses.dataclass
class Preprocessing:
    """What happens to an image: resized, channels put in order, ``(x * scale - mean) / std``, NCHW."""

    resize: tuple[int, int] | None = None
    short_side: int | None = None
    max_side: int | None = None
    color: str = "rgb"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """The height and width that an image of this size is resized to."""
        if self.resize:
            return self.resize
        if not self.short_side:
            return height, width
        factor = self.short_side / min(height, width)
        if self.max_side and factor * max(height, width) > self.max_side:
            factor = self.max_side / max(height, width)
        return round(height * factor), round(width * factor)

    def apply(self, image) -> np.ndarray:
        """A float32 array of shape (1, channels, height, width)."""
        pillow = _pillow()
        height, width = self.size(image.height, image.width)
        if (height, width) != (image.height, image.width):
            image = image.resize((width, height), pillow.Resampling.BILINEAR)
        pixels = np.asarray(image, dtype=np.float32)
        if self.color == "bgr":
            pixels = pixels[..., ::-1]
        values = (pixels * np.float32(self.scale) - np.float32(self.mean)) / np.float32(self.std)
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None], dtype=np.float32)


def _pillow():
    try:
        import PIL.Image
        import PIL.ImageDraw
    except ImportError:
        raise MXNetError(
            "images need Pillow, which is not installed: pip install pillow; "
            "an array in a .npy file does without"
        ) from None
    return PIL.Image


def read_image(path):
    """The image in a file, as RGB."""
    pillow = _pillow()
    try:
        with pillow.open(path) as image:
            return image.convert("RGB")
    except pillow.UnidentifiedImageError:
        raise MXNetError(f"{path}: not an image that Pillow can read") from None


def draw(image, found, names, path) -> None:
    """Write a copy of ``image`` with boxes on it; a small one is enlarged so that labels can be read.

    Boxes are in the image's own pixels.
    """
    pillow = _pillow()
    from PIL import ImageDraw

    factor = max(1, _LEAST_SIDE // max(image.size))
    picture = image.resize((image.width * factor, image.height * factor), pillow.Resampling.BICUBIC)
    canvas = ImageDraw.Draw(picture)
    thickness = max(2, round(min(picture.size) / 200))
    for each in found:
        colour = _COLOURS[each.class_id % len(_COLOURS)]
        x1, y1, x2, y2 = (value * factor for value in each.box)
        # Detectors may put a box beyond the border or, untrained, upside down; a drawing cannot.
        x1, x2 = sorted(min(max(x, 0), picture.width - 1) for x in (x1, x2))
        y1, y2 = sorted(min(max(y, 0), picture.height - 1) for y in (y1, y2))
        canvas.rectangle((x1, y1, x2, y2), outline=colour, width=thickness)
        text = f"{class_name(each.class_id, names)} {each.score:.2f}"
        left, top, right, bottom = canvas.textbbox((0, 0), text)
        above = y1 - (bottom - top) - 4
        at = (x1, above if above >= 0 else y1)
        canvas.rectangle((at[0], at[1], at[0] + right - left + 4, at[1] + bottom - top + 4), fill=colour)
        canvas.text((at[0] + 2 - left, at[1] + 2 - top), text, fill="white")
    try:
        picture.save(path)
    except ValueError:
        raise MXNetError(f"{path}: Pillow cannot write this kind of picture; use .png or .jpg") from None


_COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf")


def class_name(class_id: int, names) -> str:
    return names[class_id] if class_id < len(names) else f"class {class_id}"
