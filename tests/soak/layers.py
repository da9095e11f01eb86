"""Random convolutions in float32 on several threads, beside the same in float64: whatever memory held before."""

import numba
import numpy as np

import roiops as mx
from roiops.kernels.cpu.scratch import Scratch

#: The most multiplications of a case.
_MOST = 50_000_000


def spoil_scratch() -> None:
    """What other kernels left in the memory that all of a thread share does not matter."""
    Scratch((1 << 20,))()[0][:] = np.nan


def _pairs(rng, *choices):
    return tuple(rng.choice(choices, 2).tolist())


def random_layer(rng):
    """``(symbol, shape of the data)`` of a convolution, plain, grouped or transposed, or None if it is too large."""
    batch, channels, filters = (
        int(rng.choice(each))
        for each in ((1, 1, 2, 5), (1, 3, 5, 8, 16, 20, 64, 128), (1, 3, 4, 8, 12, 20, 64, 100))
    )
    size = int(rng.choice([1, 2, 5, 7, 14, 28, 57])), int(rng.choice([1, 3, 7, 16, 23, 28, 56, 112]))
    kernel, stride, dilate = (
        _pairs(rng, 1, 2, 3, 3, 4, 7),
        _pairs(rng, 1, 1, 2, 3),
        _pairs(rng, 1, 1, 1, 2, 3),
    )
    pad, groups = _pairs(rng, 0, 1, 2, 3), 1
    kind = rng.choice(["plain", "square", "depthwise", "grouped", "transposed"])
    if kind == "square":
        kernel = (int(rng.choice([1, 3])),) * 2
        pad, dilate = tuple(k // 2 for k in kernel), (1, 1)
    elif kind == "depthwise":
        groups, filters = channels, channels * int(rng.integers(1, 3))
    elif kind == "grouped":
        groups = int(rng.choice([2, 3, 8]))
        channels, filters = (groups * int(rng.choice([1, 2, 4, 5, 8])) for _ in range(2))
    elif kind == "transposed":
        pad = tuple(min(p, k - 1) for p, k in zip(pad, kernel, strict=True))
        dilate = (1, 1)
    reach = [d * (k - 1) + 1 for d, k in zip(dilate, kernel, strict=True)]
    if kind == "transposed":
        sizes = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(size, stride, kernel, pad, strict=True)]
    else:
        sizes = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, pad, reach, stride, strict=True)]
    work = batch * channels * filters // groups * max(np.prod(size), np.prod(sizes)) * np.prod(kernel)
    if min(sizes) < 1 or work > _MOST:
        return None
    operator = mx.sym.Deconvolution if kind == "transposed" else mx.sym.Convolution
    symbol = operator(
        mx.sym.Variable("data"),
        kernel=kernel, stride=stride, pad=pad, dilate=dilate, num_filter=filters, num_group=groups,
        no_bias=bool(rng.integers(2)), name="layer",
    )  # fmt: skip
    if rng.random() < 0.3:
        symbol = mx.sym.BatchNorm(symbol, use_global_stats=True, fix_gamma=False, name="norm")
    return symbol, (batch, channels, *size)


def _results(symbol, arrays, states, dtype):
    """Outputs of an inference and of a training pass, and all gradients."""
    given, aux = (
        {name: mx.nd.array(a, dtype=dtype) for name, a in each.items()} for each in (arrays, states)
    )
    grads = {name: mx.nd.array(np.full(array.shape, 3), dtype=dtype) for name, array in arrays.items()}
    spoil_scratch()
    inference = symbol.bind(mx.cpu(), given, aux_states=aux, grad_req="null").forward()[0].asnumpy()
    executor = symbol.bind(mx.cpu(), given, args_grad=grads, aux_states=aux)
    spoil_scratch()
    out = executor.forward(is_train=True)[0]
    head = np.random.default_rng(1).standard_normal(out.shape).astype(np.float32)
    spoil_scratch()
    executor.backward([mx.nd.array(head, dtype=dtype)])
    return {"inference": inference, "training": out.asnumpy()} | {
        f"gradient of {name}": array.asnumpy() for name, array in grads.items()
    }


def convolutions(seed: int):
    """Any window, on 1 to 4 threads."""

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        layer = random_layer(rng)
        if layer is None:
            return "too large"
        symbol, shape = layer
        of_arguments, _, of_states = symbol.infer_shape(data=shape)
        arrays = {
            name: rng.standard_normal(each).astype(np.float32)
            for name, each in zip(symbol.list_arguments(), of_arguments, strict=True)
        }
        states = {
            name: rng.uniform(0.5, 2, each).astype(np.float32)
            for name, each in zip(symbol.list_auxiliary_states(), of_states, strict=True)
        }
        numba.set_num_threads(int(rng.integers(1, 1 + numba.config.NUMBA_NUM_THREADS)))
        found, right = (_results(symbol, arrays, states, dtype) for dtype in ("float32", "float64"))
        for name, array in found.items():
            # A sum of many numbers may be near 0.
            limit = 2e-5 * max(1.0, np.abs(right[name]).max(), np.sqrt(right["training"].size))
            error = np.abs(array - right[name]).max(initial=0)
            if not error <= limit:
                raise AssertionError(f"{name}: off by {error} of {np.abs(right[name]).max()}")
        return "right"

    return case
