"""Upsampling, bilinear resizing, and sampling at given positions."""

import numpy as np

from ...errors import ParamError
from ...params import MOST_ARRAYS, Field, Parameter, enum, optional
from ...params import shape as ints
from ...registry import register
from ..base import kernels
from ..dense import DenseOperator, FloatProperty
from ..fields import IGNORED


class UpSamplingOp(DenseOperator):
    def compute(self, ctx, in_data, out_data, aux):
        p, out = self.params, out_data[0]
        if p.sample_type == "bilinear":
            data, weight = in_data
            kernels("conv.convolution", ctx.device).backward_data(
                data[:, :, None], weight[:, :, None], self._window(), data.shape[1], out[:, :, None]
            )
            return
        resize, first = kernels("network.resize", ctx.device), 0
        for i, data in enumerate(in_data):
            if p.multi_input_mode == "sum" and i:
                blocks = _blocks(out, data.shape)
                blocks += data[:, :, :, None, :, None]
                continue
            resize.upsample(data, first, out)
            first += data.shape[1]

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        p, head = self.params, out_grad[0]
        if p.sample_type == "bilinear":
            conv, (data, weight) = kernels("conv.convolution", ctx.device), in_data
            head, groups = head[:, :, None], data.shape[1]
            if in_grad[0] is not None:
                conv.forward(head, weight[:, :, None], None, self._window(), groups, in_grad[0][:, :, None])
            if in_grad[1] is not None:
                conv.backward_weight(data[:, :, None], head, self._window(), groups, in_grad[1][:, :, None])
            return
        first = 0
        for data, target in zip(in_data, in_grad, strict=True):
            part = head if p.multi_input_mode == "sum" else head[:, first : first + data.shape[1]]
            first += data.shape[1]
            if target is not None:
                blocks = _blocks(part, data.shape)
                _sum_over(4, _sum_over(3, blocks, np.empty_like(blocks[:, :, :, 0])), target)

    def _window(self):
        scale = self.params.scale
        kernel, pad = 2 * scale - scale % 2, scale // 2
        return (1, kernel, kernel), (1, scale, scale), (1, 1, 1), (0, pad, pad)


def _sum_over(axis, data, out):
    """``np.sum(data, axis, out=out)``, which takes long where the axis is short."""
    first, *rest = np.moveaxis(data, axis, 0)
    np.copyto(out, first)
    for each in rest:
        out += each
    return out


def _blocks(part, shape):
    """An upsampled image as the block of pixels that each of ``shape``'s pixels became."""
    _, _, height, width = shape
    return part.reshape(
        *part.shape[:2], height, part.shape[2] // max(height, 1), width, part.shape[3] // max(width, 1)
    )


@register("UpSampling")
class UpSamplingProp(FloatProperty):
    """Enlarge images by a whole factor, by repeating pixels or by a bilinear deconvolution."""

    scale = Field(int, range=(1, 1000), doc="factor on height and width")
    num_filter = Field(int, 0, range=(0, None), doc="number of channels, for 'bilinear'")
    sample_type = Field(enum("nearest", "bilinear"), doc="repeat pixels, or interpolate by the input weight")
    multi_input_mode = Field(
        enum("concat", "sum"), "concat", doc="join several upsampled inputs by channel, or add them"
    )
    num_args = Field(
        int, 1, range=(1, MOST_ARRAYS), doc="number of inputs; 2 (data and weight) for 'bilinear'"
    )
    workspace = Field(int, 512, range=(0, None), doc=IGNORED)

    op = UpSamplingOp
    variadic = "num_args"
    arguments = {
        "data": "images, (batch, channels, height, width)",
        "weight": "for 'bilinear': (channels, 1, kernel, kernel), kernel = 2 * scale - scale % 2",
    }
    variable_attributes = {"weight": {"__init__": '["bilinear", {}]'}}
    backward_needs = ("out_grad", "in_data")

    def list_arguments(self):
        return self.arguments if self.params.sample_type == "bilinear" else super().list_arguments()

    def infer_shape(self, in_shapes):
        p, data = self.params, in_shapes[0]
        for name, shape in zip(self.list_arguments(), in_shapes, strict=True):
            self.check_ndim(name, shape, 4)
        height, width = (-1 if n == -1 else n * p.scale for n in data[2:])
        if p.sample_type == "bilinear":
            kernel = 2 * p.scale - p.scale % 2
            weight = self.check_shape("weight", in_shapes[1], (data[1], 1, kernel, kernel))
            return [data, weight], [(*data[:2], height, width)]
        return in_shapes, [(data[0], self._channels(in_shapes, height, width), height, width)]

    def _channels(self, in_shapes, height, width):
        p, total = self.params, 0
        for name, shape in zip(self.list_arguments(), in_shapes, strict=True):
            if shape is None or -1 in shape:
                return -1
            if shape[0] != in_shapes[0][0]:
                raise self.shape_error(
                    f"{name} must have the batch of the first input, {in_shapes[0][0]}, got shape {shape}"
                )
            if not all(shape[2:]) or height % shape[2] or width % shape[3]:
                raise self.shape_error(
                    f"{name} must have a size that divides the output's "
                    f"({height}, {width}), got shape {shape}"
                )
            if p.multi_input_mode == "sum" and total not in (0, shape[1]):
                raise self.shape_error(f"{name} must have {total} channels to be added, got shape {shape}")
            total = shape[1] if p.multi_input_mode == "sum" else total + shape[1]
        return total


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


class BilinearResize2DOp(DenseOperator):
    def compute(self, ctx, in_data, out_data, aux):
        data, out = in_data[0], out_data[0]
        if data.shape == out.shape:  # without what is next to an infinite pixel
            out[...] = data
            return
        kernels("network.resize", ctx.device).resize_forward(
            _planes(data), *self._tables(ctx, data, out), _planes(out)
        )

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head = out_grad[0]
        if head.shape == in_grad[0].shape:
            in_grad[0][...] = head
            return
        kernels("network.resize", ctx.device).resize_backward(
            _planes(head), *self._tables(ctx, in_grad[0], head), _planes(in_grad[0])
        )

    def _tables(self, ctx, data, out):
        table, corners = kernels("network.resize", ctx.device).resize_table, self.params.align_corners
        return (
            *table(data.shape[2], out.shape[2], corners, data.dtype),
            *table(data.shape[3], out.shape[3], corners, data.dtype),
        )


def _planes(array):
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


_NEAREST = {
    "to_even_down": lambda n: n - n % 2,
    "to_even_up": lambda n: n + n % 2,
    "to_odd_down": lambda n: n - 1 + n % 2,
    "to_odd_up": lambda n: n + 1 - n % 2,
}


@register("_contrib_BilinearResize2D")
class BilinearResize2DProp(FloatProperty):
    """Resize images by bilinear interpolation."""

    param, op = BilinearResize2DParam, BilinearResize2DOp
    arguments = {
        "data": "images, (batch, channels, height, width)",
        "like": "images of the wanted height and width; only in mode 'like'",
    }
    present_if = {"like": lambda p: p.mode == "like"}
    zero_grad = ("like",)
    backward_needs = ("out_grad",)
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        for name, shape in zip(self.list_arguments(), in_shapes, strict=True):
            self.check_ndim(name, shape, 4)
        if 0 in data[2:]:
            raise self.shape_error(f"data must have at least one pixel, got shape {data}")
        if self.params.mode == "like":
            sizes = (-1, -1) if in_shapes[1] is None else in_shapes[1][2:]
        else:
            sizes = tuple(map(self._size, data[2:], (0, 1)))
        if 0 in sizes:
            raise self.shape_error(f"the output must have at least one pixel, got {sizes} from {data}")
        return in_shapes, [(*data[:2], *sizes)]

    def _size(self, size, axis):
        p = self.params
        given, scale = ((p.height, p.scale_height), (p.width, p.scale_width))[axis]
        if p.mode == "size" and scale is None:
            return given
        if size == -1:
            return -1
        if p.mode in _NEAREST:
            return _NEAREST[p.mode](size)
        scale = float(np.float32(scale))  # MXNet holds the factor in float32, and its rounding shows
        if p.mode == "size" or size % 2 == 0:
            return int(np.float32(scale) * np.float32(size))
        return int(np.float32(scale) * np.float32(size - 1)) + 1


class BilinearSamplerOp(DenseOperator):
    def compute(self, ctx, in_data, out_data, aux):
        kernels("network.resize", ctx.device).sample_forward(*in_data, out_data[0])

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        grads = [
            self.scratch(f"unwanted{i}", a.shape, a.dtype) if g is None else g
            for i, (a, g) in enumerate(zip(in_data, in_grad, strict=True))
        ]
        kernels("network.resize", ctx.device).sample_backward(out_grad[0], *in_data, *grads)


@register("BilinearSampler")
class BilinearSamplerProp(FloatProperty):
    """Sample images at given positions by bilinear interpolation; outside there is 0."""

    cudnn_off = Field(optional(bool), None, doc=IGNORED)

    op = BilinearSamplerOp
    arguments = {
        "data": "images, (batch, channels, height, width)",
        "grid": "positions, (batch, 2, height, width): x and y, from -1 (first pixel) to 1 (last)",
    }
    needed_shapes = 2
    backward_needs = ("out_grad", "in_data")

    def infer_shape(self, in_shapes):
        data, grid = in_shapes
        self.check_ndim("data", data, 4)
        grid = self.check_shape("grid", grid, (data[0] if data[0] != -1 else "batch", 2, "height", "width"))
        return [data, grid], [(*data[:2], *grid[2:])]


def pixels(height, width, dtype) -> np.ndarray:
    """x, y and 1 of every pixel, (3, height * width), x and y from -1 to 1."""
    grid = np.ones((3, height, width), dtype)
    grid[0] = np.linspace(-1, 1, width)
    grid[1] = np.linspace(-1, 1, height)[:, None]
    return grid.reshape(3, -1)


class _AffineOperator(DenseOperator):
    """An operator that applies affine matrices to the positions of the output's pixels."""

    def _pixels(self, height, width, dtype):
        key = "pixels", height, width, dtype
        if key not in self._scratch:
            self._scratch[key] = pixels(height, width, dtype)
        return self._scratch[key]

    # NumPy's own loops, instead of BLAS's threads.

    def positions(self, matrices, height, width, out=None):
        """Where matrices (batch, 6) put the pixels: (batch, 2, height, width)."""
        pixels = self._pixels(height, width, matrices.dtype)
        flat = None if out is None else out.reshape(len(out), 2, height * width)
        found = np.einsum("nik,kp->nip", matrices.reshape(-1, 2, 3), pixels, out=flat)
        return found.reshape(len(matrices), 2, height, width)

    def gradient_of_matrices(self, head, out):
        """The gradient of the matrices, from that of the positions."""
        pixels = self._pixels(*head.shape[2:], head.dtype)
        heads = head.reshape(len(head), *pixels[:2].shape)
        # NumPy adds one pixel after the other: many of them in float64.
        dtype = np.float64 if heads.shape[2] > 1 << 14 else head.dtype
        out.reshape(-1, 2, 3)[...] = np.einsum("nip,kp->nik", heads, pixels, dtype=dtype)


class GridGeneratorParam(Parameter):
    transform_type = Field(
        enum("affine", "warp"),
        doc="what data is: a matrix ('affine') or an optical flow ('warp')",
    )
    target_shape = Field(ints(2), (0, 0), range=(0, None), doc="(height, width) of an affine grid")

    def validate(self, operator):
        if self.transform_type == "affine" and 0 in self.target_shape:
            raise ParamError(
                f"{operator}: transform_type 'affine' needs target_shape, got {self.target_shape}"
            )


class GridGeneratorOp(_AffineOperator):
    def compute(self, ctx, in_data, out_data, aux):
        data, out = in_data[0], out_data[0]
        height, width = out.shape[2:]
        if self.params.transform_type == "affine":
            self.positions(data, height, width, out)
            return
        out[:, 0] = (data[:, 0] + np.arange(width)) / (max(width - 1, 1) / 2) - 1
        out[:, 1] = (data[:, 1] + np.arange(height)[:, None]) / (max(height - 1, 1) / 2) - 1

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head = out_grad[0]
        height, width = head.shape[2:]
        if self.params.transform_type == "affine":
            self.gradient_of_matrices(head, in_grad[0])
            return
        np.divide(head[:, 0], max(width - 1, 1) / 2, out=in_grad[0][:, 0])
        np.divide(head[:, 1], max(height - 1, 1) / 2, out=in_grad[0][:, 1])


@register("GridGenerator")
class GridGeneratorProp(FloatProperty):
    """Sampling positions for BilinearSampler, from an affine matrix or an optical flow."""

    param, op = GridGeneratorParam, GridGeneratorOp
    arguments = {"data": "(batch, 6) matrices for 'affine', (batch, 2, height, width) flows for 'warp'"}
    backward_needs = ("out_grad",)
    monitored_as_data = True

    def infer_shape(self, in_shapes):
        data, p = in_shapes[0], self.params
        if p.transform_type == "affine":
            data = self.check_shape("data", data, ("batch", 6))
            return [data], [(data[0], 2, *p.target_shape)]
        data = self.check_shape("data", data, ("batch", 2, "height", "width"))
        return [data], [data]


class SpatialTransformerOp(_AffineOperator):
    def compute(self, ctx, in_data, out_data, aux):
        data, loc = in_data
        grid = self.positions(loc, *out_data[0].shape[2:])
        kernels("network.resize", ctx.device).sample_forward(data, grid, out_data[0])

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        data, loc = in_data
        grid = self.positions(loc, *out_grad[0].shape[2:])
        grad_data = np.empty_like(data) if in_grad[0] is None else in_grad[0]
        grad_grid = np.empty_like(grid)
        kernels("network.resize", ctx.device).sample_backward(out_grad[0], data, grid, grad_data, grad_grid)
        if in_grad[1] is not None:
            self.gradient_of_matrices(grad_grid, in_grad[1])


@register("SpatialTransformer")
class SpatialTransformerProp(FloatProperty):
    """Sample images at the positions that an affine matrix gives."""

    target_shape = Field(ints(2), range=(1, None), doc="(height, width) of the output")
    transform_type = Field(enum("affine"), doc="the kind of transformation that loc describes")
    sampler_type = Field(enum("bilinear"), doc="how pixels are interpolated")
    cudnn_off = Field(optional(bool), None, doc=IGNORED)

    op = SpatialTransformerOp
    arguments = {
        "data": "images, (batch, channels, height, width)",
        "loc": "affine matrices, (batch, 6)",
    }
    backward_needs = ("out_grad", "in_data")

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        self.check_ndim("data", data, 4)
        loc = self.check_shape("loc", in_shapes[1], (data[0], 6))
        return [data, loc], [(*data[:2], *self.params.target_shape)]
