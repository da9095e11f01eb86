"""Deformable convolution: taps that move by a learned displacement."""

import math

import numpy as np

from ...params import Field, enum, optional, shape
from ...registry import register
from ..arrays import sum_by_channel
from ..base import kernels, variant
from ..dense import DenseOperator, FloatProperty
from ..fields import Window

# Bytes of gathered columns that are held at a time, and the least positions they are for.
_TILE_BYTES = 4 << 20
_LEAST_TILE = 64


class DeformableConvolutionOp(DenseOperator):
    modulated = False

    def _split(self, arrays):
        """``data, offset, mask, weight, bias``, with None for those that this operator does not have."""
        arrays = list(arrays)
        if not self.modulated:
            arrays.insert(2, None)
        return [*arrays, None] if self.params.no_bias else arrays

    def _tiles(self, ctx, data, offset, out_width):
        """For each tile: its image, its slice of positions, its tables and memory for its columns."""
        p = self.params
        kernel = kernels("conv.deformable", ctx.device)
        window = p.kernel[0] * p.kernel[1]
        rows, positions = data.shape[1] * window, offset.shape[2]
        size = min(positions, max(_LEAST_TILE, _TILE_BYTES // (max(rows, 1) * data.itemsize)))
        shape = (p.num_deformable_group * window, size, 4)
        pixels = self.scratch("pixels", shape, np.int64)
        tables = tuple(self.scratch(name, shape, data.dtype) for name in ("weights", "slopes_y", "slopes_x"))
        columns = self.scratch("columns", (rows, size), data.dtype)
        for image in range(data.shape[0]):
            for first in range(0, positions, size):
                count = min(size, positions - first)
                sizes, window = (*self.map_size, out_width), (p.kernel, p.strides, p.dilations, p.pads)
                kernel.table(offset[image], first, count, sizes, window, self.modulated, pixels, tables)
                yield image, first, count, pixels, tables, columns

    def _prepare(self, in_data):
        data, offset, mask, weight, bias = self._split(in_data)
        self.map_size = data.shape[2:]
        images = data.shape[0]
        flat = data.reshape(images, data.shape[1], data.shape[2] * data.shape[3])
        offset = offset.reshape(images, offset.shape[1], offset.shape[2] * offset.shape[3])
        if mask is None:
            mask = np.empty((images, 0, offset.shape[2]), data.dtype)
        mask = mask.reshape(images, mask.shape[1], offset.shape[2])
        groups = self.params.num_group
        weight = weight.reshape(groups, weight.shape[0] // groups, -1)
        return flat, offset, mask, weight, bias

    def compute(self, ctx, in_data, out_data, aux):
        kernel = kernels("conv.deformable", ctx.device)
        data, offset, mask, weight, bias = self._prepare(in_data)
        out = out_data[0]
        matmul = kernels("product.matmul", ctx.device).matmul
        flat = out.reshape(*out.shape[:2], offset.shape[2])
        groups, per_group = self.params.num_deformable_group, weight.shape[1]
        for image, first, count, pixels, tables, columns in self._tiles(ctx, data, offset, out.shape[3]):
            kernel.gather(data[image], mask[image], first, count, groups, pixels, tables[0], columns)
            for g, matrix in enumerate(weight):
                part = columns[g * matrix.shape[1] : (g + 1) * matrix.shape[1], :count]
                target = flat[image, g * per_group : (g + 1) * per_group, first : first + count]
                matmul(matrix, part, target)
        if bias is not None:
            flat += bias[:, None]

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        kernel = kernels("conv.deformable", ctx.device)
        data, offset, mask, weight, bias = self._prepare(in_data)
        grad = out_grad[0].reshape(*out_grad[0].shape[:2], offset.shape[2])
        groups = self.params.num_deformable_group
        targets = self._split(in_grad)
        need = [target is not None for target in targets[:4]]
        sums = [np.zeros(a.shape, a.dtype) for a in (data, offset, mask, weight)]
        per_group = weight.shape[1]
        column_grad, weight_part = None, np.empty(weight.shape[1:], weight.dtype)
        matmul = kernels("product.matmul", ctx.device).matmul
        for image, first, count, pixels, tables, columns in self._tiles(
            ctx, data, offset, out_grad[0].shape[3]
        ):
            if column_grad is None:
                column_grad = self.scratch("column_grad", columns.shape, columns.dtype)
            if need[3]:
                kernel.gather(data[image], mask[image], first, count, groups, pixels, tables[0], columns)
            for g, matrix in enumerate(weight):
                rows = slice(g * matrix.shape[1], (g + 1) * matrix.shape[1])
                part = grad[image, g * per_group : (g + 1) * per_group, first : first + count]
                if need[3]:
                    matmul(part, columns[rows, :count].T, weight_part)
                    sums[3][g] += weight_part
                if any(need[:3]):
                    matmul(matrix.T, part, column_grad[rows, :count])
            if need[0]:
                kernel.scatter_data(
                    column_grad, mask[image], first, count, groups, pixels, tables[0], sums[0][image]
                )
            if need[1] or need[2]:
                grads = sums[1][image], sums[2][image]
                kernel.scatter_offset(
                    column_grad, data[image], mask[image], first, count, groups, pixels, tables, grads
                )
        results = [*sums, None if bias is None else sum_by_channel(grad)]
        for target, value in zip(targets, results, strict=True):
            if target is not None:
                target[...] = value.reshape(target.shape)


@register("_contrib_DeformableConvolution", "DeformableConvolution", "_npx_deformable_convolution")
class DeformableConvolutionProp(FloatProperty):
    """Convolution whose taps read the map at displaced positions, bilinearly (Deformable ConvNets, 2017).

    Taps that land outside the map read zero; beyond the middle of the last pixel its value holds.
    """

    kernel = Field(shape(2), above=0, doc="kernel size (height, width)")
    stride = Field(shape((0, 2)), (1, 1), above=0, doc="distance of the windows in y and x")
    dilate = Field(shape((0, 2)), (1, 1), above=0, doc="distance of a window's undisplaced taps in y and x")
    pad = Field(shape((0, 2)), (0, 0), range=(0, None), doc="how far windows reach beyond the map in y and x")
    num_filter = Field(int, range=(1, None), doc="output channels")
    num_group = Field(int, 1, above=0, doc="groups of channels that are convolved apart from each other")
    num_deformable_group = Field(
        int, 1, above=0, doc="groups of input channels with displacements of their own"
    )
    workspace = Field(int, 1024, range=(0, None), doc="read from old files; scratch memory is bounded anyway")
    no_bias = Field(bool, False, doc="whether there is no bias input")
    layout = Field(optional(enum("NCHW")), None, doc="order of the axes")

    param, op = Window, DeformableConvolutionOp
    arguments = {
        "data": "the feature map (images, channels, height, width)",
        "offset": "displacements (images, 2 * groups * taps, height, width) of the output's size: y, then x",
        "weight": "(num_filter, channels / num_group, height, width)",
        "bias": "(num_filter,)",
    }
    present_if = {"bias": lambda p: not p.no_bias}
    partial_shapes = False
    backward_needs = ("out_grad", "in_data")
    #: Rows of the displacement map for one tap, by the argument that holds them.
    rows_per_tap = {"offset": 2}

    def count_operations(self, in_shapes, out_shapes):
        weight = in_shapes[self.list_arguments().index("weight")]
        return 2 * math.prod(out_shapes[0]) * math.prod(weight[1:])

    def infer_shape(self, in_shapes):
        p = self.params
        data = in_shapes[0]
        self.check_ndim("data", data, 4)
        images, channels = data[:2]
        for name, count, groups in (
            ("channels of data", channels, "num_group"),
            ("channels of data", channels, "num_deformable_group"),
            ("num_filter", p.num_filter, "num_group"),
        ):
            if count % getattr(p, groups):
                raise self.shape_error(
                    f"{name} must be a multiple of {groups} {getattr(p, groups)}, got {count}"
                )
        size = []
        for name, extent, span, stride, pad in zip(
            ("height", "width"), data[2:], p.spans, p.strides, p.pads, strict=True
        ):
            if extent + 2 * pad < span:
                raise self.shape_error(
                    f"{name} of data and padding must be at least the dilated kernel's {span}, "
                    f"got {extent + 2 * pad}"
                )
            size.append((extent + 2 * pad - span) // stride + 1)
        taps = p.kernel[0] * p.kernel[1] * p.num_deformable_group
        need = {"data": data, "bias": (p.num_filter,)}
        need |= {name: (images, rows * taps, *size) for name, rows in self.rows_per_tap.items()}
        need["weight"] = (p.num_filter, channels // p.num_group, *p.kernel)
        shapes = [
            self.check_shape(name, shape, need[name])
            for name, shape in zip(self.list_arguments(), in_shapes, strict=True)
        ]
        return shapes, [(images, p.num_filter, *size)]


@register(
    "_contrib_ModulatedDeformableConvolution",
    "ModulatedDeformableConvolution",
    "_npx_modulated_deformable_convolution",
)
class ModulatedDeformableConvolutionProp(DeformableConvolutionProp):
    """Deformable convolution whose taps are each scaled by a mask as well (Deformable ConvNets v2, 2018).

    The map counts as padded with zeros, so that taps up to one pixel outside fade out.
    """

    im2col_step = Field(int, 64, above=0, doc="read from old files; images are taken one by one anyway")

    op = variant(DeformableConvolutionOp, modulated=True)
    arguments = ("data", "offset", "mask", "weight", "bias")
    argument_docs = DeformableConvolutionProp.argument_docs | {
        "mask": "factors (images, groups * taps, height, width) of the output's size"
    }
    rows_per_tap = {"offset": 2, "mask": 1}
