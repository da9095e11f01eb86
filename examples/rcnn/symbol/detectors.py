"""The graphs of the two detectors, for training and for detection."""

import dataclasses
import json

import roiops as mx

from .. import targets  # noqa: F401  (registers rcnn_proposal_target)
from ..config import Config
from .backbones import BACKBONES

__all__ = ["OUTPUTS", "backbone_of", "test_symbol", "train_symbol"]

#: What the outputs of the training graph are, in order.
OUTPUTS = ("rpn_cls_prob", "rpn_bbox_loss", "cls_prob", "bbox_loss", "label")


def backbone_of(config: Config):
    return BACKBONES[config.network.backbone]()


def train_symbol(config: Config):
    """The graph with losses: inputs and labels as :mod:`rcnn.data.loader` feeds them."""
    backbone = backbone_of(config)
    images = config.training.batch_images
    features = backbone.features(mx.sym.Variable("data"))
    score, delta = rpn(config, features)
    rpn_prob = mx.sym.SoftmaxOutput(
        pair_up(score),
        mx.sym.Variable("rpn_label"),
        multi_output=True,
        normalization="valid",
        use_ignore=True,
        ignore_label=-1,
        name="rpn_cls_prob",
    )
    rpn_loss = box_loss(
        "rpn_bbox",
        delta,
        mx.sym.Variable("rpn_bbox_target"),
        mx.sym.Variable("rpn_bbox_weight"),
        sharpness=3.0,
        scale=1 / (config.targets.anchors_per_image * images),
    )
    rois = proposals(config, backbone, rpn_prob, delta, training=True)
    sampled = mx.sym.Custom(
        rois,
        mx.sym.Variable("gt_boxes"),
        op_type="rcnn_proposal_target",
        settings=json.dumps(dataclasses.asdict(config.targets)),
        num_boxes=boxes_of_a_region(config),
        batch_images=images,
        name="proposal_target",
    )
    rois, label = sampled[0], sampled[1]
    score, delta = HEADS[config.network.detector](config, backbone, features, rois)
    prob = mx.sym.SoftmaxOutput(score, label, normalization="batch", name="cls_prob")
    loss = box_loss(
        "bbox",
        delta,
        sampled[2],
        sampled[3],
        sharpness=1.0,
        scale=1 / (config.targets.rois_per_image * images),
    )
    return mx.sym.Group([rpn_prob, rpn_loss, prob, loss, mx.sym.BlockGrad(label, name="label")])


def test_symbol(config: Config):
    """The graph without losses: outputs are regions, class probabilities and box deltas."""
    backbone = backbone_of(config)
    features = backbone.features(mx.sym.Variable("data"))
    score, delta = rpn(config, features)
    prob = mx.sym.softmax(pair_up(score), axis=1, name="rpn_cls_prob")
    rois = proposals(config, backbone, prob, delta, training=False)
    score, delta = HEADS[config.network.detector](config, backbone, features, rois)
    prob = mx.sym.softmax(score, axis=1, name="cls_prob")
    return mx.sym.Group([rois, prob, delta])


def boxes_of_a_region(config: Config) -> int:
    """How many boxes the head predicts for a region."""
    return 2 if config.network.class_agnostic else config.num_classes


def anchors_of_a_cell(config: Config) -> int:
    return len(config.anchors.scales) * len(config.anchors.ratios)


def rpn(config, features):
    """Scores (background first, then object) and box deltas of the anchors."""
    count = anchors_of_a_cell(config)
    width = 64 if config.network.backbone == "small" else 512
    net = mx.sym.Convolution(features, num_filter=width, kernel=(3, 3), pad=(1, 1), name="rpn_conv_3x3")
    net = mx.sym.Activation(net, act_type="relu", name="rpn_relu")
    score = mx.sym.Convolution(net, num_filter=2 * count, kernel=(1, 1), name="rpn_cls_score")
    delta = mx.sym.Convolution(net, num_filter=4 * count, kernel=(1, 1), name="rpn_bbox_pred")
    return score, delta


def pair_up(score):
    """(batch, 2A, h, w) as (batch, 2, A * h, w): background against object for each anchor."""
    return mx.sym.Reshape(score, shape=(0, 2, -1, 0), name="rpn_cls_pairs")


def proposals(config, backbone, prob, delta, training):
    """Regions worth a look: ``(image, x1, y1, x2, y2)``, equally many for each image."""
    settings = config.proposals
    prob = mx.sym.Reshape(prob, shape=(0, 2 * anchors_of_a_cell(config), -1, 0), name="rpn_cls_map")
    return mx.sym.contrib.MultiProposal(
        prob,
        delta,
        mx.sym.Variable("im_info"),
        feature_stride=backbone.stride,
        scales=tuple(config.anchors.scales),
        ratios=tuple(config.anchors.ratios),
        rpn_pre_nms_top_n=settings.train_before_nms if training else settings.test_before_nms,
        rpn_post_nms_top_n=settings.train_after_nms if training else settings.test_after_nms,
        threshold=settings.nms,
        rpn_min_size=settings.min_size,
        name="rois",
    )


def box_loss(name, delta, target, weight, sharpness, scale):
    """Smooth L1 between deltas and their targets, where the weight is not zero."""
    loss = weight * mx.sym.smooth_l1(delta - target, scalar=sharpness, name=f"{name}_smooth_l1")
    return mx.sym.MakeLoss(loss, grad_scale=scale, name=f"{name}_loss")


def faster_rcnn_head(config, backbone, features, rois):
    """Class scores and box deltas from pooled features through fully connected layers."""
    network = config.network
    size = (network.pooled_size, network.pooled_size)
    if network.pooling == "ROIAlign":
        pooled = mx.sym.ROIAlign(
            features,
            rois,
            pooled_size=size,
            spatial_scale=1 / backbone.stride,
            sampling_ratio=network.sampling_ratio,
            aligned=backbone.aligned,
            name="roi_align",
        )
    else:
        pooled = mx.sym.ROIPooling(
            features, rois, pooled_size=size, spatial_scale=1 / backbone.stride, name="roi_pool"
        )
    top = backbone.top(pooled)
    score = mx.sym.FullyConnected(top, num_hidden=config.num_classes, name="cls_score")
    delta = mx.sym.FullyConnected(top, num_hidden=4 * boxes_of_a_region(config), name="bbox_pred")
    return score, delta


def rfcn_head(config, backbone, features, rois):
    """Class scores and box deltas as means of position-sensitive maps; no layer is run for a region."""
    features = backbone.wide_features(features)
    results = []
    for name, count in (("cls", config.num_classes), ("bbox", 4 * boxes_of_a_region(config))):
        cells = config.network.pooled_size
        maps = mx.sym.Convolution(
            features, num_filter=cells * cells * count, kernel=(1, 1), name=f"rfcn_{name}"
        )
        options = {"spatial_scale": 1 / backbone.stride, "output_dim": count, "pooled_size": cells}
        if config.network.pooling == "PSROIAlign":
            options["sampling_ratio"] = config.network.sampling_ratio
        operator = getattr(mx.sym, config.network.pooling)
        pooled = operator(maps, rois, group_size=cells, name=f"psroi_{name}", **options)
        results.append(mx.sym.mean(pooled, axis=(2, 3), name=f"{name}_vote"))
    return results


HEADS = {"faster_rcnn": faster_rcnn_head, "rfcn": rfcn_head}
