"""What all gradients of feature maps share: a block owns a tile of pixels and goes through the ROIs there.

A gradient is gathered, not scattered. Every block owns the pixels of a tile, for a slab of channels, finds
the ROIs that touch it, and adds them up one after the other in the order of their numbers. So each sum is
always the same to the last bit, no memory is shared between blocks, and none grows with the ROIs' area.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ....errors import DeviceError
from ... import geometry
from ...geometry import smaller
from ...jit import njit
from ...rules import CORNERS
from ..lanes import divided
from ..number import computing
from ..runtime import QUAD, cuda, device, device_of, empty, kernel, launch, quad_at


class Sizes(NamedTuple):
    """How work is cut. Any numbers are right; these suit a large GPU, and the simulator's are smaller."""

    tile_h: int = 8
    tile_w: int = 32  # a thread for each pixel of a tile
    side: int = 16  # of the square tiles of means
    channels: int = 16  # of a tile, held in registers
    grouped_channels: int = 24  # the same, of channels that a group of bins has of its own
    max_tile: int = 8  # pixels of either side of a tile of maxima
    max_channels: int = 32  # of such a tile, one for each thread of a warp
    max_parts: int = 2  # of such a tile, each with a warp that adds up its pixels
    max_entries: int = 32  # maxima of a channel that such a block takes at a time: a divisor of its threads
    bins: int = 8  # on each axis, at a time; no more than a tile has pixels
    each: int = 4  # ROIs that a thread looks at, at a time
    table: int = 256  # pixels and weights of an axis table
    threads: int = 256  # of a block that has no tile
    unit_threads: int = 224  # at most, of one that averages: four of them fit a multiprocessor
    turns: int = 16  # of them all, at the bins and channels of a block
    blocks: int = 1024  # of those, at least: twice what 132 multiprocessors have room for

    @property
    def pixels(self):
        return self.tile_h * self.tile_w


SIZES = Sizes()


class Boxes(NamedTuple):
    """For every ROI its image, -1 if it touches no pixel, and the pixels ``[y0, y1) x [x0, x1)`` it touches.

    ``pixels`` holds these four numbers one after the other, so that they are one quad: of every ROI, or of
    the bins of each group of channels, group by group.
    """

    images: object
    pixels: object


class Lists(NamedTuple):
    """``order[image_at[n] : image_at[n + 1]]`` are the ROIs of image n in ascending order."""

    pixels: object  # see :class:`Boxes`
    order: object
    image_at: object


@njit
def quads_up_to(count):
    """``count``, or as many more as make it whole quads."""
    return (count + QUAD - 1) // QUAD * QUAD


@njit
def bin_pixels(rules, axis, i):
    """The pixels ``[low, high)`` between which all samples of bin ``i`` read; ``(0, 0)`` if none does."""
    first, stop, count = geometry.bin_grid(rules, axis, i)
    low, high = axis.extent, 0
    for end in range(2):
        # The outermost sample of either end that reads a pixel; they are in order, ascending or descending.
        for step in range(stop - first):
            k = stop - 1 - step if end else first + step
            valid, pixel0, weight0, pixel1, weight1 = geometry.sample(rules, axis, i, k, count)
            if valid:
                if weight0 != 0:
                    low, high = (pixel0 if pixel0 < low else low), (pixel0 + 1 if pixel0 + 1 > high else high)
                if weight1 != 0:
                    low, high = (pixel1 if pixel1 < low else low), (pixel1 + 1 if pixel1 + 1 > high else high)
                # Of two corners about a sample, which stand one after the other, both: those of a reversed
                # box descend, but not the two among themselves.
                if (weight0 != 0 or weight1 != 0) and (rules.samples != CORNERS or k % 2 != end):
                    break
    return (low, high) if high > low else (0, 0)


@njit
def put_box(image_of, pixels, r, n, y0, y1, x0, x1):
    image_of[r] = n if y1 > y0 and x1 > x0 else -1
    put_pixels(pixels, r, y0, y1, x0, x1)


@njit
def put_pixels(pixels, k, y0, y1, x0, x1):
    at = QUAD * k
    pixels[at], pixels[at + 1], pixels[at + 2], pixels[at + 3] = y0, y1, x0, x1


@njit
def _pixels_of(spans, first, stop, extent):
    """The pixels ``[low, high)`` between which some bins of an axis read."""
    low, high = extent, 0
    for i in range(first, stop):
        if spans[i, 1] > spans[i, 0]:
            low, high = (
                (spans[i, 0] if spans[i, 0] < low else low),
                (spans[i, 1] if spans[i, 1] > high else high),
            )
    return (low, high) if high > low else (0, 0)


@functools.cache
def _boxes_kernel():
    @kernel()
    def boxes_of_bins(rois, setting, groups, spans, image_of, pixels):
        """A thread takes an ROI and a group of channels."""
        pooled_h, pooled_w, every = setting.pooled_h, setting.pooled_w, groups[0] * groups[1]
        for unit in range(cuda.grid(1), rois.shape[0] * every, cuda.gridsize(1)):
            r, group = unit // every, unit % every
            n = geometry.image_of(rois, r, setting.images)
            y0 = y1 = x0 = x1 = 0
            if n >= 0:
                at = r * (pooled_h + pooled_w)
                first, stop = geometry.bins_of(group // groups[1], pooled_h, groups[0])
                y0, y1 = _pixels_of(spans, at + first, at + stop, setting.height)
                first, stop = geometry.bins_of(group % groups[1], pooled_w, groups[1])
                at += pooled_h
                x0, x1 = _pixels_of(spans, at + first, at + stop, setting.width)
            if every == 1:
                put_box(image_of, pixels, r, n, y0, y1, x0, x1)
            else:
                put_pixels(pixels, unit, y0, y1, x0, x1)
                if group == 0:
                    image_of[r] = n

    return boxes_of_bins


@device
def rank(count, running, thread, threads):
    """How many there are up to and with this thread, each thread having ``count``. All threads must call it.

    ``running`` is shared memory for a number a thread; its last entry is the total.
    """
    running[thread] = count
    cuda.syncthreads()
    step = 1
    while step < threads:
        before = running[thread - step] if thread >= step else 0
        cuda.syncthreads()
        running[thread] += before
        cuda.syncthreads()
        step *= 2
    return running[thread]


@device
def add_up(sums, thread, lanes, stride):
    """Add the sums of ``lanes`` threads, ``stride`` apart, to that of the first. All threads must call it.

    Halves are added onto halves: in one order, whatever runs first.
    """
    lane, step = thread // stride, 1
    while step < lanes:
        if lane % (2 * step) == 0 and lane + step < lanes:
            sums[thread] += sums[thread + step * stride]
        cuda.syncthreads()
        step *= 2


@functools.cache
def _order_kernel(sizes):
    threads = sizes.threads

    @kernel()
    def order_of_rois(image_of, images, order, image_at):
        """A block for each image counts the ROIs of those before it, then lists its own."""
        running = cuda.shared.array(threads, numba.int32)
        before = cuda.shared.array(1, numba.int32)
        thread = cuda.threadIdx.x
        count = image_of.shape[0]
        for n in range(cuda.blockIdx.x, images, cuda.gridDim.x):
            if thread == 0:
                before[0] = 0
            cuda.syncthreads()
            mine = 0
            for r in range(thread, count, threads):
                if image_of[r] >= 0 and image_of[r] < n:
                    mine += 1
            cuda.atomic.add(before, 0, mine)
            cuda.syncthreads()
            at = before[0]
            if thread == 0:
                image_at[n] = at
            for first in range(0, count, threads):
                r = first + thread
                here = 1 if r < count and image_of[r] == n else 0
                place = rank(here, running, thread, threads)
                if here:
                    order[at + place - 1] = r
                at += running[threads - 1]
                cuda.syncthreads()
            if thread == 0 and n == images - 1:
                image_at[images] = at

    return order_of_rois


def launch_each(kernel, units, *arguments) -> None:
    """Queue a kernel of which each thread takes a unit."""
    launch(kernel, -(-units // SIZES.threads), SIZES.threads, *arguments)


def lists_by(kernel, images, rois, *arguments, groups=1) -> Lists:
    """The ROIs that touch a pixel, sorted by image on the device.

    ``kernel`` writes the :class:`Boxes` of the ROIs, and of so many ``groups`` of channels.
    """
    count, device_id = rois.shape[0], device_of(rois)
    boxes = Boxes(empty((count,), np.int32, device_id), empty((QUAD * count * groups,), np.int32, device_id))
    launch_each(kernel, count * groups, rois, *arguments, *boxes)
    order = empty((count,), np.int32, device_id)
    image_at = empty((images + 1,), np.int32, device_id)
    launch(_order_kernel(SIZES), images, SIZES.threads, boxes.images, images, order, image_at)
    return Lists(boxes.pixels, order, image_at)


def lists_of_bins(rois, setting, groups, spans) -> Lists:
    """:func:`lists_by`; ``spans`` has the pixels of each bin of an ROI, on y and then on x."""
    every = groups[0] * groups[1]
    return lists_by(_boxes_kernel(), setting.images, rois, setting, groups, spans, groups=every)


# -- tiles -----------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """An item of work: a tile of an image, for a group of bins and the channels from the first on."""

    n: int
    top: int
    left: int
    group_y: int
    group_x: int
    first_channel: int


def items_of(setting, channels, groups, slab, sizes) -> int:
    """How many items of work there are: tiles of the maps, each for the slabs of every group."""
    tiles = -(-setting.height // sizes.tile_h) * -(-setting.width // sizes.tile_w)
    items = setting.images * tiles * groups[0] * groups[1] * -(-channels // slab)
    if items >= 1 << 31:  # kernels take them apart in 32 bits
        raise DeviceError(f"gpu: a gradient of {items} tiles is more than a kernel counts")
    return items


@functools.cache
def placing(slab, sizes):
    """A device function that tells the :class:`Place` of an item of work."""
    tile_h, tile_w = sizes.tile_h, sizes.tile_w

    @device
    def place_of(item, channels, groups, setting):
        slabs = (channels + slab - 1) // slab
        down, across = (setting.height + tile_h - 1) // tile_h, (setting.width + tile_w - 1) // tile_w
        rest, of_slab = divided(item, slabs)
        rest, group_x = divided(rest, groups[1])
        rest, group_y = divided(rest, groups[0])
        rest, column = divided(rest, across)
        n, row = divided(rest, down)
        y, x, c = np.int32(row * tile_h), np.int32(column * tile_w), np.int32(of_slab * slab)
        return Place(np.int32(n), y, x, np.int32(group_y), np.int32(group_x), c)

    return place_of


@functools.cache
def storing(name, accumulate, slab):
    """A device function that writes, or adds, a pixel's sums for the channels of a :class:`Place`."""
    _, _, read, write = computing(name)

    @device
    def store(total, place, y, x, channels, groups, setting, grad):
        every, area = groups[0] * groups[1], setting.height * setting.width
        first = geometry.channel_of(place.first_channel, place.group_y, place.group_x, groups[0], groups[1])
        at = np.uint64((place.n * channels * every + first) * area + y * setting.width + x)
        plane, own = np.uint64(every * area), np.int32(smaller(slab, channels - place.first_channel))
        if y < setting.height and x < setting.width:
            for c in range(slab):
                if c < own:
                    value = total[c]
                    if accumulate:
                        value += read(grad[at])
                    grad[at] = write(value)
                at += plane

    return store


@functools.cache
def adding(slab):
    """``add_head(weight, head, at, total)``: add ``weight`` times the head gradients of all channels."""

    @device
    def add_head(weight, head, at, total):
        for first in range(0, slab, QUAD):
            four = quad_at(head, at + first)
            for c in range(smaller(QUAD, slab - first)):
                total[first + c] += weight * four[c]

    return add_head


@functools.cache
def selecting(sizes, touches_tile=None):
    """A device function that lists which of ``listed``, from ``first`` to ``stop``, touch a tile.

    ``touches_tile(listed, k, top, left)`` says whether number ``k`` does; if it is not given, that is the ROI
    at place ``k`` of :class:`Lists`. The numbers go to ``found`` in order; how many is ``running``'s last
    entry. All threads must call it.
    """
    tile_h, tile_w, threads = sizes.tile_h, sizes.tile_w, sizes.pixels

    @device
    def box_touches(lists, k, top, left):
        return touches(lists.pixels, lists.order[k], top, left, tile_h, tile_w)

    touches_tile = touches_tile or box_touches

    @device
    def select(listed, first, stop, top, left, running, found):
        thread, each = np.int32(cuda.threadIdx.x), np.int32((stop - first + threads - 1) // threads)
        mine, count, bits = np.int32(first + thread * each), np.int32(0), np.int32(0)
        k = np.int32(0)
        while k < each and mine + k < stop:  # so the compiler does not unroll it, and spill registers
            if touches_tile(listed, np.int32(mine + k), top, left):
                bits = np.int32(bits | 1 << k)
                count = np.int32(count + 1)
            k = np.int32(k + 1)
        place = np.int32(rank(count, running, thread, threads) - count)
        for k in range(each):
            if (bits >> k) & 1:
                found[place] = mine + k
                place = np.int32(place + 1)
        cuda.syncthreads()

    return select


@device
def touches(pixels, k, top, left, tile_h, tile_w):
    # Aligned: ``pixels`` is memory of our own from its start on, quad by quad.
    y0, y1, x0, x1 = quad_at(pixels, QUAD * k)
    top, bottom, left, right = np.int32(top), np.int32(top + tile_h), np.int32(left), np.int32(left + tile_w)
    return (y0 < bottom) & (y1 > top) & (x0 < right) & (x1 > left)


# -- the one loop over tiles -------------------------------------------------------------------------------


def gathering(name, accumulate, sizes, slab, add_rois):
    """The device function that kernels of gradients are: it goes through the items of a block.

    ``add_rois(inputs, found, count, tile, setting, channels, total)`` adds what the ``count`` ROIs in
    ``found`` give to the thread's pixel of ``tile``, for each of its ``slab`` channels, to ``total``. All
    threads call it, and must be done with shared memory when it ends.
    """
    _, shared, _, _ = computing(name)
    store, place_of, select = storing(name, accumulate, slab), placing(slab, sizes), selecting(sizes)
    tile_w, threads, found_size = sizes.tile_w, sizes.pixels, sizes.pixels * sizes.each

    @device
    def gather(inputs, lists, setting, groups, items, channels, grad):
        running = cuda.shared.array(threads, numba.int32)
        found = cuda.shared.array(found_size, numba.int32)
        total = cuda.local.array(slab, shared)
        thread = cuda.threadIdx.x
        item = np.int32(cuda.blockIdx.x)
        while item < items:  # not over a range, which would work out its length by a division
            tile = place_of(item, channels, groups, setting)
            for c in range(slab):
                total[c] = 0
            stop = lists.image_at[tile.n + 1]
            for first in range(lists.image_at[tile.n], stop, np.int32(found_size)):
                last = smaller(np.int32(first + found_size), stop)
                select(lists, first, last, tile.top, tile.left, running, found)
                count = running[threads - 1]
                for place in range(thread, count, threads):
                    found[place] = lists.order[found[place]]
                cuda.syncthreads()
                add_rois(inputs, found, count, tile, setting, channels, total)
                cuda.syncthreads()
            row, column = tile.top + thread // tile_w, tile.left + thread % tile_w
            store(total, tile, row, column, channels, groups, setting, grad)
            item = np.int32(item + cuda.gridDim.x)

    return gather
