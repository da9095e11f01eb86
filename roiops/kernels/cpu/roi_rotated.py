"""Means over the bins of rotated ROIs. A rotated mean is not separable: each bin is a list of pixels."""

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.pieces import as_rois, pieces
from roiops.kernels.jit import njit, num_threads, parallel, prange

__all__ = ["backward", "forward"]


@njit
def _windows(rois, r, scale, ratio, height, width, pooled_h, pooled_w):
    """The frame of ROI ``r`` and, for each bin on each of its axes, the samples to visit."""
    cosine, sine = geometry.turn(rois[r, 5])
    centre_x, start_x, length_x = geometry.rotated_frame(rois[r, 1], rois[r, 3], scale)
    centre_y, start_y, length_y = geometry.rotated_frame(rois[r, 2], rois[r, 4], scale)
    low_v, high_v, low_u, high_u = geometry.rotated_reach(cosine, sine, centre_x, centre_y, height, width)
    window_v = np.empty((pooled_h, 3), np.int64)
    window_u = np.empty((pooled_w, 3), np.int64)
    for i in range(pooled_h):
        window_v[i, 0], window_v[i, 1], window_v[i, 2] = geometry.rotated_grid(
            start_y, length_y, pooled_h, i, ratio[0], low_v, high_v
        )
    for j in range(pooled_w):
        window_u[j, 0], window_u[j, 1], window_u[j, 2] = geometry.rotated_grid(
            start_x, length_x, pooled_w, j, ratio[1], low_u, high_u
        )
    return cosine, sine, centre_y, centre_x, start_y, length_y, start_x, length_x, window_v, window_u


@njit
def _roi_taps(rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w):
    """``(at, pixel, weight)``: bin ``b`` is the mean of ``pixel[at[b] : at[b + 1]]``, indices in a plane."""
    cosine, sine, centre_y, centre_x, start_y, length_y, start_x, length_x, window_v, window_u = _windows(
        rois, r, scale, ratio, height, width, pooled_h, pooled_w
    )
    samples = (window_v[:, 1] - window_v[:, 0]).sum() * (window_u[:, 1] - window_u[:, 0]).sum()
    at = np.zeros(pooled_h * pooled_w + 1, np.int64)
    pixel = np.empty(4 * samples, np.int64)
    weight = np.empty(4 * samples, rois.dtype)
    still = type(scale)(0)
    count = 0
    for i in range(pooled_h):
        for j in range(pooled_w):
            # As numbers: the product of a huge box's grid is no int64.
            share = type(scale)(1) / (type(scale)(window_v[i, 2]) * type(scale)(window_u[j, 2]))
            for ky in range(window_v[i, 0], window_v[i, 1]):
                v = geometry.position(
                    rules, start_y, length_y, pooled_h, i, ky, window_v[i, 2], height, still
                )
                for kx in range(window_u[j, 0], window_u[j, 1]):
                    u = geometry.position(
                        rules, start_x, length_x, pooled_w, j, kx, window_u[j, 2], width, still
                    )
                    y, x = geometry.rotated_position(u, v, cosine, sine, centre_x, centre_y)
                    valid_y, y0, wy0, y1, wy1 = geometry.taps(rules, y, height)
                    valid_x, x0, wx0, x1, wx1 = geometry.taps(rules, x, width)
                    if not (valid_y and valid_x):
                        continue
                    for side in range(4):
                        row, wy = (y1, wy1) if side > 1 else (y0, wy0)
                        column, wx = (x1, wx1) if side % 2 else (x0, wx0)
                        if wy != 0 and wx != 0:
                            pixel[count], weight[count] = row * width + column, wy * wx * share
                            count += 1
            at[i * pooled_w + j + 1] = count
    return at, pixel, weight


@njit
def _forward_roi(planes, rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w, out):
    images = planes.shape[0]
    n = geometry.image_of(rois, r, images)
    if n < 0:
        out[r] = 0
        return
    at, pixel, weight = _roi_taps(rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w)
    for c in range(planes.shape[1]):
        for b in range(pooled_h * pooled_w):
            total = type(scale)(0)
            for k in range(at[b], at[b + 1]):
                total += weight[k] * planes[n, c, pixel[k]]
            out[r, c, b] = total


@parallel
def _forward(planes, rois, scale, ratio, rules, height, width, pooled_h, pooled_w, out):
    for r in prange(out.shape[0]):
        _forward_roi(planes, rois, np.int64(r), scale, ratio, rules, height, width, pooled_h, pooled_w, out)


@njit
def _scatter_roi(
    grad_out, rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w, first, stop, grad
):
    n = geometry.image_of(rois, r, grad.shape[0])
    if n < 0:
        return
    at, pixel, weight = _roi_taps(rois, r, scale, ratio, rules, height, width, pooled_h, pooled_w)
    for c in range(first, stop):
        for b in range(pooled_h * pooled_w):
            for k in range(at[b], at[b + 1]):
                grad[n, c, pixel[k]] += weight[k] * grad_out[r, c, b]


@parallel
def _backward(
    grad_out, rois, scale, ratio, rules, height, width, pooled_h, pooled_w, accumulate, threads, grad
):  # fmt: skip
    """Each thread has channels of its own."""
    if not accumulate:
        grad[:] = 0
    channels = grad.shape[1]
    for thread in prange(threads):
        part = np.int64(thread)
        first, stop = part * channels // threads, (part + 1) * channels // threads
        if first < stop:
            for r in range(grad_out.shape[0]):
                _scatter_roi(
                    grad_out,
                    rois,
                    r,
                    scale,
                    ratio,
                    rules,
                    height,
                    width,
                    pooled_h,
                    pooled_w,
                    first,
                    stop,
                    grad,
                )


def _flat(array):
    """``(N, C, H, W)`` as ``(N, C, H * W)``."""
    return array.reshape(*array.shape[:2], array.shape[2] * array.shape[3])


def forward(data, rois, scale, ratio, rules, out):
    """Write the means of all bins to ``out``."""
    rois = as_rois(rois, data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    for some, means, _ in pieces([data], [out]):
        planes, bins = _flat(some), _flat(means)
        _forward(planes, rois, scale, ratio, rules, *data.shape[2:], *out.shape[2:], bins)


def backward(grad_out, rois, scale, ratio, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    rois = as_rois(rois, grad_data.dtype)
    scale = geometry.scale_of(rules, scale, rois.dtype)
    for heads, grad, add in pieces([grad_out], [grad_data], accumulate):
        bins, planes = _flat(heads), _flat(grad)
        _backward(
            bins,
            rois,
            scale,
            ratio,
            rules,
            *grad_data.shape[2:],
            *grad_out.shape[2:],
            add,
            num_threads(),
            planes,
        )
