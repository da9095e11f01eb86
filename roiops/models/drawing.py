"""Pictures of what a network said: boxes with names and scores, masks, a colour for each pixel's class."""

import colorsys

import numpy as np

from ..errors import MXNetError
from ..training.image.reading import pillow
from .labels import class_name
from .outputs import Reading
from .pictures import Placement

__all__ = ["colours", "draw"]

#: Pictures with a long side below this are enlarged before anything is drawn.
_LEAST_SIDE = 512
#: How much of a mask's or a segmentation's colour is laid over the picture.
_OVERLAY = 0.5
#: Classes of a segmentation below this part of the picture are left out of its legend.
_LEAST_PART = 0.002


def colours(class_ids) -> dict[int, tuple[int, int, int]]:
    """A colour for each of these classes, no two alike.

    A class asks for the hue that its number gives, so that it looks the same in each picture; where another
    class has that already, it gets the free hue that is farthest from those in use.
    """
    wanted = list(dict.fromkeys(class_ids))
    places = max(12, len(wanted))
    taken: dict[int, int] = {}
    for class_id in wanted:
        # The golden ratio spreads neighbouring numbers over the circle of hues.
        place = round((class_id * 0.6180339887) % 1 * places) % places
        free = [p for p in range(places) if p not in taken.values()]
        used = list(taken.values())
        if place not in free:
            place = max(free, key=lambda p: min(_around(p, other, places) for other in used))
        taken[class_id] = place
    return {
        class_id: tuple(round(255 * v) for v in colorsys.hsv_to_rgb(place / places, 0.85, 0.85))
        for class_id, place in taken.items()
    }


def _around(one: int, other: int, places: int) -> int:
    apart = abs(one - other)
    return min(apart, places - apart)


def draw(image, reading: Reading, place: Placement | None = None):
    """A copy of ``image``, a Pillow image, with what was found in it.

    A small one is enlarged so that labels can be read. ``place`` is where the picture lies in the network's
    input, for a segmentation.
    """
    PIL = pillow()
    factor = max(1, -(-_LEAST_SIDE // max(image.size)))
    size = (image.width * factor, image.height * factor)
    picture = image.resize(size, PIL.Image.Resampling.BICUBIC) if factor > 1 else image.copy()
    if reading.segmentation is not None:
        return _segmentation(picture, reading, place, factor)
    found = reading.detections or []
    chosen = colours(each.class_id for each in found)
    for each in reversed(found):
        if each.mask is not None:
            _paint(picture, _mask(each, picture.size, factor), chosen[each.class_id])
    canvas = PIL.ImageDraw.Draw(picture)
    thickness, font = max(2, round(min(picture.size) / 250)), _font(picture.size)
    taken: list[tuple] = []
    for each in reversed(found):  # the best on top
        canvas.rectangle(
            _corners(each.box, picture.size, factor), outline=chosen[each.class_id], width=thickness
        )
    for each in found:
        text = f"{class_name(each.class_id, reading.names)} {each.score:.2f}"
        corners = _corners(each.box, picture.size, factor)
        _label(canvas, picture.size, text, corners, chosen[each.class_id], font, taken)
    return picture


def save(picture, path) -> None:
    """Write a picture; an ending that Pillow does not know is an error."""
    try:
        picture.save(path)
    except ValueError:
        raise MXNetError(f"{path}: Pillow cannot write this kind of picture; use .png or .jpg") from None


def _font(size):
    return pillow().ImageFont.load_default(max(13, min(size) // 36))


def _corners(box, size, factor) -> tuple[float, float, float, float]:
    """A box in pixels of the drawing. Detectors may put one beyond the border or, untrained, upside down."""
    x1, y1, x2, y2 = (value * factor for value in box)
    x1, x2 = sorted(min(max(x, 0), size[0] - 1) for x in (x1, x2))
    y1, y2 = sorted(min(max(y, 0), size[1] - 1) for y in (y1, y2))
    return x1, y1, x2, y2


def _label(canvas, size, text, corners, colour, font, taken) -> None:
    """A name above a box, below it or inside it: where it lies on no other name, if there is such a place."""
    width, height = _plate(font, text)
    x1, y1, _, y2 = corners
    x = min(x1, max(0, size[0] - width))
    spots = [y1 - height, y1, y2 - height, y2, y1 + height]
    spots = [y for y in spots if 0 <= y <= size[1] - height] or [min(max(y1, 0), max(0, size[1] - height))]
    free = (y for y in spots if not any(_overlap((x, y, x + width, y + height), other) for other in taken))
    y = next(free, spots[0])
    taken.append((x, y, x + width, y + height))
    _write(canvas, (x, y), text, colour, font)


def _plate(font, text) -> tuple[float, int]:
    """Width and height of a name on its colour; all names of a picture are equally high."""
    return font.getlength(text) + 6, sum(font.getmetrics()) + 4


def _write(canvas, corner, text, colour, font) -> None:
    (x, y), (width, height) = corner, _plate(font, text)
    canvas.rectangle((x, y, x + width - 1, y + height - 1), fill=colour)
    bright = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] > 140
    canvas.text((x + 3, y + 2), text, fill="black" if bright else "white", font=font)


def _overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _mask(each, size, factor) -> np.ndarray:
    """Where in the drawing the object is."""
    PIL = pillow()
    x1, y1, x2, y2 = (round(value) for value in _corners(each.box, size, factor))
    covered = np.zeros((size[1], size[0]), bool)
    sure = PIL.Image.fromarray(np.asarray(each.mask, np.float32))
    inside = sure.resize((max(1, x2 - x1), max(1, y2 - y1)), PIL.Image.Resampling.BILINEAR)
    covered[y1 : y1 + inside.height, x1 : x1 + inside.width] = np.asarray(inside) > 0.5
    return covered


def _paint(picture, where, colour) -> None:
    pixels = np.asarray(picture).astype(np.float32)
    pixels[where] += (np.float32(colour) - pixels[where]) * _OVERLAY
    picture.paste(pillow().Image.fromarray(pixels.astype(np.uint8)))


def _segmentation(picture, reading, place, factor):
    """The picture under the colours of its pixels' classes, with a legend."""
    PIL = pillow()
    shown = [(number, part) for number, part in reading.parts() if part >= _LEAST_PART]
    chosen = colours(number for number, _ in shown)
    background = 0 if reading.names[:1] == ["background"] else None
    labels = _labels_of(reading.segmentation, place, picture.size, factor)
    for number, _ in shown:
        if number != background:
            _paint(picture, labels == number, chosen[number])
    canvas, font, y = PIL.ImageDraw.Draw(picture), _font(picture.size), 0
    for number, part in shown:
        if number == background:
            continue
        text = f"{class_name(number, reading.names)} {100 * part:.0f} %"
        _write(canvas, (0, y), text, chosen[number], font)
        y += _plate(font, text)[1]
    return picture


def _labels_of(labels, place, size, factor) -> np.ndarray:
    """The class of each pixel of the drawing; -1 for what the network did not see."""
    place = place or Placement(*labels.shape)
    y = np.floor((np.arange(size[1]) + 0.5) / factor * place.scale[0] - place.offset[0]).astype(int)
    x = np.floor((np.arange(size[0]) + 0.5) / factor * place.scale[1] - place.offset[1]).astype(int)
    inside_y, inside_x = np.clip(y, 0, place.height - 1), np.clip(x, 0, place.width - 1)
    found = labels[inside_y[:, None], inside_x[None, :]]
    if any(place.offset):  # cropped
        found[y != inside_y] = -1
        found[:, x != inside_x] = -1
    return found
