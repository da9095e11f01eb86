"""MobileNet, versions 1 and 2."""

from ... import nn
from ...hybrid import HybridBlock
from .plain import _FeaturesAndOutput

__all__ = ["MobileNet", "MobileNetV2"]


class RELU6(HybridBlock):
    """Numbers within 0 and 6."""

    def hybrid_forward(self, F, x):
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(out, channels=1, kernel=1, stride=1, pad=0, num_group=1, active=True, relu6=False):
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=num_group, use_bias=False), nn.BatchNorm())
    if active:
        out.add(RELU6() if relu6 else nn.Activation("relu"))


class LinearBottleneck(HybridBlock):
    """A convolution of 3 x 3 of each channel between two of 1 x 1, the last without an activation."""

    def __init__(self, in_channels, channels, t, stride, **kwargs):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, wide, relu6=True)
            _add_conv(self.out, wide, kernel=3, stride=stride, pad=1, num_group=wide, relu6=True)
            _add_conv(self.out, channels, active=False)

    def hybrid_forward(self, F, x):
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(_FeaturesAndOutput):
    """MobileNet: ``multiplier`` times the channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        widths = [32, 64, *[128] * 2, *[256] * 2, *[512] * 6, *[1024] * 2]
        widths = [int(width * multiplier) for width in widths]
        strides = [1, 2] * 3 + [1] * 5 + [2, 1]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                _add_conv(self.features, widths[0], kernel=3, pad=1, stride=2)
                for before, after, stride in zip(widths[:-1], widths[1:], strides, strict=True):
                    _add_conv(self.features, before, kernel=3, stride=stride, pad=1, num_group=before)
                    _add_conv(self.features, after)
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(_FeaturesAndOutput):
    """MobileNet v2: ``multiplier`` times the channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        widths = [32, 16, *[24] * 2, *[32] * 3, *[64] * 4, *[96] * 3, *[160] * 3, 320]
        widths = [int(width * multiplier) for width in widths]
        strides = [1, 2] * 2 + [1, 1, 2] + [1] * 6 + [2] + [1] * 3
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                _add_conv(self.features, widths[0], kernel=3, stride=2, pad=1, relu6=True)
                for i, (before, after, stride) in enumerate(
                    zip(widths[:-1], widths[1:], strides, strict=True)
                ):
                    self.features.add(LinearBottleneck(before, after, 1 if i == 0 else 6, stride))
                _add_conv(self.features, int(1280 * multiplier) if multiplier > 1.0 else 1280, relu6=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())
