"""What the tests of the ROI operators share: how to call them, and random boxes."""

import numpy as np

from roiops.kernels.rules import CORNERS_XY
from roiops.operators.imperative import Invocation
from roiops.operators.roi.dialects import TABLE
from roiops.registry import get


def internal_name(operator):
    """The registered name of an operator."""
    return operator.replace("contrib.", "_contrib_")


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


#: Every dialect whose boxes are pooled axis by axis: its row in the table, the operator, its parameters.
SEPARABLE = [
    (row.name, internal_name(row.operator), row.parameters)
    for row in TABLE.values()
    if row.rules.boxes == CORNERS_XY and not row.rules.displaced
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
