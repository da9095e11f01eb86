"""The worked vectors of the semantics reference: the corrected form of each operator, as literals."""

import numpy as np
import pytest
from roi_cases import call, gradient

DATA = ((37 * np.arange(240) % 101) - 50).reshape(2, 4, 5, 6).astype(np.float32)
ROIS = np.array([(0, 1, 1, 9, 7), (1, 3, 2, 14, 12), (0, -6, -4, 3, 3), (1, 7, 7, 3, 3)], np.float32)
SIZE = {"pooled_size": (2, 2), "spatial_scale": 0.5}
ONE_MAP = {**SIZE, "output_dim": 1}

# operator, parameters, rows used, values of output channel 0 (one row a ROI), sum of the finite outputs,
# (sum of the gradient, sum of the gradient weighted by index mod 7)
VECTORS = {
    "ROIPooling": (
        "ROIPooling", SIZE, 4,
        "44 37 47 40 40 50 36 9 0 24 0 44 -28 -28 -28 -28", 1067, (165, 492),
    ),
    "PSROIPooling": (
        "PSROIPooling", {**ONE_MAP, "group_size": 2}, 4,
        "-4.22222 1.44444 1.33333 -9.83333 2.75 0 -7.125 2.75 0 0 0 0.75 16 15 14 13",
        45.8472, (36, 104.0833),
    ),
    "PSROIPooling torchvision as released": (
        "PSROIPooling", {**ONE_MAP, "dialect": "torchvision", "as_released": True}, 4,
        "10.25 7.5 3 0.25 -4 -1.66667 -19.6667 50 0 0 0 0.75 0 0 0 0", 46.4167, (36, 100.5833),
    ),
    "ROIAlign sampling 2": (
        "ROIAlign", {**SIZE, "sampling_ratio": 2, "aligned": False}, 4,
        "14.7188 3.5 6.84375 -1.21875 -8.35938 -3.50391 1.48438 1.67188 0 -16.3281 0 -20.1562 "
        "-17 -23.75 -12 -18.75", -244.329, (139, 400.1279),
    ),
    "ROIAlign adaptive": (
        "_contrib_ROIAlign", SIZE, 4,
        "14.7188 3.5 6.84375 -1.21875 -6.27469 -4.01929 2.63156 1.23148 0 -15.75 0 -19.1315 "
        "-17 -23.75 -12 -18.75", -227.731, (145.2222, 417.9116),
    ),
    "ROIAlign aligned sampling 2": (
        "ROIAlign", {**SIZE, "sampling_ratio": 2}, 3,
        "0.421875 -1.32812 8.32812 -1.3125 -1.74609 8.43359 8.92773 -5.15625 0 0 0 -36.2812",
        72.7979, (106, 318.9688),
    ),
    "ROIAlign aligned sampling 2, with a mirrored box": (
        "ROIAlign", {**SIZE, "sampling_ratio": 2}, 4,
        "0.421875 -1.32812 8.32812 -1.3125 -1.74609 8.43359 8.92773 -5.15625 0 0 0 -36.2812 "
        "-12.5 1 -7.25 6.25", -1.20215, (155, 459.9688),
    ),
    "ROIAlign aligned adaptive": (
        "_contrib_ROIAlign", {**SIZE, "aligned": True}, 3,
        "0.421875 -1.32812 8.32812 -1.3125 -0.601467 4.65664 1.69406 -5.10185 0 0 0 -36.6667",
        43.9593, (91.2222, 274.931),
    ),
    "ROIAlign position-sensitive": (
        "_contrib_ROIAlign", {**SIZE, "position_sensitive": True, "sample_ratio": 2}, 4,
        "14.7188 2.5 4.84375 -4.21875 -8.35938 -4.00391 0.484375 0.921875 0 10 0 -1.3584 "
        "-17 -24.75 -14 -21.75", -61.9717, (34.75, 98.7188),
    ),
    "ps_roi_align": (
        "PSROIAlign", {**ONE_MAP, "dialect": "torchvision", "sampling_ratio": 2}, 4,
        "0.421875 -2.32812 6.32812 -4.3125 -1.74609 7.43359 6.92773 -2.83008 0 0 0 17.4326 "
        "-12.5 0 -9.25 3.25", 8.82715, (36, 94.7949),
    ),
    "roi_max_align_2d": (
        "ROIAlign", {**SIZE, "dialect": "chainer", "mode": "max", "sampling_ratio": 2}, 4,
        "41.5 29.5 36.875 22.5 9.3125 1.00781 5.9375 6.6875 -inf -15.3125 -inf 5.9375 "
        "-6.5 -16.625 -4 -14.125", 677.906, (165, 471.8398),
    ),
    "mmcv max": (
        "ROIAlign", {**SIZE, "mode": "max", "aligned": False, "sampling_ratio": 2}, 4,
        "41.5 29.5 36.875 22.5 9.3125 1.00781 5.9375 6.6875 0 0 0 5.9375 -6.5 -16.625 -4 -14.125",
        696.203, (155, 450.2148),
    ),
    "mmcv max aligned": (
        "ROIAlign", {**SIZE, "mode": "max", "sampling_ratio": 2}, 3,
        "21.6875 8.1875 21 16 22.2578 39.875 32 9 0 0 0 -22.5625", 756.469, (106, 332.2461),
    ),
    "ROIAlign mxnet": (
        "ROIAlign", {**SIZE, "dialect": "mxnet"}, 4,
        "15.5 27 18.5 30 31.5 40.75 17.5 2.25 0 24 0 32 0 0 0 0", 984.5, (105.5, 303.75),
    ),
    "PSROIAlign": (
        "PSROIAlign", {**ONE_MAP, "group_size": 2}, 4,
        "13.9531 6.25 -0.390624 -18.6146 -5.96875 0 0 0 0 0 0 9.04167 -7.1 -11.3 -8.1 12.3819",
        -9.84728, (30, 83.8325),
    ),
}  # fmt: skip


def assert_vector(found, expected):
    expected = np.array(expected.split(), float) if isinstance(expected, str) else np.asarray(expected)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=6e-6, atol=3e-6)


@pytest.mark.parametrize("what", VECTORS)
def test_vector(what):
    name, params, rows, values, total, grads = VECTORS[what]
    invocation = call(name, DATA, ROIS[:rows], **params)
    out = invocation.outputs[0]
    assert_vector(out[:, 0], values)
    assert out[np.isfinite(out)].sum() == pytest.approx(total, rel=1e-5, abs=5e-4)
    head = (1 + np.arange(out.size) % 5).reshape(out.shape)
    grad = gradient(invocation, head)[0]
    assert grad.sum() == pytest.approx(grads[0], rel=1e-5)
    assert (grad.ravel() * (np.arange(240) % 7)).sum() == pytest.approx(grads[1], rel=1e-5)


def test_argmax_of_pooling():
    argmax = call("ROIPooling", DATA, ROIS, **SIZE).outputs[1]
    assert argmax.dtype == np.int32
    expected = [8, 16, 19, 27, 8, 11, 27, 29, -1, 2, -1, 8, 28, 28, 28, 28]
    np.testing.assert_array_equal(argmax[:, 0].ravel(), expected)


def test_deformable():
    params = {
        "spatial_scale": 0.5, "output_dim": 1, "group_size": 2, "pooled_size": 2, "part_size": 2,
        "sample_per_part": 2,
    }  # fmt: skip
    name = "_contrib_DeformablePSROIPooling"
    still = call(name, DATA, ROIS, **params, no_trans=True)
    values = (
        "-20.4375 -1.3125 7.03906 -7.37109 -1.79688 12.1562 10.625 10.375 0 0 0 18.0625 "
        "15.45 11.25 14.45 16.168"
    )
    assert_vector(still.outputs[0], values)
    trans = (((np.arange(32) % 9) - 4) / 4).reshape(4, 2, 2, 2).astype(np.float32)
    moved = call(name, DATA, ROIS, trans, **params, trans_std=0.1)
    values = (
        "-28.7625 0.574999 11.9 -11.0653 -7.72313 1.41563 -1.41281 4.39125 0 0 0 23.7 "
        "14.9866 10.6877 13.76 15.8611"
    )
    assert_vector(moved.outputs[0], values)
    head = (1 + np.arange(16) % 5).reshape(4, 1, 2, 2)
    assert gradient(still, head)[0].sum() == pytest.approx(36, rel=1e-5)
    grads = gradient(moved, head)
    assert (grads[0].ravel() * (np.arange(240) % 7)).sum() == pytest.approx(107.7903, rel=1e-5)
    assert_vector(grads[2][0], "8.325 33.3 24.975 25.695 3.5 14 21 9.44125")


def test_rotated():
    rois = np.array([(0, 5, 4, 6, 5, 30), (1, 8, 7, 8, 4, -75)], np.float32)
    out = call("_contrib_RROIAlign", DATA, rois, **SIZE, sampling_ratio=2).outputs[0]
    assert_vector(out[:, 0], "3.28 -4.27 -4.52683 9.85398 -5.50942 -3.06075 -1.83431 -2.68629")
    assert out.sum() == pytest.approx(-29.5903, rel=1e-5)


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ({"mode": "avg"}, "3.1875 4.5625 8.6875 10.0625"),
        ({"mode": "max"}, "4.90625 6.28125 10.40625 11.78125"),
    ],
)
def test_small_map(params, values):
    data = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    rois = np.array([[0, 0.25, 0.25, 3, 3]], np.float32)
    size = {"pooled_size": (2, 2), "spatial_scale": 1, "sampling_ratio": 2}
    assert_vector(call("ROIAlign", data, rois, **size, **params).outputs[0], values)


def test_box_that_leaves_a_small_map():
    data = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    rois = np.array([[0, -4, -4, 8, 8]], np.float32)
    params = {"pooled_size": (2, 2), "spatial_scale": 1, "sampling_ratio": 2, "aligned": False}
    assert_vector(call("ROIAlign", data, rois, **params).outputs[0], "0.875 1.5 3.375 4")
