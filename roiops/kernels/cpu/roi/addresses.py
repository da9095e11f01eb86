"""Kernels that are given addresses, because to make an array of one takes as long as a small call.

A kernel is one compiled function: it looks at the boxes, makes the tables, and has threads share the rest.
Its arguments are numbers and the addresses of contiguous arrays, so that one function serves NumPy's
arrays, on any number of threads, and PyTorch's small tensors.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from roiops.kernels import geometry
from roiops.kernels.cpu.roi.chunks import is_dense, is_small
from roiops.kernels.cpu.roi.images import first_stray
from roiops.kernels.jit import Whole, inner


class Shapes(NamedTuple):
    """The shapes of the map, or its gradient, of the boxes, and of the output, or its gradient.

    The channels of either come last, so that ``pixel_step`` or ``bin_step`` are the channels, or before the
    pixels and the bins, so that these are 1.
    """

    images: int
    in_channels: int
    height: int
    width: int
    rois: int
    columns: int
    out_channels: int
    pooled_h: int
    pooled_w: int
    pixel_step: int  # from a pixel of the map to the next
    plane_step: int  # and from a channel
    bin_step: int  # from a bin of the output to the next
    bins_step: int  # and from a channel


def _maker(made):
    """What generates an array of type ``made`` of an address, its extents and a number; none at address 0."""

    def generate(context, builder, signature, args):
        address, *shape, _ = args
        nothing = builder.icmp_unsigned("==", address, address.type(0))
        shape[0] = builder.select(nothing, address.type(0), shape[0])
        size = address.type(made.dtype.bitwidth // 8)
        strides = [size]
        for extent in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], extent))
        data = builder.inttoptr(address, context.get_value_type(types.CPointer(made.dtype)))
        array = context.make_array(made)(context, builder)
        populate_array(array, data, shape, strides, size, meminfo=None)
        return array._getvalue()

    return generate


@intrinsic
def _array_at(typing_context, address, count, number):
    """The array of so many numbers of the type of ``number`` at an address, which the caller keeps"""
    made = types.Array(number, 1, "C")
    return made(types.intp, types.intp, number), _maker(made)


@intrinsic
def _rows_at(typing_context, address, rows, columns, number):
    """The array of so many rows of numbers"""
    made = types.Array(number, 2, "C")
    return made(types.intp, types.intp, types.intp, number), _maker(made)


if numba.config.DISABLE_JIT:  # an array stands for its address

    def _array_at(array, count, number):
        return array.ravel("K")

    def _rows_at(array, rows, columns, number):
        return array


@inner
def arrays_at(shapes, numbers, data, rois, out):
    """The map, its pixels in a row; the boxes; the output, in a row."""
    pixels = shapes.images * shapes.in_channels * shapes.height * shapes.width
    bins = shapes.rois * shapes.out_channels * shapes.pooled_h * shapes.pooled_w
    return (
        _array_at(data, pixels, numbers[0]),
        _rows_at(rois, shapes.rois, shapes.columns, numbers[0]),
        _array_at(out, bins, numbers[0]),
    )


@inner
def places_at(shapes, numbers, argmax):
    """The argmax of an output, in a row; nothing at address 0."""
    bins = shapes.rois * shapes.out_channels * shapes.pooled_h * shapes.pooled_w
    return _array_at(argmax, bins, numbers[1])


@inner(makes_arrays=False)
def clear_ignored(plan, shapes, out, value):
    """Set what belongs to the ROIs that are to be ignored in a flat output."""
    order, image_at = plan
    size = shapes.out_channels * shapes.pooled_h * shapes.pooled_w
    for k in range(image_at[0]):
        for p in range(order[k] * size, (order[k] + 1) * size):
            out[p] = value


def forward_body(build, run):
    """What the body of a :class:`Kernel` of means calls: ``build`` makes the tables, ``run`` applies them.

    It returns the first row that names no image, and then nothing is written, or -1.
    """

    @inner
    def forward(launcher, parts, call, shapes, numbers, data, rois, out):
        data, rois, out = arrays_at(shapes, numbers, data, rois, out)
        _, setting, groups, clear = call
        stray = first_stray(rois, setting.images)
        if stray < 0:
            plan, table = build(launcher, parts, call, rois)
            if clear:
                clear_ignored(plan, shapes, out, 0)
            run(launcher, parts, data, shapes, plan, table, groups, out, 0)
        return stray

    return forward


def backward_body(build, run):
    """What the body of a :class:`Kernel` calls that writes, or adds, the gradient of the map of means."""

    @inner
    def backward(launcher, parts, call, shapes, numbers, grad_data, rois, grad_out):
        grad_data, rois, grad_out = arrays_at(shapes, numbers, grad_data, rois, grad_out)
        _, _, groups, accumulate = call
        plan, table = build(launcher, parts, call, rois)
        run(launcher, parts, grad_out, shapes, plan, table, groups, accumulate, grad_data, 0)
        return np.int64(-1)

    return backward


class Kernel:
    """A kernel as Python calls it.

    ``body(launcher, parts, call, shapes, numbers, data, rois, out[, argmax])`` does the work. ``numbers`` has
    a number of each type; of the arrays the body gets the addresses (:func:`arrays_at`).
    """

    def __init__(self, body):
        self._entry = Whole(body)

    def __call__(self, threads, call, shapes, arrays):
        """Run it on arrays as :func:`shapes_for` takes them; returns what the body does."""
        _, rois, _, *argmax = arrays
        dtypes = rois.dtype, *(array.dtype for array in argmax)
        numbers = tuple(dtype.type(0) for dtype in dtypes)
        if not numba.config.DISABLE_JIT:
            arrays = (array.ctypes.data if array.size else 0 for array in arrays)
        return self._entry.by(threads, dtypes, call, shapes, numbers, *arrays)

    def small(self, call, shapes, dtypes):
        """A function of addresses alone, for one thread and arrays of these dtypes."""
        dtypes = tuple(map(np.dtype, dtypes))
        numbers = tuple(dtype.type(0) for dtype in dtypes)
        return functools.partial(self._entry.by, 1, dtypes, call, shapes, numbers)


def _steps(shape, channels_last=False):
    return (shape[1], 1) if channels_last else (1, shape[2] * shape[3])


def shapes_for(data, rois, out) -> Shapes:
    """The shapes of a map (N, C, H, W), of boxes, and of an output (R, C, H, W), in either layout."""
    steps = *_steps(data.shape, not is_dense(data)), *_steps(out.shape, not is_dense(out))
    return Shapes(*data.shape, *rois.shape, *out.shape[1:], *steps)


def prepared(kernels, calls, shapes, dtypes):
    """``(forward, backward)`` as functions of addresses, or None for a call that is not small.

    ``calls`` are the first arguments of each of the two ``kernels``.
    """
    data_shape, rois_shape, out_shape = shapes
    shapes = Shapes(*data_shape, *rois_shape, *out_shape[1:], *_steps(data_shape), *_steps(out_shape))
    data_size, out_size = int(np.prod(data_shape)), int(np.prod(out_shape))
    if numba.config.DISABLE_JIT or not is_small(data_size + out_size) or not data_size:
        return None
    pairs = zip(kernels, calls, strict=True)
    return [kernel.small(call, shapes, dtypes) for kernel, call in pairs]


def setting_of(rules, scale, ratio, dtype, data_shape, out_shape):
    """:func:`geometry.setting_of` for arrays of ``dtype`` that are computed with as they are."""
    return geometry.setting_of(rules, scale, ratio, np.dtype(dtype), tuple(data_shape), tuple(out_shape))
