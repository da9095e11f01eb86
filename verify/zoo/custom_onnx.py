"""The zoo's Custom operators in ONNX: what a user writes beside operators of one's own."""

import numpy as np
import roiops
from roiops.operators.lowering import lowers
from roiops.operators.roi.onnx import pooling as roi

from custom_ops import _STRIDES, _anchors


def _sides(g, boxes):
    """Corners, centres and sizes of boxes that include their last pixel, for x and y."""
    ends = g.split(boxes, -1, [1] * 4)
    sizes = [ends[2 + a] - ends[a] + 1 for a in range(2)]
    return ends, [ends[a] + (sizes[a] - 1) * 0.5 for a in range(2)], sizes


@lowers(op_type="zoo_proposal_target", as_function=True)
def proposal_target(g, node, rois, gt_boxes):
    classes, count = int(node.params.given["num_classes"]), int(node.params.given["batch_rois"])
    rois = g.slice(rois, 0, 0, count)
    truth = g.reshape(gt_boxes, -1, 5)
    ends, centres, sizes = _sides(g, g.slice(rois, 1, 1, 5))
    others, _, other_sizes = _sides(g, g.Transpose(g.slice(truth, 1, 0, 4), perm=[0, 1]))
    others, other_sizes = ([g.Transpose(x, perm=[1, 0]) for x in each] for each in (others, other_sizes))
    common = None
    for a in range(2):
        side = g.Max(g.Min(ends[2 + a], others[2 + a]) - g.Max(ends[a], others[a]) + 1, np.float32(0))
        common = side if common is None else common * side
    overlap = common / (sizes[0] * sizes[1] + other_sizes[0] * other_sizes[1] - common)
    best = g.ArgMax(overlap, axis=1, keepdims=0)
    near = g.reduce("Max", overlap, [1]) >= 0.5
    mine = g.Gather(truth, best, axis=0)
    label = g.Where(near, g.column(mine, 4, axis=1), np.float32(0))
    _, goals, goal_sizes = _sides(g, g.slice(mine, 1, 0, 4))
    deltas = [(goals[a] - centres[a]) / sizes[a] / 0.1 for a in range(2)]
    deltas += [g.Log(goal_sizes[a] / sizes[a]) / 0.2 for a in range(2)]
    deltas = g.unsqueeze(g.Concat(*deltas, axis=1), 1)
    numbers = np.arange(classes, dtype=np.int64).reshape(1, -1, 1)
    chosen = g.unsqueeze(g.cast(label, np.int64), 1, 2).equals(numbers) & g.unsqueeze(~label.equals(0), 1, 2)
    target = g.reshape(g.Where(chosen, deltas, np.float32(0)), -1, 4 * classes)
    weight = g.Expand(g.cast(chosen, np.float32), g.ints(1, 1, 4))
    return rois, label, target, g.reshape(weight, -1, 4 * classes)


@lowers(op_type="zoo_pyramid_proposal", as_function=True)
def pyramid_proposal(g, node, *inputs):
    post = int(node.params.given["post_nms"])
    info = inputs[-1]
    height, width = (g.slice(info, 1, a, a + 1) for a in range(2))
    limits = [width - 1, height - 1]
    boxes, scores = [], []
    for i, stride in enumerate(_STRIDES):
        probability, deltas = inputs[i], inputs[len(_STRIDES) + i]
        size = node.fixed(probability, 2, 3)
        count = node.fixed(probability, 1)[0] // 2
        anchors = _anchors(stride, 8, (0.5, 1, 2), size)
        deltas = g.reshape(deltas, count, 4, *size)
        deltas = g.reshape(g.Transpose(deltas, perm=[2, 3, 0, 1]), -1, 4)
        deltas = g.split(deltas, 1, [1] * 4)
        ends = []
        for a in range(2):
            extent = anchors[:, 2 + a : 3 + a] - anchors[:, a : a + 1] + 1
            centre = deltas[a] * extent + (anchors[:, a : a + 1] + np.float32(0.5) * (extent - 1))
            half = (g.Exp(g.Min(deltas[2 + a], np.float32(4))) * extent - 1) * 0.5
            ends.append([g.Max(g.Min(x, limits[a]), np.float32(0)) for x in (centre - half, centre + half)])
        (x1, x2), (y1, y2) = ends
        boxes.append(g.Concat(x1, y1, x2, y2, axis=1))
        found = g.slice(probability, 1, count, 2 * count)
        scores.append(g.reshape(g.Transpose(found, perm=[0, 2, 3, 1]), 1, -1))
    boxes, scores = g.unsqueeze(g.Concat(*boxes, axis=0), 0), g.Concat(*scores, axis=1)
    best, order = g.TopK(scores, g.ints(2000), axis=1, outputs=2)
    boxes = g.Gather(g.squeeze(boxes, 0), g.squeeze(order, 0), axis=0)
    x1, y1, x2, y2 = g.split(boxes, 1, [1] * 4)
    edges = g.unsqueeze(g.Concat(x1, y1, x2 + 1, y2 + 1, axis=1), 0)
    found = g.NonMaxSuppression(edges, g.unsqueeze(best, 1), g.ints(post), np.array([0.7], np.float32))
    kept = g.column(found, 2, axis=1)
    # Where there are fewer, the first one fills up.
    number = np.arange(post, dtype=np.int64)
    places = g.Where(g.Less(number, g.slice(g.Shape(kept), 0, 0, 1)), number, np.int64(0))
    rows = g.Gather(boxes, g.Gather(kept, places, axis=0), axis=0)
    return g.Concat(np.zeros((post, 1), np.float32), rows, axis=1)


@lowers(op_type="zoo_fpn_roi_pooling", as_function=True)
def pyramid_pooling(g, node, rois, *inputs):
    deformable = node.params.given["with_deformable"] == "True"
    levels, rest = inputs[:4], inputs[4:]
    ends = g.split(rois, 1, [1] * 5)[1:]
    area = (ends[2] - ends[0] + 1) * (ends[3] - ends[1] + 1)
    level = g.Floor(g.Log(g.Sqrt(area) / 224) / float(np.log(2)) + 4)
    level = g.squeeze(g.Max(g.Min(level, np.float32(5)), np.float32(2)), 1)
    result = g.full((*node.shapes[0],), 0, rois.dtype)
    for i, number in enumerate((2, 3, 4, 5)):
        places = g.Transpose(g.NonZero(level.equals(number)), perm=[1, 0])
        rows = g.GatherND(rois, places)
        if deformable:
            pooled = _deformable(g, node, levels[i], rows, rest[i], rest[4 + i], 2.0**-number)
        else:
            pooled = g.MaxRoiPool(levels[i], rows, pooled_shape=(7, 7), spatial_scale=2.0**-number)
        result = g.ScatterND(result, places, pooled)
    return result


def _deformable(g, node, data, rows, weight, bias, scale):
    params = roiops.registry.get("_contrib_DeformablePSROIPooling").param
    fixed = {"group_size": 1, "pooled_size": 7, "sample_per_part": 4, "part_size": 7, "output_dim": 256}
    plain = params(**fixed, spatial_scale=scale, no_trans=True)
    moved = params(**fixed, spatial_scale=scale, trans_std=0.1)
    trans = g.Gemm(g.Flatten(roi.moved_bins(g, plain, data, rows, None, 1), axis=1), weight, bias, transB=1)
    return roi.moved_bins(g, moved, data, rows, g.reshape(trans, -1, 2, 7, 7), 1)
