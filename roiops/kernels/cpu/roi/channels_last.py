"""Means over the bins of ROIs where the channels come last, in the map and in the output.

A bin is computed for all its channels before the next: they lie side by side wherever they are read and
written, so that nothing is turned. Of a gradient each thread has channels of its own. The sums are those of
:mod:`average`, to the last bit.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

from typing import NamedTuple

import numpy as np

from ...geometry import smaller
from ...jit import inner, shared
from ...shares import within
from ..vector import (
    FIXED_LANES,
    load,
    load_some,
    multiply_add,
    pointer_to,
    prefetch_to_write,
    scaled,
    splat,
    store,
    store_some,
    stream,
)
from . import tables
from .addresses import backward_kernel, forward_kernel
from .bins import CACHED_BYTES
from .tiles import channel_blocks


class _Bin(NamedTuple):
    """What a bin reads: of the tables, entries ``top`` to ``bottom`` of y and ``left`` to ``right`` of x."""

    image: int  # where the image begins
    row: int  # from a row of the map to the next
    pixel: int  # from a pixel to the next
    top: int
    bottom: int
    left: int
    right: int


@inner
def _load_all(values, at, count):
    return load(values, at)


def _mean_by(read):
    @inner
    def mean(values, bin_, y, x, channel, count):
        """The mean of ``count`` channels."""
        total = splat(type(values[0])(0))
        for m in range(bin_.left, bin_.right):
            at = bin_.image + x.pixel[m] * bin_.pixel + channel
            first = read(values, at + y.pixel[bin_.top] * bin_.row, count)
            line = scaled(y.weight[bin_.top], first)
            for k in range(bin_.top + 1, bin_.bottom):
                line = multiply_add(y.weight[k], read(values, at + y.pixel[k] * bin_.row, count), line)
            total = multiply_add(x.weight[m], line, total)
        return total

    return mean


_mean, _mean_of_some = _mean_by(_load_all), _mean_by(load_some)


@inner
def _write(out, to, lanes, past_caches):
    if past_caches:
        stream(out, to, lanes)
    else:
        store(out, to, lanes)


@inner
def _put_between_four(values, bin_, y, x, out, to, first, stop, past_caches):
    """The channels ``first`` to ``stop`` of a bin that is a point between four pixels."""
    upper = bin_.image + y.pixel[bin_.top] * bin_.row
    lower = bin_.image + y.pixel[bin_.top + 1] * bin_.row
    left, right = x.pixel[bin_.left] * bin_.pixel, x.pixel[bin_.left + 1] * bin_.pixel
    near, far = y.weight[bin_.top], y.weight[bin_.top + 1]
    weight_left, weight_right = x.weight[bin_.left], x.weight[bin_.left + 1]
    zero = splat(type(values[0])(0))
    for c in range(first, stop, FIXED_LANES):
        one = scaled(near, load(values, upper + left + c))
        one = multiply_add(far, load(values, lower + left + c), one)
        other = scaled(near, load(values, upper + right + c))
        other = multiply_add(far, load(values, lower + right + c), other)
        total = multiply_add(weight_right, other, multiply_add(weight_left, one, zero))
        _write(out, to + c, total, past_caches)


@inner
def _put_pixel(values, bin_, y, x, out, to, first, stop, past_caches):
    """The channels ``first`` to ``stop`` of a bin that is one pixel."""
    at = bin_.image + y.pixel[bin_.top] * bin_.row + x.pixel[bin_.left] * bin_.pixel
    weight_y, weight_x = y.weight[bin_.top], x.weight[bin_.left]
    zero = splat(type(values[0])(0))
    for c in range(first, stop, FIXED_LANES):
        total = multiply_add(weight_x, scaled(weight_y, load(values, at + c)), zero)
        _write(out, to + c, total, past_caches)


@inner
def _put_bin(values, bin_, y, x, out, to, channels, head, past_caches):
    """The means of all channels; the first ``head`` of them do not fill a cache line of the output."""
    whole = head + (channels - head) // FIXED_LANES * FIXED_LANES
    if bin_.top == bin_.bottom or bin_.left == bin_.right:
        for c in range(channels):
            out[to + c] = 0
        return
    if head:
        store_some(out, to, _mean_of_some(values, bin_, y, x, 0, head), head)
    if bin_.bottom == bin_.top + 1 and bin_.right == bin_.left + 1:
        _put_pixel(values, bin_, y, x, out, to, head, whole, past_caches)
    elif bin_.bottom == bin_.top + 2 and bin_.right == bin_.left + 2:
        _put_between_four(values, bin_, y, x, out, to, head, whole, past_caches)
    else:
        for c in range(head, whole, FIXED_LANES):
            _write(out, to + c, _mean(values, bin_, y, x, c, FIXED_LANES), past_caches)
    if whole < channels:
        rest = channels - whole
        store_some(out, to + whole, _mean_of_some(values, bin_, y, x, whole, rest), rest)


@inner
def _row_of_bins(values, image, row, columns, y, x, target, to, channels):
    """The means of a row of bins: row ``row`` of the table of y, from column ``columns[0]`` of x on."""
    results, address, past_caches = target
    row_step, pixel_step = image[1], channels
    for j in range(columns[0], columns[1]):
        bin_ = _Bin(image[0], row_step, pixel_step, y.at[row], y.at[row + 1], x.at[j], x.at[j + 1])
        head = np.int64(0)
        if past_caches:
            # What does not fill a line shares it with the next bin.
            prefetch_to_write(results, to + channels, 1)
            head = smaller(channels, -(address + to) % FIXED_LANES)
        _put_bin(values, bin_, y, x, results, to, channels, head, past_caches)
        to += channels


@shared(makes_arrays=False)
def _forward_rois(share, data, shapes, plan, table, out, more):
    """The ROIs of one thread: a map (N, H, W, C) and an output (R, H, W, C), flat."""
    order, image_at = plan
    channels, pooled_h, pooled_w = shapes.out_channels, shapes.pooled_h, shapes.pooled_w
    past_caches = out.size * out.itemsize > CACHED_BYTES and out.ctypes.data % out.itemsize == 0
    row_size = shapes.width * channels
    for number in within(share, order.size - image_at[0]):
        place = image_at[0] + number
        r, image = order[place], tables.image_of_place(place, image_at)
        y, x = tables.axes_of(table)
        target = pointer_to(out), out.ctypes.data // out.itemsize, past_caches
        columns = r * (pooled_w + 1), (r + 1) * (pooled_w + 1) - 1
        for i in range(pooled_h):
            to = (r * pooled_h + i) * pooled_w * channels
            pixels = image * shapes.height * row_size, row_size
            row = r * (pooled_h + 1) + i
            _row_of_bins(pointer_to(data), pixels, row, columns, y, x, target, to, channels)


FORWARD = forward_kernel(__name__, tables.build, _forward_rois)


@inner
def _clear(grad, pixels, channels, mine):
    """Set the channels ``mine`` of all pixels to 0."""
    for p in range(0, pixels * channels, channels):
        for c in range(p + mine[0], p + mine[1]):
            grad[c] = 0


def _adder(read, write):
    @inner
    def add(heads, row, channels, x, bins, grad, at, step, y, rows, count):
        """Add what a row of bins gives to ``count`` channels of a column of pixels; ``rows`` are which."""
        total = splat(type(heads[0])(0))
        for k in range(bins[0], bins[1]):
            total = multiply_add(x.weight[k], read(heads, row + x.bin[k] * channels, count), total)
        k = rows[0]
        # Both rows are read before either is written: they are often whole pages apart, and a processor holds
        # back a load that has the last bits of its address in common with a store.
        while k + 1 < rows[1]:
            to, to2 = at + y.pixel[k] * step, at + y.pixel[k + 1] * step
            one, other = read(grad, to, count), read(grad, to2, count)
            write(grad, to, multiply_add(y.weight[k], total, one), count)
            write(grad, to2, multiply_add(y.weight[k + 1], total, other), count)
            k += 2
        if k < rows[1]:
            to = at + y.pixel[k] * step
            write(grad, to, multiply_add(y.weight[k], total, read(grad, to, count)), count)

    return add


@inner
def _store_all(values, at, lanes, count):
    store(values, at, lanes)


_add, _add_some = _adder(_load_all, _store_all), _adder(load_some, store_some)


@inner
def _spread_row(heads, row, y, rows, x, columns, shapes, grad, image, mine):
    """Add what a row of bins, which begins at ``row``, gives to the channels ``mine`` of an image."""
    channels = shapes.out_channels
    low, high, first = x.low[columns], x.high[columns], x.pixel_at[columns]
    for p in range(high - low):
        bins, at = (x.at[first + p], x.at[first + p + 1]), image + (low + p) * channels
        whole, step = mine[1] - (mine[1] - mine[0]) % FIXED_LANES, shapes.width * channels
        for c in range(mine[0], whole, FIXED_LANES):
            _add(heads, row + c, channels, x, bins, grad, at + c, step, y, rows, FIXED_LANES)
        if whole < mine[1]:
            here, rest = row + whole, mine[1] - whole
            _add_some(heads, here, channels, x, bins, grad, at + whole, step, y, rows, rest)


@shared(makes_arrays=False)
def _backward_channels(share, heads, shapes, plan, table, accumulate, grad_data, more):
    """The channels of one thread, which it adds up ROI after ROI; it never adds to what is there."""
    part, parts, _ = share
    order, image_at = plan
    channels, pooled_h = shapes.out_channels, shapes.pooled_h
    blocks, pixels = channel_blocks(channels), shapes.height * shapes.width
    mine = part * blocks // parts * FIXED_LANES, (part + 1) * blocks // parts * FIXED_LANES
    mine = mine[0], smaller(mine[1], channels)
    _clear(pointer_to(grad_data), shapes.images * pixels, channels, mine)
    y, x = tables.rows_and_columns(table)
    for place in range(image_at[0], order.size):
        r, at = order[place], tables.image_of_place(place, image_at) * pixels * channels
        for i in range(pooled_h):
            row, k = (r * pooled_h + i) * shapes.pooled_w * channels, r * (pooled_h + 1) + i
            rows, columns = (y.at[k], y.at[k + 1]), r * shapes.pooled_w
            _spread_row(pointer_to(heads), row, y, rows, x, columns, shapes, pointer_to(grad_data), at, mine)


BACKWARD = backward_kernel(__name__, tables.build_turned, _backward_channels)
