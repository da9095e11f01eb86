"""Networks that turn an image into a feature map, and the layers that look at one pooled region of it.

Names of the VGG and ResNet layers are those of the published MXNet models, so that their files fit.
"""

import roiops as mx

__all__ = ["BACKBONES", "Backbone"]


class Backbone:
    """Where features come from.

    Attributes
    ----------
    stride : int
        Image pixels from one cell of the feature map to the next.
    aligned : bool
        Whether the corner of the first cell lies on the corner of the image, so that ROIAlign must shift
        by half a cell; layers of odd kernels and stride 2 put the *centre* of the cell there instead.
    """

    stride = 16
    aligned = True

    def features(self, data):
        """The feature map that proposals and regions are taken from."""
        raise NotImplementedError

    def wide_features(self, data_features):
        """The feature map that R-FCN scores; further layers on top of :meth:`features`."""
        return data_features

    def top(self, pooled):
        """A vector for each pooled region."""
        raise NotImplementedError


class Small(Backbone):
    """A few convolutions with batch normalisation, trained from nothing in minutes."""

    stride = 8
    widths = (16, 32, 64)

    def features(self, data):
        net = data
        for i, width in enumerate(self.widths, start=1):
            net = self._layer(net, f"conv{i}", width, kernel=4, stride=2)
        for i in (1, 2):
            inner = self._layer(net, f"res{i}_conv1", self.widths[-1])
            inner = self._layer(inner, f"res{i}_conv2", self.widths[-1], activate=False)
            net = mx.sym.Activation(net + inner, act_type="relu", name=f"res{i}_relu")
        return net

    @staticmethod
    def _layer(net, name, width, kernel=3, stride=1, activate=True):
        net = mx.sym.Convolution(
            net,
            num_filter=width,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(1, 1),
            no_bias=True,
            name=name,
        )
        net = mx.sym.BatchNorm(net, fix_gamma=False, eps=1e-5, momentum=0.9, name=f"{name}_bn")
        return mx.sym.Activation(net, act_type="relu", name=f"{name}_relu") if activate else net

    def wide_features(self, data_features):
        return self._layer(data_features, "conv_new_1", 96)

    def top(self, pooled):
        net = mx.sym.FullyConnected(pooled, num_hidden=128, name="fc6")
        return mx.sym.Activation(net, act_type="relu", name="fc6_relu")


class VGG16(Backbone):
    """Simonyan and Zisserman's sixteen layers."""

    blocks = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))

    def features(self, data):
        net = data
        for i, (count, width) in enumerate(self.blocks, start=1):
            for j in range(1, count + 1):
                net = mx.sym.Convolution(
                    net, num_filter=width, kernel=(3, 3), pad=(1, 1), name=f"conv{i}_{j}"
                )
                net = mx.sym.Activation(net, act_type="relu", name=f"relu{i}_{j}")
            if i < len(self.blocks):
                net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{i}")
        return net

    def top(self, pooled):
        net = pooled
        for name in ("6", "7"):
            net = mx.sym.FullyConnected(net, num_hidden=4096, name=f"fc{name}")
            net = mx.sym.Activation(net, act_type="relu", name=f"relu{name}")
            net = mx.sym.Dropout(net, p=0.5, name=f"drop{name}")
        return net


class ResNet(Backbone):
    """Residual units with the activation first (He et al., 2016), normalised with fixed statistics."""

    aligned = False
    widths = (256, 512, 1024, 2048)

    def __init__(self, units):
        self.units = units

    @staticmethod
    def _norm(net, name, relu=True, fix_gamma=False):
        net = mx.sym.BatchNorm(net, fix_gamma=fix_gamma, eps=2e-5, use_global_stats=True, name=name)
        return mx.sym.Activation(net, act_type="relu", name=name.replace("bn", "relu")) if relu else net

    @staticmethod
    def _conv(net, name, width, kernel=1, stride=1, dilate=1):
        pad = dilate * (kernel // 2)
        return mx.sym.Convolution(
            net,
            num_filter=width,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            dilate=(dilate, dilate),
            pad=(pad, pad),
            no_bias=True,
            name=name,
        )

    def _stage(self, net, number, stride, dilate=1):
        width = self.widths[number - 1]
        for i in range(1, self.units[number - 1] + 1):
            name = f"stage{number}_unit{i}"
            step = stride if i == 1 else 1
            first = self._norm(net, f"{name}_bn1")
            inner = self._conv(first, f"{name}_conv1", width // 4)
            inner = self._conv(self._norm(inner, f"{name}_bn2"), f"{name}_conv2", width // 4, 3, step, dilate)
            inner = self._conv(self._norm(inner, f"{name}_bn3"), f"{name}_conv3", width)
            net = inner + (self._conv(first, f"{name}_sc", width, 1, step) if i == 1 else net)
        return net

    def features(self, data):
        net = self._norm(data, "bn_data", relu=False, fix_gamma=True)
        net = mx.sym.Convolution(
            net, num_filter=64, kernel=(7, 7), stride=(2, 2), pad=(3, 3), no_bias=True, name="conv0"
        )
        net = self._norm(net, "bn0")
        net = mx.sym.Pooling(net, pool_type="max", kernel=(3, 3), stride=(2, 2), pad=(1, 1), name="pooling0")
        net = self._stage(net, 1, 1)
        net = self._stage(net, 2, 2)
        return self._stage(net, 3, 2)

    def wide_features(self, data_features):
        net = self._norm(self._stage(data_features, 4, 1, dilate=2), "bn1")
        net = mx.sym.Convolution(net, num_filter=1024, kernel=(1, 1), name="conv_new_1")
        return mx.sym.Activation(net, act_type="relu", name="relu_new_1")

    def top(self, pooled):
        net = self._norm(self._stage(pooled, 4, 2), "bn1")
        return mx.sym.Pooling(net, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")


BACKBONES = {
    "small": Small,
    "vgg16": VGG16,
    "resnet50": lambda: ResNet((3, 4, 6, 3)),
    "resnet101": lambda: ResNet((3, 4, 23, 3)),
}
