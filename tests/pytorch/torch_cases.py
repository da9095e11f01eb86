"""Every registered ROI operator and dialect with inputs for PyTorch, as the tests in this folder share them."""

import numpy as np
from roi_cases import SEPARABLE, random_rois, with_sizes

from roiops.registry import get, public_name

POOLED, SCALE, GROUPS = (3, 2), 0.5, 2


def _separable(name, params):
    params, channels = with_sizes(name, params, POOLED, SCALE, 2, 2, GROUPS)
    random = np.random.default_rng(16)
    data = random.standard_normal((2, channels, 9, 11))
    return name, [data, random_rois(random, 7, 2, 9, 11, SCALE, np.float64)], params


def _rotated():
    random = np.random.default_rng(17)
    rois = np.concatenate(
        [
            random.integers(0, 2, (5, 1)),
            random.uniform(2, 18, (5, 2)),
            random.uniform(1, 14, (5, 2)),
            random.uniform(-90, 90, (5, 1)),
        ],
        axis=1,
    )
    params = {"pooled_size": POOLED, "spatial_scale": SCALE, "sampling_ratio": 2}
    return "_contrib_RROIAlign", [random.standard_normal((2, 3, 9, 11)), rois], params


def _deformable():
    random = np.random.default_rng(18)
    params = {
        "spatial_scale": SCALE, "output_dim": 2, "group_size": 2, "pooled_size": 2, "part_size": 2,
        "sample_per_part": 2, "trans_std": 0.1,
    }  # fmt: skip
    data = random.standard_normal((2, 8, 9, 11))
    rois = random_rois(random, 5, 2, 9, 11, SCALE, np.float64)
    return "_contrib_DeformablePSROIPooling", [data, rois, random.uniform(-1, 1, (5, 2, 2, 2))], params


#: Name for pytest -> operator, float64 inputs as NumPy arrays, parameters.
CASES = {row: _separable(name, params) for row, name, params in SEPARABLE}
CASES["contrib.RROIAlign"] = _rotated()
CASES["contrib.DeformablePSROIPooling"] = _deformable()
#: One case of each operator.
ONE_EACH = {}
for _case in CASES.values():
    ONE_EACH.setdefault(public_name(get(_case[0]).name), _case)
