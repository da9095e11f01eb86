"""SSD of MXNet's example: VGG-16 reduced, ResNet-50 and Inception v3, for deployment and training."""

from blocks import Blocks

_THIRD = 1.0 / 3
_WIDE, _NARROW = (1, 2, 0.5, 3, _THIRD), (1, 2, 0.5)
_SIZES = ((0.1, 0.141), (0.2, 0.272), (0.37, 0.447), (0.54, 0.619), (0.71, 0.79), (0.88, 0.961))
_SIZES_512 = (
    (0.07, 0.1025),
    (0.15, 0.2121),
    (0.3, 0.3674),
    (0.45, 0.5196),
    (0.6, 0.6708),
    (0.75, 0.8216),
    (0.9, 0.9721),
)
_EXTRA = ((512, 2, 1), (256, 2, 1), (256, 2, 1), (128, 2, 1))


def ssd(mx, backbone, size, train=False, classes=20):
    """The graph that detects, or the training graph with its losses and the detections."""
    net, sym = Blocks(mx), mx.sym
    data = sym.Variable("data")
    if backbone == "vgg16":
        features, scale = _vgg16(net, data)
        if size >= 448:
            extra = ((512, 2, 1), (256, 2, 1), (256, 2, 1), (256, 2, 1), (256, 1, 1))
            sizes, steps = _SIZES_512, [2**i / 512.0 for i in range(3, 10)]
        else:
            extra = ((512, 2, 1), (256, 2, 1), (256, 1, 0), (256, 1, 0))
            sizes, steps = _SIZES, [x / 300.0 for x in (8, 16, 32, 64, 100, 300)]
    else:
        features = (_inception_v3 if backbone == "inception_v3" else _resnet50)(net, data)
        extra, sizes, steps, scale = _EXTRA, _SIZES, [], {}
    features = list(features)
    for number, (filters, stride, pad) in enumerate(extra, 2):
        name = "multi_feat_%d_conv_" % number
        x = net.conv(features[-1], name + "1x1_conv", max(128, filters // 2))
        x = net.conv(net.relu(x, name + "1x1_relu"), name + "3x3_conv", filters, 3, stride, pad=pad)
        features.append(net.relu(x, name + "3x3_relu"))
    ratios = [_NARROW] + [_WIDE] * (len(features) - 3) + [_NARROW] * 2
    boxes, scores, anchors = _heads(net, features, sizes, ratios, steps, scale, classes + 1)
    if train:
        return _training(net, boxes, scores, anchors)
    probability = sym.SoftmaxActivation(scores, mode="channel", name="cls_prob")
    return _detection(net, probability, boxes, anchors)


def _detection(net, probability, boxes, anchors):
    return net.sym.contrib.MultiBoxDetection(
        probability,
        boxes,
        anchors,
        name="detection",
        nms_threshold=0.5,
        force_suppress=False,
        variances=(0.1, 0.1, 0.2, 0.2),
        nms_topk=400,
    )


def _training(net, boxes, scores, anchors):
    sym = net.sym
    box_target, box_mask, class_target = sym.contrib.MultiBoxTarget(
        anchors,
        sym.Variable("label"),
        scores,
        name="multibox_target",
        overlap_threshold=0.5,
        ignore_label=-1,
        negative_mining_ratio=3,
        minimum_negative_samples=0,
        negative_mining_thresh=0.5,
        variances=(0.1, 0.1, 0.2, 0.2),
    )
    probability = sym.SoftmaxOutput(
        scores,
        class_target,
        ignore_label=-1,
        use_ignore=True,
        multi_output=True,
        normalization="valid",
        name="cls_prob",
    )
    loss = sym.smooth_l1(box_mask * (boxes - box_target), scalar=1.0, name="loc_loss_")
    loss = sym.MakeLoss(loss, grad_scale=1.0, normalization="valid", name="loc_loss")
    class_label = sym.MakeLoss(class_target, grad_scale=0, name="cls_label")
    found = sym.MakeLoss(_detection(net, probability, boxes, anchors), grad_scale=0, name="det_out")
    return sym.Group([probability, loss, class_label, found])


def _heads(net, features, sizes, ratios, steps, scale, classes):
    sym = net.sym
    parts = {"loc": [], "cls": [], "anchors": []}
    for i, x in enumerate(features):
        name = x.name
        if name in scale:
            weight = sym.Variable(name + "_scale", shape=(1, scale[name], 1, 1))
            x = sym.broadcast_mul(weight, sym.L2Normalization(x, mode="channel", name=name + "_norm"))
        count = len(sizes[i]) - 1 + len(ratios[i])
        for part, outputs in (("loc", 4 * count), ("cls", classes * count)):
            head = "%s_%s_pred_conv" % (name, part)
            bias = sym.Variable(head + "_bias", attr={"__lr_mult__": "2.0"})
            y = sym.Convolution(
                x, bias=bias, kernel=(3, 3), stride=(1, 1), pad=(1, 1), num_filter=outputs, name=head
            )
            parts[part].append(sym.Flatten(sym.transpose(y, axes=(0, 2, 3, 1))))
        prior = sym.contrib.MultiBoxPrior(
            x,
            sizes="(" + ",".join(map(str, sizes[i])) + ")",
            ratios="(" + ",".join(map(str, ratios[i])) + ")",
            clip=False,
            name=name + "_anchors",
            steps=(steps[i], steps[i]) if steps else "(-1.0, -1.0)",
        )
        parts["anchors"].append(sym.Flatten(prior))
    boxes = sym.Concat(*parts["loc"], num_args=len(features), dim=1, name="multibox_loc_pred")
    scores = sym.Reshape(sym.Concat(*parts["cls"], num_args=len(features), dim=1), shape=(0, -1, classes))
    scores = sym.transpose(scores, axes=(0, 2, 1), name="multibox_cls_pred")
    anchors = sym.Concat(*parts["anchors"], num_args=len(features), dim=1)
    return boxes, scores, sym.Reshape(anchors, shape=(0, -1, 4), name="multibox_anchors")


def _vgg16(net, data):
    x = net.vgg16(data, full_pool3=True)
    first = x.get_internals()["relu4_3_output"]
    x = net.max_pool(x, "pool5", 3, 1, 1)
    x = net.relu(net.conv(x, "fc6", 1024, 3, dilate=6), "relu6")
    x = net.relu(net.conv(x, "fc7", 1024), "relu7")
    return (first, x), {"relu4_3": 512}


def _resnet50(net, data):
    def add(y, shortcut, name):
        return y + shortcut  # named _plus0, _plus1, ... by the framework, which the published files rely on

    with net.mx.name.NameManager():
        x = net.sym.identity(data, name="id")
        x = net.resnet_v2_stem(x, momentum=0.9)
        stages = []
        for stage, (units, filters) in enumerate(((3, 256), (4, 512), (6, 1024), (3, 2048)), 1):
            x = net.resnet_v2_stage(x, stage, units, filters, add, momentum=0.9)
            stages.append(x)
        internals = x.get_internals()
        return internals["_plus12_output"], internals["_plus15_output"]


def _inception_v3(net, data):
    sym = net.sym

    def conv(x, name, filters, kernel=1, stride=1, pad=0):
        x = net.conv(x, name + "_conv2d", filters, kernel, stride, pad=pad, bias=False)
        x = net.bn(x, name + "_batchnorm", fix_gamma=True, eps=1e-3)
        return net.relu(x, name + "_relu")

    def tower(x, name, *layers):
        for i, (filters, kernel, pad, stride) in enumerate(layers):
            x = conv(x, name + ("_conv_%d" % i if i else "_conv"), filters, kernel, stride, pad)
        return x

    def pool(x, name, kind, stride=1):
        pad = (1, 1) if stride == 1 else (0, 0)
        return sym.Pooling(
            x, kernel=(3, 3), stride=(stride,) * 2, pad=pad, pool_type=kind, name=name + "_pool"
        )

    def concat(name, *branches):
        return sym.Concat(*branches, name="ch_concat_%s_chconcat" % name)

    row, column = ((1, 7), (0, 3), 1), ((7, 1), (3, 0), 1)
    x = conv(data, "conv", 32, 3, 2)
    x = conv(conv(x, "conv_1", 32, 3), "conv_2", 64, 3, pad=1)
    x = net.max_pool(x, "pool", 3, 2)
    x = net.max_pool(conv(conv(x, "conv_3", 80), "conv_4", 192, 3), "pool1", 3, 2)
    for name, projected in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        x = concat(
            name,
            conv(x, name + "_conv", 64),
            tower(x, name + "_tower", (48, 1, 0, 1), (64, 5, 2, 1)),
            tower(x, name + "_tower_1", (64, 1, 0, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
            conv(pool(x, "avg_" + name, "avg"), name + "_tower_2_conv", projected),
        )
    name = "mixed_3"
    x = concat(
        name,
        conv(x, name + "_conv", 384, 3, 2),
        tower(x, name + "_tower", (64, 1, 0, 1), (96, 3, 1, 1), (96, 3, 0, 2)),
        pool(x, "max_" + name, "max", 2),
    )
    for name, inner in (("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)):
        x = concat(
            name,
            conv(x, name + "_conv", 192),
            tower(x, name + "_tower", (inner, 1, 0, 1), (inner, *row), (192, *column)),
            tower(
                x,
                name + "_tower_1",
                (inner, 1, 0, 1),
                (inner, *column),
                (inner, *row),
                (inner, *column),
                (192, *row),
            ),
            conv(pool(x, "avg_" + name, "avg"), name + "_tower_2_conv", 192),
        )
    name = "mixed_8"
    x = concat(
        name,
        tower(x, name + "_tower", (192, 1, 0, 1), (320, 3, 0, 2)),
        tower(x, name + "_tower_1", (192, 1, 0, 1), (192, *row), (192, *column), (192, 3, 0, 2)),
        pool(x, "max_" + name, "max", 2),
    )
    for name, kind in (("mixed_9", "avg"), ("mixed_10", "max")):
        narrow = conv(x, name + "_tower_conv", 384)
        wide = tower(x, name + "_tower_1", (448, 1, 0, 1), (384, 3, 1, 1))
        split = [
            conv(y, label + suffix, 384, kernel, pad=pad)
            for y, label in ((narrow, name + "_tower"), (wide, name + "_tower_1"))
            for suffix, kernel, pad in (("_mixed_conv", (1, 3), (0, 1)), ("_mixed_conv_1", (3, 1), (1, 0)))
        ]
        last = conv(pool(x, kind + "_" + name, kind), name + "_tower_2_conv", 192)
        x = concat(name, conv(x, name + "_conv", 320), *split, last)
    internals = x.get_internals()
    return internals["ch_concat_mixed_7_chconcat_output"], x
