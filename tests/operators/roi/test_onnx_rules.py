"""The rules of boxes that the lowerings to ONNX state, beside the kernels', dialect by dialect and to the last bit."""

import numpy as np
import pytest

from roiops.kernels import geometry
from roiops.kernels import rules as r
from roiops.operators.roi.dialects import TABLE
from roiops.operators.roi.onnx import pooling

PIXELS, BINS, SCALE = 13, 3, 0.25


class Arrays:
    """What the rules ask of a graph, on arrays."""

    Abs, Ceil, Floor, Sign, Where = (staticmethod(f) for f in (np.abs, np.ceil, np.floor, np.sign, np.where))
    Max, Min, Range = staticmethod(np.maximum), staticmethod(np.minimum), staticmethod(np.arange)

    @staticmethod
    def cast(x, dtype):
        return np.asarray(x, dtype)

    @staticmethod
    def slice(x, axis, start, stop):
        return np.take(x, range(start, stop), axis)

    @staticmethod
    def unsqueeze(x, *axes):
        return np.expand_dims(x, axes)

    @staticmethod
    def dim(x, axis):
        return x.shape[axis]

    @staticmethod
    def length(count, dtype):
        return dtype(count)

    @staticmethod
    def reduce(kind, x, axes):
        return getattr(np, kind.lower())(x, axis=axes)


def boxes():
    """Edges on halves of pixels, where rounding decides, and others; reversed ones and empty ones among them."""
    random = np.random.default_rng(0)
    halves = random.integers(-40, 160, (60, 4)) / np.float32(2)
    return np.concatenate([halves, random.uniform(-20, 80, (60, 4))]).astype(np.float32)


ROWS = [
    row for row in TABLE.values() if row.rules.boxes == r.CORNERS_XY and row.operator != "MultiScaleROIAlign"
]


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_boxes_bins_and_samples_are_those_of_the_kernels(row, ratio):
    rules, g = row.rules, Arrays
    if ratio == 0 and rules.samples == r.INNER:
        pytest.skip("this rule asks for a number of samples")
    scale = geometry.scale_of(rules, SCALE, np.float32)
    rows = np.insert(boxes(), 0, 0, axis=1)
    data = np.empty((1, 1, PIXELS, PIXELS), np.float32)
    for number in range(2):
        axis = pooling.axis_of_boxes(g, rules, rows, number, data, BINS, ratio, scale)
        low, high, _ = pooling._edges(g, rules, axis)
        sampled = rules.samples in (r.CENTRES, r.INNER, r.UNIT_STEPS)
        places, inside = pooling.positions_of_samples(g, rules, axis) if sampled else (None, None)
        for k, box in enumerate(rows):
            near = 2 - number
            one = geometry.axis_of(rules, box[near], box[near + 2], scale, BINS, ratio, PIXELS)
            assert (axis.start[k, 0], axis.length[k, 0]) == (one.start, one.length)
            # A compiled function hands back Python's floats, but computes in the type that it is given.
            one = geometry.Axis(*map(np.float32, one[:2]), *one[2:5], np.float32(0))
            for i in range(BINS):
                assert (low[k, i], high[k, i]) == tuple(map(np.float32, geometry._edges(rules, one, i)))
                if sampled:
                    there = inside if inside is None else np.broadcast_to(inside, places.shape)[k, i]
                    check_samples(rules, one, i, places[k, i], there)


def check_samples(rules, axis, i, places, inside):
    """Every sample that counts lies where the kernels have it, and there are no others."""
    grid = geometry.bin_grid(rules, axis, i)
    count = grid.count
    for sample, place in enumerate(places):
        if inside is not None and not inside[sample]:
            assert sample >= count or np.isnan(geometry.position(rules, axis, i, sample, count)) or count == 0
        else:
            assert place == geometry.position(rules, axis, i, sample, count)
