"""Whether the rows of ROIs name images that there are."""

import math

import numpy as np

from ...jit import Direct, inner


@inner(makes_arrays=False)
def first_stray(rois, images):
    """The first row that neither names one of the images nor is to be ignored, or -1."""
    for r in range(rois.shape[0]):
        named = rois[r, 0]
        # Truncated, -0.5 is image 0, which there may not be.
        if not ((named < images if images > 0 else named <= -1) and named > -math.inf):
            return r
    return -1


_run = Direct(first_stray)


def find_stray(rois, images) -> int:
    """:func:`first_stray` for boxes of any dtype."""
    if rois.dtype not in (np.float32, np.float64) or not rois.flags.c_contiguous:
        rois = np.ascontiguousarray(rois[:, :1], np.float64)
    return _run(rois.dtype, rois, images)
