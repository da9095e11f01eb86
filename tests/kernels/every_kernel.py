"""Run kernels of the CPU once each, and print those that nothing has run. In a process of its own.

    NUMBA_BOUNDSCHECK=1 python every_kernel.py            every kernel; minutes
    NUMBA_BOUNDSCHECK=1 python every_kernel.py tensor     those that operators of one room of the package use

Kernels are found from the modules of ``roiops.kernels.cpu``, and calls from golden files, from the random
layers and boxes of the soak run, and from the declared ways.
"""

import gc
import importlib
import itertools
import os
import pkgutil
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "operators"), str(TESTS.parent)]

import golden_files  # noqa: E402
import golden_harness  # noqa: E402
import numpy as np  # noqa: E402
from numba.core.registry import CPUDispatcher  # noqa: E402
from soak import guarded  # noqa: E402

import roiops as mx  # noqa: E402
from roiops import registry  # noqa: E402
from roiops.kernels import cpu, ways  # noqa: E402
from roiops.kernels.jit import Direct, _Parallel  # noqa: E402
from roiops.ndarray import updates  # noqa: E402

#: How many random calls of each kind are tried at most.
RANDOM = 100


def not_run(room: str = "") -> list[str]:
    """The kernels of a room of ``kernels/cpu``, or of all, that have not been compiled, and so not run."""
    found = {}
    for each in gc.get_objects():
        if isinstance(each, Direct):
            function, runs = each._function, bool(each._entries)
        elif isinstance(each, _Parallel):
            function = each.__wrapped__
            runs = "compiled" in vars(each) and bool(each.compiled.overloads)
        elif isinstance(each, CPUDispatcher):
            function, runs = each.py_func, bool(each.overloads)
        else:
            continue
        name = f"{function.__module__}.{function.__qualname__.split('[')[0]}"
        if name.startswith(f"{cpu.__name__}.{room}"):
            found[name] = found.get(name, False) or runs
    return sorted(name for name in found if not found[name])


def golden_calls(room):
    """A case of each operator and set of parameters, in float32, with its gradient."""
    seen = set()
    for file in golden_files.names("ops"):
        for case in golden_files.load(file):
            prop = registry.find(case.op)
            kind = case.op, *sorted(v if isinstance(v, str) else k for k, v in case.params.items())
            dtypes = {array.dtype for array in case.arrays.values() if array.dtype.kind == "f"}
            if prop is None or kind in seen or dtypes != {np.dtype("float32")} or room not in prop.__module__:
                continue
            seen.add(kind)
            run = golden_harness.invoke(case)
            yield str(case), lambda run=run: guarded._invoked(run.prop, run.in_data, run.aux, True)


def random_calls(count):
    """Pooling of random boxes by random operators, and random layers."""
    for number, family in itertools.product(range(count), (guarded._box_case, guarded._layer_case)):
        yield family(np.random.default_rng([1, number]), number)


def forced_calls():
    """Some of these by each way."""
    for way in ways.declared():
        os.environ["ROIOPS_WAY"] = way.name
        yield from random_calls(8)
    del os.environ["ROIOPS_WAY"]


def update_calls():
    """A step of each optimizer on a large weight."""
    for name in updates.__all__:
        operator = getattr(updates, name)
        if isinstance(operator, updates.UpdateOperator) and operator.compiles:
            arrays = [mx.nd.ones((updates.BLOCK + 1,)) for _ in range(operator.states + 2)]
            yield name, lambda call=operator, arrays=arrays: call(*arrays, out=arrays[0], lr=0.1)


def float64_calls():
    """Operators that have kernels for float64 alone."""
    data = mx.nd.ones((2, 3), dtype="float64")
    data.attach_grad()
    for name, params in (("erf", {}), ("LeakyReLU", {"act_type": "gelu"})):
        with mx.autograd.record():
            result = getattr(mx.nd, name)(data, **params)
        yield name, result.backward


def bound_calls():
    """Operators whose kernels run in bound graphs alone."""
    data = mx.sym.Variable("data")
    pad = mx.sym.Pad(data, mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 3, 1), constant_value=2)
    yield "Pad", pad.simple_bind(mx.cpu(), grad_req="null", data=(2, 3, 5, 7)).forward
    for kernel in (1, 1), (3, 3):  # results that leave the caches: wide tiles
        layer = mx.sym.Convolution(data, kernel=kernel, num_filter=96, no_bias=True)
        yield "Convolution", layer.simple_bind(mx.cpu(), grad_req="null", data=(1, 2, 131, 129)).forward
    part = mx.sym.slice(data, begin=(0, 1, 1, 2), end=(2, 5, 70, 81))
    turned = mx.sym.transpose(data, axes=(0, 2, 1))
    yield "transpose", turned.simple_bind(mx.cpu(), grad_req="null", data=(2, 171, 103)).forward
    yield "slice", part.simple_bind(mx.cpu(), grad_req="null", data=(2, 6, 71, 90)).forward


def main(room=""):
    for module in pkgutil.walk_packages(cpu.__path__, f"{cpu.__name__}."):
        importlib.import_module(module.name)
    more = () if room else (update_calls(), forced_calls(), random_calls(RANDOM))
    for name, call in itertools.chain(golden_calls(room), float64_calls(), bound_calls(), *more):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except mx.MXNetError:
            continue
        except Exception as error:
            raise AssertionError(name) from error
    print("not run:", *not_run(room), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
