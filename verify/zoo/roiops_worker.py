"""The roiops side of ``verify/check_model_zoo.py``: it sees only the files that MXNet left."""

import importlib.util
from pathlib import Path

import numpy as np
import roiops

import custom_ops
import inputs

assert importlib.util.find_spec("mxnet") is None, "the point is to run without mxnet"
custom_ops.register(roiops)


def load(folder, heads):
    """Load the model, run it on the saved inputs, and save its outputs and internal ``heads`` by name."""
    folder = Path(folder)
    with np.load(folder / "inputs.npz") as file:
        data = dict(file)
    model = roiops.models.load(folder / "model-symbol.json", folder / "model-0000.params")
    executor = model.bind(**{name: array.shape for name, array in data.items()})
    outputs = executor.forward(is_train=False, **data)
    results = {name: a.asnumpy() for name, a in zip(model.output_names, outputs, strict=True)}
    if heads:
        internals = model.symbol.get_internals()
        names = internals.list_outputs()
        group = roiops.sym.Group(internals[inputs.internal_number(names, head)] for head in heads.values())
        part = roiops.models.ArchivedModel(group, model.params)
        fed = {name: array for name, array in data.items() if name in part.input_names}
        results.update((name, a.asnumpy()) for name, a in zip(heads, part(**fed), strict=True))
    np.savez(folder / "got.npz", **results)
    return {}


if __name__ == "__main__":
    inputs.serve(load)
