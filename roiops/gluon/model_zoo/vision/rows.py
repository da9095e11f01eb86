"""Networks as rows of layers.

A row is a class of layers, alone or in a tuple with its arguments, of which the last may be a dict of named
ones; or a list of rows, which is one after the other. Layers are made, and so named, in the order of rows.
"""

from ... import nn
from ...contrib.nn import HybridConcurrent
from ...hybrid import HybridBlock

__all__ = ["NORMED", "RELU", "Network", "conv", "made", "refuse_pretrained", "side_by_side", "stack"]

RELU = (nn.Activation, "relu")
NORMED = [nn.BatchNorm, RELU]


def refuse_pretrained(name: str, pretrained: bool) -> None:
    """An error where trained parameters are asked for."""
    if pretrained:
        raise ValueError(
            f"{name}: pretrained=True would download parameters, which is not done here; make the network "
            "without it, and load_parameters from a file"
        )


def conv(channels, window, stride=1, padding=0, **named) -> tuple:
    """The row of a convolution."""
    return nn.Conv2D, channels, window, stride, padding, named


def made(row):
    """The block of a row."""
    if isinstance(row, list):
        return stack(*row)
    kind, *given = row if isinstance(row, tuple) else (row,)
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    return kind(*given, **named)


def _filled(container, rows):
    with container.name_scope():
        for row in rows:
            container.add(made(row))
    return container


def stack(*rows, prefix=""):
    """The blocks of these rows, one after the other."""
    return _filled(nn.HybridSequential(prefix=prefix), rows)


def side_by_side(*rows, prefix=""):
    """The blocks of these rows on one input, their channels joined."""
    return _filled(HybridConcurrent(axis=1, prefix=prefix), rows)


class Network(HybridBlock):
    """Base of networks: features, and an output of them. Both are rows."""

    def __init__(self, features, output, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = made(features)
            self.output = made(output)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))
