"""AlexNet and VGG."""

from ....training.initializer import Xavier
from ... import nn
from ...hybrid import HybridBlock

__all__ = ["VGG", "AlexNet"]


def refuse_pretrained(name: str, pretrained: bool) -> None:
    """An error where trained parameters are asked for."""
    if pretrained:
        raise ValueError(
            f"{name}: pretrained=True would download parameters, which is not done here; make the network "
            "without it, and load_parameters from a file"
        )


class _FeaturesAndOutput(HybridBlock):
    """Base of networks of two parts."""

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


class AlexNet(_FeaturesAndOutput):
    """AlexNet, on one device."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(
                    nn.Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(192, kernel_size=5, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(384, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Flatten(),
                    nn.Dense(4096, activation="relu"),
                    nn.Dropout(0.5),
                    nn.Dense(4096, activation="relu"),
                    nn.Dropout(0.5),
                )
            self.output = nn.Dense(classes)


class VGG(_FeaturesAndOutput):
    """VGG of 11, 13, 16 or 19 layers."""

    _LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}

    def __init__(self, depth, classes=1000, batch_norm=False, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            for count, filters in zip(self._LAYERS[depth], (64, 128, 256, 512, 512), strict=True):
                for _ in range(count):
                    fill = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                    self.features.add(nn.Conv2D(filters, kernel_size=3, padding=1, weight_initializer=fill))
                    if batch_norm:
                        self.features.add(nn.BatchNorm())
                    self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(
                    nn.Dense(4096, activation="relu", weight_initializer="normal"), nn.Dropout(rate=0.5)
                )
            self.output = nn.Dense(classes, weight_initializer="normal")
