"""Compile the kernels of ROI operators or of a saved model, so that the first call need not wait.

  roiops warmup
  roiops warmup ROIAlign PSROIPooling --dtype float64
  roiops warmup model-symbol.json --shape data=1,3,480,640

Kernels are kept on disk, beside the package or where NUMBA_CACHE_DIR says; the build of a container is a good
place for this command. They are compiled in several processes, and for as many threads as there are now (one,
or more than one: NUMBA_NUM_THREADS=1 for the former).

A MODEL is its SYMBOL.json, or what the names of its files begin with; its parameters are not needed.
"""

import os
from pathlib import Path

import numpy as np

from ..errors import MXNetError
from ..shapes import known
from ..warmup import compile_kinds, kinds_of_steps, names, shares, warmup
from .common import add_import, dtype_name, import_modules, positive, shape_argument
from .compiling import Helpers, Progress, cores, shape_arguments

SUMMARY = "compile the kernels of ROI operators or of a saved model ahead of the first call"


def _share(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    return int(part), int(parts)


def configure(parser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a model or operators; all ROI operators if none"
    )
    parser.add_argument(
        "--shape", action="append", default=[], type=shape_argument, metavar="NAME=SHAPE", help="of an input"
    )
    parser.add_argument(
        "--dtype", action="append", type=dtype_name, help="of ROI operators' data (default float32)"
    )
    parser.add_argument("--jobs", type=positive(int), metavar="N", help="processes (default: one a core)")
    parser.add_argument("--share", type=_share, metavar="I/N", help="only part I of N, for helping processes")
    add_import(parser)


def execute(args) -> None:
    import_modules(args.imports)
    model = len(args.names) == 1 and _is_model(args.names[0])
    parts = _model_parts(args) if model else _operator_parts(args)
    part, count = args.share or (0, min(args.jobs or cores(), max(1, len(parts))))
    mine = shares(parts, count)[part]
    if args.share:
        for name, compile_it in mine:
            compile_it()
            print(name, flush=True)
        return
    progress = Progress(len(parts))
    arguments = [*args.names, *shape_arguments(dict(args.shape))]
    arguments += [f"--dtype={dtype}" for dtype in args.dtype or ()]
    arguments += [f"--import={module}" for module in args.imports]
    progress.begin()
    helpers = Helpers(arguments, count, progress)
    try:
        for name, compile_it in mine:
            compile_it()
            progress(name)
        helpers.wait()
    finally:
        helpers.end()
        progress.close()
    print(f"{len(parts)} kinds of operators are compiled")


def _is_model(name: str) -> bool:
    return name.endswith(".json") or os.path.exists(name) or Path(f"{name}-symbol.json").exists()


def _operator_parts(args) -> list:
    chosen, dtypes = args.names or names(), args.dtype or ["float32"]

    def compile_it(name):
        return lambda: warmup(name, dtypes=dtypes)

    return [(name, compile_it(name)) for name in chosen]


def _model_parts(args) -> list:
    from ..models.files import find_files, read_symbol
    from ..models.inspection import inspect_model

    shapes = dict(args.shape)
    symbol_file, _ = find_files(args.names[0], None)
    inputs = inspect_model(symbol_file, None, shapes).inputs
    unknown = [value.name for value in inputs if not known(value.shape)]
    if unknown:
        raise MXNetError(f"warmup: --shape is needed for {', '.join(unknown)}")
    symbol, _ = read_symbol(symbol_file)
    executor = symbol.simple_bind("cpu", grad_req="null", **shapes)
    for array in executor.arg_dict.values():
        if np.dtype(array.dtype).kind == "f" and array.size < 1 << 16:  # no division by 0 in what follows
            array[:] = 1

    def compile_it(kind):
        return lambda: compile_kinds([kind])

    return [(kind[0], compile_it(kind)) for kind in kinds_of_steps(executor)]
