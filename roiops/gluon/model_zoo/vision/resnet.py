"""ResNet, of the first form (activation last) and of the second (activation first)."""

from ... import nn
from ...hybrid import HybridBlock
from .rows import NORMED, RELU, Network, conv, made, refuse_pretrained, stack

__all__ = ["BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "ResNetV1", "ResNetV2"]
__all__ += ["get_resnet"]


def _conv3x3(channels, stride, in_channels):
    return conv(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


def _conv1x1(channels, stride, in_channels=0):
    return conv(channels, 1, stride, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """Base of blocks of the first form: a body, and the input or a projection of it added."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        first, *others = self._convolutions(channels, stride, in_channels)
        body = [first, nn.BatchNorm]
        for convolution in others:
            body += [RELU, convolution, nn.BatchNorm]
        self.body = made(body)
        projection = [_conv1x1(channels, stride, in_channels), nn.BatchNorm]
        self.downsample = made(projection) if downsample else None

    def hybrid_forward(self, F, x):
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(self._sum(residual, self.body(x)), act_type="relu")

    @staticmethod
    def _sum(residual, x):
        return residual + x


class _BlockV2(HybridBlock):
    """Base of blocks of the second form: pairs of batch norm and convolution."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        convolutions = self._convolutions(channels, stride, in_channels)
        self._count = len(convolutions)
        for i, convolution in enumerate(convolutions, 1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", made(convolution))
        self.downsample = made(_conv1x1(channels, stride, in_channels)) if downsample else None

    def hybrid_forward(self, F, x):
        residual = x
        for i in range(1, self._count + 1):
            x = F.Activation(getattr(self, f"bn{i}")(x), act_type="relu")
            if i == 1 and self.downsample is not None:
                residual = self.downsample(x)
            x = getattr(self, f"conv{i}")(x)
        return x + residual


class BasicBlockV1(_BlockV1):
    """Two convolutions of 3 x 3."""

    @staticmethod
    def _convolutions(channels, stride, in_channels):
        return _conv3x3(channels, stride, in_channels), _conv3x3(channels, 1, channels)


class BottleneckV1(_BlockV1):
    """A convolution of 3 x 3 between two of 1 x 1."""

    @staticmethod
    def _convolutions(channels, stride, in_channels):
        narrow = channels // 4
        return conv(narrow, 1, stride), _conv3x3(narrow, 1, narrow), conv(channels, 1)

    @staticmethod
    def _sum(residual, x):  # in MXNet's order
        return x + residual


class BasicBlockV2(_BlockV2):
    """Two convolutions of 3 x 3."""

    _convolutions = staticmethod(BasicBlockV1._convolutions)


class BottleneckV2(_BlockV2):
    """A convolution of 3 x 3 between two of 1 x 1."""

    @staticmethod
    def _convolutions(channels, stride, in_channels):
        narrow = channels // 4
        return _conv1x1(narrow, 1), _conv3x3(narrow, stride, narrow), _conv1x1(channels, 1)


class ResNetV1(Network):
    """ResNet: ``layers`` blocks in each stage, of ``channels`` channels; ``thumbnail`` for small pictures."""

    #: The rows before the first convolution, and those about the last pooling.
    _begins_with, _ends_with = [], [nn.GlobalAvgPool2D]

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        if len(layers) != len(channels) - 1:
            raise AssertionError(
                f"ResNet: {len(layers)} stages need {len(layers) + 1} channels, got {channels}"
            )
        large = [conv(channels[0], 7, 2, 3, use_bias=False), *NORMED, (nn.MaxPool2D, 3, 2, 1)]
        features = self._begins_with + ([_conv3x3(channels[0], 1, 0)] if thumbnail else large)
        for i, count in enumerate(layers):
            wide, narrow = channels[i + 1], channels[i]
            first = (block, wide, 1 if i == 0 else 2, wide != narrow, {"in_channels": narrow, "prefix": ""})
            other = (block, wide, 1, False, {"in_channels": wide, "prefix": ""})
            features.append((stack, first, *[other] * (count - 1), {"prefix": f"stage{i + 1}_"}))
        output = (nn.Dense, classes, {"in_units": channels[-1]})
        super().__init__(features + self._ends_with, output, **kwargs)


class ResNetV2(ResNetV1):
    """The second form, which begins and ends with a batch norm."""

    _begins_with = [(nn.BatchNorm, {"scale": False, "center": False})]
    _ends_with = [*NORMED, nn.GlobalAvgPool2D, nn.Flatten]


_WIDE, _NARROW = (64, 256, 512, 1024, 2048), (64, 64, 128, 256, 512)
#: By the number of layers: which blocks, how many in each stage, of how many channels.
_SPECIFICATIONS = {
    18: ("basic", (2, 2, 2, 2), _NARROW),
    34: ("basic", (3, 4, 6, 3), _NARROW),
    50: ("bottleneck", (3, 4, 6, 3), _WIDE),
    101: ("bottleneck", (3, 4, 23, 3), _WIDE),
    152: ("bottleneck", (3, 8, 36, 3), _WIDE),
}
_VERSIONS = {
    1: (ResNetV1, {"basic": BasicBlockV1, "bottleneck": BottleneckV1}),
    2: (ResNetV2, {"basic": BasicBlockV2, "bottleneck": BottleneckV2}),
}


def get_resnet(version: int, num_layers: int, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """ResNet of the first or second form with 18, 34, 50, 101 or 152 layers.

    ``pretrained``, ``ctx`` and ``root`` are those of :func:`get_model`.
    """
    refuse_pretrained("get_resnet", pretrained)
    if num_layers not in _SPECIFICATIONS:
        raise AssertionError(f"Invalid number of layers: {num_layers}. Options are {list(_SPECIFICATIONS)}")
    if version not in _VERSIONS:
        raise AssertionError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    (network, blocks), (kind, layers, channels) = _VERSIONS[version], _SPECIFICATIONS[num_layers]
    return network(blocks[kind], layers, channels, **kwargs)
