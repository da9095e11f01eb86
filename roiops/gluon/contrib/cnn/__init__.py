"""``gluon.contrib.cnn``: convolutions that learn where they read."""

from ...hybrid import HybridBlock
from ...nn import Activation
from ...nn.conv_layers import _tuple

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """A convolution of pixels beside those of the window: how far beside, another convolution tells.

    Parameters
    ----------
    num_deformable_group : int
        How many groups of channels have offsets of their own.
    offset_use_bias : bool
        Whether the convolution that gives the offsets has a bias.
    """

    #: How many numbers the convolution of the offsets gives for each pixel of the window.
    _numbers = 2

    def __init__(
        self,
        channels,
        kernel_size=(1, 1),
        strides=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        num_deformable_group=1,
        layout="NCHW",
        use_bias=True,
        in_channels=0,
        activation=None,
        weight_initializer=None,
        bias_initializer="zeros",
        offset_weight_initializer="zeros",
        offset_bias_initializer="zeros",
        offset_use_bias=True,
        op_name=None,
        adj=None,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix=prefix, params=params)
        if layout != "NCHW":
            raise AssertionError(f"{type(self).__name__}: the layout must be NCHW, got {layout}")
        window = _tuple(kernel_size, 2)
        self._kwargs = {
            "kernel": window,
            "stride": _tuple(strides, 2),
            "dilate": _tuple(dilation, 2),
            "pad": _tuple(padding, 2),
            "num_group": groups,
            "layout": layout,
        }
        self._channels, self._groups, self._use_bias = channels, num_deformable_group, use_bias
        self._offset_channels = self._numbers * window[0] * window[1] * num_deformable_group
        self._offset_use_bias = offset_use_bias
        with self.name_scope():
            self._learn(
                "offset",
                self._offset_channels,
                in_channels // groups,
                window,
                offset_weight_initializer,
                offset_bias_initializer if offset_use_bias else None,
            )
            self._learn(
                "deformable_conv",
                channels,
                0,
                window,
                weight_initializer,
                bias_initializer if use_bias else None,
            )
            self.act = None if activation is None else Activation(activation, prefix=f"{activation}_")

    def _learn(self, name, count, depth, window, weight_init, bias_init):
        shape = (count, depth, *window)
        weight = self.params.get(f"{name}_weight", shape=shape, init=weight_init, allow_deferred_init=True)
        setattr(self, f"{name}_weight", weight)
        bias = None
        if bias_init is not None:
            bias = self.params.get(f"{name}_bias", shape=(count,), init=bias_init, allow_deferred_init=True)
        setattr(self, f"{name}_bias", bias)

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

    _operator = "DeformableConvolution"

    def _places(self, F, offset):
        return {"offset": offset}

    def _alias(self):
        return "deformable_conv"


class ModulatedDeformableConvolution(DeformableConvolution):
    """The same with a learned factor, 0 to 2, for each pixel of the window."""

    _numbers, _operator = 3, "ModulatedDeformableConvolution"

    def _places(self, F, offset):
        cut = self._offset_channels // 3 * 2
        places = F.slice_axis(offset, axis=1, begin=0, end=cut)
        mask = F.sigmoid(F.slice_axis(offset, axis=1, begin=cut, end=None)) * 2
        return {"offset": places, "mask": mask}

    def _alias(self):
        return "modulated_deformable_conv"
