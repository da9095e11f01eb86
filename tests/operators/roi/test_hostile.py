"""Boxes that are not numbers, not boxes, or not of this world; empty inputs; strided ones."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from roi_cases import SEPARABLE, call, gradient, with_sizes

from roiops.errors import DataError
from roiops.registry import public_name

NAN, INF = np.nan, np.inf
#: Each row is to be ignored: it gives zeros, and no gradient.
IGNORED = [
    (0, NAN, 0, 4, 4), (0, 0, NAN, 4, 4), (0, 0, 0, NAN, 4), (0, 0, 0, 4, NAN), (0, INF, 0, 4, 4),
    (0, -INF, -INF, INF, INF), (0, 0, 0, INF, 4), (-1, 0, 0, 4, 4), (-3.5, 0, 0, 4, 4), (-1, NAN, 0, 4, 4),
]  # fmt: skip
#: Each row is a box, if a strange one.
STRANGE = [
    (0, 4, 4, 4, 4), (1, 5, 5, 1, 1), (0, -9, -9, -4, -4), (1, 50, 50, 90, 90), (0, -1e30, -1e30, 1e30, 1e30),
    (1, 1e30, 1e30, -1e30, -1e30), (0, -3e38, 0, 3e38, 4), (1, 1e30, 1e30, 1e30, 1e30), (0, 0, 0, 1e9, 3),
    (1, -1e7, -1e7, 1e7, 1e7), (0.9, 1, 1, 6, 6), (-0.5, 1, 1, 6, 6), (0, 1e-38, 1e-38, 2e-38, 2e-38),
    (1, 2147483648, -2147483648, 4294967296, 3),
]  # fmt: skip
ALL = [("contrib.RROIAlign", "_contrib_RROIAlign", {}), *SEPARABLE]


def prepare(row, name, params, pooled=(3, 2), ratio=(0, 0), height=6, width=7, dtype=np.float32):
    if row == "PSROIAlign/rfcn":
        ratio = (2, 2)
    groups = 2
    given, channels = with_sizes(name, params, pooled, 1.0, ratio, 2, groups)
    data = np.random.default_rng(0).normal(size=(2, channels, height, width)).astype(dtype)
    return given, data


def boxes(rows, name):
    rois = np.array(rows, np.float32)
    if "RROI" in name:
        rois = np.column_stack([rois, np.full(len(rois), 30, np.float32)])
    return rois


@pytest.mark.parametrize(("row", "name", "params"), ALL, ids=[case[0] for case in ALL])
def test_ignored_rows(row, name, params):
    given, data = prepare(row, name, params)
    good = boxes([(1, 1, 1, 5, 5)], name)
    invocation = call(name, data, np.concatenate([boxes(IGNORED, name), good]), **given)
    alone = call(name, data, good, **given)
    for found, expected in zip(invocation.outputs, alone.outputs, strict=True):
        np.testing.assert_array_equal(found[-1:], expected)
        np.testing.assert_array_equal(found[:-1], -1 if found.dtype == np.int32 else 0)
    head = np.ones_like(invocation.outputs[0])
    grad = gradient(invocation, head)[0]
    np.testing.assert_array_equal(grad, gradient(alone, head[-1:])[0])


@pytest.mark.parametrize(("row", "name", "params"), ALL, ids=[case[0] for case in ALL])
@pytest.mark.parametrize("ratio", [(0, 0), (2, 2), (300, 1)], ids=str)
def test_strange_boxes_end_and_stay_inside(row, name, params, ratio):
    given, data = prepare(row, name, params, ratio=ratio)
    invocation = call(name, data, boxes(STRANGE, name), **given)
    out = invocation.outputs[0]
    assert not np.isnan(out).any()
    # The means and maxima of numbers lie between them, or are what an empty bin gives.
    least, most = min(data.min(), 0), max(data.max(), 0)
    finite = out[np.isfinite(out)]
    assert finite.min() >= least * 1.0001
    assert finite.max() <= most * 1.0001
    assert np.isfinite(gradient(invocation, np.ones_like(out))[0]).all()


@pytest.mark.parametrize("trans", [NAN, INF, 1e38, -1e30])
def test_strange_displacements(trans):
    data = np.random.default_rng(0).normal(size=(2, 8, 6, 7)).astype(np.float32)
    rois = boxes([(0, 1, 1, 5, 5), (1, -1e30, -1e30, 1e30, 1e30)], "")
    moves = np.full((2, 2, 2, 2), trans, np.float32)
    moves[:, :, 0, 0] = 0.1
    params = {"spatial_scale": 1, "output_dim": 2, "group_size": 2, "pooled_size": 2, "trans_std": 0.5}
    for samples in (2, 20):
        invocation = call(
            "_contrib_DeformablePSROIPooling", data, rois, moves, **params, sample_per_part=samples
        )
        assert np.isfinite(invocation.outputs[0]).all()
        assert not invocation.outputs[0][0, :, 1, 1].any()
        grads = gradient(invocation, np.ones_like(invocation.outputs[0]))
        assert np.isfinite(grads[0]).all()


@pytest.mark.parametrize(("row", "name", "params"), ALL, ids=[case[0] for case in ALL])
@pytest.mark.parametrize("index", [2, 2.5, 1e30, NAN, INF, -INF])
def test_wrong_image(row, name, params, index):
    given, data = prepare(row, name, params)
    rois = boxes([(0, 1, 1, 5, 5), (index, 1, 1, 5, 5)], name)
    expected = (
        rf"{public_name(name)}: rois row 1 has batch index {float(np.float32(index))}, but data has 2 images"
    )
    with pytest.raises(DataError, match=expected.replace("+", r"\+")):
        call(name, data, rois, **given)


@pytest.mark.parametrize(("row", "name", "params"), ALL, ids=[case[0] for case in ALL])
def test_nothing_to_do(row, name, params):
    given, data = prepare(row, name, params)
    none = boxes([(0, 1, 1, 5, 5)], name)[:0]
    invocation = call(name, data, none, **given)
    assert invocation.outputs[0].shape[0] == 0
    in_grad = [np.full_like(data, 7), np.zeros_like(none)]
    assert not gradient(invocation, invocation.outputs[0], "write", in_grad)[0].any()
    no_images = call(name, data[:0], boxes([(-1, 1, 1, 5, 5)], name), **given)
    assert not no_images.outputs[0].any()
    assert gradient(no_images, no_images.outputs[0])[0].shape == data[:0].shape


@pytest.mark.parametrize(("row", "name", "params"), ALL, ids=[case[0] for case in ALL])
@pytest.mark.parametrize("size", [(0, 5), (5, 0)], ids=str)
def test_map_without_pixels(row, name, params, size):
    given, data = prepare(row, name, params, height=size[0], width=size[1])
    invocation = call(name, data, boxes([(0, 1, 1, 5, 5)], name), **given)
    assert set(np.unique(invocation.outputs[0])) <= {0, -INF}
    assert gradient(invocation, np.ones_like(invocation.outputs[0]))[0].shape == data.shape


@pytest.mark.parametrize("name", ["ROIPooling", "ROIAlign", "_contrib_RROIAlign"])
def test_no_channels(name):
    data = np.zeros((2, 0, 5, 5), np.float32)
    invocation = call(name, data, boxes([(0, 1, 1, 5, 5)], name), pooled_size=(2, 2), spatial_scale=1)
    assert invocation.outputs[0].shape == (1, 0, 2, 2)
    assert gradient(invocation, invocation.outputs[0])[0].shape == data.shape


@pytest.mark.parametrize("poison", [NAN, INF])
def test_pixels_of_weight_zero_are_not_read(poison):
    data = np.ones((1, 1, 4, 4), np.float32)
    data[0, 0, :, 2:] = poison
    rois = np.array([[0, -0.5, -0.5, 1.5, 1.5]], np.float32)  # samples at pixels 0 and 1
    params = {"pooled_size": (2, 2), "spatial_scale": 1, "sampling_ratio": 1, "aligned": False}
    assert (call("ROIAlign", data, rois, **params).outputs[0] == 1).all()
    outside = np.array([[0, 9, 9, 12, 12]], np.float32)
    data[0, 0, 0, 0] = poison
    assert (call("ROIAlign", data, outside, **params).outputs[0] == 0).all()


@pytest.mark.parametrize("dialect", ["mxnet", "chainer"])
def test_bins_of_nan(dialect):
    data = np.full((1, 1, 4, 4), NAN, np.float32)
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    invocation = call("ROIPooling", data, rois, pooled_size=(1, 1), spatial_scale=1, dialect=dialect)
    least = -INF if dialect == "chainer" else np.finfo(np.float32).min
    assert invocation.outputs[0].item() == least
    assert invocation.outputs[1].item() == -1


@pytest.mark.parametrize(
    "kinds", ["not RROI and not displacements", pytest.param("RROI or displacements", marks=pytest.mark.slow)]
)
def test_bounds_with_checking_on(kinds):
    """These very tests, with every index checked."""
    script = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    chosen = f"(ignored or strange or pixels or nothing) and not 300 and ({kinds})"
    here = Path(__file__)
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            script,
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-k",
            chosen,
            str(here),
        ],
        cwd=here.parents[3],
        env={
            **__import__("os").environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_NUM_THREADS": "1",
            "ROIOPS_CACHE": "0",
        },
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
