"""Boxes: overlaps, codes, matching, and suppression within rows of (class, score, box).

``tests/operators/detection/test_box.py`` has overlaps and suppression in plain loops.
"""

import math
from typing import NamedTuple

import numpy as np

from ... import memory
from ...jit import njit, parallel
from ...shares import within
from .nms import best_first, suppress


def to_corner(boxes):
    """``x y width height`` in the last axis -> ``xmin ymin xmax ymax``."""
    half = boxes[..., 2:] / boxes.dtype.type(2)
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)


def to_center(boxes):
    """``xmin ymin xmax ymax`` in the last axis -> ``x y width height``."""
    near, far = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([(near + far) / boxes.dtype.type(2), far - near], axis=-1)


def _areas(boxes, centre):
    """Areas, 0 for boxes turned inside out, NaN for those that are nowhere."""
    width, height = (boxes[:, 2:] if centre else boxes[:, 2:] - boxes[:, :2]).T
    if centre:
        width = np.where(np.isnan(boxes[:, :2]).any(axis=1), boxes.dtype.type(np.nan), width)
    return np.where((width < 0) | (height < 0), boxes.dtype.type(0), width * height)


@parallel
def _iou(share, lhs, lhs_area, rhs, rhs_area, out):
    for i in within(share, lhs.shape[0]):
        for j in range(rhs.shape[0]):
            left = lhs[i, 0] if lhs[i, 0] > rhs[j, 0] else rhs[j, 0]
            top = lhs[i, 1] if lhs[i, 1] > rhs[j, 1] else rhs[j, 1]
            right = lhs[i, 2] if lhs[i, 2] < rhs[j, 2] else rhs[j, 2]
            bottom = lhs[i, 3] if lhs[i, 3] < rhs[j, 3] else rhs[j, 3]
            if right > left and bottom > top:
                both = (right - left) * (bottom - top)
                out[i, j] = both / (lhs_area[i] + rhs_area[j] - both) if both > 0 else 0
            else:
                out[i, j] = 0


def iou(lhs, rhs, centre, out):
    """Overlaps of all pairs of ``(n, 4)`` and ``(m, 4)`` boxes; no pixel is added to an extent."""
    lhs_area, rhs_area = _areas(lhs, centre), _areas(rhs, centre)
    if centre:
        lhs, rhs = to_corner(lhs), to_corner(rhs)
    _iou(lhs, lhs_area, rhs, rhs_area, out)


@njit
def encode(samples, matches, anchors, refs, means, stds, targets, masks):
    """Regression targets of anchors to the reference boxes they match; both are corners.

    Returns the flat position of the first positive sample whose match is not a row of ``refs``, or -1.
    """
    half = anchors.dtype.type(0.5)
    for b in range(anchors.shape[0]):
        for i in range(anchors.shape[1]):
            positive = samples[b, i] > 0.5
            masks[b, i, :] = 1 if positive else 0
            targets[b, i, :] = 0
            if not positive:
                continue
            if not (matches[b, i] > -1 and matches[b, i] < refs.shape[1]):
                return b * anchors.shape[1] + i
            match = int(matches[b, i])
            for axis in range(2):
                ref_size = refs[b, match, 2 + axis] - refs[b, match, axis]
                size = anchors[b, i, 2 + axis] - anchors[b, i, axis]
                ref_centre = refs[b, match, axis] + ref_size * half
                centre = anchors[b, i, axis] + size * half
                shift, stretch = (ref_centre - centre) / size, math.log(ref_size / size)
                targets[b, i, axis] = (shift - means[axis]) / stds[axis]
                targets[b, i, 2 + axis] = (stretch - means[2 + axis]) / stds[2 + axis]
    return -1


def decode(data, anchors, stds, clip, corner, out):
    """Boxes ``(b, n, 4)``, as corners, from their codes and ``(1, n, 4)`` anchors."""
    kind = data.dtype.type
    half = kind(0.5)
    for axis in range(2):
        centre, size = anchors[..., axis], anchors[..., 2 + axis]
        if corner:
            size = size - centre
            centre = centre + size * half
        middle = data[..., axis] * kind(stds[axis]) * size + centre
        stretch = data[..., 2 + axis] * kind(stds[2 + axis])
        if clip > 0:
            stretch = np.minimum(stretch, kind(clip))
        reach = np.exp(stretch) * size * half
        np.subtract(middle, reach, out=out[..., axis])
        np.add(middle, reach, out=out[..., 2 + axis])


@njit
def _match(order, scores, threshold, ascending, most, rows, columns):
    columns_of = columns.size
    count = 0
    for index in order:
        r, c = index // columns_of, index % columns_of
        if rows[r] != -1 or columns[c] != -1:
            continue
        good = scores[r, c] < threshold if ascending else scores[r, c] > threshold
        if not good:
            return
        rows[r], columns[c] = c, r
        count += 1
        # One more than asked for, as MXNet has it: models were trained with that.
        if most > 0 and count > most:
            return


def bipartite_matching(data, threshold, ascending, most, rows, columns):
    """Match rows to columns of each ``(r, c)`` score matrix, best pair first; -1 where there is no match."""
    rows[...] = -1
    columns[...] = -1
    for batch in range(data.shape[0]):
        scores = data[batch].ravel()
        order = best_first(-scores if ascending else scores)
        _match(order, data[batch], data.dtype.type(threshold), ascending, most, rows[batch], columns[batch])


class Suppression(NamedTuple):
    """What :func:`nms` is told of rows and of what to drop."""

    threshold: float  # overlap above which the lesser of two boxes is dropped
    least_score: float
    most: int  # of the best rows that are looked at; -1 for all
    coord: int  # the first column of the box
    score: int  # column
    class_column: int  # -1 for none
    background: int  # class
    force: bool  # whether boxes of different classes are compared, too
    centre: bool  # whether boxes come as centre and size
    out_centre: bool  # whether they leave so


@njit
def _candidates(rows, score, least_score, class_column, background, places, scores):
    """Write which rows take part, and their scores; returns how many."""
    count = 0
    for i in range(rows.shape[0]):
        places[count], scores[count] = i, rows[i, score]
        is_other = class_column < 0 or rows[i, class_column] != background
        count += rows[i, score] > least_score and is_other
    return count


def nms(data, suppression: Suppression, out, record):
    """Suppression within each ``(n, width)`` of ``data``: survivors first, best first, then rows of -1.

    ``record`` gets the row, counted through all of ``data``, that each output row is, or -1.
    """
    threshold, least_score, most, coord, score, class_column, background, force = suppression[:8]
    centre, out_centre = suppression.centre, suppression.out_centre
    per_batch = data.shape[1]
    if most == 0:
        out[...] = data
        record[...] = np.arange(record.size).reshape(record.shape)
        return
    places, scores = memory.empty((per_batch,), np.int64), memory.empty((per_batch,), data.dtype)
    for batch in range(data.shape[0]):
        rows = data[batch]
        found = _candidates(rows, score, least_score, class_column, background, places, scores)
        order = places[best_first(scores[:found], most)]
        boxes = rows[order, coord : coord + 4]
        area = _areas(boxes, centre)
        corners = (to_corner(boxes) if centre else boxes).T
        group = np.zeros_like(area)
        if class_column >= 0 and not force:
            group = np.trunc(np.nan_to_num(rows[order, class_column]))
        kind = data.dtype.type
        chosen = order[suppress(corners, area, group, kind(threshold), kind(0), order.size)]
        count = chosen.size
        out[batch, :count] = rows[chosen]
        out[batch, count:] = -1
        record[batch, :count] = chosen + batch * per_batch
        record[batch, count:] = -1
        if centre != out_centre:
            kept = out[batch, :count, coord : coord + 4]
            convert = to_center if out_centre else to_corner
            # As in MXNet, boxes whose first coordinate is below 0 are left as they are.
            kept[...] = np.where(kept[:, :1] < 0, kept, convert(kept))


def nms_backward(out_grad, record, in_grad):
    """Hand each output row's gradient to the row it was."""
    in_grad[...] = 0
    per_batch = in_grad.shape[1]
    for batch in range(in_grad.shape[0]):
        kept = np.flatnonzero(record[batch] >= 0)
        in_grad[batch, record[batch, kept] - batch * per_batch] = out_grad[batch, kept]
