"""``gluon.nn``: layers."""

from ..block import Block
from ..hybrid import HybridBlock, SymbolBlock
from . import conv_layers as _conv_layers
from .activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, Swish
from .basic_layers import (
    BatchNorm,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    HybridLambda,
    HybridSequential,
    InstanceNorm,
    Lambda,
    LayerNorm,
    Sequential,
)

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Activation",
    "BatchNorm",
    "Block",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridBlock",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "LeakyReLU",
    "PReLU",
    "Sequential",
    "Swish",
    "SymbolBlock",
    *_conv_layers.__all__,
]

globals().update({name: getattr(_conv_layers, name) for name in _conv_layers.__all__})
