"""The graphs of all configurations, and the committed detector."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import EXAMPLES
from PIL import Image
from rcnn import config
from rcnn import symbol as graphs
from rcnn.data.dataset import Record
from rcnn.data.shapes import CLASSES, draw_scene
from rcnn.detector import Detection, Detector
from rcnn.draw import draw_detections, montage, worth_drawing
from rcnn.evaluate import mean_average_precision

MODEL = EXAMPLES / "rcnn" / "model"
COMMITTED = sorted((EXAMPLES / "rcnn" / "configs").glob("*.yaml"))

# Weights and biases in millions: VGG-16 has 138 with its classifier, ResNets less than half of that.
MILLIONS = {
    "coco_resnet101": 48.1,
    "shapes_faster_rcnn": 0.44,
    "shapes_rfcn": 0.326,
    "voc_rfcn_resnet50": 31.8,
    "voc_vgg16": 137.1,
}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_both_graphs_fit_together(path):
    """Shapes follow from the inputs; the test graph has no parameter that training does not make."""
    settings = config.load(path)
    train, test = graphs.train_symbol(settings), graphs.test_symbol(settings)
    images, stride = settings.training.batch_images, graphs.backbone_of(settings).stride
    height, width = 12, 20
    anchors = len(settings.anchors.scales) * len(settings.anchors.ratios)
    shapes, outputs, _ = train.infer_shape(
        data=(images, 3, height * stride, width * stride),
        im_info=(images, 3),
        gt_boxes=(images, settings.data.max_boxes, 5),
        rpn_label=(images, anchors * height * width),
        rpn_bbox_target=(images, 4 * anchors, height, width),
        rpn_bbox_weight=(images, 4 * anchors, height, width),
    )
    assert [name.removesuffix("_output") for name in train.list_outputs()] == list(graphs.OUTPUTS)
    regions = settings.targets.rois_per_image * images
    assert outputs[2] == (regions, settings.num_classes)
    by_name = dict(zip(train.list_arguments(), shapes, strict=True))
    size = sum(math.prod(s) for n, s in by_name.items() if n.endswith(("_weight", "_bias")))
    size -= sum(math.prod(by_name[name]) for name in ("rpn_bbox_weight",))
    assert size / 1e6 == pytest.approx(MILLIONS[path.stem], rel=0.02)
    inputs = {"data", "im_info"}
    assert set(test.list_arguments()) - inputs <= set(train.list_arguments())
    assert test.list_auxiliary_states() == train.list_auxiliary_states()
    _, outputs, _ = test.infer_shape(data=(1, 3, height * stride, width * stride), im_info=(1, 3))
    assert outputs[0] == (settings.proposals.test_after_nms, 5)


def test_the_committed_model_finds_most_objects_of_new_pictures():
    assert sum(each.stat().st_size for each in MODEL.iterdir()) < 2e6
    detector = Detector.load(MODEL)
    records, detections = [], []
    for i in range(40):
        image, objects = draw_scene(np.random.default_rng([777, i]))
        records.append(
            Record(
                str(i),
                MODEL,
                *image.size,
                np.array([box for _, box in objects], np.float32).reshape(-1, 4),
                np.array([CLASSES.index(name) + 1 for name, _ in objects], np.int64),
                np.zeros(len(objects), bool),
            )
        )
        detections.append(detector.detect(image))
    mean, _ = mean_average_precision(records, detections, CLASSES)
    assert mean > 0.85


def test_pictures_of_other_sizes():
    """A scene pasted into larger pictures is found again, where it is."""
    detector = Detector.load(MODEL)
    scene, _ = draw_scene(np.random.default_rng([777, 3]))
    reference = [d for d in detector.detect(scene) if d.score > 0.9]
    assert reference
    double = [d for d in detector.detect(scene.resize((256, 256))) if d.score > 0.5]
    for each in reference:
        assert any(
            d.label == each.label and np.allclose(np.array(d.box) / 2, each.box, atol=4) for d in double
        )
    for size in ((1, 1), (500, 20), (37, 211)):
        for each in detector.detect(Image.new("RGB", size, "gray")):
            assert 0 <= each.box[0] <= each.box[2] <= size[0] - 1
            assert 0 <= each.box[1] <= each.box[3] <= size[1] - 1


def test_drawing():
    box, other = (10.0, 10.0, 29.0, 29.0), (11.0, 10.0, 29.0, 29.0)
    detections = [
        Detection("disc", 0.6, other),
        Detection("square", 0.9, box),
        Detection("star", 0.4, (40, 40, 50, 50)),
    ]
    shown = worth_drawing(detections)
    assert [each.label for each in shown] == ["square"]
    picture = draw_detections(Image.new("RGB", (64, 64)), shown, list(CLASSES), least_side=128)
    assert picture.size == (128, 128)
    pixels = np.asarray(picture)
    assert pixels[40, 20].max() > 100  # the left side of the box, at twice its place
    assert pixels[100:, 100:].max() == 0
    assert montage([picture] * 3, columns=2, gap=4).size == (260, 260)


def test_the_demo_says_where_its_picture_is(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "error", "NUMBA_NUM_THREADS": "1"},
        check=True,
    )
    assert f"picture: {tmp_path / 'build' / 'demo.png'}" in done.stdout
    with Image.open(tmp_path / "build" / "demo.png") as picture:
        assert picture.size == (4 * 384 + 3 * 8, 2 * 384 + 8)
