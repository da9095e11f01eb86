"""Padded images: zeros around the pixels, and what one tap sees for neighbouring results side by side.

An image's pixels are sorted by their remainders to the strides, each remainder a *plane* of its own. There
the pixels that one tap of the kernel wants for neighbouring results lie side by side, at a distance from the
results' own place that is the same everywhere.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from ...jit import inner, parallel, separate
from ...shares import taken, within
from ..product.panels import take_run
from ..product.tiles import clear_vector, copy_every_second, copy_vector, prologue_of, scale_vector
from ..vector import MACHINE_LANES, flat_of, pick
from .columns import span
from .way import ceil_div


class Layout(NamedTuple):
    """A padded image: ``[channel][remainder of y][plane of columns][image][row][column]``."""

    stride: tuple[int, int]
    pad: tuple[int, int]
    #: Rows of an image in a plane, their length, and the floats from a channel to the next.
    rows: int
    length: int
    channel_step: int
    #: Planes of columns, and how many pixels further each begins than the one before.
    planes: int = 1
    apart: int = 1


def window_reach(out_size, kernel, stride, dilate) -> list[int]:
    """How many rows and columns the taps reach over."""
    sides = zip(out_size, stride, kernel, dilate, strict=True)
    return [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in sides]


def shared_zeros(reach: int, size: int, pad: int) -> int:
    """The zeros at the end of a row that serve as those in front of the next one, too."""
    return min(pad, max(0, reach - pad - size))


def channel_step(places: int, lanes: int) -> int:
    """The floats from a channel of a padded image to the next, each of so many places.

    A channel starts at a cache line, an odd number of lines after the one before: an even number, a power of
    two above all, would bring all channels to the same few places of a cache.
    """
    return (ceil_div(places, lanes) | 1) * lanes


def tap_places(kernel, stride, dilate, length: int, plane: int, joined=False) -> list[int]:
    """How far each tap's pixels lie from the first tap's, in a padded image of rows of ``length``.

    With strides, each remainder of the rows and of the columns is a ``plane`` of its own; where rows are
    ``joined``, each column of taps is.
    """
    columns = range(0, kernel[1] * dilate[1], dilate[1])
    if joined:
        planes, in_rows = kernel[1], [k * plane for k in range(kernel[1])]
    else:
        planes, in_rows = stride[1], [x % stride[1] * plane + x // stride[1] for x in columns]
    return [
        y % stride[0] * planes * plane + y // stride[0] * length + place
        for y in range(0, kernel[0] * dilate[0], dilate[0])
        for place in in_rows
    ]


#: A padded image that takes no more cycles than this to fill, each worker fills for itself, while it
#: computes: one that another has filled comes from the other's cache.
OWN_COPY = 60_000


def fills_itself(workers: int, groups: int, copying: int) -> bool:
    """Whether each worker fills a padded image of its own; ``copying`` is what a whole one takes."""
    return workers == 1 or copying <= OWN_COPY or 1 < workers <= groups


def padding_cost(rows: int, planes: int) -> int:
    """Cycles, about, of filling a padded image of so many rows a plane."""
    return 25 * rows * planes


@inner(makes_arrays=False)
def _clear(padded, first, stop):
    """Zeros from ``first`` to before ``stop``, and nothing beyond them."""
    if stop - first < MACHINE_LANES:
        for i in range(first, stop):
            padded[i] = 0
        return
    for i in range(first, stop - MACHINE_LANES, MACHINE_LANES):
        clear_vector(padded, i)
    clear_vector(padded, stop - MACHINE_LANES)


@inner(makes_arrays=False)
def _fill_rows(flat, source, count, prologue, padded, to, length, rows, end):
    """Rows of ``count`` pixels, each with zeros up to where the next one begins.

    ``source``: the first pixel, and the steps to the next row and to the next pixel. ``prologue`` is a
    :class:`Prologue` of one channel; where that is used, the latter is 1. Nothing from ``end`` on is written.
    What follows the zeros is spoiled, where there is room: the next row is written after it.
    """
    at, at_step, step = source
    vectors = (count + MACHINE_LANES - 1) // MACHINE_LANES * MACHINE_LANES
    reach = vectors * step if step <= 2 else flat.shape[0] + 1
    room = max(vectors, length + MACHINE_LANES - 1)
    done = 0
    if step == 1 and at_step == length and rows > 0:  # of joined rows: as far apart as in the image
        run = (rows - 1) * length + count
        take_run(flat, at, padded, to, run, prologue)
        for row in range(rows - 1):
            for i in range(to + row * length + count, to + (row + 1) * length):
                padded[i] = 0
        done, to = rows, to + rows * length
        _clear(padded, to - length + count, min(to, end))
    while done < rows and at + reach <= flat.shape[0] and to + room <= end:
        for i in range(0, count, MACHINE_LANES):
            if prologue.used:
                scale_vector(flat, at + i, padded, to + i, prologue)
            elif step == 1:
                copy_vector(flat, at + i, padded, to + i)
            else:
                copy_every_second(flat, at + 2 * i, padded, to + i)
        for i in range(to + count, to + length, MACHINE_LANES):
            clear_vector(padded, i)
        done, at, to = done + 1, at + at_step, to + length
    for _ in range(done, rows):  # the last ones, with nothing beyond them
        if prologue.used:
            take_run(flat, at, padded, to, count, prologue)
        else:
            for i in range(count):
                padded[to + i] = flat[at + i * step]
        _clear(padded, to + count, min(to + length, end))
        at, to = at + at_step, to + length


@separate(lambda *kinds: types.none, makes_arrays=False)
def fill_channels(data, layout, prologue, owned, first, last, lines, padded):
    """Copy channels ``[first, last)`` of the images, as the :class:`Prologue` makes them, to a padded image.

    The padded image is for the channels ``owned[0]`` to ``owned[1]``. ``lines``: the first and the end of
    what is wanted of each plane's rows, counted from image to image.
    """
    stride, pad, rows, length, channel_step, planes, apart = layout
    batch, channels, height, width = data.shape
    flat = flat_of(data)
    plane = batch * rows * length
    step = stride[1]
    for number in range(stride[0] * planes):
        ry, q = divmod(number, planes)
        # The columns of this plane that are pixels, and which pixel the first one is.
        skip, end_column = span(q * apart - pad[1], step, width, length)
        x, count = skip * step + q * apart - pad[1], end_column - skip
        # The rows that are in the image.
        top = -(-max(0, pad[0] - ry) // stride[0])
        bottom = (height + pad[0] - ry + stride[0] - 1) // stride[0] if count > 0 else 0
        if lines[0] > 0:  # the zeros in front of a plane, which also end the one before it
            for c in range(first, last):
                begin = (c - owned[0]) * channel_step + number * plane
                _clear(padded, begin, min(begin + top * length + skip, padded.shape[0]))
        for n in range(lines[0] // rows, (lines[1] + rows - 1) // rows):
            begin, stop = max(0, lines[0] - n * rows), min(rows, lines[1] - n * rows)
            first_row = min(max(begin, top), stop)
            end_row = max(first_row, min(stop, bottom))
            y = first_row * stride[0] + ry - pad[0]
            for c in range(first, last):
                begun = (c - owned[0]) * channel_step
                end = begun + channel_step if c + 1 < owned[1] else padded.shape[0]
                to = begun + number * plane + n * rows * length
                into = to + first_row * length + skip
                _clear(padded, to + begin * length, min(into, end))
                at = ((n * channels + c) * height + y) * width + x
                source = at, stride[0] * width, step
                of_channel = prologue_of(prologue, c)
                _fill_rows(flat, source, count, of_channel, padded, into, length, end_row - first_row, end)
                _clear(padded, to + end_row * length, to + stop * length)
    for c in range(first, last):
        # The last row's window may reach beyond the planes, into the next channel's first rows: the zeros
        # above an image serve as those below the one before.
        begun = (c - owned[0]) * channel_step
        after = begun + stride[0] * planes * plane
        end = begun + channel_step if c + 1 < owned[1] else padded.shape[0]
        end = max(end, min(after + pad[0] * length + pad[1], end + lines[0] * length, padded.shape[0]))
        _clear(padded, after, end)
    # The channel that comes next may be another worker's; there are zeros in front of it in any case.
    zeros = -(-pad[0] // stride[0]) * length + min(length, -(-pad[1] // step))
    stop = (last - owned[0]) * channel_step
    _clear(padded, stop, min(stop + zeros, padded.shape[0]))


@parallel(makes_arrays=False)
def fill_padded(share, data, layout, prologue, workers, padded):
    """:func:`fill_channels` of all channels, for a padded image that all workers read."""
    channels = data.shape[1]
    for w in within(share, workers):
        first, last = w * channels // workers, (w + 1) * channels // workers
        lines, owned = (np.int64(0), data.shape[0] * layout.rows), (np.int64(0), channels)
        fill_channels(data, layout, prologue, owned, first, last, lines, padded)


@inner(makes_arrays=False)
def fill_own(sources, g, w, image):
    """A worker's own padded image of a group's channels, for the driver: ``fill``, of its ``Sources``."""
    data, layout, prologue, lines, channels = sources
    if channels > 0:
        owned = g * channels, (g + 1) * channels
        wanted = lines[w, 0], lines[w, 1]
        fill_channels(data, layout, prologue, owned, owned[0], owned[1], wanted, image)


@parallel(makes_arrays=False)
def thin_out(share, data, stride, out):
    """The pixels that a kernel of one pixel sees with these strides."""
    batch, channels, height, _ = out.shape
    for plane in taken(share, batch * channels):
        n, c = divmod(plane, channels)
        for y in range(height):
            pick(stride[1], data[n, c, y * stride[0]], out[n, c, y])
