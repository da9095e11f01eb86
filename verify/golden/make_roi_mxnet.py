"""MXNet's ROI operators: outputs, and gradients for a stored head gradient."""

import numpy as np

from golden_format import CaseFile
from mxnet_peer import VERSION, run
from roi_inputs import KINDS, RoiInput, common_head_gradient, common_vector, roi_inputs, wide_input

# A box of zero or negative size aborts the process in MXNet's aligned ROIAlign.
POSITIVE_KINDS = ("inside", "crossing", "outside", "integers", "ties", "image ties")


def record(file, label, op, params, inputs, head_gradient=None, random=False):
    """Run the operator once and store what went in and came out, float32 or (every ninth case) float64."""
    dtype = np.float64 if random and len(file.meta["cases"]) % 9 == 7 else np.float32
    inputs = {name: value.astype(dtype) for name, value in inputs.items()}
    out, head, gradients = run(op, params, inputs, head_gradient)
    arrays = dict(inputs, out=out, grad_out=head)
    arrays.update({"grad_" + name: value for name, value in gradients.items() if name != "rois"})
    file.add(op, label, params, arrays)


def pooling(file):
    op = "ROIPooling"
    data, rois, scale, pooled = common_vector()
    params = {"pooled_size": pooled, "spatial_scale": scale}
    record(file, "common vector", op, params, {"data": data, "rois": rois}, common_head_gradient)
    for case in roi_inputs(seed=1):
        params = {"pooled_size": case.pooled, "spatial_scale": case.scale}
        inputs = {"data": case.distinct(case.pick(1, 2, 3)), "rois": case.rois}
        record(file, case.kind, op, params, inputs, case.head_gradient, random=True)
    ignored = RoiInput(1, "inside", np.random.RandomState(7))
    ignored.rois[1, 0], ignored.rois[3, 0], ignored.rois[4, 0] = -1, -3, 0.75
    params = {"pooled_size": (2, 2), "spatial_scale": ignored.scale}
    inputs = {"data": ignored.distinct(2), "rois": ignored.rois}
    record(file, "negative and fractional batch index", op, params, inputs, ignored.head_gradient)
    wide = wide_input()
    params = {"pooled_size": wide.pooled, "spatial_scale": wide.scale}
    inputs = {"data": wide.distinct(1), "rois": wide.rois}
    record(file, "float32 bin edges", op, params, inputs, wide.head_gradient)


def align(file, flavour):
    op = "_contrib_ROIAlign"
    extra = {} if flavour == "plain" else {flavour: True}
    data, rois, scale, pooled = common_vector()
    rois = rois[:3] if flavour == "aligned" else rois
    for ratio in (2, -1):
        params = dict(pooled_size=pooled, spatial_scale=scale, sample_ratio=ratio, **extra)
        record(file, "common vector", op, params, {"data": data, "rois": rois}, common_head_gradient)
    kinds = POSITIVE_KINDS if flavour == "aligned" else KINDS
    for case in roi_inputs(seed={"plain": 2, "aligned": 3, "position_sensitive": 4}[flavour], kinds=kinds):
        if flavour == "aligned":
            case.rois[:, 3:] = np.maximum(case.rois[:, 3:], case.rois[:, 1:3] + np.float32(0.5 / case.scale))
        ratio = case.pick(-1, 0, 1, 2, 3)
        params = dict(pooled_size=case.pooled, spatial_scale=case.scale, sample_ratio=ratio, **extra)
        bins = case.pooled[0] * case.pooled[1] if flavour == "position_sensitive" else 1
        inputs = {"data": case.distinct(bins * case.pick(1, 2)), "rois": case.rois}
        record(file, case.kind, op, params, inputs, case.head_gradient, random=True)


def position_sensitive_pooling(file):
    op = "_contrib_PSROIPooling"
    data, rois, scale, _ = common_vector()
    params = {"spatial_scale": scale, "output_dim": 1, "pooled_size": 2, "group_size": 2}
    record(file, "common vector", op, params, {"data": data, "rois": rois}, common_head_gradient)
    for case in roi_inputs(seed=5):
        pooled, group = case.pick((2, 0), (2, 2), (3, 3), (3, 2), (4, 3), (1, 0), (2, 3))
        params = {"spatial_scale": case.scale, "output_dim": case.pick(1, 2), "pooled_size": pooled}
        if group:
            params["group_size"] = group
        inputs = {"data": case.distinct(params["output_dim"] * (group or pooled) ** 2), "rois": case.rois}
        record(file, case.kind, op, params, inputs, case.head_gradient, random=True)


def deformable_pooling(file):
    op = "_contrib_DeformablePSROIPooling"
    data, rois, scale, _ = common_vector()
    common = {"spatial_scale": scale, "output_dim": 1, "group_size": 2, "pooled_size": 2}
    common.update(part_size=2, sample_per_part=2)
    inputs = {"data": data, "rois": rois}
    record(file, "common vector", op, dict(common, no_trans=True), inputs, common_head_gradient)
    inputs["trans"] = ((np.arange(32) % 9 - 4) / 4).reshape(4, 2, 2, 2).astype(np.float32)
    record(file, "common vector", op, dict(common, trans_std=0.1), inputs, common_head_gradient)
    for shifted in (False, True):
        for case in roi_inputs(seed=7 if shifted else 6):
            pooled, group, part = case.pick((2, 2, 0), (3, 3, 0), (3, 2, 2), (2, 1, 1), (4, 2, 3), (1, 1, 0))
            params = {"spatial_scale": case.scale, "output_dim": case.pick(1, 2), "pooled_size": pooled}
            params.update(group_size=group, part_size=part, sample_per_part=case.pick(1, 2, 3, 4))
            inputs = {"data": case.distinct(params["output_dim"] * group**2), "rois": case.rois}
            if shifted:
                params["trans_std"] = case.pick(0.1, 0.3)
                classes = case.pick(1, params["output_dim"])
                shape = (len(case.rois), 2 * classes, part or pooled, part or pooled)
                inputs["trans"] = case.rng.normal(size=shape).astype(np.float32)
            else:
                params["no_trans"] = True
            record(file, case.kind, op, params, inputs, case.head_gradient, random=True)


def rotated_align(file):
    op = "_contrib_RROIAlign"
    data, _, scale, pooled = common_vector()
    rois = np.array([[0, 5, 4, 6, 5, 30], [1, 7, 8, 5, 4, -75]], np.float32)
    params = {"pooled_size": pooled, "spatial_scale": scale, "sampling_ratio": 2}
    record(file, "common vector", op, params, {"data": data, "rois": rois})
    for case in roi_inputs(seed=8, kinds=("inside", "crossing", "outside", "zero size")):
        x1, y1, x2, y2 = case.rois[:, 1:].T
        angle = case.rng.uniform(-180, 180, len(case.rois))
        rois = np.stack([case.rois[:, 0], (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, angle], 1)
        ratio = case.pick(-1, 0, 1, 2, 3)
        params = {"pooled_size": case.pooled, "spatial_scale": case.scale, "sampling_ratio": ratio}
        inputs = {"data": case.distinct(case.pick(1, 2, 3)), "rois": rois.astype(np.float32)}
        record(file, case.kind, op, params, inputs, random=True)


def main():
    makers = {
        "ROIPooling": pooling,
        "contrib_ROIAlign_plain": lambda file: align(file, "plain"),
        "contrib_ROIAlign_aligned": lambda file: align(file, "aligned"),
        "contrib_ROIAlign_position_sensitive": lambda file: align(file, "position_sensitive"),
        "contrib_PSROIPooling": position_sensitive_pooling,
        "contrib_DeformablePSROIPooling": deformable_pooling,
        "contrib_RROIAlign": rotated_align,
    }
    for name, maker in makers.items():
        file = CaseFile("roi/mxnet_" + name, "mxnet", VERSION, __file__)
        maker(file)
        file.save()


if __name__ == "__main__":
    main()
