"""ResNet, of the first form (activation last) and of the second (activation first)."""

from ... import nn
from ...hybrid import HybridBlock
from .plain import _FeaturesAndOutput, refuse_pretrained

__all__ = [
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "ResNetV1",
    "ResNetV2",
    "get_resnet",
]


def _conv3x3(channels, stride, in_channels):
    return nn.Conv2D(
        channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels
    )


def _conv1x1(channels, stride, in_channels=0):
    return nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """Base of blocks of the first form: a body, and the input or a projection of it added."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self._fill(channels, stride, in_channels)
        self.downsample = None
        if downsample:
            self.downsample = nn.HybridSequential(prefix="")
            self.downsample.add(_conv1x1(channels, stride, in_channels), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(self._sum(residual, self.body(x)), act_type="relu")

    @staticmethod
    def _sum(residual, x):
        return residual + x


class BasicBlockV1(_BlockV1):
    """Two convolutions of 3 x 3."""

    def _fill(self, channels, stride, in_channels):
        self.body.add(_conv3x3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(_conv3x3(channels, 1, channels), nn.BatchNorm())


class BottleneckV1(_BlockV1):
    """A convolution of 3 x 3 between two of 1 x 1."""

    def _fill(self, channels, stride, in_channels):
        narrow = channels // 4
        self.body.add(nn.Conv2D(narrow, kernel_size=1, strides=stride), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(_conv3x3(narrow, 1, narrow), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm())

    @staticmethod
    def _sum(residual, x):  # in MXNet's order
        return x + residual


class _BlockV2(HybridBlock):
    """Base of blocks of the second form: pairs of batch norm and convolution."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        for i, convolution in enumerate(self._convolutions(channels, stride, in_channels), 1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", convolution())
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F, x):
        residual = x
        for i in range(1, self._count + 1):
            x = F.Activation(getattr(self, f"bn{i}")(x), act_type="relu")
            if i == 1 and self.downsample is not None:
                residual = self.downsample(x)
            x = getattr(self, f"conv{i}")(x)
        return x + residual


class BasicBlockV2(_BlockV2):
    """Two convolutions of 3 x 3."""

    _count = 2

    def _convolutions(self, channels, stride, in_channels):
        return (lambda: _conv3x3(channels, stride, in_channels), lambda: _conv3x3(channels, 1, channels))


class BottleneckV2(_BlockV2):
    """A convolution of 3 x 3 between two of 1 x 1."""

    _count = 3

    def _convolutions(self, channels, stride, in_channels):
        narrow = channels // 4
        return (
            lambda: _conv1x1(narrow, 1),
            lambda: _conv3x3(narrow, stride, narrow),
            lambda: _conv1x1(channels, 1),
        )


class ResNetV1(_FeaturesAndOutput):
    """ResNet: ``layers`` blocks in each stage, of ``channels`` channels; ``thumbnail`` for small pictures."""

    _begins_with = _ends_with = ()

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise AssertionError(
                f"ResNet: {len(layers)} stages need {len(layers) + 1} channels, got {channels}"
            )
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(*(make() for make in self._begins_with))
            if thumbnail:
                self.features.add(_conv3x3(channels[0], 1, 0))
            else:
                self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False), nn.BatchNorm())
                self.features.add(nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))
            for i, count in enumerate(layers):
                stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
                wide, narrow = channels[i + 1], channels[i]
                with stage.name_scope():
                    stage.add(block(wide, 1 if i == 0 else 2, wide != narrow, in_channels=narrow, prefix=""))
                    for _ in range(count - 1):
                        stage.add(block(wide, 1, False, in_channels=wide, prefix=""))
                self.features.add(stage)
            self.features.add(*(make() for make in self._ends_with), nn.GlobalAvgPool2D())
            if self._ends_with:
                self.features.add(nn.Flatten())
            self.output = nn.Dense(classes, in_units=channels[-1])


class ResNetV2(ResNetV1):
    """The second form, which begins and ends with a batch norm."""

    _begins_with = (lambda: nn.BatchNorm(scale=False, center=False),)
    _ends_with = (nn.BatchNorm, lambda: nn.Activation("relu"))


_WIDE, _NARROW = (64, 256, 512, 1024, 2048), (64, 64, 128, 256, 512)
_SPECIFICATIONS = {
    18: ("basic", (2, 2, 2, 2), _NARROW),
    34: ("basic", (3, 4, 6, 3), _NARROW),
    50: ("bottleneck", (3, 4, 6, 3), _WIDE),
    101: ("bottleneck", (3, 4, 23, 3), _WIDE),
    152: ("bottleneck", (3, 8, 36, 3), _WIDE),
}
_BLOCKS = {
    1: {"basic": BasicBlockV1, "bottleneck": BottleneckV1},
    2: {"basic": BasicBlockV2, "bottleneck": BottleneckV2},
}


def get_resnet(version: int, num_layers: int, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """ResNet of the first or second form with 18, 34, 50, 101 or 152 layers.

    ``pretrained``, ``ctx`` and ``root`` are those of :func:`get_model`.
    """
    refuse_pretrained("get_resnet", pretrained)
    if num_layers not in _SPECIFICATIONS:
        raise AssertionError(f"Invalid number of layers: {num_layers}. Options are {list(_SPECIFICATIONS)}")
    if version not in _BLOCKS:
        raise AssertionError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = _SPECIFICATIONS[num_layers]
    return (ResNetV1 if version == 1 else ResNetV2)(_BLOCKS[version][kind], layers, channels, **kwargs)
