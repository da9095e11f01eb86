"""Run ``roiops.torch`` on tensors of a GPU that is this machine's processor, beside itself on the CPU.

    python verify/gpu_torch.py

While a call runs, PyTorch, which finds no GPU, is told that every tensor is on a GPU: the device of tensors
and PyTorch's streams are replaced. All else is PyTorch's own: autograd, DLPack, memory, strides, dtypes. What
is launched is what numba-cuda compiled, run by ``verify/gpu_host.py`` with each access checked. All memory
must be PyTorch's, and nothing may wait for the GPU. So a graph can be recorded of it: launches are recorded
here and run again on other numbers. The threads that PyTorch takes the gradients of a GPU in, and when
streams run, are not there. The environments are those of ``verify/peers.py cuda torch``.
"""

import contextlib
import sys
from types import SimpleNamespace
from unittest import mock

import peers

STREAM = 77  # PyTorch's current one


@contextlib.contextmanager
def tensors_on_a_gpu():
    """Every tensor says that it is on GPU 0, and new ones are made there.

    Yields the streams that were told to wait for the current one.
    """
    import gpu_host
    import torch

    from roiops.kernels.cuda import runtime

    stream, waits, empty = SimpleNamespace(cuda_stream=STREAM), [], torch.empty

    def forbidden(*arguments, **options):
        raise AssertionError("memory that is not PyTorch's, or waiting for the GPU")

    def external(pointer):
        if pointer == STREAM:
            return stream
        return SimpleNamespace(cuda_stream=pointer, wait_event=lambda event: waits.append(pointer))

    def new(*shape, device=None, **options):
        return empty(*shape, **options)

    cuda = {
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: external(0),
        "ExternalStream": external,
        "Event": lambda: SimpleNamespace(record=lambda stream: None),
        "current_device": lambda: 0,
    }
    on_gpu = {"device": torch.device("cuda", 0), "is_cuda": True, "is_cpu": False}
    with contextlib.ExitStack() as replaced:
        for name, value in on_gpu.items():
            replaced.enter_context(mock.patch.object(torch.Tensor, name, property(lambda _, v=value: v)))
        for name, value in cuda.items():
            replaced.enter_context(mock.patch.object(torch.cuda, name, value))
        replaced.enter_context(mock.patch.object(torch, "empty", new))
        for owner, names in (gpu_host._Module, ("empty", "zeros")), (runtime, ("synchronize", "to_host")):
            for name in names:
                replaced.enter_context(mock.patch.object(owner, name, forbidden))
        yield waits


def calls() -> dict:
    """``label: (function of tensors, what the tensors hold, which of them have a gradient)``."""
    import numpy as np

    from roiops import torch as ops

    random = np.random.default_rng(5)
    data, half = random.standard_normal((2, 8, 12, 10)), random.standard_normal((2, 8, 6, 5))
    boxes = np.array([[0, 1, 2, 17, 21], [1, -3, 0, 9, 30], [1, 4, 4, 4, 4], [0, 40, 40, 60, 60]])
    turned = np.column_stack([boxes[:, 0], random.uniform(2, 18, (4, 4)), random.uniform(-2, 2, 4)])
    moves = random.uniform(-1, 1, (4, 2, 2, 2))
    return {
        "mean": (lambda d, b: ops.roi_align(d, b, 3, 0.5, 2, aligned=True), (data, boxes), 1),
        "maximum": (lambda d, b: ops.roi_pool(d, b, (3, 2), 0.5), (data, boxes), 1),
        "by position": (lambda d, b: ops.ps_roi_pool(d, b, 2, 0.5), (data, boxes), 1),
        "rotated": (lambda d, b: ops.roi_align_rotated(d, b, 2, 0.5, 2), (data, turned), 1),
        "displaced": (
            lambda d, m, b: ops.deform_roi_pool(d, b, m, 2, 0.5, 2),
            (data, moves, boxes),
            2,
        ),
        "pyramid": (
            lambda d, h, b: ops.multi_scale_roi_align([d, h], b, 2, [0.5, 0.25], 2, canonical_scale=16.0),
            (data, half, boxes),
            2,
        ),
    }


def cases() -> list:
    """``(label of a call, dtype, layout)``."""
    import torch

    return [
        *((label, torch.float32, "in order") for label in calls()),
        *(("mean", torch.float32, layout) for layout in ("channels last", "a part")),
        *(("mean", dtype, "in order") for dtype in (torch.float64, torch.float16, torch.bfloat16)),
        ("maximum", torch.bfloat16, "channels last"),
    ]


def tensors_of(arrays, maps, dtype, layout, device="cpu"):
    """Tensors of a dtype, ``maps`` of them with a gradient, in a layout."""
    import torch

    dtypes = [dtype if k < maps else torch.float32 for k in range(len(arrays))]
    found = [torch.tensor(a, dtype=kind, device=device) for a, kind in zip(arrays, dtypes, strict=True)]
    for k, each in enumerate(found[:maps]):
        if layout == "channels last":
            each = each.to(memory_format=torch.channels_last)
        elif layout == "a part":  # with a gap after each row, and not from the start of the memory on
            each = torch.nn.functional.pad(each, (1, 2))[..., 1:-2]
        found[k] = each.requires_grad_()
    return found


def results(function, arrays, maps, dtype, layout, device="cpu"):
    """The output, and the gradients that autograd gives for a head in order and for one of no strides."""
    import torch

    found = []
    for expanded in False, True:
        tensors = tensors_of(arrays, maps, dtype, layout, device)
        out = function(*tensors)
        weight = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out)
        (out.sum() if expanded else (out * weight).sum()).backward()
        found += [out.detach(), *(each.grad for each in tensors[:maps])]
    return found


def check(label, dtype, layout, device):
    """One call on the GPU beside the CPU's."""

    function, arrays, maps = calls()[label]
    expected = results(function, arrays, maps, dtype, layout)
    device.streams.clear()
    with tensors_on_a_gpu() as waits:
        found = results(function, arrays, maps, dtype, layout)
    assert device.streams == {STREAM}, f"work was queued on the streams {device.streams}"
    assert not waits, f"streams {waits} waited for PyTorch's"
    check_near(found, expected, dtype)


def check_near(found, expected, dtype):
    """Results are those of the CPU, but for rounding."""
    import torch

    most = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}[dtype]
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        torch.testing.assert_close(one, other, rtol=most, atol=most * max(1.0, float(other.abs().max())))


def forward_and_gradients(function, tensors, maps):
    """The output, and the gradients of the first tensors, for a head in order."""
    import torch

    out = function(*tensors)
    # Made where the output is: nothing may be copied while a CUDA graph is recorded.
    head = torch.ones_like(out).flatten().cumsum(0).reshape(out.shape) / out.numel()
    return [out.detach(), *torch.autograd.grad(out, tensors[:maps], head)]


def check_recorded(label, device):
    """What a call launches, recorded, and run after other numbers came into the same memory."""
    import torch

    function, arrays, maps = calls()[label]
    others = [each[::-1].copy() for each in arrays]
    expected = forward_and_gradients(function, tensors_of(others, maps, torch.float32, "in order"), maps)
    with tensors_on_a_gpu():
        tensors = tensors_of(arrays, maps, torch.float32, "in order")
        device.recorded = []
        found = forward_and_gradients(function, tensors, maps)
        launches, device.recorded = device.recorded, None
        for tensor, other in zip(tensors, others, strict=True):
            tensor.detach().copy_(torch.tensor(other))
        for launch in launches:
            launch()
    check_near(found, expected, torch.float32)


def check_compiled(label, device):
    """The graph that ``torch.compile`` makes of a call and its gradient, run on tensors of a GPU."""
    import torch

    function, arrays, maps = calls()[label]
    tensors = tensors_of(arrays, maps, torch.float32, "in order")
    compiled = torch.compile(lambda *given: 2 * function(*given), backend="aot_eager", fullgraph=True)
    expected = forward_and_gradients(compiled, tensors, maps)
    device.streams.clear()
    with tensors_on_a_gpu(), torch.compiler.set_stance("fail_on_recompile"):
        found = forward_and_gradients(compiled, tensors, maps)
    assert device.streams == {STREAM}
    check_near(found, expected, torch.float32)


def check_traced(label, device):
    """What PyTorch's compiler is told of a call and its gradient, for tensors on a GPU without numbers."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    function, arrays, maps = calls()[label]
    expected = forward_and_gradients(function, tensors_of(arrays, maps, torch.float32, "in order"), maps)
    with FakeTensorMode():
        tensors = [torch.empty(each.shape, device="cuda") for each in arrays]
        nodes = make_fx(function)(*tensors).graph.nodes
        (call,) = (node for node in nodes if "roiops" in str(node.target))
        given = dict(zip((node for node in nodes if node.op == "placeholder"), tensors, strict=True))
        with_gradient, inputs = list(given)[:maps], [given[node] for node in call.all_input_nodes]
        together = isinstance(call.args[0], list)
        values = call.args[1 if together else len(inputs) :]
        out, hidden = call.target(*([inputs] if together else inputs), *values)
        backward = getattr(torch.ops.roiops, call.target._schema.name.partition("::")[2] + "_backward")
        wanted = [node in with_gradient for node in call.all_input_nodes]
        found = [out, *backward(out, inputs, [], hidden, wanted, *values)]
    assert [(each.shape, each.device.type) for each in found] == [(each.shape, "cuda") for each in expected]


def check_dispatcher(device):
    """The operators as PyTorch's dispatcher has them, and the gradient of a gradient, which there is not."""
    import torch

    from roiops import torch as ops
    from roiops.errors import MXNetError

    function, arrays, maps = calls()["mean"]
    expected = results(function, arrays, maps, torch.float32, "in order")[0]
    with tensors_on_a_gpu():
        tensors = tensors_of(arrays, maps, torch.float32, "in order")
        out, _ = torch.ops.roiops.ROIAlign(*tensors, [3, 3], 0.5, [2, 2], "avg", True, "mmcv")
        torch.testing.assert_close(out, expected, rtol=3e-6, atol=3e-6)
        out = ops.roi_align(*tensors, 3, 0.5, 2)
        (grad,) = torch.autograd.grad((out * out).sum(), tensors[0], create_graph=True)
        with contextlib.suppress(MXNetError):
            grad.sum().backward()
            raise AssertionError("the gradient of a gradient is no error")
    assert device.streams == {STREAM}


def main() -> None:
    peers.set_up("torch")
    peers.enter("cuda")
    # PyTorch alone is from its environment: what both have, as NumPy, is from the compilers'.
    import gpu_host
    import nvidia  # noqa: F401 - the compilers', before there is another

    with_torch = peers.interpreter("torch").parent.parent
    sys.path += map(str, with_torch.glob("lib/python3*/site-packages"))

    device = gpu_host.Device().install()
    for each in (wanted := cases()):
        check(*each, device)
        print(*each, sep=", ", flush=True)
    check_dispatcher(device)
    for label in calls():
        for each in check_recorded, check_compiled, check_traced:
            each(label, device)
            print(label, each.__name__.removeprefix("check_"), sep=", ", flush=True)
    done = len(wanted) + 1 + 3 * len(calls())
    print(f"gpu_torch: {done} calls, {len(device.kernels)} kernels, no failure")


if __name__ == "__main__":
    main()
