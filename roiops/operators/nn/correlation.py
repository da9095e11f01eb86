"""The correlation of two feature maps at displacements of each other, as FlowNet takes it."""

import itertools

import numpy as np

from ...errors import ParamError
from ...params import Field, Parameter
from ...registry import register
from ..dense import FloatProperty, FormulaOperator


class CorrelationParam(Parameter):
    kernel_size = Field(int, 1, range=(1, None), doc="size of the patches that are compared; odd")
    max_displacement = Field(int, 1, range=(0, None), doc="furthest displacement on each axis")
    stride1 = Field(int, 1, range=(1, None), doc="step from patch to patch")
    stride2 = Field(int, 1, range=(1, None), doc="step from displacement to displacement")
    pad_size = Field(int, 0, range=(0, None), doc="zeros around both maps")
    is_multiply = Field(bool, True, doc="whether patches are multiplied; else their difference is taken")

    def validate(self, operator):
        if self.kernel_size % 2 == 0:
            raise ParamError(f"{operator}: kernel_size must be odd, got {self.kernel_size}")

    @property
    def displacements(self) -> list:
        """(y, x) in the order of the output's channels."""
        reach = self.max_displacement // self.stride2
        return [
            (self.stride2 * y, self.stride2 * x)
            for y, x in itertools.product(range(-reach, reach + 1), repeat=2)
        ]

    def out_size(self, size) -> tuple:
        """Patches along each axis of a map of ``size``; below 1 where there is no room."""
        border = self.max_displacement + self.kernel_size // 2
        return tuple(-(-(n + 2 * self.pad_size - 2 * border) // self.stride1) for n in size)


class CorrelationOp(FormulaOperator):
    def _padded(self, data):
        pad = (self.params.pad_size,) * 2
        return np.pad(data, [(0, 0), (0, 0), pad, pad])

    def _places(self, size):
        """(channel, where in the first map, where in the second) for each displacement and patch pixel."""
        p = self.params

        def places(dy, dx):
            first = p.max_displacement
            rows, columns = (p.stride1 * (n - 1) + 1 for n in size)
            y, x = first + dy, first + dx
            return ..., slice(y, y + rows, p.stride1), slice(x, x + columns, p.stride1)

        for channel, (dy, dx) in enumerate(p.displacements):
            for y, x in itertools.product(range(p.kernel_size), repeat=2):
                yield channel, places(y, x), places(y + dy, x + dx)

    def values(self, data1, data2):
        p = self.params
        one, other = self._padded(data1), self._padded(data2)
        size = p.out_size(data1.shape[2:])
        out = np.zeros((len(data1), len(p.displacements), *size), data1.dtype)
        for channel, here, there in self._places(size):
            if p.is_multiply:
                out[:, channel] += np.einsum("nchw,nchw->nhw", one[here], other[there])
            else:
                out[:, channel] += np.abs(one[here] - other[there]).sum(1)
        return (out / out.dtype.type(p.kernel_size**2 * data1.shape[1]),)

    def slopes(self, heads, inputs, outputs):
        p = self.params
        one, other = map(self._padded, inputs)
        grads = np.zeros_like(one), np.zeros_like(other)
        head = heads[0] / heads[0].dtype.type(p.kernel_size**2 * one.shape[1])
        for channel, here, there in self._places(head.shape[2:]):
            flow = head[:, channel, None]
            if p.is_multiply:
                grads[0][here] += flow * other[there]
                grads[1][there] += flow * one[here]
            else:
                flow = np.where(one[here] >= other[there], flow, -flow)
                grads[0][here] += flow
                grads[1][there] -= flow
        inner = slice(p.pad_size, -p.pad_size or None)
        return tuple(grad[..., inner, inner] for grad in grads)


@register("Correlation")
class CorrelationProp(FloatProperty):
    """How like each other the patches of two maps are, at each displacement up to ``max_displacement``.

    Channel ``k`` of the output is the mean product (or absolute difference) of a patch of the first map and
    of the patch of the second one that lies displacement ``k`` away.
    """

    param, op = CorrelationParam, CorrelationOp
    partial_shapes = False
    arguments = {"data1": "a map, (batch, channels, height, width)", "data2": "another of that shape"}
    backward_needs = ("out_grad", "in_data")

    def infer_shape(self, in_shapes):
        shape = in_shapes[0]
        self.check_ndim("data1", shape, 4)
        other = self.check_shape("data2", in_shapes[1], shape)
        size = self.params.out_size(shape[2:])
        if min(size) < 1:
            raise self.shape_error(f"no patch fits into maps of shape {tuple(shape)}")
        return [shape, other], [(shape[0], len(self.params.displacements), *size)]

    def count_operations(self, in_shapes, out_shapes):
        n, channels, height, width = out_shapes[0]
        return 2 * n * channels * height * width * self.params.kernel_size**2 * in_shapes[0][1]
