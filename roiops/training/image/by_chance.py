"""What ``nd.image`` has beside its operators, for arrays: pictures resized, and changed by chance.

Random numbers come from the generator that ``mx.random.seed`` seeds, not from Python's or NumPy's.
"""

import functools

import numpy as np

from ... import ndarray as nd
from ...errors import ParamError
from ...random import generator
from .augment import IMAGENET_LIGHT, turn_hues, with_contrast, with_saturation
from .reading import imresize, resize_short

_CHANGES = {
    "brightness": nd.multiply,
    "contrast": with_contrast,
    "saturation": with_saturation,  # MXNet takes a grey that is 0.114 of the blue
    "hue": turn_hues,
}


def resize(data, size=(), keep_ratio=False, interp=1, out=None) -> nd.NDArray:
    """A picture, or each of a batch, of another size by :func:`roiops.image.imresize`.

    ``size`` is (width, height), or one number for both sides; with ``keep_ratio`` for the shorter one.
    """
    sides = np.atleast_1d(size).tolist()
    if len(sides) not in (1, 2) or min(sides) < 1:
        raise ParamError(f"image.resize: size must be one or two numbers, 1 or more, got {size!r}")
    if data.ndim == 4:
        made = nd.stack(*(resize(each, size, keep_ratio, interp) for each in data))
    elif keep_ratio and len(sides) == 1:
        made = resize_short(data, sides[0], interp)
    else:
        made = imresize(data, sides[0], sides[-1], interp)
    return made if out is None else made.copyto(out)


def _add(change, name=None):
    """Put ``change`` of a picture into ``nd.image``: in float32, on a copy; bytes stay within 0 and 255."""

    @functools.wraps(change)
    def function(data, *args, out=None, **named):
        if data.ndim != 3:
            raise ParamError(f"image.{name}: data must be (height, width, channels), got {data.shape}")
        made = change(data.astype("float32"), *args, **named)
        made = (nd.clip(made, 0, 255) if data.dtype == np.uint8 else made).astype(data.dtype)
        return made if out is None else made.copyto(out)

    name = function.__name__ = name or change.__name__
    setattr(nd.image, name, function)
    return function


def _add_random(name, change):
    def changed(data, min_factor, max_factor):
        if min_factor < 0:
            raise ParamError(f"image.random_{name}: min_factor must be 0 or more, got {min_factor}")
        return change(data, generator().uniform(min_factor, max_factor))

    changed.__doc__ = f"A picture whose {name} is changed by a factor between the two."
    _add(changed, f"random_{name}")


def _add_flip(flip):
    def flipped(data, out=None):
        return (flip if generator().random() < 0.5 else nd.identity)(data, out=out)

    flipped.__name__ = f"random_{flip.__name__}"
    flipped.__doc__ = f"Every second picture as ``{flip.__name__}`` makes it."
    setattr(nd.image, flipped.__name__, flipped)


@_add
def random_color_jitter(data, brightness, contrast, saturation, hue):
    """Brightness, contrast, saturation and hue changed by up to these shares, in random order."""
    shares = dict(zip(_CHANGES, (brightness, contrast, saturation, hue), strict=True))
    for name in generator().permutation(list(shares)):
        if shares[name] > 0:
            data = _CHANGES[name](data, 1 + generator().uniform(-shares[name], shares[name]))
    return data


@_add
def adjust_lighting(data, alpha):
    """Light added along the three axes on which ImageNet's colours vary."""
    if data.shape[2] == 1:
        return data
    sizes, axes = IMAGENET_LIGHT
    return data + nd.array(np.dot(axes * np.asarray(alpha), sizes), data.context)


@_add
def random_lighting(data, alpha_std=0.05):
    """The same by three normal numbers of standard deviation ``alpha_std``."""
    return adjust_lighting(data, generator().normal(0, alpha_std, 3))


# Arrays know nothing of reading and changing pictures: this is put there from here.
nd.image.resize = resize
for _name, _change in _CHANGES.items():
    _add_random(_name, _change)
for _flip in (nd.image.flip_left_right, nd.image.flip_top_bottom):
    _add_flip(_flip)
