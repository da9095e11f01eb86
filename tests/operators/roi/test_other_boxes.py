"""Operators whose boxes turn, whose bins move, that read single points, integrals or several maps.

Each against plain loops, numeric gradients and hostile boxes; golden files are in ``test_golden.py``.
"""

import math

import numpy as np
import pytest
import reference
from roi_cases import OTHERS, SEPARABLE, call, gradient, other_case, random_rois
from roi_definitions import expected_of
from test_hostile import IGNORED, STRANGE

from roiops.errors import ParamError, ShapeError
from roiops.operators.imperative import Invocation
from roiops.operators.roi.dialects import named, rows
from roiops.registry import get

IDS = [row.name for row in OTHERS]
TOLERANCE = {np.float32: 3e-6, np.float64: 1e-12}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_forward(row, dtype):
    for seed, ratio in ((0, 2), (1, 0)):
        random = np.random.default_rng(seed)
        # Sides away from the limits between levels, where a last bit decides.
        boxes = random_rois(random, 6, 2, 8, 7, 0.5, dtype)
        name, params, inputs = other_case(row, random, boxes, ratio=ratio, dtype=dtype)
        expected = expected_of(row, params, inputs)
        found = call(name, *inputs, **params).outputs[0]
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, expected, atol=TOLERANCE[dtype] * max(1, abs(expected).max()), rtol=0
        )


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_numeric_gradient(row):
    """Central differences, of every input that has a gradient."""
    random = np.random.default_rng(5)
    boxes = np.array([(0, 1.3, 2.1, 9.7, 11.9), (1, 3.2, 0.4, 14.6, 7.7), (1, -3.1, -2.3, 6.2, 5.9)])
    name, params, inputs = other_case(row, random, boxes, dtype=np.float64)
    check_gradients(name, params, inputs, mode=row.mode)


def check_gradients(name, params, inputs, mode=""):
    invocation = call(name, *inputs, **params)
    head = np.random.default_rng(1).normal(size=invocation.outputs[0].shape)
    grads = gradient(invocation, head)
    names = invocation.prop.list_arguments()
    for at, array in enumerate(inputs):
        if names[at] in invocation.prop.list_zero_gradients() or (names[at] == "rois" and mode == "nearest"):
            continue
        random = np.random.default_rng(2)
        for index in random.permutation(array.size)[:25]:
            place = np.unravel_index(index, array.shape)
            if names[at] == "rois" and place[1] == 0:
                assert grads[at][place] == 0
                continue
            outs = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in inputs]
                moved[at][place] += step
                outs.append((call(name, *moved, **params).outputs[0] * head).sum())
            slope = (outs[0] - outs[1]) / 2e-6
            assert slope == pytest.approx(grads[at][place], rel=1e-5, abs=1e-6), (names[at], place)


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_hostile_boxes(row):
    random = np.random.default_rng(3)
    good = [(1, 1, 1, 5, 5)]
    name, params, inputs = other_case(row, random, [*STRANGE, *IGNORED, *good], ratio=0)
    at = next(k for k, a in enumerate(inputs) if a.ndim == 2)
    # Infinite sides are made of infinite edges; an ignored row stays one.
    inputs[at][len(STRANGE) : -1, 0] = -1
    inputs[at][-2, 1:] = np.nan
    invocation = call(name, *inputs, **params)
    out = invocation.outputs[0]
    assert np.isfinite(out).all()
    assert not out[len(STRANGE) : -1].any()
    head = np.ones_like(out)
    grads = gradient(invocation, head)
    assert all(np.isfinite(grad).all() for grad in grads)
    alone = [a[-1:] if a.shape[0] == len(out) else a for a in inputs]
    np.testing.assert_array_equal(call(name, *alone, **params).outputs[0], out[-1:])


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_requests_and_dtypes(row):
    random = np.random.default_rng(4)
    name, params, inputs = other_case(row, random, random_rois(random, 5, 2, 8, 7, 0.5))
    invocation = call(name, *inputs, **params)
    head = random.normal(size=invocation.outputs[0].shape).astype(np.float32)
    written = gradient(invocation, head)
    added = gradient(invocation, head, "add", [np.full_like(a, 3) for a in inputs])
    untouched = gradient(invocation, head, "null", [np.full_like(a, 3) for a in inputs])
    for one, more, none, argument in zip(
        written, added, untouched, invocation.prop.list_arguments(), strict=True
    ):
        assert (none == 3).all()
        if argument not in invocation.prop.list_zero_gradients():
            np.testing.assert_allclose(more, one + 3, atol=2e-5 * max(1, abs(one).max()))
    half = [a.astype(np.float16) if a.ndim == 4 and a.shape[0] == 2 else a for a in inputs]
    found = call(name, *half, **params).outputs[0]
    wide = call(name, *(a.astype(np.float32) for a in half), **params).outputs[0]
    assert found.dtype == np.float16
    # Orientations are turned after a first rounding to float16.
    np.testing.assert_allclose(found, wide, atol=2e-3 * max(1, abs(wide).max()), rtol=0)


def test_no_boxes():
    for row in OTHERS:
        random = np.random.default_rng(0)
        name, params, inputs = other_case(row, random, np.zeros((0, 5)))
        invocation = call(name, *inputs, **params)
        assert invocation.outputs[0].shape[0] == 0
        assert not any(grad.any() for grad in gradient(invocation, invocation.outputs[0]))


# -- by hand ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["write", "add"])
@pytest.mark.parametrize(
    ("pooled", "shape"), [(2, (2, 5, 9, 11)), (14, (1, 33, 30, 40)), (14, (1, 17, 70, 300))]
)
@pytest.mark.parametrize("name", ["CropAndResize", "PrROIPooling"])
def test_gradients_together_and_apart(name, pooled, shape, how):
    """One pass for both gradients, where a map's sums stay in a cache, or two: the same to the last bit."""
    random = np.random.default_rng(8)
    rois = random_rois(random, 20, shape[0], *shape[2:], 1.0).astype(np.float32)
    rois[::7, 0] = -1
    params = {"pooled_size": (pooled, pooled)}
    if name == "CropAndResize":
        rois[:, 1:] /= max(shape[2:])
    else:
        params["spatial_scale"] = 1.0
    inputs = [random.standard_normal(shape, dtype=np.float32), rois]
    invocation = Invocation(get(name).create(params), inputs)
    head = random.standard_normal(invocation.outputs[0].shape, dtype=np.float32)

    def gradients(*requests):
        return invocation.backward([head], requests, [np.ones_like(array) for array in inputs])

    data, boxes = gradients(how, how)
    np.testing.assert_array_equal(data, gradients(how, "null")[0])
    np.testing.assert_array_equal(boxes, gradients("null", how)[1])
    assert np.abs(data - 1).max() > 0
    assert np.abs(boxes - 1).max() > 0


def test_a_quarter_turn():
    """Two samples across a box two wide and one high, turned by a quarter: they lie above one another."""
    data = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    size = {"pooled_size": (1, 2), "spatial_scale": 1, "sampling_ratio": 1}
    for dialect, angle, more in (
        ("mmcv", math.pi / 2, {"aligned": False}),
        ("detectron2", 90, {}),
        ("mmcv", -math.pi / 2, {"clockwise": True, "aligned": False}),
    ):
        rois = np.array([[0, 2, 2, 2, 1, angle]], np.float32)
        rois[0, 1:3] += 0.5 if dialect == "detectron2" else 0
        out = call("ROIAlignRotated", data, rois, dialect=dialect, **size, **more).outputs[0]
        # Centres at u = -1/2 and 1/2; counter-clockwise, right turns up: (2.5, 2) is 14.5, (1.5, 2) is 9.5.
        np.testing.assert_allclose(out.ravel(), [14.5, 9.5], rtol=1e-5)


def test_crop_and_resize_by_hand():
    data = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    rois = np.array([[0, 0, 0, 1, 1], [0, 0, 1 / 3, 0, 2]], np.float32)
    params = {"crop_size": 3, "extrapolation_value": 7}
    out = call("CropAndResize", data, rois, **params).outputs[0]
    # Points at 0, 1.5 and 3 on either axis; then columns 1, 3.5 (outside) and 6 of the first row.
    np.testing.assert_allclose(out[0, 0], [[1, 2.5, 4], [7, 8.5, 10], [13, 14.5, 16]])
    np.testing.assert_allclose(out[1, 0], [[2, 7, 7]] * 3, rtol=1e-6)
    near = call("CropAndResize", data, rois[:1], method="nearest", **params).outputs[0]
    np.testing.assert_array_equal(near[0, 0], [[1, 3, 4], [9, 11, 12], [13, 15, 16]])  # 1.5 rounds to 2


def test_precise_by_hand():
    """On a ramp the integral is the value in the middle of the bin; one pixel alone is a pyramid of volume 1."""
    ramp = np.tile(np.arange(6, dtype=np.float64), (6, 1))[None, None]
    params = {"pooled_size": (1, 2), "spatial_scale": 1}
    rois = np.array([[0, 1.0, 1.0, 4.0, 3.5]])
    out = call("PrROIPooling", ramp, rois, **params).outputs[0]
    np.testing.assert_allclose(out.ravel(), [1.75, 3.25])
    single = np.zeros((1, 1, 5, 5))
    single[0, 0, 2, 2] = 1
    whole = call("PrROIPooling", single, np.array([[0, 0.0, 0, 4, 4]]), pooled_size=(1, 1), spatial_scale=1)
    np.testing.assert_allclose(whole.outputs[0].item(), 1 / 16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precise_is_the_integral(dtype):
    random = np.random.default_rng(0)
    data = random.normal(size=(2, 2, 6, 7)).astype(dtype)
    rois = random_rois(random, 8, 2, 6, 7, 0.5, dtype)
    params = {"pooled_size": (2, 3), "spatial_scale": 0.5}
    found = call("PrROIPooling", data, rois, **params).outputs[0]
    expected = reference.precise(data.astype(np.float64), rois, (2, 3), 0.5)
    np.testing.assert_allclose(found, expected, atol={np.float32: 2e-5, np.float64: 1e-12}[dtype])


def test_gradient_of_precise_boxes():
    random = np.random.default_rng(0)
    data = random.normal(size=(2, 2, 6, 7))
    rois = np.array([(0, 1.3, 2.1, 9.7, 11.9), (1, 3.2, 0.4, 14.6, 7.7), (1, -3.1, -2.3, 6.2, 5.9)])
    check_gradients("PrROIPooling", {"pooled_size": (2, 3), "spatial_scale": 0.5}, [data, rois])


def test_levels():
    """Boxes of 112, 224 and 448 pixels on maps of levels 3 to 5, whose values are their numbers."""
    maps = [np.full((1, 1, 80, 80), level, np.float32) for level in (3, 4, 5)]
    rois = np.array([(0, 0, 0, side, side) for side in (111, 112, 223, 224, 447, 448, 9)], np.float32)
    params = {"num_args": 4, "pooled_size": (1, 1), "spatial_scales": (1 / 8, 1 / 16, 1 / 32)}
    for dialect in ("torchvision", "detectron2"):
        out = call("MultiScaleROIAlign", *maps, rois, dialect=dialect, **params).outputs[0]
        np.testing.assert_array_equal(out.ravel(), [3, 3, 3, 4, 4, 5, 3])
    # mmdet's first map has boxes up to 56, each further one twice as much.
    out = call("MultiScaleROIAlign", *maps, rois, dialect="mmdet", **params).outputs[0]
    np.testing.assert_array_equal(out.ravel(), [3, 4, 4, 5, 5, 5, 3])


def test_one_map_is_that_of_every_box():
    """A box that is reversed along one axis is read of the only map, at its least size; of several, of none."""
    image = np.arange(4096, dtype=np.float32).reshape(1, 1, 64, 64)
    rois = np.array([(0, 200, 50, 100, 250)], np.float32)
    params = {"pooled_size": (2, 2), "sampling_ratio": 2, "dialect": "torchvision"}
    scales = {"num_args": 2, "spatial_scales": (1 / 4,)}
    found = call("MultiScaleROIAlign", image, rois, **params, **scales).outputs[0]
    params["dialect"] = "mmcv"
    expected = call("ROIAlign", image, rois, spatial_scale=1 / 4, aligned=False, **params).outputs[0]
    params["dialect"] = "torchvision"
    np.testing.assert_array_equal(found, expected)
    assert found.all()
    scales = {"num_args": 3, "spatial_scales": (1 / 4, 1 / 8)}
    assert not call("MultiScaleROIAlign", image, image, rois, **params, **scales).outputs[0].any()


@pytest.mark.parametrize(
    ("name", "params", "shapes", "error", "text"),
    [
        ("RiROIAlign", {"pooled_size": (1, 1), "spatial_scale": 1, "num_orientations": 3},
         [(1, 4, 5, 5), (2, 6)], ShapeError, "multiple of num_orientations = 3 channels, got 4"),
        ("DeformROIPooling", {"pooled_size": (2, 2), "spatial_scale": 1},
         [(1, 4, 5, 5), (2, 5), (3, 2, 2, 2)], ShapeError, "offset must have one row for each of 2 rois"),
        ("MultiScaleROIAlign", {"pooled_size": (2, 2), "num_args": 3, "spatial_scales": (0.5,)},
         [], ParamError, "spatial_scales must hold one number for each of 2 maps, got 1"),
        ("MultiScaleROIAlign", {"pooled_size": (2, 2), "num_args": 3, "spatial_scales": (0.5, 0.25)},
         [(1, 4, 5, 5), (1, 3, 5, 5), (2, 5)], ShapeError, "data1 must have the images and channels of data0"),
        ("ROIAlignRotated", {"pooled_size": (2, 2), "spatial_scale": 1, "clockwise": True,
                             "dialect": "detectron2"}, [], ParamError, "clockwise is for dialect 'mmcv'"),
    ],
)  # fmt: skip
def test_errors(name, params, shapes, error, text):
    with pytest.raises(error, match=text):
        get(name).create(params).infer_shape(shapes)


def test_every_row_is_tested():
    assert {row.name for row in OTHERS} | {name for name, _, _ in SEPARABLE} == set(named())
    assert rows("PrROIPooling")
