"""Orders of scores and greedy non-maximum suppression. Neither needs memory beyond the boxes themselves.

``tests/operators/detection/test_box.py`` has the same in plain loops: ``reference_nms``.
"""

import numpy as np

from ...jit import njit

# Kept boxes are compared in runs of this many: long enough for vector instructions, short enough to stop
# soon after the first that suppresses.
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


@njit
def suppress(x1, y1, x2, y2, area, group, threshold, unit, limit, keep):
    """Write the positions of the boxes that survive to ``keep``; returns how many, at most ``limit``.

    Boxes come best first. One is dropped if its IoU with a kept one of the same group exceeds ``threshold``.
    ``unit`` is 1 where boxes include their last pixel, else 0; ``area`` follows the same convention. Where
    the union is not positive (boxes without area) nothing is dropped.
    """
    capacity = min(limit, x1.size)
    kept_x1, kept_y1 = np.empty(capacity, x1.dtype), np.empty(capacity, x1.dtype)
    kept_x2, kept_y2 = np.empty(capacity, x1.dtype), np.empty(capacity, x1.dtype)
    kept_area, kept_group = np.empty(capacity, x1.dtype), np.empty(capacity, group.dtype)
    zero = unit - unit
    count = 0
    for i in range(x1.size):
        if count == capacity:
            break
        dropped = 0
        start = 0
        while start < count and dropped == 0:
            stop = min(start + _RUN, count)
            for k in range(start, stop):
                left = kept_x1[k] if kept_x1[k] > x1[i] else x1[i]
                right = kept_x2[k] if kept_x2[k] < x2[i] else x2[i]
                top = kept_y1[k] if kept_y1[k] > y1[i] else y1[i]
                bottom = kept_y2[k] if kept_y2[k] < y2[i] else y2[i]
                width = right - left + unit
                height = bottom - top + unit
                width = width if width > zero else zero
                height = height if height > zero else zero
                both = width * height
                union = kept_area[k] + area[i] - both
                over = (union > zero) & (both / union > threshold) & (kept_group[k] == group[i])
                dropped |= over
            start = stop
        if dropped == 0:
            kept_x1[count], kept_y1[count], kept_x2[count], kept_y2[count] = x1[i], y1[i], x2[i], y2[i]
            kept_area[count], kept_group[count] = area[i], group[i]
            keep[count] = i
            count += 1
    return count
