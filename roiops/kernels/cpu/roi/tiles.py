"""Between feature maps, stored channel by channel, and rows of ``FIXED_LANES`` channels.

Everything is flat here: an array is its elements (:func:`vector.pointer_to`) and the index to start from.
"""

from typing import NamedTuple

import numpy as np

from ... import geometry
from ...geometry import larger, smaller
from ...jit import inner
from ..vector import (
    BLOCK,
    FIXED_LANES,
    load,
    load_some,
    multiply_add,
    prefetch_far_ahead,
    splat,
    store,
    store_some,
    transpose_block,
)

# Bytes of a tile, which each thread has one of: a larger map is kept in part. With half as many, a map of
# 200 x 272 takes some 4 % longer.
_TILE_BYTES = 1 << 19
# Bytes of a tile whose rows are not read from top to bottom.
_WHOLE_TILE_BYTES = 1 << 24
# Bytes of a band of sums, as a thread adds them up: where each band looks at all that a ROI reads, and where
# it looks only at its own rows. This is memory beside the gradients, when all else is there as well.
_BAND_BYTES, _BAND_OF_ROWS_BYTES = 1 << 19, 1 << 18

# Pixels that are not worth another block.
_FEW = 3


class Item(NamedTuple):
    """A piece of work: one image, one group of bins, one block of channels."""

    image: int
    first_row: int  # bins
    stop_row: int
    first_column: int
    stop_column: int
    out_channel: int  # the first of the block, in the output
    in_channel: int  # and in the input
    step: int  # from one channel of the block to the next, in the input
    channels: int
    pooled_h: int  # bins of a whole ROI
    pooled_w: int
    bin_step: int  # from a bin to the next, in the output
    bins_step: int  # and from a channel to the next


class Planes(NamedTuple):
    """A block of at most ``FIXED_LANES`` channels of an image."""

    values: np.ndarray
    at: int  # index of the first pixel of the first channel
    step: int  # from a pixel to the same one of the next channel
    channels: int
    height: int
    width: int
    pixel_step: int  # from a pixel to the next


class Tile(NamedTuple):
    """Rows of a block of channels with the channels last; row ``y`` is kept in slot ``y % slots``."""

    values: np.ndarray
    marks: np.ndarray
    slots: int
    width: int


@inner
def channel_blocks(channels, block=FIXED_LANES):
    return (channels + block - 1) // block


@inner
def items_of(shapes, block=FIXED_LANES):
    """How many items there are."""
    return shapes.images * channel_blocks(shapes.out_channels, block) * shapes.groups_h * shapes.groups_w


@inner
def item_of(number, shapes, block=FIXED_LANES):
    """Item ``number`` of all: the groups run fastest, because their bins share cache lines of the output."""
    groups_h, groups_w = shapes.groups_h, shapes.groups_w
    group_x, rest = number % groups_w, number // groups_w
    group_y, rest = rest % groups_h, rest // groups_h
    blocks = channel_blocks(shapes.out_channels, block)
    first = rest % blocks * block
    first_row, stop_row = geometry.bins_of(group_y, shapes.pooled_h, groups_h)
    first_column, stop_column = geometry.bins_of(group_x, shapes.pooled_w, groups_w)
    return Item(
        rest // blocks,
        first_row,
        stop_row,
        first_column,
        stop_column,
        first,
        geometry.channel_of(first, group_y, group_x, groups_h, groups_w),
        groups_h * groups_w,
        smaller(block, shapes.out_channels - first),
        shapes.pooled_h,
        shapes.pooled_w,
        shapes.bin_step,
        shapes.bins_step,
    )


@inner
def planes_of(item, shapes, values):
    """The channels that an item reads, or writes, of the pixels ``values`` of all maps."""
    at = item.image * shapes.in_channels * shapes.height * shapes.width
    at += item.in_channel * shapes.plane_step
    step = item.step * shapes.plane_step
    return Planes(values, at, step, item.channels, shapes.height, shapes.width, shapes.pixel_step)


@inner
def bins_at(item, shapes, r):
    """Where the bins of an item's first channel of ROI ``r`` begin, in an output."""
    return r * shapes.out_channels * item.pooled_h * item.pooled_w + item.out_channel * shapes.bins_step


@inner
def is_one_run(item):
    """Whether the bins of an item are one run of memory, not a part of each channel's."""
    bins = (item.stop_row - item.first_row) * (item.stop_column - item.first_column)
    return item.bin_step == 1 and bins == item.pooled_h * item.pooled_w


@inner
def has_bins(item):
    """Whether the group of an item has any."""
    return item.first_row < item.stop_row and item.first_column < item.stop_column


@inner
def places_of(item, image_at):
    """The places ``[first, stop)`` of an item's ROIs in their order: none for a group without bins."""
    first, stop = image_at[item.image], image_at[item.image + 1]
    return first, (stop if has_bins(item) else first)


@inner
def to_lanes(source, at, steps, channels, count, target, to):
    """``target[to + p * FIXED_LANES + c] = source[at + p * steps[0] + c * steps[1]]`` for p < ``count``.

    One of the steps is 1. Of fewer than ``FIXED_LANES`` ``channels``, the remaining lanes get any of these
    numbers, or 0.
    """
    place_step, step = steps
    if place_step != 1:
        for p in range(count):
            here = at + p * place_step
            lanes = load(source, here) if channels == FIXED_LANES else load_some(source, here, channels)
            store(target, to + p * FIXED_LANES, lanes)
        return
    p = 0
    if count < BLOCK or count % BLOCK <= _FEW:  # these are copied one by one, the rest in blocks
        p = count if count < BLOCK else count % BLOCK
        for c in range(FIXED_LANES):
            row = at + (c if c < channels else channels - 1) * step
            for k in range(p):
                target[to + k * FIXED_LANES + c] = source[row + k]
    while p < count:
        transpose_block(source, at + p, step, channels, target, to + p * FIXED_LANES, FIXED_LANES)
        # The last block may do some pixels again.
        p = smaller(p + BLOCK, count - BLOCK) if p + BLOCK < count else count


@inner
def from_lanes(source, at, count, target, to, steps, channels):
    """The inverse of :func:`to_lanes`."""
    place_step, step = steps
    if place_step != 1:
        for p in range(count):
            lanes, there = load(source, at + p * FIXED_LANES), to + p * place_step
            if channels == FIXED_LANES:
                store(target, there, lanes)
            else:
                store_some(target, there, lanes, channels)
        return
    p = 0
    if count < BLOCK or channels < FIXED_LANES or count % BLOCK <= _FEW:
        p = count if count < BLOCK or channels < FIXED_LANES else count % BLOCK
        for c in range(channels):
            for k in range(p):
                target[to + c * step + k] = source[at + k * FIXED_LANES + c]
    while p < count:
        transpose_block(source, at + p * FIXED_LANES, FIXED_LANES, BLOCK, target, to + p, step)
        p = smaller(p + BLOCK, count - BLOCK) if p + BLOCK < count else count


# Numbers of the planes that the second cache has room for beside the tile.
_AHEAD = 1 << 17


@inner
def prefetch_part(item, planes, roi, rois):
    """Have the part of the next item's planes come that falls to ``roi`` of the ``rois`` of this item.

    Only where their bins promise that most of them are needed, and the cache has room.
    """
    plane, bins = planes.height * planes.width, rois * item.pooled_h * item.pooled_w
    size = planes.channels * plane
    if planes.step == plane and bins >= plane and size <= _AHEAD:
        first, stop = roi * size // rois, (roi + 1) * size // rois
        prefetch_far_ahead(planes.values, planes.at + first, stop - first)


# Reading


@inner
def tile_slots(height, width, itemsize, in_any_order=False):
    """How many rows of a map are kept in a tile, from which they are read downwards or in any order."""
    return _rows_within(_WHOLE_TILE_BYTES if in_any_order else _TILE_BYTES, height, width, itemsize)


@inner
def _rows_within(size, height, width, itemsize):
    fit = size // larger(1, width * FIXED_LANES * itemsize)
    return larger(1, smaller(height, fit))


@inner
def empty_tile(tile):
    """Forget what the tile holds."""
    for k in range(tile.slots * ((tile.width + BLOCK - 1) // BLOCK)):
        tile.marks[k] = -1


@inner
def slot_of(tile, y):
    """Where row ``y`` is kept. A division takes as long as many pixels, and most maps fit the tile."""
    return y if y < tile.slots else y % tile.slots


@inner
def read_row(planes, y, low, high, tile):
    """See that pixels ``low`` to ``high`` of row ``y`` are in the tile; returns where its slot begins."""
    slot = slot_of(tile, y)
    marks = slot * ((tile.width + BLOCK - 1) // BLOCK)
    # The copy of the last chunk begins within the one before, which then has to be of the same row.
    first_chunk = smaller(low, larger(0, tile.width - BLOCK)) // BLOCK
    for chunk in range(first_chunk, (high - 1) // BLOCK + 1):
        if tile.marks[marks + chunk] != y:
            tile.marks[marks + chunk] = y
            first = larger(0, smaller(chunk * BLOCK, tile.width - BLOCK))
            to_lanes(
                planes.values,
                planes.at + (y * tile.width + first) * planes.pixel_step,
                (planes.pixel_step, planes.step),
                planes.channels,
                smaller(BLOCK, tile.width),
                tile.values,
                (slot * tile.width + first) * FIXED_LANES,
            )
    return slot * tile.width * FIXED_LANES


# Writing: a tile that holds a band of rows, each with the interval of pixels that were touched


@inner
def tile_bands(height, width, itemsize, parts, items, by_rows=False):
    """``(bands, rows)``: in how many bands of how many rows to write a map, so that each of ``parts`` threads
    has one and none is large. How many there are does not change what a row is the sum of.

    ``by_rows`` says that a band looks only at those bins of a ROI that touch it."""
    slots = _rows_within(_BAND_OF_ROWS_BYTES if by_rows else _BAND_BYTES, height, width, itemsize)
    bands = larger((height + slots - 1) // slots, (parts + items - 1) // larger(1, items))
    bands = smaller(height, bands)
    return bands, (height + bands - 1) // larger(1, bands)


@inner
def touch_nothing(tile):
    """Forget what the tile holds."""
    for k in range(2 * tile.slots):
        tile.marks[k] = 0


@inner
def touch_row(tile, slot, low, high):
    """See that pixels ``low`` to ``high`` of a row hold a sum, zero at first."""
    # Whole blocks, so that write_rows finds whole blocks.
    high = smaller((high + BLOCK - 1) // BLOCK * BLOCK, tile.width)
    low = larger(0, smaller(low // BLOCK * BLOCK, high - BLOCK))
    first, stop = tile.marks[2 * slot], tile.marks[2 * slot + 1]
    if first >= stop:
        first, stop = low, low
    zero = splat(type(tile.values[0])(0))
    row = slot * tile.width
    for p in range(low, first):
        store(tile.values, (row + p) * FIXED_LANES, zero)
    for p in range(stop, high):
        store(tile.values, (row + p) * FIXED_LANES, zero)
    tile.marks[2 * slot], tile.marks[2 * slot + 1] = smaller(low, first), larger(high, stop)


@inner
def rows_in_band(pixel, first, stop, band):
    """Those of the entries ``[first, stop)`` of rows in ascending order that are in a band."""
    while first < stop and pixel[first] < band[0]:
        first += 1
    while first < stop and pixel[stop - 1] >= band[1]:
        stop -= 1
    return first, stop


@inner
def add_row(tile, slot, low, high, weight, line):
    """Add ``weight`` times a line of the pixels ``low`` to ``high`` to a row."""
    touch_row(tile, slot, low, high)
    at = (slot * tile.width + low) * FIXED_LANES
    for p in range(0, (high - low) * FIXED_LANES, FIXED_LANES):
        store(tile.values, at + p, multiply_add(weight, load(line, p), load(tile.values, at + p)))


@inner
def clear_pixels(planes, at, count):
    """Set ``count`` pixels of all channels to 0, the first of which begin at ``at``."""
    if planes.pixel_step == 1:
        for c in range(planes.channels):
            for p in range(at + c * planes.step, at + c * planes.step + count):
                planes.values[p] = 0
        return
    for p in range(at, at + count * planes.pixel_step, planes.pixel_step):
        for c in range(planes.channels):
            planes.values[p + c * planes.step] = 0


@inner
def write_rows(tile, top, rows, planes, accumulate, scratch):
    """Store rows of sums as ``rows`` rows of the map from row ``top``, or add them to what is there."""
    width, pixel_step = tile.width, planes.pixel_step
    for slot in range(rows):
        to = planes.at + (top + slot) * width * pixel_step
        first, stop = tile.marks[2 * slot], tile.marks[2 * slot + 1]
        if not accumulate:
            clear_pixels(planes, to, first)
            clear_pixels(planes, to + stop * pixel_step, width - stop)
        if first >= stop:
            continue
        at, to = (slot * width + first) * FIXED_LANES, to + first * pixel_step
        steps, count = (pixel_step, planes.step), stop - first
        if not accumulate:
            from_lanes(tile.values, at, count, planes.values, to, steps, planes.channels)
            continue
        from_lanes(tile.values, at, count, scratch, 0, (1, width), planes.channels)
        for c in range(planes.channels):
            for p in range(count):
                planes.values[to + c * planes.step + p * pixel_step] += scratch[c * width + p]
