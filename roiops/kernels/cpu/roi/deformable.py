"""Means over bins that are each moved by a learned displacement.

Displacements make the tables of the axes a matter of the single bin; within a bin a mean is still separable.
So is its derivative by the displacement, which has the slopes of one axis in place of the weights.

``tests/reference.py`` has the same in plain loops: ``separable`` with ``trans``.
"""

from typing import NamedTuple

import numpy as np

from ... import geometry
from ...jit import inner, num_threads, parallel
from ...shares import within
from ..vector import flat_of, pointer_to, prefetch_to_read
from .chunks import boxes_and_setting, channel_chunks, is_dense

#: How many channels ahead the rows of a bin are fetched: each channel lies in other pages of memory.
AHEAD = 4


class _Taps(NamedTuple):
    """What a bin, or its derivative, reads on one axis: ``count`` pixels and their weights."""

    pixel: np.ndarray
    weight: np.ndarray
    count: int


@inner
def _taps_memory(rules, axis, like):
    """Memory for the :class:`_Taps` of any bin of a box."""
    most = 1 + geometry.taps_bound(rules, axis)
    return np.empty(most, np.int64), np.empty(most, like.dtype)


# What follows takes pointers, and is written out in its callers: to hand an array to a function is to count
# its references, which for each bin took a fifth of the time.


@inner(forceinline=True)
def _mean(rules, axis, i, memory):
    """The mean over bin ``i`` of an axis, in ``memory``."""
    pixel, weight = pointer_to(memory[0]), pointer_to(memory[1])
    return _Taps(pixel, weight, geometry.bin_taps(rules, axis, i, pixel, weight, 0))


@inner(forceinline=True)
def _slope(rules, axis, i, memory):
    """The derivative of that mean by the displacement."""
    pixel, weight = pointer_to(memory[0]), pointer_to(memory[1])
    return _Taps(pixel, weight, geometry.bin_slopes(rules, axis, i, pixel, weight, 0))


class _Maps(NamedTuple):
    """The channels of an image, one after the other: channel ``c`` starts at ``values[start + c * size]``."""

    values: np.ndarray
    start: int
    size: int
    width: int


@inner(forceinline=True)
def _maps_of(data, n, setting):
    size = setting.height * setting.width
    return _Maps(pointer_to(flat_of(data)), n * data.shape[1] * size, size, setting.width)


@inner(forceinline=True)
def _row(maps, channel, y):
    """Where row ``y`` of a channel starts."""
    return maps.start + channel * maps.size + y * maps.width


@inner(forceinline=True)
def _channel(c, maps, y, x, group):
    """The channel that output channel ``c`` reads, once what a bin will read of a later one is asked for."""
    ahead = geometry.channel_of(c + AHEAD, *group)
    for a in range(y.count):
        prefetch_to_read(maps.values, _row(maps, ahead, y.pixel[a]) + x.pixel[0], 1)
    return geometry.channel_of(c, *group)


@inner(forceinline=True)
def _contract(maps, channel, y, x):
    """The mean of a channel over one bin, or a derivative of it."""
    total = type(y.weight[0])(0)
    for a in range(y.count):
        line, row = type(y.weight[0])(0), _row(maps, channel, y.pixel[a])
        for b in range(x.count):
            line += x.weight[b] * maps.values[row + x.pixel[b]]
        total += y.weight[a] * line
    return total


@inner(forceinline=True)
def _spread(maps, channel, y, x, head):
    """Add what one bin gives to a channel."""
    for a in range(y.count):
        row = _row(maps, channel, y.pixel[a])
        for b in range(x.count):
            maps.values[row + x.pixel[b]] += y.weight[a] * x.weight[b] * head


def _each_bin(visit, has_slopes=False):
    """A function that calls ``visit`` for the bins of ROI ``r``, with the output channels of each in a range.

    It returns whether the ROI reads an image. ``visit`` is told the bin, ``(r, class, row, column)``; its
    axes and the :class:`_Taps` on each; its group, as :func:`geometry.channel_of` takes it; the channels; and
    memory for slopes, if it ``has_slopes``. The first of the ``arrays`` has the output's shape.
    """

    @inner
    def each_bin(call, data, rois, r, trans, channels, arrays):
        (rules, setting, deviation, groups), (first, stop) = call, channels
        n = geometry.image_of(rois, r, setting.images)
        if n < 0:
            return False
        of_class = arrays[0].shape[1] // geometry.classes_of(trans)
        box_y, box_x = geometry.box_axes(rules, rois, r, setting)
        for_y, for_x = _taps_memory(rules, box_y, data), _taps_memory(rules, box_x, data)
        for_slopes = for_y, for_x
        if has_slopes:
            for_slopes = _taps_memory(rules, box_y, data), _taps_memory(rules, box_x, data)
        maps = _maps_of(data, n, setting)
        for k in range(first // of_class, (stop - 1) // of_class + 1):
            mine = max(first, k * of_class), min(stop, (k + 1) * of_class)
            for i in range(setting.pooled_h):
                group_y = geometry.group_of(i, setting.pooled_h, groups)
                for j in range(setting.pooled_w):
                    group = group_y, geometry.group_of(j, setting.pooled_w, groups), groups, groups
                    axes = geometry.moved_axes(trans, r, k, i, j, deviation, box_y, box_x)
                    taps = _mean(rules, axes[0], i, for_y), _mean(rules, axes[1], j, for_x)
                    visit(call, maps, (r, k, i, j), axes, taps, group, mine, for_slopes, arrays)
        return True

    return each_bin


@inner(makes_arrays=False, forceinline=True)
def _put_means(call, maps, place, axes, taps, group, channels, memory, arrays):
    (r, _, i, j), (y, x), (out,) = place, taps, arrays
    for c in range(channels[0], channels[1]):
        out[r, c, i, j] = _contract(maps, _channel(c, maps, y, x, group), y, x)


@inner(makes_arrays=False, forceinline=True)
def _add_to_maps(call, maps, place, axes, taps, group, channels, memory, arrays):
    (r, _, i, j), (y, x), (grad_out,) = place, taps, arrays
    for c in range(channels[0], channels[1]):
        _spread(maps, _channel(c, maps, y, x, group), y, x, grad_out[r, c, i, j])


@inner(makes_arrays=False, forceinline=True)
def _add_to_trans(call, maps, place, axes, taps, group, channels, memory, arrays):
    """Add the gradient of what moves a bin."""
    (rules, setting, deviation, _), (r, k, i, j), (y, x) = call, place, axes
    (mean_y, mean_x), (grad_out, grad_trans) = taps, arrays
    slopes_y, slopes_x = _slope(rules, y, i, memory[0]), _slope(rules, x, j, memory[1])
    grad_y = grad_x = grad_out.dtype.type(0)
    for c in range(channels[0], channels[1]):
        channel, head = _channel(c, maps, mean_y, mean_x, group), grad_out[r, c, i, j]
        grad_y += head * _contract(maps, channel, slopes_y, mean_x)
        grad_x += head * _contract(maps, channel, mean_y, slopes_x)
    part_y = geometry.group_of(i, setting.pooled_h, grad_trans.shape[2])
    part_x = geometry.group_of(j, setting.pooled_w, grad_trans.shape[3])
    unit = grad_out.dtype.type(1)
    grad_trans[r, 2 * k, part_y, part_x] += geometry.moved_by(unit, deviation, x.length) * grad_x
    grad_trans[r, 2 * k + 1, part_y, part_x] += geometry.moved_by(unit, deviation, y.length) * grad_y


_means, _gradients = _each_bin(_put_means), _each_bin(_add_to_maps)
_derivatives = _each_bin(_add_to_trans, has_slopes=True)


@parallel
def _forward(share, call, data, rois, trans, out):
    for r in within(share, out.shape[0]):
        if not _means(call, data, rois, np.int64(r), trans, (0, out.shape[1]), (out,)):
            out[r] = 0


@parallel
def _backward_data(share, call, grad_out, rois, trans, threads, grad_data):
    """Each thread has output channels of its own, which read input channels of their own."""
    channels = grad_out.shape[1]
    for thread in within(share, threads):
        part = np.int64(thread)
        mine = part * channels // threads, (part + 1) * channels // threads
        if mine[0] < mine[1]:
            for r in range(grad_out.shape[0]):
                _gradients(call, grad_data, rois, r, trans, mine, (grad_out,))


@parallel
def _backward_trans(share, call, grad_out, data, rois, trans, grad_trans):
    for r in within(share, grad_out.shape[0]):
        _derivatives(call, data, rois, np.int64(r), trans, (0, grad_out.shape[1]), (grad_out, grad_trans))


def _call(rois, trans, how, data, out):
    """The boxes, the displacements, and what kernels are told of how to pool, all in the computing type."""
    rois, setting = boxes_and_setting(how, rois, data, out)
    deviation = geometry.scale_of(how.rules, how.deviation, rois.dtype)
    return rois, np.ascontiguousarray(trans, rois.dtype), (how.rules, setting, deviation, how.groups)


def _by_class(trans, images, results):
    """``(class, trans, images, results)``: all at once if the arrays are dense, else class by class."""
    classes = geometry.classes_of(trans)
    if is_dense(images) and is_dense(results):
        yield slice(None), trans, images, results
        return
    maps, of_class = images.shape[1] // classes, results.shape[1] // classes
    for k in range(classes):
        pair = slice(2 * k, 2 * k + 2)
        moved = np.ascontiguousarray(trans[:, pair])
        yield pair, moved, images[:, k * maps :][:, :maps], results[:, k * of_class :][:, :of_class]


def forward(data, rois, trans, how, out):
    """Write the means of all bins to ``out``; ``trans`` has no channels where nothing moves."""
    rois, trans, call = _call(rois, trans, how, data, out)
    for _, moved, images, results in _by_class(trans, data, out):
        for chunk, means, _ in channel_chunks([images], [results], planes_only=True):
            _forward(call, chunk, rois, moved, means)


def backward_data(grad_out, rois, trans, how, accumulate, grad_data):
    """Write, or add, the gradient of the data."""
    rois, trans, call = _call(rois, trans, how, grad_data, grad_out)
    for _, moved, images, results in _by_class(trans, grad_data, grad_out):
        for head, grad, add in channel_chunks([results], [images], accumulate, planes_only=True):
            if not add:
                grad[:] = 0
            _backward_data(call, head, rois, moved, num_threads(), grad)


def backward_trans(grad_out, data, rois, trans, how, accumulate, grad_trans):
    """Write, or add, the gradient of the displacements."""
    rois, trans, call = _call(rois, trans, how, data, grad_out)
    total = np.zeros(grad_trans.shape, rois.dtype)
    for pair, moved, images, results in _by_class(trans, data, grad_out):
        grad = np.zeros_like(moved)
        for head, chunk, _ in channel_chunks([results, images], [], planes_only=True):
            _backward_trans(call, head, chunk, rois, moved, grad)
        total[:, pair] = grad
    if accumulate:
        grad_trans += total
    else:
        grad_trans[:] = total
