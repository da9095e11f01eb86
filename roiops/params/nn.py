"""Parameters of the network operators: convolution, pooling, normalisation, activation, resizing."""

from ..errors import ParamError
from .field import MOST_ARRAYS, Field, enum, optional, shape
from .parameter import Parameter

__all__ = [
    "ActivationParam",
    "AdaptiveAvgPooling2DParam",
    "BatchNormParam",
    "BilinearResize2DParam",
    "BilinearSamplerParam",
    "ConvolutionParam",
    "DeconvolutionParam",
    "DropoutParam",
    "FullyConnectedParam",
    "GridGeneratorParam",
    "GroupNormParam",
    "InstanceNormParam",
    "L2NormalizationParam",
    "LRNParam",
    "LayerNormParam",
    "LeakyReLUParam",
    "PoolingParam",
    "PoolingV1Param",
    "RNNParam",
    "SpatialTransformerParam",
    "SyncBatchNormParam",
    "UpSamplingParam",
]

_EPS = 0.0010000000474974513  # 1e-3 in float32: MXNet's own default
_NOT_ON_CPU = "must be left out: MXNet has it on GPUs only"
_IGNORED = "accepted and ignored: it steers MXNet's GPU library"


class _Window(Parameter):
    """What convolutions and poolings share: a window that slides over one to three spatial axes."""

    def axes(self, given: tuple, fill: int) -> tuple:
        """A per-axis parameter, with ``fill`` for every axis when it was not given."""
        return given or (fill,) * len(self.kernel)

    def validate(self, operator):
        for name in () if getattr(self, "global_pool", False) else self.per_axis:
            given = getattr(self, name)
            if given and len(given) != len(self.kernel):
                raise ParamError(
                    f"{operator}: {name} must have as many entries as kernel {self.kernel}, got {given}"
                )
        self.check_layout(operator)

    per_axis = ("stride", "dilate", "pad")

    def check_layout(self, operator):
        layouts = _LAYOUTS.get(len(self.kernel), ())
        if self.layout is not None and self.kernel and self.layout not in layouts:
            raise ParamError(
                f"{operator}: layout must be {' or '.join(layouts)} for kernel {self.kernel}, "
                f"got {self.layout!r}"
            )

    @property
    def channels_last(self) -> bool:
        return self.layout is not None and self.layout.endswith("C")


_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class ConvolutionParam(_Window):
    kernel = Field(shape((1, 2, 3)), range=(1, None), doc="window size: (w,), (h, w) or (d, h, w)")
    stride = Field(shape((0, 1, 2, 3)), (), range=(1, None), doc="step of the window; 1 if not given")
    dilate = Field(
        shape((0, 1, 2, 3)), (), range=(1, None), doc="distance between taps on each axis; 1 if not given"
    )
    pad = Field(
        shape((0, 1, 2, 3)), (), range=(0, None), doc="zeros at both ends of each axis; none if not given"
    )
    num_filter = Field(int, range=(1, None), doc="number of output channels")
    num_group = Field(int, 1, range=(1, None), doc="number of groups of channels and filters")
    workspace = Field(int, 1024, range=(0, None), doc=_IGNORED)
    no_bias = Field(bool, False, doc="leave out the bias input")
    cudnn_tune = Field(optional(enum("off", "limited_workspace", "fastest")), None, doc=_IGNORED)
    cudnn_off = Field(bool, False, doc=_IGNORED)
    layout = Field(
        optional(enum("NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC")),
        None,
        doc="order of the axes; channels second if not given. It holds for data, weight and output",
    )

    def validate(self, operator):
        super().validate(operator)
        if self.num_filter % self.num_group:
            raise ParamError(
                f"{operator}: num_filter must be a multiple of num_group {self.num_group}, "
                f"got {self.num_filter}"
            )


class DeconvolutionParam(ConvolutionParam):
    pad = Field(
        shape((0, 1, 2, 3)),
        (),
        range=(0, None),
        doc="what is cut off at both ends of each output axis; ignored with target_shape",
    )
    adj = Field(
        shape((0, 1, 2, 3)),
        (),
        range=(0, None),
        doc="what is added to the far end of each output axis, less than stride; ignored with target_shape",
    )
    target_shape = Field(
        shape((0, 1, 2, 3)), (), range=(0, None), doc="spatial shape of the output; it decides pad and adj"
    )
    workspace = Field(int, 512, range=(0, None), doc=_IGNORED)
    no_bias = Field(bool, True, doc="leave out the bias input")

    per_axis = ("stride", "dilate", "pad", "adj", "target_shape")


class FullyConnectedParam(Parameter):
    num_hidden = Field(int, range=(1, None), doc="number of output features")
    no_bias = Field(bool, False, doc="leave out the bias input")
    flatten = Field(
        bool,
        True,
        doc="take all axes but the first as features; otherwise only the last",
    )


class BatchNormParam(Parameter):
    eps = Field(float, _EPS, range=(0, None), doc="added to the variance before the square root")
    momentum = Field(float, 0.9, doc="weight of the old moving statistics in their update")
    fix_gamma = Field(bool, True, doc="take gamma as 1 whatever it holds, and give it no gradient")
    use_global_stats = Field(bool, False, doc="normalise by the moving statistics when training too")
    output_mean_var = Field(bool, False, doc="also return the mean and the inverse standard deviation")
    axis = Field(int, 1, doc="the channel axis; negative counts from the end")
    cudnn_off = Field(bool, False, doc=_IGNORED)
    min_calib_range = Field(optional(float), None, doc="accepted and ignored: quantised networks use it")
    max_calib_range = Field(optional(float), None, doc="accepted and ignored: quantised networks use it")


class SyncBatchNormParam(BatchNormParam):
    ndev = Field(int, 1, doc="accepted and ignored: statistics are those of the one device")
    key = Field(str, "", doc="accepted and ignored: it names a layer across devices")


class PoolingParam(_Window):
    kernel = Field(shape((0, 1, 2, 3)), (), range=(0, None), doc="window size; not needed with global_pool")
    pool_type = Field(
        enum("max", "avg", "sum", "lp"), "max", doc="what a window becomes: its maximum, mean, sum or p-norm"
    )
    global_pool = Field(bool, False, doc="pool over the whole image; kernel, stride and pad are ignored")
    cudnn_off = Field(bool, False, doc=_IGNORED)
    pooling_convention = Field(
        enum("valid", "full", "same"),
        "valid",
        doc="how the output size is rounded: down ('valid'), up ('full'), or input / stride, up ('same')",
    )
    stride = Field(shape((0, 1, 2, 3)), (), range=(1, None), doc="step of the window; 1 if not given")
    pad = Field(
        shape((0, 1, 2, 3)), (), range=(0, None), doc="border at both ends of each axis; none if not given"
    )
    p_value = Field(optional(int), None, doc="the p of pool_type='lp': 1 or 2 (3 is taken too)")
    count_include_pad = Field(
        optional(bool), None, doc="whether padding counts in the mean's divisor; true if not given"
    )
    layout = Field(
        optional(enum("NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC")),
        None,
        doc="order of the axes; channels second if not given",
    )

    per_axis = ("stride", "pad")

    def validate(self, operator):
        super().validate(operator)
        if self.pool_type == "lp" and self.p_value not in (1, 2, 3):
            raise ParamError(f"{operator}: pool_type 'lp' needs p_value 1, 2 or 3, got {self.p_value}")
        if not self.global_pool and (not self.kernel or 0 in self.kernel):
            raise ParamError(
                f"{operator}: kernel must be given, without zeros, unless global_pool is true, "
                f"got {self.kernel}"
            )
        if self.pooling_convention == "same" and any(self.pad):
            raise ParamError(f"{operator}: pooling_convention 'same' takes no pad, got {self.pad}")


class PoolingV1Param(_Window):
    kernel = Field(shape((0, 2, 3)), (), range=(0, None), doc="window size; not needed with global_pool")
    pool_type = Field(enum("max", "avg", "sum"), "max", doc="what a window becomes: its maximum, mean or sum")
    global_pool = Field(bool, False, doc="pool over the whole image; kernel, stride and pad are ignored")
    pooling_convention = Field(
        enum("valid", "full"), "valid", doc="rounding of the output size: down ('valid') or up ('full')"
    )
    stride = Field(shape((0, 2, 3)), (), range=(1, None), doc="step of the window; 1 if not given")
    pad = Field(shape((0, 2, 3)), (), range=(0, None), doc="zeros at both ends of each axis; 0 if not given")

    per_axis = ("stride", "pad")
    layout = None

    def validate(self, operator):
        super().validate(operator)
        if not self.global_pool and (not self.kernel or 0 in self.kernel):
            raise ParamError(
                f"{operator}: kernel must be given, without zeros, unless global_pool is true, "
                f"got {self.kernel}"
            )


class ActivationParam(Parameter):
    act_type = Field(
        enum("relu", "sigmoid", "tanh", "softrelu", "softsign"), doc="the function applied to each element"
    )


class LeakyReLUParam(Parameter):
    act_type = Field(
        enum("leaky", "prelu", "elu", "selu", "gelu", "rrelu"),
        "leaky",
        doc="the function; 'prelu' takes its slopes as the input gamma, 'rrelu' draws them when training",
    )
    slope = Field(float, 0.25, doc="slope below 0 ('leaky'), or scale of the exponential ('elu')")
    lower_bound = Field(float, 0.125, doc="smallest random slope of 'rrelu'")
    upper_bound = Field(float, 0.334, doc="largest random slope of 'rrelu'")


class DropoutParam(Parameter):
    p = Field(float, 0.5, range=(0, 1), doc="fraction of the elements that are dropped")
    mode = Field(enum("training", "always"), "training", doc="whether to drop at inference too")
    axes = Field(shape(), (), doc="axes along which all elements are dropped or kept together")
    cudnn_off = Field(optional(bool), False, doc=_IGNORED)


class RNNParam(Parameter):
    state_size = Field(int, range=(1, None), doc="numbers in each layer's state")
    num_layers = Field(int, range=(1, 1000), doc="how many layers lie one on another")
    bidirectional = Field(bool, False, doc="whether each layer goes through the sequence backwards, too")
    mode = Field(enum("rnn_relu", "rnn_tanh", "lstm", "gru"), doc="kind of layer")
    p = Field(float, 0.0, range=(0, 1), doc="fraction dropped of what goes from layer to layer, in training")
    state_outputs = Field(bool, False, doc="whether the last states are outputs, too")
    projection_size = Field(optional(int), None, doc=_NOT_ON_CPU)
    lstm_state_clip_min = Field(optional(float), None, doc=_NOT_ON_CPU)
    lstm_state_clip_max = Field(optional(float), None, doc=_NOT_ON_CPU)
    lstm_state_clip_nan = Field(bool, False, doc=_NOT_ON_CPU)
    use_sequence_length = Field(bool, False, doc=_NOT_ON_CPU)

    def validate(self, operator):
        for name in (
            "projection_size",
            "lstm_state_clip_min",
            "lstm_state_clip_max",
            "lstm_state_clip_nan",
            "use_sequence_length",
        ):
            if getattr(self, name) not in (None, False):
                raise ParamError(f"{operator}: {name} is not supported; neither is it by MXNet on a CPU")

    @property
    def directions(self) -> int:
        """How many directions a layer goes in."""
        return 2 if self.bidirectional else 1

    @property
    def drops(self) -> bool:
        """Whether training drops anything."""
        return self.p > 0 and self.num_layers > 1

    @property
    def num_visible(self) -> int:
        """How many outputs a user sees."""
        return 1 + self.state_outputs * (2 if self.mode == "lstm" else 1)


class UpSamplingParam(Parameter):
    scale = Field(int, range=(1, 1000), doc="factor on height and width")
    num_filter = Field(int, 0, range=(0, None), doc="number of channels, for 'bilinear'")
    sample_type = Field(enum("nearest", "bilinear"), doc="repeat pixels, or interpolate by the input weight")
    multi_input_mode = Field(
        enum("concat", "sum"), "concat", doc="join several upsampled inputs by channel, or add them"
    )
    num_args = Field(
        int, 1, range=(1, MOST_ARRAYS), doc="number of inputs; 2 (data and weight) for 'bilinear'"
    )
    workspace = Field(int, 512, range=(0, None), doc=_IGNORED)


class L2NormalizationParam(Parameter):
    eps = Field(float, 1e-10, doc="added to the sum of squares before the square root")
    mode = Field(
        enum("instance", "channel", "spatial"),
        "instance",
        doc="the norm is over each sample, each pixel's channels, or each channel's image",
    )


class LRNParam(Parameter):
    alpha = Field(float, 1e-4, doc="weight of the mean of squares")
    beta = Field(float, 0.75, doc="exponent")
    knorm = Field(float, 2, doc="constant under the exponent")
    nsize = Field(int, range=(1, None), doc="number of neighbouring channels; odd")

    def validate(self, operator):
        if self.nsize % 2 == 0:
            raise ParamError(f"{operator}: nsize must be odd, got {self.nsize}")


class InstanceNormParam(Parameter):
    eps = Field(float, 1e-3, range=(0, None), doc="added to the variance before the square root")


class LayerNormParam(Parameter):
    axis = Field(int, -1, doc="the axis to normalise over; negative counts from the end")
    eps = Field(float, 1e-5, range=(0, None), doc="added to the variance before the square root")
    output_mean_var = Field(bool, False, doc="also return the mean and the standard deviation")


class GroupNormParam(Parameter):
    num_groups = Field(int, 1, range=(1, None), doc="number of groups that the channels are split into")
    eps = Field(float, 1e-5, range=(0, None), doc="added to the variance before the square root")
    output_mean_var = Field(bool, False, doc="also return the mean and the standard deviation")


class AdaptiveAvgPooling2DParam(Parameter):
    output_size = Field(
        shape((0, 1, 2)),
        (),
        range=(1, None),
        doc="(height, width) of the output, or one number for both; 1 if not given",
    )


class BilinearResize2DParam(Parameter):
    height = Field(int, 1, range=(1, None), doc="output height in mode 'size' without scale_height")
    width = Field(int, 1, range=(1, None), doc="output width in mode 'size' without scale_width")
    scale_height = Field(optional(float), None, above=0, doc="factor on the height")
    scale_width = Field(optional(float), None, above=0, doc="factor on the width")
    mode = Field(
        enum("size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"),
        "size",
        doc="how the output size is found: given or scaled, scaled keeping odd sizes odd, that of the input "
        "like, or the nearest even or odd one",
    )
    align_corners = Field(bool, True, doc="corner pixels keep their place; otherwise pixel edges do")

    def validate(self, operator):
        if (self.scale_height is None) != (self.scale_width is None):
            raise ParamError(f"{operator}: give both of scale_height and scale_width, or neither")
        if self.mode == "odd_scale" and self.scale_height is None:
            raise ParamError(f"{operator}: mode 'odd_scale' needs scale_height and scale_width")


class BilinearSamplerParam(Parameter):
    cudnn_off = Field(optional(bool), None, doc=_IGNORED)


class GridGeneratorParam(Parameter):
    transform_type = Field(
        enum("affine", "warp"),
        doc="what data is: a matrix ('affine') or an optical flow ('warp')",
    )
    target_shape = Field(shape(2), (0, 0), range=(0, None), doc="(height, width) of an affine grid")

    def validate(self, operator):
        if self.transform_type == "affine" and 0 in self.target_shape:
            raise ParamError(
                f"{operator}: transform_type 'affine' needs target_shape, got {self.target_shape}"
            )


class SpatialTransformerParam(Parameter):
    target_shape = Field(shape(2), (0, 0), range=(1, None), doc="(height, width) of the output")
    transform_type = Field(enum("affine"), doc="the kind of transformation that loc describes")
    sampler_type = Field(enum("bilinear"), doc="how pixels are interpolated")
    cudnn_off = Field(optional(bool), None, doc=_IGNORED)
