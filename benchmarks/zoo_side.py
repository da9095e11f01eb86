"""One side of ``benchmarks/zoo.py``: a saved model in one library. Must run on Python 3.8, too.

Called with the library's name and the model's folder. It says when it is ready, makes as many forward
passes as each line of input says, and answers with the wall and CPU seconds of each; at the end, with its
peak memory.
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


def run(executor):
    for output in executor.forward(is_train=False):
        output.wait_to_read()


def main(library, folder):
    folder = Path(folder)
    with np.load(str(folder / "inputs.npz")) as file:
        data = dict(file)
    if library == "mxnet":
        import custom_ops
        import mxnet

        custom_ops.register(mxnet)
    executor = (bind_mxnet if library == "mxnet" else bind_roiops)(folder, data)
    for _ in range(2):
        run(executor)
    answers = os.fdopen(os.dup(1), "w")
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        passes = []
        for _ in range(int(line)):
            start, cpu = time.perf_counter(), time.process_time()
            run(executor)
            passes.append([time.perf_counter() - start, time.process_time() - cpu])
        answers.write(json.dumps(passes) + "\n")
        answers.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answers.write(json.dumps(peak) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
