"""What the ROI operators refuse, in which words, and the other names they understand."""

import re

import numpy as np
import pytest
from roi_cases import call

from roiops.errors import DTypeError, ParamError, ShapeError
from roiops.registry import get

SIZE = {"pooled_size": (2, 2), "spatial_scale": 0.5}
PS = {**SIZE, "output_dim": 3}


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("ROIPooling", {"pooled_size": (2, 2)}, "ROIPooling: parameter spatial_scale is required"),
        (
            "ROIPooling",
            {**SIZE, "spatial_scale": 1.5},
            "ROIPooling: spatial_scale must be float in [0, 1] under dialect 'mxnet', got 1.5",
        ),
        (
            "ROIPooling",
            {**SIZE, "pooled_size": (0, 2)},
            "pooled_size must be int or tuple of 2 ints, 1 or more, got (0, 2)",
        ),
        (
            "ROIPooling",
            {**SIZE, "dialect": "tf"},
            "dialect must be {'mxnet', 'torchvision', 'mmcv', 'chainer'}, got 'tf'",
        ),
        (
            "ROIPooling",
            {**SIZE, "mode": "avg"},
            "ROIPooling: mode must be 'max' under dialect 'mxnet', got 'avg'",
        ),
        (
            "ROIPooling",
            {**SIZE, "pooled_h": 2},
            "ROIPooling: pooled_h is another name for part of pooled_size; give one of them",
        ),
        ("ROIPooling", {"pooled_h": 2}, "ROIPooling: pooled_h and pooled_w go together, got only pooled_h"),
        (
            "ROIAlign",
            {**SIZE, "dialect": "mxnet", "mode": "avg"},
            "mode must be 'max' under dialect 'mxnet', got 'avg'",
        ),
        (
            "ROIAlign",
            {**SIZE, "sampling_ratio": 2, "sample_num": 2},
            "ROIAlign: sample_num is another name of sampling_ratio; give one of them",
        ),
        (
            "ROIAlign",
            {**SIZE, "sampling_ratio": 10**6},
            "sampling_ratio must be int or tuple of 2 ints, at most 1024, got 1000000",
        ),
        (
            "PSROIPooling",
            {**PS, "mode": "max"},
            "PSROIPooling: mode must be 'avg' under dialect 'mxnet', got 'max'",
        ),
        (
            "PSROIPooling",
            {**PS, "as_released": True},
            "as_released is for dialect 'torchvision', got 'mxnet'",
        ),
        (
            "PSROIPooling",
            {**PS, "dialect": "torchvision", "group_size": 3},
            "group_size must be left out under dialect 'torchvision'",
        ),
        (
            "PSROIPooling",
            {**PS, "pooled_size": (2, 3)},
            "group_size is required when pooled_size is not square, (2, 3)",
        ),
        (
            "PSROIAlign",
            {**PS, "sampling_ratio": 0},
            "PSROIAlign: sampling_ratio must be 1 or more under dialect 'rfcn', got (0, 0)",
        ),
    ],
)
def test_parameters(name, params, text):
    with pytest.raises(ParamError, match=re.escape(text)):
        get(name).create(params)


@pytest.mark.parametrize(
    ("name", "params", "shapes", "text"),
    [
        (
            "ROIPooling",
            SIZE,
            [(1, 2, 3), (4, 5)],
            "ROIPooling: data must have 4 dimensions, got shape (1, 2, 3)",
        ),
        (
            "ROIPooling",
            SIZE,
            [(1, 2, 3, 3), (12, 4)],
            "ROIPooling: rois must have shape (num_rois, 5), got (12, 4)",
        ),
        (
            "_contrib_RROIAlign",
            SIZE,
            [(1, 2, 3, 3), (12, 5)],
            "rois must have shape (num_rois, 6), got (12, 5)",
        ),
        (
            "PSROIPooling",
            PS,
            [(1, 8, 3, 3), (1, 5)],
            "data must have output_dim * group_size * group_size = 3 * 2 * 2 = 12 channels, got 8",
        ),
        (
            "PSROIAlign",
            {**PS, "dialect": "torchvision"},
            [(1, 8, 3, 3), (1, 5)],
            "data must have output_dim * bins = 3 * 4 = 12 channels, got 8",
        ),
        (
            "_contrib_ROIAlign",
            {**SIZE, "position_sensitive": True},
            [(1, 6, 3, 3), (1, 5)],
            "data must have a multiple of 4 channels, one a bin, got 6",
        ),
        (
            "ROIPooling",
            SIZE,
            [(1, 1, 2**16, 2**15), (1, 5)],
            "ROIPooling: data must have fewer than 2**31 pixels a channel",
        ),
    ],
)
def test_shapes(name, params, shapes, text):
    with pytest.raises(ShapeError, match=re.escape(text)):
        get(name).create(params).infer_shape(shapes)


DEFORMABLE = {"spatial_scale": 1, "output_dim": 3, "group_size": 1, "pooled_size": 2, "trans_std": 0.1}


@pytest.mark.parametrize(
    ("trans", "text"),
    [
        ((4, 2, 2, 2), "trans must have one row for each of 5 rois, got shape (4, 2, 2, 2)"),
        ((5, 2, 3, 3), "trans must have shape (num_rois, 2 * classes, 2, 2), got (5, 2, 3, 3)"),
        ((5, 3, 2, 2), "trans must have 2 * classes channels, where classes divides output_dim 3"),
        ((5, 4, 2, 2), "trans must have 2 * classes channels, where classes divides output_dim 3"),
    ],
)
def test_displacements(trans, text):
    prop = get("_contrib_DeformablePSROIPooling").create(DEFORMABLE)
    with pytest.raises(ShapeError, match=re.escape(text)):
        prop.infer_shape([(1, 3, 5, 5), (5, 5), trans])


def test_dtypes():
    prop = get("ROIAlign").create({**SIZE, "mode": "max"})
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    assert prop.infer_type([half, single])[:2] == ([half, single], [half, np.dtype(np.int32)])
    assert prop.infer_type([half, None])[0] == [half, half]
    with pytest.raises(DTypeError, match="ROIAlign: data must be float16, float32 or float64, got int32"):
        prop.infer_type([np.dtype(np.int32), single])
    with pytest.raises(DTypeError, match="ROIAlign: rois must hold numbers, got bool"):
        prop.infer_type([single, np.dtype(bool)])


def test_label_names_the_node():
    prop = get("ROIPooling").create(SIZE, "ROIPooling(roi_pool5)")
    text = "ROIPooling(roi_pool5): rois must have shape (num_rois, 5), got (12, 4)"
    with pytest.raises(ShapeError, match=re.escape(text)):
        prop.infer_shape([(1, 2, 3, 3), (12, 4)])


def test_other_names():
    caffe = get("ROIPooling").create({"pooled_h": 6, "pooled_w": 7}).params
    assert caffe == get("ROIPooling").create({"pooled_size": (6, 7), "spatial_scale": 1.0}).params
    rfcn = get("PSROIAlign").create({"spatial_scale": 0.5, "output_dim": 2, "group_size": 7, "sample_num": 3})
    assert rfcn.params.pooled_size == (7, 7)
    assert rfcn.params.sampling_ratio == (3, 3)
    assert get("_npx_roi_pooling") is get("ROIPooling")
    assert get("_contrib_PSROIPooling") is get("PSROIPooling")


def test_strings():
    assert get("PSROIPooling").create(PS).params.to_strings() == {
        "spatial_scale": "0.5", "output_dim": "3", "pooled_size": "2",
    }  # fmt: skip
    # A graph file whose ROIAlign does not say whose comes from MXNet.
    assert get("ROIAlign").create(SIZE).params.to_strings()["dialect"] == "mmcv"


def test_hidden_argmax():
    data, rois = np.zeros((1, 1, 4, 4), np.float32), np.array([[0, 0, 0, 3, 3]], np.float32)
    assert get("ROIPooling").create(SIZE).num_visible_outputs == 1
    assert call("ROIPooling", data, rois, **SIZE).outputs[1].dtype == np.int32
    assert get("ROIAlign").create(SIZE).list_outputs() == ("output",)
    assert get("ROIAlign").create({**SIZE, "mode": "max"}).list_outputs() == ("output", "argmax")
