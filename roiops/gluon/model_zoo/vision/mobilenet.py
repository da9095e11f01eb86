"""MobileNet, versions 1 and 2."""

from ... import nn
from ...hybrid import HybridBlock
from .rows import RELU, Network, conv, made, stack

__all__ = ["MobileNet", "MobileNetV2"]


class RELU6(HybridBlock):
    """Numbers within 0 and 6."""

    def hybrid_forward(self, F, x):
        return F.clip(x, 0, 6, name="relu6")


def _normed(channels, window=1, stride=1, groups=1, active=(RELU,)) -> list:
    row = conv(channels, window, stride, window // 2, groups=groups, use_bias=False)
    return [row, nn.BatchNorm, *active]


class LinearBottleneck(HybridBlock):
    """A convolution of 3 x 3 of each channel between two of 1 x 1, the last without an activation."""

    def __init__(self, in_channels, channels, t, stride, **kwargs):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        rows = [*_normed(wide, active=[RELU6]), *_normed(wide, 3, stride, wide, [RELU6])]
        with self.name_scope():
            self.out = nn.HybridSequential()
            self.out.add(*map(made, rows + _normed(channels, active=())))

    def hybrid_forward(self, F, x):
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


def _steps(widths, strides, multiplier):
    """The channels before and after each layer, and its stride."""
    widths = [int(width * multiplier) for width in widths]
    return zip(widths[:-1], widths[1:], strides, strict=True)


class MobileNet(Network):
    """MobileNet: ``multiplier`` times the channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        widths = [32, 64, *[128] * 2, *[256] * 2, *[512] * 6, *[1024] * 2]
        features = _normed(int(32 * multiplier), 3, 2)
        for before, after, stride in _steps(widths, [1, 2] * 3 + [1] * 5 + [2, 1], multiplier):
            features += _normed(before, 3, stride, before) + _normed(after)
        super().__init__([*features, nn.GlobalAvgPool2D, nn.Flatten], (nn.Dense, classes), **kwargs)


class MobileNetV2(Network):
    """MobileNet v2: ``multiplier`` times the channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        widths = [32, 16, *[24] * 2, *[32] * 3, *[64] * 4, *[96] * 3, *[160] * 3, 320]
        strides = [1, 2] * 2 + [1, 1, 2] + [1] * 6 + [2] + [1] * 3
        features = _normed(int(32 * multiplier), 3, 2, active=[RELU6])
        for i, step in enumerate(_steps(widths, strides, multiplier)):
            before, after, stride = step
            features.append((LinearBottleneck, before, after, 6 if i else 1, stride))
        features += _normed(int(1280 * max(multiplier, 1.0)), active=[RELU6])
        output = (stack, conv(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten)
        super().__init__(
            (stack, *features, nn.GlobalAvgPool2D, {"prefix": "features_"}),
            (*output, {"prefix": "output_"}),
            **kwargs,
        )
