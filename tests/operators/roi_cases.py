"""What the tests of the ROI operators share: how to call them, and random boxes."""

import numpy as np

from roiops.operators.imperative import Invocation
from roiops.registry import get


def call(name, *arrays, **params):
    """An operator, after its forward pass; ``outputs`` holds the hidden ones too."""
    invocation = Invocation(get(name).create(params), arrays)
    invocation.forward()
    return invocation


def gradient(invocation, grad_out, req="write", in_grad=None):
    """The gradients of all inputs."""
    return invocation.backward([grad_out.astype(invocation.outputs[0].dtype)], req, in_grad)


def random_rois(random, count, images, height, width, scale, dtype=np.float32):
    """Boxes inside, crossing and outside the map; some reversed, without size, or on half pixels."""
    centre = random.uniform(-0.3, 1.3, (count, 2)) * (width, height)
    size = np.exp(random.uniform(np.log(0.3), np.log(2.5 * max(height, width)), (count, 2)))
    size *= random.choice([1, 1, 1, -1, 0], (count, 1))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    grid = random.choice([0, 1, 2], (count, 1))  # as they are, whole pixels, half pixels
    boxes = np.where(grid == 0, boxes, np.round(boxes * np.maximum(grid, 1)) / np.maximum(grid, 1))
    index = random.integers(0, images, (count, 1))
    return np.concatenate([index, boxes / scale], axis=1).astype(dtype)


#: Every dialect of every operator on boxes: its row in the table, the operator, its parameters.
SEPARABLE = [
    ("ROIPooling/mxnet", "ROIPooling", {}),
    ("ROIPooling/torchvision", "ROIPooling", {"dialect": "torchvision"}),
    ("ROIPooling/mmcv", "ROIPooling", {"dialect": "mmcv"}),
    ("ROIPooling/chainer", "ROIPooling", {"dialect": "chainer"}),
    ("ROIPooling/chainer/avg", "ROIPooling", {"dialect": "chainer", "mode": "avg"}),
    ("ROIAlign/mmcv", "ROIAlign", {"aligned": False}),
    ("ROIAlign/mmcv/aligned", "ROIAlign", {}),
    ("ROIAlign/mmcv/max", "ROIAlign", {"aligned": False, "mode": "max"}),
    ("ROIAlign/mmcv/max/aligned", "ROIAlign", {"mode": "max"}),
    ("ROIAlign/chainer", "ROIAlign", {"dialect": "chainer"}),
    ("ROIAlign/chainer/max", "ROIAlign", {"dialect": "chainer", "mode": "max"}),
    ("ROIAlign/mxnet/max", "ROIAlign", {"dialect": "mxnet"}),
    ("contrib.ROIAlign", "_contrib_ROIAlign", {}),
    ("contrib.ROIAlign/aligned", "_contrib_ROIAlign", {"aligned": True}),
    ("contrib.ROIAlign/position_sensitive", "_contrib_ROIAlign", {"position_sensitive": True}),
    (
        "contrib.ROIAlign/position_sensitive/aligned",
        "_contrib_ROIAlign",
        {"position_sensitive": True, "aligned": True},
    ),
    ("PSROIPooling/mxnet", "PSROIPooling", {}),
    ("PSROIPooling/torchvision", "PSROIPooling", {"dialect": "torchvision"}),
    (
        "PSROIPooling/torchvision/as_released",
        "PSROIPooling",
        {"dialect": "torchvision", "as_released": True},
    ),
    ("PSROIPooling/chainer", "PSROIPooling", {"dialect": "chainer"}),
    ("PSROIPooling/chainer/max", "PSROIPooling", {"dialect": "chainer", "mode": "max"}),
    ("PSROIAlign/rfcn", "PSROIAlign", {}),
    ("PSROIAlign/torchvision", "PSROIAlign", {"dialect": "torchvision"}),
    ("PSROIAlign/chainer", "PSROIAlign", {"dialect": "chainer"}),
    ("PSROIAlign/chainer/max", "PSROIAlign", {"dialect": "chainer", "mode": "max"}),
]

RATIO_NAME = {
    "ROIAlign": "sampling_ratio",
    "_contrib_ROIAlign": "sample_ratio",
    "PSROIAlign": "sampling_ratio",
}


def with_sizes(name, params, pooled, scale, ratio, channels, groups):
    """All the parameters of an operator, and how many channels its input has for ``channels`` of output."""
    params = {**params, "pooled_size": pooled, "spatial_scale": scale}
    if name in RATIO_NAME:
        params[RATIO_NAME[name]] = ratio
    per = 1
    if name.startswith("PSROI"):
        params["output_dim"] = channels
        one_per_bin = params.get("dialect") == "torchvision"
        per = pooled[0] * pooled[1] if one_per_bin else groups**2
        if not one_per_bin:
            params["group_size"] = groups
    elif params.get("position_sensitive"):
        per = pooled[0] * pooled[1]
    return params, channels * per
