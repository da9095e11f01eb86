"""torchvision's ROI operators: outputs, argmax where there is one, and gradients."""

import numpy as np
import torch
import torchvision

from golden_format import CaseFile
from roi_inputs import RoiInput, common_head_gradient, common_vector, roi_inputs, wide_input


def record(file, label, name, params, data, rois, head_gradient, double=False):
    dtype = np.float64 if double else np.float32
    data, rois = data.astype(dtype), rois.astype(dtype)
    leaf = torch.from_numpy(data).requires_grad_()
    boxes = torch.from_numpy(rois)
    out = getattr(torchvision.ops, name)(leaf, boxes, **params)
    grad_out = head_gradient(tuple(out.shape)).astype(dtype)
    out.backward(torch.from_numpy(grad_out))
    arrays = {"data": data, "rois": rois, "out": out.detach().numpy(), "grad_out": grad_out}
    arrays["grad_data"] = leaf.grad.numpy()
    if name == "roi_pool":
        sizes = params["spatial_scale"], *params["output_size"]
        _, argmax = torch.ops.torchvision.roi_pool(leaf.detach(), boxes, *sizes)
        arrays["argmax"] = argmax.numpy()
    file.add(name, label, params, arrays)


def is_double(file):
    return len(file.meta["cases"]) % 9 == 7


def extra_inputs():
    """No boxes at all, and a fractional batch index."""
    none = RoiInput(1, "inside", np.random.RandomState(9))
    none.rois = none.rois[:0]
    yield "no boxes", none
    fractional = RoiInput(3, "inside", np.random.RandomState(10))
    fractional.images = 2
    fractional.rois[:, 0] = (0.75, 1.25, 0, 1.5, 0.25)
    yield "fractional batch index", fractional


def pool(file):
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale}
    record(file, "common vector", "roi_pool", params, data, rois, common_head_gradient)
    cases = [(case.kind, case) for case in roi_inputs(seed=11)] + list(extra_inputs())
    for label, case in cases:
        params = {"output_size": case.pooled, "spatial_scale": case.scale}
        data = case.distinct(case.pick(1, 2, 3))
        record(file, label, "roi_pool", params, data, case.rois, case.head_gradient, is_double(file))
    wide = wide_input()
    params = {"output_size": wide.pooled, "spatial_scale": wide.scale}
    for double in (False, True):
        label = "float64 bin edges" if double else "float32 bin edges"
        record(file, label, "roi_pool", params, wide.distinct(1), wide.rois, wide.head_gradient, double)


def align(file, aligned):
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale, "sampling_ratio": 2, "aligned": aligned}
    record(file, "common vector", "roi_align", params, data, rois, common_head_gradient)
    cases = [(case.kind, case) for case in roi_inputs(seed=13 if aligned else 12)] + list(extra_inputs())
    for label, case in cases:
        # torchvision refuses an aligned box that is reversed on one axis when sampling is adaptive.
        fixed = aligned and case.kind == "reversed"
        ratio = case.pick(1, 2, 3) if fixed else case.pick(-1, 0, 1, 2, 3)
        params = {"output_size": case.pooled, "spatial_scale": case.scale}
        params.update(sampling_ratio=ratio, aligned=aligned)
        data = case.distinct(case.pick(1, 2, 3))
        record(file, label, "roi_align", params, data, case.rois, case.head_gradient, is_double(file))
    if aligned:
        both = RoiInput(4, "inside", np.random.RandomState(14))
        both.rois[:, 1:] = both.rois[:, [3, 4, 1, 2]]
        params = {"output_size": both.pooled, "spatial_scale": both.scale}
        params.update(sampling_ratio=-1, aligned=True)
        label = "reversed on both axes, adaptive"
        record(file, label, "roi_align", params, both.distinct(2), both.rois, both.head_gradient)


def reaches_border(case):
    """Whether a bin may touch the last row or column, which this peer's ps_roi_pool leaves out."""
    x1, y1, x2, y2 = np.floor(case.rois[:, 1:].T.astype(np.float64) * case.scale + 0.5)
    return bool((np.maximum(x2, x1 + 1) >= case.width).any() or (np.maximum(y2, y1 + 1) >= case.height).any())


def position_sensitive_pool(file, border):
    """The cases whose bins reach the border, where the peer has its defect, or the others."""
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale}
    if border:
        record(file, "common vector", "ps_roi_pool", params, data, rois, common_head_gradient)
    for index, case in enumerate(roi_inputs(seed=15, count=64)):
        if index % 2:  # no bin touches the last row or column
            case.height, case.width = max(case.height, 4), max(case.width, 4)
            limit = (np.array([case.width, case.height] * 2) - 2) / case.scale
            case.rois[:, 1:] = np.minimum(case.rois[:, 1:], limit.astype(np.float32))
        if reaches_border(case) != border:
            continue
        params = {"output_size": case.pooled, "spatial_scale": case.scale}
        data = case.distinct(case.pooled[0] * case.pooled[1] * case.pick(1, 2))
        record(file, case.kind, "ps_roi_pool", params, data, case.rois, case.head_gradient, is_double(file))


def position_sensitive_align(file):
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale, "sampling_ratio": 2}
    record(file, "common vector", "ps_roi_align", params, data, rois, common_head_gradient)
    for case in roi_inputs(seed=16):
        # Adaptive sampling gives NaN for a box of no size, and is undefined for a reversed one.
        fixed = case.kind in ("zero size", "reversed", "integers", "ties", "image ties")
        ratio = case.pick(1, 2, 3) if fixed else case.pick(-1, 0, 1, 2, 3)
        params = {"output_size": case.pooled, "spatial_scale": case.scale, "sampling_ratio": ratio}
        data = case.distinct(case.pooled[0] * case.pooled[1] * case.pick(1, 2))
        record(file, case.kind, "ps_roi_align", params, data, case.rois, case.head_gradient, is_double(file))


def main():
    torch.set_num_threads(1)
    makers = {
        "roi_pool": pool,
        "roi_align_unaligned": lambda file: align(file, aligned=False),
        "roi_align_aligned": lambda file: align(file, aligned=True),
        "ps_roi_pool": lambda file: position_sensitive_pool(file, border=False),
        "ps_roi_pool_border": lambda file: position_sensitive_pool(file, border=True),
        "ps_roi_align": position_sensitive_align,
    }
    for name, maker in makers.items():
        file = CaseFile("roi/torchvision_" + name, "torchvision", torchvision.__version__, __file__)
        maker(file)
        file.save()


if __name__ == "__main__":
    main()
