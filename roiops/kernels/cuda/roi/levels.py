"""Which map of a pyramid each box reads: a thread takes a box."""

import functools

from ... import geometry
from ..number import computing, kind_of
from ..runtime import cuda, device_of, empty, kernel
from . import tiles
from .average import rois_of


@functools.cache
def levels_kernel():
    @kernel()
    def rows_of_each_level(rois, levels, rows):
        for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
            level = geometry.level_of(levels, rois, r)
            for k in range(levels.count):
                for column in range(rois.shape[1]):
                    rows[k, r, column] = rois[r, column]
                if k != level:
                    rows[k, r, 0] = -1

    return rows_of_each_level


def rows_of_levels(rois, levels, dtype):
    """``rois`` once for each map, with the rows that read another one marked to be ignored."""
    name = kind_of(dtype)
    real = computing(name).real
    rois, levels = rois_of(rois, name), geometry.Levels(*map(real, levels[:4]), levels[4])
    rows = empty((levels.count, *rois.shape), real, device_of(rois))
    tiles.launch_each(levels_kernel(), rois.shape[0], rois, levels, rows)
    return rows
