"""What PyTorch does with operators beside calling them: compile, export, trace, profile, and its settings."""

import pytest
from torch_cases import ONE_EACH, TORCHSCRIPT_IS_DEPRECATED

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402
from roiops.registry import get  # noqa: E402
from roiops.torch import library, op  # noqa: E402

# inductor needs a C++ compiler and half a minute; what it does with an operator is decided before it.
compiled = {"fullgraph": True, "backend": "aot_eager"}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def inputs(images=2, count=5, channels=8):
    data = torch.randn(images, channels, 16, 20, requires_grad=True)
    corner = torch.rand(count, 2) * 20
    rois = torch.cat([torch.randint(0, images, (count, 1)), corner, corner + torch.rand(count, 2) * 40], 1)
    return data, rois


def detector(data, rois):
    """Every function, as a network uses them: boxes chosen by their contents, results combined."""
    kept = rois[rois[:, 3] - rois[:, 1] > 1]
    one = rt.roi_align(data.relu(), kept, 2, 0.5, 2) + rt.roi_pool(data, kept, (2, 2), 0.5)
    two = rt.ps_roi_align(data, kept, 2, 0.5) + rt.ps_roi_pool(data, kept, 2, 0.5)
    return one.sum(1) + two.sum(1)


@pytest.mark.parametrize("dynamic", [None, True])
def test_compile_in_one_graph(dynamic):
    # boxes that are kept by their contents are a number of boxes that the compiler does not know
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = torch.compile(detector, dynamic=dynamic, **compiled)
        for count in (5, 8):
            data, rois = inputs(count=count)
            expected, found = detector(data, rois), function(data, rois)
            assert torch.equal(found, expected)
            head = torch.randn_like(expected)
            assert torch.equal(*(torch.autograd.grad(each, data, head)[0] for each in (expected, found)))


@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_compile_of_every_operator(case):
    name, arrays, params = case
    function = getattr(op.contrib if "_contrib_" in name else op, name.removeprefix("_contrib_"))
    tensors = [torch.tensor(each, dtype=torch.float32) for each in arrays]
    found = torch.compile(lambda *given: function(*given, **params) * 2, **compiled)(*tensors)
    assert torch.equal(found, function(*tensors, **params) * 2)


def test_compile_of_modules_and_lists():
    data, rois = inputs()
    boxes = [rois[rois[:, 0] == image, 1:] for image in range(2)]
    module = rt.RoIAlign((3, 2), 0.5, -1, aligned=True)
    assert torch.equal(torch.compile(module, **compiled)(data, boxes), module(data, boxes))


def test_compile_of_a_pyramid():
    features = {str(i): torch.randn(2, 3, 64 >> i, 64 >> i, requires_grad=True) for i in range(3)}
    boxes = [torch.tensor([[0, 0, 30, 30], [5, 5, 250, 250]]), torch.tensor([[9.0, 9, 120, 130]])]
    pooler = rt.MultiScaleRoIAlign(list(features), 3, 2)
    expected = pooler(features, boxes, [(256, 256)] * 2)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(pooler, **compiled)(features, boxes, [(256, 256)] * 2)
    assert torch.equal(found, expected)
    maps, head = list(features.values()), torch.randn_like(expected)
    for one, other in zip(
        torch.autograd.grad(expected, maps, head), torch.autograd.grad(found, maps, head), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_one_compilation_for_any_number_of_boxes(backend):
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend(backend)

    def function(data, rois):
        return rt.roi_align(data * 2, rois, 3, 0.5).relu()

    compiled = torch.compile(function, fullgraph=True, backend=counter)
    for count in (0, 5, 1, 300):
        data, rois = inputs(count=count)
        torch._dynamo.decorators.mark_unbacked(rois, 0)
        found, expected = compiled(data, rois), function(data, rois)
        torch.testing.assert_close(found, expected)
        grads = (torch.autograd.grad(each.sum(), data)[0] for each in (found, expected))
        torch.testing.assert_close(*grads)
    assert counter.frame_count == 1


@pytest.mark.slow
def test_compile_with_inductor():
    data, rois = inputs()
    function = torch.compile(lambda x: rt.roi_align(x * 2, rois, 3, 0.5).relu(), fullgraph=True)
    expected = rt.roi_align(data * 2, rois, 3, 0.5).relu()
    torch.testing.assert_close(function(data), expected)
    grads = [torch.autograd.grad(each.sum(), data)[0] for each in (function(data), expected)]
    torch.testing.assert_close(*grads)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.score = rt.RoIAlign(3, 0.5, 2), torch.nn.Linear(72, 4)

    def forward(self, data, rois):
        return self.score(self.pool(data, rois).flatten(1))


@pytest.mark.parametrize("strict", [False, True])
def test_export_with_any_number_of_boxes(strict):
    head, (data, rois) = Head().eval(), inputs()
    boxes = torch.export.Dim("boxes", min=2, max=4096)
    program = torch.export.export(
        head, (data.detach(), rois), dynamic_shapes={"data": None, "rois": {0: boxes}}, strict=strict
    )
    assert "torch.ops.roiops.ROIAlign.default" in program.module().code
    data, rois = inputs(count=11)
    assert torch.equal(program.module()(data, rois), head(data, rois))


@pytest.mark.parametrize("axis", [2, 3])
def test_export_of_a_maximum_on_maps_of_any_height_or_width(axis):
    pool, (data, rois) = rt.RoIPool((2, 3), 0.5), inputs()
    shapes = {"input": {axis: torch.export.Dim("length")}, "rois": None}
    program = torch.export.export(pool, (data.detach(), rois), dynamic_shapes=shapes).module()
    longer = torch.cat([data.detach(), data.detach()], dim=axis)
    assert torch.equal(program(longer, rois), pool(longer, rois))


class FitsTheMap(torch.nn.Module):
    """A size, one number for both axes, that is found from a shape."""

    def forward(self, data, rois):
        return rt.roi_align(data, rois, data.shape[2] // 4, 0.5, 2)


@pytest.mark.filterwarnings(TORCHSCRIPT_IS_DEPRECATED)
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("way", ["exported", "traced", "compiled"])
def test_one_number_from_a_shape_is_a_size(way):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = inputs()
    module, data = FitsTheMap(), data.detach()
    if way == "exported":
        shapes = {"data": {2: torch.export.Dim.AUTO}, "rois": None}
        program = torch.export.export(module, (data, rois), dynamic_shapes=shapes)
        found = program.module()(data, rois)
    elif way == "traced":
        found = torch.jit.trace(module, (data, rois))(data, rois)
    else:
        found = torch.compile(module, dynamic=True, **compiled)(data, rois)
    torch.testing.assert_close(found, ops.roi_align(data, rois, 4, 0.5, 2), atol=2e-6, rtol=2e-6)


def test_meta_tensors_and_fake_tensors_have_the_right_shapes():
    data, rois = inputs()
    assert rt.roi_align(data.detach().to("meta"), rois.to("meta"), (3, 2)).shape == (5, 8, 3, 2)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        out = rt.roi_pool(mode.from_tensor(data), mode.from_tensor(rois), 4)
    assert out.shape == (5, 8, 4, 4)
    assert type(out) is torch._subclasses.FakeTensor


@pytest.mark.filterwarnings(TORCHSCRIPT_IS_DEPRECATED)
def test_trace_and_profile_name_the_operator():
    data, rois = inputs()
    traced = torch.jit.trace(lambda x, r: rt.roi_align(x, r, 3, 0.5), (data.detach(), rois))
    assert "roiops::ROIAlign" in str(traced.inlined_graph)
    with torch.profiler.profile() as profile:
        rt.roi_align(data, rois, 3, 0.5)
    assert "roiops::ROIAlign" in {event.name for event in profile.events()}


def test_deterministic_algorithms_are_no_other():
    data, rois = inputs(count=50)
    out = rt.roi_align(data, rois, 7, 0.5)
    head = torch.randn_like(out)
    grad = torch.autograd.grad(out, data, head)[0]
    torch.use_deterministic_algorithms(True)
    try:
        again = rt.roi_align(data, rois, 7, 0.5)
        assert torch.equal(again, out)
        assert torch.equal(torch.autograd.grad(again, data, head)[0], grad)
    finally:
        torch.use_deterministic_algorithms(False)


def test_threads_follow_pytorch(monkeypatch):
    from roiops.kernels import jit
    from roiops.kernels.cpu.roi import average

    data, rois = inputs(count=200, channels=64)
    seen = []
    right = average.forward
    monkeypatch.setattr(average, "forward", lambda *given: [seen.append(jit.num_threads()), right(*given)][1])
    before, threads = jit.num_threads(), torch.get_num_threads()
    results = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(rt.roi_align(data, rois, 7, 0.5))
    finally:
        torch.set_num_threads(threads)
    most = jit.numba.config.NUMBA_NUM_THREADS
    assert seen == [1, min(2, most)]
    assert jit.num_threads() == before
    assert torch.equal(*results)


def test_under_inference_mode_and_no_grad():
    data, rois = inputs()
    expected = rt.roi_align(data, rois, 3, 0.5)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            out = rt.roi_align(data, rois, 3, 0.5)
        assert torch.equal(out, expected)
        assert not out.requires_grad


def test_registering_twice_defines_nothing_twice():
    before = dict(library.OPERATORS)
    library.register_all()
    assert before == library.OPERATORS
    assert get("ROIAlign").name in before
