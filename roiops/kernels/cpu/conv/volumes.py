"""Convolutions of volumes as those of images.

Each depth of the results is what an image gives that has, as its channels, those of all depths that it reads.
"""

import numpy as np

from ... import memory
from ..tensor import copies

#: Bytes of such images that are held at once.
AT_ONCE = 32 << 20


def parts(data, window, out_depth):
    """``(number of a volume, first depth of its results, last)``, piece by piece; images hold no more."""
    kernel = window[0]
    depth_bytes = data[0, :, 0].nbytes * kernel[0]
    step = max(1, min(out_depth, AT_ONCE // max(1, depth_bytes)))
    for n in range(len(data)):
        for first in range(0, out_depth, step):
            yield n, first, min(first + step, out_depth)


def images_for(data, window, first, stop):
    """Room for the images of some depths: a depth's channels, each with its taps."""
    _, channels, _, height, width = data.shape
    return memory.empty((stop - first, channels, window[0][0], height, width), data.dtype)


def _reads(window, depth, first, stop):
    """For each tap, the depths of the results from ``first`` to ``stop`` that see a depth, and which ones."""
    kernel, stride, dilate, pad = (values[0] for values in window)
    for tap in range(kernel):
        place = tap * dilate - pad
        begin = max(first, -(place // stride))
        end = max(begin, min(stop, -((place - depth) // stride)))
        seen = slice(begin * stride + place, end * stride + place, stride)
        yield tap, slice(begin - first, end - first), seen


def stack(volume, window, first, images):
    """Fill the images of the depths from ``first`` on."""
    for tap, here, there in _reads(window, volume.shape[1], first, first + len(images)):
        images[: here.start, :, tap] = 0
        images[here.stop :, :, tap] = 0
        if here.start < here.stop:
            copy(volume[:, there].transpose(1, 0, 2, 3), images[here, :, tap])


def add_back(images, window, first, volume):
    """Add images to the depths that :func:`stack` read."""
    for tap, here, there in _reads(window, volume.shape[1], first, first + len(images)):
        if here.start < here.stop:
            volume[:, there] += images[here, :, tap].transpose(1, 0, 2, 3)


def copy(source, target):
    """``target[...] = source``"""
    call = copies.bind(source, target)
    if call is None:
        np.copyto(target, source)
    else:
        call()
