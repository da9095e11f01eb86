"""What ROI operators give by the plain loops of ``reference``, for the tests and ``verify/dialects.py``."""

import numpy as np
import reference
from roi_cases import random_rois, with_sizes

from roiops.operators.roi.dialects import named


def expected_of(row, params, inputs):
    """The output by the plain loops of ``reference``."""
    rules = row.rules
    *maps, rois = inputs[: -1 if row.rules.displaced else None]
    data, pooled, scale = maps[0], params["pooled_size"], params.get("spatial_scale")
    ratio = (params.get("sampling_ratio", 0),) * 2
    if row.operator == "MultiScaleROIAlign":
        out = np.zeros((len(rois), data.shape[1], *pooled), data.dtype)
        for r, roi in enumerate(rois):
            if reference.is_ignored(roi):
                continue
            canonical = None if params["dialect"] == "mmdet" else params["canonical_level"]
            level = reference.level_of(roi, len(maps), params["canonical_size"], canonical)
            name = "ROIAlign/mmcv/aligned" if rules.shift else "ROIAlign/mmcv"
            scale = params["spatial_scales"][level]
            out[r] = reference.separable(name, maps[level], roi[None], pooled, scale, ratio).out[0]
        return out
    if row.operator == "CropAndResize":
        return reference.crop_and_resize(data, rois, pooled, params["mode"], params["extrapolation_value"])
    if row.operator == "DeformROIPooling":
        return reference.separable(
            row.name, data, rois, pooled, scale, ratio, 1, inputs[2], params["gamma"]
        ).out
    if row.operator == "contrib.DeformablePSROIPooling":
        ratio = (params["sample_per_part"],) * 2
        std = np.float32(params["trans_std"])
        return reference.separable(row.name, data, rois, (3, 3), scale, ratio, 2, inputs[2], std).out
    unit = {2: "degrees", 3: "radians", 4: "radians clockwise"}[rules.boxes]
    least = None if rules.least < 0 else rules.least
    out = reference.rotated(data, rois, pooled, scale, ratio, rules.shift, least, unit).out
    return reference.orientations(out, rois, 4) if row.operator == "RiROIAlign" else out


def distinct(random, shape, dtype):
    """Numbers no two of which are equal, so that a maximum is at one place."""
    return (random.permutation(np.prod(shape)).reshape(shape) / 8 - np.prod(shape) / 16).astype(dtype)


def setting(seed):
    """Sizes and channels, from one to more than the sixteen that the kernels take at a time."""
    random = np.random.default_rng(seed)
    height, width = [(1, 1), (2, 1), (3, 17), (9, 8), (21, 35), (5, 40)][seed % 6]
    pooled = [(1, 1), (2, 2), (3, 2), (4, 5), (7, 7), (2, 3)][seed % 6]
    channels = [1, 3, 16, 17, 2, 33][seed % 6]
    scale = [1.0, 0.5, 0.25, 0.3, 1 / 16, 1.0][seed % 6]
    ratio = [(2, 2), (0, 0), (3, 1), (0, 2), (1, 1), (12, 12)][seed % 6]
    return random, height, width, pooled, channels, scale, ratio


def separable_case(row, name, params, seed, dtype):
    """``(given, data, rois, expected)`` of a row of :data:`SEPARABLE` that has a definition."""
    random, height, width, pooled, channels, scale, ratio = setting(seed)
    groups = pooled[0] if pooled[0] == pooled[1] else min(pooled)
    if row == "PSROIAlign/rfcn":
        ratio = tuple(max(1, r) for r in ratio)
    given, in_channels = with_sizes(name, params, pooled, scale, ratio, channels, groups)
    data = distinct(random, (2, in_channels, height, width), dtype)
    rois = random_rois(random, 6, 2, height, width, scale, dtype)
    used = np.float32(scale) if named()[row].rules.single_scale else scale
    return given, data, rois, reference.separable(row, data, rois, pooled, used, ratio, groups)
