"""Images as the network takes them."""

import numpy as np
from PIL import Image

import roiops as mx

from ..config import Data

__all__ = ["open_image", "prepare", "stack"]


def open_image(path) -> Image.Image:
    """A picture of any kind as RGB; transparency is laid over white."""
    with Image.open(path) as image:
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            image = image.convert("RGBA")
            ground = Image.new("RGBA", image.size, "white")
            return Image.alpha_composite(ground, image).convert("RGB")
    return Image.fromarray(mx.image.imread(path).asnumpy())


def prepare(image: Image.Image, data: Data):
    """``(array (3, height, width), factor)``: resized to the configured sides and normalised."""
    short, long = min(image.size), max(image.size)
    factor = min(data.short_side / short, data.long_side / long)
    size = tuple(max(1, round(side * factor)) for side in image.size)
    if size != image.size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    pixels = np.asarray(image, np.float32)
    pixels = (pixels - np.array(data.mean, np.float32)) / np.float32(data.scale)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)), factor


def stack(images, stride: int):
    """One array of all images, padded with the mean to a common size that ``stride`` divides."""
    height, width = (-(-max(each.shape[axis] for each in images) // stride) * stride for axis in (1, 2))
    batch = np.zeros((len(images), 3, height, width), np.float32)
    for slot, each in zip(batch, images, strict=True):
        slot[:, : each.shape[1], : each.shape[2]] = each
    return batch
