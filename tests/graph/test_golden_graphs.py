"""Graphs that MXNet saved: the same names, shapes, outputs and gradients, and JSON that goes round."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import roiops as mx

FOLDER = Path(__file__).parents[1] / "golden" / "graphs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))

#: float32 sums may be taken in another order, and exp and its like may differ in the last bits.
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


class Golden:
    def __init__(self, name):
        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files if key != "meta"}
            self.meta = json.loads(str(file["meta"]))
        self.text = (FOLDER / f"{name}.json").read_text()

    def group(self, kind):
        return {key.split("/", 1)[1]: v for key, v in self.arrays.items() if key.startswith(kind + "/")}


@pytest.fixture(params=NAMES)
def golden(request):
    return Golden(request.param)


def tuples(shapes):
    return [tuple(s) for s in shapes]


def close(got, want, what, scale=None):
    """``scale``: the size of the numbers that were summed up, where the sum itself may be near zero."""
    got = got.asnumpy() if hasattr(got, "asnumpy") else got
    assert got.dtype == want.dtype, what
    tolerance = TOLERANCE.get(want.dtype.name, 0)
    if scale is None:
        scale = np.abs(want).max(initial=0) if want.dtype.kind == "f" else 0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(scale, 1e-30), err_msg=what)


def test_there_are_about_twenty():
    assert len(NAMES) >= 20


def test_names(golden):
    net = mx.sym.load_json(golden.text)
    assert net.list_arguments() == golden.meta["arguments"]
    assert net.list_outputs() == golden.meta["outputs"]
    assert net.list_auxiliary_states() == golden.meta["auxiliary_states"]
    assert net.get_internals().list_outputs() == golden.meta["internals"]
    assert net.attr_dict() == golden.meta["attr_dict"]


def test_shapes_and_types(golden):
    net = mx.sym.load_json(golden.text)
    given = {name: tuple(shape) for name, shape in golden.meta["given_shapes"].items()}
    arguments, outputs, auxiliary = net.infer_shape(**given)
    assert arguments == tuples(golden.meta["arg_shapes"])
    assert outputs == tuples(golden.meta["out_shapes"])
    assert auxiliary == tuples(golden.meta["aux_shapes"])


def without_row_pointers(text):
    """The text without ``node_row_ptr``, which counts hidden outputs: MXNet has a few that we do not need."""
    return re.sub(r'"node_row_ptr": \[[^]]*\]', "", text)


def test_saving_gives_mxnets_own_text(golden):
    saved = mx.sym.load_json(golden.text).tojson()
    assert without_row_pointers(saved) == without_row_pointers(golden.text)
    assert mx.sym.load_json(saved).tojson() == saved


def test_outputs_and_gradients(golden):
    meta, net = golden.meta, mx.sym.load_json(golden.text)
    before = golden.group("grad_before")
    executor = net.bind(
        mx.cpu(),
        {name: mx.nd.array(value, dtype=value.dtype) for name, value in golden.group("arg").items()},
        args_grad={name: mx.nd.array(value, dtype=value.dtype) for name, value in before.items()},
        grad_req=meta["grad_req"],
        aux_states={
            name: mx.nd.array(value, dtype=value.dtype) for name, value in golden.group("aux").items()
        },
    )
    executor.forward(is_train=meta["is_train"])
    for i, want in golden.group("out").items():
        close(executor.outputs[int(i)], want, f"output {i}")
    if not meta["backward"]:
        return
    heads = golden.group("head")
    executor.backward(
        [mx.nd.array(heads[str(i)], dtype=heads[str(i)].dtype) for i in range(len(heads))] or None
    )
    gradients = golden.group("grad")
    scale = max(np.abs(g).max(initial=0) for g in gradients.values())
    for name, want in gradients.items():
        close(executor.grad_dict[name], want, f"gradient of {name}", scale)
    for name, want in golden.group("aux_after").items():
        close(executor.aux_dict[name], want, f"auxiliary state {name}")


def test_the_same_graph_bound_simply(golden):
    given = {name: tuple(shape) for name, shape in golden.meta["given_shapes"].items()}
    arguments = golden.group("arg")
    types = {name: value.dtype for name, value in arguments.items()}
    executor = mx.sym.load_json(golden.text).simple_bind(mx.cpu(), grad_req="null", type_dict=types, **given)
    executor.copy_params_from(arguments, golden.group("aux"))
    executor.forward(is_train=golden.meta["is_train"])
    for i, want in golden.group("out").items():
        close(executor.outputs[int(i)], want, f"output {i}")
