"""Mask targets against ROIAlign and values worked out by hand."""

import numpy as np
import pytest

from roiops.errors import DataError, DTypeError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get


def run(arrays, **params):
    given = {"num_rois": arrays[0].shape[1], "num_classes": 3, "mask_size": (2, 2), **params}
    return Invocation(get("_contrib_mrcnn_mask_target").create(given, "target"), arrays).forward()


def random_inputs():
    random = np.random.default_rng(0)
    near = random.uniform(0, 4, (2, 5, 2))
    rois = np.concatenate([near, near + random.uniform(1, 4, (2, 5, 2))], axis=2).astype(np.float32)
    masks = (random.random((2, 3, 9, 8)) > 0.5).astype(np.float32)
    matches = random.integers(0, 3, (2, 5)).astype(np.float32)
    return [rois, masks, matches, random.integers(0, 3, (2, 5)).astype(np.float32)]


@pytest.mark.parametrize("aligned", [False, True])
def test_each_box_samples_its_mask(aligned):
    rois, masks, matches, classes = random_inputs()
    sampled, chosen = run([rois, masks, matches, classes], aligned=aligned)
    for image in range(2):
        boxes = np.column_stack([matches[image], rois[image]])
        align = get("_contrib_ROIAlign").create(
            {"pooled_size": (2, 2), "spatial_scale": 1.0, "sample_ratio": 2, "aligned": aligned}
        )
        (expected,) = Invocation(align, [masks[image][:, None], boxes]).forward()
        for c in range(3):
            np.testing.assert_array_equal(sampled[image, :, c], expected[:, 0])
            np.testing.assert_array_equal(
                chosen[image, :, c], np.broadcast_to((classes[image] == c)[:, None, None], (5, 2, 2))
            )


def test_by_hand():
    masks = np.zeros((1, 2, 4, 4), np.float32)
    masks[0, 1, :, 2:] = 1  # the right half
    arrays = [np.array([[[0, 0, 4, 4], [0, 0, 4, 4.0]]]), masks, np.array([[1.0, -1]]), np.array([[2.0, 0]])]
    sampled, chosen = run([a.astype(np.float32) for a in arrays], sample_ratio=1)
    # Bins of two pixels; their one sample lies on pixel 1 or 3.
    assert sampled[0, 0, 0].tolist() == [[0, 1], [0, 1]]
    assert not sampled[0, 1].any()  # no mask
    assert chosen[0, :, :, 0, 0].tolist() == [[0, 0, 1], [1, 0, 0]]


def test_no_boxes():
    rois, masks, matches, classes = random_inputs()
    sampled, chosen = run([rois[:, :0], masks, matches[:, :0], classes[:, :0]])
    assert sampled.shape == chosen.shape == (2, 0, 3, 2, 2)


def test_errors():
    rois, masks, matches, classes = random_inputs()
    with pytest.raises(ShapeError, match=r"target: rois must have shape \(2, 4, 4\), got \(2, 5, 4\)"):
        run([rois, masks, matches, classes], num_rois=4)
    with pytest.raises(DTypeError, match=r"gt_masks must be float16, float32 or float64, got uint8"):
        run([rois, masks.astype(np.uint8), matches, classes])
    for bad in (3, np.nan):
        matches[1, 2] = bad
        with pytest.raises(DataError, match=r"matches\[1, 2\] must be a mask, 0 to 2, or negative for none"):
            run([rois, masks, matches, classes])
