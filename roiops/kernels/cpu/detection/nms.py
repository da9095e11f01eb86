"""Orders of scores and greedy non-maximum suppression.

``tests/operators/detection/test_box.py`` has the same in plain loops: ``reference_nms``.
"""

import numpy as np

from ...jit import inner, njit

#: Kept boxes are compared in runs of this many: long enough for vector instructions, short enough to stop
#: soon after the first that suppresses.
_RUN = 32


def best_first(scores, count=-1):
    """The positions of the ``count`` highest scores (-1: all), highest first, equal ones in their order.

    NaN scores come last.
    """
    negated = -scores  # NumPy sorts NaN last
    if count == 0 or scores.size == 0:
        return np.empty(0, np.int64)
    if 0 < count < scores.size:
        # Sort only those that can be among the first.
        cut = np.partition(negated, count - 1)[count - 1]
        if cut == cut:
            within = np.flatnonzero(negated <= cut)
            return within[np.argsort(negated[within], kind="stable")[:count]]
    order = np.argsort(negated, kind="stable")
    return order[:count] if count > 0 else order


@inner(forceinline=True)
def _overlap(one, other, unit):
    """What two boxes have in common, and their union."""
    left = one[0] if one[0] > other[0] else other[0]
    top = one[1] if one[1] > other[1] else other[1]
    right = one[2] if one[2] < other[2] else other[2]
    bottom = one[3] if one[3] < other[3] else other[3]
    width, height = right - left + unit, bottom - top + unit
    both = (width if width > 0 else unit - unit) * (height if height > 0 else unit - unit)
    return both, one[4] + other[4] - both


@inner
def _is_dropped(kept, count, boxes, i, rule):
    """Whether box ``i`` overlaps one of the first kept ones, of its group, too much."""
    threshold, least, unit = rule
    box, group = (boxes[0, i], boxes[1, i], boxes[2, i], boxes[3, i], boxes[4, i]), boxes[5, i]
    # LLVM makes vectors of arrays of one dimension only, and of numbers that cannot be negative.
    x1, y1, x2, y2, area, groups = kept[0], kept[1], kept[2], kept[3], kept[4], kept[5]
    for first in range(0, count, _RUN):
        last, near = min(first + _RUN, count), False
        for k in range(np.uint64(first), np.uint64(last)):
            both, union = _overlap((x1[k], y1[k], x2[k], y2[k], area[k]), box, unit)
            near |= (both >= least * union) & (groups[k] == group)
        for k in range(first, last if near else first):
            both, union = _overlap((x1[k], y1[k], x2[k], y2[k], area[k]), box, unit)
            if union > 0 and both / union > threshold and groups[k] == group:
                return True
    return False


@njit
def _suppress(boxes, rule, kept, keep):
    count = 0
    for i in range(boxes.shape[1]):
        if count == keep.size:
            break
        if not _is_dropped(kept, count, boxes, i, rule):
            kept[:, count] = boxes[:, i]
            keep[count] = i
            count += 1
    return count


def suppress(corners, area, group, threshold, unit, limit):
    """The positions of the boxes that survive, at most ``limit``.

    Boxes come best first, as rows x1, y1, x2, y2. One is dropped if its IoU with a kept one of the same group
    exceeds ``threshold``. ``unit`` is 1 where boxes include their last pixel, else 0; ``area`` follows the
    same convention. Where the union is not positive (boxes without area) nothing is dropped.
    """
    boxes = np.concatenate([corners, [area, group]], dtype=corners.dtype)
    # No quotient, rounded, is more than the threshold where one factor is less than so much of the other.
    least = threshold - abs(threshold) * boxes.dtype.type(1e-6)
    kept = np.empty((len(boxes), min(limit, boxes.shape[1])), boxes.dtype)
    keep = np.empty(kept.shape[1], np.int64)
    return keep[: _suppress(boxes, (threshold, least, unit), kept, keep)]
