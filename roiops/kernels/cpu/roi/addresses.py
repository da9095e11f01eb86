"""Kernels that are given addresses, because to make an array of one takes as long as a small call.

A kernel is one compiled function: it looks at the boxes, makes the tables, and has threads share the rest.
Its arguments are numbers and the addresses of contiguous arrays, so that one function serves NumPy's
arrays, on any number of threads, and PyTorch's small tensors.
"""

import functools
from types import FunctionType
from typing import NamedTuple

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from ... import geometry
from ...jit import Whole, inner
from .chunks import boxes_and_setting, channel_chunks, is_dense, is_small, threads_for
from .images import first_stray

#: The argmax of what has none.
NOWHERE = np.empty(0, np.int32)


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
    groups_h: int = 1  # of bins, each with channels of its own
    groups_w: int = 1


@intrinsic
def _array_at(typing_context, address, shape, number):
    """The array of numbers like ``number`` at an address, which the caller keeps; none at address 0"""
    made = types.Array(number, len(shape), "C")

    def generate(context, builder, signature, args):
        address, packed, _ = args
        shape = cgutils.unpack_tuple(builder, packed)
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

    return made(types.intp, shape, number), generate


if numba.config.DISABLE_JIT:  # an array stands for its address

    def _array_at(array, shape, number):
        return array if len(shape) > 1 else array.ravel("K")


@inner
def _arrays_at(shapes, numbers, data, rois, out, argmax):
    """The map, its pixels in a row; the boxes; the output and its argmax, each in a row."""
    pixels = shapes.images * shapes.in_channels * shapes.height * shapes.width
    bins = shapes.rois * shapes.out_channels * shapes.pooled_h * shapes.pooled_w
    return (
        _array_at(data, (pixels,), numbers[0]),
        _array_at(rois, (shapes.rois, shapes.columns), numbers[0]),
        _array_at(out, (bins,), numbers[0]),
        _array_at(argmax, (bins,), numbers[1]),
    )


@inner(makes_arrays=False)
def _clear_ignored(plan, shapes, out, value):
    """Set what belongs to the ROIs that are to be ignored in a flat output."""
    order, image_at = plan
    size = shapes.out_channels * shapes.pooled_h * shapes.pooled_w
    for k in range(image_at[0]):
        for p in range(order[k] * size, (order[k] + 1) * size):
            out[p] = value


def _entry(launcher, parts, call, shapes, numbers, data, rois, out, argmax):
    return _body(launcher, parts, call, shapes, numbers, data, rois, out, argmax)  # noqa: F821


class Kernel:
    """A kernel as Python calls it: ``body``, compiled as a function of ``module``.

    ``body(launcher, parts, call, shapes, numbers, data, rois, out, argmax)`` does the work. ``call`` is the
    rules, the setting, whether to clear or to accumulate, and the limits of maxima. ``numbers``
    has a number of the computing type and one of the argmax's; of the arrays the body gets the addresses.
    """

    def __init__(self, module, body):
        # A function that holds another, as `body` does, numba would not find on disk again.
        entry = FunctionType(_entry.__code__, {"_body": body, "__name__": module}, body.__name__)
        entry.__qualname__ = body.__qualname__
        self._entry = Whole(entry)

    def __call__(self, threads, call, shapes, data, rois, out, argmax=NOWHERE):
        """Run it on arrays as :func:`shapes_for` takes them; returns what the body does."""
        arrays, dtypes = (data, rois, out, argmax), (rois.dtype, argmax.dtype)
        if not numba.config.DISABLE_JIT:
            arrays = (array.ctypes.data if array.size else 0 for array in arrays)
        return self._entry.by(threads, dtypes, call, shapes, _numbers(dtypes), *arrays)

    def small(self, call, shapes, dtypes):
        """A function of addresses alone, for one thread and arrays of these dtypes."""
        return functools.partial(self._entry.by, 1, dtypes, call, shapes, _numbers(dtypes))


def _numbers(dtypes):
    return tuple(dtype.type(0) for dtype in dtypes)


def forward_kernel(module, build, run, are_maxima=False):
    """A :class:`Kernel` of means, or of maxima: ``build`` makes the tables, ``run`` applies them.

    It returns the first row that names no image, and then nothing is written, or -1. What ``run`` is given
    last are the limits of maxima and the argmax, which is empty where there is none.
    """

    @inner
    def forward(launcher, parts, call, shapes, numbers, data, rois, out, argmax):
        data, rois, out, argmax = _arrays_at(shapes, numbers, data, rois, out, argmax)
        rules, setting, clear, limits = call
        stray = first_stray(rois, setting.images)
        if stray < 0:
            plan, table = build(launcher, parts, (rules, setting, shapes), rois)
            if clear:
                _clear_ignored(plan, shapes, out, 0)
            if are_maxima and argmax.size:
                _clear_ignored(plan, shapes, argmax, -1)
            run(launcher, parts, data, shapes, plan, table, out, (limits, argmax))
        return stray

    return Kernel(module, forward)


def backward_kernel(module, build, run):
    """A :class:`Kernel` that writes, or adds, the gradient of their map."""

    @inner
    def backward(launcher, parts, call, shapes, numbers, grad_data, rois, grad_out, argmax):
        grad_data, rois, grad_out, argmax = _arrays_at(shapes, numbers, grad_data, rois, grad_out, argmax)
        rules, setting, accumulate, _ = call
        plan, table = build(launcher, parts, (rules, setting, shapes), rois)
        run(launcher, parts, grad_out, shapes, plan, table, accumulate, grad_data, argmax)
        return np.int64(-1)

    return Kernel(module, backward)


def _steps(shape, channels_last=False):
    return (shape[1], 1) if channels_last else (1, shape[2] * shape[3])


def shapes_for(data, rois, out, groups=(1, 1)) -> Shapes:
    """The shapes of a map (N, C, H, W), of boxes, and of an output (R, C, H, W), in either layout."""
    steps = *_steps(data.shape, not is_dense(data)), *_steps(out.shape, not is_dense(out))
    return Shapes(*data.shape, *rois.shape, *out.shape[1:], *steps, *groups)


def run_forward(kernel, data, rois, how, outputs, clear=True, limits=()):
    """Write the results of all bins, and zeros for rows to be ignored unless ``clear`` is false.

    The outputs are the results, and of maxima perhaps the argmax. Returns the first row that names no image,
    and then nothing is written, or -1.
    """
    rois, setting = boxes_and_setting(how, rois, data, outputs[0])
    groups = geometry.channel_groups(how, *outputs[0].shape[2:])
    call = how.rules, setting, clear, limits
    threads, stray = threads_for(outputs[0].size), -1
    for chunk, *results, _ in channel_chunks([data], outputs, keep=not clear, planes_only=groups != (1, 1)):
        stray = kernel(threads, call, shapes_for(chunk, rois, results[0], groups), chunk, rois, *results)
        if stray >= 0:
            break
    return stray


def run_backward(kernel, threads, inputs, rois, how, accumulate, grad_data, planes_only=False):
    """Write, or add, the gradient of the map; the inputs are that of the output and perhaps the argmax."""
    rois, setting = boxes_and_setting(how, rois, grad_data, inputs[0])
    groups = geometry.channel_groups(how, *inputs[0].shape[2:])
    planes_only = planes_only or groups != (1, 1)
    for *heads, grad, add in channel_chunks(inputs, [grad_data], accumulate, planes_only=planes_only):
        call = how.rules, setting, add, ()
        kernel(threads, call, shapes_for(grad, rois, heads[0], groups), grad, rois, *heads)


def prepared(kernels, shapes, dtype, hows, limits=()):
    """``(forward, backward)`` for a small call on contiguous arrays of one dtype, or None for a larger one.

    Both take the addresses of the map, the boxes, the output and the argmax (0 if there is none, or it is not
    wanted), or of the gradients in the place of what they are the gradients of. They do all of a pass on one
    thread. ``forward`` gives the first row that names no image, and then has done nothing, or -1. Each pass
    has one of the ``kernels`` and of ``hows``, :class:`rules.Pooling`.
    """
    data_shape, rois_shape, out_shape = shapes
    groups = geometry.channel_groups(hows[0], *out_shape[2:])
    steps = *_steps(data_shape), *_steps(out_shape)
    told = Shapes(*data_shape, *rois_shape, *out_shape[1:], *steps, *groups)
    data_size, out_size = int(np.prod(data_shape)), int(np.prod(out_shape))
    if numba.config.DISABLE_JIT or not is_small(data_size + out_size) or not data_size:
        return None
    dtypes, run = (np.dtype(dtype), NOWHERE.dtype), []
    for kernel, how, flags in zip(kernels, hows, ((True, limits), (False, ())), strict=True):
        setting = geometry.setting_of(how, dtypes[0], tuple(data_shape), tuple(out_shape))
        run.append(kernel.small((how.rules, setting, *flags), told, dtypes))
    return run
