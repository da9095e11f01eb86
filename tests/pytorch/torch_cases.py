"""Every registered ROI operator and dialect with inputs for PyTorch, as the tests in this folder share them."""

import numpy as np
from roi_cases import OTHERS, SEPARABLE, other_case, random_rois, with_sizes

from roiops.registry import get, public_name

POOLED, SCALE, GROUPS = (3, 2), 0.5, 2

#: What newer versions of PyTorch say at each use of TorchScript, also where they use it themselves.
TORCHSCRIPT_IS_DEPRECATED = "ignore:`torch.jit.:FutureWarning"


def _boxes(random):
    """Boxes without a kink in what they give: a numeric gradient must not cross one."""
    corner = random.uniform(-4, 6, (5, 2))
    # Image indices truncate; a small step from a whole one would lead to another image.
    index = random.integers(0, 2, (5, 1)) + 0.25
    return np.concatenate([index, corner, corner + random.uniform(2, 9, (5, 2))], 1)


def _separable(name, params):
    params, channels = with_sizes(name, params, POOLED, SCALE, 2, 2, GROUPS)
    random = np.random.default_rng(16)
    data = random.standard_normal((2, channels, 9, 11))
    if "rois" not in get(name).zero_grad:
        return name, [data, _boxes(random)], params
    return name, [data, random_rois(random, 7, 2, 9, 11, SCALE, np.float64)], params


def _other(row):
    random = np.random.default_rng(17)
    name, params, inputs = other_case(row, random, _boxes(random), dtype=np.float64)
    params.pop(get(name).variadic, None)  # PyTorch counts the inputs itself
    return name, inputs, params


#: Name for pytest -> operator, float64 inputs as NumPy arrays, parameters.
CASES = {row: _separable(name, params) for row, name, params in SEPARABLE}
CASES |= {row.name: _other(row) for row in OTHERS}
#: One case of each operator.
ONE_EACH = {}
for _case in CASES.values():
    ONE_EACH.setdefault(public_name(get(_case[0]).name), _case)


def place_of_boxes(name) -> int:
    """Which of an operator's inputs the boxes are."""
    return -1 if get(name).variadic else 1
