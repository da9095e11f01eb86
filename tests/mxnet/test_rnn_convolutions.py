"""Recurrent cells of convolutions beside MXNet's own."""

import json

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.errors import ParamError

STEPS, CHANNELS, INPUT = 3, 4, (2, 3, 7, 6)


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "recurrent_convolutions.npz") as file:
        return {key: file[key] for key in file.files if key != "meta"}


@pytest.mark.parametrize("name", ["ConvRNNCell", "ConvLSTMCell", "ConvGRUCell"])
def test_cells_are_mxnets(golden, name):
    """Names of nodes, outputs and gradients of three steps."""

    def part(kind):
        start = f"{name}_{kind}_"
        return {key.removeprefix(start): value for key, value in golden.items() if key.startswith(start)}

    options = json.loads(str(golden[f"{name}_options"]))
    with mx.name.NameManager():
        cell = getattr(mx.rnn, name)(INPUT, CHANNELS, **options)
        inputs = [mx.sym.Variable(f"x{step}") for step in range(STEPS)]
        outputs = mx.sym.Group(cell.unroll(STEPS, inputs)[0])
    assert outputs.list_arguments() == golden[f"{name}_arguments"].tolist()
    nodes = [node["name"] for node in json.loads(outputs.tojson())["nodes"]]
    assert nodes == golden[f"{name}_nodes"].tolist()
    executor = outputs.simple_bind(mx.cpu(), **{f"x{step}": INPUT for step in range(STEPS)})
    for argument, value in part("in").items():
        executor.arg_dict[argument][:] = value
    for step, output in enumerate(executor.forward(is_train=True)):
        np.testing.assert_allclose(output.asnumpy(), golden[f"{name}_out_{step}"], rtol=1e-5, atol=1e-6)
    executor.backward([mx.nd.ones(output.shape) for output in executor.outputs])
    for argument, value in part("grad").items():
        found = executor.grad_dict[argument].asnumpy()
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4, err_msg=argument)
    weights = {key: value for key, value in executor.arg_dict.items() if "2h_" in key}
    pieces = cell.unpack_weights(weights)
    assert sorted(pieces) == golden[f"{name}_pieces"].tolist()
    for key, value in cell.pack_weights(pieces).items():
        assert np.array_equal(value.asnumpy(), weights[key].asnumpy())


def test_the_states_convolution_keeps_the_size():
    with pytest.raises(ParamError, match=r"ConvGRUCell: the sizes of h2h_kernel must be odd, got \(3, 2\)"):
        mx.rnn.ConvGRUCell((1, 3, 8, 8), 4, h2h_kernel=(3, 2))
