"""One side of ``benchmarks/zoo.py``: a saved model in one library. Must run on Python 3.8, too.

Called with the library's name and the model's folder, or its ONNX file. It says when it is ready, makes as
many forward passes as each line of input says, and answers with the wall and CPU seconds of each; at the end,
with its peak memory.
"""

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402


def bind_mxnet(folder, data):
    import mxnet as mx

    symbol = mx.sym.load(str(folder / "model-symbol.json"))
    saved = mx.nd.load(str(folder / "model-0000.params"))
    values = {name.split(":", 1)[1]: value for name, value in saved.items()}
    values.update((name, mx.nd.array(value)) for name, value in data.items())
    shapes = {name: value.shape for name, value in values.items() if name in symbol.list_inputs()}
    for name, shape in zip(symbol.list_arguments(), symbol.infer_shape(**shapes)[0]):  # noqa: B905 (Python 3.8)
        if name not in values:  # the label of a loss
            values[name] = mx.nd.zeros(shape)

    def bind(fuse):
        os.environ["MXNET_SUBGRAPH_BACKEND"] = "MKLDNN" if fuse else "NONE"
        arguments = {name: values[name] for name in symbol.list_arguments()}
        states = {name: values[name] for name in symbol.list_auxiliary_states()}
        return symbol.bind(mx.cpu(), arguments, grad_req="null", aux_states=states)

    executor = bind(fuse=True)
    try:
        for _ in range(2):
            run(executor)
    except mx.MXNetError:  # on some graphs the second pass of a fused executor fails within oneDNN
        executor = bind(fuse=False)
    return executor


def bind_roiops(folder, data):
    import custom_ops

    import roiops

    custom_ops.register(roiops)
    model = roiops.models.load(folder / "model-symbol.json", folder / "model-0000.params")
    executor = model.bind(**{name: array.shape for name, array in data.items()})
    for name, array in data.items():
        executor.arg_dict[name][:] = array
    return executor


def run_onnxruntime(path, data, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, data)


def run_openvino(path, data, threads):
    import openvino

    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    settings["INFERENCE_NUM_THREADS"] = threads
    request = openvino.Core().compile_model(str(path), "CPU", settings).create_infer_request()
    for name, array in data.items():
        request.set_tensor(name, openvino.Tensor(array))
    return request.infer


def runner(library, path):
    """A function of no arguments that makes a forward pass."""
    inputs = path.with_suffix(".inputs.npz") if path.suffix == ".onnx" else path / "inputs.npz"
    with np.load(str(inputs)) as file:
        data = dict(file)
    threads = int(os.environ["OMP_NUM_THREADS"])
    if library == "onnxruntime":
        return run_onnxruntime(path, data, threads)
    if library == "openvino":
        return run_openvino(path, data, threads)
    if library == "mxnet":
        import custom_ops
        import mxnet

        custom_ops.register(mxnet)
    executor = (bind_mxnet if library == "mxnet" else bind_roiops)(path, data)
    return lambda: run(executor)


def run(executor):
    for output in executor.forward(is_train=False):
        output.wait_to_read()


def main(library, path):
    make_pass = runner(library, Path(path))
    for _ in range(2):
        make_pass()
    answers = os.fdopen(os.dup(1), "w")
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        passes = []
        for _ in range(int(line)):
            start, cpu = time.perf_counter(), time.process_time()
            make_pass()
            passes.append([time.perf_counter() - start, time.process_time() - cpu])
        answers.write(json.dumps(passes) + "\n")
        answers.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answers.write(json.dumps(peak) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
