"""Means over the bins of rotated ROIs, and their gradient.

Nothing is separable here. Forward, a thread takes a bin and four channels (see :mod:`lanes`). Backward, a
block takes a tile of the map (see :mod:`tiles`), works out the samples of an ROI some at a time, and every
pixel looks for those that read it.

``tests/reference.py`` has the same in plain loops: ``rotated``.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ... import geometry
from ...geometry import smaller
from ...jit import njit
from ..lanes import THREAD_LANES, lanes_for, layout_of, quads_of
from ..number import computing, kind_of
from ..runtime import contiguous, cuda, device, flat_output, flat_view, kernel, launch
from . import tiles
from .average import boxes_and_setting


@functools.cache
def forward_kernel(rules, name, layout):
    real, shared, _, _ = computing(name)
    spot_and_quad, begin, _, _, add_sample, store, _ = lanes_for(name, layout)

    @device
    def mean_of_bin(data, base, strides, box, i, j, setting, total):
        grid_v = geometry.turned_grid(box.v, i, box.low_v, box.high_v)
        grid_u = geometry.turned_grid(box.u, j, box.low_u, box.high_u)
        for ky in range(grid_v.first, grid_v.stop):
            v = geometry.position(rules, box.v, i, ky, grid_v.count)
            for kx in range(grid_u.first, grid_u.stop):
                u = geometry.position(rules, box.u, j, kx, grid_u.count)
                y, x = geometry.turned_position(box, v, u)
                on_y = geometry.taps(rules, y, setting.height)
                on_x = geometry.taps(rules, x, setting.width)
                if on_y[0] and on_x[0]:
                    add_sample(data, base, strides, on_y, on_x, total)
        if grid_v.count > 0 and grid_u.count > 0:
            for lane in range(THREAD_LANES):
                total[lane] /= real(grid_v.count) * real(grid_u.count)

    @kernel()
    def rotated_forward(data, strides, rois, setting, channels, out):
        base = cuda.local.array(THREAD_LANES, numba.int64)
        total = cuda.local.array(THREAD_LANES, shared)
        pooled_w, area = setting.pooled_w, setting.pooled_h * setting.pooled_w
        quads = (channels + THREAD_LANES - 1) // THREAD_LANES
        for unit in range(cuda.grid(1), rois.shape[0] * area * quads, cuda.gridsize(1)):
            r = unit // (area * quads)
            spot, quad = spot_and_quad(unit % (area * quads), area, quads)
            i, j = spot // pooled_w, spot % pooled_w
            n = geometry.image_of(rois, r, setting.images)
            begin(strides, n, 0, quad, quads, channels, (0, 0), (1, 1), base, total)
            if n >= 0:
                box = geometry.turned(rules, rois, r, setting)
                mean_of_bin(data, base, strides, box, i, j, setting, total)
            store(total, out, r * channels, quad, quads, channels, area, spot)

    return rotated_forward


def forward(data, rois, how, out):
    """Write the means of all bins to ``out``."""
    if out.size == 0:
        return
    name = kind_of(data.dtype)
    count, channels, pooled_h, pooled_w = out.shape
    elements, strides = flat_view(data)
    units = count * pooled_h * pooled_w * quads_of(channels)
    layout = layout_of(elements, strides, channels)
    with flat_output(out) as target:
        inputs = elements, strides, *boxes_and_setting(how, rois, name, data, out)
        tiles.launch_each(forward_kernel(how.rules, name, layout), units, *inputs, channels, target)


@njit
def _pixels(low, high, extent):
    """The pixels that positions from ``low`` to ``high`` may read, with one to spare for rounding."""
    limit = type(low)(extent + 2)
    low = -limit if low < -limit else (limit if low > limit else low)
    high = -limit if high < -limit else (limit if high > limit else high)
    first, stop = int(low) - 2, int(high) + 3
    return (first if first > 0 else 0), (stop if stop < extent else extent)


@functools.cache
def _boxes_kernel(rules, name):
    real = computing(name).real

    @kernel()
    def rotated_boxes(rois, setting, image_of, pixels):
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            n = geometry.image_of(rois, r, setting.images)
            y0 = y1 = x0 = x1 = 0
            if n >= 0:
                box = geometry.turned(rules, rois, r, setting)
                low_y = low_x = real(np.inf)
                high_y = high_x = real(-np.inf)
                for corner in range(4):
                    v = box.v.start + (box.v.length if corner >= 2 else real(0))
                    u = box.u.start + (box.u.length if corner % 2 else real(0))
                    y, x = geometry.turned_position(box, v, u)
                    low_y, high_y = (y if y < low_y else low_y), (y if y > high_y else high_y)
                    low_x, high_x = (x if x < low_x else low_x), (x if x > high_x else high_x)
                y0, y1 = _pixels(low_y, high_y, setting.height)
                x0, x1 = _pixels(low_x, high_x, setting.width)
            tiles.put_box(image_of, pixels, r, n, y0, y1, x0, x1)

    return rotated_boxes


class _Noted(NamedTuple):
    """Samples: the bin of each, the first of two by two pixels, and the weights of both on either axis."""

    spot: object
    y_at: object
    x_at: object
    y_near: object
    y_far: object
    x_near: object
    x_far: object


@functools.cache
def backward_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    tile_w, slab = sizes.tile_w, sizes.channels
    threads = entries = sizes.pixels

    @device
    def count_samples(box, setting, thread, most):
        """The most samples that a bin visits, down the box and across it."""
        pooled_h = setting.pooled_h
        for k in range(thread, pooled_h + setting.pooled_w, threads):
            if k < pooled_h:
                grid = geometry.turned_grid(box.v, k, box.low_v, box.high_v)
            else:
                grid = geometry.turned_grid(box.u, k - pooled_h, box.low_u, box.high_u)
            cuda.atomic.max(most, 0 if k < pooled_h else 1, np.int32(grid.stop - grid.first))

    @device
    def note(box, setting, spot, ky, kx, thread, noted):
        """Note what a sample of a bin reads, if it is one that the bin visits."""
        i, j = spot // setting.pooled_w, spot % setting.pooled_w
        grid_v = geometry.turned_grid(box.v, i, box.low_v, box.high_v)
        grid_u = geometry.turned_grid(box.u, j, box.low_u, box.high_u)
        ky, kx = grid_v.first + ky, grid_u.first + kx
        if ky < grid_v.stop and kx < grid_u.stop:
            v = geometry.position(rules, box.v, i, ky, grid_v.count)
            u = geometry.position(rules, box.u, j, kx, grid_u.count)
            y, x = geometry.turned_position(box, v, u)
            valid_y, y0, wy0, _, wy1 = geometry.taps(rules, y, setting.height)
            valid_x, x0, wx0, _, wx1 = geometry.taps(rules, x, setting.width)
            if valid_y and valid_x:
                # A far pixel is the one after the near, or has no weight.
                share = real(grid_v.count) * real(grid_u.count)
                noted.spot[thread], noted.y_at[thread], noted.x_at[thread] = spot, y0, x0
                noted.y_near[thread], noted.y_far[thread] = wy0 / share, wy1 / share
                noted.x_near[thread], noted.x_far[thread] = wx0, wx1

    @device
    def add_samples(heads, r, tile, noted, number, area, channels, row, column, total):
        """Add what the samples that read a pixel give to it."""
        for k in range(number):
            dy, dx, weight = row - noted.y_at[k], column - noted.x_at[k], real(0)
            if dy >= 0 and dy <= 1 and noted.y_at[k] >= 0 and dx >= 0 and dx <= 1:
                weight = noted.y_far[k] if dy else noted.y_near[k]
                weight *= noted.x_far[k] if dx else noted.x_near[k]
            if weight != 0:
                for c in range(slab):
                    if tile.first_channel + c < channels:
                        at = (r * channels + tile.first_channel + c) * area + noted.spot[k]
                        total[c] += weight * read(heads[np.uint64(at)])

    @device
    def add_roi(inputs, r, tile, setting, channels, total):
        heads, rois = inputs
        most = cuda.shared.array(2, numba.int32)
        spot_of = cuda.shared.array(entries, numba.int32)
        y_at = cuda.shared.array(entries, numba.int32)
        x_at = cuda.shared.array(entries, numba.int32)
        y_near = cuda.shared.array(entries, shared)
        y_far = cuda.shared.array(entries, shared)
        x_near = cuda.shared.array(entries, shared)
        x_far = cuda.shared.array(entries, shared)
        noted = _Noted(spot_of, y_at, x_at, y_near, y_far, x_near, x_far)
        thread = cuda.threadIdx.x
        row, column = tile.top + thread // tile_w, tile.left + thread % tile_w
        area = setting.pooled_h * setting.pooled_w
        box = geometry.turned(rules, rois, r, setting)
        # Bins visit different numbers of samples; a lattice of the most of them holds all.
        if thread == 0:
            most[0] = most[1] = 0
        cuda.syncthreads()
        count_samples(box, setting, thread, most)
        cuda.syncthreads()
        most_v, most_u = int(most[0]), int(most[1])
        lattice = area * most_v * most_u
        for begin in range(0, lattice, entries):
            y_at[thread] = -9  # no pixel
            if begin + thread < lattice:
                spot, rest = (begin + thread) // (most_v * most_u), (begin + thread) % (most_v * most_u)
                note(box, setting, spot, rest // most_u, rest % most_u, thread, noted)
            cuda.syncthreads()
            number = smaller(entries, lattice - begin)
            add_samples(heads, r, tile, noted, number, area, channels, row, column, total)
            cuda.syncthreads()
        cuda.syncthreads()  # also where the lattice is empty: ``most`` is read until here

    @device
    def add_rois(inputs, found, count, tile, setting, channels, total):
        for place in range(count):
            add_roi(inputs, found[place], tile, setting, channels, total)

    gather = tiles.gathering(name, accumulate, sizes, slab, add_rois)

    @kernel(real)
    def rotated_backward(heads, rois, lists, setting, items, channels, grad):
        gather((heads, rois), lists, setting, (1, 1), items, channels, grad)

    return rotated_backward


def backward(grad_out, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if grad_data.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(grad_data.dtype)
    channels = grad_out.shape[1]
    rois, setting = boxes_and_setting(how, rois, name, grad_data, grad_out)
    lists = tiles.lists_by(_boxes_kernel(how.rules, name), setting.images, rois, setting)
    items = tiles.items_of(setting, channels, (1, 1), sizes.channels, sizes)
    with flat_output(grad_data) as target:
        gather = backward_kernel(how.rules, name, bool(accumulate), sizes)
        heads = contiguous(grad_out).reshape(-1)
        launch(gather, items, sizes.pixels, heads, rois, lists, setting, items, channels, target)
