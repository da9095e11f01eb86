"""The workloads of the ROI benchmarks, and the operators timed on each. NumPy only: peers import this too."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Workload:
    shape: tuple  # of the feature map
    rois: int
    sizes: tuple  # of the boxes, in image pixels, log-uniform
    pooled: int
    scale: float
    output_dim: int = 0  # score maps

    def inputs(self):
        """``(data, rois)``, the same in every process."""
        random = np.random.default_rng(2015)
        images, _, height, width = self.shape
        sides = np.exp(random.uniform(*np.log(self.sizes), (self.rois, 2)))
        image = np.array([width, height]) / self.scale
        sides = np.minimum(sides, image)
        corner = random.uniform(size=(self.rois, 2)) * (image - sides)
        index = random.integers(0, images, (self.rois, 1))
        rois = np.concatenate([index, corner, corner + sides], axis=1).astype(np.float32)
        return random.standard_normal(self.shape, dtype=np.float32), rois


WORKLOADS = {
    "C4 head": Workload((1, 1024, 38, 50), 300, (32, 600), 14, 1 / 16),
    "VGG head": Workload((1, 512, 38, 63), 300, (32, 600), 7, 1 / 16),
    "FPN P2": Workload((1, 256, 200, 272), 512, (16, 112), 7, 1 / 4),
    "FPN P4": Workload((2, 256, 50, 68), 512, (100, 448), 7, 1 / 16),
    "Mask head": Workload((1, 256, 200, 272), 100, (32, 300), 14, 1 / 4),
    "R-FCN 21": Workload((1, 49 * 21, 38, 63), 300, (32, 600), 7, 1 / 16, 21),
    "R-FCN 81": Workload((1, 49 * 81, 38, 63), 300, (32, 600), 7, 1 / 16, 81),
}


@dataclass(frozen=True)
class Operator:
    """One operator as roiops has it, and the peers that compute the same (or, for timing only, nearly so)."""

    kind: str  # "align" or "pool": what the bar is
    name: str
    params: dict
    peers: tuple
    unlike: tuple = ()  # peers that time the same work but compute something else

    def sampling(self):
        return self.params.get("sampling_ratio", 0)


def _align(sampling, mode="avg"):
    params = {"sampling_ratio": sampling, "aligned": False, "mode": mode}
    if mode == "max":  # onnxruntime takes the maximum of weighted corners, not of interpolated samples
        return Operator("align", "ROIAlign", params, ("onnxruntime",), unlike=("onnxruntime",))
    return Operator("align", "ROIAlign", params, ("torchvision", "mxnet", "onnxruntime"))


BOXES = {
    "ROIPooling": Operator("pool", "ROIPooling", {}, ("torchvision", "mxnet", "onnxruntime")),
    "ROIAlign avg, 2": _align(2),
    "ROIAlign avg, adaptive": _align(0),
    "ROIAlign max, 2": _align(2, "max"),
    "ROIAlign max, adaptive": _align(0, "max"),
}
SCORE_MAPS = {
    "PSROIPooling": Operator("pool", "PSROIPooling", {}, ("mxnet",)),
    "PSROIPooling as torchvision's": Operator(
        "pool", "PSROIPooling", {"dialect": "torchvision", "as_released": True}, ("torchvision",)
    ),
    "PSROIAlign, 2": Operator(
        "align", "PSROIAlign", {"dialect": "torchvision", "sampling_ratio": 2}, ("torchvision",)
    ),
    "PSROIAlign, adaptive": Operator(
        "align", "PSROIAlign", {"dialect": "torchvision", "sampling_ratio": 0}, ("torchvision",)
    ),
}


def operators(workload: Workload) -> dict:
    return SCORE_MAPS if workload.output_dim else BOXES
