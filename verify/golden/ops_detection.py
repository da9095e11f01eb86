"""Calls of the detection operators around the ROI operators: proposals, boxes, anchors."""

import numpy as np

from ops_harness import call, golden


def proposal_inputs(draw, batch, anchors, height, width, stride=16, scale=1.0):
    """Scores that all differ, so that no order depends on how ties are sorted."""
    count = batch * 2 * anchors * height * width
    scores = (draw.rng.permutation(count) + 1).astype(np.float32) / (count + 1)
    info = [[height * stride, width * stride, scale], [height * stride - 9, width * stride - 20, scale]]
    return {
        "cls_prob": scores.reshape(batch, 2 * anchors, height, width),
        "bbox_pred": draw.normal(batch, 4 * anchors, height, width) * 0.3,
        "im_info": np.array(info[:batch], np.float32),
    }


@golden
def proposal(draw):
    few = {"scales": (1, 2), "ratios": (0.5, 1), "rpn_min_size": 8}
    for op, batch in (("_contrib_Proposal", 1), ("_contrib_MultiProposal", 1), ("_contrib_MultiProposal", 2)):

        def case(inputs, op=op, **params):
            return call(op, inputs, backward=False, **params)

        yield case(proposal_inputs(draw, batch, 12, 3, 4), rpn_post_nms_top_n=20)
        inputs = proposal_inputs(draw, batch, 4, 5, 4)
        yield case(inputs, rpn_pre_nms_top_n=30, rpn_post_nms_top_n=10, **few)
        yield case(inputs, rpn_pre_nms_top_n=30, rpn_post_nms_top_n=10, output_score=True, **few)
        yield case(inputs, rpn_post_nms_top_n=12, threshold=0.3, output_score=True, **few)
        yield case(inputs, rpn_post_nms_top_n=12, iou_loss=True, output_score=True, **few)
        yield case(inputs, rpn_pre_nms_top_n=6, rpn_post_nms_top_n=10, output_score=True, **few)
        yield case(inputs, rpn_pre_nms_top_n=-1, rpn_post_nms_top_n=40, threshold=0.9, **few)
        scaled = proposal_inputs(draw, batch, 4, 5, 4, scale=1.5)
        params = {"scales": (1, 2), "ratios": (0.5, 1), "rpn_min_size": 24, "output_score": True}
        yield case(scaled, rpn_post_nms_top_n=8, **params)
        fine = proposal_inputs(draw, batch, 3, 4, 4, stride=8)
        params = {"feature_stride": 8, "scales": (2, 4, 8), "ratios": (1,), "rpn_min_size": 4}
        yield case(fine, rpn_post_nms_top_n=15, **params)


@golden
def box_nms(draw):
    op = "_contrib_box_nms"

    def rows(*shape, classes=3, size=1.0):
        """Class, score, box."""
        count = int(np.prod(shape))
        scores = (draw.rng.permutation(count) + 1).reshape(*shape, 1) / (count + 1)
        ids = draw.integers(classes, *shape, 1)
        return np.concatenate([ids, scores, draw.boxes(*shape, size=size)], -1).astype(np.float32)

    one = rows(12)
    yield call(op, one)
    yield call(op, one, overlap_thresh=0.2)
    yield call(op, one, overlap_thresh=0.2, id_index=0)
    yield call(op, one, overlap_thresh=0.2, id_index=0, force_suppress=True)
    yield call(op, one, overlap_thresh=0.2, id_index=0, background_id=1)
    yield call(op, one, overlap_thresh=0.3, valid_thresh=0.4)
    yield call(op, one, overlap_thresh=0.3, topk=5)
    yield call(op, one, overlap_thresh=0.2, out_format="center")
    centred = np.concatenate([one[:, :2], (one[:, 2:4] + one[:, 4:]) / 2, one[:, 4:] - one[:, 2:4]], 1)
    yield call(op, centred, overlap_thresh=0.2, in_format="center")
    yield call(op, centred, overlap_thresh=0.2, in_format="center", out_format="center")
    yield call(op, one[:, 1:], overlap_thresh=0.2, coord_start=1, score_index=0)
    yield call(op, np.concatenate([one, draw.normal(12, 2)], 1), overlap_thresh=0.2, label="further columns")
    yield call(op, rows(2, 8), overlap_thresh=0.1, id_index=0)
    yield call(op, rows(2, 2, 6, size=100.0), overlap_thresh=0.1)
    yield call(op, one, valid_thresh=2, label="nothing valid")
    yield call("_contrib_box_non_maximum_suppression", one, overlap_thresh=0.2)


@golden
def boxes(draw):
    op = "_contrib_box_iou"
    yield call(op, {"lhs": draw.boxes(4), "rhs": draw.boxes(5)}, backward=False)
    yield call(op, {"lhs": draw.boxes(2, 3), "rhs": draw.boxes(4)}, backward=False)
    yield call(op, {"lhs": draw.boxes(3), "rhs": draw.boxes(3)}, format="center", backward=False)
    samples = draw.integers(2, 2, 6, low=-1)
    inputs = {
        "samples": samples,
        "matches": draw.integers(3, 2, 6),
        "anchors": draw.boxes(2, 6),
        "refs": draw.boxes(2, 3),
        "means": np.array([0, 0.1, 0, -0.1], np.float32),
        "stds": np.array([0.1, 0.1, 0.2, 0.2], np.float32),
    }
    yield call("_contrib_box_encode", inputs, backward=False)
    decode = {"data": draw.normal(2, 5, 4), "anchors": draw.boxes(1, 5)}
    op = "_contrib_box_decode"
    yield call(op, decode, backward=False)
    params = {"std0": 0.1, "std1": 0.1, "std2": 0.2, "std3": 0.2}
    yield call(op, decode, format="corner", backward=False, **params)
    yield call(op, decode, format="center", clip=0.5, backward=False, **params)
    scores = draw.distinct(2, 3, 4)
    op = "_contrib_bipartite_matching"
    yield call(op, scores, threshold=-100, backward=False)
    yield call(op, scores, threshold=0, backward=False)
    yield call(op, scores, threshold=2, is_ascend=True, backward=False)
    yield call(op, scores[0], threshold=-100, topk=1, backward=False, label="topk lets one more through")


@golden
def multibox_prior(draw):
    op = "_contrib_MultiBoxPrior"
    x = draw.normal(1, 2, 3, 4)
    yield call(op, x, backward=False)
    yield call(op, x, sizes=(0.2, 0.35), ratios=(1, 2, 0.5), backward=False)
    yield call(op, x, sizes=(0.6, 0.9), ratios=(1, 3), clip=True, backward=False)
    yield call(op, x, sizes=(0.3,), steps=(0.4, 0.2), offsets=(0.25, 0.75), backward=False)
    yield call(op, draw.normal(2, 1, 1, 1), sizes=(0.5,), ratios=(1, 1.5), backward=False)


def anchors(draw, count):
    return draw.boxes(1, count)


@golden
def multibox_target(draw):
    op = "_contrib_MultiBoxTarget"

    def inputs(batch=2, count=14, classes=3, objects=3, padding=1):
        label = np.concatenate([draw.integers(classes, batch, objects, 1), draw.boxes(batch, objects)], -1)
        label[:, objects - padding :] = -1
        return {
            "anchor": anchors(draw, count),
            "label": label,
            "cls_pred": draw.normal(batch, classes + 1, count),
        }

    some = inputs()
    yield call(op, some, backward=False)
    yield call(op, some, overlap_threshold=0.3, backward=False)
    yield call(op, some, variances=(0.2, 0.2, 0.1, 0.1), backward=False)
    mining = {"negative_mining_ratio": 3, "negative_mining_thresh": 0.5}
    yield call(op, some, backward=False, **mining)
    yield call(op, some, minimum_negative_samples=4, ignore_label=-2, backward=False, **mining)
    yield call(op, some, negative_mining_ratio=1, negative_mining_thresh=0.2, backward=False)
    yield call(op, inputs(padding=3), backward=False, label="no object")
    yield call(op, inputs(padding=3), backward=False, label="no object, mining", **mining)
    yield call(
        op, inputs(batch=1, count=2, objects=4, padding=0), backward=False, label="more objects than anchors"
    )
    wide = inputs()
    wide["label"] = np.concatenate([wide["label"], draw.normal(2, 3, 1)], -1)
    yield call(op, wide, backward=False, label="labels with a sixth column")


@golden
def multibox_detection(draw):
    op = "_contrib_MultiBoxDetection"

    def inputs(batch=2, count=12, classes=3):
        scores = np.exp(draw.normal(batch, classes, count) * 2)
        scores /= scores.sum(axis=1, keepdims=True)
        return {"cls_prob": scores, "loc_pred": draw.normal(batch, count * 4), "anchor": anchors(draw, count)}

    some = inputs()
    yield call(op, some, backward=False)
    yield call(op, some, nms_threshold=0.2, backward=False)
    yield call(op, some, nms_threshold=0.2, force_suppress=True, backward=False)
    yield call(op, some, threshold=0.5, backward=False)
    yield call(op, some, nms_topk=4, nms_threshold=0.3, backward=False)
    yield call(op, some, clip=False, variances=(0.3, 0.3, 0.2, 0.2), backward=False)
    yield call(op, some, nms_threshold=-1, backward=False, label="no suppression")
    yield call(op, some, threshold=0.999, backward=False, label="hardly anything left")
    yield call(op, inputs(1, 6, 2), backward=False)
