"""Maps whose channels come last: as a layout of an operator, and as the strides of an array."""

import numpy as np
import pytest
from roi_cases import SEPARABLE, call, gradient, random_rois, with_sizes

from roiops.errors import ParamError, ShapeError
from roiops.kernels.cpu.roi import chunks


def last(array):
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def crops(shape, count, dtype, seed=0):
    """A map, boxes of which some reach beyond it or are to be ignored."""
    random = np.random.default_rng(seed)
    images = random.integers(-1, shape[0], (count, 1))
    edges = random.uniform(-0.3, 1.3, (count, 4))
    wide = np.float32 if dtype == np.float16 else dtype
    return random.standard_normal(shape).astype(dtype), np.hstack([images, edges]).astype(wide)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "count", "size"),
    [
        ((2, 40, 13, 17), 30, (5, 6)),
        ((1, 3, 40, 40), 12, (20, 10)),  # a picture
        ((3, 17, 9, 1), 25, (4, 4)),  # a column
        ((1, 37, 20, 20), 620, (14, 14)),  # of float32 more than caches hold; no bin fills whole lines
        ((0, 4, 5, 5), 3, (2, 2)),
        ((1, 4, 5, 5), 0, (2, 2)),
    ],
)
def test_the_same_bits_in_either_layout(shape, count, size, dtype, mode):
    data, rois = crops(shape, count, dtype)
    if not shape[0]:
        rois[:, 0] = -1
    params = {"pooled_size": size, "mode": mode, "extrapolation_value": 1.5}
    second = call("CropAndResize", data, rois, **params)
    first = call("CropAndResize", last(data), rois, layout="NHWC", **params)
    np.testing.assert_array_equal(first.outputs[0], last(second.outputs[0]))
    head = np.random.default_rng(1).standard_normal(second.outputs[0].shape).astype(dtype)
    precision = np.finfo(rois.dtype).eps * (1000 if dtype == np.float16 else 40)
    for how in ("write", "add"):
        expected = gradient(second, head, how, [np.full_like(data, 0.5), np.full_like(rois, 0.5)])
        found = gradient(first, last(head), how, [np.full_like(last(data), 0.5), np.full_like(rois, 0.5)])
        if how == "write":
            np.testing.assert_array_equal(found[0], last(expected[0]))
        # What is added to comes first or last, and the channels are taken some at a time.
        for one, other in ((found[0], last(expected[0])), (found[1], expected[1])):
            limit = precision * max(1, np.abs(other).max(initial=0))
            np.testing.assert_allclose(one, other, atol=limit, rtol=0)


def test_by_hand():
    data = np.stack([np.arange(16.0), np.full(16, 2.0)], axis=-1).reshape(1, 4, 4, 2).astype(np.float32)
    rois = np.array([[0, 0, 0, 1, 1], [0, 0, 1 / 3, 0, 2]], np.float32)
    out = call("CropAndResize", data, rois, crop_size=3, extrapolation_value=7, layout="NHWC").outputs[0]
    assert out.shape == (2, 3, 3, 2)
    np.testing.assert_allclose(out[0, :, :, 0], [[0, 1.5, 3], [6, 7.5, 9], [12, 13.5, 15]])
    np.testing.assert_allclose(out[1, 0], [[1, 2], [7, 7], [7, 7]], rtol=1e-6)


def test_wrong_layouts():
    data, rois = crops((1, 4, 5, 5), 2, np.float32)
    with pytest.raises(ParamError, match="layout must be"):
        call("CropAndResize", data, rois, pooled_size=2, layout="NWHC")
    with pytest.raises(ShapeError, match="data must have 4 dimensions"):
        call("CropAndResize", data[0], rois, pooled_size=2, layout="NHWC")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 40, 13, 17), (1, 3, 30, 40), (2, 70, 3, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize("name", ["ROIAlign", "ROIPooling"])
def test_strides_with_the_channels_last(name, shape, dtype, monkeypatch):
    """Arrays are copied some channels at a time; results go where the strides say."""
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 1 << 15)
    random = np.random.default_rng(0)
    data = random.standard_normal(shape).astype(dtype)
    rois = random_rois(random, 20, shape[0], *shape[2:], 1.0)
    params = {"pooled_size": (4, 3), "spatial_scale": 1.0}
    expected = call(name, data, rois, **params)
    found = call(name, np.moveaxis(last(data), -1, 1), rois, **params)
    np.testing.assert_array_equal(found.outputs[0], expected.outputs[0])
    into = np.moveaxis(np.zeros_like(last(expected.outputs[0])), -1, 1)
    found.outputs[0] = into
    found.forward()
    np.testing.assert_array_equal(into, expected.outputs[0])
    head = random.standard_normal(into.shape).astype(dtype)
    wanted = gradient(expected, head, "write", [np.ones_like(data), np.ones_like(rois)])[0]
    grad = np.moveaxis(np.ones_like(last(data)), -1, 1)
    gradient(found, np.moveaxis(last(head), -1, 1), "write", [grad, np.ones_like(rois)])
    np.testing.assert_array_equal(grad, wanted)


@pytest.mark.parametrize("channels", [3, 7, 20])
@pytest.mark.parametrize(("name", "given"), [pytest.param(*row[1:], id=row[0]) for row in SEPARABLE])
def test_every_dialect_reads_either_layout(name, given, channels):
    """Bins by position read every so many channels: of those that lie last, too."""
    random = np.random.default_rng(0)
    params, total = with_sizes(name, given, (3, 3), 0.5, 2, channels, 3)
    data = random.standard_normal((2, total, 9, 11)).astype(np.float32)
    rois = random_rois(random, 12, 2, 9, 11, 0.5)
    found = call(name, np.moveaxis(last(data), -1, 1), rois, **params)
    expected = call(name, data, rois, **params)
    np.testing.assert_array_equal(found.outputs[0], expected.outputs[0])
    head = random.standard_normal(expected.outputs[0].shape).astype(np.float32)
    wanted = gradient(expected, head, "write", [np.ones_like(data), np.ones_like(rois)])[0]
    grad = np.moveaxis(np.ones_like(last(data)), -1, 1)
    gradient(found, head, "write", [grad, np.ones_like(rois)])
    np.testing.assert_allclose(grad, wanted, rtol=0, atol=1e-5)
