"""Faster R-CNN of MXNet's own example, as of 0.12 and of 1.x, for testing and training."""

from blocks import Blocks

SCALES, RATIOS, CLASSES = (8, 16, 32), (0.5, 1, 2), 21
UNITS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}


def faster_rcnn(mx, backbone, era, train=False):
    """The end-to-end graph.

    ``era`` "0.12" has Proposal and SoftmaxActivation, "1.x" MultiProposal and softmax. A training graph
    takes its samples from the Custom operator ``proposal_target``.
    """
    net, sym = Blocks(mx), mx.sym
    data, im_info = sym.Variable("data"), sym.Variable("im_info")
    anchors = len(SCALES) * len(RATIOS)
    feature = _feature(net, data, backbone)
    score, delta = net.rpn(feature, anchors)
    score = sym.Reshape(score, shape=(0, 2, -1, 0), name="rpn_cls_score_reshape")
    if era == "1.x":
        probability = sym.softmax(score, axis=1, name="rpn_cls_act")
    else:
        probability = sym.SoftmaxActivation(score, mode="channel", name="rpn_cls_prob" + "_act" * train)
    probability = sym.Reshape(probability, shape=(0, 2 * anchors, -1, 0), name="rpn_cls_act_reshape")
    propose = sym.contrib.MultiProposal if era == "1.x" else sym.contrib.Proposal
    rois = propose(
        cls_prob=probability,
        bbox_pred=delta,
        im_info=im_info,
        name="rois",
        feature_stride=16,
        scales=SCALES,
        ratios=RATIOS,
        rpn_pre_nms_top_n=6000,
        rpn_post_nms_top_n=128 if train else 300,
        threshold=0.7,
        rpn_min_size=16,
    )
    losses = []
    if train:
        losses = _rpn_losses(net, score, delta)
        gt_boxes = sym.Variable("gt_boxes")
        if era == "0.12":
            gt_boxes = sym.Reshape(gt_boxes, shape=(-1, 5), name="gt_boxes_reshape")
        rois, label, target, weight = sym.Custom(
            rois=rois, gt_boxes=gt_boxes, op_type="zoo_proposal_target", num_classes=CLASSES, batch_rois=128
        )
    pooled_size = (7, 7) if backbone == "vgg16" else (14, 14)
    pooled = sym.ROIPooling(feature, rois, pooled_size=pooled_size, spatial_scale=1 / 16, name="roi_pool")
    top = _top(net, pooled, backbone)
    scores, deltas = net.fc(top, "cls_score", CLASSES), net.fc(top, "bbox_pred", 4 * CLASSES)
    shape_of = {"cls_prob": (1, -1, CLASSES), "bbox_pred": (1, -1, 4 * CLASSES)}
    if not train:
        scores = sym.softmax(scores, name="cls_prob")
        scores = sym.Reshape(scores, shape=shape_of["cls_prob"], name="cls_prob_reshape")
        deltas = sym.Reshape(deltas, shape=shape_of["bbox_pred"], name="bbox_pred_reshape")
        return sym.Group([rois, scores, deltas])
    scores = sym.SoftmaxOutput(scores, label, normalization="batch", name="cls_prob")
    loss = net.smooth_l1_loss("bbox_loss", deltas, target, weight, 1.0, 1 / 128)
    label = sym.Reshape(label, shape=(1, -1), name="label_reshape")
    scores = sym.Reshape(scores, shape=shape_of["cls_prob"], name="cls_prob_reshape")
    loss = sym.Reshape(loss, shape=shape_of["bbox_pred"], name="bbox_loss_reshape")
    return sym.Group([*losses, scores, loss, sym.BlockGrad(label)])


def _feature(net, data, backbone):
    if backbone == "vgg16":
        return net.vgg16(data)
    x = net.resnet_v2_stem(data, use_global_stats=True)
    for stage, filters in enumerate((256, 512, 1024), 1):
        x = net.resnet_v2_stage(
            x, stage, UNITS[backbone][stage - 1], filters, _element_wise_sum(net), use_global_stats=True
        )
    return x


def _top(net, pooled, backbone):
    if backbone == "vgg16":
        x = net.sym.Flatten(pooled, name="flatten")
        for i in (6, 7):
            x = net.relu(net.fc(x, "fc%d" % i, 4096), "relu%d" % i)
            x = net.sym.Dropout(x, p=0.5, name="drop%d" % i)
        return x
    units = UNITS[backbone][3]
    x = net.resnet_v2_stage(pooled, 4, units, 2048, _element_wise_sum(net), use_global_stats=True)
    x = net.relu(net.bn(x, "bn1", use_global_stats=True), "relu1")
    return net.sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")


def _element_wise_sum(net):
    return lambda y, shortcut, name: net.sym.ElementWiseSum(y, shortcut, name=name)


def _rpn_losses(net, score, delta):
    sym = net.sym
    probability = sym.SoftmaxOutput(
        score,
        sym.Variable("label"),
        multi_output=True,
        normalization="valid",
        use_ignore=True,
        ignore_label=-1,
        name="rpn_cls_prob",
    )
    target, weight = sym.Variable("bbox_target"), sym.Variable("bbox_weight")
    return [probability, net.smooth_l1_loss("rpn_bbox_loss", delta, target, weight, 3.0, 1 / 256)]
