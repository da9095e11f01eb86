"""``torch.onnx.export`` of ROI operators with both exporters, run in onnxruntime."""

import io

import pytest
from torch_cases import CASES, ONE_EACH, TORCHSCRIPT_IS_DEPRECATED, place_of_boxes

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
onnx = pytest.importorskip("onnx", reason="onnx is not installed; make test-torch installs it")
onnxruntime = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is not installed; make test-torch installs it"
)

import roiops.torch as rt  # noqa: E402
from roiops.errors import MXNetError  # noqa: E402
from roiops.models.compare import relative_difference  # noqa: E402
from roiops.torch import op  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:You are using the legacy TorchScript:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
    pytest.mark.filterwarnings(TORCHSCRIPT_IS_DEPRECATED),
]
ROIS = torch.tensor([[0.0, 1, 2, 20, 30], [1, 3, 4, 30, 20], [0, 5, 5, 9, 31], [-1, 5, 5, 9, 31]])


class Operator(torch.nn.Module):
    """An operator of ``roiops.torch.op`` between two of PyTorch's."""

    def __init__(self, name, params):
        super().__init__()
        module = op.contrib if "_contrib_" in name else op
        self.function, self.params = getattr(module, name.removeprefix("_contrib_")), params

    def forward(self, data, *others):
        return self.function(data * 2, *others, **self.params) + 1


def exported(model, inputs, newer=False, **options):
    """The file of a model."""
    if newer:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed; make test-torch installs it")
        table = rt.onnx_translation_table()
        program = torch.onnx.export(
            model.eval(), inputs, dynamo=True, custom_translation_table=table, verbose=False, **options
        )
        return program.model_proto.SerializeToString()
    file = io.BytesIO()
    torch.onnx.export(model, inputs, file, dynamo=False, opset_version=17, **options)
    return file.getvalue()


def run(file, *inputs):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return session.run(None, {name: each.numpy() for name, each in zip(names, inputs, strict=True)})


def assert_same(found, expected):
    """To the tolerance of ``roiops convert --check``."""
    assert found.shape == expected.shape
    assert relative_difference(expected.detach(), found) <= 2e-5


def operators(file):
    return {node.op_type for node in onnx.load_from_string(file).graph.node}


def inputs_of(case):
    return tuple(torch.tensor(each, dtype=torch.float32) for each in case[1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_dialect_with_the_older_exporter(case):
    model, inputs = Operator(case[0], case[2]), inputs_of(case)
    (found,) = run(exported(model, inputs), *inputs)
    assert_same(found, model(*inputs))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_file_takes_no_boxes_too(case):
    model, inputs = Operator(case[0], case[2]), inputs_of(case)
    names, first = [f"input{i}" for i in range(len(inputs))], place_of_boxes(case[0]) % len(inputs)
    options = {"input_names": names, "dynamic_axes": {name: {0: "boxes"} for name in names[first:]}}
    file = exported(model, inputs, **options)
    for count in (0, 1):
        given = [*inputs[:first], *(each[:count] for each in inputs[first:])]
        (found,) = run(file, *given)
        expected = model(*given)
        assert found.shape == expected.shape
        if count:
            assert_same(found, expected)


@pytest.mark.parametrize("module", [rt.RoIAlign(2, 0.5, 2), rt.RoIPool(2, 0.5)], ids=repr)
def test_boxes_of_whole_numbers(module):
    whole = ROIS.to(torch.int64)
    (found,) = run(exported(module, (features(), whole)), features(), whole)
    assert_same(found, module(features(), whole.float()))


def test_displacements_that_are_none():
    file = exported(rt.DeformRoIPool((2, 3), 0.5, 2), (features(), ROIS))
    (found,) = run(file, features(), ROIS)
    assert_same(found, rt.DeformRoIPool((2, 3), 0.5, 2)(features(), ROIS))


@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_every_operator_with_the_newer_exporter(case):
    model, inputs = Operator(case[0], case[2]), inputs_of(case)
    (found,) = run(exported(model, inputs, newer=True), *inputs)
    assert_same(found, model(*inputs))


class Poolers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.align, self.maximum = rt.RoIAlign(2, 0.5, 2), rt.RoIPool(2, 0.5)
        self.scores, self.released = rt.PSRoIAlign(2, 0.5, 2), rt.PSRoIPool(2, 0.5)

    def forward(self, data, rois):
        return (
            self.align(data, rois),
            self.maximum(data, rois),
            self.scores(data, rois),
            self.released(data, rois),
        )


def features(height=16, width=20, images=2):
    return torch.randn(images, 8, height, width, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("newer", [False, True])
def test_numbers_of_images_and_boxes_and_sizes_stay_open(newer):
    if newer:
        data, rois = (dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in ((0, 2, 3), (0,)))
        options = {"dynamic_shapes": (data, rois)}
    else:
        axes = {"data": {0: "images", 2: "height", 3: "width"}, "rois": {0: "boxes"}}
        options = {"input_names": ["data", "rois"], "dynamic_axes": axes}
    model = Poolers()
    file = exported(model, (features(), ROIS), newer, **options)
    assert {"RoiAlign", "MaxRoiPool"} <= operators(file)
    for data, rois in ((features(), ROIS), (features(19, 14, 3), ROIS.repeat(5, 1)), (features(), ROIS[:0])):
        for found, expected in zip(run(file, data, rois), model(data, rois), strict=True):
            if len(rois):
                assert_same(found, expected)
            assert found.shape == expected.shape


class Scripted(torch.nn.Module):
    """Not our function: it asks whether boxes are a list, as torchvision's do, which no exporter can write."""

    def forward(self, data, rois):
        return torch.ops.roiops.ROIAlign(data, rois, [2, 2], 0.5)[0]


def test_a_scripted_module():
    module = torch.jit.script(Scripted())
    (found,) = run(exported(module, (features(), ROIS)), features(), ROIS)
    assert_same(found, module(features(), ROIS))


@pytest.mark.parametrize("newer", [False, True])
def test_a_pyramid(newer):
    class Pyramid(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = rt.MultiScaleRoIAlign(["0", "1"], 2, 2)

        def forward(self, fine, coarse, boxes):
            return self.pool({"0": fine, "1": coarse}, [boxes], [(64, 80)])

    inputs = features(images=1), features(8, 10, images=1), torch.tensor([[0.0, 0, 9, 9], [2, 3, 1000, 900]])
    model = Pyramid()
    (found,) = run(exported(model, inputs, newer), *inputs)
    assert_same(found, model(*inputs))


@pytest.mark.parametrize("axes", [(0,), (0, 2, 3)], ids=["images", "images and sizes"])
@pytest.mark.parametrize("newer", [False, True])
def test_the_number_of_images_of_a_pyramid_stays_open(newer, axes):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    boxes = torch.tensor([[0.0, 0, 9, 9], [2, 3, 300, 200], [5, 1, 40, 60]])
    rois = torch.cat([torch.tensor([[2.0], [0], [1]]), boxes], 1)

    class Pyramid(torch.nn.Module):
        def forward(self, fine, coarse, rois):
            return rt.multi_scale_roi_align([fine, coarse], rois, 2, [1 / 4, 1 / 8], 2)

    inputs = features(), features(8, 10), rois[1:]
    if newer:
        maps = dict.fromkeys(axes, torch.export.Dim.DYNAMIC)
        options = {"dynamic_shapes": (maps, maps, {0: torch.export.Dim.DYNAMIC})}
    else:
        maps = {axis: f"axis{axis}" for axis in axes}
        names = {"fine": maps, "coarse": {axis: f"coarse{axis}" for axis in axes}, "rois": {0: "boxes"}}
        options = {"input_names": list(names), "dynamic_axes": names}
    file = exported(Pyramid(), inputs, newer, **options)
    height, width = (16, 20) if 2 not in axes else (24, 18)
    fine, coarse = features(height, width, 3), features(height // 2, width // 2, 3)
    (found,) = run(file, fine, coarse, rois)
    of_each_image = [boxes[1:2], boxes[2:], boxes[:1]]
    theirs = ops.MultiScaleRoIAlign(["0", "1"], 2, 2)(
        {"0": fine, "1": coarse}, of_each_image, [(4 * height, 4 * width)] * 3
    )
    assert_same(found, theirs[[2, 0, 1]])


def test_what_must_be_known_is_named():
    options = {"input_names": ["data", "rois"], "dynamic_axes": {"data": {1: "channels"}}}
    with pytest.raises(MXNetError, match=r"ROIAlign: ONNX needs axis 1 of data to be known"):
        exported(rt.RoIAlign(2, 0.5, 2), (features(), ROIS), **options)


class Backbone(torch.nn.Module):
    out_channels = 8

    def __init__(self):
        super().__init__()
        self.fine, self.coarse = torch.nn.Conv2d(3, 8, 5, 4, 2), torch.nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, images):
        fine = self.fine(images).relu()
        return {"0": fine, "1": self.coarse(fine).relu()}


def detector(detection, pooler):
    """A Faster R-CNN of torchvision's, of few layers, whose scores are apart."""
    torch.manual_seed(0)
    heads = detection.faster_rcnn
    model = detection.FasterRCNN(
        Backbone(),
        min_size=64,
        max_size=96,
        rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((16,), (32,)), ((0.5, 1.0, 2.0),) * 2),
        rpn_post_nms_top_n_test=20,
        box_roi_pool=pooler,
        box_head=heads.TwoMLPHead(72, 32),
        box_predictor=heads.FastRCNNPredictor(32, 5),
        box_score_thresh=0.0,
        box_detections_per_img=10,
    )
    for layer in (model.roi_heads.box_predictor.cls_score, model.rpn.head.cls_logits):
        torch.nn.init.normal_(layer.weight, std=2)
    return model.eval()


@pytest.mark.filterwarnings("ignore::UserWarning")  # torchvision's own, of tracing
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_whole_detector_with_the_older_exporter():
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    pooler = torchvision.ops.MultiScaleRoIAlign(["0", "1"], 3, 2)
    model = detector(torchvision.models.detection, pooler)
    pictures = [
        torch.rand(3, *size, generator=torch.Generator().manual_seed(4)) for size in ((64, 80), (90, 70))
    ]
    expected = [model([picture])[0] for picture in pictures]
    assert rt.replace_poolers(model) == 1
    axes = {"image": {1: "height", 2: "width"}}
    file = exported(model, ([pictures[0]],), input_names=["image"], dynamic_axes=axes)
    for picture, want in zip(pictures, expected, strict=True):
        boxes, labels, scores = run(file, picture)
        assert_same(boxes, want["boxes"])
        assert_same(scores, want["scores"])
        assert labels.tolist() == want["labels"].tolist()
