"""Pooling."""

import math

from ...errors import ParamError
from ...kernels import pooling_modes as modes
from ...params import Field, enum, optional, shape
from ...registry import register
from ..base import kernels, merge_shapes
from ..dense import DenseOperator, FloatProperty, ImageOperator
from ..fields import IGNORED, Window, axes_field, layout_field

_MODES = {"max": modes.MAXIMUM, "avg": modes.MEAN, "sum": modes.SUM, "lp": modes.NORM}
#: Whose gradient is the same whatever the data.
_LINEAR = ("avg", "sum")


def _planes(array):
    """``(N, C, *spatial)`` as (planes, depth, height, width)."""
    spatial = array.shape[2:]
    return array.reshape(array.shape[0] * array.shape[1], *(1,) * (3 - len(spatial)), *spatial)


class PoolingParam(Window):
    kernel = axes_field(0, "window size; not needed with global_pool")
    pool_type = Field(
        enum("max", "avg", "sum", "lp"), "max", doc="what a window becomes: its maximum, mean, sum or p-norm"
    )
    global_pool = Field(bool, False, doc="pool over the whole image; kernel, stride and pad are ignored")
    cudnn_off = Field(bool, False, doc=IGNORED)
    pooling_convention = Field(
        enum("valid", "full", "same"),
        "valid",
        doc="how the output size is rounded: down ('valid'), up ('full'), or input / stride, up ('same')",
    )
    stride = axes_field(1, "step of the window; 1 if not given")
    pad = axes_field(0, "border at both ends of each axis; none if not given")
    p_value = Field(optional(int), None, doc="the p of pool_type='lp': 1 or 2 (3 is taken too)")
    count_include_pad = Field(
        optional(bool), None, doc="whether padding counts in the mean's divisor; true if not given"
    )
    layout = layout_field("order of the axes; channels second if not given")

    per_axis = ("stride", "pad")

    def validate(self, operator):
        axes = len(self.kernel)
        if axes and len(self.pad) > axes and not any(self.pad[axes:]):
            self._values["pad"] = self.pad[:axes]  # MXNet reads no more of them
        super().validate(operator)
        if self.pool_type == "lp" and self.p_value not in (1, 2, 3):
            raise ParamError(f"{operator}: pool_type 'lp' needs p_value 1, 2 or 3, got {self.p_value}")
        _check_kernel(self, operator)
        if self.pooling_convention == "same" and any(self.pad):
            raise ParamError(f"{operator}: pooling_convention 'same' takes no pad, got {self.pad}")


def _check_kernel(params, operator):
    if not params.global_pool and (not params.kernel or 0 in params.kernel):
        raise ParamError(
            f"{operator}: kernel must be given, without zeros, unless global_pool is true, "
            f"got {params.kernel}"
        )


class PoolingOp(ImageOperator):
    pad_with_zero = all_maxima = False

    def bind(self, ctx, in_data, out_data, aux):
        data = _planes(in_data[0])
        how = *self._window(data), self.pad_with_zero
        return kernels("network.pool", ctx.device).bind(data, *how, _planes(out_data[0]))

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head, to_data = _planes(out_grad[0]), _planes(in_grad[0])
        if self.params.pool_type in _LINEAR:
            data, out = to_data, head  # never read; they only tell sizes
        else:
            data, out = _planes(in_data[0]), _planes(out_data[0])
        *window, mode, p, divisor = self._window(data)
        kernels("network.pool", ctx.device).backward(
            head, data, out, tuple(window), mode, p, divisor, self.all_maxima, to_data
        )

    def _window(self, data):
        """Kernel, stride, pad (three numbers each), mode, p and divisor, as the kernels want them."""
        p = self.params
        how = _MODES[p.pool_type], *self._how()
        if p.global_pool:
            return data.shape[1:], (1, 1, 1), (0, 0, 0), *how
        ones, zeros = (1,) * (3 - len(p.kernel)), (0,) * (3 - len(p.kernel))
        return ones + p.kernel, ones + p.strides, zeros + p.pads, *how

    def _how(self):
        p = self.params
        return p.p_value or 1, modes.INSIDE if p.count_include_pad is False else modes.PADDED


@register("Pooling", "_npx_pooling")
class PoolingProp(FloatProperty):
    """Reduce a window that slides over one to three spatial axes to its maximum, mean, sum or p-norm."""

    param, op = PoolingParam, PoolingOp
    repeatable = True
    arguments = {"data": "images, (batch, channels, *spatial)"}
    monitored_as_data = True

    @property
    def backward_needs(self):
        if self.params.pool_type in _LINEAR:
            return ("out_grad",)
        return ("out_grad", "in_data", "out_data")

    def count_operations(self, in_shapes, out_shapes):
        if self.params.global_pool:
            return math.prod(in_shapes[0])
        return math.prod(out_shapes[0]) * math.prod(self.params.kernel or (1,))

    def infer_shape(self, in_shapes):
        p, data = self.params, in_shapes[0]
        if p.kernel and not p.global_pool:
            self.check_ndim("data", data, len(p.kernel) + 2, why=f" for kernel {p.kernel}")
        self.check_ndim("data", data, 3, 4, 5)
        spatial = data[1:-1] if p.channels_last else data[2:]
        sizes = (1,) * len(spatial) if p.global_pool else tuple(map(self._size, spatial, range(len(spatial))))
        out = (data[0], *sizes, data[-1]) if p.channels_last else (*data[:2], *sizes)
        return in_shapes, [out]

    def _size(self, size, axis):
        p = self.params
        kernel, stride, pad = p.kernel[axis], p.strides[axis], p.pads[axis]
        if size == -1:
            return -1
        travel = size + 2 * pad - kernel
        if travel < 0:
            raise self.shape_error(
                f"kernel {p.kernel} must fit into data, got {size} padded by {pad} on spatial axis {axis}"
            )
        if p.pooling_convention == "same":
            return -(-size // stride)
        return (-(-travel // stride) if p.pooling_convention == "full" else travel // stride) + 1

    def infer_shape_from_outputs(self, in_shapes, out_shapes):
        out = out_shapes[0]
        unknown = (-1,) * (len(out) - 2)
        known = (out[0], *unknown, out[-1]) if self.params.channels_last else (*out[:2], *unknown)
        merged = merge_shapes(in_shapes[0], known)
        return in_shapes if merged is None else [merged]


class PoolingV1Param(Window):
    kernel = axes_field(0, "window size; not needed with global_pool", (2, 3))
    pool_type = Field(enum("max", "avg", "sum"), "max", doc="what a window becomes: its maximum, mean or sum")
    global_pool = Field(bool, False, doc="pool over the whole image; kernel, stride and pad are ignored")
    pooling_convention = Field(
        enum("valid", "full"), "valid", doc="rounding of the output size: down ('valid') or up ('full')"
    )
    stride = axes_field(1, "step of the window; 1 if not given", (2, 3))
    pad = axes_field(0, "zeros at both ends of each axis; 0 if not given", (2, 3))

    per_axis = ("stride", "pad")
    layout = None

    def validate(self, operator):
        super().validate(operator)
        _check_kernel(self, operator)


class PoolingV1Op(PoolingOp):
    pad_with_zero = all_maxima = True

    def _how(self):
        return 1, modes.KERNEL


@register("Pooling_v1")
class PoolingV1Prop(PoolingProp):
    """MXNet's first pooling: zeros in the padding compete in a maximum, and all equal maxima get gradient."""

    param, op = PoolingV1Param, PoolingV1Op


class AdaptiveAvgPooling2DOp(DenseOperator):
    def bind(self, ctx, in_data, out_data, aux):
        return kernels("network.pool", ctx.device).bind_adaptive(_images(in_data[0]), _images(out_data[0]))

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        kernels("network.pool", ctx.device).adaptive_backward(_images(out_grad[0]), _images(in_grad[0]))


def _images(array):
    return array.reshape(math.prod(array.shape[:-2]), *array.shape[-2:])


@register("_contrib_AdaptiveAvgPooling2D")
class AdaptiveAvgPooling2DProp(FloatProperty):
    """Mean over a grid of near-equal windows, whatever the input's size."""

    output_size = Field(
        shape((0, 1, 2)),
        (),
        range=(1, None),
        doc="(height, width) of the output, or one number for both; 1 if not given",
    )

    op = AdaptiveAvgPooling2DOp
    arguments = {"data": "images, (batch, channels, height, width)"}
    backward_needs = ("out_grad",)

    def infer_shape(self, in_shapes):
        data, size = in_shapes[0], self.params.output_size or (1,)
        self.check_ndim("data", data, 4)
        if 0 in data[2:]:
            raise self.shape_error(f"data must have at least one pixel, got shape {data}")
        return in_shapes, [(*data[:2], *(size * 2)[:2])]
