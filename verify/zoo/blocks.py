"""What all the networks are made of."""


class Blocks:
    """Layers with names, on the ``sym`` of a given ``mx``."""

    def __init__(self, mx):
        self.mx, self.sym = mx, mx.sym

    def conv(self, x, name, filters, kernel=1, stride=1, pad=None, dilate=1, bias=True, **more):
        """A convolution; without ``pad`` an odd kernel keeps the size. ``bias`` may be a symbol."""
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        if pad is None:
            pad = tuple((k - 1) // 2 * dilate for k in kernel)
        if not isinstance(bias, bool):
            more["bias"] = bias
        return self.sym.Convolution(
            x,
            name=name,
            num_filter=filters,
            kernel=kernel,
            stride=(stride, stride),
            pad=pad if isinstance(pad, tuple) else (pad, pad),
            dilate=(dilate, dilate),
            no_bias=bias is False,
            **more,
        )

    def relu(self, x, name):
        return self.sym.Activation(x, act_type="relu", name=name)

    def bn(self, x, name, **more):
        return self.sym.BatchNorm(x, name=name, **{"fix_gamma": False, "eps": 2e-5, **more})

    def max_pool(self, x, name=None, kernel=2, stride=2, pad=0, **more):
        return self.sym.Pooling(
            x, name=name, pool_type="max", kernel=(kernel,) * 2, stride=(stride,) * 2, pad=(pad,) * 2, **more
        )

    def fc(self, x, name, units, **more):
        return self.sym.FullyConnected(x, name=name, num_hidden=units, **more)

    # -- whole backbones -----------------------------------------------------------------------------

    def vgg16(self, x, upto=5, full_pool3=False, pools=True):
        """VGG-16 to the last ReLU of group ``upto``."""
        for group, (layers, filters) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
            for layer in range(1, layers + 1):
                x = self.conv(x, "conv%d_%d" % (group, layer), filters, 3)
                x = self.relu(x, "relu%d_%d" % (group, layer))
            if group == upto:
                return x
            more = {"pooling_convention": "full"} if full_pool3 and group == 3 else {}
            x = self.max_pool(x, "pool%d" % group, **more)
        return x

    def preactivation_unit(self, x, name, filters, stride, match, add, **bn):
        """A bottleneck of ResNet v2, whose batch norm and ReLU come first."""
        act = self.relu(self.bn(x, name + "_bn1", **bn), name + "_relu1")
        y = self.conv(act, name + "_conv1", filters // 4, bias=False)
        y = self.relu(self.bn(y, name + "_bn2", **bn), name + "_relu2")
        y = self.conv(y, name + "_conv2", filters // 4, 3, stride, bias=False)
        y = self.relu(self.bn(y, name + "_bn3", **bn), name + "_relu3")
        y = self.conv(y, name + "_conv3", filters, bias=False)
        shortcut = x if match else self.conv(act, name + "_sc", filters, 1, stride, pad=0, bias=False)
        return add(y, shortcut, name + "_plus")

    def resnet_v2_stem(self, x, **bn):
        x = self.bn(x, "bn_data", **{**bn, "fix_gamma": True})
        x = self.conv(x, "conv0", 64, 7, 2, bias=False)
        x = self.relu(self.bn(x, "bn0", **bn), "relu0")
        return self.max_pool(x, "pool0", 3, 2, 1)

    def resnet_v2_stage(self, x, stage, units, filters, add, **bn):
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            x = self.preactivation_unit(
                x, "stage%d_unit%d" % (stage, unit), filters, stride, unit > 1, add, **bn
            )
        return x

    def caffe_resnet(self, x, units=(3, 4, 23, 3), deform=(), dilate_last=True, groups=4):
        """Caffe's ResNet with its names (``res4b22_branch2a``); the outputs of its four stages.

        In stages listed in ``deform`` (name of unit) the 3x3 convolution is deformable.
        """
        frozen = {"use_global_stats": True, "eps": 1e-5}
        x = self.conv(x, "conv1", 64, 7, 2, bias=False)
        x = self.relu(self.bn(x, "bn_conv1", **frozen), "conv1_relu")
        x = self.max_pool(x, "pool1", 3, 2, pooling_convention="full")
        stages = []
        for stage, count in enumerate(units, 2):
            filters = 64 * 2 ** (stage - 2)
            for unit in range(count):
                letter = (
                    "a"
                    if unit == 0
                    else ("b%d" % unit if count > 4 and stage < 5 else "abc"[unit : unit + 1])
                )
                name = "%d%s" % (stage, letter or "d")
                dilate = 2 if stage == 5 and dilate_last else 1
                stride = 2 if unit == 0 and stage > 2 and dilate == 1 else 1
                x = self._caffe_unit(
                    x, name, filters, stride, dilate, unit == 0, name in deform, groups, frozen
                )
            stages.append(x)
        return stages

    def _caffe_unit(self, x, name, filters, stride, dilate, project, deform, groups, frozen):
        def branch(y, part, count, *args, **more):
            label = "%s_branch%s" % (name, part)
            return self.bn(
                self.conv(y, "res" + label, count, *args, bias=False, **more), "bn" + label, **frozen
            )

        shortcut = branch(x, "1", filters * 4, 1, stride, pad=0) if project else x
        y = self.relu(branch(x, "2a", filters, 1, stride, pad=0), "res%s_branch2a_relu" % name)
        if deform:
            label = "res%s_branch2b" % name
            offset = self.conv(y, label + "_offset", 18 * groups, 3, dilate=dilate, cudnn_off=True)
            y = self.sym.contrib.DeformableConvolution(
                y,
                offset,
                name=label,
                num_filter=filters,
                kernel=(3, 3),
                pad=(dilate, dilate),
                dilate=(dilate, dilate),
                num_deformable_group=groups,
                no_bias=True,
            )
            y = self.bn(y, "bn%s_branch2b" % name, **frozen)
        else:
            y = branch(y, "2b", filters, 3, dilate=dilate)
        y = branch(self.relu(y, "res%s_branch2b_relu" % name), "2c", filters * 4)
        return self.relu(self.sym.broadcast_add(shortcut, y, name="res%s" % name), "res%s_relu" % name)

    # -- heads that several families share -----------------------------------------------------------

    def rpn(self, feature, anchors, filters=512):
        """Scores and deltas of a region proposal network, under the names of the R-CNN examples."""
        x = self.relu(self.conv(feature, "rpn_conv_3x3", filters, 3), "rpn_relu")
        return self.conv(x, "rpn_cls_score", 2 * anchors), self.conv(x, "rpn_bbox_pred", 4 * anchors)

    def smooth_l1_loss(self, name, prediction, target, weight, sigma, scale):
        loss = weight * self.sym.smooth_l1(prediction - target, scalar=sigma, name=name + "_")
        return self.sym.MakeLoss(loss, grad_scale=scale, name=name)
