"""Chainer's ROI functions on the CPU: outputs, argmax where there is one, and gradients.

Chainer's CPU code rounds halves to even and its GPU code away from zero: boxes on a rounding tie
are left out of the pooling functions. Boxes here are (ymin, xmin, ymax, xmax).
"""

import warnings

import numpy as np

from golden_format import CaseFile
from roi_inputs import KINDS, common_head_gradient, common_vector, roi_inputs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import chainer
    from chainer.functions.pooling import (
        roi_average_align_2d,
        roi_average_pooling_2d,
        roi_max_align_2d,
        roi_max_pooling_2d,
        roi_pooling_2d,
    )

NODES = {
    "roi_average_pooling_2d": roi_average_pooling_2d.ROIAveragePooling2D,
    "roi_max_pooling_2d": roi_max_pooling_2d.ROIMaxPooling2D,
    "roi_average_align_2d": roi_average_align_2d.ROIAverageAlign2D,
    "roi_max_align_2d": roi_max_align_2d.ROIMaxAlign2D,
}
UNTIED_KINDS = tuple(kind for kind in KINDS if "ties" not in kind)
ROW_FIRST = [2, 1, 4, 3]  # x1, y1, x2, y2 -> ymin, xmin, ymax, xmax


def store(file, label, op, params, arrays, variable, out, head_gradient):
    if head_gradient is not None:
        out.grad = arrays["grad_out"] = head_gradient(out.shape)
        out.backward()
        arrays["grad_data"] = variable.grad
    file.add(op, label, params, arrays)


def record(file, label, op, params, data, rois, head_gradient):
    """One of the four functions that take (R, 4) boxes and their batch indices."""
    boxes, indices = np.ascontiguousarray(rois[:, ROW_FIRST]), rois[:, 0].astype(np.int32)
    variable = chainer.Variable(data)
    node = NODES[op](**params)
    out = node(variable, boxes, indices)
    arrays = {"data": data, "rois": boxes, "roi_indices": indices, "out": out.array}
    if "max" in op:
        arrays["argmax"] = node.argmax_data
    store(file, label, op, params, arrays, variable, out, head_gradient)


def record_roi_pooling(file, label, params, data, rois, head_gradient):
    variable = chainer.Variable(data)
    out = roi_pooling_2d.roi_pooling_2d(variable, rois, **params)
    arrays = {"data": data, "rois": rois, "out": out.array}
    store(file, label, "roi_pooling_2d", params, arrays, variable, out, head_gradient)


def boxes_first(file):
    """roi_pooling_2d; its backward is right only for boxes inside the map and not reversed."""
    for case in roi_inputs(seed=21, count=48, kinds=UNTIED_KINDS):
        params = {"outh": case.pooled[0], "outw": case.pooled[1], "spatial_scale": case.scale}
        head_gradient = case.head_gradient if case.kind == "inside" else None
        record_roi_pooling(file, case.kind, params, case.distinct(case.pick(1, 2)), case.rois, head_gradient)
    for case in roi_inputs(seed=26, count=24, kinds=("inside",)):
        params = {"outh": case.pooled[0], "outw": case.pooled[1], "spatial_scale": case.scale}
        data = case.distinct(case.pick(1, 2))
        record_roi_pooling(file, case.kind, params, data, case.rois, case.head_gradient)


def pooling(file, op, seed):
    for case in roi_inputs(seed, kinds=UNTIED_KINDS):
        params = {"outsize": case.pooled, "spatial_scale": case.scale}
        record(file, case.kind, op, params, case.distinct(case.pick(1, 2)), case.rois, case.head_gradient)


def align(file, op, seed):
    data, rois, scale, pooled = common_vector()
    params = {"outsize": pooled, "spatial_scale": scale, "sampling_ratio": 2}
    record(file, "common vector", op, params, data, rois, common_head_gradient)
    for case in roi_inputs(seed):
        ratio = case.pick(None, 1, 2, 3, (2, 1), (1, 3), (2, None))
        pooled = case.pooled
        if case.kind in ("integers", "ties", "image ties"):
            # Chainer computes positions in double precision: keep those that are exact in float32 too.
            ratio, pooled = case.pick(None, 1, 2, 4), case.pick((1, 1), (2, 2), (1, 4), (4, 2))
        params = {"outsize": pooled, "spatial_scale": case.scale, "sampling_ratio": ratio}
        record(file, case.kind, op, params, case.noise(case.pick(1, 2)), case.rois, case.head_gradient)


def main():
    makers = {
        "roi_pooling_2d": boxes_first,
        "roi_max_pooling_2d": lambda file: pooling(file, "roi_max_pooling_2d", 22),
        "roi_average_pooling_2d": lambda file: pooling(file, "roi_average_pooling_2d", 23),
        "roi_max_align_2d": lambda file: align(file, "roi_max_align_2d", 24),
        "roi_average_align_2d": lambda file: align(file, "roi_average_align_2d", 25),
    }
    for name, maker in makers.items():
        file = CaseFile("roi/chainer_" + name, "chainer", chainer.__version__, __file__)
        maker(file)
        file.save()


if __name__ == "__main__":
    main()
