"""Between feature maps, stored channel by channel, and rows of ``FIXED_LANES`` channels.

Everything is flat here: an array is its elements (:func:`vector.pointer_to`) and the index to start from.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.vector import (
    BLOCK,
    FIXED_LANES,
    load,
    multiply_add,
    prefetch_far_ahead,
    prefetch_to_write,
    splat,
    store,
    stream,
    transpose_block,
)
from roiops.kernels.jit import inner

# Bytes of a tile, which each thread has one of: a larger map is kept in part. With half as many, a map of
# 200 x 272 takes some 4 % longer.
_TILE_BYTES = 1 << 19
# Bytes of a tile whose rows are not read from top to bottom.
_WHOLE_TILE_BYTES = 1 << 24
# Bytes of a band of sums, as a thread adds them up: where each band looks at all that a ROI reads, and where
# it looks only at its own rows. This is memory beside the gradients, when all else is there as well.
_BAND_BYTES, _BAND_OF_ROWS_BYTES = 1 << 19, 1 << 18

# Bytes of an output of which caches still hold most when it is read next, beside the map and other outputs.
# Storing what is larger past them saves reading each line before it is written.
CACHED_BYTES = 1 << 24

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


class Planes(NamedTuple):
    """A block of at most ``FIXED_LANES`` channels of an image."""

    values: np.ndarray
    at: int  # index of the first pixel of the first channel
    step: int  # from a pixel to the same one of the next channel
    channels: int
    height: int
    width: int


class Tile(NamedTuple):
    """Rows of a block of channels with the channels last; row ``y`` is kept in slot ``y % slots``."""

    values: np.ndarray
    marks: np.ndarray
    slots: int
    width: int


@inner
def channel_blocks(channels, block=FIXED_LANES):
    return (channels + block - 1) // block


def clear_ignored(order, image_at, out, value):
    """Set what belongs to the ROIs that are to be ignored: those that come before the first image's."""
    if image_at[0]:
        out[order[: image_at[0]]] = value


@inner
def clear_all_ignored(order, image_at, out, value):
    """:func:`clear_ignored` within a compiled function."""
    results, size = out.reshape(-1), out.shape[1] * out.shape[2] * out.shape[3]
    for k in range(image_at[0]):
        for p in range(order[k] * size, (order[k] + 1) * size):
            results[p] = value


@inner
def item_of(number, out_shape, groups, block=FIXED_LANES):
    """Item ``number`` of all: the groups run fastest, because their bins share cache lines of the output."""
    _, out_channels, pooled_h, pooled_w = out_shape
    groups_h, groups_w = groups
    rest, group_x = divmod(number, groups_w)
    rest, group_y = divmod(rest, groups_h)
    image, place = divmod(rest, channel_blocks(out_channels, block))
    first_row, stop_row = geometry.bins_of(group_y, pooled_h, groups_h)
    first_column, stop_column = geometry.bins_of(group_x, pooled_w, groups_w)
    return Item(
        image,
        first_row,
        stop_row,
        first_column,
        stop_column,
        place * block,
        geometry.channel_of(place * block, group_y, group_x, groups_h, groups_w),
        groups_h * groups_w,
        min(block, out_channels - place * block),
        pooled_h,
        pooled_w,
    )


@inner
def places_of(item, image_at):
    """The places ``[first, stop)`` of an item's ROIs in their order: none for a group without bins."""
    first, stop = image_at[item.image], image_at[item.image + 1]
    has_bins = item.first_row < item.stop_row and item.first_column < item.stop_column
    return first, (stop if has_bins else first)


@inner
def to_lanes(source, at, step, channels, count, target, to):
    """``target[to + p * FIXED_LANES + c] = source[at + c * step + p]`` for p < ``count``.

    Of fewer than ``FIXED_LANES`` ``channels``, the last one fills the remaining lanes.
    """
    p = 0
    if count < BLOCK or count % BLOCK <= _FEW:  # these are copied one by one, the rest in blocks
        p = count if count < BLOCK else count % BLOCK
        for c in range(FIXED_LANES):
            row = at + (c if c < channels else channels - 1) * step
            for k in range(p):
                target[to + k * FIXED_LANES + c] = source[row + k]
    while p < count:
        for c in range(0, FIXED_LANES, BLOCK):
            first = min(c, channels - 1)
            transpose_block(
                source,
                at + first * step + p,
                step,
                channels - first,
                target,
                to + p * FIXED_LANES + c,
                FIXED_LANES,
            )
        # The last block may do some pixels again.
        p = min(p + BLOCK, count - BLOCK) if p + BLOCK < count else count


@inner
def from_lanes(source, at, count, target, to, step, channels):
    """``target[to + c * step + p] = source[at + p * FIXED_LANES + c]``: ``channels`` c, ``count`` p."""
    p = 0
    if count < BLOCK or channels < FIXED_LANES or count % BLOCK <= _FEW:
        p = count if count < BLOCK or channels < FIXED_LANES else count % BLOCK
        for c in range(channels):
            for k in range(p):
                target[to + c * step + k] = source[at + k * FIXED_LANES + c]
    while p < count:
        for c in range(0, FIXED_LANES, BLOCK):
            transpose_block(
                source, at + p * FIXED_LANES + c, FIXED_LANES, BLOCK, target, to + c * step + p, step
            )
        p = min(p + BLOCK, count - BLOCK) if p + BLOCK < count else count


# Numbers of the planes that the second cache has room for beside the tile.
_AHEAD = 1 << 17


@inner
def prefetch_planes(planes, part, parts, bins):
    """Have one of ``parts`` parts of some planes come while others are worked on.

    Only where ROIs of ``bins`` bins promise that most of them are needed, and the cache has room.
    """
    plane = planes.height * planes.width
    size = planes.channels * plane
    if planes.step == plane and bins >= plane and size <= _AHEAD:
        first, stop = part * size // parts, (part + 1) * size // parts
        prefetch_far_ahead(planes.values, planes.at + first, stop - first)


# Bins of one ROI, row-major within the item's group


@inner
def prefetch_put(item, out, to):
    """Have the lines that :func:`put_bins` will write to come while the bins are computed."""
    area = item.pooled_h * item.pooled_w
    first, step = _lines(item)
    for at in range(to + first, to + item.channels * area, step):
        prefetch_to_write(out, at, 1)


@inner
def prefetch_take(item, source, at):
    """Have the lines that :func:`take_bins` will read come while the ROI before is worked on."""
    area = item.pooled_h * item.pooled_w
    first, step = _lines(item)
    for line in range(at + first, at + item.channels * area, step):
        prefetch_far_ahead(source, line, 1)


class Ahead(NamedTuple):
    """Where :func:`take_bins` will read for the ROI after this one."""

    values: np.ndarray
    at: int


# Numbers that are asked for at once. Asked for more lines than it can wait for, a processor stops its work.
_AT_ONCE = 1 << 10


@inner
def comes_by_rows(item):
    """Whether :func:`prefetch_row` is better than :func:`prefetch_take`: for one run of many numbers."""
    area = (item.stop_row - item.first_row) * (item.stop_column - item.first_column)
    return area == item.pooled_h * item.pooled_w and item.channels * area > _AT_ONCE


@inner
def prefetch_row(item, i, ahead):
    """Have a part of what is ahead come while row ``i`` of the bins is worked on."""
    if comes_by_rows(item):
        count = item.channels * item.pooled_w
        prefetch_far_ahead(ahead.values, ahead.at + i * count, count)


@inner
def _lines(item):
    """Where the lines of an item's bins are: all of them, or one a channel if there are groups."""
    area = item.pooled_h * item.pooled_w
    if (item.stop_row - item.first_row) * (item.stop_column - item.first_column) == area:
        return 0, FIXED_LANES
    return item.first_row * item.pooled_w + item.first_column, area


@inner
def put_bins(bins, item, out, to):
    """Copy bins with the channels last to ``out``, where those of one ROI's first channel begin at ``to``."""
    pooled_w, area = item.pooled_w, item.pooled_h * item.pooled_w
    wide = item.stop_column - item.first_column
    if wide == pooled_w:
        count = (item.stop_row - item.first_row) * wide
        from_lanes(bins, 0, count, out, to + item.first_row * wide, area, item.channels)
        return
    for i in range(item.first_row, item.stop_row):
        for j in range(wide):
            at = ((i - item.first_row) * wide + j) * FIXED_LANES
            for c in range(item.channels):
                out[to + c * area + i * pooled_w + item.first_column + j] = bins[at + c]


@inner
def streams(out, item):
    """Whether an item's bins may be written past the caches: one run of an array that no cache holds."""
    area = (item.stop_row - item.first_row) * (item.stop_column - item.first_column)
    one_run = area == item.pooled_h * item.pooled_w
    return one_run and out.size * out.itemsize > CACHED_BYTES and out.ctypes.data % out.itemsize == 0


@inner
def copy_bins(count, scratch, out, address, to, past_caches):
    """Copy ``count`` numbers from ``scratch`` to ``out``, whose ``address`` counts elements."""
    if not past_caches:
        for k in range(count):
            out[to + k] = scratch[k]
        return
    head = min(count, -(address + to) % FIXED_LANES)
    for k in range(head):
        out[to + k] = scratch[k]
    whole = head + (count - head) // FIXED_LANES * FIXED_LANES
    for k in range(head, whole, FIXED_LANES):
        stream(out, to + k, load(scratch, k))
    for k in range(whole, count):
        out[to + k] = scratch[k]


class Behind(NamedTuple):
    """Bins of the ROI before this one, in whole cache lines, which are still to be written past the caches.

    While they are on their way to memory, the processor computes: it waits only if many are written at once.
    """

    values: np.ndarray
    at: int  # of the first line, in ``values``
    out: np.ndarray
    to: int  # and in ``out``
    lines: int


@inner
def nothing_behind(values, out):
    return Behind(values, 0, out, 0, 0)


@inner
def put_behind(bins, item, scratch, out, address, to):
    """Put an item's bins in ``scratch``, as far from the start of a cache line as they will be in ``out``.

    ``address`` is that of ``out`` in elements. What does not fill a line is written to ``out`` here.
    """
    count = item.channels * item.pooled_h * item.pooled_w
    start = (address + to) % FIXED_LANES
    put_bins(bins, item, scratch, start)
    head = min(count, -start % FIXED_LANES)
    for k in range(head):
        out[to + k] = scratch[start + k]
    lines = (count - head) // FIXED_LANES
    for k in range(head + lines * FIXED_LANES, count):
        out[to + k] = scratch[start + k]
    return Behind(scratch, start + head, out, to + head, lines)


@inner
def _stream_lines(behind, first, stop):
    for k in range(first * FIXED_LANES, stop * FIXED_LANES, FIXED_LANES):
        stream(behind.out, behind.to + k, load(behind.values, behind.at + k))


@inner
def stream_row(item, i, behind):
    """Write a part of what is behind while row ``i`` of the bins is worked on."""
    each = (behind.lines + item.pooled_h - 1) // item.pooled_h
    _stream_lines(behind, i * each, min((i + 1) * each, behind.lines))


@inner
def stream_behind(behind):
    """Write all of what is behind."""
    _stream_lines(behind, 0, behind.lines)


@inner
def prefetch_ends(item, out, to):
    """Have the lines come that an item's bins fill only in part."""
    prefetch_to_write(out, to, 1)
    prefetch_to_write(out, to + item.channels * item.pooled_h * item.pooled_w - 1, 1)


@inner
def take_bins(source, at, item, bins):
    """The inverse of :func:`put_bins`; lanes without a channel hold any of the item's numbers."""
    pooled_w, area = item.pooled_w, item.pooled_h * item.pooled_w
    wide = item.stop_column - item.first_column
    if wide == pooled_w:
        count = (item.stop_row - item.first_row) * wide
        to_lanes(source, at + item.first_row * wide, area, item.channels, count, bins, 0)
        return
    for i in range(item.first_row, item.stop_row):
        for j in range(wide):
            to = ((i - item.first_row) * wide + j) * FIXED_LANES
            for c in range(FIXED_LANES):
                row = at + min(c, item.channels - 1) * area
                bins[to + c] = source[row + i * pooled_w + item.first_column + j]


# Reading


@inner
def tile_slots(height, width, itemsize, in_any_order=False):
    """How many rows of a map are kept in a tile, from which they are read downwards or in any order."""
    return _rows_within(_WHOLE_TILE_BYTES if in_any_order else _TILE_BYTES, height, width, itemsize)


@inner
def _rows_within(size, height, width, itemsize):
    return max(1, min(height, size // max(1, width * FIXED_LANES * itemsize)))


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
    first_chunk = min(low, max(0, tile.width - BLOCK)) // BLOCK
    for chunk in range(first_chunk, (high - 1) // BLOCK + 1):
        if tile.marks[marks + chunk] != y:
            tile.marks[marks + chunk] = y
            first = max(0, min(chunk * BLOCK, tile.width - BLOCK))
            to_lanes(
                planes.values,
                planes.at + y * tile.width + first,
                planes.step,
                planes.channels,
                min(BLOCK, tile.width),
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
    bands = min(height, max((height + slots - 1) // slots, (parts + items - 1) // max(1, items)))
    return bands, (height + bands - 1) // max(1, bands)


@inner
def touch_nothing(tile):
    """Forget what the tile holds."""
    for k in range(2 * tile.slots):
        tile.marks[k] = 0


@inner
def touch_row(tile, slot, low, high):
    """See that pixels ``low`` to ``high`` of a row hold a sum, zero at first."""
    # Whole blocks, so that write_rows finds whole blocks.
    high = min((high + BLOCK - 1) // BLOCK * BLOCK, tile.width)
    low = max(0, min(low // BLOCK * BLOCK, high - BLOCK))
    first, stop = tile.marks[2 * slot], tile.marks[2 * slot + 1]
    if first >= stop:
        first, stop = low, low
    zero = splat(type(tile.values[0])(0))
    row = slot * tile.width
    for p in range(low, first):
        store(tile.values, (row + p) * FIXED_LANES, zero)
    for p in range(stop, high):
        store(tile.values, (row + p) * FIXED_LANES, zero)
    tile.marks[2 * slot], tile.marks[2 * slot + 1] = min(low, first), max(high, stop)


@inner
def add_row(tile, slot, low, high, weight, line):
    """Add ``weight`` times a line of the pixels ``low`` to ``high`` to a row."""
    touch_row(tile, slot, low, high)
    at = (slot * tile.width + low) * FIXED_LANES
    for p in range(0, (high - low) * FIXED_LANES, FIXED_LANES):
        store(tile.values, at + p, multiply_add(weight, load(line, p), load(tile.values, at + p)))


@inner
def write_rows(tile, top, rows, planes, accumulate, scratch):
    """Store rows of sums as ``rows`` rows of the map from row ``top``, or add them to what is there."""
    width = tile.width
    for slot in range(rows):
        to = planes.at + (top + slot) * width
        first, stop = tile.marks[2 * slot], tile.marks[2 * slot + 1]
        if not accumulate:
            for c in range(planes.channels):
                for p in range(first):
                    planes.values[to + c * planes.step + p] = 0
                for p in range(stop, width):
                    planes.values[to + c * planes.step + p] = 0
        if first >= stop:
            continue
        at = (slot * width + first) * FIXED_LANES
        if not accumulate:
            from_lanes(tile.values, at, stop - first, planes.values, to + first, planes.step, planes.channels)
            continue
        from_lanes(tile.values, at, stop - first, scratch, 0, width, planes.channels)
        for c in range(planes.channels):
            for p in range(stop - first):
                planes.values[to + c * planes.step + first + p] += scratch[c * width + p]
