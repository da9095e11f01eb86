"""Check and time the CUDA kernels on a real GPU, in one command and under eight minutes.

    python verify/gpu_check.py                            # all of it
    python verify/gpu_check.py --no-timing                # only whether the numbers are right
    NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python verify/gpu_check.py      # a dry run, without a GPU

1. Every operator, dialect and dtype against the golden files and the CPU kernels, with good and with hostile
   boxes; gradients over twenty runs, which must be equal to the last bit; arrays of PyTorch and CuPy, where
   they are installed, in and out. Compiling takes longest here, so several processes share the cases.
2. Times of the workloads of the CPU benchmark and one larger: what the device takes for calls that wait in
   its queue, by events, the median of rotating inputs that the cache cannot hold; what the host takes to
   queue one; both beside torchvision's CUDA operators where torchvision is installed.
3. ``benchmarks/results/gpu_check.json`` and ``.md``.

A dry run goes through the same code in numba's simulator on small cases, and writes nothing.
"""

import argparse
import contextlib
import datetime
import functools
import importlib.metadata
import itertools
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
for folder in (ROOT, ROOT / "tests", ROOT / "tests" / "operators", ROOT / "tests" / "cuda"):
    sys.path.insert(0, str(folder))

import calls  # noqa: E402
import golden_files  # noqa: E402
import gpu_torch  # noqa: E402
import peer_calls  # noqa: E402
from roi_cases import OTHERS, SEPARABLE, other_case, random_rois, with_sizes  # noqa: E402

import roiops  # noqa: E402
from roiops.context import cpu  # noqa: E402
from roiops.kernels.cuda import runtime  # noqa: E402
from roiops.kernels.cuda.roi import average as roi_average  # noqa: E402
from roiops.kernels.cuda.roi import maximum as roi_max  # noqa: E402
from roiops.kernels.cuda.roi import tiles  # noqa: E402
from roiops.kernels.rules import Pooling  # noqa: E402
from roiops.operators.base import OpContext  # noqa: E402
from roiops.operators.imperative import Invocation  # noqa: E402
from roiops.operators.roi.dialects import TABLE, named  # noqa: E402
from roiops.registry import get  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
DRY = runtime.SIMULATOR
DTYPES = ("float32", "float16", "float64")

# name: data shape, ROIs, their least and greatest side in pixels, bins, scale
WORKLOADS = {
    "C4 head": ((1, 1024, 38, 50), 300, (32, 600), 14, 1 / 16),
    "VGG head": ((1, 512, 38, 63), 300, (32, 600), 7, 1 / 16),
    "FPN P2": ((1, 256, 200, 272), 512, (16, 112), 7, 1 / 4),
    "FPN P4": ((2, 256, 50, 68), 512, (100, 448), 7, 1 / 16),
    "mask head": ((1, 256, 200, 272), 100, (32, 300), 14, 1 / 4),
    "8 images": ((8, 256, 200, 272), 4096, (16, 112), 7, 1 / 4),
}
PS_WORKLOADS = {
    "R-FCN 21": ((1, 49 * 21, 38, 63), 300, (32, 600), 7, 1 / 16),
    "R-FCN 81": ((1, 49 * 81, 38, 63), 300, (32, 600), 7, 1 / 16),
}
# What is timed first where there is not the time for all.
FIRST = {label: k for k, label in enumerate(("C4 head", "FPN P2", "R-FCN 21", "8 images"))}
if DRY:
    WORKLOADS = {"tiny": ((1, 4, 6, 7), 3, (4, 20), 2, 1 / 4)}
    PS_WORKLOADS = {"tiny, by position": ((1, 4 * 2, 6, 7), 3, (4, 20), 2, 1 / 4)}
# label: operator, parameters, torchvision's counterpart
TIMED = {
    "ROIPooling": ("ROIPooling", {"dialect": "torchvision"}, "roi_pool"),
    "ROIAlign, 2 samples": ("ROIAlign", {"sampling_ratio": 2}, "roi_align"),
    "ROIAlign, adaptive": ("ROIAlign", {"sampling_ratio": 0}, "roi_align"),
    "ROIAlign, 2 samples, max": ("ROIAlign", {"sampling_ratio": 2, "mode": "max"}, None),
}
PS_TIMED = {
    "PSROIPooling": ("PSROIPooling", {"dialect": "torchvision"}, "ps_roi_pool"),
    "PSROIAlign": ("PSROIAlign", {"dialect": "torchvision", "sampling_ratio": 2}, "ps_roi_align"),
}
#: Milliseconds of the host to queue a call, above which it waits for the device meanwhile.
WAITED = 10
# More than the last-level cache of any GPU.
ROTATED_BYTES = 512 << 20


# -- running an operator on the device -------------------------------------------------------------------


def to_device(array):
    """A copy on the device that lies there as the array does, in order or channels last."""
    if array.ndim == 4 and array.strides[1] < array.strides[3]:
        return to_device(np.ascontiguousarray(array.transpose(0, 2, 3, 1))).transpose(0, 3, 1, 2)
    return runtime.to_device(np.ascontiguousarray(array))


class OnDevice:
    """An operator bound to device arrays."""

    def __init__(self, name, params, arrays, request="write"):
        prop = get(name).create(params)
        arrays = [to_device(a) for a in arrays]
        self.invocation = Invocation(
            prop, arrays, ctx=OpContext(roiops.gpu(0), prop.label), empty=runtime.empty
        )
        memory = runtime.zeros if request == "add" else runtime.empty
        self.grads = [memory(a.shape, a.dtype) for a in arrays]
        self.reqs = ["null" if n in prop.list_zero_gradients() else request for n in prop.list_arguments()]

    def forward(self):
        self.invocation.forward()

    def backward(self, head):
        invocation = self.invocation
        hidden = len(invocation.outputs) - invocation.prop.num_visible_outputs
        invocation.op.backward(
            invocation.ctx,
            [head, *[None] * hidden],
            invocation.in_data,
            invocation.outputs,
            self.reqs,
            self.grads,
            [],
        )

    def results(self, head):
        """As :func:`calls.results`, on the host."""
        self.forward()
        found = {f"out{i}": runtime.to_host(out) for i, out in enumerate(self.invocation.outputs)}
        if head is not None:
            self.backward(runtime.to_device(np.ascontiguousarray(head)))
            names = self.invocation.prop.list_arguments()
            for name, grad, req in zip(names, self.grads, self.reqs, strict=True):
                if req != "null":
                    found[f"grad_{name}"] = runtime.to_host(grad)
        return found


class Report:
    """What was checked, and what failed."""

    def __init__(self):
        self.passed, self.failed = 0, []

    def check(self, what, function):
        try:
            function()
        except Exception as error:  # every kind of failure belongs into the report
            self.failed.append(f"{what}: {type(error).__name__}: {error}")
            print(f"FAILED {self.failed[-1]}", file=sys.stderr)
        else:
            self.passed += 1


# -- 1. numbers ------------------------------------------------------------------------------------------


def check_golden(report, dialect):
    row = named()[dialect]
    for file in row.golden:
        for case in golden_files.load("roi/" + file)[:: 12 if DRY else 1]:
            report.check(f"golden {case}", lambda case=case: _golden(row, case))


def _golden(row, case):
    operator, params, arrays = peer_calls.translate(row, case)
    head = case.arrays.get("grad_out")
    found = OnDevice(operator, params, arrays).results(head)
    calls.agree(found["out0"], case["out"], "output")
    if "argmax" in case and case.file != "chainer_roi_pooling_2d":
        calls.agree(found["out1"], case["argmax"], "argmax")
    for grad in found:
        if grad.startswith("grad_") and grad in case:
            terms = OnDevice(operator, params, arrays).results(abs(head))[grad]
            calls.agree(found[grad], case[grad], grad, lambda terms=terms: abs(terms))


def large_cases():
    """Each dialect on a map of the size of real ones; small ones in a dry run."""
    random = np.random.default_rng(3)
    height, width, count = (9, 11, 4) if DRY else (50, 68, 200)
    for dialect, name, given in SEPARABLE[:: 6 if DRY else 1]:
        bins = 3 if DRY else 7
        params, channels = with_sizes(name, given, (bins, bins), 0.25, 2, 3 if DRY else 20, bins)
        data = random.standard_normal((2, channels, height, width))
        rois = random_rois(random, count, 2, height, width, 0.25)
        head = random.standard_normal((count, 3 if DRY else 20, bins, bins))
        yield dialect, name, params, [data, rois], head
    for row in OTHERS[:: 6 if DRY else 1]:
        rois = random_rois(random, count, 2, height, width, 0.25)
        name, params, arrays = other_case(row, random, rois, size=(height, width), scale=0.25)
        shapes = [array.shape for array in arrays]
        head = random.standard_normal(get(name).create(params).infer_shape(shapes)[1][0])
        yield row.name, name, params, arrays, head


@functools.cache
def own_cases():
    """``{dialect: cases}``, each ``(label, name, params, arrays, head)``: small, hostile and large ones."""
    found = {}
    small = [(label, *case) for label, case in calls.random_cases().items()][:: 9 if DRY else 1]
    for label, *case in (*small, *large_cases()):
        dialect = label.rsplit(" ", 1)[0]
        found.setdefault(dialect, []).append((label, *case))
    return found


def check_dialect(report, dialect):
    """Against the CPU in every dtype, and twenty times against itself."""
    for label, name, params, arrays, head in own_cases()[dialect]:
        case = name, params, arrays, head
        for dtype in DTYPES:
            report.check(f"{label}, {dtype}", lambda case=case, dtype=dtype: _as_cpu(*case, dtype))
        report.check(f"{label}, twenty runs", lambda case=case: _repeats(*case))


def _in_dtype(name, params, arrays, dtype):
    """The inputs with the feature maps in a dtype."""
    maps = get(name).create(params).maps
    return [array.astype(dtype) if k < maps else array for k, array in enumerate(arrays)]


def _as_cpu(name, params, arrays, head, dtype):
    arrays = _in_dtype(name, params, arrays, dtype)
    head = head.astype(dtype)
    # Positions of up to 68 pixels are rounded to 4e-6, and neighbouring pixels are up to 8 apart.
    agree_with_cpu(name, params, arrays, head, OnDevice(name, params, arrays).results(head), most=5e-5)


def agree_with_cpu(name, params, arrays, head, found, most):
    """The results ``found`` agree with those that the CPU makes of these arrays."""
    expected = calls.results(calls.invoke(name, params, arrays, cpu()), head)
    terms = {}

    def absolute(key):
        if not terms:
            terms.update(calls.results(calls.invoke(name, params, arrays, cpu()), abs(head)))
        return abs(terms[key])

    @functools.cache
    def in_double():
        wide = [array.astype(np.float64) for array in arrays]
        return calls.results(calls.invoke(name, params, wide, cpu()), head.astype(np.float64))

    for key, value in found.items():
        of_key = (lambda key=key: absolute(key)) if key.startswith("grad") else None
        agree_or_as_near(value, expected[key], key, of_key, in_double, most)


def agree_or_as_near(value, expected, key, terms, in_double, most):
    """Results agree, or float32 is as near to the exact numbers as the CPU's, which is ``most`` apart.

    Cosines differ by their last bit between libraries: a position may be rounded to either side.
    """
    try:
        calls.agree(value, expected, key, terms)
    except AssertionError:
        if value.dtype != np.float32:
            raise
        error, own = (abs(each - in_double()[key]).max() for each in (value, expected))
        if not error <= 2 * own < 2 * most:
            raise


def _repeats(name, params, arrays, head):
    arrays = _in_dtype(name, params, arrays, np.float32)
    operator = OnDevice(name, params, arrays)
    first = operator.results(head.astype(np.float32))
    for _ in range(2 if DRY else 19):
        again = operator.results(head.astype(np.float32))
        for key, value in first.items():
            if not np.array_equal(value, again[key], equal_nan=True):
                raise AssertionError(f"{key} differs from run to run")


def check_bfloat16(report, dialect):
    """Bits in and bits out: the same as the float32 kernels of the same numbers, rounded once."""
    report.check(f"{dialect}, bfloat16", lambda: _bfloat16(dialect))


def _bfloat16(dialect):
    _, params, (data, rois), head = calls.random_cases()[f"{dialect} small"]
    module = roi_max if dialect.startswith("ROIPooling") else roi_average
    how = Pooling(named()[dialect].rules, params["spatial_scale"], (2, 2))
    rois = runtime.to_device(rois)
    found = {}
    for kind, dtype, prepare in (
        ("bits", np.uint16, calls.bits_of),
        ("wide", np.float32, lambda array: calls.from_bits(calls.bits_of(array))),
    ):
        stored, heads = (runtime.to_device(prepare(a)) for a in (data, head))
        out, grad = runtime.empty(head.shape, dtype), runtime.empty(data.shape, dtype)
        places = [runtime.empty(head.shape, np.int32)] if module is roi_max else []
        lowest = [-3e38] if module is roi_max else []
        module.forward(stored, rois, how, *lowest, out, *places)
        module.backward(heads, *places, rois, how, False, grad)
        found[kind] = runtime.to_host(out), runtime.to_host(grad)
    for bits, wide in zip(found["bits"], found["wide"], strict=True):
        np.testing.assert_array_equal(bits, calls.bits_of(wide))


def check_layouts(report, label):
    """Channels last, in quads and not, against planes."""
    for dtype in DTYPES:
        for channels in (64, 34 if label == "displaced" else 33):  # whose two classes share the channels
            report.check(
                f"{label}, {channels} channels last, {dtype}",
                lambda channels=channels, dtype=dtype: _channels_last(label, channels, dtype),
            )


def _channels_last(label, channels, dtype):
    name, params, (data, *others) = calls.alike(label, channels if not DRY else channels // 8, dtype)
    expected = OnDevice(name, params, [data, *others]).results(None)
    found = OnDevice(name, params, [calls.channels_last(data), *others]).results(None)
    for key, value in found.items():
        calls.agree(value, expected[key], key)


def check_kinds(report, library):
    """Another library's arrays through ``roiops.nd``: its kind comes back, on its stream, for any strides."""
    report.check(f"arrays of {library}", {"torch": _torch_arrays, "cupy": _cupy_arrays}[library])


EXAMPLE = {"pooled_size": (7, 7), "spatial_scale": 0.25, "sampling_ratio": 2}


def _example():
    random = np.random.default_rng(4)
    data = random.standard_normal((2, 24, 50, 68), dtype=np.float32)
    rois = random_rois(random, 60, 2, 50, 68, 0.25).astype(np.float32)
    return data, rois, roiops.nd.ROIAlign(data, rois, **EXAMPLE).asnumpy()


def _torch_arrays():
    import torch

    data, rois, expected = _example()
    expected = torch.as_tensor(expected)
    data, rois = (torch.as_tensor(a, device="cuda") for a in (data, rois))
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for dtype, near in ((torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
                for view in (
                    lambda a: a,
                    lambda a: a.to(memory_format=torch.channels_last),
                    lambda a: torch.cat([a, a], dim=1)[:, : a.shape[1]],
                    lambda a: a.repeat_interleave(2, dim=3)[..., ::2],
                ):
                    torch.cuda._sleep(10_000_000)  # were ours on another stream, it would be done too early
                    late = view((data + 1).to(dtype) - 1)
                    out = roiops.nd.ROIAlign(late, rois, **EXAMPLE)
                    assert (type(out), out.dtype, out.device) == (torch.Tensor, dtype, data.device)
                    target = torch.zeros_like(out)
                    assert roiops.nd.ROIAlign(late, rois, **EXAMPLE, out=target) is target
                    assert torch.equal(out, target), f"{dtype}: out= differs"
                    apart = (out.float().cpu() - expected).abs().max().item()
                    assert apart < 4 * near, f"{dtype}: off by {apart}"
        torch.cuda.current_stream().wait_stream(stream)


def check_tensors(report, case):
    """``roiops.torch`` on CUDA tensors beside itself on the CPU: autograd, streams, dtypes, strides."""
    report.check(f"tensors, {', '.join(map(str, case))}", lambda: _tensors(*case))


def _tensors(label, dtype, layout):
    import torch

    function, arrays, maps = gpu_torch.calls()[label]
    dtype = getattr(torch, dtype)
    expected = gpu_torch.results(function, arrays, maps, dtype, layout)
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            found = gpu_torch.results(function, arrays, maps, dtype, layout, "cuda")
        torch.cuda.synchronize()
        gpu_torch.check_near([each.cpu() for each in found], expected, dtype)


def check_recorded(report, label):
    """A call and its gradient in a CUDA graph, replayed on other numbers; the same by ``torch.compile``."""
    report.check(f"{label}, in a CUDA graph", lambda: _recorded(label))
    report.check(f"{label}, by torch.compile", lambda: _compiled(label))


def _on_cpu_and_gpu(label, reverse=False):
    import torch

    function, arrays, maps = gpu_torch.calls()[label]
    if reverse:
        arrays = [each[::-1].copy() for each in arrays]
    both = [gpu_torch.tensors_of(arrays, maps, torch.float32, "in order", d) for d in ("cpu", "cuda")]
    return function, maps, *both


def _recorded(label):
    import torch

    function, maps, others, moved = _on_cpu_and_gpu(label, reverse=True)
    expected = gpu_torch.forward_and_gradients(function, others, maps)
    _, _, _, tensors = _on_cpu_and_gpu(label)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # compiles, which must not be recorded
        gpu_torch.forward_and_gradients(function, tensors, maps)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gpu_torch.forward_and_gradients(function, tensors, maps)
    with torch.no_grad():
        for tensor, other in zip(tensors, moved, strict=True):
            tensor.copy_(other)
    graph.replay()
    torch.cuda.synchronize()
    gpu_torch.check_near([each.cpu() for each in found], expected, torch.float32)


def _compiled(label):
    import torch

    function, maps, host, tensors = _on_cpu_and_gpu(label)
    expected = gpu_torch.forward_and_gradients(lambda *given: 2 * function(*given), host, maps)
    compiled = torch.compile(lambda *given: 2 * function(*given), fullgraph=True)
    found = gpu_torch.forward_and_gradients(compiled, tensors, maps)
    gpu_torch.check_near([each.cpu() for each in found], expected, torch.float32)


def _cupy_arrays():
    import cupy

    data, rois, expected = _example()
    with cupy.cuda.Stream(non_blocking=True):
        data, rois = cupy.asarray(data), cupy.asarray(rois)
        for view in (data, cupy.ascontiguousarray(data.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
            out = roiops.nd.ROIAlign(view, rois, **EXAMPLE)
            assert type(out) is cupy.ndarray
            np.testing.assert_allclose(cupy.asnumpy(out), expected, rtol=1e-5, atol=1e-5)


def libraries():
    """Those of PyTorch and CuPy that are there and see the GPU."""
    found = []
    with contextlib.suppress(ImportError):
        import torch

        found += ["torch"] if torch.cuda.is_available() else []
    if runtime._cupy() is not None:
        found.append("cupy")
    return found


def tensor_cases() -> list:
    """Those of ``gpu_torch.cases``, with names of dtypes."""
    return [(label, str(dtype).partition(".")[2], layout) for label, dtype, layout in gpu_torch.cases()]


def strided() -> bool:
    """Whether there are device arrays of any strides: the backend's own have none."""
    return DRY or runtime._cupy() is not None


CHECKS = {
    "golden": check_golden,
    "dialect": check_dialect,
    "bfloat16": check_bfloat16,
    "layouts": check_layouts,
    "kinds": check_kinds,
    "tensors": check_tensors,
    "recorded": check_recorded,
}


def tasks():
    """``(check, what of)`` of all checks."""
    others = [] if DRY else libraries()
    return [  # what takes longest first
        *(("recorded", label) for label in (gpu_torch.calls() if "torch" in others else ())),
        *(("dialect", dialect) for dialect in own_cases()),
        *(("golden", row.name) for row in TABLE.values() if row.golden),
        *(("kinds", library) for library in others),
        *(("tensors", case) for case in (tensor_cases() if "torch" in others else ())),
        *(("bfloat16", dialect) for dialect in ("ROIAlign/mmcv", "ROIPooling/mxnet")),
        *(("layouts", label) for label in (calls.ALIKE if strided() else ())),
    ]


def run_task(task):
    """``(passed, failed)`` of one task."""
    report = Report()
    try:
        CHECKS[task[0]](report, task[1])
    except Exception as error:
        report.failed.append(f"{task}: {type(error).__name__}: {error}")
    return report.passed, report.failed


def check_all(report, workers):
    """Every task, in processes of their own, so that one that spoils its context spoils no other's."""
    if workers < 2:
        results = map(run_task, tasks())
    else:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=spawn)
        results = [pool.submit(run_task, task) for task in tasks()]
        results = (_result(task, future) for task, future in zip(tasks(), results, strict=True))
    for passed, failed in results:
        report.passed += passed
        report.failed += failed


def _result(task, future):
    try:
        return future.result()
    except Exception as error:  # the process died
        return 0, [f"{task}: {type(error).__name__}: {error}"]


# -- 2. times --------------------------------------------------------------------------------------------


def boxes(random, shape, count, sides, scale):
    """ROIs whose sides are spread evenly on a logarithmic scale, all on the image."""
    height, width = shape[2] / scale, shape[3] / scale
    size = np.exp(random.uniform(*np.log(sides), (count, 2)))
    size = np.minimum(size, [width - 1, height - 1])
    near = random.uniform(0, 1, (count, 2)) * ([width, height] - size)
    image = np.sort(random.integers(0, shape[0], count))[:, None]
    return np.concatenate([image, near, near + size], axis=1).astype(np.float32)


cuda = runtime.cuda


@cuda.jit
def occupy(milliseconds):
    """Keep the stream busy."""
    for _ in range(milliseconds):
        cuda.nanosleep(1_000_000)


class Time(NamedTuple):
    """Medians, in milliseconds a call: on the device, and of the host to queue it."""

    device: float
    host: float


def time_of(calls_, seconds=0.15):
    """The times of a list of calls that use different memory.

    They are queued behind a kernel that occupies the device meanwhile, so that the events between which they
    stand measure the calls and not how fast Python queues them.
    """
    stream = runtime.stream()
    for call in calls_:
        call()  # compiles, and fills pools of memory
    cuda.synchronize()
    device, host, until = [], [], time.perf_counter() + (0 if DRY else seconds)
    busy = 20
    while len(device) < 5 or (time.perf_counter() < until and len(device) < 40):
        start, stop = cuda.event(), cuda.event()
        if not DRY:
            runtime.launch(occupy, 1, 1, busy)
        start.record(stream)
        began = time.perf_counter()
        for call in calls_:
            call()
        queued = 1000 * (time.perf_counter() - began)
        stop.record(stream)
        stop.synchronize()
        if queued > 0.8 * busy and busy < 1000 and not DRY:  # the device may have waited for more: again
            busy = math.ceil(2 * queued)
            continue
        elapsed = queued if DRY else start.elapsed_time(stop)
        device.append(elapsed / len(calls_))
        host.append(queued / len(calls_))
    return Time(statistics.median(device), statistics.median(host))


def copies_for(size):
    return 2 if DRY else max(2, min(16, ROTATED_BYTES // max(size, 1) + 1))


def copy_bandwidth():
    """Bytes a millisecond that a copy on the device reads and writes."""
    size = 64 if DRY else 256 << 20
    pairs = [
        (runtime.zeros((size // 4,), np.float32), runtime.empty((size // 4,), np.float32)) for _ in range(3)
    ]
    calls_ = [functools.partial(runtime.copy, *pair) for pair in pairs]
    if hasattr(pairs[0][0], "data") and not DRY:  # CuPy's: the device's own copy
        calls_ = [functools.partial(b.data.copy_from_device_async, a.data, size) for a, b in pairs]
    return 2 * size / time_of(calls_).device


def torchvision_calls(torch, kind, data, rois, scale, bins, ratio):
    """Forward and backward of torchvision's operator on the same memory, or None."""
    if kind is None:
        return None
    ops = torch.ops.torchvision
    images, channels, height, width = data.shape
    shape = (images, channels, height, width)
    if kind == "roi_pool":
        _, places = ops.roi_pool(data, rois, scale, bins, bins)
        return (
            lambda: ops.roi_pool(data, rois, scale, bins, bins),
            lambda head: ops._roi_pool_backward(head, rois, places, scale, bins, bins, *shape),
        )
    if kind == "roi_align":
        return (
            lambda: ops.roi_align(data, rois, scale, bins, bins, ratio, True),
            lambda head: ops._roi_align_backward(head, rois, scale, bins, bins, *shape, ratio, True),
        )
    if kind == "ps_roi_pool":
        _, mapping = ops.ps_roi_pool(data, rois, scale, bins, bins)
        return (
            lambda: ops.ps_roi_pool(data, rois, scale, bins, bins),
            lambda head: ops._ps_roi_pool_backward(head, rois, mapping, scale, bins, bins, *shape),
        )
    _, mapping = ops.ps_roi_align(data, rois, scale, bins, bins, ratio)
    return (
        lambda: ops.ps_roi_align(data, rois, scale, bins, bins, ratio),
        lambda head: ops._ps_roi_align_backward(head, rois, mapping, scale, bins, bins, ratio, *shape),
    )


def import_torchvision():
    try:
        import torch
        import torchvision
    except ImportError:
        return None, None
    return (torch, torchvision.__version__) if torch.cuda.is_available() else (None, None)


@functools.lru_cache(1)
def features(shape):
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


def time_one(label, workload, timed, torch, bandwidth):
    shape, count, sides, bins, scale = workload
    name, params, kind = timed
    random = np.random.default_rng(5)
    params = {**params, "pooled_size": (bins, bins), "spatial_scale": scale}
    channels = shape[1]
    if name.startswith("PS"):
        channels = params["output_dim"] = shape[1] // bins**2
    rois = boxes(random, shape, count, sides, scale)
    size = 4 * math.prod(shape)
    out_size = 4 * count * channels * bins * bins
    operators, heads = [], []
    # The same numbers in different memory: it is the memory that a cache knows.
    data = features(shape)
    head = random.standard_normal((count, channels, bins, bins), dtype=np.float32)
    for _ in range(copies_for(size + out_size)):
        operators.append(OnDevice(name, params, [data, rois]))
        heads.append(runtime.to_device(head))
    pairs = list(zip(operators, heads, strict=True))
    row = {"workload": label, "least_ms": (size + out_size) / bandwidth}
    add_times(row, "forward", [op.forward for op in operators])
    if strided():
        last = calls.channels_last(data)
        last = [OnDevice(name, params, [last, rois]) for _ in operators]
        add_times(row, "nhwc_forward", [op.forward for op in last])
        del last
    add_times(row, "backward", [functools.partial(op.backward, head) for op, head in pairs])
    if torch is not None and kind is not None:
        ratio = params.get("sampling_ratio", 0) or -1
        theirs = []
        for op, head in pairs:
            data, boxes_, head = (torch.as_tensor(a, device="cuda") for a in (*op.invocation.in_data, head))
            forward, backward = torchvision_calls(torch, kind, data, boxes_, scale, bins, ratio)
            theirs.append((forward, functools.partial(backward, head)))
        add_times(row, "torchvision_forward", [forward for forward, _ in theirs])
        add_times(row, "torchvision_backward", [backward for _, backward in theirs])
    return row


def add_times(row, what, calls_):
    row[f"{what}_ms"], row[f"{what}_host_ms"] = time_of(calls_)


def time_all(times, until):
    """Fill ``times``; generates its rows. No row is begun after ``until``."""
    torch, times["torchvision"] = import_torchvision()
    bandwidth = copy_bandwidth()
    times |= {"copy_gigabytes_a_second": bandwidth / 1e6, "rows": [], "left_out": 0}
    both = (WORKLOADS, TIMED), (PS_WORKLOADS, PS_TIMED)
    rows = [(label, name) for workloads, timed in both for label in workloads for name in timed]
    for label, operator in sorted(rows, key=lambda row: FIRST.get(row[0], 9)):
        if time.perf_counter() > until:
            times["left_out"] += 1
            continue
        workload, timed = (WORKLOADS | PS_WORKLOADS)[label], (TIMED | PS_TIMED)[operator]
        row = {"operator": operator} | time_one(label, workload, timed, torch, bandwidth)
        times["rows"].append(row)
        yield "  ".join(f"{k}={v:.3f}" if isinstance(v, float) else str(v) for k, v in row.items())


# -- 3. report -------------------------------------------------------------------------------------------


def markdown(result) -> str:
    lines = [
        f"# GPU check, {result['date']}",
        "",
        f"{result['device']}; roiops {result['roiops']}, numba-cuda {result['numba_cuda']}. "
        f"{result['passed']} checks passed, {len(result['failed'])} failed.",
        "",
        *(f"- {' '.join(failure.split())[:160]}" for failure in result["failed"]),
    ]
    if not result.get("times", {}).get("rows"):
        return "\n".join(lines) + "\n"
    times = result["times"]
    lines += [
        "",
        "Times on the device in milliseconds, medians by its events, of calls that waited in its queue; in "
        "parentheses, what the host takes to queue one. A copy on the device moves "
        f"{times['copy_gigabytes_a_second']:.0f} GB/s; *least* is the time in which it would read the input "
        f"and write the output once. torchvision {times['torchvision'] or 'is not installed'}.",
        "",
        "| operator | workload | forward | torchvision | ratio | least | forward, NHWC | backward "
        "| torchvision | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    ratios, waits = {"forward": {}, "backward": {}}, 0
    for row in times["rows"]:
        cells = [row["operator"], row["workload"]]
        for way in ("forward", "backward"):
            theirs = row.get(f"torchvision_{way}_ms")
            cells.append(f"{row[f'{way}_ms']:.3f} ({row[f'{way}_host_ms']:.3f})")
            cells.append(f"{theirs:.3f} ({row[f'torchvision_{way}_host_ms']:.3f})" if theirs else "-")
            cells.append(f"{theirs / row[f'{way}_ms']:.2f}" if theirs else "-")
            if theirs and row[f"torchvision_{way}_host_ms"] > WAITED:
                waits += 1
            elif theirs:
                ratios[way].setdefault(row["operator"], []).append(theirs / row[f"{way}_ms"])
            if way == "forward":
                cells.append(f"{row['least_ms']:.3f}")
                cells.append(f"{row['nhwc_forward_ms']:.3f}" if "nhwc_forward_ms" in row else "-")
        lines.append("| " + " | ".join(cells) + " |")
    if times["left_out"]:
        lines += ["", f"{times['left_out']} rows of times were left out, for want of time."]
    lines += ["", "Times torchvision's speed: the geometric mean, and the least and the most.", ""]
    lines += ["| operator | forward | backward |", "|---|---|---|"]
    for operator in ratios["backward"]:
        lines.append(
            f"| {operator} | {' | '.join(_mean(found.get(operator, [])) for found in ratios.values())} |"
        )
    every = (itertools.chain.from_iterable(found.values()) for found in ratios.values())
    lines.append(f"| all | {' | '.join(_mean(list(found)) for found in every)} |")
    if waits:
        lines += [
            "",
            f"Left out of these: {waits} times in which torchvision has the host wait for the device.",
        ]
    return "\n".join(lines) + "\n"


def _mean(found) -> str:
    return f"{geometric_mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "-"


def device_name() -> str:
    name = runtime.cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--no-timing", action="store_true", help="only check the numbers")
    parser.add_argument("--workers", type=int, default=min(8, os.cpu_count() or 1), metavar="N",
                        help="processes that check; 1 where the GPU takes only one")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=60, metavar="M",
                        help="begin no row of times after this long")  # fmt: skip
    parser.add_argument("--table", action="store_true", help="run nothing, write the page from the results")
    args = parser.parse_args()
    if args.table:
        (RESULTS / "gpu_check.md").write_text(markdown(json.loads((RESULTS / "gpu_check.json").read_text())))
        return 0
    started = time.perf_counter()
    if DRY:
        import scheduler

        scheduler.install()
        tiles.SIZES = tiles.Sizes(**calls.SMALL_SIZES)
        runtime.MOST_BLOCKS, runtime.COPY_THREADS = 3, 5
    runtime.zeros((1,), np.float32)  # an error that says what is missing, before there are many
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # of the processes that check
    report = Report()
    check_all(report, 1 if DRY else args.workers)
    seconds = time.perf_counter() - started
    print(f"checks: {report.passed} passed, {len(report.failed)} failed, {seconds:.0f} s")
    import numba

    result = {
        "date": datetime.date.today().isoformat(),
        "device": "numba's simulator" if DRY else device_name(),
        "roiops": roiops.__version__,
        "numba": numba.__version__,
        "numba_cuda": "none" if DRY else importlib.metadata.version("numba-cuda"),
        "passed": report.passed,
        "failed": report.failed,
    }
    record(result)
    if not args.no_timing:
        result["times"] = {}
        for said in time_all(result["times"], started + 60 * args.minutes):
            print(said, flush=True)
            record(result)
    print(markdown(result))
    seconds = time.perf_counter() - started
    where = "nowhere: a dry run, of which the times mean nothing" if DRY else RESULTS / "gpu_check.md"
    print(f"written to {where}, in {seconds:.0f} s")
    return bool(report.failed)


def record(result) -> None:
    if not DRY:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "gpu_check.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / "gpu_check.md").write_text(markdown(result))


if __name__ == "__main__":
    sys.exit(main())
