"""Which map of a pyramid each box reads.

``tests/reference.py`` has the same for one box: ``level_of``.
"""

import numpy as np

from ... import geometry
from ...jit import njit
from .chunks import as_rois


@njit
def _rows_of_levels(rois, levels, rows):
    for r in range(rois.shape[0]):
        level = geometry.level_of(levels, rois, r)
        for k in range(levels.count):
            rows[k, r] = rois[r]
            if k != level:
                rows[k, r, 0] = -1


def rows_of_levels(rois, levels, dtype):
    """``rois`` once for each map, with the rows that read another one marked to be ignored."""
    rois = as_rois(rois, dtype)
    levels = geometry.Levels(*levels)
    rows = np.empty((levels.count, *rois.shape), rois.dtype)
    _rows_of_levels(rois, levels, rows)
    return rows
