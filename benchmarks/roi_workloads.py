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
    rotated: bool = False  # the boxes are turned for one more operator

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
    "FPN P4": Workload((2, 256, 50, 68), 512, (100, 448), 7, 1 / 16, rotated=True),
    "Mask head": Workload((1, 256, 200, 272), 100, (32, 300), 14, 1 / 4),
    "R-FCN 21": Workload((1, 49 * 21, 38, 63), 300, (32, 600), 7, 1 / 16, 21),
    "R-FCN 81": Workload((1, 49 * 81, 38, 63), 300, (32, 600), 7, 1 / 16, 81),
}


@dataclass(frozen=True)
class Operator:
    """One operator as roiops has it, and the peers that compute the same."""

    kind: str  # "align" or "pool": what the bar is; "moved" for bins and boxes that move and turn
    name: str
    params: dict
    peers: tuple
    forward_only: tuple = ("onnxruntime",)  # peers without a gradient

    def sampling(self):
        return self.params.get("sampling_ratio", 0)

    def arguments(self, work):
        """The parameters, with those that the workload decides."""
        given = {"pooled_size": (work.pooled, work.pooled), "spatial_scale": work.scale}
        if work.output_dim:
            given["output_dim"] = work.output_dim
        return {**given, **self.params}

    def inputs(self, work):
        """The arrays by name, with displacements or turned boxes where the operator takes such."""
        data, rois = work.inputs()
        random = np.random.default_rng(2017)
        if self.name == "_contrib_DeformablePSROIPooling":
            shape = (work.rois, 2, work.pooled, work.pooled)
            return {"data": data, "rois": rois, "trans": random.uniform(-1, 1, shape).astype(np.float32)}
        if self.name == "_contrib_RROIAlign":
            near, far = rois[:, 1:3], rois[:, 3:5]
            degrees = random.uniform(-90, 90, (work.rois, 1)).astype(np.float32)
            rois = np.concatenate([rois[:, :1], (near + far) / 2, far - near, degrees], axis=1)
        return {"data": data, "rois": rois}


def _align(sampling, mode="avg"):
    params = {"sampling_ratio": sampling, "aligned": False, "mode": mode}
    if mode == "max":  # ONNX's own: the maximum of weighted corners
        return Operator("align", "ROIAlign", {**params, "dialect": "onnx"}, ("onnxruntime",))
    return Operator("align", "ROIAlign", params, ("torchvision", "mxnet", "onnxruntime"))


BOXES = {
    "ROIPooling": Operator("pool", "ROIPooling", {}, ("torchvision", "mxnet", "onnxruntime")),
    "ROIAlign avg, 2": _align(2),
    "ROIAlign avg, adaptive": _align(0),
    "ROIAlign max as ONNX's, 2": _align(2, "max"),
    "ROIAlign max as ONNX's, adaptive": _align(0, "max"),
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

_DEFORMED = {"pooled_size": 7, "group_size": 7, "part_size": 7, "sample_per_part": 4, "trans_std": 0.1}
MOVED = {
    "DeformablePSROIPooling, 4": Operator("moved", "_contrib_DeformablePSROIPooling", _DEFORMED, ("mxnet",))
}
ROTATED = {
    f"RROIAlign, {words}": Operator(
        "moved", "_contrib_RROIAlign", {"sampling_ratio": ratio}, ("mxnet",), forward_only=("mxnet",)
    )
    for words, ratio in (("2", 2), ("adaptive", -1))
}


def operators(workload: Workload) -> dict:
    if workload.output_dim:
        return {**SCORE_MAPS, **MOVED}
    return {**BOXES, **ROTATED} if workload.rotated else BOXES
