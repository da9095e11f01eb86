"""The workloads of the ROI benchmarks, and the operators timed on each. NumPy only: peers import this too."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Workload:
    shape: tuple  # of the feature map
    rois: int
    sizes: tuple  # of the boxes, in image pixels, log-uniform
    pooled: int
    scale: float
    output_dim: int = 0  # score maps
    levels: int = 1  # maps of a pyramid, each half as large as the one before

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

    @property
    def scales(self):
        """The scale of each map."""
        return tuple(self.scale / 2**level for level in range(self.levels))


WORKLOADS = {
    "C4 head": Workload((1, 1024, 38, 50), 300, (32, 600), 14, 1 / 16),
    "VGG head": Workload((1, 512, 38, 63), 300, (32, 600), 7, 1 / 16),
    "FPN P2": Workload((1, 256, 200, 272), 512, (16, 112), 7, 1 / 4),
    "FPN P4": Workload((2, 256, 50, 68), 512, (100, 448), 7, 1 / 16),
    "FPN P2 to P5": Workload((1, 256, 200, 272), 512, (16, 800), 7, 1 / 4, levels=4),
    "Mask head": Workload((1, 256, 200, 272), 100, (32, 300), 14, 1 / 4),
    "R-FCN 21": Workload((1, 49 * 21, 38, 63), 300, (32, 600), 7, 1 / 16, 21),
    "R-FCN 81": Workload((1, 49 * 81, 38, 63), 300, (32, 600), 7, 1 / 16, 81),
}


def head_of(work):
    """The gradient of the output."""
    shape = (work.rois, work.output_dim or work.shape[1], work.pooled, work.pooled)
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


# -- the inputs of an operator, by their names here ----------------------------------------------------------


def _plain(work):
    data, rois = work.inputs()
    return {"data": data, "rois": rois}


def _displaced(name):
    """Plain boxes, and displacements of their bins under this name."""

    def inputs(work):
        shape = (work.rois, 2, work.pooled, work.pooled)
        moves = np.random.default_rng(2017).uniform(-1, 1, shape).astype(np.float32)
        return {**_plain(work), name: moves}

    return inputs


def _turned(turn):
    """Boxes that are turned by up to a quarter of ``turn``, which is 360 degrees or 2 pi, to either side."""

    def inputs(work):
        data, rois = work.inputs()
        near, far = rois[:, 1:3], rois[:, 3:5]
        angle = np.random.default_rng(2017).uniform(-turn / 4, turn / 4, (work.rois, 1)).astype(np.float32)
        return {"data": data, "rois": np.concatenate([rois[:, :1], (near + far) / 2, far - near, angle], 1)}

    return inputs


def _normalised(work):
    """Boxes (image, y1, x1, y2, x2) in parts of the map, as TensorFlow takes them."""
    data, rois = work.inputs()
    height, width = np.array(work.shape[2:], np.float32) - 1
    span = np.array([height, width, height, width], np.float32)
    edges = rois[:, [2, 1, 4, 3]] * np.float32(work.scale) / span
    return {"data": data, "rois": np.concatenate([rois[:, :1], edges], axis=1).astype(np.float32)}


def _pyramid(work):
    """A map for each level, and the boxes."""
    data, rois = work.inputs()
    maps = {f"data{k}": np.ascontiguousarray(data[:, :, :: 2**k, :: 2**k]) for k in range(work.levels)}
    return {**maps, "rois": rois}


# -- the operators -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operator:
    """One operator as roiops has it, and the peers that compute the same."""

    kind: str  # "align" or "pool": what the bar is; "moved" for bins and boxes that move and turn
    name: str
    params: dict
    peers: tuple = ()
    forward_only: tuple = ("onnxruntime",)  # peers without a gradient
    inputs: Callable = _plain
    boxes_have_gradient: bool = False

    def directions(self, peer):
        """The passes that a peer has."""
        return ("forward",) if peer in self.forward_only else ("forward", "backward")

    def laid_out(self, array):
        """A map or an output (N, C, H, W) in the layout that roiops gets; peers have theirs."""
        channels_last = self.params.get("layout") == "NHWC" and array.ndim == 4
        return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if channels_last else array

    def our_inputs(self, work):
        """The inputs as roiops gets them."""
        return {name: self.laid_out(array) for name, array in self.inputs(work).items()}

    def sampling(self):
        return self.params.get("sampling_ratio", 0)

    def mode(self):
        return self.params.get("mode", "avg")

    def arguments(self, work):
        """The parameters, with those that the workload decides."""
        given = {"pooled_size": (work.pooled, work.pooled)}
        if work.levels > 1:
            given |= {"spatial_scales": work.scales, "num_args": work.levels + 1}
        elif self.name != "CropAndResize":
            given["spatial_scale"] = work.scale
        if work.output_dim:
            given["output_dim"] = work.output_dim
        return {**given, **self.params}


def _sampled(label, operator):
    """The operator with two samples a bin on each axis, and with one a feature pixel."""
    return {
        f"{label}, {words}": replace(operator, params={**operator.params, "sampling_ratio": ratio})
        for words, ratio in (("2", 2), ("adaptive", 0))
    }


_UNALIGNED = {"aligned": False}
_ALIGN = Operator("align", "ROIAlign", _UNALIGNED, ("torchvision", "mxnet", "onnxruntime"))
BOXES = {
    "ROIPooling": Operator("pool", "ROIPooling", {}, ("torchvision", "mxnet", "onnxruntime")),
    **_sampled("ROIAlign avg", _ALIGN),
    **_sampled(
        "ROIAlign max as ONNX's",
        replace(_ALIGN, params={**_UNALIGNED, "mode": "max", "dialect": "onnx"}, peers=("onnxruntime",)),
    ),
}
MORE_DIALECTS = {
    "ROIPooling as Paddle's": Operator("pool", "ROIPooling", {"dialect": "torchvision"}, ("paddle",)),
    **_sampled("ROIAlign avg as Paddle's", replace(_ALIGN, peers=("paddle",))),
    **_sampled(
        "ROIAlign max as mmcv's", replace(_ALIGN, params={**_UNALIGNED, "mode": "max"}, peers=("mmcv",))
    ),
}
CROPS = {
    f"CropAndResize, {mode}{words}": Operator(
        "align",
        "CropAndResize",
        {"mode": mode, **layout},
        ("tensorflow",),
        (),
        _normalised,
        boxes_have_gradient=True,
    )
    for mode in ("bilinear", "nearest")
    for words, layout in (("", {}), (", NHWC", {"layout": "NHWC"}))
}
PYRAMID = _sampled(
    "MultiScaleROIAlign",
    Operator("align", "MultiScaleROIAlign", {"dialect": "torchvision"}, ("torchvision",), inputs=_pyramid),
)
SCORE_MAPS = {
    "PSROIPooling": Operator("pool", "PSROIPooling", {}, ("mxnet",)),
    "PSROIPooling as Paddle's": Operator("pool", "PSROIPooling", {"dialect": "paddle"}, ("paddle",)),
    "PSROIPooling as torchvision's": Operator(
        "pool", "PSROIPooling", {"dialect": "torchvision", "as_released": True}, ("torchvision",)
    ),
    **_sampled("PSROIAlign", Operator("align", "PSROIAlign", {"dialect": "torchvision"}, ("torchvision",))),
}

_DEFORMED = {"pooled_size": 7, "group_size": 7, "part_size": 7, "sample_per_part": 4, "trans_std": 0.1}
MOVED = {
    "DeformablePSROIPooling, 4": Operator(
        "moved", "_contrib_DeformablePSROIPooling", _DEFORMED, ("mxnet",), inputs=_displaced("trans")
    )
}
ROTATED = {
    **_sampled(
        "RROIAlign",
        Operator("moved", "_contrib_RROIAlign", {}, ("mxnet",), forward_only=("mxnet",), inputs=_turned(360)),
    ),
    **_sampled(
        "ROIAlignRotated",
        Operator("moved", "ROIAlignRotated", {"aligned": True}, ("mmcv",), inputs=_turned(2 * np.pi)),
    ),
}
# Their peers run on GPUs only.
WITHOUT_PEER = {
    "RiROIAlign, 2": Operator("moved", "RiROIAlign", {"sampling_ratio": 2}, inputs=_turned(2 * np.pi)),
    "DeformROIPooling, 2": Operator(
        "moved", "DeformROIPooling", {"sampling_ratio": 2}, inputs=_displaced("offset")
    ),
    "PrROIPooling": Operator("align", "PrROIPooling", {}, boxes_have_gradient=True),
}

_MORE = {"C4 head": CROPS, "FPN P4": {**MORE_DIALECTS, **ROTATED, **WITHOUT_PEER}}


def operators(name: str) -> dict:
    """The operators that are timed on a workload."""
    work = WORKLOADS[name]
    if work.output_dim:
        return {**SCORE_MAPS, **MOVED}
    return PYRAMID if work.levels > 1 else {**BOXES, **_MORE.get(name, {})}
