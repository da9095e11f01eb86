"""Convolution and its transpose."""

import functools
import math

import numpy as np

from ...errors import ParamError
from ...params import Field, enum, optional
from ...params import shape as ints
from ...registry import register
from ..arrays import sum_by_channel
from ..base import OpContext, kernels, merge_shapes
from ..dense import FloatProperty, ImageOperator
from ..fields import IGNORED, Window, axes_field, layout_field


def _three(values: tuple, fill: int) -> tuple:
    """Per-axis values for depth, height and width, ``fill`` for the axes that are not there."""
    return (fill,) * (3 - len(values)) + tuple(values)


def _as_3d(array):
    """``(N, C, *spatial)`` as ``(N, C, D, H, W)``, sharing memory."""
    return array.reshape(array.shape[:2] + _three(array.shape[2:], 1))


def _channels_second(shape, last: bool):
    return (shape[0], shape[-1], *shape[1:-1]) if last and shape is not None else shape


def _layout(shape, last: bool):
    return (shape[0], *shape[2:], shape[1]) if last and shape is not None else shape


class _ConvolutionBase(ImageOperator):
    """Both directions: each has the other as the gradient of its data."""

    keeps_weight = True
    transposed = False

    def __init__(self, params):
        super().__init__(params)
        #: ``Forward`` and ``BackwardData`` of the kernels, of each window: sizes may decide that.
        self._kernels = {}

    def pads(self, data) -> tuple:
        """The padding of the window."""
        return self.params.pads

    def window(self, data) -> tuple:
        """The window in kernel terms."""
        p = self.params
        return _three(p.kernel, 1), _three(p.strides, 1), _three(p.dilations, 1), _three(self.pads(data), 0)

    def kernel(self, ctx, kind, data=None):
        """The convolution (``"Forward"``), or the transposed one (``"BackwardData"``)."""
        window = self.window(data)
        if (kind, window) not in self._kernels:
            make = getattr(kernels("conv.convolution", ctx.device), kind)
            self._kernels[kind, window] = make(window, self.params.num_group)
        return self._kernels[kind, window]

    def bias(self, in_data, otherwise=None):
        """The bias, if there is one."""
        return otherwise if self.params.no_bias else in_data[2]

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        images, weight = in_data[:2]
        head, data = _as_3d(out_grad[0]), _as_3d(images)
        if in_grad[0] is not None:
            target = _as_3d(in_grad[0])
            if self.transposed:
                self.kernel(ctx, "Forward", images)(head, _as_3d(weight), None, target)
            else:
                self.kernel(ctx, "BackwardData", images)(head, _as_3d(weight), target)
        if in_grad[1] is not None:
            small, large = (data, head) if self.transposed else (head, data)
            kernels("conv.convolution", ctx.device).backward_weight(
                small, large, self.window(images), self.params.num_group, _as_3d(in_grad[1])
            )
        if not self.params.no_bias and in_grad[2] is not None:
            in_grad[2][...] = sum_by_channel(head)


class ConvolutionParam(Window):
    kernel = Field(ints((1, 2, 3)), range=(1, None), doc="window size: (w,), (h, w) or (d, h, w)")
    stride = axes_field(1, "step of the window; 1 if not given")
    dilate = axes_field(1, "distance between taps on each axis; 1 if not given")
    pad = axes_field(0, "zeros at both ends of each axis; none if not given")
    num_filter = Field(int, range=(1, None), doc="number of output channels")
    num_group = Field(int, 1, range=(1, None), doc="number of groups of channels and filters")
    workspace = Field(int, 1024, range=(0, None), doc=IGNORED)
    no_bias = Field(bool, False, doc="leave out the bias input")
    cudnn_tune = Field(optional(enum("off", "limited_workspace", "fastest")), None, doc=IGNORED)
    cudnn_off = Field(bool, False, doc=IGNORED)
    layout = layout_field(
        "order of the axes; channels second if not given. It holds for data, weight and output"
    )

    def validate(self, operator):
        super().validate(operator)
        if self.num_filter % self.num_group:
            raise ParamError(
                f"{operator}: num_filter must be a multiple of num_group {self.num_group}, "
                f"got {self.num_filter}"
            )


class ConvolutionOp(_ConvolutionBase):
    """A convolution, with what an executor may let it do on the way: see :meth:`bind_followed`."""

    def bind(self, ctx, in_data, out_data, aux):
        each_time, prepared = super().bind(ctx, in_data, out_data, aux), None

        def call():
            nonlocal prepared
            if ctx.is_train:
                each_time()
                return
            if prepared is None:
                prepared = self._bind(ctx, in_data, out_data[0])
            prepared()

        return call

    def compute(self, ctx, in_data, out_data, aux):
        self._bind(ctx, in_data, out_data[0])()

    def _bind(self, ctx, in_data, out):
        data, weight = map(_as_3d, in_data[:2])
        return self.kernel(ctx, "Forward").bind(data, weight, self.bias(in_data), _as_3d(out))

    def bind_followed(self, ctx, in_data, aux, out, work, before):
        """A call that computes ``act(batch_norm(convolution) + other)`` into ``out``, or less of it.

        The convolution may be that of ``relu(batch_norm(data))``. The arrays are read anew in each call; what
        is added may be ``out`` itself.
        """
        data, weight, target = map(_as_3d, (*in_data[:2], out))
        bias = self.bias(in_data, np.zeros(self.params.num_filter, np.float32))
        kernel, following = self.kernel(ctx, "Forward"), _following_work(ctx, work)
        if not before:
            return kernel.bind(data, weight, bias, target, **following)
        set_scale, following["prologue"] = _prologue(kernels("network.norm", ctx.device), before)
        run = kernel.bind(data, weight, bias, target, **following)

        def call():
            set_scale()
            run()

        return call

    def takes_prologue(self, ctx, data_shape, weight_shape, out_shape) -> bool:
        """Whether the kernel for these shapes can normalise the data while it reads them."""
        shapes = (shape[:2] + _three(shape[2:], 1) for shape in (data_shape, weight_shape, out_shape))
        return self.kernel(ctx, "Forward").takes_prologue(*shapes)


def _prologue(norm, before):
    """Batch norm, and activation, of the data: a call that computes its scale, and the kernel's argument."""
    (batch_norm, (gamma, beta, mean, var)), *activation = before
    gamma = np.ones_like(gamma) if batch_norm.details["fix_gamma"] else gamma
    scale, eps = np.empty_like(gamma), np.float32(batch_norm.details["eps"])
    floor = np.float32(0 if activation else -np.inf)
    return functools.partial(norm.scale_by_deviation, gamma, var, eps, scale), (mean, scale, beta, floor, 1)


def _following_work(ctx, work) -> dict:
    """What following operators do to the results, as a convolution kernel takes it."""
    conv = kernels("conv.convolution", ctx.device)
    found = {"act": conv.activation()}
    for following, arrays in work:
        if following.kind == "batch_norm":
            gamma, *statistics = arrays
            gamma = np.ones_like(gamma) if following.details["fix_gamma"] else gamma
            eps = np.float32(following.details["eps"])
            found["batch_norm"] = gamma, *statistics, eps
        elif following.kind == "add":
            found["other"] = _as_3d(arrays[0])
        elif following.kind == "prelu":
            found["act"] = *found["act"][:2], arrays[0]
        else:
            found["act"] = conv.activation(**following.details)
    return found


class _ConvolutionBaseProp(FloatProperty):
    """Both directions. What differs are the weight's shape, its channels and the sizes of the output."""

    present_if = {"bias": lambda p: not p.no_bias}
    repeatable = True
    backward_needs = ("out_grad", "in_data")
    #: What work it does after itself, and after which other.
    after = {"batch_norm": (), "act": ("batch_norm",)}

    def takes_over(self, work, done, in_shapes):
        plain = len(self.params.kernel) < 3 and not self.params.channels_last
        return plain and work.kind in self.after and all(kind in self.after[work.kind] for kind in done)

    def weight_shape(self, channels: int) -> tuple:
        """The shape of the weight for data of so many channels, channels second."""
        raise NotImplementedError

    def channels_of(self, weight) -> int:
        """The channels of the data that a weight of this shape, channels second, is for."""
        raise NotImplementedError

    def sizes(self, data) -> tuple:
        """The spatial shape of the output."""
        raise NotImplementedError

    def data_shape_of(self, weight_shape):
        if self.params.channels_last or len(weight_shape) != len(self.params.kernel) + 2:
            return None
        return (-1, self.channels_of(weight_shape), *[-1] * len(self.params.kernel))

    def infer_shape(self, in_shapes):
        p, last = self.params, self.params.channels_last
        for name, shape in zip(("data", "weight"), in_shapes, strict=False):
            self.check_ndim(name, shape, len(p.kernel) + 2, why=f" for kernel {p.kernel}")
        data, weight = (_channels_second(shape, last) for shape in in_shapes[:2])
        channels = data[1]
        if channels == -1 and weight is not None:
            channels = self.channels_of(weight)
        if channels != -1 and channels % p.num_group:
            raise self.shape_error(
                f"data must have a multiple of num_group {p.num_group} channels, got shape {in_shapes[0]}"
            )
        shapes = [
            _layout((data[0], channels, *data[2:]), last),
            self.check_shape("weight", in_shapes[1], _layout(self.weight_shape(channels), last)),
        ]
        if not p.no_bias:
            shapes.append(self.check_shape("bias", in_shapes[2], (p.num_filter,)))
        return shapes, [_layout((data[0], p.num_filter, *self.sizes(data)), last)]


@register("Convolution", "Convolution_v1", "_npx_convolution")
class ConvolutionProp(_ConvolutionBaseProp):
    """Slide a window over one to three spatial axes and take the weighted sum of what it covers."""

    param, op = ConvolutionParam, ConvolutionOp
    _before_act = "batch_norm", "add"
    after = {"batch_norm": (), "add": ("batch_norm",), "act": _before_act, "prelu": _before_act}
    arguments = {
        "data": "images, (batch, channels, *spatial)",
        "weight": "filters, (num_filter, channels / num_group, *kernel)",
        "bias": "one number for each filter; not with no_bias",
    }

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(out_shapes[0]) * math.prod(in_shapes[1][1:])

    def takes_before(self, before, in_shapes):
        first, *rest = before
        if first.kind != "batch_norm" or [work.details for work in rest] not in ([], [{"floor": 0}]):
            return False
        if len(self.params.kernel) > 2 or self.params.channels_last:
            return False
        return self.op(self.params).takes_prologue(
            OpContext(), *in_shapes[:2], self.infer_shape(in_shapes)[1][0]
        )

    def weight_shape(self, channels):
        p = self.params
        return (p.num_filter, -1 if channels == -1 else channels // p.num_group, *p.kernel)

    def channels_of(self, weight):
        return -1 if weight[1] == -1 else weight[1] * self.params.num_group

    def sizes(self, data):
        p = self.params
        sizes = []
        for size, span, stride, pad in zip(data[2:], p.spans, p.strides, p.pads, strict=True):
            if size != -1 and span > size + 2 * pad:
                raise self.shape_error(
                    f"kernel {p.kernel} with dilate {p.dilations} must fit into data, "
                    f"got {data[2:]} padded by {p.pads}"
                )
            sizes.append(-1 if size == -1 else (size + 2 * pad - span) // stride + 1)
        return tuple(sizes)

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        p, out = self.params, out_shapes[0]
        if p.channels_last:
            return in_shapes
        sizes = [
            size + span - 1 - 2 * pad if size != -1 and stride == 1 else -1
            for size, span, stride, pad in zip(out[2:], p.spans, p.strides, p.pads, strict=False)
        ]
        merged = merge_shapes(in_shapes[0], (out[0], -1, *sizes))
        return [in_shapes[0] if merged is None else merged, *in_shapes[1:]]


class DeconvolutionParam(ConvolutionParam):
    pad = axes_field(0, "what is cut off at both ends of each output axis; ignored with target_shape")
    adj = axes_field(
        0, "what is added to the far end of each output axis, less than stride; ignored with target_shape"
    )
    target_shape = axes_field(0, "spatial shape of the output; it decides pad and adj")
    workspace = Field(int, 512, range=(0, None), doc=IGNORED)
    no_bias = Field(bool, True, doc="leave out the bias input")

    per_axis = ("stride", "dilate", "pad", "adj", "target_shape")


class DeconvolutionOp(_ConvolutionBase):
    transposed = True

    def pads(self, data):
        return border(self.params, data.shape[2:])[0]

    def compute(self, ctx, in_data, out_data, aux):
        arrays = map(_as_3d, (*in_data[:2], out_data[0]))
        kernel = self.kernel(ctx, "BackwardData", in_data[0])
        kernel(*arrays, self.bias(in_data), steady=not ctx.is_train)

    def bind_followed(self, ctx, in_data, aux, out, work, before):
        """A call that computes ``act(batch_norm(deconvolution))`` into ``out``, or less of it."""
        arrays = map(_as_3d, (*in_data[:2], out))
        bias = self.bias(in_data, np.zeros(self.params.num_filter, np.float32))
        kernel, following = self.kernel(ctx, "BackwardData", in_data[0]), _following_work(ctx, work)
        return functools.partial(kernel, *arrays, bias, steady=True, **following)


def border(params, sizes):
    """``(pad, adj)`` for each axis of a deconvolution; with target_shape they follow from it."""
    target = params.axes(params.target_shape, 0)
    if not any(target):
        return params.pads, params.axes(params.adj, 0)
    pads, adjs = [], []
    for want, size, span, step in zip(target, sizes, params.spans, params.strides, strict=True):
        surplus = step * (size - 1) + span - want
        adjs.append(surplus % 2)
        pads.append((surplus + 1) // 2)
    return tuple(pads), tuple(adjs)


@register("Deconvolution", "_npx_deconvolution")
class DeconvolutionProp(_ConvolutionBaseProp):
    """The transpose of a convolution: each input pixel adds a weighted window to the output."""

    param, op = DeconvolutionParam, DeconvolutionOp
    arguments = {
        "data": "images, (batch, channels, *spatial)",
        "weight": "filters, (channels, num_filter / num_group, *kernel)",
        "bias": "one number for each output channel; not with no_bias",
    }

    def count_operations(self, in_shapes, out_shapes):
        return 2 * math.prod(in_shapes[0]) * math.prod(in_shapes[1][1:])

    def takes_over(self, work, done, in_shapes):
        return self.params.num_group == 1 and super().takes_over(work, done, in_shapes)

    def weight_shape(self, channels):
        return (channels, self.params.num_filter // self.params.num_group, *self.params.kernel)

    def channels_of(self, weight):
        return weight[0]

    def sizes(self, data):
        p = self.params
        target = p.axes(p.target_shape, 0)
        if any(target) and -1 in data[2:]:
            return tuple(want or -1 for want in target)
        pads, adjs = border(p, data[2:])
        if min(pads) < 0:
            raise self.shape_error(
                f"target_shape must be one that data {data[2:]} can reach, got {p.target_shape}"
            )
        sizes = []
        for size, span, stride, pad, adj in zip(data[2:], p.spans, p.strides, pads, adjs, strict=True):
            if adj >= stride:
                raise self.shape_error(f"adj must be less than stride {stride}, got {adj}")
            out = stride * (size - 1) + span - 2 * pad + adj
            if size != -1 and out < 1:
                raise self.shape_error(f"pad must leave some output, got {pads} for data {data[2:]}")
            sizes.append(-1 if size == -1 else out)
        return tuple(sizes)
