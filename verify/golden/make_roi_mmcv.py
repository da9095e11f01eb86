"""mmcv's roi_align and roi_align_rotated on the CPU, compiled from its own sources (verify/mmcv_source.py).

Of a maximum mmcv keeps the position of the winning sample, and takes a y of -1 for "none": the gradient of a
sample that lies exactly there is lost, so that it is left out where one does.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from golden_format import CaseFile
from roi_inputs import common_head_gradient, common_vector, roi_inputs

sys.path.append(str(Path(__file__).resolve().parent.parent))

from mmcv_source import compiled, version


def align(ext, file, label, params, data, rois, head_gradient):
    leaf, boxes = torch.from_numpy(data), torch.from_numpy(rois)
    size = tuple(params["output_size"])
    out = torch.zeros(len(rois), data.shape[1], *size, dtype=leaf.dtype)
    where = [torch.full_like(out, -1.0) for _ in range(2)]
    mode = {"max": 0, "avg": 1}[params["pool_mode"]]
    numbers = (*size, params["spatial_scale"], params["sampling_ratio"], mode, params["aligned"])
    ext.roi_align_forward(leaf, boxes, out, *where, *numbers)
    grad_out = head_gradient(tuple(out.shape)).astype(data.dtype)
    grad = torch.zeros_like(leaf)
    ext.roi_align_backward(torch.from_numpy(grad_out), boxes, *where, grad, *numbers)
    arrays = {"data": data, "rois": rois, "out": out.numpy(), "grad_out": grad_out, "grad_data": grad.numpy()}
    if mode == 0:
        arrays["argmax_y"], arrays["argmax_x"] = y, x = [position.numpy() for position in where]
        if ((y == -1) != (x == -1)).any():
            del arrays["grad_out"], arrays["grad_data"]
    file.add("roi_align", label, params, arrays)


def rotated(ext, file, label, params, data, rois, head_gradient):
    leaf, boxes = torch.from_numpy(data), torch.from_numpy(rois)
    size = tuple(params["output_size"])
    out = torch.zeros(len(rois), data.shape[1], *size, dtype=leaf.dtype)
    numbers = (
        *size, params["spatial_scale"], params["sampling_ratio"], params["aligned"], params["clockwise"]
    )  # fmt: skip
    ext.roi_align_rotated_forward(leaf, boxes, out, *numbers)
    grad_out = head_gradient(tuple(out.shape)).astype(data.dtype)
    grad = torch.zeros_like(leaf)
    ext.roi_align_rotated_backward(torch.from_numpy(grad_out), boxes, grad, *numbers)
    arrays = {"data": data, "rois": rois, "out": out.numpy(), "grad_out": grad_out, "grad_data": grad.numpy()}
    file.add("roi_align_rotated", label, params, arrays)


def boxes_of(case, aligned):
    """Boxes that mmcv accepts: with ``aligned`` it refuses reversed ones."""
    rois = case.rois.copy()
    if aligned:
        low, high = np.minimum(rois[:, 1:3], rois[:, 3:]), np.maximum(rois[:, 1:3], rois[:, 3:])
        rois[:, 1:] = np.concatenate([low, high], axis=1)
    return rois


def record_align(ext, mode, aligned, seed, version):
    name = f"roi/mmcv_roi_align_{mode}_{'aligned' if aligned else 'unaligned'}"
    file = CaseFile(name, "mmcv", version, __file__)
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale, "sampling_ratio": 2}
    params.update(pool_mode=mode, aligned=aligned)
    first = rois[:3] if aligned else rois
    align(ext, file, "common vector", params, data, first, common_head_gradient)
    for case in roi_inputs(seed, 24):
        ratio = case.pick(1, 2, 3) if mode == "max" and aligned else case.pick(0, 1, 2, 3)
        params = {"output_size": case.pooled, "spatial_scale": case.scale, "sampling_ratio": ratio}
        params.update(pool_mode=mode, aligned=aligned)
        data = case.distinct(case.pick(1, 2, 3))
        align(ext, file, case.kind, params, data, boxes_of(case, aligned), case.head_gradient)
    file.save()


def turned_boxes(case):
    """The case's boxes as centre, size and an angle in radians."""
    low, high = (
        np.minimum(case.rois[:, 1:3], case.rois[:, 3:]),
        np.maximum(case.rois[:, 1:3], case.rois[:, 3:]),
    )
    angle = case.rng.uniform(-3.5, 3.5, (len(case.rois), 1))
    rois = np.concatenate([case.rois[:, :1], (low + high) / 2, high - low, angle], axis=1)
    return rois.astype(np.float32)


def record_rotated(ext, aligned, clockwise, seed, version):
    words = ["aligned"] * aligned + ["clockwise"] * clockwise
    file = CaseFile("_".join(["roi/mmcv_roi_align_rotated", *words]), "mmcv", version, __file__)
    for case in roi_inputs(seed, 16):
        params = {"output_size": case.pooled, "spatial_scale": case.scale}
        params.update(sampling_ratio=case.pick(0, 1, 2, 3), aligned=aligned, clockwise=clockwise)
        data = case.distinct(case.pick(1, 2, 3))
        rotated(ext, file, case.kind, params, data, turned_boxes(case), case.head_gradient)
    file.save()


def main():
    torch.set_num_threads(1)
    ext = compiled()
    for seed, (mode, aligned) in enumerate(
        (mode, aligned) for mode in ("avg", "max") for aligned in (False, True)
    ):
        record_align(ext, mode, aligned, 41 + seed, version())
    for seed, (aligned, clockwise) in enumerate((a, c) for a in (False, True) for c in (False, True)):
        record_rotated(ext, aligned, clockwise, 51 + seed, version())


if __name__ == "__main__":
    main()
