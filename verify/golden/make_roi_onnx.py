"""onnxruntime's RoiAlign and MaxRoiPool: outputs only, as the runtime has no gradients."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from golden_format import CaseFile
from roi_inputs import common_vector, roi_inputs, wide_input

onnxruntime.set_default_logger_severity(3)  # it says of every maximum that it is not the interpolated one

ELEMENT = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


def run(op, params, inputs, opset):
    values = [helper.make_tensor_value_info(k, ELEMENT[v.dtype], v.shape) for k, v in inputs.items()]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    node = helper.make_node(op, list(inputs), ["out"], **params)
    graph = helper.make_graph([node], "case", values, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    return session.run(None, inputs)[0]


def record_align(file, label, data, rois, params, opset=16):
    inputs = {"data": data, "rois": np.ascontiguousarray(rois[:, 1:])}
    inputs["batch_indices"] = rois[:, 0].astype(np.int64)
    out = run("RoiAlign", params, inputs, opset)
    file.add("RoiAlign", label, dict(params, opset=opset), dict(inputs, out=out))


def align(file, mode, reduction="avg"):
    # Opset 10 has no such attribute, and means what 16 calls output_half_pixel.
    transformation = {} if mode == "opset10" else {"coordinate_transformation_mode": mode}
    opset = 10 if mode == "opset10" else 16
    data, rois, scale, _ = common_vector()
    rois = rois[:3] if mode == "half_pixel" else rois
    if reduction == "max":
        transformation["mode"] = "max"
    params = dict(output_height=2, output_width=2, sampling_ratio=2, spatial_scale=scale, **transformation)
    record_align(file, "common vector", data, rois, params, opset)
    seed, count = {"half_pixel": (31, 32), "output_half_pixel": (32, 32), "opset10": (33, 8)}[mode]
    for case in roi_inputs(seed + (4 if reduction == "max" else 0), count):
        # Adaptive sampling of a reversed box is undefined where boxes have no least size.
        fixed = mode == "half_pixel" and case.kind == "reversed"
        ratio = case.pick(1, 2, 3) if fixed else case.pick(0, 1, 2, 3)
        height, width = case.pooled
        params = {"output_height": height, "output_width": width, "sampling_ratio": ratio}
        params.update(spatial_scale=case.scale, **transformation)
        record_align(file, case.kind, case.distinct(case.pick(1, 2, 3)), case.rois, params, opset)


def pool(file):
    op = "MaxRoiPool"
    for case in roi_inputs(34):
        params = {"pooled_shape": case.pooled, "spatial_scale": case.scale}
        inputs = {"data": case.distinct(case.pick(1, 2, 3)), "rois": case.rois}
        file.add(op, case.kind, params, dict(inputs, out=run(op, params, inputs, 13)))
    wide = wide_input()
    params = {"pooled_shape": wide.pooled, "spatial_scale": wide.scale}
    inputs = {"data": wide.distinct(1), "rois": wide.rois}
    file.add(op, "float32 bin edges", params, dict(inputs, out=run(op, params, inputs, 13)))


def main():
    makers = {
        "RoiAlign_half_pixel": lambda file: align(file, "half_pixel"),
        "RoiAlign_output_half_pixel": lambda file: align(file, "output_half_pixel"),
        "RoiAlign_opset10": lambda file: align(file, "opset10"),
        "RoiAlign_max_half_pixel": lambda file: align(file, "half_pixel", "max"),
        "RoiAlign_max_output_half_pixel": lambda file: align(file, "output_half_pixel", "max"),
        "MaxRoiPool": pool,
    }
    for name, maker in makers.items():
        file = CaseFile("roi/onnxruntime_" + name, "onnxruntime", onnxruntime.__version__, __file__)
        maker(file)
        file.save()


if __name__ == "__main__":
    main()
