"""Every operator with more threads than there are processors or things to do: the same bits as with one.

    NUMBA_NUM_THREADS=64 python -m soak.threads 2 3 64    in tests/: these numbers of threads
    python -m soak.threads --backwards 2 3 64             without threads: the last share first, on any machine

Each registered operator runs forward and backward on the cases that golden files have of it, on random boxes
where it pools boxes, and else on a small example. Every loop that may be divided is divided, however short.
"""

import importlib
import sys

import golden_files
import golden_harness
import numpy as np

import roiops as mx
from roiops import context, registry
from roiops.errors import MXNetError
from roiops.kernels import jit
from roiops.operators.imperative import infer

from . import boxes
from .guarded import _invoked, _layer_case

warmup = importlib.import_module("roiops.warmup")  # `roiops.warmup` is the function

#: How many cases of one operator at most, and how many random boxes and convolutions.
OF_EACH, BOXES, LAYERS = 4, 120, 60


def operators() -> list[str]:
    """The library's own operators, each once."""
    every = {registry.get(name): name for name in reversed(registry.list_operators()) if name != "Custom"}
    return sorted(name for prop, name in every.items() if prop.__module__.startswith("roiops."))


def _size(case) -> int:
    return sum(array.nbytes for array in case.arrays.values())


def _golden(case):
    run = golden_harness.invoke(case)
    return _invoked(run.prop, run.in_data, run.aux, case.is_train)


def _example(name):
    prop = registry.get(name).create(warmup.example(name, {}))
    shapes, types = warmup.small_inputs(prop, 5, np.dtype(np.float32))
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.1, 0.9, shape).astype(dtype) for shape, dtype in zip(shapes, types, strict=True)]
    aux = [np.ones(*each) for each in zip(*infer(prop, shapes, types)[2:], strict=True)]
    return _invoked(prop, inputs, aux, True)


def calls() -> dict:
    """For each operator, calls that return all its results and gradients."""
    found = {registry.get(name): [] for name in operators()}
    golden = [case for file in golden_files.names("ops") for case in golden_files.load(file)]
    for case in sorted(golden, key=_size, reverse=True):
        if registry.find(case.op) is not None and len(found[registry.get(case.op)]) < OF_EACH:
            found[registry.get(case.op)].append(lambda case=case: _golden(case))
    rng = np.random.default_rng(0)
    for number in range(BOXES):
        _, prop, arrays, _ = boxes._case(rng, number, context.cpu(), boxes.DTYPES)
        inputs = [each.array for each in arrays]
        found[registry.get(prop.name)].append(
            lambda prop=prop, inputs=inputs: _invoked(prop, inputs, [], True)
        )
    for name in operators():
        found[registry.get(name)] = found[registry.get(name)] or [lambda name=name: _example(name)]
    layers = [_layer_case(rng, number)[1] for number in range(LAYERS)]
    return {**{prop.name: each for prop, each in found.items()}, "random convolutions": layers}


def _backwards(part, parts):
    """A share that writes what belongs to the next one spoils it, as a thread that is late would."""
    for i in reversed(range(parts)):
        part(i)


def _bits(call):
    mx.random.seed(7)
    with np.errstate(all="ignore"):
        try:
            return [(each.shape, each.dtype.str, each.tobytes()) for each in call()]
        except MXNetError as error:
            return str(error)


def main(counts: list[int], backwards: bool) -> None:
    jit._LITTLE = 0  # no work is too little for all threads
    total = 0
    every = calls()
    for name, each in every.items():
        for number, call in enumerate(each):
            with jit.use_threads(1):
                expected = _bits(call)
            for threads in counts:
                divided = [jit.use_threads(threads)]
                if backwards:  # each does its own; the last one does all that may be taken
                    divided = [jit.pretend_threads(threads, _backwards, claims=it) for it in (False, True)]
                for pretended in divided:
                    with pretended:
                        found = _bits(call)
                    assert found == expected, f"{name}, call {number}: {threads} threads and one differ"
            total += 1
    print(f"{total} calls of {len(every) - 1} operators and of random convolutions: the same bits")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:] if each.isdigit()], "--backwards" in sys.argv)
