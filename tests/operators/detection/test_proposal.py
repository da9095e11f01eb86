"""Region proposals: hand-derived values, a plain-loop definition, hostile inputs."""

import numpy as np
import pytest

from roiops.errors import DataError, ParamError, ShapeError
from roiops.kernels.cpu.detection import nms, proposal
from roiops.operators.imperative import Invocation
from roiops.registry import get


def run(arrays, name="_contrib_Proposal", **params):
    invocation = Invocation(get(name).create({"output_score": True, **params}), arrays)
    return invocation.forward()


def two_cells(**params):
    cls_prob = np.float32([0.1, 0.2, 0.9, 0.8]).reshape(1, 2, 1, 2)
    arrays = [cls_prob, np.zeros((1, 4, 1, 2), np.float32), np.float32([[16, 32, 1]])]
    return run(arrays, rpn_post_nms_top_n=5, scales=(1,), ratios=(1,), **params)


def random_head(images=1, anchors=12, height=7, width=9, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    cls_prob = random.random((images, 2 * anchors, height, width)).astype(dtype)
    bbox_pred = (random.standard_normal((images, 4 * anchors, height, width)) * 0.3).astype(dtype)
    im_info = np.array([[height * 16 - 5 * i, width * 16 - 20 * i, 1 + i] for i in range(images)], dtype)
    return [cls_prob, bbox_pred, im_info]


def test_anchors_are_the_published_ones():
    anchors = proposal.base_anchors((8.0,), (0.5, 1.0, 2.0), 16)
    assert anchors.tolist() == [[-84, -40, 99, 55], [-56, -56, 71, 71], [-36, -80, 51, 95]]


def test_rows_repeat_when_there_are_too_few():
    rois, scores = two_cells(rpn_min_size=16)
    assert rois.tolist() == [[0, 0, 0, 15, 15], [0, 16, 0, 31, 15]] * 2 + [[0, 0, 0, 15, 15]]
    assert scores.ravel().tolist() == np.float32([0.9, 0.8, 0.9, 0.8, 0.9]).tolist()


def test_small_boxes_grow_and_come_last():
    rois, scores = two_cells(rpn_min_size=17)
    assert rois[:2].tolist() == [[0, -8.5, -8.5, 23.5, 23.5], [0, 7.5, -8.5, 39.5, 23.5]]
    assert scores.ravel().tolist() == [-1] * 5


def reference(cls_prob, bbox_pred, im_info, anchors, stride, before, after, threshold, min_size):
    """The definition for one image, in float64: (boxes, scores) of the kept rows."""
    per_cell = len(anchors)
    height, width = cls_prob.shape[1:]
    rows = []
    for y in range(height):
        for x in range(width):
            for a in range(per_cell):
                x1, y1, x2, y2 = anchors[a] + stride * np.array([x, y, x, y])
                dx, dy, dw, dh = bbox_pred[4 * a : 4 * a + 4, y, x]
                w, h = x2 - x1 + 1, y2 - y1 + 1
                cx, cy = x1 + (w - 1) / 2 + dx * w, y1 + (h - 1) / 2 + dy * h
                w, h = w * np.exp(dw), h * np.exp(dh)
                box = np.array([cx - (w - 1) / 2, cy - (h - 1) / 2, cx + (w - 1) / 2, cy + (h - 1) / 2])
                last = np.array([im_info[1], im_info[0]] * 2) - 1
                box = np.clip(box, 0, last)
                score = cls_prob[per_cell + a, y, x]
                if y >= int(im_info[0] / stride) or x >= int(im_info[1] / stride):
                    score = -1
                least = min_size * im_info[2]
                if (box[2:] - box[:2] + 1 < least).any():
                    box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1
                rows.append((score, box))
    rows.sort(key=lambda row: -row[0])
    kept = []
    for score, box in rows[:before]:
        if len(kept) < after and all(overlap(box, other) <= threshold for _, other in kept):
            kept.append((score, box))
    return kept


def overlap(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + 1
    both = np.prod(np.maximum(sides, 0))
    return both / (np.prod(a[2:] - a[:2] + 1) + np.prod(b[2:] - b[:2] + 1) - both)


@pytest.mark.parametrize("before", [0, 60])
def test_agrees_with_the_definition(before):
    arrays = random_head(images=2, dtype=np.float64)
    rois, scores = run(
        arrays, "_contrib_MultiProposal", rpn_pre_nms_top_n=before, rpn_post_nms_top_n=25, rpn_min_size=20
    )
    anchors = proposal.base_anchors((4.0, 8.0, 16.0, 32.0), (0.5, 1.0, 2.0), 16)
    for image in range(2):
        kept = reference(*(a[image] for a in arrays), anchors, 16, before or None, 25, np.float32(0.7), 20)
        for row in range(25):
            score, box = kept[row % len(kept)]
            assert rois[image * 25 + row, 0] == image
            np.testing.assert_allclose(rois[image * 25 + row, 1:], box, rtol=1e-12, atol=1e-9)
            assert scores[image * 25 + row, 0] == score


def test_corner_deltas_are_added():
    arrays = [np.ones((1, 2, 1, 1), np.float32), np.float32([1, 2, -3, -4]).reshape(1, 4, 1, 1)]
    rois, _ = run(
        [*arrays, np.float32([[16, 16, 1]])],
        rpn_post_nms_top_n=1, scales=(1,), ratios=(1,), iou_loss=True, rpn_min_size=1,
    )  # fmt: skip
    assert rois.tolist() == [[0, 1, 2, 12, 11]]


def test_scores_and_boxes_that_are_not_numbers_come_last():
    arrays = random_head()
    arrays[0][0, 12:, 0] = np.nan
    arrays[1][0, :, 1] = np.nan
    rois, scores = run(arrays, rpn_post_nms_top_n=200, threshold=1.0, rpn_min_size=0)
    assert np.isfinite(rois).all()
    assert np.isfinite(scores).all()
    assert (scores[:12] > 0).all()


def test_huge_displacements_stay_on_the_image():
    arrays = random_head()
    arrays[1][...] = 1e30
    rois, _ = run(arrays, rpn_post_nms_top_n=7, rpn_min_size=0)
    assert (rois[:, 1:] >= 0).all()
    assert (rois[:, 1:] <= [143, 111, 143, 111]).all()


def test_an_empty_map_gives_empty_boxes():
    arrays = [
        np.zeros((1, 24, 0, 5), np.float32),
        np.zeros((1, 48, 0, 5), np.float32),
        np.zeros((1, 3), np.float32),
    ]
    rois, scores = run(arrays, rpn_post_nms_top_n=3)
    assert not rois.any()
    assert scores.tolist() == [[-1]] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_image_of_negative_size_has_no_cells(dtype):
    found = []
    for height in (-1e30, 0):
        arrays = random_head(dtype=dtype)
        arrays[2][:] = height, 48, 1
        found.append(run(arrays, rpn_post_nms_top_n=3))
        assert (found[-1][1] == -1).all()


def test_float16_and_strided_inputs():
    arrays = random_head(dtype=np.float16)
    # Any memory order, and scores that float16 can tell apart.
    arrays[0][...] = np.random.default_rng(3).permutation(arrays[0].size).reshape(arrays[0].shape) / 2048
    wide = [a.astype(np.float32) for a in arrays]
    rois, scores = run([np.asfortranarray(a) for a in arrays], rpn_post_nms_top_n=9)
    assert rois.dtype == np.float16
    expected = run(wide, rpn_post_nms_top_n=9)
    np.testing.assert_array_equal(rois, expected[0].astype(np.float16))
    np.testing.assert_array_equal(scores, expected[1].astype(np.float16))


def test_gradients_are_zero():
    invocation = Invocation(get("_contrib_Proposal").create({}), random_head())
    out = invocation.forward()
    assert len(out) == 1
    assert not any(g.any() for g in invocation.backward([np.ones_like(out[0])]))


def test_the_best_first_are_found_without_sorting_all():
    scores = np.random.default_rng(1).integers(0, 50, 400).astype(np.float32)
    scores[::37] = np.nan
    everything = np.argsort(-scores, kind="stable")
    for count in (0, 1, 17, 388, 389, 395, 400, 1000):
        assert nms.best_first(scores, count).tolist() == everything[:count].tolist()
    assert nms.best_first(scores).tolist() == everything.tolist()


def test_suppression_is_stable_and_keeps_the_threshold_itself():
    boxes = np.float32([[0, 0, 9, 9], [0, 0, 9, 4]]).T.copy()  # overlap one half
    area = (boxes[2] - boxes[0] + 1) * (boxes[3] - boxes[1] + 1)
    for threshold, count in ((0.5, 2), (0.49, 1)):
        found = nms.suppress(boxes, area, np.zeros(2), np.float32(threshold), np.float32(1), 2)
        assert found.tolist() == list(range(count))


def _survivors(boxes, area, group, threshold, unit):
    kept, zero = [], unit - unit
    for i, (x1, y1, x2, y2) in enumerate(boxes.T):
        for k in kept:
            width = min(boxes[2, k], x2) - max(boxes[0, k], x1) + unit
            height = min(boxes[3, k], y2) - max(boxes[1, k], y1) + unit
            both = max(width, zero) * max(height, zero)
            union = area[k] + area[i] - both
            if union > 0 and both / union > threshold and group[k] == group[i]:
                break
        else:
            kept.append(i)
    return kept


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [-0.1, 0.0, 1 / 3, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e-22, 1e18])
def test_suppression_beside_plain_loops(dtype, threshold, scale):
    rng = np.random.default_rng(0)
    near = rng.integers(0, 12, (2, 150))
    boxes = (np.concatenate([near, near + rng.integers(-1, 6, (2, 150))]) * scale).astype(dtype)
    boxes[:, 5], boxes[0, 17] = np.inf, np.inf
    group, unit = rng.integers(0, 2, 150), dtype(scale > 1e-3 and scale < 1e3)
    with np.errstate(all="ignore"):
        area = (boxes[2] - boxes[0] + unit) * (boxes[3] - boxes[1] + unit)
        found = nms.suppress(boxes, area, group, dtype(threshold), unit, 150)
        assert found.tolist() == _survivors(boxes, area, group, dtype(threshold), unit)


def test_errors():
    cls_prob, bbox_pred, im_info = random_head(images=2)
    with pytest.raises(ShapeError, match=r"contrib\.Proposal: cls_prob must hold one image, got 2"):
        run([cls_prob, bbox_pred, im_info])
    with pytest.raises(
        ShapeError, match=r"cls_prob must have shape \(images, 24, height, width\), got \(1, 8, 7, 9\)"
    ):
        run([cls_prob[:1, :8], bbox_pred[:1, :16], im_info[:1]])
    with pytest.raises(
        DataError, match=r"im_info says that image 0 covers 8 x 9 cells .* but cls_prob has 7 x 9"
    ):
        run([cls_prob[:1], bbox_pred[:1], np.float32([[129, 144, 1]])])
    with pytest.raises(DataError, match=r"image 0 covers nan x 9 cells"):
        run([cls_prob[:1], bbox_pred[:1], np.float32([[np.nan, 144, 1]])])
    with pytest.raises(ParamError, match=r"scales and ratios must each hold at least one number"):
        run([cls_prob[:1], bbox_pred[:1], im_info[:1]], scales=())
    with pytest.raises(ParamError, match=r"rpn_post_nms_top_n must be int above 0, got 0"):
        run([cls_prob[:1], bbox_pred[:1], im_info[:1]], rpn_post_nms_top_n=0)
