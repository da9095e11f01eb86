"""AlexNet, VGG, and networks of branches side by side: DenseNet, SqueezeNet and Inception v3."""

from ....training.initializer import Xavier
from ... import nn
from ...contrib.nn import Identity
from .rows import NORMED, RELU, Network, conv, side_by_side, stack

__all__ = ["VGG", "AlexNet", "DenseNet", "Inception3", "SqueezeNet"]


class AlexNet(Network):
    """AlexNet, on one device."""

    def __init__(self, classes=1000, **kwargs):
        pool = (nn.MaxPool2D, 3, 2)
        features = [
            conv(64, 11, 4, 2, activation="relu"),
            pool,
            conv(192, 5, 1, 2, activation="relu"),
            pool,
            conv(384, 3, 1, 1, activation="relu"),
            conv(256, 3, 1, 1, activation="relu"),
            conv(256, 3, 1, 1, activation="relu"),
            pool,
            nn.Flatten,
            *[(nn.Dense, 4096, "relu"), (nn.Dropout, 0.5)] * 2,
        ]
        super().__init__(features, (nn.Dense, classes), **kwargs)


class VGG(Network):
    """VGG: ``layers`` convolutions in each stage, of ``filters`` channels."""

    def __init__(self, layers, filters, classes=1000, batch_norm=False, **kwargs):
        fill, features = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2), []
        for count, channels in zip(layers, filters, strict=True):
            layer = [conv(channels, 3, 1, 1, weight_initializer=fill), *(NORMED if batch_norm else [RELU])]
            features += [*layer * count, (nn.MaxPool2D, {"strides": 2})]
        dense = (nn.Dense, 4096, "relu", {"weight_initializer": "normal"})
        features += [dense, (nn.Dropout, 0.5)] * 2
        super().__init__(features, (nn.Dense, classes, {"weight_initializer": "normal"}), **kwargs)


class DenseNet(Network):
    """DenseNet: each layer adds ``growth_rate`` channels to the ``num_init_features`` and those before it.

    ``block_config`` has the number of layers of each stage; the convolution of 1 x 1 of a layer makes
    ``bn_size`` times ``growth_rate`` channels.
    """

    def __init__(
        self, num_init_features, growth_rate, block_config, bn_size=4, dropout=0, classes=1000, **kwargs
    ):
        new = [*NORMED, conv(bn_size * growth_rate, 1, use_bias=False)]
        new += [*NORMED, conv(growth_rate, 3, 1, 1, use_bias=False)]
        if dropout:
            new.append((nn.Dropout, dropout))
        layer, count = (side_by_side, Identity, new), num_init_features
        features = [conv(count, 7, 2, 3, use_bias=False), *NORMED, (nn.MaxPool2D, 3, 2, 1)]
        for i, layers in enumerate(block_config, 1):
            features.append((stack, *[layer] * layers, {"prefix": f"stage{i}_"}))
            count += layers * growth_rate
            if i < len(block_config):
                count //= 2
                features.append([*NORMED, conv(count, 1, use_bias=False), (nn.AvgPool2D, 2, 2)])
        features += [*NORMED, (nn.AvgPool2D, 7), nn.Flatten]
        super().__init__(features, (nn.Dense, classes), **kwargs)


class SqueezeNet(Network):
    """SqueezeNet 1.0 or 1.1: few channels between convolutions of 1 x 1 and 3 x 3 side by side."""

    #: The first convolution; how many channels those of a module make, in stages that begin with a pooling.
    _STAGES = {
        "1.0": ((96, 7), "16 16 32", "32 48 48 64", "64"),
        "1.1": ((64, 3), "16 16", "32 32", "48 48 64 64"),
    }

    def __init__(self, version, classes=1000, **kwargs):
        if version not in self._STAGES:
            raise AssertionError(f"Unsupported SqueezeNet version {version}:1.0 or 1.1 expected")
        first, *stages = self._STAGES[version]
        features = [conv(*first, stride=2), RELU]
        for stage in stages:
            features.append((nn.MaxPool2D, 3, 2, {"ceil_mode": True}))
            for narrow in map(int, stage.split()):
                wide = [conv(4 * narrow, 1), RELU], [conv(4 * narrow, 3, 1, 1), RELU]
                features.append([[conv(narrow, 1), RELU], (side_by_side, *wide)])
        features.append((nn.Dropout, 0.5))
        super().__init__(features, [conv(classes, 1), RELU, (nn.AvgPool2D, 13), nn.Flatten], **kwargs)


# -- Inception -------------------------------------------------------------------------------------------


def _c(channels, window, stride=1, padding=0):
    return [conv(channels, window, stride, padding, use_bias=False), (nn.BatchNorm, {"epsilon": 0.001}), RELU]


def _wide(channels, size=7):
    return _c(channels, (1, size), 1, (0, size // 2))


def _tall(channels, size=7):
    return _c(channels, (size, 1), 1, (size // 2, 0))


_MEAN, _MAX = (nn.AvgPool2D, 3, 1, 1), (nn.MaxPool2D, 3, 2)
_SPLIT = (side_by_side, [_wide(384, 3)], [_tall(384, 3)])


def _a(channels):
    return (
        [_c(64, 1)],
        [_c(48, 1), _c(64, 5, 1, 2)],
        [_c(64, 1), _c(96, 3, 1, 1), _c(96, 3, 1, 1)],
        [_MEAN, _c(channels, 1)],
    )


def _seven(n):
    return (
        [_c(192, 1)],
        [_c(n, 1), _wide(n), _tall(192)],
        [_c(n, 1), _tall(n), _wide(n), _tall(n), _wide(192)],
        [_MEAN, _c(192, 1)],
    )


_E = (
    [_c(320, 1)],
    [[_c(384, 1)], _SPLIT],
    [[_c(448, 1), _c(384, 3, 1, 1)], _SPLIT],
    [_MEAN, _c(192, 1)],
)
_MODULES = {
    "A1_": _a(32),
    "A2_": _a(64),
    "A3_": _a(64),
    "B_": ([_c(384, 3, 2)], [_c(64, 1), _c(96, 3, 1, 1), _c(96, 3, 2)], [_MAX]),
    "C1_": _seven(128),
    "C2_": _seven(160),
    "C3_": _seven(160),
    "C4_": _seven(192),
    "D_": ([_c(192, 1), _c(320, 3, 2)], [_c(192, 1), _wide(192), _tall(192), _c(192, 3, 2)], [_MAX]),
    "E1_": _E,
    "E2_": _E,
}


class Inception3(Network):
    """Inception v3, for pictures of 299 x 299."""

    def __init__(self, classes=1000, **kwargs):
        features = [_c(32, 3, 2), _c(32, 3), _c(64, 3, 1, 1), _MAX, _c(80, 1), _c(192, 3), _MAX]
        features += [(side_by_side, *branches, {"prefix": prefix}) for prefix, branches in _MODULES.items()]
        super().__init__([*features, (nn.AvgPool2D, 8), (nn.Dropout, 0.5)], (nn.Dense, classes), **kwargs)
