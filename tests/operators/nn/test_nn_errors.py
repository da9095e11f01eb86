"""What the network operators refuse, and in which words: node, argument, what came and what is needed."""

import re

import numpy as np
import pytest

from roiops.errors import DTypeError, ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.registry import get

CONV = {"kernel": (3, 3), "num_filter": 4}

#: Error, operator, shapes of the inputs, parameters, text after the node's name.
REFUSED = [
    (ParamError, "Correlation", [], {"kernel_size": 2}, "kernel_size must be odd, got 2"),
    (
        ShapeError,
        "Correlation",
        [(1, 2, 3, 3), (1, 2, 3, 3)],
        {"max_displacement": 4},
        "no patch fits into maps of shape (1, 2, 3, 3)",
    ),
    (
        ShapeError,
        "_contrib_interleaved_matmul_selfatt_qk",
        [(4, 2, 10)],
        {"heads": 2},
        "the last axis of queries_keys_values must be a multiple of 6 with 2 heads, got (4, 2, 10)",
    ),
    (ShapeError, "Convolution", [(1, 3, 9), (4, 3, 3, 3), (4,)], CONV, "data must have 4 dimensions"),
    (
        ShapeError,
        "Convolution",
        [(1, 3, 9, 9), (4, 2, 3, 3), (4,)],
        CONV,
        "weight must have shape (4, 3, 3, 3), got (4, 2, 3, 3)",
    ),
    (
        ShapeError,
        "Convolution",
        [(1, 3, 2, 9), (4, 3, 3, 3), (4,)],
        CONV,
        "kernel (3, 3) with dilate (1, 1) must fit into data, got (2, 9) padded by (0, 0)",
    ),
    (
        ShapeError,
        "Convolution",
        [(1, 3, 9, 9), (4, 1, 3, 3), (4,)],
        {**CONV, "num_group": 2},
        "data must have a multiple of num_group 2 channels, got shape (1, 3, 9, 9)",
    ),
    (ParamError, "Convolution", [], {"num_filter": 4}, "parameter kernel is required"),
    (ParamError, "Convolution", [], {**CONV, "num_filter": 0}, "num_filter must be int, 1 or more, got 0"),
    (
        ParamError,
        "Convolution",
        [],
        {**CONV, "stride": (2,)},
        "stride must have as many entries as kernel (3, 3), got (2,)",
    ),
    (
        ParamError,
        "Convolution",
        [],
        {**CONV, "num_group": 3},
        "num_filter must be a multiple of num_group 3, got 4",
    ),
    (
        ParamError,
        "Convolution",
        [],
        {**CONV, "layout": "NCW"},
        "layout must be NCHW or NHWC for kernel (3, 3), got 'NCW'",
    ),
    (
        ShapeError,
        "Deconvolution",
        [(1, 2, 4, 4), (2, 4, 3, 3)],
        {**CONV, "adj": (1, 0)},
        "adj must be less than stride 1, got 1",
    ),
    (
        ShapeError,
        "Deconvolution",
        [(1, 2, 2, 2), (2, 4, 3, 3)],
        {**CONV, "target_shape": (9, 9)},
        "target_shape must be one that data (2, 2) can reach, got (9, 9)",
    ),
    (
        ShapeError,
        "Deconvolution",
        [(1, 2, 1, 1), (2, 4, 3, 3)],
        {**CONV, "pad": (2, 2)},
        "pad must leave some output, got (2, 2) for data (1, 1)",
    ),
    (
        ShapeError,
        "FullyConnected",
        [(2, 3, 4), (5, 11), (5,)],
        {"num_hidden": 5},
        "weight must have shape (5, 12), got (5, 11)",
    ),
    (
        ShapeError,
        "BatchNorm",
        [(2, 3), (3,), (3,)],
        {"axis": 2},
        "axis must be in [-2, 1] for 2 dimensions, got 2",
    ),
    (ShapeError, "BatchNorm", [(2, 3), (4,), (3,)], {}, "gamma must have shape (3,), got (4,)"),
    (
        ShapeError,
        "Pooling",
        [(1, 1, 2, 2)],
        {"kernel": (3, 3)},
        "kernel (3, 3) must fit into data, got 2 padded by 0 on spatial axis 0",
    ),
    (ShapeError, "Pooling", [(1, 2)], {"global_pool": True}, "data must have 3 or 4 or 5 dimensions"),
    (
        ParamError,
        "Pooling",
        [],
        {},
        "kernel must be given, without zeros, unless global_pool is true, got ()",
    ),
    (
        ParamError,
        "Pooling",
        [],
        {"kernel": (2, 2), "pool_type": "lp"},
        "pool_type 'lp' needs p_value 1, 2 or 3, got None",
    ),
    (
        ParamError,
        "Pooling",
        [],
        {"kernel": (2,), "pooling_convention": "same", "pad": (1,)},
        "pooling_convention 'same' takes no pad, got (1,)",
    ),
    (
        ParamError,
        "Activation",
        [],
        {"act_type": "rellu"},
        "act_type must be {'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'}, got 'rellu'",
    ),
    (
        ShapeError,
        "LeakyReLU",
        [(2, 3), (4,)],
        {"act_type": "prelu"},
        "gamma must have shape (3,), (1,) or that of data's first axes, got (4,)",
    ),
    (ParamError, "Dropout", [], {"p": 1.5}, "p must be float in [0, 1], got 1.5"),
    (ShapeError, "Dropout", [(2, 3)], {"axes": (2,)}, "axes must be in [-2, 1] for 2 dimensions, got 2"),
    (
        ShapeError,
        "UpSampling",
        [(1, 1, 4, 4), (1, 1, 3, 4)],
        {"scale": 2, "sample_type": "nearest", "num_args": 2},
        "arg1 must have a size that divides the output's (8, 8), got shape (1, 1, 3, 4)",
    ),
    (
        ShapeError,
        "UpSampling",
        [(2, 1, 4, 4), (1, 1, 4, 4)],
        {"scale": 2, "sample_type": "nearest", "num_args": 2},
        "arg1 must have the batch of the first input, 2, got shape (1, 1, 4, 4)",
    ),
    (
        ShapeError,
        "UpSampling",
        [(1, 1, 4, 4), (1, 2, 4, 4)],
        {"scale": 2, "sample_type": "nearest", "num_args": 2, "multi_input_mode": "sum"},
        "arg1 must have 1 channels to be added, got shape (1, 2, 4, 4)",
    ),
    (ParamError, "LRN", [], {"nsize": 4}, "nsize must be odd, got 4"),
    (
        ShapeError,
        "L2Normalization",
        [(2, 3)],
        {"mode": "channel"},
        "data must have 3 dimensions or more for mode 'channel', got shape (2, 3)",
    ),
    (
        ShapeError,
        "GroupNorm",
        [(2, 3, 4), (2,), (2,)],
        {"num_groups": 2},
        "data must have a multiple of num_groups 2 channels, got shape (2, 3, 4)",
    ),
    (
        ParamError,
        "_contrib_BilinearResize2D",
        [],
        {"scale_height": 2},
        "give both of scale_height and scale_width, or neither",
    ),
    (
        ParamError,
        "_contrib_BilinearResize2D",
        [],
        {"mode": "odd_scale"},
        "mode 'odd_scale' needs scale_height and scale_width",
    ),
    (
        ShapeError,
        "_contrib_BilinearResize2D",
        [(1, 1, 0, 4)],
        {},
        "data must have at least one pixel, got shape (1, 1, 0, 4)",
    ),
    (
        ShapeError,
        "_contrib_BilinearResize2D",
        [(1, 1, 4, 4)],
        {"scale_height": 0.1, "scale_width": 1},
        "the output must have at least one pixel, got (0, 4) from (1, 1, 4, 4)",
    ),
    (
        ShapeError,
        "_contrib_AdaptiveAvgPooling2D",
        [(2, 3, 4)],
        {},
        "data must have 4 dimensions, got shape (2, 3, 4)",
    ),
    (
        ShapeError,
        "_contrib_AdaptiveAvgPooling2D",
        [(1, 1, 0, 4)],
        {},
        "data must have at least one pixel, got shape (1, 1, 0, 4)",
    ),
    (
        ShapeError,
        "BilinearSampler",
        [(2, 3, 4, 4), (2, 3, 4, 4)],
        {},
        "grid must have shape (2, 2, height, width), got (2, 3, 4, 4)",
    ),
    (
        ParamError,
        "GridGenerator",
        [],
        {"transform_type": "affine"},
        "transform_type 'affine' needs target_shape, got (0, 0)",
    ),
]


@pytest.mark.parametrize(
    ("error", "name", "shapes", "params", "text"),
    REFUSED,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused(error, name, shapes, params, text):
    with pytest.raises(error, match=rf"^{re.escape(name)}\(node\): .*{re.escape(text)}"):
        Invocation(get(name).create(params, f"{name}(node)"), [np.zeros(s, np.float32) for s in shapes])


@pytest.mark.parametrize("name", ["Convolution", "Pooling", "BatchNorm", "LayerNorm"])
def test_whole_numbers_are_refused(name):
    params = {"Convolution": {**CONV, "no_bias": True}, "Pooling": {"kernel": (2, 2)}}.get(name, {})
    prop = get(name).create(params, name)
    with pytest.raises(DTypeError, match=f"{name}: data must be float16, float32 or float64, got int32"):
        prop.infer_type([np.dtype(np.int32)] * len(prop.list_arguments()))


def test_one_dtype_for_all_inputs():
    prop = get("Convolution").create(CONV, "Convolution(c)")
    types = [np.dtype(t) for t in (np.float32, np.float64, np.float32)]
    with pytest.raises(
        DTypeError, match=r"Convolution\(c\): weight must have the dtype of data, float32, got float64"
    ):
        prop.infer_type(types)
