"""Orientation channels, turned by the angle of each box.

``tests/reference.py`` has the same in plain loops: ``orientations``.
"""

import numpy as np

from ... import geometry
from ...jit import njit


@njit
def _turn(rois, count, back, bins):
    images = np.int64(2**62)  # whether the image is there does not matter here
    group = np.empty((count, bins.shape[3]), bins.dtype)
    for r in range(bins.shape[0]):
        if geometry.image_of(rois, r, images) < 0:
            continue
        whole, rest = geometry.orientation(rois[r, 5], count)
        far = bins.dtype.type(rest)
        near = bins.dtype.type(1) - far
        for g in range(bins.shape[1]):
            group[:] = bins[r, g]
            for o in range(count):
                one, two = geometry.turned_channel(o, whole, count, back)
                for k in range(bins.shape[3]):
                    bins[r, g, o, k] = near * group[one, k] + far * group[two, k]


def turn(rois, count, back, bins):
    """Replace each orientation of a box by what lies between two of them, or transpose that (``back``)."""
    rois = np.ascontiguousarray(rois, np.float64 if bins.dtype == np.float64 else np.float32)
    groups, area = bins.shape[1] // count, bins.shape[2] * bins.shape[3]
    wide = np.ascontiguousarray(bins, rois.dtype).reshape(bins.shape[0], groups, count, area)
    _turn(rois, count, back, wide)
    if wide.size and not np.shares_memory(wide, bins):
        bins[...] = wide.reshape(bins.shape)
