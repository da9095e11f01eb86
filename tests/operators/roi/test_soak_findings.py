"""What the soak run found in the ROI operators (verify/soak.py), one small case each."""

import re

import numpy as np
import pytest
from roi_cases import call, gradient

from roiops.errors import DataError
from roiops.kernels.cpu.roi import chunks
from roiops.kernels.jit import use_threads


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("name", "params", "argmax"),
    [("ROIPooling", {}, -1), ("ROIAlign", {"sampling_ratio": 2}, None)],
)
def test_ignored_rows_of_strided_data_are_zero(name, params, argmax, dtype):
    """Copies of strided inputs brought their uninitialised rows back."""
    data = np.ones((1, 3, 6, 12), dtype)[..., ::2]
    rois = np.array([[0, 1, 1, 4, 4], [-1, 0, 0, 3, 3], [0, np.nan, 0, 3, 3]], np.float32)
    for _ in range(3):
        done = call(name, data, rois, pooled_size=(2, 2), spatial_scale=1.0, **params)
        assert (done.outputs[0][0] == 1).all()
        assert (done.outputs[0][1:] == 0).all()
        if argmax is not None:
            assert (done.outputs[1][1:] == argmax).all()


def test_rotated_box_of_astronomic_size_is_finite():
    """The product of its sampling grids does not fit an int64."""
    data = np.ones((1, 2, 3, 3), np.float32)
    rois = np.array([[0, -1.0, 0.0, 9e18, 1e30, 2e9]], np.float32)
    out = call("_contrib_RROIAlign", data, rois, pooled_size=(2, 3), spatial_scale=1.0).outputs[0]
    assert np.isfinite(out).all()


@pytest.mark.parametrize("index", [-0.5, 0.0])
def test_no_image_to_read(index):
    """An index of -0.5 truncates to image 0, which a batch without images does not have."""
    data = np.ones((0, 2, 4, 4), np.float32)
    rois = np.array([[index, 0, 0, 3, 3]], np.float32)
    text = f"ROIAlign: rois row 0 has batch index {index}, but data has 0 images"
    with pytest.raises(DataError, match=re.escape(text)):
        call("ROIAlign", data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    rois[0, 0] = -1
    out = call("ROIAlign", data, rois, pooled_size=(2, 2), spatial_scale=1.0).outputs[0]
    assert (out == 0).all()


def test_gradient_of_boxes_on_any_number_of_threads(monkeypatch):
    """A strided map was copied in other parts on two threads than on one, and their sums rounded otherwise."""
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 90_000)
    random = np.random.default_rng(0)
    data = random.normal(size=(1, 9, 64, 128)).astype(np.float32)[..., ::2]
    corner, side = random.uniform(0, 0.7, (20, 2)), random.uniform(0.1, 0.3, (20, 2))
    rois = np.concatenate([np.zeros((20, 1)), corner, corner + side], axis=1).astype(np.float32)
    head, found = random.normal(size=(20, 9, 7, 7)), []
    for threads in (1, 2):
        with use_threads(threads):
            found.append(gradient(call("CropAndResize", data, rois, pooled_size=(7, 7)), head)[1])
    assert found[0].tobytes() == found[1].tobytes()
