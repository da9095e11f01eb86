"""Position-sensitive means over bins that are each moved by a learned displacement.

Displacements make the tables of the axes a matter of the single bin; within a bin a mean is still separable.
So is its derivative by the displacement, which has the slopes of one axis in place of the weights.
"""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi.pieces import as_rois, is_dense, pieces
from roiops.kernels.jit import inner, num_threads, parallel, prange

__all__ = ["backward_data", "backward_trans", "forward"]


@inner
def _moved(trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x):
    """How far bin ``(i, j)`` of ROI ``r`` moves for class ``k``: ``(y, x)``; x comes first in ``trans``."""
    if trans.shape[1] == 0:
        return type(length_y)(0), type(length_x)(0)
    y = geometry.group_of(i, pooled_h, trans.shape[2])
    x = geometry.group_of(j, pooled_w, trans.shape[3])
    return (
        geometry.moved_by(trans[r, 2 * k + 1, y, x], deviation, length_y),
        geometry.moved_by(trans[r, 2 * k, y, x], deviation, length_x),
    )


@inner
def _contract(data, n, c, pixel_y, weight_y, count_y, pixel_x, weight_x, count_x):
    """The mean of channel ``c`` over one bin, or a derivative of it."""
    total = data.dtype.type(0)
    for a in range(count_y):
        line = data.dtype.type(0)
        for b in range(count_x):
            line += weight_x[b] * data[n, c, pixel_y[a], pixel_x[b]]
        total += weight_y[a] * line
    return total


@inner
def _forward_roi(data, rois, r, trans, scale, deviation, samples, groups, rules, out):
    images, _, height, width = data.shape
    _, out_channels, pooled_h, pooled_w = out.shape
    n = geometry.image_of(rois, r, images)
    if n < 0:
        out[r] = 0
        return
    classes = max(1, trans.shape[1] // 2)
    of_class = out_channels // classes
    pixel_y, pixel_x = np.empty(2 * samples, np.int64), np.empty(2 * samples, np.int64)
    weight_y, weight_x = np.empty(2 * samples, data.dtype), np.empty(2 * samples, data.dtype)
    start_y, length_y = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
    start_x, length_x = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
    for k in range(classes):
        for i in range(pooled_h):
            group_y = geometry.group_of(i, pooled_h, groups)
            for j in range(pooled_w):
                group_x = geometry.group_of(j, pooled_w, groups)
                moved_y, moved_x = _moved(
                    trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                )
                count_y = geometry.bin_taps(
                    rules, start_y, length_y, pooled_h, i, samples, height, moved_y, pixel_y, weight_y, 0
                )
                count_x = geometry.bin_taps(
                    rules, start_x, length_x, pooled_w, j, samples, width, moved_x, pixel_x, weight_x, 0
                )
                for c in range(k * of_class, (k + 1) * of_class):
                    channel = geometry.channel_of(c, group_y, group_x, groups, groups)
                    out[r, c, i, j] = _contract(
                        data, n, channel, pixel_y, weight_y, count_y, pixel_x, weight_x, count_x
                    )


@parallel
def _forward(data, rois, trans, scale, deviation, samples, groups, rules, out):
    for r in prange(out.shape[0]):
        _forward_roi(data, rois, np.int64(r), trans, scale, deviation, samples, groups, rules, out)


@inner
def _scatter_roi(
    grad_out, rois, r, trans, scale, deviation, samples, groups, rules, first, stop, grad_data
):  # fmt: skip
    """Add what output channels ``first`` to ``stop`` of ROI ``r`` give to the data."""
    images, _, height, width = grad_data.shape
    _, out_channels, pooled_h, pooled_w = grad_out.shape
    n = geometry.image_of(rois, r, images)
    if n < 0:
        return
    classes = max(1, trans.shape[1] // 2)
    of_class = out_channels // classes
    pixel_y, pixel_x = np.empty(2 * samples, np.int64), np.empty(2 * samples, np.int64)
    weight_y, weight_x = np.empty(2 * samples, grad_data.dtype), np.empty(2 * samples, grad_data.dtype)
    start_y, length_y = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
    start_x, length_x = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
    for k in range(first // of_class, (stop - 1) // of_class + 1):
        for i in range(pooled_h):
            group_y = geometry.group_of(i, pooled_h, groups)
            for j in range(pooled_w):
                group_x = geometry.group_of(j, pooled_w, groups)
                moved_y, moved_x = _moved(
                    trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                )
                count_y = geometry.bin_taps(
                    rules, start_y, length_y, pooled_h, i, samples, height, moved_y, pixel_y, weight_y, 0
                )
                count_x = geometry.bin_taps(
                    rules, start_x, length_x, pooled_w, j, samples, width, moved_x, pixel_x, weight_x, 0
                )
                for c in range(max(first, k * of_class), min(stop, (k + 1) * of_class)):
                    channel = geometry.channel_of(c, group_y, group_x, groups, groups)
                    for a in range(count_y):
                        for b in range(count_x):
                            grad_data[n, channel, pixel_y[a], pixel_x[b]] += (
                                weight_y[a] * weight_x[b] * grad_out[r, c, i, j]
                            )


@parallel
def _backward_data(
    grad_out, rois, trans, scale, deviation, samples, groups, rules, accumulate, threads, grad_data
):  # fmt: skip
    """Each thread has output channels of its own, which read input channels of their own."""
    if not accumulate:
        grad_data[:] = 0
    channels = grad_out.shape[1]
    for thread in prange(threads):
        part = np.int64(thread)
        first, stop = part * channels // threads, (part + 1) * channels // threads
        if first < stop:
            for r in range(grad_out.shape[0]):
                _scatter_roi(
                    grad_out, rois, r, trans, scale, deviation, samples, groups, rules, first, stop, grad_data
                )


@inner
def _displace_roi(grad_out, data, rois, r, trans, scale, deviation, samples, groups, rules, grad_trans):
    """Add the gradient of ROI ``r``'s displacements."""
    images, _, height, width = data.shape
    _, out_channels, pooled_h, pooled_w = grad_out.shape
    n = geometry.image_of(rois, r, images)
    if n < 0:
        return
    classes = trans.shape[1] // 2
    of_class = out_channels // classes
    size = 2 * samples
    pixel_y, pixel_x = np.empty(size, np.int64), np.empty(size, np.int64)
    weight_y, weight_x = np.empty(size, data.dtype), np.empty(size, data.dtype)
    along_y, along_x = np.empty(size, np.int64), np.empty(size, np.int64)
    slope_y, slope_x = np.empty(size, data.dtype), np.empty(size, data.dtype)
    start_y, length_y = geometry.frame(rules, rois[r, 2], rois[r, 4], scale)
    start_x, length_x = geometry.frame(rules, rois[r, 1], rois[r, 3], scale)
    unit = data.dtype.type(1)
    for k in range(classes):
        for i in range(pooled_h):
            group_y = geometry.group_of(i, pooled_h, groups)
            part_y = geometry.group_of(i, pooled_h, trans.shape[2])
            for j in range(pooled_w):
                group_x = geometry.group_of(j, pooled_w, groups)
                part_x = geometry.group_of(j, pooled_w, trans.shape[3])
                moved_y, moved_x = _moved(
                    trans, r, k, i, j, pooled_h, pooled_w, deviation, length_y, length_x
                )
                count_y = geometry.bin_taps(
                    rules, start_y, length_y, pooled_h, i, samples, height, moved_y, pixel_y, weight_y, 0
                )
                count_x = geometry.bin_taps(
                    rules, start_x, length_x, pooled_w, j, samples, width, moved_x, pixel_x, weight_x, 0
                )
                slopes_y = geometry.bin_slopes(
                    rules, start_y, length_y, pooled_h, i, samples, height, moved_y, along_y, slope_y, 0
                )
                slopes_x = geometry.bin_slopes(
                    rules, start_x, length_x, pooled_w, j, samples, width, moved_x, along_x, slope_x, 0
                )
                grad_y = grad_x = data.dtype.type(0)
                for c in range(k * of_class, (k + 1) * of_class):
                    channel = geometry.channel_of(c, group_y, group_x, groups, groups)
                    head = grad_out[r, c, i, j]
                    grad_y += head * _contract(
                        data, n, channel, along_y, slope_y, slopes_y, pixel_x, weight_x, count_x
                    )
                    grad_x += head * _contract(
                        data, n, channel, pixel_y, weight_y, count_y, along_x, slope_x, slopes_x
                    )
                grad_trans[r, 2 * k, part_y, part_x] += geometry.moved_by(unit, deviation, length_x) * grad_x
                grad_trans[r, 2 * k + 1, part_y, part_x] += (
                    geometry.moved_by(unit, deviation, length_y) * grad_y
                )


@parallel
def _backward_trans(
    grad_out, data, rois, trans, scale, deviation, samples, groups, rules, grad_trans
):  # fmt: skip
    for r in prange(grad_out.shape[0]):
        _displace_roi(
            grad_out, data, rois, np.int64(r), trans, scale, deviation, samples, groups, rules, grad_trans
        )


def _numbers(rois, trans, scale, deviation, rules, dtype):
    """The same in the computing type for data of ``dtype``."""
    rois = as_rois(rois, dtype)
    trans = np.ascontiguousarray(trans, rois.dtype)
    return rois, trans, *(geometry.scale_of(rules, number, rois.dtype) for number in (scale, deviation))


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


def forward(data, rois, trans, scale, deviation, samples, groups, rules, out):
    """Write the means of all bins to ``out``; ``trans`` has no channels where nothing moves."""
    rois, trans, scale, deviation = _numbers(rois, trans, scale, deviation, rules, data.dtype)
    for _, moved, images, results in _by_class(trans, data, out):
        for some, means, _ in pieces([images], [results]):
            _forward(some, rois, moved, scale, deviation, samples, groups, rules, means)


def backward_data(grad_out, rois, trans, scale, deviation, samples, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of the data."""
    rois, trans, scale, deviation = _numbers(rois, trans, scale, deviation, rules, grad_data.dtype)
    for _, moved, images, results in _by_class(trans, grad_data, grad_out):
        for head, grad, add in pieces([results], [images], accumulate):
            _backward_data(
                head, rois, moved, scale, deviation, samples, groups, rules, add, num_threads(), grad
            )


def backward_trans(
    grad_out, data, rois, trans, scale, deviation, samples, groups, rules, accumulate, grad_trans
):  # fmt: skip
    """Write, or add, the gradient of the displacements."""
    rois, trans, scale, deviation = _numbers(rois, trans, scale, deviation, rules, data.dtype)
    total = np.zeros(grad_trans.shape, rois.dtype)
    for pair, moved, images, results in _by_class(trans, data, grad_out):
        grad = np.zeros_like(moved)
        for head, some, _ in pieces([results, images], []):
            _backward_trans(head, some, rois, moved, scale, deviation, samples, groups, rules, grad)
        total[:, pair] = grad
    if accumulate:
        grad_trans += total
    else:
        grad_trans[:] = total
