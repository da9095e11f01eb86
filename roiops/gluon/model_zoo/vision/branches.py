"""Networks of branches side by side: DenseNet, Inception v3 and SqueezeNet."""

from ... import nn
from ...contrib.nn import HybridConcurrent, Identity
from .plain import _FeaturesAndOutput

__all__ = ["DenseNet", "Inception3", "SqueezeNet"]


def _stack(*blocks, prefix=""):
    out = nn.HybridSequential(prefix=prefix)
    out.add(*blocks)
    return out


def _side_by_side(*branches):
    out = HybridConcurrent(axis=1, prefix="")
    out.add(*branches)
    return out


# -- DenseNet --------------------------------------------------------------------------------------------


def _normed(*layers):
    return nn.BatchNorm(), nn.Activation("relu"), *(layer() for layer in layers)


class DenseNet(_FeaturesAndOutput):
    """DenseNet: each layer adds ``growth_rate`` channels to those before it.

    Parameters
    ----------
    num_init_features : int
        How many channels the first convolution makes.
    block_config : list of int
        How many layers each stage has.
    bn_size : int
        How many times ``growth_rate`` channels the convolution of 1 x 1 of a layer makes.
    """

    def __init__(
        self, num_init_features, growth_rate, block_config, bn_size=4, dropout=0, classes=1000, **kwargs
    ):
        super().__init__(**kwargs)

        def layer():
            new = _stack(
                *_normed(lambda: nn.Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False)),
                *_normed(lambda: nn.Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False)),
            )
            if dropout:
                new.add(nn.Dropout(dropout))
            return _side_by_side(Identity(), new)

        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False))
            self.features.add(*_normed(lambda: nn.MaxPool2D(3, 2, 1)))
            count = num_init_features
            for i, layers in enumerate(block_config, 1):
                stage = nn.HybridSequential(prefix=f"stage{i}_")
                with stage.name_scope():
                    for _ in range(layers):
                        stage.add(layer())
                self.features.add(stage)
                count += layers * growth_rate
                if i < len(block_config):
                    count //= 2
                    halve = _normed(lambda: nn.Conv2D(count, kernel_size=1, use_bias=False))  # noqa: B023
                    self.features.add(_stack(*halve, nn.AvgPool2D(2, 2)))
            self.features.add(*_normed(lambda: nn.AvgPool2D(7), nn.Flatten))
            self.output = nn.Dense(classes)


# -- SqueezeNet ------------------------------------------------------------------------------------------


class SqueezeNet(_FeaturesAndOutput):
    """SqueezeNet 1.0 or 1.1: few channels between convolutions of 1 x 1 and 3 x 3 side by side."""

    #: How many channels the convolutions of a module make, in stages between which pictures are halved.
    _STAGES = {
        "1.0": ((96, 7), ((16, 64), (16, 64), (32, 128)), ((32, 128), (48, 192), (48, 192), (64, 256))),
        "1.1": ((64, 3), ((16, 64), (16, 64)), ((32, 128), (32, 128))),
    }
    _LAST = {"1.0": ((64, 256),), "1.1": ((48, 192), (48, 192), (64, 256), (64, 256))}

    def __init__(self, version, classes=1000, **kwargs):
        super().__init__(**kwargs)
        if version not in self._STAGES:
            raise AssertionError(f"Unsupported SqueezeNet version {version}:1.0 or 1.1 expected")
        (channels, window), *stages = self._STAGES[version]
        with self.name_scope():
            self.features = _stack(nn.Conv2D(channels, window, strides=2), nn.Activation("relu"))
            for stage in (*stages, self._LAST[version]):
                self.features.add(nn.MaxPool2D(3, 2, ceil_mode=True))
                for narrow, wide in stage:
                    module = _stack(self._convolution(narrow, 1))
                    module.add(_side_by_side(self._convolution(wide, 1), self._convolution(wide, 3, 1)))
                    self.features.add(module)
            self.features.add(nn.Dropout(0.5))
            self.output = _stack(nn.Conv2D(classes, 1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())

    @staticmethod
    def _convolution(channels, window, padding=0):
        return _stack(nn.Conv2D(channels, window, padding=padding), nn.Activation("relu"))


# -- Inception -------------------------------------------------------------------------------------------

# A convolution: channels, window, stride, padding. Strings are poolings; tuples of branches split once more.
_WIDE, _TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
_SPLIT = (((384, (1, 3), 1, (0, 1)),), ((384, (3, 1), 1, (1, 0)),))


def _a(channels):
    return (
        ((64, 1),),
        ((48, 1), (64, 5, 1, 2)),
        ((64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
        ("avg", (channels, 1)),
    )


def _c(n):
    return (
        ((192, 1),),
        ((n, 1), (n, *_WIDE), (192, *_TALL)),
        ((n, 1), (n, *_TALL), (n, *_WIDE), (n, *_TALL), (192, *_WIDE)),
        ("avg", (192, 1)),
    )


_B = (((384, 3, 2),), ((64, 1), (96, 3, 1, 1), (96, 3, 2)), ("max",))
_D = (((192, 1), (320, 3, 2)), ((192, 1), (192, *_WIDE), (192, *_TALL), (192, 3, 2)), ("max",))
_E = (((320, 1),), ((384, 1), _SPLIT), ((448, 1), (384, 3, 1, 1), _SPLIT), ("avg", (192, 1)))
_MODULES = {
    "A1_": _a(32),
    "A2_": _a(64),
    "A3_": _a(64),
    "B_": _B,
    "C1_": _c(128),
    "C2_": _c(160),
    "C3_": _c(160),
    "C4_": _c(192),
    "D_": _D,
    "E1_": _E,
    "E2_": _E,
}


def _convolution(channels, window, stride=1, padding=0):
    return _stack(
        nn.Conv2D(channels, window, stride, padding, use_bias=False),
        nn.BatchNorm(epsilon=0.001),
        nn.Activation("relu"),
    )


def _branch(steps):
    out = nn.HybridSequential(prefix="")
    if isinstance(steps[-1][0], tuple):
        out.add(_branch(steps[:-1]), _side_by_side(*map(_branch, steps[-1])))
        return out
    for step in steps:
        if step == "avg":
            out.add(nn.AvgPool2D(3, strides=1, padding=1))
        elif step == "max":
            out.add(nn.MaxPool2D(3, strides=2))
        else:
            out.add(_convolution(*step))
    return out


class Inception3(_FeaturesAndOutput):
    """Inception v3, for pictures of 299 x 299."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(_convolution(32, 3, 2), _convolution(32, 3), _convolution(64, 3, 1, 1))
            self.features.add(nn.MaxPool2D(3, 2), _convolution(80, 1), _convolution(192, 3))
            self.features.add(nn.MaxPool2D(3, 2))
            for prefix, branches in _MODULES.items():
                module = HybridConcurrent(axis=1, prefix=prefix)
                with module.name_scope():
                    module.add(*map(_branch, branches))
                self.features.add(module)
            self.features.add(nn.AvgPool2D(8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)
