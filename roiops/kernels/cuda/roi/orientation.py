"""Orientation channels, turned by the angle of each box: a thread takes all orientations of a bin.

``tests/reference.py`` has the same in plain loops: ``orientations``.
"""

import functools

from ... import geometry
from ..number import computing, kind_of
from ..runtime import contiguous, copy, cuda, device_of, empty, flat_output, kernel
from . import tiles
from .average import rois_of


@functools.cache
def turn_kernel(name, back):
    real, _, read, write = computing(name)

    @kernel()
    def orientations(source, rois, groups, count, area, target):
        for unit in range(cuda.grid(1), rois.shape[0] * groups * area, cuda.gridsize(1)):
            r, rest = unit // (groups * area), unit % (groups * area)
            first = (r * groups + rest // area) * count * area + rest % area
            ignored = geometry.image_of(rois, r, 2**62) < 0  # whether the image is there does not matter
            whole, far = 0, real(0)
            if not ignored:
                whole, far = geometry.orientation(rois[r, 5], count)
            for o in range(count):
                one, two = geometry.turned_channel(o, whole, count, back)
                value = (real(1) - far) * read(source[first + one * area])
                value += far * read(source[first + two * area])
                target[first + o * area] = write(value)

    return orientations


def turn(rois, count, back, bins):
    """Replace each orientation of a box by what lies between two of them, or transpose that (``back``)."""
    if bins.size == 0:
        return
    name = kind_of(bins.dtype)
    area, groups = bins.shape[2] * bins.shape[3], bins.shape[1] // count
    source = empty(bins.shape, bins.dtype, device_of(bins))
    copy(bins, source)
    with flat_output(bins) as target:
        inputs = contiguous(source).reshape(-1), rois_of(rois, name), groups, count, area
        tiles.launch_each(turn_kernel(name, bool(back)), bins.shape[0] * groups * area, *inputs, target)
