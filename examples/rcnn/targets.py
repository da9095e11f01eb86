"""What anchors and regions are trained towards."""

import json

import numpy as np

import roiops as mx

from . import boxes
from .config import Targets

__all__ = ["ProposalTarget", "anchor_targets", "sample_rois"]


def pick(generator, candidates, count):
    """At most ``count`` of ``candidates``, drawn without order mattering to the rest."""
    if len(candidates) <= count:
        return candidates
    return generator.choice(candidates, count, replace=False)


def anchor_targets(config, stride, map_size, image_size, ground_truth, generator):
    """Labels and box targets of all anchors of one image.

    Parameters
    ----------
    map_size, image_size : (int, int)
        Height and width of the feature map, and of the image without its padding.
    ground_truth : array (n, 4)
        The objects' boxes.
    generator : numpy.random.Generator
        Draws the anchors that take part.

    Returns
    -------
    label : array (A * height * width,)
        1 object, 0 none, -1 not trained; in the order of the network's score map.
    target, weight : arrays (4 * A, height, width)
    """
    settings, targets = config.anchors, config.targets
    height, width = map_size
    every = boxes.anchors(stride, settings.scales, settings.ratios, height, width)
    border = settings.allowed_border
    inside = np.flatnonzero(
        (every[:, 0] >= -border)
        & (every[:, 1] >= -border)
        & (every[:, 2] < image_size[1] + border)
        & (every[:, 3] < image_size[0] + border)
    )
    label = np.full(len(every), -1.0, np.float32)
    target = np.zeros((len(every), 4), np.float32)
    if len(ground_truth) and len(inside):
        overlap = boxes.iou(every[inside], ground_truth)
        best = overlap.max(axis=1)
        label[inside[best < targets.anchor_negative_iou]] = 0
        # Each object has at least one anchor: the best there is, however little it overlaps.
        closest = (overlap == overlap.max(axis=0)) & (overlap > 0)
        label[inside[closest.any(axis=1)]] = 1
        label[inside[best >= targets.anchor_positive_iou]] = 1
        target[inside] = boxes.encode(every[inside], ground_truth[overlap.argmax(axis=1)])
    else:
        label[inside] = 0
    positive = np.flatnonzero(label == 1)
    kept = pick(generator, positive, int(targets.anchor_foreground * targets.anchors_per_image))
    label[np.setdiff1d(positive, kept)] = -1
    negative = np.flatnonzero(label == 0)
    label[np.setdiff1d(negative, pick(generator, negative, targets.anchors_per_image - len(kept)))] = -1
    weight = np.zeros_like(target)
    weight[label == 1] = 1

    def as_map(values):
        """From a row for each anchor to a channel for each number of a cell."""
        return values.reshape(height, width, -1).transpose(2, 0, 1)

    return as_map(label).reshape(-1), as_map(target), as_map(weight)


def sample_rois(candidates, ground_truth, count, settings, num_boxes, generator):
    """Draw the regions of one image that are trained, with labels and box targets.

    Parameters
    ----------
    candidates : array (n, 4)
        Proposals and the objects' own boxes.
    ground_truth : array (m, 5)
        Boxes and classes of the objects.
    count : int
        How many regions come back. Where there are too few, some come twice.
    settings : Targets
        Thresholds and proportions.
    num_boxes : int
        Boxes a region has in the output: one a class, or 2 (background, object) if class-agnostic.
    """
    if len(ground_truth):
        overlap = boxes.iou(candidates, ground_truth[:, :4])
        nearest, best = overlap.argmax(axis=1), overlap.max(axis=1)
    else:
        nearest, best = np.zeros(len(candidates), int), np.zeros(len(candidates))
    foreground = np.flatnonzero(best >= settings.roi_positive_iou)
    background = np.flatnonzero(best < settings.roi_positive_iou)
    foreground = pick(generator, foreground, round(settings.roi_foreground * count))
    chosen = np.concatenate([foreground, pick(generator, background, count - len(foreground))])
    if len(chosen) < count:  # too few: the background again, or what there is
        again = background if len(background) else chosen
        chosen = np.concatenate([chosen, generator.choice(again, count - len(chosen))])
    label = np.zeros(count, np.float32)
    is_object = best[chosen] >= settings.roi_positive_iou
    if len(ground_truth):
        label[is_object] = ground_truth[nearest[chosen[is_object]], 4]
    target = np.zeros((count, num_boxes, 4), np.float32)
    weight = np.zeros_like(target)
    rows = np.flatnonzero(is_object)
    if len(rows):
        column = np.minimum(label[rows].astype(int), num_boxes - 1)
        deltas = boxes.encode(candidates[chosen[rows]], ground_truth[nearest[chosen[rows]], :4])
        target[rows, column] = deltas / np.array(settings.box_stds)
        weight[rows, column] = 1
    return candidates[chosen], label, target.reshape(count, -1), weight.reshape(count, -1)


class ProposalTargetOp(mx.operator.CustomOp):
    """Draws from the library's own generator, whose state a checkpoint keeps."""

    def __init__(self, settings, num_boxes, batch_images):
        super().__init__()
        self.settings, self.num_boxes, self.batch_images = settings, num_boxes, batch_images

    def forward(self, is_train, req, in_data, out_data, aux):
        rois, truth = (each.asnumpy() for each in in_data)
        parts = []
        for image in range(self.batch_images):
            objects = truth[image][truth[image, :, 4] > 0].astype(np.float64)
            proposals = rois[rois[:, 0] == image, 1:].astype(np.float64)
            candidates = np.concatenate([proposals, objects[:, :4]])
            count = self.settings.rois_per_image
            generator = mx.random.generator()
            chosen, *rest = sample_rois(candidates, objects, count, self.settings, self.num_boxes, generator)
            parts.append((np.column_stack([np.full(count, image), chosen]), *rest))
        for out, how, pieces in zip(out_data, req, zip(*parts, strict=True), strict=True):
            self.assign(out, how, np.concatenate(pieces).astype(np.float32))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        for grad, how in zip(in_grad, req, strict=True):
            self.assign(grad, how, 0)


@mx.operator.register("rcnn_proposal_target")
class ProposalTarget(mx.operator.CustomOpProp):
    """Chooses the regions that a training step uses.

    Inputs are the proposals and, of every image, its objects' boxes and classes (class 0 is padding).
    Outputs are the regions, their classes, and targets and weights of their boxes.
    """

    def __init__(self, settings, num_boxes, batch_images):
        super().__init__(need_top_grad=False)
        self.settings = Targets(**json.loads(settings))
        self.num_boxes, self.batch_images = int(num_boxes), int(batch_images)

    def list_arguments(self):
        return ["rois", "gt_boxes"]

    def list_outputs(self):
        return ["output", "label", "bbox_target", "bbox_weight"]

    def infer_shape(self, in_shape):
        count = self.settings.rois_per_image * self.batch_images
        wide = [count, 4 * self.num_boxes]
        return in_shape, [[count, 5], [count], wide, wide], []

    def create_operator(self, ctx, shapes, dtypes):
        return ProposalTargetOp(self.settings, self.num_boxes, self.batch_images)

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return []
