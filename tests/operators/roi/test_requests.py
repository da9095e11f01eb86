"""What every operator owes its caller: requests, dtypes, strides, threads, memory."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from roi_cases import SEPARABLE, call, gradient, random_rois, with_sizes

from roiops.kernels.cpu.roi import chunks, maximum
from roiops.kernels.jit import use_threads
from roiops.kernels.rules import Pooling
from roiops.operators.base import OpContext
from roiops.registry import get

ONE_OF_EACH = [case for case in SEPARABLE if case[0] in {
    "ROIPooling/mxnet", "ROIAlign/mmcv", "ROIAlign/mmcv/max", "PSROIPooling/mxnet", "PSROIAlign/chainer/max",
}]  # fmt: skip
OTHERS = ["_contrib_RROIAlign", "_contrib_DeformablePSROIPooling"]


def inputs_of(name, params, dtype=np.float32, height=20, width=23, channels=18, count=9):
    random = np.random.default_rng(3)
    if name == "_contrib_DeformablePSROIPooling":
        given = {
            "spatial_scale": 0.5, "output_dim": channels, "group_size": 2, "pooled_size": 3,
            "sample_per_part": 2, "trans_std": 0.1,
        }  # fmt: skip
        total = channels * 4
    elif name == "_contrib_RROIAlign":
        given, total = {"pooled_size": (3, 2), "spatial_scale": 0.5}, channels
    else:
        given, total = with_sizes(name, params, (4, 3), 0.5, (0, 0), channels, 2)
    data = random.permutation(2 * total * height * width).reshape(2, total, height, width)
    rois = random_rois(random, count, 2, height, width, 0.5)
    arrays = [(data / data.size).astype(dtype), rois]
    if name == "_contrib_RROIAlign":
        arrays[1] = np.column_stack([rois, random.uniform(-90, 90, count)]).astype(np.float32)
    if name == "_contrib_DeformablePSROIPooling":
        arrays.append(random.normal(size=(count, 4, 3, 3)).astype(dtype))
    return given, arrays


CASES = [pytest.param(name, params, id=row) for row, name, params in ONE_OF_EACH]
CASES += [pytest.param(name, {}, id=name) for name in OTHERS]


@pytest.mark.parametrize(("name", "params"), CASES)
def test_write_add_null(name, params):
    given, arrays = inputs_of(name, params)
    invocation = call(name, *arrays, **given)
    head = np.random.default_rng(1).normal(size=invocation.outputs[0].shape).astype(np.float32)
    noise = [np.random.default_rng(2).normal(size=a.shape).astype(a.dtype) for a in arrays]
    written = gradient(invocation, head, "write", [n.copy() for n in noise])
    added = gradient(invocation, head, "add", [n.copy() for n in noise])
    kept = gradient(invocation, head, "null", [n.copy() for n in noise])
    assert written[0].any()
    for before, write, add, null in zip(noise, written, added, kept, strict=True):
        np.testing.assert_allclose(add, before + write, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(null, before)
    assert not written[1].any()  # boxes have no gradient


def test_forward_requests():
    given, arrays = inputs_of("ROIAlign", {})
    prop = get("ROIAlign").create(given)
    ctx = OpContext(label="ROIAlign")
    op = prop.create_operator(ctx, [a.shape for a in arrays], [a.dtype for a in arrays])
    out = np.ones((9, 18, 4, 3), np.float32)
    op.forward(ctx, arrays, ["null"], [out], [])
    assert (out == 1).all()
    op.forward(ctx, arrays, ["add"], [out], [])
    np.testing.assert_array_equal(out, 1 + call("ROIAlign", *arrays, **given).outputs[0])


@pytest.mark.parametrize(("name", "params"), CASES)
def test_float16(name, params):
    """Sums are added up in float32: the result is the float32 one, rounded once."""
    given, arrays = inputs_of(name, params, np.float16)
    invocation = call(name, *arrays, **given)
    wide = [a if i == 1 else a.astype(np.float32) for i, a in enumerate(arrays)]
    expected = call(name, *wide, **given)
    assert invocation.outputs[0].dtype == np.float16
    np.testing.assert_array_equal(invocation.outputs[0], expected.outputs[0].astype(np.float16))
    for found, other in zip(invocation.outputs[1:], expected.outputs[1:], strict=True):
        np.testing.assert_array_equal(found, other)
    head = np.random.default_rng(1).normal(size=invocation.outputs[0].shape).astype(np.float16)
    for found, other in zip(gradient(invocation, head), gradient(expected, head), strict=True):
        np.testing.assert_array_equal(found, other.astype(found.dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64])
def test_dtype_of_the_boxes(dtype):
    given, (data, _) = inputs_of("ROIAlign", {})
    rois = np.array([[0, 1, 2, 30, 20], [1, 4, 4, 12, 16]])
    expected = call("ROIAlign", data, rois.astype(np.float32), **given).outputs[0]
    np.testing.assert_array_equal(call("ROIAlign", data, rois.astype(dtype), **given).outputs[0], expected)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_strided(name, params):
    given, arrays = inputs_of(name, params)
    invocation = call(name, *arrays, **given)
    head = np.random.default_rng(1).normal(size=invocation.outputs[0].shape).astype(np.float32)
    expected = gradient(invocation, head)
    every_other = [np.repeat(a, 2, axis=-1)[..., ::2] for a in arrays]
    every_other[0] = np.asfortranarray(arrays[0])
    strided = call(name, *every_other, **given)
    np.testing.assert_array_equal(strided.outputs[0], invocation.outputs[0])
    into = [np.full((*a.shape[:-1], 2 * a.shape[-1]), 5, a.dtype)[..., ::2] for a in arrays]
    for found, other in zip(gradient(strided, np.asfortranarray(head), "write", into), expected, strict=True):
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize(("name", "params"), CASES)
@pytest.mark.parametrize(("channels", "height", "width"), [(1, 40, 30), (18, 20, 23), (40, 9, 50)])
def test_same_bits_with_any_number_of_threads(name, params, channels, height, width, monkeypatch):
    monkeypatch.setattr(chunks, "_SMALL", 0)  # however little there is to do
    given, arrays = inputs_of(name, params, channels=2 * channels, height=height, width=width, count=20)
    results = []
    before = numba.get_num_threads()
    try:
        for threads in (1, before, 1, before):
            numba.set_num_threads(threads)
            invocation = call(name, *arrays, **given)
            head = np.random.default_rng(1).normal(size=invocation.outputs[0].shape).astype(np.float32)
            results.append([*invocation.outputs, *gradient(invocation, head)])
    finally:
        numba.set_num_threads(before)
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            assert found.tobytes() == expected.tobytes()


def test_a_tile_that_holds_only_part_of_the_map():
    """Large maps are kept in part: the result is the same as that of their parts."""
    random = np.random.default_rng(0)
    data = random.normal(size=(1, 2, 700, 900)).astype(np.float32)
    rois = np.array(  # boxes whose samples float32 places exactly
        [[0, 0, 0, 896, 672], [0, 10, 690, 26, 699], [0, 100, 100, 164, 148], [0, 4, 2, 804, 32]], np.float32
    )
    params = {"pooled_size": (3, 2), "spatial_scale": 1.0, "aligned": False}
    invocation = call("ROIAlign", data, rois, **params)
    double = call("ROIAlign", data.astype(np.float64), rois, **params)
    np.testing.assert_allclose(invocation.outputs[0], double.outputs[0], atol=3e-6)
    head = random.normal(size=invocation.outputs[0].shape)
    np.testing.assert_allclose(gradient(invocation, head)[0], gradient(double, head)[0], atol=3e-6)
    pooled = call("ROIPooling", data, rois, pooled_size=(3, 2), spatial_scale=1.0)
    whole = data[0, :, 0:225, 0:449].max(axis=(1, 2))
    np.testing.assert_array_equal(pooled.outputs[0][0, :, 0, 0], whole)


def test_concurrent_calls():
    random = np.random.default_rng(0)
    data = random.standard_normal((1, 128, 40, 50)).astype(np.float32)  # enough work for all threads
    arrays = data, random_rois(random, 40, 1, 40, 50, 1.0)
    given = {"pooled_size": (7, 7), "spatial_scale": 1.0}
    expected = call("ROIAlign", *arrays, **given).outputs[0]
    wrong = []

    def work():
        for _ in range(5):
            if not (call("ROIAlign", *arrays, **given).outputs[0] == expected).all():
                wrong.append(1)

    script = """
import sys; sys.path[:0] = sys.argv[1:]
import threading, numpy as np
from roi_cases import call
data = np.random.default_rng(0).normal(size=(1, 20, 12, 13)).astype(np.float32)
rois = np.array([[0, 1, 1, 9, 9]], np.float32)
run = lambda: [call("ROIAlign", data, rois, pooled_size=(2, 2), spatial_scale=1) for _ in range(20)]
run()
threads = [threading.Thread(target=run) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
import os
child = os.fork()
if not child:
    run(); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("fine")
"""
    here = Path(__file__).parent
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(here.parents[2]), str(here.parent)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.stdout.strip() == "fine", result.stderr[-2000:]
    if numba.threading_layer() == "workqueue":
        pytest.skip("numba's workqueue layer aborts on concurrent calls with more than one thread")
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


MEMORY = """
import resource, sys
sys.path[:0] = sys.argv[1:3]
import numpy as np
from roi_cases import call, gradient
name, dtype, strided = sys.argv[3], sys.argv[4], sys.argv[5] == "True"
params = {"pooled_size": (7, 7), "spatial_scale": 0.25}
if name == "ROIAlign max":
    name, params = "ROIAlign", {**params, "mode": "max"}

def inputs(channels, height, width, count):
    random = np.random.default_rng(0)
    data = np.full((1, channels, height, width * (2 if strided else 1)), 0.5, dtype)
    data = data[..., ::2] if strided else data
    corner = random.uniform(0, 3 * height, (count, 2))
    rois = np.column_stack([np.zeros(count), corner, corner + random.uniform(16, 120, (count, 2))])
    return data, rois.astype(np.float32)

def run(data, rois):
    invocation = call(name, data, rois, **params)
    head = np.full_like(invocation.outputs[0], 0.5)
    grads = [np.zeros_like(data), np.zeros_like(rois)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient(invocation, head, "write", grads)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return before, after, data.nbytes + head.nbytes + sum(out.nbytes for out in invocation.outputs)

run(*inputs(40, 60, 60, 20))
data, rois = inputs(96, 200, 272, 700)
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before, after, size = run(data, rois)
print((before - start) * 1024, (after - before) * 1024, size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory as Linux counts it")
@pytest.mark.parametrize("name", ["ROIPooling", "ROIAlign", "ROIAlign max"])
@pytest.mark.parametrize(("dtype", "strided"), [("float32", False), ("float16", False), ("float32", True)])
def test_temporary_memory(name, dtype, strided):
    """Neither pass takes more than inputs, outputs and 32 MiB beside them."""
    here = Path(__file__).parent
    result = subprocess.run(
        [
            sys.executable, "-W", "ignore", "-c", MEMORY, str(here.parents[2]), str(here.parent), name, dtype,
            str(strided),
        ],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    forward, backward, size = map(int, result.stdout.split())
    # What the forward pass took includes its outputs, the head gradient and the gradients' own arrays.
    assert forward <= 2 * size + 2**25
    assert backward <= size + 2**25


@pytest.mark.parametrize(
    ("name", "params", "width"),
    [
        ("ROIAlign", {"pooled_size": (14, 14), "spatial_scale": 1.0, "sampling_ratio": 1}, 7),
        ("CropAndResize", {"crop_size": (14, 14)}, 60),
        ("CropAndResize", {"crop_size": (13, 16)}, 33),
        ("CropAndResize", {"crop_size": (14, 15), "mode": "nearest"}, 60),
        ("CropAndResize", {"crop_size": (70, 15)}, 33),  # more bins than a page of memory has
        ("CropAndResize", {"crop_size": (32, 32), "mode": "nearest"}, 60),
    ],
)
def test_outputs_that_no_cache_holds(name, params, width):
    """They are stored past the caches, wherever in memory they begin; in parts they are not."""
    random = np.random.default_rng(4)
    high, wide = next(size for key, size in params.items() if key.endswith("_size"))
    data = random.standard_normal((1, 19, 6, width)).astype(np.float32)
    data[0, 3, 2, 4], data[0, 7, 4, 5] = np.inf, np.nan
    count = 4 * ((1 << 23) // (19 * high * wide * 4) + 1)
    rois = random_rois(random, count, 1, 6, width, 1.0)
    if name == "CropAndResize":
        # Boxes of a few pixels and of the whole map, some beyond it, some turned round, and one point each.
        rois[:, 1:] = rois[:, [2, 1, 4, 3]] / (6, width, 6, width)
        rois[::9, 3:] = rois[::9, 1:3]
        rois[::5, 2], rois[::5, 4] = rois[::5, 4], rois[::5, 2].copy()
        rois[::7, 1:] = (
            np.round(rois[::7, 1:] * (5, width - 1, 5, width - 1) * 2) / (5, width - 1, 5, width - 1) / 2
        )
    whole = call(name, data, rois, **params)
    assert whole.outputs[0].nbytes > 1 << 25
    parts = [call(name, data, part, **params).outputs[0] for part in np.split(rois, 4)]
    np.testing.assert_array_equal(whole.outputs[0], np.concatenate(parts))
    room = np.full(whole.outputs[0].nbytes + 16, 0xFF, np.uint8)
    for offset in (0, 2, 4):  # at numbers, and between them
        at = slice(offset, offset + whole.outputs[0].nbytes)
        out = room[at].view(np.float32).reshape(whole.outputs[0].shape)
        expected, whole.outputs[0] = whole.outputs[0].copy(), out
        whole.forward()
        np.testing.assert_array_equal(out, expected)
        assert (room[at.stop :] == 0xFF).all()
        room[:] = 0xFF
        whole.outputs[0] = expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "count", "pooled"),
    [((2, 18, 20, 23), 9, (4, 3)), ((1, 20, 257, 254), 60, (7, 7)), ((1, 64, 9, 9), 700, (14, 14))],
)
def test_an_argmax_of_few_bits(shape, count, pooled, threads):
    """What PyTorch's backward pass reads: of 16 bits where a plane has fewer than 65535 pixels."""
    random = np.random.default_rng(0)
    rules = get("ROIPooling").create({"pooled_size": pooled, "spatial_scale": 1.0}).params.row.rules
    assert maximum.argmax_dtype(rules, (1, 1, 255, 257)) == np.int32  # 65535 pixels
    assert maximum.argmax_dtype(rules, shape) == np.uint16
    data = random.standard_normal(shape, dtype=np.float32)
    data[0, 1] = np.nan  # whose bins find nothing
    rois = random_rois(random, count, shape[0], *shape[2:], 1.0)
    rois[::5, 0] = -1
    rois[-1] = 0, shape[3] - 2, shape[2] - 2, shape[3], shape[2]  # the last pixel of a plane
    head = random.standard_normal((count, shape[1], *pooled), dtype=np.float32)
    told = rois, Pooling(rules, 1.0)
    found = []
    with use_threads(threads):
        for dtype in (np.int32, np.uint16):
            out, argmax = np.full_like(head, 7), np.full(head.shape, 7, dtype)
            grad = np.full_like(data, 7)
            maximum.forward(data, *told, float(np.finfo(np.float32).min), out, argmax)
            maximum.backward(head, argmax, *told, False, grad)
            found.append((out, argmax, grad))
    (out, argmax, grad), (short_out, short_argmax, short_grad) = found
    assert argmax.min() == -1
    assert argmax.max() == shape[2] * shape[3] - 1
    np.testing.assert_array_equal(short_out, out)
    np.testing.assert_array_equal(short_argmax, argmax.astype(np.uint16))
    np.testing.assert_array_equal(short_grad, grad)


@pytest.mark.parametrize(("height", "width"), [(129, 129), (100, 168), (64, 1000)])
@pytest.mark.parametrize(("name", "params"), CASES)
def test_boxes_of_a_large_map_do_not_disturb_each_other(name, params, height, width):
    """A thread keeps some rows of a large map at hand: what a box gives is the same with others as alone."""
    given, (data, rois, *others) = inputs_of(name, params, np.float32, height, width, 6, 90)
    random = np.random.default_rng(0)
    # High and narrow boxes, many at the right edge, beside small ones all over.
    sides = np.column_stack([random.uniform(2, 40, 90), random.uniform(20, 2 * height, 90)])
    sides[::3] /= 4
    centre = random.uniform(0, 1, (90, 2)) * (2 * width, 2 * height)
    centre[::2, 0] = 2 * width - random.uniform(0, 30, 45)
    if name == "_contrib_RROIAlign":
        rois[:, 1:3], rois[:, 3:5] = centre, sides
    else:
        rois[:, 1:3], rois[:, 3:5] = centre - sides / 2, centre + sides / 2
    rois[:, 0] = 0
    together = call(name, data, rois, *others, **given)
    head = random.standard_normal(together.outputs[0].shape, dtype=np.float32)
    total = np.zeros(data.shape)
    for r in range(len(rois)):
        alone = call(name, data, rois[r : r + 1], *(each[r : r + 1] for each in others), **given)
        np.testing.assert_array_equal(together.outputs[0][r], alone.outputs[0][0], err_msg=f"box {r}")
        total += gradient(alone, head[r : r + 1], "write", [np.empty_like(a) for a in alone.in_data])[0]
    grad = gradient(together, head, "write", [np.empty_like(a) for a in together.in_data])[0]
    np.testing.assert_allclose(grad, total, atol=2e-6 * max(1, np.abs(total).max()), rtol=0)
