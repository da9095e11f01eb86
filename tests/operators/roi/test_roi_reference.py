"""Every dialect against its plain-loop definition, and its gradient against differences of the output."""

import numpy as np
import pytest
import reference
from roi_cases import SEPARABLE, call, gradient, is_separable, random_rois, with_sizes
from roi_definitions import distinct, separable_case

from roiops.kernels.rules import GROUPED
from roiops.operators.roi.dialects import TABLE, named

#: Sums are added up in another order than the reference's.
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def assert_close(found, expected, dtype, what):
    finite = np.isfinite(expected)
    assert (found == expected)[~finite].all(), what
    largest = max(1.0, np.abs(expected[finite]).max(initial=0))
    error = np.abs(found[finite].astype(np.float64) - expected[finite]).max(initial=0)
    assert error <= TOLERANCE[dtype] * largest, f"{what}: off by {error} of {largest}"


#: PrROIPooling has no samples to walk: its reference, an integral, is in test_other_boxes.py.
DEFINED = [case for case in SEPARABLE if case[0] in reference.DEFINITIONS]


def test_a_dialect_without_a_definition_has_a_golden_file():
    assert all(row.golden or row.name in reference.DEFINITIONS for row in TABLE.values() if is_separable(row)
               and row.operator != "PrROIPooling")  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("row", "name", "params"), DEFINED, ids=[case[0] for case in DEFINED])
def test_forward_and_gradient(row, name, params, dtype):
    for seed in range(6):
        given, data, rois, expected = separable_case(row, name, params, seed, dtype)
        invocation = call(name, data, rois, **given)
        what = f"{row}, setting {seed}"
        assert_close(invocation.outputs[0], expected.out, dtype, what)
        grad_out = np.random.default_rng(seed).integers(-4, 5, expected.out.shape).astype(dtype)
        if row.endswith("as_released"):
            continue  # its gradient is that of the corrected form, as in torchvision
        if len(invocation.outputs) > 1:
            same = invocation.outputs[1] == expected.argmax
            # Two samples whose values differ by rounding alone may change places.
            allowed = 0 if "Pooling" in name else 0.01 * same.size
            assert (~same).sum() <= allowed, what
            if not same.all():
                continue
        found = gradient(invocation, grad_out)[0]
        assert_close(found, expected.gradient(grad_out), dtype, what + ", gradient")


GROUPED_ROWS = [case for case in DEFINED if named()[case[0]].rules.channels == GROUPED]


@pytest.mark.parametrize(("pooled", "groups"), [(1, 3), (2, 3), (4, 3), (3, 7)])
@pytest.mark.parametrize(("row", "name", "params"), GROUPED_ROWS, ids=[case[0] for case in GROUPED_ROWS])
def test_groups_that_are_not_one_for_each_bin(row, name, params, pooled, groups):
    """Of more groups than bins some are read by none; their gradient is zero."""
    random = np.random.default_rng(pooled)
    given, channels = with_sizes(name, params, (pooled, pooled), 0.5, (2, 2), 3, groups)
    data = distinct(random, (2, channels, 9, 17), np.float32)
    for count in (6, 30):  # few boxes, and more
        rois = random_rois(random, count, 2, 9, 17, 0.5)
        expected = reference.separable(row, data, rois, (pooled, pooled), 0.5, (2, 2), groups)
        invocation = call(name, data, rois, **given)
        assert_close(invocation.outputs[0], expected.out, np.float32, row)
        grad_out = random.integers(-4, 5, expected.out.shape).astype(np.float32)
        found = gradient(invocation, grad_out, "write", [np.full_like(a, 7) for a in (data, rois)])[0]
        assert_close(found, expected.gradient(grad_out), np.float32, f"{row}, gradient")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [0, 1, 2])
def test_deformable(classes, dtype):
    random = np.random.default_rng(classes)
    for (height, width), pooled, groups, parts in [((9, 8), 3, 3, 3), ((1, 2), 2, 1, 1), ((14, 20), 5, 2, 3)]:
        data = distinct(random, (2, 4 * groups**2, height, width), dtype)
        rois = random_rois(random, 6, 2, height, width, 0.5, dtype)
        trans = random.normal(size=(6, 2 * classes, parts, parts)).astype(dtype)
        params = {
            "spatial_scale": 0.5, "output_dim": 4, "group_size": groups, "pooled_size": pooled,
            "part_size": parts, "sample_per_part": 3, "trans_std": 0.1, "no_trans": not classes,
        }  # fmt: skip
        inputs = (data, rois, trans) if classes else (data, rois)
        invocation = call("_contrib_DeformablePSROIPooling", *inputs, **params)
        expected = reference.separable(
            "contrib.DeformablePSROIPooling", data, rois, (pooled, pooled), 0.5, (3, 3), groups,
            trans if classes else None, np.float32(0.1),
        )  # fmt: skip
        assert_close(invocation.outputs[0], expected.out, dtype, (height, width))
        grad_out = random.integers(-4, 5, expected.out.shape).astype(dtype)
        found = gradient(invocation, grad_out)[0]
        assert_close(found, expected.gradient(grad_out), dtype, ("gradient", height, width))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rotated(dtype):
    random = np.random.default_rng(0)
    for (height, width), ratio in [((9, 8), (2, 2)), ((1, 3), (0, 0)), ((21, 35), (0, 0))]:
        data = random.normal(size=(2, 3, height, width)).astype(dtype)
        rois = random_rois(random, 6, 2, height, width, 0.5, dtype)
        rois[:, 3:] = abs(rois[:, 3:] - rois[:, 1:3])
        rois = np.concatenate([rois, random.uniform(-180, 180, (6, 1))], axis=1).astype(dtype)
        invocation = call(
            "_contrib_RROIAlign", data, rois, pooled_size=(3, 2), spatial_scale=0.5, sampling_ratio=ratio
        )
        expected = reference.rotated(data, rois, (3, 2), 0.5, ratio)
        assert_close(invocation.outputs[0], expected.out, dtype, (height, width))
        grad_out = random.integers(-4, 5, expected.out.shape).astype(dtype)
        found = gradient(invocation, grad_out)[0]
        assert_close(found, expected.gradient(grad_out), dtype, ("gradient", height, width))


# Numeric gradients: the operators are linear, or piecewise linear, in the data


def check_numeric(name, arrays, params, grad_out, wanted, step):
    """Compare the gradient of input ``wanted`` with central differences of the output."""
    found = gradient(call(name, *arrays, **params), grad_out)[wanted]
    random = np.random.default_rng(0)
    for index in random.permutation(arrays[wanted].size)[:40]:
        place = np.unravel_index(index, arrays[wanted].shape)
        outs = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[wanted][place] += sign * step
            out = call(name, *moved, **params).outputs[0]
            outs.append((np.where(np.isfinite(out), out, 0) * grad_out).sum())
        numeric = (outs[0] - outs[1]) / (2 * step)
        assert numeric == pytest.approx(found[place], rel=1e-6, abs=1e-6), (name, place)


@pytest.mark.parametrize(("row", "name", "params"), SEPARABLE, ids=[case[0] for case in SEPARABLE])
def test_numeric_gradient(row, name, params):
    if row.endswith("as_released"):
        pytest.skip("torchvision's own gradient is not that of its forward pass")
    random = np.random.default_rng(5)
    given, channels = with_sizes(name, params, (2, 3), 0.5, (2, 2), 2, 2)
    data = distinct(random, (2, channels, 6, 7), np.float64)
    rois = random_rois(random, 5, 2, 6, 7, 0.5, np.float64)
    grad_out = random.normal(size=(5, 2, 2, 3))
    check_numeric(name, [data, rois], given, grad_out, 0, 1e-3)


@pytest.mark.parametrize("wanted", [0, 2], ids=["data", "trans"])
def test_numeric_gradient_of_deformable(wanted):
    random = np.random.default_rng(6)
    data = random.normal(size=(2, 16, 9, 11))
    rois = random_rois(random, 5, 2, 9, 11, 0.5, np.float64)
    trans = random.normal(size=(5, 4, 3, 3))
    params = {
        "spatial_scale": 0.5, "output_dim": 4, "group_size": 2, "pooled_size": 3, "sample_per_part": 2,
        "trans_std": 0.1,
    }  # fmt: skip
    grad_out = random.normal(size=(5, 4, 3, 3))
    check_numeric("_contrib_DeformablePSROIPooling", [data, rois, trans], params, grad_out, wanted, 1e-7)


def test_numeric_gradient_of_rotated():
    random = np.random.default_rng(7)
    data = random.normal(size=(2, 2, 8, 9))
    rois = np.array([[0, 8, 7, 9, 6, 30], [1, 3, 12, 8, 14, -75], [1, 9, 9, 0.1, 40, 200]])
    params = {"pooled_size": (2, 3), "spatial_scale": 0.5, "sampling_ratio": 0}
    check_numeric("_contrib_RROIAlign", [data, rois], params, random.normal(size=(3, 2, 2, 3)), 0, 1e-3)


@pytest.mark.parametrize("row", ["ROIAlign/mmcv", "ROIAlign/mmcv/max", "ROIPooling/mxnet"])
def test_a_map_of_more_than_a_tile(row):
    """Boxes as tall as the map, of which only some rows are kept at a time."""
    name, params = next((name, params) for case, name, params in SEPARABLE if case == row)
    random = np.random.default_rng(8)
    data = distinct(random, (1, 2, 460, 40), np.float32)
    rois = np.array(
        [[0, 3, 2, 31, 455], [0, 0, 400, 39, 459], [0, 5, 0, 9, 300], [0, 1, 50, 38, 52]], np.float32
    )
    given, _ = with_sizes(name, params, (3, 2), 1.0, (2, 2), 2, 1)
    invocation = call(name, data, rois, **given)
    expected = reference.separable(row, data, rois, (3, 2), 1.0, (2, 2))
    assert_close(invocation.outputs[0], expected.out, np.float32, row)
    grad_out = random.integers(-4, 5, expected.out.shape).astype(np.float32)
    assert_close(gradient(invocation, grad_out)[0], expected.gradient(grad_out), np.float32, row)
