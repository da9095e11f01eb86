"""What the tests of the ROI operators share: how to call them, and random boxes."""

import numpy as np

from roiops.kernels.rules import CORNERS_XY, CORNERS_YX_NORMALISED, TURNED_DEGREES
from roiops.operators.imperative import Invocation
from roiops.operators.roi.base import SeparableProp
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


def is_separable(row):
    """Whether boxes in image pixels are pooled axis by axis, as most operators do."""
    plain = row.rules.boxes == CORNERS_XY and not row.rules.displaced
    return plain and issubclass(get(internal_name(row.operator)), SeparableProp)


#: Every dialect whose boxes are pooled axis by axis: its row in the table, the operator, its parameters.
SEPARABLE = [
    (row.name, internal_name(row.operator), row.parameters) for row in TABLE.values() if is_separable(row)
]

#: The rows of all others.
OTHERS = [row for row in TABLE.values() if not is_separable(row)]


def other_case(
    row, random, rois, size=(8, 7), scale=0.5, ratio=2, dtype=np.float32, pooled=(2, 3), channels=3
):
    """``(name, params, inputs)`` of one of :data:`OTHERS` for boxes (image, x1, y1, x2, y2)."""
    height, width = size
    params = {**row.parameters, "pooled_size": pooled, "sampling_ratio": ratio, "spatial_scale": scale}
    rois, extra = np.asarray(rois, dtype), []
    if row.operator == "MultiScaleROIAlign":
        del params["spatial_scale"]
        sizes = [(2, channels, -(-height // n), -(-width // n)) for n in (1, 2)]
        maps = [random.normal(size=each).astype(dtype) for each in sizes]
        params |= {"num_args": 3, "spatial_scales": (scale, scale / 2), "canonical_level": 1}
        params["canonical_size"] = 4.0 if params["dialect"] == "mmdet" else 8.0
        return internal_name(row.operator), params, [*maps, rois]
    if row.rules.boxes == CORNERS_YX_NORMALISED:
        del params["spatial_scale"], params["sampling_ratio"]
        params["extrapolation_value"] = -0.5
        span = np.array([max(height - 1, 1), max(width - 1, 1)] * 2) / scale
        rois = np.concatenate([rois[:, :1], rois[:, [2, 1, 4, 3]] / span], axis=1).astype(dtype)
    elif row.rules.boxes != CORNERS_XY:
        with np.errstate(all="ignore"):
            middle, sides = (rois[:, 1:3] + rois[:, 3:]) / 2, abs(rois[:, 3:] - rois[:, 1:3])
        angle = random.uniform(-4, 4, (len(rois), 1)) * (60 if row.rules.boxes == TURNED_DEGREES else 1)
        rois = np.concatenate([rois[:, :1], middle, sides, angle], axis=1).astype(dtype)
        if row.operator == "RiROIAlign":
            params["num_orientations"], channels = 4, 8
    elif row.operator == "DeformROIPooling":
        extra = [random.normal(size=(len(rois), 2, *pooled)).astype(dtype)]
        params["gamma"] = 0.3
    else:  # contrib.DeformablePSROIPooling
        del params["sampling_ratio"]
        groups, outputs = (1, channels) if channels % 4 == 0 else (2, 2)
        params |= {"pooled_size": max(pooled), "output_dim": outputs, "group_size": groups, "part_size": 2}
        params |= {"trans_std": 0.2, "sample_per_part": ratio or 1}
        channels = outputs * groups**2
        extra = [random.normal(size=(len(rois), 2, 2, 2)).astype(dtype)]
    data = random.normal(size=(2, channels, height, width)).astype(dtype)
    return internal_name(row.operator), params, [data, rois, *extra]


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
        one_per_bin = params.get("dialect") in ("torchvision", "paddle")
        per = pooled[0] * pooled[1] if one_per_bin else groups**2
        if not one_per_bin:
            params["group_size"] = groups
    elif params.get("position_sensitive"):
        per = pooled[0] * pooled[1]
    return params, channels * per
