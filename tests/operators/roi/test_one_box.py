"""What a box gives does not depend on how many other boxes and channels are beside it, to the last bit."""

import numpy as np
import pytest

import roiops as mx

CALLS = {
    "ROIAlign": ({"pooled_size": (7, 7)}, 4),
    "ROIAlign/chainer": ({"pooled_size": (7, 7), "dialect": "chainer"}, 3),
    "PSROIAlign": ({"pooled_size": 7, "output_dim": 2}, 98),
    "PSROIPooling": ({"pooled_size": 7, "output_dim": 1}, 49),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_box_alone_and_among_many(name, dtype):
    params, channels = CALLS[name]
    random = np.random.default_rng(5)
    data = random.standard_normal((2, channels, 20, 31)).astype(dtype)
    corner = random.uniform(-20, 250, (40, 2))
    boxes = np.concatenate(
        [random.integers(0, 2, (40, 1)), corner, corner + random.uniform(-5, 300, (40, 2))], 1
    ).astype(dtype)

    def call(rois):
        operator = getattr(mx.nd, name.partition("/")[0])
        return operator(data, rois, spatial_scale=1 / 8, **params).asnumpy()

    together = call(boxes)
    for row in range(len(boxes)):
        assert call(boxes[row : row + 1]).tobytes() == together[row : row + 1].tobytes(), row


# Bins of at most two pixels on an axis are computed another way where channels are few.
POINTS = {
    "crop": ("CropAndResize", {"pooled_size": (9, 28)}),
    "crop of many bins": ("CropAndResize", {"pooled_size": (3, 75), "extrapolation_value": 2.0}),
    "nearest": ("CropAndResize", {"pooled_size": (12, 12), "mode": "nearest"}),
    "one sample": ("ROIAlign", {"pooled_size": (5, 20), "sampling_ratio": 1, "spatial_scale": 1.0}),
    "two samples": ("ROIAlign", {"pooled_size": (2, 3), "sampling_ratio": 2, "spatial_scale": 1.0}),
}


@pytest.mark.parametrize("width", [5, 23, 400])
@pytest.mark.parametrize("name", POINTS)
def test_a_channel_alone_and_among_many(name, width):
    operator, params = POINTS[name]
    random = np.random.default_rng(11)
    data = random.standard_normal((2, 20, 30, width)).astype(np.float32)
    data[0, ::7, 10:14, ::9] = np.inf
    data[1, ::5, 20:22, ::11] = np.nan
    data[:, :, 4:6] = -0.0
    if operator == "ROIAlign":
        corner = random.uniform(-10, [width, 30], (60, 2))
        sides = random.uniform(0, [1.5 * width, 40], (60, 2))
        # Samples at whole positions, each of which reads one pixel, far from the next.
        corner[:20], sides[:20] = corner[:20].round() + 0.5, 24 * (sides[:20] // 24)
        corner[:10] -= 0.5
    else:
        corner, sides = random.uniform(-0.3, 1, (60, 2)), random.uniform(-0.2, 1, (60, 2))
        corner[:10], sides[:10] = 0, 1
    boxes = np.concatenate([random.integers(-1, 2, (60, 1)), corner, corner + sides], 1).astype(np.float32)

    def call(channels):
        return getattr(mx.nd, operator)(np.ascontiguousarray(channels), boxes, **params).asnumpy()

    together = call(data)
    for c in (0, 5, 7, 19):
        alone = call(data[:, c : c + 1])
        assert alone.tobytes() == together[:, c : c + 1].tobytes()
    assert call(data[:, 3:6]).tobytes() == together[:, 3:6].tobytes()
