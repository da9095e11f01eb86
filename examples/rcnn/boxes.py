"""Boxes as rows ``x1, y1, x2, y2``. The last pixel belongs to the box: its width is x2 - x1 + 1."""

import numpy as np

__all__ = ["anchors", "clip", "encode", "iou", "nms"]


def sizes(boxes):
    return boxes[:, 2] - boxes[:, 0] + 1, boxes[:, 3] - boxes[:, 1] + 1


def iou(one, other):
    """Overlap of every box of ``one`` with every box of ``other``, as part of their union."""
    start = np.maximum(one[:, None, :2], other[None, :, :2])
    end = np.minimum(one[:, None, 2:4], other[None, :, 2:4])
    both = np.maximum(end - start + 1, 0).prod(axis=-1)
    areas = [np.prod(sizes(each), axis=0) for each in (one, other)]
    return both / (areas[0][:, None] + areas[1][None, :] - both)


def encode(boxes, targets):
    """What leads from ``boxes`` to ``targets``, which ``roiops.models.detections.decode_boxes`` undoes.

    That is the shift of the centre in parts of the size, and the logarithm of the growth.
    """
    width, height = sizes(boxes)
    target_width, target_height = sizes(targets)
    shift_x = (targets[:, 0] + target_width / 2 - boxes[:, 0] - width / 2) / width
    shift_y = (targets[:, 1] + target_height / 2 - boxes[:, 1] - height / 2) / height
    return np.stack([shift_x, shift_y, np.log(target_width / width), np.log(target_height / height)], axis=1)


def clip(boxes, height, width):
    """``boxes`` cut to the image."""
    result = boxes.copy()
    result[:, 0::2] = np.clip(boxes[:, 0::2], 0, width - 1)
    result[:, 1::2] = np.clip(boxes[:, 1::2], 0, height - 1)
    return result


def nms(boxes, scores, threshold):
    """Numbers of the boxes that no better box overlaps by more than ``threshold``, best first."""
    order = np.argsort(-scores, kind="stable")
    keep = []
    while order.size:
        keep.append(order[0])
        overlap = iou(boxes[order[:1]], boxes[order[1:]])[0]
        order = order[1:][overlap <= threshold]
    return np.array(keep, dtype=np.int64)


def anchors(stride, scales, ratios, height, width):
    """The anchors of a feature map, as the Proposal operator has them: row by row, ratios before scales."""
    base = []
    for ratio in ratios:
        side = np.floor(np.sqrt(np.floor(stride * stride / ratio)) + 0.5)
        tall = np.floor(side * ratio + 0.5)
        for scale in scales:
            half = np.array([side * scale - 1, tall * scale - 1]) / 2
            base.append(np.concatenate([(stride - 1) / 2 - half, (stride - 1) / 2 + half]))
    y, x = np.mgrid[:height, :width] * stride
    shifts = np.stack([x, y, x, y], axis=-1)
    return (shifts[:, :, None] + np.array(base)).reshape(-1, 4)
