"""What all gradients of feature maps share: a block owns a tile of pixels and goes through the ROIs there.

A gradient is gathered, not scattered. Every block owns the pixels of a tile, for a slab of channels, finds
the ROIs that touch it, and adds them up one after the other in the order of their numbers. So each sum is
always the same to the last bit, no memory is shared between blocks, and none grows with the ROIs' area.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cuda.runtime import cuda, device, empty, launch
from roiops.kernels.jit import njit

__all__ = [
    "SIZES",
    "Lists",
    "Sizes",
    "bin_pixels",
    "build_lists",
    "rank",
    "select",
    "smaller",
    "tiles_of",
]


class Sizes(NamedTuple):
    """How work is cut. Any numbers are right; these suit a large GPU, and the simulator's are smaller."""

    tile_h: int = 8
    tile_w: int = 32  # a thread for each pixel of a tile
    channels: int = 16  # of a tile, held in registers
    max_channels: int = 4  # of a tile, where each has a place of its own to add to
    bins: int = 8  # on each axis, at a time
    each: int = 4  # ROIs that a thread looks at, at a time
    room: int = 256  # pixels and weights of an axis table
    threads: int = 256  # of a block that has no tile
    blocks: int = 1056  # eight for each of 132 multiprocessors; less work is cut finer

    @property
    def pixels(self):
        return self.tile_h * self.tile_w


SIZES = Sizes()


class Lists(NamedTuple):
    """``boxes`` holds, for every ROI, its image (-1: none) and the pixels ``[y0, y1) x [x0, x1)`` it touches.

    ``order[image_at[n] : image_at[n + 1]]`` are the ROIs of image n in ascending order.
    """

    boxes: object
    order: object
    image_at: object


@njit
def smaller(a, b):
    return a if a < b else b


@njit
def bin_pixels(rules, start, length, bins, i, ratio, extent, moved):
    """The pixels ``[low, high)`` between which all samples of bin ``i`` read; ``(0, 0)`` if none does."""
    first, stop, grid = geometry.bin_grid(rules, start, length, bins, i, ratio, extent, moved)
    low, high = extent, 0
    for end in range(2):
        # The outermost valid sample of either end; they are in order, ascending or descending.
        for step in range(stop - first):
            k = stop - 1 - step if end else first + step
            p = geometry.position(rules, start, length, bins, i, k, grid, extent, moved)
            valid, pixel0, weight0, pixel1, weight1 = geometry.taps(rules, p, extent)
            if valid:
                if weight0 != 0:
                    low, high = (pixel0 if pixel0 < low else low), (pixel0 + 1 if pixel0 + 1 > high else high)
                if weight1 != 0:
                    low, high = (pixel1 if pixel1 < low else low), (pixel1 + 1 if pixel1 + 1 > high else high)
                if high > low:
                    break
    return (low, high) if high > low else (0, 0)


@njit
def axis_pixels(rules, start, length, bins, ratio, extent):
    """The pixels ``[low, high)`` between which all bins of an axis read."""
    still = type(start)(0)
    low, high = extent, 0
    for end in range(2):
        for step in range(bins):
            i = bins - 1 - step if end else step
            near, far = bin_pixels(rules, start, length, bins, i, ratio, extent, still)
            if far > near:
                low, high = (near if near < low else low), (far if far > high else high)
                break
    return (low, high) if high > low else (0, 0)


@functools.cache
def _boxes_kernel(rules):
    @cuda.jit
    def boxes_of_rois(rois, scale, ratio, images, height, width, pooled_h, pooled_w, boxes):
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            n = geometry.image_of(rois, r, images)
            y0 = y1 = x0 = x1 = 0
            if n >= 0:
                start, length = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
                y0, y1 = axis_pixels(rules, start, length, pooled_h, ratio[0], height)
                start, length = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
                x0, x1 = axis_pixels(rules, start, length, pooled_w, ratio[1], width)
            boxes[r, 0] = n if y1 > y0 and x1 > x0 else -1
            boxes[r, 1], boxes[r, 2], boxes[r, 3], boxes[r, 4] = y0, y1, x0, x1

    return boxes_of_rois


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


@functools.cache
def _order_kernel(sizes):
    threads = sizes.threads

    @cuda.jit
    def order_of_rois(boxes, images, order, image_at):
        """A block for each image counts the ROIs of those before it, then lists its own."""
        running = cuda.shared.array(threads, numba.int32)
        before = cuda.shared.array(1, numba.int32)
        thread = cuda.threadIdx.x
        count = boxes.shape[0]
        for n in range(cuda.blockIdx.x, images, cuda.gridDim.x):
            if thread == 0:
                before[0] = 0
            cuda.syncthreads()
            mine = 0
            for r in range(thread, count, threads):
                if boxes[r, 0] >= 0 and boxes[r, 0] < n:
                    mine += 1
            cuda.atomic.add(before, 0, mine)
            cuda.syncthreads()
            at = before[0]
            if thread == 0:
                image_at[n] = at
            for first in range(0, count, threads):
                r = first + thread
                here = 1 if r < count and boxes[r, 0] == n else 0
                place = rank(here, running, thread, threads)
                if here:
                    order[at + place - 1] = r
                at += running[threads - 1]
                cuda.syncthreads()
            if thread == 0 and n == images - 1:
                image_at[images] = at

    return order_of_rois


def list_by_image(boxes, images, device_id, sizes) -> Lists:
    """Sort the ROIs that have boxes by image, on the device."""
    count = boxes.shape[0]
    order = empty((count,), np.int32, device_id)
    image_at = empty((images + 1,), np.int32, device_id)
    launch(_order_kernel(sizes), images, sizes.threads, boxes, images, order, image_at)
    return Lists(boxes, order, image_at)


def build_lists(rules, rois, scale, ratio, shape, pooled, device_id, sizes) -> Lists:
    """The lists of ROIs by image for a map of ``shape`` (images, channels, height, width)."""
    count = rois.shape[0]
    boxes = empty((count, 5), np.int32, device_id)
    blocks = (count + sizes.threads - 1) // sizes.threads
    launch(
        _boxes_kernel(rules), blocks, sizes.threads,
        rois, scale, ratio, shape[0], shape[2], shape[3], *pooled, boxes,
    )  # fmt: skip
    return list_by_image(boxes, shape[0], device_id, sizes)


# -- tiles -----------------------------------------------------------------------------------------------


def tiles_of(height, width, sizes) -> int:
    """How many tiles a map is cut into."""
    return -(-height // sizes.tile_h) * -(-width // sizes.tile_w)


@device
def select(boxes, order, first, stop, top, left, tile_h, tile_w, each, running, found, thread, threads):
    """List the ROIs ``order[first:stop]`` that touch a tile, in order; how many is ``running``'s last entry.

    All threads must call it, with ``stop - first`` at most ``each * threads``.
    """
    count = 0
    mine = first + thread * each
    for k in range(mine, smaller(mine + each, stop)):
        if _touches(boxes, order[k], top, left, tile_h, tile_w):
            count += 1
    place = rank(count, running, thread, threads) - count
    for k in range(mine, smaller(mine + each, stop)):
        if _touches(boxes, order[k], top, left, tile_h, tile_w):
            found[place] = order[k]
            place += 1
    cuda.syncthreads()


@device
def _touches(boxes, r, top, left, tile_h, tile_w):
    return (
        boxes[r, 1] < top + tile_h
        and boxes[r, 2] > top
        and boxes[r, 3] < left + tile_w
        and boxes[r, 4] > left
    )
