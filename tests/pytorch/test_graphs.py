"""Operators in ``torch.fx`` graphs and TorchScript: one node each, and the same numbers, also saved and loaded."""

import copy
import io

import pytest
from torch_cases import TORCHSCRIPT_IS_DEPRECATED

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402

pytestmark = pytest.mark.filterwarnings(TORCHSCRIPT_IS_DEPRECATED)
ROIS = torch.tensor([[0.0, 1, 2, 20, 30], [1, 3, 4, 30, 20], [0, 5, 5, 9, 31]])
LISTS = [ROIS[ROIS[:, 0] == image, 1:] for image in range(2)]
TURNED = torch.tensor([[0.0, 12, 12, 9, 7, 0.4], [1, 20, 9, 12, 5, -1.0]])
MODULES = {
    "RoIAlign": rt.RoIAlign(2, 0.5, 2),
    "RoIAlign of another dialect": rt.RoIAlign((2, 3), 0.5, 2, mode="max", dialect="chainer"),
    "RoIPool": rt.RoIPool((2, 2), 0.5),
    "PSRoIAlign": rt.PSRoIAlign(2, 0.5, 2),
    "PSRoIPool": rt.PSRoIPool(2, 0.5),
}


def features(size=16):
    return torch.randn(2, 8, size, size + 4, generator=torch.Generator().manual_seed(3))


def saved_and_loaded(scripted):
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    return torch.jit.load(file)


def operations(traced):
    return [node.op for node in traced.graph.nodes]


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_a_module_is_one_node_and_can_be_scripted(module):
    data = features()
    traced = torch.fx.symbolic_trace(module)
    assert operations(traced) == ["placeholder", "placeholder", "call_function", "output"]
    scripted = saved_and_loaded(torch.jit.script(module))
    for boxes in (ROIS, LISTS):
        expected = module(data, boxes)
        assert torch.equal(traced(data, boxes), expected)
        assert torch.equal(scripted(data, boxes), expected)


@pytest.mark.parametrize(
    ("module", "boxes"), [(rt.RoIAlignRotated(2, 0.5), TURNED), (rt.DeformRoIPool(2, 0.5), ROIS)]
)
def test_modules_of_mmcv(module, boxes):
    data, expected = features(), module(features(), boxes)
    assert torch.equal(saved_and_loaded(torch.jit.script(module))(data, boxes), expected)
    assert torch.equal(torch.fx.symbolic_trace(module, {"offset": None})(data, boxes), expected)


def test_a_pyramid_is_one_node_and_can_be_scripted():
    maps, sizes = {"0": features(), "1": features(8)}, [(32, 40), (32, 40)]
    pooler = rt.MultiScaleRoIAlign(["0", "1"], 2, 2)
    traced = torch.fx.symbolic_trace(pooler)
    assert operations(traced) == ["placeholder"] * 3 + ["call_function", "output"]
    assert pooler.scales is None  # nothing of the tracer stays in the module
    expected = pooler(maps, LISTS, sizes)
    assert torch.equal(traced(maps, LISTS, sizes), expected)
    again = torch.jit.script(rt.MultiScaleRoIAlign(["0", "1"], 2, 2))
    assert torch.equal(saved_and_loaded(again)(maps, LISTS, sizes), expected)


def test_functions():
    def both(x, boxes: list[torch.Tensor]):
        return rt.roi_align(x, boxes, 2, 0.5, 2).sum() + rt.roi_pool(x, boxes, (3, 2), 0.5).sum()

    data = features()
    assert torch.equal(torch.jit.script(both)(data, LISTS), both(data, LISTS))
    assert operations(torch.fx.symbolic_trace(both)).count("call_function") == 3  # two operators and a sum


@pytest.mark.parametrize("as_lists", [False, True])
@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_a_module_is_traced_saved_and_loaded(module, as_lists):
    boxes, other = (LISTS, LISTS[::-1]) if as_lists else (ROIS, ROIS.repeat(2, 1))
    loaded = saved_and_loaded(torch.jit.trace(module, (features(), boxes)))
    for each, size in ((boxes, 16), (other, 19)):
        assert torch.equal(loaded(features(size), each), module(features(size), each))


@pytest.mark.parametrize("as_lists", [False, True])
def test_functions_are_traced_saved_and_loaded(as_lists):
    def all_of_torchvision(x, boxes):
        one = rt.roi_align(x, boxes, 2, 0.5, 2) + rt.roi_pool(x, boxes, 2, 0.5)
        return one.sum(1) + (rt.ps_roi_align(x, boxes, 2, 0.5, 2) + rt.ps_roi_pool(x, boxes, 2, 0.5)).sum(1)

    boxes = LISTS if as_lists else ROIS
    loaded = saved_and_loaded(torch.jit.trace(all_of_torchvision, (features(), boxes)))
    assert torch.equal(loaded(features(), boxes), all_of_torchvision(features(), boxes))


def test_an_operator_under_its_own_name_is_one_node():
    def function(x, rois):
        return rt.op.ROIAlign(x, rois, pooled_size=(2, 2), spatial_scale=0.5)

    traced = torch.fx.symbolic_trace(function)
    assert operations(traced) == ["placeholder", "placeholder", "call_function", "output"]
    assert torch.equal(traced(features(), ROIS), function(features(), ROIS))


def test_an_unknown_argument_of_a_module_is_said():
    with pytest.raises(TypeError, match=r"RoIPool\(\) got an unexpected keyword argument 'mode'"):
        rt.RoIPool(2, 0.5, mode="avg")


class Detections(torch.nn.Module):
    """What fx can trace of a detector of torchvision's: all that looks at no numbers."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.pool, self.head = (
            model.backbone,
            model.roi_heads.box_roi_pool,
            model.roi_heads.box_head,
        )

    def forward(self, images, boxes, sizes):
        return self.head(self.pool(self.backbone(images), boxes, sizes))


@pytest.mark.filterwarnings("ignore:NOTE. The nodes obtained by tracing")
def test_a_detector_is_traced_as_far_as_torchvisions_own():
    detection = pytest.importorskip("torchvision.models.detection", reason="torchvision is not installed")
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    torch.manual_seed(1)
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None).eval()
    given = torch.rand(2, 3, 64, 80), LISTS, [(64, 80)] * 2
    found, refused = [], []
    for ours in (False, True):
        if ours:
            assert rt.replace_poolers(model) == 1
        with pytest.raises(torch.fx.proxy.TraceError, match="Proxy object cannot be iterated") as error:
            torch.fx.symbolic_trace(model)  # torchvision goes through the list of images
        refused.append(str(error.value))
        # Copies: once it has run, torchvision's pooler cannot be traced, and once traced, it cannot be run.
        part = Detections(model)
        traced = torch.fx.symbolic_trace(copy.deepcopy(part))
        assert torch.equal(traced(*given), copy.deepcopy(part)(*given))
        names = get_graph_node_names(copy.deepcopy(part))[1]
        assert "pool.pool_levels" in names or not ours
        found.append(create_feature_extractor(part, {"backbone": "levels", "head": "head"})(*given))
    assert refused[0] == refused[1]
    torch.testing.assert_close(*found)


@pytest.mark.filterwarnings("ignore:RCNN always returns")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_whole_detector_is_scripted_saved_and_loaded():
    detection = pytest.importorskip("torchvision.models.detection", reason="torchvision is not installed")
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, min_size=64, max_size=96, rpn_post_nms_top_n_test=20
    ).eval()
    assert rt.replace_poolers(model) == 1
    images = [torch.rand(3, 64, 80, generator=torch.Generator().manual_seed(4))]
    _, (found,) = saved_and_loaded(torch.jit.script(model))(images)
    (expected,) = model(images)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value)
