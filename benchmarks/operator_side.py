"""One side of ``benchmarks/operators.py``: single operators in one library. Must run on Python 3.8, too.

Called with the library's name, a folder and words, one of which an operator's name must hold, if there are
any. It leaves the results in the folder and answers when it has done so. Then, for each line of input, it
makes a turn and answers with the seconds of a call of each operator, forward and with its gradient.
"""

import functools
import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402

#: About how many seconds the calls of an operator take in a turn.
TURN = 0.02
random = np.random.RandomState(0)


def whole(most, *shape):
    return random.randint(0, most, shape)


def some(*shape):
    return random.standard_normal(shape)


def positive(*shape):
    return np.abs(random.standard_normal(shape)) + 0.1


MAP, SMALL, WIDE = (1, 64, 112, 112), (8, 3, 64, 64), (1, 32, 256, 256)
SCORES, TOKENS, MATRIX = (1, 21, 256, 256), (4, 196, 768), (512, 1024)


def on_map(name, **attributes):
    """An operator of one input, on a map of features."""
    return (lambda nd, x: getattr(nd, name)(x, **attributes)), some(*MAP)


def _definite():
    square = some(512, 512)
    return square @ square.T / 512 + 4 * np.eye(512)


#: Operators with a gradient: a call, and its inputs.
TRAINED = {
    "InstanceNorm": (lambda nd, x, a, b: nd.InstanceNorm(x, a, b), some(*WIDE), some(32), some(32)),
    "GroupNorm": (lambda nd, x, a, b: nd.GroupNorm(x, a, b, num_groups=8), some(*MAP), some(8), some(8)),
    "LayerNorm": (lambda nd, x, a, b: nd.LayerNorm(x, a, b), some(*TOKENS), some(768), some(768)),
    "BatchNorm": (
        lambda nd, x, *rest: nd.BatchNorm(x, *rest, fix_gamma=False),
        *(some(*MAP), some(64), some(64), some(64), positive(64)),
    ),
    "L2Normalization, channels": on_map("L2Normalization", mode="channel"),
    "L2Normalization": on_map("L2Normalization"),
    "LRN": on_map("LRN", nsize=5),
    "softmax": (lambda nd, x: nd.softmax(x, axis=1), some(*SCORES)),
    "log_softmax": (lambda nd, x: nd.log_softmax(x, axis=1), some(*SCORES)),
    "SoftmaxOutput": (lambda nd, x, y: nd.SoftmaxOutput(x, y), some(*MATRIX), whole(1000, 512)),
    "CTCLoss": (lambda nd, x, y: nd.CTCLoss(x, y), some(50, 8, 40), 1 + whole(38, 8, 10)),
    "smooth_l1": on_map("smooth_l1"),
    "sum": on_map("sum"),
    "sum, channels": (lambda nd, x: nd.sum(x, axis=1), some(*SCORES)),
    "max, channels": (lambda nd, x: nd.max(x, axis=1), some(*SCORES)),
    "mean, pixels": on_map("mean", axis=(2, 3)),
    "mean, first axis": (lambda nd, x: nd.mean(x, axis=0), some(*SMALL)),
    "norm": on_map("norm"),
    "cumsum": (lambda nd, x: nd.cumsum(x, axis=1), some(*MATRIX)),
    **{
        name: on_map("Activation", act_type=name)
        for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
    },
    **{name: on_map("LeakyReLU", act_type=name, slope=0.1) for name in ("leaky", "elu", "selu", "gelu")},
    "prelu": (lambda nd, x, a: nd.LeakyReLU(x, a, act_type="prelu"), some(*MAP), some(64)),
    **{
        name: on_map(name)
        for name in ("exp", "square", "abs", "erf", "sin", "arctan", "cbrt", "hard_sigmoid", "floor", "rint")
    },
    **{
        name: ((lambda nd, x, name=name: getattr(nd, name)(x)), positive(*MAP))
        for name in ("log", "sqrt", "rsqrt")
    },
    "power": (lambda nd, x: x**2.5, positive(*MAP)),
    "mod": (lambda nd, x: x % 2.5, some(*MAP)),
    "clip": (lambda nd, x: nd.clip(x, 0, 6), some(*MAP)),
    "add": (lambda nd, x, y: x + y, some(*MAP), some(*MAP)),
    "divide": (lambda nd, x, y: x / y, some(*MAP), positive(*MAP)),
    "maximum": (lambda nd, x, y: nd.maximum(x, y), some(*MAP), some(*MAP)),
    "add_n of four": (lambda nd, *rest: nd.add_n(*rest), *(some(*MAP) for _ in range(4))),
    "broadcast_mul, channels": (lambda nd, x, y: nd.broadcast_mul(x, y), some(*MAP), some(1, 64, 1, 1)),
    "broadcast_mul, pixels": (lambda nd, x, y: nd.broadcast_mul(x, y), some(*MAP), some(1, 1, 112, 112)),
    "broadcast_to": (lambda nd, x: nd.broadcast_to(x, shape=MAP), some(1, 1, 112, 112)),
    "where": (lambda nd, c, x, y: nd.where(c, x, y), whole(2, *MAP), some(*MAP), some(*MAP)),
    "mean of abs of a difference": (
        lambda nd, x, y: nd.mean(nd.abs(x - y)),
        *(some(*MAP), some(*MAP)),
    ),
    "transpose, channels last": on_map("transpose", axes=(0, 2, 3, 1)),
    "transpose of a matrix": (lambda nd, x: nd.transpose(x), some(*MATRIX)),
    "swapaxes": (lambda nd, x: nd.swapaxes(x, 1, 2), some(*MAP)),
    "flip": on_map("flip", axis=3),
    "slice_axis": on_map("slice_axis", axis=1, begin=8, end=40),
    "split": on_map("split", num_outputs=4, axis=1),
    "concat": (lambda nd, x, y: nd.concat(x, y, dim=1), some(*MAP), some(*MAP)),
    "stack": (lambda nd, x, y: nd.stack(x, y), some(*MAP), some(*MAP)),
    "repeat": on_map("repeat", repeats=2, axis=2),
    "tile": (lambda nd, x: nd.tile(x, (2, 2)), some(*MATRIX)),
    "depth_to_space": on_map("depth_to_space", block_size=2),
    "space_to_depth": on_map("space_to_depth", block_size=2),
    "pad, constant": on_map("pad", mode="constant", constant_value=0, pad_width=(0, 0, 0, 0, 1, 1, 1, 1)),
    "pad, edge": on_map("pad", mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)),
    "pad, reflect": on_map("pad", mode="reflect", pad_width=(0, 0, 0, 0, 4, 4, 4, 4)),
    "diag": (lambda nd, x: nd.diag(x), some(*MATRIX)),
    "take": (lambda nd, x, i: nd.take(x, i, axis=1), some(*MAP), whole(64, 32)),
    "pick": (lambda nd, x, i: nd.pick(x, i, axis=1), some(*MATRIX), whole(1000, 512)),
    "gather_nd": (lambda nd, x, i: nd.gather_nd(x, i), some(*MATRIX), whole(500, 2, 4096)),
    "Embedding": (
        lambda nd, i, x: nd.Embedding(i, x, input_dim=512, output_dim=1024),
        *(whole(512, 4096), some(*MATRIX)),
    ),
    "SequenceMask": (
        lambda nd, x, n: nd.SequenceMask(x, n, use_sequence_length=True),
        *(some(196, 4, 768), np.array([10, 100, 196, 50])),
    ),
    "boolean_mask": (lambda nd, x, m: nd.contrib.boolean_mask(x, m), some(*MATRIX), np.arange(512) % 2),
    "dot": (lambda nd, x, y: nd.dot(x, y, transpose_b=True), some(*MATRIX), some(*MATRIX)),
    "batch_dot": (
        lambda nd, x, y: nd.batch_dot(x, y, transpose_b=True),
        some(48, 196, 64),
        some(48, 196, 64),
    ),
    "linalg.gemm2": (lambda nd, x, y: nd.linalg.gemm2(x, y, transpose_b=True), some(*MATRIX), some(*MATRIX)),
    "linalg.potrf": (lambda nd, x: nd.linalg.potrf(x), _definite()),
    "RNN, LSTM": (
        lambda nd, *rest: nd.RNN(*rest, state_size=64, num_layers=1, mode="lstm"),
        *(some(50, 8, 64), 0.1 * some(4 * 64 * 128 + 8 * 64), np.zeros((1, 8, 64)), np.zeros((1, 8, 64))),
    ),
    "Pooling, max": on_map("Pooling", kernel=(3, 3), stride=(2, 2), pad=(1, 1)),
    "Pooling, average": on_map("Pooling", kernel=(2, 2), stride=(2, 2), pool_type="avg"),
    "Pooling, global": on_map("Pooling", kernel=(1, 1), global_pool=True, pool_type="avg"),
    "Pooling, lp": on_map("Pooling", kernel=(2, 2), stride=(2, 2), pool_type="lp", p_value=2),
    "UpSampling, nearest": on_map("UpSampling", scale=2, sample_type="nearest"),
    "BilinearResize2D": (lambda nd, x: nd.contrib.BilinearResize2D(x, height=224, width=224), some(*MAP)),
    "BilinearSampler": (lambda nd, x, g: nd.BilinearSampler(x, g), some(*SMALL), np.tanh(some(8, 2, 64, 64))),
    "GridGenerator": (
        lambda nd, x: nd.GridGenerator(x, transform_type="affine", target_shape=(64, 64)),
        some(8, 6),
    ),
    "Correlation": (
        lambda nd, x, y: nd.Correlation(x, y, pad_size=4, max_displacement=4),
        *(some(*WIDE), some(*WIDE)),
    ),
    "Deconvolution, depthwise": (
        lambda nd, x, w: nd.Deconvolution(
            x, w, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=21, num_group=21, no_bias=True
        ),
        *(some(*SCORES), some(21, 1, 4, 4)),
    ),
    "Convolution, 3-D": (
        lambda nd, x, w: nd.Convolution(x, w, kernel=(3, 3, 3), pad=(1, 1, 1), num_filter=32, no_bias=True),
        *(some(1, 16, 8, 56, 56), some(32, 16, 3, 3, 3)),
    ),
    "im2col": (lambda nd, x: nd.im2col(x, kernel=(3, 3)), some(*SMALL)),
}
#: Operators without one, or with one that is nothing but zeros.
OTHERS = {
    "argmax": (lambda nd, x: nd.argmax(x, axis=1), some(*SCORES)),
    "sort": (lambda nd, x: nd.sort(x, axis=1), some(*MATRIX)),
    "argsort": (lambda nd, x: nd.argsort(x, axis=1), some(*MATRIX)),
    "argsort of one row": (lambda nd, x: nd.argsort(x), some(200_000)),
    "topk": (lambda nd, x: nd.topk(x, k=10, axis=1), some(*MATRIX)),
    "one_hot": (lambda nd, i: nd.one_hot(i, 1000), whole(512, 4096)),
    "scatter_nd": (
        lambda nd, x, i: nd.scatter_nd(x, i, shape=MATRIX),
        *(some(512), np.stack([np.arange(512), np.arange(512)])),
    ),
    "greater": (lambda nd, x, y: x > y, some(*MAP), some(*MAP)),
    "logical_not": (lambda nd, x: nd.logical_not(x), whole(2, *MAP)),
    "to float16": (lambda nd, x: x.astype("float16"), some(*MAP)),
    "to int32": (lambda nd, x: x.astype("int32"), 100 * some(*MAP)),
    "moments": (lambda nd, x: nd.moments(x, axes=(0, 2, 3)), some(*MAP)),
    "box_iou": (lambda nd, x: nd.contrib.box_iou(x, x), np.sort(positive(1000, 4))),
    "box_nms": (
        lambda nd, x: nd.contrib.box_nms(x, overlap_thresh=0.5, coord_start=2, score_index=1, id_index=0),
        np.hstack([whole(20, 2000, 1), positive(2000, 1), np.sort(100 * positive(2000, 4))]),
    ),
    "random.uniform": (lambda nd: nd.random.uniform(shape=MATRIX),),
    "random.normal": (lambda nd: nd.random.normal(shape=MATRIX),),
}


def calls(library, only):
    """For each operator a call and, where it is trained, a call with its gradient."""
    mx = importlib.import_module(library)
    found = {}
    for name, (call, *inputs) in {**TRAINED, **OTHERS}.items():
        if only and not any(words in name for words in only):
            continue
        arrays = [mx.nd.array(each, dtype="float32") for each in inputs]
        found[name] = [functools.partial(forward, mx, call, arrays)]
        if name in TRAINED:
            variables = [array for array, each in zip(arrays, inputs) if each.dtype.kind == "f"]  # noqa: B905
            for array in variables:
                array.attach_grad()
            heads = [mx.nd.array(some(*each.shape)) for each in found[name][0]()]
            found[name].append(functools.partial(trained, mx, call, arrays, variables, heads))
    return found


def forward(mx, call, arrays):
    """The results of an operator, computed."""
    results = call(mx.nd, *arrays)
    results = results if isinstance(results, (list, tuple)) else [results]
    for each in results:
        each.wait_to_read()
    return results


def trained(mx, call, arrays, variables, heads):
    """The gradients of an operator's inputs, computed."""
    with mx.autograd.record():
        results = call(mx.nd, *arrays)
    mx.autograd.backward(results if isinstance(results, (list, tuple)) else [results], heads)
    mx.nd.waitall()
    return [array.grad for array in variables]


def turn(found):
    """Seconds of one call of each."""
    answer = {}
    for name, of_name in found.items():
        answer[name] = []
        for call in of_name:
            start = time.perf_counter()
            call()
            count = max(1, int(TURN / (time.perf_counter() - start)))
            start = time.perf_counter()
            for _ in range(count):
                call()
            answer[name].append((time.perf_counter() - start) / count)
    return answer


def main(library, folder, *only):
    answers = os.fdopen(os.dup(1), "w")
    found = calls(library, only)
    np.savez(
        str(Path(folder) / library),
        **{
            f"{name}/{i}/{k}": each.asnumpy()
            for name, of_name in found.items()
            for i, call in enumerate(of_name)
            for k, each in enumerate(call())
        },
    )
    answers.write("null\n")
    answers.flush()
    for _ in sys.stdin:
        answers.write(json.dumps(turn(found)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
