"""Face detectors and recognisers: RetinaFace, SSH, MTCNN, ArcFace, MobileFaceNet."""

from blocks import Blocks

# -- RetinaFace and SSH ----------------------------------------------------------------------------------


def retinaface(mx, backbone):
    """RetinaFace on ResNet-50 or on a MobileNet of width 0.25."""
    net, sym = Blocks(mx), mx.sym
    data = sym.Variable("data")
    if backbone == "resnet50":
        maps, width = _retina_resnet(net, data), 256
    else:
        maps, width = _retina_mobilenet(net, data), 64
    lateral, merged = {}, {}
    for stride in (32, 16, 8):
        lateral[stride] = _conv_bn(net, maps[stride], "rf_c%d_lateral" % stride, width)
    merged[32] = lateral[32]
    for stride in (16, 8):
        up = sym.UpSampling(
            merged[stride * 2],
            scale=2,
            sample_type="nearest",
            workspace=512,
            name="rf_c%d_up" % stride,
            num_args=1,
        )
        up = sym.Crop(up, lateral[stride], name="rf_crop%d" % stride)
        merged[stride] = _conv_bn(net, lateral[stride] + up, "rf_c%d_aggr" % stride, width, 3)
    outputs = []
    for stride in (32, 16, 8):
        x = _ssh_module(net, merged[stride], width, "rf_head_stride%d" % stride)
        outputs += _face_outputs(net, x, stride, landmarks=True)
    return sym.Group(outputs)


def ssh(mx):
    """SSH on VGG-16, with a fixed upsampling by deconvolution."""
    net, sym = Blocks(mx), mx.sym
    x5 = net.vgg16(sym.Variable("data"))
    x4 = x5.get_internals()["relu4_3_output"]
    low = net.relu(net.conv(x4, "ssh_m1_red_conv", 128), "ssh_m1_red_conv_relu")
    high = net.relu(net.conv(x5, "ssh_m2_red_conv", 128), "ssh_m2_red_conv_relu")
    up = sym.Deconvolution(
        high,
        num_filter=128,
        kernel=(4, 4),
        stride=(2, 2),
        pad=(1, 1),
        num_group=128,
        no_bias=True,
        attr={"__lr_mult__": "0.0", "__wd_mult__": "0.0"},
        name="ssh_m2_red_upsampling",
    )
    low = sym.Crop(low, up, name="ssh_m1_crop")
    m1 = net.relu(net.conv(low + up, "ssh_m1_conv", 128, 3), "ssh_m1_conv_relu")
    outputs = []
    for stride, feature, width in (
        (32, net.max_pool(x5, "ssh_m3_pool"), 256),
        (16, x5, 256),
        (8, m1, 128),
    ):
        x = _ssh_module(net, feature, width, "ssh_stride%d_det" % stride, norm=False)
        outputs += _face_outputs(net, x, stride, landmarks=False)
    return sym.Group(outputs)


def _conv_bn(net, x, name, filters, kernel=1, stride=1, act=True, norm=True, **more):
    x = net.conv(x, name, filters, kernel, stride, **more)
    if norm:
        x = net.bn(x, name + "_bn")
    return net.relu(x, name + "_relu") if act else x


def _ssh_module(net, x, width, name, norm=True):
    def conv(y, part, filters, act):
        return _conv_bn(net, y, name + part, filters, 3, act=act, norm=norm)

    narrow = conv(x, "_context_conv1", width // 4, True)
    context = conv(narrow, "_context_conv3_1", width // 4, True)
    parts = [
        conv(x, "_conv1", width // 2, False),
        conv(narrow, "_context_conv2", width // 4, False),
        conv(context, "_context_conv3_2", width // 4, False),
    ]
    return net.relu(net.sym.concat(*parts, dim=1, name=name + "_concat"), name + "_concat_relu")


def _face_outputs(net, x, stride, landmarks):
    sym = net.sym
    score = net.conv(x, "face_rpn_cls_score_stride%d" % stride, 4)
    score = sym.Reshape(score, shape=(0, 2, -1, 0), name="face_rpn_cls_score_reshape_stride%d" % stride)
    probability = sym.SoftmaxActivation(score, mode="channel", name="face_rpn_cls_prob_stride%d" % stride)
    outputs = [
        sym.Reshape(probability, shape=(0, 4, -1, 0), name="face_rpn_cls_prob_reshape_stride%d" % stride),
        net.conv(x, "face_rpn_bbox_pred_stride%d" % stride, 8),
    ]
    if landmarks:
        outputs.append(net.conv(x, "face_rpn_landmark_pred_stride%d" % stride, 20))
    return outputs


def _retina_resnet(net, data):
    maps = {}
    x = net.resnet_v2_stem(data)
    for stage, (units, filters) in enumerate(((3, 256), (4, 512), (6, 1024), (3, 2048)), 1):
        x = net.resnet_v2_stage(x, stage, units, filters, lambda y, s, name: y + s)
        maps[4 * 2 ** (stage - 1)] = net.relu(net.bn(x, "stage%d_out_bn" % stage), "stage%d_out" % stage)
    return maps


def _retina_mobilenet(net, data):
    x = _conv_bn(net, data, "conv_1", 8, 3, 2, bias=False)
    maps, stride = {}, 2
    blocks = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)) + ((128, 1),) * 5 + ((256, 2), (256, 1))
    filters = 8
    for i, (outputs, step) in enumerate(blocks, 2):
        x = _conv_bn(net, x, "conv_%d_dw" % i, filters, 3, step, bias=False, num_group=filters)
        x = _conv_bn(net, x, "conv_%d" % i, outputs, bias=False)
        filters, stride = outputs, stride * step
        maps[stride] = x
    return maps


# -- MTCNN -----------------------------------------------------------------------------------------------


def mtcnn(mx, stage):
    """One of MTCNN's three networks: ``"pnet"``, ``"rnet"`` or ``"onet"``. Pools round up, as Caffe's do."""
    net, sym = Blocks(mx), mx.sym
    x = sym.Variable("data")
    plans = {
        "pnet": ((10, 3, 2), (16, 3, 0), (32, 3, 0)),
        "rnet": ((28, 3, 3), (48, 3, 3), (64, 2, 0)),
        "onet": ((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)),
    }
    for i, (filters, kernel, pool) in enumerate(plans[stage], 1):
        x = net.conv(x, "conv%d" % i, filters, kernel, pad=0)
        x = sym.LeakyReLU(x, act_type="prelu", name="prelu%d" % i)
        if pool:
            x = net.max_pool(x, "pool%d" % i, pool, 2, pooling_convention="full")
    if stage == "pnet":
        score = sym.SoftmaxActivation(net.conv(x, "conv4_1", 2), mode="channel", name="prob1")
        return sym.Group([net.conv(x, "conv4_2", 4), score])
    last = len(plans[stage]) + 1
    x = net.fc(sym.Flatten(x), "conv%d" % last, 128 if stage == "rnet" else 256)
    x = sym.LeakyReLU(x, act_type="prelu", name="prelu%d" % last)
    if stage == "onet":
        x = sym.Dropout(x, p=0.25, name="drop5")
    heads = [net.fc(x, "conv%d_2" % (last + 1), 4)]
    if stage == "onet":
        heads.append(net.fc(x, "conv%d_3" % (last + 1), 10))
    score = sym.SoftmaxOutput(net.fc(x, "conv%d_1" % (last + 1), 2), name="prob1")
    return sym.Group([*heads, score])


# -- recognition -----------------------------------------------------------------------------------------


def arcface(mx, units=(3, 4, 14, 3)):
    """ArcFace's ResNet for 112 x 112 faces, with PReLU; by default the one called r50."""
    net, sym = Blocks(mx), mx.sym
    x = (sym.identity(sym.Variable("data"), name="id") - 127.5) * 0.0078125
    x = net.bn(net.conv(x, "conv0", 64, 3, bias=False), "bn0")
    x = sym.LeakyReLU(x, act_type="prelu", name="relu0")
    for stage, (count, filters) in enumerate(zip(units, (64, 128, 256, 512)), 1):
        for unit in range(1, count + 1):
            x = _arcface_unit(net, x, "stage%d_unit%d" % (stage, unit), filters, unit == 1)
    x = sym.Dropout(net.bn(x, "bn1"), p=0.4)
    return net.bn(net.fc(x, "pre_fc1", 512), "fc1", fix_gamma=True)


def _arcface_unit(net, x, name, filters, first):
    y = net.conv(net.bn(x, name + "_bn1"), name + "_conv1", filters, 3, bias=False)
    y = net.sym.LeakyReLU(net.bn(y, name + "_bn2"), act_type="prelu", name=name + "_relu1")
    stride = 2 if first else 1
    y = net.bn(net.conv(y, name + "_conv2", filters, 3, stride, bias=False), name + "_bn3")
    if first:
        x = net.bn(net.conv(x, name + "_conv1sc", filters, 1, stride, pad=0, bias=False), name + "_sc")
    return y + x


def mobilefacenet(mx):
    """MobileFaceNet for 112 x 112 faces."""
    net, sym = Blocks(mx), mx.sym

    def conv(x, name, filters, kernel=1, stride=1, groups=1, act=True, pad=None):
        x = net.conv(x, name + "_conv2d", filters, kernel, stride, pad, bias=False, num_group=groups)
        x = net.bn(x, name + "_batchnorm", eps=1e-3)
        return sym.LeakyReLU(x, act_type="prelu", name=name + "_relu") if act else x

    def bottleneck(x, name, filters, inner, stride):
        y = conv(x, name + "_conv_sep", inner)
        y = conv(y, name + "_conv_dw", inner, 3, stride, inner)
        return conv(y, name + "_conv_proj", filters, act=False)

    x = (sym.identity(sym.Variable("data"), name="id") - 127.5) * 0.0078125
    x = conv(conv(x, "conv_1", 64, 3, 2), "conv_2_dw", 64, 3, 1, 64)
    blocks = (("23", 64, 128, 4, "3"), ("34", 128, 256, 6, "4"), ("45", 128, 512, 2, "5"))
    for name, filters, inner, repeats, label in blocks:
        x = bottleneck(x, "dconv_" + name, filters, inner, 2)
        for i in range(repeats):
            x = x + bottleneck(
                x, "res_%s_block%d" % (label, i), filters, inner if label == "5" else filters * 2, 1
            )
    x = conv(x, "conv_6sep", 512)
    x = conv(x, "conv_6dw7_7", 512, 7, groups=512, act=False, pad=0)
    return net.bn(net.fc(x, "pre_fc1", 128), "fc1", fix_gamma=True)
