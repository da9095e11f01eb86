"""What a box gives does not depend on how many others are beside it, to the last bit."""

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
