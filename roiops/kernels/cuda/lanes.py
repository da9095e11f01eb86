"""What the forward kernels share: a thread takes a bin of an ROI and four channels, its lanes.

What is worked out for a bin, its pixels and their weights, is so used four times. Which channels they are
follows from the memory, so that neighbouring threads read neighbouring elements: see :class:`Layout`.
"""

import enum
import functools
from typing import NamedTuple

import numpy as np

from .. import geometry
from .number import computing
from .runtime import QUAD, address_of, device, quad_alignment, quad_at

#: Channels that a thread takes together.
THREAD_LANES = QUAD


class Layout(enum.Enum):
    """How the features lie in memory, and with that, which bins and channels neighbouring threads take."""

    PLANES = "neighbouring threads take neighbouring bins of a channel"
    CHANNELS_LAST = (
        "eight neighbouring threads take neighbouring channels of a bin, the next eight the next bin"
    )
    QUADS = "four take neighbouring channels, and a thread's lanes are neighbours, which are loaded at once"


def layout_of(elements, strides, channels, groups=1) -> Layout:
    """The layout of features whose channels are read ``channels`` at a time by the bins of ``groups``."""
    image, channel, row, column = strides
    if channel >= column:
        return Layout.PLANES
    # A quad starts at a multiple of four channels of some pixel. All of them are aligned if the first is and
    # the steps between pixels are: so they are in dense NHWC memory, but not in every part of it.
    alignment = quad_alignment(elements.dtype)
    aligned = address_of(elements) % alignment == 0 and all(
        step * elements.dtype.itemsize % alignment == 0 for step in (image, row, column)
    )
    whole = channel == 1 and groups == 1 and channels % THREAD_LANES == 0
    return Layout.QUADS if aligned and whole else Layout.CHANNELS_LAST


def quads_of(channels) -> int:
    """How many threads it takes for all channels of a bin."""
    return -(-channels // THREAD_LANES)


class Lanes(NamedTuple):
    """Device functions for features of a dtype and a layout. ``quad`` is one of the ``quads`` of a bin."""

    spot_and_quad: object  # (unit, area, quads) -> which bin and which quad a thread takes
    begin: object  # (strides, n, first, quad, quads, channels, group, groups, base, total): see there
    load: object  # (data, base, place) -> the lanes' values at one pixel
    add: object  # (data, base, place, weight, total): add them to the totals
    add_sample: (
        object  # (data, base, strides, on_y, on_x, total): the same of one sample, as it is on each axis
    )
    store: object  # (total, out, start, quad, quads, channels, area, spot)
    channel: object  # (quad, lane, quads) -> the channel of a lane


@device
def divided(unit, by):
    """The quotient and the remainder of numbers that fit 32 bits, as the units of an ROI do."""
    unit, by = np.uint32(unit), np.uint32(by)
    return np.int64(unit // by), np.int64(unit % by)


@functools.cache
def lanes_for(name, layout: Layout) -> Lanes:
    _, _, read, write = computing(name)
    planes, together = layout is Layout.PLANES, layout is Layout.QUADS
    # Threads that share a bin. Their loads fill sectors of memory; with the next bins, so do their stores.
    share = 4 if together else 8

    @device
    def spot_and_quad(unit, area, quads):
        if planes:
            quad, spot = divided(unit, area)
            return spot, quad
        first = divided(unit, area * share)[0] * share
        width = share if share < quads - first else quads - first
        spot, quad = divided(unit - first * area, width)
        return spot, first + quad

    @device
    def channel(quad, lane, quads):
        return quad * THREAD_LANES + lane if together else quad + lane * quads

    @device
    def begin(strides, n, first, quad, quads, channels, group, groups, base, total):
        """Clear the totals, and write where the lanes' channels ``first + ...`` begin to ``base``."""
        for lane in range(THREAD_LANES):
            c = channel(quad, lane, quads)
            c = first + (c if c < channels else quad)  # what is left over is read but not stored
            c = geometry.channel_of(c, group[0], group[1], groups[0], groups[1])
            base[lane] = n * strides[0] + c * strides[1]
            total[lane] = 0

    @device
    def load_quad(data, base, place):
        a, b, c, d = quad_at(data, base[0] + place)
        return read(a), read(b), read(c), read(d)

    @device
    def load_each(data, base, place):
        a, b = read(data[np.uint64(base[0] + place)]), read(data[np.uint64(base[1] + place)])
        c, d = read(data[np.uint64(base[2] + place)]), read(data[np.uint64(base[3] + place)])
        return a, b, c, d

    load = load_quad if layout is Layout.QUADS else load_each

    @device
    def add(data, base, place, weight, total):
        values = load(data, base, place)
        for lane in range(THREAD_LANES):
            total[lane] += weight * values[lane]

    @device
    def add_sample(data, base, strides, on_y, on_x, total):
        _, y0, wy0, y1, wy1 = on_y
        _, x0, wx0, x1, wx1 = on_x
        for corner in range(4):
            wy = wy1 if corner >= 2 else wy0
            wx = wx1 if corner % 2 else wx0
            if wy != 0 and wx != 0:
                place = (y1 if corner >= 2 else y0) * strides[2] + (x1 if corner % 2 else x0) * strides[3]
                add(data, base, place, wy * wx, total)

    @device
    def store(total, out, start, quad, quads, channels, area, spot):
        """Write the totals to a bin of the channels from ``start`` on."""
        for lane in range(THREAD_LANES):
            c = channel(quad, lane, quads)
            if c < channels:
                out[np.uint64((start + c) * area + spot)] = write(total[lane])

    return Lanes(spot_and_quad, begin, load, add, add_sample, store, channel)
