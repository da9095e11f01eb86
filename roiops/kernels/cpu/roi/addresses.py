"""Small calls that are given addresses, because to make an array of one takes as long as to use it."""

import functools

import numba
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from roiops.kernels import geometry
from roiops.kernels.cpu.roi.chunks import is_small
from roiops.kernels.jit import inner


@intrinsic
def _pointer(typing_context, address, number):
    """A pointer to numbers of the type of ``number``"""

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(number)(types.intp, number), generate


@inner
def array_at(address, shape, number):
    """The contiguous array of the type of ``number`` at an address."""
    return carray(_pointer(address, number), shape)


@inner
def arrays_at(setting, sizes, number, data, rois, out):
    """The map, the boxes and the output."""
    count, columns, in_channels, out_channels = sizes
    return (
        array_at(data, (setting.images, in_channels, setting.height, setting.width), number),
        array_at(rois, (count, columns), number),
        array_at(out, (count, out_channels, setting.pooled_h, setting.pooled_w), number),
    )


def prepared(kernels, shapes, dtype, scale, ratio, groups, first):
    """``(forward, backward)`` with all arguments but the addresses, or None for a call that is not small.

    ``kernels`` are the two, ``first`` the first arguments of each, ``shapes`` those of the map, the boxes and
    the output.
    """
    data_shape, rois_shape, out_shape = shapes
    data_size, out_size = int(np.prod(data_shape)), int(np.prod(out_shape))
    if numba.config.DISABLE_JIT or not is_small(data_size + out_size) or not data_size:
        return None
    rules = first[0][0]
    groups = geometry.channel_groups(rules, groups, *out_shape[2:])
    sizes = (*rois_shape, data_shape[1], out_shape[1])
    number = np.dtype(dtype).type(0)
    found = []
    for direct, arguments in zip(kernels, first, strict=True):
        setting = geometry.setting_of(arguments[0], scale, ratio, np.dtype(dtype), data_shape, out_shape)
        arguments = (*arguments, setting, groups, sizes, number)
        found.append(functools.partial(direct, np.dtype(dtype), *arguments))
    return found
