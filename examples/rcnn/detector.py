"""A trained detector: pictures in, boxes with classes and scores out."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import roiops as mx
from roiops.models.detections import decode_boxes

from . import boxes
from .config import Config, load
from .data.image import prepare, stack
from .symbol import backbone_of, test_symbol

__all__ = ["Detection", "Detector", "least_score", "postprocess"]


@dataclass(frozen=True)
class Detection:
    """One found object, its box in pixels of the picture; the last pixel is inside."""

    label: str
    score: float
    box: tuple[float, float, float, float]


class Detector:
    """Runs the test graph with trained parameters.

    Parameters
    ----------
    config : Config
        What the graph is made of.
    arg_params, aux_params : dict of NDArray
        The parameters; those that only training needs are passed over.
    context : Context, optional
        Where it runs.
    """

    def __init__(self, config: Config, arg_params, aux_params, context=None):
        self.config = config
        self._stride = backbone_of(config).stride
        self._module = mx.mod.Module(test_symbol(config), ("data", "im_info"), None, context=context)
        self._params = (arg_params, aux_params)

    @classmethod
    def load(cls, folder, context=None, overrides=()) -> "Detector":
        """The detector in a folder that ``train.py`` wrote: ``config.yaml`` and ``model.params``."""
        folder = Path(folder)
        arrays = mx.nd.load(str(folder / "model.params"))
        # Half precision halves the file; the computation is in single precision.
        arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
        params = [
            {name[4:]: array for name, array in arrays.items() if name.startswith(kind)}
            for kind in ("arg:", "aux:")
        ]
        return cls(load(folder / "config.yaml", overrides), *params, context)

    def detect(self, image: Image.Image) -> list[Detection]:
        """What is in a picture, best first."""
        pixels, factor = prepare(image, self.config.data)
        info = np.array([[*pixels.shape[1:], factor]], np.float32)
        batch = mx.io.DataBatch([stack([pixels], self._stride), info])
        return self.run(batch, factor, (image.height, image.width))

    def run(self, batch, factor: float, size: tuple[int, int]) -> list[Detection]:
        """What is in a prepared picture, whose own ``size`` is height and width."""
        module = self._module
        if not module.binded:
            shapes = [(name, each.shape) for name, each in zip(module.data_names, batch.data, strict=True)]
            module.bind(shapes, for_training=False)
            module.set_params(*self._params, allow_extra=True)
        module.forward(batch, is_train=False)
        rois, prob, delta = (each.asnumpy() for each in module.get_outputs())
        return postprocess(self.config, rois, prob, delta, factor, size)


def least_score(folder) -> float:
    """The score from which on 95% of the detections on held-out pictures were right, as test.py measured."""
    measures = Path(folder) / "measures.json"
    return json.loads(measures.read_text()).get("score", 0.5) if measures.exists() else 0.5


def postprocess(config: Config, rois, prob, delta, factor, size) -> list[Detection]:
    """Detections from the network's three outputs for one picture."""
    settings = config.testing
    stds = np.tile(np.array(config.targets.box_stds, np.float32), delta.shape[1] // 4)
    found = decode_boxes(rois[:, 1:], delta * stds) / factor
    found = boxes.clip(found, *size)
    detections = []
    for number, label in enumerate(config.class_names):
        if number == 0:
            continue
        column = 4 * (1 if config.network.class_agnostic else number)
        some = np.flatnonzero(prob[:, number] > settings.score)
        candidates, scores = found[some, column : column + 4], prob[some, number]
        for i in boxes.nms(candidates, scores, settings.nms):
            detections.append(Detection(label, float(scores[i]), tuple(map(float, candidates[i]))))
    detections.sort(key=lambda each: -each.score)
    return detections[: settings.max_detections]
