"""``gluon.contrib.cnn``: convolutions that learn where they read."""

import sys

from ....training.factory import REQUIRED
from ...nn.basic_layers import Linear
from ...nn.conv_layers import window_of

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]

conv_layers = sys.modules[__name__]  # MXNet's name of the module

_TAKES = {"channels": REQUIRED, "kernel_size": (1, 1), "strides": (1, 1), "padding": (0, 0)}
_TAKES |= {"dilation": (1, 1), "groups": 1, "num_deformable_group": 1, "layout": "NCHW", "use_bias": True}
_TAKES |= {"in_channels": 0, "activation": None, "weight_initializer": None, "bias_initializer": "zeros"}
_TAKES |= {"offset_weight_initializer": "zeros", "offset_bias_initializer": "zeros", "offset_use_bias": True}
_TAKES |= {"op_name": None, "adj": None}


class DeformableConvolution(Linear, takes=_TAKES):
    """A convolution of pixels beside those of the window: how far beside, another convolution tells.

    Each of ``num_deformable_group`` groups of channels has offsets of its own.
    """

    #: How many numbers the convolution of the offsets gives for each pixel of the window.
    _numbers = 2
    _hint, _operator = "deformable_conv", "DeformableConvolution"
    offset_bias = deformable_conv_bias = None

    def _set_up(self, channels, groups, num_deformable_group, in_channels, **given):
        if given["layout"] != "NCHW":
            raise AssertionError(f"{type(self).__name__}: the layout must be NCHW, got {given['layout']}")
        self._kwargs = {**window_of(given, 2), "num_group": groups, "layout": "NCHW"}
        window = self._kwargs["kernel"]
        self._channels, self._groups = channels, num_deformable_group
        self._offset_channels = self._numbers * window[0] * window[1] * num_deformable_group
        for name, start, count, depth in (
            ("offset", "offset_", self._offset_channels, in_channels // groups),
            ("deformable_conv", "", channels, 0),
        ):
            self._learn(f"{name}_weight", (count, depth, *window), given[f"{start}weight_initializer"])
            if given[f"{start}use_bias"]:
                self._learn(f"{name}_bias", (count,), given[f"{start}bias_initializer"])
        self._activate(given["activation"])

    def hybrid_forward(
        self, F, x, offset_weight, deformable_conv_weight, offset_bias=None, deformable_conv_bias=None
    ):
        given = [x, offset_weight] if offset_bias is None else [x, offset_weight, offset_bias]
        options = {"num_filter": self._offset_channels, "no_bias": offset_bias is None, "cudnn_off": True}
        offset = F.Convolution(*given, **self._kwargs, **options)
        given = {"data": x, **self._places(F, offset), "weight": deformable_conv_weight}
        if deformable_conv_bias is not None:
            given["bias"] = deformable_conv_bias
        options = {"num_filter": self._channels, "no_bias": deformable_conv_bias is None}
        options["num_deformable_group"] = self._groups
        out = getattr(F.contrib, self._operator)(**given, name="fwd", **self._kwargs, **options)
        return out if self.act is None else self.act(out)

    def _places(self, F, offset):
        return {"offset": offset}


class ModulatedDeformableConvolution(DeformableConvolution):
    """The same with a learned factor, 0 to 2, for each pixel of the window."""

    _hint, _operator = "modulated_deformable_conv", "ModulatedDeformableConvolution"
    _numbers = 3

    def _places(self, F, offset):
        cut = self._offset_channels // 3 * 2
        places = F.slice_axis(offset, axis=1, begin=0, end=cut)
        mask = F.sigmoid(F.slice_axis(offset, axis=1, begin=cut, end=None)) * 2
        return {"offset": places, "mask": mask}
