"""Boxes, anchors, and which of them are trained towards what."""

import numpy as np
import pytest
from rcnn import boxes, targets
from rcnn.config import Targets

import roiops as mx
from roiops.models.detections import decode_boxes


def random_boxes(count, generator, size=100):
    corner = generator.uniform(0, size, (count, 2))
    return np.column_stack([corner, corner + generator.uniform(3, 40, (count, 2))])


def test_overlap_by_hand_and_as_the_operator_has_it():
    one, other = np.array([[0, 0, 9, 9.0]]), np.array([[0, 0, 9, 4.0], [10, 0, 19, 9], [5, 5, 14, 14]])
    np.testing.assert_allclose(boxes.iou(one, other), [[0.5, 0, 25 / 175]])
    generator = np.random.default_rng(0)
    a, b = random_boxes(20, generator), random_boxes(30, generator)
    grown = [np.column_stack([each[:, :2], each[:, 2:] + 1]) for each in (a, b)]
    np.testing.assert_allclose(boxes.iou(a, b), mx.nd.contrib.box_iou(*grown).asnumpy(), atol=1e-5)


def test_decoding_undoes_encoding():
    generator = np.random.default_rng(1)
    start, end = random_boxes(50, generator), random_boxes(50, generator)
    np.testing.assert_allclose(decode_boxes(start, boxes.encode(start, end)), end, atol=1e-9)
    several = np.tile(boxes.encode(start, end), (1, 3))
    np.testing.assert_allclose(decode_boxes(start, several)[:, 8:], end, atol=1e-9)
    huge = decode_boxes(start[:1], np.full((1, 4), 1e4))
    assert np.all(np.isfinite(huge))


def test_suppression_keeps_what_is_at_the_threshold():
    both = np.array([[0, 0, 9, 9.0], [0, 0, 9, 4]])
    scores = np.array([0.5, 0.9])
    assert boxes.nms(both, scores, 0.5).tolist() == [1, 0]
    assert boxes.nms(both, scores, 0.49).tolist() == [1]
    assert boxes.nms(np.zeros((0, 4)), np.zeros(0), 0.5).tolist() == []


@pytest.mark.parametrize("stride", [8, 16])
def test_anchors_are_those_of_the_proposal_operator(stride):
    """With zero deltas and rising scores, the operator's proposals are the anchors themselves."""
    scales, ratios, height, width = (2.0, 3.5), (0.5, 1.0, 2.0), 12, 10
    every = boxes.anchors(stride, scales, ratios, height, width)
    count = len(scales) * len(ratios)
    scores = np.random.default_rng(0).permutation(count * height * width).astype(np.float32) + 1
    scores /= scores.max()
    prob = np.zeros((1, 2 * count, height, width), np.float32)
    prob[0, count:] = scores.reshape(height, width, count).transpose(2, 0, 1)
    rois = mx.nd.contrib.MultiProposal(
        prob,
        np.zeros((1, 4 * count, height, width), np.float32),
        np.array([[height * stride, width * stride, 1]], np.float32),
        feature_stride=stride,
        scales=scales,
        ratios=ratios,
        rpn_pre_nms_top_n=len(every),
        rpn_post_nms_top_n=len(every),
        threshold=1.0,
        rpn_min_size=0,
    ).asnumpy()
    expected = boxes.clip(every[np.argsort(-scores)], height * stride, width * stride)
    np.testing.assert_allclose(rois[:, 1:], expected, atol=1e-4)


def anchor_labels(load_config, truth, seed=0, **overrides):
    config = load_config("shapes_faster_rcnn", *(f"{key}={value}" for key, value in overrides.items()))
    map_size, image = (8, 12), (64, 96)
    generator = np.random.default_rng(seed)
    label, target, weight = targets.anchor_targets(config, 8, map_size, image, truth, generator)
    every = boxes.anchors(8, config.anchors.scales, config.anchors.ratios, *map_size)
    # Back to one row for each anchor, in the anchors' order.
    count = len(every) // 96
    label = label.reshape(count, 8, 12).transpose(1, 2, 0).reshape(-1)
    rows = (a.reshape(count, 4, 8, 12).transpose(2, 3, 0, 1).reshape(-1, 4) for a in (target, weight))
    return config, every, label, *rows


def test_anchors_lead_to_their_objects(load_config):
    truth = np.array([[10, 12, 45, 47.0], [60, 5, 90, 40]])
    config, every, label, target, weight = anchor_labels(load_config, truth)
    overlap = boxes.iou(every, truth)
    positive = label == 1
    assert positive.sum() > 3
    assert np.all(overlap[label == 0].max(axis=1) < config.targets.anchor_negative_iou)
    assert (label >= 0).sum() == config.targets.anchors_per_image
    np.testing.assert_array_equal(weight.any(axis=1), positive)
    reached = decode_boxes(every[positive], target[positive].astype(np.float64))
    np.testing.assert_allclose(reached, truth[overlap[positive].argmax(axis=1)], atol=1e-3)


def test_a_small_object_still_has_an_anchor(load_config):
    _, every, label, _, _ = anchor_labels(load_config, np.array([[40, 30, 45, 35.0]]))
    assert boxes.iou(every, np.array([[40, 30, 45, 35.0]])).max() < 0.3
    assert (label == 1).sum() >= 1


def test_an_image_without_objects_has_background_only(load_config):
    _, _, label, _, weight = anchor_labels(load_config, np.zeros((0, 4)))
    assert set(label) == {-1, 0}
    assert not weight.any()


def test_anchors_beyond_the_border_are_not_trained(load_config):
    _, every, label, _, _ = anchor_labels(load_config, np.zeros((0, 4)), **{"anchors.allowed_border": 0.0})
    outside = (every[:, 0] < 0) | (every[:, 1] < 0) | (every[:, 2] >= 96) | (every[:, 3] >= 64)
    assert np.all(label[outside] == -1)


SETTINGS = Targets(rois_per_image=16, roi_foreground=0.25, roi_positive_iou=0.5)


def sample(candidates, truth, count=16, num_boxes=4, seed=0):
    generator = np.random.default_rng(seed)
    truth = np.asarray(truth, np.float64).reshape(-1, 5)
    return targets.sample_rois(np.asarray(candidates, float), truth, count, SETTINGS, num_boxes, generator)


def test_regions_are_drawn_in_proportion():
    truth = [[10, 10, 39, 39, 2], [50, 50, 79, 79, 3]]
    generator = np.random.default_rng(3)
    near = [[10 + dx, 10, 39 + dx, 39] for dx in range(8)] + [[50, 50 + dy, 79, 79 + dy] for dy in range(8)]
    far = random_boxes(40, generator, 20) + 100
    chosen, label, target, weight = sample(np.concatenate([near, far]), truth)
    assert (label > 0).sum() == 4  # a quarter of sixteen
    for row, number in enumerate(label.astype(int)):
        assert weight[row].reshape(4, 4).any(axis=1).nonzero()[0].tolist() == ([number] if number else [])
        if number:
            deltas = target[row, 4 * number : 4 * number + 4] * np.array(SETTINGS.box_stds)
            reached = decode_boxes(chosen[row : row + 1], deltas[None])
            np.testing.assert_allclose(reached[0], truth[number - 2][:4], atol=1e-3)


def test_class_agnostic_boxes_have_two_places():
    _, label, _, weight = sample([[10, 10, 39, 39]], [[10, 10, 39, 39, 7]], num_boxes=2)
    assert set(label) == {7}
    assert np.all(weight == [[0, 0, 0, 0, 1, 1, 1, 1]])


@pytest.mark.parametrize(
    ("candidates", "truth", "labels"),
    [
        ([[0, 0, 9, 9]], [], {0}),  # no object: all background
        ([[0, 0, 9, 9]], [[0, 0, 9, 9, 5]], {5}),  # no background: objects again
        ([[0, 0, 9, 9], [50, 50, 60, 60]], [[0, 0, 9, 9, 5]], {0, 5}),
    ],
)
def test_too_few_regions_come_again(candidates, truth, labels):
    chosen, label, _, _ = sample(candidates, truth)
    assert len(chosen) == len(label) == 16
    assert set(label) == labels


def test_the_operator_works_image_by_image():
    mx.random.seed(0)
    rois = [[0, 0, 0, 9, 9], [0, 40, 40, 60, 60], [1, 5, 5, 30, 30], [1, 70, 70, 90, 90]]
    rois = np.array(rois, np.float32)
    truth = np.zeros((2, 3, 5), np.float32)
    truth[0, 0] = [0, 0, 10, 10, 1]
    truth[1, 0] = [5, 5, 31, 31, 2]
    out = mx.nd.Custom(
        rois,
        truth,
        op_type="rcnn_proposal_target",
        settings='{"rois_per_image": 6}',
        num_boxes=3,
        batch_images=2,
    )
    images, labels = out[0].asnumpy()[:, 0], out[1].asnumpy()
    assert images.tolist() == [0] * 6 + [1] * 6
    assert set(labels[:6]) == {0, 1}
    assert set(labels[6:]) == {0, 2}
    assert out[2].shape == (12, 12)
