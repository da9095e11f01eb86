"""Random calls of all families of operators, forward and backward, with each array between guard pages.

    python -m soak.guarded 0 100    cases 0 to 99, in this process (in tests/)

Each runs twice, in memory that held 0 and that held NaN: no fault, and the same bits.
"""

import sys
import warnings

import golden_files
import golden_harness
import numba
import numpy as np

import roiops as mx
from roiops import context, registry
from roiops.errors import MXNetError
from roiops.kernels.jit import inner, njit
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation

from . import boxes, layers
from .guard_pages import guarded

#: What memory holds before it is written: 0, and NaN as a floating-point number.
FILLS = 0, 0xFF


def _copy(array):
    """The same numbers in memory of today's handler, contiguous or not, as they were."""
    if array.flags.c_contiguous:
        return np.array(array)
    wide = np.empty((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


def _invoked(prop, inputs, aux, is_train):
    """All results, auxiliary states and gradients of one operator."""
    run = Invocation(
        prop,
        [_copy(each) for each in inputs],
        [_copy(each) for each in aux],
        ctx=OpContext(context.cpu(), prop.label, is_train=is_train),
    )
    found = [np.array(out) for out in run.forward()]
    if is_train and prop.differentiable:
        rng = np.random.default_rng(0)
        heads = [rng.standard_normal(out.shape).astype(out.dtype) for out in found]
        shapes = [(each.shape, each.dtype) for each in inputs]
        written, added = ([np.empty(*each) for each in shapes], [np.zeros(*each) for each in shapes])
        run.backward([head.copy() for head in heads], "write", written)
        run.backward([head.copy() for head in heads], "add", added)
        found += written + added
    return found + run.aux


def _box_case(rng, number):
    row, prop, arrays, _ = boxes._case(rng, number, context.cpu(), boxes.DTYPES)
    return row, lambda: _invoked(prop, [each.array for each in arrays], [], True)


_GOLDEN: list = []


def _golden_case(rng, number):
    """Any operator that some golden file has."""
    if not _GOLDEN:
        found = [case for file in golden_files.names("ops") for case in golden_files.load(file)]
        _GOLDEN.extend(case for case in found if registry.find(case.op) is not None)
    case = _GOLDEN[number % len(_GOLDEN)]
    run = golden_harness.invoke(case)
    return str(case), lambda: _invoked(run.prop, run.in_data, run.aux, case.is_train)


def _layer_case(rng, number):
    layer = layers.random_layer(rng)
    if layer is None:
        return "too large", list
    symbol, shape = layer
    of_arguments, _, of_states = symbol.infer_shape(data=shape)
    arguments, states = (
        {name: rng.uniform(0.5, 2, each).astype(np.float32) for name, each in zip(names, shapes, strict=True)}
        for names, shapes in (
            (symbol.list_arguments(), of_arguments),
            (symbol.list_auxiliary_states(), of_states),
        )
    )
    is_train = bool(rng.integers(2))

    def run():
        given, aux = (
            {name: mx.nd.NDArray(_copy(each)) for name, each in arrays.items()}
            for arrays in (arguments, states)
        )
        grads = {name: mx.nd.NDArray(np.empty_like(each)) for name, each in arguments.items()}
        bound = symbol.bind(mx.cpu(), given, args_grad=grads if is_train else None, aux_states=aux,
                            grad_req="write" if is_train else "null")  # fmt: skip
        found = [np.array(bound.forward(is_train=is_train)[0].data) for _ in range(2)]
        if is_train:
            bound.backward([mx.nd.ones(found[0].shape)])
            found += [each.data for each in grads.values()]
        return found

    return f"layer {shape}", run


FAMILIES = [_box_case, _golden_case, _golden_case, _layer_case]


def _twice(name, call, seed):
    """``call`` in memory that held 0, and that held NaN: how it ended."""
    found = []
    for fill in FILLS:
        mx.random.seed(7)
        with guarded(fill, seed), np.errstate(all="ignore"):
            try:
                found.append([(each.shape, each.tobytes()) for each in call()])
            except MXNetError as error:
                found.append(str(error))
    if found[0] != found[1]:
        if isinstance(found[0], list) and isinstance(found[1], list):
            differ = [i for i, pair in enumerate(zip(*found, strict=True)) if pair[0] != pair[1]]
            raise AssertionError(f"{name}: what memory held shows in arrays {differ} of {len(found[0])}")
        raise AssertionError(f"{name}: what memory held decides about an error")
    return "refused" if isinstance(found[0], str) else "the same"


def calls(seed: int):
    """Any operator: one that pools boxes, one that a golden file has, or a convolution of any window."""

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        name, call = FAMILIES[number % len(FAMILIES)](rng, number // len(FAMILIES))
        numba.set_num_threads(int(rng.integers(1, 1 + numba.config.NUMBA_NUM_THREADS)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _twice(name, call, number)

    return case


@inner
def _at(array, index):
    return array[index]


@njit
def _read(array, index, out):
    out[0] = _at(array, index)


@njit
def _write(array, index):
    array[index] = 1


def planted(seed: int):
    """Kernels that read and write beyond an array, and one that reads what nobody has written."""
    size = 5000

    def forgotten():
        return [np.empty(7)]

    def beyond(act, index):
        def call():
            for _ in range(20):  # so that some arrays end at a guard, and some begin at one
                act(np.ones(size, np.float32), index)
            return []

        return call

    def read(array, index):
        _read(array, index, np.zeros(1, np.float32))

    tried = [beyond(read, size), beyond(_write, size), beyond(_write, -size - 1), forgotten]
    return lambda number: _twice("planted", tried[number], number)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3])
    case = globals()[sys.argv[3] if len(sys.argv) > 3 else "calls"](0)
    for number in range(first, last):
        print(number, end=" ", flush=True)
        print(case(number), flush=True)
