"""Compile operators ahead of their first use."""

import time

import numpy as np

from .context import Context, current_context
from .errors import ParamError, nearest
from .ndarray import device
from .operators.base import OpContext
from .operators.imperative import Invocation
from .registry import get, public_name

__all__ = ["warmup"]

_SIZE = {"pooled_size": (2, 2), "spatial_scale": 1.0}
_SCORES = {"pooled_size": 1, "spatial_scale": 1.0, "output_dim": 1}
_DEFORMABLE = {**_SCORES, "group_size": 1, "trans_std": 0.1}

# One box is one thread's work; so many are shared by all threads, in kernels compiled for that.
_FEW_AND_MANY = 1, 1 << 15

# Parameters that between them reach every kernel of an operator, and the shapes of its inputs after the data,
# for one box.
_EXAMPLES = {
    "ROIPooling": ([_SIZE, {**_SIZE, "dialect": "chainer", "mode": "avg"}], [(1, 5)]),
    "ROIAlign": ([_SIZE, {**_SIZE, "mode": "max"}], [(1, 5)]),
    "_contrib_ROIAlign": ([_SIZE], [(1, 5)]),
    "PSROIPooling": ([_SCORES, {**_SCORES, "dialect": "chainer", "mode": "max"}], [(1, 5)]),
    "PSROIAlign": ([_SCORES, {**_SCORES, "dialect": "chainer", "mode": "max"}], [(1, 5)]),
    "_contrib_DeformablePSROIPooling": ([_DEFORMABLE], [(1, 5), (1, 2, 1, 1)]),
    "_contrib_RROIAlign": ([_SIZE], [(1, 6)]),
}


def warmup(*operators: str, dtypes=("float32",), ctx: Context | None = None) -> dict[str, float]:
    """Compile the kernels of ROI operators, forward and backward, and return the seconds each took.

    Kernels compile on their first use otherwise, and are kept on disk from then on. They compile once for one
    thread, which small calls always use, and once more if there are more threads.

    Parameters
    ----------
    *operators : str
        Names such as ``"ROIAlign"`` or ``"contrib.ROIAlign"``; all ROI operators without any.
    dtypes : sequence of str or dtype
        float32, float64 or float16 data. float16 is computed by the kernels of float32.
    ctx : Context, optional
        The device; the current one by default.
    """
    names = [_internal(name) for name in operators] or list(_EXAMPLES)
    ctx = ctx or current_context()
    took = {}
    for name in names:
        start = time.perf_counter()
        for dtype in dtypes:
            for params in _EXAMPLES[name][0]:
                for boxes in _FEW_AND_MANY:
                    _run(name, params, boxes, np.dtype(dtype), ctx)
        took[public_name(name)] = time.perf_counter() - start
    return took


def _internal(name: str) -> str:
    wanted = get(name.replace("contrib.", "_contrib_"))
    for known in _EXAMPLES:
        if get(known) is wanted:  # under whichever of its names
            return known
    words = [public_name(each) for each in _EXAMPLES]
    raise ParamError(
        f"warmup: {name!r} is not an ROI operator{nearest(name, words)} (they are: {', '.join(words)})"
    )


def _run(name, params, boxes, dtype, ctx):
    prop = get(name).create(params)
    shapes = [(1, 1, 2, 2), *((boxes, *shape[1:]) for shape in _EXAMPLES[name][1])]
    invocation = Invocation(
        prop,
        [device.zeros(shape, dtype, ctx) for shape in shapes],
        ctx=OpContext(ctx, prop.label),
        empty=lambda shape, dtype: device.empty(shape, dtype, ctx),
    )
    invocation.forward()
    gradients = [device.zeros(shape, dtype, ctx) for shape in shapes]
    invocation.backward([invocation.outputs[0]], in_grad=gradients)
