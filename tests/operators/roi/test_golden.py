"""Every operator against what its peers computed: values, where maxima were found, gradients."""

import golden_files
import numpy as np
import pytest
from roi_cases import call, gradient

#: Integer bins and maxima of them are exact; sums are added up in another order than the peer's.
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def from_torchvision(**fixed):
    def translate(case):
        p = case.params
        given = {"pooled_size": p["output_size"], "spatial_scale": p["spatial_scale"], **fixed}
        given.update({name: p[name] for name in ("sampling_ratio", "aligned") if name in p})
        if "output_dim" in fixed:
            bins = p["output_size"][0] * p["output_size"][1]
            given["output_dim"] = case["data"].shape[1] // bins
        return given, case["rois"]

    return translate


def from_chainer(**fixed):
    def translate(case):
        p = case.params
        given = {"pooled_size": p.get("outsize") or (p["outh"], p["outw"]), **fixed}
        given["spatial_scale"] = p["spatial_scale"]
        if "sampling_ratio" in p:
            given["sampling_ratio"] = p["sampling_ratio"] or 0
        if case["rois"].shape[1] == 5:
            return given, case["rois"]
        rois = np.column_stack([case["roi_indices"], case["rois"][:, [1, 0, 3, 2]]])  # Chainer has y first
        return given, rois.astype(case["rois"].dtype)

    return translate


def from_onnx(case):
    p = case.params
    if "pooled_shape" in p:
        return {"pooled_size": p["pooled_shape"], "spatial_scale": p["spatial_scale"]}, case["rois"]
    given = {
        "pooled_size": (p["output_height"], p["output_width"]),
        "spatial_scale": p["spatial_scale"],
        "sampling_ratio": p["sampling_ratio"],
        "aligned": p.get("coordinate_transformation_mode") == "half_pixel",
    }
    return given, np.column_stack([case["batch_indices"], case["rois"]]).astype(case["rois"].dtype)


def from_mxnet(case):
    return case.params, case["rois"]


def released(case):
    given, rois = from_torchvision(dialect="torchvision", output_dim=None)(case)
    return {**given, "as_released": "reaches the border" in case.label}, rois


FILES = {
    "mxnet_ROIPooling": ("ROIPooling", from_mxnet),
    "mxnet_contrib_ROIAlign_plain": ("_contrib_ROIAlign", from_mxnet),
    "mxnet_contrib_ROIAlign_aligned": ("_contrib_ROIAlign", from_mxnet),
    "mxnet_contrib_ROIAlign_position_sensitive": ("_contrib_ROIAlign", from_mxnet),
    "mxnet_contrib_PSROIPooling": ("_contrib_PSROIPooling", from_mxnet),
    "mxnet_contrib_DeformablePSROIPooling": ("_contrib_DeformablePSROIPooling", from_mxnet),
    "mxnet_contrib_RROIAlign": ("_contrib_RROIAlign", from_mxnet),
    "torchvision_roi_pool": ("ROIPooling", from_torchvision(dialect="torchvision")),
    "torchvision_roi_align_aligned": ("ROIAlign", from_torchvision()),
    "torchvision_roi_align_unaligned": ("ROIAlign", from_torchvision()),
    "torchvision_ps_roi_pool": ("PSROIPooling", released),
    "torchvision_ps_roi_align": (
        "PSROIAlign",
        from_torchvision(dialect="torchvision", output_dim=None),
    ),
    "chainer_roi_pooling_2d": ("ROIPooling", from_chainer()),
    "chainer_roi_max_pooling_2d": ("ROIPooling", from_chainer(dialect="chainer")),
    "chainer_roi_average_pooling_2d": ("ROIPooling", from_chainer(dialect="chainer", mode="avg")),
    "chainer_roi_max_align_2d": ("ROIAlign", from_chainer(dialect="chainer", mode="max")),
    "chainer_roi_average_align_2d": ("ROIAlign", from_chainer(dialect="chainer")),
    "onnxruntime_MaxRoiPool": ("ROIPooling", from_onnx),
    "onnxruntime_RoiAlign_half_pixel": ("ROIAlign", from_onnx),
    "onnxruntime_RoiAlign_output_half_pixel": ("ROIAlign", from_onnx),
    "onnxruntime_RoiAlign_opset10": ("ROIAlign", from_onnx),
}


def test_every_file_is_read():
    assert sorted(FILES) == [name.removeprefix("roi/") for name in golden_files.names("roi")]


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


@pytest.mark.parametrize("file", FILES)
def test_golden(file):
    name, translate = FILES[file]
    for case in golden_files.load("roi/" + file):
        given, rois = translate(case)
        inputs = [case["data"], rois, *([case["trans"]] if "trans" in case else [])]
        invocation = call(name, *inputs, **given)
        exact = name == "ROIPooling" and given.get("mode") != "avg"
        assert_agrees(invocation.outputs[0], case["out"], exact, f"{case}")
        if "argmax" in case:
            np.testing.assert_array_equal(invocation.outputs[1], case["argmax"], err_msg=f"{case}, argmax")
        if "grad_data" in case:
            gradients = gradient(invocation, case["grad_out"])
            unsigned = gradient(invocation, abs(case["grad_out"]))[0].max(initial=1)
            assert_agrees(gradients[0], case["grad_data"], False, f"{case}, gradient", unsigned)
            if "grad_trans" in case:
                assert_agrees(gradients[2], case["grad_trans"], False, f"{case}, gradient of trans")
