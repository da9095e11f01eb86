"""Compile the kernels of ROI operators or of a saved model, so that the first call need not wait.

  roiops warmup
  roiops warmup ROIAlign PSROIPooling --dtype float64
  roiops warmup model-symbol.json --shape data=1,3,480,640

Kernels are kept on disk, beside the package or where NUMBA_CACHE_DIR says; the build of a container is a good
place for this command. They are compiled in several processes, for any number of threads.

A MODEL is its SYMBOL.json, what the names of its files begin with, or a Gluon model as MODULE:FUNCTION; its
parameters are not needed.
"""

import functools
import os
from pathlib import Path

import numpy as np

from .. import compiling
from ..errors import MXNetError
from ..registry import public_name
from ..warmup import FLOATS, calls_of_operators, internal_name, names, run_once
from .blocks import is_block
from .common import (
    add_import,
    add_shapes,
    add_with,
    bind,
    dtype_name,
    open_model,
    positive,
    refuse,
)

SUMMARY = "compile the kernels of ROI operators or of a saved model ahead of the first call"


def configure(parser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a model or operators; all ROI operators if none"
    )
    add_shapes(parser)
    parser.add_argument(
        "--dtype", action="append", type=dtype_name, help="of ROI operators' data (default float32)"
    )
    parser.add_argument(
        "--jobs", type=positive(int), metavar="N", help="processes (default: one a core, 8 at most)"
    )
    add_import(parser)
    add_with(parser)


def execute(args) -> None:
    of_model = len(args.names) == 1 and _is_model(args.names[0])
    if of_model:
        refuse(args, "is for operators; a model has its own", "dtype")
    else:
        refuse(args, "is for one model", "shape", "with")
    if unfit := [each for each in args.dtype or () if each not in FLOATS]:
        args.parser.error(f"--dtype must be float16, float32 or float64, got {unfit[0]}")
    if of_model:
        executor = _executor_of(args)
        calls = [(prop.label, call) for prop, call in executor.ready_steps()]
        task, size = executor.compile_task(), executor.size
    else:
        if models := [name for name in args.names if len(args.names) > 1 and _is_model(name)]:
            args.parser.error(f"one model, or operators, at a time: {models[0]} is a model")
        chosen = [public_name(internal_name(name)) for name in args.names or names()]
        task = {"operators": chosen, "dtypes": args.dtype or ["float32"], "imports": args.imports}
        calls, size = calls_of_operators(chosen, task["dtypes"]), 0
    with compiling.at_most(args.jobs):
        helpers = min(compiling.helpers_for(size), len(calls) - 1)
        with compiling.as_soon_as_compiling(functools.partial(compiling.start, task, helpers)):
            run_once(calls)
    from ..kernels.jit import cache_folder  # numba comes with it, which other commands do without

    what = "1 operator" if len(calls) == 1 else f"{len(calls)} operators"
    if cache_folder() is None:
        raise MXNetError(
            f"the kernels of {what} compile, but none are kept: ROIOPS_CACHE=0, or no folder can be written"
        )
    print(f"the kernels of {what} are compiled")


def _is_model(name: str) -> bool:
    return (
        is_block(name)
        or name.endswith(".json")
        or os.path.exists(name)
        or Path(f"{name}-symbol.json").exists()
    )


def _executor_of(args):
    symbol, _ = open_model(args, args.names[0])
    _, executor = bind(args, symbol)
    for array in executor.arg_dict.values():
        if np.dtype(array.dtype).kind == "f" and array.size < 1 << 16:  # no division by 0 in what follows
            array[:] = 1
    return executor
