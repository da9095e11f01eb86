"""MXNet's array functions that are written in terms of operators."""

import numpy as np

from .. import registry
from .creation import array
from .functions import call
from .ndarray import NDArray, apply

__all__ = ["concatenate", "histogram", "moveaxis", "onehot_encode", "split_v2"]


def concatenate(arrays, axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an axis. A single array is returned itself unless ``always_copy``."""
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return call(registry.get("Concat"), tuple(arrays), {"dim": axis})


def moveaxis(tensor: NDArray, source, destination) -> NDArray:
    """Move axes to new places; the others keep their order."""
    # Of an array whose axes are as long as their numbers, NumPy's tells the new order.
    order = np.moveaxis(np.empty(range(tensor.ndim)), source, destination).shape
    return apply("transpose", tensor, axes=order)


def split_v2(ary: NDArray, indices_or_sections, axis: int = 0, squeeze_axis: bool = False):
    """Split into equal sections, or at the given indices: a list of arrays, or the array if it is one."""
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if size % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        step = size // indices_or_sections
        starts = [i * step for i in range(indices_or_sections)]
    elif isinstance(indices_or_sections, tuple):
        starts = [0, *indices_or_sections]
    else:
        raise ValueError("indices_or_sections must either int or tuple of ints")
    ends = [*starts[1:], size]
    parts = [apply("slice_axis", ary, axis=axis, begin=b, end=e) for b, e in zip(starts, ends, strict=True)]
    parts = [apply("squeeze", part, axis=axis) for part in parts] if squeeze_axis else parts
    return parts if len(parts) > 1 else parts[0]


def histogram(a: NDArray, bins=10, range=None) -> list[NDArray]:
    """How many entries fall into each bin, and the edges of the bins, which ``bins`` counts or holds.

    Equal bins reach over ``range``, or from the smallest entry to the largest.
    """
    if isinstance(bins, NDArray):
        return call(registry.get("_histogram"), (a, bins), {})
    if not isinstance(bins, int):
        raise ValueError("bins argument should be either an integer or an NDArray")
    if range is None:  # MXNet gives NumPy's result then, as float32
        data = a.asnumpy()
        ends = (float(data.min()), float(data.max())) if data.size else None
        return [array(each) for each in np.histogram(data, bins, ends)]
    return call(registry.get("_histogram"), (a,), {"bin_cnt": bins, "range": range})


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write the one-hot rows of ``indices`` into ``out``."""
    out[:] = apply("one_hot", indices, depth=out.shape[1])
    return out


NDArray.split_v2 = split_v2  # a method as well, as in MXNet; unlike others it is no operator
