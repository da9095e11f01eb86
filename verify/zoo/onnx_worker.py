"""The roiops side of ``verify/check_engines.py``: it sees only the files that MXNet left."""

from pathlib import Path

import numpy as np
import roiops
from roiops.models import archive
from roiops.models import onnx as roiops_onnx

import custom_onnx
import custom_ops
import inputs

custom_ops.register(roiops)
assert custom_onnx.__doc__  # registers their lowerings


def _read(folder):
    """The model that MXNet left, and the inputs that it asks for."""
    with np.load(folder / "inputs.npz") as file:
        data = dict(file)
    model = archive.load(folder / "model-symbol.json", folder / "model-0000.params")
    return model, {name: array for name, array in data.items() if name in model.input_names}


def _written(model, data, opset=None):
    conversion = roiops_onnx.prepare(model, {name: array.shape for name, array in data.items()}, opset=opset)
    return roiops_onnx.write.proto(conversion), conversion


def write(folder, target, opset):
    """Write the model and, in an ``.npz`` file, its inputs; which operators of ONNX it has."""
    model, data = _read(folder)
    return _write(*_written(model, data, opset), data, target)


def _write(made, conversion, data, target):
    roiops_onnx.write.save(made, target)  # checks with full inference of shapes
    wanted = {value.name: np.asarray(data[value.name], np.float32) for value in conversion.inputs}
    np.savez(target.with_suffix(".inputs.npz"), **wanted)
    operators = sorted({node.op_type for node in made.graph.node})
    return {"opset": conversion.graph.opset, "operators": operators}


def write_given(folder, choices, target, opset):
    """The same, but the operators that select boxes get what they got in roiops; and roiops's outputs."""
    model, data = _read(folder)
    chosen, given = _chosen(folder, model, data, choices)
    outputs = dict(zip(model.output_names, (a.asnumpy() for a in model(**data)), strict=True))
    np.savez(target.with_suffix(".expected.npz"), **outputs, **chosen)
    return _write(*_written(given, {**data, **chosen}, opset), {**data, **chosen}, target)


def _chosen(folder, model, data, choices):
    """What the operators that select boxes get in roiops, and the model that takes that as inputs."""
    internals = model.symbol.get_internals()
    names = internals.list_outputs()
    group = roiops.sym.Group(internals[inputs.internal_number(names, head)] for head in choices.values())
    part = archive.ArchivedModel(group, model.params)
    fed = {name: array for name, array in data.items() if name in part.input_names}
    chosen = {name: a.asnumpy().copy() for name, a in zip(choices, part(**fed), strict=True)}
    text = inputs.given_choices((folder / "model-symbol.json").read_text(), list(choices.values()))
    return chosen, archive.ArchivedModel(roiops.sym.load_json(text), model.params)


def answer(do, folder, target, **request):
    """What is asked for, by the name of a function."""
    known = {"write": write, "write_given": write_given}
    return known[do](folder=Path(folder), target=Path(target), **request)


if __name__ == "__main__":
    inputs.serve(answer)
