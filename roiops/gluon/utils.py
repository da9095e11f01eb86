"""``gluon.utils``: batches cut into slices for devices, gradients clipped."""

import hashlib
import itertools
import os
import warnings

import numpy as np

from .. import ndarray

__all__ = ["check_sha1", "clip_global_norm", "download", "shape_is_known", "split_and_load", "split_data"]


def split_data(data, num_slice, batch_axis=0, even_split=True) -> list:
    """``data`` cut along ``batch_axis``, into slices of one length where ``even_split`` asks for that."""
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis "
            f"{batch_axis}. Use a batch size that's multiple of {num_slice} or set even_split=False to allow "
            "uneven partitioning of data."
        )
    each, more = divmod(size, num_slice)
    lengths = [each + 1] * more + [each] * (num_slice - more)
    ends = np.cumsum([0, *lengths]).tolist()
    if batch_axis == 0:  # sparse arrays, too
        return [data[begin:end] for begin, end in itertools.pairwise(ends)]
    return [
        ndarray.slice_axis(data, axis=batch_axis, begin=begin, end=end)
        for begin, end in itertools.pairwise(ends)
    ]


def split_and_load(data, ctx_list, batch_axis=0, even_split=True) -> list:
    """``data`` cut into a slice for each device, each there."""
    if not isinstance(data, ndarray.NDArray):
        data = ndarray.array(data, ctx=ctx_list[0])
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    slices = split_data(data, len(ctx_list), batch_axis, even_split)
    return [each.as_in_context(ctx) for each, ctx in zip(slices, ctx_list, strict=True)]


def clip_global_norm(arrays, max_norm, check_isfinite=True):
    """Scale arrays together so that their common length is at most ``max_norm``; gives what it was."""
    if not arrays:
        raise AssertionError("clip_global_norm: needs at least one array")
    ctx = arrays[0].context
    squares = [ndarray.sum(ndarray.square(each)).as_in_context(ctx) for each in arrays]
    length = ndarray.sqrt(ndarray.add_n(*squares))
    if check_isfinite and not np.isfinite(length.asscalar()):
        warnings.warn(
            UserWarning("nan or inf is detected. Clipping results will be undefined."), stacklevel=2
        )
    scale = ndarray.minimum(max_norm / (length + 1e-8), 1.0)
    for each in arrays:
        each *= scale.as_in_context(each.context)
    return length.asscalar() if check_isfinite else length


def check_sha1(filename, sha1_hash) -> bool:
    """Whether a file has this SHA-1."""
    with open(filename, "rb") as file:
        return hashlib.sha1(file.read()).hexdigest() == sha1_hash


def download(url, path=None, overwrite=False, sha1_hash=None, retries=5, verify_ssl=True) -> str:
    """Where the file of this URL is, if it is there already; nothing is downloaded here, so else an error.

    ``path`` is the file's or its folder's; without it the file is looked for in the current folder. With
    ``sha1_hash`` the file must have it.
    """
    name = url.split("/")[-1]
    file = name if path is None else os.path.expanduser(path)
    if os.path.isdir(file):
        file = os.path.join(file, name)
    if overwrite or not os.path.exists(file) or (sha1_hash and not check_sha1(file, sha1_hash)):
        raise RuntimeError(f"download: nothing is downloaded here; fetch {url} by other means, as {file}")
    return file


def shape_is_known(shape) -> bool:
    """Whether a shape has no unknown entries."""
    return shape is not None and all(length > 0 for length in shape)
