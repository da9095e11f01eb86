"""Region proposals from the scores and box displacements of an RPN head.

``tests/operators/detection/test_proposal.py`` has the same in plain loops: ``reference``.
"""

import math
from typing import NamedTuple

import numpy as np

from ...jit import inner, njit
from .nms import best_first, suppress


def base_anchors(scales, ratios, stride):
    """The anchors of one cell, ``(len(ratios) * len(scales), 4)``, ratio by ratio.

    Box sides are rounded as Faster R-CNN rounds them, so that anchors are the published ones.
    """
    scales, ratios = np.asarray(scales, np.float32), np.asarray(ratios, np.float32)
    size = np.float32(stride) * np.float32(stride)
    half = np.float32(0.5)
    unit_width = np.floor(np.sqrt(np.floor(size / ratios)) + half)
    width = unit_width[:, None] * scales
    height = np.floor(width / scales * ratios[:, None] + half) * scales
    centre = half * np.float32(stride - 1)
    reach_x, reach_y = half * (width - np.float32(1)), half * (height - np.float32(1))
    corners = (centre - reach_x, centre - reach_y, centre + reach_x, centre + reach_y)
    return np.stack(corners, axis=-1).reshape(-1, 4)


@inner
def _clipped(x, size):
    """``x`` within ``[0, size - 1]``; NaN becomes 0."""
    last = size - type(size)(1)
    x = last if x > last else x
    return x if x > 0 else type(x)(0)


class Selection(NamedTuple):
    """What :func:`forward` is told of anchors and of what to keep."""

    anchors: np.ndarray  # of one cell
    stride: int
    before: int  # suppression, so many of the best; 0 or less for all
    after: int
    threshold: float
    min_size: float
    corner_deltas: bool  # whether displacements are those of corners


@njit
def decode(scores, deltas, anchors, stride, image, min_size, corner_deltas, boxes, out_scores):
    """Boxes and scores of all anchors of one image, anchors varying fastest, then columns.

    ``image`` is ``(rows, columns, height, width)``: how many cells lie on it, and its size. Boxes that
    cannot be used keep their place with score -1: cells in the padding, boxes under the least size (these
    are also grown by that size) and boxes that are not numbers. Halves are taken in double precision, as
    MXNet does, so that thresholds fall on the same side.
    """
    rows, columns, im_height, im_width = image
    kind = type(im_height)
    half, one = 0.5, 1.0
    height, width = scores.shape[1], scores.shape[2]
    for a in range(anchors.shape[0]):
        for y in range(height):
            for x in range(width):
                i = (y * width + x) * anchors.shape[0] + a
                x1, y1 = anchors[a, 0] + kind(x * stride), anchors[a, 1] + kind(y * stride)
                x2, y2 = anchors[a, 2] + kind(x * stride), anchors[a, 3] + kind(y * stride)
                d0, d1 = deltas[4 * a, y, x], deltas[4 * a + 1, y, x]
                d2, d3 = deltas[4 * a + 2, y, x], deltas[4 * a + 3, y, x]
                if corner_deltas:
                    x1, y1, x2, y2 = x1 + d0, y1 + d1, x2 + d2, y2 + d3
                else:
                    w, h = x2 - x1 + kind(1), y2 - y1 + kind(1)
                    centre_x = d0 * w + kind(x1 + half * (w - one))
                    centre_y = d1 * h + kind(y1 + half * (h - one))
                    w, h = kind(math.exp(d2)) * w, kind(math.exp(d3)) * h
                    x1, x2 = kind(centre_x - half * (w - one)), kind(centre_x + half * (w - one))
                    y1, y2 = kind(centre_y - half * (h - one)), kind(centre_y + half * (h - one))
                score = scores[a, y, x]
                if (
                    y >= rows
                    or x >= columns
                    or score != score
                    or x1 != x1
                    or y1 != y1
                    or x2 != x2
                    or y2 != y2
                ):
                    score = kind(-1)
                x1, x2 = _clipped(x1, im_width), _clipped(x2, im_width)
                y1, y2 = _clipped(y1, im_height), _clipped(y2, im_height)
                if x2 - x1 + kind(1) < min_size or y2 - y1 + kind(1) < min_size:
                    grow = min_size / kind(2)
                    x1, y1, x2, y2 = x1 - grow, y1 - grow, x2 + grow, y2 + grow
                    score = kind(-1)
                boxes[0, i], boxes[1, i], boxes[2, i], boxes[3, i] = x1, y1, x2, y2
                out_scores[i] = score


def cells_of(im_info, stride):
    """How many (rows, columns) of cells lie on each image, as floats: im_info may hold NaN."""
    return np.maximum(np.trunc(im_info[:, :2] / im_info.dtype.type(stride)), 0)


def forward(cls_prob, bbox_pred, im_info, selection: Selection, rois, out_scores):
    """Fill ``rois`` (images * after, 5) and ``out_scores`` (images * after, 1)."""
    anchors, stride, before, after, threshold, min_size, corner_deltas = selection
    kind = cls_prob.dtype.type
    per_cell = anchors.shape[0]
    cells = cls_prob.shape[2] * cls_prob.shape[3]
    total = per_cell * cells
    considered = total if before <= 0 else min(before, total)
    boxes, scores = np.empty((4, total), kind), np.empty(total, kind)
    on_image = cells_of(im_info, stride)
    for image in range(cls_prob.shape[0]):
        rows = slice(image * after, (image + 1) * after)
        rois[rows, 0] = image
        if total == 0:
            rois[rows, 1:] = 0
            out_scores[rows] = -1
            continue
        im_height, im_width, scale = (kind(v) for v in im_info[image])
        extent = int(on_image[image, 0]), int(on_image[image, 1]), im_height, im_width
        probabilities, least = cls_prob[image, per_cell:], kind(min_size * scale)
        cell = anchors.astype(kind)
        decode(probabilities, bbox_pred[image], cell, stride, extent, least, corner_deltas, boxes, scores)
        order = best_first(scores, considered)
        x1, y1, x2, y2 = corners = boxes[:, order]
        area = (x2 - x1 + kind(1)) * (y2 - y1 + kind(1))
        kept = suppress(corners, area, np.zeros_like(area), kind(threshold), kind(1), after)
        # MXNet fills up with the kept rows over again.
        chosen = order[kept[np.arange(after) % kept.size]]
        rois[rows, 1:] = boxes[:, chosen].T
        out_scores[rows, 0] = scores[chosen]
