"""R-FCN, Faster R-CNN and FPN on ResNet-101, with and without deformable layers (Dai et al., 2017)."""

from blocks import Blocks

CLASSES, REGRESSED, ANCHORS = 81, 2, 12
SCALES, RATIOS = (4, 8, 16, 32), (0.5, 1, 2)


def rfcn(mx, deformable):
    """R-FCN; class-agnostic boxes, 81 classes."""
    net, sym = Blocks(mx), mx.sym
    rois, top = _proposals_and_conv5(net, deformable)
    x = net.relu(net.conv(top, "conv_new_1", 1024, lr_mult="3.0"), "relu1")
    maps = {
        "cls": (net.conv(x, "rfcn_cls", 49 * CLASSES), CLASSES),
        "bbox": (net.conv(x, "rfcn_bbox", 49 * 4 * REGRESSED), 4 * REGRESSED),
    }
    pooled = {}
    for name, (data, outputs) in maps.items():
        if deformable:
            offset_maps = net.conv(x, "rfcn_%s_offset_t" % name, 98 * (CLASSES if name == "cls" else 1))
            count = 2 * CLASSES if name == "cls" else 2
            trans = _deformable_psroi(net, "rfcn_%s_offset" % name, offset_maps, rois, count, 7)
            y = _deformable_psroi(net, "psroipooled_%s_rois" % name, data, rois, outputs, 7, trans)
        else:
            y = sym.contrib.PSROIPooling(
                data,
                rois,
                name="psroipooled_%s_rois" % name,
                group_size=7,
                pooled_size=7,
                output_dim=outputs,
                spatial_scale=0.0625,
            )
        y = sym.Pooling(y, pool_type="avg", global_pool=True, kernel=(7, 7), name="ave_%s_rois" % name)
        pooled[name] = sym.Reshape(y, shape=(-1, outputs), name=name + "_reshape")
    return _test_outputs(net, rois, pooled["cls"], pooled["bbox"])


def faster_rcnn(mx, deformable):
    """Faster R-CNN with two fully connected layers on a 256-channel map."""
    net, sym = Blocks(mx), mx.sym
    rois, top = _proposals_and_conv5(net, deformable)
    x = net.relu(net.conv(top, "conv_new_1", 256), "conv_new_1_relu")
    if deformable:
        trans = _deformable_psroi(net, "offset_t", x, rois, 256, 1)
        trans = net.fc(trans, "offset", 7 * 7 * 2, lr_mult="0.01")
        trans = sym.Reshape(trans, shape=(-1, 2, 7, 7), name="offset_reshape")
        x = _deformable_psroi(net, "deformable_roi_pool", x, rois, 256, 1, trans)
    else:
        x = sym.ROIPooling(x, rois, pooled_size=(7, 7), spatial_scale=0.0625, name="roi_pool")
    return _two_layer_head(net, rois, x)


def fpn(mx, deformable):
    """FPN; proposals and pooling over five levels are Custom operators, as published."""
    net, sym = Blocks(mx), mx.sym
    data, im_info = sym.Variable("data"), sym.Variable("im_info")
    deform = ("3b3", "4b22", "5a", "5b", "5c") if deformable else ()
    c2, c3, c4, c5 = net.caffe_resnet(data, deform=deform, dilate_last=False)
    lateral = {i: net.conv(c, "fpn_p%d_1x1" % i, 256) for i, c in ((5, c5), (4, c4), (3, c3), (2, c2))}
    merged = {5: lateral[5]}
    for i in (4, 3, 2):
        up = sym.UpSampling(merged[i + 1], scale=2, sample_type="nearest", name="fpn_p%d_upsample" % (i + 1))
        merged[i] = sym.ElementWiseSum(up, lateral[i], name="fpn_p%d_sum" % i)
    levels = {i: net.conv(merged[i], "fpn_p%d" % i, 256, 3) for i in (2, 3, 4, 5)}
    levels[6] = net.conv(c5, "fpn_p6", 256, 3, 2)
    shared = {
        part: (sym.Variable("rpn_%s_weight" % part), sym.Variable("rpn_%s_bias" % part))
        for part in ("conv", "cls_score", "bbox_pred")
    }
    proposals = {}
    for i in (2, 3, 4, 5, 6):

        def conv(x, part, filters, kernel=1, suffix="_p%d" % i):
            weight, bias = shared[part]
            return net.conv(x, "rpn_" + part + suffix, filters, kernel, weight=weight, bias=bias)

        x = net.relu(conv(levels[i], "conv", 512, 3), "rpn_relu_p%d" % i)
        score = sym.Reshape(conv(x, "cls_score", 6), shape=(0, 2, -1, 0), name="rpn_cls_score_t1_p%d" % i)
        probability = sym.SoftmaxActivation(score, mode="channel", name="rpn_cls_prob_p%d" % i)
        stride = 2**i
        proposals["rpn_cls_prob_stride%d" % stride] = sym.Reshape(
            probability, shape=(0, 6, -1, 0), name="rpn_cls_prob_t_p%d" % i
        )
        proposals["rpn_bbox_pred_stride%d" % stride] = conv(x, "bbox_pred", 12)
    rois = sym.Custom(op_type="zoo_pyramid_proposal", im_info=im_info, name="rois", post_nms=300, **proposals)
    trained = {}
    if deformable:
        for i in (2, 3, 4, 5):
            for kind in ("weight", "bias"):
                trained["offset_%s_p%d" % (kind, i)] = sym.Variable("offset_p%d_%s" % (i, kind), lr_mult=0.01)
    pooled = sym.Custom(
        op_type="zoo_fpn_roi_pooling",
        name="fpn_roi_pooling",
        rois=rois,
        with_deformable=deformable,
        **{"data_p%d" % i: levels[i] for i in (2, 3, 4, 5)},
        **trained,
    )
    return _two_layer_head(net, rois, pooled)


def _proposals_and_conv5(net, deformable):
    sym = net.sym
    deform = ("5a", "5b", "5c") if deformable else ()
    _, _, c4, c5 = net.caffe_resnet(sym.Variable("data"), deform=deform)
    score, delta = net.rpn(c4, ANCHORS)
    score = sym.Reshape(score, shape=(0, 2, -1, 0), name="rpn_cls_score_reshape")
    probability = sym.SoftmaxActivation(score, mode="channel", name="rpn_cls_prob")
    probability = sym.Reshape(probability, shape=(0, 2 * ANCHORS, -1, 0), name="rpn_cls_prob_reshape")
    rois = sym.contrib.Proposal(
        cls_prob=probability,
        bbox_pred=delta,
        im_info=sym.Variable("im_info"),
        name="rois",
        feature_stride=16,
        scales=SCALES,
        ratios=RATIOS,
        rpn_pre_nms_top_n=6000,
        rpn_post_nms_top_n=300,
        threshold=0.7,
        rpn_min_size=0,
    )
    return rois, c5


def _deformable_psroi(net, name, data, rois, outputs, group, trans=None):
    more = {"no_trans": True} if trans is None else {"trans": trans, "no_trans": False, "trans_std": 0.1}
    return net.sym.contrib.DeformablePSROIPooling(
        data=data,
        rois=rois,
        name=name,
        group_size=group,
        pooled_size=7,
        sample_per_part=4,
        part_size=7,
        output_dim=outputs,
        spatial_scale=0.0625,
        **more,
    )


def _two_layer_head(net, rois, pooled):
    x = pooled
    for i in (1, 2):
        x = net.relu(net.fc(x, "fc_new_%d" % i, 1024), "fc_new_%d_relu" % i)
    return _test_outputs(net, rois, net.fc(x, "cls_score", CLASSES), net.fc(x, "bbox_pred", 4 * REGRESSED))


def _test_outputs(net, rois, scores, deltas):
    sym = net.sym
    scores = sym.SoftmaxActivation(scores, name="cls_prob")
    scores = sym.Reshape(scores, shape=(1, -1, CLASSES), name="cls_prob_reshape")
    deltas = sym.Reshape(deltas, shape=(1, -1, 4 * REGRESSED), name="bbox_pred_reshape")
    return sym.Group([rois, scores, deltas])
