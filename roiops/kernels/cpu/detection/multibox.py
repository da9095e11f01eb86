"""The three stages of SSD: default boxes, training targets, detections.

``tests/operators/detection/test_multibox.py`` has targets and detections in plain loops.
"""

import math
from typing import NamedTuple

import numpy as np

from ...jit import inner, njit, parallel
from ...shares import within
from .nms import best_first, suppress


def prior(height, width, sizes, ratios, steps, offsets, clip, out):
    """Default boxes of a ``height`` x ``width`` feature map, in fractions of the image."""
    single = np.float32
    if steps[0] <= 0 or steps[1] <= 0:
        steps = single(1) / single(height), single(1) / single(width)
    roots = np.sqrt(np.asarray(ratios, single))
    # Every size with the first ratio, then the first size with the other ratios.
    size = np.concatenate([np.asarray(sizes, single), np.full(roots.size - 1, sizes[0], single)])
    root = np.concatenate([np.full(len(sizes), roots[0], single), roots[1:]])
    reach_x = size * single(height) / single(width) * root / single(2)
    reach_y = size / root / single(2)
    centre_y = ((np.arange(height, dtype=single) + single(offsets[0])) * single(steps[0]))[:, None, None]
    centre_x = ((np.arange(width, dtype=single) + single(offsets[1])) * single(steps[1]))[None, :, None]
    boxes = out.reshape(height, width, size.size, 4)
    boxes[..., 0], boxes[..., 1] = centre_x - reach_x, centre_y - reach_y
    boxes[..., 2], boxes[..., 3] = centre_x + reach_x, centre_y + reach_y
    if clip:
        np.clip(boxes, 0, 1, out=boxes)


@inner
def _overlap(anchor, label):
    zero = anchor[0] - anchor[0]
    right = anchor[2] if anchor[2] < label[3] else label[3]
    left = anchor[0] if anchor[0] > label[1] else label[1]
    bottom = anchor[3] if anchor[3] < label[4] else label[4]
    top = anchor[1] if anchor[1] > label[2] else label[2]
    width = right - left if right > left else zero
    height = bottom - top if bottom > top else zero
    both = width * height
    union = (anchor[2] - anchor[0]) * (anchor[3] - anchor[1])
    union += (label[3] - label[1]) * (label[4] - label[2]) - both
    return zero if union == 0 else both / union


@inner
def _best_object(overlaps, i, count):
    """The object that anchor ``i`` overlaps most, the first of equals: ``(overlap, object)``."""
    best, chosen = overlaps.dtype.type(-1), -1
    for k in range(count):
        if overlaps[k, i] > best:
            best, chosen = overlaps[k, i], k
    return best, chosen


@inner
def _best_anchor(overlaps, k, taken):
    """The free anchor that object ``k`` overlaps most, the first of equals: ``(overlap, anchor)``."""
    best, chosen = overlaps.dtype.type(1e-6), -1
    for i in range(overlaps.shape[1]):
        if overlaps[k, i] > best and taken[i] < 0:
            best, chosen = overlaps[k, i], i
    return best, chosen


@njit
def _assign(anchors, labels, count, threshold, overlaps, matches):
    """The object of each positive anchor in ``matches``, -1 for the others; returns how many are positive."""
    for k in range(count):
        for i in range(anchors.shape[0]):
            overlaps[k, i] = _overlap(anchors[i], labels[k])
    matches[:] = -1
    positive = 0
    # Every object gets an anchor of its own, best pair first. Each object's best free anchor is remembered,
    # so that only those whose anchor was just taken need to look again.
    best, where = np.empty(count, overlaps.dtype), np.empty(count, np.int64)
    open_ = np.ones(count, np.bool_)
    for k in range(count):
        best[k], where[k] = _best_anchor(overlaps, k, matches)
    for _ in range(count):
        winner = -1
        for k in range(count):
            if not open_[k] or where[k] < 0:
                continue
            better = winner < 0 or best[k] > best[winner]
            if better or (best[k] == best[winner] and where[k] < where[winner]):
                winner = k
        if winner < 0:
            break
        open_[winner] = False
        matches[where[winner]] = winner
        positive += 1
        for k in range(count):
            if open_[k] and where[k] == where[winner]:
                best[k], where[k] = _best_anchor(overlaps, k, matches)
    if threshold > 0:
        for i in range(anchors.shape[0]):
            if matches[i] < 0:
                overlap, k = _best_object(overlaps, i, count)
                if k >= 0 and overlap > threshold:
                    matches[i] = k
                    positive += 1
    return positive


@inner
def _background(scores, i):
    """Softmax probability of class 0 at anchor ``i`` of ``(classes, anchors)`` scores."""
    most = scores[0, i]
    for c in range(1, scores.shape[0]):
        most = scores[c, i] if scores[c, i] > most else most
    total = scores.dtype.type(0)
    for c in range(scores.shape[0]):
        total += math.exp(scores[c, i] - most)
    return math.exp(scores[0, i] - most) / total


@njit
def _candidates(scores, overlaps, count, matches, below, probability, where):
    """Anchors that can be mined as negatives and how sure they are of it; returns how many."""
    found = 0
    for i in range(matches.size):
        if matches[i] < 0 and _best_object(overlaps, i, count)[0] < below:
            where[found] = i
            probability[found] = _background(scores, i)
            found += 1
    return found


@njit
def _write(anchors, labels, matches, variances, location, mask, classes):
    """Targets of the positive anchors."""
    half = anchors.dtype.type(0.5)
    for i in range(anchors.shape[0]):
        if matches[i] < 0:
            continue
        label = labels[matches[i]]
        classes[i] = label[0] + 1  # class 0 is the background
        for axis in range(2):
            low, high = anchors[i, axis], anchors[i, 2 + axis]
            size, ref_size = high - low, label[3 + axis] - label[1 + axis]
            centre, ref_centre = (low + high) * half, (label[1 + axis] + label[3 + axis]) * half
            location[4 * i + axis] = (ref_centre - centre) / size / variances[axis]
            location[4 * i + 2 + axis] = math.log(ref_size / size) / variances[2 + axis]
        mask[4 * i : 4 * i + 4] = 1


class Assignment(NamedTuple):
    """What :func:`target` is told of which anchors are trained, and towards what."""

    threshold: float  # overlap from which on an anchor is an object's
    ignore: float  # class of anchors that are not trained
    mining_ratio: float  # negatives for each positive; 0 or less for all
    mining_below: float  # overlap below which an anchor may be a negative
    variances: np.ndarray


def target(anchors, labels, scores, assignment: Assignment, location, mask, classes):
    """Regression targets, their mask and class targets, an image a row.

    Objects are rows (class, corners) up to the first of class -1. An image without any is ignored whole.
    """
    threshold, ignore, mining_ratio, mining_below, variances = assignment
    kind = anchors.dtype.type
    anchors_of = anchors.shape[0]
    location[...], mask[...], classes[...] = 0, 0, kind(ignore)
    variances = np.asarray(variances, kind)
    overlaps = np.empty((labels.shape[1], anchors_of), anchors.dtype)
    matches, where = np.empty(anchors_of, np.int64), np.empty(anchors_of, np.int64)
    probability = np.empty(anchors_of, anchors.dtype)
    for image in range(labels.shape[0]):
        ends = np.flatnonzero(labels[image, :, 0] == -1)
        count = int(ends[0]) if ends.size else labels.shape[1]
        if count == 0:
            continue
        positive = _assign(anchors, labels[image], count, kind(threshold), overlaps, matches)
        if mining_ratio > 0:
            found = _candidates(
                scores[image], overlaps, count, matches, kind(mining_below), probability, where
            )
            wanted = int(min(np.float32(positive) * np.float32(mining_ratio), found)) if positive else 0
            # The least sure of being background come first.
            order = best_first(-probability[:found])[:wanted]
            classes[image, where[order]] = 0
        else:
            classes[image] = 0
        _write(anchors, labels[image], matches, variances, location[image], mask[image], classes[image])


@parallel
def _decode(share, scores, codes, anchors, threshold, clip, variances, out):
    """Rows (class, probability, corners) of one image, class -1 for the background."""
    zero, one, two = scores.dtype.type(0), scores.dtype.type(1), scores.dtype.type(2)
    for i in within(share, anchors.shape[0]):
        score, best = -one, 0
        for c in range(1, scores.shape[0]):
            if scores[c, i] > score:
                score, best = scores[c, i], c
        if score < threshold:
            best = 0
        out[i, 0], out[i, 1] = best - 1, score
        for axis in range(2):
            low, high = anchors[i, axis], anchors[i, 2 + axis]
            size, centre = high - low, (low + high) / two
            middle = codes[4 * i + axis] * variances[axis] * size + centre
            reach = math.exp(codes[4 * i + 2 + axis] * variances[2 + axis]) * size / two
            near, far = middle - reach, middle + reach
            if clip:
                near = zero if near < zero else (one if near > one else near)
                far = zero if far < zero else (one if far > one else far)
            out[i, 2 + axis], out[i, 4 + axis] = near, far


def detection(scores, codes, anchors, threshold, clip, variances, nms_threshold, force, most, out):
    """Detections ``(images, anchors, 6)``: class, probability, corners; class -1 where there is none.

    Best first, with suppressed ones left in place and their class set to -1, as MXNet leaves them.
    """
    kind = scores.dtype.type
    variances = np.asarray(variances, kind)
    rows = np.empty((anchors.shape[0], 6), scores.dtype)
    # A box is dropped at the threshold itself; the kernel drops above its own.
    above = np.nextafter(kind(nms_threshold), kind(-1))
    for image in range(scores.shape[0]):
        _decode(scores[image], codes[image], anchors, kind(threshold), clip, variances, rows)
        found = rows[rows[:, 0] >= 0]
        out[image, : len(found)] = found
        out[image, len(found) :] = -1
        if len(found) == 0 or not 0 < nms_threshold <= 1:
            continue
        order = best_first(found[:, 1])
        if 0 < most < len(found):
            order = order[:most]
            out[image, most : len(found), 0] = -1
        best = found[order]
        x1, y1, x2, y2 = corners = best[:, 2:].T
        group = best[:, 0] * (not force)
        area = (x2 - x1) * (y2 - y1)
        dropped = np.ones(len(order), bool)
        dropped[suppress(corners, area, group, above, kind(0), len(order))] = False
        best[dropped, 0] = -1
        out[image, : len(order)] = best
