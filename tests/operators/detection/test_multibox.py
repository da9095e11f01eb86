"""SSD's operators against plain-loop definitions and values worked out by hand."""

import numpy as np
import pytest

from roiops.errors import ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get


def run(name, arrays, **params):
    return Invocation(get(name).create(params), arrays).forward()


def random_boxes(count, seed, dtype=np.float64):
    random = np.random.default_rng(seed)
    near = random.uniform(0, 0.7, (count, 2))
    return np.concatenate([near, near + random.uniform(0.1, 0.4, (count, 2))], axis=1).astype(dtype)


def overlap(a, b):
    both = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


# Parameters are stored as float32, as in MXNet, whatever the dtype of the data.
TENTH, FIFTH = float(np.float32(0.1)), float(np.float32(0.2))


# MultiBoxPrior


def test_prior_by_hand():
    (boxes,) = run("MultiBoxPrior", [np.zeros((1, 3, 2, 4), np.float32)], sizes=(0.5, 0.25), ratios=(1, 4))
    assert boxes.shape == (1, 2 * 4 * 3, 4)
    # Cell (0, 1) has its centre at (1.5 / 4, 0.5 / 2); widths carry the shape of the map.
    centre = np.array([0.375, 0.25])
    reaches = np.array([[0.125, 0.25], [0.0625, 0.125], [0.25, 0.125]])
    expected = np.concatenate([centre - reaches, centre + reaches], axis=1)
    np.testing.assert_allclose(boxes[0, 3:6], expected, rtol=1e-6)


def test_prior_steps_offsets_and_clipping():
    data = np.zeros((2, 1, 3, 3), np.float64)
    (boxes,) = run(
        "_contrib_MultiBoxPrior", [data], sizes=(0.5,), steps=(0.5, 0.25), offsets=(0, 1), clip=True
    )
    assert boxes.dtype == np.float64
    assert boxes[0, 0].tolist() == [0, 0, 0.5, 0.25]
    assert boxes[0, 8].tolist() == [0.5, 0.75, 1, 1]


def test_prior_errors():
    with pytest.raises(ParamError, match=r"steps must give both step_y and step_x, or neither"):
        run("MultiBoxPrior", [np.zeros((1, 1, 2, 2), np.float32)], steps=(-1, 2))
    with pytest.raises(ParamError, match=r"sizes and ratios must each hold at least one number"):
        run("MultiBoxPrior", [np.zeros((1, 1, 2, 2), np.float32)], sizes=())
    with pytest.raises(ShapeError, match=r"with height and width above 0, got \(1, 1, 0, 2\)"):
        run("MultiBoxPrior", [np.zeros((1, 1, 0, 2), np.float32)])


# MultiBoxTarget


def reference_target(anchors, labels, scores, threshold, ratio, below, ignore):
    """The definition for one image: (location, mask, classes)."""
    objects = labels[: next((i for i, row in enumerate(labels) if row[0] == -1), len(labels))]
    count = len(anchors)
    location, mask, classes = np.zeros((count, 4)), np.zeros((count, 4)), np.full(count, float(ignore))
    if len(objects) == 0:
        return location, mask, classes
    overlaps = np.array([[overlap(a, o[1:5]) for o in objects] for a in anchors])
    owner = {}
    free = overlaps.copy()
    while free.max() > 1e-6:
        anchor, chosen = np.unravel_index(np.argmax(free), free.shape)
        owner[anchor] = chosen
        free[anchor], free[:, chosen] = -1, -1
    for anchor in range(count):
        if threshold > 0 and anchor not in owner and overlaps[anchor].max() > threshold:
            owner[anchor] = int(np.argmax(overlaps[anchor]))
    others = [i for i in range(count) if i not in owner]
    if ratio > 0:
        exp = np.exp(scores - scores.max(axis=0))
        background = exp[0] / exp.sum(axis=0)
        others = sorted((i for i in others if overlaps[i].max() < below), key=lambda i: background[i])
        others = others[: int(len(owner) * ratio)]
    classes[others] = 0
    for anchor, chosen in owner.items():
        label, box = objects[chosen], anchors[anchor]
        classes[anchor], mask[anchor] = label[0] + 1, 1
        size, ref_size = box[2:] - box[:2], label[3:5] - label[1:3]
        shift = (label[1:3] + label[3:5] - box[:2] - box[2:]) / 2 / size
        location[anchor] = np.concatenate([shift / TENTH, np.log(ref_size / size) / FIFTH])
    return location, mask, classes


@pytest.mark.parametrize("mining", [{}, {"negative_mining_ratio": 2.5, "minimum_negative_samples": 14}])
@pytest.mark.parametrize("threshold", [0.5, 0.0])
def test_target_agrees_with_the_definition(threshold, mining):
    random = np.random.default_rng(2)
    anchors = random_boxes(80, 1)
    labels = np.stack([np.column_stack([random.integers(0, 3, 5), random_boxes(5, s)]) for s in range(3)])
    labels[1, 2:] = -1
    labels[2, :] = -1
    scores = random.standard_normal((3, 4, 80))
    outputs = run(
        "MultiBoxTarget",
        [anchors[None], labels, scores],
        overlap_threshold=threshold,
        ignore_label=-2,
        **mining,
    )
    ratio = mining.get("negative_mining_ratio", -1)  # the least number has no effect, as in MXNet
    for image in range(3):
        expected = reference_target(anchors, labels[image], scores[image], threshold, ratio, 0.5, -2)
        for out, value in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(out[image], value.ravel(), rtol=1e-12, atol=1e-12)


def test_objects_contend_for_their_anchors():
    # Both objects overlap anchor 0 most. The better keeps it, and the other takes its next best.
    anchors = np.float32([[0, 0, 0.5, 0.5], [0.1, 0.1, 0.5, 0.6], [0.8, 0.8, 1, 1]])
    labels = np.float32([[[3, 0, 0, 0.5, 0.45], [5, 0, 0, 0.5, 0.5]]])
    _, mask, classes = run("MultiBoxTarget", [anchors[None], labels, np.zeros((1, 6, 3), np.float32)])
    assert classes.tolist() == [[6, 4, 0]]
    assert mask[0, ::4].tolist() == [1, 1, 0]


def test_fewer_candidates_than_negatives_wanted():
    anchors, labels = random_boxes(6, 1)[None], np.column_stack([[1.0], random_boxes(1, 2)])[None]
    _, _, classes = run(
        "MultiBoxTarget", [anchors, labels, np.zeros((1, 2, 6))],
        negative_mining_ratio=100, negative_mining_thresh=1e-9,
    )  # fmt: skip
    assert set(classes.ravel()) <= {-1, 0, 2}


def test_all_negatives_may_be_mined():
    anchors, labels = random_boxes(6, 1)[None], np.column_stack([[1.0], random_boxes(1, 2)])[None]
    given = [anchors, labels, np.zeros((1, 2, 6))]
    wanted = run("MultiBoxTarget", given, negative_mining_ratio=100)
    for found, each in zip(run("MultiBoxTarget", given, negative_mining_ratio=np.inf), wanted, strict=True):
        np.testing.assert_array_equal(found, each)


def test_target_errors():
    anchors, labels, scores = np.zeros((1, 6, 4)), np.zeros((2, 3, 5)), np.zeros((2, 2, 6))
    with pytest.raises(
        ParamError, match=r"negative_mining_thresh must be above 0 where negatives are mined, got 0.0"
    ):
        run("MultiBoxTarget", [anchors, labels, scores], negative_mining_ratio=3, negative_mining_thresh=0)
    with pytest.raises(ShapeError, match=r"label must have 5 columns or more, got shape \(2, 3, 4\)"):
        run("MultiBoxTarget", [anchors, labels[..., :4], scores])
    with pytest.raises(ShapeError, match=r"cls_pred must have shape \(images, classes, 6\), got \(2, 2, 5\)"):
        run("MultiBoxTarget", [anchors, labels, scores[..., :5]])


# MultiBoxDetection


def reference_detection(scores, codes, anchors, threshold, clip, nms, force, most):
    rows = []
    for i, anchor in enumerate(anchors):
        best = int(np.argmax(scores[1:, i])) + 1
        if scores[best, i] < threshold:
            continue
        size, centre = anchor[2:] - anchor[:2], (anchor[:2] + anchor[2:]) / 2
        middle = codes[i, :2] * TENTH * size + centre
        reach = np.exp(codes[i, 2:] * FIFTH) * size / 2
        box = np.concatenate([middle - reach, middle + reach])
        rows.append([best - 1, scores[best, i], *(np.clip(box, 0, 1) if clip else box)])
    rows = np.array(rows)
    order = np.argsort(-rows[:, 1], kind="stable")[: most if most > 0 else None]
    out = rows.copy()
    out[len(order) :, 0] = -1
    out[: len(order)] = rows[order]
    for j in range(len(order)):
        for i in range(j):
            rivals = out[i, 0] >= 0 and (force or out[i, 0] == out[j, 0])
            if rivals and overlap(out[i, 2:], out[j, 2:]) >= nms:
                out[j, 0] = -1
    return out


@pytest.mark.parametrize(("force", "most"), [(False, -1), (True, 25)])
def test_detection_agrees_with_the_definition(force, most):
    random = np.random.default_rng(7)
    scores, codes = random.random((2, 4, 70)), random.standard_normal((2, 280))
    anchors = random_boxes(70, 3)
    (out,) = run(
        "MultiBoxDetection", [scores, codes, anchors[None]],
        threshold=0.5, nms_threshold=0.25, force_suppress=force, nms_topk=most, clip=force,
    )  # fmt: skip
    for image in range(2):
        expected = reference_detection(
            scores[image], codes[image].reshape(70, 4), anchors, 0.5, force, 0.25, force, most
        )
        np.testing.assert_allclose(out[image, : len(expected)], expected, rtol=1e-12)
        assert (out[image, len(expected) :] == -1).all()


def test_a_box_at_the_threshold_is_dropped():
    anchors = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.5]]])
    scores = np.float32([[[0, 0], [0.9, 0.8]]])
    arrays = [scores, np.zeros((1, 8), np.float32), anchors]
    for threshold, second in ((0.5, -1), (0.51, 0)):
        (out,) = run("MultiBoxDetection", arrays, nms_threshold=threshold)
        assert out[0, :, 0].tolist() == [0, second]


def test_scores_that_are_not_numbers_are_no_detections():
    scores = np.full((1, 3, 4), np.nan, np.float32)
    arrays = [scores, np.zeros((1, 16), np.float32), random_boxes(4, 0, np.float32)[None]]
    assert (run("MultiBoxDetection", arrays)[0] == -1).all()


def test_float16_and_strides():
    arrays = [np.random.default_rng(0).random((1, 2, 9)), np.zeros((1, 36)), random_boxes(9, 4)[None]]
    half = [a.astype(np.float16) for a in arrays]
    (expected,) = run("MultiBoxDetection", [a.astype(np.float32) for a in half])
    (out,) = run("MultiBoxDetection", [np.asfortranarray(a) for a in half])
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, expected.astype(np.float16))


def test_detection_errors():
    scores, codes, anchors = np.zeros((2, 3, 6)), np.zeros((2, 24)), np.zeros((1, 6, 4))
    with pytest.raises(ShapeError, match=r"loc_pred must have shape \(2, 24\), got \(2, 20\)"):
        run("MultiBoxDetection", [scores, codes[:, :20], anchors])
    with pytest.raises(ShapeError, match=r"anchor must have shape \(1, anchors, 4\), got \(2, 6, 4\)"):
        run("MultiBoxDetection", [scores, codes, np.zeros((2, 6, 4))])


@pytest.mark.parametrize("name", ["MultiBoxPrior", "MultiBoxTarget", "MultiBoxDetection"])
def test_gradients_are_zero(name):
    shapes = {
        "MultiBoxPrior": [(1, 2, 3, 3)],
        "MultiBoxTarget": [(1, 6, 4), (2, 3, 5), (2, 2, 6)],
        "MultiBoxDetection": [(2, 3, 6), (2, 24), (1, 6, 4)],
    }[name]
    invocation = Invocation(get(name).create({}), [np.ones(shape, np.float32) for shape in shapes])
    assert not any(g.any() for g in invocation.backward(invocation.forward()))
