"""Reading, resizing and cropping images. Files are read by Pillow."""

import contextlib
import io
import random

import numpy as np

from ... import ndarray as nd
from ...errors import FormatError, MXNetError, ParamError, ShapeError
from ...ndarray.files import open_file

__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "resize_short",
    "scale_down",
]

_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS, _BY_SIZE, _AT_RANDOM = 0, 1, 2, 3, 4, 9, 10
#: The constant of OpenCV's cubic interpolation.
_SHARPNESS = np.float32(-0.75)
#: OpenCV passes over a share of a pixel that is not larger than this.
_SLIVER = 1e-3


def imread(filename, flag=1, to_rgb=True) -> nd.NDArray:
    """The image in a file; see :func:`imdecode`."""
    with open_file(filename) as file:
        raw = file.read()
    try:
        return imdecode(raw, flag, to_rgb)
    except FormatError as error:
        raise FormatError(f"{filename}: {error}") from None


def imdecode(buf, flag=1, to_rgb=True) -> nd.NDArray:
    """The image in the bytes of a file, as uint8.

    Parameters
    ----------
    buf : bytes
        What the file holds: JPEG, PNG or whatever else Pillow reads.
    flag : int
        1 for colours, 0 for grey, in one channel.
    to_rgb : bool
        Whether channels are red, green, blue; else blue, green, red.
    """
    raw = buf.asnumpy().tobytes() if isinstance(buf, nd.NDArray) else bytes(buf)
    with opened(io.BytesIO(raw), f"imdecode, {len(raw)} bytes") as image:
        pixels = np.array(in_bytes(image) if flag else in_gray(image))
    if not flag:
        pixels = pixels[:, :, None]
    elif not to_rgb:
        pixels = pixels[:, :, ::-1]
    return nd.array(pixels, dtype=np.uint8)


def pillow():
    """The package that reads, draws and writes pictures, which roiops does without otherwise."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
        import PIL.ImageOps
    except ImportError:
        raise MXNetError(
            "images need Pillow, which is not installed: pip install pillow; "
            "an array in a .npy file does without"
        ) from None
    return PIL


@contextlib.contextmanager
def opened(file, what):
    """A file as a Pillow image. That it cannot be read is an error that names ``what`` was to be read."""
    PIL = pillow()
    try:
        with PIL.Image.open(file) as image:
            yield image
    except PIL.UnidentifiedImageError:
        raise FormatError(f"{what}: not an image that Pillow can read") from None
    except MXNetError as error:
        raise FormatError(f"{what}: {error}") from None
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a damaged image: Pillow raises errors of many kinds, SyntaxError among them
        raise FormatError(f"{what}: a damaged image: {error}") from None


def in_bytes(image, mode: str = "RGB"):
    """A Pillow image in a mode of 8 bits. Of 16 bits the upper 8 are taken, as OpenCV does.

    Pillow by itself would make white of all that is above 255.
    """
    if image.mode.startswith(("I", "F")):
        values = np.asarray(image)
        if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
            values = values >> 8
        elif not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 255):
            raise FormatError(
                f"a picture's values must be from 0 to 255, got {values.min():g} to {values.max():g} "
                f"(Pillow's mode {image.mode})"
            )
        image = pillow().Image.fromarray(values.astype(np.uint8))
    return image.convert(mode)


def in_gray(image) -> np.ndarray:
    """A Pillow image's brightness, rounded as OpenCV does for files of its kind."""
    if image.format == "JPEG":
        image.draft("L", image.size)  # the file has it
    if image.mode.startswith(("1", "L", "I", "F")):
        return np.array(in_bytes(image, "L"))
    red, green, blue = np.moveaxis(np.array(in_bytes(image)).astype(np.int32), 2, 0)
    if image.format == "PNG":  # libpng cuts off what OpenCV rounds
        return (9797 * red + 19234 * green + 3737 * blue >> 15).astype(np.uint8)
    return (4899 * red + 9617 * green + 1868 * blue + 8192 >> 14).astype(np.uint8)


def copyMakeBorder(src, top, bot, left, right, type=0, value=0.0, values=(), out=None) -> nd.NDArray:
    """An image with a border around it.

    Parameters
    ----------
    type : int
        0 for a border of ``values``, one for each channel, or of ``value``; 1 repeats the edge, 2 mirrors the
        image, 3 repeats it, 4 mirrors it but for the edge itself. OpenCV's flag 16 may be added: an image is
        never taken for a part of a larger one.
    out : NDArray, optional
        Where the result goes.
    """
    _check_image("copyMakeBorder", src)
    type &= ~_ISOLATED
    if type not in range(len(_BORDERS)):
        raise ParamError(f"copyMakeBorder: type must be 0 to {len(_BORDERS) - 1}, got {type}")
    if min(top, bot, left, right) < 0:
        raise ParamError(f"copyMakeBorder: a border must be 0 or more, got {(top, bot, left, right)}")
    widths = [(top, bot), (left, right), (0, 0)]
    pixels = np.pad(src.asnumpy(), widths, _BORDERS[type])
    if type == 0:
        outside = np.ones(pixels.shape[:2], bool)
        outside[top : top + src.shape[0], left : left + src.shape[1]] = False
        fill, channels = values or value, src.shape[2]
        colour = fill if np.ndim(fill) else (fill, fill, fill, 0)  # as OpenCV makes one of a number
        if len(colour) < channels:
            raise ParamError(f"copyMakeBorder: values must be one for each channel, {channels}, got {fill}")
        fill = np.asarray(colour[:channels], np.float64)
        if pixels.dtype.kind in "iu":
            ends = np.iinfo(pixels.dtype)
            fill = np.clip(np.rint(fill), ends.min, ends.max)
        pixels[outside] = fill
    return _result(nd.array(pixels, dtype=pixels.dtype), out)


#: The flag that OpenCV adds to a kind of border.
_ISOLATED = 16
#: What NumPy calls OpenCV's kinds of borders, by their numbers.
_BORDERS = "constant", "edge", "symmetric", "wrap", "reflect"


def _result(image, out) -> nd.NDArray:
    if out is None:
        return image
    out[:] = image
    return out


def _get_interp_method(interp, sizes=()) -> int:
    """How to interpolate, where it depends on the sizes (height and width before and after) or on chance.

    GluonCV imports it by this name.
    """
    if interp == _BY_SIZE:
        height, width, h, w = sizes or (1, 1, 2, 2)
        larger, smaller = h > height and w > width, h < height and w < width
        return _CUBIC if larger else _AREA if smaller else _LINEAR
    if interp == _AT_RANDOM:
        return random.randint(_NEAREST, _LANCZOS)
    if interp not in (_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS):
        raise ParamError(f"imresize: interp must be 0, 1, 2, 3, 4, 9 or 10, got {interp}")
    return interp


def imresize(src, w, h, interp=1, out=None) -> nd.NDArray:
    """An image of height ``h`` and width ``w``.

    Parameters
    ----------
    interp : int
        0 takes the nearest pixel, 1 is linear, 2 cubic, 3 averages areas, 4 is Lanczos' over 8 pixels; 9 is 3
        to shrink, 2 to enlarge and 1 otherwise; 10 draws one of 0 to 4.
    out : NDArray, optional
        Where the result goes.
    """
    _check_image("imresize", src)
    if w < 1 or h < 1:
        raise ParamError(f"imresize: w and h must be 1 or more, got {w} and {h}")
    height, width = src.shape[:2]
    interp = _get_interp_method(interp, (height, width, h, w))
    pixels = src.asnumpy()
    if interp != _NEAREST and pixels.dtype == np.uint8:
        return _result(nd.array(_resized_bytes(pixels, w, h, interp), dtype=np.uint8), out)
    shrinks = h <= height and w <= width
    rows, columns = _weights(height, h, interp, shrinks), _weights(width, w, interp, shrinks)
    resized = np.einsum("yh,hwc->ywc", rows, pixels.astype(np.float64))
    resized = np.einsum("xw,ywc->yxc", columns, resized)
    if pixels.dtype.kind in "iu":
        bounds = np.iinfo(pixels.dtype)
        resized = np.clip(np.floor(resized + 0.5), bounds.min, bounds.max)
    return _result(nd.array(resized, dtype=pixels.dtype), out)


def _resized_bytes(pixels, w: int, h: int, interp: int) -> np.ndarray:
    """Bytes resized to the last bit as OpenCV does it: training and what scripts compare follow from it."""
    height, width = pixels.shape[:2]
    if interp == _AREA and w <= width and h <= height:
        return _area_bytes(pixels, w, h)
    columns, rows = _fixed_point(width, w, interp), _fixed_point(height, h, interp)
    # 32 bits are enough for two pixels of an axis; of more, the sums of the second axis may need 64.
    pixels = pixels.astype(np.int32)
    wide = sum(pixels.take(place, axis=1) * weight[:, None] for place, weight in columns)
    if interp in (_LINEAR, _AREA):
        wide >>= 4
        resized = (sum(wide[place] * weight[:, None, None] >> 16 for place, weight in rows) + 2) >> 2
    else:
        parts = [(wide[place], weight[:, None, None].astype(np.int64)) for place, weight in rows]
        resized = (sum(part * weight for part, weight in parts) + 2**21) >> 22
    if interp == _CUBIC:
        # OpenCV adds up in float32, eight numbers of a row at a time, and in integers what is left over.
        rounded = np.zeros(resized.shape, np.float32)
        for part, weight in parts:
            rounded += part.astype(np.float32) * (weight.astype(np.float32) * np.float32(2**-22))
        count = resized.shape[1] * resized.shape[2] // 8 * 8
        resized.reshape(h, -1)[:, :count] = np.rint(rounded).reshape(h, -1)[:, :count]
    return np.clip(resized, 0, 255)


def _fixed_point(old: int, new: int, interp: int) -> list:
    """Pairs of places and weights along one axis: what is added up for each new pixel, in 2048ths."""
    first, share = _neighbours(np.arange(new), old, new, interp)
    return [
        (np.clip(first + offset, 0, old - 1), np.rint(weight.astype(np.float32) * 2048).astype(np.int32))
        for offset, weight in share.items()
    ]


def _area_bytes(pixels, w: int, h: int) -> np.ndarray:
    """Bytes made fewer by averaging, in float32 and in OpenCV's order."""
    height, width, channels = pixels.shape
    if height % h == 0 and width % w == 0:
        total = pixels.reshape(h, height // h, w, width // w, channels).sum((1, 3), dtype=np.int64)
        if (height, width) == (2 * h, 2 * w) and channels != 2:
            return (total + 2) >> 2
        area = (height // h) * (width // w)
        return np.rint(total.astype(np.float32) * (np.float32(1) / np.float32(area)))
    pixels = pixels.astype(np.float32)
    wide = sum(pixels[:, place] * weight[:, None] for place, weight in _covered(width, w))
    return np.rint(sum(wide[place] * weight[:, None, None] for place, weight in _covered(height, h)))


def _covered(old: int, new: int):
    """Pairs of places and weights along one axis: the old pixels below each new one, from left to right."""
    scale = 1 / (new / old)
    starts = np.arange(new) * scale
    ends, widths = starts + scale, np.minimum(scale, old - starts)
    last = np.minimum(np.floor(ends).astype(int), old - 1)
    first = np.minimum(np.ceil(starts).astype(int), last)
    before, after = first - starts, ends - last
    yield np.maximum(first - 1, 0), np.where(before > _SLIVER, before / widths, 0).astype(np.float32)
    for offset in range((last - first).max()):
        inside = first + offset < last
        yield np.minimum(first + offset, old - 1), np.where(inside, 1 / widths, 0).astype(np.float32)
    share = np.minimum(np.minimum(after, 1), widths) / widths
    yield last, np.where(after > _SLIVER, share, 0).astype(np.float32)


def _weights(old: int, new: int, interp: int, shrinks: bool) -> np.ndarray:
    """What each of ``new`` pixels takes from each of ``old`` ones, along one axis; as OpenCV does it."""
    table, scale = np.zeros((new, old)), old / new
    each = np.arange(new)
    if interp == _NEAREST:
        table[each, np.minimum((each * (1 / (new / old))).astype(int), old - 1)] = 1
    elif interp == _AREA and shrinks:
        starts, ends = each[:, None] * scale, (each[:, None] + 1) * scale
        pixels = np.arange(old)
        table = np.clip(np.minimum(ends, pixels + 1) - np.maximum(starts, pixels), 0, None) / scale
    else:
        first, share = _neighbours(each, old, new, interp)
        for offset, weight in share.items():
            np.add.at(table, (each, np.clip(first + offset, 0, old - 1)), weight)
    return table


def _neighbours(each, old, new, interp):
    """For each new pixel an old one, and what is taken of that and of those at other offsets from it."""
    scale = 1 / (new / old)  # and float32 below: rounded as OpenCV does
    if interp == _AREA:  # to enlarge: a pixel is constant, but for where a new one covers the next one, too
        first = np.floor(each * scale).astype(int)
        beyond = ((each + 1) - (first + 1) * (new / old)).astype(np.float32)
        beyond = np.where(beyond <= 0, 0, beyond - np.floor(beyond))
        return first, {0: 1 - beyond, 1: beyond}
    centre = ((each + 0.5) * scale - 0.5).astype(np.float32)
    first = np.floor(centre).astype(int)
    return first, sample_weights(centre - first.astype(np.float32), interp)


def sample_weights(beyond, interp: int) -> dict:
    """What is taken of the pixels around a place ``beyond`` one of them, by their offsets from that one."""
    if interp == _LANCZOS:
        return dict(zip(range(-3, 5), _lanczos(beyond), strict=True))
    if interp == _CUBIC:
        return dict(zip((-1, 0, 1, 2), _cubic(beyond), strict=True))
    return {0: 1 - beyond, 1: beyond}


def _cubic(beyond):
    """The weights of four pixels, the second of them ``beyond`` to the left; rounded as OpenCV does it."""
    a, far, near = _SHARPNESS, beyond + 1, 1 - beyond
    weights = [
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
        ((a + 2) * beyond - (a + 3)) * beyond * beyond + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
    ]
    return [*weights, 1 - weights[0] - weights[1] - weights[2]]


def _lanczos(beyond):
    """The weights of eight pixels, the fourth of them ``beyond`` to the left; rounded as OpenCV does it."""
    number = np.arange(8).reshape(-1, *(1,) * beyond.ndim)
    from_first = (beyond + 3).astype(np.float64) * np.pi / 4
    from_each = (beyond + 3 - number.astype(np.float32)).astype(np.float64) * np.pi / 4
    on_pixel = beyond < np.finfo(np.float32).eps
    # The window's other sine is the same for all eight but for its sign.
    sines = (-1.0) ** number * np.sin(number * np.pi / 4 - from_first)
    weights = sines / np.where(on_pixel, 1, from_each) ** 2
    weights = np.where(on_pixel, number == 3, weights).astype(np.float32)
    return weights * (1 / sum(weights))


def scale_down(src_size, size) -> tuple[int, int]:
    """``size`` as (width, height), made smaller in proportion until it fits into ``src_size``."""
    width, height = size
    most_wide, most_high = src_size
    if most_high < height:
        width, height = width * most_high / height, most_high
    if most_wide < width:
        width, height = most_wide, height * most_wide / width
    return int(width), int(height)


def resize_short(src, size, interp=2) -> nd.NDArray:
    """The image with its shorter side of ``size``, the longer one in proportion."""
    _check_image("resize_short", src)
    height, width = src.shape[:2]
    if height > width:
        return imresize(src, size, size * height // width, interp)
    return imresize(src, size * width // height, size, interp)


def fixed_crop(src, x0, y0, w, h, size=None, interp=2) -> nd.NDArray:
    """The part of an image at ``x0``, ``y0``, resized to ``size`` as (width, height) where that is given."""
    _check_image("fixed_crop", src)
    part = src[y0 : y0 + h, x0 : x0 + w]
    if not all(part.shape):
        raise ShapeError(f"fixed_crop: nothing of {w} x {h} at ({x0}, {y0}) lies on an image {src.shape}")
    return part if size is None or (w, h) == tuple(size) else imresize(part, *size, interp=interp)


def center_crop(src, size, interp=2):
    """The middle of an image as large as ``size``, as (width, height), and where it was.

    Where the image is too small for it, a smaller part of the same proportions is resized.
    """
    _check_image("center_crop", src)
    height, width = src.shape[:2]
    w, h = scale_down((width, height), size)
    x0, y0 = (width - w) // 2, (height - h) // 2
    return fixed_crop(src, x0, y0, w, h, size, interp), (x0, y0, w, h)


def color_normalize(src, mean, std=None) -> nd.NDArray:
    """``(src - mean) / std``, written into ``src``."""
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def _check_image(function: str, src) -> None:
    if not isinstance(src, nd.NDArray) or len(src.shape) != 3 or not all(src.shape):
        what = f"shape {src.shape}" if isinstance(src, nd.NDArray) else type(src).__name__
        raise ShapeError(f"{function}: src must be an NDArray of height, width and channels, got {what}")
