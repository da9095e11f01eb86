"""Compile operators ahead of their first use."""

import contextlib
import time

import numpy as np

from .context import Context, current_context
from .errors import ParamError, nearest
from .ndarray import device
from .operators.base import OpContext
from .operators.imperative import Invocation
from .registry import get, public_name

__all__ = ["compile_kinds", "kinds_of_steps", "names", "warmup"]

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


def names() -> list[str]:
    """The operators that :func:`warmup` compiles."""
    return [public_name(name) for name in _EXAMPLES]


def kinds_of_steps(executor) -> list[tuple[str, list]]:
    """The steps of an inference that are likely to share kernels, together: a name and their calls.

    Steps of one operator with the same window, stride and grouping take the same kernels, by and large.
    """
    kinds: dict = {}
    for prop, call in executor.ready_steps():
        params = prop.params
        window = [
            getattr(params, name, None) for name in ("kernel", "stride", "pool_type", "act_type", "mode")
        ]
        grouped = getattr(params, "num_group", 1) != 1
        kinds.setdefault((prop.name, *map(str, window), grouped), []).append(call)
    return [
        (" ".join([public_name(key[0]), *(part for part in key[1:2] if part not in ("None", "()"))]), calls)
        for key, calls in kinds.items()
    ]


def compile_kinds(kinds, report=None) -> None:
    """Run the steps of each kind once, so that what they need is compiled.

    ``report(name, compiled)`` hears of each kind when it is done, and whether anything was not on disk.
    Inputs are what they are; a step that cannot take them says so when it is run in earnest.
    """
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        for name, calls in kinds:
            before = len(recorder.buffer)
            with np.errstate(all="ignore"), contextlib.suppress(Exception):
                for call in calls:
                    call()
            if report:
                report(name, len(recorder.buffer) > before)


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
