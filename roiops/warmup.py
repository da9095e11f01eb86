"""Compile operators ahead of their first use."""

import functools
import gc
import importlib
import json
import os
import sys
import time
import warnings

import numpy as np

from .context import Context, current_context
from .errors import DTypeError, MXNetError, ParamError, nearest
from .kernels.claims import KernelBusy, never_wait
from .kernels.rules import PIXELS, is_maximum
from .ndarray import device
from .operators.base import OpContext
from .operators.imperative import Invocation, infer
from .operators.roi.dialects import TABLE
from .registry import get, public_name

__all__ = ["FLOATS", "calls_of_operators", "internal_name", "names", "run_once", "warmup"]

#: The dtypes of data for which there are kernels.
FLOATS = "float16", "float32", "float64"
#: Seconds after which a helper tries again what another process was compiling.
_LOOK_AGAIN = 0.05

# Boxes and channels. One box is one thread's work; so many are shared by all threads, in kernels compiled for
# that. Means of one channel, whatever the boxes, have a kernel of their own.
_FEW_AND_MANY = (1, 1), (1 << 15, 2)


def example(name, params) -> dict:
    """``params``, and others that an operator needs for a small call."""
    prop = get(name)
    required = {field: each.example for field, each in prop.param.fields.items() if each.required}
    return {**required, **prop.example_params, **params}


def _examples() -> dict[str, list]:
    """For every ROI operator the parameters that between them reach each of its kernels."""
    examples: dict[str, dict] = {}
    for row in TABLE.values():
        name = row.operator.replace("contrib.", "_contrib_")
        kernel = is_maximum(row.rules), row.rules.samples == PIXELS
        examples.setdefault(name, {}).setdefault(kernel, example(name, row.parameters))
    return {name: list(of_kernel.values()) for name, of_kernel in examples.items()}


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
    names = [internal_name(name) for name in operators] or list(_examples())
    dtypes = [np.dtype(each) for each in ([dtypes] if isinstance(dtypes, str | type) else dtypes)]
    for each in dtypes:
        if each.name not in FLOATS:
            raise DTypeError(f"warmup: dtypes must be float16, float32 or float64, got {each}")
    ctx = ctx or current_context()
    took = {}
    for name in names:
        start = time.perf_counter()
        for dtype in dtypes:
            for params in _examples()[name]:
                for boxes, channels in _FEW_AND_MANY:
                    more = {"output_dim": channels} if "output_dim" in params else {}
                    run_example(name, {**params, **more}, boxes, dtype, ctx, channels=channels)
        took[public_name(name)] = time.perf_counter() - start
    return took


def names() -> list[str]:
    """The operators that :func:`warmup` compiles."""
    return [public_name(name) for name in _examples()]


def calls_of_operators(operators, dtypes) -> list[tuple]:
    """ROI operators, each a name and the call that compiles its kernels."""
    return [(name, functools.partial(warmup, name, dtypes=dtypes)) for name in operators]


def run_once(calls) -> None:
    """Make calls, each with its name, so that what they need is compiled.

    A step of a graph may refuse inputs of zeros with an error of roiops: it says so again when it is run in
    earnest. Any other error is a warning.
    """
    collects = gc.isenabled()
    gc.disable()  # the compiler makes much that lives until it is done
    try:
        for name, call in calls:
            try:
                with np.errstate(all="ignore"):
                    call()
            except MXNetError:
                pass
            except Exception as error:
                message = f"{name}, tried on zeros: {type(error).__name__}: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
    finally:
        if collects:
            gc.enable()


def internal_name(name: str) -> str:
    """The name under which the examples have an operator, or an error that names them all."""
    wanted = get(name.replace("contrib.", "_contrib_"))
    for known in _examples():
        if get(known) is wanted:  # under whichever of its names
            return known
    words = [public_name(each) for each in _examples()]
    raise ParamError(
        f"warmup: {name!r} is not an ROI operator{nearest(name, words)} (they are: {', '.join(words)})"
    )


def small_inputs(prop, count: int, dtype, channels=1) -> tuple[list, list]:
    """Shapes and dtypes of small inputs that an operator takes; ``count`` boxes where it takes any.

    Inputs of which the operator says nothing are like the first.
    """
    problem: Exception | None = None
    for data in (1, channels, 2, 2), (1, 2, 2), (2, 2), (2,):
        try:
            shapes = prop.infer_shape(prop.example_shapes(data, count))[0]
            shapes = [tuple(2 if size == -1 else size for size in shape or data) for shape in shapes]
            types = prop.infer_type([dtype, *[None] * (len(shapes) - 1)][: len(shapes)])[0]
            types = [each or dtype for each in types]
            infer(prop, shapes, types)
            return shapes, types
        except MXNetError as error:
            problem = problem or error
    raise MXNetError(f"{prop.label}: its example_shapes() are of no call that it takes: {problem}")


def run_example(name, params, count, dtype, ctx, request="write", channels=1):
    """Run an operator on zeros, forward, and backward where it has a gradient."""
    prop = get(name).create(params)
    inputs = small_inputs(prop, count, dtype, channels)
    states = infer(prop, *inputs)[2:]

    def zeros(shapes, types):
        return [device.zeros(*each, ctx) for each in zip(shapes, types, strict=True)]

    invocation = Invocation(
        prop,
        zeros(*inputs),
        zeros(*states),
        ctx=OpContext(ctx, prop.label),
        empty=lambda shape, dtype: device.empty(shape, dtype, ctx),
    )
    results = invocation.forward()
    if prop.differentiable:
        invocation.backward(results, request, zeros(*inputs))


# -- in a process that helps another ---------------------------------------------------------------------


def calls_of(task: dict) -> list:
    """The calls that need what is to be compiled, of a graph, of operators or of a function of kernels."""
    from .graph.symbol import load_json
    from .kernels.numba_insides.addresses import compile_separate

    if "function" in task:
        importlib.import_module(task["function"].rpartition(".")[0])
        return [functools.partial(compile_separate, task["function"], task["kinds"])]
    if "operators" in task:
        return [call for _, call in calls_of_operators(task["operators"], task["dtypes"])]
    symbol = load_json(task["symbol"])
    executor = symbol.simple_bind("cpu", grad_req=task["requests"], type_dict=task["types"], **task["shapes"])
    return [call for _, call in executor.ready_steps(task["training"])]


def _is_done(call) -> bool:
    try:
        call()
    except KernelBusy:
        return False
    except Exception:  # an operator may refuse zeros
        pass
    return True


def help_out() -> None:
    """Compile a share of what :func:`compiling.start` was told, until all is done or nobody needs it."""
    index, count = map(int, sys.argv[1:])
    parent = os.getppid()
    never_wait()
    task = json.load(sys.stdin)
    sys.path[:] = task["path"]
    for name in task.get("imports", ()):
        __import__(name)
    calls = calls_of(task)[::-1]
    first = len(calls) * index // count
    left = calls[first:] + calls[:first]
    while left and os.getppid() == parent:
        left = [call for call in left if os.getppid() == parent and not _is_done(call)]
        time.sleep(_LOOK_AGAIN if left else 0)


if __name__ == "__main__":
    help_out()
