"""An ONNX file in one engine, for ``verify/check_engines.py``.

Called with the engine's name, the file, an ``.npz`` file of inputs by name, and one for the outputs in order.
Only the engine is imported.
"""

import sys

import numpy as np


def onnxruntime(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def openvino(path):
    import openvino

    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()

    def run(feeds):
        request.infer(feeds)
        return [request.get_tensor(each).data.copy() for each in compiled.outputs]

    return run


def reference(path):
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    return lambda feeds: evaluator.run(None, feeds)


def opencv(path):
    import cv2

    net = cv2.dnn.readNetFromONNX(path)
    names = net.getUnconnectedOutLayersNames()

    def run(feeds):
        for name, array in feeds.items():
            net.setInput(array, name)
        return net.forward(names)

    return run


def main(engine, model, inputs, outputs):
    with np.load(inputs) as file:
        feeds = dict(file)
    try:
        got = globals()[engine](model)(feeds)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    np.savez(outputs, *got)


if __name__ == "__main__":
    main(*sys.argv[1:])
