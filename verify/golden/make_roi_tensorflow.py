"""TensorFlow's tf.image.crop_and_resize: outputs, and gradients of the image and of the boxes.

TensorFlow's images have the channels last; they are recorded channels first. Boxes are (y1, x1, y2, x2),
normalised, with the image of each in an array of its own.
"""

import numpy as np
import tensorflow as tf

from golden_format import CaseFile
from roi_inputs import common_head_gradient, common_vector, roi_inputs


def record(file, label, params, data, rois, head_gradient):
    """``rois`` are (image, x1, y1, x2, y2) in pixels of the map."""
    height, width = data.shape[2:]
    span = np.array([max(height - 1, 1), max(width - 1, 1)] * 2, np.float32)
    boxes = (rois[:, [2, 1, 4, 3]] / span).astype(np.float32)
    indices = rois[:, 0].astype(np.int32)
    image, edges = tf.constant(np.moveaxis(data, 1, -1)), tf.constant(boxes)
    with tf.GradientTape() as tape:
        tape.watch([image, edges])
        out = tf.image.crop_and_resize(
            image, edges, indices, params["crop_size"], params["method"], params["extrapolation_value"]
        )
        found = np.moveaxis(out.numpy(), -1, 1)
        grad_out = head_gradient(found.shape)
        total = tf.reduce_sum(out * tf.constant(np.moveaxis(grad_out, 1, -1)))
    grad_image, grad_edges = tape.gradient(total, [image, edges])
    # The index column has no gradient.
    grad_rois = np.concatenate([np.zeros((len(boxes), 1), np.float32), grad_edges.numpy()], axis=1)
    arrays = {
        "data": data, "rois": boxes, "box_indices": indices, "out": found, "grad_out": grad_out,
        "grad_data": np.moveaxis(grad_image.numpy(), -1, 1), "grad_rois": grad_rois,
    }  # fmt: skip
    file.add("crop_and_resize", label, params, arrays)


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    for seed, method in enumerate(("bilinear", "nearest")):
        file = CaseFile(f"roi/tensorflow_crop_and_resize_{method}", "tensorflow", tf.__version__, __file__)
        data, rois, scale, _ = common_vector()
        rois = np.concatenate([rois[:, :1], rois[:, 1:] * scale], axis=1)
        params = {"crop_size": (2, 3), "method": method, "extrapolation_value": 0.0}
        record(file, "common vector", params, data, rois, common_head_gradient)
        for case in roi_inputs(61 + seed, 32):
            value = float(case.pick(0, 0, -2, 7))
            params = {"crop_size": case.pooled, "method": method, "extrapolation_value": value}
            rois = np.concatenate([case.rois[:, :1], case.rois[:, 1:] * case.scale], axis=1)
            rois = rois.astype(np.float32)
            record(file, case.kind, params, case.distinct(case.pick(1, 2, 3)), rois, case.head_gradient)
        file.save()


if __name__ == "__main__":
    main()
