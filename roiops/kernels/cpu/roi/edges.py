"""The gradient of boxes, where an operator has one, and what lies outside the map.

The mean over a bin is the product of the means over its two axes; its derivative by an edge of the box has
the slopes of one axis (:func:`geometry.edge_slope`) in place of the weights.
"""

from typing import NamedTuple

import numpy as np

from roiops.kernels import geometry
from roiops.kernels.cpu.roi.pieces import as_rois, pieces
from roiops.kernels.jit import inner, njit, parallel, prange
from roiops.kernels.rules import CORNERS_YX_NORMALISED

__all__ = ["backward", "fill_outside"]


class _Weights(NamedTuple):
    """What the pixels ``[span[0], span[1])`` of a bin on one axis weigh, and the derivatives of that."""

    span: np.ndarray
    mean: np.ndarray
    near: np.ndarray
    far: np.ndarray


@inner
def _room(extent, like):
    mean, near, far = (
        np.empty(extent, like.dtype),
        np.empty(extent, like.dtype),
        np.empty(extent, like.dtype),
    )
    return _Weights(np.empty(2, np.int64), mean, near, far)


@inner
def _weigh(rules, axis, i, weights):
    first, stop = geometry.edge_pixels(rules, axis, i)
    weights.span[0], weights.span[1] = first, stop
    for pixel in range(first, stop):
        weights.mean[pixel - first] = geometry.edge_mean(rules, axis, i, pixel)
        weights.near[pixel - first] = geometry.edge_slope(rules, axis, i, False, pixel)
        weights.far[pixel - first] = geometry.edge_slope(rules, axis, i, True, pixel)


@inner
def _edges_of_roi(rules, grad_out, data, rois, r, setting, grad_rois):
    """Add the gradient of the four edges of ROI ``r``."""
    n = geometry.image_of(rois, r, setting.images)
    if n < 0:
        return
    y, x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
    of_y, of_x = _room(setting.height, data), _room(setting.width, data)
    near_y = far_y = near_x = far_x = data.dtype.type(0)
    for i in range(setting.pooled_h):
        _weigh(rules, y, i, of_y)
        for j in range(setting.pooled_w):
            _weigh(rules, x, j, of_x)
            for c in range(data.shape[1]):
                head = grad_out[r, c, i, j]
                for a in range(of_y.span[1] - of_y.span[0]):
                    row = of_y.span[0] + a
                    mean = near = far = data.dtype.type(0)
                    for b in range(of_x.span[1] - of_x.span[0]):
                        value = data[n, c, row, of_x.span[0] + b]
                        mean += of_x.mean[b] * value
                        near += of_x.near[b] * value
                        far += of_x.far[b] * value
                    near_y += head * of_y.near[a] * mean
                    far_y += head * of_y.far[a] * mean
                    near_x += head * of_y.mean[a] * near
                    far_x += head * of_y.mean[a] * far
    scale_y = geometry.edge_scale(rules, setting.scale, setting.height)
    scale_x = geometry.edge_scale(rules, setting.scale, setting.width)
    column = 1 if rules.boxes == CORNERS_YX_NORMALISED else 2
    grad_rois[r, column] += near_y * scale_y
    grad_rois[r, column + 2] += far_y * scale_y
    column = 3 - column
    grad_rois[r, column] += near_x * scale_x
    grad_rois[r, column + 2] += far_x * scale_x


@parallel
def _edges(rules, grad_out, data, rois, setting, grad_rois):
    for r in prange(grad_out.shape[0]):
        _edges_of_roi(rules, grad_out, data, rois, np.int64(r), setting, grad_rois)


def backward(grad_out, data, rois, scale, rules, accumulate, grad_rois):
    """Write, or add, the gradient of the boxes; the image index has none."""
    boxes = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, (0, 0), boxes.dtype, data.shape, grad_out.shape)
    total = np.zeros(boxes.shape, boxes.dtype)
    for head, some, _ in pieces([grad_out, data], []):
        _edges(rules, head, some, boxes, setting, total)
    if accumulate:
        grad_rois += total
    else:
        grad_rois[...] = total


@njit
def _outside(rules, rois, setting, mask):
    """Mark the bins whose point lies outside the map."""
    for r in range(rois.shape[0]):
        if geometry.image_of(rois, r, setting.images) < 0:
            continue
        y, x = geometry.y_axis(rules, rois, r, setting), geometry.x_axis(rules, rois, r, setting)
        for i in range(setting.pooled_h):
            valid_y = geometry.sample(rules, y, i, 0, 1)[0]
            for j in range(setting.pooled_w):
                mask[r, i, j] = not (valid_y and geometry.sample(rules, x, j, 0, 1)[0])


def fill_outside(value, shape, rois, rules, out):
    """Set the bins whose point lies outside the maps, of ``shape``, to ``value``."""
    boxes = as_rois(rois, out.dtype)
    setting = geometry.setting_of(rules, 1.0, (0, 0), boxes.dtype, shape, out.shape)
    mask = np.zeros((out.shape[0], *out.shape[2:]), np.bool_)
    _outside(rules, boxes, setting, mask)
    np.copyto(out, out.dtype.type(value), where=mask[:, None])
