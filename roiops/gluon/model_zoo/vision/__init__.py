"""``gluon.model_zoo.vision``: networks for classification. Their parameters are loaded from files."""

import functools
import sys

from . import resnet as _resnet
from .mobilenet import MobileNet, MobileNetV2
from .networks import VGG, AlexNet, DenseNet, Inception3, SqueezeNet
from .resnet import BasicBlockV1, BasicBlockV2, BottleneckV1, BottleneckV2, ResNetV1, ResNetV2, get_resnet
from .rows import refuse_pretrained

__all__ = ["VGG", "AlexNet", "DenseNet", "Inception3", "MobileNet", "MobileNetV2", "ResNetV1", "ResNetV2"]
__all__ += ["BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "SqueezeNet"]
__all__ += ["get_mobilenet", "get_mobilenet_v2", "get_model", "get_resnet", "get_vgg"]

_models = {"alexnet": AlexNet, "inceptionv3": Inception3}
for _version in ("1.0", "1.1"):
    _models[f"squeezenet{_version}"] = functools.partial(SqueezeNet, _version)
for _depth, _sizes in {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}.items():
    _models[f"densenet{_depth}"] = functools.partial(DenseNet, *_sizes)
for _version in (1, 2):
    for _depth in (18, 34, 50, 101, 152):
        _models[f"resnet{_depth}_v{_version}"] = functools.partial(get_resnet, _version, _depth)
for _depth, _layers in {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}.items():
    _models[f"vgg{_depth}"] = functools.partial(VGG, _layers, (64, 128, 256, 512, 512))
    _models[f"vgg{_depth}_bn"] = functools.partial(_models[f"vgg{_depth}"], batch_norm=True)
for _multiplier in ("1.0", "0.75", "0.5", "0.25"):
    _models[f"mobilenet{_multiplier}"] = functools.partial(MobileNet, float(_multiplier))
    _models[f"mobilenetv2_{_multiplier}"] = functools.partial(MobileNetV2, float(_multiplier))


def get_model(name: str, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """The network of a name, such as ``resnet50_v1``; ``kwargs`` are its own, such as ``classes``.

    Nothing is downloaded, so ``pretrained`` must be False: ``net.load_parameters(file)`` takes parameters.
    ``ctx`` and ``root`` are accepted for MXNet's sake.
    """
    maker = _models.get(name.lower())
    if maker is None:
        known = "\n\t".join(sorted(_models))
        raise ValueError(f"Model {name} is not supported. Available options are\n\t{known}")
    refuse_pretrained(name, pretrained)
    return maker(**kwargs)


def get_vgg(num_layers: int, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """VGG with 11, 13, 16 or 19 layers; the other parameters are those of :func:`get_model`."""
    return get_model(f"vgg{num_layers}", pretrained, ctx, root, **kwargs)


def get_mobilenet(multiplier: float, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """MobileNet with ``multiplier`` times the channels; the others are those of :func:`get_model`."""
    refuse_pretrained("get_mobilenet", pretrained)
    return MobileNet(multiplier, **kwargs)


def get_mobilenet_v2(multiplier: float, pretrained: bool = False, ctx=None, root=None, **kwargs):
    """MobileNet v2 with ``multiplier`` times the channels; the others are those of :func:`get_model`."""
    refuse_pretrained("get_mobilenet_v2", pretrained)
    return MobileNetV2(multiplier, **kwargs)


def _function(name):
    def function(**kwargs):
        return get_model(name, **kwargs)

    called = name.replace("mobilenetv2_", "mobilenet_v2_").replace("inceptionv3", "inception_v3")
    function.__name__ = function.__qualname__ = called.replace(".", "_")
    function.__doc__ = f"The network ``{name}``; the parameters are those of :func:`get_model`."
    return function


# MXNet has a module for each family, of which scripts import networks, and parts for their own.
_conv3x3 = _resnet._conv3x3
vgg = densenet = squeezenet = inception = resnet = mobilenet = sys.modules[__name__]
for _name in _models:
    _made = _function(_name)
    setattr(sys.modules[__name__], _made.__name__, _made)
    __all__ += [_made.__name__]
