"""Every operator against what its peers computed: values, where maxima were found, gradients."""

import dataclasses

import golden_files
import numpy as np
import peer_calls
import pytest
from roi_cases import call, gradient

from roiops.kernels import geometry
from roiops.kernels.rules import PIXELS, Pooling, is_maximum
from roiops.operators.roi.dialects import TABLE, named

#: Integer bins and maxima of them are exact; sums are added up in another order than the peer's.
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


#: The numbers of an axis that have the type of the data; compiled functions give Python's.
FLOATS = "start", "length", "moved"

#: (row of the table of dialects, golden file)
FILES = [(row, file) for row in TABLE.values() for file in row.golden]


def test_every_file_is_read():
    assert sorted({file for _, file in FILES}) == [
        name.removeprefix("roi/") for name in golden_files.names("roi")
    ]


def test_an_unknown_peer_is_refused():
    case = golden_files.load("roi/torchvision_roi_pool")[0]
    stranger = dataclasses.replace(case, peer="caffe3")
    with pytest.raises(ValueError, match=r"no translation for peer 'caffe3' \(there are: mxnet, torchvision"):
        peer_calls.translate(named()["ROIPooling/torchvision"], stranger)


def assert_agrees(found, expected, exact, what, largest=1.0):
    """``largest``: what the terms of the largest sum add up to without their signs, if that is known."""
    if exact:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    finite = np.isfinite(expected)
    assert (found == expected)[~finite].all(), what
    largest = max(largest, np.abs(expected[finite]).max(initial=0))
    error = np.abs(found[finite].astype(np.float64) - expected[finite]).max(initial=0)
    assert error <= TOLERANCE[str(expected.dtype)] * largest, f"{what}: off by {error} of {largest}"


def positions(row, given, inputs, invocation):
    """Where the maxima lie on the map, as mmcv says it: y and x, -1 for none."""
    data, rois = inputs
    out, argmax = invocation.outputs
    how = Pooling(row.rules, given["spatial_scale"], (given["sampling_ratio"],) * 2)
    setting = geometry.setting_of(how, data.dtype, data.shape, out.shape)
    found = np.full((2, *out.shape), -1, data.dtype)
    for r, c, i, j in zip(*np.nonzero(argmax >= 0), strict=True):
        axes = [geometry.Axis(*axis) for axis in geometry.box_axes(row.rules, rois, r, setting)]
        axes = [
            axis._replace(**{name: data.dtype.type(getattr(axis, name)) for name in FLOATS}) for axis in axes
        ]
        grids = [geometry.bin_grid(row.rules, axis, k) for axis, k in zip(axes, (i, j), strict=True)]
        places = geometry.unflat_sample(int(argmax[r, c, i, j]), *grids)
        for at, (axis, k, place, grid) in enumerate(zip(axes, (i, j), places, grids, strict=True)):
            found[at, r, c, i, j] = geometry.position(row.rules, axis, k, place, grid.count)
    return found


@pytest.mark.parametrize(("row", "file"), FILES, ids=[f"{row.name}-{file}" for row, file in FILES])
def test_golden(row, file):
    for case in golden_files.load("roi/" + file):
        name, given, inputs = peer_calls.translate(row, case)
        invocation = call(name, *inputs, **given)
        exact = row.rules.samples == PIXELS and is_maximum(row.rules)
        assert_agrees(invocation.outputs[0], case["out"], exact, f"{case}")
        if "argmax" in case:
            np.testing.assert_array_equal(invocation.outputs[1], case["argmax"], err_msg=f"{case}, argmax")
        if "argmax_y" in case:
            # mmcv also says where an outside sample was that won as zero; here that is -1.
            inside = invocation.outputs[1] >= 0
            assert not case["out"][~inside].any()
            for found, axis in zip(positions(row, given, inputs, invocation), "yx", strict=True):
                expected = case["argmax_" + axis]
                np.testing.assert_array_equal(found[inside], expected[inside], err_msg=f"{case}, argmax")
        if "grad_out" in case:
            names = invocation.prop.list_arguments()
            gradients = dict(zip(names, gradient(invocation, case["grad_out"]), strict=True))
            unsigned = gradient(invocation, abs(case["grad_out"]))[0].max(initial=1)
            for name, found in gradients.items():
                if f"grad_{name}" in case:
                    largest = unsigned if name.startswith("data") else 1.0
                    assert_agrees(found, case[f"grad_{name}"], False, f"{case}, gradient of {name}", largest)
