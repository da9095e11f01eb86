"""Cells of convolutions from MXNet's mx.rnn, unrolled: tests/golden/recurrent_convolutions.npz."""

import json

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz

#: What each cell is made with, besides the shape of its input and the channels of its states.
CELLS = {
    "ConvRNNCell": {},
    "ConvLSTMCell": {"h2h_kernel": (5, 3), "h2h_dilate": (1, 2), "i2h_stride": (2, 1), "prefix": "a_"},
    "ConvGRUCell": {"activation": "tanh", "i2h_pad": (0, 1), "i2h_dilate": (1, 1)},
}
INPUT, STEPS, CHANNELS = (2, 3, 7, 6), 3, 4


def main():
    random = np.random.RandomState(0)
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_recurrent_convolutions.py"}
    arrays = {"meta": np.array(json.dumps(meta))}
    for name, options in CELLS.items():
        with mx.name.NameManager():
            cell = getattr(mx.rnn, name)(INPUT, CHANNELS, **options)
            inputs = [mx.sym.Variable(f"x{step}") for step in range(STEPS)]
            outputs = mx.sym.Group(cell.unroll(STEPS, inputs)[0])
        arrays[f"{name}_options"] = np.array(json.dumps(options))
        arrays[f"{name}_arguments"] = np.array(outputs.list_arguments())
        arrays[f"{name}_nodes"] = np.array([node["name"] for node in json.loads(outputs.tojson())["nodes"]])
        executor = outputs.simple_bind(mx.cpu(), **{f"x{step}": INPUT for step in range(STEPS)})
        for argument, array in executor.arg_dict.items():
            if "begin_state" not in argument:
                array[:] = random.uniform(-0.5, 0.5, array.shape)
                arrays[f"{name}_in_{argument}"] = array.asnumpy()
        for step, output in enumerate(executor.forward(is_train=True)):
            arrays[f"{name}_out_{step}"] = output.asnumpy()
        executor.backward([mx.nd.ones(output.shape) for output in executor.outputs])
        for argument, gradient in executor.grad_dict.items():
            arrays[f"{name}_grad_{argument}"] = gradient.asnumpy()
        weights = {key: value for key, value in executor.arg_dict.items() if "2h_" in key}
        arrays[f"{name}_pieces"] = np.array(sorted(cell.unpack_weights(weights)))
    write_npz(GOLDEN / "recurrent_convolutions.npz", arrays)


if __name__ == "__main__":
    main()
