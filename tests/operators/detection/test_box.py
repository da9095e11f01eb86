"""Overlaps, suppression, matching and codes of boxes."""

import numpy as np
import pytest

from roiops.errors import DataError, DTypeError, ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get


def call(name, arrays, **params):
    return Invocation(get(name).create(params), arrays)


def run(name, arrays, **params):
    return call(name, arrays, **params).forward()


def random_boxes(count, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    near = random.uniform(0, 0.8, (count, 2))
    return np.concatenate([near, near + random.uniform(0.02, 0.4, (count, 2))], axis=1).astype(dtype)


def overlap(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if (sides <= 0).any():
        return 0.0
    both = np.prod(sides)
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


# box_iou


def test_iou():
    lhs, rhs = random_boxes(6, dtype=np.float64), random_boxes(5, 1, np.float64)
    expected = np.array([[overlap(a, b) for b in rhs] for a in lhs])
    (out,) = run("_contrib_box_iou", [lhs.reshape(2, 3, 4), rhs])
    np.testing.assert_allclose(out.reshape(6, 5), expected, rtol=1e-12)
    centred = [np.concatenate([(b[:, :2] + b[:, 2:]) / 2, b[:, 2:] - b[:, :2]], axis=1) for b in (lhs, rhs)]
    (out,) = run("_contrib_box_iou", centred, format="center")
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


def test_iou_of_boxes_without_area():
    boxes = np.float32([[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
    (out,) = run("_contrib_box_iou", [boxes, np.float32([[-1, -1, 2, 2]])])
    assert out.tolist() == [[0], [0], [0]]
    assert run("_contrib_box_iou", [boxes[:0], boxes])[0].shape == (0, 3)


def test_iou_has_no_gradient():
    invocation = call("_contrib_box_iou", [random_boxes(2), random_boxes(3)])
    out = invocation.forward()
    assert not any(g.any() for g in invocation.backward(out))


# box_nms

ROWS = np.float32(
    [
        [0.5, 0.1, 0.1, 0.2, 0.2],
        [0.4, 0.1, 0.1, 0.2, 0.2],
        [0.3, 0.1, 0.1, 0.14, 0.14],
        [0.6, 0.5, 0.5, 0.7, 0.8],
    ]
)


def nms(rows, **params):
    invocation = call("_contrib_box_nms", [rows], **{"score_index": 0, "coord_start": 1, **params})
    return invocation, invocation.forward()[0]


def test_nms_packs_survivors_first():
    invocation, out = nms(ROWS, overlap_thresh=0.1)
    assert out.tolist() == [ROWS[3].tolist(), ROWS[0].tolist(), [-1] * 5, [-1] * 5]
    assert invocation.outputs[1].ravel().tolist() == [3, 0, -1, -1]
    assert invocation.outputs[1].dtype == np.int64


def test_nms_gradient_goes_back_to_the_rows():
    invocation, _ = nms(ROWS, overlap_thresh=0.1)
    head = np.arange(20, dtype=np.float32).reshape(4, 5) + 1
    (grad,) = invocation.backward([head])
    assert grad[3].tolist() == head[0].tolist()
    assert grad[0].tolist() == head[1].tolist()
    assert not grad[1:3].any()
    (more,) = invocation.backward([head], req="add", in_grad=[np.ones_like(ROWS)])
    np.testing.assert_array_equal(more, grad + 1)
    assert invocation.backward([head], req="null", in_grad=[None]) == [None]


def reference_nms(rows, thresh, least, topk, classes, force):
    """Definition of suppression for rows (class, score, corners)."""
    order = [i for i in np.argsort(-rows[:, 1], kind="stable") if rows[i, 1] > least]
    kept = []
    for i in order[: topk if topk > 0 else None]:
        rivals = [j for j in kept if force or not classes or rows[i, 0] == rows[j, 0]]
        if all(overlap(rows[i, 2:], rows[j, 2:]) <= thresh for j in rivals):
            kept.append(i)
    return kept


@pytest.mark.parametrize("topk", [-1, 30])
@pytest.mark.parametrize(("classes", "force"), [(False, False), (True, False), (True, True)])
def test_nms_agrees_with_the_definition(topk, classes, force):
    random = np.random.default_rng(5)
    rows = np.stack(
        [
            np.concatenate(
                [
                    random.integers(0, 3, (120, 1)),
                    random.integers(0, 40, (120, 1)) / 40,  # ties, to be taken in order
                    random_boxes(120, seed, np.float64),
                ],
                axis=1,
            )
            for seed in range(2)
        ]
    )
    params = {"score_index": 1, "coord_start": 2, "overlap_thresh": 0.4, "valid_thresh": 0.1, "topk": topk}
    invocation, out = nms(rows, id_index=0 if classes else -1, force_suppress=force, **params)
    for batch in range(2):
        kept = reference_nms(rows[batch], np.float32(0.4), np.float32(0.1), topk, classes, force)
        assert out[batch, : len(kept)].tolist() == rows[batch, kept].tolist()
        assert (out[batch, len(kept) :] == -1).all()
        record = invocation.outputs[1][batch, :, 0]
        assert record[: len(kept)].tolist() == [120 * batch + k for k in kept]
        assert (record[len(kept) :] == -1).all()


def test_nms_without_topk_returns_its_input():
    invocation, out = nms(ROWS, topk=0)
    assert out.tolist() == ROWS.tolist()
    assert invocation.outputs[1].ravel().tolist() == [0, 1, 2, 3]


def test_nms_drops_nan_scores_and_the_background():
    rows = np.concatenate([np.float32([[0], [1], [1], [-1]]), ROWS], axis=1)
    rows[0, 1] = np.nan
    _, out = nms(rows, score_index=1, coord_start=2, id_index=0, overlap_thresh=0.1)
    assert out[0].tolist() == rows[1].tolist()  # class -1 counts as background unless told otherwise
    assert (out[1:] == -1).all()


def test_nms_keeps_boxes_without_area():
    rows = np.float32([[0.9, 1, 1, 1, 1], [0.8, 1, 1, 1, 1]])
    assert nms(rows)[1].tolist() == rows.tolist()


def test_nms_converts_boxes_except_those_that_begin_below_0():
    """MXNet takes a first coordinate below 0 for the mark of an empty row."""
    rows = np.float32([[0.9, -4, 0, 2, 2], [0.8, 5, 5, 4, 2], [0.7, 0, 9, 4, 2]])
    _, out = nms(rows, in_format="center", out_format="corner")
    np.testing.assert_array_equal(out[:, 1:], [[-4, 0, 2, 2], [3, 4, 7, 6], [-2, 8, 2, 10]])
    _, back = nms(np.float32([[0.8, 3, 4, 7, 6], [0.7, -2, 8, 2, 10]]), out_format="center")
    np.testing.assert_array_equal(back[:, 1:], [[5, 5, 4, 2], [-2, 8, 2, 10]])


def test_boxes_that_are_nowhere_suppress_nothing():
    nan = np.nan
    rows = np.float32([[0.9, nan, nan, 1, 1], [0.8, 0, 0, 1, 1], [0.7, 0.1, 0, 1, 1], [0.6, 5, 5, 6, 6]])
    how = {"coord_start": 1, "score_index": 0, "in_format": "center", "out_format": "center"}
    out = run("_contrib_box_nms", [rows[None]], overlap_thresh=0.3, **how)[0]
    assert out[0, :, 0].tolist() == np.float32([0.9, 0.8, 0.6, -1]).tolist()
    (out,) = run("_contrib_box_iou", [rows[:1, 1:], np.float32([[0, 0, 4, 4]])], format="center")
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("name", "first", "shapes"),
    [
        ("_contrib_box_iou", "lhs", [(2, 4), (3, 4)]),
        ("_contrib_box_nms", "data", [(1, 3, 6)]),
        ("_contrib_box_decode", "data", [(1, 2, 4), (1, 2, 4)]),
        ("_contrib_bipartite_matching", "data", [(2, 3)]),
        ("_contrib_MultiBoxPrior", "data", [(1, 1, 2, 2)]),
        ("_contrib_MultiBoxTarget", "anchor", [(1, 2, 4), (1, 1, 5), (1, 2, 2)]),
        ("_contrib_MultiBoxDetection", "cls_prob", [(1, 2, 3), (1, 12), (1, 3, 4)]),
    ],
)
def test_boxes_are_no_whole_numbers(name, first, shapes):
    params = {"threshold": 0.5} if "matching" in name else {}
    with pytest.raises(DTypeError, match=f"{first} must be float16, float32 or float64, got int32"):
        run(name, [np.ones(shape, np.int32) for shape in shapes], **params)


def test_nms_of_nothing():
    for shape in ((0, 5), (3, 0, 5), (0, 4, 5)):
        invocation, out = nms(np.zeros(shape, np.float32))
        assert out.shape == shape
        invocation.backward([out])
    assert (nms(np.zeros((3, 5), np.float32))[1] == -1).all()


def test_nms_float16_and_strides():
    rows = np.asfortranarray(ROWS.astype(np.float16))
    _, out = nms(rows, overlap_thresh=0.1)
    assert out.dtype == np.float16
    assert out[:2].tolist() == rows[[3, 0]].tolist()


def test_nms_errors():
    with pytest.raises(ShapeError, match=r"contrib\.box_nms: data must have at least 5 columns .*, got 4"):
        nms(ROWS[:, :4])
    with pytest.raises(ParamError, match=r"score_index 2 is one of the coordinates, columns 1 to 4"):
        nms(ROWS, score_index=2)
    with pytest.raises(ShapeError, match=r"data must have more than 7 columns \(id_index\), got 5"):
        nms(ROWS, id_index=7)
    with pytest.raises(ParamError, match=r"score_index and id_index must differ, got 0 for both"):
        nms(ROWS, id_index=0)
    with pytest.raises(ShapeError, match=r"data must have 2 or more dimensions, got shape \(5,\)"):
        nms(ROWS[0])


# bipartite_matching


def test_matching():
    scores = np.float32([[[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]])
    rows, columns = run("_contrib_bipartite_matching", [scores], threshold=1e-12)
    assert rows.tolist() == [[1, -1, 0]]
    assert columns.tolist() == [[2, 0]]
    rows, columns = run("_contrib_bipartite_matching", [scores], threshold=0.35, is_ascend=True)
    assert rows.tolist() == [[-1, 0, -1]]
    assert columns.tolist() == [[1, -1]]


def test_matching_bound_lets_one_more_through():
    scores = np.diag(np.float32([4, 3, 2, 1]))
    rows, _ = run("_contrib_bipartite_matching", [scores], threshold=0.5, topk=2)
    assert rows.tolist() == [0, 1, 2, -1]


def test_matching_stops_at_scores_that_are_not_numbers():
    scores = np.float32([[np.nan, 1], [np.nan, np.nan]])
    rows, columns = run("_contrib_bipartite_matching", [scores], threshold=0)
    assert rows.tolist() == [1, -1]
    assert columns.tolist() == [-1, 0]
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        rows, columns = run("_contrib_bipartite_matching", [np.zeros(shape, np.float32)], threshold=0)
        assert (rows == -1).all()
        assert (columns == -1).all()


def test_matching_needs_a_matrix():
    with pytest.raises(ShapeError, match=r"data must have 2 or more dimensions, got shape \(3,\)"):
        run("_contrib_bipartite_matching", [np.zeros(3, np.float32)], threshold=0)


# box_encode and box_decode


def test_codes_are_each_others_inverse():
    anchors, refs = random_boxes(5, 1, np.float64)[None], random_boxes(3, 2, np.float64)[None]
    samples, matches = np.ones((1, 5)), np.array([[0, 2, 1, 1, 0]], np.float64)
    stds = np.array([0.1, 0.1, 0.2, 0.2])
    targets, masks = run("_contrib_box_encode", [samples, matches, anchors, refs, np.zeros(4), stds])
    assert (masks == 1).all()
    factors = {f"std{i}": std for i, std in enumerate(stds)}
    (boxes,) = run("_contrib_box_decode", [targets, anchors], format="corner", **factors)
    np.testing.assert_allclose(boxes, refs[:, matches[0].astype(int)], rtol=1e-6)


def test_encode_by_hand():
    arrays = [
        [[1, 0]],
        [[0, 9]],
        [[[0, 0, 2, 4], [0, 0, 1, 1]]],
        [[[1, 1, 5, 9]]],
        [0.5, 0, 0, 0],
        [1, 2, 1, 0.5],
    ]
    targets, masks = run("_contrib_box_encode", [np.float32(a) for a in arrays])
    # The centre moves by (2, 3); the sides double; nothing is read for the second row's bad match.
    np.testing.assert_allclose(targets[0, 0], [0.5, 0.375, np.log(2), 2 * np.log(2)], rtol=1e-6)
    assert targets[0, 1].tolist() == [0] * 4
    assert masks[0].tolist() == [[1] * 4, [0] * 4]


@pytest.mark.parametrize("match", [-1, 3, np.nan, np.inf])
def test_encode_checks_the_matches(match):
    arrays = [
        np.ones((1, 2)),
        np.zeros((1, 2)),
        np.ones((1, 2, 4)),
        np.ones((1, 3, 4)),
        np.zeros(4),
        np.ones(4),
    ]
    arrays[1][0, 1] = match
    with pytest.raises(DataError, match=r"matches\[0, 1\] must be a row of refs, 0 to 2, got (-1|3|nan|inf)"):
        run("_contrib_box_encode", arrays)


def test_decode_clips_the_sizes():
    data, anchors = np.float32([[[0, 0, 9, 9]]]), np.float32([[[1, 1, 2, 2]]])
    (out,) = run("_contrib_box_decode", [data, anchors], clip=np.log(2.0))
    np.testing.assert_allclose(out, [[[-1, -1, 3, 3]]], rtol=1e-6)


def test_code_errors():
    zeros = np.zeros((2, 5, 4), np.float32)
    with pytest.raises(ShapeError, match=r"anchors must have shape \(1, 5, 4\), got \(2, 5, 4\)"):
        run("_contrib_box_decode", [zeros, zeros])
    with pytest.raises(DTypeError, match=r"anchors must have the dtype of data, float32, got float64"):
        run("_contrib_box_decode", [zeros, zeros[:1].astype(np.float64)])
    flat = np.zeros((2, 5), np.float32)
    right = [flat, flat, zeros, zeros, flat[0, :4], flat[0, :4]]
    for i, wrong, text in (
        (1, flat[:, :4], r"matches must have shape \(2, 5\), got \(2, 4\)"),
        (3, zeros[:1], r"refs must have shape \(2, refs, 4\), got \(1, 5, 4\)"),
        (5, flat[0], r"stds must have shape \(4,\), got \(5,\)"),
    ):
        with pytest.raises(ShapeError, match=text):
            run("_contrib_box_encode", [*right[:i], wrong, *right[i + 1 :]])
