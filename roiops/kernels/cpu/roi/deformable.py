"""Means over bins that are each moved by a learned displacement.

Displacements make the tables of the axes a matter of the single bin; within a bin a mean is still separable.
So is its derivative by the displacement, which has the slopes of one axis in place of the weights.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi.pieces import as_rois, is_dense, pieces
from roiops.kernels.jit import inner, num_threads, parallel, prange

__all__ = ["backward_data", "backward_trans", "forward"]


class _Taps(NamedTuple):
    """What a bin, or its derivative, reads on both axes; ``count`` of the pairs are filled."""

    pixel_y: np.ndarray
    weight_y: np.ndarray
    pixel_x: np.ndarray
    weight_x: np.ndarray
    count: np.ndarray  # on either axis


@inner
def _room(rules, y, x, like):
    """Empty :class:`_Taps` for any bin of a box."""
    tall, wide = 1 + geometry.taps_bound(rules, y), 1 + geometry.taps_bound(rules, x)
    return _Taps(
        np.empty(tall, np.int64), np.empty(tall, like.dtype), np.empty(wide, np.int64),
        np.empty(wide, like.dtype), np.empty(2, np.int64),
    )  # fmt: skip


@inner
def _moved(trans, r, k, i, j, deviation, y, x):
    """The axes for bin ``(i, j)`` of ROI ``r`` as class ``k`` moves it; x comes first in ``trans``."""
    if trans.shape[1] == 0:
        return y, x
    row, column = geometry.group_of(i, y.bins, trans.shape[2]), geometry.group_of(j, x.bins, trans.shape[3])
    return (
        geometry.moved_axis(y, geometry.moved_by(trans[r, 2 * k + 1, row, column], deviation, y.length)),
        geometry.moved_axis(x, geometry.moved_by(trans[r, 2 * k, row, column], deviation, x.length)),
    )


@inner
def _fill(rules, y, x, i, j, taps):
    """The means over bin ``(i, j)`` on both axes."""
    taps.count[0] = geometry.bin_taps(rules, y, i, taps.pixel_y, taps.weight_y, 0)
    taps.count[1] = geometry.bin_taps(rules, x, j, taps.pixel_x, taps.weight_x, 0)


@inner
def _channel(c, i, j, setting, groups):
    """The input channel that output channel ``c`` reads in bin ``(i, j)``."""
    group_y = geometry.group_of(i, setting.pooled_h, groups)
    group_x = geometry.group_of(j, setting.pooled_w, groups)
    return geometry.channel_of(c, group_y, group_x, groups, groups)


@inner
def _contract(plane, pixel_y, weight_y, count_y, pixel_x, weight_x, count_x):
    """The mean of a channel over one bin, or a derivative of it."""
    total = type(weight_y[0])(0)
    for a in range(count_y):
        line = type(weight_y[0])(0)
        for b in range(count_x):
            line += weight_x[b] * plane[pixel_y[a], pixel_x[b]]
        total += weight_y[a] * line
    return total


@inner
def _forward_roi(rules, data, rois, r, trans, setting, deviation, groups, out):
    n = geometry.image_of(rois, r, setting.images)
    if n < 0:
        out[r] = 0
        return
    classes = max(1, trans.shape[1] // 2)
    of_class = out.shape[1] // classes
    box_y, box_x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
    taps = _room(rules, box_y, box_x, data)
    for k in range(classes):
        for i in range(setting.pooled_h):
            for j in range(setting.pooled_w):
                y, x = _moved(trans, r, k, i, j, deviation, box_y, box_x)
                _fill(rules, y, x, i, j, taps)
                for c in range(k * of_class, (k + 1) * of_class):
                    out[r, c, i, j] = _contract(
                        data[n, _channel(c, i, j, setting, groups)],
                        taps.pixel_y, taps.weight_y, taps.count[0],
                        taps.pixel_x, taps.weight_x, taps.count[1],
                    )  # fmt: skip


@parallel
def _forward(rules, data, rois, trans, setting, deviation, groups, out):
    for r in prange(out.shape[0]):
        _forward_roi(rules, data, rois, np.int64(r), trans, setting, deviation, groups, out)


@inner
def _scatter_roi(rules, grad_out, rois, r, trans, setting, deviation, groups, channels, grad_data):
    """Add what the output channels ``[first, stop)`` of ROI ``r`` give to the data."""
    first, stop = channels
    n = geometry.image_of(rois, r, setting.images)
    if n < 0:
        return
    classes = max(1, trans.shape[1] // 2)
    of_class = grad_out.shape[1] // classes
    box_y, box_x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
    taps = _room(rules, box_y, box_x, grad_data)
    for k in range(first // of_class, (stop - 1) // of_class + 1):
        for i in range(setting.pooled_h):
            for j in range(setting.pooled_w):
                y, x = _moved(trans, r, k, i, j, deviation, box_y, box_x)
                _fill(rules, y, x, i, j, taps)
                for c in range(max(first, k * of_class), min(stop, (k + 1) * of_class)):
                    plane = grad_data[n, _channel(c, i, j, setting, groups)]
                    for a in range(taps.count[0]):
                        for b in range(taps.count[1]):
                            plane[taps.pixel_y[a], taps.pixel_x[b]] += (
                                taps.weight_y[a] * taps.weight_x[b] * grad_out[r, c, i, j]
                            )


@parallel
def _backward_data(rules, grad_out, rois, trans, setting, deviation, groups, accumulate, threads, grad_data):
    """Each thread has output channels of its own, which read input channels of their own."""
    if not accumulate:
        grad_data[:] = 0
    channels = grad_out.shape[1]
    for thread in prange(threads):
        part = np.int64(thread)
        mine = part * channels // threads, (part + 1) * channels // threads
        if mine[0] < mine[1]:
            for r in range(grad_out.shape[0]):
                _scatter_roi(rules, grad_out, rois, r, trans, setting, deviation, groups, mine, grad_data)


@inner
def _displace_roi(rules, grad_out, data, rois, r, trans, setting, deviation, groups, grad_trans):
    """Add the gradient of ROI ``r``'s displacements."""
    n = geometry.image_of(rois, r, setting.images)
    if n < 0:
        return
    classes = trans.shape[1] // 2
    of_class = grad_out.shape[1] // classes
    box_y, box_x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
    taps, slopes = _room(rules, box_y, box_x, data), _room(rules, box_y, box_x, data)
    unit = data.dtype.type(1)
    for k in range(classes):
        for i in range(setting.pooled_h):
            part_y = geometry.group_of(i, setting.pooled_h, trans.shape[2])
            for j in range(setting.pooled_w):
                part_x = geometry.group_of(j, setting.pooled_w, trans.shape[3])
                y, x = _moved(trans, r, k, i, j, deviation, box_y, box_x)
                _fill(rules, y, x, i, j, taps)
                slopes.count[0] = geometry.bin_slopes(rules, y, i, slopes.pixel_y, slopes.weight_y, 0)
                slopes.count[1] = geometry.bin_slopes(rules, x, j, slopes.pixel_x, slopes.weight_x, 0)
                grad_y = grad_x = data.dtype.type(0)
                for c in range(k * of_class, (k + 1) * of_class):
                    plane = data[n, _channel(c, i, j, setting, groups)]
                    head = grad_out[r, c, i, j]
                    grad_y += head * _contract(
                        plane, slopes.pixel_y, slopes.weight_y, slopes.count[0],
                        taps.pixel_x, taps.weight_x, taps.count[1],
                    )  # fmt: skip
                    grad_x += head * _contract(
                        plane, taps.pixel_y, taps.weight_y, taps.count[0],
                        slopes.pixel_x, slopes.weight_x, slopes.count[1],
                    )  # fmt: skip
                grad_trans[r, 2 * k, part_y, part_x] += geometry.moved_by(unit, deviation, x.length) * grad_x
                grad_trans[r, 2 * k + 1, part_y, part_x] += (
                    geometry.moved_by(unit, deviation, y.length) * grad_y
                )


@parallel
def _backward_trans(rules, grad_out, data, rois, trans, setting, deviation, groups, grad_trans):
    for r in prange(grad_out.shape[0]):
        _displace_roi(rules, grad_out, data, rois, np.int64(r), trans, setting, deviation, groups, grad_trans)


class _Call(NamedTuple):
    """The arguments of a call in the computing type."""

    rois: np.ndarray
    trans: np.ndarray
    setting: geometry.Setting
    deviation: float


def _call(rois, trans, scale, deviation, ratio, rules, data, out):
    rois = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, data.shape, out.shape)
    trans = np.ascontiguousarray(trans, rois.dtype)
    return _Call(rois, trans, setting, geometry.scale_of(rules, deviation, rois.dtype))


def _by_class(trans, images, results):
    """``(class, trans, images, results)``: all at once if the arrays are dense, else class by class."""
    classes = max(1, trans.shape[1] // 2)
    if is_dense(images) and is_dense(results):
        yield slice(None), trans, images, results
        return
    maps, of_class = images.shape[1] // classes, results.shape[1] // classes
    for k in range(classes):
        pair = slice(2 * k, 2 * k + 2)
        moved = np.ascontiguousarray(trans[:, pair])
        yield pair, moved, images[:, k * maps :][:, :maps], results[:, k * of_class :][:, :of_class]


def forward(data, rois, trans, scale, deviation, ratio, groups, rules, out):
    """Write the means of all bins to ``out``; ``trans`` has no channels where nothing moves."""
    call = _call(rois, trans, scale, deviation, ratio, rules, data, out)
    for _, moved, images, results in _by_class(call.trans, data, out):
        for some, means, _ in pieces([images], [results]):
            _forward(rules, some, call.rois, moved, call.setting, call.deviation, groups, means)


def backward_data(grad_out, rois, trans, scale, deviation, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of the data."""
    call = _call(rois, trans, scale, deviation, ratio, rules, grad_data, grad_out)
    for _, moved, images, results in _by_class(call.trans, grad_data, grad_out):
        for head, grad, add in pieces([results], [images], accumulate):
            _backward_data(
                rules, head, call.rois, moved, call.setting, call.deviation, groups, add, num_threads(), grad
            )


def backward_trans(
    grad_out, data, rois, trans, scale, deviation, ratio, groups, rules, accumulate, grad_trans
):
    """Write, or add, the gradient of the displacements."""
    call = _call(rois, trans, scale, deviation, ratio, rules, data, grad_out)
    total = np.zeros(grad_trans.shape, call.rois.dtype)
    for pair, moved, images, results in _by_class(call.trans, data, grad_out):
        grad = np.zeros_like(moved)
        for head, some, _ in pieces([results, images], []):
            _backward_trans(rules, head, some, call.rois, moved, call.setting, call.deviation, groups, grad)
        total[:, pair] = grad
    if accumulate:
        grad_trans += total
    else:
        grad_trans[:] = total
