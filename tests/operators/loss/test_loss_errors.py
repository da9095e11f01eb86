"""What softmax and the losses refuse, and in which words: node, argument, what came and what is needed."""

import re

import numpy as np
import pytest

from roiops.errors import ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get

#: Error, operator, inputs (an array, or the shape of a float32 one), parameters, text after the node's name.
REFUSED = [
    (
        ShapeError,
        "SoftmaxOutput",
        [(2, 3), (3,)],
        {},
        "label must have shape (2,), or that of data, (2, 3), got (3,)",
    ),
    (
        ShapeError,
        "SoftmaxOutput",
        [(2, 3, 4, 5), (2, 9)],
        {"multi_output": True},
        "label must have shape (2, 20) or (2, 4, 5) or (2, 1, 4, 5), or that of data, (2, "
        "3, 4, 5), got (2, 9)",
    ),
    (ShapeError, "SoftmaxOutput", [(3,), (3,)], {}, "data must have 2 or more dimensions, got shape (3,)"),
    (
        ParamError,
        "SoftmaxOutput",
        [(3, 2), (3,)],
        {"smooth_alpha": 2},
        "smooth_alpha must be float in [0, 1], got 2",
    ),
    (ShapeError, "softmax", [(3, 2)], {"axis": 2}, "axis must be in [-2, 1] for 2 dimensions, got 2"),
    (
        ShapeError,
        "softmax",
        [(3, 2), np.zeros(2, "i4")],
        {"use_length": True},
        "length must have shape (3,), got (2,)",
    ),
    (
        ShapeError,
        "SoftmaxActivation",
        [(3, 2)],
        {"mode": "channel"},
        "data must have 3 dimensions or more for mode 'channel', got shape (3, 2)",
    ),
    (
        ShapeError,
        "LinearRegressionOutput",
        [(3, 2), (3,)],
        {},
        "label must have as many entries as data, (3, 2), got (3,)",
    ),
    (
        ShapeError,
        "softmax_cross_entropy",
        [(3, 2, 2), (3,)],
        {},
        "data must have 2 dimensions, got shape (3, 2, 2)",
    ),
    (ShapeError, "softmax_cross_entropy", [(3, 2), (2,)], {}, "label must have shape (3,), got (2,)"),
    (ShapeError, "SVMOutput", [(3, 2), (2,)], {}, "label must have shape (3,), got (2,)"),
    (
        ParamError,
        "MakeLoss",
        [(3, 2)],
        {"normalization": "x"},
        "normalization must be {'null', 'batch', 'valid'}, got 'x'",
    ),
]


@pytest.mark.parametrize(("error", "name", "inputs", "params", "text"), REFUSED)
def test_refused(error, name, inputs, params, text):
    arrays = [i if isinstance(i, np.ndarray) else np.zeros(i, np.float32) for i in inputs]
    with pytest.raises(error, match=f"^{re.escape(f'{name}(node): {text}')}$"):
        Invocation(get(name).create(params, f"{name}(node)"), arrays).forward()
