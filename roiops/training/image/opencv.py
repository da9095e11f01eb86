"""What OpenCV does to pictures of bytes and the rest of this folder has no use for: affine maps, hues."""

import numpy as np

from .reading import sample_weights

#: OpenCV counts places in a picture in these parts of a pixel, after rounding to finer ones.
_PARTS, _FINER = 32, 1024


def warp_affine(pixels, matrix, width: int, height: int, interp: int, fill: float) -> np.ndarray:
    """The picture that an affine map makes: ``matrix`` takes its places to the new ones.

    It is what OpenCV gives to the last bit for the nearest pixel and for linear interpolation. What comes
    from outside is ``fill``.
    """
    a, b, x0, c, d, y0 = np.asarray(matrix, np.float32).astype(np.float64).ravel()
    scale = a * d - b * c
    scale = 1 / scale if scale else 0.0
    a, b, c, d = d * scale, -b * scale, -c * scale, a * scale
    x0, y0 = -a * x0 - b * y0, -c * x0 - d * y0
    x, y = np.arange(width), np.arange(height)[:, None]
    half = _FINER // 2 if interp == 0 else _FINER // _PARTS // 2
    shift = _FINER if interp == 0 else _FINER // _PARTS
    columns, rows = (
        (np.rint((along * y + start) * _FINER) + half + np.rint(across * x * _FINER)) // shift
        for along, start, across in ((b, x0, a), (d, y0, c))
    )
    if interp == 0:
        return _pixels_at(pixels, rows, columns, fill)
    first_row, first_column = rows // _PARTS, columns // _PARTS
    down, beside = (
        sample_weights((place % _PARTS / _PARTS).astype(np.float32), interp) for place in (rows, columns)
    )
    total = np.zeros((height, width, pixels.shape[2]))
    for i, of_row in down.items():
        for j, of_column in beside.items():
            part = _pixels_at(pixels, first_row + i, first_column + j, fill)
            total += (of_row.astype(np.float64) * of_column)[..., None] * part
    return np.clip(np.floor(total + 0.5), 0, 255).astype(np.uint8)


def to_bytes(values) -> np.ndarray:
    """Numbers rounded, halves to even, and cut to 0 to 255."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _pixels_at(pixels, rows, columns, fill):
    height, width = pixels.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    rows, columns = (np.where(inside, place, 0).astype(np.int64) for place in (rows, columns))
    return np.where(inside[..., None], pixels[rows, columns], np.uint8(fill))


def shift_hsl(pixels, hue: int, saturation: int, lightness: int) -> np.ndarray:
    """A picture with numbers added to its hues, of 180, and its saturations and lightness, of 255.

    Channels are red, green and blue.
    """
    colours = pixels.astype(np.float32) * np.float32(1 / 255)
    red, green, blue = np.moveaxis(colours, 2, 0)
    most, least = colours.max(2), colours.min(2)
    light, span, total = (most + least) * np.float32(0.5), most - least, most + least
    grey = span <= np.finfo(np.float32).eps
    safe = np.where(grey, np.float32(1), span)
    strength = np.where(grey, 0, span / np.where(light < 0.5, np.where(grey, 1, total), 2 - total + grey))
    turn = np.float32(60) / safe
    angle = np.where(
        most == red,
        (green - blue) * turn,
        np.where(most == green, (blue - red) * turn + 120, (red - green) * turn + 240),
    )
    angle = np.where(grey, 0, np.where(angle < 0, angle + 360, angle)) * np.float32(0.5)
    shifted = (
        np.clip(np.rint(values) + added, 0, limit)
        for values, added, limit in (
            (angle, hue, 180),
            (light * np.float32(255), lightness, 255),
            (strength * np.float32(255), saturation, 255),
        )
    )
    angle, light, strength = (values.astype(np.float32) for values in shifted)
    light, strength, sector = light / 255, strength / 255, angle * np.float32(6 / 180) % 6
    high = np.where(light <= 0.5, light * (1 + strength), light + strength - light * strength)
    low = 2 * light - high
    number = np.floor(sector).astype(np.int64)
    rest = sector - number
    rising, falling = low + (high - low) * rest, low + (high - low) * (1 - rest)
    # What red, green and blue are in each sixth of the circle.
    channels = (
        (high, falling, low, low, rising, high),
        (rising, high, high, falling, low, low),
        (low, low, rising, high, high, falling),
    )
    made = np.stack([np.choose(number % 6, values) for values in channels], 2)
    return to_bytes(made * 255)
