"""Paddle's roi_align, roi_pool and psroi_pool on the CPU: outputs and gradients.

Paddle's boxes are (x1, y1, x2, y2), those of one image after another, with how many each image has.

With ``aligned`` its gradient, unlike its forward pass, takes boxes to be one feature pixel long at the least:
the gradient is left out where a box is shorter. Boxes on a tie are left out there too, because its two passes
then disagree by a last bit about which samples lie on the map.
"""

import numpy as np
import paddle

from golden_format import CaseFile
from roi_inputs import common_head_gradient, common_vector, roi_inputs


def record(file, label, op, params, data, rois, head_gradient):
    rois = rois[np.argsort(rois[:, 0], kind="stable")]
    indices = rois[:, 0].astype(np.int64)
    counts = np.bincount(indices, minlength=len(data)).astype(np.int32)
    leaf = paddle.to_tensor(data, stop_gradient=False)
    boxes = np.ascontiguousarray(rois[:, 1:])
    function = getattr(paddle.vision.ops, op)
    out = function(leaf, paddle.to_tensor(boxes), paddle.to_tensor(counts), **params)
    grad_out = head_gradient(tuple(out.shape))
    out.backward(paddle.to_tensor(grad_out))
    arrays = {
        "data": data, "rois": boxes, "batch_indices": indices, "out": out.numpy(), "grad_out": grad_out,
        "grad_data": leaf.grad.numpy(),
    }  # fmt: skip
    if params.get("aligned") and ((rois[:, 3:] - rois[:, 1:3]) * params["spatial_scale"] < 1).any():
        del arrays["grad_out"], arrays["grad_data"]
    file.add(op, label, params, arrays)


def save(name, seed, op, channels, options, first=slice(None), fixed=(), vector=True):
    """``options(case)`` are the parameters besides size and scale."""
    file = CaseFile("roi/paddle_" + name, "paddle", paddle.__version__, __file__)
    data, rois, scale, pooled = common_vector()
    params = {"output_size": pooled, "spatial_scale": scale, **options(None)}
    if vector:
        record(file, "common vector", op, params, data, rois[first], common_head_gradient)
    for case in roi_inputs(seed, 24):
        if case.kind in fixed:
            continue
        params = {"output_size": case.pooled, "spatial_scale": case.scale, **options(case)}
        data = case.distinct(channels(case))
        record(file, case.kind, op, params, data, case.rois, case.head_gradient)
    file.save()


def ratio(case, aligned):
    """Adaptive sampling of a box of no size gives NaN where boxes have no least size."""
    if case is None:
        return 2
    return case.pick(1, 2, 3) if aligned and case.kind == "zero size" else case.pick(-1, 1, 2, 3)


def main():
    paddle.set_device("cpu")
    few = lambda case: case.pick(1, 2, 3)  # noqa: E731
    for aligned in (False, True):
        save(
            "roi_align_aligned" if aligned else "roi_align_unaligned", 71 + aligned, "roi_align", few,
            lambda case, aligned=aligned: {"sampling_ratio": ratio(case, aligned), "aligned": aligned},
            # Adaptive sampling of a reversed box is undefined where boxes have no least size.
            slice(3) if aligned else slice(None), ("reversed", "ties") if aligned else (),
        )  # fmt: skip
    save("roi_pool", 73, "roi_pool", few, lambda case: {})
    save(
        "psroi_pool", 74, "psroi_pool",
        # It wants more than one channel.
        lambda case: case.pooled[0] * case.pooled[1] * case.pick(2, 3), lambda case: {}, vector=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
