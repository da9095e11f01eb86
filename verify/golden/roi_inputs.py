"""Random inputs for the ROI operators, the same for every peer.

Only ``numpy.random.RandomState`` is used: its streams are frozen across NumPy versions, and
the peers need different ones.
"""

import numpy as np

KINDS = ("inside", "crossing", "outside", "reversed", "zero size", "integers", "ties", "image ties")
MAPS = ((5, 6), (8, 7), (1, 1), (4, 9), (1, 6), (7, 1), (2, 2), (6, 5), (9, 8), (3, 4), (2, 7))
SCALES = (0.5, 1 / 16, 1.0, 0.3)
DYADIC_SCALES = (0.5, 1 / 16, 1.0)
POOLED = ((2, 2), (3, 2), (1, 1), (2, 3), (3, 3), (1, 4), (4, 3))


class RoiInput:
    """One case: the kind of its boxes, the feature map, the boxes and what to pool with."""

    def __init__(self, index, kind, rng):
        self.kind, self.rng = kind, rng
        exact = kind in ("integers", "ties", "image ties")
        scales = DYADIC_SCALES if exact else SCALES
        self.scale = scales[rng.randint(len(scales))]
        self.height, self.width = MAPS[index % len(MAPS)]
        self.images = 1 + rng.randint(3)
        self.pooled = POOLED[index % len(POOLED)]
        self.rois = self.draw_rois(5)

    def draw_rois(self, count):
        """Boxes (batch index, x1, y1, x2, y2) in image coordinates, float32."""
        ends = [self.draw_axis(extent, count) for extent in (self.width, self.height)]
        rois = np.empty((count, 5), np.float32)
        rois[:, 0] = self.rng.randint(self.images, size=count)
        for axis, (start, end) in enumerate(ends):
            rois[:, 1 + axis] = start / self.scale
            rois[:, 3 + axis] = end / self.scale
        if self.kind == "image ties":
            rois[:, 1:] = np.round(rois[:, 1:] * 2) / 2
        return rois

    def draw_axis(self, extent, count):
        """Starts and ends along one axis, in feature pixels."""
        rng, kind = self.rng, self.kind
        if kind == "inside":
            both = np.sort(rng.uniform(0, max(extent - 1, 0.4), (2, count)), axis=0)
        elif kind == "outside":
            side = rng.choice((-1, 1), count)
            start = np.where(side < 0, rng.uniform(-9, -4, count), extent + rng.uniform(1, 5, count))
            both = np.stack([start, start + rng.uniform(0, 3, count)])
            both[:, : count // 2] = np.sort(rng.uniform(0, extent, (2, count // 2)), axis=0)
        else:
            both = np.sort(rng.uniform(-0.4 * extent - 1.5, 1.4 * extent + 1.5, (2, count)), axis=0)
        if kind == "integers":
            both = np.round(both)
        elif kind == "ties":
            both = np.floor(both) + 0.5
        elif kind == "zero size":
            both[1] = both[0]
        elif kind == "reversed":
            flip = rng.uniform(size=count) < 0.7
            both[:, flip] = both[::-1, flip]
        return both

    def distinct(self, channels):
        """A map of distinct small multiples of 1/8: no tie in a maximum, no error in a sum."""
        shape = (self.images, channels, self.height, self.width)
        size = int(np.prod(shape))
        return ((self.rng.permutation(size) - size // 2) / 8).astype(np.float32).reshape(shape)

    def noise(self, channels):
        """A map of noise, for maxima over interpolated values."""
        return self.rng.normal(size=(self.images, channels, self.height, self.width)).astype(np.float32)

    def head_gradient(self, shape):
        return (self.rng.choice((-1, 1), shape) * self.rng.randint(1, 17, shape) / 8).astype(np.float32)

    def pick(self, *choices):
        return choices[self.rng.randint(len(choices))]


def roi_inputs(seed, count=32, kinds=KINDS):
    """``count`` inputs that run through ``kinds``, maps, scales and grids."""
    for index in range(count):
        turn, kind = divmod(index, len(kinds))
        # One further at each turn, so that a kind meets other maps and grids.
        yield RoiInput(index + turn, kinds[kind], np.random.RandomState(seed * 1000 + index))


def wide_input():
    """Widths at which float32 bin edges differ from exact ones for seven bins: ceil(7 * (57 / 7)) is 58."""
    wide = RoiInput(0, "inside", np.random.RandomState(8))
    wide.images, wide.height, wide.width, wide.scale, wide.pooled = 1, 1, 70, 1.0, (1, 7)
    wide.rois = np.array([[0, 1, 0, length, 0] for length in (29, 31, 57, 58, 61, 62)], np.float32)
    return wide


def common_vector():
    """One small worked input: x[k] = (37k mod 101) - 50, four boxes, 2x2 bins, scale 0.5."""
    data = ((37 * np.arange(240) % 101) - 50).astype(np.float32).reshape(2, 4, 5, 6)
    rois = [[0, 1, 1, 9, 7], [1, 3, 2, 14, 12], [0, -6, -4, 3, 3], [1, 7, 7, 3, 3]]
    return data, np.array(rois, np.float32), 0.5, (2, 2)


def common_head_gradient(shape):
    return (1 + np.arange(int(np.prod(shape))) % 5).astype(np.float32).reshape(shape)
