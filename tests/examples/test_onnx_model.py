"""The detector of the example, its network in onnxruntime: what the Ray example runs with ``--onnx``."""

import pickle
import sys

import numpy as np
import pytest
from conftest import EXAMPLES

pytest.importorskip("onnx", reason="writing ONNX needs the onnx package")
pytest.importorskip("onnxruntime", reason="running ONNX needs onnxruntime")
sys.path.insert(0, str(EXAMPLES / "scale"))

from onnx_model import OnnxModel
from rcnn.data.shapes import CLASSES, draw_scene

from roiops import models

FILES = (EXAMPLES / "archived" / "shapes-symbol.json", EXAMPLES / "rcnn" / "model" / "model.params")


def test_it_finds_what_the_network_here_finds_in_another_process_too(tmp_path):
    shapes = {"data": ("N", 3, 128, 128), "im_info": ("N", 3)}
    models.to_onnx(*FILES, shapes=shapes, dtype="float32", path=tmp_path / "shapes.onnx")
    feeding = {"dtype": "float32", "mean": 118, "std": 60, "box_stds": (0.1, 0.1, 0.2, 0.2), "batch": 2}
    here = models.load(*FILES, classes=list(CLASSES), **feeding)
    pictures = [np.asarray(draw_scene(np.random.default_rng([5, i]))[0]) for i in range(3)]
    wanted = here.predict(pictures)
    assert sum(len(each.detections) for each in wanted) > 3
    there = OnnxModel(here, tmp_path / "shapes.onnx")
    for model in (there, pickle.loads(pickle.dumps(there))):
        for expected, found in zip(wanted, model.predict(pictures), strict=True):
            assert found.error is None
            assert [each.class_id for each in found.detections] == [
                each.class_id for each in expected.detections
            ]
            for one, other in zip(found.detections, expected.detections, strict=True):
                np.testing.assert_allclose(one.box, other.box, atol=1e-2)
                assert one.score == pytest.approx(other.score, abs=1e-4)
