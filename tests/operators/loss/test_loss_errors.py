"""What softmax and the losses refuse, and in which words: node, argument, what came and what is needed."""

import re

import numpy as np
import pytest

from roiops.errors import DataError, ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get

#: Error, operator, inputs (an array, or the shape of a float32 one), parameters, text after the node's name.
REFUSED = [
    (ShapeError, "CTCLoss", [(2, 3, 4), (3, 5)], {}, "label has 5 entries, but data only 2 steps"),
    (
        DataError,
        "CTCLoss",
        [(4, 2, 3), np.array([[1, 2], [1, 7]], "f4")],
        {},
        "label[1, 1] must be a class below 3, got 7",
    ),
    (DataError, "CTCLoss", [(4, 1, 3), np.array([[1, np.nan]], "f4")], {}, "a label or a length is NaN"),
    (
        DataError,
        "CTCLoss",
        [(4, 1, 3), np.array([[1, 2]], "f4"), np.array([5], "f4")],
        {"use_data_lengths": True},
        "data_lengths[0] must be at least 1 and at most 4, got 5",
    ),
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
