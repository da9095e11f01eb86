"""Convolutions of volumes as those of images.

Each depth of the results is what an image gives that has, as its channels, those of all depths that it reads.
"""

from ... import memory
from ..tensor import copies

#: Bytes of such images that are held at once.
AT_ONCE = 32 << 20


def parts(data, window, out_depth):
    """``(number of a volume, first depth of its results, images)``, piece by piece.

    The images, not filled yet, have the channels of a depth, each with its taps.
    """
    channels, _, *size = data.shape[1:]
    taps = window[0][0]
    step = max(1, min(out_depth, AT_ONCE // max(1, data[0, :, 0].nbytes * taps)))
    for n in range(len(data)):
        for first in range(0, out_depth, step):
            count = min(step, out_depth - first)
            yield n, first, memory.empty((count, channels, taps, *size), data.dtype)


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
            copies.copy(volume[:, there].transpose(1, 0, 2, 3), images[here, :, tap])


def add_back(images, window, first, volume):
    """Add images to the depths that :func:`stack` read."""
    for tap, here, there in _reads(window, volume.shape[1], first, first + len(images)):
        if here.start < here.stop:
            volume[:, there] += images[here, :, tap].transpose(1, 0, 2, 3)
