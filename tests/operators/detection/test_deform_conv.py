"""Deformable convolution: its definition in plain loops, numeric gradients, hostile displacements."""

import numpy as np
import pytest

from roiops.errors import ParamError, ShapeError
from roiops.operators.detection import deform_conv
from roiops.operators.imperative import Invocation
from roiops.registry import get

CASES = [
    {"kernel": (3, 3), "pad": (1, 1), "num_deformable_group": 2},
    {"kernel": (2, 3), "stride": (2, 1), "dilate": (1, 2), "pad": (0, 3), "num_group": 2},
    {"kernel": (1, 1), "no_bias": True},
]


def output_size(params, extents):
    sizes = []
    for axis, extent in enumerate(extents):
        stride, dilate = params.get("stride", (1, 1))[axis], params.get("dilate", (1, 1))[axis]
        reach = dilate * (params["kernel"][axis] - 1) + 1
        sizes.append((extent + 2 * params.get("pad", (0, 0))[axis] - reach) // stride + 1)
    return sizes


def random_inputs(params, modulated, dtype=np.float64):
    """Displacements that keep every tap clear of pixel centres, where the gradient has a kink."""
    random = np.random.default_rng(4)
    images, channels, filters, extents = 2, 4, 6, (5, 6)
    height, width = output_size(params, extents)
    taps = params["kernel"][0] * params["kernel"][1] * params.get("num_deformable_group", 1)
    offset = random.integers(-2, 3, (images, 2 * taps, height, width)) + random.uniform(
        0.1, 0.9, (images, 2 * taps, height, width)
    )
    arrays = {"data": random.standard_normal((images, channels, *extents)), "offset": offset}
    if modulated:
        arrays["mask"] = random.random((images, taps, height, width))
    arrays["weight"] = random.standard_normal(
        (filters, channels // params.get("num_group", 1), *params["kernel"])
    )
    if not params.get("no_bias"):
        arrays["bias"] = random.standard_normal(filters)
    return {name: array.astype(dtype) for name, array in arrays.items()}


def sample(plane, y, x, modulated):
    """The rule for one tap: clamped within the map, or zero-padded and fading out."""
    height, width = plane.shape
    if modulated:
        padded = np.pad(plane, 2)
        if not (-1 < y < height and -1 < x < width):
            return 0.0
        y, x = y + 2, x + 2
    else:
        if not (0 <= y < height and 0 <= x < width):
            return 0.0
        padded = np.pad(plane, ((0, 1), (0, 1)), mode="edge")
    top, left = int(np.floor(y)), int(np.floor(x))
    square = padded[top : top + 2, left : left + 2]
    return np.array([top + 1 - y, y - top]) @ square @ np.array([left + 1 - x, x - left])


def reference(arrays, params, modulated):
    data, offset, weight = arrays["data"], arrays["offset"], arrays["weight"]
    kernel_h, kernel_w = params["kernel"]
    groups, deformable = params.get("num_group", 1), params.get("num_deformable_group", 1)
    stride, dilate, pad = (
        params.get(n, d) for n, d in (("stride", (1, 1)), ("dilate", (1, 1)), ("pad", (0, 0)))
    )
    height, width = output_size(params, data.shape[2:])
    out = np.zeros((data.shape[0], weight.shape[0], height, width))
    in_group, out_group = data.shape[1] // groups, weight.shape[0] // groups
    for n, f, oy, ox in np.ndindex(*out.shape):
        for c, i, j in np.ndindex(*weight.shape[1:]):
            channel = f // out_group * in_group + c
            tap = channel // (data.shape[1] // deformable) * kernel_h * kernel_w + i * kernel_w + j
            y = oy * stride[0] - pad[0] + i * dilate[0] + offset[n, 2 * tap, oy, ox]
            x = ox * stride[1] - pad[1] + j * dilate[1] + offset[n, 2 * tap + 1, oy, ox]
            value = sample(data[n, channel], y, x, modulated)
            if modulated:
                value *= arrays["mask"][n, tap, oy, ox]
            out[n, f, oy, ox] += weight[f, c, i, j] * value
        out[n, f, oy, ox] += arrays["bias"][f] if "bias" in arrays else 0
    return out


def invoke(arrays, params, modulated):
    name = "_contrib_ModulatedDeformableConvolution" if modulated else "_contrib_DeformableConvolution"
    return Invocation(get(name).create({"num_filter": 6, **params}), list(arrays.values()))


@pytest.mark.parametrize("modulated", [False, True], ids=["plain", "modulated"])
@pytest.mark.parametrize("params", CASES, ids=str)
def test_agrees_with_the_definition(params, modulated):
    arrays = random_inputs(params, modulated)
    (out,) = invoke(arrays, params, modulated).forward()
    np.testing.assert_allclose(out, reference(arrays, params, modulated), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("modulated", [False, True], ids=["plain", "modulated"])
@pytest.mark.parametrize("params", CASES, ids=str)
def test_numeric_gradients(params, modulated):
    arrays = random_inputs(params, modulated)
    invocation = invoke(arrays, params, modulated)
    head = np.random.default_rng(5).standard_normal(invocation.forward()[0].shape)
    grads = invocation.backward([head])
    random = np.random.default_rng(6)
    step = 1e-6
    for grad, (name, array) in zip(grads, arrays.items(), strict=True):
        for _ in range(25):
            at = tuple(random.integers(0, n) for n in array.shape)
            kept = array[at]
            ends = []
            for sign in (1, -1):
                array[at] = kept + sign * step
                ends.append((invocation.forward()[0] * head).sum())
            array[at] = kept
            assert grad[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6), (name, at)


def test_tiles_change_nothing(monkeypatch):
    params = CASES[0]
    arrays = random_inputs(params, True)
    whole = invoke(arrays, params, True)
    (out,) = whole.forward()
    grads = whole.backward([out])
    monkeypatch.setattr(deform_conv, "_LEAST_TILE", 7)
    monkeypatch.setattr(deform_conv, "_TILE_BYTES", 1)
    tiled = invoke(arrays, params, True)
    np.testing.assert_allclose(tiled.forward()[0], out, rtol=1e-12, atol=1e-12)
    for one, other in zip(tiled.backward([out]), grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_zero_displacement_is_a_convolution():
    arrays = random_inputs(CASES[0], False)
    arrays["offset"][...] = 0
    (out,) = invoke(arrays, CASES[0], False).forward()
    np.testing.assert_allclose(out, reference(arrays, CASES[0], False), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("modulated", [False, True], ids=["plain", "modulated"])
def test_hostile_displacements_read_nothing(modulated):
    arrays = random_inputs(CASES[0], modulated)
    hostile = [np.nan, np.inf, -np.inf, 1e30, -1e30]
    arrays["offset"][...] = np.resize(hostile, arrays["offset"].shape)
    invocation = invoke(arrays, CASES[0], modulated)
    (out,) = invocation.forward()
    np.testing.assert_array_equal(out, np.broadcast_to(arrays["bias"][:, None, None], out.shape))
    grads = invocation.backward([np.ones_like(out)])
    assert not any(grad.any() for grad in grads[:-1])


def test_requests():
    params = CASES[1]
    arrays = random_inputs(params, False)
    invocation = invoke(arrays, params, False)
    (out,) = invocation.forward()
    grads = invocation.backward([out])
    start = [np.full_like(a, 3) for a in arrays.values()]
    reqs = ["add", "null", "write", "add"]
    invocation.backward([out], reqs, start)
    for req, before, after, grad in zip(reqs, (3, 3, 0, 3), start, grads, strict=True):
        np.testing.assert_allclose(after, before + (0 if req == "null" else grad), rtol=1e-12)
    invocation.op.forward(invocation.ctx, invocation.in_data, ["add"], [doubled := out.copy()], [])
    np.testing.assert_allclose(doubled, 2 * out, rtol=1e-12)


def test_float16_and_strides():
    arrays = random_inputs(CASES[0], True, np.float16)
    invocation = invoke({k: np.asfortranarray(v) for k, v in arrays.items()}, CASES[0], True)
    (out,) = invocation.forward()
    wide = invoke({k: v.astype(np.float32) for k, v in arrays.items()}, CASES[0], True)
    (expected,) = wide.forward()
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, expected.astype(np.float16))
    for grad, other in zip(invocation.backward([out]), wide.backward([expected]), strict=True):
        np.testing.assert_allclose(grad, other, rtol=3e-3, atol=3e-2)


def test_no_images():
    arrays = {k: (v[:0] if k in ("data", "offset") else v) for k, v in random_inputs(CASES[0], False).items()}
    invocation = invoke(arrays, CASES[0], False)
    (out,) = invocation.forward()
    assert out.shape == (0, 6, 5, 6)
    assert not any(grad.any() for grad in invocation.backward([out]))


def test_shapes_follow_from_data():
    prop = get("_npx_deformable_convolution").create(
        {"kernel": (3, 3), "num_filter": 8, "num_group": 2, "num_deformable_group": 4, "stride": "()"}, "dcn"
    )
    shapes, outputs = prop.infer_shape([(2, 8, 9, 7), None, None, None])
    assert shapes == [(2, 8, 9, 7), (2, 72, 7, 5), (8, 4, 3, 3), (8,)]
    assert outputs == [(2, 8, 7, 5)]


def test_errors():
    arrays = random_inputs(CASES[0], False)
    with pytest.raises(ShapeError, match=r"offset must have shape \(2, 36, 5, 6\), got \(2, 36, 5, 5\)"):
        invoke({**arrays, "offset": arrays["offset"][..., :5]}, CASES[0], False)
    with pytest.raises(ShapeError, match=r"channels of data must be a multiple of num_group 3, got 4"):
        invoke(arrays, {**CASES[0], "num_group": 3}, False)
    with pytest.raises(
        ShapeError, match=r"height of data and padding must be at least the dilated kernel's 9, got 7"
    ):
        invoke(arrays, {**CASES[0], "dilate": (4, 1)}, False)
    with pytest.raises(ParamError, match=r"layout must be \{'NCHW'\} or None, got 'NCDHW'"):
        invoke(arrays, {**CASES[0], "layout": "NCDHW"}, False)
